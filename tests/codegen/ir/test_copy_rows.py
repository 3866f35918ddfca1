"""Copies of rows against the rows: the same values, no aliases, and each commutative pair once."""

from __future__ import annotations

from random import Random

import pytest
import sympy as sp

from codegen.evaluation.interpret import evaluate
from codegen.expressions.sympy_in import program_from_sympy
from codegen.heads import Alias
from codegen.ir.body_parts import Wiring
from codegen.ir.copy_rows import copied, program_over
from codegen.ir.program import Input, Output, Program
from codegen.ir.region import Gather, Result
from codegen.ir.row_table import COMMUTATIVE, RowTable
from codegen.ir.tables import Affine

HEADS = [sp.Add, sp.Mul, sp.Max, sp.Min, sp.Pow, sp.sin, Alias, sp.atan2]
ONE = (sp.sin, Alias)


def random_program(seed: int, count: int = 60) -> Program:
    """Rows in any order of operands, equal ones too."""
    random = Random(seed)
    heads: list[type[sp.Basic]] = [sp.Symbol] * 3 + [sp.Integer]
    operands: list[tuple[int, ...]] = [()] * 4
    while len(heads) < count:
        heads.append(random.choice(HEADS))
        operands.append(tuple(random.randrange(len(operands)) for _ in range(1 if heads[-1] in ONE else 2)))
    atoms: dict[int, sp.Basic] = {**{k: sp.Symbol(f"x{k}") for k in range(3)}, 3: sp.Integer(2)}
    inputs = tuple(Input(f"x{k}", ()) for k in range(3))
    return Program(heads, operands, atoms, inputs, tuple(Output((), (row,)) for row in range(count - 5, count)))


@pytest.mark.parametrize("seed", range(20))
def test_a_copy_has_the_same_values(seed: int) -> None:
    program, table = random_program(seed), RowTable()
    wanted = [output.rows[0] for output in program.outputs]
    turned = {row: table.leaf(program.atoms[row]) for row in (2, 1, 0)}  # so that pairs stand the other way round
    found = copied(program, wanted, table, dict(turned))
    numbers = {0: 0.3, 1: 1.7, 2: 0.6}
    given = {turned[row]: number for row, number in numbers.items()}
    assert repr(evaluate(table, found, given)) == repr(evaluate(program, wanted, numbers))
    assert Alias not in table.heads
    rows = list(zip(table.heads, table.operands, strict=True))[4:]
    assert len(set(rows)) == len(rows)
    assert all(parts == tuple(sorted(parts)) for head, parts in rows if head in COMMUTATIVE)


def test_a_program_over_rows_reads_them_and_nothing_behind_them() -> None:
    x, y = sp.symbols("x y")
    table = RowTable()
    a, b = table.leaf(x), table.leaf(y)
    product = table.row(sp.Mul, (a, b))
    root = table.row(sp.sin, (product,))
    body, used = program_over(table, [a, b, product], [root, b])
    assert used == [1, 2]
    assert evaluate(body, [output.rows[0] for output in body.outputs], {0: 5.0, 1: 0.0}) == [0.0, 5.0]


def test_deep_rows_are_copied_without_recursion() -> None:
    table = RowTable()
    row = table.leaf(sp.Symbol("x"))
    for _ in range(100_000):
        row = table.row(sp.sin, (row,))
    copy = RowTable()
    assert copied(table, [row], copy, {}) == [row]
    assert copy.operands == table.operands


def test_a_body_whose_slots_come_in_another_order_is_written_anew() -> None:
    x, y = sp.symbols("x y")
    body = program_from_sympy([x, y], [x - 2 * y])
    gathers = {1: Gather(0, Affine(0, 1, 3)), 0: Gather(1, Affine(0, 1, 3))}
    result = Result(0, 2, Affine(0, 1, 3), "store")
    made = Wiring(body, gathers, {}, [(0, result)]).region(3, "")
    assert made.gathers == tuple(gathers.values())
    assert evaluate(made.body, [made.body.outputs[0].rows[0]], {0: 1.0, 1: 5.0}) == [3.0]  # slot 0 has y
    same = Wiring(body, dict(sorted(gathers.items())), {}, [(0, result)]).region(3, "")
    assert same.body is body
