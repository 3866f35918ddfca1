"""Enclosures: balls that contain the exact values of rows (python-flint, extra "rigorous").

Arb carries out every operation on midpoints with an error bound, so a result is a proof: the exact number is inside.
More bits make the balls smaller, except for comparisons of equal numbers that are not known exactly, exact zeros behind
cancellation, and points outside a domain: there the ball stays wide or is nan.

Distribution functions: the means of logarithms are truncated sums, whose error is at most the next term times a
geometric series. An inverse is a computed number; the distribution function is enclosed on both sides of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from threading import RLock
from typing import Any

import numpy as np
import sympy as sp
from mpmath import mp

import codegen.distribution_heads as d
import codegen.special_heads as s
import symad.tracing.values.containers as containers
from codegen import Kernel
from codegen.evaluation.constant_folding import leaf_constant
from codegen.evaluation.interpret import Arithmetic, Functions, carry_out
from codegen.functions.intrinsics import INTRINSICS
from codegen.functions.reference_functions import precision as working_digits
from codegen.ir.program import Head, Rows, needed
from codegen.matrices.matrix_loops import written_out
from symad.classroom.verification.balls_functions import (
    ARITHMETIC,
    COMPARISONS,
    ELEMENTARY,
    LOGIC,
    Ball,
    as_mpf,
    ball,
    flint,
    whole,
)
from symad.classroom.verification.balls_special import ERROR_FUNCTIONS, GAMMA_FUNCTIONS, SPECIAL
from symad.errors import ArgumentError
from symad.tracing.trace import Trace

_BITS_LEFT = (8, 24, 48)  # of the working precision, which are not in an inverse


def _around_zero(size: Ball) -> Ball:
    return flint().arb(0, size.upper())


def _gamma_integral(power: int, a: Ball, u: Ball) -> Ball:
    """The integral of t**(a-1) exp(u (1-t)) ln(t)**power from 0 to 1. The last terms at least halve."""
    terms = d.gamma_terms(float(u.upper()), flint().ctx.prec)
    total, following = d.gamma_series(power, a, u, terms)
    total += _around_zero(2 * abs(following) / (a + terms) ** (power + 1))
    return (-1) ** power * flint().arb.fac_ui(power) * u.exp() * total


def _whole_moment(power: int, a: Ball, u: Ball) -> Ball:
    """The mean of ln(t/u)**power of the whole gamma distribution, by its cumulants."""
    arb, acb = flint().arb, flint().acb
    cumulants = [a.digamma() - u.log(), *[acb(a).polygamma(acb(k)).real for k in range(1, power)]]
    moments = [arb(1)]
    for n in range(1, power + 1):
        moments.append(sum((math.comb(n - 1, k) * cumulants[k] * moments[n - 1 - k] for k in range(n)), arb(0)))
    return moments[power]


def _gamma_moment(order: Ball, a: Ball, u: Ball) -> Ball:
    low = bool(u <= a or u <= 1)
    if not (a > 0 and u >= 0) or not (low or (u > a and u > 1)):
        return flint().arb.nan()
    n = whole(order)
    with flint().ctx.workprec(flint().ctx.prec + int(6 * float(u.upper())) + 64):
        parts = [_gamma_integral(power, a, u) for power in (0, n)]
        if not low:
            bulk = u.exp() * u ** (-a) * a.gamma()
            parts = [bulk * _whole_moment(power, a, u) - part for power, part in zip((0, n), parts, strict=True)]
        return parts[1] / parts[0] if n else (1 if low else -1) / parts[0]


def _beta_integral(powers: tuple[int, int], a: Ball, b: Ball, u: Ball) -> Ball:
    """The integral of (t/u)**a ((1-t)/(1-u))**b ln(t/u)**first ln((1-t)/(1-u))**second / (t (1-t)) from 0 to u."""
    arb = flint().arb
    first, second = powers
    terms = d.beta_terms(float(b.upper()), second, float(u.upper()), flint().ctx.prec)
    totals = d.beta_series(powers, a, b, u, terms)
    growth = u * (1 + (abs(b) + 1) / (terms + 1))
    if not growth < 1:
        return arb.nan()
    coefficient = (abs(b) + 2).rising(terms) / arb.fac_ui(terms)  # all coefficients of the next power of u, added up
    rest = _around_zero(coefficient * u**terms / (1 - growth) / (a + terms) ** (first + 1))
    shift = -(-u).log1p()
    series = sum((shift**k / arb.fac_ui(k) * (totals[second - k] + rest) for k in range(second + 1)), arb(0))
    return (-1) ** first * arb.fac_ui(first) * arb.fac_ui(second) * (1 - u) ** (-b) * series


def _beta_moment(m: Ball, n: Ball, a: Ball, b: Ball, u: Ball) -> Ball:
    arb = flint().arb
    if not (a > 0 and b > 0 and u >= 0 and u <= 1):
        return arb.nan()
    first, second = whole(m), whole(n)
    top, other = a.max(arb(1)), b.max(arb(1))
    bound = u * (top + other)
    low = bool(bound <= top)
    if not low and not bound > top:
        return arb.nan()
    if not low:
        first, second, a, b, u = second, first, b, a, 1 - u
    lost = float(b.upper()) * math.log2((1 + float(u.upper())) / (1 - float(u.upper())))
    with flint().ctx.workprec(flint().ctx.prec + int(lost) + 16 * second + 128):
        bulk = _beta_integral((0, 0), a, b, u)
        if not first and not second:
            return (1 if low else -1) / bulk
        return _beta_integral((first, second), a, b, u) / bulk


def _inverse(value: Callable[..., Any], distribution: Callable[..., Ball], rising: bool = True) -> Callable[..., Ball]:
    """Return an inverse: a ball around mpmath's number whose ends have values on both sides of p."""

    def enclosure(*operands: Ball) -> Ball:
        arb, bits = flint().arb, flint().ctx.prec
        *shapes, p = operands
        with mp.workprec(bits + 32):
            place = value(*[as_mpf(operand.mid()) for operand in operands])
        if not mp.isfinite(place) or (p.is_exact() and place in (0, 1)):
            return arb.nan() if mp.isnan(place) or not p.is_exact() else _exactly(place)
        middle = _exactly(place)
        for left in _BITS_LEFT:
            radius = abs(middle) * arb(2) ** (left - bits)
            sides = [distribution(*shapes, side) for side in (middle - radius, middle + radius)]
            below, above = sides if rising else sides[::-1]
            if below < p and p < above:
                return arb(middle, radius)
        return arb.nan()

    return enclosure


