"""Loops among few operations and many leaves: the same ones as among all rows."""

from __future__ import annotations

import numpy as np
import pytest

import codegen.loops.find.find as few_rows
import symad as sa
from symad.compiling.candidates import primal_of, traced_with_loops

X = np.random.default_rng(3).normal(size=5000)


def sums_of_elements(x):
    large = np.sin(x) * np.exp(-x)
    total = np.sum(large**2)
    for k in range(300):
        total = total + np.cos(large[k] * large[k + 1]) * x[2 * k]
    return total


def chain_over_elements(x):
    large = np.tanh(x)
    state = large[0]
    for k in range(1, 400):
        state = np.sin(state) * 0.5 + large[k] / (1 + large[-k] ** 2)
    return state + np.sum(np.cumsum(large[:300])) + np.sum(large * state)


def loops_that_wait(x):
    """Arrays of which no element is read in between."""
    first = np.sin(x)
    second = np.cos(first) + np.sum(first)
    parts = [second[k] * first[k] for k in range(200)]
    third = second * sum(parts)
    return np.sum(third**2) + sum(part**2 for part in parts)


@pytest.mark.parametrize("f", [sums_of_elements, chain_over_elements, loops_that_wait])
def test_the_same_loops_are_found(f, monkeypatch):
    found = []
    for few in (0, 10**9):
        monkeypatch.setattr(few_rows, "FEW", few)
        primal = primal_of(traced_with_loops(f, (X,)), f.__name__, True)
        found.append([(loop.count, len(loop.body), loop.origin, len(loop.results)) for loop in primal.loops])
        value, gradient = sa.compile(sa.value_and_grad(f), X)(X)
        assert value == pytest.approx(f(X), rel=1e-12)
        np.testing.assert_allclose(gradient, sa.grad(f)(X), rtol=1e-10, atol=1e-12)
    assert found[0] == found[1]
    assert max(count for count, *_ in found[0] if count < 1000) >= 199
