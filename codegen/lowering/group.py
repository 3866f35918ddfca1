"""Groups: equal operations on different values become one operation on a vector register.

It starts at what is expensive: quotients, square roots, and calls of one function that do not depend on each other.
What reads them alike, and what they read alike (the polynomials of tanh, the terms of every pair of atoms), goes with
them. The lanes of a group compute what the single operations would have, bit for bit, functions with a formula of ours
(`codegen.functions.lane_table`) too; only vector functions of the C library, which accuracy "fast" allows, are rounded
differently.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from codegen.functions.libraries import FUNCTIONS
from codegen.ir.machine_rows import FIRST_OPERAND, LEAVES, TRUTHS, Row, Rows, operands_of, with_operands
from codegen.limits import EVERY, check
from codegen.lowering.lower import Lowered
from codegen.pricing.price_table import LANES_AT_ONCE, NANOSECONDS, entry_of

Pack: TypeAlias = tuple[int, ...]  # rows side by side; the last may be repeated to fill the lanes
# (symbol, lanes): symbol of the vector function, the same one for a formula of lanes
Find: TypeAlias = Callable[[str, int], str | None]

ARITHMETIC = frozenset(
    (
        "add",
        "sub",
        "mul",
        "div",
        "neg",
        "abs",
        "sqrt",
        "fma",
        "fms",
        "fnma",
        "fnms",
        "select",
        "compare",
        "logic",
        "not",
    )
)
SEEDS = ("div", "sqrt")
FEWEST = 3  # quotients, or calls of a function that has no row in the table of vector functions


def group_operations(lowered: Lowered, widths: Sequence[int], find: Find) -> Lowered:
    """Return the program with groups as wide as `widths` allow, as it was where groups do not pay.

    `find` gives the vector function of a symbol, None where there is none: then every lane calls the scalar function,
    and a group can only pay for what surrounds the calls.

    >>> quotients = [("div", 0, 1), ("div", 0, 2), ("div", 0, 3), ("div", 0, 4)]
    >>> written = Lowered([("input", k) for k in range(5)] + quotients, [(0, k, 5 + k) for k in range(4)], 9, 0, 0)
    >>> [row[0] for row in group_operations(written, (2, 4), lambda symbol, lanes: None).rows[5:]]
    ['spread', 'gather', 'wide', 'lane', 'lane', 'lane', 'lane']
    """
    if not any(row[0] in SEEDS or row[0] == "call" for row in lowered.rows):
        return lowered
    best, least = lowered, nanoseconds(lowered, find)
    for scalar_calls in (True, False) if any(row[0] == "call" for row in lowered.rows) else (False,):
        packer = _Packer(lowered, widths, find, scalar_calls)
        packer.seed()
        packer.extend()
        grouped = _Writer(lowered, packer).write() if packer.packs else lowered
        if packer.packs and (found := nanoseconds(grouped, find)) < least:
            best, least = grouped, found
    return best


def nanoseconds(lowered: Lowered, find: Find) -> float:
    """Estimate the time of a program by the throughput of its operations."""
    return sum([_time(lowered.rows[index], find) for index in lowered.live()])


def _time(row: Row, find: Find) -> float:
    code = row[0]
    if code in LEAVES:
        return 0.0
    if code in ("gather", "spread", "lane"):
        return NANOSECONDS["move"] * (len(row) - 2 if code == "gather" else 1)
    width: int
    width, *shape = row[1] if code == "wide" else (1, *row[:2])
    entry = entry_of(shape[1]) if shape[0] == "call" else shape[0]
    if shape[0] == "call" and not _is_operation(shape[1]):
        found = find(shape[1], width) if width > 1 else None
        if found is not None:
            return NANOSECONDS[f"lanes {entry}" if found == shape[1] else "vector call"]
        return width * (NANOSECONDS[entry] + (2 * NANOSECONDS["move"] if width > 1 else 0.0))
    if width == 1:
        return NANOSECONDS[entry if entry in SEEDS else "average"]
    return NANOSECONDS[f"lanes {entry}"] * width / LANES_AT_ONCE if entry in SEEDS else NANOSECONDS["lanes operation"]


def _is_operation(symbol: str) -> bool:
    """Whether a symbol is an instruction, or a few."""
    return symbol.startswith("llvm.") and symbol not in FUNCTIONS


class _Packer:
    """Finds the packs: first calls, then what reads them alike, and what they read."""

    def __init__(self, lowered: Lowered, widths: Sequence[int], find: Find, scalar_calls: bool) -> None:
        self.rows, self.uses, self.scalar_calls = lowered.rows, lowered.uses(), scalar_calls
        self.widths, self.find = sorted(widths), find
        self.key = self._keys()
        self.readers = self._readers()
        self.packs: dict[Pack, None] = {}
        self.place: dict[int, Pack] = {}
        self.queue: deque[Pack] = deque()

    def is_seed(self, index: int) -> bool:
        """Whether a row is expensive enough to start a group."""
        row = self.rows[index]
        if row[0] != "call":
            return row[0] in SEEDS
        known = self.scalar_calls or any(self.find(row[1], width) for width in self.widths)
        return known and not _is_operation(row[1])

    def _keys(self) -> list[tuple[int, int]]:
        """(calls on the longest way to a row, operations since): rows of one pack have the same, so no pack waits for
        itself."""
        keys = [(0, 0)] * len(self.rows)
        for index, row in enumerate(self.rows):
            if not index % EVERY:
                check("grouping operations")
            if self.uses[index] and row[0] not in LEAVES:
                most = max([keys[part] for part in operands_of(row)])
                keys[index] = (most[0] + 1, 0) if self.is_seed(index) else (most[0], most[1] + 1)
        return keys

    def _readers(self) -> dict[int, list[tuple[int, int]]]:
        """Of each row: (reader, position of the operand)."""
        readers: dict[int, list[tuple[int, int]]] = {}
        for index, row in enumerate(self.rows):
            if not index % EVERY:
                check("grouping operations")
            if self.uses[index] and row[0] not in LEAVES:
                for position, part in enumerate(operands_of(row)):
                    if self.rows[part][0] not in LEAVES:
                        readers.setdefault(part, []).append((index, position))
        return readers

    def seed(self) -> None:
        """Put equal expensive operations that do not depend on each other side by side."""
        alike: dict[tuple[Row, int], list[int]] = {}
        for index in range(len(self.rows)):
            if self.uses[index] and self.is_seed(index):
                alike.setdefault((self.shape(index), self.key[index][0]), []).append(index)
        for (shape, _), members in alike.items():
            known = FUNCTIONS.get(shape[1]) if shape[0] == "call" else None
            fewest = FEWEST if known is None else known.fewest
            widest = self.widths[-1]
            for start in range(0, len(members), widest):
                self.add_padded(members[start : start + widest], fewest)

    def add_padded(self, members: list[int], fewest: int) -> None:
        """Add a pack, the last member repeated up to the next width."""
        if len(members) >= fewest:
            width = next(width for width in self.widths if width >= len(members))
            self.add((*members, *[members[-1]] * (width - len(members))))

    def add(self, pack: Pack) -> None:
        self.packs[pack] = None
        self.queue.append(pack)
        self.place.update(dict.fromkeys(pack, pack))

    def extend(self) -> None:
        """Follow readers, then operands, until nothing is found any more."""
        while self.queue:
            while self.queue:
                pack = self.queue.popleft()
                for candidate in self.read_alike(pack):
                    if self.fits(candidate) and all(self.cheap(parts) for parts in self.operands(candidate)):
                        self.add(candidate)
            for pack in sorted(self.packs, key=lambda pack: self.key[pack[0]], reverse=True):
                for candidate in self.operands(pack):
                    if self.fits(candidate) and all(self.is_packed_for(row) for row in candidate):
                        self.add(candidate)

    def operands(self, pack: Pack) -> list[Pack]:
        """The operands of a pack's rows, side by side."""
        return [tuple(parts) for parts in zip(*[operands_of(self.rows[row]) for row in pack], strict=True)]

    def read_alike(self, pack: Pack) -> list[Pack]:
        """Rows that read the rows of a pack in the same way."""
        found: list[Pack] = []
        ways = [self.ways(row) for row in pack]
        for way, readers in ways[0].items():
            for number in range(len(readers)):
                lanes = [other.get(way, [])[number : number + 1] for other in ways]
                if all(lanes):
                    found.append(tuple([lane[0] for lane in lanes]))
        return found

    def ways(self, row: int) -> dict[object, list[int]]:
        """Readers of a row by what they do with it."""
        found: dict[object, list[int]] = {}
        for reader, position in self.readers.get(row, []):
            found.setdefault((self.shape(reader), position, self.key[reader]), []).append(reader)
        return found

    def shape(self, index: int) -> Row:
        row = self.rows[index]
        return row[: FIRST_OPERAND.get(row[0], 1)]

    def fits(self, pack: Pack) -> bool:
        """Whether rows can go side by side: the same operation on the same level, and none is in another pack."""
        first, code = pack[0], self.rows[pack[0]][0]
        if code not in ARITHMETIC and not (code == "call" and _is_operation(self.rows[first][1])):
            return False
        distinct = dict.fromkeys(pack)
        repeated = pack[len(distinct) :] == (pack[-1],) * (len(pack) - len(distinct))
        return (
            len(distinct) > 1
            and repeated
            and len({self.shape(row) for row in distinct}) == 1
            and len({self.key[row] for row in distinct}) == 1
            and not any(row in self.place for row in distinct)
        )

    def cheap(self, parts: Pack) -> bool:
        """Whether the lanes of an operand are at hand: a pack, constants, one value for all, or a pack to be."""
        constant = all(self.rows[part][0] == "const" for part in parts)
        return constant or len(set(parts)) == 1 or parts in self.packs or self.fits(parts)

    def is_packed_for(self, row: int) -> bool:
        """Whether most of what reads a row is in packs."""
        readers = self.readers.get(row, [])
        packed = sum(reader in self.place for reader, _ in readers)
        return 2 * packed > self.uses[row]


