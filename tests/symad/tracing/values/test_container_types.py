"""Dataclasses, attrs classes, namespaces and registered classes as containers, in every transform."""

from __future__ import annotations

import re
from collections import OrderedDict, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, make_dataclass, replace
from enum import Enum
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import symad as sa
from symad.errors import ArgumentError, TraceError
from symad.tracing.values.containers import flatten, paths


class Mode(Enum):
    FAST = 1


@dataclass
class Layer:
    weight: Any
    bias: Any = 0.5
    act: Any = np.tanh
    name: str = "layer"


@dataclass(frozen=True, kw_only=True, slots=True)
class Network:
    first: Layer
    second: Layer
    squared: bool = True
    mode: Mode = Mode.FAST
    absent: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.first, Layer) or self.first.weight.dtype != float:
            raise ValueError("weights are float arrays")


@dataclass
class Marked:
    size: Any = field(metadata={"static": True})
    value: float = 1.0


class Attribute(SimpleNamespace):
    """An attribute as the package attrs describes it."""


class Spring:
    """A class as attrs makes it: frozen, with a private attribute."""

    __attrs_attrs__ = tuple(Attribute(name=name, init=True, metadata={}) for name in ("_stiffness", "rest", "label"))

    def __init__(self, stiffness: Any, rest: Any, label: str = "spring") -> None:
        for name, value in zip(("_stiffness", "rest", "label"), (stiffness, rest, label), strict=True):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("frozen")

    def energy(self, x: Any) -> Any:
        return self._stiffness * (x - self.rest) ** 2 / 2


NETWORK = Network(
    first=Layer(np.array([[0.5, -1.0], [0.25, 2.0]])), second=Layer(np.array([1.5, -0.5]), 0.25, np.sin, "last")
)
X = np.array([0.3, -0.7])


def apply_network(network: Any, x: Any) -> Any:
    hidden = network.first.act(network.first.weight @ x + network.first.bias)
    out = network.second.act(network.second.weight @ hidden + network.second.bias)
    return out**2 if network.squared else out


def test_dataclasses_are_containers_without_registration():
    gradient = sa.grad(apply_network)(NETWORK, X)
    assert isinstance(gradient, Network)
    assert (gradient.second.name, gradient.second.act, gradient.mode, gradient.absent) == (
        "last",
        np.sin,
        Mode.FAST,
        None,
    )

    def flat(bias: float) -> Any:
        return apply_network(replace(NETWORK, second=replace(NETWORK.second, bias=bias)), X)

    step = 1e-6
    assert abs(gradient.second.bias - (flat(0.25 + step) - flat(0.25 - step)) / (2 * step)) < 1e-8
    assert gradient.second.bias == sa.derivative(flat)(0.25)


def test_dataclasses_in_every_transform():
    tangent = Network(first=Layer(np.ones((2, 2)), 1.0), second=Layer(np.ones(2), 1.0, np.sin, "last"))
    slope = sa.jvp(lambda n: apply_network(n, X), (NETWORK,), (tangent,))[1]
    gradient = sa.grad(apply_network)(NETWORK, X)
    total = sum(np.sum(leaf) for leaf in flatten(gradient)[0])
    assert abs(slope - total) < 1e-14
    _, pullback = sa.vjp(apply_network, NETWORK, X)
    assert repr(pullback(1.0)[0]) == repr(gradient)
    hessian = sa.hessian(apply_network)(NETWORK, X)
    assert hessian.first.bias.second.weight.shape == (2,)
    np.testing.assert_allclose(hessian.first.bias.second.weight, hessian.second.weight.first.bias, rtol=1e-12)
    assert sa.jacobian(lambda n: Layer(n.first.weight * 2, n.first.bias))(NETWORK).weight.first.weight.shape == (
        2,
        2,
        2,
        2,
    )
    assert sa.hvp(lambda n: apply_network(n, X), (NETWORK,), (tangent,)).first.weight.shape == (2, 2)


def test_kernels_take_and_return_dataclasses():
    kernel = sa.compile(sa.value_and_grad(apply_network), NETWORK, X)
    value, gradient = kernel(NETWORK, X)
    assert isinstance(gradient, Network)
    assert abs(value - apply_network(NETWORK, X)) < 1e-15
    with pytest.raises(ArgumentError, match="structure"):
        kernel(replace(NETWORK, squared=False), X)


def test_static_fields_are_part_of_the_key_of_a_kernel():
    f = sa.jit(apply_network)
    for network in (NETWORK, replace(NETWORK, squared=False), NETWORK):
        assert abs(f(network, X) - apply_network(network, X)) < 1e-15
    assert sa.jit(lambda m: m.value * m.size)(Marked(3)) == 3.0
    assert sa.grad(lambda m: m.value**m.size)(Marked(3, 2.0)) == Marked(3, 12.0)


def test_an_integer_field_is_a_number_unless_marked():
    """Copied into a gradient, a static integer would look like a derivative."""
    assert sa.grad(lambda m: m.value * m.weight)(SimpleNamespace(value=2, weight=5)) == SimpleNamespace(
        value=5, weight=2
    )


def test_init_and_checks_are_not_run_again():
    ran = []

    @dataclass
    class Positive:
        value: float
        total: Any = field(init=False, default=None)

        def __post_init__(self) -> None:
            ran.append(self.value)
            if self.value <= 0:
                raise ValueError("value must be positive")

    gradient = sa.grad(lambda p: -3 * p.value)(Positive(2.0))
    assert gradient.value == -3.0  # a gradient that __post_init__ would refuse
    assert ran == [2.0]


