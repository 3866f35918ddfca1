"""Where a repetition begins: at the operation where the fewest values go on from one repetition to the next."""

from __future__ import annotations

import numpy as np

from codegen.loops.find.chains_columns import Columns
from codegen.loops.find.periods import Run

HEAVY = 1000  # carries that one truth value counts for: no buffer holds it


def phase(columns: Columns, run: Run) -> int:
    """Return the position of the first repetition of a run whose begin is a narrow place.

    A value that is used `d` operations later passes all begins of repetitions between.
    """
    period = run.period
    middle = run.start + (run.stop - run.start) // 2 // period * period
    here, there = (
        slice(int(columns.first[position]), int(columns.first[position + period]))
        for position in (middle - period, middle)
    )
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
