"""Encode a kernel of straight lines or a sweep. The result has the functions it calls, or the reason for a refusal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from codegen.code_memory import PlacedCode
from codegen.emission.emit import STACK_BYTES
from codegen.emission.lane_functions import SINE_AND_COSINE, on_lanes, own_functions, sine_and_cosine_of_lanes
from codegen.emission.schedule import SINGLE_LIMIT, depth_first
from codegen.encoding.columns import FEWEST, lanes_of_columns, write_columns
from codegen.encoding.encoder import BOTH, INSTRUCTIONS, Encoder, in_halves
from codegen.encoding.written_values import ALIGNED, MIDDLE, RESIDUALS, CodeBody, stored_places
from codegen.encoding.x86_instructions import NEXT, R13, RDI, RDX, pointer_before_displacement, width_of
from codegen.functions.libraries import VECTOR_LIBM
from codegen.functions.symbols import Symbol, symbol
from codegen.ir.machine_rows import Row
from codegen.ir.program import Input, Program
from codegen.lanes import FLOAT64, SCALAR, Lanes
from codegen.lowering.halves import Split
from codegen.lowering.lower import Lowered
from codegen.lowering.passes import Prepared
from codegen.pricing.price_table import FEW_BLOCKS
from codegen.processor import features, is_x86_64_linux
from codegen.records import dataclass

FEW = 10  # operations: calls take the same time either way
ENTER = bytes.fromhex("55 4889e5 53 4154 4155 4156 4157")  # keep the caller's registers, with a frame pointer
TABLES = bytes.fromhex("4989fc 4989f5")  # the tables of pointers: from rdi and rsi to r12 and r13
LEAVE = bytes.fromhex("488d65d8 415f 415e 415d 415c 5b 5d c3")  # restore the caller's registers, and return
LINED_UP = bytes.fromhex("4883e4c0")  # rsp is a multiple of 64
CONSTANTS = pointer_before_displacement(RDX, NEXT, 4, address=True)
ON_STACK = bytes.fromhex("4889e3")  # the workspace, whose pointer is rbx, begins at rsp
ON_HEAP = bytes.fromhex("4885c0 4889c3")  # the workspace is at rax, unless that is null
SUCCESS, FAILURE = bytes.fromhex("31c0"), bytes.fromhex("b801000000")  # the result: eax
FREED = bytes.fromhex("4889df")  # rbx is the argument of `free`
ZEROS = bytes.fromhex("31f6")  # esi is the argument of `memset`


@dataclass(frozen=True)
class Encoded:
    """Machine code behind its constants, which begins at "kernel.0" and is entered at "kernel"; what it calls."""

    placed: PlacedCode
    symbols: dict[str, Symbol]  # of the functions
    workspace: int  # numbers


def why_not(prepared: Prepared) -> str:
    """Return the reason why the encoder cannot write a program, or ""."""
    program, options = prepared.program, prepared.options
    if not is_x86_64_linux() or "avx" not in features():
        return "the encoder writes for x86-64 with AVX under Linux"
    if program.seeded and lanes_of_columns(program) < FEWEST:
        return f"a sweep over {program.inputs[-1].size} columns"
    if options.number.scalar != FLOAT64.scalar:
        return f"numbers are {options.dtype}"
    if options.chunk is not None:
        return "chunk functions were asked for"
    if program.seeded and prepared.halves.columns.count()["call"]:
        return "a function is called for every column"
    sizes = [array.size for array in program.inputs] + [array.size for array in program.outputs]
    if 8 * max([*sizes, 2 * len(prepared.fused.rows)]) > 2**31 - 64:  # a row takes up to 16 bytes
        return "a displacement has 32 bits"
    return ""


def why_not_best(prepared: Prepared) -> str:
    """Return the reason why LLVM's code of a program that could be encoded is quicker to call, or ""."""
    count = prepared.fused.count()
    seeded = prepared.program.seeded  # sweeps have masks too
    many_choices = 4 * count["select"] > count.total()  # then calls take up to a quarter longer than of LLVM's code
    if many_choices and FEW < count.total() <= SINGLE_LIMIT and not seeded:
        return "most of it are choices, for which LLVM has masks"
    if seeded and prepared.program.inputs[-1].size > FEW_BLOCKS * lanes_of_columns(prepared.program):
        return "LLVM puts the operations of many blocks of columns in a better order"
    return ""


