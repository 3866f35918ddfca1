"""Properties of a chain: where repetitions start, which results are live-out, and whether they are independent."""

from __future__ import annotations

import numpy as np
import sympy as sp

from codegen.loops.find.chains_columns import OperationColumns
from codegen.loops.find.flat_rows import Flags
from codegen.loops.find.periods import PeriodicRun
from codegen.loops.find.verify_chain import Chain

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
