"""Constants: exact until rounded once; Floats as they would run."""

from __future__ import annotations

import math
import threading
from typing import Any

import pytest
import sympy as sp
from mpmath import mp

from codegen import Input, LoweringError, Output, Program, UnboundSymbolError, compile_program
from codegen.evaluation.constant_folding import fold_constants, leaf_constant, plain_number, to_float
from codegen.heads import negative_zero


def folded(*rows: Any) -> Any:
    """Value of the last of rows given as atoms or (head, operand...)."""
    heads: list[Any] = []
    operands: list[tuple[int, ...]] = []
    atoms: dict[int, sp.Basic] = {}
    for row in rows:
        if isinstance(row, tuple):
            heads.append(row[0])
            operands.append(row[1:])
        else:
            atoms[len(heads)] = row
            heads.append(type(row))
            operands.append(())
    outputs = (Output((), (len(heads) - 1,)),)
    program = Program(heads, operands, atoms, (), outputs)
    value = fold_constants(program, range(len(heads)), 0)[len(heads) - 1]
    assert repr(compile_program(program, tier="fast")()) == repr(float(value))  # the kernel stores the same number
    return value


@pytest.mark.parametrize(
    ("rows", "exact"),
    [
        ([sp.pi, sp.Integer(6), sp.Integer(-1), (sp.Pow, 1, 2), (sp.Mul, 0, 3)], lambda: mp.pi / 6),
        ([sp.pi, sp.Rational(2, 3), (sp.Mul, 0, 1)], lambda: 2 * mp.pi / 3),
        ([sp.Integer(2), sp.Rational(1, 2), (sp.Pow, 0, 1), sp.Rational(1, 3), (sp.Mul, 2, 3)], lambda: mp.sqrt(2) / 3),
        ([sp.Rational(1, 3), (sp.gamma, 0)], lambda: mp.gamma(mp.mpf(1) / 3)),
        ([sp.pi, sp.Integer(5), (sp.Pow, 0, 1)], lambda: mp.pi**5),
        ([sp.pi, sp.Rational(1, 2), (sp.Pow, 0, 1), (sp.Mul, 2, 1)], lambda: mp.sqrt(mp.pi) / 2),
        ([sp.E, sp.pi, (sp.Pow, 0, 1), sp.pi, (sp.Mul, 3, 0), sp.Integer(-1), (sp.Mul, 5, 4), (sp.Add, 2, 6)],
         lambda: mp.e**mp.pi - mp.pi * mp.e),
        ([sp.Rational(1, 10), sp.Rational(2, 10), (sp.Add, 0, 1)], lambda: mp.mpf(3) / 10),
    ],
)  # fmt: skip
def test_exact_constants_are_rounded_once(rows: list[Any], exact: Any) -> None:
    with mp.workdps(60):
        assert folded(*rows) == float(exact())


def test_floats_are_folded_as_they_run() -> None:
    assert folded(sp.Float(0.1), sp.Float(0.2), (sp.Add, 0, 1)) == 0.1 + 0.2
    assert folded(sp.Float(1e300), (sp.Mul, 0, 0)) == math.inf  # sympy.Float would hold 1e600
    assert folded(sp.Float(1e-300), (sp.Mul, 0, 0)) == 0.0
    assert folded(sp.pi, sp.Float(2.0), (sp.Mul, 0, 1)) == math.pi * 2.0


def test_round_off_of_an_exact_zero_is_zero() -> None:
    assert folded(sp.pi, (sp.sin, 0)) == 0.0
    assert folded(sp.Integer(-200), (sp.exp, 0)) == math.exp(-200)  # small, but not round-off


