"""The steps of a rolled program one after the other: calls of the regions, and loops around those of a nest."""

from __future__ import annotations

from collections.abc import Sequence

from codegen.ir.region import Nest, Region, Step


def calls(steps: Sequence[Step], prefix: str) -> list[str]:
    """Return the IR that calls `@prefix.region0`, `@prefix.region1`... as `regions_of` has them, each with its rounds.

    It begins in the block %start.

    >>> from codegen.ir.program import Output, Program
    >>> region = Region(Program([], [], {}, (), ()), 1, (), ())
    >>> calls([region], "kernel")
    ['call void @kernel.region0(ptr %in,ptr %out,ptr %w)']
    """
    lines: list[str] = []
    block, regions, nests = "start", 0, 0
    rounds: list[str] = []
    stack: list[Step | tuple[int, int, str]] = list(reversed(steps))
    while stack:
        step = stack.pop()
        if isinstance(step, Region):
            arguments = "".join(f",i64 {number}" for number in rounds)
            lines.append(f"call void @{prefix}.region{regions}(ptr %in,ptr %out,ptr %w{arguments})")
            regions += 1
        elif isinstance(step, Nest):
            n, nests = nests, nests + 1
            lines += [f"br label %nest{n}", f"nest{n}:", f"%n{n}=phi i64 [0,%{block}],[%n{n}.next,%again{n}]"]
            block = f"nest{n}"
            rounds.append(f"%n{n}")
            stack += [(n, step.count, block), *reversed(step.steps)]
        else:
            n, count, _ = step
            lines += [f"br label %again{n}", f"again{n}:", f"%n{n}.next=add i64 %n{n},1"]
            lines += [f"%m{n}=icmp ult i64 %n{n}.next,{count}", f"br i1 %m{n},label %nest{n},label %end{n}", f"end{n}:"]
            block = f"end{n}"
            rounds.pop()
    return lines
