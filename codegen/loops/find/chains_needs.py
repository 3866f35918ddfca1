"""What is needed of a chain after it: values that a buffer can hold, and that are rounded as in straight lines."""

from __future__ import annotations

import numpy as np

from codegen.loops.find.chains_columns import Columns
from codegen.loops.find.flat_rows import Flags
from codegen.loops.find.verify_chain import Chain


def needed_after(columns: Columns, chain: Chain) -> Flags:
    """Return, by repetition and operation of the body, what later operations read and what is wanted."""
    return _read_later(columns, chain) | _wanted(columns, chain)


def passed_on(columns: Columns, chain: Chain) -> Flags:
    """Return, by repetition and operation of the body, what a chain passes on.

    Truth values, which no buffer holds, are computed again where they are read: their operands are passed on instead.
    So are 1 / v as factors: u / v is rounded only once.
    """
    shape = chain.shape
    model = slice(shape.model, shape.model + shape.period)
    again = columns.truth[model] | columns.inverse[model]
    needed = needed_after(columns, chain)
    needed[:, again] = _wanted(columns, chain)[:, again]
    left = _read_later(columns, chain) & again
    while left.any():
        offset = int(np.nonzero(left.any(axis=0))[0][-1])
        when = np.nonzero(left[:, offset])[0]
        left[:, offset] = False
        for operand in np.nonzero((shape.consumer == offset) & shape.carried)[0].tolist():
            there, producer = when - shape.lag[operand], shape.producer[operand]
            (left if again[producer] else needed)[there[there >= 0], producer] = True
    return needed


def _read_later(columns: Columns, chain: Chain) -> Flags:
    read: Flags = columns.last_use[chain.start : chain.stop] >= chain.stop
    return read.reshape(chain.count, chain.shape.period)


def _wanted(columns: Columns, chain: Chain) -> Flags:
    return columns.wanted[chain.start : chain.stop].reshape(chain.count, chain.shape.period)
