"""Seed 000, "Differentiating Optimizers", and KNOWN_ANSWERS E: update rules, momentum, schedules, training loops.

The independent routes: closed forms; complex steps through the same loops with a gradient written by hand; central
differences at 50 digits; and the implicit function theorem where the loops converge.
"""

from __future__ import annotations

import math
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import symad as sa
from benchmarks import meta_gradient
from tests.support import mixes

EXAMPLES = Path(__file__).parents[3] / "examples"
example = SimpleNamespace(**runpy.run_path(str(EXAMPLES / "optimisers.py")))
INNER = {"F": sa.jacfwd, "R": sa.grad}
OUTER = {"F": sa.jacfwd, "R": sa.jacrev}
NAMES = ("start", "slope", "settings")
STEP = 1e-30  # of complex differentiation: nothing is subtracted, so it can be as small as one likes


def gradient_by_hand(x, slope):
    """The gradient of the example's loss, for complex numbers too."""
    bend = x[1] - x[0] ** 2
    return np.stack([np.sinh(x[0] - 1) - 4 * x[0] * bend + slope, 2 * bend + 0.4 * x[1] ** 3])


def arguments(name):
    return [example.START, example.SLOPE, example.OPTIMISERS[name][1]]


def complex_step(function, point):
    """The derivative of an array in every number of a point, last."""
    units = np.eye(np.size(point)).reshape((-1, *np.shape(point)))
    return np.stack([np.imag(function(point + 1j * STEP * unit)) / STEP for unit in units], -1)


@pytest.mark.parametrize("position", range(3), ids=NAMES)
@pytest.mark.parametrize("name", example.OPTIMISERS)
@pytest.mark.thinned
def test_optimisers_by_every_mode_and_by_complex_steps(name, position):
    """Start, loss and hyperparameters: the learning rate, the momentum, Adam's two decays."""
    optimiser, point = example.OPTIMISERS[name][0], arguments(name)

    def alone(gradient):
        return lambda value: optimiser(*point[:position], value, *point[position + 1 :], gradient=gradient)

    right = complex_step(alone(gradient_by_hand), point[position])
    scale = np.abs(right).max()
    for inner, inner_transform in INNER.items():
        for outer, outer_transform in OUTER.items():
            differentiated = outer_transform(alone(inner_transform(example.loss)))
            found = differentiated(point[position])
            assert np.abs(found - right.reshape(found.shape)).max() < 1e-12 * scale, outer + inner
            if inner == outer:
                kernel = sa.compile(differentiated, point[position])
                assert np.abs(kernel(point[position]) - found).max() < 1e-12 * scale, outer + inner


@pytest.mark.parametrize("name", example.OPTIMISERS)
@pytest.mark.thinned
def test_second_derivatives_of_an_optimiser(name):
    """Of one scalar of the result, twice in the settings: second derivatives of a loop that holds gradients."""
    optimiser, (start, slope, settings) = example.OPTIMISERS[name][0], arguments(name)
    final = lambda p: np.sum(optimiser(start, slope, p) ** 2)  # noqa: E731
    by_hand = lambda p: np.sum(optimiser(start, slope, p, gradient=gradient_by_hand) ** 2)  # noqa: E731
    first, *others = (sa.hessian(final, mode=mode)(settings) for mode in ("auto", "fwd-rev", "rev-fwd"))
    for matrix in (*others, sa.jacfwd(sa.jacfwd(by_hand))(settings)):
        assert np.abs(matrix - first).max() < 1e-11 * np.abs(first).max()
    units = 1e-6 * np.eye(len(settings))
    ends = [[complex_step(by_hand, settings + sign * unit) for unit in units] for sign in (1, -1)]
    assert np.abs((np.array(ends[0]) - ends[1]) / 2e-6 - first).max() < 1e-6 * np.abs(first).max()


def test_every_rate_of_a_schedule():
    """One backward pass gives the derivative in all the learning rates."""
    rates = example.cosine_schedule(0.15, 12)
    final = lambda rates, **how: np.sum(example.gradient_descent(example.START, 0.3, rates, **how) ** 2)  # noqa: E731
    right = complex_step(lambda rates: final(rates, gradient=gradient_by_hand), rates)
    for transform in (sa.grad, sa.jacfwd):
        assert transform(final)(rates) == pytest.approx(right, rel=1e-12)
        assert sa.compile(transform(final), rates)(rates) == pytest.approx(right, rel=1e-12)


