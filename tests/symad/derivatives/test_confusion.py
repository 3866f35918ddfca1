"""The museum of perturbation confusion: KNOWN_ANSWERS A. Each case has a right number and a famous wrong one.

Every D below is taken by forward and by reverse mode at each level, interpreted and compiled. The naive designs of
symad/classroom/confusion/naive.py stand beside them, with the wrong numbers that they give.
"""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.classroom.confusion import naive
from tests.support import mixes

PAIRS = [(outer, inner) for outer in "FR" for inner in "FR"]


def derivative_at(mode, f, a):
    return mixes.ONCE[mode](f)(a)


def both(f, a):
    """f is a function of one scalar: its value interpreted and compiled."""
    return [f(a), sa.compile(f, 0.5)(a)]


def outer_derivative(mode, f, a):
    return both(mixes.ONCE[mode](f), a)


# name: (function of the two modes' inner D and the outer variable, point, right answer, typical wrong answer)
NESTED = {
    "A1 Siskind-Pearlmutter": (lambda d, x: x * d(lambda y: x + y, 1), 1.0, 1.0, 2.0),
    "A2": (lambda d, x: x * d(lambda y: x * y, 2), 1.0, 2.0, None),
    "A3": (lambda d, x: x * d(lambda y: x * y, 1), 4.0, 8.0, 1.0),
    "A3b inner argument is the captured variable": (lambda d, x: x * d(lambda y: x * y, x), 3.0, 6.0, 12.0),
    "A3c": (lambda d, x: x * d(lambda y: x * y**2, x), 3.0, 54.0, None),
    "A6": (lambda d, x: d(lambda y: x, x), 1.0, 0.0, None),
    "A9 one": (lambda d, x: d(lambda y: x + y, 3), 1.0, 0.0, None),
    "A9 x*one(x)": (lambda d, x: x * d(lambda y: x + y, 3), 1.0, 1.0, None),
    "A9 x*one(2x)": (lambda d, x: x * d(lambda y: 2 * x + y, 3), 1.0, 1.0, None),
    "A10": (lambda d, x: d(lambda y: y * (x - y), x), 1.0, -1.0, 0.0),
    "A12": (lambda d, x: x * d(lambda y: y**2, x), 1.0, 4.0, 0.0),
}


@pytest.mark.parametrize(("outer", "inner"), PAIRS, ids=lambda mode: mode)
@pytest.mark.parametrize("case", NESTED)
def test_nested_derivative(case, outer, inner):
    body, point, right, wrong = NESTED[case]
    found = outer_derivative(outer, lambda x: body(lambda f, a: derivative_at(inner, f, a), x), point)
    assert found == [right, right]
    assert wrong not in found


def short(case):
    """The number of a case, without the words that describe it."""
    return case if case.startswith("A9") else case.split()[0]


X = sp.Symbol("x")
CLOSED = {
    "A1": X, "A2": X**2, "A3": X**2, "A3b": X**2, "A3c": 2 * X**3, "A6": sp.S.Zero, "A9 one": sp.S.One,
    "A9 x*one(x)": X, "A9 x*one(2x)": X, "A10": -X, "A12": 2 * X**2,
}  # fmt: skip


@pytest.mark.parametrize("case", NESTED)
@pytest.mark.thinned
def test_nested_derivatives_under_every_mix_of_depth_up_to_4(case):
    """The last letter is the mode of the inner derivative, the others those around it."""
    body, point, _, _ = NESTED[case]
    for word in mixes.words(2) + mixes.words(3) + mixes.words(4):
        *outer, inner = word
        g = mixes.nested(outer, lambda x, inner=inner: body(lambda f, a: derivative_at(inner, f, a), x))
        right = float(sp.diff(CLOSED[short(case)], X, len(outer)).subs(X, point))
        assert both(g, point) == [right, right], word


def fresh_tag():
    """Return correct forward mode: a function-valued result is differentiated anew at each use."""
    tags = itertools.count()

    def derivative(f, a):
        tag = next(tags)
        result = f(naive.Dual(a, 1.0, tag))
        if callable(result):
            return lambda *more: derivative(lambda u: f(u)(*more), a)
        return naive.tangent(result, tag)

    return derivative


