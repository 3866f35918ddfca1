"""Proven ranges contain every result, come close to those that are taken, and say where they know nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

import symad as sa
from symad.checking.verification.balls_range import enclose_range
from symad.errors import ArgumentError


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
    found = enclose_range(sa.compile(f, 0.5), box)
    width = max(high - low, 1e-3)
    assert found.unknown == 0
    assert low - 0.03 * width <= found.low[0] <= low + 1e-7
    assert high - 1e-7 <= found.high[0] <= high + 0.03 * width
    assert found.low[0] <= found.taken_low[0] <= found.taken_high[0] <= found.high[0]


def test_bisection_makes_up_for_what_balls_forget():
    """A ball does not know that it is the same x twice: x - x over pieces is as wide as a piece."""
    kernel = sa.compile(lambda x: x - x, 0.5)
    assert enclose_range(kernel, (0, 1), pieces=1).high[0] >= 1
    assert 0 <= enclose_range(kernel, (0, 1), pieces=256).high[0] < 0.005


def test_all_entries_contain_what_is_sampled():
    kernel = sa.compile(sa.hessian(lambda x: np.exp(x[0] * x[1]) / (2 + np.sin(x[2]))), np.ones(3))
    found = enclose_range(kernel, (-1, [1, 1, 2]), pieces=300)
    values = kernel.batch(np.random.default_rng(0).uniform(-1, [1, 1, 2], (2000, 3))).reshape(2000, 9)
    assert np.all((found.low - 1e-12 <= values) & (values <= found.high + 1e-12))
    assert found.pieces == 300
    coarse = enclose_range(kernel, (-1, [1, 1, 2]), pieces=1)
    assert np.all((coarse.low <= found.low) & (found.high <= coarse.high))


@pytest.mark.parametrize("box", [(-1, 1), (0, 1), (-math.inf, math.inf)], ids=["inside", "edge", "everything"])
def test_a_pole_is_said_to_be_unknown(box):
    found = enclose_range(sa.compile(lambda x: 1 / x, 1.0), box)
    assert found.unknown > 0
    assert found.high[0] == math.inf
    assert "have no enclosure" in found.statement


def test_limits_and_refusals():
    kernel = sa.compile(lambda x: np.sin(x @ x), np.ones(3))
    assert enclose_range(kernel, (0, 9), max_seconds=1e-9).pieces == 1
    with pytest.raises(ArgumentError, match="takes 1 argument"):
        enclose_range(kernel, [(0, 1), (0, 1), (0, 1)])
    with pytest.raises(ArgumentError, match="float32"):
        enclose_range(sa.compile(lambda x: x, 1.0, dtype="float32"), (0, 1))


def test_it_has_all_forms():
    found = enclose_range(sa.compile(lambda x: (x, x * x), 1.0), (0, 2))
    for form in (str(found), found.html(), found.latex()):
        assert "never below" in form
        assert "result 1" in form
