"""The live operations of a program as NumPy columns in trace order, and the periods at which they look alike.

A token of an operation is its head and the distances to its operands. Six equal tokens in a row, d operations apart,
are a vote for the period d. These are candidates only: repetitions are verified exactly (`verify_chain`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from sympy.logic.boolalg import Boolean

from codegen.heads import NegativeZero, copysign, fmod, hypot, logaddexp, xlogy
from codegen.ir.program import Head, Rows
from codegen.ir.tables import distinct
from codegen.limits import check
from codegen.loops.find.flat_rows import Flags, FlatRows, needed
from codegen.loops.loop import Loop, Nodes
from codegen.records import dataclass

Codes: TypeAlias = NDArray[np.int64]

LITERAL, CONSTANT, INPUT, GIVEN, OPERATION = range(5)  # kinds of nodes; a literal is a leaf that no buffer can hold
NUMBERS = (sp.Number, sp.NumberSymbol, NegativeZero)
# Operands of other heads may be special by their value: polygamma(2, x); there a constant stays a literal.
TABULAR = (
    sp.Add, sp.Mul, sp.Pow, sp.Max, sp.Min, sp.Piecewise, Boolean, sp.atan2, sp.Mod, hypot, fmod, copysign, logaddexp,
    xlogy,
)  # fmt: skip
LARGEST_LITERAL = 4  # exponents up to here, and broken ones, are literals: x**2 is a product


@dataclass(frozen=True, eq=False)
class OperationColumns:
    """Operations by position; the operands of operation i are at `first[i]` to `first[i + 1]`.

    Pairs of Add and Mul are in one order in all repetitions: leaves by kind, then operations by position.
    """

    rows: Rows
    nodes: Nodes  # node of each operation
    kinds: NDArray[np.int8]  # of each node
    place: Nodes  # position of each node, -1 if it is no live operation
    codes: Codes  # number of its head
    heads: list[Head]  # by code
    first: Nodes
    operand: Nodes
    source: Nodes  # position of each operand, -1 if it is no live operation
    after: Nodes  # position of the last operation that each operand waits for: its own, or one that a loop reads
    kind: NDArray[np.int8]  # of each operand
    literal: Flags  # whether an operand must be the same constant in all repetitions
    pair: Flags  # by operation: two operands that commute
    truth: Flags  # by operation: whether its value is true or false
    inverse: Flags  # by operation: whether it is 1 / v
    last_use: Nodes  # by operation: position of the last operation that reads it, -1 for none
    wanted: Flags  # by operation: whether it is an output, or a loop that is done reads it

    def __len__(self) -> int:
        return len(self.nodes)


def columns_of(rows: Rows, inputs: Nodes, outputs: Nodes, done: Sequence[Loop], flat: FlatRows) -> OperationColumns:
    """Return the columns of all operations that outputs and the loops of `done` need."""
    size, arity, codes, heads = len(flat), flat.arity, flat.codes, flat.heads
    is_given = _marked(size, (result.nodes for loop in done for result in loop.results))
    is_wanted = _marked(size, [outputs, *(nodes for loop in done for nodes in loop.nodes_read)])
    kind = np.where(_of(heads, codes, NUMBERS), CONSTANT, LITERAL).astype(np.int8)
    kind[arity > 0] = OPERATION
    kind[np.asarray(inputs, dtype=np.int64).ravel()] = INPUT
    kind[is_given] = GIVEN
    check("looking for chains")
    live = needed(flat, is_wanted, is_given) & (kind == OPERATION)
    place = np.where(live, np.cumsum(live) - 1, -1)
    nodes = np.nonzero(live)[0]
    operand = flat.operands[np.repeat(live, arity)]
    first = np.concatenate([[0], np.cumsum(arity[nodes])])
    codes = codes[nodes]
    pair = (arity[nodes] == 2) & _of(heads, codes, (sp.Add, sp.Mul))
    _sort_pairs(operand, place, kind, first[:-1][pair])
    free = _of(heads, codes, TABULAR) | (arity[nodes] == 1)
    source, after = place[operand], _ready(place, done)[operand]
    literal = np.repeat(~free, arity[nodes]) & (kind[operand] == CONSTANT)
    power = first[:-1][_of(heads, codes, (sp.Pow,))]
    _mark_exponents(rows, literal, operand, kind[operand] == CONSTANT, power)
    last_use = np.full(len(nodes), -1)
    inner = source >= 0
    last_use[source[inner]] = np.repeat(np.arange(len(nodes)), arity[nodes])[inner]  # ascending: the last one stays
    return OperationColumns(
        rows, nodes, kind, place, codes, heads, first, operand, source, after, kind[operand], literal, pair,
        _of(heads, codes, (Boolean,)), _inverses(rows, codes, heads, first, operand), last_use, is_wanted[nodes],
    )  # fmt: skip


def _of(heads: Sequence[Head], codes: Codes, classes: tuple[type, ...]) -> Flags:
    return np.array([issubclass(head, classes) for head in heads], dtype=bool)[codes]


def _ready(place: Nodes, done: Sequence[Loop]) -> Nodes:
    """Return for each node the operation after which it is computed."""
    ready, before = place.copy(), None
    while before is None or (ready != before).any():  # repeated because loops may be given in another order
        before = ready.copy()
        for loop in done:
            read = [int(ready[nodes[nodes < len(place)]].max(initial=-1)) for nodes in loop.nodes_read]
            for result in loop.results:
                ready[result.nodes[result.nodes < len(place)]] = max([-1, *read])
    return ready


def _marked(size: int, columns: Iterable[Nodes]) -> Flags:
    marked = np.zeros(size, dtype=bool)
    for nodes in columns:
        flat = np.asarray(nodes, dtype=np.int64).ravel()
        marked[flat[flat < size]] = True
    return marked


def _mark_exponents(rows: Rows, literal: Flags, operand: Nodes, is_constant: Flags, base: Nodes) -> None:
    """Mark exponents that are literals in place, and the bases of others, as in 2**x."""
    different, number = np.unique(operand[base + 1], return_inverse=True)
    atoms = [rows.atoms.get(node) for node in different.tolist()]
    constant = np.array([isinstance(atom, sp.Number) for atom in atoms], dtype=bool)
    large = [isinstance(atom, sp.Integer) and abs(atom) > LARGEST_LITERAL for atom in atoms]
    literal[base + 1] = (constant & ~np.array(large, dtype=bool))[number]
    literal[base] = ~constant[number] & is_constant[base]


def _inverses(rows: Rows, codes: Codes, heads: Sequence[Head], first: Nodes, operand: Nodes) -> Flags:
    """Return flags of the operations 1 / v; as a factor of u that is u / v, which is rounded only once."""
    inverse = _of(heads, codes, (sp.Pow,))
    exponents = operand[first[:-1][inverse] + 1]
    minus_one = [node for node in distinct(exponents).tolist() if rows.atoms.get(node) is sp.S.NegativeOne]
    inverse[inverse] = np.isin(exponents, minus_one)
    return inverse


def _sort_pairs(operand: Nodes, place: Nodes, kind: NDArray[np.int8], left: Nodes) -> None:
    """Sort the operands of pairs in place: leaves by kind, then operations by position."""
    key = np.where(place[operand] >= 0, place[operand], kind[operand] - OPERATION - 1)
    wrong = left[key[left] > key[left + 1]]
    operand[wrong], operand[wrong + 1] = operand[wrong + 1], operand[wrong]


Tokens: TypeAlias = NDArray[np.uint64]

FAR = 64  # distances from here on are equal: values from before a loop are ever farther away
GRAM = 6
CANDIDATES = 32  # periods that are tried, by votes and by votes times length
LEAST_MATCHES = 3  # periods that a run lasts


@dataclass(frozen=True, slots=True)
class PeriodicRun:
    """Operations from `start` to `stop` that look like those a period before, but the first period."""

    start: int
    stop: int
    period: int


def tokens(columns: OperationColumns) -> Tokens:
    """Return the token of each operation, as a number."""
    count = len(columns)
    arity = np.diff(columns.first)
    position = np.repeat(np.arange(count), arity)
    looks = np.minimum(position - columns.source, FAR)
    leaf = columns.kind != OPERATION
    looks[leaf] = FAR + 1 + columns.kind[leaf]
    exact = columns.literal | (leaf & (columns.kind < CONSTANT))
    looks[exact] = FAR + 16 + columns.operand[exact]
    slot = (np.arange(len(position)) - np.repeat(columns.first[:-1], arity)).astype(np.uint64)
    mixed = _mix(_mix(looks.astype(np.uint64)) + slot)
    sums: Tokens = np.add.reduceat(mixed, columns.first[:-1]) if count else np.empty(0, dtype=np.uint64)
    return sums + _mix(columns.codes.astype(np.uint64) + np.uint64(1 << 40))


def _mix(values: Tokens) -> Tokens:
    """Scatter bits, so that sums of different values are different."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def runs(steps: Tokens) -> list[PeriodicRun]:
    return [run for period in _periods(steps) for run in _runs(steps, period)]


