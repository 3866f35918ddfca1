"""SymPy in: shared and deep expressions, binary form, argument shapes."""

from __future__ import annotations

from typing import Any

import pytest
import sympy as sp

from codegen import ArgumentError, UnboundSymbolError, compile_program, evaluate, program_from_sympy, walk

X, Y, Z = sp.symbols("x y z")


def recorder() -> tuple[list[Any], Any, Any]:
    rows: list[Any] = []

    def leaf(atom: sp.Basic) -> int:
        rows.append(atom)
        return len(rows) - 1

    def node(head: Any, operands: tuple[int, ...]) -> int:
        rows.append((head, operands))
        return len(rows) - 1

    return rows, leaf, node


def test_sharing_tower_is_linear() -> None:
    x = sp.Dummy("x")  # SymPy's cache may give sin(x) of an equal symbol of another test, which is one leaf more
    expression: Any = x
    for _ in range(25):
        expression = sp.Mul(sp.sin(expression), expression, evaluate=False)
    rows, leaf, node = recorder()
    walk([expression], leaf, node)
    assert len(rows) == 51
    program = program_from_sympy([x], [expression])
    assert compile_program(program, fma=False)(0.9) == evaluate(program, program.outputs[0].rows, {0: 0.9})[0]


def test_deep_chain() -> None:
    expression: Any = X
    for _ in range(10_000):
        expression = sp.sin(expression, evaluate=False)
    assert len(program_from_sympy([X], [expression])) == 10_001


def test_binary_form() -> None:
    rows, leaf, node = recorder()
    walk([sp.Add(X, Y, Z, evaluate=False)], leaf, node, binary=True)
    assert [row[1] for row in rows if isinstance(row, tuple)] == [(0, 1), (3, 2)]
    flat = sp.Piecewise((X, X < 0), (Y, X < 1), (Z, True))
    for binary in (False, True):
        rows, leaf, node = recorder()
        walk([flat], leaf, node, binary=binary)
        widths = [len(row[1]) for row in rows if isinstance(row, tuple) and row[0] is sp.Piecewise]
        assert widths == ([4, 4] if binary else [6])


def test_binary_piecewise_without_a_last_true() -> None:
    rows, leaf, node = recorder()
    walk([sp.Piecewise((X, X < 0), (Y, X < 1))], leaf, node, binary=True)
    assert [len(row[1]) for row in rows if isinstance(row, tuple) and row[0] is sp.Piecewise] == [2, 4]


def test_leaves_of_different_kind_stay_apart() -> None:
    program = program_from_sympy([X], [sp.Add(X, sp.Integer(1), sp.Float(1.0), evaluate=False)])
    assert len(program.operands[-1]) == 3
    assert len(set(program.operands[-1])) == 3


def test_shapes_of_arguments_and_results() -> None:
    matrix = sp.Matrix(2, 2, sp.symbols("a:4"))
    program = program_from_sympy([X, [[Y], [Z]], matrix], [[[X, Y], [Z, 1]], matrix.T, sp.Array([X, Y])])
    assert [array.shape for array in program.inputs] == [(), (2, 1), (2, 2)]
    assert [array.shape for array in program.outputs] == [(2, 2), (2, 2), (2,)]


@pytest.mark.parametrize(
    ("args", "expression", "error", "message"),
    [
        ([X], Y, UnboundSymbolError, "symbol y"),
        ([X, X], X, ArgumentError, "distinct"),
        ([X + 1], X, ArgumentError, "distinct symbols"),
        ([[X, [Y]]], X, ArgumentError, "ragged"),
    ],
)
def test_refusals(args: Any, expression: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        program_from_sympy(args, [expression])
