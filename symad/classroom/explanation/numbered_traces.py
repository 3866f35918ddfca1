"""Traces with numbers: the lines of each level at a point, with their tangents, or with adjoints from the last line up.

The lines are those of textbooks (Griewank and Walther, "Evaluating Derivatives"; Baydin and others, "Automatic
Differentiation in Machine Learning: a Survey"): a difference or a quotient is one line, parameters of the outermost
levels are the inputs, and of one statement the lines that need fewest others come first. SymPy differentiates the
formula of an elementary line with respect to its operands; other coefficients, and those of rules, are symad's own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import sympy as sp
from mpmath import mp

from codegen.heads import Alias
from codegen.ir.program import needed
from symad.classroom.equality.independent_values import DIGITS, ORDINARY, IndependentValues
from symad.classroom.explanation.checked_lines import FAILURES, known_values, require_equal, values_of
from symad.classroom.explanation.explanation_lines import Book, CarriedLine, LocalDerivative, Statement, VariableLine
from symad.classroom.explanation.explanation_stages import Stage, StageKind
from symad.derivatives.level import Kind
from symad.derivatives.node_roles import Opened, Way
from symad.display.mathematics import text_of
from symad.tracing.calling.user_place import refusal, written_place

_STEPS = (sp.Abs, sp.sign, sp.Heaviside)
_FLAT = (*_STEPS[1:], sp.floor, sp.ceiling)  # between their steps
_ELEMENTARY = {*ORDINARY, *_STEPS, *_FLAT, sp.Add, sp.Mul, sp.Pow, sp.Max, sp.Min, sp.Piecewise, Alias}
_MEETING = (sp.Max, sp.Min, sp.StrictLessThan, sp.LessThan, sp.StrictGreaterThan, sp.GreaterThan, sp.Eq, sp.Ne)


def numbered_stages(
    book: Book, levels: Sequence[Opened], outputs: Sequence[int], stages: Sequence[Stage], point: Sequence[float]
) -> list[Stage]:
    """Return stages of levels, from the innermost out, at a point: a number for each input of the book.

    It names the nodes of the book anew, and gives them their values.
    """
    titles = {stage.level: stage.title for stage in stages if stage.kind == "program"}
    eliminated = {level: [node for way in level.ways if not way.values for node in way.results] for level in levels}
    ends = {level: [*level.results, *eliminated[level]] for level in levels}
    given = [node for level in levels for node in _given(book, level).values() if node is not None]
    own = [node for level in levels for node in (*level.parameters, *ends[level])]
    listed = needed(book.graph, [*given, *own], book.inputs)
    handed_on = _handed_on(levels)
    before = {*handed_on, *listed}
    rest = needed(book.graph, outputs, {*book.inputs, *before})
    nodes = sorted({*listed, *rest})
    with mp.workdps(DIGITS):
        book.values.update(zip(book.inputs, map(mp.mpf, point), strict=True))
        ways = [way for level in levels for way in level.ways]
        carried = [node for way in ways for term in way.values.values() for node in term if node is not None]
        seeds = [seed for way in ways for _, seed in way.seeds]
        book.values.update(values_of(book, [*nodes, *seeds, *carried, *outputs]))
        book.inlined |= _inlined(book, nodes, own or outputs, levels)
        book.number(_in_order(book, nodes))
        _require_values(book, nodes, [*outputs, *(node for level in levels for node in level.results)])
        book.carried |= {value: book.adjoint(*what) for value, what in handed_on.items()}
        traces = [NumberedTrace(book, ends[level], level) for level in levels]
        traces += [NumberedTrace(book, outputs, None, before)] if any(map(book.is_line, rest)) or not levels else []
        return [stage for trace in traces for stage in trace.stages(titles.get(trace.level, ""))]


def _require_values(book: Book, nodes: Sequence[int], results: Sequence[int]) -> None:
    """Raise ArgumentError where a result has no finite value, with the first operation that has none."""
    lost = [node for node in nodes if node not in book.values and node not in book.graph.atoms]
    if any(node in lost for node in results):
        what = f"{book.name(lost[0])} = {text_of(book.formula(lost[0]))} at this point"
        raise refusal(what, "it has no finite real value", "move the point")


def _given(book: Book, level: Opened) -> dict[tuple[int, int], int | None]:
    """Return symad's own coefficients of lines, by line and operand; None for 1."""
    rows = (row for linear in level.linears for row in linear.rows if _is_given(book, row[0]))
    return {(target, edge[1]): edge[0] for target, row in rows for edge in row}


