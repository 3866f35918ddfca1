"""cond: follows numbers, merges on symbols, keeps the branch not taken out of every derivative."""

import math
from unittest.mock import patch

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad import cond
from symad.tracing.control import scans
from tests.support import mixes


def zero(x):
    return 0.0 * x


# name: (function of one scalar, point, derivatives of order 0, 1, 2, ...): NaN or infinity in the branch not taken
TRAPS = {
    "sqrt of a negative number": (lambda x: cond(x > 0, np.sqrt, zero, x), -3.0, (0, 0, 0, 0, 0)),
    "sqrt at its singular point": (lambda x: cond(x > 0, np.sqrt, zero, x), 0.0, (0, 0, 0, 0, 0)),
    "both branches": (lambda x: cond(x < 0, lambda u: np.log(-u), np.log, x), 10.0,
                      (math.log(10), 0.1, -0.01, 0.002, -0.0006)),
    "0 * inf": (lambda x: cond(x < 1, lambda u: 2 * u, lambda u: 0 * np.exp(1000 * u), x), 0.9, (1.8, 2, 0, 0, 0)),
    "nested": (lambda x: cond(x > 0, lambda u: cond(u > 1, lambda v: np.sqrt(v - 1), zero, u), lambda u: u**2, x),
               0.5, (0, 0, 0, 0, 0)),
    "nested, outer not taken": (
        lambda x: cond(x > 0, lambda u: cond(u > 1, lambda v: np.sqrt(v - 1), np.log, u), lambda u: u**3, x),
        -2.0, (-8, 12, -12, 6, 0)),
    "slope outside": (lambda x: np.sqrt(cond(x > 1, lambda u: u - 1, lambda u: 0.0, x)), 0.5, (0, 0, 0, 0, 0)),
    "in a row": (lambda x: cond(x > 0, np.sqrt, zero, x) + cond(x > 1, np.sqrt, zero, x), 0.0, (0, 0, 0, 0, 0)),
    "a derivative inside": (lambda x: cond(x > 0, sa.derivative(np.log), sa.grad(lambda u: u**3), x), -2.0,
                            (12, -12, 6, 0, 0)),
    "captured": (lambda x: cond(x > 0, lambda: np.sqrt(x), lambda: x**2), -1.0, (1, -2, 2, 0, 0)),
}  # fmt: skip


@pytest.mark.parametrize("order", range(5))
@pytest.mark.parametrize("name", TRAPS)
@pytest.mark.thinned
def test_the_branch_not_taken_contributes_nothing(name, order):
    function, point, expected = TRAPS[name]
    for route, value in mixes.every_value(function, point, order, compiled=order < 4).items():
        assert value == pytest.approx(expected[order], rel=1e-13, abs=1e-300), route


def test_both_branches_are_in_the_kernel():
    f = lambda x: cond(x[0] > x[1], lambda u: u[0] ** 2 * u[1], lambda u: np.exp(u[1]) * u[0], x)  # noqa: E731
    for g in (f, sa.grad(f), sa.jacobian(sa.grad(f)), sa.hessian(f), sa.hessian(f, mode="fwd-fwd")):
        kernel = sa.compile(g, np.zeros(2))
        for point in ([2.0, 1.0], [1.0, 2.0], [1.0, 1.0]):
            assert kernel(np.array(point)) == pytest.approx(g(np.array(point)), rel=1e-14)


def test_on_numbers_only_the_branch_taken_is_called():
    def fails(x):
        raise AssertionError("not to be called")

    assert cond(True, np.sqrt, fails, 4.0) == 2.0
    assert cond(np.bool_(False), fails, np.sqrt, 4.0) == 2.0
    assert sa.grad(lambda x: cond(x > 1, np.sqrt, fails, x))(4.0) == 0.25
    assert sa.grad(lambda x: cond(sp.Integer(1) > 0, np.sqrt, fails, x))(4.0) == 0.25


def test_containers_are_merged_leaf_by_leaf():
    def f(p):
        return cond(
            p["a"] > 0,
            lambda q: {"v": q["b"] * 2, "w": (q["a"], True)},
            lambda q: {"v": q["b"] ** 2, "w": (-q["a"], False)},
            p,
        )

    kernel = sa.compile(f, {"a": 1.0, "b": np.zeros(2)})
    for a in (1.5, -1.5):
        found, expected = (g({"a": a, "b": np.array([3.0, 4.0])}) for g in (kernel, f))
        assert np.array_equal(found["v"], expected["v"])
        assert found["w"] == expected["w"]


