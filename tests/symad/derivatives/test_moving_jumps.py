"""Integrands that jump at a place which depends on what is differentiated: refused, at numbers and in kernels."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.integrate import quad

import symad as sa

JUMPING = {
    "if": lambda t, r: t if t < r else 1.0,
    "where": lambda t, r: np.where(t < r, t, 1.0),
    "heaviside": lambda t, r: np.heaviside(t - r, 0.5),
    "sign": lambda t, r: np.sign(t - r),
    "copysign": lambda t, r: np.copysign(1.0, t - r),
    "fmod": lambda t, r: np.fmod(t + r, 1.0),
    "remainder": lambda t, r: (t + r) % 1.0,
    "floor": lambda t, r: np.floor(t + r),
    "truth": lambda t, r: 1.0 * (t < r),
}
WAYS = {"numbers": lambda f: sa.grad(f)(0.37), "kernel": lambda f: sa.compile(sa.grad(f), 0.37)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", JUMPING)
@pytest.mark.thinned
def test_a_jump_that_moves_is_refused(name, way):
    """The derivative has a term for the place of the jump, which the integral of the derivative lacks: 0 for these."""
    integrand = JUMPING[name]
    for f in (
        lambda r: quad(integrand, 0, 1, args=(r,))[0],
        lambda r: quad(lambda t: integrand(t, r), 0, 1)[0],
        lambda r: quad(lambda t: integrand(t, r / 2 + 0.185), 0, 1)[0],
    ):
        with pytest.raises(
            sa.errors.TraceError, match="changes its formula at a place that depends on what is differentiated"
        ):
            WAYS[way](f)


STAYING = {  # jumps that do not come into the interval, and the slope at .37
    "sign": (lambda t, r: np.sign(1 + t + r) * r, 1.0),
    "remainder": (lambda t, r: (t + r) % 5.0, 1.0),
    "floor": (lambda t, r: np.floor(0.1 * (t + r)) + r * t, 0.5),
    "where": (lambda t, r: np.where(t + r > 0, t * r, 1.0), 0.5),
}


@pytest.mark.parametrize("name", STAYING)
def test_a_jump_outside_of_the_interval_may_move(name):
    integrand, slope = STAYING[name]
    assert sa.grad(lambda r: quad(integrand, 0, 1, args=(r,))[0])(0.37) == pytest.approx(slope, rel=1e-12)


@pytest.mark.parametrize("name", JUMPING)
@pytest.mark.thinned
def test_its_value_compiles(name):
    integrand = JUMPING[name]

    def f(r):
        return quad(lambda t: integrand(t, r), 0, 1)[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert sa.compile(f, 0.37)(0.37) == pytest.approx(f(0.37), abs=1e-8)
