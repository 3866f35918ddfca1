"""Build: a Program becomes a Kernel, stage by stage, with the time of each."""

from __future__ import annotations

import time
from itertools import pairwise

from codegen.emit import emit
from codegen.engine import compile_text, has_fma
from codegen.errors import ArgumentError
from codegen.fuse import fuse, merge_scales, sink_signs
from codegen.kernel import Compiled, Kernel, Pack, Stats, Unpack, make_kernel
from codegen.lower import FUSED, Lowered, lower
from codegen.program import Program
from codegen.schedule import Schedule, schedule

STAGES = ("lower", "schedule", "emit", "parse", "codegen")
TIERS = {"default": 2, "fast": 0}  # LLVM code generation level
NANOSECONDS = {"call": 20.0, "div": 1.6, "sqrt": 2.4}  # others 0.25
RELEASE_ABOVE = 2000.0  # nanoseconds: giving the GIL back and taking it again costs 45


def compile_program(
    program: Program,
    *,
    tier: str = "default",
    fma: bool = True,
    chunk: int | None = None,
    pack: Pack | None = None,
    unpack: Unpack | None = None,
) -> Kernel:
    """Compile a program to a native kernel.

    `tier="fast"` compiles several times faster to code about half as fast; results are bitwise the same. `fma=False`
    keeps products and sums apart (each rounded on its own). `chunk` overrides the number of operations per function.
    `pack(args, kwargs) -> arrays` and `unpack(arrays) -> result` translate structured arguments.
    ArgumentError for an unknown tier, LoweringError for a head without a native lowering.

    >>> import sympy as sp
    >>> from codegen.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> compile_program(program_from_sympy([x], [sp.sin(x) ** 2]))(0.5) == __import__("math").sin(0.5) ** 2
    True
    """
    if tier not in TIERS:
        raise ArgumentError(f"tier={tier!r}", do=f"use one of {', '.join(TIERS)}")
    level = TIERS[tier]
    clock = [time.perf_counter()]
    plain = sink_signs(merge_scales(lower(program)))
    clock.append(time.perf_counter())
    lowered = fuse(plain) if fma and has_fma() else plain
    plan = schedule(lowered, chunk)
    clock.append(time.perf_counter())
    emitted = emit(program, lowered, plan)
    clock.append(time.perf_counter())
    addresses = {name: address for found in emitted.symbols for name, address in found.addresses.items()}
    library = compile_text(emitted.text, ("kernel",), addresses, level)
    seconds = dict(zip(STAGES, [*(b - a for a, b in pairwise(clock)), *library.timing.seconds], strict=True))
    stats = _stats(plain, lowered, plan, seconds, len(emitted.text), library.timing.code_bytes)
    release = _estimate(stats.machine_operations) > RELEASE_ABOVE
    return make_kernel(Compiled(program, library, emitted.text, level, stats, release), pack, unpack)


def _stats(
    plain: Lowered, fused: Lowered, plan: Schedule, seconds: dict[str, float], text_bytes: int, code_bytes: int
) -> Stats:
    return Stats(
        nodes=plain.nodes,
        operations_before=plain.operations_before,
        operations_after=plain.operations_after_sharing,
        machine_operations=dict(plain.count()),
        fused=sum(fused.rows[row][0] in FUSED for row in fused.live()),
        chunks=len(plan.chunks),
        workspace=plan.workspace,
        seconds=seconds,
        text_bytes=text_bytes,
        code_bytes=code_bytes,
    )


def _estimate(counts: dict[str, int]) -> float:
    return sum(NANOSECONDS.get(kind, 0.25) * count for kind, count in counts.items())