def _is_given(book: Book, node: int) -> bool:
    """Whether a line has a rule of the user's, or is a function that SymPy may not differentiate to all digits."""
    return node in book.graph.rules or book.graph.heads[node] not in _ELEMENTARY


def _handed_on(levels: Sequence[Opened]) -> dict[int, tuple[int, Kind]]:
    """Return the computed nodes that are tangents of results and adjoints of parameters of outermost levels."""
    handed = dict[int, tuple[int, Kind]]()
    for level in levels:
        for way in level.ways if level.around is None else ():
            for node in level.parameters if way.name == "pullback" else level.results:
                value, guard = way.values.get(node, (None, None))
                if value is not None and guard is None:
                    handed.setdefault(value, (node, way.kind))
    return handed


def _inlined(book: Book, nodes: Sequence[int], results: Sequence[int], levels: Sequence[Opened]) -> set[int]:
    """Return the nodes that are written into other lines: signs in sums, divisors, aliases of the inputs."""
    graph, users = book.graph, dict[int, list[int]]()
    for node in nodes:
        for operand in dict.fromkeys(graph.operands[node]):
            users.setdefault(operand, []).append(node)
    parameters = {node: level for level in levels for node in level.parameters}
    inlined: set[int] = set()
    for node in nodes:
        (head, operands), using = (graph.heads[node], graph.operands[node]), users.get(node, [])
        if head is Alias and node not in graph.rules:
            outermost = node in parameters and parameters[node].around is None and operands[0] in book.inputs
            inner = node not in parameters and not any(user in graph.rules for user in using)
            if inner or (outermost and users[operands[0]] == [node]):
                inlined.add(node)
        elif not using or node in results or any(graph.operands[user].count(node) > 1 for user in using):
            continue
        elif head is sp.Mul and len(operands) == 2 and -1 in map(graph.atoms.get, operands):
            inlined |= {node} if all(graph.heads[user] is sp.Add for user in using) else set()
        elif head is sp.Pow and graph.atoms.get(operands[1]) == -1 and all(graph.heads[u] is sp.Mul for u in using):
            signs = (graph.atoms.get(operand) for user in using for operand in graph.operands[user])
            inlined |= {node} if -1 not in signs else set()
    return inlined


def _in_order(book: Book, nodes: Sequence[int]) -> Iterator[int]:
    """Yield nodes statement by statement; those of one statement that need fewest others come first."""
    graph, history, depth = book.graph, book.history, dict[int, int]()
    for node in nodes:
        depth[node] = book.is_line(node) + max((depth.get(other, 0) for other in graph.operands[node]), default=0)
    for _, run in groupby(nodes, lambda node: written_place(graph, node) if history.is_written(node) else node):
        yield from sorted(run, key=depth.__getitem__)