# The wrong numbers of each naive design; where a case is not listed, the design is right by luck.
WRONG = {
    "tagless": {"A1": 2, "A2": 3, "A3": 5, "A3b": 9, "A3c": 63, "A9 x*one(x)": 2, "A9 x*one(2x)": 3},
    "shared_tag": {},
    "no_alias": {"A3b": 12, "A3c": 81, "A10": 0},
    "one_tape": {"A3": 1, "A3b": 3, "A3c": 9, "A6": 1, "A9 one": 1, "A9 x*one(2x)": 2, "A10": 1, "A12": 0},
    "fresh_tag": {},
}


@pytest.mark.parametrize("case", NESTED)
@pytest.mark.parametrize("design", WRONG)
def test_the_naive_designs_beside_the_right_numbers(design, case):
    body, point, right, _ = NESTED[case]
    d = fresh_tag() if design == "fresh_tag" else getattr(naive, design)()
    assert d(lambda x: body(d, x), point) == WRONG[design].get(short(case), right)
    assert sa.derivative(lambda x: body(lambda f, a: sa.derivative(f)(a), x))(point) == right


def test_every_famous_wrong_number_comes_from_a_naive_design():
    famous = {short(case): wrong for case, (_, _, _, wrong) in NESTED.items() if wrong is not None}
    assert famous == {"A1": 2, "A3": 1, "A3b": 12, "A10": 0, "A12": 0}
    for case, wrong in famous.items():
        assert wrong in [numbers.get(case) for numbers in WRONG.values()], case


def test_the_naive_designs_are_out_of_reach():
    code = "import sys, symad, symad.cli; assert 'symad.classroom.confusion.naive' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert not set(WRONG) & set(sa.__all__)


@pytest.mark.parametrize("inner", "FR")
def test_a4_gradient_of_a_loss_with_a_derivative_inside(inner):
    def loss(v):
        return v.sum() * derivative_at(inner, lambda y: y * np.linalg.norm(v), 1)

    point = np.array([1.0])
    for gradient in (sa.grad(loss), sa.jacfwd(loss)):
        assert gradient(point) == [2.0]
        assert sa.compile(gradient, point)(point) == [2.0]


@pytest.mark.parametrize("outer", [sa.jacfwd, sa.jacrev])
@pytest.mark.parametrize("inner", [sa.grad, sa.jacfwd, sa.jacrev])
def test_a5_jacobian_of_an_inner_gradient_is_the_matrix(outer, inner):
    matrix = np.random.default_rng(5).normal(size=(10, 8))
    point, y = np.arange(8.0), np.arange(10.0)

    def gradient(x):
        return inner(lambda y: y @ (matrix @ x))(y)

    assert np.array_equal(outer(gradient)(point), matrix)
    assert np.array_equal(sa.compile(outer(gradient), point)(point), matrix)


@pytest.mark.parametrize("outer", [sa.jacfwd, sa.jacrev])
@pytest.mark.parametrize("inner", [sa.jacfwd, sa.grad])
def test_a7_lagrangian_has_no_mixed_derivative(outer, inner):
    mass, gravity = 1.0, 9.8

    def momentum(q, speed):
        return inner(lambda s: mass / 2 * (s @ s) - mass * gravity * q[1])(speed)

    q, speed = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    mixed = outer(momentum)
    assert np.array_equal(mixed(q, speed), np.zeros((2, 2)))
    assert np.array_equal(sa.compile(mixed, q, speed)(q, speed), np.zeros((2, 2)))
    assert sa.compile(mixed, q, speed).program.outputs[0].rows == ()  # proved structurally, not computed


def test_a7_on_one_tape_the_position_keeps_the_force():
    d = naive.one_tape()
    assert d(lambda q: d(lambda speed: 0.5 * speed**2 - 9.8 * q, 4.0), 2.0) == -9.8
    assert sa.grad(lambda q: sa.grad(lambda speed: 0.5 * speed**2 - 9.8 * q)(4.0))(2.0) == 0


