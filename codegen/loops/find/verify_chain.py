"""Verify a chain exactly: each operand of each repetition equals what the loop will read.

Repetition k of a loop that begins at operation s is the operations from s + k p on. Each operand of the body is

    local       an operation of the same repetition
    a carry     an operation of the body, `lag` repetitions before; in the first ones anything from before the loop
    a read      from before the loop, in every repetition: constants, inputs, results of loops, or operations

It is also decided here where repetitions start, which results are live-out, and whether repetitions are independent.

An operand that does not fit bounds the begin of the loop: "repetition k reads operation i that is no carry" means
that the loop begins after i. The chain is the longest window over these bounds.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.loops.find.chains_columns import LITERAL, OPERATION, OperationColumns, PeriodicRun
from codegen.loops.find.flat_rows import Flags
from codegen.loops.loop import Nodes
from codegen.records import dataclass

Matrix: TypeAlias = NDArray[np.int64]  # repetitions by operands of the body

SAMPLE = 64  # repetitions that decide on the shape


@dataclass(frozen=True, eq=False)
class Shape:
    """Each operand of the body: its operation, and how many repetitions before, or a read."""

    period: int
    model: int  # position where a repetition begins whose heads are the body's
    consumer: Nodes  # offset in the body of the operation that reads it
    carried: Flags  # local or a carry; else a read
    distance: Nodes  # operations back, where carried
    lag: Nodes
    kind: Nodes  # of a read
    value: Nodes  # the node where a read must be the same in all repetitions, else -1
    left: Nodes  # operands that commute with the next one

    @property
    def producer(self) -> Nodes:
        """Offset in the body of the operation of an operand, where carried."""
        return (self.consumer - self.distance) % self.period


@dataclass(frozen=True, eq=False)
class Chain:
    """Repetitions that are verified: `operands[k, e]` is the node that operand e is in repetition k."""

    start: int
    count: int
    shape: Shape
    operands: Matrix

    @property
    def stop(self) -> int:
        return self.start + self.count * self.shape.period

    def part(self, first: int, stop: int) -> Chain:
        """Return the repetitions from `first` until `stop`."""
        start = self.start + first * self.shape.period
        return Chain(start, stop - first, self.shape, self.operands[first:stop])


@dataclass(frozen=True, eq=False)
class Repetitions:
    """Operands of some repetitions as matrices; `same` are flags of the repetitions with the heads of the body."""

    same: Flags
    operand: Matrix
    source: Matrix
    after: Matrix
    kind: NDArray[np.int8]


def verify(columns: OperationColumns, start: int, count: int, period: int, low: int, high: int) -> Chain | None:
    """Return the longest chain around `count` alike repetitions from `start` on, within positions `low` to `high`."""
    shape = _shape(columns, start, count, period)
    first, last = -((start - low) // period), (high - start) // period
    reach = 4
    while True:
        begin, end = max(first, -reach), min(last, count + reach)
        chain = _longest(columns, shape, start, begin, end)
        if chain is None:
            return None
        stops_early = chain.start > start + begin * period or begin == first
        if stops_early and (chain.stop < start + end * period or end == last):
            return chain
        reach *= 4


def _shape(columns: OperationColumns, start: int, count: int, period: int) -> Shape:
    """Return the shape of repetitions in the middle of a run."""
    begin = max(0, count // 2 - SAMPLE // 2)
    numbers = np.arange(begin, min(count, begin + SAMPLE))
    model = start + int(numbers[len(numbers) // 2]) * period
    operands = slice(int(columns.first[model]), int(columns.first[model + period]))
    consumer = np.repeat(np.arange(period), np.diff(columns.first[model : model + period + 1]))
    kind, node = columns.kind[operands], columns.operand[operands]
    sample = _repetitions(columns, start, period, numbers, model)
    back = start + numbers[:, None] * period + consumer - sample.source
    distance = np.median(back, axis=0).astype(np.int64)
    lag = -((consumer - distance) // period)
    inside = (sample.kind == OPERATION) & (back == distance)
    carried = (inside.sum(axis=0) > len(inside) // 2) & (lag <= max(1, count // 2))
    value = np.where(~carried & (columns.literal[operands] | (kind == LITERAL)), node, -1)
    left = columns.first[model : model + period][columns.pair[model : model + period]] - columns.first[model]
    distance, lag = np.where(carried, distance, 0), np.where(carried, lag, 0)
    return Shape(period, model, consumer, carried, distance, lag, kind.astype(np.int64), value, left)


def _repetitions(columns: OperationColumns, start: int, period: int, numbers: Nodes, model: int) -> Repetitions:
    """Gather the operands of repetitions; with other heads than the model's, they are arbitrary."""
    positions = start + numbers[:, None] * period + np.arange(period)
    same = (columns.codes[positions] == columns.codes[model : model + period]).all(axis=1)
    arity = np.diff(columns.first[model : model + period + 1])
    same &= (columns.first[positions + 1] - columns.first[positions] == arity).all(axis=1)
    where = columns.first[positions[:, :1]] + np.arange(int(arity.sum()))
    where[~same] = 0
    return Repetitions(same, columns.operand[where], columns.source[where], columns.after[where], columns.kind[where])