def test_a_field_computed_by_post_init_is_refused():
    @dataclass
    class Square:
        side: float
        area: float = field(init=False)

        def __post_init__(self) -> None:
            self.area = self.side**2

    with pytest.raises(ArgumentError, match=r"field area of Square.*make it a property"):
        sa.grad(lambda s: s.area)(Square(2.0))


def test_a_static_field_has_to_be_hashable():
    message = rf"^{re.escape(__file__)}:\d+: the static field size of Marked is of type list.*use a tuple"
    with pytest.raises(ArgumentError, match=message):
        sa.grad(lambda m: m.value)(Marked([3]))


def test_attrs_classes_and_namespaces():
    spring = Spring(2.0, 1.0)
    gradient = sa.grad(Spring.energy)(spring, 4.0)
    assert (gradient._stiffness, gradient.rest, gradient.label) == (4.5, -6.0, "spring")
    assert sa.compile(Spring.energy, spring, 0.0)(spring, 4.0) == 9.0
    assert sa.grad(lambda n: n.a * n.b.c)(
        SimpleNamespace(a=2.0, b=SimpleNamespace(c=3.0), text="t")
    ) == SimpleNamespace(a=3.0, b=SimpleNamespace(c=2.0), text="t")


def test_paths_of_dataclasses_name_the_field():
    assert paths(NETWORK, "net")[:2] == ["net.first.weight", "net.first.bias"]
    with pytest.raises(ArgumentError, match=r"argument network\.second\.bias is of type set"):
        sa.grad(apply_network)(replace(NETWORK, second=Layer(np.ones(2), {1.0})), X)

    def f(x: Any) -> Any:
        return Layer(x, 1j)

    with pytest.raises(TraceError, match=r"result of f\.bias is of type complex"):
        sa.jvp(f, (1.0,), (1.0,))


@dataclass
class Model:
    weight: Any

    def __call__(self, x: Any) -> Any:
        return self.weight * x


def test_a_model_that_can_be_called_is_a_container():
    assert sa.grad(lambda model, x: model(x) ** 2)(Model(2.0), 3.0) == Model(36.0)
    assert sa.jvp(lambda w: Model(w * w), (3.0,), (1.0,)) == (Model(9.0), Model(6.0))
    assert sa.grad(Model(5.0))(1.0) == 5.0


def test_a_record_that_is_a_built_in_type_is_no_container():
    @dataclass
    class FailureError(Exception):
        value: float = 1.0

    with pytest.raises(ArgumentError, match="failure is of type FailureError"):
        sa.grad(lambda failure: failure.value)(FailureError(2.0))


def test_cached_properties_are_computed_anew():
    """A number that was cached before would have no derivative."""

    @dataclass
    class Disc:
        radius: float

        @cached_property
        def area(self) -> Any:
            return np.pi * self.radius**2

    disc = Disc(2.0)
    assert disc.area > 0
    assert sa.grad(lambda d: d.area)(disc).radius == pytest.approx(4 * np.pi, rel=1e-15)


class Vector:
    def __init__(self, *parts: Any) -> None:
        self.parts = parts


class Line:
    def __init__(self, slope: Any, offset: Any, unit: str) -> None:
        self.slope, self.offset, self.unit = slope, offset, unit


def test_registered_containers():
    sa.register_container(Vector, lambda v: (v.parts, None), lambda static, parts: Vector(*parts))
    sa.register_container(
        Line,
        lambda line: ({"slope": line.slope, "offset": line.offset}, line.unit),
        lambda unit, parts: Line(**parts, unit=unit),
    )
    assert sa.grad(lambda v: v.parts[0] * v.parts[1])(Vector(2.0, 3.0)).parts == (3.0, 2.0)
    found = sa.jit(sa.grad(lambda line, x: line.slope * x + line.offset))(Line(2.0, 1.0, "m"), 5.0)
    assert (found.slope, found.offset, found.unit) == (5.0, 1.0, "m")
    assert paths({"v": Vector(1.0), "l": Line(1.0, 2.0, "m")}, "p") == ['p["l"].slope', 'p["l"].offset', 'p["v"][0]']
    with pytest.raises(ArgumentError, match="Vector is a container already"):
        sa.register_container(Vector, lambda v: (v.parts, None), lambda static, parts: Vector(*parts))
    flatten(Layer(1.0))
    with pytest.raises(ArgumentError, match="Layer is a container already"):
        sa.register_container(Layer, lambda layer: ((), None), lambda static, parts: Layer(*parts))


def test_threads_meet_a_new_class_at_once():
    made = [make_dataclass("New", [("value", float)]) for _ in range(20)]
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda k: sa.grad(lambda p: p.value**2)(made[k % 20](float(k))).value, range(160))
        assert list(found) == [2.0 * k for k in range(160)]


DICTS = [
    {"b": 2.0, "a": 3.0},
    OrderedDict([("b", 2.0), ("a", 3.0)]),
    defaultdict(float, {"b": 2.0, "a": 3.0}),
]


@pytest.mark.parametrize("params", DICTS, ids=lambda params: type(params).__name__)
def test_dictionaries_of_every_kind(params):
    gradient = sa.grad(lambda p: p["a"] ** 2 * p["b"])(params)
    assert type(gradient) is type(params)
    assert dict(gradient) == {"a": 12.0, "b": 9.0}
    assert sa.jit(sa.grad(lambda p: p["a"] ** 2 * p["b"]))(params) == gradient