@pytest.mark.parametrize("mode", "FR")
def test_a11_a_captured_variable_rebound_twice_inside_the_function(mode):
    """Within one call, rebinding follows Python: x * y * y."""

    def f(y):
        x = 3.0

        def step():
            nonlocal x
            x = x * y

        step()
        step()
        return x

    assert outer_derivative(mode, f, 2.0) == [12.0, 12.0]


@pytest.mark.parametrize("outer", "FR")
@pytest.mark.parametrize("inner", "FR")
def test_a11_each_application_reads_the_captured_variable_anew(outer, inner):
    def loss(a):
        x = a
        inner_derivative = mixes.ONCE[inner](lambda y: x * y)
        x = x * x
        first = inner_derivative(1.0)
        x = x * x
        return first + inner_derivative(1.0)  # a^2 + a^4, not twice the value at the time of the definition

    assert outer_derivative(outer, loss, 3.0) == [114.0, 114.0]


@pytest.mark.parametrize("mode", "FR")
def test_a11_a_captured_variable_keeps_no_value_of_a_closed_level(mode):
    """`x = x * y` leaves a value of this level in x; the next call is told so, and gets no stale number."""
    x = 1.0

    def f(y):
        nonlocal x
        x = x * y
        return x

    assert derivative_at(mode, f, 1.0) == 1.0
    with pytest.raises(
        sa.errors.EscapedValueError, match=r"test_confusion\.py:\d+: .*after its derivative level closed"
    ):
        derivative_at(mode, f, 1.0)
    x = 5.0  # bound to a number again, it follows Python
    assert derivative_at(mode, f, 1.0) == 5.0


@pytest.mark.parametrize("outer", "FR")
@pytest.mark.parametrize("inner", ["FF", "FR", "RF", "RR"])
def test_a13_parameter_derivative_of_a_second_derivative(outer, inner):
    def curvature(p):
        return mixes.nested(inner, lambda x: p * x**2)(2.0)

    assert outer_derivative(outer, curvature, 3.0) == [2.0, 2.0]


@pytest.mark.parametrize("shift", "FR")
def test_a14_the_amazing_bug(shift):
    """Manzyuk, Pearlmutter, Radul, Rush, Siskind 2019: a derivative of a function that returns functions."""

    def s(u):
        return lambda g: lambda a: g(a + u)

    shared = naive.shared_tag()(s, 3.0)
    assert shared(np.exp)(5.0) == pytest.approx(math.exp(8), rel=1e-15)
    assert shared(shared(np.exp))(5.0) == 0
    fresh = fresh_tag()(s, 3.0)
    assert fresh(fresh(np.exp))(5.0) == pytest.approx(math.exp(11), rel=1e-15)

    differentiated = mixes.ONCE[shift](s)(3.0)
    once, twice = differentiated(np.exp), differentiated(differentiated(np.exp))
    for function, right in ((once, math.exp(8)), (twice, math.exp(11))):
        for value in both(function, 5.0):
            assert value == pytest.approx(right, rel=1e-15)
            assert value != 0


@pytest.mark.parametrize("shift", "FR")
def test_a15_a_function_valued_result_of_two_functions(shift):
    def v(u):
        return lambda f1: lambda f2: lambda x: f1(f2)(x + u)

    identity = lambda f: f  # noqa: E731 (the case is written with lambdas)
    shared = naive.shared_tag()(v, 0.0)
    assert shared(shared(identity))(np.exp)(1.0) == 0

    differentiated = mixes.ONCE[shift](v)(0.0)
    for value in both(differentiated(differentiated(identity))(np.exp), 1.0):
        assert value == pytest.approx(math.e, rel=1e-15)


