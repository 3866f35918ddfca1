"""Loop fusion: merge regions with equal trip counts that share reads, or store and read.

So a value and its gradient share their loop, and a value for the same repetition of the next region needs no buffer.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TypeAlias

from codegen.ir.copy_rows import BodyRows, copied
from codegen.ir.program import Program, operations_of
from codegen.ir.readdress import key_of
from codegen.ir.region import Gather, Nest, Region, Result, Step, regions_of, span
from codegen.ir.tables import Table

LARGEST = 400  # operations of a body: larger ones do not fit into registers, and gain nothing
Bodies: TypeAlias = dict[Hashable, tuple[Program, Program, Program]]  # by two bodies and their slots
BACK = 16  # steps that are searched for one to be fused with


def fused(steps: Sequence[Step]) -> list[Step]:
    """Return steps with regions fused with earlier ones where no region between depends on either."""
    return _fused_steps(steps, {})


def _fused_steps(steps: Sequence[Step], known: Bodies) -> list[Step]:
    """Return steps with regions fused; `known` has the bodies made of two that many regions have."""
    done: list[Step] = []
    for step in steps:
        if isinstance(step, Nest):
            done.append(Nest(step.count, tuple(_fused_steps(step.steps, known))))
            continue
        place = _place(done, step)
        if place is None:
            done.append(step)
            continue
        number, late = place
        earlier = done[number]
        assert isinstance(earlier, Region)
        both = _fused(earlier, step, known)
        if late:
            done = [*done[:number], *done[number + 1 :], both]
        else:
            done[number] = both
    return done


def _place(done: Sequence[Step], region: Region) -> tuple[int, bool] | None:
    """Return the number of the step that a region can be fused with; whether at its own place, behind the others."""
    between: list[tuple[Region, bool]] = []  # and whether they are in a nest
    early = True
    for number in range(len(done) - 1, max(len(done) - 1 - BACK, -1), -1):
        step = done[number]
        if isinstance(step, Region) and _fits(step, region):
            if early:
                return number, False
            if all(_passes(step, other, apart=inside) for other, inside in between):
                return number, True
        inside = not isinstance(step, Region)
        passed = [(other, inside) for other, _ in regions_of([step])]
        early = early and all(_passes(other, region, apart=inside) for other, _ in passed)
        between += passed
    return None


def _fits(first: Region, second: Region) -> bool:
    if (
        not (first.parallel and second.parallel and first.count == second.count)
        or operations_of(first.body) + operations_of(second.body) > LARGEST
        or len(first.results) + len(second.results) > 32  # registers, as above
    ):
        return False
    read = {use.buffer for use in second.gathers}
    if first.touched.isdisjoint(read):  # nothing is read by both, or passed on
        return False
    stored = {key_of(use) for use in first.results if use.kind == "store"}
    reads = {key_of(use) for use in first.gathers}
    late = [use for use in second.gathers if use.buffer in first.filled and key_of(use) not in stored]
    waits = bool(late) and _meet(first.results, late)
    is_shared = any(key_of(use) in stored or key_of(use) in reads for use in second.gathers)
    return is_shared and not waits and _writes_pass(first, second)


def _passes(earlier: Region, region: Region, *, apart: bool = False) -> bool:
    """Return whether a region may also run before an earlier one; `apart` if only the earlier one is in a nest."""
    late = [use for use in region.reads if use.buffer in earlier.filled]
    return not (late and (apart or _meet(earlier.results, late))) and _writes_pass(earlier, region, apart=apart)


def _writes_pass(earlier: Region, region: Region, *, apart: bool = False) -> bool:
    """Return whether a region writes to no place that an earlier one reads or stores."""
    touched, filled = earlier.touched, earlier.filled
    over = [use for use in region.results if use.buffer in touched or (use.kind != "add" and use.buffer in filled)]
    if not over or apart:
        return not over
    adds = [use for use in over if use.kind == "add"]
    others = [use for use in over if use.kind != "add"]
    stored = [use for use in earlier.results if use.kind != "add"]
    return not (_meet(earlier.reads, over) or _meet(stored, adds) or _meet(earlier.results, others))


def _meet(uses: Sequence[Gather | Result], others: Sequence[Gather | Result]) -> bool:
    """Return whether two lists of uses may have places in common, in the same round of the nests around."""
    return any(use.buffer == other.buffer and _overlap(use.table, other.table) for use in uses for other in others)


def _overlap(table: Table, other: Table) -> bool:
    (low, high), (lowest, highest) = table.bounds, other.bounds
    return (low <= highest and lowest <= high) or table.shifts != other.shifts


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
        known[key] = body, first.body, second.body  # references keep their ids valid
    body = known[key][0]
    moved = [replace(use, output=use.output + len(first.body.outputs)) for use in second.results]
    return Region(body, first.count, tuple(gathers), (*first.results, *moved), origin=_origin(first, second))


def _origin(first: Region, second: Region) -> str:
    """Return where two bodies were written, the lines of a file together: "forces.py:12-16"."""
    lines: dict[str, list[int]] = {}
    for origin in (*first.origin.split(", "), *second.origin.split(", ")):
        file, _, numbers = origin.rpartition(":")
        known = numbers.replace("-", "").isdigit()
        lines.setdefault(file if known else origin, []).extend(map(int, numbers.split("-") if known else ()))
    return ", ".join(f"{file}:{span(numbers)}" if numbers else file for file, numbers in lines.items() if file)


def _body_of_both(
    first: Program, second: Program, slots: int, firsts: Sequence[int], seconds: Sequence[int]
) -> Program:
    """Return one body for two, with `slots` slots.

    `firsts` and `seconds` are the sources of their slots: slot s of the new body, or ~k for output k of the first one.
    """
    table, outputs = BodyRows(slots), list[int]()
    for body, sources in ((first, firsts), (second, seconds)):
        rows = [table.slots[slot] if slot >= 0 else outputs[~slot] for slot in sources]
        outputs += copied(body, [output.rows[0] for output in body.outputs], table, dict(enumerate(rows)))
    return table.body(outputs, first.name)
