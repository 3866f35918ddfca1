"""Prepare sums for second derivatives: chains that only add become sums, long linear sums get buffers.

The terms of a sum are independent. Matrix products that NumPy carries out column by column are chains that only add,
whose lag is the number of rows.

The Hessian of g(w . x) in 64 inputs has 2080 different entries, but it is one number times an outer product. With w . x
in a buffer (see `pieces`) a body has one entry, and a loop writes the outer product.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import sympy as sp

from codegen.ir.body_parts import copy, outputs_of, rebuilt, row_of
from codegen.ir.program import Program
from codegen.ir.region import Carry, Gather, Nest, Region, Result, RolledProgram, regions_of
from codegen.ir.tables import Affine, Places, table
from codegen.loops.optimise.draft import Draft


def with_reductions(program: RolledProgram) -> RolledProgram:
    """Return a program with sums in place of chains that are reductions, where only their last values are used.

    >>> import numpy as np
    >>> from codegen.ir.program import Input, Output
    >>> from codegen.ir.region import Buffer
    >>> from codegen.ir.tables import Affine
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y = sp.symbols("x y")
    >>> body = program_from_sympy([x, y], [x**2 + y])
    >>> chain = Region(
    ...     body, 3, (Gather(0, Affine(1, 1, 3)),), (Result(0, 1, Affine(0, 0, 1), "last"),),
    ...     (Carry(0, (Gather(0, Affine(0, 0, 1)),)),))
    >>> rolled = RolledProgram(
    ...     (Input("x", (4,)),), (Output((), ()),), (Buffer("input", 4), Buffer("output", 1)), (chain,))
    >>> [(region.count, region.parallel, region.results[0].kind) for region in with_reductions(rolled).steps]
    [(1, True, 'add'), (3, True, 'add')]
    """
    if any(isinstance(step, Nest) for step in program.steps):
        return program
    read = _read(program)
    steps: list[Region] = []
    for region, _ in regions_of(program.steps):
        sums = None if not region.carries or region.stop is not None else _sums(region, read)
        steps += [region] if sums is None else sums
    return replace(program, steps=tuple(steps))


def _read(program: RolledProgram) -> list[Places]:
    """Return for each buffer 1 at places that are read, or are outputs."""
    read = [np.full(buffer.size, buffer.kind == "output", dtype=np.int64) for buffer in program.buffers]
    for region, _ in regions_of(program.steps):
        for use in region.reads:
            read[use.buffer][use.table.places()] = 1
    return read


def _sums(region: Region, read: Sequence[Places]) -> list[Region] | None:
    """Return the regions of a chain's terms and initial values; None where it is no sum, or its history is used."""
    terms: dict[int, tuple[Carry, int]] = {}  # by output of the body: its carry, and the row that is added
    for number, carry in enumerate(region.carries):
        row = _term(region, len(region.gathers) + number, carry.output)
        if row is None or carry.output in terms:
            return None
        terms[carry.output] = (carry, row)
    results: list[tuple[int, Result]] = []  # by row
    steps: list[Region] = []
    for use in region.results:
        if use.output not in terms:
            results.append((row_of(region.body, use.output), use))
            continue
        carry, row = terms[use.output]
        places = _last_places(region, carry, use, read)
        if places is None:
            return None
        results.append((row, Result(0, use.buffer, table(places), "add")))
        first = places[: carry.lag] if region.count >= carry.lag else places
        steps += _copies(carry.initial, use.buffer, first)
    return [*steps, rebuilt(replace(region, carries=()), results, {})]


def _term(region: Region, slot: int, output: int) -> int | None:
    """Return the row that is added to a carry; None where anything else reads the carry or the sum."""
    body, row = region.body, row_of(region.body, output)
    operands = body.operands[row]
    used = [k for k, parts in enumerate(body.operands) if slot in parts or row in parts]
    outputs = [output.rows[0] for output in body.outputs]
    if body.heads[row] is not sp.Add or len(operands) != 2 or operands.count(slot) != 1 or used != [row]:
        return None
    if slot in outputs or outputs.count(row) != 1:
        return None
    return operands[0] if operands[1] == slot else operands[1]


def _last_places(region: Region, carry: Carry, use: Result, read: Sequence[Places]) -> Places | None:
    """Return for each repetition the place of its final sum; None where values before that are used."""
    count, lag = region.count, carry.lag
    if use.kind == "last":
        return np.repeat(use.table.places(), count) if lag == 1 else None
    places = use.table.places()
    if use.kind != "store" or count < lag or read[use.buffer][places[: count - lag]].any():
        return None
    ends = count - 1 - (count - 1 - np.arange(count)) % lag
    return places[ends]


def _copies(initial: Sequence[Gather], buffer: int, places: Places) -> list[Region]:
    copies = []
    for source in dict.fromkeys(use.buffer for use in initial):
        chosen = [k for k, use in enumerate(initial) if use.buffer == source]
        reads = np.array([initial[k].table.places()[0] for k in chosen])
        copies.append(copy(Gather(source, table(reads)), buffer, table(places[chosen]), "add", "initial values"))
    return copies


FEWEST_SLOTS = 12  # of an outlined sum
COMPUTED = ("workspace", "output")  # kinds of buffers that may depend on inputs
MOST_VALUES = 32  # of outlined sums, in all repetitions of all regions


def with_outlined_sums(program: RolledProgram, inputs: Collection[int]) -> tuple[RolledProgram, frozenset[int]]:
    """Return a program whose long linear sums have buffers, and these buffers; regions know nothing of each other."""
    draft, left = Draft(program), MOST_VALUES
    for at, region in enumerate(program.steps):
        assert isinstance(region, Region)
        computed = {k for k, use in enumerate(region.gathers) if program.buffers[use.buffer].kind in COMPUTED}
        variable = computed | {k for k, use in enumerate(region.gathers) if use.buffer in inputs}
        rows = _outlined_sums(region.body, variable) if region.count <= left else []
        if not rows or region.count * len(rows) > left:
            continue
        left -= region.count * len(rows)
        sums, draft.steps[at] = split(region, rows, [draft.workspace(region.count) for _ in rows])
        draft.insert(at, sums)
    outlined = draft.finished() if draft.added else program
    return outlined, frozenset(range(outlined.first_output - len(draft.added), outlined.first_output))


def _outlined_sums(body: Program, variable: set[int]) -> list[int]:
    """Return the rows that are linear in many variable slots, and are operands of nonlinear rows."""
    support: list[frozenset[int]] = []
    linear: list[bool] = []
    used: set[int] = set()
    for row, operands in enumerate(body.operands):
        parts = [support[part] for part in operands]
        support.append(frozenset([row] if row in variable else ()).union(*parts))
        depends = [part for part in operands if support[part]]
        straight = body.heads[row] is sp.Add or (body.heads[row] is sp.Mul and len(depends) == 1)
        linear.append(not depends or (straight and all(linear[part] for part in depends)))
        if not linear[-1]:
            used |= {part for part in depends if linear[part] and len(support[part]) >= FEWEST_SLOTS}
    return sorted(used)


def split(region: Region, rows: Sequence[int], buffers: Sequence[int]) -> tuple[Region, Region]:
    """Return the region that stores some rows in buffers, and the region that reads them there."""
    everywhere = Affine(0, 1, region.count)
    reads = {row: Gather(buffer, everywhere) for row, buffer in zip(rows, buffers, strict=True)}
    kept = [(row, Result(0, read.buffer, everywhere, "store")) for row, read in reads.items()]
    return rebuilt(region, kept, {}), rebuilt(region, outputs_of(region), reads)
