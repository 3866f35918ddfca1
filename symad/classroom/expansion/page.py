"""The page of an expansion: the rule for epsilon, the levels with their lines, the coefficients, the Taylor sum."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from symad.classroom.expansion import epsilon
from symad.classroom.expansion.book import Book, exact, moves_of
from symad.classroom.expansion.displayed import Definitions, check_blocks, check_coefficients, check_lines
from symad.classroom.expansion.epsilon import Along, Levels, Listed, Nested, monomial
from symad.classroom.expansion.expansion_values import written
from symad.classroom.expansion.steps import ExpansionStep, Parts, new_rows
from symad.derivatives.level import Epsilon
from symad.display.document import Block, Cell, Document, Formula, Heading, Paragraph, Table, inlines
from symad.display.mathematics import text_of
from symad.display.notation import LOWERED, one_form, with_index, with_indexed_sums

LINES = 12  # of a level, before the rest is folded
ALL_LINES = 500
ROWS = 32  # of the table of coefficients
OUTPUTS = 4
LETTERS = 8  # of a function's name in formulas
ENTRIES = 8  # of a vector that is written out
DIGITS = 6  # of numbers in lines
READ = 60  # operations of a formula that is written as a whole
NESTED_LEVELS = 3  # whose nested sum is written out
NAMED = 4  # arguments of a function that are written side by side
TERMS = 5  # of the chain rule that are written out


def why_no_book(parts: Parts) -> str:
    """Return why an expansion is not in the style of a book, "" if it is."""
    return _Page(parts).book.why_not


def document_of(parts: Parts) -> Document:
    page = _Page(parts)
    blocks = [*page.question()]
    if parts.detail != "result":
        blocks += page.explanation()
        blocks += [block for k in range(1, parts.levels + 1) for block in page.level(k)]
    blocks += page.result()
    if parts.is_straight and parts.levels > 1:
        blocks += page.taylor()
    page.check(blocks)
    if notes := page.notes():
        blocks += [Heading("What was taken"), *map(Paragraph, notes)]
    return tuple(blocks)


class _Page:
    """The parts of the page, and the names used on it."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        short = parts.given.name if "_" not in parts.given.name and len(parts.given.name) <= LETTERS else "f"
        self.name = sp.Symbol("F" if parts.values.names_a_function(short) else short)
        symbols = parts.given.symbols
        taken = {str(atom) for atom in (*symbols, *parts.values.graph.atoms.values())}
        entries = [sp.sympify(part) for direction in parts.directions.values() for part in direction]
        short_parts = all(part.is_Symbol or part.is_Number for part in entries)
        self.named = parts.given.formula and 1 < len(symbols) <= NAMED and short_parts
        self.point = symbols[0] if len(symbols) == 1 else _free(("x", "p", "point"), taken)
        self.point = Listed(*symbols) if self.named else self.point
        self.time = _free(("t", "s", "h", "time"), taken)
        directions = parts.directions.items()
        self.directions = {levels: _direction(levels, part) for levels, part in directions}
        if self.named:
            self.directions = {levels: sp.Tuple(*map(exact, part)) for levels, part in directions}
        self.moving = [levels for levels, named in parts.directions.items() if any(part != 0 for part in named)]
        self.alone = len(parts.result.flat) == 1
        most = {"steps": LINES, "all": ALL_LINES}.get(parts.detail, 0)
        self.rows = new_rows(parts.stages)
        shown = dict(zip(parts.parameters.flat, parts.given.symbols, strict=True))
        self.formula = written(parts.values, parts.result.flat[0], shown, READ) if self.alone else None
        self.book = Book(parts, self.formula)
        self.by_hand = parts.style != "rules" and not self.book.why_not
        by_hand = {levels: [part] for levels, part in self.book.coefficients.items()}
        self.flat = by_hand if self.by_hand else parts.flat  # in the form of the lines above them
        self.lines = parts.lines(most) if most and not self.by_hand else []

    def check(self, blocks: Sequence[Block]) -> None:
        """Raise InvariantError for a false equality on the page."""
        parts = self.parts
        values = [item for leaf in containers.flatten(parts.given.argument)[0] for item in np.ravel(leaf).tolist()]
        symbols = dict(zip(parts.given.symbols, map(sp.sympify, values), strict=True))
        meanings: dict[Any, Any] = {symbol: value for symbol, value in symbols.items() if symbol != value}
        if meanings and parts.notes:
            return  # at this point f has no derivative, and the coefficients follow a convention
        if not self.named and len(symbols) > 1:
            meanings[self.point] = sp.Tuple(*symbols)
        for levels, direction in parts.directions.items():
            entries = [sp.sympify(part) for part in direction]
            if self.directions[levels].is_Symbol and entries != [self.directions[levels]]:
                meanings[self.directions[levels]] = sp.Tuple(*entries)
        meanings[self.time] = Nested(*(part for k in range(1, parts.levels + 1) for part in (Epsilon.of_level(k), 1)))
        shown = dict(zip(parts.parameters.flat, parts.given.symbols, strict=True))
        definitions = Definitions(str(self.name), parts.given.symbols, self.formula, meanings)
        check_blocks(blocks, definitions)
        for place, node in enumerate(parts.result.flat[:OUTPUTS]):
            if (output := written(parts.values, node, shown, READ)) is not None:
                for flat in (parts.flat, self.flat) if self.by_hand else (parts.flat,):
                    coefficients = {levels: sp.sympify(row[place]) for levels, row in flat.items()}
                    check_coefficients(coefficients, self._moved(parts.levels), replace(definitions, formula=output))
        for number, lines in enumerate(self.lines, 1):
            check_lines(lines, moves_of(parts, number))

    def question(self) -> Iterator[Block]:
        """Yield the function, the point and the directions."""
        yield Heading(f"{self.name}({self._argument(self.parts.levels)}), one level at a time", 1)
        if self.parts.given.name not in (str(self.name), "f"):
            yield Paragraph((self.name, f" is {self.parts.given.name}"))
        if self.formula is not None:
            yield Formula(with_indexed_sums(self.formula), Along(self.name, sp.S.Zero, self.point))
        symbols = list(self.parts.given.symbols)
        if not self.named and 1 < len(symbols) <= ENTRIES:
            yield from _listed(self.point, symbols)
        leaves, _ = containers.flatten(self.parts.given.argument)
        values = [part for leaf in leaves for part in np.ravel(leaf).tolist()]
        if values != symbols and self.named:
            for symbol, value in zip(symbols, values, strict=True):
                yield from _listed(symbol, [value])
        elif values != symbols:
            yield from _listed(self.point, values)
        for levels, direction in self.parts.directions.items():
            if levels in self.moving and self.directions[levels].is_Symbol:
                yield from _listed(self.directions[levels], direction)

    def explanation(self) -> Iterator[Block]:
        """Yield the explanation, given once, why a level has exactly two parts."""
        eps, (a, b, c, d) = Epsilon.of_level(1), sp.symbols("a b c d")
        square = sp.Pow(eps, 2, evaluate=False)
        if self.by_hand:
            yield Paragraph((square, " = 0 by definition: a term with a square or a higher power of it is struck out."))
            return
        g = sp.Function("g")
        yield Paragraph(
            ("Each level puts F + ", eps, " ∂F/∂", eps, " at ", eps, " = 0 in the place of F. That is exact: ",
             square, " = 0 by definition, so every Taylor series and every product ends after its second part.")
        )  # fmt: skip
        first, second = (sp.Derivative(g(a), (a, k)) for k in (1, 2))
        chain = Nested(g(a), 1, first * b, eps, second * b**2 / 2, square)
        yield Formula(chain, g(Nested(a, 1, b, eps)), ("the last term is 0, as are all after it"))
        product = Nested(Nested(a, 1, b, eps), Nested(c, 1, d, eps))
        yield Formula(Nested(a * c, 1, a * d + b * c, eps, b * d, square), product, "the last term is 0")

    def level(self, k: int) -> Iterator[Block]:
        """Yield one level: its lines and its result."""
        yield Heading(f"Level {k}: {self.point} → {self._argument(k, k)}")
        if k == 2:
            yield Paragraph(
                ("What level 1 has made is a program like any other, and is differentiated again. ", monomial((1, 2)),
                 " is not 0: the mixed term carries the second derivative.")
            )  # fmt: skip
        if self.parts.detail in ("steps", "all"):
            put = (f"{self._argument(k, k)} in the place of {self.point}",)
            yield from self._by_hand(k, put) if self.by_hand else self._lines(k)
        if self.alone and k <= NESTED_LEVELS:
            so_far = {levels: row[0] for levels, row in self.flat.items() if not levels or levels[-1] <= k}
            is_read = self.by_hand or _is_read(so_far.values())
            parts = so_far if is_read else {levels: self._sum(levels) for levels in so_far}
            coefficients = {levels: with_indexed_sums(sp.sympify(part)) for levels, part in parts.items()}
            yield Formula(epsilon.nested(coefficients, k), self._moved(k), "collected" if self.by_hand else "")

    def notes(self) -> Sequence[Cell]:
        """Return the notes: of a page by hand, where its formulas hold."""
        if not self.by_hand:
            return self.parts.notes
        domains = dict.fromkeys(domain for level in self.book.levels for domain in level.domains)
        return [("The formulas hold for ", domain, ".") for domain in domains]

    def result(self) -> Iterator[Block]:
        """Yield the table of coefficients, and the sum."""
        yield Heading("Coefficients")
        straight, count = self.parts.is_straight, self.parts.levels
        chosen = [tuple(range(1, k + 1)) for k in range(count + 1)] if straight else epsilon.subsets(count)
        names = self._outputs()
        rows = [(monomial(s), self._meaning(s), *map(_cell, self.flat[s][: len(names)])) for s in chosen[:ROWS]]
        captions = [f"the first {ROWS} of {len(chosen)} coefficients"] if len(chosen) > ROWS else []
        if straight and count > 1:
            captions.append("all products of the same number of epsilons have the same coefficient")
        if len(names) < len(self.parts.result.flat):
            captions.append(f"the first {len(names)} of {len(self.parts.result.flat)} results")
        yield Table(("of", "is", *names), tuple(rows), "l" * (2 + len(names)), "; ".join(captions))
        if self.alone and not straight and _is_read(row[0] for row in self.flat.values()):
            coefficients = {levels: with_indexed_sums(sp.sympify(row[0])) for levels, row in self.flat.items()}
            yield Formula(epsilon.expanded(coefficients, count), self._moved(count))

    def taylor(self) -> Iterator[Block]:
        """Yield the result as a polynomial in t, the sum of all epsilons."""
        count, t = self.parts.levels, self.time
        yield Heading("Taylor polynomial")
        total = Nested(*(part for k in range(1, count + 1) for part in (Epsilon.of_level(k), 1)))
        power, beyond = t ** sp.Symbol("k"), t ** (count + 1)
        says = ("so that ", power, " is k! times the sum of the products of k epsilons, and ", beyond, " = 0")
        yield Formula(total, t, says)
        orders = [tuple(range(1, k + 1)) for k in range(count + 1)]
        moved = Along(self.name, sp.S.Zero, self._along([((1,), t)]))
        named = [(self._sum(s) / math.factorial(k), t**k) for k, s in enumerate(orders)]
        yield Formula(Nested(*(part for term in named for part in term)), moved)
        values = [sp.sympify(self.flat[s][0]) for s in orders]
        if self.alone and _is_read(values):
            known = [(value / math.factorial(k), t**k) for k, value in enumerate(values) if value != 0]
            yield Formula(Nested(*(part for term in known for part in term)), moved)

    def _by_hand(self, k: int, put: Any) -> Iterator[Block]:
        """Yield the lines of a level; those of the terms of a sum of one form once, with an index."""
        form = one_form(self.formula.args) if isinstance(self.formula, sp.Add) else None
        lines = dict[tuple[Any, Any], Formula]()
        for line in self.book.levels[k - 1].blocks(self._moved(k), put):
            left, right = (with_index(side) for side in (line.left or sp.S.Zero, line.right))
            if form is not None and left[1] == right[1] is not None:
                said = (*inlines(line.reason), f"; for i = {min(form[1])}, ..., {max(form[1])}")
                line = replace(line, left=left[0], right=right[0], reason=said)
            else:
                line = replace(line, left=with_indexed_sums(line.left), right=with_indexed_sums(line.right))
            lines.setdefault((line.left, line.right), line)
        yield from lines.values()

    def _lines(self, k: int) -> Iterator[Block]:
        """Yield the table of a level's lines. Repeated lines of the level before are only mentioned."""
        everything = self.parts.detail == "all"
        lines = self.lines[k - 1]
        shown = lines if everything else [line for line in lines if not line.repeated]
        rows = self.rows[k - 1]
        if shown:
            eps = Epsilon.of_level(k)
            header = ("line", (eps, "-part"), "rule")
            parts = [part for line in shown for part in (line.value, line.part, line.part_value) if part is not None]
            rounded = any(_rounded(part) != sp.sympify(part) for part in parts)
            caption = f"numbers in lines are rounded to {DIGITS} digits" if rounded else ""
            yield Table(header, tuple(map(_line, shown)), "lll", caption)
        if len(rows) > len(shown):
            yield Paragraph(f"... and {len(rows) - len(shown)} more lines of the same kinds.")
        if k > 1 and not everything:
            before, now = (_text(self.directions[(level,)]) for level in (k - 1, k))
            other = f", with {now} in place of {before}" if now != before else ""
            yield Paragraph(f"The lines of the levels before come again{other}.")

    def _argument(self, last: int, first: int = 1) -> str:
        """Return x + v ε₁ + w ε₂ as text; for several names x + v₁ ε₁, y + v₂ ε₁."""
        moving = [levels for levels in self.moving if first <= levels[-1] <= last]
        if not self.named:
            return _moved_text(self.point, [(self.directions[levels], levels) for levels in moving])
        return ", ".join(
            _moved_text(symbol, [(self.directions[levels][place], levels) for levels in moving])
            for place, symbol in enumerate(self.point.args)
        )

    def _moved(self, last: int) -> sp.Expr:
        moving = [(levels, monomial(levels)) for levels in self.moving if levels[-1] <= last]
        return Along(self.name, sp.S.Zero, self._along(moving))

    def _along(self, moving: Sequence[tuple[Levels, sp.Expr]]) -> sp.Expr:
        """Return x + v eps_1 + ..., for each of several names."""
        if not self.named:
            terms = [(self.directions[levels], factor) for levels, factor in moving]
            return Nested(self.point, 1, *(part for term in terms for part in term))
        entries = []
        for place, symbol in enumerate(self.point.args):
            terms = [(self.directions[levels][place], factor) for levels, factor in moving]
            entries.append(Nested(symbol, 1, *(part for term in terms if term[0] != 0 for part in term)))
        return Listed(*entries)

    def _meaning(self, levels: Levels) -> Cell:
        """Return the meaning of a coefficient: f''(x)[v, w], or the number of its chain rule terms."""
        count = sum(1 for _ in epsilon.partitions(levels, self.moving))
        return f"{count} terms of the chain rule" if count > TERMS else self._sum(levels)

    def _sum(self, levels: Levels) -> sp.Expr:
        """Return the chain rule terms of a coefficient: one for each partition of its levels into directions."""
        terms = []
        for blocks in epsilon.partitions(levels, self.moving):
            along = (self.directions[block] for block in blocks)
            terms += [Along(self.name, sp.Integer(len(blocks)), self.point, *along), sp.S.One]
        return terms[0] if len(terms) == 2 else Nested(*terms)

    def _outputs(self) -> list[str]:
        """Return a heading for each displayed result."""
        tree = self.parts.result
        if self.alone:
            return ["coefficient"]
        paths = containers.paths(containers.unflatten(tree.structure, [0] * len(tree.arrays)), str(self.name))
        names = (
            path + (f"[{', '.join(map(str, index))}]" if index else "")
            for path, shape in zip(paths, tree.shapes, strict=True)
            for index in np.ndindex(*shape)
        )
        return [name for name, _ in zip(names, range(OUTPUTS), strict=False)]


