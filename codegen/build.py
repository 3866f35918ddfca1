"""Build: a Program becomes a Kernel, stage by stage, with the time of each."""

from __future__ import annotations

import time
import typing
from collections.abc import Mapping
from itertools import pairwise

from codegen.emit import Emitted
from codegen.engine import Library, compile_modules, link
from codegen.kernel import Compiled, Kernel, Pack, Stats, Unpack, make_kernel
from codegen.lower import FUSED
from codegen.modules import modules
from codegen.options import LEVELS, OptionFields, Options
from codegen.plan import plan
from codegen.prepare import Prepared, prepare
from codegen.program import Program
from codegen.straight import StraightPlan
from codegen.sweep import SweepPlan

STAGES = ("lower", "schedule", "emit", "parse", "codegen")
NANOSECONDS = {"call": 20.0, "div": 1.6, "sqrt": 2.4}  # others 0.25
RELEASE_ABOVE = 2000.0  # nanoseconds: giving the GIL back and taking it again costs 45


def compile_program(
    program: Program, *, pack: Pack | None = None, unpack: Unpack | None = None, **options: typing.Unpack[OptionFields]
) -> Kernel:
    """Compile a program to a native kernel.

    `options` are the fields of `Options`. `pack(args, kwargs) -> arrays` and `unpack(arrays) -> result` translate
    structured arguments. ArgumentError for an option that does not exist, LoweringError for a head without a native
    lowering.

    >>> import sympy as sp
    >>> from codegen.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> compile_program(program_from_sympy([x], [sp.sin(x) ** 2]))(0.5) == __import__("math").sin(0.5) ** 2
    True
    """
    chosen = Options(**options)
    clock = [time.perf_counter()]
    prepared = prepare(program, chosen)
    clock.append(time.perf_counter())
    planned = plan(prepared)
    clock.append(time.perf_counter())
    emitted = planned.emit()
    clock.append(time.perf_counter())
    image = compile_modules(modules(emitted), chosen.level)
    seconds = dict(zip(STAGES, [*(b - a for a, b in pairwise(clock)), *image.seconds], strict=True))
    stats = _stats(prepared, planned, seconds, image.code_bytes)
    library = link(image, ("kernel",), emitted.addresses)
    release = _estimate(planned.executed()) > RELEASE_ABOVE
    kernel = make_kernel(Compiled(program, library, chosen, stats, release), pack, unpack)
    if chosen.tier == "auto":
        kernel.improve_later(lambda: _optimised(emitted))
    return kernel


def _optimised(emitted: Emitted) -> Library:
    """Compile once more with all effort."""
    return link(compile_modules(modules(emitted), LEVELS["default"]), ("kernel",), emitted.addresses)


def _stats(prepared: Prepared, planned: StraightPlan | SweepPlan, seconds: dict[str, float], code_bytes: int) -> Stats:
    plain, fused = prepared.plain, prepared.fused
    return Stats(
        nodes=plain.nodes,
        operations_before=plain.operations_before,
        operations_after=plain.operations_after_sharing,
        machine_operations=dict(plain.count()),
        fused=sum(fused.rows[row][0] in FUSED for row in fused.live()),
        chunks=planned.chunks,
        workspace=planned.workspace,
        seconds=seconds,
        code_bytes=code_bytes,
        strategy=planned.strategy,
        executed=sum(planned.executed().values()),
    )


def _estimate(counts: Mapping[str, int]) -> float:
    return sum(NANOSECONDS.get(kind, 0.25) * count for kind, count in counts.items())
