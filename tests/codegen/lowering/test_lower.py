"""Lowering: operation counts, exactness of sign rules, powers, sharing, tiers and chunk sizes."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
import sympy as sp

from codegen import Input, Output, Program, compile_program, evaluate, program_from_sympy
from codegen.evaluation.constant_folding import fold_constants
from codegen.ir.machine_rows import Machine
from codegen.lowering.fuse import fuse, merge_scales, sink_signs
from codegen.lowering.lower import lower

X, Y, Z = sp.symbols("x y z")


def counts(*expressions: Any) -> dict[str, int]:
    return dict(sink_signs(merge_scales(lower(program_from_sympy([X, Y, Z], list(expressions))))).count())


@pytest.mark.parametrize(
    ("expressions", "want"),
    [
        ([X - Y], {"sub": 1}),
        ([-X], {"neg": 1}),
        ([-X * Y - Z], {"mul": 1, "neg": 1, "sub": 1}),
        ([X / Y], {"div": 1}),
        ([X / Y, Z / Y], {"div": 1, "mul": 2}),
        ([1 / Y], {"div": 1}),
        ([X**2, X**3, X**6], {"mul": 3}),
        ([X**-3], {"mul": 2, "div": 1}),
        ([X**-3, X**-4], {"mul": 3, "div": 1}),
        ([sp.sqrt(X)], {"sqrt": 1}),
        ([X ** sp.Rational(3, 2)], {"sqrt": 1, "mul": 1}),
        ([Y / sp.sqrt(X)], {"sqrt": 1, "div": 1}),
        ([X ** sp.Rational(-3, 2)], {"sqrt": 1, "mul": 1, "div": 1}),
        ([sp.sin(-X, evaluate=False), sp.sin(X)], {"call": 1, "neg": 1}),
        ([sp.cos(-X, evaluate=False) + sp.cos(X)], {"call": 1, "add": 1}),
        ([X / 2], {"mul": 1}),
        ([-3 * X * Y], {"mul": 2}),
        ([abs(-X)], {"abs": 1}),
        ([X**Y], {"call": 1}),
        ([sp.Pow(2, X)], {"call": 1}),
        ([sp.Mul(sp.Mul(400, X), sp.Mul(2, X), evaluate=False), -400 * X], {"mul": 3}),
        ([sp.Mul(sp.Mul(3, X), sp.Mul(2, Y), evaluate=False), 3 * X], {"mul": 3}),
        ([Y * X + Z, X * Y - Z], {"mul": 1, "add": 1, "sub": 1}),
    ],
)
def test_operation_counts(expressions: list[Any], want: dict[str, int]) -> None:
    assert counts(*expressions) == want


def test_powers_of_two_merge() -> None:
    inner = sp.Mul(3, X, evaluate=False)
    assert counts(sp.Mul(2, inner, evaluate=False)) == {"mul": 1}
    assert counts(sp.Mul(5, inner, evaluate=False)) == {"mul": 2}  # 15 x rounds differently


@pytest.mark.parametrize(
    ("expression", "codes"),
    [(X * Y + Z, "fma"), (X * Y - Z, "fms"), (Z - X * Y, "fnma"), (-X * Y - Z, "fnms")],
)
def test_fusion(expression: Any, codes: str) -> None:
    lowered = sink_signs(lower(program_from_sympy([X, Y, Z], [expression])))
    fused = fuse(lowered)
    assert [fused.rows[row][0] for row in fused.live() if fused.rows[row][0] != "input"] == [codes]
    kernel = compile_program(program_from_sympy([X, Y, Z], [expression]))
    assert kernel.stats.fused == 1
    exact = expression.subs({X: sp.Rational(0.1), Y: sp.Rational(0.3), Z: sp.Rational(0.7)})
    assert kernel(0.1, 0.3, 0.7) == float(exact)  # rounded once


def random_program(seed: int, rows: int, heads: list[Any]) -> Program:
    """Random binary rows whose lowering is bit-safe: no reciprocals, no powers beyond squares."""
    rng = random.Random(seed)
    table: list[Any] = [sp.Symbol] * 3
    operands: list[tuple[int, ...]] = [()] * 3
    atoms: dict[int, sp.Basic] = {0: X, 1: Y, 2: Z}
    for value in (sp.Integer(-1), sp.Integer(2), sp.Rational(-3, 4), sp.Float(0.1), sp.Float(-2.5)):
        atoms[len(table)] = value
        table.append(type(value))
        operands.append(())
    for _ in range(rows):
        head = rng.choice(heads)
        recent = max(0, len(table) - 40)
        arity = 1 if head in (sp.Abs, sp.sin, sp.atan) else 2
        picks = tuple(
            rng.randrange(recent, len(table)) if rng.random() < 0.7 else rng.randrange(8) for _ in range(arity)
        )
        table.append(head)
        operands.append(picks)
    results = tuple(range(len(table) - 60, len(table)))
    inputs = tuple(Input(str(symbol), ()) for symbol in (X, Y, Z))
    return Program(table, operands, atoms, inputs, (Output((60,), results),))


def bits(values: Any) -> Any:
    array = np.array(values, dtype=float)
    return np.where(np.isnan(array), np.nan, array).view(np.int64)


@pytest.mark.parametrize("seed", range(12))
def test_lowering_without_fma_is_bit_exact(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the functions of the C library, which the interpreter calls too."""
    monkeypatch.setenv("SYMAD_BISECT", "-lane-functions")
    program = random_program(seed, 300, [sp.Add, sp.Mul, sp.Mul, sp.Add, sp.Max, sp.Abs, sp.sin, sp.atan])
    kernel = compile_program(program, tier="fast", fma=False)
    rng = random.Random(seed + 100)
    folded = fold_constants(program, range(len(program)), 3)  # atan of a constant is rounded once, libm's is not
    for point in ([rng.uniform(-2, 2) for _ in range(3)], [0.0, -0.0, 1.0], [1e200, -1e-200, 3.0]):
        want = evaluate(program, program.outputs[0].rows, folded | dict(enumerate(point)))
        np.testing.assert_array_equal(bits(kernel(*point)), bits(want))


