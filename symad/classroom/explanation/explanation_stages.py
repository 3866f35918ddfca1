"""Stages to any depth: the program, its linearization, its transpose, and those of derivatives again.

Levels are processed from the inside out, in the order in which their functions returned. The derivative of an inner
level is part of the program of the level around it, whose rows are those of the differentiated transposed program.
Every stage can be executed line by line after the stages before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import sympy as sp

from codegen.ir.program import needed
from codegen.records import dataclass
from symad.classroom.explanation.explanation_lines import Book, MatrixEntry, Row, Statement, VariableLine
from symad.derivatives.level import Kind
from symad.derivatives.linear import Linear
from symad.derivatives.node_roles import History, Opened, Way, kept_by
from symad.graph.graph import SharedCopy

StageKind = Literal["program", "linearized", "pushed forward", "transposed", "eliminated"]
_ELIMINATIONS = {
    "fwd": "Jacobian, eliminated from the inputs on", "rev": "Jacobian, eliminated from the outputs on",
    "cross-country": "Jacobian, eliminated cross-country", "edge": "Hessian by edge pushing",
    "dyadic": "Hessian as a sum of dyads", "taylor": "Taylor coefficients",
    "second forward": "second derivatives by one forward sweep",
}  # fmt: skip
_SENTENCES: dict[StageKind, str] = {
    "program": "The program that the level differentiates.",
    "linearized": "One row for each operation on the way from the parameters: its tangent (a dot) is a sum of "
    "residuals times tangents. Before the rows stands what the residuals need beyond the program.",
    "pushed forward": "One row for each operation: its tangent (a dot) is a sum of residuals times tangents, carried "
    "along with the program.",
    "transposed": "The same rows with every edge reversed, from the results back: the cotangent (a bar) of a variable "
    "collects from everything that used it.",
    "eliminated": "The rows are the edges of a graph whose inner nodes are eliminated; what is left are the entries.",
}
_NUMBERED: dict[StageKind, str] = {
    "program": "The program that the level differentiates, line by line.",
    "pushed forward": "Each tangent (a dot) is the sum of local derivatives times the tangents of the operands.",
    "transposed": "Each line, from the last one up, adds its own adjoint (a bar) times a local derivative to the "
    "adjoint of each operand.",
}
_OF_QUOTIENTS = (
    "A quotient u/v is differentiated through ln|v|, whose name begins with {}: its slope there is -u/v, and 1/v², "
    "which may be too large or too small a number, is not needed."
)
_SECOND = {
    "edge": "The operations are taken back one by one, from the result on; each passes on its adjoint (C) and what it "
    "knows of second derivatives, and adds its own (R) times its adjoint. What is left belongs to the parameters.",
    "dyadic": "Each operation that is not linear adds its own second derivatives (R) times its adjoint (C) times the "
    "gradients (T) of its two operands.",
    "taylor": "Each operation makes its next coefficient from those of its operands so far.",
    "second forward": "Each operation carries its gradient and something linear in its Hessian along.",
}
_MADE = {"pullback": "the transposed program", "pushforward": "the tangent program", "taylor": "the Taylor program"}


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage: its lines, the nodes of its results, and the number of new operations.

    `level` is None for the computations outside of all levels.
    """

    kind: StageKind
    title: str
    level: Opened | None
    lines: tuple[Statement, ...]
    operations: int
    book: Book
    ends: tuple[int, ...]
    carries: Kind | None = None
    way: str = ""

    @property
    def sentence(self) -> str:
        """The stage in one or two sentences."""
        if self.level is None:
            return "What is computed outside of all levels."
        if self.way in _SECOND:
            return _SECOND[self.way]
        if self.book.values:
            return _NUMBERED[self.kind]
        nested = self.kind in ("linearized", "pushed forward") and self.title.startswith(_MADE["pullback"])
        sentence = ("This is the differentiated transposed program. " if nested else "") + _SENTENCES[self.kind]
        divides = any(isinstance(line, Row) and self.book.is_logarithm(line.node) for line in self.lines)
        return f"{sentence} {_OF_QUOTIENTS.format(self.book.logarithm)}" if divides else sentence

    @property
    def symbols(self) -> tuple[sp.Basic, ...]:
        """The results as they appear in formulas: variables, tangents or cotangents."""
        if self.carries is None:
            return tuple(self.book.symbol(node) for node in self.ends)
        return tuple(self.book.adjoint(node, self.carries) for node in self.ends)

    @property
    def results(self) -> tuple[str, ...]:
        """The names of the results."""
        return tuple(map(str, self.symbols))


