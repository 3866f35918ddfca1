"""Common subexpression elimination between the bodies of two loops with equal trip counts, outside of nests.

Common rows, repetition by repetition, are computed by the first loop and kept. They stay two loops: unlike loop fusion
(`codegen.loops.optimise.fusion`) this works where something between them needs all repetitions of the first one.

The backward loop of a layer of a network needs the sums that its forward loop has computed. Their bodies are
differentiated separately, so both compute them; here the first one stores them in a workspace, and the second reads
them. Nothing is known of places that several rounds of a nest store to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from hashlib import blake2b

from codegen.ir.body_parts import outputs_of, rebuilt
from codegen.ir.program import atom_key, needed
from codegen.ir.readdress import shift_at
from codegen.ir.region import Gather, Region, Result, RolledProgram, regions_of
from codegen.ir.tables import Affine
from codegen.loops.optimise.draft import Draft
from codegen.pricing.price_table import NANOSECONDS, kinds, nanoseconds, operations

PLACE = 8 * NANOSECONDS["operation"]  # price of a row that is worth a place in memory
READ = NANOSECONDS["stride"]  # price of a row that is worth reading, where it is stored anyway


def share(program: RolledProgram) -> RolledProgram:
    """Return the program with common rows of parallel regions computed once, outside of nests."""
    return _RegionSharing(program).program()


class _RegionSharing:
    """The regions of a program that may share, in the order in which they run, and their known rows."""

    def __init__(self, whole: RolledProgram) -> None:
        self.whole, self.draft = whole, Draft(whole)
        self.numbers: dict[Hashable, int] = {}
        self.known: dict[int, tuple[int, int]] = {}  # a step, and a row of its body
        self.overwritten = _overwritten(whole)
        steps = enumerate(whole.steps)
        self.regions = {at: step for at, step in steps if isinstance(step, Region) and step.parallel}
        self.outputs = {at: outputs_of(region) for at, region in self.regions.items()}
        self.counts = Counter(region.count for region in self.regions.values())

    def program(self) -> RolledProgram:
        reads: dict[int, dict[int, Gather]] = {}
        for at, region in self.regions.items():
            if region.count == 1 or self.counts[region.count] == 1:
                continue
            keys = self.keys(at, region)
            reads[at] = {row: self.kept(*source) for row, source in self.known_rows(region, keys).items()}
            for row, key in enumerate(keys):
                if region.body.operands[row]:
                    self.known.setdefault(key, (at, row))
        if not any(reads.values()):
            return self.whole
        for at, gathers in reads.items():
            if gathers or len(self.outputs[at]) > len(self.regions[at].results):
                self.draft.steps[at] = rebuilt(self.regions[at], self.outputs[at], gathers)
        return self.draft.finished()

    def keys(self, at: int, region: Region) -> list[int]:
        """Return a number for each row of a body; rows with the same number have the same values."""
        body, keys = region.body, list[int]()
        for row, (head, operands) in enumerate(zip(body.heads, body.operands, strict=True)):
            key: Hashable
            if row < len(region.gathers):
                key = self.gather_key(at, region.gathers[row])
            elif operands:
                key = (head, *(keys[operand] for operand in operands))
            else:
                key = (atom_key(body.atoms[row]), region.count)
            keys.append(self.numbers.setdefault(key, len(self.numbers)))
        return keys

    def gather_key(self, at: int, gather: Gather) -> Hashable:
        """Return the key of a slot: values of constants, or places."""
        values = self.whole.buffers[gather.buffer].values
        if values is not None:
            return blake2b(values[gather.table.places()].tobytes()).digest()
        return at if gather.buffer in self.overwritten else None, gather.buffer, gather.table.key

    def known_rows(self, region: Region, keys: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return rows that are computed before and are worth keeping, from the outputs down."""
        known: dict[int, tuple[int, int]] = {}
        body = region.body
        stack, seen = [output.rows[0] for output in body.outputs], set[int]()
        while stack:
            row = stack.pop()
            if row in seen or not body.operands[row]:
                continue
            seen.add(row)
            source = self.known.get(keys[row])
            if source is not None:
                price = PLACE if self.stored(*source) is None else READ
                if nanoseconds(operations(kinds(body, needed(body, [row], ())))) >= price:
                    known[row] = source
                    continue
            stack += body.operands[row]
        return known

    def stored(self, at: int, row: int) -> Gather | None:
        """Return where a region stores a row of its body, if nothing overwrites it."""
        uses = (use for kept, use in self.outputs[at] if kept == row and use.kind == "store")
        return next((Gather(use.buffer, use.table) for use in uses if use.buffer not in self.overwritten), None)

    def kept(self, at: int, row: int) -> Gather:
        """Return where a region keeps a row of its body for another one: a result that stores it, or a new one."""
        place, count = self.stored(at, row), self.regions[at].count
        if place is None:
            place = Gather(self.draft.workspace(count), Affine(0, 1, count))
            self.outputs[at].append((row, Result(0, place.buffer, place.table, "store")))
        return place


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
