"""Taylor coefficients: every head, known series, properties of series, kinks, nesting, directional derivatives."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
from scipy import special

import symad as sa
from codegen.evaluation.interpret import evaluate
from symad.derivatives.taylor import derivatives_along, taylor_coefficients
from symad.errors import ArgumentError, RuleError
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from tests.support import mixes
from tests.support.cases import CASES, HEAD_POINTS, REFUSED
from tests.symad.derivatives.test_known_answers import FAMILIES, HIGH, six_sines, tower
from tests.symad.derivatives.test_nan_policy import SCALAR

HEADS = sorted(HEAD_POINTS, key=lambda head: head.__name__)

# name: (function, coefficients at 0), from KNOWN_ANSWERS B
SERIES = {
    "exp(sin x)": (lambda x: np.exp(np.sin(x)), "1 1 1/2 0 -1/8 -1/15 -1/240 1/90"),
    "sec": (lambda x: 1 / np.cos(x), "1 0 1/2 0 5/24 0 61/720"),
    "logistic": (special.expit, "1/2 1/4 0 -1/48 0 1/480 0 -17/80640"),
    "logistic as written": (lambda x: 1 / (1 + np.exp(-x)), "1/2 1/4 0 -1/48 0 1/480 0 -17/80640"),
    "tan": (np.tan, "0 1 0 1/3 0 2/15 0 17/315"),
    "softplus": (lambda x: np.log(1 + np.exp(x)) - math.log(2), "0 1/2 1/8 0 -1/192 0 1/2880"),
    "geometric": (lambda x: 1 / (1 - x), "1 1 1 1 1 1 1"),
    "log1p": (np.log1p, "0 1 -1/2 1/3 -1/4 1/5"),
    "asin": (np.arcsin, "0 1 0 1/6 0 3/40 0 5/112"),
    "sqrt(1 + x)": (lambda x: np.sqrt(1 + x), "1 1/2 -1/8 1/16 -5/128 7/256"),
    "(1 + x)**-2.5": (lambda x: (1 + x) ** -2.5, "1 -5/2 35/8 -105/16 1155/128"),
    "(1 + x)**7": (lambda x: (1 + x) ** 7, "1 7 21 35 35 21 7 1 0 0"),
    "Bell": (lambda x: np.exp(np.exp(x) - 1), "1 1 1 5/6 15/24 52/120 203/720 877/5040"),
}  # fmt: skip


def coefficients(f, x, order):
    return sa.taylor(f, (x,), (1.0,), order)


@pytest.mark.parametrize("name", SERIES)
def test_known_series(name):
    f, written = SERIES[name]
    wanted = [float(Fraction(number)) for number in written.split()]
    found = coefficients(f, 0.0, len(wanted) - 1)
    assert found == pytest.approx(wanted, rel=1e-14, abs=1e-16)
    kernel = sa.compile(lambda x: coefficients(f, x, len(wanted) - 1), 0.0)
    assert kernel(0.0) == pytest.approx(wanted, rel=1e-14, abs=1e-16)


@pytest.mark.parametrize("head", HEADS, ids=lambda head: head.__name__)
@pytest.mark.thinned
def test_every_head_against_nested_forward_mode_at_60_digits(head):
    """Sixty digits tell a wrong recurrence from a rounding error; the partial derivatives have tests of their own."""
    refused, order = REFUSED.get(head, ()), 4
    for point in HEAD_POINTS[head]:
        graph = Graph()
        build = Builder(graph)
        values = [graph.leaf(sp.Symbol(f"u{k}", real=True)) for k in range(len(point))]
        operands = [graph.number(Fraction(v)) if k in refused else graph.alias(values[k]) for k, v in enumerate(point)]
        active = [operand for k, operand in enumerate(operands) if k not in refused]
        seeds = [build.number(Fraction(2 + 3 * k, 7)) for k in range(len(active))]
        node = graph.node(head, *operands)
        found = taylor_coefficients(build, [node], active, [seeds], order)
        at = {leaf: mpmath.mpf(v) for leaf, v in zip(values, point, strict=True)}
        for k in range(1, order + 1):
            wanted = derivatives_along(build, [node], active, seeds, k, "nested")
            pair = [build.zero if (entry := entries[0]) is None else entry for entries in (found[k], wanted)]
            left, right = evaluate(graph, pair, dict(at), arithmetic="reference", digits=60)
            with mpmath.workdps(60):
                gap, limit = abs(left * math.factorial(k) - right), mpmath.mpf(10) ** -35 * max(1, abs(right))
            assert gap <= limit, (point, k)


@pytest.mark.parametrize(
    ("f", "exact", "point"),
    [
        (np.exp, mpmath.exp, 0.7), (np.log, mpmath.log, 1.7), (np.sin, mpmath.sin, 0.7), (np.tanh, mpmath.tanh, 0.7),
        (np.arctan, mpmath.atan, 0.7), (np.arccosh, mpmath.acosh, 1.7), (np.cbrt, mpmath.cbrt, 1.7),
        (special.erf, mpmath.erf, 0.7), (special.gamma, mpmath.gamma, 1.7), (special.j0, mpmath.j0, 1.7),
        (lambda x: x**2.5, lambda u: u ** mpmath.mpf(2.5), 1.7), (lambda x: x**x, lambda u: u**u, 1.7),
        (lambda x: np.sqrt(x) ** 3, lambda u: mpmath.sqrt(u) ** 3, 1.7), (lambda x: 3**x, lambda u: 3**u, 0.7),
        (lambda x: np.abs(np.sin(x)) ** 3, lambda u: abs(mpmath.sin(u)) ** 3, -0.7),
    ],
)  # fmt: skip
def test_against_mpmath_at_50_digits(f, exact, point):
    with mpmath.workdps(50):
        wanted = [float(a) for a in mpmath.taylor(exact, mpmath.mpf(point), 8)]
    assert coefficients(f, point, 8) == pytest.approx(wanted, rel=1e-12)
    assert sa.compile(lambda x: coefficients(f, x, 8), 1.0)(point) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.thinned
def test_directional_derivatives_of_cases_by_both_ways_and_nested_transforms(case):
    point, direction = np.array(case.point), np.linspace(-1.0, 0.7, len(case.point))
    for order in range(5):
        wanted = sa.derivative(lambda t: case.function(point + t * direction), order)(0.0)
        for mode in ("taylor", "nested", "auto"):
            found = sa.partials(case.function, order, along=direction, mode=mode)(point)
            assert found == pytest.approx(wanted, rel=1e-11, abs=1e-9), (order, mode)
        kernel = sa.compile(lambda x, k=order: sa.partials(case.function, k, along=direction)(x), point)
        assert kernel(point) == pytest.approx(wanted, rel=1e-11, abs=1e-9), order


def test_cauchy_product():
    f, g = (lambda x: np.exp(np.sin(x))), (lambda x: np.log(2 + x * x))
    a, b = coefficients(f, 0.3, 12), coefficients(g, 0.3, 12)
    assert coefficients(lambda x: f(x) * g(x), 0.3, 12) == pytest.approx(np.convolve(a, b)[:13], rel=1e-13, abs=1e-15)


def test_exp_of_log_is_the_identity():
    found = coefficients(lambda x: np.exp(np.log(x)), 1.3, 20)
    assert found == pytest.approx([1.3, 1.0, *[0.0] * 19], abs=1e-13)


def test_the_solution_of_a_differential_equation_order_by_order():
    """x' = x**2, x(0) = 1: x(t) = 1/(1 - t), each coefficient from those before it, by a curve that is not straight."""
    known = [1.0]
    for k in range(20):
        path = [*known[1:], 0.0]
        slope = sa.taylor(lambda x: x * x, (known[0],), (path[0],), k, curve=[(a,) for a in path[1:]])
        known.append(slope[k] / (k + 1))
    assert known == [1.0] * 21