def quadratic_descent(inner, steps, rate, start, centre, curvature=3.0):
    """K gradient steps on (a/2)(t - c)^2, the gradient by one mode."""
    t = start
    for _ in range(steps):
        t = t - rate * mixes.ONCE[inner](lambda t: curvature / 2 * (t - centre) ** 2)(t)
    return t


@pytest.mark.parametrize("inner", "FR")
@pytest.mark.parametrize("steps", [1, 3, 10])
@pytest.mark.thinned
def test_gradient_steps_on_a_parabola_have_a_closed_form(steps, inner):
    rate, start, centre, curvature = 0.1, 2.0, 1.0, 3.0
    shrink = 1 - curvature * rate
    right = {0: centre + shrink**steps * (start - centre)}
    for order in (1, 2, 3):
        factor = math.perm(steps, order) * (-curvature) ** order
        right[order] = factor * shrink ** max(steps - order, 0) * (start - centre)
    for order, value in right.items():
        for word in mixes.words(order):
            found = mixes.nested(word, lambda rate: quadratic_descent(inner, steps, rate, start, centre))(rate)
            assert found == pytest.approx(value, rel=1e-13), word


@pytest.mark.parametrize("inner", "FR")
def test_the_numbers_of_known_answers_e(inner):
    def outer(rate, start, centre):
        return quadratic_descent(inner, 3, rate, start, centre) ** 2 / 2

    point, right = (0.1, 2.0, 1.0), [-5.92263, 0.460649, 0.882351]
    for transform in (sa.grad, sa.jacfwd):
        assert transform(outer, (0, 1, 2))(*point) == pytest.approx(right, rel=1e-14)
        assert sa.compile(transform(outer, (0, 1, 2)), *point)(*point) == pytest.approx(right, rel=1e-13)
    for word in mixes.words(2):
        assert mixes.nested(word, lambda rate: outer(rate, 2.0, 1.0))(0.1) == pytest.approx(70.2135, rel=1e-13)


@pytest.mark.parametrize("name", ["gradient descent", "momentum"])
@pytest.mark.thinned
def test_converged_loops_agree_with_implicit_differentiation(name):
    """First and second derivative in the loss; in the start and in the settings nothing is left."""
    loops = {
        "gradient descent": lambda slope, start: example.gradient_descent(start, slope, [0.2] * 200),
        "momentum": lambda slope, start: example.momentum(start, slope, 0.15, 0.6, 120),
    }
    loop = loops[name]
    step = lambda x, slope: x - 0.2 * sa.grad(example.loss)(x, slope)  # noqa: E731
    implicit = {
        "argmin": lambda slope: sa.argmin(example.loss, example.START, slope),
        "fixed point": lambda slope: sa.fixed_point(step, example.START, slope),
        "root": lambda slope: sa.root(lambda x, slope: sa.grad(example.loss)(x, slope), example.START, slope),
    }
    for order in (1, 2):
        unrolled = sa.derivative(lambda slope: loop(slope, example.START), order)(0.3)
        assert np.abs(unrolled).min() > 0.01
        for way, minimiser in implicit.items():
            assert sa.derivative(minimiser, order)(0.3) == pytest.approx(unrolled, rel=1e-7), (way, order)
    assert np.abs(sa.jacrev(lambda start: loop(0.3, start))(example.START)).max() < 1e-9


@pytest.mark.parametrize("steps", [200, pytest.param(1000, marks=pytest.mark.wide)])
@pytest.mark.parametrize("transform", [sa.grad, sa.jacfwd])
def test_many_steps_against_central_differences_in_50_digits(transform, steps, monkeypatch):
    """In the learning rate, in the momentum and in the initial point."""
    monkeypatch.setattr(meta_gradient, "STEPS", steps)
    gradient = transform(meta_gradient.trained, (0, 1, 2))
    right = pytest.approx(meta_gradient.reference(), rel=1e-13)
    assert np.hstack(gradient(*meta_gradient.POINT)) == right
    if transform is sa.grad:
        kernel = sa.compile(gradient, *meta_gradient.POINT)
        assert np.hstack(kernel(*meta_gradient.POINT)) == right
