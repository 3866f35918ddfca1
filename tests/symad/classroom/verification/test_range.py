"""Proven ranges contain every result, come close to those that are taken, and are infinite where nothing is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import symad as sa
from symad.classroom.verification.enclose import enclose
from symad.errors import ArgumentError


def ends(balls: list[Any]) -> np.ndarray:
    return np.array([[float(ball.lower()), float(ball.upper())] for ball in balls])


@pytest.mark.parametrize(
    ("f", "box", "low", "high"),
    [
        (lambda x: x * np.sin(x), (0, 3), 0.0, 1.8197057),
        (lambda x: np.where(x > 0.5, x, -x), (0, 1), -0.5, 1.0),
        (lambda x: abs(x) - np.maximum(x, 0.25), (-1, 1), -0.25, 0.75),
        (lambda x: np.exp(-x * x), (-3, 2), math.exp(-9), 1.0),
        (lambda x: np.floor(x) + 0.5, (0.25, 2.5), 0.5, 2.5),
    ],
    ids=["x sin x", "where", "kinks", "gauss", "floor"],
)
def test_known_ranges(f, box, low, high):
    ((lower, upper),) = ends(enclose(sa.compile(f, 0.5), box=box))
    width = max(high - low, 1e-3)
    assert low - 0.03 * width <= lower <= low + 1e-7
    assert high - 1e-7 <= upper <= high + 0.03 * width


def test_bisection_makes_up_for_what_balls_forget():
    """A ball does not know that it is the same x twice: x - x over pieces is as wide as a piece."""
    kernel = sa.compile(lambda x: x - x, 0.5)
    assert ends(enclose(kernel, box=(0, 1), pieces=1))[0, 1] >= 1
    assert 0 <= ends(enclose(kernel, box=(0, 1), pieces=256))[0, 1] < 0.005


def test_all_entries_contain_what_is_sampled():
    kernel = sa.compile(sa.hessian(lambda x: np.exp(x[0] * x[1]) / (2 + np.sin(x[2]))), np.ones(3))
    low, high = ends(enclose(kernel, box=(-1, [1, 1, 2]), pieces=300)).T
    values = kernel.batch(np.random.default_rng(0).uniform(-1, [1, 1, 2], (2000, 3))).reshape(2000, 9)
    assert np.all((low - 1e-12 <= values) & (values <= high + 1e-12))
    coarse = ends(enclose(kernel, box=(-1, [1, 1, 2]), pieces=1)).T
    assert np.all((coarse[0] <= low) & (high <= coarse[1]))


@pytest.mark.parametrize("box", [(-1, 1), (0, 1), (-math.inf, math.inf)], ids=["inside", "edge", "everything"])
def test_a_pole_is_said_to_be_unknown(box):
    (found,) = enclose(sa.compile(lambda x: 1 / x, 1.0), box=box)
    assert not found.is_finite()
    assert found.contains(0)


def test_limits_and_refusals():
    kernel = sa.compile(lambda x: np.sin(x @ x), np.ones(3))
    assert len(enclose(kernel, box=(0, 9), max_seconds=1e-9)) == 1
    with pytest.raises(ArgumentError, match="takes 1 argument"):
        enclose(kernel, box=[(0, 1), (0, 1), (0, 1)])
    with pytest.raises(ArgumentError, match="float32"):
        enclose(sa.compile(lambda x: x, 1.0, dtype="float32"), box=(0, 1))
    with pytest.raises(ArgumentError, match="a box of a trace, or with a point"):
        enclose(kernel, np.ones(3), box=(0, 1))
