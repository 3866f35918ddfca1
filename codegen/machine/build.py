"""Build a kernel from a program, stage by stage, and time each stage."""

from __future__ import annotations

import time
import typing
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, fields, replace
from functools import partial
from itertools import pairwise
from typing import TypeAlias

import codegen.machine.storage.cache
from codegen.code_memory import MachineCode
from codegen.collector import fewer_collections
from codegen.emission.emit import Emitted, Form
from codegen.emission.lane_functions import own_functions
from codegen.emission.straight import modules, side_by_side
from codegen.encoding.columns import lanes_of_columns
from codegen.encoding.encode import encode, encode_sweep, why_not, why_not_best
from codegen.engine import assembly
from codegen.errors import ArgumentError
from codegen.ir.program import Head, Program
from codegen.ir.region import RolledProgram, regions_of
from codegen.ir.tables import Indexed
from codegen.lanes import SCALAR
from codegen.later import Deferred
from codegen.limits import check, check_bytes
from codegen.loops.emit.rolled_code import RolledPlan
from codegen.lowering.halves import executed_halves
from codegen.lowering.passes import Prepared, prepare
from codegen.machine.calls.compiled import ENCODER, LLVM, Built, Compiled, Pack, Restore, Stats, Unpack, stats_of
from codegen.machine.calls.kernel import Kernel, make_kernel
from codegen.machine.kernel_text import LISTING, Plan, plan, sizes, uses_library, write
from codegen.machine.storage.cache import Setting
from codegen.machine.storage.portable import MALFORMED, Portable, decode
from codegen.machine.storage.program_cache import ObjectCode, ProgramCache
from codegen.options import LEVELS, OptionFields, Options, Tier, check_names
from codegen.pricing.price_table import nanoseconds
from codegen.sealed import refused
from codegen.stages import LOG, Compilation, part, stage, watched, within_compilation

if typing.TYPE_CHECKING:
    from codegen.encoding import disassembly
else:  # imported when the assembly of a kernel is read
    disassembly = Deferred("codegen.encoding.disassembly")

Write: TypeAlias = Callable[[], Emitted]
STAGES = ("lower", "schedule", "emit", "parse", "codegen")
ENCODING = ("lower", "group", "encode")
TIERS: dict[Tier, tuple[Tier, Tier]] = {  # of the first machine code, and of the last
    "default": ("default", "default"), "fast": ("fast", "fast"), "auto": ("fast", "default"),
    "llvm": ("llvm", "llvm"),
}  # fmt: skip
RELEASE_ABOVE = 2000.0  # nanoseconds: giving the GIL back and taking it again costs 45


def compile_program(
    program: Program | RolledProgram,
    *,
    pack: Pack | None = None,
    unpack: Unpack | None = None,
    cache: Setting = None,
    planned: object = None,
    **options: typing.Unpack[OptionFields],
) -> Kernel:
    """Compile a program to a native kernel, a rolled one to loops.

    `options` are the fields of `Options`. `pack(args, kwargs) -> arrays` and `unpack(arrays) -> result` translate
    structured arguments. `planned` is kept in the statistics. `cache` says whether object code is kept on disk
    (`codegen.machine.storage.cache.chosen`). ArgumentError for an option that does not exist, or complex
    numbers in a rolled program; LoweringError for a head without a native lowering.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> compile_program(program_from_sympy([x], [sp.sin(x) ** 2]))(0.5) == __import__("math").sin(0.5) ** 2
    True
    """
    check_names(options)
    chosen = Options(**options)
    _check(program, chosen)
    with fewer_collections(), within_compilation(program.name, LISTING) as opened:
        stage("program", program)
        chosen_cache = codegen.machine.storage.cache.chosen(cache)
        program_cache = ProgramCache(None if watched() else chosen_cache, program, chosen)
        return _kernel(program_cache, opened, pack, unpack, planned)


def _kernel(
    source: ProgramCache, opened: Compilation, pack: Pack | None, unpack: Unpack | None, planned: object
) -> Kernel:
    """Return the kernel of a program, from the cache or built."""
    bisection = opened.bisection.copy()  # other forms of the code go the same way from here
    first, final = TIERS[source.options.tier]
    compiled = _stored(final, source) or (_stored(first, source) if first != final else None)
    write_again = None
    if compiled is None:
        code, write_again = _build(source.program, source.options)
        tier = first if write_again else final  # there is nothing better
        source.store(tier, code)
        compiled = _compiled(tier, source, code, code.linked())
    stats = compiled.stats
    kernel = make_kernel(compiled._replace(bisection=bisection, stats=replace(stats, plan=planned)), pack, unpack)
    if compiled.tier != final:
        kernel.improve_later(partial(_optimised, source, stats, compiled.release, write_again))
    return kernel


