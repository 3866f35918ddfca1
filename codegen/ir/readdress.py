"""Walk through the steps of a rolled program: move its accesses, follow its order of execution, share equal bodies.

A use is a gather of a slot, the initial value of a carry, or a result: a buffer, and a table of places in it. Passes
that move, renumber, expand or contract buffers, or cut the rounds of loops, give a function of uses (`Where`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from codegen.ir.program import Program, atom_key
from codegen.ir.region import Carry, Gather, Nest, Region, Result, Step, regions_of
from codegen.ir.tables import Affine, Indexed, Places, Table

Where: TypeAlias = Callable[[int, Table], tuple[int, Table]]  # of a buffer and the places that are used in it


def readdressed(region: Region, where: Where) -> Region:
    """Return a region with its uses mapped by a function.

    >>> from codegen.ir.program import Program
    >>> region = Region(Program([], [], {}, (), ()), 3, (Gather(0, Affine(1, 1, 3)),), ())
    >>> readdressed(region, lambda buffer, table: (7, moved(table, 10, shifts=(5,)))).gathers
    (Gather(buffer=7, table=Affine(start=11, step=1, count=3, shifts=(5,))),)
    """

    def gathers(uses: Iterable[Gather]) -> tuple[Gather, ...]:
        return tuple(Gather(*where(use.buffer, use.table)) for use in uses)

    results = []
    for use in region.results:
        buffer, table = where(use.buffer, use.table)
        results.append(Result(use.output, buffer, table, use.kind))
    carries = tuple(Carry(carry.output, gathers(carry.initial)) for carry in region.carries)
    return replace(region, gathers=gathers(region.gathers), carries=carries, results=tuple(results))


def all_readdressed(steps: Iterable[Step], where: Where) -> tuple[Step, ...]:
    """Return steps with their uses mapped by a function."""
    return each_region(steps, lambda region: readdressed(region, where))


def renumbered(steps: Iterable[Step], number: Callable[[int], int]) -> tuple[Step, ...]:
    """Return steps with other numbers for their buffers."""
    return all_readdressed(steps, lambda buffer, table: (number(buffer), table))


def each_region(steps: Iterable[Step], change: Callable[[Region], Region | None]) -> tuple[Step, ...]:
    """Return steps with each region changed, or left out (None); an empty nest is left out too.

    >>> from codegen.ir.program import Program
    >>> region = Region(Program([], [], {}, (), ()), 1, (), ())
    >>> (nest,) = each_region([Nest(2, (region, region))], lambda inner: replace(inner, count=3))
    >>> nest.count, [inner.count for inner in nest.steps], each_region([nest], lambda inner: None)
    (2, [3, 3], ())
    """
    changed: list[Step] = []
    around: list[tuple[Nest, Iterator[Step], list[Step]]] = []  # nests, the steps after each, the steps before it
    left = iter(steps)
    while True:
        step = next(left, None)
        if isinstance(step, Nest):
            around.append((step, left, changed))
            left, changed = iter(step.steps), []
        elif step is not None:
            region = change(step)
            changed += [] if region is None else [region]
        elif not around:
            return tuple(changed)
        else:
            nest, left, before = around.pop()
            changed = [*before, replace(nest, steps=tuple(changed))] if changed else before


def buffers_read(steps: Sequence[Step]) -> set[int]:
    """Return the buffers that some steps read."""
    return {use.buffer for region, _ in regions_of(steps) for use in region.reads}


def buffers_written(steps: Sequence[Step]) -> set[int]:
    """Return the buffers that some steps store or add to."""
    return {use.buffer for region, _ in regions_of(steps) for use in region.results}


def key_of(use: Gather | Result) -> Hashable:
    """Return a key that is equal for uses of the same places."""
    return use.buffer, use.table.key


def moved(table: Table, by: int = 0, *, scale: int = 1, shifts: tuple[int, ...] | None = None) -> Table:
    """Return the table of `scale * place + by`, which moves on with the rounds `scale` times as far, or by `shifts`."""
    shifts = tuple(scale * shift for shift in table.shifts) if shifts is None else shifts
    if (scale, by, shifts) == (1, 0, table.shifts):
        return table
    if isinstance(table, Affine):
        return Affine(scale * table.start + by, scale * table.step, table.count, shifts)
    return Indexed(table.index if scale == 1 and by == 0 else scale * table.index + by, shifts)


def backward(table: Table) -> Table:
    """Return the places of a table from the last repetition to the first."""
    if isinstance(table, Affine):
        return Affine(table.start + table.step * (table.count - 1), -table.step, table.count, table.shifts)
    return Indexed(table.index[::-1], table.shifts)


def shift_at(table: Table, level: int) -> int:
    """Return the shift of a table with the rounds of a nest; level 0 is the outermost."""
    return table.shifts[level] if level < len(table.shifts) else 0


def shifts_to(table: Table, depth: int) -> tuple[int, ...]:
    """Return the shifts of a table with the rounds of at least `depth` nests.

    >>> shifts_to(Affine(0, 1, 4, (7,)), 3)
    (7, 0, 0)
    """
    return (*table.shifts, *[0] * (depth - len(table.shifts)))


def repetitions(table: Affine, first: int, count: int, depth: int | None = None) -> Affine:
    """Return the places of some repetitions; in a nest at a depth, `count` of them in each round.

    >>> repetitions(Affine(100, 2, 12), 0, 3, 0), repetitions(Affine(100, 2, 12), 9, 3)
    (Affine(start=100, step=2, count=3, shifts=(6,)), Affine(start=118, step=2, count=3, shifts=()))
    """
    shifts = table.shifts if depth is None else (*shifts_to(table, depth), table.step * count)
    return Affine(table.start + table.step * first, table.step, count, shifts)


def interned(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Return the steps with one object for all equal bodies: row by row, to the bits of their constants.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> bodies = [program_from_sympy([x], [x + value]) for value in (2, 2, 2.0)]
    >>> first, second, third = interned([Region(body, 1, (), ()) for body in bodies])
    >>> second.body is first.body, third.body is first.body
    (True, False)
    """
    first: dict[Hashable, Program] = {}
    shared: dict[int, tuple[Program, Program]] = {}  # by the id of a body, which is kept

    def change(region: Region) -> Region:
        body = region.body
        if id(body) not in shared:
            atoms = tuple((row, atom_key(atom)) for row, atom in body.atoms.items())
            key = tuple(map(id, body.heads)), tuple(body.operands), atoms, body.inputs, body.outputs, body.name
            shared[id(body)] = body, first.setdefault(key, body)
        same = shared[id(body)][1]
        return region if same is body else replace(region, body=same)

    return each_region(steps, change)