def test_a_curve_is_the_composition_with_its_polynomial():
    curved = sa.taylor(lambda x, y: np.exp(x) * y, (0.5, 2.0), (1.0, -1.0), 6, curve=[(0.3, 0.0), (0.0, 0.7)])
    straight = coefficients(lambda t: np.exp(0.5 + t + 0.3 * t**2) * (2.0 - t + 0.7 * t**3), 0.0, 6)
    assert curved == pytest.approx(straight, rel=1e-14)


def test_order_171_does_not_overflow():
    assert math.isinf(float(mpmath.factorial(171)))
    found = coefficients(lambda x: 1 / (1 - x), 0.0, 171)
    assert found == (1.0,) * 172
    assert coefficients(np.exp, 0.0, 171)[170] == pytest.approx(float(1 / mpmath.factorial(170)), rel=1e-12)


@pytest.mark.parametrize("name", SCALAR)
@pytest.mark.thinned
def test_kinks_and_branches_follow_the_conventions_of_nested_modes(name):
    function, point, expected = SCALAR[name]
    with np.errstate(all="ignore"):
        found = coefficients(function, point, 4)
        compiled = sa.compile(lambda x: coefficients(function, x, 4), 1.0)(point)
    wanted = [value / math.factorial(k) for k, value in enumerate(expected)]
    assert found == pytest.approx(wanted, rel=1e-13, abs=1e-300)
    assert compiled == pytest.approx(wanted, rel=1e-13, abs=1e-300)


