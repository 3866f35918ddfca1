"""The document of an explanation: levels, stages, program of the result, residuals, operations, tapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeVar

import sympy as sp

from codegen.heads import Alias
from codegen.ir.program import needed
from symad.classroom.explanation.checked_lines import check_statements
from symad.classroom.explanation.explanation_lines import Book, CarriedLine, Row, Statement, VariableLine, rounded
from symad.classroom.explanation.explanation_stages import Stage, Stages
from symad.classroom.explanation.numbered_traces import numbered_stages
from symad.classroom.explanation.tapes import Tapes, followed
from symad.derivatives.node_roles import Opened, Role, kept_by
from symad.display.document import Block, Cell, Columns, Document, Folded, Heading, Inline, Marked, Paragraph, Table
from symad.display.notation import counted
from symad.display.shown import Shown
from symad.display.styles import LOOKS, Style
from symad.graph.graph import SharedCopy

T = TypeVar("T")

FIRST_LINES, LAST_LINES, MOST_LINES = 20, 10, 40  # of a table that is folded; of one that is not
FEW = 6  # of symbols in a narrow column
STAGES_SHOWN = 24
_STRONGEST: tuple[Style, ...] = ("parameter", "cotangent", "tangent", "residual", "primal")
_WAYS = {
    "fwd": "forward elimination", "rev": "reverse elimination", "cross-country": "cross-country elimination",
    "edge": "edge pushing", "dyadic": "sum of dyads", "taylor": "Taylor coefficients",
}  # fmt: skip
_LEGEND: tuple[tuple[Style, str], ...] = (
    ("primal", "primal: a value"),
    ("parameter", "parameter of a level: equal to its argument, never the same"),
    ("residual", "residual: a value that a linear map keeps"),
    ("tangent", "tangent"),
    ("cotangent", "cotangent"),
)


class Explanation(Shown):
    """The stages of a program, from the innermost level out, and the program that computes the result.

    `lines` has every variable of that program in the order of computation, `results` the names of its results, and
    `stages` the stages of each level: program, linearized, transposed, and so on. Printing folds long lists; these are
    complete. `point` has the numbers of the arguments, if it is shown with values.
    """

    name: str
    book: Book
    outputs: tuple[int, ...]
    at_numbers: bool
    detail: str
    point: tuple[Any, ...]

    def __init__(
        self, name: str, book: Book, outputs: tuple[int, ...], *, at_numbers: bool, detail: str,
        point: Sequence[Any] = (),
    ) -> None:  # fmt: skip
        self.name, self.book, self.outputs, self.at_numbers, self.detail = name, book, outputs, at_numbers, detail
        self.sharing: SharedCopy = SharedCopy(book.graph, book.inputs)
        nodes = [node for node in needed(book.graph, outputs, book.inputs) if book.is_line(node)]
        if not any(book.graph.heads[node] is Alias for node in nodes):
            book.history.share_roles(self.sharing.there)  # paths were merged, without the aliases of levels
        stages = Stages(book, self.sharing, outputs)
        self.levels: tuple[Opened, ...] = tuple(stages.levels)
        self.stages: tuple[Stage, ...] = tuple(stages.stages)
        self._listed = {*stages.listed, *nodes}
        book.number(sorted(self._listed))
        self.lines: tuple[Statement, ...] = tuple(VariableLine(book, node) for node in nodes)
        self.point = tuple(point)
        if self.point:
            self.stages = tuple(numbered_stages(book, self.levels, outputs, self.stages, self.point))
            self.lines = tuple(line for stage in self.stages for line in stage.lines)

    def __repr__(self) -> str:
        return self.text()

    @property
    def title(self) -> str:
        return f"explain: {self.name}"

    def named(self, symbols: Sequence[sp.Basic], name: str = "") -> Explanation:
        """Return the explanation with other names for the numbers of the arguments and for the function."""
        book = Book(self.book.graph, dict(zip(self.book.inputs, symbols, strict=True)), self.book.history)
        how: dict[str, Any] = {"point": self.point, "at_numbers": self.at_numbers, "detail": self.detail}
        return Explanation(name or self.name, book, self.outputs, **how)

    def document(self) -> Document:
        """Return the explanation as a document, whose lines are checked. The short one folds details."""
        blocks = (Heading(self.title, 1), *_blocks(self, short=self.detail == "short"))
        check_statements(self.book, [*self.lines, *(line for stage in self.stages for line in stage.lines)])
        return blocks

    @property
    def results(self) -> tuple[str, ...]:
        """The names of the results: variables, inputs, or numbers."""
        return tuple(self.book.name(node) for node in self.outputs)

    def count(self) -> Counter[str]:
        """Return the number of variables with each kind of role."""
        kinds = Counter(role.kind for line in self.lines for role in line.roles)
        return kinds + Counter(primal=sum(not line.roles for line in self.lines))

    @cached_property
    def operations(self) -> int:
        """Number of operations that the result needs. Equal ones on different levels count once."""
        return self.sharing.operations(self.outputs, set())

    @cached_property
    def primal_operations(self) -> int:
        """Number of operations of the user's own code, before any differentiation."""
        graph, history = self.book.graph, self.book.history
        written = [node for node in self._listed if history.is_written(node) and graph.heads[node] is not Alias]
        places = {self.sharing.there[node] for node in written}
        return sum(bool(self.sharing.plain.operands[place]) for place in places)

    @property
    def tapes(self) -> Tapes:
        """The tapes that other designs of nested reverse mode would record for this program."""
        return Tapes(self.book, self.levels)

    def kept(self, level: Opened) -> list[VariableLine]:
        """Return the residuals of a level: the variables that its rows multiply by."""
        nodes, book = dict.fromkeys(node for linear in level.linears for node in kept_by(linear)), self.book
        return [VariableLine(book, node) for node in nodes if node not in book.graph.atoms or node in book.inputs]

    def body(self, level: Opened) -> set[int]:
        """Return the operations of a level: those that depend on its parameters."""
        return followed(self.book.graph, level)

    def not_kept(self, level: Opened) -> list[VariableLine]:
        """Return the variables of a level that no row multiplies by."""
        kept = {line.node for line in self.kept(level)}
        return [VariableLine(self.book, node) for node in sorted(self.body(level) - kept)]


