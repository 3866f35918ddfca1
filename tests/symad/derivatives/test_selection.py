"""wrt: parts of arguments chosen by their paths, as error messages write them."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import symad as sa
from symad.derivatives.selection import steps_of
from symad.tracing.values.containers import paths

Point = namedtuple("Point", ["left", "right"])


@dataclass
class Layer:
    weight: Any
    bias: Any = 0.5
    name: str = "layer"


def model(params: Any, x: Any, scale: Any = 1.0) -> Any:
    first, second = params["layers"]
    hidden = np.tanh(first.weight @ x + first.bias)
    return scale * (second.weight @ hidden + second.bias) ** 2 + params["more"].left * params["more"].right


PARAMS = {
    "layers": [Layer(np.array([[0.5, -1.0], [0.25, 2.0]])), Layer(np.array([1.5, -0.5]), 0.25)],
    "more": Point(2.0, 3.0),
    "none": None,
}
X = np.array([0.3, -0.7])
FULL = sa.grad(model)(PARAMS, X)
PATHS = [
    ("params", lambda full: full),
    ('params["layers"]', lambda full: full["layers"]),
    ('params["layers"][0]', lambda full: full["layers"][0]),
    ("params['layers'][1].weight", lambda full: full["layers"][1].weight),
    ('params["layers"][0].bias', lambda full: full["layers"][0].bias),
    ('params["more"].right', lambda full: full["more"].right),
    (' params [ "more" ] ', lambda full: full["more"]),
]


def same(left: Any, right: Any) -> bool:
    return repr(left) == repr(right)


@pytest.mark.parametrize(("path", "part"), PATHS, ids=[path for path, _ in PATHS])
def test_the_gradient_with_respect_to_a_part_is_that_part_of_the_gradient(path, part):
    assert same(sa.grad(model, wrt=path)(PARAMS, X), part(FULL))
    value, gradient = sa.value_and_grad(model, wrt=path)(PARAMS, X)
    assert value == model(PARAMS, X)
    assert same(gradient, part(FULL))


def test_several_paths_give_a_tuple():
    wanted = (FULL["more"].left, sa.grad(model, 1)(PARAMS, X), FULL["layers"][0].bias)
    paths = ('params["more"].left', "x", 'params["layers"][0].bias')
    assert same(sa.grad(model, wrt=paths)(PARAMS, X), wanted)
    assert same(sa.grad(model, wrt=list(paths))(PARAMS, X), wanted)
    assert same(sa.grad(model, wrt=["x"])(PARAMS, X), (wanted[1],))


@pytest.mark.parametrize("mode", ["auto", "edge", "dyadic", "fwd-rev", "rev-rev", "rev-fwd", "fwd-fwd"])
def test_a_hessian_with_respect_to_a_part(mode):
    path = 'params["layers"][0].weight'
    found = sa.hessian(model, wrt=path, mode=mode)(PARAMS, X)

    def of_weight(weight: Any) -> Any:
        first, second = PARAMS["layers"]
        return model({**PARAMS, "layers": [Layer(weight, first.bias), second]}, X)

    np.testing.assert_allclose(found, sa.hessian(of_weight)(PARAMS["layers"][0].weight), rtol=1e-12)
    assert found.shape == (2, 2, 2, 2)


@pytest.mark.parametrize("jacobian", [sa.jacfwd, sa.jacrev, sa.jacobian, partial(sa.jacobian, mode="rev")])
def test_jacobians_with_respect_to_parts(jacobian):
    def f(params: Any, x: Any) -> Any:
        return np.stack([params.a * x[0], params.b @ x])

    params = SimpleNamespace(a=2.0, b=np.array([3.0, 4.0]))
    whole = sa.jacobian(f)(params, X)
    assert same(jacobian(f, wrt="params.b")(params, X), whole.b)
    by_a, by_x = jacobian(f, wrt=("params.a", "x"))(params, X)
    np.testing.assert_array_equal(by_a, whole.a)
    np.testing.assert_array_equal(by_x, [[2.0, 0.0], [3.0, 4.0]])
    assert sa.jacobian(f, wrt="params.b", sparse=True)(params, X).shape == (2, 2)


def test_derivatives_with_respect_to_a_part():
    def f(params: Any, t: Any) -> Any:
        return params["a"] ** 3 * t

    assert sa.derivative(f, 2, wrt='params["a"]')({"a": 2.0, "b": 1.0}, 5.0) == 60.0
    assert sa.derivative(f, wrt="t")({"a": 2.0, "b": 1.0}, 5.0) == 8.0
    with pytest.raises(sa.errors.ArgumentError, match="one path"):
        sa.derivative(f, wrt=("t",))({"a": 2.0}, 5.0)


def test_wrt_nests_compiles_and_takes_keywords():
    path = 'params["more"].left'
    both = sa.grad(lambda params, x: sa.grad(model, wrt=path)(params, x), wrt='params["more"].right')
    assert both(PARAMS, X) == 1.0
    kernel = sa.compile(sa.grad(model, wrt='params["layers"][0]'), PARAMS, X)
    np.testing.assert_allclose(kernel(PARAMS, X).weight, FULL["layers"][0].weight, rtol=1e-13)
    assert sa.grad(model, wrt=path)(PARAMS, X, scale=7.0) == 3.0


def test_a_shared_array_is_two_parts():
    shared = np.array([2.0])
    params = {"a": shared, "b": shared}
    assert sa.grad(lambda p: (p["a"] * p["b"] ** 2)[0], wrt='p["b"]')(params) == [8.0]


def test_indices_stay_integers():
    @dataclass
    class Mesh:
        points: Any
        edges: Any

    def length(mesh: Any) -> Any:
        ends = mesh.points[mesh.edges]
        return np.sum(np.hypot(*(ends[:, 0] - ends[:, 1]).T))

    mesh = Mesh(np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]]), np.array([[0, 1], [1, 2]]))
    both = sa.grad(length)(mesh)
    assert not both.edges.any()
    found = sa.grad(length, wrt="mesh.points")(mesh)
    np.testing.assert_array_equal(both.points, found)
    np.testing.assert_allclose(found, [[-0.6, -0.8], [0.6, 1.8], [0.0, -1.0]], rtol=1e-15)


def test_what_is_not_chosen_keeps_its_numbers():
    """Integers, masks and texts outside the chosen part are the caller's own values, not traced ones."""

    def f(p: Any, mask: Any) -> Any:
        return np.sum(p["w"][mask] ** p["power"]) * len(p["text"])

    params = {"w": np.array([1.0, 2.0, 3.0]), "power": 2, "text": "ab"}
    found = sa.grad(f, wrt='p["w"]')(params, np.array([True, False, True]))
    np.testing.assert_array_equal(found, [4.0, 0.0, 12.0])


