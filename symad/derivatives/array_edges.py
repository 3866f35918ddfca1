"""Partial derivatives of an elementwise array operation, for all elements at once.

They are the rules of scalars (`symad.rules.partials`), asked once on a small graph whose leaves stand for the operands.
The nodes they write there are entered into the graph as array nodes. Quotients are differentiated through the
logarithms of their divisors (see `partials.log_divisor`).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import sympy as sp
from numpy.typing import NDArray

import codegen.heads as h
from codegen.evaluation.column_functions import COLUMNS
from codegen.evaluation.interpret import carry_out, leaf_number
from codegen.ir.program import needed
from codegen.records import dataclass
from symad.graph.array_operands import ArrayNode, OperandAccess, TruthElement, result_of
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.rules.finite import is_finite
from symad.rules.partials import edges, is_reciprocal, log_modulus, quotient
from symad.tracing.control.array_graph import enter
from symad.tracing.values.array_blocks import CONSTANTS, SlotGraph

FORMS = 1024  # bound of the cache of forms, keyed by the structure of an operand and its active slots

_OUTER = frozenset({sp.Mul, sp.Pow, sp.log, h.log1p})  # heads whose operands' heads are looked at, to be differentiated
_INNER = frozenset({sp.Pow, sp.Abs, sp.exp, sp.cosh, sp.Add, sp.Mul, h.hypot})
_DEPTH = 2

Form: TypeAlias = tuple[Any, ...]  # ("slot", k), ("constant", atom), ("reciprocal", k) or (head, form, form...)
_RECIPROCAL, _LOGARITHM = "reciprocal", ("logarithm",)  # of the v of a quotient u/v


Part: TypeAlias = NDArray[Any]  # nodes, or numbers


def array_edges(
    build: Builder,
    array: ArrayNode,
    is_active: Callable[[OperandAccess], bool],
    number_of: Callable[[OperandAccess], Part] | None = None,
    logarithm_of: Callable[[OperandAccess], OperandAccess | None] = lambda reading: None,
) -> list[tuple[Part | None, OperandAccess, Part | None]]:
    """Return the edges from the active operands of an operation on each element: coefficient, source, guard.

    All broadcast to the shape of the array node. A coefficient of None is 1, a guard of None always holds. Both are
    nodes, or numbers where `number_of` gives the numbers of operands. A quotient u/v has an edge from log(|v|), if
    `logarithm_of` gives it for 1/v.
    """
    graph, described = build.graph, _Described(build, array, logarithm_of)
    rule = _rule(described.form, tuple(described.kinds), tuple([is_active(slot) for slot in described.slots]))
    if number_of is None:
        nodes = _nodes_of(graph, array, described, rule)
    else:
        nodes = _numbers_of(array, described, rule, number_of)
    readings = described.readings
    return [
        (None if c is None else np.asarray(nodes[c]), readings[source], None if g is None else np.asarray(nodes[g]))
        for c, source, g in rule.edges
    ]


def _nodes_of(graph: Graph, array: ArrayNode, described: _Described, rule: _EdgeRule) -> dict[int, Part]:
    parts = {rule.rows[part]: reading for part, reading in described.readings.items()}
    parts[rule.result] = result_of(array)
    enter(graph, rule.template, parts, rule.needed)
    return {row: part.ids for row, part in parts.items()}


def _numbers_of(
    array: ArrayNode, described: _Described, rule: _EdgeRule, number_of: Callable[[OperandAccess], Part]
) -> dict[int, Part]:
    """Return the numbers of the rows of a rule."""
    values = dict(rule.constants)
    for row, part in rule.read:
        values[row] = number_of(result_of(array) if row == rule.result else described.readings[part])
    if rule.computed:
        with np.errstate(all="ignore"):
            carry_out(rule.template, rule.computed, values, COLUMNS)
    return values


class _Described:
    """What the operands of an array node are made of, as far as rules look at it; equal operands are one slot."""

    def __init__(
        self, build: Builder, array: ArrayNode, logarithm_of: Callable[[OperandAccess], OperandAccess | None]
    ) -> None:
        self.build, self.graph, self.logarithm_of = build, build.graph, logarithm_of
        self.slots: list[OperandAccess] = []
        self.kinds: list[str] = []
        self.readings: dict[Form, OperandAccess] = {}
        self.has_constant_zero = False
        self.form = self.node(array, 0)
        self.note_finite()

    def node(self, array: ArrayNode, depth: int) -> Form:
        looks = depth > 0 or array.head in _OUTER
        if not depth and array.head is sp.Mul and len(array.operands) == 2:
            for reciprocal, numerator in (array.operands, array.operands[::-1]):
                logarithm = self.logarithm_of(reciprocal)
                if logarithm is not None:
                    forms = [self.operand(numerator, 1), (_RECIPROCAL, self._slot(reciprocal))]
                    self.readings[forms[1]] = reciprocal
                    self.readings[_LOGARITHM] = logarithm
                    return (array.head, *forms)
        return (array.head, *[self.operand(reading, depth + 1 if looks else _DEPTH + 1) for reading in array.operands])

    def operand(self, reading: OperandAccess, depth: int) -> Form:
        graph, view = self.graph, reading.view
        form: Form
        if reading.size == 1 and issubclass(graph.heads[int(reading.ids.flat[0])], CONSTANTS):
            form = ("constant", graph.atoms[int(reading.ids.flat[0])])
            self.has_constant_zero |= leaf_number(form[1]) == 0
        elif (
            depth <= _DEPTH
            and view is not None
            and view.whole
            and view.node.kind == "each"
            and view.node.head in _INNER
            and reading.kept == view.node.shape
        ):
            form = self.node(view.node, depth)
        else:
            form = ("slot", self._slot(reading))
        self.readings[form] = reading
        return form

    def _slot(self, reading: OperandAccess) -> int:
        for k, other in enumerate(self.slots):
            if other.same_as(reading):
                return k
        self.slots.append(reading)
        if reading.view is not None:
            is_truth = reading.view.node.element is TruthElement
            has_zeros = reading.view.node.numbers is not None and not reading.view.node.numbers.all()
        else:
            is_truth, has_zeros = self.graph.is_boolean(int(reading.ids.flat[0])), False
        self.kinds.append("truth" if is_truth else "zeros" if has_zeros else "number")
        return len(self.slots) - 1

    def note_finite(self) -> None:
        """Find the slots that are finite wherever the inputs are, if a constant 0 stands beside them."""
        if self.has_constant_zero or "zeros" in self.kinds:
            for slot, reading in enumerate(self.slots):
                nodes = [*(node.first for node in reading.array_nodes), *reading.single_nodes]
                if self.kinds[slot] == "number" and all(is_finite(self.build, node) for node in nodes):
                    self.kinds[slot] = "finite"


@dataclass(frozen=True)
class _EdgeRule:
    """The edges of a form on a small graph, the rows that its parts have there, and those that the edges need."""

    template: SlotGraph
    rows: dict[Form, int]
    result: int
    edges: list[tuple[int | None, Form, int | None]]  # coefficient, source, guard
    needed: list[int]
    read: list[tuple[int, Form]]  # parts of the form that these read, without constants
    constants: dict[int, Any]  # the constant rows of `needed`
    computed: list[int]  # the others


@lru_cache(maxsize=FORMS)
def _rule(form: Form, kinds: tuple[Any, ...], active: tuple[bool, ...]) -> _EdgeRule:
    """Return the rule of a form; the rules of scalars are asked."""
    template = SlotGraph()
    slots = [template.slot("truth" if kind == "truth" else "number") for kind in kinds]
    rows: dict[Form, int] = {}
    moving = {slot for slot, moves in zip(slots, active, strict=True) if moves}

    def row_of(part: Form) -> int:
        if part in rows:
            return rows[part]
        if part[0] == "slot":
            row = slots[part[1]]
        elif part[0] == _RECIPROCAL:
            divisor = template.slot("number")
            row = template.row(sp.Pow, (divisor, template.number(-1)))
            rows[_LOGARITHM] = template.row(log_modulus, (divisor,))
            if slots[part[1]] in moving:
                moving.update((row, rows[_LOGARITHM]))
        elif part[0] == "constant":
            row = template.leaf(part[1])
        else:
            operands = tuple(rows[operand] if operand in rows else row_of(operand) for operand in part[1:])
            row = template.canonical(part[0], operands)
            if moving.intersection(operands):
                moving.add(row)
        rows[part] = row
        return row

    result = row_of(form)
    build = Builder(template)
    # numbers from elsewhere may be infinite or NaN
    build.finite.update((slot, kind == "finite") for slot, kind in zip(slots, kinds, strict=True))
    build.zeros.update(slot for slot, kind in zip(slots, kinds, strict=True) if kind == "zeros")
    found_edges = edges(build, result, moving.__contains__)
    parts = {row: part for part, row in rows.items()}
    needed_rows = [row for c, _, g in found_edges for row in (c, g) if row is not None]
    stops = {row for part, row in rows.items() if part[0] != "constant"}
    inner = needed(template, needed_rows, stops)
    read = {*needed_rows, *chain.from_iterable(template.operands[row] for row in inner)}
    return _EdgeRule(
        template,
        rows,
        result,
        [(c, parts[source], g) for c, source, g in found_edges],
        inner,
        [(row, parts[row]) for row in sorted(read & stops)],
        {row: leaf_number(template.atoms[row]) for row in inner if row in template.atoms},
        [row for row in inner if row not in template.atoms],
    )


class LogDivisors:
    """The nodes of log(|v|) for those v by which something is divided; they are never computed."""

    def __init__(self, build: Builder) -> None:
        self.build, self.arrays = build, build.graph.arrays
        self._known: dict[int, int] = {}  # by the first node of 1/v: that of log(|v|)

    def of(self, reciprocal: OperandAccess) -> OperandAccess | None:
        """Return log(|v|) in the form in which 1/v is read, None for one that is not known."""
        first = self._first(reciprocal)
        if first not in self._known:
            return None
        return self.arrays.reading(reciprocal.ids - first + self._known[first])

    def new(self, node: int | ArrayNode) -> tuple[int | ArrayNode, OperandAccess, OperandAccess] | None:
        """Return log(|v|), 1/v and v for the first quotient u/v by a v; None for another node."""
        reciprocal = self._of_number(node) if isinstance(node, int) else self._of_array(node)
        if reciprocal is None or (first := self._first(reciprocal)) in self._known:
            return None
        array = self.arrays.at(first)
        if array is None:
            v = self.build.graph.operands[first][0]
            self._known[first] = logarithm = self.build.graph.node(log_modulus, v)
            return logarithm, self.arrays.reading_of(first), self.arrays.reading_of(v)
        added = self.arrays.made(ArrayNode("each", array.shape, array.element, array.operands[:1], log_modulus))
        self._known[first] = added.first
        return added, result_of(array), array.operands[0]

    def _first(self, reading: OperandAccess) -> int:
        """Return the first node of the only array, or the only number, that is read; -1 if there are several."""
        if reading.view is not None:
            return reading.view.node.first
        return -1 if reading.only is None else reading.only

    def _of_number(self, node: int) -> OperandAccess | None:
        parts = quotient(self.build, node)
        return None if parts is None or self.arrays.at(parts[1]) is not None else self.arrays.reading_of(parts[1])

    def _of_array(self, node: ArrayNode) -> OperandAccess | None:
        if node.kind != "each" or node.head is not sp.Mul or len(node.operands) != 2:
            return None
        for reciprocal, numerator in (node.operands, node.operands[::-1]):
            is_number = numerator.only is not None and isinstance(self.build.constant(numerator.only), int | Fraction)
            if not is_number and self._is_reciprocal(reciprocal):
                return reciprocal
        return None

    def _is_reciprocal(self, reading: OperandAccess) -> bool:
        """Whether an operand is 1/v, and not the 1/(1 + exp(u)) that has a derivative of its own."""
        array = None if reading.view is None else reading.view.node
        if array is None:
            only = reading.only
            return only is not None and is_reciprocal(self.build, only)
        if array.kind != "each" or array.head is not sp.Pow or array.operands[1].only != self.build.minus_one:
            return False
        inner = array.operands[0].view
        terms = () if inner is None or inner.node.head is not sp.Add else inner.node.operands
        return not any(term.view is not None and term.view.node.head is sp.exp for term in terms)