class Stages:
    """The stages of a program in order. Each lists only its new lines."""

    book: Book
    sharing: SharedCopy

    def __init__(self, book: Book, sharing: SharedCopy, outputs: Sequence[int]) -> None:
        self.book, self.sharing = book, sharing
        self.levels: list[Opened] = _contributing(book.history, sharing, outputs)
        self.listed: set[int] = set(book.inputs)
        self._counted: set[int] = set()
        self.stages: list[Stage] = [stage for level in self.levels for stage in self._of_level(level)]
        rest = self._stage("program", "around the levels", None, outputs, [], outputs)
        if not self.levels or any(not line.roles for line in rest.lines):
            self.stages.append(rest)

    def _of_level(self, level: Opened) -> Iterator[Stage]:
        name = self._program_name(level)
        yield self._stage("program", name, level, [*level.parameters, *level.results], [], level.results)
        for linear in level.linears:
            ways = [way for way in level.ways if way.linear is not None and _is_same_map(way.linear, linear)]
            if [way.name for way in ways] != ["pushforward"]:  # else the stage of the pass shows the rows
                yield self._linearized(level, linear, name)
            for way in ways:
                yield self._way(level, way, name)
        for way in level.ways:
            if way.linear is None:
                yield self._way(level, way, name)

    def _linearized(self, level: Opened, linear: Linear, name: str) -> Stage:
        rows = [Row(self.book, level.depth, "tangent", target, edges) for target, edges in linear.rows]
        ends = [node for node in linear.outputs if node in {*linear.inputs, *(target for target, _ in linear.rows)}]
        kept = kept_by(linear)
        nodes = [*linear.outputs, *kept]
        return self._stage("linearized", f"{name}, linearized", level, nodes, rows, ends, "tangent", kept)

    def _way(self, level: Opened, way: Way, name: str) -> Stage:
        if way.name == "pullback":
            return self._pass(level, way, "transposed", f"{name}, linearized and transposed")
        if way.name == "pushforward":
            return self._pass(level, way, "pushed forward", f"{name}, linearized and pushed forward")
        what = self.book, level.depth, way.kind, "H" if way.name in ("edge", "dyadic") else "J"
        entries = [MatrixEntry(*what, *entry) for entry in sorted(way.entries.items())]
        title = f"{name}: {_ELIMINATIONS.get(way.name, way.name)}"
        stage = self._stage("eliminated", title, level, way.results, entries, way.results)
        return replace(stage, way=way.name)

    def _pass(self, level: Opened, way: Way, kind: StageKind, title: str) -> Stage:
        """Return the stage of a pass over the rows of a map: its seeds, then the rows that they reach."""
        linear = way.linear
        assert linear is not None
        targets = {target for target, _ in linear.rows}
        reached = targets.union(linear.outputs, (source for _, row in linear.rows for _, source, _ in row))
        seeds: dict[int, list[int]] = {}
        for node, seed in way.seeds:
            if node in reached:  # else it is a constant
                seeds.setdefault(node, []).append(seed)
        rows = []
        for node, put in seeds.items():
            value = None if node in targets else way.values.get(node)
            rows.append(Row(self.book, level.depth, way.kind, node, (), tuple(put), False, value))
        carried = set(seeds)
        for target, edges in linear.rows:
            live = tuple(edge for edge in edges if edge[1] in carried)
            if live or target in carried:
                value = way.values.get(target)
                rows.append(Row(self.book, level.depth, way.kind, target, live, (), target in carried, value))
                carried.add(target)
        kept = kept_by(linear)
        nodes = [*way.outputs, *(kept if kind == "pushed forward" else ()), *(seed for _, seed in way.seeds)]
        computed = [*kept, *(node for term in way.values.values() for node in term if node is not None)]
        ends = [node for node in linear.outputs if node in carried]
        return self._stage(kind, title, level, nodes, rows, ends, way.kind, computed)

    def _stage(
        self, kind: StageKind, title: str, level: Opened | None, nodes: Sequence[int], rows: Sequence[Statement],
        ends: Sequence[int], carries: Kind | None = None, computed: Sequence[int] | None = None,
    ) -> Stage:  # fmt: skip
        """Return a stage of the lines that `nodes` need, and of rows; `computed`: the nodes whose operations count."""
        new = needed(self.book.graph, list(nodes), self.listed)  # what was not listed before, in order of computation
        self.listed.update(new)
        lines = [VariableLine(self.book, node) for node in new if self.book.is_line(node)]
        operations = self.sharing.operations(nodes if computed is None else computed, self._counted)
        return Stage(kind, title, level, (*lines, *rows), operations, self.book, tuple(ends), carries)

    def _program_name(self, level: Opened) -> str:
        """Return the name of the program that a level differentiates."""
        inner = [other for other in self.levels if other.around is level]
        if not inner:
            return level.function or "the function"
        program = _MADE.get(inner[-1].ways[-1].name, "the derivative") if inner[-1].ways else "the program"
        return f"{program} of level {inner[-1].depth}"


