"""Sweeps by the encoder have the bits of LLVM's, in registers of four numbers and of eight; what is LLVM's is told."""

from __future__ import annotations

import gc
import re
from typing import Any

import numpy as np
import pytest
import sympy as sp

import codegen.encoding.columns
from codegen import Input, Output, Program, compile_program
from codegen.emission.straight import SweepPlan
from codegen.encoding.columns import ColumnEncoder, lanes_of_columns
from codegen.encoding.disassembly import instructions
from codegen.lowering.halves import columns_at_once, executed, executed_halves, split
from codegen.machine.calls.kernel import Kernel
from codegen.machine.storage.program_cache import ObjectCode
from codegen.options import Tier
from codegen.processor import features
from tests.support.draws import seeded
from tests.support.encoded_fuzz import Operations, check, compare, encoded_sweep, make, results

LONG = {"avx512f", "avx512dq"} <= features()


@pytest.fixture(params=["four", "eight"])
def lanes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many columns go side by side."""
    if request.param == "eight":
        if not LONG:
            pytest.skip("this processor has no registers of 512 bits, or no masks of eight")
        return 8
    monkeypatch.setattr(codegen.encoding.columns, "features", lambda: features() - {"avx512dq"})
    return 4


def swept(columns: int, function: Any) -> Program:
    """A program of x and y whose result, a row, is a function's value for each unit vector of a seed."""
    rows: list[Any] = []
    operands: list[tuple[int, ...]] = []

    def put(head: Any, *given: int) -> int:
        rows.append(head)
        operands.append(given)
        return len(rows) - 1

    symbols = [sp.Symbol(f"s{k}") for k in range(columns + 2)]
    leaves = [put(sp.Symbol) for _ in symbols]
    output = function(put, leaves[:2], leaves[2:])
    atoms = dict(zip(leaves, symbols, strict=True))
    positions = tuple(columns * k for k in range(len(output)))
    return Program(
        rows, operands, atoms, (Input("x", ()), Input("y", ()), Input("seed", (columns,))),
        (Output((len(output), columns), tuple(output), positions, swept=True),), seeded=True,
    )  # fmt: skip


def sums(put: Any, given: list[int], seed: list[int]) -> list[int]:
    """Products that not every column reaches, which are guarded, and their sum."""
    terms = [put(sp.Mul, put(sp.exp, given[k % 2]), entry) for k, entry in enumerate(seed)]
    return [put(sp.Add, *terms), put(sp.Mul, terms[0], put(sp.Mul, *given))]


@pytest.mark.parametrize("seed", range(60))
def test_random_sweeps(seed: int, lanes: int) -> None:
    case = next(found for number in range(100) if (found := make(seeded(1000 * seed + number))).columns)
    program, lowered = case.program()
    assert lanes_of_columns(program) == (lanes if case.columns >= lanes else 4)
    assert check(case) == "same bits: sweep"
    halves = split(program, lowered)
    counted = executed_halves(program, halves.once, halves.columns, columns_at_once(program))
    assert +executed(program, lowered) == +counted  # without writing the halves


@pytest.mark.parametrize("columns", [4, 7, 8, 9, 15, 16, 17, 33])
def test_the_last_block_overlaps_the_one_before(columns: int, lanes: int) -> None:
    program = swept(columns, sums)
    kernels = [compile_program(program, tier=tier, cache=False) for tier in ("llvm", "fast")]
    assert [kernel.stats.generator for kernel in kernels] == ["LLVM", "encoder"]
    first, second = (np.asarray(kernel(0.3, -1.7)) for kernel in kernels)
    assert first.tobytes() == second.tobytes()
    factors = np.where(np.arange(columns) % 2, np.exp(-1.7), np.exp(0.3))
    np.testing.assert_allclose(first[0], factors, rtol=1e-15)
    np.testing.assert_array_equal(first[1, 1:], 0.0)


def test_more_values_than_registers(lanes: int) -> None:
    """A workspace on the heap: thousands of values that do not depend on the seed, and as many that do."""
    rows: list[Any] = [("input", k) for k in range(2 + 8)]
    rows += [("mul", 0, 1)] + [("add", 10 + k, 0) for k in range(5000)]
    rows += [("fma", 10 + k, 2 + k % 8, 3 if not k else len(rows) + k - 1) for k in range(3000)]
    total = len(rows) - 1
    for k in range(1400):
        rows.append(("mul", total, len(rows) - 2 - 2 * k))
        total = len(rows) - 1
    case = Operations(rows, [2], [(1, None, [total])], 3, 8)
    program, lowered = case.program()
    halves = split(program, lowered)
    wanted = results(ObjectCode.of(SweepPlan.of(program, halves).emit(), 0), program, case.points())
    made = encoded_sweep(program, halves)
    assert made.workspace > 8192
    assert {"malloc", "free"} <= set(made.placed.called)
    compare("sweep", results(ObjectCode.encoded(made, 0.0), program, case.points()), wanted)


