"""Containers: flattening, paths, and which leaves are accepted."""

from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.errors import ArgumentError, TraceError
from symad.tracing.values.array import Array
from symad.tracing.values.containers import check_differentiable, flatten, from_nodes, paths, to_nodes, unflatten
from symad.tracing.values.scalar import Scalar

Point = namedtuple("Point", ["left", "right"])
TREES = [
    1.0,
    (1.0, [2.0, {"a": 3.0}]),
    {"b": Point(1.0, 2.0), "a": np.ones(2)},
    OrderedDict([("z", 1.0), ("a", 2.0)]),
    [],
    {"weights": None, "bias": 1.0},
    [sp.Symbol("x"), sp.Matrix([1, 2])],
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_round_trip(tree):
    leaves, structure = flatten(tree)
    assert repr(unflatten(structure, leaves)) == repr(tree)
    assert len(paths(tree)) == len(leaves)


def test_none_has_no_leaves():
    assert flatten({"a": None, "b": (None,)})[0] == []


def test_paths_are_written_as_code():
    tree = {"layer_1": {"weight": 1.0}, 3: [1.0, Point(1.0, 2.0)]}
    assert paths(tree, "params") == [
        "params[3][0]",
        "params[3][1].left",
        "params[3][1].right",
        'params["layer_1"]["weight"]',
    ]
    assert paths(2.0, "x") == ["x"]


ACCEPTED = [
    (2, ()),
    (2.5, ()),
    (True, ()),
    (np.float64(1.5), ()),
    (np.int32(2), ()),
    (np.array(1.0), ()),
    (np.ones((2, 3)), (2, 3)),
    (np.arange(3), (3,)),
    (np.array([True, False]), (2,)),
    (np.float32([1, 2]), (2,)),
    (sp.Symbol("x") + 1, ()),
    (sp.pi, ()),
    (sp.Matrix([[1, 2], [3, sp.Symbol("x")]]), (2, 2)),
    (np.array([sp.Symbol("x"), 1.0], dtype=object), (2,)),
    (np.zeros(0), (0,)),
    (sp.Symbol("x") > 0, ()),
    (sp.ImmutableMatrix([1, 2]), (2,)),
    (sp.Array([[[1, 2], [3, 4]]]), (1, 2, 2)),
]


@pytest.mark.parametrize(("value", "shape"), ACCEPTED, ids=lambda value: repr(value)[:30])
def test_accepted_leaves(value, shape, scope):
    nodes = to_nodes(value, scope, path="x")
    assert (nodes.shape, nodes.dtype) == (shape, np.int64)
    assert isinstance(from_nodes(nodes, scope), Array if shape else Scalar)


def test_traced_leaves(scope, number, vector):
    assert int(to_nodes(number, scope, path="x")) == number.node
    assert np.array_equal(to_nodes(vector, scope, path="x"), vector.nodes)
    assert to_nodes(np.array([number, 2.0, sp.pi], dtype=object), scope, path="x").shape == (3,)
    assert to_nodes(vector, scope, path="x") is not vector.nodes


def test_numbers_keep_their_kind(scope):
    kinds = [type(scope.graph.atoms[int(to_nodes(value, scope, path="x"))]) for value in (2, 2.5, True, np.int64(2))]
    assert kinds == [sp.Integer, sp.Float, type(sp.true), sp.Integer]
    ones = [scope.graph.atoms[int(to_nodes(np.ones(1, dtype), scope, path="x")[0])] for dtype in (int, float)]
    assert [type(atom) for atom in ones] == [type(sp.Integer(1)), sp.Float]


REFUSED = [
    (1j, "x is of type complex: only real functions are differentiated"),
    (np.array([1j]), "x is an array of complex128: only real functions are differentiated"),
    ("text", "x is of type str: a text is no number"),
    (b"text", "x is of type bytes: a text is no number"),
    (np.array(["a"]), "x is an array of <U1: a text is no number"),
    (None, "x is of type NoneType: None is no number"),
    ({1.0, 2.0}, "x is of type set: a set has no order"),
    (np.sin, "x is of type ufunc: the function sin met a traced value (it was not called)"),
    (len, "x is of type builtin_function_or_method: a function is no number"),
    (lambda: 1, "x is of type function: a function is no number"),
    ((k for k in range(3)), "x is of type generator: a generator can be read only once"),
    (np.datetime64("2020"), "x is of type datetime64: a date is no real number"),
    (np.array(["2020"], dtype="datetime64[D]"), "x is an array of datetime64[D]: a date is no real number"),
    (np.array([None]), "x is an array of object: a value of type NoneType met a traced value"),
    (np.ones((1, 1)).view(np.matrix), "x is of type matrix: np.matrix redefines * and is deprecated"),
    (object(), "x is of type object: a value of type object met a traced value"),
    (sp.I, "x is of type ImaginaryUnit: only real functions are differentiated"),
]


@pytest.mark.parametrize(("value", "text"), REFUSED, ids=lambda value: str(value).split(" at 0x")[0][:30])
def test_refused_leaves(value, text, scope):
    with pytest.raises(ArgumentError) as caught:
        to_nodes(value, scope, path="x")
    assert f"argument {text}" in str(caught.value)
    assert str(caught.value).startswith(__file__)
    assert str(caught.value).endswith("; pass numbers, NumPy arrays, SymPy expressions, or containers of them")
    with pytest.raises(TraceError) as caught:
        to_nodes(value, scope, path="x", role="result")
    assert f"result {text}" in str(caught.value)
    assert str(caught.value).endswith("; return numbers, arrays, or containers of them")


DIFFERENTIABLE = [2, 2.5, np.float64(1.0), np.int64(3), np.ones(2), np.array(1.0), np.float32([1.0]), sp.Symbol("x")]
DIFFERENTIABLE += [np.array([sp.Symbol("x"), 1.0], dtype=object), sp.Matrix([1, 2]), np.array(2), np.arange(3)]
DIFFERENTIABLE += [np.zeros(0), np.zeros((3, 0))]

NOT_DIFFERENTIABLE = [
    (np.array([True]), "its dtype is bool, and a derivative needs real numbers; use .astype(float)"),
    (True, "a truth value has no derivative; pass a float"),
    (1 + 2j, "only real functions are differentiated"),
    (np.array([1j]), "only real functions are differentiated"),
    (np.array([None]), "it holds a value of type NoneType"),
    ("text", "a text is no number"),
]


@pytest.mark.parametrize("value", DIFFERENTIABLE, ids=repr)
def test_differentiable_arguments(value):
    check_differentiable(value, "x")


@pytest.mark.parametrize(("value", "text"), NOT_DIFFERENTIABLE, ids=lambda value: str(value)[:30])
def test_not_differentiable_arguments(value, text):
    with pytest.raises(ArgumentError) as caught:
        check_differentiable(value, 'params["w"]')
    assert 'argument params["w"] is ' in str(caught.value)
    assert text in str(caught.value)


def test_traced_truth_values_are_not_differentiable(vector, number):
    check_differentiable(vector, "x")
    check_differentiable(number, "x")
    with pytest.raises(ArgumentError, match="its dtype is bool, and a derivative needs real numbers"):
        check_differentiable(vector > 0, "x")


def test_inputs_whose_paths_spell_the_same_name_stay_apart():
    """p["a_0"] and p["a"][0] would both be p_a_0: one symbol for two inputs gives a wrong number."""
    parameters = {"a_0": 2.0, "a": np.array([5.0])}
    assert sa.compile(lambda p: p["a_0"] + 10 * p["a"][0], parameters)(parameters) == 52.0
    with pytest.raises(ArgumentError, match="distinct SymPy symbols"):
        sa.from_sympy([sp.Symbol("x"), sp.Symbol("x")], sp.Symbol("x"))


def test_integer_arrays_and_empty_ones_are_arguments() -> None:
    """As an integer is one: they are taken as floats; the gradient of nothing is empty."""
    x, parameters = np.array([1, 2, 3]), {"a": 3.0, "b": np.zeros(0)}

    def squares(v: Any) -> Any:
        return np.sum(v**2)

    def total(p: Any) -> Any:
        return p["a"] ** 2 + np.sum(p["b"])

    for gradient in (sa.grad(squares), sa.compile(sa.grad(squares), x), sa.jit(sa.grad(squares))):
        np.testing.assert_array_equal(gradient(x), [2.0, 4.0, 6.0], strict=True)
    np.testing.assert_array_equal(sa.grad(lambda v: np.sum(v**3))(np.array([100], dtype=np.int8)), [30_000.0])
    for gradient in (sa.grad(total), sa.compile(sa.grad(total), parameters)):
        found = gradient(parameters)
        assert found["a"] == 6.0
        assert found["b"].shape == (0,)
    assert sa.hessian(squares)(np.zeros(0)).shape == (0, 0)
    assert sa.grad(lambda v: np.sum(v))(np.zeros((3, 0))).shape == (3, 0)
