"""The values of expansion nodes: floats where all inputs are known, else readable SymPy expressions.

A convention at a single point (the derivative of u**v at u = 0, of max(u, v) at a tie) is a branch in the graph. In an
expression it would hide the formula, so values omit the branch, and a note names the point.
"""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import sympy as sp

import codegen.heads as h
import codegen.special_heads as s
from codegen.errors import WorkbenchError
from codegen.evaluation.interpret import evaluate
from codegen.expressions.sympy_forms import rebuild
from codegen.heads import Alias
from codegen.ir.program import Head, reachable
from symad.classroom.expansion.epsilon import readable
from symad.classroom.expansion.expansion_levels import Levelled
from symad.derivatives.level import Level
from symad.display.document import Cell
from symad.errors import LimitError
from symad.graph.graph import Graph
from symad.rules.undefined import Formal
from symad.tracing.calling.user_place import user_place

POINTS = 2
CLOSE = 1e-9  # relative; about the probability that two different values are closer


def coincide(graph: Graph, left: int, right: int) -> bool:
    """Whether two nodes have equal values at random points, or no comparable ones.

    Symbols get random numbers, and an undefined function is a smooth function of its arguments like any other.

    >>> graph = Graph()
    >>> x = graph.leaf(sp.Symbol("x"))
    >>> double = graph.node(sp.Mul, graph.number(2), x)
    >>> coincide(graph, double, graph.node(sp.Add, x, x)), coincide(graph, double, x)
    (True, False)
    """
    return all(_equal_at(graph, left, right, seed) for seed in range(POINTS))


def _equal_at(graph: Graph, left: int, right: int, seed: int) -> bool:
    known: dict[int, Any] = {}
    try:
        for node in reachable(graph, [left, right]):
            if isinstance(graph.atoms.get(node), sp.Symbol):
                known[node] = random.Random(f"{graph.atoms[node]} {seed}").uniform(0.5, 2.0)
            elif issubclass(graph.heads[node], Formal):
                at = evaluate(graph, graph.operands[node], known)
                known[node] = _some_function(graph.heads[node].__name__, at)
        first, second = evaluate(graph, [left, right], known)
    except (WorkbenchError, ArithmeticError, ValueError):
        return True
    if math.isnan(first) or math.isnan(second):
        return True
    return bool(abs(first - second) <= CLOSE * (abs(first) + abs(second)))


def _some_function(name: str, arguments: list[float]) -> float:
    """Return a value in (0.5, 2.5) that depends on a name and smoothly on numbers."""
    phase = zlib.crc32(name.encode()) % 1000
    return 1.5 + math.sin(phase + sum((k + 1) * argument for k, argument in enumerate(arguments)))


LARGEST = 20_000  # nodes of the tree of a coefficient