def test_truth_values_are_masks() -> None:
    """More of them than there are mask registers."""
    if not LONG:
        pytest.skip("this processor has no registers of 512 bits, or no masks of eight")
    rows: list[Any] = [("input", k) for k in range(2 + 8)]
    rows += [("compare", "olt", k % 2, 2 + k % 8) for k in range(20)]
    for k in range(20):
        other = ("true",) if k == 7 else ("false",) if k == 11 else ("compare", "ugt", 2 + k % 8, 0)
        rows += [other, ("logic", ("and", "or", "xor")[k % 3], 10 + k, len(rows)), ("not", len(rows) + 1)]
    truths = [k for k, row in enumerate(rows) if row[0] in ("logic", "not")]
    total = 2
    for truth in [*truths, *reversed(truths)]:
        rows += [("number", truth), ("select", truth, total, len(rows)), ("add", len(rows) + 1, 3)]
        total = len(rows) - 1
    case = Operations(rows, [2], [(1, None, [total])], 5, 8)
    assert check(case) == "same bits: sweep"
    program, lowered = case.program()
    made = encoded_sweep(program, split(program, lowered))
    text = "\n".join(
        text for _, text, _ in instructions(made.placed.code, made.placed.entries["kernel.0"], len(made.placed.code))
    )
    for name in ("kandb", "korb", "kxorb", "knotb", "kxnorb", "kmovb", "vpmovm2q", "vblendmpd"):
        assert name in text
    assert re.search(r"kmovb %k\d, \d+\(%rbx\)", text)


def test_no_encoder_waits_for_the_collector(lanes: int) -> None:
    case = next(found for number in range(100) if (found := make(seeded(number))).columns >= 8)
    program, lowered = case.program()
    halves = split(program, lowered)
    gc.collect()
    gc.disable()
    try:
        encoded_sweep(program, halves)
        assert not [each for each in gc.get_objects() if type(each) is ColumnEncoder]  # `isinstance` asks proxies
    finally:
        gc.enable()


def test_who_writes_which_sweep() -> None:
    """Of many blocks of columns the default tier is LLVM's; the other tiers begin with the encoder's code."""
    width = 8 if LONG else 4
    tiers: tuple[Tier, ...] = ("default", "fast", "auto", "llvm")
    for columns, wanted in ((2 * width, ("encoder",) * 2), (2 * width + 1, ("LLVM", "encoder")), (3, ("LLVM",) * 2)):
        kernels = {tier: compile_program(swept(columns, sums), tier=tier, cache=False) for tier in tiers}
        assert kernels["auto"].wait()
        assert kernels["default"].stats.generator == wanted[0]
        assert kernels["auto"].stats.generator == wanted[0]
        assert kernels["fast"].stats.generator.split(",")[0] == wanted[1]
        assert len({np.asarray(kernel(0.3, -1.7)).tobytes() for kernel in kernels.values()}) == 1
    assert kernels["fast"].stats.generator == "LLVM, level 0: a sweep over 3 columns"
    assert {kernel.stats.strategy for kernel in kernels.values()} == {"sweep"}


def test_functions_of_the_seed_are_llvms() -> None:
    def called(put: Any, given: list[int], seed: list[int]) -> list[int]:
        return [put(sp.exp, put(sp.Mul, given[0], seed[0]))]

    kernel: Kernel = compile_program(swept(4, called), tier="fast", cache=False)
    assert kernel.stats.generator == "LLVM, level 0: a function is called for every column"
    np.testing.assert_allclose(np.asarray(kernel(2.0, 1.0))[0], [np.exp(2.0), 1, 1, 1], rtol=1e-15)


def test_operations_are_counted_by_register(lanes: int) -> None:
    """One for every column that does not fit beside the others."""
    counts = [compile_program(swept(n * lanes, sums), tier="fast", cache=False).stats.executed for n in (2, 3)]
    assert counts[0] < counts[1]


@pytest.mark.parametrize(("columns", "together"), [(1, 1), (2, 2), (3, 2), (5, 4), (100, 8)])
def test_columns_go_side_by_side_by_powers_of_two(columns: int, together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codegen.lowering.halves.vector_bits", lambda: 512)
    program = Program([], [], {}, (Input("seed", (columns,)),), (), seeded=True)
    assert columns_at_once(program) == together
