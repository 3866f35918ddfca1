"""The interpreter: incremental, deep, and the same numbers as the kernel and as SymPy."""

from __future__ import annotations

import math
from typing import Any

import pytest
import sympy as sp
from mpmath import mp

from codegen import (
    ArgumentError,
    LoweringError,
    Program,
    UnboundSymbolError,
    compile_program,
    evaluate,
    program_from_sympy,
)
from codegen.errors import LimitError
from codegen.functions.intrinsics import INTRINSICS
from codegen.ir.float_functions import divide
from codegen.special_heads import jacobi_am

X, Y = sp.symbols("x y", real=True)


def test_agrees_with_sympy_and_with_the_kernel() -> None:
    expression = sp.sin(X) ** 3 / (1 + Y**2) + sp.exp(-X * Y) * sp.sqrt(Y) - sp.pi / 7
    program = program_from_sympy([X, Y], [expression])
    row = program.outputs[0].rows[0]
    want = float(expression.evalf(30, subs={X: sp.Rational(0.7), Y: sp.Rational(1.9)}))
    assert evaluate(program, [row], {0: 0.7, 1: 1.9})[0] == pytest.approx(want, rel=1e-15)
    assert compile_program(program)(0.7, 1.9) == pytest.approx(want, rel=1e-15)
    (precise,) = evaluate(program, [row], {0: mp.mpf(0.7), 1: mp.mpf(1.9)}, "reference", 40)
    exact = expression.evalf(40, subs={X: sp.Rational(0.7), Y: sp.Rational(1.9)})
    assert abs(sp.Float(precise, 40) - exact) < sp.Float("1e-37")


class Watched(list[Any]):
    """A column that counts how often it is read."""

    reads = 0

    def __getitem__(self, index: Any) -> Any:
        self.reads += 1
        return super().__getitem__(index)


def test_only_new_rows_are_visited() -> None:
    expression: Any = X
    for _ in range(1000):
        expression = sp.sin(expression, evaluate=False)
    program = program_from_sympy([X], [expression])
    values: dict[int, Any] = {0: 0.5}
    evaluate(program, [1000], values)
    assert len(values) == 1001
    grown = program_from_sympy([X], [sp.cos(expression, evaluate=False)])
    watched = Watched(grown.operands)

    class View:
        heads, operands, atoms = grown.heads, watched, grown.atoms

    (result,) = evaluate(View(), [1001], values)
    assert result == math.cos(values[1000])
    assert watched.reads <= 4


def test_a_chain_of_a_million_rows() -> None:
    heads: list[Any] = [sp.Symbol] + [sp.sin, sp.Abs] * 500_000
    operands: list[tuple[int, ...]] = [(), *[(k,) for k in range(1_000_000)]]
    chain = Program(heads, operands, {0: X}, (), ())
    (value,) = evaluate(chain, [1_000_000], {0: 1.0})
    assert 0 < value < 0.01  # the iteration of sin decays like sqrt(3/n)
    assert value == pytest.approx(math.sqrt(3 / 500_000), rel=1e-2)


def test_piecewise_and_errors() -> None:
    program = program_from_sympy([X], [sp.Piecewise((X, X < 0), (2 * X, X < 1))])
    row = program.outputs[0].rows[0]
    assert [evaluate(program, [row], {0: value})[0] for value in (-1.0, 0.5)] == [-1.0, 1.0]
    assert math.isnan(evaluate(program, [row], {0: 5.0})[0])
    with pytest.raises(UnboundSymbolError, match="symbol x"):
        evaluate(program, [row], {})
    with pytest.raises(ArgumentError, match="arithmetic"):
        evaluate(program, [row], {0: 1.0}, "float32")
    unknown = program_from_sympy([X], [sp.fibonacci(X)])
    for arithmetic in ("float64", "reference"):
        with pytest.raises(LoweringError, match="head fibonacci"):
            evaluate(unknown, [1], {0: 1.0}, arithmetic)


def test_a_number_that_would_take_hours_is_refused() -> None:
    program = program_from_sympy([X], [sp.exp(X), sp.sin(sp.exp(X))])
    rows = [row for output in program.outputs for row in output.rows]
    with pytest.raises(LimitError, match="sin of a number beyond"):
        evaluate(program, rows, {0: mp.mpf("1e30")}, "reference")
    assert evaluate(program, rows[:1], {0: mp.mpf("1e30")}, "reference")[0] > 0


def test_the_amplitude_is_real_far_out() -> None:
    assert mp.isfinite(INTRINSICS[jacobi_am].reference(mp.mpf(1e10), mp.mpf(0.5)))


@pytest.mark.parametrize("base", [4.0, 0.0, -0.0])
def test_a_power_may_be_given_without_its_base(base: float) -> None:
    """A quotient needs the base; where only the power has a value, it is a product."""
    x, y = sp.symbols("x y")
    program = program_from_sympy([x, y], [x / y])
    (wanted,) = program.outputs[0].rows
    power = program.heads.index(sp.Pow)
    inverse = divide(1.0, base)
    assert evaluate(program, [wanted], {0: 3.0, power: inverse}) == [3.0 * inverse]
    assert evaluate(program, [wanted], {0: 3.0, 1: base}) == [divide(3.0, base)]
