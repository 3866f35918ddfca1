"""Adapters from C signatures to kernels, written without LLVM: a solver's first call waits for no compiler.

Convention: System V Application Binary Interface, AMD64 Architecture Processor Supplement, section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from codegen.code_memory import PlacedCode
from codegen.encoding.x86_instructions import (
    RAX,
    RBP,
    RCX,
    RDI,
    RDX,
    RSI,
    RSP,
    before_displacement,
    pointer_before_displacement as pointer,
)

REGISTERS = (RDI, RSI, RDX, RCX, 8, 9)  # of the first pointers and whole numbers
ENTER, LEAVE = bytes.fromhex("55 4889e5 4881ec"), bytes.fromhex("c9 c3")  # a frame below rbp
STORE = bytes.fromhex("48898424")  # rax to rsp + 32 bits
COMPARE = {"int": b"", "npy_intp": b"\x48"}  # eax or rax with 32 bits
UNEQUAL, FUNCTION = b"\x0f\x85", b"\x48\xb8"  # a jump of 32 bits; rax is an address
CALL, FAILED, ONE, ZERO = (bytes.fromhex(code) for code in ("ffd0", "85c0", "b801000000", "31c0"))
COUNT, DOWN, NEXT_NUMBER = b"\xb9", bytes.fromhex("ffc9"), bytes.fromhex("4883c008")  # ecx times, from rax on


class Place(NamedTuple):
    """An array of a kernel: an argument of the signature, and a distance from it in numbers."""

    argument: int
    numbers: int = 0


def adapter_code(
    types: Sequence[str],
    lengths: Sequence[tuple[int, int]],
    inputs: Sequence[Place],
    outputs: Sequence[Place],
    factor: tuple[int, int] | None = None,
) -> PlacedCode:
    """Return the code of `adapter`, which calls `kernel` with tables of arrays and returns 1, or 0 where that fails.

    It returns 0 too where an argument is not its length. `factor` is an argument and how many results it multiplies.
    Whole numbers and pointers are in registers, then on the stack; there is one double at most, in xmm0.

    >>> code = adapter_code(["double *", "double *"], [], [Place(0)], [Place(1)])
    >>> code.entries, list(code.called)
    ({'adapter': 0}, ['kernel'])
    """
    whole = [k for k, kind in enumerate(types) if kind != "double"]
    double = 8 * (len(inputs) + len(outputs))  # where the argument in xmm0 is kept, and the results behind it
    frame = (double + 16 + 15) & ~15
    code = bytearray(ENTER + _number(frame) + _at("store", 0, double) * (len(whole) < len(types)))
    failures = []

    def argument(k: int, distance: int = 0) -> bytes:
        """Load an argument, or the address of a place behind it, into rax."""
        if types[k] == "double":
            return pointer(RAX, RSP, 4, address=True) + _number(double)
        number = whole.index(k)
        if number < len(REGISTERS):
            return pointer(RAX, REGISTERS[number], 4, address=True) + _number(distance)
        loaded = pointer(RAX, RBP, 4) + _number(16 + 8 * (number - len(REGISTERS)))
        return loaded + pointer(RAX, RAX, 4, address=True) + _number(distance)

    for k, length in lengths:
        code += argument(k) + COMPARE[types[k]] + b"\x3d" + _number(length) + UNEQUAL
        failures.append(len(code))
        code += _number(0)
    for slot, place in enumerate([*inputs, *outputs]):
        code += argument(place.argument, 8 * place.numbers) + STORE + _number(8 * slot)
    if factor is not None:
        code += argument(outputs[0].argument) + STORE + _number(double + 8)
    code += pointer(RDI, RSP, 4, address=True) + _number(0)
    code += pointer(RSI, RSP, 4, address=True) + _number(8 * len(inputs)) + FUNCTION
    kernel = len(code)
    code += bytes(8) + CALL + FAILED + UNEQUAL
    failures.append(len(code))
    code += _number(0)
    if factor is not None and factor[1]:
        code += pointer(RAX, RSP, 4) + _number(double + 8) + COUNT + _number(factor[1]) + _at("load", 0, double)
        begin = len(code)
        code += before_displacement("mul", 1, 0, RAX, 0) + before_displacement("store", 1, 0, RAX, 0)
        code += NEXT_NUMBER + DOWN + b"\x75"
        code += (begin - len(code) - 1).to_bytes(1, "little", signed=True)
    code += ONE + LEAVE
    for jump in failures:
        code[jump : jump + 4] = _number(len(code) - jump - 4)
    code += ZERO + LEAVE
    return PlacedCode(bytes(code), {"adapter": 0}, {"kernel": (kernel,)})


def _number(value: int) -> bytes:
    return value.to_bytes(4, "little", signed=True)


def _at(code: str, register: int, displacement: int) -> bytes:
    """Move a double between a register and the frame."""
    return before_displacement(code, register, 0, RSP, 4) + _number(displacement)
