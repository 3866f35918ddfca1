"""Find periods: positions where operations resemble those p operations before.

A token of an operation is its head and the distances to its operands. Six equal tokens in a row, d operations apart,
are a vote for the period d. These are candidates only: repetitions are verified exactly (`verify_chain`).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.loops.find.chains_columns import CONSTANT, OPERATION, OperationColumns
from codegen.loops.loop import Nodes
from codegen.records import dataclass

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
