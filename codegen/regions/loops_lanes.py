"""Lanes of a loop: masks, vector loads and stores, sums of lanes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codegen.functions.symbols import Symbol
from codegen.regions.loops import Function
from codegen.regions.loops_columns import Column

UNUSED = 0.5  # what a lane that is switched off computes with: harmless to most functions


class LaneFunction(Function):
    """A function in the making, with what it does to several lanes at once; %k is the repetition of the first one."""

    mask: str  # which lanes have a repetition
    masked: bool  # whether any may have none
    names: dict[int, str]  # by id of a column: its pointer

    @property
    def zero(self) -> str:
        """What changes no sum, not even the sign of a zero."""
        return self.lanes.splat("-0.0")

    def name(self, column: Column) -> str:
        return self.names[id(column)]

    def vector_of(self, kind: str, value: str) -> str:
        """One number in all lanes."""
        width = self.lanes.width
        one = self.new(f"insertelement <{width} x {kind}> poison,{kind} {value},i32 0")
        mask = f"<{width} x i32> zeroinitializer"
        return self.new(f"shufflevector <{width} x {kind}> {one},<{width} x {kind}> poison,{mask}")

    def splat(self, value: str) -> str:
        return self.vector_of("double", value)

    def switched(self, value: str) -> str:
        """The value, in lanes that have no repetition a zero."""
        kind = self.lanes.type
        if not self.masked:
            return value
        return self.new(f"select {self.lanes.truth} {self.mask},{kind} {value},{kind} {self.zero}")

    def lanes_on(self, length: str) -> str:
        """Which lanes have a repetition."""
        width = self.lanes.width
        lane = f"<{','.join(f'i64 {k}' for k in range(width))}>"
        number = self.new(f"add <{width} x i64> {self.vector_of('i64', '%k')},{lane}")
        end = f"splat (i64 {length})" if length.isdigit() else self.vector_of("i64", length)
        return self.new(f"icmp ult <{width} x i64> {number},{end}")

    def call(self, kind: str, operation: str, arguments: list[tuple[str, str]], scattered: bool) -> str:
        """A load or store of the lanes that are on."""
        name = f"llvm.masked.{operation}.{self.lanes.suffix}." + (f"v{self.lanes.width}p0" if scattered else "p0")
        parameters = ",".join(one for one, _ in arguments)
        self.symbols[name] = Symbol(name, f"declare {kind} @{name}({parameters})")
        return f"call {kind} @{name}({','.join(f'{one} {value}' for one, value in arguments)})"

    def places(self, column: Column) -> str:
        """Pointers to the places of the lanes."""
        width, first = self.lanes.width, self.name(column)
        if column.index is None:
            first = self.new(f"getelementptr double,ptr {first},i64 {self.new(f'mul i64 %k,{column.step}')}")
            lanes = ",".join(f"i64 {column.step * lane}" for lane in range(width))
            return self.new(f"getelementptr double,ptr {first},<{width} x i64> <{lanes}>")
        padded = np.append(column.index, np.full(-len(column.index) % width, column.index[-1]))
        name, kind = self.job.tables.places(padded)
        entry = self.new(f"getelementptr {kind},ptr {name},i64 %k")
        numbers = self.new(f"load <{width} x {kind}>,ptr {entry},align {int(kind[1:]) // 8}")
        return self.new(f"getelementptr double,ptr {first},<{width} x {kind}> {numbers}")

    def read(self, column: Column) -> str:
        """Load a value for each lane."""
        vector, mask = self.lanes.type, (self.lanes.truth, self.mask)
        if column.side_by_side:
            place = self.new(f"getelementptr double,ptr {self.name(column)},i64 %k")
            if not self.masked:
                return self.new(f"load {vector},ptr {place},align 8")
            where, operation, scattered = ("ptr", place), "load", False
        else:
            where, operation, scattered = (f"<{self.lanes.width} x ptr>", self.places(column)), "gather", True
        unused = (vector, self.lanes.splat(str(UNUSED)))
        return self.new(self.call(vector, operation, [where, ("i32", "8"), mask, unused], scattered))

    def store(self, column: Column, value: str, mask: str, *, adds: bool) -> None:
        """Store values at places that are apart, or add them to what is there."""
        vector, on = self.lanes.type, (self.lanes.truth, mask)
        if column.side_by_side:
            place = self.new(f"getelementptr double,ptr {self.name(column)},i64 %k")
            where, operations, scattered = ("ptr", place), ("load", "store"), False
        else:
            where = (f"<{self.lanes.width} x ptr>", self.places(column))
            operations, scattered = ("gather", "scatter"), True
        if adds:
            unused = (vector, self.zero)
            before = self.new(self.call(vector, operations[0], [where, ("i32", "8"), on, unused], scattered))
            value = self.new(f"fadd {vector} {before},{value}")
        if column.side_by_side and not self.masked:
            self.write(f"store {vector} {value},ptr {where[1]},align 8")
        else:
            self.write(self.call("void", operations[1], [(vector, value), where, ("i32", "8"), on], scattered))

    def rows(self, values: Sequence[str]) -> list[str]:
        """Turn vectors into rows: the values of the first lane side by side, then those of the second one..."""
        size = 1 << (len(values) - 1).bit_length()
        vectors = [*values, *["poison"] * (size - len(values))]
        turns = size // 2
        while turns:  # each brings lanes of two vectors together that stand side by side in the end
            pairs = [(vectors[k], vectors[k + size // 2]) for k in range(size // 2)]
            vectors = [self.interleave(*pair, upper=upper) for pair in pairs for upper in (False, True)]
            turns //= 2
        return vectors

    def store_lane(self, rows: Sequence[tuple[Column, list[str], int]], lane: int) -> None:
        """Store the rows of a lane, each of some values from the place of a column on."""
        for column, vectors, count in rows:
            at = self.new(f"mul i64 %k,{column.step}")
            place = self.new(f"getelementptr double,ptr {self.name(column)},i64 {at}")
            vector, begin = divmod(lane * len(vectors), self.lanes.width)
            for k in range(0, count, self.lanes.width):
                part = self.piece(vectors[vector + k // self.lanes.width], begin, min(self.lanes.width, count - k))
                self.write(f"store {part},ptr {self.offset(place, lane * column.step + k)},align 8")

    def interleave(self, left: str, right: str, *, upper: bool) -> str:
        """One half of the lanes of two vectors in turns."""
        width = self.lanes.width
        begin = width // 2 if upper else 0
        lanes = ",".join(f"i32 {begin + k},i32 {begin + k + width}" for k in range(width // 2))
        kind = self.lanes.type
        return self.new(f"shufflevector {kind} {left},{kind} {right},<{width} x i32> <{lanes}>")

    def piece(self, vector: str, begin: int, count: int) -> str:
        """Some lanes of a vector, with their type."""
        if count == self.lanes.width:
            return f"{self.lanes.type} {vector}"
        if count == 1:
            return f"double {self.new(f'extractelement {self.lanes.type} {vector},i32 {begin}')}"
        lanes = ",".join(f"i32 {begin + k}" for k in range(count))
        part = self.new(f"shufflevector {self.lanes.type} {vector},{self.lanes.type} poison,<{count} x i32> <{lanes}>")
        return f"<{count} x double> {part}"

    def apart(self, column: Column) -> bool:
        """Whether the lanes of each vector have different places."""
        if column.index is None:
            return column.step != 0
        width = self.lanes.width
        padded = np.append(column.index, column.index.min() - 1 - np.arange(-len(column.index) % width))
        rows = np.sort(padded.reshape(-1, width), axis=1)
        return bool((np.diff(rows, axis=1) != 0).all())

    def add_one_by_one(self, column: Column, value: str) -> None:
        """Add the values of the lanes one after the other, for two may go to one place."""
        pointers = self.places(column)
        for lane in range(self.lanes.width):
            place = self.new(f"extractelement <{self.lanes.width} x ptr> {pointers},i32 {lane}")
            self.add_to(place, self.new(f"extractelement {self.lanes.type} {value},i32 {lane}"))

    def sum_of_lanes(self, value: str) -> str:
        """The upper half of the lanes added to the lower half, until one is left."""
        width = self.lanes.width
        while width > 1:
            half = width // 2
            low = ",".join(f"i32 {k}" for k in range(half))
            high = ",".join(f"i32 {k + half}" for k in range(half))
            kind, part = f"<{width} x double>", f"<{half} x i32>"
            lower = self.new(f"shufflevector {kind} {value},{kind} poison,{part} <{low}>")
            upper = self.new(f"shufflevector {kind} {value},{kind} poison,{part} <{high}>")
            value, width = self.new(f"fadd <{half} x double> {lower},{upper}"), half
        return self.new(f"extractelement <1 x double> {value},i32 0")
