"""Disassemble the encoder's machine code into the form of LLVM's assembler.

It reads only bytes. LLVM assembles its text to the same bytes (`tests/codegen/encoding/test_disassembly.py`).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from codegen.code_memory import PlacedCode
from codegen.encoding.written_values import MIDDLE
from codegen.encoding.x86_instructions import FORMS, NEXT, RBP, RSP, ZERO_UPPER, operand_of
from codegen.errors import InvariantError

POINTERS = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{k}" for k in range(8, 16)))
KNOWN = {(form.prefix, form.map, form.opcode, form.long, form.spread): code for code, form in FORMS.items()}
WORDS = {bytes.fromhex(code): text for code, text in {
    "55": "pushq %rbp", "4889e5": "movq %rsp, %rbp", "53": "pushq %rbx", "4154": "pushq %r12", "4155": "pushq %r13",
    "4156": "pushq %r14", "4157": "pushq %r15", "4989fc": "movq %rdi, %r12", "4989f5": "movq %rsi, %r13",
    "488d65d8": "leaq -40(%rbp), %rsp", "415f": "popq %r15", "415e": "popq %r14", "415d": "popq %r13",
    "415c": "popq %r12", "5b": "popq %rbx", "5d": "popq %rbp", "c3": "retq", "4889e3": "movq %rsp, %rbx",
    "4885c0": "testq %rax, %rax", "4889c3": "movq %rax, %rbx", "31c0": "xorl %eax, %eax", "4889df": "movq %rbx, %rdi",
    "31f6": "xorl %esi, %esi", "4883e4c0": "andq $-64, %rsp", "4531e4": "xorl %r12d, %r12d",
    "4939c4": "cmpq %rax, %r12", "4c0f47e0": "cmovaq %rax, %r12", "4d01e6": "addq %r12, %r14",
    "4c01e0": "addq %r12, %rax", "4c01e1": "addq %r12, %rcx",
}.items()}  # fmt: skip
NUMBERS = {  # instructions with a number: its bytes, and the text
    b"\x48\x83\xec": (1, "subq ${}, %rsp"), b"\x48\x81\xec": (4, "subq ${}, %rsp"), b"\xbf": (4, "movl ${}, %edi"),
    b"\xba": (4, "movl ${}, %edx"), b"\xb8": (4, "movl ${}, %eax"), b"\x75": (1, "jne .+2+{}"),
    b"\xe9": (4, "jmp kernel.0"), b"\xff\x15": (4, "callq *{}(%rip)"),
    b"\x0f\x82": (4, "jb .+6+{}"),
}  # fmt: skip
MOVES = {0x8B: "movq", 0x8D: "leaq"}
CONSTANT = re.compile(r"(-?\d*)\(%rdx\)")


def instructions(code: bytes, start: int, end: int) -> Iterator[tuple[int, str, int | None]]:
    """Yield the end of each instruction, its text, and the place that it reads or jumps to.

    >>> list(instructions(bytes.fromhex("c5f358c2 c3"), 0, 5))
    [(4, 'vaddsd %xmm2, %xmm1, %xmm0', None), (5, 'retq', None)]
    """
    while start < end:
        if code[start : start + 3] == ZERO_UPPER:
            after, text, displacement = start + 3, "vzeroupper", None
        elif code[start] in (0xC4, 0xC5, 0x62):
            after, text, displacement = _vector(code, start)
        else:
            after, text, displacement = _plain(code, start)
        yield after, text, None if displacement is None else after + displacement
        start = after


def listing(placed: PlacedCode) -> str:
    """Return the text of a kernel's code: the operations, then the prologue; with constants and functions in comments.

    >>> listing(PlacedCode(b"\\xc3", {"kernel.0": 0, "kernel": 1})).split()
    ['kernel.0:', 'retq', '.Lfunc_end0:', 'kernel:']
    """
    code, begin, entry = placed.code, placed.entries["kernel.0"], placed.entries["kernel"]
    names = {place: name for name, places in placed.called.items() for place in places}
    lines = []
    for label, first, last, end in (("kernel.0", begin, entry, ".Lfunc_end0"), ("kernel", entry, len(code), "")):
        lines.append(f"{label}:")
        for _, text, place in instructions(code, first, last):
            note = ""
            if (constant := CONSTANT.search(text)) and label == "kernel.0":
                place = begin + MIDDLE + int(constant[1] or 0)
            if place is not None and place < begin:  # not the target of a jump
                note = f"  # {names.get(place) or struct.unpack_from('<d', code, place)[0]}"
            lines.append(f"\t{text}{note}")
        lines += [f"{end}:"] if end else []
    return "\n".join([*lines, ""])


class Head(NamedTuple):
    """The prefix of an instruction on vector registers; `first`, `middle` and `last` are upper bits of registers."""

    opcode: int  # its place
    prefix: int
    map: int
    long: int
    first: int
    middle: int
    last: int
    spread: int = 0
    mask: int = 0


def _head(code: bytes, start: int) -> Head:
    """Read a VEX prefix of two or three bytes, or an EVEX prefix."""
    second, third, fourth = code[start + 1 : start + 4]
    high = ~second
    if code[start] == 0xC5:
        return Head(start + 2, second & 3, 1, second >> 2 & 1, 8 * (high >> 7 & 1), ~second >> 3 & 15, 0)
    if code[start] == 0xC4:
        last = 8 * (high >> 5 & 1)
        return Head(start + 3, third & 3, second & 31, third >> 2 & 1, 8 * (high >> 7 & 1), ~third >> 3 & 15, last)
    first, last = 8 * (high >> 7 & 1) + 16 * (high >> 4 & 1), 8 * (high >> 5 & 1) + 16 * (high >> 6 & 1)
    middle = (~third >> 3 & 15) + 16 * (~fourth >> 3 & 1)
    return Head(start + 4, third & 3, second & 7, fourth >> 5 & 3, first, middle, last, fourth >> 4 & 1, fourth & 7)


def _vector(code: bytes, start: int) -> tuple[int, str, int | None]:
    """Read an instruction on vector registers."""
    head = _head(code, start)
    at = head.opcode
    name = KNOWN.get((head.prefix, head.map, code[at], head.long, bool(head.spread)))
    if name is None:
        raise InvariantError(f"byte {start} of encoded code", why="it begins no known instruction")
    form = FORMS[name]
    kinds = form.registers
    after, last, displacement = _operand(code, at + 1, head.last, vector=kinds[2], operand=operand_of(name))
    operands = [_register(kinds[0], head.first + (code[at + 1] >> 3 & 7))]
    if form.operands == 3:
        operands.append(_register(kinds[1], head.middle))
    operands.append(last + "{1to8}" * form.spread)
    if head.mask:
        operands[0] += f" {{%k{head.mask}}}"
    if form.exchanged:
        operands.reverse()
    if form.immediate:
        blended = form.name == "vblendvpd"
        operands.append(f"%{kinds[0]}mm{code[after] >> 4}" if blended else f"${code[after]}")
        after += 1
    return after, f"{form.name} {', '.join(reversed(operands))}", displacement


def _register(kind: str, number: int) -> str:
    return f"%k{number}" if kind == "k" else f"%{kind}mm{number}"


def _plain(code: bytes, start: int) -> tuple[int, str, int | None]:
    """Read any other instruction."""
    for length in (4, 3, 2, 1):
        head = code[start : start + length]
        if head in WORDS:
            return start + len(head), WORDS[head], None
        if head in NUMBERS:
            size, text = NUMBERS[head]
            after = start + length + size
            number = int.from_bytes(code[start + length : after], "little", signed=True)
            return after, text.format(number), number if head in (b"\xe9", b"\xff\x15") else None
    if code[start] & 0xF8 != 0x48 or code[start + 1] not in MOVES:
        raise InvariantError(f"byte {start} of encoded code", why="it begins no known instruction")
    first = (code[start] & 4) << 1 | code[start + 2] >> 3 & 7
    after, source, displacement = _operand(code, start + 2, 8 * (code[start] & 1))
    return after, f"{MOVES[code[start + 1]]} {source}, %{POINTERS[first]}", displacement


def _operand(code: bytes, at: int, extended: int, *, vector: str = "", operand: int = 1) -> tuple[int, str, int | None]:
    """Read the last operand, from its ModR/M byte on; return its end, its text, and its displacement from there."""
    mode, low = code[at] >> 6, code[at] & 7
    if mode == 3:
        return at + 1, _register(vector, low + extended) if vector else f"%{POINTERS[low + extended]}", None
    base = NEXT if not mode and low == RBP else low + extended
    at += 2 if low == RSP else 1
    size = 4 if base == NEXT else {0: 0, 1: 1, 2: 4}[mode]
    number = int.from_bytes(code[at : at + size], "little", signed=True) * (operand if size == 1 else 1)
    text = f"{number or ''}(%{'rip' if base == NEXT else POINTERS[base]})"
    return at + size, text, number if base == NEXT else None
