"""Place the straight lines between loops as a region that runs once, and the regions of a body as a nest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sympy as sp

from codegen.ir.copy_rows import body_of, copy_rows
from codegen.ir.program import Program, Rows
from codegen.ir.readdress import all_readdressed, moved
from codegen.ir.region import Step, regions_of
from codegen.ir.row_table import RowTable
from codegen.ir.tables import Table
from codegen.loops.loop import Loop, Nodes
from codegen.records import dataclass


@dataclass(frozen=True)
class Spot:
    """The position of a buffer in another one: place 0 is at `start` in the first round, and moves on by `shift`."""

    buffer: int
    start: int
    shift: int


def can_be_nest(loop: Loop) -> bool:
    """Return whether a loop is a chain that can have loops inside."""
    chain = bool(loop.carries) and all(len(carry.initial) == 1 for carry in loop.carries)
    return chain and loop.count > 1 and loop.stop is None and all(use.kind in ("each", "last") for use in loop.results)


def in_rounds(steps: Sequence[Step], spots: Mapping[int, Spot]) -> tuple[Step, ...]:
    """Return steps in a nest, whose buffers are at `spots`."""

    def where(buffer: int, table: Table) -> tuple[int, Table]:
        spot = spots[buffer]
        return spot.buffer, moved(table, spot.start, shifts=(spot.shift, *table.shifts))

    return all_readdressed(steps, where)


def added_to(steps: Sequence[Step]) -> set[int]:
    """Return the buffers that some steps add to: these begin at zero in each round, so each round has its own copy."""
    return {use.buffer for region, _ in regions_of(steps) for use in region.results if use.kind == "add"}


def piece_of(
    rows: Rows, sums: Mapping[int, tuple[int, ...]], nodes: Sequence[int], results: Sequence[int], buffer: Nodes
) -> tuple[Program, list[int]]:
    """Return straight lines as a program, and the nodes from outside that its inputs stand for.

    Nodes of `sums` are sums of others, whatever their rows say; nodes from outside with a buffer are read from there.
    """
    inside, table = set(nodes), RowTable()
    parts = (part for node in nodes for part in sums.get(node) or rows.operands[node])
    met = dict.fromkeys(part for part in parts if part not in inside)
    outside = [node for node in met if buffer[node] >= 0]
    row_of = {node: table.leaf(sp.Symbol(f"z{k}")) for k, node in enumerate(outside)}
    copy_rows(rows, met, table, row_of)
    for node in nodes:
        if node in sums:
            row_of[node] = table.canonical(sp.Add, tuple(row_of[part] for part in sums[node]))
        else:
            copy_rows(rows, [node], table, row_of)
    names = (f"z{k}" for k in range(len(outside)))
    return body_of(table, names, (row_of[node] for node in results), "straight"), outside