def regions_in_time(steps: Sequence[Step]) -> Iterator[tuple[Region, tuple[int, ...]]]:
    """Return every region each time it runs, with the `rounds` of the nests around it, the outermost first.

    >>> from codegen.ir.program import Program
    >>> from codegen.ir.region import Nest
    >>> region = Region(Program([], [], {}, (), ()), 1, (), ())
    >>> [rounds for _, rounds in regions_in_time([region, Nest(2, (region, Nest(1, (region,))))])]
    [(), (0,), (0, 0), (1,), (1, 0)]
    """
    around: list[tuple[tuple[int, ...], Iterator[tuple[int, Step]]]] = [((), _in_rounds(1, steps))]
    while around:
        outer, left = around[-1]
        for k, step in left:
            rounds = (*outer, k)
            if isinstance(step, Nest):
                around.append((rounds, _in_rounds(step.count, step.steps)))
                break
            yield step, rounds[1:]  # the first is that of all steps, which run once
        else:
            around.pop()


def _in_rounds(count: int, steps: Sequence[Step]) -> Iterator[tuple[int, Step]]:
    return ((k, step) for k in range(count) for step in steps)


def places_in(table: Table, rounds: Sequence[int], block: slice) -> Places:
    """Return the places of some repetitions in a round of the nests around.

    >>> places_in(Affine(0, 1, 3, (10, 100)), (2, 1), slice(0, 2))
    array([120, 121])
    """
    moved = sum(shift * k for shift, k in zip(table.shifts, rounds, strict=False))
    if isinstance(table, Affine):
        return table.start + moved + table.step * np.arange(block.start, block.stop, dtype=np.int64)
    return table.index[block] + moved


def place_in(table: Table, rounds: Sequence[int]) -> int:
    """Return the first place of a table in a round of the nests around."""
    return table.first + sum(shift * k for shift, k in zip(table.shifts, rounds, strict=False))


def all_places(table: Table, counts: Sequence[int]) -> Places:
    """Return the places of a table in all rounds of the nests around.

    >>> all_places(Affine(0, 1, 2, (10,)), (3,)).tolist()
    [0, 1, 10, 11, 20, 21]
    """
    places = table.places()
    for depth in reversed(range(len(counts))):
        rounds = shift_at(table, depth) * np.arange(counts[depth], dtype=np.int64)
        places = (rounds[:, None] + places[None, :]).ravel()
    return places


def filled_before_use(steps: Sequence[Step]) -> set[int]:
    """Return the buffers that are used outside of nests only, and written before they are read.

    >>> from codegen.ir.body_parts import copy
    >>> from codegen.ir.region import Gather
    >>> from codegen.ir.tables import Affine
    >>> first, second = [copy(Gather(k, Affine(0, 1, 4)), k + 1, Affine(0, 1, 4)) for k in range(2)]
    >>> filled_before_use([first, second]), filled_before_use([second, first])
    ({1, 2}, {2})
    """
    read = set[int]()
    filled = {use.buffer for step in steps if isinstance(step, Region) for use in step.results}
    for step in steps:
        for region, counts in regions_of([step]):
            reads, results = {use.buffer for use in region.reads}, {use.buffer for use in region.results}
            filled -= (reads | results) if counts else (results & read)
            read |= reads
    return filled
