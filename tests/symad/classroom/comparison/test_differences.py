"""Differences: stencils, orders of convergence, the standard steps, the V curve, and the sizes of formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.classroom.comparison.compare import STEPS, step_errors
from symad.classroom.comparison.comparison_problem import sizes, sizes_of_expressions, whole
from symad.classroom.comparison.differences import derivatives, evaluations, extrapolated, standard_step, stencil
from symad.classroom.comparison.identity import Agreement, contracted, degrees, proved, right_digits

X, Y = sp.symbols("x y", real=True)


def f(x):
    return np.exp(x[0]) * np.sin(x[1])


POINT = np.array([0.3, 0.7])
EXACT = {
    order: np.array([
        float(sp.diff(sp.exp(X) * sp.sin(Y), *[(X, Y)[k] for k in place]).subs({X: 0.3, Y: 0.7}))
        for place in np.ndindex(*(2,) * order)
    ])
    for order in (1, 2, 3)
}  # fmt: skip


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize(("kind", "power"), [("forward", 1), ("backward", 1), ("central", 2)])
def test_order_of_convergence(order, kind, power):
    errors = [np.abs(derivatives(f, POINT, order, kind, np.full(2, h)) - EXACT[order]).max() for h in (2**-5, 2**-6)]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(power, abs=0.1)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_extrapolation_gains_digits(order):
    central = derivatives(f, POINT, order, "central", standard_step("central", order, POINT))
    error = np.abs(extrapolated(f, POINT, order) - EXACT[order]).max()
    assert error < np.abs(central - EXACT[order]).max() / 30
    assert error < (1e-12, 1e-10, 1e-8)[order - 1]


def test_extrapolation_leaves_out_points_without_a_number():
    with np.errstate(invalid="ignore"):
        assert extrapolated(lambda x: np.sqrt(x[0]), np.array([0.01]), 1)[0] == pytest.approx(5.0, rel=1e-4)


@pytest.mark.parametrize("kind", ["forward", "central"])
@pytest.mark.parametrize("times", [(1,), (4,), (2, 1), (1, 1, 1)])
def test_stencils_are_exact_on_the_lowest_power(kind, times):
    """The difference of x1**m1 x2**m2 ... with steps 1 is m1! m2! ..., and of anything lower 0."""
    half = 2 if kind == "central" else 1
    found = stencil(times, kind)
    power = sum(c * math.prod((o / half) ** m for o, m in zip(place, times, strict=True)) for place, c in found.items())
    assert power == math.prod(map(math.factorial, times))
    assert sum(found.values()) == 0
    assert evaluations(1, 4, kind) == 5


def test_v_curve_has_its_bottom_near_the_step_of_the_rule():
    found = step_errors(lambda x: np.exp(x) * np.sin(x), 0.7)
    for name in ("forward", "central"):
        bottom = STEPS[int(np.argmin(found.errors[name]))]
        assert found.standard[name] / 100 < bottom < 100 * found.standard[name]
        assert found.errors[name][0] > 1e3 * min(found.errors[name]) < found.errors[name][-1]
    assert max(found.errors["complex step"][12:]) < 1e-15
    assert "forward" in found.text(120)
    assert "<svg" in found.html()


def test_v_curve_of_a_hessian_and_without_a_complex_step():
    assert sorted(step_errors(f, POINT, 2).errors) == ["central", "forward"]
    assert sorted(step_errors(lambda x: abs(x), 1.0).errors) == ["central", "forward"]
    with pytest.raises(sa.errors.ArgumentError, match="kink"):
        step_errors(lambda x: abs(x), 0.0)
    with pytest.raises(sa.errors.ArgumentError, match="all derivatives of this order are 0"):
        step_errors(lambda x: x, 1.0, 2)


def test_sizes_agree_with_trees_that_sympy_holds():
    x = sp.Symbol("x", real=True)
    binary = sp.Mul(sp.Add(x, 1, evaluate=False), x, evaluate=False)
    assert sizes_of_expressions([binary]).tree == sum(1 for _ in sp.preorder_traversal(binary))


def test_sizes_of_a_traced_function():
    found = sa.trace(lambda x: np.sin(x) * np.sin(x) + np.sin(x), 1.0)
    size = sizes(found.graph, found.outputs.flat)
    assert (size.graph, size.tree, size.operations, size.tree_operations) == (4, 8, 3, 5)


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (999_999_999, "999999999"), (12 * 10**500, "1.2e+501")])
def test_whole_numbers_of_any_size(number, text):
    assert whole(number) == text


def test_bound_of_luck():
    assert Agreement(3, 3, 2**20).probability == pytest.approx(2.0**-60)
    assert Agreement(3, 3, None).probability is None
    assert not Agreement(2, 3, 4).passed
    assert not Agreement(0, 0, 4).passed
    assert "Schwartz" in str(Agreement(4, 4, 5))
    assert "no bound" in str(Agreement(4, 4, None))


@pytest.mark.parametrize(
    ("g", "bounds"),
    [
        (lambda x: x**3 + x, (3, 0)),
        (lambda x: (x + 1) ** 4 / (x**2 - 2), (4, 2)),
        (lambda x: 1 / x + 1 / (x + 1), (1, 2)),
        (lambda x: x**-2, (0, 2)),
        (lambda x: np.sin(x), None),
        (lambda x: x**0.5, None),
    ],
)
def test_degrees(g, bounds):
    found = sa.trace(g, 2.0)
    degree = degrees(found.graph, found.outputs.flat, found.inputs.flat)
    if bounds is None:
        assert degree is None
    else:
        x = sp.Symbol("x")
        above, below = sp.fraction(sp.together(g(x)))
        assert degree == bounds == tuple(sp.degree(part, x) if part.has(x) else 0 for part in (above, below))


def test_proofs():
    x = sp.Symbol("x", real=True)
    traced = sa.trace(lambda x: np.cos(x) ** 2 - np.sin(x) ** 2, 1.0)
    assert proved(traced, [sp.cos(2 * x)], [x], 10.0)
    assert not proved(traced, [sp.cos(2 * x) + x / 10**12], [x], 10.0)
    floats = sa.trace(lambda x: 0.1 * x, 1.0)
    assert proved(floats, [sp.Rational(0.1) * x], [x], 10.0)
    assert not proved(floats, [x / 10], [x], 10.0), "the float 0.1 is not one tenth"


def test_contraction_and_digits():
    tensor = np.arange(8.0).reshape(2, 2, 2)
    u, v, w = np.array([1.0, 2.0]), np.array([0.5, -1.0]), np.array([3.0, 1.0])
    assert contracted(tensor.ravel(), [u, v, w]) == pytest.approx(np.einsum("ijk,i,j,k", tensor, u, v, w))
    assert right_digits(float("1.0"), 1) == 16.0
    assert right_digits(-1.0, 1) == 0.0