def _check(program: Program | RolledProgram, options: Options) -> None:
    """Raise an error for a program beyond limits or options."""
    _check_memory(program, options.number.dtype.itemsize)
    if isinstance(program, Program):
        check("the program", program.heads)
        return
    heads: list[Head] = [head for region, _ in regions_of(program.steps) for head in region.body.heads]
    check("the bodies of the program", heads)
    if options.number.parts > 1:
        raise ArgumentError(
            f"dtype={options.dtype!r} of {program.name}, which is written in loops",
            why="loops are written for real numbers", do='compile it without loops: roll="never"',
        )  # fmt: skip


def _check_memory(program: Program | RolledProgram, size: int) -> None:
    """Refuse results, workspaces and tables of more bytes than a limit allows; numbers have `size` bytes."""
    for k, output in enumerate(program.outputs):
        check_bytes(f"result {k} of {program.name}, of shape {output.shape}", size * output.size)
    if isinstance(program, Program):
        return
    workspace = sum(buffer.size for buffer in program.buffers if buffer.kind == "workspace")
    check_bytes(f"the workspace of {program.name}", size * workspace)
    constants = sum(buffer.size for buffer in program.buffers if buffer.values is not None)
    check_bytes(f"the constants of {program.name}", size * constants)
    regions = [region for region, _ in regions_of(program.steps)]
    used = [use.table for region in regions for use in region.reads]
    used += [use.table for region in regions for use in region.results]
    tables = {id(table.index): table.index.nbytes for table in used if isinstance(table, Indexed)}
    check_bytes(f"the tables of places of {program.name}", sum(tables.values()))


def kernel_of(data: bytes, where: str, cache: Setting = None, restore: Restore | None = None) -> Kernel:
    """Return the kernel of a file's program, compiled for this machine; nothing of the file is run."""
    portable = decode(data, where)
    if portable.containers is None:
        return _recompiled(portable, None, None, cache)
    if restore is None:
        raise ArgumentError("a kernel that takes or returns containers", where=where, do="load it with symad.load")
    try:
        pack, unpack = restore(portable.containers, portable.program)
    except MALFORMED as error:
        raise refused(where, f"its containers are none ({error})") from error
    return _recompiled(portable, pack, unpack, cache)


def revive(data: bytes, pack: Pack | None, unpack: Unpack | None) -> Kernel:
    """Return a kernel from its portable bytes, compiled for this machine: pickled kernels call this."""
    return _recompiled(decode(data, "a pickled kernel"), pack, unpack, None)


def _recompiled(portable: Portable, pack: Pack | None, unpack: Unpack | None, cache: Setting) -> Kernel:
    options = {field.name: getattr(portable.options, field.name) for field in fields(Options)}
    return compile_program(portable.program, pack=pack, unpack=unpack, cache=cache, **options)


def _stored(tier: Tier, source: ProgramCache) -> Compiled | None:
    """Return the kernel in the cache, None without any."""
    start = time.perf_counter()
    stored = source.load(tier)
    if stored is None:
        return None
    compiled = _compiled(tier, source, *stored)
    seconds = {"load": time.perf_counter() - start}
    return compiled._replace(stats=replace(compiled.stats, seconds=seconds, cached=True))


def _compiled(tier: Tier, source: ProgramCache, code: ObjectCode, library: MachineCode) -> Compiled:
    stats, built = stats_of(code.facts["stats"]), Built(source.program, source, revive)
    return Compiled(source.program, library, source.options, stats, code.facts["release"], built, tier, code=code)


def _why_llvm(prepared: Prepared, options: Options) -> tuple[str, str]:
    """Return why LLVM writes the code and not the encoder, and why its code would be better; "" for no reason."""
    reason = "it was asked for" if options.tier == "llvm" else why_not(prepared)
    better = why_not_best(prepared) if not reason and options.tier in ("default", "auto") else ""
    return reason or (better if options.tier == "default" else ""), better


