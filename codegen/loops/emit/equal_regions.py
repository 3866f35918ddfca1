"""Write loops that differ only in their arrays as one function with the arrays as parameters.

Python code that repeats operations on arrays, as the time steps of a recurrent network, makes separate regions of
each repetition: the same bodies over the same tables, between other buffers. Two regions are equal if their bodies,
counts, carries, results, lanes and blocks are, and if their tables differ by one distance for each buffer. Workspaces
at equal distances are reached from one moved %work, so that the addresses in the function stay the same; any other
array that differs between regions is a pointer parameter.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from codegen.ir.region import Region
from codegen.ir.tables import distances
from codegen.loops.emit.loop_columns import Use
from codegen.loops.emit.workspace import Memory
from codegen.records import dataclass

Places = list[tuple[int, int]]  # the buffers of a region in the order of their use, each with the first place used


@dataclass(frozen=True)
class Shared:
    """The function of region `number` runs a region; `names` are its parameters for arrays.

    `given` are the arguments: arrays as in `Memory.pointers` ("%work 0" for the workspace), and how many numbers they
    are moved. `memory` is where that function finds its buffers.
    """

    number: int
    names: tuple[str, ...]
    given: tuple[tuple[str, int], ...]
    memory: Memory


def apart(regions: Sequence[Region], memory: Memory) -> list[Shared]:
    """Return a function for each region."""
    return [Shared(number, (), (), memory) for number in range(len(regions))]


def shared(regions: Sequence[Region], facts: Sequence[Hashable], memory: Memory) -> list[Shared]:
    """Return the functions of regions; equal regions have the function of the first of them.

    `facts` have to be equal too: the number of nests around, lanes, blocks, the sums that are stores. Bodies are
    equal if they are one object (`codegen.ir.interning`).
    """
    known: dict[int, Hashable] = {}
    laid_out = [_laid_out(region, memory, known) for region in regions]
    groups: dict[Hashable, list[int]] = {}
    for number, ((key, _), fact) in enumerate(zip(laid_out, facts, strict=True)):
        groups.setdefault((key, fact), []).append(number)
    functions = apart(regions, memory)
    for members in groups.values():
        if len(members) > 1:
            places = [laid_out[number][1] for number in members]
            for number, function in zip(members, _together(members, places, memory), strict=True):
                functions[number] = function
    return functions


def _laid_out(region: Region, memory: Memory, known: dict[int, Hashable]) -> tuple[Hashable, Places]:
    """Return a key of equal regions, and the places where the buffers of a region are first used."""
    origins: dict[int, tuple[int, int]] = {}
    uses: list[Use] = [*region.reads, *region.results]
    tables = []
    for use in uses:
        number, first = origins.setdefault(use.buffer, (len(origins), use.table.first))
        tables.append((number, use.table.first - first, distances(use.table, known)))
    carries = tuple((carry.output, carry.lag) for carry in region.carries)
    results = tuple((use.output, use.kind) for use in region.results)
    rooms = tuple(map(memory.has_room, origins))
    key = id(region.body), region.count, tuple(tables), carries, results, region.stop, region.matrix, rooms
    return key, [(buffer, first) for buffer, (_, first) in origins.items()]


def _together(members: Sequence[int], places: Sequence[Places], memory: Memory) -> list[Shared]:
    """Return the arguments with which equal regions call the function of the first one."""
    pointers, names = list(memory.pointers), dict[tuple[tuple[str, int], ...], str]()
    for used in zip(*places, strict=True):
        buffer, moves = used[0][0], [first - used[0][1] for _, first in used]
        texts = [memory.pointers[number] for number, _ in used]
        start, kind = "", "array"
        if memory.has_room(buffer):  # the distance from the first region's in place of two addresses
            starts = [int(text.split()[1]) for text in texts]
            moves = [move + other - starts[0] for move, other in zip(moves, starts, strict=True)]
            texts, start, kind = ["%work 0"] * len(used), f" {starts[0]}", "work"
        arguments = tuple(zip(texts, moves, strict=True))
        if len(set(arguments)) > 1:
            pointers[buffer] = names.setdefault(arguments, f"%{kind}{len(names)}") + start
    moved = replace(memory, pointers=tuple(pointers))
    given_to = zip(*names, strict=True) if names else [()] * len(members)
    return [Shared(members[0], tuple(names.values()), tuple(arguments), moved) for arguments in given_to]
