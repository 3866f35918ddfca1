"""Copies: numbers that lie side by side go to other places, in a few stretches with a fixed step if that is so.

The diagonal and the other entries of a band matrix go to every second or third place: such stretches are copied side
by side in one loop, which reads no table. Any other order is a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codegen.ir.body_parts import copy, identities
from codegen.ir.region import Gather, Region, Result
from codegen.ir.tables import Affine, Places, table
from codegen.pricing.price_table import NANOSECONDS

MOST_STRETCHES = 8
WIDEST = 8  # the step of places that one loop fills
ORIGIN = "order"


@dataclass(frozen=True)
class Stretch:
    """Numbers from place `source` on, that go to `target`, `target + step`..."""

    source: int
    target: int
    step: int
    count: int


def stretches(source: Places, target: Places) -> list[Stretch] | None:
    """Return the few stretches that a copy consists of; None if there are more, or their steps are wide.

    >>> stretches(np.arange(5), np.array([0, 2, 4, 1, 3]))
    [Stretch(source=0, target=0, step=2, count=3), Stretch(source=3, target=1, step=2, count=2)]
    """
    found: list[Stretch] = []
    begin, steps, side_by_side = 0, np.diff(target), np.diff(source) == 1
    while begin < len(source):
        if len(found) == MOST_STRETCHES:
            return None
        step = int(steps[begin]) if begin < len(steps) and side_by_side[begin] else 1
        ends = np.nonzero((steps[begin:] != step) | ~side_by_side[begin:])[0]
        end = begin + 1 + int(ends[0]) if len(ends) else len(source)
        if not 1 <= step <= WIDEST:
            return None
        found.append(Stretch(int(source[begin]), int(target[begin]), step, end - begin))
        begin = end
    return found


def cost(source: Places, target: Places) -> float:
    """Return what a copy costs, in nanoseconds; nothing if it changes nothing."""
    if np.array_equal(source, target):
        return 0.0
    if stretches(source, target) is not None:
        return NANOSECONDS["stride store"] * len(source)
    anywhere = 0.0 if len(target) == _extent(target) else NANOSECONDS["table store"]
    return len(source) * (NANOSECONDS["table"] + anywhere)


def _extent(target: Places) -> int:
    return int(target.max() - target.min()) + 1 if len(target) else 0


def copies(source_buffer: int, source: Places, target_buffer: int, target: Places) -> list[Region]:
    """Return the regions of a copy."""
    if not len(source):
        return []
    found = stretches(source, target)
    if found is None:
        order = np.argsort(target, kind="stable")
        return [copy(Gather(source_buffer, table(source[order])), target_buffer, table(target[order]), origin=ORIGIN)]
    regions = []
    while found:
        step = found[0].step
        together = [stretch for stretch in found if stretch.step == step][:step]
        count = min(stretch.count for stretch in together)
        regions.append(_together(source_buffer, target_buffer, together, count))
        rest = [_shortened(stretch, count) for stretch in together if stretch.count > count]
        found = rest + [stretch for stretch in found if stretch not in together]
    return regions


def _together(source: int, target: int, parts: Sequence[Stretch], count: int) -> Region:
    gathers = tuple(Gather(source, Affine(part.source, 1, count)) for part in parts)
    results = (Result(k, target, Affine(part.target, part.step, count), "store") for k, part in enumerate(parts))
    return Region(identities(len(parts)), count, gathers, tuple(results), origin=ORIGIN)


def _shortened(stretch: Stretch, count: int) -> Stretch:
    return Stretch(stretch.source + count, stretch.target + count * stretch.step, stretch.step, stretch.count - count)
