"""Check every equality on an expansion page when it is made. A false one is an internal error."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import reduce
from itertools import product
from typing import Any

import sympy as sp
from mpmath import mp

from codegen.records import dataclass
from symad.classroom.equality.hyperdual import HyperDual, constant
from symad.classroom.equality.independent_values import DIGITS, IndependentValues, UnknownValueError
from symad.classroom.expansion.epsilon import Along, Levels, Listed, Nested
from symad.classroom.expansion.steps import ExpansionStep
from symad.derivatives.level import Epsilon
from symad.display.document import Block, Formula
from symad.display.mathematics import text_of
from symad.display.notation import Nothing
from symad.errors import InvariantError
from symad.rules.undefined import Formal

_OWN_LEVEL = 100  # the number of the epsilon by which a single line is checked
_ATTEMPTS = 6  # random points, until one gives a number to both sides
_AGREED = mp.mpf(10) ** -30
_ROUNDED = mp.mpf(10) ** -6  # of lines with floats, which round


class PageValues(IndependentValues):
    """Values of page formulas: sums with epsilons, f(x + v eps_1), f''(x)[v, w], vectors."""

    def special(self, expression: Any) -> Any:
        if isinstance(expression, Epsilon):
            return HyperDual({0: mp.mpf(0), 1 << (int(expression.name.rpartition("_")[2]) - 1): mp.mpf(1)})
        if isinstance(expression, Nested):
            pairs = zip(expression.args[::2], expression.args[1::2], strict=True)
            return reduce(_added, [_scaled(self.of(a), self.of(b)) for a, b in pairs], None) or constant(0)
        if isinstance(expression, Listed):
            return [self.of(part) for part in expression.args]
        if isinstance(expression, Formal):
            name = expression.function.__name__
            return self.applied(name, [self.of(part) for part in expression.args], expression.orders)
        return self._along(expression) if isinstance(expression, Along) else None

    def _along(self, expression: Along) -> HyperDual:
        """Return f''(x)[v, w]: the mixed coefficient of f(x + v d_1 + w d_2), with fresh epsilons."""
        name, order, point, *directions = expression.args
        at, mask = _vector(self.of(point)), 0
        directions = directions or [sp.S.One] * (int(order) if len(at) == 1 else 0)  # f''(x) of one variable
        for direction in map(_vector, map(self.of, directions)):
            self._next_level += 1
            mask |= 1 << self._next_level
            step = HyperDual({0: mp.mpf(0), 1 << self._next_level: mp.mpf(1)})
            at = [entry + part * step for entry, part in zip(at, direction, strict=True)]
        if len(directions) != int(order):
            raise UnknownValueError(str(expression))
        return self.applied(str(name), at).coefficient(mask)


def _vector(value: Any) -> list[HyperDual]:
    return value if isinstance(value, list) else [value]


def _scaled(part: Any, factor: HyperDual) -> Any:
    return [entry * factor for entry in part] if isinstance(part, list) else part * factor


def _added(left: Any, right: Any) -> Any:
    if left is None:
        return right
    if isinstance(left, list) or isinstance(right, list):
        return [a + b for a, b in zip(_vector(left), _vector(right), strict=True)]
    return left + right


@dataclass(frozen=True)
class Definitions:
    """The meaning of names on a page: a function with its symbols and formula, and the values of symbols."""

    name: str
    symbols: Sequence[sp.Basic]
    formula: sp.Basic | None
    meanings: Mapping[Any, sp.Basic] = field(default_factory=dict)

    @property
    def is_rounded(self) -> bool:
        """Whether it contains floats, so that its values are rounded."""
        return any(part is not None and part.has(sp.Float) for part in (self.formula, *self.meanings.values()))

    def values(self, seed: int) -> PageValues:
        values = PageValues(seed=seed)

        def function(arguments: Sequence[HyperDual]) -> HyperDual:
            if self.formula is None:
                raise UnknownValueError(self.name)
            inner = PageValues({**values.known, **dict(zip(self.symbols, arguments, strict=True))}, seed=seed)
            result: HyperDual = inner.of(self.formula)
            return result

        values.functions[self.name] = function
        for name, meaning in self.meanings.items():
            values.known[name] = values.of(meaning)
        return values


def check_blocks(blocks: Iterable[Block], definitions: Definitions) -> None:
    """Raise InvariantError for a formula whose sides differ. A continued formula is compared with the line before."""
    before: sp.Basic | None = None
    for block in blocks:
        if isinstance(block, Formula) and block.left is not None:
            left = before if isinstance(block.left, Nothing) else block.left
            before = block.right
            if left is not None:
                check_equality(left, block.right, definitions)


def check_equality(left: Any, right: Any, definitions: Definitions) -> bool:
    """Raise InvariantError if two displayed sides differ at a point; False if they have no values there."""

    def sides(values: PageValues) -> list[list[HyperDual]]:
        return [_vector(values.of(side)) for side in (left, right)]

    return _check(sides, definitions, left, right)


def check_coefficients(coefficients: Mapping[Levels, sp.Expr], moved: Any, definitions: Definitions) -> None:
    """Raise InvariantError for a wrong coefficient of f(x + v eps_1 + ...)."""
    for levels, shown in coefficients.items():
        mask = sum(1 << (level - 1) for level in levels)

        def sides(values: PageValues, shown: Any = shown, mask: int = mask) -> list[list[HyperDual]]:
            whole = values.of(moved)
            return [[values.of(shown)], [constant(whole.parts.get(mask, 0))]]

        _check(sides, definitions, shown, moved)


def check_entries(entries: Sequence[sp.Expr], order: int, definitions: Definitions) -> None:
    """Raise InvariantError for an entry that is not its partial derivative, row by row."""
    symbols = definitions.symbols
    for entry, places in zip(entries, product(range(len(symbols)), repeat=order), strict=True):
        moved = list(symbols)
        for level, place in enumerate(places, 1):
            moved[place] = Nested(moved[place], 1, sp.S.One, Epsilon.of_level(level))
        point = Along(sp.Symbol(definitions.name), sp.S.Zero, Listed(*moved))
        check_coefficients({tuple(range(1, order + 1)): entry}, point, definitions)


def check_lines(lines: Sequence[ExpansionStep], tangents: Mapping[Any, Any]) -> None:
    """Raise InvariantError for a line of a level whose epsilon-part differs from the displayed one.

    Symbols move along their tangents, and lines are evaluated in order. Those that refer to unwritten ones are skipped.
    """
    level = HyperDual({0: mp.mpf(0), 1 << _OWN_LEVEL: mp.mpf(1)})
    names = {line.name for line in lines}

    def sides(values: PageValues) -> list[list[HyperDual]]:
        values.known |= {name: values.of(name) + values.of(tangent) * level for name, tangent in tangents.items()}
        plain = PageValues(seed=values.seed)
        pairs: list[tuple[HyperDual, HyperDual]] = []
        for line in sorted(lines, key=lambda line: int(line.name.name.rpartition("_")[2])):
            symbols = line.line.free_symbols | line.part.free_symbols
            used = {symbol for symbol in symbols if _is_line(symbol, line.name)} - {line.name}
            if not used <= values.known.keys() & names:
                continue
            value = values.of(line.line)
            values.known[line.name], plain.known[line.name] = value, constant(value.real)
            plain.known[line.part_name] = value.coefficient(1 << _OWN_LEVEL)
            pairs.append((plain.of(line.part), plain.known[line.part_name]))
        return [[left for left, _ in pairs], [right for _, right in pairs]]

    moves_itself = any(sp.sympify(tangent).has(*tangents) for tangent in tangents.values())
    if lines and not moves_itself:  # in f(x + x ε) the second x does not move, but lines show both as x
        _check(sides, Definitions("", (), lines[0].line), lines[0].line, lines[0].part)


def _is_line(symbol: sp.Symbol, like: sp.Symbol) -> bool:
    """Whether a symbol names a line, or a value too long to write."""
    letter = like.name.rpartition("_")[0]
    return re.fullmatch(rf"(?:{letter}|c)_\d+", symbol.name) is not None


checked: Counter[str] = Counter()  # numbers of equalities that held and that had no values, in this process


def _check(
    sides: Callable[[PageValues], list[list[HyperDual]]], definitions: Definitions, left: Any, right: Any
) -> bool:
    """Compare two sides at random points until both have real numbers at one."""
    floats = definitions.is_rounded or any(side.has(sp.Float) for side in (left, right))
    for attempt in range(_ATTEMPTS):
        with mp.workdps(DIGITS):
            try:
                first, second = sides(definitions.values(attempt))
            except UnknownValueError:
                break
            except (ArithmeticError, ValueError, TypeError):
                continue
            if not all(entry.is_real for entry in (*first, *second)):
                continue
            distances = [entry.distance(same) for entry, same in zip(first, second, strict=True)]
            bound = _ROUNDED if floats else _AGREED
            if all(gap <= bound * max(1, size) for gap, size in distances):
                checked["hold"] += len(first)
                return True
            raise InvariantError(
                "a displayed equality that does not hold",
                where=f"{text_of(left)[:80]} = {text_of(right)[:80]}",
                do="please report it with the formula: this is a defect of symad",
            )
    checked["no values"] += 1
    return False