def encode(program: Program, lowered: Lowered, own: bool | None = None, *, library: bool = False) -> Encoded:
    """Return the machine code of a program that the encoder can write.

    With `own`, functions have formulas of ours; with `library` they are those of the vector libm.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> from codegen.lowering.lower import lower
    >>> x = sp.Symbol("x")
    >>> program = program_from_sympy([x], [x + 1])
    >>> placed = encode(program, lower(program)).placed
    >>> placed.code[placed.entries["kernel.0"] :][:12].hex(" ")
    '49 8b 04 24 c5 fb 10 00 c5 fb 58 42'
    """
    encoder, symbols = _encoder(program.inputs, range(len(program.outputs)), lowered, own, library)
    return _whole(program, encoder.run(), symbols)


def encode_sweep(program: Program, halves: Split, own: bool | None = None, *, library: bool = False) -> Encoded:
    """Return the machine code of a sweep, whose first half may have groups; see `encode`."""
    fixed = [k for k, output in enumerate(program.outputs) if not output.swept]
    encoder, symbols = _encoder(program.arguments, [*fixed, RESIDUALS], halves.once, own, library)
    encoder.workspace.size = halves.residuals
    body = encoder.run()
    write_columns(body, program, halves)
    body.lanes = True
    return _whole(program, body, symbols)


def _encoder(
    inputs: Sequence[Input], outputs: Sequence[int], lowered: Lowered, own: bool | None, library: bool
) -> tuple[Encoder, dict[str, Symbol]]:
    """Return the encoder of operations, whose output arrays have the numbers `outputs`, and the functions it calls."""
    lowered = replace(lowered, rows=in_halves(lowered.rows))
    order = depth_first(lowered)
    own = own_functions(lowered.rows, SCALAR, fast=library) if own is None else own
    calls = _calls(lowered.rows, order)
    both = _both(calls) if own else {}
    names, symbols = _functions(calls, own, {calls[index][1] for index in both}, library)
    places = [(k, j) for k, array in enumerate(inputs) for j in range(array.size)]
    return Encoder(lowered.rows, order, places, stored_places(lowered.stores, outputs), names, both), symbols


