"""Rows of the table of intrinsics: what one is, makers of the common kinds, and the machine table on Python floats.

A template that is written once over a machine is a native lowering with `Machine` and a float function with `FLOATS`,
the constructors of the machine table carried out at once on Python floats.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import codegen.functions.machine_templates as native
import codegen.functions.reference_functions as reference
import codegen.ir.float_functions as float_functions
import codegen.ir.float_functions as number
from codegen.functions.libraries import scipy_number, scipy_ufunc
from codegen.ir.program import Head


class FloatMachine:
    """The constructors that templates use, on floats and truth values."""

    def const(self, value: float) -> float:
        """The number itself."""
        return value

    def constant(self, value: float) -> float:
        """Every number is known."""
        return value

    def add(self, a: float, b: float) -> float:
        """a + b."""
        return a + b

    def sub(self, a: float, b: float) -> float:
        """a - b."""
        return a - b

    def mul(self, a: float, b: float) -> float:
        """a * b."""
        return a * b

    def div(self, a: float, b: float) -> float:
        """IEEE quotient."""
        return float_functions.divide(a, b)

    def negate(self, a: float) -> float:
        """-a."""
        return -a

    def abs(self, a: float) -> float:
        """|a|."""
        return abs(a)

    def sqrt(self, a: float) -> float:
        """Square root, nan below zero."""
        return float_functions.sqrt(a)

    def call(self, symbol: str, arguments: Sequence[float]) -> float:
        """A function of the C library or of SciPy, by the symbol that kernels use."""
        if not symbol.startswith("scipy."):
            return _CALLS[symbol](*arguments)
        _, name, _, output = symbol.split(".")
        value = scipy_ufunc(name)(*arguments)
        return float(value[int(output)] if isinstance(value, tuple) else value)

    def compare(self, condition: str, a: float, b: float) -> bool:
        """Ordered comparison."""
        return bool(_CONDITIONS[condition](a, b))

    def logic(self, operation: str, a: bool, b: bool) -> bool:
        """and, or."""
        return a and b if operation == "and" else a or b

    def select(self, test: bool, a: float, b: float) -> float:
        """a where the test holds, else b."""
        return a if test else b


_CONDITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "olt": operator.lt, "ole": operator.le, "ogt": operator.gt, "oge": operator.ge, "oeq": operator.eq,
}  # fmt: skip
_CALLS: dict[str, Callable[..., float]] = {
    "llvm.sin.f64": float_functions.sin,
    "llvm.cos.f64": float_functions.cos,
    "llvm.floor.f64": float_functions.floor,
    "exp": float_functions.exp,
    "expm1": float_functions.expm1,
    "log": float_functions.log,
    "log1p": float_functions.log1p,
    "pow": float_functions.power,
    "hypot": float_functions.hypot,
    "atanh": float_functions.atanh,
    "tgamma": float_functions.gamma,
    "lgamma": float_functions.total(math.lgamma, pole=lambda u: math.inf),
}
FLOATS = FloatMachine()


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
    """One row whose native lowering and float function are the same SciPy ufunc."""
    lowering = native.scipy(name, output or 0)
    return Intrinsic(head, lowering, scipy_number(name, output), reference.real(exact), ulp)


def libm(head: Head, symbol: str, function: Callable[..., float], exact: Callable[..., Any], ulp: float = 1.0,
          parity: str = "") -> Intrinsic:  # fmt: skip
    return Intrinsic(head, native.call(symbol), function, reference.real(exact), ulp, parity)


def reciprocal(head: Head, of: str, function: Callable[..., float], exact: Callable[..., Any], ulp: float = 2.0,
                parity: str = "") -> Intrinsic:  # fmt: skip
    lowering = native.reciprocal_of(native.call(of))
    return Intrinsic(head, lowering, number.reciprocal_of(function), reference.real(exact), ulp, parity)


def inverse(head: Head, of: str, function: Callable[..., float], exact: Callable[..., Any], ulp: float = 2.0,
             parity: str = "") -> Intrinsic:  # fmt: skip
    lowering = native.of_reciprocal(native.call(of))
    return Intrinsic(head, lowering, number.of_reciprocal(function), reference.real(exact), ulp, parity)


def written(head: Head, template: Callable[..., Any], exact: Callable[..., Any], ulp: float = 8.0) -> Intrinsic:
    """One row whose native lowering and float function are one template over a machine."""
    return Intrinsic(head, template, partial(template, FLOATS), reference.real(exact), ulp)