def _longest(columns: OperationColumns, shape: Shape, start: int, begin: int, end: int) -> Chain | None:
    """Return the longest window of repetitions `begin` to `end` in which all operands fit."""
    numbers = np.arange(begin, end)
    repetitions = _repetitions(columns, start, shape.period, numbers, shape.model)
    bounds = _bounds(shape, repetitions, start, numbers, begin)
    odd = np.nonzero((bounds > begin).any(axis=1) & repetitions.same)[0]
    if len(odd) and len(shape.left):
        _swap(shape, repetitions, bounds, start, numbers, odd)
    bound = np.where(repetitions.same, bounds.max(axis=1, initial=begin), numbers + 1)
    earliest = np.maximum.accumulate(bound)
    length = numbers + 1 - earliest
    best = int(np.argmax(length))
    if length[best] < 1:
        return None
    window = slice(int(earliest[best]) - begin, best + 1)
    return Chain(start + int(earliest[best]) * shape.period, int(length[best]), shape, repetitions.operand[window])


def _bounds(shape: Shape, repetitions: Repetitions, start: int, numbers: Nodes, begin: int) -> Matrix:
    """Return the first repetition of a loop in which an operand fits, for each operand of each repetition."""
    number = numbers[:, None]
    after = np.where(repetitions.after >= 0, np.maximum((repetitions.after - start) // shape.period + 1, begin), begin)
    position = start + number * shape.period + shape.consumer
    natural = (repetitions.source >= 0) & (position - repetitions.source == shape.distance)
    carry = np.where(natural, begin, np.maximum(after, number - shape.lag + 1))
    fits = (repetitions.kind == shape.kind) & ((shape.value < 0) | (repetitions.operand == shape.value))
    bounds: Matrix = np.where(shape.carried, carry, np.where(fits, after, number + 1))
    return bounds


def _swap(shape: Shape, repetitions: Repetitions, bounds: Matrix, start: int, numbers: Nodes, odd: Nodes) -> None:
    """Swap pairs in repetitions that do not fit, where the loop may then begin earlier; in place."""
    turned = np.arange(len(shape.kind))
    turned[shape.left], turned[shape.left + 1] = shape.left + 1, shape.left
    operand, kind = repetitions.operand[odd][:, turned], repetitions.kind[odd][:, turned]
    source, after = repetitions.source[odd][:, turned], repetitions.after[odd][:, turned]
    other = Repetitions(repetitions.same[odd], operand, source, after, kind)
    swapped = _bounds(shape, other, start, numbers[odd], int(numbers[0]))
    pairs = np.stack([shape.left, shape.left + 1])
    better = swapped[:, pairs].max(axis=1) < bounds[odd][:, pairs].max(axis=1)
    row, pair = np.nonzero(better)
    for column in (shape.left[pair], shape.left[pair] + 1):
        repetitions.operand[odd[row], column] = operand[row, column]
        bounds[odd[row], column] = swapped[row, column]


HEAVY = 1000  # carries that one truth value counts for: no buffer holds it


def phase(columns: OperationColumns, run: PeriodicRun) -> int:
    """Return the position of the first repetition of a run: the fewest values cross the begins of repetitions."""
    period = run.period
    middle = run.start + (run.stop - run.start) // 2 // period * period
    edges = [int(columns.first[position]) for position in (middle - period, middle, middle + period)]
    here, there = slice(*edges[:2]), slice(*edges[1:])
    consumer = np.repeat(np.arange(middle, middle + period), np.diff(columns.first[middle : middle + period + 1]))
    source = columns.source[there]
    inside = (source >= run.start) & (source - columns.source[here] == period)
    reach = np.zeros(period, dtype=np.int64)
    offset = (source - middle)[inside] % period
    np.maximum.at(reach, offset, (consumer - source)[inside])
    weight = np.where(columns.truth[middle : middle + period], HEAVY, 1)
    rise = np.zeros(2 * period + 1, dtype=np.int64)
    np.add.at(rise, np.arange(period) + 1, weight)
    np.add.at(rise, np.arange(period) + 1 + reach % period, -weight)  # whole periods count alike everywhere
    width = np.cumsum(rise)[:-1].reshape(2, period).sum(axis=0)
    last = run.stop - np.arange(period)  # of equally narrow places the last: the run ends with a whole repetition
    begin = int(last[np.argmin(width[(last - middle) % period])])
    return begin - (begin - run.start) // period * period


def needed_after(columns: OperationColumns, chain: Chain) -> Flags:
    """Return flags, by repetition and operation of the body, of the values that are wanted or read later."""
    return _read_later(columns, chain) | _wanted(columns, chain)


def passed_on(columns: OperationColumns, chain: Chain) -> Flags:
    """Return flags, by repetition and operation of the body, of the results of a chain.

    Truth values, which no buffer holds, are recomputed where they are read: their operands are results instead.
    So are 1 / v as factors: u / v is rounded only once.
    """
    shape = chain.shape
    model = slice(shape.model, shape.model + shape.period)
    recomputed = columns.truth[model] | columns.inverse[model]
    needed = needed_after(columns, chain)
    needed[:, recomputed] = _wanted(columns, chain)[:, recomputed]
    left = _read_later(columns, chain) & recomputed
    while left.any():
        offset = int(np.nonzero(left.any(axis=0))[0][-1])
        when = np.nonzero(left[:, offset])[0]
        left[:, offset] = False
        for operand in np.nonzero((shape.consumer == offset) & shape.carried)[0].tolist():
            there, producer = when - shape.lag[operand], shape.producer[operand]
            (left if recomputed[producer] else needed)[there[there >= 0], producer] = True
    return needed


def _read_later(columns: OperationColumns, chain: Chain) -> Flags:
    read: Flags = columns.last_use[chain.start : chain.stop] >= chain.stop
    return read.reshape(chain.count, chain.shape.period)


def _wanted(columns: OperationColumns, chain: Chain) -> Flags:
    return columns.wanted[chain.start : chain.stop].reshape(chain.count, chain.shape.period)


def recurs(columns: OperationColumns, chain: Chain, needed: Flags) -> bool:
    """Return whether later repetitions need earlier ones: not so in sums and maps, which have a better form.

    Operations that nothing in the repetitions needs, or that need nothing there, are removed until only cycles are
    left. Where these are only additions that nobody else reads, repetitions add up. Long lags do not count: with less
    than 4 dependent repetitions, the chain is several maps.
    """
    shape, period = chain.shape, chain.shape.period
    linked = shape.carried & (shape.lag <= max(1, chain.count // 4))
    producer, consumer = shape.producer[linked], shape.consumer[linked]
    kept = np.ones(period, dtype=bool)
    while True:
        inside = kept[producer] & kept[consumer]
        read, reads = np.zeros((2, period), dtype=bool)
        read[producer[inside]], reads[consumer[inside]] = True, True
        still = read & reads & kept
        if (still == kept).all():
            break
        kept = still
    codes = columns.codes[shape.model : shape.model + period]
    adds = columns.pair[shape.model : shape.model + period] & (np.array(columns.heads, dtype=object)[codes] == sp.Add)
    uses = np.bincount(shape.producer[shape.carried], minlength=period)
    loops = np.bincount(consumer[inside], minlength=period)
    back = int(shape.lag[linked][inside].sum())  # sums side by side end in as many repetitions
    adding = adds & (uses == 1) & (loops == 1) & ~needed[: max(0, len(needed) - back)].any(axis=0)
    return bool((kept & ~adding).any())
