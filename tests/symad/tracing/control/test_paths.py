"""Symbolic conditions: every path is followed, and the kernel is the Python function."""

import math
import random
import re
from functools import partial
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.compiling.native import compile_trace
from symad.errors import ArgumentError, LimitError, TraceError
from symad.graph.graph import Graph
from symad.tracing.control.implication import Knowledge
from symad.tracing.values import known_numbers

GENERATOR = np.random.default_rng(7)


def nested(x):
    if x[0] > 0:
        if x[1] > x[0]:
            return x[0] * x[1]
        elif x[1] > -1:
            return x[0] ** 3
        else:
            return np.sin(x[1]) + x[0]
    elif x[0] > -1:
        return -x[0] * x[1] ** 2
    return (x[0] - x[1]) ** 2


def by_boolean_words(x):
    a, b = x
    if (0 < a < 1 and not b > 2) or b == 0:
        return a * b + 1
    return abs(a) ** 1.5 if a and b else max(a, b, 0.5) + min(x)


def by_a_derivative(x):
    slope = sa.grad(lambda y: y**3 - y)(x[0])
    return x[0] ** 2 * x[1] if slope > 0 else -x[0] + sa.derivative(np.sin)(x[1])


def in_a_loop(x):
    total = 0.0
    for value in x:
        if value < -0.5:
            continue
        total += value**2 if value < 0.5 else value
        if total > 2:
            break
    return total


def with_sorted_values(x):
    low, high = sorted(x)
    return low * 2 + high**3


