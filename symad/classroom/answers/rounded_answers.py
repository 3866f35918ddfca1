"""Decimal answers: right if an exact number within half a unit of the last digit makes the answer right.

Every decimal number is an unknown. Newton's method at random points finds the numbers that make the two sides equal.
The answer is right if each number is near enough, and the sides then agree at other points, too.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sympy as sp
from mpmath import mp

from symad.classroom.equality.hyperdual import constant
from symad.classroom.equality.independent_values import DIGITS, IndependentValues, UnknownValueError

_MOST_DECIMALS = 4
_TRIES = 12  # random points until enough have values
_CHECKED = 3  # points in addition to those of Newton's method
_AGREED = mp.mpf(10) ** -25

Decimals = Mapping[sp.Symbol, tuple[sp.Rational, sp.Rational]]


def significant_digits(text: str) -> int:
    """Return the number of significant digits of a decimal number.

    >>> significant_digits("0.0540"), significant_digits("12.5")
    (3, 3)
    """
    return max(len(text.lower().partition("e")[0].replace(".", "").lstrip("0")), 1)


def is_rounded_from(written: sp.Expr, expected: sp.Expr, decimals: Decimals, fewest: int) -> bool:
    """Whether an answer is the expected expression with its decimal numbers rounded to enough digits, or exact.

    >>> decimal = sp.Dummy("0.54")
    >>> is_rounded_from(decimal, sp.cos(1), {decimal: (sp.Rational("0.54"), sp.Rational("0.005"))}, 2)
    True
    """
    written = written.xreplace({d: value for d, (value, _) in decimals.items() if significant_digits(d.name) < fewest})
    unknowns = [decimal for decimal in decimals if written.has(decimal)]
    if not 0 < len(unknowns) <= _MOST_DECIMALS:
        return False
    with mp.workdps(DIGITS):
        samples = _samples(written, expected, unknowns, decimals)
        if len(samples) < len(unknowns) + (_CHECKED if written.free_symbols - set(unknowns) else 0):
            return False
        start = [_float(decimals[unknown][0]) for unknown in unknowns]
        try:
            exact = mp.findroot(
                lambda *at: [_gap(written, unknowns, at, sample) for sample in samples[: len(unknowns)]], start
            )
        except (ArithmeticError, ValueError, UnknownValueError):
            return False
        sizes = (_float(decimals[unknown][1]) * (1 + _AGREED) for unknown in unknowns)
        near = all(abs(value - at) <= size for value, at, size in zip(exact, start, sizes, strict=True))
        return near and all(abs(_gap(written, unknowns, exact, sample)) <= _AGREED for sample in samples)


Sample = tuple[dict[sp.Basic, Any], Any]


def _samples(written: sp.Expr, expected: sp.Expr, unknowns: Sequence[sp.Symbol], decimals: Decimals) -> list[Sample]:
    """Return random points with the expected values; one point if there are no other names."""
    names = sorted((written.free_symbols | expected.free_symbols) - set(unknowns), key=str)
    source, samples = random.Random(5), list[Sample]()
    for attempt in range(_TRIES if names else 1):
        low, high = (0.2, 3.0) if attempt % 3 else (-2.0, 2.0)
        known: dict[sp.Basic, Any] = {name: constant(source.uniform(low, high)) for name in names}
        started = {unknown: constant(_float(decimals[unknown][0])) for unknown in unknowns}
        try:
            right = IndependentValues(known).of(expected)
            left = IndependentValues({**known, **started}).of(written)
        except (UnknownValueError, ArithmeticError, ValueError, TypeError):
            continue
        if right.is_real and left.is_real:
            samples.append((known, right.real))
    return samples


def _gap(written: sp.Expr, unknowns: Sequence[sp.Symbol], at: Iterable[Any], sample: Sample) -> Any:
    """Return the relative difference at a point."""
    known, expected = sample
    value = IndependentValues({**known, **dict(zip(unknowns, map(constant, at), strict=True))}).of(written)
    return (value.real - expected) / max(abs(expected), mp.mpf(10) ** -30)


def _float(number: sp.Rational) -> Any:
    return mp.mpf(int(number.p)) / int(number.q)
