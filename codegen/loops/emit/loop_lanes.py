"""Lanes of a loop: masks, vector loads and stores, lane sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codegen.emission.emit import in_all_lanes
from codegen.functions.symbols import Symbol
from codegen.lanes import Lanes
from codegen.loops.emit.loop_columns import Column
from codegen.loops.emit.loop_text import Function
from codegen.loops.emit.workspace import LINE
from codegen.processor import vector_bits

SMALLER = Symbol("llvm.umin.i64", "declare i64 @llvm.umin.i64(i64,i64)")


class LaneFunction(Function):
    """A function under construction, whose values have several lanes."""

    k: str  # the repetition of the first lane
    length: str  # repetitions of the run
    mask: str  # which lanes have a repetition; empty where all have
    numbers: list[str]  # the repetition of each lane, as soon as it is needed

    @property
    def zero(self) -> str:
        """The neutral element of addition: -0.0 keeps the sign of a zero."""
        return self.lanes.splat("-0.0")

    def name(self, column: Column) -> str:
        """Return the pointer to the start of a column."""
        return f"%p{column.number}"

    def vector_of(self, kind: str, value: str) -> str:
        """Write one number into all lanes."""
        return in_all_lanes(self.new, Lanes(self.lanes.width, kind), value)

    def splat(self, value: str) -> str:
        return self.vector_of(self.scalar.type, value)

    def switched(self, value: str, zero: str = "") -> str:
        """Return the value, in lanes that have no repetition a zero."""
        kind = self.lanes.type
        if not self.mask:
            return value
        return self.new(f"select {self.lanes.truth} {self.mask},{kind} {value},{kind} {zero or self.zero}")

    def lane_numbers(self) -> list[str]:
        """Return the repetition of each lane; for lanes that have none, the last one of the run."""
        if not self.numbers:
            self.numbers = [self.plus(self.k, lane) for lane in range(self.lanes.width)]
            if self.mask:
                self.symbols[SMALLER.name] = SMALLER
                last = self.plus(self.length, -1)
                self.numbers = [
                    self.new(f"call i64 @{SMALLER.name}(i64 {number},i64 {last})") for number in self.numbers
                ]
        return self.numbers

    def plus(self, number: str, more: int) -> str:
        if not more:
            return number
        return str(int(number) + more) if number.isdigit() else self.new(f"add i64 {number},{more}")

    def lanes_on(self, length: str, k: str) -> str:
        """Return the mask of the lanes that have a repetition."""
        width = self.lanes.width
        lane = f"<{','.join(f'i64 {k}' for k in range(width))}>"
        number = self.new(f"add <{width} x i64> {self.vector_of('i64', k)},{lane}")
        end = f"splat (i64 {length})" if length.isdigit() else self.vector_of("i64", length)
        return self.new(f"icmp ult <{width} x i64> {number},{end}")

    def call(self, kind: str, operation: str, arguments: list[tuple[str, str]]) -> str:
        """Return a load or store of the lanes in a mask; a scatter has a pointer for each."""
        pointers = f"v{self.lanes.width}p0" if operation == "scatter" else "p0"
        name = f"llvm.masked.{operation}.{self.lanes.suffix}.{pointers}"
        parameters = ",".join(type_ for type_, _ in arguments)
        self.symbols[name] = Symbol(name, f"declare {kind} @{name}({parameters})")
        return f"call {kind} @{name}({','.join(f'{type_} {value}' for type_, value in arguments)})"

    def places(self, column: Column) -> list[str]:
        """Return pointers to the places of the lanes; lanes without a repetition get the pointer of the last one."""
        first = self.name(column)
        if column.index is None:
            steps = [self.new(f"mul i64 {number},{column.step}") for number in self.lane_numbers()]
            return [self.new(self.element(first, step)) for step in steps]
        width = self.lanes.width
        index = np.append(column.index, np.full(-len(column.index) % width, column.index[-1]))
        name, kind = self.job.tables.places(index)
        entry = self.new(f"getelementptr {kind},ptr {name},i64 {self.k}")
        pointers = []
        for lane in range(width):
            at = self.new(f"getelementptr {kind},ptr {entry},i64 {lane}")
            number = self.new(f"load {kind},ptr {at},align {int(kind[1:]) // 8}")
            pointers.append(self.new(self.element(first, number, kind)))
        return pointers

    def read(self, column: Column) -> str:
        """Load a value for each lane."""
        vector = self.lanes.type
        if not column.side_by_side:
            value = "poison"
            for lane, place in enumerate(self.places(column)):
                value = self.new(f"insertelement {vector} {value},{self.scalar.type} {self.load(place)},i32 {lane}")
            return value
        place = self.new(self.element(self.name(column), self.k))
        return self.loaded(place, self.mask, self.lanes.splat("0.5"))  # harmless to most functions

    def store(self, column: Column, value: str, *, adds: bool) -> None:
        """Store or add values at places that follow each other.

        Few processors are fast at storing some lanes of a register: on others, lanes are stored one after the other.
        A workspace has room for a register behind it: there, lanes without a repetition add a zero.
        """
        room = self.lanes.width * self.lanes.size <= LINE and self.job.memory.has_room(column.use.buffer)
        if adds and self.mask and room:
            value, mask = self.switched(value), ""
        else:
            mask = self.mask
        if mask and vector_bits() < 512 and not adds:
            self.leave_lanes(column, value, adds=False)
        else:
            self.store_some(column, value, mask, self.k, adds=adds)

    def store_some(self, column: Column, value: str, mask: str, k: str, *, adds: bool) -> None:
        """Store the lanes in a mask, or all, from the place of repetition k on, or add them there."""
        if column.step != 1:
            self.store_some_in_steps(column, value, mask, k)
            return
        place = self.new(self.element(self.name(column), k))
        if adds:
            value = self.new(f"fadd {self.lanes.type} {self.loaded(place, mask, self.zero)},{value}")
        self.stored_at(place, value, mask)

    def loaded(self, place: str, mask: str, unused: str) -> str:
        """Load the lanes in a mask, or all; other lanes are `unused`."""
        vector, size = self.lanes.type, self.lanes.size
        if not mask:
            return self.new(f"load {vector},ptr {place},align {size}")
        where = [("ptr", place), ("i32", str(size)), (self.lanes.truth, mask), (vector, unused)]
        return self.new(self.call(vector, "load", where))

    def stored_at(self, place: str, value: str, mask: str) -> None:
        """Store the lanes in a mask, or all."""
        vector, size = self.lanes.type, self.lanes.size
        if mask:
            where = [(vector, value), ("ptr", place), ("i32", str(size)), (self.lanes.truth, mask)]
            self.write(self.call("void", "store", where))
        else:
            self.write(f"store {vector} {value},ptr {place},align {size}")

    def store_some_in_steps(self, column: Column, value: str, mask: str, k: str) -> None:
        """Store the lanes in a mask at places in steps: used at the ends of runs only."""
        vector, width = self.lanes.type, self.lanes.width
        lane = f"<{','.join(f'i64 {column.step * lane}' for lane in range(width))}>"
        first = self.vector_of("i64", self.new(f"mul i64 {k},{column.step}"))
        numbers = self.new(f"add <{width} x i64> {first},{lane}")
        places = self.new(f"getelementptr {self.scalar.type},ptr {self.name(column)},<{width} x i64> {numbers}")
        where = [(f"<{width} x ptr>", places), ("i32", str(self.lanes.size)), (self.lanes.truth, mask)]
        self.write(self.call("void", "scatter", [(vector, value), *where]))

    def leave_lanes(self, column: Column, value: str, *, adds: bool) -> None:
        """Store the values of the lanes, the last one first, or add them one after the other, the first one first.

        Lanes that have no repetition store at the place of the last one, which comes after them; they add nothing.
        """
        value = self.switched(value) if adds else value
        lanes = list(enumerate(self.places(column)))
        for lane, place in lanes if adds else reversed(lanes):
            number = self.new(f"extractelement {self.lanes.type} {value},i32 {lane}")
            if adds:
                self.add_to(place, number)
            else:
                self.store_one(number, place)

    def rows(self, values: Sequence[str]) -> list[str]:
        """Turn vectors into rows: the values of the first lane side by side, then those of the second one..."""
        size = 1 << (len(values) - 1).bit_length()
        vectors = [*values, *["poison"] * (size - len(values))]
        turns = size // 2
        while turns:  # each turn interleaves lanes of two vectors
            pairs = [(vectors[k], vectors[k + size // 2]) for k in range(size // 2)]
            vectors = [self.interleave(*pair, upper=upper) for pair in pairs for upper in (False, True)]
            turns //= 2
        return vectors

    def store_rows(self, first: Column, values: Sequence[str]) -> None:
        """Store values whose places stand side by side, from a column on: a row of each lane, the last one first.

        Rows without a gap between them are stored as whole vectors, the last ones as lanes of some.
        """
        if first.step == len(values) > 1 and (not self.mask or vector_bits() >= 512):
            self.store_turns(first, self.in_turns(values))
            return
        places, width = self.places(first), self.lanes.width
        if len(values) == 3 and width > 1:  # storing rows of 4 numbers is no faster than 2 and 1
            self.store_pairs(places, values)
            return
        vectors = self.rows(values)
        for lane in reversed(range(width)):
            vector, begin = divmod(lane * len(vectors), width)
            for k in range(0, len(values), width):
                part = self.piece(vectors[vector + k // width], begin, min(width, len(values) - k))
                self.write(f"store {part},ptr {self.offset(places[lane], k)},align {self.lanes.size}")

    def store_pairs(self, places: Sequence[str], values: Sequence[str]) -> None:
        """Store rows of three: the first two of a lane at once, then the third, which is where it is computed."""
        first, second, third = values
        pairs = [self.turns_of(first, second, odd) for odd in (0, 1)]
        for lane in reversed(range(self.lanes.width)):
            for part, place in (
                (self.piece(pairs[lane % 2], lane // 2 * 2, 2), places[lane]),
                (self.piece(third, lane, 1), self.offset(places[lane], 2)),
            ):
                self.write(f"store {part},ptr {place},align {self.lanes.size}")

    def turns_of(self, left: str, right: str, odd: int) -> str:
        """Interleave the even lanes of two vectors, or the odd ones."""
        kind, width = self.lanes.type, self.lanes.width
        lanes = ",".join(f"i32 {k + odd},i32 {k + odd + width}" for k in range(0, width, 2))
        return self.new(f"shufflevector {kind} {left},{kind} {right},<{width} x i32> <{lanes}>")

    def store_turns(self, first: Column, vectors: Sequence[str]) -> None:
        """Store vectors side by side; at the end of a run only lanes that have a repetition."""
        begin = self.new(f"mul i64 {self.k},{first.step}")
        place = self.new(self.element(self.name(first), begin))
        end = self.new(f"mul i64 {self.length},{first.step}") if self.mask else ""
        for k, vector in enumerate(vectors):
            at = self.offset(place, k * self.lanes.width)
            on = self.lanes_on(end, self.plus(begin, k * self.lanes.width)) if self.mask else ""
            self.stored_at(at, vector, on)

    def in_turns(self, values: Sequence[str]) -> list[str]:
        """Interleave the lanes of vectors; return as many vectors."""
        width, count, kind = self.lanes.width, len(values), self.lanes.type
        if count & (count - 1) == 0:
            return self.rows(values)
        vectors = []
        for first in range(0, width * count, width):
            sources = [divmod(first + lane, count) for lane in range(width)]  # lane and vector of each
            mixed = values[0]
            for number in range(1, count):
                places = (self._from(lane, source, number) for lane, source in enumerate(sources))
                order = ",".join(f"i32 {place}" for place in places)
                mixed = self.new(f"shufflevector {kind} {mixed},{kind} {values[number]},<{width} x i32> <{order}>")
            vectors.append(mixed)
        return vectors

    def _from(self, lane: int, source: tuple[int, int], number: int) -> int:
        """Return the source of a lane when one more vector is mixed in: that vector, the first one, or itself."""
        from_lane, vector = source
        if vector == number:
            return self.lanes.width + from_lane
        return from_lane if number == 1 else lane

    def interleave(self, left: str, right: str, *, upper: bool) -> str:
        """Interleave one half of the lanes of two vectors."""
        width = self.lanes.width
        begin = width // 2 if upper else 0
        lanes = ",".join(f"i32 {begin + k},i32 {begin + k + width}" for k in range(width // 2))
        kind = self.lanes.type
        return self.new(f"shufflevector {kind} {left},{kind} {right},<{width} x i32> <{lanes}>")

    def piece(self, vector: str, begin: int, count: int) -> str:
        """Return some lanes of a vector, with their type."""
        if count == self.lanes.width:
            return f"{self.lanes.type} {vector}"
        if count == 1:
            return f"{self.scalar.type} {self.new(f'extractelement {self.lanes.type} {vector},i32 {begin}')}"
        lanes = ",".join(f"i32 {begin + k}" for k in range(count))
        part = self.new(f"shufflevector {self.lanes.type} {vector},{self.lanes.type} poison,<{count} x i32> <{lanes}>")
        return f"<{count} x {self.scalar.type}> {part}"

    def sum_of_lanes(self, value: str) -> str:
        """Add the upper half of the lanes to the lower half, until one lane is left."""
        width, scalar = self.lanes.width, self.scalar.type
        while width > 1:
            half = width // 2
            low = ",".join(f"i32 {k}" for k in range(half))
            high = ",".join(f"i32 {k + half}" for k in range(half))
            kind, part = f"<{width} x {scalar}>", f"<{half} x i32>"
            lower = self.new(f"shufflevector {kind} {value},{kind} poison,{part} <{low}>")
            upper = self.new(f"shufflevector {kind} {value},{kind} poison,{part} <{high}>")
            value, width = self.new(f"fadd <{half} x {scalar}> {lower},{upper}"), half
        return self.new(f"extractelement <1 x {scalar}> {value},i32 0")
