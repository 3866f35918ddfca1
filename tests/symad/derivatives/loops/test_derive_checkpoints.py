"""Checkpoints: the same gradients whatever is kept, and as much memory as is said."""

from __future__ import annotations

import numpy as np
import pytest

import symad as sa
from codegen.ir.region import Carry, RolledProgram
from symad.derivatives.loops.pullback import gradient, pullback
from symad.derivatives.loops.pushforward import pushforward
from tests.support.derive_cases import CASES, Made, memory, momentum, recurrence, region, run as table, scan_of_scan
from tests.support.derive_flat import agree, points
from tests.support.derive_strict import run

POLICIES = ("sqrt", "none")


def shuffled(count: int) -> RolledProgram:
    """A chain that reads and writes at places in no order."""
    order = np.random.default_rng(count).permutation(count)
    made = Made({"a": (count,), "x": ()}, {"f": (), "all": (count,)}, {"s": (count,), "bins": (3,)})
    chain = region(
        lambda a, b, x: (x * np.cos(a) + b, x * x, x),
        count,
        [made.at("a", order), made.at("a", table(count, count - 1, -1))],
        [made.to(1, "s", order), made.to(2, "bins", np.arange(count) ** 2 % 3, "add"), made.to(0, "all", table(count))],
        [Carry(0, (made.at("x", 0),))],
    )
    bins = region(lambda b: (b * b * b,), 3, [made.at("bins", table(3))], [made.to(0, "f", table(3, 0, 0), "add")])
    total = region(lambda s, a: (s * s * a,), count, [made.at("s", table(count)), made.at("a", table(count))],
                   [made.to(0, "f", table(count, 0, 0), "add")])  # fmt: skip
    return made.program(chain, bins, total)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 17, 18, 100])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.thinned
def test_any_number_of_repetitions(policy: str, count: int) -> None:
    for program in (momentum(count), recurrence(count, (1, 2)), shuffled(count)):
        active, arrays = range(len(program.inputs)), points(program)
        made = gradient(program, active, value=True, checkpoints=policy)
        agree(run(made, arrays, scratch=True), run(gradient(program, active, value=True), arrays))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.thinned
def test_every_case(name: str, policy: str) -> None:
    program = CASES[name]()
    made = pullback(program, range(len(program.inputs)), checkpoints=policy)
    arrays = points(made)
    agree(run(made, arrays, scratch=True), run(pullback(program, range(len(program.inputs))), arrays))


@pytest.mark.parametrize("policy", POLICIES)
def test_derivatives_of_what_was_checkpointed(policy: str) -> None:
    for program in (momentum(11), recurrence(20, (1,)), scan_of_scan(3, 19)):
        active = range(len(program.inputs))
        plain, made = gradient(program, active), gradient(program, active, checkpoints=policy)
        for outer in (pushforward, pullback, lambda p, a: pullback(p, a, checkpoints=policy)):
            expected, found = outer(plain, active), outer(made, active)
            arrays = points(expected)
            agree(run(found, arrays, scratch=True), run(expected, arrays, scratch=True))


def test_memory() -> None:
    kept = {policy: [memory(gradient(momentum(n), [0], checkpoints=policy)) / 8 for n in (100, 10_000)]
            for policy in ("all", *POLICIES)}  # fmt: skip
    stored = 2  # of the four carries: the velocities enter linearly
    assert [n for n in kept["all"] if n < stored * 100] == []
    assert stored * 10_000 <= kept["all"][1] < stored * 10_000 + 50
    assert kept["sqrt"][1] < 2 * 10 * kept["sqrt"][0]
    assert kept["sqrt"][1] < 1500
    assert kept["none"][1] < 700


def test_a_policy_that_there_is_not() -> None:
    with pytest.raises(sa.errors.ArgumentError, match="checkpoints='some'"):
        gradient(momentum(3), [0], checkpoints="some")  # type: ignore[arg-type]