def _build(program: Program | RolledProgram, options: Options) -> tuple[ObjectCode, Write | None]:
    """Run all stages, each timed; also return the writer of the IR for better machine code, if there can be any."""
    clock = [time.perf_counter()]
    planned: Plan
    generator = LLVM
    if isinstance(program, RolledProgram):
        planned = RolledPlan.of(program, options)
        clock += [time.perf_counter()] * 2  # bodies are lowered and loops planned at once
        counted = sizes(planned)
        reason = "loops"
    else:
        prepared = prepare(program, options)
        clock.append(time.perf_counter())
        reason, better = _why_llvm(prepared, options)
        if not reason:
            return _encoded(prepared, clock), _written_later(prepared) if better else None
        planned = plan(prepared)
        clock.append(time.perf_counter())
        counted = _sizes(prepared)
    if options.tier in ("fast", "auto"):
        LOG.debug("%s: machine code by LLVM, and not by the encoder: %s", program.name, reason)
        generator += f", level {options.level}: {reason}"
    emitted = planned.emit(Form(lanes=options.number.lanes()))
    clock.append(time.perf_counter())
    stage("llvm", lambda: emitted.text)
    code = ObjectCode.of(emitted, options.level)
    stage("assembly", lambda: "\n".join(assembly(text, options.level) for text in modules(emitted)))
    seconds = dict(zip(STAGES, [*(b - a for a, b in pairwise(clock)), *code.image.seconds], strict=True))
    stats = replace(
        counted,
        chunks=planned.chunks,
        workspace=planned.workspace,
        seconds=seconds,
        code_bytes=code.code_bytes,
        strategy=planned.strategy,
        executed=sum(planned.executed().values()),
        generator=generator,
    )
    return _noted(program, code, stats, planned.executed()), lambda: emitted


def _encoded(prepared: Prepared, clock: list[float]) -> ObjectCode:
    """Encode straight lines, or a sweep, without LLVM; the clock has the beginning, and the end of lowering."""
    program = prepared.program
    plain = prepared.halves.once if program.seeded else prepared.fused
    library = uses_library(prepared.options)
    own = own_functions(plain.rows, SCALAR, fast=library)
    with part("once") if program.seeded else nullcontext():
        lowered = side_by_side(plain, own=own, vector_libm=library)
    clock.append(time.perf_counter())
    if program.seeded:
        encoded = encode_sweep(program, replace(prepared.halves, once=lowered), own, library=library)
        executed = executed_halves(program, plain, prepared.halves.columns, lanes_of_columns(program))
    else:
        encoded, executed = encode(program, lowered, own, library=library), plain.count()
    clock.append(time.perf_counter())
    seconds = dict(zip(ENCODING, [b - a for a, b in pairwise(clock)], strict=True))
    code = ObjectCode.encoded(encoded, seconds["encode"])
    stage("assembly", lambda: disassembly.listing(encoded.placed))
    stats = replace(
        _sizes(prepared),
        workspace=encoded.workspace,
        seconds=seconds,
        code_bytes=code.code_bytes,
        executed=executed.total(),
        generator=ENCODER,
        strategy="sweep" if program.seeded else "straight",
    )
    return _noted(program, code, stats, executed)


def _written_later(prepared: Prepared) -> Write:
    """Return the writer of the IR of code that the encoder has written for now."""
    emitted = plan(prepared).emit() if watched() else None  # as long as it is open
    return lambda: emitted or plan(prepared).emit()


def _noted(program: Program | RolledProgram, code: ObjectCode, stats: Stats, executed: Mapping[str, int]) -> ObjectCode:
    """Note what was built, and keep it with the code."""
    seconds = stats.seconds
    built = 1000 * sum(seconds.values())
    LOG.info("%s: %s, %d operations a call, built in %.1f ms", program.name, stats.strategy, stats.executed, built)
    return _with_facts(code, stats, nanoseconds(executed) > RELEASE_ABOVE)


def _with_facts(code: ObjectCode, stats: Stats, release: bool) -> ObjectCode:
    kept = {field.name: getattr(stats, field.name) for field in fields(stats)}
    return replace(code, facts={"stats": kept | {"regions": list(map(asdict, stats.regions))}, "release": release})


def _optimised(source: ProgramCache, stats: Stats, release: bool, write_again: Write | None) -> MachineCode:
    """Compile once more with all effort; without `write_again` the first code came from the cache."""
    code = ObjectCode.of(write_again() if write_again else write(source.program, source.options), LEVELS["default"])
    stats = replace(stats, code_bytes=code.code_bytes, cached=False, generator=LLVM)
    source.store("default", _with_facts(code, stats, release))
    return code.linked()


def _sizes(prepared: Prepared) -> Stats:
    """Count the operations of straight-line code or a sweep."""
    plain, fused = prepared.plain, prepared.fused
    return Stats(
        nodes=plain.nodes,
        operations_before=plain.operations_before,
        operations_after=plain.operations_after_sharing,
        machine_operations=dict(plain.count()),
        fused=fused.count()["fma"],
        passes=prepared.effects,
    )
