"""Common subexpression elimination between the bodies of two loops with equal trip counts.

What both compute alike, repetition by repetition, is computed by the first and kept. They stay two loops: it is no loop
fusion (`codegen.loops.optimise.fusion`), and works where that cannot, as something between them needs the first one's
end.

The backward loop of a layer of a network needs the sums that its forward loop has computed. Their bodies are
differentiated apart, so both compute them; here the first one leaves them in a workspace, and the second reads them.
Likewise in two nests: the rounds of a way back run from the last to the first, and ask for what the same round of the
way there has computed. So rounds are counted from the last where places go down. What a round stores where another one
has stored is not known of any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b

from codegen.ir.body_parts import outputs_of, rebuilt
from codegen.ir.program import Program, atom_key, needed
from codegen.ir.readdress import moved, shift_at
from codegen.ir.region import Gather, Nest, Region, Result, RolledProgram, Step, regions_of
from codegen.ir.tables import Affine, Table
from codegen.loops.optimise.draft import Draft
from codegen.pricing.price_table import NANOSECONDS, kinds, nanoseconds, operations
from codegen.records import dataclass

PLACE = 8 * NANOSECONDS["operation"]  # what is worth a place in memory
READ = NANOSECONDS["stride"]  # what is worth to be read, where it is stored anyway
MOST_KEPT = 1 << 22  # numbers of all rounds of a nest
At = tuple[int, ...]  # a step; in a nest the nest, and the step in it
Where = tuple[At, int]  # a step, and a row of its body


@dataclass(frozen=True)
class _CountedRounds:
    """How the rounds of the nest around a step are counted: outside of nests there is one; backward from the last."""

    count: int = 0
    backward: bool = False

    def turned(self, table: Table) -> Table:
        """Return a table as it is met in rounds that are counted upward, or such a table in the rounds as they run."""
        shift = shift_at(table, 0)
        return moved(table, shift * (self.count - 1), shifts=(-shift,)) if self.backward and shift else table


def share(program: RolledProgram) -> RolledProgram:
    """Return the program with what parallel regions have in common computed once, outside of nests or in two."""
    return _RegionSharing(program).program()


class _RegionSharing:
    """The regions of a program that may share, in the order in which they run, with what is known of their rows."""

    def __init__(self, whole: RolledProgram) -> None:
        self.whole, self.draft = whole, Draft(whole)
        self.numbers: dict[Hashable, int] = {}
        self.known: dict[int, Where] = {}
        self.again = _stored_again(whole)
        self.regions = dict(_regions(whole))
        self.outputs = {at: outputs_of(region) for at, region in self.regions.items()}
        self.rounds = {at: self.rounds_of(step) for at, step in enumerate(whole.steps) if isinstance(step, Nest)}
        self.counts = Counter((region.count, self.around(at).count) for at, region in self.regions.items())

    def around(self, at: At) -> _CountedRounds:
        return self.rounds.get(at[0], _CountedRounds())

    def rounds_of(self, nest: Nest) -> _CountedRounds:
        """Return how the rounds of a nest are counted."""
        tables = [use.table for region, _ in regions_of([nest]) for use in region.results]
        shifts = [shift_at(table, 0) for table in tables]
        return _CountedRounds(nest.count, sum(shift < 0 for shift in shifts) > sum(shift > 0 for shift in shifts))

    def program(self) -> RolledProgram:
        """Return the program that is made."""
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
                inner = tuple(changed.get((number, k), each) for k, each in enumerate(step.steps))
                self.draft.steps[number] = replace(step, steps=inner)
            else:
                self.draft.steps[number] = changed.get((number,), step)
        return self.draft.finished()

    def keys(self, at: At, region: Region) -> list[int]:
        """A number for each row of a body; rows with the same number have the same values."""
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
        """What a slot reads: constants by their values, others by their places."""
        values = self.whole.buffers[gather.buffer].values
        if values is not None and not any(gather.table.shifts):
            return rounds.count, blake2b(values[gather.table.places()].tobytes()).digest()
        if gather.buffer in self.again:
            return at, gather.buffer, gather.table.key
        return rounds.count, gather.buffer, rounds.turned(gather.table).key

    def known_rows(self, at: At, region: Region, keys: Sequence[int]) -> dict[int, Where]:
        """Rows that are computed before and are worth to be kept, from the outputs down."""
        found: dict[int, Where] = {}
        body = region.body
        stack, seen = [output.rows[0] for output in body.outputs], set[int]()
        while stack:
            row = stack.pop()
            if row in seen or not body.operands[row]:
                continue
            seen.add(row)
            source, computed = self.known.get(keys[row], (None, 0))
            if source is not None and self.may_share(source, at) and _worth(body, row) >= self.price(source, computed):
                found[row] = source, computed
            else:
                stack += body.operands[row]
        return found

    def may_share(self, source: At, reader: At) -> bool:
        """Whether all rounds of the source have run; what they leave must have room."""
        rounds = self.around(source).count
        return not rounds or (source[0] != reader[0] and rounds * self.regions[source].count <= MOST_KEPT)

    def price(self, at: At, row: int) -> float:
        """What it costs to have a row of a region kept, and to read it."""
        return PLACE if self.stored(at, row) is None else READ

    def stored(self, at: At, row: int) -> Gather | None:
        """Where a region stores a row of its body, and nothing else is stored."""
        uses = (use for kept, use in self.outputs[at] if kept == row and use.kind == "store")
        return next((Gather(use.buffer, use.table) for use in uses if use.buffer not in self.again), None)

    def kept(self, at: At, row: int, reader: At) -> Gather:
        """Where a region keeps a row of its body, for another one: a result that stores it, or a new one."""
        found, rounds, count = self.stored(at, row), self.around(at), self.regions[at].count
        if found is None:
            size = count * max(rounds.count, 1)
            table = rounds.turned(Affine(0, 1, count, (count,) if rounds.count else ()))
            found = Gather(self.draft.workspace(size), table)
            self.outputs[at].append((row, Result(0, found.buffer, found.table, "store")))
        return Gather(found.buffer, self.around(reader).turned(rounds.turned(found.table)))


def _regions(program: RolledProgram) -> Iterator[tuple[At, Region]]:
    """Yield the parallel regions outside of nests, and those that are in one nest."""
    for number, step in enumerate(program.steps):
        if isinstance(step, Region):
            found: list[tuple[At, Step]] = [((number,), step)]
        else:
            found = [((number, k), each) for k, each in enumerate(step.steps)]
        for at, each in found:
            if isinstance(each, Region) and each.parallel:
                yield at, each


def _stored_again(program: RolledProgram) -> set[int]:
    """Return the buffers with places that may be stored to in more than one round of a nest."""
    found = set[int]()
    for region, counts in regions_of(program.steps):
        for use in region.results:
            low, high = use.table.bounds
            span = high - low
            for depth in reversed(range(len(counts))):
                shift = abs(shift_at(use.table, depth))
                if counts[depth] > 1 and shift <= span and use.kind != "add":
                    found.add(use.buffer)
                span += shift * (counts[depth] - 1)
    return found


def _worth(body: Program, row: int) -> float:
    """What it costs to compute a row from the slots, in nanoseconds."""
    return nanoseconds(operations(kinds(body, needed(body, [row], ()))))
