"""Loop fusion: regions that repeat as often, and read the same or one what the other stored, become one loop.

So a value and its gradient share their loop, and what one repetition leaves for the same one of the next region is
passed on without a buffer.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TypeAlias

import sympy as sp

from codegen.ir.copy_rows import body_of, copied
from codegen.ir.program import Program
from codegen.ir.readdress import key_of
from codegen.ir.region import Gather, Nest, Region, Step, regions_of
from codegen.ir.row_table import Table

LARGEST = 300  # operations of a body: what does not fit into registers gains nothing
MOST_RESULTS = 32  # of a body, for the same reason
Bodies: TypeAlias = dict[Hashable, tuple[Program, Program, Program]]  # of two bodies and what their slots read
BACK = 16  # steps that are looked at for one to be fused with


def fused(steps: Sequence[Step]) -> list[Step]:
    """Return steps with regions fused with earlier ones where nothing between stands in the way of either."""
    return _fused_steps(steps, {})


def _fused_steps(steps: Sequence[Step], known: Bodies) -> list[Step]:
    """Return steps with regions fused; `known` has the bodies made of two that many regions have."""
    made: list[Step] = []
    for step in steps:
        if isinstance(step, Nest):
            made.append(Nest(step.count, tuple(_fused_steps(step.steps, known))))
            continue
        place = _place(made, step)
        if place is None:
            made.append(step)
            continue
        number, late = place
        earlier = made[number]
        assert isinstance(earlier, Region)
        both = _fused(earlier, step, known)
        if late:
            made = [*made[:number], *made[number + 1 :], both]
        else:
            made[number] = both
    return made


def _place(made: Sequence[Step], region: Region) -> tuple[int, bool] | None:
    """Return the number of the step that a region can be fused with; whether in its own place, behind the others."""
    between: list[Region] = []
    early = True
    for number in range(len(made) - 1, max(len(made) - 1 - BACK, -1), -1):
        step = made[number]
        if isinstance(step, Region) and _fits(step, region):
            if early:
                return number, False
            if all(_passes(step, other) for other in between):
                return number, True
        passed = [other for other, _ in regions_of([step])]
        early = early and all(_passes(other, region) for other in passed)
        between += passed
    return None


def _fits(first: Region, second: Region) -> bool:
    if (
        not (first.parallel and second.parallel and first.count == second.count)
        or _size(first) + _size(second) > LARGEST
        or len(first.results) + len(second.results) > MOST_RESULTS
    ):
        return False
    stored = {key_of(use) for use in first.results if use.kind == "store"}
    reads = {key_of(use) for use in first.gathers}
    asked = {key_of(use) for use in second.gathers}
    filled = {use.buffer for use in first.results}
    waits = any(use.buffer in filled and key_of(use) not in stored for use in second.gathers)
    return bool(asked & (stored | reads)) and not waits and _writes_pass(first, second)


def _passes(earlier: Region, region: Region) -> bool:
    """Return whether a region may as well run before an earlier one."""
    filled = {use.buffer for use in earlier.results}
    return not any(use.buffer in filled for use in region.reads) and _writes_pass(earlier, region)


def _writes_pass(earlier: Region, region: Region) -> bool:
    """Return whether a region writes nothing that an earlier one reads, or stores."""
    touched = {use.buffer for use in earlier.reads} | {use.buffer for use in earlier.results if use.kind != "add"}
    added = {use.buffer for use in earlier.results}
    return not any(use.buffer in touched or (use.kind != "add" and use.buffer in added) for use in region.results)


def _size(region: Region) -> int:
    return sum(map(bool, region.body.operands))


def _fused(first: Region, second: Region, known: Bodies) -> Region:
    """Return one region for two; the second reads what the first stores from its body."""
    slots = dict[Hashable, int]()
    gathers: list[Gather] = []
    for use in (*first.gathers, *second.gathers):
        if slots.setdefault(key_of(use), len(gathers)) == len(gathers):
            gathers.append(use)
    source = slots | {key_of(use): ~use.output for use in first.results if use.kind == "store"}
    firsts, seconds = [slots[key_of(use)] for use in first.gathers], [source[key_of(use)] for use in second.gathers]
    key = id(first.body), id(second.body), (*firsts, *seconds)
    if key not in known:
        body = _body_of_both(first.body, second.body, len(gathers), firsts, seconds)
        known[key] = body, first.body, second.body  # which keep their ids
    body = known[key][0]
    moved = [replace(use, output=use.output + len(first.body.outputs)) for use in second.results]
    origins = dict.fromkeys(origin for region in (first, second) for origin in region.origin.split(", ") if origin)
    return Region(body, first.count, tuple(gathers), (*first.results, *moved), origin=", ".join(origins))


def _body_of_both(
    first: Program, second: Program, slots: int, firsts: Sequence[int], seconds: Sequence[int]
) -> Program:
    """Return one body for two over so many slots.

    `firsts` and `seconds` are what their slots read: slot s of the new body, or ~k for output k of the first one.
    """
    table = Table()
    rows = [table.leaf(sp.Symbol(f"s{k}", real=True)) for k in range(slots)]
    outputs = _outputs(table, first, [rows[slot] for slot in firsts])
    outputs += _outputs(table, second, [rows[slot] if slot >= 0 else outputs[~slot] for slot in seconds])
    return body_of(table, (f"s{k}" for k in range(slots)), outputs, first.name)


def _outputs(table: Table, body: Program, slots: Sequence[int]) -> list[int]:
    """Write a body over rows for its slots; return the rows of its outputs."""
    wanted = [output.rows[0] for output in body.outputs]
    return copied(body, wanted, table, dict(enumerate(slots)))
