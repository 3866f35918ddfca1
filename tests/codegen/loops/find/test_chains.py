"""Chains: what is found in unrolled time stepping, and that running it gives the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symad
from tests.support.chains_cases import CASES
from tests.support.chains_oracle import check, counts, flat, found


@pytest.mark.parametrize("name", CASES)
def test_chain_is_found(name: str) -> None:
    function, arguments, expected = CASES[name]
    program = flat(function, *arguments)
    loops = found(program)
    assert counts(loops) == expected
    assert check(program, loops) > 0.97


# name: the part of the derivative that is in chains; the rest are maps, which `find_sums` finds
DERIVATIVES = {
    "momentum": 0.9, "schedule": 0.9, "network": 0.6, "pendulum": 0.9, "three_back": 0.95, "adam": 0.8,
    "choice": 0.8, "quotients": 0.7, "horner": 0.6, "heat": 0.95,
}  # fmt: skip


@pytest.mark.parametrize("name", DERIVATIVES)
def test_chains_in_straight_derivatives(name: str) -> None:
    """The sweep forward and the one backward are chains, and the one backward reads what the other passes on."""
    function, arguments, _ = CASES[name]

    def last(*values: Any) -> Any:
        return np.ravel(np.array(function(*values), dtype=object))[-1]

    program = flat(symad.grad(last), *arguments)
    loops = found(program)
    assert check(program, loops) > DERIVATIVES[name]
    assert len(loops) == 2


@pytest.mark.parametrize("name", ["momentum", "network", "pendulum", "three_back"])
def test_tangents_are_another_loop(name: str) -> None:
    function, arguments, _ = CASES[name]
    tangents = tuple(np.ones_like(argument) * 0.5 for argument in arguments)
    program = flat(lambda *values: symad.jvp(function, values, tangents), *arguments)
    loops = found(program)
    assert len(loops) == 2
    assert check(program, loops) > 0.9


def test_only_what_is_needed_later_is_kept() -> None:
    function, arguments, _ = CASES["momentum"]
    (loop,) = found(flat(function, *arguments))
    assert [result.kind for result in loop.results] == ["last"]


def test_what_one_loop_passes_on_another_reads_backwards() -> None:
    function, arguments, _ = CASES["there_and_back"]
    forward, backward = found(flat(function, *arguments))
    (path,) = forward.results
    assert (path.kind, len(backward.reads)) == ("each", 1)
    assert np.array_equal(backward.reads[0], path.nodes[::-1])