@pytest.mark.parametrize(
    "rows",
    [
        [sp.Integer(9), (sp.exp, 0), (sp.exp, 1), (sp.sin, 2)],  # 3519 digits in front of the point, none behind it
        [sp.Integer(200), (sp.exp, 0), (sp.sin, 1)],
        [sp.pi, (sp.sin, 0), sp.Integer(-1), (sp.Pow, 1, 2)],  # 1 / 0
        [sp.pi, sp.Rational(1, 10**80), sp.Integer(-1), (sp.Mul, 0, 2), (sp.Add, 0, 1, 3)],
    ],
    ids=["sin(exp(exp(9)))", "sin(exp(200))", "1/sin(pi)", "pi + 1e-80 - pi"],
)
def test_constants_that_have_lost_their_digits_are_refused_and_not_zero(rows: list[Any]) -> None:
    with pytest.raises(LoweringError, match="100 digits"):
        folded(*rows)


@pytest.mark.parametrize("last", [(sp.sin, 2), (sp.exp, 2), (sp.Pow, 0, 2), (sp.gamma, 2)], ids=str)
def test_functions_of_monstrous_constants_are_refused_at_once(last: Any) -> None:
    with pytest.raises(LoweringError, match="beyond"):
        folded(sp.Integer(9), (sp.Pow, 0, 0), (sp.Pow, 0, 1), last)


def test_special_values() -> None:
    assert folded(sp.oo) == math.inf
    assert folded(-sp.oo) == -math.inf
    assert math.isnan(folded(sp.nan))
    assert math.copysign(1, folded(negative_zero)) == -1
    assert folded(sp.Integer(1), sp.Integer(0), sp.Integer(-1), (sp.Pow, 1, 2), (sp.Mul, 0, 3)) == math.inf
    assert folded(sp.Integer(1), sp.Integer(2), (sp.Lt, 0, 1)) is True


def test_huge_numbers_do_not_run_away() -> None:
    with mp.workdps(60):
        nested = [sp.Integer(9), (sp.Pow, 0, 0), (sp.Pow, 0, 1), (sp.log, 2)]
        assert folded(*nested) == float(9**9 * mp.log(9))
    assert folded(sp.Integer(10) ** 400) == math.inf
    assert folded(sp.Integer(10), sp.Integer(10**9), (sp.Pow, 0, 1)) == math.inf
    assert to_float(leaf_constant(sp.Rational(1, 3 * 10**400))) == 0.0
    big = sp.Integer(7**4000)
    assert folded(big, sp.Integer(-1), (sp.Pow, 0, 1), (sp.Mul, 0, 2)) == 1.0


def test_constants_that_are_no_real_numbers() -> None:
    with pytest.raises(LoweringError, match="real"):
        leaf_constant(sp.I)
    with pytest.raises(LoweringError, match="real"):
        leaf_constant(sp.zoo)
    with pytest.raises(UnboundSymbolError, match="symbol q"):
        leaf_constant(sp.Symbol("q"))
    program = Program([sp.Symbol, sp.Symbol, sp.Add], [(), (), (0, 1)], {0: sp.Symbol("x"), 1: sp.Symbol("q")},
                      (Input("x", ()),), (Output((), (2,)),))  # fmt: skip
    with pytest.raises(UnboundSymbolError, match="q"):
        compile_program(program)


def test_threads_do_not_disturb_the_precision() -> None:
    before = mp.prec
    wrong: list[float] = []

    def work() -> None:
        for _ in range(30):
            rows = [sp.pi, sp.Rational(1, 3), (sp.gamma, 1), (sp.Mul, 0, 2)]
            if folded(*rows) != value:
                wrong.append(1.0)

    value = folded(sp.pi, sp.Rational(1, 3), (sp.gamma, 1), (sp.Mul, 0, 2))
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert mp.prec == before


@pytest.mark.parametrize("digits", [5, 15, 40])
def test_floats_are_the_machine_numbers_next_to_them(digits):
    numbers = [sp.Float("1.234567890123456789012345678901e" + str(power), digits) for power in range(-330, 320, 7)]
    numbers += [sp.Float(value) for value in (5e-324, 2.5e-310, -1.5, 2.0**1023, -(2.0**-1022), 0.0)]
    for number in numbers:
        assert (type(plain_number(number)), plain_number(number)) == (float, float(number))
