"""compare at points and functions of all scales, at points that are none, and with rules that are wrong somewhere."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import symad as sa
from symad.classroom.comparison.compare import compare

SCALES = {  # f, point, order, exact derivatives
    "1/x, tiny": (lambda x: 1 / x, 1e-140, 1, [-1e280]),
    "sqrt, tiny": (np.sqrt, 1e-300, 1, [0.5e150]),
    "log, tiny": (np.log, 1e-300, 1, [1e300]),
    "abs beside its kink": (abs, 1e-100, 1, [1.0]),
    "square, huge": (lambda x: x * x, 1e140, 1, [2e140]),
    "cube, huge, 2nd": (lambda x: x**3, 1e50, 2, [6e50]),
    "both": (lambda x: np.log(x[0]) * x[1], np.array([1e-50, 1e20]), 1, [1e70, math.log(1e-50)]),
    "steep": (lambda x: np.sin(1e40 * x), 1.0, 1, [1e40 * math.cos(1e40)]),
    "beside a constant": (lambda x: 1 + 1e-60 * x, 2.5, 1, [1e-60]),
    "cosine, tiny": (np.cos, 1e-60, 1, [-1e-60]),
    "exact zeros": (lambda x: 1 + x[0] ** 3 + np.sin(x[1]) ** 2 + np.cos(x[1]) ** 2, np.array([0.0, 1.0]), 1, [0, 0]),
}  # fmt: skip


@pytest.mark.parametrize("name", SCALES)
def test_points_and_functions_of_all_scales(name):
    """Steps are parts of the smallest number, digits reach to the largest, and smaller steps confirm a result."""
    f, x, order, answer = SCALES[name]
    found = compare(f, x, order, only=["sympy.diff, codegen", "AD"], times=False)
    assert found.reference.refusal == ""
    np.testing.assert_allclose(np.array(found.reference.values, dtype=float), answer, rtol=1e-12)
    assert {row.verdict for row in found.rows} <= {"proved", "tested"}, found.rows


@pytest.mark.parametrize("f", [np.cbrt, lambda x: abs(x) ** 1.5], ids=["cbrt", "3/2"])
def test_infinite_derivatives_are_no_numbers(f):
    order = 1 if f is np.cbrt else 2
    assert "settle" in compare(f, 0.0, order, only=["AD"], times=False).reference.refusal


def test_a_wrong_sign_of_a_small_derivative_is_wrong():
    @sa.custom_derivative(derivative=lambda primals, tangents: -tangents[0])
    def line(x):
        return x * 1.0

    found = compare(lambda x: 1 + 1e-60 * line(x), 2.5, only=["AD", "sympy"], times=False)
    assert found.wrong == ("AD F", "AD R")


@pytest.mark.parametrize("x", [math.nan, math.inf, np.array([1.0, -math.inf])], ids=str)
def test_points_that_are_not_finite_are_said_to_be_so(x):
    found = compare(lambda x: np.sum(1 / (1 + x * x)), x, only=["AD"], times=False)
    assert "not finite" in found.reference.refusal


def test_a_jump_is_no_kink():
    assert "jumps" in compare(lambda x: np.where(x < 0, 0.0, 1.0), 0.0, only=["AD"], times=False).reference.refusal


def test_an_exact_value_beyond_floats_agrees_with_nothing():
    found = compare(lambda x: 1 / (x * x), 1e-160, only=["AD", "differences"], times=False)
    assert {row.verdict for row in found.rows} == {"no number"}
    assert "-2.0e+480 is beyond all floats" in found["differences central"].reason


@pytest.mark.parametrize(
    ("f", "x"), [(np.linalg.norm, np.array([3e300, 4e300])), (lambda x: np.exp(-1e3 * x), 1.0)], ids=["norm", "exp"]
)
def test_overflow_and_underflow_on_the_way_are_not_called_wrong(f, x):
    assert compare(f, x, only=["interpolation", "complex step"], times=False).wrong == ()


def test_a_rule_that_is_wrong_at_one_point_only_is_wrong_there():
    @sa.custom_derivative(derivative=lambda primals, tangents: np.where(primals[0] == 2.0, 3.0, 1.0) * tangents[0])
    def line(x):
        return x * 1.0

    g = lambda x: np.sin(line(x))  # noqa: E731
    assert compare(g, 2.0, only=["AD", "sympy"], times=False).wrong == ("AD F", "AD R")
    assert compare(g, 2.5, only=["AD", "sympy"], times=False).wrong == ()
    vector = lambda x: np.sin(line(x[0])) * x[1]  # noqa: E731
    assert compare(vector, np.array([2.0, 1.5]), only=["AD", "sympy"], times=False).wrong == ("AD F", "AD R")


def sine_with(factor):
    """A sine whose derivative is wrong by a factor."""

    @sa.custom_derivative(derivative=lambda primals, tangents: np.cos(primals[0]) * factor * tangents[0])
    def sine(x):
        return np.sin(x)

    return sine


def test_a_relative_error_of_a_thousand_units_in_the_last_place_is_wrong():
    for factor, wrong in ((1 + 1e-12, ("AD F", "AD R")), (1 + 2.0**-52, ())):
        sine = sine_with(factor)
        found = compare(lambda x, sine=sine: np.exp(sine(x)), 0.7, only=["AD", "sympy"], times=False)
        assert found.wrong == wrong
        assert "proved" not in {row.verdict for row in found.rows if row.family == "AD"}


def test_floats_that_sympy_would_merge_are_not_proved_equal():
    @sa.custom_derivative(derivative=lambda p, t: (np.cos(p[0]) + 1e-31 * np.cos(p[0])) * t[0])
    def sine(x):
        return np.sin(x)

    found = compare(lambda x: np.exp(sine(x)), 0.7, only=["AD", "sympy"], times=False)
    assert found["AD F"].verdict == "tested"


def test_threads_do_not_disturb_each_other():
    def compared(k):
        found = compare(lambda x: np.sin(k * x) * np.exp(x), 0.5, 2, only=["AD F", "sympy"], times=False)
        return found.reference.refusal, {row.verdict for row in found.rows}

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(compared, range(1, 7)))
    assert all(refusal == "" and verdicts <= {"proved", "tested"} for refusal, verdicts in results), results
