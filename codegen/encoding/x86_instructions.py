"""The x86-64 instructions that kernels use, as bytes: VEX and EVEX forms, moves, calls.

Registers are numbers: 0 to 15 are xmm0 to xmm15 (ymm0 to ymm15), or rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15;
of 512 bits there are twice as many. "add" is of one number, "add2", "add4" and "add8" of 2, 4 and 8 side by side. Forms
are the shortest ones, like those of LLVM's assembler (`tests/codegen/encoding/test_disassembly.py` compares them).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI = range(8)
R12, R13, R14, R15 = range(12, 16)
NEXT = -1  # as a base: the address of the instruction that follows (rip)
REGISTERS = 16
LONG_REGISTERS = 32  # of 512 bits
MASKS = 7  # mask registers: k1 to k7, as k0 means none


class Form(NamedTuple):
    """One instruction: mandatory prefix (pp), opcode map, W, opcode, name; operands in Intel's order.

    `operands` counts those in registers or memory; with fewer than three, the field of the middle one is unused.
    `long` is 1 for 256 bits, of those operands that are "y" in `registers`, and 2 for 512, "z"; "k" is a mask.
    """

    prefix: int
    map: int
    wide: int
    opcode: int
    name: str
    operands: int = 3
    immediate: bool = False
    long: int = 0
    registers: str = "xxx"
    spread: bool = False  # whether the last operand is one number in memory for all lanes

    @property
    def exchanged(self) -> bool:
        """Whether the last operand is the target."""
        names = ("vmovsd", "vmovupd", "vmovapd", "vmovhpd", "vextractf128", "kmovb")
        return self.name in names and self.opcode & 1 == 1


MULTIPLY_ADDS = (("fma", "fmadd", 9), ("fms", "fmsub", 11), ("fnma", "fnmadd", 13), ("fnms", "fnmsub", 15))
PACKED = {
    "add": Form(1, 1, 0, 0x58, "vaddpd"),
    "mul": Form(1, 1, 0, 0x59, "vmulpd"),
    "sub": Form(1, 1, 0, 0x5C, "vsubpd"),
    "div": Form(1, 1, 0, 0x5E, "vdivpd"),
    "sqrt": Form(1, 1, 0, 0x51, "vsqrtpd", 2),
    "compare": Form(1, 1, 0, 0xC2, "vcmppd", immediate=True),
    "load": Form(1, 1, 0, 0x10, "vmovupd", 2),
    "store": Form(1, 1, 0, 0x11, "vmovupd", 2),
    "move": Form(1, 1, 0, 0x28, "vmovapd", 2),
    "moved": Form(1, 1, 0, 0x29, "vmovapd", 2),  # the same with its operands exchanged
    "and": Form(1, 1, 0, 0x54, "vandpd"),
    "or": Form(1, 1, 0, 0x56, "vorpd"),
    "xor": Form(1, 1, 0, 0x57, "vxorpd"),
    "round": Form(1, 3, 0, 0x09, "vroundpd", 2, immediate=True),
    "blend": Form(1, 3, 0, 0x4B, "vblendvpd", immediate=True),  # which names a fourth register
    **{
        f"{code}{order}": Form(1, 2, 1, base + low - 1, f"v{name}{order}pd")
        for code, name, low in MULTIPLY_ADDS
        for order, base in (("132", 0x90), ("213", 0xA0), ("231", 0xB0))
    },
}  # fmt: skip
ALONE = {
    **{
        code: Form(3, 1, 0, PACKED[code].opcode, PACKED[code].name[:-2] + "sd", immediate=PACKED[code].immediate)
        for code in ("add", "mul", "sub", "div", "sqrt", "compare")
    },
    "load": Form(3, 1, 0, 0x10, "vmovsd", 2),
    "store": Form(3, 1, 0, 0x11, "vmovsd", 2),
    "round": Form(1, 3, 0, 0x0B, "vroundsd", immediate=True),
    **{code: PACKED[code] for code in ("move", "moved", "and", "or", "xor", "blend")},
    **{
        code: form._replace(opcode=form.opcode + 1, name=form.name[:-2] + "sd")
        for code, form in PACKED.items() if form.map == 2
    },
}  # fmt: skip
BETWEEN = {  # from numbers to lanes and back
    "low": Form(1, 1, 0, 0x14, "vunpcklpd"),
    "high": Form(1, 1, 0, 0x15, "vunpckhpd"),
    "load_high": Form(1, 1, 0, 0x16, "vmovhpd"),  # of a memory operand only, as the next one
    "store_high": Form(1, 1, 0, 0x17, "vmovhpd", 2),
    "spread2": Form(3, 1, 0, 0x12, "vmovddup", 2),
    "spread4": Form(1, 2, 0, 0x19, "vbroadcastsd", 2, long=1, registers="y x"),
    "insert": Form(1, 3, 0, 0x18, "vinsertf128", immediate=True, long=1, registers="yyx"),
    "extract": Form(1, 3, 0, 0x19, "vextractf128", 2, immediate=True, long=1, registers="y x"),
}
LONGEST = {  # 512 bits; a comparison gives a mask register, and a choice asks one
    **{code: form._replace(wide=1, long=2, registers="zzz") for code, form in PACKED.items() if code != "moved"},
    "compare": Form(1, 1, 1, 0xC2, "vcmppd", immediate=True, long=2, registers="kzz"),
    "blend": Form(1, 2, 1, 0x65, "vblendmpd", long=2, registers="zzz"),
    "round": Form(1, 3, 1, 0x09, "vrndscalepd", 2, immediate=True, long=2, registers="zzz"),
    "spread": Form(1, 2, 1, 0x19, "vbroadcastsd", 2, long=2, registers="z x"),
    "from_mask": Form(2, 2, 1, 0x38, "vpmovm2q", 2, long=2, registers="z k"),
}
OF_MASKS = {
    "load_mask": Form(1, 1, 0, 0x90, "kmovb", 2, registers="k k"),
    "store_mask": Form(1, 1, 0, 0x91, "kmovb", 2, registers="k k"),
    "not_mask": Form(1, 1, 0, 0x44, "knotb", 2, registers="k k"),
    "and_mask": Form(1, 1, 0, 0x41, "kandb", long=1, registers="kkk"),
    "or_mask": Form(1, 1, 0, 0x45, "korb", long=1, registers="kkk"),
    "equal_mask": Form(1, 1, 0, 0x46, "kxnorb", long=1, registers="kkk"),
    "xor_mask": Form(1, 1, 0, 0x47, "kxorb", long=1, registers="kkk"),
}
SPREAD = " spread"  # the end of the codes of those forms
FORMS: dict[str, Form] = {
    **ALONE,
    **{f"{code}2": form for code, form in PACKED.items()},
    **{f"{code}4": form._replace(long=1, registers="yyy") for code, form in PACKED.items()},
    **{f"{code}8": form for code, form in LONGEST.items()},
    **{f"{code}8{SPREAD}": form._replace(spread=True) for code, form in LONGEST.items() if form.operands == 3},
    **BETWEEN,
    **OF_MASKS,
}
COMMUTATIVE = frozenset(f"{code}{lanes}" for code in ("add", "mul", "and", "or", "xor") for lanes in ("", *"248"))
MOVED = {f"move{lanes}": f"moved{lanes}" for lanes in ("", "2", "4")}


@cache
def in_registers(code: str, first: int, middle: int, last: int, mask: int = 0) -> bytes:
    """Return an instruction on registers, perhaps with a mask register, up to its immediate.

    >>> in_registers("add", 0, 1, 2).hex(), in_registers("fma231", 0, 1, 9).hex()
    ('c5f358c2', 'c4c2f1b9c1')
    """
    if code in COMMUTATIVE and last > 7 >= middle:  # one byte less
        middle, last = last, middle
    elif code in MOVED and last > 7 >= first:
        code, first, last = MOVED[code], last, first
    elif code == "extract":  # the last operand is the target
        first, last = last, first
    return _head(FORMS[code], first, middle, last >> 3, mask) + bytes([0xC0 | (first & 7) << 3 | last & 7])


def operand_of(code: str) -> int:
    """Return the unit of a displacement of one byte, in bytes.

    >>> operand_of("add"), operand_of("add8"), operand_of("spread8"), operand_of("add8 spread")
    (1, 64, 8, 8)
    """
    return 1 if FORMS[code].long < 2 else 8 if code == "spread8" or FORMS[code].spread else 64


def displaced(code: str, displacement: int, base: int) -> bytes:
    """Return the bytes of a displacement: with 512 bits, a single byte is in units of operands in memory.

    >>> displaced("add", 192, RBX).hex(), displaced("add8", 192, RBX).hex(), displaced("spread8", 192, RBX).hex()
    ('c0000000', '03', '18')
    """
    operand = operand_of(code)
    if operand > 1 and base != NEXT:
        if displacement % operand == 0 and width_of(displacement // operand, base) < 4:
            displacement //= operand
        elif displacement:
            return displacement.to_bytes(4, "little", signed=True)
    return displacement.to_bytes(width_of(displacement, base), "little", signed=True)


@cache
def before_displacement(code: str, first: int, middle: int, base: int, bytes_of_it: int) -> bytes:
    """Return an instruction whose last operand is in memory, up to the displacement (of 0, 1 or 4 bytes).

    >>> before_displacement("load", 1, 0, RBX, 1).hex() + "10"
    'c5fb104b10'
    """
    return _head(FORMS[code], first, middle, base >> 3 if base >= 0 else 0) + _place(first, base, bytes_of_it)


@cache
def pointer_before_displacement(first: int, base: int, bytes_of_it: int, *, address: bool = False) -> bytes:
    """Return the load of a pointer, or of the address itself, up to the displacement.

    >>> (pointer_before_displacement(RAX, R12, 1) + b"\\x08").hex()
    '498b442408'
    """
    high = base >> 3 if base >= 0 else 0
    return bytes([0x48 | first >> 3 << 2 | high, 0x8D if address else 0x8B]) + _place(first, base, bytes_of_it)


CALL = b"\xff\x15"  # calls the function whose address is at a displacement from the next instruction
ZERO_UPPER = bytes.fromhex("c5f877")  # single numbers are slow while the upper halves of registers are in use


def width_of(displacement: int, base: int) -> int:
    """Return the number of bytes of a displacement.

    >>> width_of(0, RAX), width_of(0, R13), width_of(-128, RBX), width_of(128, RBX), width_of(0, NEXT)
    (0, 1, 1, 4, 4)
    """
    if base == NEXT:
        return 4
    if not displacement and base & 7 != RBP:
        return 0
    return 1 if -128 <= displacement < 128 else 4


def _head(form: Form, first: int, middle: int, high: int, mask: int = 0) -> bytes:
    """Return the VEX or EVEX prefix and opcode; `high` are the upper bits of the last operand's register."""
    middle = middle if form.operands == 3 else 0
    if form.long == 2:
        extended = (~first >> 3 & 1) << 7 | (~high & 3) << 5 | (~first >> 4 & 1) << 4
        fields = form.wide << 7 | (~middle & 15) << 3 | 4 | form.prefix
        last = 0x40 | form.spread << 4 | (~middle >> 4 & 1) << 3 | mask
        return bytes([0x62, extended | form.map, fields, last, form.opcode])
    last = (~middle & 15) << 3 | form.long << 2 | form.prefix
    if not high and form.map == 1 and not form.wide:
        return bytes([0xC5, (~first >> 3 & 1) << 7 | last, form.opcode])
    return bytes([0xC4, (~first >> 3 & 1) << 7 | 0x40 | (1 - high) << 5 | form.map, form.wide << 7 | last, form.opcode])


def _place(first: int, base: int, bytes_of_it: int) -> bytes:
    """Return the ModR/M byte of a register and a place in memory, and the SIB byte that some bases need."""
    if base == NEXT:
        return bytes([(first & 7) << 3 | RBP])
    mode = {0: 0, 1: 0x40, 4: 0x80}[bytes_of_it]
    place = bytes([mode | (first & 7) << 3 | base & 7])
    return place + b"\x24" if base & 7 == RSP else place
