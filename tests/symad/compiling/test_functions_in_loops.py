"""Functions on all lanes at once, in loops that were found: against straight lines that call the C library."""

from __future__ import annotations

import numpy as np
import pytest

import symad as sa

RANDOM = np.random.default_rng(0)
DATA, LABELS = RANDOM.normal(size=(60, 4)), RANDOM.choice([-1.0, 1.0], 60)
FIRST, LAST = RANDOM.normal(size=(24, 20)), RANDOM.normal(size=24)
LINES = RANDOM.integers(0, 20, (80, 2))
ADMITTANCE = RANDOM.normal(size=(2, 80))


def logistic(w):
    return np.sum(np.log1p(np.exp(-LABELS * (DATA @ w))))


def network(x):
    return LAST @ np.tanh(FIRST @ x)


def power_flow(angle):
    """The sum over lines of g cos(a - b) + b sin(a - b)."""
    difference = angle[LINES[:, 0]] - angle[LINES[:, 1]]
    return np.sum(ADMITTANCE[0] * np.cos(difference) + ADMITTANCE[1] * np.sin(difference))


@pytest.mark.parametrize(
    ("f", "size", "name"), [(logistic, 4, "exp"), (network, 20, "exp"), (power_flow, 20, "sincos")]
)
@pytest.mark.parametrize("transform", [lambda f: f, sa.grad, sa.hessian], ids=["value", "gradient", "hessian"])
@pytest.mark.thinned
def test_loops_have_the_numbers_of_straight_lines(f, size, name, transform, monkeypatch):
    x = np.random.default_rng(1).uniform(-1, 1, size)
    rolled = sa.compile(transform(f), x, roll="always", tier="fast")
    monkeypatch.setenv("SYMAD_BISECT", "-lane-functions")
    straight = sa.compile(transform(f), x, roll="never", tier="fast")
    assert f"@symad.{name}.v" in rolled.llvm
    assert "@symad." not in straight.llvm
    wanted = straight(x)
    np.testing.assert_allclose(rolled(x), wanted, rtol=1e-14, atol=1e-14 * np.max(np.abs(wanted)))


@pytest.mark.parametrize("transform", [lambda f: f, sa.grad], ids=["value", "gradient"])
def test_functions_on_all_lanes_are_priced(transform):
    """Places are read from tables, one by one: without the functions, loops would cost far more than straight lines."""
    x = np.random.default_rng(1).uniform(-1, 1, 20)
    calls = {way.way: way.price.call for way in sa.plan(transform(power_flow), x).candidates}
    assert calls["rolled"] < 1.2 * calls["straight"]
