"""Price memory accesses: contiguous, strided or scattered; loads, stores and adds.

See docs/design/price.md; `codegen.pricing.price` has the rest of the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from math import ceil
from typing import TypeAlias

from codegen.ir.tables import Affine, Runs, Table, runs
from codegen.pricing.price_table import LANES_AT_ONCE

LINE = 8  # numbers of a line of the cache: places within one cost less than distant ones
WIDEST = 8  # the step of places that one loop fills

Use: TypeAlias = tuple[str, Table]  # "gather", "store", "add" or "last", and the places


def places_work(count: int, uses: Sequence[Use], packed: Container[int] = ()) -> Counter[str]:
    """Return the work of `count` repetitions side by side to read, store or add numbers at places.

    Numbers of the `packed` uses are copied side by side, if they are near each other.

    >>> sorted(places_work(8, [("gather", Affine(0, 1, 8)), ("add", Affine(0, 3, 8))]).items())
    [('lanes load', 2), ('run', 2), ('stride add', 8)]
    """
    table_runs = runs([table for _, table in uses], count)
    vectors, call = vectors_of(count, table_runs), Counter[str]()
    for number, (kind, table) in enumerate(uses):
        step = table_runs.steps[number] if table_runs is not None else table.step if isinstance(table, Affine) else None
        near = step is not None and abs(step) <= LINE
        if step == 0:  # in a register
            call += Counter({"lanes operation": vectors * (kind == "add")})
        elif step == 1 or (near and number in packed):
            call += Counter({"lanes load": vectors * (kind != "store"), "lanes store": vectors * (kind != "gather")})
        else:
            call[("stride" if near else "table") + ("" if kind == "gather" else f" {kind}")] += count
    call["run"] += len(uses) * (1 if table_runs is None else len(table_runs))
    return call


def vectors_of(count: int, table_runs: Runs | None) -> int:
    """Return the registers that `count` repetitions fill, in stretches."""
    lengths = [count] if table_runs is None else table_runs.lengths.tolist()
    return sum(ceil(length / LANES_AT_ONCE) for length in lengths)


def without_gaps(count: int, uses: Sequence[Use], written: Sequence[int], *, alone: bool = True) -> list[int]:
    """Return the uses that write to one matrix in steps without gaps.

    They are turned into rows in registers, and stored as whole vectors (`codegen.loops.emit`). Sums are not, if other
    loops add to them: then this loop is not alone.

    >>> uses = [("store", Affine(1, 3, 9)), ("add", Affine(2, 3, 9)), ("add", Affine(3, 3, 9))]
    >>> without_gaps(9, uses, range(3)), without_gaps(9, uses, range(2)), without_gaps(9, uses, range(3), alone=False)
    ([0, 1, 2], [], [])
    """
    table_runs = runs([table for _, table in uses], count)
    if table_runs is None:
        return []
    families: dict[int, list[int]] = {}
    for number in written:
        if alone or uses[number][0] == "store":
            families.setdefault(table_runs.steps[number], []).append(number)
    full = [
        family
        for step, family in families.items()
        if 1 < step <= WIDEST and len({int(table_runs.starts[number][0]) % step for number in family}) == step
    ]
    return [number for family in full for number in family]
