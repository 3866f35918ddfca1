"""Instructions of x86-64 that kernels of doubles consist of, as bytes: VEX forms, moves of pointers, calls.

Registers are numbers: 0 to 15 are xmm0 to xmm15, or rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15. Forms are the
shortest ones, as LLVM's assembler writes them (`tests/codegen/encoding/test_disassembly.py` compares them with it).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI = range(8)
R12, R13, R14, R15 = range(12, 16)
NEXT = -1  # as a base: the address of the instruction that follows (rip)
REGISTERS = 16


class Form(NamedTuple):
    """One instruction: mandatory prefix (pp), opcode map, W, opcode, name; operands in Intel's order.

    `operands` counts those in registers or memory; with fewer than three, the field of the middle one is unused.
    """

    prefix: int
    map: int
    wide: int
    opcode: int
    name: str
    operands: int = 3
    immediate: bool = False


MULTIPLY_ADDS = (("fma", "fmadd", 9), ("fms", "fmsub", 11), ("fnma", "fnmadd", 13), ("fnms", "fnmsub", 15))
FORMS: dict[str, Form] = {
    "add": Form(3, 1, 0, 0x58, "vaddsd"),
    "mul": Form(3, 1, 0, 0x59, "vmulsd"),
    "sub": Form(3, 1, 0, 0x5C, "vsubsd"),
    "div": Form(3, 1, 0, 0x5E, "vdivsd"),
    "sqrt": Form(3, 1, 0, 0x51, "vsqrtsd"),
    "compare": Form(3, 1, 0, 0xC2, "vcmpsd", immediate=True),
    "load": Form(3, 1, 0, 0x10, "vmovsd", 2),
    "store": Form(3, 1, 0, 0x11, "vmovsd", 2),
    "move": Form(1, 1, 0, 0x28, "vmovapd", 2),
    "moved": Form(1, 1, 0, 0x29, "vmovapd", 2),  # the same with its operands exchanged
    "and": Form(1, 1, 0, 0x54, "vandpd"),
    "or": Form(1, 1, 0, 0x56, "vorpd"),
    "xor": Form(1, 1, 0, 0x57, "vxorpd"),
    "round": Form(1, 3, 0, 0x0B, "vroundsd", immediate=True),
    "blend": Form(1, 3, 0, 0x4B, "vblendvpd", immediate=True),  # which names a fourth register
    **{
        f"{code}{order}": Form(1, 2, 1, base + low, f"v{name}{order}sd")
        for code, name, low in MULTIPLY_ADDS
        for order, base in (("132", 0x90), ("213", 0xA0), ("231", 0xB0))
    },
}  # fmt: skip


COMMUTATIVE = frozenset({"add", "mul", "and", "or", "xor"})


@cache
def in_registers(code: str, first: int, middle: int, last: int) -> bytes:
    """Return an instruction on registers; what it has of an immediate follows.

    >>> in_registers("add", 0, 1, 2).hex(), in_registers("fma231", 0, 1, 9).hex()
    ('c5f358c2', 'c4c2f1b9c1')
    """
    if code in COMMUTATIVE and last > 7 >= middle:  # one byte less
        middle, last = last, middle
    elif code == "move" and last > 7 >= first:
        code, first, last = "moved", last, first
    return _head(FORMS[code], first, middle, last >> 3) + bytes([0xC0 | (first & 7) << 3 | last & 7])


@cache
def before_displacement(code: str, first: int, middle: int, base: int, bytes_of_it: int) -> bytes:
    """Return an instruction whose last operand is in memory, up to the displacement of so many bytes (0, 1 or 4).

    >>> before_displacement("load", 1, 0, RBX, 1).hex() + "10"
    'c5fb104b10'
    """
    return _head(FORMS[code], first, middle, base >> 3 if base >= 0 else 0) + _place(first, base, bytes_of_it)


@cache
def pointer_before_displacement(first: int, base: int, bytes_of_it: int) -> bytes:
    """Return the load of a pointer, up to the displacement.

    >>> (pointer_before_displacement(RAX, R12, 1) + b"\\x08").hex()
    '498b442408'
    """
    return bytes([0x48 | first >> 3 << 2 | base >> 3, 0x8B]) + _place(first, base, bytes_of_it)


CALL = b"\xff\x15"  # the function whose address stands at a displacement from the next instruction


def width_of(displacement: int, base: int) -> int:
    """Return how many bytes a displacement takes.

    >>> width_of(0, RAX), width_of(0, R13), width_of(-128, RBX), width_of(128, RBX), width_of(0, NEXT)
    (0, 1, 1, 4, 4)
    """
    if base == NEXT:
        return 4
    if not displacement and base & 7 != RBP:
        return 0
    return 1 if -128 <= displacement < 128 else 4


def _head(form: Form, first: int, middle: int, high: int) -> bytes:
    """VEX prefix and opcode; `high` is the uppermost bit of the last operand's register."""
    middle = middle if form.operands == 3 else 0
    last = (~middle & 15) << 3 | form.prefix
    if not high and form.map == 1 and not form.wide:
        return bytes([0xC5, (~first >> 3 & 1) << 7 | last, form.opcode])
    return bytes([0xC4, (~first >> 3 & 1) << 7 | 0x40 | (1 - high) << 5 | form.map, form.wide << 7 | last, form.opcode])


def _place(first: int, base: int, bytes_of_it: int) -> bytes:
    """The byte that names a register and a place in memory, and the one that some bases need."""
    if base == NEXT:
        return bytes([(first & 7) << 3 | RBP])
    mode = {0: 0, 1: 0x40, 4: 0x80}[bytes_of_it]
    place = bytes([mode | (first & 7) << 3 | base & 7])
    return place + b"\x24" if base & 7 == RSP else place