def test_tuples_and_integers_as_keys():
    quoted = {'a "b" \\': 2.0}
    (path,) = paths(quoted, "p")
    assert sa.grad(lambda p: p['a "b" \\'] ** 2, wrt=path)(quoted) == 4.0
    params = {(0, "a"): 2.0, -1: 3.0}
    assert sa.grad(lambda p: p[0, "a"] * p[-1], wrt='p[(0, "a")]')(params) == 3.0
    assert sa.grad(lambda p: p[0, "a"] * p[-1], wrt="p[-1]")(params) == 2.0


def test_parts_of_registered_classes():
    class Pair:
        def __init__(self, *parts: Any) -> None:
            self.parts = parts

    sa.register_container(Pair, lambda pair: (pair.parts, None), lambda static, parts: Pair(*parts))
    assert sa.grad(lambda p: p.parts[0] * p.parts[1], wrt="p[1]")(Pair(2.0, 3.0)) == 2.0


def test_a_function_valued_function():
    assert sa.grad(lambda p, q: lambda t: p * q * t, wrt="q")(2.0, 3.0)(5.0) == 10.0


REFUSED = [
    ('params["layer"]', r"near paths are .*params\[\"layers\"\]"),
    ('params["layers"][2].weight', r"near paths are .*params\[\"layers\"\]\[1\]\.weight"),
    ("params.layers", "near paths are"),
    ("parms", "near paths are params"),
    ("scale", "scale was passed by keyword, and only positional arguments are differentiated"),
    ("x[0]", "near paths are x"),
    ('params["layers"][0].name', "near paths are"),
    ('params["none"]', "there are no numbers in it"),
    ("params.__class__", "near paths are"),
    ("params[0", "it is no path"),
    ("", "it is no path"),
    ("f(params)", "it is no path"),
    ("params[len]", "it is no path"),
    ('params["layers"][1:]', "it is no path"),
    (3, "it is no path"),
    ((), "give a path"),
    (("params", 'params["more"]'), "a number is chosen twice"),
    (("x", "x"), "a number is chosen twice"),
]


@pytest.mark.parametrize(("path", "text"), REFUSED, ids=repr)
def test_refused_paths(path, text):
    with pytest.raises(sa.errors.ArgumentError, match=text):
        sa.grad(model, wrt=path)(PARAMS, X, scale=2.0)


def test_an_argument_without_numbers_is_refused():
    """Its gradient would be the argument itself, with static fields that look like derivatives."""

    @dataclass
    class Flags:
        exact: bool = True

    with pytest.raises(sa.errors.ArgumentError, match="no numbers in it"):
        sa.grad(lambda flags, x: x)(Flags(), 1.0)
    assert sa.grad(lambda flags, x: x**2, 1)(Flags(), 1.0) == 2.0


def test_argnums_and_wrt_together_are_refused():
    for argnums in (0, 1, (0,)):
        with pytest.raises(sa.errors.ArgumentError, match="both choose arguments"):
            sa.grad(model, argnums, wrt="x")(PARAMS, X)


def test_a_path_is_never_evaluated():
    assert steps_of('a.b["c"][-1]') == ["a", ".b", '["c"]', "[-1]"]
    with pytest.raises(sa.errors.ArgumentError):
        steps_of('__import__("os").name')


def test_a_class_that_is_met_for_the_first_time_has_paths() -> None:
    @dataclass
    class Inner:
        k: float

    @dataclass
    class Outer:
        inner: Inner

    assert sa.grad(lambda p: p.inner.k**2, wrt="p.inner.k")(Outer(Inner(3.0))) == 6.0


def test_parts_behind_a_container_of_many_numbers_are_apart_from_it() -> None:
    parts = {"a": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], "b": 8.0, "c": [9.0, 10.0]}
    found = sa.grad(lambda p: sum(p["a"]) * p["b"] + p["c"][1], wrt=("p['a']", "p['b']", "p['c'][1]"))(parts)
    assert found == ([8.0] * 7, 28.0, 1.0)
    with pytest.raises(sa.errors.ArgumentError, match="p"):
        sa.grad(lambda p: p["b"], wrt=("p['c']", "p['c'][1]"))(parts)
