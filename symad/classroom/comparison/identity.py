"""Decide whether a formula is the derivative: by algebra where that is quick, else at random points.

A test contracts all derivatives with random directions: it compares one number at each point, and every entry counts.
The reference comes from values of f alone (`differences`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from codegen.evaluation.interpret import evaluate
from codegen.heads import Alias
from codegen.ir.program import Rows, reachable
from codegen.records import dataclass
from symad.classroom.comparison.comparison_problem import ComparisonProblem, sizes_of_expressions, whole
from symad.classroom.comparison.differences import settled_difference, working_digits
from symad.classroom.equality.equality import algebraic_gap
from symad.errors import LimitError
from symad.graph.sympy_io import to_sympy
from symad.limits import time_limit
from symad.tracing.trace import Trace

AGREED_DIGITS = 30
ROUNDED_DIGITS = 10  # of a formula that multiplies and adds floats of f
OWN_FLOATS_DIGITS = 14  # of a formula with floats where f has none: each is rounded once
GRID = 2**40  # possible values of each coordinate of a random point
POINTS = 4
MILD = 1e100  # numbers between 1/MILD and MILD neither overflow nor underflow in a route, its steps included
LARGEST_PROOF = 400  # nodes of the trees of both sides
UNPROVABLE = (sp.Max, sp.Min, sp.Piecewise, sp.Heaviside)  # SymPy splits cases, which takes long

Degree = tuple[int, int]


@dataclass(frozen=True)
class Sample:
    """A random point, random directions, and the derivative along them to 40 digits. Noise counts as 0."""

    x: Any
    directions: tuple[Any, ...]
    exact: Any
    noise: Any


@dataclass(frozen=True)
class Agreement:
    """The number of random points where a route agrees, of those with numbers, and a bound of the chance."""

    agreed: int
    points: int
    degree: int | None = None
    least: float = 0.0  # right digits at the worst of the points
    rounded: float = math.inf  # right digits that suffice, because floats in the formula were rounded

    @property
    def passed(self) -> bool:
        """Whether it agrees to AGREED_DIGITS digits, or to those that rounded floats leave."""
        return self.points > 0 and (self.agreed == self.points or self.least >= self.rounded)

    @property
    def probability(self) -> float | None:
        """A bound of the probability that a wrong rational function passes (Schwartz, Zippel), else None."""
        return None if self.degree is None else min(1.0, self.degree / GRID) ** self.points

    def __str__(self) -> str:
        digits = f"{AGREED_DIGITS} digits at {self.agreed} of {self.points} random points"
        if not self.points:
            return "no random point had a number"
        if self.passed and self.agreed < self.points:
            return f"{self.least:.2g} digits at {self.points} random points: constants that are floats were rounded"
        if not self.passed:
            return digits
        if self.probability is None:
            return f"{digits}; no bound on luck: not a rational function"
        luck = f"with probability < {self.probability:.0e} (Schwartz, Zippel)"
        return f"{digits}; a wrong rational function of degree {whole(self.degree)} is equal there {luck}"


def samples_of(problem: ComparisonProblem) -> list[Sample]:
    """Return random points near and far in turn, where f has a derivative along random directions.

    They are always the same: comparisons are reproducible.
    """
    generator = np.random.default_rng(0)
    samples: list[Sample] = []
    center = np.where(np.isfinite(problem.flat), problem.flat, 1.0)
    for attempt in range(3 * POINTS):
        size = np.maximum(np.abs(center), 0.0 if attempt % 2 else 1.0)
        width = np.exp2(np.floor(np.log2(np.where(size > 0, size, 1.0))))
        x = _exact(center + width * (_random(generator, problem.inputs) - 0.5))
        count = 1 if problem.scalar else problem.order
        directions = [_exact(1.0 if problem.scalar else _random(generator, problem.inputs)) for _ in range(count)]
        times = [problem.order] if problem.scalar else [1] * problem.order
        exact = settled_difference(problem.exactly, x, directions, times)
        if mpmath.isfinite(exact):
            along = tuple(directions) if not problem.scalar else tuple(directions) * problem.order
            scale = max(abs(value) for value in (*x, mpmath.mpf(10) ** -10)) ** problem.order
            samples.append(Sample(x, along, exact, abs(problem.exactly(x)) / scale * _tenth(30)))
        if len(samples) == POINTS:
            break
    return samples


def sample_at(problem: ComparisonProblem, values: Sequence[Any]) -> Sample:
    """Return the sample of the point itself with its exact derivatives."""
    generator, times = np.random.default_rng(2), problem.order
    with mpmath.workdps(working_digits(times, _exact(problem.flat))):
        ones = [_exact(1.0)] * times
        along = ones if problem.scalar else [_exact(_random(generator, problem.inputs)) for _ in range(times)]
        return Sample(_exact(problem.flat), tuple(along), contracted(np.array(values, dtype=object), along), 0)


def _random(generator: Any, count: int) -> Any:
    return generator.integers(0, GRID, count) / GRID


def _exact(values: Any) -> Any:
    return np.array([mpmath.mpf(float(value)) for value in np.atleast_1d(values)], dtype=object)


def contracted(tensor: Any, directions: Sequence[Any]) -> Any:
    """Return a flat tensor contracted with all directions in turn.

    >>> float(contracted(np.array([1.0, 2.0, 3.0, 4.0]), [np.array([1.0, 0.0]), np.array([0.0, 1.0])]))
    2.0
    """
    result = np.asarray(tensor).reshape([len(direction) for direction in directions])
    for direction in reversed(directions):
        result = result @ direction
    return result


def agreement(problem: ComparisonProblem, traced: Trace, points: Sequence[Sample]) -> Agreement:
    """Return the number of random points where a formula is the derivative to AGREED_DIGITS digits."""
    correct = list[float]()
    for point in points:
        digits = working_digits(problem.order, point.x)
        with mpmath.workdps(digits):
            values = dict(zip(traced.inputs.flat, point.x, strict=True))
            tensor = evaluate(traced.graph, traced.outputs.flat, values, arithmetic="reference", digits=digits)
            if all(map(mpmath.isfinite, tensor)):
                correct.append(_digits(np.array(tensor, dtype=object), point))
    agreed, degree = sum(right >= AGREED_DIGITS for right in correct), difference_degree(problem, traced)
    rounded = ROUNDED_DIGITS if _has_floats(problem.traced) else OWN_FLOATS_DIGITS
    least = min(correct, default=0.0)
    return Agreement(agreed, len(correct), degree, least, rounded if _has_floats(traced) else math.inf)


def _has_floats(traced: Trace) -> bool:
    atoms = traced.graph.atoms
    return any(isinstance(atoms.get(node), sp.Float) for node in reachable(traced.graph, traced.outputs.flat))


def _digits(tensor: Any, point: Sample) -> float:
    """Return the right digits of a contraction relative to its largest term. Noise does not count."""
    gap = abs(contracted(tensor, point.directions) - point.exact)
    if gap <= point.noise * _tenth(60):
        return math.inf
    largest = max(contracted(abs(tensor), [abs(v) for v in point.directions]), abs(point.exact))
    return float(-mpmath.log10(gap / largest))


def digits_at(problem: ComparisonProblem, call: Any, points: Sequence[Sample]) -> float | None:
    """Return the most right digits that a route has at any random point (16 if it is exact).

    None if points or derivatives are so large or small that a right route may overflow or underflow.
    """
    usable = [
        point
        for point in points
        if all(1 / MILD < abs(number) < MILD for number in point.x if number)
        and (abs(point.exact) <= point.noise or 1 / MILD < abs(point.exact) < MILD)
    ]
    best = 0.0 if usable else None
    for point in usable:
        with np.errstate(all="ignore"):
            values = np.asarray(call(problem.shaped(point.x.astype(float))), dtype=float).ravel()
        slope = float(contracted(values, [v.astype(float) for v in point.directions]))
        if math.isfinite(slope):
            best = max(best or 0.0, right_digits(slope, point.exact, point.noise))
    return best


def right_digits(value: float, exact: Any, noise: Any = 0) -> float:
    """Return the right decimal digits of a number: minus log10 of the relative error, between 0 and 16.

    A number below the noise counts as 0, and its error is relative to 10**30 times the noise.

    >>> right_digits(1.001, mpmath.mpf(1)) > 2.9, right_digits(1e-20, mpmath.mpf(0), mpmath.mpf(10) ** -30)
    (True, 16.0)
    """
    gap = abs(mpmath.mpf(value) - exact)
    largest = noise * 10**30 if abs(exact) <= noise else max(abs(mpmath.mpf(value)), abs(exact))
    if gap == 0 or float(exact) == value:
        return 16.0
    return float(min(16, max(0, -mpmath.log10(gap / largest)))) if largest else 0.0


def _tenth(digits: int) -> Any:
    return mpmath.mpf(10) ** -digits


def difference_degree(problem: ComparisonProblem, traced: Trace) -> int | None:
    """Return a bound of the degree of route minus derivative in point and directions.

    None if one of the two is no rational function.
    """
    f = degrees(problem.traced.graph, problem.traced.outputs.flat, problem.traced.inputs.flat)
    route = degrees(traced.graph, traced.outputs.flat, traced.inputs.flat)
    if f is None or route is None:
        return None
    above, below = f
    for _ in range(problem.order):  # (p/q)' = (p'q - pq')/q^2
        above, below = above + below, 2 * below
    return max(route[0] + below, above + route[1]) + problem.order


def degrees(rows: Rows, outputs: Sequence[int], inputs: Sequence[int]) -> Degree | None:
    """Return bounds of the degrees of numerator and denominator; None if it is no rational function.

    >>> import symad as sa
    >>> traced = sa.trace(lambda x: x**3 / (1 + x**2), 1.0)
    >>> degrees(traced.graph, traced.outputs.flat, traced.inputs.flat)
    (3, 2)
    """
    known: dict[int, Degree] = dict.fromkeys(inputs, (1, 0))
    for row in reachable(rows, outputs):
        if row in known:
            continue
        operands = [known[operand] for operand in rows.operands[row]]
        head, exponent = rows.heads[row], rows.atoms.get(rows.operands[row][1]) if len(operands) == 2 else None
        if head is Alias or not operands:
            known[row] = operands[0] if operands else (0, 0)
        elif head is sp.Add:
            known[row] = _added(operands)
        elif head is sp.Mul:
            known[row] = sum(above for above, _ in operands), sum(below for _, below in operands)
        elif head is sp.Pow and isinstance(exponent, sp.Integer):
            above, below = operands[0] if exponent > 0 else operands[0][::-1]
            known[row] = above * abs(int(exponent)), below * abs(int(exponent))
        else:
            return None
    return _added([known[row] for row in outputs])


def _added(parts: Sequence[Degree]) -> Degree:
    below = sum(part[1] for part in parts)
    return max(part[0] + below - part[1] for part in parts), below


def proved(traced: Trace, expressions: Sequence[sp.Expr], symbols: Sequence[sp.Symbol], seconds: float) -> bool:
    """Whether algebra shows that a formula equals `sympy.diff`, within bounds of size and time."""
    try:
        with time_limit(seconds, "a proof"):
            exact = not _has_floats(traced)  # SymPy would round their sums and products
            formulas = to_sympy(traced.graph, traced.outputs.flat, evaluate=exact)
            size = sizes_of_expressions([*formulas, *expressions]).tree
            if size > LARGEST_PROOF or any(expression.has(*UNPROVABLE) for expression in expressions):
                return False
            names = dict(zip((traced.graph.atoms[node] for node in traced.inputs.flat), symbols, strict=True))
            pairs = dict.fromkeys(zip(formulas, expressions, strict=True))
            sides = ((_rational(left).xreplace(names), _rational(right)) for left, right in pairs)
            # Functions that SymPy lacks, such as expit and hypot, are written out.
            return all(algebraic_gap(*(sp.expand_func(side.doit()) for side in both)) == 0 for both in sides)
    except (LimitError, RecursionError, ArithmeticError, ValueError, TypeError, NotImplementedError, AttributeError):
        return False


def _rational(expression: sp.Expr) -> sp.Expr:
    """Return an expression with its floats as exact binary fractions."""
    return expression.xreplace({number: sp.Rational(float(number)) for number in expression.atoms(sp.Float)})