class _Writer:
    """Writes the program with its packs, in the order of keys."""

    def __init__(self, lowered: Lowered, packer: _Packer) -> None:
        self.lowered, self.packer, self.rows = lowered, packer, lowered.rows
        self.made = Rows()
        self.single: dict[int, int] = {}
        self.wide: dict[Pack, int] = {}

    def write(self) -> Lowered:
        """Return the new program."""
        keys, uses = self.packer.key, self.packer.uses
        live = [index for index in range(len(self.rows)) if uses[index]]
        for index in sorted(live, key=lambda index: (self.rows[index][0] not in LEAVES, keys[index], index)):
            pack = self.packer.place.get(index)
            if pack is None:
                self.single[index] = self.made.row(*with_operands(self.rows[index], self.value))
            elif pack not in self.wide:
                shape = (len(pack), *self.packer.shape(index))
                self.wide[pack] = self.made.row(
                    "wide", shape, *[self.lanes(parts) for parts in self.packer.operands(pack)]
                )
        stores = [(array, position, self.value(row)) for array, position, row in self.lowered.stores]
        return replace(self.lowered, rows=self.made.rows, stores=stores)

    def value(self, index: int) -> int:
        """An old row as a single value."""
        found = self.single.get(index)
        if found is None:
            pack = self.packer.place[index]
            found = self.made.row("lane", pack.index(index), self.numbers(pack))
            if self.rows[index][0] in TRUTHS:
                found = self.made.row("compare", "une", found, self.made.row("const", bytes(8)))
            self.single[index] = found
        return found

    def numbers(self, pack: Pack) -> int:
        """A pack; truth values as 0 and 1."""
        wide = self.wide[pack]
        return self.made.row("wide", (len(pack), "number"), wide) if self.rows[pack[0]][0] in TRUTHS else wide

    def lanes(self, parts: Pack) -> int:
        """Old rows side by side."""
        if parts in self.wide:
            return self.wide[parts]
        if all(self.rows[part][0] == "const" for part in parts):
            return self.made.row("constants", tuple(self.rows[part][1] for part in parts))
        truth = self.rows[parts[0]][0] in TRUTHS
        values = [self.made.row("number", self.value(part)) if truth else self.value(part) for part in parts]
        width = (len(parts),)
        found = (
            self.made.row("spread", width, values[0])
            if len(set(parts)) == 1
            else self.made.row("gather", width, *values)
        )
        if truth:
            zeros = self.made.row("constants", (bytes(8),) * len(parts))
            return self.made.row("wide", (len(parts), "compare", "une"), found, zeros)
        return found