def test_symbols_give_piecewise_expressions():
    x = sp.Symbol("x", real=True)
    assert cond(x > 0, sp.sin, lambda u: u**2, x) == sp.Piecewise((sp.sin(x), x > 0), (x**2, True))
    slope = sa.grad(lambda u: cond(u > 0, np.sin, np.square, u))(x)
    assert slope == sp.Piecewise((sp.cos(x), x > 0), (2 * x, True))
    assert isinstance(cond(x > 0, lambda: np.ones(2), lambda: np.zeros(2)), np.ndarray)


def test_conditions_in_a_row_do_not_multiply():
    """Thirty conditions: 2**30 paths for `if`, sixty calls here."""

    def f(x):
        for k in range(30):
            x = cond(x > k, lambda u: 0.5 * u, lambda u: 2.0 * u, x)
        return x

    with patch.object(scans, "_called", side_effect=scans._called) as called:
        kernel = sa.compile(f, 1.0, roll="never")  # else it is traced to look for loops, too
    assert called.call_count == 60
    assert kernel(0.3) == f(0.3)
    with pytest.raises(sa.errors.LimitError):
        sa.compile(lambda x: [x := (0.5 if x > k else 2.0) * x for k in range(30)][-1], 1.0)


def test_a_python_condition_inside_a_branch_is_followed_both_ways():
    f = lambda x: cond(x > 0, lambda u: u**2 if u > 1 else u, lambda u: -u, x)  # noqa: E731
    kernel = sa.compile(sa.grad(f), 1.0)
    assert [kernel(x) for x in (2.0, 0.5, -1.0)] == [4.0, 1.0, -1.0]


def test_results_of_different_form_are_refused_with_both_named():
    def pair(x):
        return x, x

    with pytest.raises(sa.errors.ArgumentError, match=r"\(\*, \*\).*\[\(\), \(\)\] and.*\*.*pair and negative"):
        sa.compile(lambda x: cond(x > 0, pair, np.negative, x), 1.0)
    with pytest.raises(sa.errors.ArgumentError, match=r"\[\(2,\)\] and .*\[\(3,\)\]"):
        sa.compile(lambda x: cond(x > 0, lambda u: u * np.ones(2), lambda u: u * np.ones(3), x), 1.0)
    with pytest.raises(sa.errors.ArgumentError, match=r"returned None"):
        sa.compile(lambda x: cond(x > 0, lambda u: None, np.negative, x), 1.0)


def test_a_predicate_that_is_an_array_is_refused():
    for f in (lambda x: cond(x > 0, np.sin, np.cos, x), lambda x: cond(np.array([True]), np.sin, np.cos, x)):
        with pytest.raises(sa.errors.ArgumentError, match=r"predicate of shape.*np\.where"):
            sa.grad(lambda x, f=f: f(x).sum())(np.ones(2))


def test_a_branch_that_changes_something_is_refused_on_symbols():
    def f(x):
        y, kept = 2 * x, []

        def store(s):
            y[0] = s
            return s

        def keep(s):
            kept.append(s)
            return s

        first = sa.cond(x[1] > 0, store, lambda s: 2 * s, x[2]) if len(x) == 3 else sa.cond(x[1] > 0, keep, keep, x[2])
        return first + np.sum(y) + len(kept)

    assert f(np.array([1.0, -1.0, 3.0])) == 12.0
    assert sa.grad(f)(np.array([1.0, -1.0, 3.0])).tolist() == [2.0, 2.0, 4.0]
    for size, what in ((3, "changes an array"), (4, "changes a list")):
        with pytest.raises(sa.errors.ArgumentError, match=what):
            sa.compile(f, np.ones(size))


@pytest.mark.filterwarnings("ignore::symad.errors.FrozenValueWarning")
def test_a_branch_that_uses_what_cannot_be_compared_warns_on_symbols():
    numbers = iter([2.0, 3.0, 4.0] * 9)

    def f(x):
        return cond(x > 0, lambda u: u * next(numbers), np.sin, x)

    with pytest.warns(sa.errors.UnknownStateWarning, match=r"a branch of cond \(<lambda>\) uses an iterator"):
        sa.compile(f, 1.0)
