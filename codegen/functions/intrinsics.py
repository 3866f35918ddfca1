"""The table of heads: one row per head says how it is lowered natively and evaluated in floats and at high precision.

To support a new head, add one row. `native` is a lowering over the machine table (a template, a C function, a SciPy
ufunc), `number` a function of Python floats with NumPy's conventions for nan and inf, `reference` the same on mpmath
numbers, and `ulp` the error bound of the native value against the reference that the tests hold.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import sympy as sp
from mpmath import mp
from sympy.codegen import cfunctions

import codegen.functions.elementary_formulas as formulas
import codegen.functions.function_rows as native
import codegen.functions.reference_functions as reference
import codegen.heads as heads
import codegen.ir.float_functions as number
from codegen.errors import LoweringError
from codegen.functions.formula_values import lowering
from codegen.functions.function_rows import Intrinsic, inverse, libm, reciprocal, written
from codegen.functions.powers import lower_power
from codegen.functions.special_rows import SPECIAL
from codegen.ir.program import Head


def supports(head: Head) -> bool:
    """Whether a head has a row in the table.

    >>> supports(sp.tanh), supports(sp.Function("f"))
    (True, False)
    """
    return head in INTRINSICS


def intrinsic(head: Head) -> Intrinsic:
    """Return the row of a head; LoweringError names a head that has none.

    >>> intrinsic(sp.exp).number(0.0)
    1.0
    """
    row = INTRINSICS.get(head)
    if row is None:
        raise LoweringError(
            f"head {head.__name__}",
            why="it has no row in the table of intrinsics",
            do="rewrite it in supported functions, or add a row to codegen.functions.intrinsics",
        )
    return row


def _relational(head: Head, condition: str, function: Callable[[Any, Any], bool]) -> Intrinsic:
    return Intrinsic(head, native.compare(condition), function, function, 0.0)


def _truth(head: Head, lowering: Callable[..., int], function: Callable[..., Any]) -> Intrinsic:
    return Intrinsic(head, lowering, function, function, 0.0, truth=True)


def _identity(value: Any, *others: Any) -> Any:
    return value  # the others are what a custom derivative refers to


def _complex(*values: Any) -> Any:
    raise LoweringError("a complex value", why="kernels are real float64", do="keep the program real")


ARITHMETIC = [
    Intrinsic(sp.Add, native.fold("add"), number.add, number.add, 0.5),
    Intrinsic(sp.Mul, native.fold("mul"), number.multiply, number.multiply, 0.5),
    Intrinsic(sp.Pow, lower_power, number.power, reference.power, 2.0),
    Intrinsic(heads.Alias, native.alias, _identity, _identity, 0.0, truth=True),
    Intrinsic(sp.Abs, native.unary("abs"), abs, abs, 0.0, "even"),
    Intrinsic(sp.sign, lowering(formulas.sign), number.sign, mp.sign, 0.0, "odd"),
    Intrinsic(sp.Max, native.fold("maximum"), number.maximum, reference.maximum, 0.0),
    Intrinsic(sp.Min, native.fold("minimum"), number.minimum, reference.minimum, 0.0),
    libm(sp.floor, "llvm.floor.f64", reference.rounded(mp.floor), 0.0),
    libm(sp.ceiling, "llvm.ceil.f64", reference.rounded(mp.ceil), 0.0),
    libm(heads.trunc, "llvm.trunc.f64", reference.rounded(reference.trunc), 0.0, "odd"),
    libm(heads.rint, "llvm.rint.f64", reference.rounded(mp.nint), 0.0, "odd"),
    written(sp.frac, formulas.frac, lambda u: u - mp.floor(u), 0.5),
    libm(heads.fmod, "fmod", reference.fmod, 0.0),
    libm(heads.copysign, "llvm.copysign.f64", reference.copysign, 0.0),
    Intrinsic(sp.Mod, lowering(formulas.modulo), number.modulo, reference.modulo, 0.5),
    written(sp.Heaviside, formulas.heaviside, reference.heaviside, 0.0),
    Intrinsic(cfunctions.Sqrt, native.unary("sqrt"), number.sqrt, reference.real(mp.sqrt), 0.5),
    Intrinsic(cfunctions.fma, native.multiply_add, lambda a, b, c: a * b + c, lambda a, b, c: a * b + c, 1.0),
    libm(heads.cbrt, "cbrt", reference.cbrt, 4.0, "odd"),
    libm(heads.hypot, "hypot", mp.hypot),
    written(heads.one_minus_square, formulas.one_minus_square, lambda u: (1 - u) * (1 + u), 1.5, "even"),
    written(heads.direction_cosine, formulas.direction_cosine, lambda u, v: reference.divide(u, mp.hypot(u, v)), 2.0),
]

ELEMENTARY = [
    libm(sp.exp, "exp", mp.exp),
    libm(heads.exp2, "exp2", lambda u: mp.power(2, u)),
    libm(heads.expm1, "expm1", mp.expm1, 1.5),
    libm(sp.log, "log", mp.log),
    libm(heads.log2, "log2", lambda u: mp.log(u, 2)),
    libm(heads.log10, "log10", lambda u: mp.log(u, 10), 2.0),
    libm(heads.log1p, "log1p", mp.log1p, 1.5),
    libm(sp.sin, "llvm.sin.f64", mp.sin, 1.0, "odd"),
    libm(sp.cos, "llvm.cos.f64", mp.cos, 1.0, "even"),
    libm(sp.tan, "tan", mp.tan, 1.0, "odd"),
    reciprocal(sp.cot, "tan", mp.cot, 2.0, "odd"),
    reciprocal(sp.sec, "llvm.cos.f64", mp.sec, 2.0, "even"),
    reciprocal(sp.csc, "llvm.sin.f64", mp.csc, 2.0, "odd"),
    libm(sp.sinh, "sinh", mp.sinh, 2.5, "odd"),
    libm(sp.cosh, "cosh", mp.cosh, 2.0, "even"),
    Intrinsic(sp.tanh, lowering(formulas.tanh), math.tanh, reference.real(mp.tanh), 2.5, "odd"),
    reciprocal(sp.coth, "tanh", mp.coth, 3.5, "odd"),
    written(sp.sech, formulas.sech, mp.sech, 4.0, "even"),
    written(sp.csch, formulas.csch, mp.csch, 4.0, "odd"),
    libm(sp.asin, "asin", mp.asin, 1.0, "odd"),
    libm(sp.acos, "acos", mp.acos),
    libm(sp.atan, "atan", mp.atan, 1.0, "odd"),
    inverse(sp.acot, "atan", mp.acot, 2.0, "odd"),
    inverse(sp.asec, "acos", mp.asec, 8.0),
    inverse(sp.acsc, "asin", mp.acsc, 8.0, "odd"),
    libm(sp.asinh, "asinh", mp.asinh, 2.0, "odd"),
    libm(sp.acosh, "acosh", mp.acosh, 2.5),
    libm(sp.atanh, "atanh", mp.atanh, 2.5, "odd"),
    inverse(sp.acoth, "atanh", mp.acoth, 8.0, "odd"),
    inverse(sp.asech, "acosh", mp.asech, 16.0),
    inverse(sp.acsch, "asinh", mp.acsch, 3.0, "odd"),
    libm(sp.atan2, "atan2", mp.atan2),
    written(sp.sinc, formulas.sinc, reference.sinc, 2.0, "even"),
    written(heads.expit, formulas.expit, lambda u: 1 / (1 + mp.exp(-u)), 2.5),
    written(heads.softplus, formulas.softplus, reference.softplus, 2.5),
    written(heads.log_expit, formulas.log_expit, lambda u: -reference.softplus(-u), 2.5),
    written(heads.logaddexp, formulas.logaddexp, reference.logaddexp, 3.0),
    written(heads.xlogy, formulas.xlogy, reference.xlogy, 1.5),
]

LOGIC = [
    _relational(sp.Lt, "olt", operator.lt),
    _relational(sp.Le, "ole", operator.le),
    _relational(sp.Gt, "ogt", operator.gt),
    _relational(sp.Ge, "oge", operator.ge),
    _relational(sp.Eq, "oeq", operator.eq),
    _relational(sp.Ne, "une", operator.ne),
    _truth(sp.And, native.connective("and"), lambda *tests: all(tests)),
    _truth(sp.Or, native.connective("or"), lambda *tests: any(tests)),
    _truth(sp.Xor, native.connective("xor"), lambda *tests: sum(map(bool, tests)) % 2 == 1),
    _truth(sp.Nand, native.connective("and", negate=True), lambda *tests: not all(tests)),
    _truth(sp.Nor, native.connective("or", negate=True), lambda *tests: not any(tests)),
    _truth(sp.Not, native.invert, operator.not_),
    _truth(sp.Implies, native.implies, lambda left, right: not left or bool(right)),
    _truth(sp.ITE, native.choose, lambda test, first, second: first if test else second),
    Intrinsic(sp.Piecewise, native.piecewise, number.piecewise, reference.piecewise, 0.0, truth=True),
    Intrinsic(sp.re, native.alias, _identity, _identity, 0.0),
    Intrinsic(sp.conjugate, native.alias, _identity, _identity, 0.0),
    Intrinsic(sp.im, native.refuse("im() asks for a complex number"), _complex, _complex, 0.0),
]

INTRINSICS: dict[Head, Intrinsic] = {row.head: row for row in (*ARITHMETIC, *ELEMENTARY, *SPECIAL, *LOGIC)}
