"""`check_trace`: a pupil's table of values with tangents or adjoints, judged row by row.

A row is right if its numbers are, also as computed from the pupil's own rounded ones, and carried forward if they
follow from the pupil's own numbers, of which an earlier one is wrong. Names only suggest which line is meant: another
numbering, another order, and other ways to split a sum or a product are judged by their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import sympy as sp
from mpmath import mp

from codegen.records import dataclass
from symad.classroom.answers.answer_problem import DIGITS as FEWEST
from symad.classroom.answers.trace_tables import TraceRow, WrittenNumber, plain_name, rows_of
from symad.classroom.equality.equality import agreement
from symad.classroom.equality.hyperdual import HyperDual, constant
from symad.classroom.equality.independent_values import DIGITS, IndependentValues
from symad.classroom.explanation.checked_lines import check_statements
from symad.classroom.explanation.explain import arguments_at, explained_gradient
from symad.classroom.explanation.explanation_document import Explanation
from symad.classroom.explanation.explanation_lines import CarriedLine, VariableLine
from symad.classroom.formulas.given import Given, given
from symad.classroom.formulas.read import reading
from symad.derivatives.application import check_choice
from symad.display.document import Cell, Document, Heading, Marked, Paragraph, Table
from symad.display.mathematics import signs_of
from symad.display.notation import WrittenProduct, WrittenSum
from symad.display.shown import Shown
from symad.errors import ArgumentError
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.calling.user_place import refusal

Mode = Literal["forward", "reverse"]
Verdict = Literal["right", "wrong", "carried", "not asked for", "missing"]
_WORST: tuple[Verdict, ...] = ("wrong", "carried", "not asked for", "right")
_NUMBERED = re.compile(r"[^\W\d_]+([0-9]+)")
_MOST_TERMS = 6  # of a sum or a product that is split in every way
_WORDS: dict[str, Cell] = {
    "right": Marked("✓ right", "right"), "wrong": Marked("✗ wrong", "wrong"), "missing": Marked("missing", "wrong"),
    "carried": Marked("follows from an earlier error", "muted"),
    "not asked for": Marked("? none of the lines, nor a part of one", "strong"),
}  # fmt: skip
_REMARKS = {
    True: "All rows are right.", False: "Look at the first row that is wrong or missing.",
    None: "A row is none of the lines: leave it out, or split the function as the lines do.",
}  # fmt: skip


@dataclass(frozen=True)
class JudgedRow:
    """A row of a table: its number from 1 (0 if it is missing), its text, our line, the verdict, the right numbers."""

    number: int
    text: str
    line: str
    verdict: Verdict
    expected: tuple[float, ...] = ()
    rule: str = ""  # the formula of a number that is wrong


@dataclass(frozen=True)
class CheckedTrace(Shown):
    """A checked trace: `rows` has the verdict on each row. The truth value is whether all is right.

    `right` is None if a row is none of the lines, so that a teacher has to look. Rows are missing where they are asked
    for: the result and its derivatives. Inner lines may be left out: a later row may have them in it.
    """

    name: str
    mode: Mode
    rows: tuple[JudgedRow, ...]

    @property
    def right(self) -> bool | None:
        verdicts = {row.verdict for row in self.rows}
        return False if verdicts & {"wrong", "carried", "missing"} else None if "not asked for" in verdicts else True

    def __bool__(self) -> bool:
        return self.right is True

    @property
    def title(self) -> str:
        return "Trace checked"

    def document(self) -> Document:
        """Return the table with a verdict on each row."""
        rows: list[tuple[Cell, ...]] = []
        for row in self.rows:
            numbers = "" if row.verdict == "right" else ", ".join(f"{number:.6g}" for number in row.expected)
            rows.append((str(row.number or ""), Marked(row.text, "code"), row.line, _WORDS[row.verdict], numbers))
        columns = ("row", "written", "line", "", "it is")[: 5 if any(row[4] for row in rows) else 4]
        table = Table(columns, tuple(row[: len(columns)] for row in rows))
        first = next((row for row in self.rows if row.rule), None)
        remark = _REMARKS[self.right] if first is None else f"Look at row {first.number}: {first.rule}."
        return Heading(f"Trace of {self.name}, {self.mode}", 1), table, Paragraph(remark)


@public_api
def check_trace(
    table: Any, f: Any, *, at: Any, mode: Mode = "forward", direction: Any = None, digits: int = FEWEST
) -> CheckedTrace:
    r"""Return the verdict on each row of a pupil's trace of f, which gives one number, with tangents or with adjoints.

    `table` is a text (cells between |, ;, &, tabs or several blanks; `v4 = v1 + v2 = 10.693`), a list of rows (name,
    value, tangent or adjoint), a list of dicts with these keys, or a dict {name: value} or {name: (value, adjoint)}.
    Names of derivatives are v5bar, \bar v_5, v̄5, \dot v_5... `at` is as in `explain`. In forward mode `direction` has a
    number for each input; by default the tangents that the table gives the inputs. Rounded numbers need `digits`
    significant digits; 0: exact ones. ArgumentError for a table that cannot be read, and where f has no derivative.

    >>> table = "x 2 | v1 0.909 | v2 1.82 | v2bar 1 | xbar 0.909 | v1bar 2 | xbar 0.78".replace(" | ", "\n")
    >>> [row.verdict for row in check_trace(table, "x sin x", at=2, mode="reverse").rows]
    ['right', 'right', 'right', 'right', 'right', 'right', 'wrong']
    """
    check_choice("mode", mode, get_args(Mode))
    rows = rows_of(table)
    explained = explained_gradient(f, (), at, lambda formula: _as_written(rows, f, formula))
    with mp.workdps(DIGITS):
        check_statements(explained.book, explained.lines)
        marking = _Marking(explained, mode, digits)
        marking.start(rows, direction)
        judged = tuple(marking.judged(rows))
    return CheckedTrace(explained.name.removeprefix("gradient of "), mode, judged)


def _as_written(rows: Sequence[TraceRow], f: Any, formula: Given) -> Callable[[Any], Any]:
    """Return a formula as a function that computes the lines of a pupil, if these have formulas that give it."""
    names: dict[str, Any] = {plain_name(str(symbol))[0]: symbol for symbol in formula.symbols}
    inputs, steps, meanings = set(names), dict[sp.Symbol, sp.Expr](), dict[sp.Symbol, sp.Expr]()
    try:
        for row in (row for row in rows if row.formula and row.name not in inputs):
            symbol, step = sp.Symbol(row.name, real=True), reading(row.formula, names, others=False).expression
            names[row.name], steps[symbol], meanings[symbol] = symbol, step, step.xreplace(meanings)
    except ArgumentError:
        return formula.function
    whole = next(reversed(meanings.values()), sp.nan)
    if not whole.free_symbols or not agreement(whole, reading(f, names).expression if isinstance(f, str) else f):
        return formula.function

    def function(x: Any) -> Any:
        known = dict(zip(formula.symbols, x if len(formula.symbols) > 1 else [x], strict=True))
        for symbol, step in steps.items():
            used = sorted(step.free_symbols, key=str)
            known[symbol] = given(step, used).function(np.array([known[part] for part in used]))
        return known[symbol]

    return function


class _Quantity(NamedTuple):
    """What a row may stand for: a line or an input, or a part of a sum or a product, with its two numbers."""

    name: str
    value: Any
    slope: Any


class _Marking:
    """The lines of a function and their numbers, exact ones and the pupil's own."""

    def __init__(self, explained: Explanation, mode: Mode, digits: int) -> None:
        self.mode, self.digits = mode, digits
        outer = [stage for stage in explained.stages if stage.level is not None and stage.level.depth == 1]
        first = [line for stage in outer for line in stage.lines if isinstance(line, VariableLine)]
        self.lines: dict[str, VariableLine] = {line.name: line for line in first}
        self.inputs = [line.name for line in first if line.symbol == line.expression]
        self.inner = [name for name in self.lines if name not in self.inputs]
        self.result = explained.book.name(outer[0].ends[0])
        self.known: dict[sp.Basic, Any] = {line.symbol: constant(line.number) for line in first}
        self.uses: dict[str, list[tuple[str, sp.Expr]]] = {name: [] for name in self.lines}
        for carried in (line for stage in outer for line in stage.lines):
            for term in carried.terms if isinstance(carried, CarriedLine) else ():
                line, operand = explained.book.name(term.line), explained.book.name(term.operand)
                key, other = (line, operand) if mode == "forward" else (operand, line)
                self.uses[key].append((other, term.expression))
        self.slopes: dict[str, Any] = {}
        self.repeated: set[str] = set()  # lines with several rows, each with a part of the adjoint
        self.wrong: set[Any] = set()  # symbols of values, and names of slopes, that are not right

    def start(self, rows: Sequence[TraceRow], direction: Any) -> None:
        """Compute the exact slopes, in forward mode from the direction, or from the table's own tangents of inputs."""
        seeds = {self.result: mp.mpf(1)}
        if self.mode == "forward":
            named = {self.key(row.name): row.slope.value for row in rows if row.slope is not None}
            flat = direction if isinstance(direction, Mapping) or direction is None else tuple(np.ravel(direction))
            numbers = () if direction is None else arguments_at(self.inputs, (), flat)
            given = named if direction is None else dict(zip(self.inputs, numbers, strict=True))
            if missing := [name for name in self.inputs if name not in given and len(self.inputs) > 1]:
                do = "give it in the table, or give check_trace a direction="
                raise refusal(f"no tangent of {missing[0]}", do=do)
            seeds = {name: mp.mpf(given.get(name, 1)) for name in self.inputs}
        for name in self.lines if self.mode == "forward" else reversed(self.lines):
            self.slopes[name] = seeds.get(name, mp.mpf(0)) + mp.fsum(self.parts(name))
        self.seeds, self.exact = seeds, {n: _Quantity(n, self.lines[n].number, self.slopes[n]) for n in self.lines}
        self.exact_sums = {name: self.sums(name) for name in self.lines}

    def parts(self, name: str) -> list[Any]:
        """Return the parts of a tangent or an adjoint, from the numbers that are known."""
        return [self.computed(slope) * self.slopes[other] for other, slope in self.uses[name]]

    def sums(self, name: str) -> list[Any]:
        """Return what a row before the last one of a tangent or an adjoint may have: the sum of some of its parts."""
        parts = self.parts(name) if name not in self.seeds else []
        sizes = range(1, len(parts)) if len(parts) <= _MOST_TERMS else ()
        return [mp.fsum(chosen) for size in sizes for chosen in combinations(parts, size)]

    def computed(self, formula: sp.Basic) -> Any:
        return IndependentValues(self.known).of(formula).real

    def key(self, name: str) -> str:
        """Return the input that a name stands for, "=" for the result, else the name itself."""
        known = {plain_name(other)[0]: other for other in self.inputs}
        number = name.lstrip("vw")
        if name not in known and name[:1] in "vw" and number.lstrip("-").isdigit() and int(number) <= 0:
            place = int(number) + len(self.inputs) - 1  # v_0 is the last input
            return self.inputs[place] if 0 <= place < len(self.inputs) else name
        return "=" if name in ("y", "f", "z") and name not in known else known.get(name, name)

    def judged(self, rows: Sequence[TraceRow]) -> Iterator[JudgedRow]:
        """Yield the rows with their verdicts, and then the missing ones."""
        groups: dict[str, list[TraceRow]] = {}
        for row in rows:
            groups.setdefault(self.key(row.name), []).append(row)
        meant = self.matched(groups)
        of_line: dict[str, list[TraceRow]] = {}
        for key, name in meant.items():
            if isinstance(name, str):
                of_line.setdefault(name, []).extend(groups[key])
        verdicts: dict[int, list[Verdict]] = {row.number: [] for row in rows}
        for name in (name for name in self.lines if name in of_line):
            for row in of_line[name]:
                if row.value is not None:
                    verdicts[row.number].append(self.value_verdict(name, row.value))
        for name in self.lines if self.mode == "forward" else reversed(self.lines):
            slopes = [(row.number, row.slope) for row in of_line.get(name, ()) if row.slope is not None]
            for place, (number, slope) in enumerate(slopes, 1):
                last = place == len(slopes) and name not in self.repeated
                verdicts[number].append(self.slope_verdict(name, slope, last))
        for row in rows:
            thing = meant.get(self.key(row.name))
            if isinstance(thing, str):
                worst: Verdict = next(v for v in _WORST if v in verdicts[row.number])
                is_value = row.value is not None and verdicts[row.number][0] == "wrong"
                rule = self.rule(thing, is_value) if worst == "wrong" and thing not in self.seeds else ""
                yield JudgedRow(row.number, row.text, thing, worst, self.numbers(thing, row), rule)
            elif thing is not None:
                yield JudgedRow(row.number, row.text, thing.name, "right")
            else:
                yield JudgedRow(row.number, row.text, "", "not asked for")
        yield from self.missing(of_line)

    def numbers(self, name: str, row: TraceRow) -> tuple[float, ...]:
        exact = self.exact[name]
        pairs = ((row.value, exact.value), (row.slope, exact.slope))
        return tuple(float(number) for written, number in pairs if written is not None)

    def rule(self, name: str, is_value: bool) -> str:
        """Return the formula of a line, or that of its tangent or adjoint."""
        if is_value:
            return f"{name} = {signs_of(self.lines[name].expression)}"
        mark = "dot" if self.mode == "forward" else "bar"
        terms = (WrittenProduct(slope, sp.Symbol(f"{other}{mark}")) for other, slope in self.uses[name])
        return f"{name}{mark} = {signs_of(WrittenSum(*terms))}"

    def missing(self, of_line: dict[str, list[TraceRow]]) -> Iterator[JudgedRow]:
        """Yield what is asked for and not there: the value of the result, and the derivatives."""
        there = {(name, part) for name, rows in of_line.items() for row in rows
                 for part in ("value", "slope") if getattr(row, part) is not None}  # fmt: skip
        inner = any(part == "value" and name in self.inner for name, part in there)
        asked = [(self.result, "value")] if inner or self.mode == "forward" else []
        asked += [(name, "slope") for name in ([self.result] if self.mode == "forward" else self.inputs)]
        for name, part in asked:
            if (name, part) not in there and (name in self.inner or self.uses[name]):
                word = "" if part == "value" else " tangent" if self.mode == "forward" else " adjoint"
                yield JudgedRow(0, f"{name}{word}", name, "missing", (float(getattr(self.exact[name], part)),))

    def matched(self, groups: dict[str, list[TraceRow]]) -> dict[str, str | _Quantity]:
        """Return what each name stands for: by name and numbers, by numbers alone, as a part, by name, by order."""
        meant: dict[str, str | _Quantity] = {key: key for key in groups if key in self.inputs}
        meant |= {key: self.result for key in groups if key == "="}
        free = {name: self.exact[name] for name in (*self.inner, *self.inputs) if name not in meant}
        by_name = self.by_name(groups, meant)

        def claim(key: str, name: str) -> None:
            meant[key] = name
            free.pop(name)

        for key, name in by_name.items():
            if name in free and self.fits(groups[key], free[name]):
                claim(key, name)
        for key in [key for key in groups if key not in meant]:
            has_value = any(row.value is not None for row in groups[key])
            if line := next((name for name, exact in free.items() if self.fits(groups[key], exact)), ""):
                claim(key, line)
            elif has_value and (part := next((p for p in self.split(free) if self.fits(groups[key], p)), None)):
                meant[key] = part
        for key, name in by_name.items():
            if key not in meant and name in free:
                claim(key, name)
        rest = [key for key in groups if key not in meant]
        left = [name for name in free if name in self.inner and name not in meant.values()]
        meant |= zip(rest, left, strict=True) if len(rest) == len(left) else ()
        for key in [key for key in rest if key not in meant]:  # what symad computes once may have two rows
            values, slopes = self.written(groups[key])
            for name, exact in self.exact.items() if values else ():
                sums = [exact.slope, *self.exact_sums[name]]
                if self.are(values, exact.value) and any(self.are(slopes, number) for number in sums):
                    meant[key] = name
                    self.repeated.add(name)
        return meant

    def by_name(self, groups: dict[str, list[TraceRow]], meant: Iterable[str]) -> dict[str, str]:
        """Return the lines that numbered names suggest. A pupil may count the inputs, too: v1 is the first one then."""
        numbers = {key: int(match[1]) for key in groups if (match := _NUMBERED.fullmatch(key)) and key not in meant}
        counts = [["", *self.inner], ["", *self.inputs, *self.inner]]
        ways = [{key: names[n] for key, n in numbers.items() if 0 < n < len(names)} for names in counts]
        fitting = [sum(self.fits(groups[key], self.exact[name]) for key, name in way.items()) for way in ways]
        return ways[fitting[1] > fitting[0]]

    def written(self, rows: Iterable[TraceRow]) -> tuple[list[WrittenNumber], list[WrittenNumber]]:
        """Return the values of rows, and the last of their slopes."""
        values = [row.value for row in rows if row.value is not None]
        return values, [row.slope for row in rows if row.slope is not None][-1:]

    def are(self, written: Sequence[WrittenNumber], exact: Any) -> bool:
        return all(number.is_rounded(exact, self.digits) for number in written)

    def fits(self, rows: Iterable[TraceRow], quantity: _Quantity) -> bool:
        """Whether the numbers of rows are those of a quantity."""
        values, slopes = self.written(rows)
        return self.are(values, quantity.value) and self.are(slopes, quantity.slope)

    def split(self, free: Container[str]) -> Iterator[_Quantity]:
        """Yield parts of sums and products that are no lines; the negative of a line only beside the line itself."""
        lines = [exact.value for exact in self.exact.values()]
        for name in self.inner:
            whole = self.lines[name].expression
            terms = list(whole.args) if isinstance(whole, sp.Add | sp.Mul) else []
            for line in (line for line in self.lines.values() if line.symbol in terms and line.name in self.inner):
                if line.expression.func is whole.func:
                    terms.remove(line.symbol)
                    terms += line.expression.args
            for size in range(1, len(terms) if len(terms) <= _MOST_TERMS else 0):
                for chosen in combinations(terms, size):
                    of_lines = {str(symbol) for symbol in chosen[0].free_symbols}
                    if size > 1 or not (chosen[0].is_Symbol or any(name in free for name in of_lines & {*self.inner})):
                        part = self.part(name, whole.func(*chosen), whole.func(*[t for t in terms if t not in chosen]))
                        if all(abs(part.value - value) > abs(value) * mp.mpf(10) ** -12 for value in lines):
                            yield part

    def part(self, name: str, part: sp.Expr, others: sp.Expr) -> _Quantity:
        moving = {line.symbol: HyperDual({0: line.number, 1: self.slopes[n]}) for n, line in self.lines.items()}
        dual = IndependentValues(moving).of(part)
        factor = self.computed(others) if self.lines[name].expression.is_Mul else 1
        slope = dual.parts.get(1, mp.mpf(0)) if self.mode == "forward" else factor * self.exact[name].slope
        return _Quantity(f"part of {name}", dual.real, slope)

    def value_verdict(self, name: str, written: WrittenNumber) -> Verdict:
        line, exact = self.lines[name], self.exact[name].value
        own = exact if name in self.inputs else self.computed(line.expression)
        verdict = self.verdict(written, [exact], [own], line.expression.free_symbols - {line.symbol})
        self.known |= {line.symbol: constant(written.value)} if mp.isfinite(written.value) else {}
        self.wrong |= {line.symbol} if verdict != "right" else set()
        return verdict

    def slope_verdict(self, name: str, written: WrittenNumber, last: bool) -> Verdict:
        """Return the verdict on a tangent or an adjoint; rows before the last may have a part of the sum."""
        exact, own = [self.exact[name].slope], [mp.fsum([self.seeds.get(name, 0), *self.parts(name)])]
        if not last:
            exact, own = exact + self.exact_sums[name], own + self.sums(name)
        used: set[Any] = {part for other, slope in self.uses[name] for part in (other, *slope.free_symbols)}
        verdict = self.verdict(written, exact, own, used)
        if self.repeated and not last and verdict == "wrong":
            return "not asked for"  # a part of the sum, with parts of lines that have several rows
        if last and mp.isfinite(written.value):
            self.slopes[name] = written.value
        self.wrong |= {name} if last and verdict != "right" else set()
        return verdict

    def verdict(self, written: WrittenNumber, exact: Sequence[Any], own: Sequence[Any], used: set[Any]) -> Verdict:
        """Return right for an exact number and what follows from right ones, carried for what follows from others."""
        if any(written.is_rounded(number, self.digits) for number in exact):
            return "right"
        follows = any(written.is_rounded(number, self.digits) for number in own if mp.isfinite(number))
        return "wrong" if not follows else "carried" if self.wrong & used else "right"