class NumberedTrace:
    """The program of one level at a point: its lines in order, and the derivative of each in its operands."""

    def __init__(self, book: Book, ends: Sequence[int], level: Opened | None, before: Collection[int] = ()) -> None:
        self.book, self.level, self.ends = book, level, ends
        self.parameters: tuple[int, ...] = level.parameters if level else ()
        nodes = needed(book.graph, ends, {*book.inputs, *self.parameters, *before})
        self.lines: list[int] = [node for node in _in_order(book, nodes) if book.is_line(node)]
        self.depends: set[int] = set(self.parameters)
        for node in nodes:
            if self.depends.intersection(book.graph.operands[node]):
                self.depends.add(node)
        self.given: dict[tuple[int, int], int | None] = _given(book, level) if level else {}
        self._locals: dict[int, tuple[LocalDerivative, ...]] = {}
        self.known, self.truth = known_values(book, book.values)

    def stages(self, name: str) -> Iterator[Stage]:
        """Yield the stages: the values with the tangents beside them, or the values and then the adjoints."""
        level, lines = self.level, [VariableLine(self.book, node) for node in [*self.parameters, *self.lines]]
        if level is None:
            yield self._stage("program", "around the levels" if self.book.carried else "values", lines)
            return
        if all(way.name != "pushforward" for way in level.ways):
            yield self._stage("program", f"{name}, values", lines)
        for way in level.ways:
            if way.name == "pullback":
                title = f"{name}, adjoints from the last line up"
                yield self._stage("transposed", title, self.reverse(way), "cotangent")
            elif way.name == "pushforward":
                tangents = {line.node: line for line in self.forward(way)}
                pairs = [part for line in lines for part in (line, tangents.get(line.node)) if part is not None]
                yield self._stage("pushed forward", f"{name}, values and tangents", pairs, "tangent")

    def _stage(self, kind: StageKind, title: str, lines: Sequence[Statement], carries: Kind | None = None) -> Stage:
        return Stage(kind, title, self.level, tuple(lines), 0, self.book, tuple(self.ends), carries)

    def forward(self, way: Way) -> list[CarriedLine]:
        """Return the tangents of parameters and lines; a parameter without a seed has the tangent 0."""
        tangents, carried = dict[int, Any](), list[CarriedLine]()
        for node in (*self.parameters, *self.lines):
            seeds = tuple(seed for target, seed in way.seeds if target == node)
            terms = tuple(term for term in self.derivatives(node) if term.operand in tangents)
            if node in self.parameters or terms:
                numbers = [self.book.values[seed] for seed in seeds] + [t.number * tangents[t.operand] for t in terms]
                tangents[node] = mp.fsum(numbers)
                carried.append(self._carried("tangent", node, tangents[node], terms=terms, seeds=seeds))
        return self._confirmed(way, carried)

    def reverse(self, way: Way) -> list[CarriedLine]:
        """Return the adjoints from the last line up, one for each use of a line."""
        adjoints, carried = dict[int, Any](), list[CarriedLine]()
        for node in dict.fromkeys(node for node, _ in way.seeds if node in self.depends):
            seeds = tuple(seed for target, seed in way.seeds if target == node)
            adjoints[node] = mp.fsum(self.book.values[seed] for seed in seeds)
            carried.append(self._carried("cotangent", node, adjoints[node], seeds=seeds))
        for node in reversed(self.lines):
            for term in self.derivatives(node) if node in adjoints else ():
                before, target = term.operand in adjoints, term.operand
                adjoints[target] = adjoints.get(target, 0) + term.number * adjoints[node]
                carried.append(self._carried("cotangent", target, adjoints[target], terms=(term,), before=before))
        return self._confirmed(way, carried)

    def _confirmed(self, way: Way, carried: list[CarriedLine]) -> list[CarriedLine]:
        """Return the lines; InvariantError where a result is not the number that symad's own program computes."""
        values, last = self.book.values, {line.node: line for line in carried}
        known = {*self.lines, *self.parameters, *self.book.inputs, *self.book.graph.atoms, *self.book.inlined}
        handed = {node: term for node, term in way.values.items() if term[0] not in known}
        carried = [replace(line, term=handed.get(line.node)) if line is last[line.node] else line for line in carried]
        for node in self.parameters if way.kind == "cotangent" else self.ends:
            number, guard = way.values.get(node, (None, None))
            if node in last and number in values and (guard is None or guard in values):
                require_equal(last[node].number, values[number] * (guard is None or values[guard]), last[node])
        return carried

    def _carried(self, kind: Kind, node: int, number: Any, **options: Any) -> CarriedLine:
        return CarriedLine(self.book, self.level.depth if self.level else 0, kind, node, number=number, **options)

    def derivatives(self, node: int) -> tuple[LocalDerivative, ...]:
        """Return the derivatives of a line in its operands that are not 0 by their formula.

        ArgumentError where a line has none at the point.
        """
        if node not in self._locals:
            active = [operand for operand in self._operands(node) if operand in self.depends]
            active = [] if node in self.parameters or self.book.graph.is_boolean(node) else active
            if active:
                self._refuse_kinks(node)
            terms = [self._derivative(node, operand) for operand in active]
            self._locals[node] = tuple(term for term in terms if term.expression != 0)
        return self._locals[node]

    def _operands(self, node: int) -> list[int]:
        """Return the lines and parameters that a line is made of."""
        operands, stack = dict[int, None](), list(self.book.graph.operands[node][::-1])
        if self.book.graph.heads[node] is Alias and node not in self.book.graph.rules:
            stack = stack[-1:]
        while stack:
            operand = stack.pop()
            if operand in self.book.inlined and operand not in self.parameters:
                stack += self.book.graph.operands[operand][::-1]
            elif operand not in self.book.graph.atoms or operand in self.parameters:
                operands[operand] = None
        return list(operands)

    def _derivative(self, node: int, operand: int) -> LocalDerivative:
        book, (formula, slope) = self.book, (self.book.formula(node), sp.S.Zero)
        if not _is_given(book, node):
            formula = formula.xreplace(self.truth).doit(deep=False)
            if formula.func in (sp.Max, sp.Min):  # the operand that it is
                formula = next(part for part in formula.args if self._number(part) == book.values[node])
            if formula.is_Pow and formula.base.is_Float:  # its logarithm has all digits
                formula = sp.Rational(formula.base) ** formula.exp
            real = {symbol: sp.Dummy(real=True) for symbol in formula.free_symbols}  # a user's symbol need not be
            formula, own = formula.xreplace(real), book.symbol(node)
            variable = real.get(book.symbol(operand))
            slope = sp.S.Zero if variable is None or formula.func in _FLAT else formula.diff(variable)
            if not isinstance(formula, sp.Add | sp.Mul | sp.Pow | sp.Piecewise):
                slope = slope.xreplace({formula: own})
            slope = slope.xreplace({dummy: symbol for symbol, dummy in real.items()})
        elif (node, operand) in self.given:
            coefficient = self.given[node, operand]
            slope = sp.S.One if coefficient is None else book.symbol(coefficient)
        if (number := self._number(slope)) is None:
            what = f"{book.name(node)} = {text_of(book.formula(node))} at this point"
            raise refusal(what, f"it has no finite derivative with respect to {book.name(operand)}", "move the point")
        return LocalDerivative(node, operand, slope, number)

    def _number(self, slope: sp.Expr) -> Any:
        """Return the value of a formula of variables; None if it has none."""
        try:
            number = IndependentValues(self.known).of(slope).real
        except FAILURES:
            return None
        return number if isinstance(number, mp.mpf) and mp.isfinite(number) else None

    def _refuse_kinks(self, node: int) -> None:
        """Raise ArgumentError at a kink, a step, or where branches meet: a derivative may not exist there."""
        graph, values, stack = self.book.graph, self.book.values, [node]
        while stack:
            place = stack.pop()
            head, operands = graph.heads[place], graph.operands[place]
            stack += [operand for operand in operands if graph.is_boolean(operand)]
            numbers = [values[operand] for operand in operands if operand in values]  # a condition may look at inputs
            at_step = head in _STEPS and numbers[:1] == [0]
            at_whole = head in (sp.floor, sp.ceiling) and any(map(mp.isint, numbers))
            if at_step or at_whole or (head in _MEETING and numbers[:1] == numbers[1:]):
                what = f"{self.book.name(place)} = {text_of(self.book.formula(place))} at this point"
                raise refusal(what, "there is a kink or a step, where a derivative may not exist", "move the point")