FUNCTIONS = [nested, by_boolean_words, by_a_derivative, in_a_loop, with_sorted_values]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_kernel_equals_the_function_on_ten_thousand_points(f):
    kernel = sa.compile(f, np.zeros(2), fma=False)
    points = np.concatenate([GENERATOR.normal(size=(9990, 2)) * 1.5, [[a, b] for a in (0, 1, -1) for b in (0, 1, -1)]])
    plain = [f(point) for point in points[-100:]] if f is by_a_derivative else [f(point) for point in points]
    points = points[-len(plain) :]
    assert [kernel(point) for point in points] == pytest.approx(plain, rel=4e-16)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_derivatives_are_those_of_the_branch_that_python_takes(f):
    """Compiled on symbols against traced at the point, where Python itself decides; at the switches too."""
    gradient, hessian = sa.compile(sa.grad(f), np.zeros(2)), sa.compile(sa.hessian(f), np.zeros(2))
    sparse = sa.compile(sa.hessian(f, sparse=True), np.zeros(2))
    switches = [[0.0, 1.0], [0.5, 0.5], [-1.0, 0.3], [1.0, -1.0], [0.5, -0.5], [0.7, 2.0], [0.4, 0.0]]
    for point in np.concatenate([GENERATOR.normal(size=(40, 2)), switches]):
        assert gradient(point) == pytest.approx(sa.grad(f)(point), rel=1e-14, abs=1e-14)
        expected = sa.hessian(f, mode="fwd-rev")(point)
        assert hessian(point) == pytest.approx(expected, rel=1e-13, abs=1e-13)
        dense = np.zeros((2, 2))
        dense[tuple(sparse.sparsity)] = sparse(point)
        assert dense == pytest.approx(expected, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("order", range(5))
def test_the_branch_not_taken_never_contributes(order):
    """x log x at 0, 1/x, sqrt: infinite or NaN on the other branch, at orders 0 to 4, in both modes."""

    def f(x):
        return x * math.log(x) + math.sqrt(x) + 1 / x if x > 0 else x**2

    for mode in (sa.derivative, sa.grad):
        nested = f
        for _ in range(order):
            nested = mode(nested)
        kernel = sa.compile(nested, 1.0)
        expected = [0.0, 0.0, 2.0, 0.0, 0.0][order]
        assert kernel(0.0) == expected
        assert kernel(2.0) == pytest.approx(nested(2.0), rel=1e-14)
        assert kernel(-1.0) == nested(-1.0)


def runs_of(f, *example):
    runs = []

    def counted(*args):
        runs.append(1)
        return f(*args)

    return sa.trace(counted, *example), len(runs)


def test_each_feasible_path_is_run_once():
    """Conditions that the earlier ones decide are not asked: 5 paths of 2**6 combinations, the fifth for NaN."""

    def f(x):
        kind = 0 if x < 0 else 1 if x < 1 else 2
        again = 0 if x < 0 else 1 if x < 1 else 2
        assert kind == again
        return x**kind if x < 5 else x if x > 4 else 1 / 0

    traced, runs = runs_of(f, 1.0)
    assert runs == 5
    kernel = compile_trace(traced)
    assert [kernel(value) for value in (-1.0, 0.5, 2.0, 5.0)] == [1.0, 0.5, 4.0, 5.0]
    assert math.isnan(kernel(math.nan))


@pytest.mark.parametrize(
    "is_nan",
    [lambda x: x != x, lambda x: not x >= x, lambda x: not (x <= x or x > x), np.isnan, math.isnan],
    ids=["!=", ">=", "<=", "np", "math"],
)
def test_what_only_nan_raises_stops_no_compilation(is_nan):
    """A mistake in what makes the text of an error, say: `chemicals` writes a number of mpmath by `:f` there."""

    def f(x):
        if is_nan(x):
            raise TypeError("unsupported format string")
        return x * x if x == x else 7.0

    kernel = sa.compile(f, 1.0)
    assert kernel(3.0) == 9.0
    assert math.isnan(kernel(math.nan))
    assert kernel(-math.inf) == math.inf


def test_what_is_returned_for_nan_is_returned():
    kernel = sa.compile(lambda x, y: y if x != x else x * y, 1.0, 1.0)
    assert [kernel(math.nan, 2.0), kernel(3.0, 2.0)] == [2.0, 6.0]
    assert sa.compile(lambda x: 1.0 if x < x else 2.0, 1.0)(math.nan) == 2.0


def test_a_function_that_ends_without_a_result_only_for_nan():
    def f(x):
        if x <= 1:
            return x
        elif x > 1:
            return x**2

    kernel = sa.compile(sa.grad(f), 1.0)
    assert [kernel(0.0), kernel(2.0)] == [1.0, 4.0]
    assert math.isnan(sa.compile(f, 1.0)(math.nan))
    with pytest.raises(ArgumentError, match="returned None"):
        sa.compile(lambda x: x if x > 1 else None, 1.0)


def test_conditions_inside_a_level_are_recognised_in_the_next_run():
    """An inner derivative makes new nodes each time; the condition is the same, and is decided once."""

    def f(x):
        first = 1 if sa.grad(np.sin)(x) > 0 else 2
        second = 1 if sa.grad(np.sin)(x) > 0 else 2
        return x * first * second

    traced, runs = runs_of(f, 1.0)
    assert runs == 2
    kernel = compile_trace(traced)
    assert [kernel(0.0), kernel(1.0), kernel(3.0)] == [0.0, 1.0, 12.0]


def test_a_result_that_does_not_depend_on_the_path_has_no_select():
    def f(x):
        side = "left" if x < 0 else "right"
        return {"value": x * 2, "side": 1.0 if side == "left" else 3.0}

    result = sa.trace(f, 1.0).expr()
    assert not result["value"].has(sp.Piecewise)
    assert result["side"].has(sp.Piecewise)


def test_an_integer_beyond_the_floats_is_compared():
    kernel = sa.compile(lambda x: x if x < 10**400 else -x, 1.0)
    assert (kernel(1e308), kernel(-2.0), kernel(math.inf)) == (1e308, -2.0, -math.inf)


def test_nan_is_a_value_that_fails_every_comparison():
    def f(x):
        if x < 0:
            return 1.0
        elif x >= 0:
            return 2.0
        return 3.0

    kernel = sa.compile(f, 1.0)
    assert [kernel(-1.0), kernel(0.0), kernel(math.nan)] == [1.0, 2.0, 3.0]


def test_the_limit_on_paths_can_be_raised():
    def f(x):
        kept = [0.0]
        for value in x:
            if value > 0:
                kept.append(value)
        return sum(kept)

    with pytest.raises(LimitError, match="more than 64 paths"):
        sa.compile(f, np.zeros(7))
    kernel = sa.compile(f, np.zeros(7), max_paths=128)
    assert kernel(np.arange(-3.0, 4.0)) == 6.0
    assert sa.jit(f, max_paths=128)(np.arange(-3.0, 4.0)) == 6.0


def test_where_the_function_raises_the_kernel_returns_nan():
    def f(x):
        if x < 0:
            raise ValueError("negative")
        assert x != 3
        return {"root": math.sqrt(x), "small": x < 1}

    kernel = sa.compile(f, 1.0)
    assert kernel(4.0) == {"root": 2.0, "small": 0.0}
    assert np.isnan(kernel(-1.0)["root"])
    assert np.isnan(kernel(3.0)["small"])


class NoSolutionError(Exception):
    """An error class of the user's own."""


def raising_beside_a_loop(x):
    total = 0.0
    for k in range(200):
        total = total + np.sin(x[k]) ** 2 * x[0]
    if x[0] < 0:
        raise ValueError("negative")
    return total


def raising_in_a_body(x):
    def term(u):
        if u < 0:
            raise ValueError("negative")
        return np.sqrt(u) * u

    return sa.sum_over(term, x)


@pytest.mark.parametrize(
    "transform", [sa.grad, sa.hessian, partial(sa.hessian, sparse="lower")], ids=["grad", "hessian", "lower"]
)
@pytest.mark.parametrize("f", [raising_beside_a_loop, raising_in_a_body], ids=lambda f: f.__name__)
def test_derivatives_are_nan_where_the_function_raises(f, transform):
    """Not the derivative of the constant NaN, which is 0; where a body raises, loops would have that."""
    size = 6 if f is raising_in_a_body else 200
    inside = np.linspace(0.5, 1.0, size)
    kernel = sa.compile(transform(f), inside)
    whole = (
        kernel(-inside).data if isinstance(kernel(-inside), sa.results.SparseMatrix) else np.asarray(kernel(-inside))
    )
    assert np.isnan(whole).any()  # a structural zero stays one
    if transform is sa.grad:
        np.testing.assert_allclose(kernel(inside), sa.grad(f)(inside), rtol=1e-12)


def test_what_is_differentiated_in_the_code_is_nan_where_it_raises():
    kernel = sa.compile(lambda x: np.sum(sa.grad(raising_beside_a_loop)(x) ** 2), np.ones(200))
    assert np.isnan(kernel(-np.ones(200)))
    assert kernel(np.ones(200)) == pytest.approx(np.sum(sa.grad(raising_beside_a_loop)(np.ones(200)) ** 2))


def validated(x):
    if not np.all(np.isfinite(x)):
        raise ValueError("not finite")
    if x[0] < 0:
        raise ValueError("negative")
    return np.sum(np.sin(x[1:]) * x[:-1]) * x[0], np.prod(x[:3])


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("bad", [(7, np.inf), (5000, np.nan), (0, -1.0)])
def test_loops_of_functions_that_look_at_their_arguments(number, bad):
    """What array code begins with: the value and every derivative are NaN where it raises."""
    x = 1.0 + np.cos(np.arange(6000.0))
    kernel = sa.compile(sa.value_and_grad(lambda x: validated(x)[number]), x)
    assert kernel.stats.strategy == "rolled"
    value, gradient = sa.value_and_grad(lambda x: validated(x)[number])(x)
    assert kernel(x)[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(kernel(x)[1], gradient, rtol=1e-12, atol=1e-14)
    wrong = x.copy()
    wrong[bad[0]] = bad[1]
    assert np.isnan(kernel(wrong)[0])
    assert np.isnan(kernel(wrong)[1]).all()


def test_loops_of_hessians_of_functions_that_look_at_their_arguments():
    x = 1.0 + np.cos(np.arange(600.0))
    kernel = sa.compile(sa.hessian(lambda x: validated(x)[0], sparse="lower"), x, roll="always")
    plain = sa.compile(sa.hessian(lambda x: np.sum(np.sin(x[1:]) * x[:-1]) * x[0], sparse="lower"), x)
    np.testing.assert_allclose(kernel.scipy(x).toarray(), plain.scipy(x).toarray(), rtol=1e-12, atol=1e-14)
    assert np.isnan(kernel(-x)).all()


def test_loops_that_were_asked_for_are_refused_with_the_reason():
    with pytest.raises(
        sa.errors.ArgumentError, match="it raises an error on one of its paths: its derivatives are NaN there"
    ):
        sa.compile(sa.grad(raising_in_a_body), np.ones(200), roll="always")


@pytest.mark.parametrize("error", [NoSolutionError("none"), RuntimeError("diverged"), OSError("no file")], ids=repr)
def test_errors_of_every_kind_that_the_function_raises_are_nan(error):
    def f(x):
        if x < 0:
            raise error
        return x * x

    kernel = sa.compile(sa.grad(f), 1.0)
    assert kernel(3.0) == 6.0
    assert np.isnan(kernel(-1.0))


def test_what_numbers_raise_on_a_path_is_nan():
    """Numbers that are not traced, on a path that the inputs choose."""

    def f(x, zero=0):
        return x * x if x > 0 else x + math.log(zero) if x > -1 else x / (1 // zero)

    kernel = sa.compile(sa.grad(f), 1.0)
    assert kernel(3.0) == 6.0
    assert np.isnan([kernel(-0.5), kernel(-2.0)]).all()


def test_other_errors_on_a_path_come_out_with_the_path():
    """A misspelt name on a rare branch must not become NaN."""
    with pytest.raises(AttributeError) as caught:
        sa.compile(lambda x: x if x > 0 else x.nothing, 1.0)
    assert re.search(
        r"on the path where the condition at .*test_paths\.py:\d+ does not hold", caught.value.__notes__[0]
    )


@pytest.mark.parametrize(
    "raises",
    [
        lambda: float("abc"), lambda: int("q"), lambda: np.zeros(2) + np.zeros(3), lambda: np.zeros(3).reshape(2, 2),
        lambda: np.linalg.inv(np.zeros((2, 2))), lambda: [a for a, b, c in np.zeros((2, 2))],
    ],
)  # fmt: skip
def test_an_error_about_plain_values_on_a_path_is_no_value(raises):
    kernel = sa.compile(sa.value_and_grad(lambda x: x * x if x > 0 else raises() * x), 1.0)
    assert kernel(3.0) == (9.0, 6.0)
    assert np.isnan(kernel(-1.0)).all()


def test_a_function_that_raises_on_every_path():
    def f(x):
        if x > 0:
            raise ValueError("positive")
        raise ValueError("not positive")

    with pytest.raises(ArgumentError, match="f raises an error on every path"):
        sa.compile(f, 1.0)


def test_results_of_different_structure_are_refused():
    with pytest.raises(ArgumentError, match=r"returns \* where .* does not hold: it returns \(\*, \*\)"):
        sa.compile(lambda x: (x, x) if x > 0 else x, 1.0)
    with pytest.raises(ArgumentError, match=r"returns shape \(1,\) where .*: it returns shape \(2,\)"):
        sa.compile(lambda x: x if x[0] > 0 else x[:1], np.zeros(2))


def test_a_function_that_changes_between_runs_is_refused():
    state = random.Random(1)

    def f(x):
        shift = state.random()
        return x if x > shift else -x

    with pytest.raises(TraceError, match="f met another condition when it was run again"):
        sa.compile(f, 1.0)


def test_patterns_of_the_paths_are_united():
    def f(x):
        return x[0] ** 2 if x[0] > 0 else x[1] ** 2 + x[0] * x[2]

    kernel = sa.compile(sa.hessian(f, sparse=True), np.zeros(3))
    assert list(zip(*map(list, kernel.sparsity), strict=True)) == [(0, 0), (0, 2), (1, 1), (2, 0)]
    assert kernel(np.array([1.0, 0.0, 0.0])).tolist() == [2.0, 0.0, 0.0, 0.0]
    assert kernel(np.array([-1.0, 0.0, 0.0])).tolist() == [0.0, 1.0, 2.0, 1.0]


def test_a_count_without_bounds_gets_one():
    def f(x):
        return sum(x[0] ** k for k in range(int(x[1])))

    with pytest.warns(
        sa.errors.BoundWarning, match=r"test_paths\.py:\d+: .*for 9 steps.*bound a count by min\(n, 20\)"
    ):
        kernel = sa.compile(sa.grad(f), np.zeros(2), max_paths=9)
    for count in (-2.5, 0.5, 3.0, 4.9):
        assert np.allclose(kernel(np.array([1.5, count])), sa.grad(f)(np.array([1.5, count])))
    assert np.isnan(kernel(np.array([1.5, 30.0]))).all()

    def bounded(x):
        return sum(x[0] ** k for k in range(min(max(int(x[1]), 0), 5)))

    kernel = sa.compile(sa.grad(bounded), np.zeros(2))
    for count in (-3.0, 0.5, 2.5, 4.0, 9.0):
        x = np.array([1.5, count])
        assert np.allclose(kernel(x), sa.grad(bounded)(x))


def test_a_threshold_beyond_the_floats():
    kernel = sa.compile(lambda x: x if x < 10**400 else -x, 1.0)
    assert kernel(3.0) == 3.0
    assert kernel(-math.inf) == -math.inf


OPERATORS = (sp.StrictLessThan, sp.LessThan, sp.StrictGreaterThan, sp.GreaterThan, sp.Equality, sp.Unequality)
COMPARE = {
    sp.StrictLessThan: lambda a, b: a < b, sp.LessThan: lambda a, b: a <= b, sp.StrictGreaterThan: lambda a, b: a > b,
    sp.GreaterThan: lambda a, b: a >= b, sp.Equality: lambda a, b: a == b, sp.Unequality: lambda a, b: a != b,
}  # fmt: skip


def test_what_is_implied_is_true():
    """Random conditions about random points, NaN and equal values among them: an implied truth is the truth."""
    choose = random.Random(5)
    implied = 0
    for _ in range(400):
        graph = Graph()
        values = [choose.choice([-1.0, 0.0, 0.0, 1.0, 2.0, math.nan]) for _ in range(3)]
        nodes = [graph.leaf(sp.Symbol(f"x{k}")) for k in range(3)]
        operands = [*zip(nodes, values, strict=True), *[(graph.number(c), c) for c in (-1.0, 0.0, 1.0)]]
        known = Knowledge(graph)
        conditions = []
        for _ in range(12):
            (left, a), (right, b) = choose.sample(operands, 2)
            if left in graph.atoms and right in graph.atoms and not {left, right} & set(nodes):
                continue
            head = choose.choice(OPERATORS)
            node, truth = graph.node(head, left, right), COMPARE[head](a, b)
            if conditions and choose.random() < 0.4:
                other, other_truth = choose.choice(conditions)
                head = choose.choice([sp.And, sp.Or])
                node = graph.node(head, node, other)
                truth = truth and other_truth if head is sp.And else truth or other_truth
            if choose.random() < 0.2:
                node, truth = graph.node(sp.Not, node), not truth
            found = known.truth(node)
            assert found in (None, truth)
            implied += found is not None
            known.assume(node, truth)
            conditions.append((node, truth))
    assert implied > 500


def test_a_condition_does_not_look_through_the_graph(monkeypatch):
    """Only the text of a refusal names its symbols; finding them took a third of a second in a large graph."""
    calls = []
    found = known_numbers.reachable
    monkeypatch.setattr(known_numbers, "reachable", lambda *args: calls.append(args) or found(*args))

    def f(x):
        for _ in range(5):
            x = x * 1.01 if np.all(x > -1) else x - 0.1
        return np.sum(x * x)

    kernel = sa.compile(sa.grad(f), np.ones(5))
    assert kernel(np.ones(5)) == pytest.approx(sa.grad(f)(np.ones(5)))
    assert not calls


def in_pieces(year):
    """Every number has its branch; only NaN comes to the end, where there is nothing to return."""
    if (year >= 2000) & (year < 2050):
        found = year * 2
    elif (year < -500) | (year >= 2050):
        found = -year
    elif (year >= -500) & (year < 1000):
        found = year**2
    elif (year >= 1000) & (year < 2000):
        found = year + 1
    return found


def test_what_only_nan_comes_to_has_no_value_where_conditions_are_joined():
    kernel = sa.compile(sa.value_and_grad(in_pieces), 1.0)
    for year in (2010.0, 2000.0, 2050.0, -500.0, -501.0, 999.0, 1000.0, 1999.9):
        assert kernel(year) == sa.value_and_grad(in_pieces)(year)
    assert np.isnan(kernel(math.nan)).all()


def test_a_gap_that_numbers_come_to_is_the_functions_mistake():
    def f(x):
        if (x < 0) | (x > 1):
            found = x
        elif (x >= 0) & (x < 1):
            found = 2 * x
        return found

    with pytest.raises(UnboundLocalError, match="found"):
        sa.compile(f, 0.5)


def test_joined_conditions_exclude_each_other():
    def f(x):
        if (x >= 0) & (x < 1):
            return x
        if (x < 0) | (x >= 1):
            return 2 * x if (x < 0) | (x > 0.5) else 3 * x
        return 5.0 * x  # NaN alone

    assert sa.trace(f, 1.0).paths == 3
    assert [sa.compile(f, 1.0)(x) for x in (0.5, 2.0, -1.0)] == [0.5, 4.0, -2.0]


def test_a_difference_of_a_number_and_itself_is_no_path():
    """As statsmodels' homogeneous_subsets asks it: the list would be empty where x - x > 0.5."""

    def f(x):
        values, found = list(x), 0.0
        while values[-1] - values[0] > 0.5:
            values = values[1:]
            found = found + values[0] ** 2
        return found

    kernel = sa.compile(sa.value_and_grad(f), np.array([0.1, 0.4, 2.0]))
    for x in (np.array([0.1, 0.4, 2.0]), np.array([0.1, 0.2, 0.3])):
        value, gradient = kernel(x)
        assert value == f(x)
        assert gradient == pytest.approx(sa.grad(f)(x))


def test_a_recursion_that_ends_on_a_traced_value_is_refused() -> None:
    def halved(a: Any) -> Any:
        return a if abs(a) < 0.1 else halved(a / 2) * 1.1 + 0.1

    def even(a: Any) -> Any:
        return a if a < 1 else odd(a - 1)

    def odd(a: Any) -> Any:
        return -a if a < 1 else even(a - 1)

    for f, refusal in (
        (halved, "halved calls itself 32 times: how deep it goes"),
        (even, "even has more than 16 paths"),
    ):
        assert sa.derivative(f)(1.7) == pytest.approx((f(1.7001) - f(1.6999)) / 2e-4, rel=1e-6)
        with pytest.raises(sa.errors.LimitError, match=refusal):
            sa.compile(f, 1.7, max_paths=16)
    with pytest.raises(sa.errors.LimitError, match="halved calls itself 32 times"):
        sa.compile(sa.grad(halved), 1.7, max_paths=16)


def test_a_recursion_of_known_depth_is_followed() -> None:
    def power(x: Any, n: int) -> Any:
        return 1.0 if n == 0 else x * power(x if x > 0 else -x, n - 1)

    assert sa.compile(lambda x: power(x, 5), 1.5)(-1.5) == power(-1.5, 5)


@pytest.mark.parametrize("count", [-1, 0, None, 1.5, True, "3"])
def test_max_paths_is_a_whole_number(count: Any) -> None:
    with pytest.raises(ArgumentError, match="give a whole number, 1 or more"):
        sa.compile(lambda x: x if x > 0 else -x, 1.0, max_paths=count)


@pytest.mark.parametrize("order", [60, 90])
def test_too_many_nested_derivatives_have_a_named_error(order: int) -> None:
    with pytest.raises(LimitError, match=r"for derivatives of high order in one direction, sa\.taylor"):
        sa.compile(sa.derivative(lambda x: np.sin(x), order), 0.5)


def test_arrays_beyond_max_bytes_are_refused_before_they_are_made() -> None:
    for f in (
        lambda x: np.sum(np.broadcast_to(x, (10**6, 1000))),
        lambda x: np.sum(np.meshgrid(x * np.ones(30_000), x * np.ones(30_000))[0]),
    ):
        with pytest.raises(LimitError, match="max_bytes is 1,000,000"):
            sa.compile(f, 1.0, max_bytes=1e6)