def _periods(steps: Tokens) -> list[int]:
    """Return distances between equal six-grams: those with the most votes, and with the most operations."""
    if len(steps) < 2 * GRAM:
        return []
    grams = np.zeros(len(steps) - GRAM + 1, dtype=np.uint64)
    for shift in range(GRAM):
        grams = grams * np.uint64(0x9E3779B97F4A7C15) + steps[shift : shift + len(grams)]
    order = np.argsort(grams, kind="stable")
    is_equal = grams[order[1:]] == grams[order[:-1]]
    votes = np.bincount(np.diff(order)[is_equal])
    periods: Nodes = np.nonzero(votes >= LEAST_MATCHES)[0]
    by_votes = periods[np.argsort(-votes[periods], kind="stable")][:CANDIDATES]
    by_length = periods[np.argsort(-votes[periods] * periods, kind="stable")][:CANDIDATES]
    return sorted({*by_votes.tolist(), *by_length.tolist()})


def _runs(steps: Tokens, period: int) -> list[PeriodicRun]:
    """Return runs of one period, none of them within another."""
    differs = np.nonzero(steps[period:] != steps[:-period])[0]
    edges = np.concatenate([[-1], differs, [len(steps) - period]])
    long = np.nonzero(np.diff(edges) - 1 >= LEAST_MATCHES * period)[0]
    return [PeriodicRun(int(edges[k]) + 1, int(edges[k + 1]) + period, period) for k in long.tolist()]
