"""Loops for points side by side: the bits of single calls, whatever a loop does; alone where they would differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symad as sa
from codegen import compile_program
from codegen.loops.emit import loop_points
from codegen.loops.emit.rolled_code import RolledPlan
from codegen.machine.batches import batch_lanes
from codegen.machine.batches.batch_lanes import lanes_of_loops
from codegen.options import Options
from symad.compiling.native import carry_out
from tests.support import points_fuzz
from tests.support.draws import seeded
from tests.support.fuzzers import FUZZERS
from tests.support.rolled_programs import momentum

WEIGHTS = np.random.default_rng(1).normal(size=(23, 12)) / 4
FIRST, SECOND = np.triu_indices(9, 1)


def lags(x: Any) -> Any:
    y = [x[0], x[1], x[2], x[3], x[4], x[5]]
    for k in range(40):
        y.append(np.sin(y[k]) + 0.5 * y[k + 5] * x[k % 3])
    return y[-1]


def pairs(x: Any) -> Any:
    atoms = x.reshape(-1, 3)
    square = np.sum((atoms[FIRST] - atoms[SECOND]) ** 2, axis=1)
    return np.sum(1 / square - np.exp(-square))


CASES: dict[str, tuple[Callable[..., Any], int]] = {
    "a sum": (lambda x: np.sum(np.sin(x) * x), 157),
    "a long sum": (lambda x: np.sum(np.exp(-x) / (1 + x**2)), 610),
    "a network": (sa.hessian(lambda x: np.sum(np.tanh(WEIGHTS @ x) ** 2), sparse="lower"), 12),
    "a chain of squares": (sa.hessian(lambda x: np.sum((x[1:] - x[:-1] ** 2) ** 2), sparse="lower"), 30),
    "a recurrence": (sa.value_and_grad(lags), 6),
    "pairs": (sa.hessian(pairs, sparse="lower"), 27),
    "data": (sa.value_and_grad(lambda x: np.sum(np.logaddexp(0.0, WEIGHTS @ x))), 12),
    "a product": (lambda x: WEIGHTS @ x, 12),
}
ALONE = ("a chain of squares", "pairs")  # side by side, repetitions add to one place of memory


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.thinned
def test_bits_of_single_calls(name: str, dtype: Any) -> None:
    function, size = CASES[name]
    points = np.random.default_rng(2).uniform(0.2, 1.2, (21, size)).astype(dtype)
    planned = sa.plan(function, points[0], roll="always", dtype=dtype)
    alone = carry_out(planned, lanes=1, dtype=dtype)
    assert alone.stats.strategy == "rolled"
    single = [points_fuzz.in_tuple(alone(point)) for point in points]
    want = [np.array(parts) for parts in zip(*single, strict=True)]
    for lanes in (1, 4, 8, 16):
        kernel = carry_out(planned, lanes=lanes, dtype=dtype)
        assert kernel.lanes == (1 if name in ALONE else lanes)
        found = points_fuzz.in_tuple(kernel.batch(points))
        assert all(np.array_equal(one, many) for one, many in zip(want, found, strict=True))


@pytest.mark.parametrize("name", ["points", "points-bodies"])
def test_random_loops(name: str) -> None:
    fuzzer = FUZZERS[name]
    found = [fuzzer.check(fuzzer.make(seeded(seed))) for seed in range(300, 306)]
    assert "side by side" in found


def test_a_difference_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What adds up the sums of lanes in another order fails the fuzzer."""

    def one_after_the_other(self: Any, c: int) -> str:
        sums = [self.load(self.offset(self.lane_sums[c], lane)) for lane in range(self.width)]
        total = sums[0]
        for lane in sums[1:]:
            total = self.new(f"fadd {self.scalar.type} {total},{lane}")
        return str(total)

    monkeypatch.setattr(loop_points.PointsLoop, "sum_of_lanes", one_after_the_other)
    points = np.random.default_rng(3).normal(size=(16, 610))
    program = sa.compile(CASES["a long sum"][0], points[0], roll="always").program
    with pytest.raises(AssertionError):
        points_fuzz.compared(program, [points], 2)


def test_loops_that_end_early_or_call_a_library_stay_alone() -> None:
    def newton(x: Any) -> Any:
        return sa.while_loop(lambda y: abs(y * y - x[0]) > 1e-12, lambda y: (y + x[0] / y) / 2, 1.0 + x[1])

    def solution(x: Any) -> Any:
        return np.sum(np.linalg.solve(x.reshape(30, 30), np.ones(30)) ** 2)

    for function, point in ((newton, np.array([2.0, 1.0])), (solution, (np.eye(30) + 0.01).ravel())):
        kernel = carry_out(sa.plan(function, point), lanes=8)
        assert (kernel.stats.strategy, kernel.lanes) == ("rolled", 1)
        points = point + np.linspace(0, 0.1, 9)[:, None]
        assert np.array_equal(kernel.batch(points), [kernel(each) for each in points])


def test_lanes_are_taken_where_they_save_more_than_they_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_lanes, "vector_bits", lambda: 512)
    chosen = {}
    for name in ("a recurrence", "a product"):
        function, size = CASES[name]
        kernel = sa.compile(function, np.linspace(0.2, 1, size), roll="always")
        chosen[name] = lanes_of_loops(RolledPlan.of(kernel.program, Options())).width
    assert chosen == {"a recurrence": 8, "a product": 1}
    assert compile_program(momentum(50), lanes=4).lanes == 4
