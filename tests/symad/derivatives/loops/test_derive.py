"""Derivatives of rolled programs against derivatives of what they unroll to; the rules of buffers are checked too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import symad as sa
from codegen.ir.region import RolledProgram
from symad.derivatives.loops.pullback import EndlessLoopError, gradient, pullback
from symad.derivatives.loops.pushforward import pushforward
from tests.support.derive_cases import CASES, lennard_jones, momentum, stopping
from tests.support.derive_flat import Arrays, agree, flat_function, points
from tests.support.derive_strict import run


def forward(program: RolledProgram, arrays: Arrays, tangents: Arrays) -> object:
    return sa.jvp(flat_function(program), tuple(arrays), tuple(tangents))


@pytest.mark.parametrize("name", CASES)
def test_pushforward(name: str) -> None:
    program = CASES[name]()
    arrays, tangents = points(program), points(program, 2)
    values, pushed = forward(program, arrays, tangents)  # type: ignore[misc]
    made = pushforward(program, range(len(arrays)))
    agree(run(made, [*arrays, *tangents]), (*values, *pushed))


@pytest.mark.parametrize("name", CASES)
def test_pullback(name: str) -> None:
    program = CASES[name]()
    arrays = points(program)
    cotangents = [
        np.asarray(np.random.default_rng(k).uniform(0.3, 1.3, o.shape)) for k, o in enumerate(program.outputs)
    ]
    values, pull = sa.vjp(flat_function(program), *arrays)
    made = pullback(program, range(len(arrays)))
    agree(run(made, [*arrays, *cotangents]), (*values, *pull(tuple(cotangents))))


@pytest.mark.parametrize("name", CASES)
def test_gradient(name: str) -> None:
    program = CASES[name]()
    arrays, active = points(program), range(len(program.inputs))

    def first(*given: object) -> object:
        return flat_function(program)(*given)[0]

    expected = sa.grad(first, tuple(active))(*arrays)
    agree(run(gradient(program, active), arrays), expected)
    value = float(first(*arrays))  # type: ignore[arg-type]
    agree(run(gradient(program, active, value=True), arrays), (value, *expected))


MIXES: dict[str, tuple[Callable[[RolledProgram, range], RolledProgram], ...]] = {
    "forward over forward": (pushforward, pushforward),
    "forward over reverse": (gradient, pushforward),
    "reverse over forward": (pushforward, pullback),
    "reverse over reverse": (gradient, pullback),
    "pullback over pullback": (pullback, pullback),
}


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.thinned
def test_second_order(name: str, mix: str) -> None:
    program = CASES[name]()
    inner, outer = MIXES[mix]
    first = inner(program, range(len(program.inputs)))
    second = outer(first, range(len(first.inputs)))
    arrays = points(second, 3)
    own, given = arrays[: len(first.inputs)], arrays[len(first.inputs) :]
    if outer is pushforward:
        values, found = sa.jvp(flat_function(first), tuple(own), tuple(given))
    else:
        values, pull = sa.vjp(flat_function(first), *own)
        found = pull(tuple(given))
    agree(run(second, arrays), (*values, *found))


def test_third_order() -> None:
    for program in (momentum(4), lennard_jones(3)):
        first = gradient(program, [0])
        second = pullback(first, [0])
        third = pushforward(second, [0, 1])
        arrays = points(third)
        values, found = sa.jvp(
            lambda *given, second=second, rest=arrays: flat_function(second)(
                *given, *rest[len(given) : len(second.inputs)]
            ),
            tuple(arrays[:2]),
            tuple(arrays[len(second.inputs) :]),
        )
        agree(run(third, arrays), (*values, *found))


def test_a_loop_without_a_bound_has_tangents_and_no_cotangents() -> None:
    program = stopping()
    found = run(pushforward(program, [0]), [np.array(2.0), np.array(1.0)])
    agree(found, (np.sqrt(2.0), 0.5 / np.sqrt(2.0)))
    with pytest.raises(EndlessLoopError, match=r"case.py:1: .*a loop that ends when a condition holds.*max_steps"):
        gradient(program, [0])