class NodeValues:
    """The values of nodes of one graph. `exceptional` collects conditions under which a formula does not hold."""

    graph: Graph

    def __init__(self, graph: Graph, traced: int, known: dict[int, Any], *, numeric: bool = False) -> None:
        self.graph, self._traced, self._known, self._numeric = graph, traced, known, numeric
        self._inexact: dict[int, bool] = {}
        relations = (sp.Equality, sp.Unequality)
        self._asked_by_user = {frozenset(graph.operands[k]) for k in range(traced) if graph.heads[k] in relations}
        self._symbolic: dict[int, bool] = {}
        self._size: dict[int, int] = {}
        self._built: dict[int, sp.Basic] = {}
        self._read: dict[int, Any] = {}
        self.exceptional: dict[sp.Basic, None] = {}

    def of(self, nodes: Sequence[int | None]) -> list[Any]:
        """Return the values of nodes, 0 for a structural zero; LimitError for a value too large to write."""
        present = [node for node in nodes if node is not None]
        self._visit(present)
        for node in present:
            self._check_size(node)
        numbers = [node for node in present if node not in self._read and self._is_float(node)]
        for node, number in zip(numbers, evaluate(self.graph, numbers, self._known), strict=True):
            self._read[node] = number if isinstance(number, bool) else float(number)
        for node in present:
            if node not in self._read:
                self._read[node] = readable(as_sympy(self._expression(node)))
        zero: Any = 0.0 if self._numeric and not any(self._symbolic[node] for node in present) else sp.S.Zero
        return [zero if node is None else self._read[node] for node in nodes]

    def short(self, node: int | None, limit: int) -> Any:
        """Return the value of a node whose tree has at most `limit` nodes, else None."""
        if node is None:
            return sp.S.Zero
        self._visit([node])
        if node in self.graph.atoms:
            return self.graph.atoms[node]
        return self.of([node])[0] if not self._symbolic[node] or self._size[node] <= limit else None

    def names_a_function(self, name: str) -> bool:
        """Whether an undefined function in the graph has that name."""
        return any(issubclass(head, Formal) and head.function.__name__ == name for head in set(self.graph.heads))

    def size(self, node: int) -> int:
        """Return the size of a node's tree, at most LARGEST + 1."""
        self._visit([node])
        return self._size[node]

    def is_symbolic(self, node: int) -> bool:
        """Whether a node depends on symbols or undefined functions."""
        self._visit([node])
        return self._symbolic[node]

    def _is_float(self, node: int) -> bool:
        return not self._symbolic[node] and (self._numeric or self._inexact[node])

    def _visit(self, nodes: Sequence[int]) -> None:
        graph = self.graph
        for node in reachable(graph, [node for node in nodes if node not in self._size]):
            operands = graph.operands[node]
            self._size[node] = min(1 + sum(self._size[operand] for operand in operands), LARGEST + 1)
            symbolic = isinstance(graph.atoms.get(node), sp.Symbol) or issubclass(graph.heads[node], Formal)
            self._symbolic[node] = symbolic or any(self._symbolic[operand] for operand in operands)
            inexact = graph.heads[node] is sp.Float
            self._inexact[node] = inexact or any(self._inexact[operand] for operand in operands)

    def _check_size(self, node: int) -> None:
        if self._size[node] > LARGEST and not self._is_float(node):
            count = len(reachable(self.graph, [node]))
            raise LimitError(
                f"a coefficient that is {count} operations long, and more than {LARGEST} when it is written out",
                where=user_place(),
                why="an expression repeats what the graph shares",
                do="give numbers in place of symbols, or use jvp and Trace.let(), which keep what is shared",
            )

    def _expression(self, node: int) -> sp.Basic:
        """Return the expression of a node as SymPy evaluates it. Known numbers stay numbers."""
        graph = self.graph
        for part in reachable(graph, [node]):
            if part in self._built:
                continue
            operands = graph.operands[part]
            if not operands:
                self._built[part] = graph.atoms[part]
            elif graph.heads[part] is Alias:
                self._built[part] = self._built[operands[0]]
            elif (taken := self.generic(part)) is not None:
                self.exceptional |= dict.fromkeys(self._built[operands[1]].atoms(sp.Eq, sp.Ne))
                self._built[part] = self._built[taken]
            else:
                self._built[part] = self._rounded(part, [self._built[operand] for operand in operands])
        return self._built[node]

    def _rounded(self, node: int, operands: list[sp.Basic]) -> sp.Basic:
        if not self._symbolic[node] and self._inexact[node] and not self.graph.is_boolean(node):
            return sp.Float(evaluate(self.graph, [node], self._known)[0])
        return rebuild(self.graph.heads[node], operands, evaluate=True)

    def generic(self, node: int) -> int | None:
        """Return the branch that holds except at single points, if a rule made the node for a convention."""
        operands = self.graph.operands[node]
        if self.graph.heads[node] is not sp.Piecewise or node < self._traced:
            return None
        self._visit([node])
        if not self._symbolic[operands[1]]:
            return None
        if self._is_thin(operands[1]):
            return operands[2]
        return operands[0] if self._is_nearly_always(operands[1]) else None

    def resolved(self, node: int) -> int:
        """Return the node that equals a node except at single points."""
        while (taken := self.generic(node)) is not None:
            node = taken
        return node

    def needed(self, nodes: Iterable[int]) -> set[int]:
        """Return the nodes that nodes depend on except at single points."""
        stack, needed = [self.resolved(node) for node in nodes], set[int]()
        while stack:
            node = stack.pop()
            if node not in needed:
                needed.add(node)
                stack += map(self.resolved, self.graph.operands[node])
        return needed

    def _is_thin(self, condition: int) -> bool:
        return self._decided(condition, sp.Equality, sp.And, self._is_nearly_always)

    def _is_nearly_always(self, condition: int) -> bool:
        return self._decided(condition, sp.Unequality, sp.Or, self._is_thin)

    def _decided(self, condition: int, relation: Head, one_is_enough: Head, opposite: Callable[[int], bool]) -> bool:
        head, operands = self.graph.heads[condition], self.graph.operands[condition]
        decided = partial(self._decided, relation=relation, one_is_enough=one_is_enough, opposite=opposite)
        if head in (sp.And, sp.Or):
            return (any if head is one_is_enough else all)(map(decided, operands))
        if head is sp.Not:
            return opposite(operands[0])
        if head is not relation or frozenset(operands) in self._asked_by_user:
            return False
        return not coincide(self.graph, *operands)


