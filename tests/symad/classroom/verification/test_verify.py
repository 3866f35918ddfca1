"""verify: errors of kernels at points and over boxes; planted faults are found, and nothing is blamed wrongly."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp
from mpmath import mp

import codegen
import symad as sa
from codegen.machine.calls.kernel import make_kernel
from symad.classroom.verification.exact import Known, by_balls, by_digits, condition, error_bound, spacing, ulp_error
from symad.classroom.verification.verify import compare_exact
from symad.errors import ArgumentError

X = sp.Symbol("x", real=True)


def planted(wrong, right):
    """A kernel whose machine code is that of another program than it claims: a defect of lowering."""
    claimed = codegen.program_from_sympy([X], [right])
    compiled = codegen.compile_program(codegen.program_from_sympy([X], [wrong]), cache=False)._compiled
    return make_kernel(compiled._replace(source=compiled.source._replace(program=claimed)))


# ---- faults that have to be found


def test_a_wrong_constant_is_caught():
    kernel = sa.compile(lambda x: np.sin(3.1415926 * x), 1.0)
    assert sa.verify(kernel, box=(-0.6, 0.6), points=50).worst_ulp < 4  # its own program is what it computes
    found = sa.verify(kernel, box=(-1, 1), points=50, against=lambda x: np.sin(np.pi * x))
    assert found.worst_ulp > 1e6
    assert found.against == "<lambda>"


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (sp.Piecewise((X, X > 0.3), (-X, True)), sp.Piecewise((X, X >= 0.3), (-X, True))),  # wrong at one float only
        (sp.Piecewise((1, X > 0), (2, True)), sp.Piecewise((1, X > -1e-300), (2, True))),
        (sp.exp(X) - 1, sp.exp(X + sp.Rational(1, 10**9)) - 1),
        (X / 2, sp.Rational(50000001, 100000000) * X),
        (sp.sqrt(X**2), X),  # wrong for x < 0
    ],
    ids=["edge", "tiny", "shifted", "scaled", "branch"],
)
def test_wrong_machine_code_is_caught(wrong, right):
    found = sa.verify(planted(wrong, right), box=(-1, 1), points=400)
    assert found.worst_ulp > 1e5, found.statement
    assert sa.verify(codegen.compile_program(codegen.program_from_sympy([X], [right])), box=(-1, 1)).worst_ulp < 1e17


@pytest.mark.parametrize(
    ("f", "box", "at", "condition_is_small"),
    [
        (lambda x: 1 - np.cos(x), (-1, 1), lambda x: abs(x) < 1e-7, True),
        (lambda x: np.log(1 + x), (-0.5, 10), lambda x: abs(x) < 1e-15, True),
        (lambda x: np.sqrt(x * x + 1) - x, (0, 1e10), lambda x: x > 1e7, True),
        (lambda x: (np.exp(x) - 1) / x, (1e-20, 1), lambda x: x < 1e-15, True),
        (lambda x: np.sin(x), (0, 10), lambda x: True, None),
        (lambda x: x - 1, (0, 2), lambda x: True, None),
    ],
    ids=["1-cos", "log(1+x)", "sqrt-x", "exp-1", "sin", "x-1"],
)
def test_bad_formulas_are_blamed_where_they_are_bad(f, box, at, condition_is_small):
    found = sa.verify(sa.compile(f, 0.5), box=box, points=300)
    assert at(found.worst_point[0])
    if condition_is_small:
        assert found.worst_ulp > 1e12
        assert found.worst.condition < 4
    else:
        assert found.worst_ulp <= 1


def test_an_ill_conditioned_point_is_told_from_a_bad_formula():
    """x*x - y*y near x = y: rounding the inputs alone does as much harm as the formula."""
    kernel = sa.compile(lambda x, y: x * x - y * y, 1.0, 1.0)
    found = sa.verify(kernel, box=[(1, 2), (1, 2)], points=400)
    assert found.worst_ulp > 1e6
    x, y = found.worst_point
    assert abs(x - y) < 1e-6
    assert found.worst.condition > found.worst_ulp / 4
    assert found.unexplained is None


def test_a_bad_formula_is_blamed_beside_ill_conditioned_points():
    """Near x = pi the sine is ill-conditioned and right; near 0 the second term is bad, with smaller errors."""
    kernel = sa.compile(lambda x: (np.sin(x[0]) + 1e-5 * (np.exp(x[1]) - 1 - x[1])) * 1.0, np.ones(2))
    found = sa.verify(kernel, box=([3, -1], [4, 1]), points=300)
    assert found.unexplained is None
    kernel = sa.compile(lambda x: (np.sin(x[0]), np.exp(x[1]) - 1), np.ones(2))
    found = sa.verify(kernel, box=([3, -1], [4, 1]), points=300)
    assert found.unexplained.name == "result 1"
    assert found.unexplained.condition < 2
    assert "does not explain result 1" in str(found)


def test_overflow_inside_is_an_infinite_error_and_the_others_are_told():
    kernel = sa.compile(lambda x: (x[0] ** 2 + x[1] ** 2) ** 0.5, np.ones(2))
    found = sa.verify(kernel, box=(1, np.inf), points=200)
    assert found.worst_ulp == math.inf
    assert found.infinite > 0
    assert found.finite_ulp < 2
    assert found.unexplained.worst_ulp == math.inf
    assert 1e150 < max(found.worst_point[0]) < 1e160  # the mildest of those points
    assert sa.verify(sa.compile(np.hypot, 1.0, 1.0), box=[(1, np.inf), (1, np.inf)], points=200).worst_ulp < 2


def test_the_largest_numbers_are_points_like_others():
    kernel = sa.compile(lambda x: (1 + 1 / x) ** 2 - 1, 1.0)
    found = sa.verify(kernel, box=(1e308, np.inf), points=60)
    assert found.complete
    assert found.unexplained.condition < 2


def test_nan_where_a_number_should_be_is_an_infinite_error():
    found = sa.verify(planted(sp.log(X), sp.log(sp.Abs(X))), box=(-1, 1), points=100)
    assert found.infinite > 10
    assert math.isnan(found.worst.value)


def test_an_edge_that_rounding_decides_about_is_no_fault():
    """The two branches of the maximum meet where neither of them is exact; at a tie the derivative is their mean."""
    f = sa.grad(lambda x: np.maximum(x[0] ** 2 + x[1], 3 * x[1] + x[0]))
    found = sa.verify(
        sa.compile(f, np.ones(2)), box=(0.1, 2), points=400, seed=1
    )  # the worst is at no float's distance
    assert found.worst_ulp > 1e10
    assert found.worst.at_edge
    assert found.unexplained is None
    assert "rounding decides about a branch" in " ".join(str(found).split())
    found = sa.verify(sa.compile(lambda x: 1 - np.cos(x), 1.0), box=(-1, 1), points=300)
    assert not found.worst.at_edge
    assert found.unexplained is not None


# ---- what is set apart


def test_undefined_results_are_set_apart():
    for rigorous in (False, True):
        found = sa.verify(sa.compile(np.log, 1.0), box=(-1, 1), points=200, rigorous=rigorous)
        assert found.undefined > 20
        assert found.disputed == found.undecided == 0
        assert found.worst_ulp < 1
    disputed = sa.verify(planted(sp.log(sp.Abs(X)), sp.log(X)), box=(-1, 1), points=100)
    assert disputed.disputed == disputed.undefined > 10
    assert disputed.example.point[0] < 0
    assert "the kernel gives a number" in str(disputed)


def test_what_no_precision_decides_is_undecided():
    """sqrt(x)**2 - x is 0, which no number of digits shows: only balls know that they do not know its sign."""
    zero = lambda x: x**0.5 * x**0.5 - x  # noqa: E731
    kernel = sa.compile(lambda x: np.where(zero(x) > 0, x, -x), 2.0)
    found = sa.verify(kernel, box=(2, 3), points=20, rigorous=True)
    assert found.undecided > 10
    assert "no precision decides a branch" in " ".join(str(found).split())
    assert sa.verify(kernel, 2.0, rigorous=True).undecided == 1
    assert sa.verify(sa.compile(zero, 2.0), 2.0, rigorous=True).exact == 0.0  # to a thousand digits and more


def test_the_sign_of_a_zero_input_is_no_error():
    found = sa.verify(sa.compile(lambda x, y: np.arctan2(y, x), 1.0, 1.0), box=[(-1, 1), (-1, 1)], points=500)
    assert found.signed_zeros > 0
    assert found.worst_ulp < 2
    assert sa.verify(sa.compile(lambda x: np.copysign(2.0, x), 1.0), box=(-1, 1), points=100).worst_ulp == 0


def test_a_number_too_large_for_high_precision_is_undecided():
    found = sa.verify(sa.compile(lambda x: np.sin(np.exp(x)), 1.0), box=(1e30, 1e31), points=5)
    assert found.undecided == found.points
    assert found.worst is None
    assert "no result could be compared" in found.statement


# ---- exact numbers and errors, by two routes


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.exp(x[0] * x[1]) - np.sin(x[1]) / x[0],
        lambda x: np.where(x[0] > x[1], x[0] ** 3, np.tanh(x[1])) + abs(x[0] - 0.5),
        sa.hessian(lambda x: np.log(x @ x) * np.arctan2(x[0], x[1])),
    ],
    ids=["elementary", "branches", "hessian"],
)
def test_errors_by_digits_and_by_balls_agree(f):
    kernel = sa.compile(f, np.ones(2))
    digits, enclosed = by_digits(kernel), by_balls(kernel)
    random = np.random.default_rng(0)
    for point in random.uniform(-2, 2, (20, 2)):
        values = np.ravel(kernel(point)).tolist()
        for value, known, proven in zip(values, digits(point.tolist()), enclosed(point.tolist()), strict=True):
            first, second = error_bound(value, known), error_bound(value, proven)
            assert first == pytest.approx(second, rel=1e-6, abs=1e-9)
            assert abs(known.middle - proven.middle) <= proven.radius + abs(known.middle) * mp.mpf(10) ** -45


def test_rigorous_verification_bounds_the_other():
    kernel = sa.compile(lambda x: np.exp(x) * np.cos(x), 1.0)
    for x in (0.1, 2.5, -30.0):
        plain, proven = sa.verify(kernel, x), sa.verify(kernel, x, rigorous=True)
        assert proven.worst_ulp == pytest.approx(plain.worst_ulp, abs=0.02)
        assert proven.rows[0].radius > 0
        assert "at most" in proven.statement
    found = sa.verify(kernel, box=(-5, 5), points=100, rigorous=True)
    assert found.rigorous
    assert found.worst_ulp < 4


def test_digits_are_raised_where_they_cancel():
    """(1 - cos x)/x**2 at 1e-100: 50 digits give 0 where 1/2 is right, and the kernel gives 0 too."""
    found = sa.verify(sa.compile(lambda x: (1 - np.cos(x)) / x**2, 1.0), 1e-100)
    assert found.worst_ulp > 1e15
    assert found.exact == 0.5


def test_errors_in_ulp():
    assert ulp_error(1.0, mp.mpf(1) + mp.mpf(2) ** -52) == pytest.approx(1)
    assert ulp_error(math.nan, mp.mpf(1)) == math.inf
    assert ulp_error(math.nan, mp.nan) == 0
    assert ulp_error(math.inf, mp.mpf(10) ** 400) == 0
    assert ulp_error(1e308, mp.mpf(10) ** 400) == math.inf
    assert ulp_error(math.inf, mp.mpf(1)) == math.inf
    assert ulp_error(5e-324, mp.mpf(0)) == 1
    assert math.isfinite(ulp_error(1.0, mp.mpf(0)))  # 2**1074 is no float, but the error is not infinite
    assert error_bound(1.0, Known(mp.mpf(1), mp.mpf(2) ** -50)) is None
    assert spacing(1.0, single=True) == 2.0**-23
    assert ulp_error(1.0 + 2.0**-23, mp.mpf(1), single=True) == 1


def test_condition_is_what_rounding_the_inputs_does():
    exact = by_digits(sa.trace(lambda x, y: x * y, 1.0, 1.0))
    assert condition(exact, [1.5, 1.25])[0] == pytest.approx((1.25 + 1.5) / 2)
    assert condition(exact, [0.0, 1.25]) == [0.0]  # a zero is not rounded


def test_the_condition_at_a_point_is_computed_where_it_is_quick():
    f = lambda x: np.sin(x @ x)  # noqa: E731
    assert sa.verify(sa.compile(f, np.ones(3)), np.ones(3)).rows[0].condition > 1
    assert sa.verify(sa.compile(f, np.ones(200), roll="never"), np.ones(200)).rows[0].condition is None


def test_compare_exact_without_cancelling_entries():
    found = compare_exact([1.0, 1e-12, math.nan], [mp.mpf(1), mp.mpf(2e-12), mp.mpf(3)])
    assert found.cancelled == 1
    assert found.worst_ulp == math.inf
    assert found.worst_index == 2
    assert found.scaled == math.inf
    assert compare_exact([1.0, 0.0], [mp.mpf(1), mp.mpf(0)]).cancelled == 0  # a right 0 has not lost anything
    assert compare_exact([1.0, 1e-17], [mp.mpf(1), mp.mpf(0)]).cancelled == 1


# ---- arguments, results and boxes


def test_containers_and_names():
    def f(p, scale):
        return {"a": p["w"] * scale, "b": (p["w"] @ p["w"], 1.0)}

    kernel = sa.compile(f, {"w": np.ones(2), "c": 1.0}, 2.0)
    low = {"w": np.array([-1.0, 0.0]), "c": 0.0}
    found = sa.verify(kernel, box=[(low, 1.0), (1, 4)], points=100)
    assert {row.name for row in found.rows} == {'["a"][0]', '["a"][1]', '["b"][0]', '["b"][1]'}
    assert found.worst_ulp < 2
    for row in found.rows:
        assert row.point[0]["w"][1] >= 0
        assert 1 <= row.point[1] <= 4
    again = kernel(*found.worst_point)
    values = {'["a"][0]': again["a"][0], '["a"][1]': again["a"][1], '["b"][0]': again["b"][0], '["b"][1]': 1.0}
    assert values[found.worst.name] == found.worst.value


def test_sparse_results_have_their_places_as_names():
    f = lambda x: (x[1:] ** 2) @ (x[:-1] ** 3)  # noqa: E731
    kernel = sa.compile(sa.hessian(f, sparse="lower"), np.ones(4))
    found = sa.verify(kernel, box=(-1, 1), points=60)
    assert {row.name for row in found.rows} == {"[0, 0]", "[1, 0]", "[1, 1]", "[2, 1]", "[2, 2]", "[3, 2]", "[3, 3]"}
    assert sa.verify(kernel, np.full(4, 0.3)).entries == 7


def test_structural_zeros_are_checked_too():
    kernel = sa.compile(sa.hessian(lambda x: np.sin(x[0]) + x[1] ** 4), np.ones(2))
    found = sa.verify(kernel, box=(0.5, 1), points=50)
    assert found.entries == 4
    assert found.worst_ulp < 3
    assert sa.verify(kernel, np.ones(2)).worst_ulp < 3


def test_results_without_a_single_operation_are_verified():
    kernel = sa.compile(sa.hessian(lambda x: 3 * x[0] - x[1]), np.ones(2))
    for found in (sa.verify(kernel, np.ones(2)), sa.verify(kernel, box=(-1, 1), points=20)):
        assert found.worst_ulp == 0
        assert found.entries == 4


def test_sweeps_are_verified():
    f = lambda x: np.exp(x @ x) * x[0]  # noqa: E731
    kernel = sa.compile(sa.hessian(f), np.ones(5), strategy="sweep")
    assert sa.verify(kernel, np.linspace(0.1, 1, 5)).worst_ulp < 16
    found = sa.verify(kernel, box=(0.1, 1), points=40, against=sa.hessian(f, mode="fwd-rev"))
    assert found.entries == 25
    assert found.worst_ulp < 16


def test_single_precision_is_measured_in_its_own_units():
    kernel = sa.compile(lambda x: np.exp(x) * 3, 1.0, dtype="float32")
    found = sa.verify(kernel, box=(-80, 80), points=200)
    assert 0.3 < found.worst_ulp < 3
    assert np.float32(found.worst_point[0]) == found.worst_point[0]
    assert sa.verify(kernel, 0.1).worst_ulp < 3


def test_a_complex_kernel_and_other_objects_are_refused():
    kernel = sa.compile(lambda x: np.exp(x), 1.0, dtype="complex128")
    with pytest.raises(ArgumentError, match="complex128 kernel"):
        sa.verify(kernel, 1.0)
    with pytest.raises(ArgumentError, match=r"type function.*compile the function first"):
        sa.verify(lambda x: x, 1.0)


def test_fast_accuracy_is_measured_alone_and_in_batches():
    kernel = sa.compile(lambda x: np.exp(np.sin(x)), 1.0, accuracy="fast")
    assert 0.4 < sa.verify(kernel, box=(-10, 10), points=200).worst_ulp < 16


# ---- forms


def test_results_have_all_forms(tmp_path):
    kernel = sa.compile(sa.grad(lambda x: np.log(x[0]) / x[1]), np.ones(2))
    for found in (sa.verify(kernel, np.array([0.3, 0.7])), sa.verify(kernel, box=(-1, 1), points=60)):
        assert found.statement in " ".join(found.text(200).split())
        assert "inputs' rounding" in found.text(200)
        assert "<table" in found.html()
        assert "tabular" in found.latex()
        assert found.save(tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")
        assert max(map(len, found.text(80).splitlines())) <= 80


@pytest.mark.parametrize("at", [0, sp.Rational(1, 2), -1, 2], ids=str)
def test_a_fault_at_one_simple_number_is_found(at):
    kernel = planted(sp.Piecewise((sp.sin(X), sp.Ne(X, at)), (1, True)), sp.sin(X))
    found = sa.verify(kernel, box=(-3, 3), points=200)
    assert found.worst_ulp > 1e9
    assert found.worst_point == (float(at),)


def test_a_pole_of_which_the_sign_is_a_convention_is_no_error():
    """1/(-x) is -inf at 0, because -0 is a number of its own for a kernel; log is not +inf on any side."""
    found = sa.verify(sa.compile(lambda x: 1 / -x, 1.0), box=(-1, 1), points=200)
    assert found.worst_ulp < 2
    assert found.signed_zeros > 0
    assert "divisor" in found.text(200)
    wrong = sa.verify(planted(sp.Piecewise((sp.log(X), X > 0), (sp.oo, True)), sp.log(X)), box=(0, 1), points=200)
    assert math.isinf(wrong.worst_ulp)
    assert wrong.worst_point[0] == 0


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sign(np.sqrt(x) ** 2 - x),
        lambda x: np.where(np.sqrt(x) ** 2 < x, 1.0, 2.0),
        lambda x: np.floor(np.sqrt(x) * np.sqrt(x)),
    ],
    ids=["sign", "where", "floor"],
)
def test_digits_that_agree_by_chance_at_an_edge_are_undecided(f):
    """sqrt(2)**2 - 2 is rounding at every precision, whose sign may be the same in two of them."""
    exact = by_digits(sa.trace(f, 2.0))
    assert exact([2.0])[0].radius == mp.inf
    assert exact([4.0])[0].radius == 0, "the square root of 4 is known"


def test_edges_that_are_met_exactly_are_decided():
    exact = by_digits(sa.trace(lambda x: np.sign(x - 2) + np.floor(x) + np.where(x < 2.0, 1.0, 0.0), 2.0))
    assert exact([2.0])[0].radius == 0
    assert exact([2.0])[0].middle == 2
    assert exact([math.nextafter(2.0, 0.0)])[0].middle == 1


def test_a_point_where_nothing_is_decided_has_no_error_of_0():
    kernel = sa.compile(lambda x: np.sign(np.sqrt(x) ** 2 - x), 2.0)
    for rigorous in (False, True):
        found = sa.verify(kernel, 2.0, rigorous=rigorous)
        assert math.isnan(found.worst_ulp)
        assert "no error could be told" in found.statement
        assert found.undecided == 1
        assert found.html()
