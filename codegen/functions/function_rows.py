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
from types import SimpleNamespace
from typing import Any

import codegen.functions.machine_templates as native
import codegen.functions.reference_functions as reference
import codegen.ir.float_functions as number
from codegen.functions.libraries import scipy_number, scipy_ufunc
from codegen.ir.program import Head

_CONDITIONS: dict[str, Callable[[Any, Any], Any]] = {
    "olt": operator.lt, "ole": operator.le, "ogt": operator.gt, "oge": operator.ge, "oeq": operator.eq,
}  # fmt: skip
_CALLS: dict[str, Callable[..., float]] = {
    "llvm.sin.f64": number.sin,
    "llvm.cos.f64": number.cos,
    "llvm.floor.f64": number.floor,
    "exp": number.exp,
    "expm1": number.expm1,
    "log": number.log,
    "log1p": number.log1p,
    "pow": number.power,
    "hypot": number.hypot,
    "atanh": number.atanh,
    "tgamma": number.gamma,
    "lgamma": number.total(math.lgamma, pole=lambda u: math.inf),
}


def _called(symbol: str, arguments: Sequence[float]) -> float:
    """A function of the C library or of SciPy, by the symbol that kernels use."""
    if not symbol.startswith("scipy."):
        return _CALLS[symbol](*arguments)
    _, name, _, output = symbol.split(".")
    value = scipy_ufunc(name)(*arguments)
    return float(value[int(output)] if isinstance(value, tuple) else value)


FLOATS = SimpleNamespace(  # the constructors that templates use, on floats and truth values; every number is known
    const=lambda value: value,
    constant=lambda value: value,
    add=operator.add,
    sub=operator.sub,
    mul=operator.mul,
    div=number.divide,
    negate=operator.neg,
    abs=abs,
    sqrt=number.sqrt,
    call=_called,
    compare=lambda condition, a, b: bool(_CONDITIONS[condition](a, b)),
    logic=lambda operation, a, b: a and b if operation == "and" else a or b,
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