def _free(names: Sequence[str], taken: Container[str]) -> sp.Symbol:
    return sp.Symbol(next((name for name in names if name not in taken), names[-1]))


def _moved_text(name: sp.Expr, moving: Sequence[tuple[sp.Expr, Levels]]) -> str:
    """Return x + v ε₁ + ε₂ in prose."""
    terms = [str(name)]
    for part, levels in moving:
        direction = _text(part)
        mark = " ".join(f"ε{k}".translate(LOWERED) for k in levels)
        if direction != "0":
            terms.append(mark if direction == "1" else f"{direction} {mark}")
    return " + ".join(terms)


def _text(direction: sp.Expr) -> str:
    return re.sub(r"_\d+$", lambda index: index[0][1:].translate(LOWERED), text_of(direction))


def _line(step: ExpansionStep) -> tuple[Cell, ...]:
    line, part = (step.name, step.line, step.value), (step.part_name, step.part, step.part_value)
    return _equation(*line), _equation(*part), step.rule.cell()


def _equation(name: sp.Symbol, written: sp.Expr, value: Any) -> Cell:
    """Return name = expression = value. The value is omitted if it adds nothing."""
    sides = (name, " = ", with_indexed_sums(_rounded(written)))
    same = value is None or sp.sympify(value) == written
    return sides if same else (*sides, " = ", with_indexed_sums(_rounded(value)))


