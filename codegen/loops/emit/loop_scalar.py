"""Write repetitions one after the other, for regions with carries or a stop condition.

Sums are added up in the order of the repetitions. A carry of a long lag is kept in a ring of memory.
"""

from __future__ import annotations

from functools import cached_property

from codegen.ir.tables import Affine
from codegen.loops.emit.loop_columns import Use
from codegen.loops.emit.loop_text import Function, Job, Written


def scalar_loop(job: Job) -> Written:
    """Return the function of a region that runs its repetitions one by one."""
    return _Scalar(job, job.scalar).emit()


class _Scalar(Function):
    """The function under construction."""

    @cached_property
    def k(self) -> str:
        return "%k" if self.region.count > 1 else "0"

    def is_fixed(self, use: Use) -> bool:
        return self.region.count == 1 or use.table.fixed

    def emit(self) -> Written:
        region, lines = self.region, self.lines
        for use in region.uses:
            self.view(use)
        fixed = {c: self.read_from(use, self.fixed(use)) for c, use in enumerate(region.gathers) if self.is_fixed(use)}
        self.sums = [c for c, use in enumerate(region.results) if self.job.adds(c) and self.is_fixed(use)]
        initial = [[self.read_from(use, self.fixed(use)) for use in carry.initial] for carry in region.carries]
        rings = {c: self.ring(values) for c, values in enumerate(initial) if len(values) > 4}  # else in registers
        self.write("br label %loop", "loop:")
        start = len(lines)
        slots = [fixed.get(c) or self.read_from(use, self.place(use)) for c, use in enumerate(region.gathers)]
        slots += [self.entering(c, values, rings) for c, values in enumerate(initial)]
        totals: dict[int, str] = {}
        values = self.body(slots, lambda output, value: self.leave(output, value, totals))
        for c, place in rings.items():
            self.store_one(values[region.carries[c].output], f"{place}.now")
        lines[start:start] = self.phis(initial, values, rings, totals) if region.count > 1 else []
        self.end(values)
        for c in self.sums:
            self.leave_total(c, totals[c])
        for use in region.results:
            if use.kind == "last":
                self.store_one(values[use.output], self.fixed(use))
        self.write("ret void")
        return self.written()

    def place(self, use: Use) -> str:
        """Return a pointer to the place of this repetition."""
        table, view, number = use.table, self.view(use), self.number_of(use)
        if isinstance(table, Affine):
            at = self.k if table.step == 1 else self.new(f"mul i64 {self.k},{table.step}")
            return self.offset(self.offset(view, at, number), table.start, number)
        first = int(table.index[0])
        name, kind = self.job.tables.places(table.index - first)
        entry = self.new(f"getelementptr {kind},ptr {name},i64 {self.k}")
        at = self.new(f"load {kind},ptr {entry},align {int(kind[1:]) // 8}")
        return self.offset(self.new(self.element(view, at, kind, number)), first, number)

    def leave(self, output: int, value: str, totals: dict[int, str]) -> None:
        """Store a value, or add it to its sum."""
        for c in self.uses.get(output, ()):
            use = self.region.results[c]
            if use.kind == "last":
                continue
            if c in self.sums:
                totals[c] = self.new(f"fadd {self.scalar.type} %s{c},{value}") if self.region.count > 1 else value
            else:
                place = self.fixed(use) if self.region.count == 1 else self.place(use)
                if self.job.adds(c):
                    self.add_to(place, value)
                else:
                    self.store_one(value, place)

    def entering(self, c: int, initial: list[str], rings: dict[int, str]) -> str:
        if c not in rings:
            return f"%q{c}.0" if self.region.count > 1 else initial[0]
        place = rings[c]
        self.write(f"{place}.now={self.element(place, f'%m{c}' if self.region.count > 1 else '0')}")
        return self.load(f"{place}.now")

    def ring(self, initial: list[str]) -> str:
        """Return memory for the last values of a carry; place `k % lag` holds the value of repetition `k - lag`."""
        ring = self.new(f"alloca [{len(initial)} x {self.scalar.type}],align 64")
        for k, value in enumerate(initial):
            self.store_one(value, self.offset(ring, k))
        return ring

    def phis(
        self, initial: list[list[str]], values: dict[int, str], rings: dict[int, str], totals: dict[int, str]
    ) -> list[str]:
        """Return the loop-carried values: the number of the repetition, sums, carries, and the places in rings."""
        kind = self.scalar.type
        lines = [f"%k=phi i64 [{'0' if self.job.blocks is None else '%first'},%entry],[%k.next,%loop]"]
        lines += [f"%s{c}=phi {kind} [{self.scalar.splat('0.0')},%entry],[{totals[c]},%loop]" for c in self.sums]
        for c, (queue, carry) in enumerate(zip(initial, self.region.carries, strict=True)):
            if c in rings:
                lines.append(f"%m{c}=phi i64 [0,%entry],[%m{c}.next,%loop]")
                after = self.new(f"add i64 %m{c},1")
                end = self.new(f"icmp eq i64 {after},{carry.lag}")
                self.write(f"%m{c}.next=select i1 {end},i64 0,i64 {after}")
                continue
            following = [f"%q{c}.{i}" for i in range(1, carry.lag)] + [values[carry.output]]
            lines += [
                f"%q{c}.{i}=phi {kind} [{first},%entry],[{after},%loop]"
                for i, (first, after) in enumerate(zip(queue, following, strict=True))
            ]
        return lines

    def end(self, values: dict[int, str]) -> None:
        """Write the branch to the next repetition or to the end of the loop."""
        region = self.region
        if region.count == 1:
            self.write("br label %exit", "exit:")
            return
        self.write("%k.next=add i64 %k,1")
        more = self.new(f"icmp ult i64 %k.next,{region.count if self.job.blocks is None else '%last'}")
        if region.stop is not None:
            more = self.new(f"and i1 {more},{self.new(f'fcmp oeq {self.scalar.type} {values[region.stop]},0.0')}")
        self.write(f"br i1 {more},label %loop,label %exit", "exit:")
