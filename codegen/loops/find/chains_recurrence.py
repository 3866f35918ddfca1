"""Whether repetitions are a chain: whether there is a way round through carries that is more than adding up."""

from __future__ import annotations

import numpy as np
import sympy as sp

from codegen.loops.find.chains_columns import Columns
from codegen.loops.find.flat_rows import Flags
from codegen.loops.find.verify_chain import Chain

LEAST_LINKS = 4  # repetitions that wait for each other; in fewer, several maps follow each other


def recurs(columns: Columns, chain: Chain, needed: Flags) -> bool:
    """Return whether later repetitions really need earlier ones: not so in sums and maps, which have a better form.

    Operations are taken away that nothing in the repetitions needs, or that need nothing there, until only ways round
    are left. Where they are only additions that nobody else reads, repetitions add up.
    """
    shape, period = chain.shape, chain.shape.period
    linked = shape.carried & (shape.lag <= max(1, chain.count // LEAST_LINKS))
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
