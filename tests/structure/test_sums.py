"""Sums and maps in straight lines become loops with the same values, whatever the order of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symad
from codegen.program import Program
from symad.programs import to_program
from symad.structure.sums import Found, find_sums
from tests.structure.loop_values import flat_values, rolled_values
from tests.structure.sums_fuzz import try_one


def found_in(program: Program) -> Found:
    outputs = np.array([row for output in program.outputs for row in output.rows])
    return find_sums(program, np.arange(program.input_count), outputs, [], len(program))


def counts(found: Found) -> list[str]:
    """Count, operations and kinds of results of each loop: "45 x 18 sum"."""
    return [
        f"{loop.count} x {sum(map(bool, loop.body.operands))} {' '.join(use.kind for use in loop.results)}"
        for loop in found.loops
    ]


def check_values(program: Program, found: Found, seed: int = 0) -> int:
    """Compare with the straight lines at a point; return how many operations are left in straight lines."""
    point = np.random.default_rng(seed).uniform(0.5, 1.5, program.input_count)
    wanted = [row for output in program.outputs for row in output.rows]
    flat = flat_values(program, point)
    values, straight = rolled_values(program, found, wanted, dict(enumerate(point)))
    np.testing.assert_allclose([values[row] for row in wanted], [flat[row] for row in wanted], rtol=1e-12, atol=1e-13)
    return len(straight)


def traced(function: Callable[..., Any], *arguments: Any) -> Program:
    return to_program(symad.trace(function, *arguments))


def lennard_jones(x: Any) -> Any:
    energy = 0.0
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            d = x[i] - x[j]
            s = 1 / (d[0] ** 2 + d[1] ** 2 + d[2] ** 2) ** 3
            energy += 4 * (s * s - s)
    return energy


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2) + np.sum((1 - x[:-1]) ** 2)


def residual(u: Any) -> Any:
    return np.roll(u, 1) - 2 * u + np.roll(u, -1) + u * (1 - u)


@pytest.mark.parametrize(
    ("function", "size", "expected", "left"),
    [
        (lennard_jones, (10, 3), ["45 x 18 sum"], 0),
        (lennard_jones, (20, 3), ["190 x 18 sum"], 0),
        (rosenbrock, 100, ["99 x 8 sum sum"], 1),
        (rosenbrock, 1000, ["999 x 8 sum sum"], 1),
        (residual, 1000, ["1000 x 8 each"], 0),
    ],
)
def test_loops(function: Callable[..., Any], size: Any, expected: list[str], left: int) -> None:
    program = traced(function, np.ones(size))
    found = found_in(program)
    assert counts(found) == expected
    assert check_values(program, found) == left


def test_random_programs() -> None:
    answers = [try_one(seed) for seed in range(150)]
    assert [seed for seed, (wrong, _) in enumerate(answers) if wrong] == []
    assert sum(loops for _, loops in answers) > 50