def as_sympy(expression: sp.Basic) -> sp.Basic:
    """Return an expression in SymPy's own functions and forms, as users write it.

    Heads that only save digits are written out; so are jn and yn, which SymPy 1.14 evaluates wrongly left of 0.
    Derivatives of undefined functions become Derivative and Subs.

    >>> x, y = sp.symbols("x y")
    >>> as_sympy(h.direction_cosine(x, y) + sp.jn(1, x))
    x/sqrt(x**2 + y**2) - cos(x)/x + sin(x)/x**2
    """
    if not expression.has(*_REWRITTEN):
        return expression
    return expression.replace(lambda part: isinstance(part, _REWRITTEN), _rewritten)


_REWRITTEN = (h.direction_cosine, h.one_minus_square, h.hypot, sp.jn, sp.yn, s.spherical_jn, s.spherical_yn, Formal)


def _rewritten(part: sp.Expr) -> sp.Expr:
    if isinstance(part, Formal):
        return part.doit()
    if isinstance(part, (s.spherical_jn, s.spherical_yn)):
        part = (sp.jn if isinstance(part, s.spherical_jn) else sp.yn)(*part.args)
    if isinstance(part, sp.jn | sp.yn):
        return sp.expand_func(part)
    if isinstance(part, h.one_minus_square):
        return 1 - part.args[0] ** 2
    u, v = part.args
    root = sp.sqrt(u**2 + v**2)
    return root if isinstance(part, h.hypot) else u / root


FEW = 4
SHORT = 60  # nodes of a formula that is written out
_AT_A_KINK: dict[Head, str] = {
    sp.Abs: "there the derivative of |u| is taken as sign(0) = 0",
    sp.Max: "at a tie each of the two gets one half",
    sp.Min: "at a tie each of the two gets one half",
}


def asked_conditions(level: Level) -> dict[int, bool]:
    """Return the conditions that Python's control flow evaluated during the call of f, and their answers."""
    graph, values = level.scope.graph, level.scope.values
    return {node: bool(values[node]) for node in list(values) if graph.is_boolean(node) and graph.operands[node]}


