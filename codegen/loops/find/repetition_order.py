"""Columns: the order of repetitions in which tables become long affine runs.

Where nodes lie side by side is known before buffers are: inputs as they are numbered, the results of a loop in the
order of its repetitions, and outputs in theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codegen.ir.tables import SHORTEST, distinct, usual
from codegen.loops.find.anti_unification import Template, is_uniform
from codegen.loops.find.row_classes import Classes
from codegen.loops.loop import Loop, Nodes

_ENOUGH = 8  # repetitions in a run, on average: then the order is left as it is


class Places:
    """Where nodes will lie: a number for each, side by side for those that are kept side by side."""

    def __init__(self, classes: Classes, outputs: Nodes, done: Sequence[Loop], size: int) -> None:
        self.at = np.arange(max(size, len(classes.of)))
        self.shown = np.full(len(self.at), -1)
        self.shown[outputs] = np.arange(len(outputs))
        for loop in done:
            for result in loop.results:
                self.keep(result.nodes)

    def keep(self, nodes: Nodes) -> None:
        """Note that nodes lie side by side."""
        self.at[nodes] = np.arange(len(nodes))


def order_of(template: Template, classes: Classes, places: Places) -> Nodes:
    """Return the order of repetitions with the fewest runs: as found, as the outputs lie, or sorted by what is read."""
    columns = [
        places.at[entry.nodes]
        for entry in template.with_role("slot")
        if not classes.constant[entry.kind] and not is_uniform(entry.nodes)
    ]
    shown = [places.shown[entry.nodes] for entry in template.stores]
    columns += [column for column in shown if (column >= 0).all()]
    columns += [places.at[targets] for _, targets in template.adds]
    order = np.arange(template.count)
    if not columns or runs(columns, order) * _ENOUGH <= template.count:
        return order
    by_variety = sorted(columns, key=lambda column: (len(distinct(column)), int(column.sum())), reverse=True)
    orders = [order, np.lexsort(by_variety), *(np.argsort(column, kind="stable") for column in columns[-1:])]
    return min(orders, key=lambda candidate: runs(columns, candidate))


def gathered(template: Template, classes: Classes, places: Places) -> int:
    """Number of columns that other loops, or straight lines, have left, and that lie about in short runs."""
    columns = [
        places.at[entry.nodes] for entry in template.with_role("slot")
        if classes.heads[entry.kind] is not None and not is_uniform(entry.nodes)
    ]  # fmt: skip
    order = np.arange(template.count)
    return sum(1 for column in columns if runs([column], order) * SHORTEST > template.count)


def runs(columns: Sequence[Nodes], order: Nodes) -> int:
    """Return into how many stretches some columns fall in which each has its usual step.

    >>> i, j = np.triu_indices(9, 1)
    >>> runs([i, j], np.arange(36)), runs([i, j], np.argsort(j, kind="stable"))
    (8, 8)
    """
    broken = np.zeros(max(len(order) - 1, 0), dtype=bool)
    for column in columns:
        ordered = column[order]
        steps = ordered[1:] - ordered[:-1]
        if (steps != steps[:1]).any():
            broken |= steps != usual(steps)
    return 1 + int(broken.sum())
