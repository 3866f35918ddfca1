"""Rows of the table of intrinsics, constructors for the common kinds, and the machine operations on Python floats.

A native lowering takes the machine table and operand references, and returns a reference. A formula that is written
once (`codegen.functions.formula_values`) is a native lowering with `Machine` and a float function with `FLOATS`, the
constructors of the machine table carried out at once on Python floats.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial, reduce
from types import SimpleNamespace
from typing import Any

import codegen.functions.formula_values as formula_values
import codegen.functions.reference_functions as reference
import codegen.ir.float_functions as number
from codegen.errors import LoweringError
from codegen.functions.formula_values import Formula, lowering
from codegen.functions.libraries import scipy_number, scipy_ufunc
from codegen.ir.machine_rows import Machine, Reference
from codegen.ir.operations import HOLDS
from codegen.ir.program import Head
from codegen.records import dataclass

Native = Callable[..., Reference]


def call(symbol: str) -> Native:
    """Return the lowering to one call of a C function of doubles."""
    return lambda machine, *operands: machine.call(symbol, operands)


def fold(operation: str) -> Native:
    """Return the lowering of an n-ary head to a left-associated chain of a binary machine operation."""

    def lower(machine: Machine, *operands: Reference) -> Reference:
        pairwise = getattr(machine, operation)
        return reduce(pairwise, operands)

    return lower


def connective(operation: str, *, negate: bool = False) -> Native:
    """Return the lowering of a logical connective."""

    def lower(machine: Machine, *operands: Reference) -> Reference:
        result = reduce(lambda left, right: machine.logic(operation, left, right), map(machine.truth, operands))
        return machine.invert(result) if negate else result

    return lower


def compare(condition: str) -> Native:
    """Return the lowering of a relational; comparisons with nan are false, except `une`."""
    return lambda machine, left, right: machine.compare(condition, left, right)


def alias(machine: Machine, operand: Reference) -> Reference:
    """The same value."""
    return operand


def unary(operation: str) -> Native:
    """Return the lowering to one unary constructor of the machine table."""
    return lambda machine, operand: getattr(machine, operation)(operand)


def invert(machine: Machine, operand: Reference) -> Reference:
    """Not."""
    return machine.invert(machine.truth(operand))


def implies(machine: Machine, left: Reference, right: Reference) -> Reference:
    """Not left, or right."""
    return machine.logic("or", invert(machine, left), machine.truth(right))


def choose(machine: Machine, test: Reference, first: Reference, second: Reference) -> Reference:
    """ITE."""
    return machine.select(machine.truth(test), first, second)


def piecewise(machine: Machine, *flat: Reference) -> Reference:
    """The first value whose condition holds, else nan: nested selects that evaluate all branches."""
    result = machine.const(math.nan)
    for k in range(len(flat) - 2, -1, -2):
        result = machine.select(machine.truth(flat[k + 1]), flat[k], result)
    return result


def refuse(why: str) -> Native:
    """Return a lowering that always refuses, with the reason."""

    def lower(machine: Machine, *operands: Reference) -> Reference:
        raise LoweringError("a complex value", why=why, do="keep the program real")

    return lower


C_FUNCTIONS: dict[str, Callable[..., float]] = {  # on Python floats, by the symbol that kernels call
    "exp": number.exp, "exp2": number.exp2, "expm1": number.expm1, "log": number.log, "log2": number.log2,
    "log10": number.log10, "log1p": number.log1p, "pow": number.power, "hypot": number.hypot, "cbrt": math.cbrt,
    "llvm.sin.f64": number.sin, "llvm.cos.f64": number.cos, "tan": number.tan, "asin": number.asin,
    "acos": number.acos, "atan": math.atan, "atan2": math.atan2, "sinh": number.sinh, "cosh": number.cosh,
    "tanh": math.tanh, "asinh": math.asinh, "acosh": number.acosh, "atanh": number.atanh,
    "erf": math.erf, "erfc": math.erfc, "tgamma": number.gamma, "lgamma": number.lgamma, "fmod": number.fmod,
    "llvm.copysign.f64": math.copysign, "llvm.floor.f64": number.floor, "llvm.ceil.f64": number.ceiling,
    "llvm.trunc.f64": number.trunc, "llvm.rint.f64": number.rint,
}  # fmt: skip


def _called(symbol: str, arguments: Sequence[float]) -> float:
    """A function of the C library or of SciPy, by the symbol that kernels use."""
    if not symbol.startswith("scipy."):
        return C_FUNCTIONS[symbol](*arguments)
    _, name, _, output = symbol.split(".")
    value = scipy_ufunc(name)(*arguments)
    return float(value[int(output)] if isinstance(value, tuple) else value)


FLOATS = SimpleNamespace(  # the constructors that formulas use, on floats and truth values; every number is known
    const=lambda value: value,
    constant=lambda value: value,
    add=operator.add,
    sub=operator.sub,
    mul=operator.mul,
    div=number.divide,
    negate=operator.neg,
    abs=abs,
    sqrt=number.sqrt,
    reciprocal=partial(number.divide, 1.0),
    maximum=number.maximum,
    call=_called,
    compare=lambda condition, a, b: HOLDS[condition](a, b),
    logic=lambda operation, a, b: a & b if operation == "and" else a | b,
    select=lambda test, a, b: a if test else b,
)


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """One row: a head's native lowering, its float function, its high-precision function, and the bound in ULP."""

    head: Head
    native: Callable[..., int]
    number: Callable[..., Any]
    reference: Callable[..., Any]
    ulp: float = 1.0
    parity: str = ""  # "odd": f(-u) = -f(u), "even": f(-u) = f(u), bit for bit
    truth: bool = False  # takes truth values as they are (others take them as 0 and 1)


def scipy(head: Head, name: str, exact: Callable[..., Any], ulp: float = 8.0, output: int | None = None) -> Intrinsic:
    """One row of a ufunc of SciPy: of one of its results, if it has several."""
    native = lowering(lambda *operands: formula_values.scipy(name, *operands, output=output or 0))
    return Intrinsic(head, native, scipy_number(name, output), reference.real(exact), ulp)


def libm(head: Head, symbol: str, exact: Callable[..., Any], ulp: float = 1.0, parity: str = "") -> Intrinsic:
    """One row of a function of the C library."""
    return Intrinsic(head, call(symbol), C_FUNCTIONS[symbol], reference.real(exact), ulp, parity)


def written(head: Head, formula: Formula, exact: Callable[..., Any], ulp: float = 8.0, parity: str = "") -> Intrinsic:
    """A row whose native lowering and float function are the same formula."""
    return Intrinsic(head, lowering(formula), on_floats(formula), reference.real(exact), ulp, parity)


def reciprocal(head: Head, of: str, exact: Callable[..., Any], ulp: float = 2.0, parity: str = "") -> Intrinsic:
    """One row of 1/f(u)."""
    return written(head, lambda u: formula_values.reciprocal(u.call(of)), exact, ulp, parity)


def inverse(head: Head, of: str, exact: Callable[..., Any], ulp: float = 2.0, parity: str = "") -> Intrinsic:
    """One row of f(1/u)."""
    return written(head, lambda u: formula_values.reciprocal(u).call(of), exact, ulp, parity)


def on_floats(formula: Formula) -> Callable[..., Any]:
    """Return a formula as a function of floats.

    >>> on_floats(lambda u: 1.0 / u)(-0.0)
    -inf
    """
    return partial(lowering(formula), FLOATS)