def _rounded(value: Any) -> sp.Expr:
    value = sp.sympify(value)
    return value.xreplace({number: sp.Float(f"{float(number):.{DIGITS}g}") for number in value.atoms(sp.Float)})


def _direction(levels: Levels, entries: Sequence[Any]) -> sp.Expr:
    """Return the name of a direction: v for a symbol, 1, or d_1."""
    (first, *more) = entries
    value = None if more else sp.sympify(first)
    if value is None or not (value.is_Symbol or value.is_Number):
        return sp.Symbol(f"d_{''.join(map(str, levels))}")
    return sp.S.One if value.is_Number and float(value) == 1 else value


def _listed(left: sp.Expr, entries: Sequence[Any]) -> Iterator[Block]:
    """Yield the definition of a vector or a number; nothing if it is itself."""
    parts = [sp.sympify(part) for part in entries[:ENTRIES]]
    if len(entries) > ENTRIES:
        yield Paragraph((left, f" has {len(entries)} numbers"))
    elif len(parts) > 1:
        yield Formula(sp.ImmutableMatrix([parts]), left)
    elif parts[0] != left:
        yield Formula(parts[0], left)


def _is_read(values: Any) -> bool:
    return bool(sum(sp.count_ops(sp.sympify(value)) for value in values) <= READ)


def _cell(value: Any) -> Cell:
    expression = with_indexed_sums(sp.sympify(value))
    return expression if isinstance(expression, sp.Basic) else str(expression)
