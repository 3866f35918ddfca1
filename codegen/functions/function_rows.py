"""What a row of the table of intrinsics is, and makers of the common kinds of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import codegen.functions.machine_templates as native
import codegen.functions.reference_functions as reference
import codegen.ir.float_functions as number
from codegen.functions.float_machine import FLOATS
from codegen.functions.scipy_ufuncs import scipy_number
from codegen.ir.program import Head


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