def _blocks(shown: Explanation, short: bool) -> Iterator[Block]:
    numbered = bool(shown.book.values)
    point: Cell = ("At ", *_joined([_named(shown, node) for node in shown.book.inputs]), ".")
    yield from map(Paragraph, [point] if numbered else [_summary(shown), _legend()])
    if shown.levels and not numbered:
        yield _levels(shown)
        yield from _contents(shown)
    stages, hidden = _ends(shown.stages, STAGES_SHOWN // 2, STAGES_SHOWN // 2)
    for group in _beside(stages):
        if hidden and group[0][0] == STAGES_SHOWN // 2 + hidden:
            yield Paragraph(f"{hidden} more stages like these are in explanation.stages.")
        documents = tuple(tuple(_stage(number + 1, stage)) for number, stage in group)
        yield from documents[0] if len(documents) == 1 else (Columns(documents),)
    if not numbered:
        yield Heading("The program of the result")
        yield Paragraph("What is left of all stages: only what the result needs, each operation once.")
        yield _lines(shown.lines, "explanation.lines")
    yield Paragraph(("result: ", *_joined([_named(shown, node) for node in shown.outputs])))
    for section in (_kept, _tapes) if shown.levels and not numbered else ():
        heading, *blocks = section(shown)
        assert isinstance(heading, Heading)
        if short:
            yield Folded(heading.text, (heading, *blocks))
        else:
            yield from (heading, *blocks)


def _named(shown: Explanation, node: int) -> Cell:
    """Return the name of an input or of a result, with its number at the point."""
    symbol, number = shown.book.carried.get(node, shown.book.symbol(node)), shown.book.values.get(node)
    return symbol if number is None or symbol.is_number else (symbol, f" = {rounded(number)}")


def _contents(shown: Explanation) -> Iterator[Block]:
    """Yield the table of stages: the new operations of each, and the total relative to the program."""
    stages, hidden = _ends(shown.stages, STAGES_SHOWN // 2, STAGES_SHOWN // 2)
    primal, so_far = shown.primal_operations, list(accumulate(stage.operations for stage in shown.stages))
    rows: list[tuple[Cell, ...]] = []
    for k, stage in stages:
        level = f"level {stage.level.depth}: " if stage.level else ""
        added = counted(stage.operations, "new operation")
        rows.append((f"{k + 1}.", f"{level}{stage.title}", added, str(so_far[k]), _ratio(so_far[k], primal)))
    if hidden:
        rows.insert(STAGES_SHOWN // 2, ("…", f"{hidden} more stages", "", "", ""))
    total = counted(shown.operations, "operation")
    needed = "the program of the result, shared over all levels"
    rows.append(("", needed, total, str(shown.operations), _ratio(shown.operations, primal)))
    yield Table(("", "contents", "adds", "so far", "times the program"), tuple(rows), "rllrr")
    if [[way.name for way in level.ways] for level in shown.levels] == [["pullback"]]:
        principle = "one reverse level costs a small multiple of the program, however many inputs there are"
        yield Paragraph(f"The cheap gradient principle: {principle}.")


def _summary(shown: Explanation) -> str:
    levels = "no level was opened" if not shown.levels else counted(len(shown.levels), "level")
    ratio = f", {_ratio(shown.operations, shown.primal_operations)} times as many" if shown.levels else ""
    at = " It asks for numbers, so it is shown for the numbers that were given." if shown.at_numbers else ""
    before = counted(shown.primal_operations, "operation")
    return f"{levels}; the program has {before}, the result needs {shown.operations}{ratio}.{at}"


def _legend() -> Cell:
    parts: list[str | Marked] = []
    for style, words in _LEGEND:
        parts += [Marked(LOOKS[style].letter, style), f" {words}; "]
    return (*parts, "the number after the letter is the level: 1 is the outermost, 0 is outside of all.")


def _levels(shown: Explanation) -> Table:
    rows = []
    for level in sorted(shown.levels, key=lambda level: level.depth)[:STAGES_SHOWN]:
        ways = ", ".join(dict.fromkeys(_WAYS.get(way.name, way.name) for way in level.ways)) or "not used"
        edges = sum(len(linear.rows) for linear in level.linears)
        parameters = _joined([shown.book.symbol(node) for node in level.parameters])
        opened = Marked(level.transform or "a transform", "strong")
        rows.append((str(level.depth), opened, _arguments(shown, level), parameters, ways, str(edges)))
    more = len(shown.levels) - len(rows)
    caption = f"{more} more levels are in explanation.levels" if more else ""
    return Table(("level", "opened by", "argument", "parameters", "way", "rows"), tuple(rows), "rllllr", caption)


def _arguments(shown: Explanation, level: Opened) -> Cell:
    """Return the names of a level's arguments; for a formula its symbols."""
    if not all(name.startswith("argument_") for name in level.names):
        return ", ".join(level.names)
    return _joined([shown.book.symbol(node) for node in shown.book.inputs], FEW)


def _beside(stages: Sequence[tuple[int, Stage]]) -> list[list[tuple[int, Stage]]]:
    """Return the stages one by one, a linearized program together with its transpose."""
    groups: list[list[tuple[int, Stage]]] = []
    for number, stage in stages:
        if stage.kind == "transposed" and groups and [before.kind for _, before in groups[-1]] == ["linearized"]:
            groups[-1].append((number, stage))
        else:
            groups.append([(number, stage)])
    return groups


def _stage(number: int, stage: Stage) -> Iterator[Block]:
    level = f"level {stage.level.depth}, {stage.level.transform or 'a transform'}: " if stage.level else ""
    yield Heading(f"{number}. {level}{stage.title}")
    yield Paragraph(stage.sentence)
    if stage.lines:
        yield _lines(stage.lines, f"explanation.stages[{number - 1}].lines")
    results = ("; results: ", *_joined(stage.symbols)) if stage.ends else ()
    if not stage.book.values:
        yield Paragraph((counted(stage.operations, "new operation"), *results))


def _lines(lines: Sequence[Statement], where: str) -> Table:
    pairs: list[list[Statement]] = []
    for line in lines:  # a tangent stands beside its variable
        if isinstance(line, CarriedLine) and line.kind == "tangent" and pairs:
            pairs[-1].append(line)
        else:
            pairs.append([line])
    chosen, hidden = _ends(pairs, FIRST_LINES, LAST_LINES)
    places = {pair[0].source[:2] for _, pair in chosen} - {("", "")}
    files = sorted({file for file, _ in places}) if len(places) > 1 else []  # a formula has but one line
    header: tuple[Cell, ...] = (
        "variable", "from the line", "local derivative", "is", "value", "marks", "in the program",
        f"written in {', '.join(files)}", "tangent", "is", "value",
    )  # fmt: skip
    cells = [tuple(cell for line in pair for cell in _cells(line, files)) for _, pair in chosen]
    cells = [(*row[:9], *row[11:13]) if len(row) > 8 else (*row, "", "", "") for row in cells]
    used = [any(_is_filled(row[k]) for row in cells) for k in range(len(header))]
    if hidden:
        note: tuple[Cell, ...] = (f"… {hidden} lines", "", "", f"hidden here, all are in {where}")
        cells.insert(FIRST_LINES, (*note, *[""] * (len(header) - 4)))
    rows = tuple(tuple(cell for cell, keep in zip(row, used, strict=True) if keep) for row in cells)
    return Table(tuple(cell for cell, keep in zip(header, used, strict=True) if keep), rows)


def _cells(line: Statement, files: Sequence[str]) -> tuple[Cell, ...]:
    style, level = _look(line.roles)
    becomes = [Marked(part, style, level) for part in line.becomes]
    where: Cell = (becomes[0], " where ", becomes[1]) if len(becomes) == 2 else tuple(becomes)
    symbol = Marked(line.symbol, style, level)
    if line.book.values:
        formula: Cell = line.expression if line.expression != line.symbol else Marked("input", "muted")
        value: Cell = (rounded(line.number), " = ", *becomes) if becomes else rounded(line.number)
        return (symbol, *_used_by(line), formula, value, "", "", "")
    file, number, text = line.source
    place = f"{file} {number}" if len(files) > 1 else number
    source = Marked(f"{place}: {text}", "muted") if file in files else ""
    return (symbol, "", "", line.expression, "", _marks(line.roles), where, source)


def _used_by(line: Statement) -> tuple[Cell, Cell]:
    """Return the line that an adjoint comes from, and its local derivative with the number."""
    if not isinstance(line, CarriedLine) or line.kind == "tangent" or not line.terms:
        return "the result" if isinstance(line, CarriedLine) and line.kind == "cotangent" else "", ""
    (term,), book = line.terms, line.book
    user, used = book.symbol(term.line), book.symbol(term.operand)
    number = () if term.expression.is_number else (f" = {rounded(term.number)}",)
    return (user, " = ", book.formula(term.line)), ("∂", user, "/∂", used, " = ", term.expression, *number)


def _is_filled(cell: Cell) -> bool:
    return not isinstance(cell, str | tuple) or bool(cell)  # a relation has no truth value


def _look(roles: Sequence[Role]) -> tuple[Style, int]:
    """Return the style of a variable: its strongest role and that role's first level."""
    ranked = ((style, role.level) for style in _STRONGEST for role in roles if role.kind == style)
    return next(ranked, ("primal", 0))


def _marks(roles: Sequence[Role]) -> Cell:
    marks: list[str | Marked] = []
    for role in roles or (Role(0, "primal"),):
        marks += [Marked(f"{LOOKS[role.kind].letter}{role.level}", role.kind, role.level), " "]
    return tuple(marks[:-1])


def _kept(shown: Explanation) -> Iterator[Block]:
    yield Heading("What is kept for the reverse sweeps")
    for level in [level for level in shown.levels if not level.reverse][:STAGES_SHOWN]:
        why = "its tangents travel along with the values" if level.ways else "nothing was carried by its linear map"
        yield Paragraph(f"Level {level.depth} ({level.transform or 'a transform'}) keeps nothing: {why}.")
    for level in [level for level in shown.levels if level.reverse][:STAGES_SHOWN]:
        kept, dropped = shown.kept(level), shown.not_kept(level)
        yield Paragraph((
            Marked(f"Level {level.depth}", "strong"),
            f" keeps {counted(len(kept), 'value')} ({8 * len(kept)} bytes) until its sweep: each is the "
            "coefficient of a row, or the condition under which a row counts. A record of every operation that it "
            f"follows would have {len(shown.body(level))} entries.",
        ))  # fmt: skip
        if kept:
            yield _kept_table(shown, level, kept)
        if dropped:
            listed = _joined([line.symbol for line in dropped])
            yield Paragraph(("Not kept, because no row multiplies by it: ", *listed))


def _kept_table(shown: Explanation, level: Opened, kept: Sequence[VariableLine]) -> Table:
    users: dict[int, list[Row]] = {}
    for linear in level.linears:
        for target, edges in linear.rows:
            for coefficient, _, guard in edges:
                for node in {coefficient, guard} - {None}:
                    users.setdefault(node, []).append(Row(shown.book, level.depth, "tangent", target))  # type: ignore[arg-type]
    chosen, hidden = _ends(kept, FIRST_LINES, LAST_LINES)
    body = shown.body(level)
    rows: list[tuple[Cell, ...]] = []
    for _, line in chosen:
        targets = users[line.node]
        names = (*_joined([row.symbol for row in targets[:4]]), *([", …"] if len(targets) > 4 else []))
        why = "the parameter itself" if line.node in level.parameters else "a value of the program"
        why = why if line.node in body or line.node in level.parameters else "made for the rows"
        rows.append((Marked(line.symbol, "residual", level.depth), line.expression, f"R{level.depth}", names, why))
    if hidden:
        rows.insert(FIRST_LINES, (f"… {hidden} more", "", "", "", ""))
    return Table(("kept", "is", "marks", "multiplies in the rows of", "because it is"), tuple(rows))


def _tapes(shown: Explanation) -> Iterator[Block]:
    tapes = shown.tapes
    yield Heading("The tapes that this program would need elsewhere")
    yield Paragraph((
        "Systems that record while they run keep a tape for each reverse level; there are three designs. symad is ",
        Marked("staged", "strong"),
        ": it has no tape, because the program of each level is written before any of it runs.",
    ))  # fmt: skip
    if len(tapes.chain) < len(shown.levels):
        several = f"{len(shown.levels)} levels were opened; what follows is for the innermost with those around it."
        yield Paragraph(f"{several} The others would have tapes of their own.")
    if not tapes.reverse:
        yield Paragraph(f"Here {tapes.failures[0].where}.")
        return
    yield Table((), tuple((Marked(design.name, "strong"), design.rule) for design in tapes.designs))
    yield Table(("design", "tape of", *tapes.phases, "holds", "refers to"), tuple(_tape_rows(shown)))
    rows = tuple((Marked(failure.name, "strong"), failure.where) for failure in tapes.failures)
    yield Table(("what goes wrong with tapes", "where it would strike in this program"), rows)


def _tape_rows(shown: Explanation) -> Iterator[tuple[Cell, ...]]:
    tapes, phases = shown.tapes, range(len(shown.tapes.phases))
    for design in tapes.designs:
        for tape in design.tapes:
            holds = _joined([shown.book.symbol(node) for node in tape.holds], FEW)
            yield (design.name, tape.owner, *map(tape.at, phases), holds, f"{tape.refers} more" * bool(tape.refers))
    for last, level in enumerate(reversed(tapes.reverse), 1):
        values = counted(len(shown.kept(level)), "value")
        lives = (values if phase <= last else "" for phase in phases)
        yield ("staged", f"no tape: kept for level {level.depth}", *lives, "", "")


def _ends(items: Sequence[T], first: int, last: int) -> tuple[list[tuple[int, T]], int]:
    """Return the first and last items with their numbers, and the number of omitted ones."""
    if len(items) <= max(first + last, MOST_LINES):
        return list(enumerate(items)), 0
    start = len(items) - last
    chosen = [*range(first), *range(start, len(items))]
    return [(k, items[k]) for k in chosen], start - first


def _joined(symbols: Sequence[Cell], most: int = FIRST_LINES) -> tuple[Inline, ...]:
    """Return symbols separated by commas, at most `most` of them."""
    cells = (symbol if isinstance(symbol, tuple) else (symbol,) for symbol in symbols[:most])
    parts = [part for cell in cells for part in (", ", *cell)][1:]
    return (*parts, f", … ({len(symbols)} in all)") if len(symbols) > most else tuple(parts)


def _ratio(number: int, base: int) -> str:
    return f"{number / base:.2f}" if base else "—"