def _whole(program: Program, body: CodeBody, symbols: dict[str, Symbol]) -> Encoded:
    """Return the function of a body, with the prologue behind it and constants before it."""
    large = 8 * body.workspace > STACK_BYTES
    if large:
        body.code += FREED
        body.call("free")
    body.code += SUCCESS + LEAVE
    entry = len(body.code)
    _prologue(program, body, large)
    body.entries += [bytes(8)] * max(-len(body.entries) % ALIGNED, -MIDDLE // 8 - len(body.entries))
    begin = 8 * len(body.entries)
    symbols |= {name: symbol(name, 0) for name in body.called if name not in symbols}
    code = b"".join(reversed(body.entries)) + body.code
    called = {name: (begin + place,) for name, place in body.called.items()}
    placed = PlacedCode(code, {"kernel": begin + entry, "kernel.0": begin}, called)
    return Encoded(placed, symbols, body.workspace)


Call = tuple[str, int, tuple[int, ...]]  # function, lanes, operands


def _calls(rows: Sequence[Row], order: Sequence[int]) -> dict[int, Call]:
    """Return the functions that rows call."""
    calls: dict[int, Call] = {}
    if "call" not in {row[1][1] if row[0] == "wide" else row[0] for row in rows}:
        return calls
    for index in order:
        row = rows[index]
        lanes, *shape = row[1] if row[0] == "wide" else (1, *row[:2])
        if shape[0] == "call" and shape[1] not in INSTRUCTIONS:
            calls[index] = shape[1], lanes, row[2:]
    return calls


def _both(calls: Mapping[int, Call]) -> dict[int, int]:
    """Return, for each sine or cosine, the other one of the same angle, where both are wanted."""
    where = {call: index for index, call in calls.items() if call[0] in SINE_AND_COSINE}
    sine, cosine = SINE_AND_COSINE
    others = {index: (cosine if call[0] == sine else sine, *call[1:]) for call, index in where.items()}
    return {index: where[other] for index, other in others.items() if other in where}


def _functions(
    calls: Mapping[int, Call], own: bool, pairs: Iterable[int], library: bool = False
) -> tuple[dict[tuple[str, int], str], dict[str, Symbol]]:
    """Return the symbol of each called function, by name and lanes, and all symbols; `pairs` are widths of sincos."""
    names: dict[tuple[str, int], str] = {}
    symbols: dict[str, Symbol] = {}
    for (function, width), arity in {(call[0], call[1]): len(call[2]) for call in calls.values()}.items():
        lanes = Lanes(width)
        functions = on_lanes(function, arity, lanes, formulas=own, library=library)
        if not functions[0].name.startswith(("symad.", VECTOR_LIBM)):
            functions = (
                _alone(functions, arity, lanes) if width > 1 or functions[0].name.startswith("llvm.") else functions
            )
        names[function, width] = functions[0].name
        symbols |= {function_symbol.name: function_symbol for function_symbol in functions}
    for width in pairs:
        functions = sine_and_cosine_of_lanes(Lanes(width))
        names[BOTH, width] = functions[0].name
        symbols |= {function_symbol.name: function_symbol for function_symbol in functions}
    return names, symbols


def _alone(functions: tuple[Symbol, ...], arity: int, lanes: Lanes) -> tuple[Symbol, ...]:
    """Return a function that calls an operation of LLVM, or a function lane by lane: the encoder needs an address."""
    name, kind = f"symad.alone.{functions[0].name}", lanes.type
    parameters = ",".join(f"{kind} %x{k}" for k in range(arity))
    text = (
        f"define internal {kind} @{name}({parameters}) noinline nounwind {{\n"
        f"%y=call {kind} @{functions[0].name}({parameters})\nret {kind} %y\n}}"
    )
    return Symbol(name, text), *functions


def _prologue(program: Program, body: CodeBody, large: bool) -> None:
    """Write the prologue: saved registers, the workspace, zeros in sparse results; then a jump to the body."""
    code = body.code
    frame = 8 * (0 if large else body.workspace) | 8  # aligns the stack for calls
    width = width_of(frame, RDI)
    code += ENTER + (b"\x48\x83\xec" if width == 1 else b"\x48\x81\xec") + frame.to_bytes(width, "little") + TABLES
    code += LINED_UP if body.lanes else b""
    if large:
        code += b"\xbf" + (8 * body.workspace).to_bytes(4, "little")
        body.call("malloc")
        failed = FAILURE + LEAVE
        code += ON_HEAP + b"\x75" + len(failed).to_bytes(1, "little") + failed
    else:
        code += ON_STACK
    for number, output in enumerate(program.outputs):
        filled = len(output.rows) * program.inputs[-1].size if output.swept else 0
        if output.positions is not None and filled < output.size:
            width = width_of(8 * number, R13)
            code += pointer_before_displacement(RDI, R13, width) + (8 * number).to_bytes(width, "little")
            code += ZEROS + b"\xba" + (8 * output.size).to_bytes(4, "little")
            body.call("memset")
    if body.points:
        code += CONSTANTS + (MIDDLE - len(code) - len(CONSTANTS) - 4).to_bytes(4, "little", signed=True)
    code += b"\xe9" + (-len(code) - 5).to_bytes(4, "little", signed=True)
