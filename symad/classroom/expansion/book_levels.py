"""Expand all levels as a textbook does: the input and the result of each level."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from codegen.records import dataclass
from symad.classroom.expansion.book import BookLine, Level, why_not
from symad.classroom.expansion.epsilon import Levels, Nested, monomial, readable
from symad.classroom.expansion.expansion_values import as_sympy
from symad.classroom.expansion.steps import Parts
from symad.display.document import Block, Formula, Inline

MOST_LEVELS = 5  # each has twice as many terms as the one before
MOST_LINES = 14  # formulas of one level that a book has


@dataclass(frozen=True)
class BookLevel:
    """One level: the coefficients that it expands with their products of epsilons, and its lines."""

    level: Level
    terms: tuple[tuple[sp.Expr, sp.Expr], ...]
    lines: tuple[BookLine, ...]

    def blocks(self, called: sp.Expr, put: tuple[Inline, ...]) -> list[Block]:
        """Return the level as formulas. `called` is f(x + v ε₁), and `put` explains the substitution."""
        moved = [part for coefficient, factor in self.terms for part in (self.level.moved(coefficient), factor)]
        blocks: list[Block] = [Formula(Nested(*moved), called, put)]
        lines = list(self.lines)
        if lines and len(self.terms) == 1 and lines[0].left == moved[0]:
            lines[0] = BookLine(None, lines[0].right, lines[0].reason)
        return [*blocks, *(line.block() for line in lines)]


class Book:
    """The levels and their coefficients, or the reason why there are none (`why_not`)."""

    def __init__(self, parts: Parts, formula: sp.Basic | None) -> None:
        self.levels: list[BookLevel] = []
        self.coefficients: dict[Levels, sp.Expr] = {}
        values = [item for leaf in containers.flatten(parts.given.argument)[0] for item in np.ravel(leaf).tolist()]
        if not isinstance(formula, sp.Expr) or values != list(parts.given.symbols):
            self.why_not: str = "it is done for one formula at symbols"
        elif parts.levels > MOST_LEVELS:
            self.why_not = f"it is done for {MOST_LEVELS} levels at most"
        else:
            self.coefficients[()] = as_sympy(formula)
            reasons = (self._add(parts, k) for k in range(1, parts.levels + 1))
            self.why_not = next(filter(None, reasons), "")

    def _add(self, parts: Parts, k: int) -> str:
        """Expand one level. Return why it is not expanded, "" if it is."""
        moves = moves_of(parts, k)
        if not all(isinstance(name, sp.Symbol) for name in moves):
            return "a direction that is moved itself is no symbol"
        if any(part.has(*parts.given.symbols) for part in moves.values()):
            return "a direction has the variable in it"
        before = {levels: part for levels, part in self.coefficients.items() if part != 0}
        if reason := next(filter(None, (why_not(part, moves) for part in before.values())), ""):
            return reason
        level = Level(k, moves)
        lines = [line for part in before.values() for line in level.lines(part)]
        if parts.style is None and len(lines) > MOST_LINES:
            return "it has many lines"
        terms = tuple((part, monomial(levels)) for levels, part in before.items())
        self.levels.append(BookLevel(level, terms, tuple(lines)))
        self.coefficients |= {(*levels, k): readable(level.part(part)) for levels, part in self.coefficients.items()}
        return ""


def moves_of(parts: Parts, k: int) -> dict[Any, sp.Expr]:
    """Return the steps by which a level moves the symbols of f and the directions of earlier levels."""
    moved = [(list(parts.given.symbols), parts.directions[(k,)])]
    moved += [
        (parts.directions[levels[:-1]], direction)
        for levels, direction in parts.directions.items()
        if len(levels) > 1 and levels[-1] == k
    ]
    pairs = [(name, exact(part)) for names, direction in moved for name, part in zip(names, direction, strict=True)]
    return {name: part for name, part in pairs if part != 0}


def exact(part: Any) -> sp.Expr:
    """Return an entry of a direction, 1.0 as 1.

    >>> exact(1.0), exact(2), exact(sp.Symbol("v"))
    (1, 2, v)
    """
    value = sp.sympify(part)
    return sp.Integer(int(value)) if value.is_Number and float(value) in (0, 1) else value
