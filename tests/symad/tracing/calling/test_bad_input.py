"""Bad input: each case a clear error that says what was met, where, why and what to do; nothing is guessed."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.compiling.native import compile_trace
from symad.derivatives.linear import linearize
from symad.graph.builder import Builder

HERE = Path(__file__).name
X = np.array([0.3, 0.7])
TRANSFORMS = [sa.grad, sa.hessian, sa.jacfwd, sa.jacrev, sa.jacobian]


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda t: t.__name__)
@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (np.array([1 + 2j, 3.0]), "complex"),
        (np.array([True, False]), r"bool.*\.astype\(float\)"),
        (np.array([object(), 1.0], dtype=object), "object"),
        (np.array(["a", "b"]), "text|str"),
        ("a string", "str"),
        (1 + 2j, "complex"),
        ({1.0, 2.0}, "set"),
        (True, "truth value"),
        (np.array(True), "bool"),
    ],
    ids=lambda value: repr(value).split(" at 0x")[0][:30],
)
def test_arguments_that_cannot_be_differentiated(transform, argument, message):
    with pytest.raises(sa.errors.ArgumentError, match=message):
        transform(lambda x: (x * x).sum())(argument)
    with pytest.raises(sa.errors.ArgumentError, match=message):
        sa.compile(lambda x: (x * x).sum(), argument)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("text", "str"),
        ([[1.0, 2.0], "b"], "str"),
        (b"bytes", "bytes"),
        (np.array([1j]), "complex"),
        ({1.0, 2.0}, "set"),
        (np.array([None]), "NoneType"),
        (object(), "object"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_results_that_are_no_numbers(result, message):
    with pytest.raises(sa.WorkbenchError, match=message):
        sa.jacfwd(lambda x: result)(X)
    with pytest.raises(sa.WorkbenchError, match=message):
        sa.compile(lambda x: result, X)


@pytest.mark.parametrize("result", [None, [[1.0, 2.0], [3.0]], (1.0, 2.0)], ids=repr)
def test_a_gradient_of_nothing_or_of_several_values(result):
    with pytest.raises(sa.errors.ArgumentError, match=r"instead of one scalar|returned None"):
        sa.grad(lambda x: result)(X)


@pytest.mark.parametrize(
    "call", [sa.jacfwd, sa.jacrev, sa.grad, sa.hessian, sa.jit, lambda f: lambda x: sa.compile(f, x),
             lambda f: lambda x: sa.trace(f, x), lambda f: lambda x: sa.vjp(f, x),
             lambda f: lambda x: sa.jvp(f, (x,), (x,)), lambda f: sa.jacobian(f, sparse=True)],
)  # fmt: skip
def test_a_forgotten_return(call):
    with pytest.raises(sa.errors.ArgumentError, match=r"returned None.*return"):
        call(lambda x: None)(X)


@pytest.mark.parametrize("transform", [*TRANSFORMS, sa.value_and_grad], ids=lambda t: t.__name__)
@pytest.mark.parametrize("argnums", [(0, 0), (0, -2), "x", 0.0, [0, 1], (), True, (0, "y"), 5, -3, None], ids=repr)
def test_argnums_that_choose_no_arguments(transform, argnums):
    """(0, 0) would put the whole derivative into one of two places: the other would be a misleading zero."""
    with pytest.raises(sa.errors.ArgumentError, match="argnums="):
        transform(lambda x, y: x * y, argnums)(2.0, 3.0)


def test_integers_beyond_64_bits_are_numbers():
    assert sa.grad(lambda x: x * x)(2**70) == 2.0**71
    assert sa.grad(lambda x: (x * 2**70).sum())(X).tolist() == [2.0**70] * 2


def test_an_integer_scalar_and_a_zero_dimensional_array_are_numbers():
    assert sa.grad(lambda x: x**3)(2) == 12.0
    assert sa.grad(lambda x: x**3)(np.array(2.0)) == 12.0
    assert sa.compile(sa.grad(lambda x: x**3), np.array(2.0))(np.array(2.0)) == 12.0


def test_nan_and_infinity_travel_through_like_in_numpy():
    assert math.isnan(sa.grad(lambda x: x * x)(math.nan))
    assert sa.grad(lambda x: x * x)(math.inf) == math.inf


def test_a_symbolic_condition_names_file_line_and_the_way_out():
    def f(x):
        return np.sum(x[:1]) * len({int(x[0])}) + x[np.flatnonzero(x > 1)][0]

    line = f.__code__.co_firstlineno + 1
    with pytest.raises(sa.errors.TraceError, match=rf"{HERE}:{line}: .*np\.clip\(int.*np\.where"):
        sa.jit(f)(np.array([1.0, 2.0]))
    assert sa.grad(f)(np.array([1.0, 2.0])).tolist() == [1.0, 1.0]
    with pytest.raises(sa.errors.TraceError, match=rf"{HERE}:.*np\.where.*compile follows both branches"):
        sa.grad(lambda x: x if x > 0 else -x)(sp.Symbol("a", real=True))


@pytest.mark.parametrize(
    ("convert", "message"),
    [(math.factorial, "integer index"), (complex, "a complex array")],
    ids=["math.factorial", "complex"],
)
def test_conversions_of_a_traced_value(convert, message):
    with pytest.raises(sa.errors.TraceError, match=message) as caught:
        sa.compile(lambda x: convert(x[0]) * x[1], X)
    assert HERE in str(caught.value)


def test_a_value_kept_after_its_level_closed():
    kept = []

    def f(x):
        kept.append(x)
        return x * x

    sa.grad(f)(2.0)
    for use in (lambda: kept[0] + 1, lambda: np.sin(kept[0]), lambda: kept[0] > 1):
        with pytest.raises(sa.errors.EscapedValueError, match=rf"{HERE}:\d+.*after its derivative level closed"):
            use()


def test_a_value_kept_from_an_inner_level_while_the_outer_one_is_open():
    kept = []

    def outer(x):
        sa.grad(lambda y: kept.append(y) or y * x)(x)
        return kept[0] * x

    with pytest.raises(sa.errors.EscapedValueError):
        sa.grad(outer)(2.0)


def test_a_value_returned_from_a_level_that_failed_does_not_disturb_the_next():
    def broken(x):
        raise RuntimeError("in the user's code")

    with pytest.raises(RuntimeError, match="in the user's code"):
        sa.grad(broken)(1.0)
    assert sa.derivative(lambda x: x * sa.derivative(lambda y: x + y)(1.0))(1.0) == 1.0


def test_an_undefined_sympy_function_is_refused_by_name():
    f, t = sp.Function("f"), sp.Symbol("t")
    with pytest.raises(sa.errors.ArgumentError, match=r"f\(t\) in the expression.*none of the arguments"):
        sa.from_sympy([t], f(t) ** 2)
    trace = sa.trace(lambda s: f(s) ** 2, 1.0)
    with pytest.raises(sa.errors.LoweringError, match="head f"):
        compile_trace(trace)
    with pytest.raises(sa.errors.RuleError, match=r"f has no derivative.*undefined function"):
        linearize(Builder(trace.graph), trace.outputs.flat, trace.inputs.flat)
    assert sa.derivative(lambda x: f(t) * x**2)(sp.Symbol("x")) == 2 * f(t) * sp.Symbol("x")


def test_a_free_symbol_in_a_compiled_function_is_named():
    with pytest.raises(sa.errors.ArgumentError, match=r"free symbol a.*arguments \(x\)"):
        sa.compile(lambda x: x * sp.Symbol("a"), 1.0)


@pytest.mark.parametrize("tangents", [(np.ones(3),), (1.0,), (np.ones(2), np.ones(2)), np.ones(2)], ids=repr)
def test_tangents_that_do_not_fit(tangents):
    with pytest.raises(sa.errors.ArgumentError, match="tangents"):
        sa.jvp(lambda x: x * x, (X,), tangents)


def test_a_cotangent_that_does_not_fit():
    _, pullback = sa.vjp(lambda x: x * x, X)
    with pytest.raises(sa.errors.ArgumentError, match=r"cotangent of shape \(3,\).*\(2,\)"):
        pullback(np.ones(3))
    with pytest.raises(sa.errors.ArgumentError, match="2 arguments"):
        pullback(X, X)


@pytest.mark.parametrize("order", [-1, 1.5, True])
def test_an_order_that_is_none(order):
    with pytest.raises(sa.errors.ArgumentError, match="order"):
        sa.derivative(np.sin, order)


def test_a_derivative_of_a_vector_argument_points_to_grad():
    with pytest.raises(sa.errors.ArgumentError, match=r"shape \(2,\).*grad, jacobian or jvp"):
        sa.derivative(lambda x: x.sum())(X)


def test_unknown_modes_are_listed():
    with pytest.raises(sa.errors.ArgumentError, match=r"mode='forward'.*'fwd-rev'"):
        sa.hessian(np.sum, mode="forward")
    with pytest.raises(sa.errors.ArgumentError, match="edge"):
        sa.hessian(np.sum, mode="fwd-rev", sparse="lower")
    with pytest.raises(sa.errors.ArgumentError, match="argnums=3"):
        sa.grad(np.sum, argnums=3)(X)


def test_a_kernel_refuses_wrong_shapes_and_names_the_argument():
    kernel = sa.compile(lambda x, y: x * y, X, 1.0)
    with pytest.raises(sa.errors.ArgumentError, match=r"x.*\(3,\).*\(2,\)"):
        kernel(np.ones(3), 1.0)
    with pytest.raises(sa.errors.ArgumentError, match="1 argument"):
        kernel(X)


def test_a_graph_that_grows_without_end_reaches_its_limit(monkeypatch):
    monkeypatch.setattr("symad.graph.graph.Graph.most", 1000)

    def endless(x):
        while True:
            x = np.sin(x)

    with pytest.raises(sa.errors.LimitError, match=r"1000 nodes"):
        sa.grad(endless)(1.0)