def _exactly(number: Any) -> Ball:
    arb = flint().arb
    if mp.isinf(number):
        return arb.pos_inf() if number > 0 else arb.neg_inf()
    sign, mantissa, exponent, _ = number._mpf_
    return arb(-int(mantissa) if sign else int(mantissa)) * arb(2) ** exponent


DISTRIBUTIONS: dict[Head, Callable[..., Any]] = {
    d.gamma_moment: _gamma_moment,
    d.beta_moment: _beta_moment,
    d.gammaincinv: _inverse(d.gammaincinv_value, GAMMA_FUNCTIONS[s.gammainc]),
    d.gammainccinv: _inverse(d.gammainccinv_value, GAMMA_FUNCTIONS[s.gammaincc], rising=False),
    d.betaincinv: _inverse(d.betaincinv_value, GAMMA_FUNCTIONS[s.betainc]),
    d.betainccinv: _inverse(d.betainccinv_value, GAMMA_FUNCTIONS[s.betaincc], rising=False),
    d.ndtri_exp: _inverse(d.ndtri_exp_value, ERROR_FUNCTIONS[s.log_ndtr]),
    d.stdtrit: _inverse(d.stdtrit_value, ERROR_FUNCTIONS[s.stdtr]),
}


NUMBERS = {**ARITHMETIC, **ELEMENTARY, **SPECIAL, **DISTRIBUTIONS, **COMPARISONS}
MOST_BITS = 16384
_LOCK = RLock()  # Arb's working precision is global


@contextmanager
def working_bits(bits: int) -> Iterator[None]:
    """Work at a precision of `bits` bits, one thread at a time."""
    with _LOCK, flint().ctx.workprec(bits):
        yield


def enclosures(rows: Rows, wanted: Sequence[int], inputs: Mapping[int, Any], precision: int) -> list[Ball]:
    """Return a ball (`flint.arb`) around the exact value of each wanted row, computed with `precision` bits.

    `rows` is a program or a graph; `inputs` has an exact number or a ball for each input row. A truth value is the ball
    0 or 1, an undecided one contains both. ArgumentError names a head without an enclosure, or the extra if
    python-flint is missing; UnboundSymbolError names an input without a value.

    >>> from symad.tracing.trace import trace
    >>> traced = trace(lambda x: x**0.5, 2.0)
    >>> [root] = enclosures(traced.graph, traced.outputs.flat, {traced.inputs.flat[0]: 2.0}, precision=100)
    >>> print(root)
    [1.41421356237310 +/- 4.96e-15]
    """
    with working_bits(precision):
        functions = Functions(lambda head: lambda *operands: _apply(head, list(operands)))
        values: dict[int, Any] = {row: flint().arb(value) for row, value in inputs.items()}
        carry_out(rows, needed(rows, wanted, values), values, Arithmetic(functions, functions, _leaf))
        return [value if isinstance(value, flint().arb) else ball(value) for value in (values[row] for row in wanted)]


def tight(rows: Rows, wanted: Sequence[int], inputs: Mapping[int, Any], bits: float) -> list[Ball]:
    """Return enclosures with at least `bits` known bits, or as many as the largest precision gives.

    >>> from symad.tracing.trace import trace
    >>> traced = trace(lambda x: (1 + x) - 1, 0.1)
    >>> [difference] = tight(traced.graph, traced.outputs.flat, {traced.inputs.flat[0]: 1e-200}, 100)
    >>> known_bits(difference) > 100
    True
    """
    balls: dict[int, Ball] = {}
    precision = int(bits) + 64
    while open_rows := [row for row in dict.fromkeys(wanted) if row not in balls or known_bits(balls[row]) < bits]:
        balls.update(zip(open_rows, enclosures(rows, open_rows, inputs, precision), strict=True))
        if precision >= max(MOST_BITS, bits + 64):
            break
        precision *= 4
    return [balls[row] for row in wanted]


