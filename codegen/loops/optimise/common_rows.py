"""Common subexpression elimination between the bodies of two loops with equal trip counts.

Common rows, repetition by repetition, are computed by the first loop and kept. They stay two loops: unlike loop fusion
(`codegen.loops.optimise.fusion`) this works where something between them needs all repetitions of the first one.

The backward loop of a layer of a network needs the sums that its forward loop has computed. Their bodies are
differentiated separately, so both compute them; here the first one stores them in a workspace, and the second reads
them. Likewise in two nests: the rounds of a reverse pass run from the last to the first, and need values of the same
round of the forward pass. So rounds are counted from the last where places go down. Nothing is known of places that
several rounds store to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b

from codegen.ir.body_parts import outputs_of, rebuilt
from codegen.ir.program import atom_key, needed
from codegen.ir.readdress import moved, shift_at
from codegen.ir.region import Gather, Nest, Region, Result, RolledProgram, Step, regions_of
from codegen.ir.tables import Affine, Table
from codegen.loops.optimise.draft import Draft
from codegen.pricing.price_table import NANOSECONDS, kinds, nanoseconds, operations
from codegen.records import dataclass

PLACE = 8 * NANOSECONDS["operation"]  # price of a row that is worth a place in memory
READ = NANOSECONDS["stride"]  # price of a row that is worth reading, where it is stored anyway
MOST_KEPT = 1 << 22  # numbers of all rounds of a nest
At = tuple[int, ...]  # a step; in a nest the nest, and the step in it
Where = tuple[At, int]  # a step, and a row of its body


@dataclass(frozen=True)
class _CountedRounds:
    """The rounds of the nest around a step, 0 outside of nests; a reverse pass counts them backward from the last."""

    count: int = 0
    backward: bool = False

    def turned(self, table: Table) -> Table:
        """Return a table for rounds that are counted upward, or convert such a table back."""
        shift = shift_at(table, 0)
        return moved(table, shift * (self.count - 1), shifts=(-shift,)) if self.backward and shift else table


def share(program: RolledProgram) -> RolledProgram:
    """Return the program with common rows of parallel regions computed once, outside of nests or in two nests."""
    return _RegionSharing(program).program()


class _RegionSharing:
    """The regions of a program that may share, in the order in which they run, and their known rows."""

    def __init__(self, whole: RolledProgram) -> None:
        self.whole, self.draft = whole, Draft(whole)
        self.numbers: dict[Hashable, int] = {}
        self.known: dict[int, Where] = {}
        self.overwritten = _overwritten(whole)
        self.regions = dict(_regions(whole))
        self.outputs = {at: outputs_of(region) for at, region in self.regions.items()}
        self.rounds = {at: self.rounds_of(step) for at, step in enumerate(whole.steps) if isinstance(step, Nest)}
        self.counts = Counter((region.count, self.around(at).count) for at, region in self.regions.items())

    def around(self, at: At) -> _CountedRounds:
        return self.rounds.get(at[0], _CountedRounds())

    def rounds_of(self, nest: Nest) -> _CountedRounds:
        tables = [use.table for region, _ in regions_of([nest]) for use in region.results]
        shifts = [shift_at(table, 0) for table in tables]
        return _CountedRounds(nest.count, sum(shift < 0 for shift in shifts) > sum(shift > 0 for shift in shifts))

    def program(self) -> RolledProgram:
        reads: dict[At, dict[int, Gather]] = {}
        for at, region in self.regions.items():
            if region.count == 1 or self.counts[region.count, self.around(at).count] == 1:
                continue
            keys = self.keys(at, region)
            reads[at] = {
                row: self.kept(source, computed, at)
                for row, (source, computed) in self.known_rows(at, region, keys).items()
            }
            for row, key in enumerate(keys):
                if region.body.operands[row]:
                    self.known.setdefault(key, (at, row))
        if not any(reads.values()):
            return self.whole
        changed = {
            at: rebuilt(self.regions[at], self.outputs[at], gathers)
            for at, gathers in reads.items()
            if gathers or len(self.outputs[at]) > len(self.regions[at].results)
        }
        for number, step in enumerate(self.whole.steps):
            if isinstance(step, Nest):
                inner = tuple(changed.get((number, k), inner) for k, inner in enumerate(step.steps))
                self.draft.steps[number] = replace(step, steps=inner)
            else:
                self.draft.steps[number] = changed.get((number,), step)
        return self.draft.finished()

    def keys(self, at: At, region: Region) -> list[int]:
        """Return a number for each row of a body; rows with the same number have the same values."""
        body, keys, rounds = region.body, list[int](), self.around(at)
        for row, (head, operands) in enumerate(zip(body.heads, body.operands, strict=True)):
            key: Hashable
            if row < len(region.gathers):
                key = self.gather_key(at, region.gathers[row], rounds)
            elif operands:
                key = (head, *(keys[operand] for operand in operands))
            else:
                key = (atom_key(body.atoms[row]), region.count, rounds.count)
            keys.append(self.numbers.setdefault(key, len(self.numbers)))
        return keys

    def gather_key(self, at: At, gather: Gather, rounds: _CountedRounds) -> Hashable:
        """Return the key of a slot: values of constants, or places."""
        values = self.whole.buffers[gather.buffer].values
        if values is not None and not any(gather.table.shifts):
            return rounds.count, blake2b(values[gather.table.places()].tobytes()).digest()
        if gather.buffer in self.overwritten:
            return at, gather.buffer, gather.table.key
        return rounds.count, gather.buffer, rounds.turned(gather.table).key

    def known_rows(self, at: At, region: Region, keys: Sequence[int]) -> dict[int, Where]:
        """Return rows that are computed before and are worth keeping, from the outputs down."""
        known: dict[int, Where] = {}
        body = region.body
        stack, seen = [output.rows[0] for output in body.outputs], set[int]()
        while stack:
            row = stack.pop()
            if row in seen or not body.operands[row]:
                continue
            seen.add(row)
            source, computed = self.known.get(keys[row], (None, 0))
            if source is not None and self.may_share(source, at):
                price = PLACE if self.stored(source, computed) is None else READ
                if nanoseconds(operations(kinds(body, needed(body, [row], ())))) >= price:
                    known[row] = source, computed
                    continue
            stack += body.operands[row]
        return known

    def may_share(self, source: At, reader: At) -> bool:
        """Whether all rounds of the source have run, and their values have room."""
        rounds = self.around(source).count
        return not rounds or (source[0] != reader[0] and rounds * self.regions[source].count <= MOST_KEPT)

    def stored(self, at: At, row: int) -> Gather | None:
        """Return where a region stores a row of its body, if nothing overwrites it."""
        uses = (use for kept, use in self.outputs[at] if kept == row and use.kind == "store")
        return next((Gather(use.buffer, use.table) for use in uses if use.buffer not in self.overwritten), None)

    def kept(self, at: At, row: int, reader: At) -> Gather:
        """Return where a region keeps a row of its body for another one: a result that stores it, or a new one."""
        place, rounds, count = self.stored(at, row), self.around(at), self.regions[at].count
        if place is None:
            size = count * max(rounds.count, 1)
            table = rounds.turned(Affine(0, 1, count, (count,) if rounds.count else ()))
            place = Gather(self.draft.workspace(size), table)
            self.outputs[at].append((row, Result(0, place.buffer, place.table, "store")))
        return Gather(place.buffer, self.around(reader).turned(rounds.turned(place.table)))


def _regions(program: RolledProgram) -> Iterator[tuple[At, Region]]:
    """Yield the parallel regions outside of nests, and those that are in one nest."""
    for number, step in enumerate(program.steps):
        steps: list[tuple[At, Step]] = [((number,), step)]
        if isinstance(step, Nest):
            steps = [((number, k), inner) for k, inner in enumerate(step.steps)]
        for at, region in steps:
            if isinstance(region, Region) and region.parallel:
                yield at, region


def _overwritten(program: RolledProgram) -> set[int]:
    """Return the buffers with places that may be stored to in more than one round of a nest."""
    overwritten = set[int]()
    for region, counts in regions_of(program.steps):
        for use in region.results:
            low, high = use.table.bounds
            span = high - low
            for depth in reversed(range(len(counts))):
                shift = abs(shift_at(use.table, depth))
                if counts[depth] > 1 and shift <= span and use.kind != "add":
                    overwritten.add(use.buffer)
                span += shift * (counts[depth] - 1)
    return overwritten
