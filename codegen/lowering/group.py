"""Group equal operations on different values into one vector operation.

It starts at expensive operations: quotients, square roots, and calls of one function that do not depend on each other.
Equal readers and equal operands of these (the polynomials of tanh, the terms of every pair of atoms) become groups too.
The lanes of a group have the bits of the single operations, also for functions with a formula of ours
(`codegen.functions.lane_table`); only vector functions of the C library, which accuracy "fast" allows, are rounded
differently.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from itertools import chain, count
from typing import TypeAlias

import numpy as np

from codegen.functions.libraries import FUNCTIONS
from codegen.ir.machine_rows import FIRST_OPERAND, LEAVES, TRUTHS, MachineRows, Row, code_of
from codegen.ir.operations import NEGATED
from codegen.limits import EVERY, check
from codegen.lowering.lower import Lowered
from codegen.pricing.price_table import LANES_AT_ONCE, NANOSECONDS, entry_of

Pack: TypeAlias = tuple[int, ...]  # rows side by side; the last may be repeated to fill the lanes
Candidate: TypeAlias = tuple[int, int, int, Pack]  # in order: operands of the last levels come first
# (symbol, lanes): symbol of the vector function, the same one for a formula of lanes
Find: TypeAlias = Callable[[str, int], str | None]

ARITHMETIC = frozenset({
    "add", "sub", "mul", "div", "neg", "abs", "sqrt", *NEGATED, "select", "compare", "logic", "not",
})  # fmt: skip
SEEDS = ("div", "sqrt")
ALONE = {code: NANOSECONDS[code if code in SEEDS else "average"] for code in ARITHMETIC} | dict.fromkeys(LEAVES, 0.0)
STARTING = frozenset((*SEEDS, "call"))
MOST_OPERANDS = 16  # of an operation
FEWEST = 3  # quotients, or calls of a function that has no row in the table of vector functions


def group_operations(lowered: Lowered, widths: Sequence[int], find: Find) -> Lowered:
    """Return the program with groups as wide as `widths` allow; the program itself where groups do not pay.

    `find` gives the vector function of a symbol, None where there is none: then every lane calls the scalar function,
    and a group only makes the operations around the calls cheaper.

    >>> quotients = [("div", 0, 1), ("div", 0, 2), ("div", 0, 3), ("div", 0, 4)]
    >>> written = Lowered([("input", k) for k in range(5)] + quotients, [(0, k, 5 + k) for k in range(4)], 9, 0, 0)
    >>> [row[0] for row in group_operations(written, (2, 4), lambda symbol, lanes: None).rows[5:]]
    ['spread', 'gather', 'wide', 'lane', 'lane', 'lane', 'lane']
    """
    if STARTING.isdisjoint(lowered.codes):
        return lowered
    starting = Counter([_shape(row) for row in lowered.rows if row[0] in STARTING])
    if not any(count >= _fewest(shape) for shape, count in starting.items()):
        return lowered
    best, least = lowered, nanoseconds(map(lowered.rows.__getitem__, lowered.live()), find)
    alone = any(shape[0] == "call" and not any(find(shape[1], width) for width in widths) for shape in starting)
    for scalar_calls in (True, False) if alone else (False,):
        packer = _Packer(lowered, widths, find, scalar_calls)
        packer.seed()
        packer.extend()
        grouped = _PackWriter(lowered, packer).write() if packer.packs else lowered
        if packer.packs and (price := nanoseconds(grouped.rows, find)) < least:
            best, least = grouped, price
    return best


def nanoseconds(rows: Iterable[Row], find: Find) -> float:
    """Estimate the time of operations by their throughput."""
    rows = list(rows)
    codes = Counter(map(code_of, rows))
    alone = sum([count * ALONE[code] for code, count in codes.items() if code in ALONE])
    others = codes.keys() - ALONE.keys()
    return alone + sum([_time(row, find) for row in rows if row[0] in others] if others else ())


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
        vector_symbol = find(shape[1], width) if width > 1 else None
        if vector_symbol is not None:
            return NANOSECONDS[f"lanes {entry}" if vector_symbol == shape[1] else "vector call"]
        return width * (NANOSECONDS[entry] + (2 * NANOSECONDS["move"] if width > 1 else 0.0))
    if width == 1:
        return NANOSECONDS[entry if entry in SEEDS else "average"]
    return NANOSECONDS[f"lanes {entry}"] * width / LANES_AT_ONCE if entry in SEEDS else NANOSECONDS["lanes operation"]


def _is_operation(symbol: str) -> bool:
    """Whether a symbol is one instruction, or a few."""
    return symbol.startswith("llvm.") and symbol not in FUNCTIONS


LEVEL = 1 << 32  # of a key: calls on a path count before the operations since the last one


class _Packer:
    """Finds the packs: first calls, then their equal readers and operands."""

    def __init__(self, lowered: Lowered, widths: Sequence[int], find: Find, scalar_calls: bool) -> None:
        self.rows, self.uses, self.scalar_calls = lowered.rows, lowered.uses(), scalar_calls
        self.widths, self.find = sorted(widths), find
        self.seeds: dict[Row, bool] = {}  # by shape
        self.key = [0] * len(self.rows)
        self.kind = [-1] * len(self.rows)  # equal for rows that can go side by side
        self.parts: list[Pack] = [()] * len(self.rows)
        self._readers(self._look())
        self.packs: dict[Pack, Sequence[Pack]] = {}  # with their operands
        self.place: dict[int, Pack] = {}
        self.packed = [0] * len(self.rows)  # how often packs read each row
        self.queue: deque[Pack] = deque()
        self.read: list[Candidate] = []  # operands of packs, candidates of the next round
        self.round: list[Candidate] = []  # the remaining candidates of this round, a heap
        self.now: Candidate | None = None  # the current candidate
        self.blocked: dict[int, list[Candidate]] = {}  # candidates by a row whose readers are mostly in no pack so far
        self.rounds, self.number = 0, count()

    def is_seed(self, shape: Row) -> bool:
        """Whether rows are expensive enough to start a group."""
        if shape[0] != "call":
            return shape[0] in SEEDS
        known = self.scalar_calls or any(self.find(shape[1], width) for width in self.widths)
        return known and not _is_operation(shape[1])

    def _look(self) -> list[int]:
        """Note the kind, operands and level of each row; return the operations.

        The level is the number of calls on the longest path to a row, then of operations since. Rows of one pack are on
        the same level, so no pack depends on itself.
        """
        rows, uses, key, kind, parts = self.rows, self.uses, self.key, self.kind, self.parts
        operations: list[int] = []
        kinds: dict[Row, dict[int, int]] = {}  # by shape and level
        numbers = count()
        for index, row in enumerate(rows):
            if not index % EVERY:
                check("grouping operations")
            if not uses[index] or row[0] in LEAVES:
                continue
            first = FIRST_OPERAND.get(row[0], 1)
            shape, operands = row[:first], row[first:]
            of_shape = kinds.get(shape)
            if of_shape is None:
                self.seeds[shape] = self.is_seed(shape)
                of_shape = kinds[shape] = {}
            most = key[operands[0]]
            for part in operands:
                if key[part] > most:
                    most = key[part]
            key[index] = level = most - most % LEVEL + LEVEL if self.seeds[shape] else most + 1
            row_kind = of_shape.get(level)
            if row_kind is None:
                row_kind = of_shape[level] = next(numbers)
            kind[index] = row_kind
            parts[index] = operands
            operations.append(index)
        return operations

    def _readers(self, operations: Sequence[int]) -> None:
        """Note the readers of row k, from `start[k]` to `start[k+1]`: equal uses together, in order."""
        operands = [self.parts[index] for index in operations]
        read = np.fromiter(chain.from_iterable(operands), np.int64)
        counts = np.fromiter(map(len, operands), np.int64, len(operands))
        place = np.arange(len(read)) - np.repeat(np.cumsum(counts) - counts, counts)
        ways = np.repeat(MOST_OPERANDS * np.array(self.kind)[operations], counts) + place
        _, firsts, uses = np.unique(read * (1 + ways.max(initial=0)) + ways, return_index=True, return_inverse=True)
        order = np.lexsort((firsts[uses], read))
        self.readers: list[int] = np.repeat(operations, counts)[order].tolist()
        self.ways: list[int] = ways[order].tolist()
        self.start: list[int] = np.searchsorted(read[order], np.arange(len(self.rows) + 1)).tolist()

    def seed(self) -> None:
        """Put equal expensive operations that do not depend on each other side by side."""
        alike: dict[tuple[Row, int], list[int]] = {}
        for index, row in enumerate(self.rows):
            if self.kind[index] >= 0 and row[0] in STARTING and self.seeds[shape := _shape(row)]:
                alike.setdefault((shape, self.key[index] // LEVEL), []).append(index)
        for (shape, _), members in alike.items():
            widest = self.widths[-1]
            for start in range(0, len(members), widest):
                pack = members[start : start + widest]
                if len(pack) >= _fewest(shape):  # the last member is repeated up to the next width
                    width = next(width for width in self.widths if width >= len(pack))
                    self.add((*pack, *[pack[-1]] * (width - len(pack))))

    def add(self, pack: Pack, operands: Sequence[Pack] | None = None) -> None:
        packed, parts, place, blocked = self.packed, self.parts, self.place, self.blocked
        self.packs[pack] = operands = self.operands(pack) if operands is None else operands
        self.queue.append(pack)
        for row in dict.fromkeys(pack):
            place[row] = pack
            for part in parts[row]:
                packed[part] += 1
                if part in blocked and 2 * packed[part] > self.uses[part]:
                    self.released(blocked.pop(part))
        level, kind = self.key[pack[0]], self.kind
        when = self.rounds if self.now is None else -self.rounds  # new candidates come before blocked ones
        for candidate in operands:
            if kind[candidate[0]] >= 0 and candidate[0] not in place:
                self.read.append((-level, when, next(self.number), candidate))

    def released(self, candidates: Iterable[Candidate]) -> None:
        """Retry candidates: in this round, if it has not passed them."""
        for candidate in candidates:
            if self.now is not None and candidate > self.now:
                heappush(self.round, candidate)
            else:
                self.read.append(candidate)

    def extend(self) -> None:
        """Follow readers, then operands, until there are no more packs."""
        packed, uses, place, blocked = self.packed, self.uses, self.place, self.blocked
        while self.queue:
            while self.queue:
                for candidate in self.read_alike(self.queue.popleft()):
                    if self.fits(candidate):
                        operands = self.operands(candidate)
                        if all(map(self.cheap, operands)):
                            self.add(candidate, operands)
            self.round, self.read = self.read, []
            self.rounds += 1
            heapify(self.round)
            while self.round:
                self.now = heappop(self.round)
                candidate = self.now[-1]
                if candidate[0] in place:
                    continue
                for row in candidate:
                    if 2 * packed[row] <= uses[row]:
                        blocked.setdefault(row, []).append(self.now)
                        break
                else:
                    if self.fits(candidate):
                        self.add(candidate)
            self.now = None

    def operands(self, pack: Pack) -> list[Pack]:
        return list(zip(*[self.parts[row] for row in pack], strict=True))

    def read_alike(self, pack: Pack) -> list[Pack]:
        """Return packs of rows that read the rows of a pack in the same way."""
        start = self.start
        begin, end = start[pack[0]], start[pack[0] + 1]
        if begin == end:
            return []
        first = self.ways[begin:end]
        ways = [first] + [self.ways[start[row] : start[row + 1]] for row in pack[1:]]
        readers = [self.readers[start[row] : start[row + 1]] for row in pack]
        if ways.count(first) == len(ways):
            return list(zip(*readers, strict=True))
        tables: list[dict[int, list[int]]] = []
        for row_ways, row_readers in zip(ways, readers, strict=True):
            table: dict[int, list[int]] = {}
            for way, reader in zip(row_ways, row_readers, strict=True):
                table.setdefault(way, []).append(reader)
            tables.append(table)
        packs: list[Pack] = []
        for way in tables[0]:
            packs += zip(*[table.get(way, ()) for table in tables], strict=False)
        return packs

    def fits(self, pack: Pack) -> bool:
        """Whether rows can go side by side: the same operation on the same level, and none is in another pack."""
        kind, place, first = self.kind, self.place, pack[0]
        if kind[first] < 0 or first in place:
            return False
        for row in pack[1:]:
            if kind[row] != kind[first] or row in place:
                return False
        code, *shape = self.rows[first][:2]
        if code not in ARITHMETIC and not (code == "call" and _is_operation(shape[0])):
            return False
        if len(set(pack)) == len(pack):
            return True
        distinct = tuple(dict.fromkeys(pack))
        return len(distinct) > 1 and pack == distinct + pack[-1:] * (len(pack) - len(distinct))

    def cheap(self, parts: Pack) -> bool:
        """Whether the lanes of an operand are cheap: a pack, constants, one value for all, or a future pack."""
        rows = self.rows
        if parts in self.packs or len(set(parts)) == 1 or self.fits(parts):
            return True
        return rows[parts[0]][0] == "const" and all(rows[part][0] == "const" for part in parts)


def _shape(row: Row) -> Row:
    return row[: FIRST_OPERAND.get(row[0], 1)]


def _fewest(shape: Row) -> int:
    """Return how many expensive operations are worth a group."""
    known = FUNCTIONS.get(shape[1]) if shape[0] == "call" else None
    return FEWEST if known is None else known.fewest


class _PackWriter:
    """Writes the program with its packs, in the order of keys."""

    def __init__(self, lowered: Lowered, packer: _Packer) -> None:
        self.lowered, self.packer, self.rows = lowered, packer, lowered.rows
        self.table = MachineRows()
        self.single: dict[int, int] = {}
        self.wide: dict[Pack, int] = {}

    def write(self) -> Lowered:
        rows, place = self.rows, self.packer.place
        live = [index for index, uses in enumerate(self.packer.uses) if uses]
        new, single = self.table.row, self.single
        for index in sorted(live, key=self.packer.key.__getitem__):  # leaves have the lowest
            pack = place.get(index)
            if pack is None:
                row = rows[index]
                first = FIRST_OPERAND.get(row[0], 1)
                parts = [single[part] if part in single else self.value(part) for part in row[first:]]
                single[index] = new(*row[:first], *parts)
            elif pack not in self.wide:
                shape = (len(pack), *_shape(rows[index]))
                self.wide[pack] = new("wide", shape, *map(self.lanes, self.packer.packs[pack]))
        stores = [(array, position, self.value(row)) for array, position, row in self.lowered.stores]
        return replace(self.lowered, rows=self.table.rows, stores=stores)

    def value(self, index: int) -> int:
        """Return an old row as a single value; truth values cross from lanes as 0 and 1."""
        value = self.single.get(index)
        if value is None:
            pack, is_truth = self.packer.place[index], self.rows[index][0] in TRUTHS
            wide = self.wide[pack]
            if is_truth:
                wide = self.table.row("wide", (len(pack), "number"), wide)
            value = self.table.row("lane", pack.index(index), wide)
            if is_truth:
                value = self.table.row("compare", "une", value, self.table.row("const", bytes(8)))
            self.single[index] = value
        return value

    def lanes(self, parts: Pack) -> int:
        """Return old rows side by side."""
        known = self.wide.get(parts)
        if known is not None:
            return known
        if self.rows[parts[0]][0] == "const" and all(self.rows[part][0] == "const" for part in parts):
            return self.table.row("constants", tuple(self.rows[part][1] for part in parts))
        truth = self.rows[parts[0]][0] in TRUTHS
        values = [self.table.row("number", self.value(part)) if truth else self.value(part) for part in parts]
        code, values = ("spread", values[:1]) if len(set(parts)) == 1 else ("gather", values)
        wide = self.table.row(code, (len(parts),), *values)
        if truth:
            zeros = self.table.row("constants", (bytes(8),) * len(parts))
            return self.table.row("wide", (len(parts), "compare", "une"), wide, zeros)
        return wide