def notes_of(
    values: NodeValues, nodes: Levelled, symbols: Mapping[int, sp.Basic], answers: Mapping[int, bool]
) -> tuple[Cell, ...]:
    """Return the notes, each a line of prose with mathematics."""
    notes: list[Cell] = []
    for node, answer in list(answers.items())[:FEW]:
        if (shown := written(values, node, symbols)) is not None:
            verdict = "holds" if answer else "does not hold"
            notes.append(("Here ", shown, f" {verdict}: only the path that Python takes then is expanded."))
    if values.exceptional:
        conditions = sorted({sp.Eq(*condition.args) for condition in values.exceptional}, key=str)[:FEW]
        listed: list[Any] = [part for c in conditions for part in (", ", c.lhs, " = ", c.rhs)][1:]
        notes.append(("The formulas hold except where ", *listed, ": there a convention takes their place."))
    return (*notes, *_kinks(values, nodes, symbols), *_not_finite(values, nodes, symbols))


def _kinks(values: NodeValues, nodes: Levelled, symbols: Mapping[int, sp.Basic]) -> list[Cell]:
    """Return the conventions that a numeric expansion used."""
    graph, notes = values.graph, list[Cell]()
    for target, _ in nodes.stages[0].rows:
        operands = graph.operands[target]
        if graph.heads[target] not in _AT_A_KINK or any(map(values.is_symbolic, operands)):
            continue
        sizes = values.of(operands)
        if sizes[0] == (sizes[1] if len(sizes) > 1 else 0.0):
            shown = written(values, target, symbols)
            convention = f": {_AT_A_KINK[graph.heads[target]]}."
            notes.append(f"A kink{convention}" if shown is None else (shown, f" has a kink here{convention}"))
    return notes[:FEW]


def _not_finite(values: NodeValues, nodes: Levelled, symbols: Mapping[int, sp.Basic]) -> list[Cell]:
    """Return the first operation whose value or derivative is not finite."""
    coefficients = [node for row in nodes.coefficients.values() for node in row if node is not None]
    if all(map(_is_finite, values.of(coefficients))):
        return []
    graph = values.graph
    for node in reachable(graph, nodes.coefficients[()]):  # type: ignore[arg-type]
        if graph.operands[node] and not graph.is_boolean(node) and not _finite_node(values, node):
            return [_domain(values, node, symbols, "is not finite here, outside its domain or at a pole")]
    for stage in nodes.stages:
        for target, _ in stage.rows:
            if not _finite_node(values, stage.parts[target]):
                return [_domain(values, target, symbols, "has a value, but no finite derivative here")]
    return [("A coefficient is not finite.",)]


def _domain(values: NodeValues, node: int, symbols: Mapping[int, sp.Basic], verdict: str) -> Cell:
    graph, shown = values.graph, written(values, node, symbols)
    operands = [part for part in graph.operands[node] if part not in graph.atoms and not values.is_symbolic(part)]
    numbers = ", ".join(f"{value:g}" for value in values.of(operands))
    name = (graph.heads[node].__name__,) if shown is None else (shown,)
    return (*name, f" {verdict} (at {numbers})." if numbers else f" {verdict}.")


def _finite_node(values: NodeValues, node: int | None) -> bool:
    value = values.short(node, SHORT)
    return value is None or _is_finite(value)


def _is_finite(value: Any) -> bool:
    if isinstance(value, sp.Basic):
        return not value.has(sp.nan, sp.zoo, sp.oo, -sp.oo)
    return math.isfinite(value)


def written(values: NodeValues, node: int, symbols: Mapping[int, sp.Basic], limit: int = SHORT) -> sp.Basic | None:
    """Return a traced node as the user wrote it, in the symbols of the argument; None if it is longer than `limit`."""
    graph, rebuilt = values.graph, dict(symbols)
    if values.size(node) > limit:
        return None
    for part in reachable(graph, [node]):
        operands = [rebuilt[operand] for operand in graph.operands[part] if operand in rebuilt]
        if part not in rebuilt and not operands:
            rebuilt[part] = graph.atoms[part]
        elif part not in rebuilt:
            rebuilt[part] = rebuild(graph.heads[part], operands, evaluate=True)
    return rebuilt[node]
