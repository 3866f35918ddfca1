"""Rolled programs as text."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from codegen import ArgumentError, Input, Output, Program
from codegen.expressions.printing import rolled_text
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.region import Buffer, Carry, Gather, Region, Result, RolledProgram
from codegen.ir.tables import Affine, table
from tests.support.rolled_programs import KNOWN, A, B, heat, momentum, newton, pairs, random_program


def test_pairs() -> None:
    assert (
        rolled_text(pairs(4))
        == """\
pairs(x[4]) -> out0, out1[6]
i(k) = 0, 0, 0, 1, 1, 2
j(k) = 1, 2, 3, 2, 3, 3
for k in range(6):  # pairs.py:1-2
    a, b = x[i(k)], x[j(k)]
    t1 = a*b
    out0 += t1 + 1
    out1[k] = t1"""
    )


def test_a_nest_has_its_rounds() -> None:
    lines = rolled_text(heat()).split("\n")
    assert lines[4:7] == [
        "for r in range(5):",
        "    for k in range(5):  # heat.py:3",
        "        a, b, c = w0[k + 7*r], w0[k + 7*r + 1], w0[k + 7*r + 2]",
    ]


def test_carries_move_on_together() -> None:
    lines = rolled_text(momentum()).split("\n")
    assert lines[1:3] == ["b = x", "c = 0.0"]
    assert lines[-2:] == ["    b, c = b + t1 + t2, t1 + t2", "out0 = b"]


def test_a_loop_that_may_stop() -> None:
    lines = rolled_text(newton()).split("\n")
    assert lines[1] == "b = square"
    assert [line.strip().split(" ")[0] for line in lines[-4:]] == ["stop", "b", "if", "out0"]


def test_a_carry_of_some_repetitions_before() -> None:
    body = program_from_sympy([A], [A + 1])
    carry = Carry(0, tuple(Gather(0, Affine(k, 0, 1)) for k in range(2)))
    region = Region(body, 5, (), (Result(0, 1, Affine(4, -1, 5), "store"),), (carry,))
    buffers = (Buffer("input", 2), Buffer("output", 5))
    program = RolledProgram((Input("x", (2,)),), (Output((5,), ()),), buffers, (region,), "steps")
    assert rolled_text(program).split("\n")[1:] == [
        "a = x[0], x[1], ...  # its value 2 repetitions before",
        "for k in range(5):",
        "    out[4 - k] = a + 1",
        "    a = a + 1",
    ]


def test_a_body_as_deep_as_a_chain_is_printed_in_lines() -> None:
    heads, rows = [type(A)] + [sp.sin] * 2000, [(), *[(k,) for k in range(2000)]]
    body = Program(heads, rows, {0: A}, (Input("a", ()),), (Output((), (2000,)),))
    region = Region(body, 2, (Gather(0, Affine(0, 1, 2)),), (Result(0, 1, Affine(0, 1, 2), "store"),))
    buffers = (Buffer("input", 2), Buffer("output", 2))
    program = RolledProgram((Input("x", (2,)),), (Output((2,), ()),), buffers, (region,))
    assert max(map(len, rolled_text(program).split("\n"))) < 500


@pytest.mark.parametrize("seed", range(20))
def test_every_program_can_be_printed(seed: int) -> None:
    found = rolled_text(random_program(seed))
    assert found.count("for k in range") <= found.count("\n")
    assert found.startswith(f"random{seed}(x0[")


def test_tables_that_differ_by_a_number_have_one_name() -> None:
    body = program_from_sympy([A, B], [A * B])
    places = np.array([3, 9, 6, 0])
    gathers = (Gather(0, table(places + 2)), Gather(0, table(places)))
    region = Region(body, 4, gathers, (Result(0, 1, Affine(0, 0, 4), "add"),))
    buffers = (Buffer("input", 12), Buffer("output", 1))
    program = RolledProgram((Input("x", (4, 3)),), (Output((), ()),), buffers, (region,), "products")
    assert rolled_text(program).split("\n")[:4] == [
        "products(x[4, 3]) -> out",
        "i(k) = 3, 9, 6, 0",
        "for k in range(4):",
        "    a, b = x[i(k) + 2], x[i(k)]",
    ]


def test_long_tables_are_cut_short() -> None:
    assert "i(k) = 0, 0, 0, 0, 0, 0, 0, 0, ... (36)" in rolled_text(KNOWN["pairs"])
    assert np.array([len(line) for line in rolled_text(pairs(200)).split("\n")]).max() < 100


def test_straight_lines_are_refused() -> None:
    straight = program_from_sympy([sp.Symbol("x")], [sp.Symbol("x") ** 2])
    with pytest.raises(ArgumentError, match="text of Program: only programs with loops"):
        rolled_text(straight)  # type: ignore[arg-type]