def _is_same_map(linear: Linear, other: Linear) -> bool:
    """Whether a map is another one or its transpose."""
    return other.outputs == (linear.inputs if linear.transposed else linear.outputs)


def _contributing(history: History, sharing: SharedCopy, outputs: Sequence[int]) -> list[Opened]:
    """Return the levels that contribute to the result, in the order in which their functions returned.

    A solver's steps and the ways that `mode="auto"` rejected contribute nothing.
    """
    shown: set[Opened] = set()
    around: list[Opened | None] = [None]
    while around:
        needed: set[int] = set()
        for level in around:
            sharing.operations(outputs if level is None else level.products(), needed)
        inner = [level for level in history.finished if level.around in around]
        for level in inner:
            results = [way.results for way in level.ways] or [level.results]
            if any(_share_used(nodes, sharing, needed) for nodes in results):
                history.keep(level, _taken_ways(level.ways, sharing, needed))
                shown.add(level)
        around = [level for level in inner if level in shown]
    return [level for level in history.finished if level in shown]


def _share_used(results: Sequence[int], sharing: SharedCopy, *needed: set[int]) -> float:
    """Return the share of results that is needed, 1 if all are numbers."""
    places = [sharing.there[node] for node in results]
    computed = [place for place in places if sharing.plain.operands[place]]
    used = sum(any(place in inside for inside in needed) for place in computed)
    return used / len(computed) if computed else 1.0


def _taken_ways(ways: Sequence[Way], sharing: SharedCopy, needed: set[int]) -> list[Way]:
    """Return the ways that were taken: of several ways to one result, the one that is needed most.

    Ways are visited from the last one back, because a later way needs the nodes that it differentiates.
    """
    tried: dict[tuple[int, ...], dict[str, list[Way]]] = {}
    for way in reversed(ways):
        tried.setdefault(way.outputs, {}).setdefault(way.name, []).append(way)
    taken, inside = list[Way](), set[int]()
    for outputs, by_name in tried.items():
        used = {name: [_share_used(way.results, sharing, needed, inside) for way in by_name[name]] for name in by_name}
        shares = {name: sum(parts) / len(parts) for name, parts in used.items()}
        best = max((name for name in reversed(shares) if name != "pullback"), key=shares.__getitem__, default="")
        names = [name for name in by_name if name in ("pullback", best) and shares[name]]
        if chosen := [way for name in names for way in by_name[name]]:
            taken += chosen
            sharing.operations(outputs, inside)
    if {"taylor", "pushforward"} <= {way.name for way in taken}:  # two ways to one derivative of higher order
        nested = next(way for way in taken if way.name == "pushforward")
        left_out = "taylor" if _share_used(nested.results, sharing, needed) == 1.0 else "pushforward"
        taken = [way for way in taken if way.name != left_out]
    return [way for way in ways if way in taken]