@pytest.mark.parametrize("fma", [True, False])
def test_tiers_and_chunk_sizes_agree_bit_for_bit(fma: bool) -> None:
    program = random_program(5, 700, [sp.Add, sp.Mul, sp.sin, sp.atan, sp.Abs, sp.Mul])
    point = (0.3, -1.25, 0.77)
    base = bits(compile_program(program, fma=fma)(*point))
    for tier in ("default", "fast", "llvm"):
        for chunk in (1, 7, 50, 699, 700, 701, 10_000):
            kernel = compile_program(program, tier=tier, fma=fma, chunk=chunk)
            np.testing.assert_array_equal(bits(kernel(*point)), base)
    assert compile_program(program, fma=fma, chunk=50).stats.workspace > 0


def test_truth_values_cross_chunks() -> None:
    test = sp.And(X < Y, sp.Not(sp.Eq(Y, Z)))
    program = program_from_sympy([X, Y, Z], [sp.Piecewise((X * Y, test), (Z, True)), test])
    for chunk in (1, 2, 100):
        kernel = compile_program(program, chunk=chunk)
        assert kernel(1.0, 2.0, 3.0) == (2.0, 1.0)
        assert kernel(1.0, 2.0, 2.0) == (2.0, 0.0)
        assert kernel(3.0, 2.0, 5.0) == (5.0, 0.0)


def test_signed_zeros_survive_sign_rules() -> None:
    minus_sum = sp.Add(sp.Mul(-1, X, evaluate=False), sp.Mul(-1, Y, evaluate=False), evaluate=False)
    kernel = compile_program(program_from_sympy([X, Y], [minus_sum]))
    assert math.copysign(1, kernel(1.0, -1.0)) == 1.0
    assert math.copysign(1, kernel(0.0, 0.0)) == -1.0


def test_outputs_that_are_inputs_constants_or_repeated() -> None:
    program = program_from_sympy([X, Y], [[X, 3, Y, X, X * Y, X * Y, -2]])
    for chunk in (None, 1):
        np.testing.assert_array_equal(compile_program(program, chunk=chunk)(2.0, 5.0), [2, 3, 5, 2, 10, 10, -2])


def test_structural_zeros_are_written() -> None:
    base = program_from_sympy([X, Y], [X * Y])
    row = base.outputs[0].rows[0]
    program = Program(base.heads, base.operands, base.atoms, base.inputs, (Output((2, 2), (row, 0), (1, 3)),))
    kernel = compile_program(program)
    out = np.full((2, 2), np.nan)
    np.testing.assert_array_equal(kernel(2.0, 3.0, out=out), [[0, 6], [0, 2]])


def test_large_workspace_is_allocated_and_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMAD_BISECT", "-lane-functions")  # those of the interpreter
    count = 9000
    heads: list[Any] = [sp.Symbol] + [sp.sin] * count + [sp.Mul] * count
    operands: list[tuple[int, ...]] = [(), *[(k,) for k in range(count)]]
    operands += [(count - k, count) for k in range(count)]
    outputs = (Output((count,), tuple(range(count + 1, 2 * count + 1))),)
    program = Program(heads, operands, {0: X}, (Input("x", ()),), outputs)
    kernel = compile_program(program, tier="fast")
    assert kernel.stats.workspace > 8192
    assert "malloc" in kernel.llvm
    want = evaluate(program, outputs[0].rows, {0: 0.5})
    np.testing.assert_array_equal(kernel(0.5), want)


def test_empty_outputs_and_no_inputs() -> None:
    assert compile_program(program_from_sympy([], [sp.pi, [1, 2]]))()[0] == math.pi
    assert compile_program(program_from_sympy([X], [[]]))(1.0).shape == (0,)


def test_equal_rows_are_one_row() -> None:
    machine = Machine()
    x, y = machine.input(0), machine.input(1)
    assert machine.mul(x, y) == machine.mul(y, x)
    assert machine.sub(~x, ~y) == machine.sub(y, x)
    assert machine.materialise(~machine.const(2.0)) == machine.row("const", b"\xc0" + bytes(7))
    assert machine.add(x, machine.const(-0.0)) == x
    assert machine.add(x, machine.const(0.0)) != x  # -0.0 + 0.0 is +0.0
