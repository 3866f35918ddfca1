"""A kernel of straight lines, encoded: its machine code, and the functions that it calls; or why LLVM has to do it."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence

from codegen.emission.emit import STACK_BYTES
from codegen.emission.lane_functions import on_lanes, own_functions
from codegen.emission.schedule import depth_first
from codegen.encoding.encoder import ALIGNED, ROUNDINGS, Body, Encoder, Pair
from codegen.encoding.x86_instructions import R13, RDI, pointer_before_displacement, width_of
from codegen.engine import host
from codegen.functions.symbols import Symbol, symbol
from codegen.ir.machine_rows import Row
from codegen.ir.program import Program
from codegen.lanes import FLOAT64, SCALAR
from codegen.lowering.group import FEWEST, SEEDS
from codegen.lowering.lower import Lowered
from codegen.lowering.passes import Prepared
from codegen.records import dataclass

AS_QUICK = 300  # operations up to which calls of the encoder's code take the time of LLVM's, or a twenty-fifth more
FURTHEST = 2**31 - 64  # bytes that a displacement reaches
ENTER = bytes.fromhex("55 4889e5 53 4154 4155 4156 4157")  # keep the caller's registers, with a frame pointer
TABLES = bytes.fromhex("4989fc 4989f5")  # the tables of pointers: from rdi and rsi to r12 and r13
LEAVE = bytes.fromhex("488d65d8 415f 415e 415d 415c 5b 5d c3")  # restore the caller's registers, and return
ON_STACK = bytes.fromhex("4889e3")  # the workspace, whose pointer is rbx: it begins at rsp
ON_HEAP = bytes.fromhex("4885c0 4889c3")  # is it rax, unless that is null
SUCCESS, FAILURE = bytes.fromhex("31c0"), bytes.fromhex("b801000000")  # the result: eax
FREED = bytes.fromhex("4889df")  # rbx is what `free` is called with
ZEROS = bytes.fromhex("31f6")  # esi is what `memset` is called with


@dataclass(frozen=True)
class Encoded:
    """Machine code, constants before it; where it is entered, and where addresses of functions belong."""

    code: bytes
    begin: int  # of the instructions
    entry: int
    called: dict[str, int]  # places of addresses, by function
    symbols: dict[str, Symbol]  # that say how functions are found
    workspace: int  # numbers


def why_not(prepared: Prepared) -> str:
    """Return why a program is none for the encoder, "" where it is one."""
    program, options = prepared.program, prepared.options
    features = host()[1].split(",")
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64") or "+avx" not in features:
        return "the encoder writes for x86-64 with AVX under Linux"
    if program.seeded:
        return "a sweep fills vector registers"
    if options.number.scalar != FLOAT64.scalar:
        return f"numbers are {options.dtype}"
    if options.chunk is not None:
        return "chunk functions were asked for"
    if options.accuracy == "fast" and any(row[0] == "call" for row in prepared.fused.rows):
        return 'accuracy="fast" allows vector functions'
    sizes = [array.size for array in program.inputs] + [array.size for array in program.outputs]
    if 8 * max([*sizes, 2 * len(prepared.fused.rows)]) > FURTHEST:  # a row takes up to 16 bytes
        return "a displacement has 32 bits"
    return ""


def why_not_best(prepared: Prepared) -> str:
    """Return why LLVM's code of a program that could be encoded may be quicker to call, "" where it is not.

    LLVM moves operations apart that wait for each other, which long code gains from, and puts equal ones side by side.
    """
    found = prepared.fused.count()
    if found["call"] or max(found[code] for code in SEEDS) >= FEWEST:
        return "equal functions, quotients or roots may go side by side"
    if found.total() > AS_QUICK:
        return f"it has more than {AS_QUICK} operations"
    return ""


def encode(program: Program, lowered: Lowered) -> Encoded:
    """Return the machine code of a program for which there is no reason why not.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> from codegen.lowering.lower import lower
    >>> x = sp.Symbol("x")
    >>> program = program_from_sympy([x], [x + 1])
    >>> encoded = encode(program, lower(program))
    >>> encoded.code[encoded.begin : encoded.begin + 12].hex(" ")
    '49 8b 04 24 c5 fb 10 00 c5 fb 58 05'
    """
    order = depth_first(lowered)
    names, symbols = _functions([lowered.rows[index] for index in order])
    inputs = [(k, j) for k, array in enumerate(program.inputs) for j in range(array.size)]
    stores: dict[int, list[Pair]] = {}
    for array, position, row in lowered.stores:
        stores.setdefault(row, []).append((array, position))
    body = Encoder(lowered.rows, order, inputs, stores, names).run()
    large = 8 * body.workspace > STACK_BYTES
    if large:
        body.code += FREED
        body.call("free")
    body.code += SUCCESS + LEAVE
    entry = len(body.code)
    _prologue(program, body, large)
    body.entries += [bytes(8)] * (-len(body.entries) % ALIGNED)
    begin = 8 * len(body.entries)
    symbols |= {name: symbol(name, 0) for name in body.called if name not in symbols}
    code = b"".join(reversed(body.entries)) + body.code
    called = {name: begin + place for name, place in body.called.items()}
    return Encoded(code, begin, begin + entry, called, symbols, body.workspace)


def _functions(rows: Sequence[Row]) -> tuple[dict[str, str], dict[str, Symbol]]:
    """What computes each function that rows call, by name, and all that these need."""
    called = {row[1]: len(row) - 2 for row in rows if row[0] == "call" and row[1] not in ROUNDINGS}
    own = own_functions(rows, SCALAR, fast=False)
    names: dict[str, str] = {}
    symbols: dict[str, Symbol] = {}
    for function, arity in called.items():
        found = on_lanes(function, arity, SCALAR, formulas=own, library=False)
        if found[0].name.startswith("llvm."):
            found = (_alone(found[0], arity), *found)
        names[function] = found[0].name
        symbols |= {one.name: one for one in found}
    return names, symbols


def _alone(intrinsic: Symbol, arity: int) -> Symbol:
    """A function that does what one of LLVM does, which is no function elsewhere."""
    name = f"symad.alone.{intrinsic.name}"
    parameters = ",".join(f"double %x{k}" for k in range(arity))
    return Symbol(
        name,
        f"define internal double @{name}({parameters}) noinline nounwind {{\n"
        f"%y=call double @{intrinsic.name}({parameters})\nret double %y\n}}",
    )


def _prologue(program: Program, body: Body, large: bool) -> None:
    """Write what comes first: registers kept, the workspace, zeros in sparse results; then the body."""
    code = body.code
    frame = 8 * (0 if large else body.workspace) | 8  # so calls find the stack as they expect it
    width = width_of(frame, RDI)
    code += ENTER + (b"\x48\x83\xec" if width == 1 else b"\x48\x81\xec") + frame.to_bytes(width, "little") + TABLES
    if large:
        code += b"\xbf" + (8 * body.workspace).to_bytes(4, "little")
        body.call("malloc")
        failed = FAILURE + LEAVE
        code += ON_HEAP + b"\x75" + len(failed).to_bytes(1, "little") + failed
    else:
        code += ON_STACK
    for number, output in enumerate(program.outputs):
        if output.positions is not None and output.size:
            width = width_of(8 * number, R13)
            code += pointer_before_displacement(RDI, R13, width) + (8 * number).to_bytes(width, "little")
            code += ZEROS + b"\xba" + (8 * output.size).to_bytes(4, "little")
            body.call("memset")
    code += b"\xe9" + (-len(code) - 5).to_bytes(4, "little", signed=True)