GUARDED = {
    "times": lambda w, v: w * v,
    "squared": lambda w, v: w**2 + w * w * v,
    "cubed": lambda w, v: w**3 * v,
    "exp": lambda w, v: np.exp(w) * v,
    "reciprocal": lambda w, v: v / (1 + w),
    "power": lambda w, v: (1 + w) ** 2.5 * (2 + w) ** -1.5,
    "root": lambda w, v: np.sqrt(4 + w),
    "two guards": lambda w, v: np.where(v > 0, np.cos(w) * v, w),
}


@pytest.mark.parametrize("name", GUARDED)
@pytest.mark.parametrize("first", ["guarded", "plain"])
def test_a_branch_not_taken_stays_out_of_every_product(name, first):
    """w is 0 with an infinite slope in the branch that is not taken, so that f is as if w were 0."""

    def f(x):
        if first == "guarded":
            w = np.where(x > 0, np.sqrt(x), 0.0)
            return GUARDED[name](w, 1 + x)
        v = 1 + x
        return GUARDED[name](np.where(x > 0, np.sqrt(x), 0.0), v)

    wanted = coefficients(lambda x: GUARDED[name](0.0, 1 + x) + 0 * x, 0.0, 4)
    assert np.all(np.isfinite(wanted))
    assert coefficients(f, 0.0, 4) == pytest.approx(wanted, rel=1e-14)
    with np.errstate(all="ignore"):
        assert sa.compile(lambda x: coefficients(f, x, 4), 0.0)(0.0) == pytest.approx(wanted, rel=1e-14)


def test_a_power_at_its_branch_point_is_right_as_far_as_it_is_smooth():
    found = coefficients(lambda x: x**2.5, 0.0, 4)
    assert found[:3] == (0.0, 0.0, 0.0)
    assert found[3] == math.inf


@pytest.mark.parametrize("exponent", [2, 3, 7, 64, 1023, 3000, 3000.0, -2, -7])
def test_whole_powers(exponent):
    wanted = [float(sp.binomial(int(exponent), k)) for k in range(6)]
    assert coefficients(lambda x: (1 + x) ** exponent, 0.0, 5) == pytest.approx(wanted, rel=1e-12)
    assert coefficients(lambda x: x**1e300, 1.0, 1) == (1.0, 1e300)


@pytest.mark.parametrize("outer", ["F", "R", "FR", "RF"])
def test_taylor_inside_other_modes(outer):
    """The third coefficient of sin(x**2), differentiated again by every mode."""
    symbol = sp.Symbol("x")
    third = sp.sin(symbol**2).diff(symbol, 3) / 6
    wanted = float(third.diff(symbol, len(outer)).subs(symbol, sp.Float(0.7, 50)))
    found = mixes.nested(outer, lambda x: coefficients(lambda y: np.sin(y * y), x, 3)[3])
    assert found(0.7) == pytest.approx(wanted, rel=1e-13)
    assert sa.compile(found, 0.7)(0.7) == pytest.approx(wanted, rel=1e-13)


def test_other_modes_inside_taylor():
    gradient = sa.taylor(lambda t: sa.grad(lambda x: np.sin(x * x))(t), (0.7,), (1.0,), 3)
    direct = coefficients(lambda x: np.sin(x * x), 0.7, 4)
    assert gradient == pytest.approx([k * direct[k] for k in range(1, 5)], rel=1e-13)
    twice = sa.taylor(lambda s: coefficients(np.exp, s, 2)[2], (0.3,), (1.0,), 2)
    assert twice == pytest.approx([math.exp(0.3) * c for c in (0.5, 0.5, 0.25)], rel=1e-14)


def test_a_captured_variable_is_constant():
    """d/dx of x times the slope of y -> x y at x: the inner level differentiates in y alone."""
    found = sa.derivative(lambda x: x * coefficients(lambda y: x * y, x, 1)[1])(3.0)
    assert found == 6.0


def test_containers_symbols_and_structures():
    found = sa.taylor(lambda p: {"y": p["a"] * p["b"]}, ({"a": 2.0, "b": np.array([3.0, 5.0])},),
                   ({"a": 1.0, "b": np.array([0.0, 1.0])},), 2)  # fmt: skip
    assert [part["y"].tolist() for part in found] == [[6.0, 10.0], [3.0, 7.0], [0.0, 1.0]]
    x = sp.Symbol("x")
    assert sa.taylor(lambda u: u**3, (x,), (1,), 3) == (x**3, 3 * x**2, 3 * x, 1)