# name: (function of the outer and the inner derivative, right answer)
CURRIED = {
    "two arguments": (lambda c, d: c(d(lambda u: lambda w: lambda t: u * w * t)(2.0))(3.0)(5.0), 5.0),
    "twice in the first": (lambda c, d: c(d(lambda u: lambda t: u**3 * t))(2.0)(5.0), 60.0),
    "a derivative within": (lambda c, d: c(lambda u: lambda t: d(lambda y: u * y * y * t)(u))(2.0)(5.0), 40.0),
    "in the last argument": (lambda c, d: c(d(lambda u: lambda t: u**2 * t**2)(3.0))(5.0), 60.0),
    "captured": (lambda c, d: c(lambda x: d(lambda u: lambda t: u * x * t)(x)(x))(3.0), 6.0),
    "at the captured": (lambda c, d: c(lambda x: d(lambda u: lambda t: u * u * t)(x)(x))(3.0), 12.0),
    "arrays": (
        lambda c, d: c(lambda x: d(lambda u: lambda t: u @ t)(np.stack([x, x]))(np.stack([1.0, x]))[1])(3.0),
        1.0,
    ),
}


@pytest.mark.parametrize(("outer", "inner"), PAIRS, ids=lambda mode: mode)
@pytest.mark.parametrize("case", CURRIED)
def test_functions_that_return_functions(case, outer, inner):
    body, right = CURRIED[case]
    assert body(mixes.ONCE[outer], sa.grad if case == "arrays" else mixes.ONCE[inner]) == right


@pytest.mark.parametrize("mode", "FR")
def test_a_function_kept_from_a_level_is_refused(mode):
    kept = []

    def f(x):
        kept.append(mixes.ONCE[mode](lambda u: lambda t: u * x * t)(x))
        return kept[-1](x)

    assert sa.derivative(f)(3.0) == 6.0
    with pytest.raises(sa.errors.EscapedValueError, match="after its derivative level closed"):
        kept[0](2.0)


@pytest.mark.parametrize("word", ["FF", "FR", "RF", "RR"])
@pytest.mark.parametrize(
    ("function", "point", "right"),
    [(lambda x: x**4 + 0 * x**3, 1.0, 12.0), (lambda t: t**4, 1.5, 27.0), (lambda x: 2 * x**4, 2.0, 96.0)],
    ids=["x^4 + 0 x^3", "t^4", "2 x^4"],
)
def test_a20_second_derivatives(function, point, right, word):
    assert both(mixes.nested(word, function), point) == [right, right]


@pytest.mark.parametrize(
    "modes", ["F" * 10, "R" * 10, "FR" * 5, "F" * 20, "R" * 20, "RF" * 10], ids=lambda m: f"{m[:2]}x{len(m)}"
)
def test_a23_mixed_derivative_of_a_product(modes):
    def mixed(level, values, scale=1.0):
        if level == len(modes):
            product = values[0]
            for value in values[1:]:
                product = product * value
            return product
        return mixes.ONCE[modes[level]](lambda x: mixed(level + 1, [*values, x], scale))(scale * (1.5 + level))

    assert both(lambda scale: mixed(0, [], scale), 1.0) == [1.0, 1.0]


@pytest.mark.parametrize("modes", ["F", "R", "FR", "RF"])
def test_a_function_that_calls_itself_through_its_derivative(modes):
    """x d/dx applied n times to x^3 is 3^n x^3, one level inside the other."""

    def euler(n, x):
        if n == 0:
            return x**3
        return x * mixes.ONCE[modes[n % len(modes)]](lambda y: euler(n - 1, y))(x)

    for depth in (1, 2, 5, 12):
        assert both(lambda x, depth=depth: euler(depth, x), 2.0) == [8.0 * 3**depth] * 2


@pytest.mark.parametrize("transform", [sa.grad, sa.value_and_grad, sa.hessian])
def test_a24_the_gradient_of_a_vector_is_refused_with_the_way_out(transform):
    with pytest.raises(sa.errors.ArgumentError, match=r"returned \(3,\) instead of one scalar.*jacobian.*vjp"):
        transform(lambda x: x * x)(np.ones(3))


@pytest.mark.parametrize("outer", [sa.grad, sa.derivative])
def test_a_function_valued_inner_result_is_not_taken_for_the_outer_one(outer):
    def loss(x):
        value, _ = sa.linearize(lambda y: lambda a: y * a, x)
        return value

    with pytest.raises(sa.errors.ArgumentError, match=r"returned a function.*only derivative, grad and jvp"):
        outer(loss)(1.0)
