"""Values of straight lines, many rows at once, are those of one row after the other."""

from __future__ import annotations

import numpy as np
import pytest

import symad
from codegen.evaluation.interpret import evaluate
from codegen.loops.find import flat_rows as flat
from codegen.loops.find.agreement import straight_values
from codegen.loops.find.flat_rows import flattened
from symad.tracing.trace import to_program
from tests.support.draws import seeded
from tests.support.sums_fuzz import Author

N = 40


def truths(x):
    """Conditions, truth values as numbers, choices, and connectives of them."""
    inside = (x > 0.3) & ~(x > 0.8) | (x[::-1] < 0.1)
    return np.where(inside, x, -x) + inside * 2.0 + (x > 0.5)


def powers(x):
    return x**2 + x**0.5 + 1 / x + x ** x[::-1] + x**1.5 / (2 + x) + x**-3


def functions(x):
    others = np.hypot(x, 2) + np.arctan2(x, 0.3) + np.floor(4 * x) + np.logaddexp(x, 1)
    return np.exp(x) * np.sin(x) + np.maximum(x, x[::-1]) + np.sign(x - 0.5) + others


def running(x):
    return np.cumsum(x * x), np.cumprod(x), np.sum(x[:5])


@pytest.mark.parametrize("function", [truths, powers, functions, running])
@pytest.mark.parametrize("waves", [0, 100])
def test_values_are_those_of_numpy(function, waves, monkeypatch):
    monkeypatch.setattr(flat, "MANY", 1)
    monkeypatch.setattr(flat, "SMALL_WAVES", waves)
    point = np.random.default_rng(1).uniform(0.05, 1, N)
    program = to_program(symad.trace(function, point))
    wanted = np.array([row for output in program.outputs for row in output.rows])
    found = straight_values(program, flattened(program), np.arange(N), point, wanted)
    parts = function(point)
    expected = np.concatenate([np.ravel(part) for part in (parts if isinstance(parts, tuple) else (parts,))])
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("seed", range(20))
def test_values_are_those_of_the_interpreter(seed, monkeypatch):
    monkeypatch.setattr(flat, "MANY", 1)
    program = Author(seeded(seed)).program()
    point = np.random.default_rng(seed).uniform(-1, 1, program.input_count)
    wanted = np.array(program.outputs[0].rows)
    found = straight_values(program, flattened(program), np.arange(len(point)), point, wanted)
    expected = evaluate(program, wanted.tolist(), dict(enumerate(point.tolist())))
    np.testing.assert_allclose(found, np.array(expected, dtype=float), rtol=1e-12, atol=1e-12)