@pytest.mark.parametrize(("function", "point", "values"), [*FAMILIES.values(), *HIGH.values()])
def test_known_derivatives_of_high_order(function, point, values):
    for order, wanted in values.items():
        for mode in ("taylor", "auto"):
            found = sa.partials(function, order, along=1.0, mode=mode)(point)
            assert found == pytest.approx(wanted, rel=1e-11, abs=1e-9), (order, mode)


def test_the_tower_of_16_levels():
    for order in (1, 2, 5):
        wanted = sa.derivative(tower, order)(0.9)
        assert sa.partials(tower, order, along=1.0, mode="taylor")(0.9) == pytest.approx(wanted, rel=1e-12)


def test_custom_rules_and_solutions_of_equations():
    """y**3 + y = x at x = 2: y = 1, y' = 1/4, y'' = -6 y y'**2 / (3 y**2 + 1) = -3/32."""

    @sa.custom_derivative(derivative=lambda primals, tangents: np.cos(primals[0]) * tangents[0])
    def sine(x):
        return np.sin(x)

    assert coefficients(lambda x: np.exp(sine(x)), 0.3, 6) == pytest.approx(
        coefficients(lambda x: np.exp(np.sin(x)), 0.3, 6), rel=1e-14
    )

    def solution(x):
        return sa.root(lambda y, x: y**3 + y - x, 0.9, x)

    assert coefficients(solution, 2.0, 2) == pytest.approx([1, 1 / 4, -3 / 64], rel=1e-13)
    assert sa.partials(solution, 3)(2.0) == pytest.approx(6 * coefficients(solution, 2.0, 3)[3], rel=1e-11)


def test_six_nested_sines():
    assert 3628800 * coefficients(six_sines, 1.0, 10)[10] == pytest.approx(11560.616267596966, rel=1e-13)
    with sa.choices() as made:
        found = sa.partials(six_sines, 10, along=1.0)(1.0)
    assert found == pytest.approx(11560.616267596966, rel=1e-12)
    assert made[0].chosen == "taylor"
    assert made[0].operations["taylor"] < made[0].operations["nested"]
    assert sa.partials(lambda x: six_sines(x, 7), 10, along=1.0)(1.0) == pytest.approx(55578.02833128, rel=1e-12)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.thinned
def test_vhv_is_the_quadratic_form(case):
    point, direction = np.array(case.point), np.cos(np.arange(len(case.point)))
    wanted = direction @ sa.hessian(case.function)(point) @ direction
    found = sa.compile(lambda x, v: sa.partials(case.function, 2, along=v)(x), point, direction)
    for value in (sa.partials(case.function, 2, along=direction)(point), found(point, direction)):
        assert value == pytest.approx(wanted, rel=1e-12, abs=1e-11)


@pytest.mark.parametrize("name", ["rosenbrock", "lennard_jones", "log_sum_exp", "network", "arwhead"])
def test_cost_in_operations(name):
    """v^T H v within 5 evaluations of f, the k-th directional derivative within (k + 1)**2; no tensor is formed."""
    (case,) = [case for case in CASES if case.name == name]
    point = np.array(case.point)
    once = sa.trace(case.function, point).count_ops()
    assert sa.trace(lambda x, v: sa.partials(case.function, 2, along=v)(x), point, point).count_ops() <= 5 * once
    for order in range(1, 8):
        directional = sa.trace(lambda x, v, k=order: sa.partials(case.function, k, along=v)(x), point, point)
        assert directional.count_ops() <= (order + 1) ** 2 * once, order


def test_what_is_refused():
    with pytest.raises(RuleError, match="mystery"):
        sa.taylor(lambda x: x * sp.Function("mystery")(x), (sp.Symbol("x"),), (1,), 2)
    with pytest.raises(ArgumentError, match="order=-1"):
        sa.taylor(np.sin, (1.0,), (1.0,), -1)
    with pytest.raises(ArgumentError, match="use taylor"):
        sa.partials(np.sin, 171, along=1.0)(1.0)
    with pytest.raises(ArgumentError, match="curve without tangents"):
        sa.taylor(np.sin, (1.0,), None, 2, curve=[(1.0,)])
    with pytest.raises(ArgumentError, match="mode='reverse' with tangents"):
        sa.taylor(np.sin, (1.0,), (1.0,), 2, mode="reverse")
    with pytest.raises(ArgumentError, match=r"curve\[0\] of shape"):
        sa.taylor(np.sin, (1.0,), (1.0,), 2, curve=[(np.ones(2),)])