def known_bits(enclosure: Ball) -> float:
    """Return the number of known leading bits of a ball: infinite for an exact number, -inf for nan.

    >>> known_bits(flint().arb(3)), known_bits(flint().arb("1 +/- 0.1")) < 5, known_bits(flint().arb.nan())
    (inf, True, -inf)
    """
    if enclosure.is_nan():
        return -math.inf
    return math.inf if enclosure.is_exact() else float(enclosure.rel_accuracy_bits())


def results_of(kernel_or_trace: Kernel | Trace) -> tuple[Rows, list[int | None]]:
    """Return the rows of a kernel or a trace, and the row of each result in flat order; None for a zero."""
    if isinstance(kernel_or_trace, Trace):
        return kernel_or_trace.graph, list(kernel_or_trace.outputs.flat)
    if not isinstance(kernel_or_trace, Kernel):
        raise ArgumentError(f"{type(kernel_or_trace).__name__} in place of a kernel or a trace", do="compile it first")
    program = written_out(kernel_or_trace.program)
    results: list[int | None] = []
    for output in program.outputs:
        positions = range(output.size) if output.positions is None else output.positions
        results += map(dict(zip(positions, output.rows, strict=True)).get, range(output.size))
    return program, results


def numbered(kernel_or_trace: Kernel | Trace, numbers: Sequence[Any]) -> dict[int, Any]:
    """Return the number of each input row at a point, given by its flat numbers."""
    rows = kernel_or_trace.inputs.flat if isinstance(kernel_or_trace, Trace) else range(len(numbers))
    return dict(zip(rows, numbers, strict=True))


def flat_floats(values: Any) -> list[float]:
    """Return the numbers of a container in flat order."""
    leaves, _ = containers.flatten(values)
    return [float(number) for leaf in leaves for number in np.asarray(leaf, dtype=float).ravel().tolist()]


def _apply(head: Head, operands: list[Any]) -> Any:
    if head in LOGIC:
        return LOGIC[head](*operands)
    function = NUMBERS.get(head)
    if function is None:
        why, do = "it has no row in the tables of ball arithmetic", "verify with 50 digits (rigorous=False)"
        raise ArgumentError(f"an enclosure of {head.__name__}", why=why, do=do)
    balls = [operand if isinstance(operand, flint().arb) else ball(operand) for operand in operands]
    if head not in COMPARISONS and any(operand.is_nan() for operand in balls):
        return flint().arb.nan()  # Arb bounds sinc and sign all the same, but there may be no number to bound
    result = function(*balls)
    if isinstance(result, flint().arb) and all(operand.is_exact() for operand in balls):
        infinite = head in ELEMENTARY and not all(operand.is_finite() for operand in balls)  # as of sin and cos
        return _convention(head, balls, result) if result.is_nan() or infinite else result
    return result


def _convention(head: Head, operands: list[Ball], result: Ball) -> Ball:
    """Return infinity or nan if the table of references has that value at this very point."""
    with working_digits(30):
        value = INTRINSICS[head].reference(*map(as_mpf, operands))
    arb = flint().arb
    if not mp.isinf(value):
        return arb.nan() if mp.isnan(value) else result
    return arb.pos_inf() if value > 0 else arb.neg_inf()


def _leaf(atom: sp.Basic) -> Any:
    """Return a truth value or a ball. Rationals and floats are not rounded if they fit."""
    constant = leaf_constant(atom)
    if isinstance(constant, bool | float):
        return constant if isinstance(constant, bool) else flint().arb(constant)
    if isinstance(constant, Fraction):
        return flint().arb(flint().fmpq(constant.numerator, constant.denominator))
    if isinstance(atom, sp.CRootOf):
        step = sp.Rational(1, 2 ** flint().ctx.prec)
        near = Fraction(str(atom.eval_rational(dx=step)))
        return flint().arb(flint().fmpq(near.numerator, near.denominator), flint().arb(2) ** -flint().ctx.prec)
    if type(atom) not in SYMBOLS:
        raise ArgumentError(f"an enclosure of {atom}", why="its digits are not known with a bound", do="rigorous=False")
    return SYMBOLS[type(atom)](flint().arb)


SYMBOLS: dict[type[sp.Basic], Callable[[Any], Ball]] = {
    type(sp.pi): lambda arb: arb.pi(),
    type(sp.E): lambda arb: arb.const_e(),
    type(sp.EulerGamma): lambda arb: arb.const_euler(),
    type(sp.Catalan): lambda arb: arb.const_catalan(),
    type(sp.GoldenRatio): lambda arb: (1 + arb(5).sqrt()) / 2,
    type(sp.TribonacciConstant): lambda arb: (
        (1 + (19 - 3 * arb(33).sqrt()).root(3) + (19 + 3 * arb(33).sqrt()).root(3)) / 3
    ),
}
