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
    RDI,
    RSI,
    RSP,
    before_displacement,
    pointer_before_displacement as pointer,
)

REGISTERS = 6  # of the first pointers and whole numbers
# A frame below rbp, in which these registers and xmm0 are kept.
ENTER = bytes.fromhex("55 4889e5 57 56 52 51 4150 4151 4881ec")
DOUBLE = -8 * (REGISTERS + 1)  # where the argument in xmm0 is kept, from rbp on
LEAVE = bytes.fromhex("c9 c3")
STORE = bytes.fromhex("48898424")  # rax to rsp + 32 bits
COMPARE = {"int": b"\x3d", "npy_intp": b"\x48\x3d"}  # eax or rax with 32 bits
UNEQUAL, FUNCTION = b"\x0f\x85", b"\x48\xb8"  # a jump of 32 bits; rax is an address
CALL, FAILED, ONE, ZERO = (bytes.fromhex(code) for code in ("ffd0", "85c0", "b801000000", "31c0"))
COUNT, DOWN, NEXT_NUMBER = b"\xb9", bytes.fromhex("ffc9"), bytes.fromhex("4883c008")  # ecx times, from rax on


class Place(NamedTuple):
    """An array of a kernel: an argument of the signature, and a distance from it in numbers."""

    argument: int
    numbers: int = 0


class Adapter(NamedTuple):
    """A C function that calls a kernel: the types of its result and arguments, lengths that are checked, the arrays.

    A result that is a number is an argument behind the others. `factor` is an argument that multiplies all results.
    """

    result: str
    types: Sequence[str]
    lengths: Sequence[tuple[int, int]]
    inputs: Sequence[Place]
    outputs: Sequence[Place]
    taken: int  # numbers of the inputs that the caller passes
    given: int  # numbers of all results
    factor: int | None = None


def adapter_code(adapter: Adapter) -> PlacedCode | None:
    """Return the code of `adapter`, which calls `kernel` with tables of arrays and returns 1, or 0 where that fails.

    It returns 0 too where an argument is not its length. There is one double at most, in xmm0. None for other results
    and arrays, and for displacements beyond 32 bits.

    >>> placed = adapter_code(Adapter("int", ["double *", "double *"], [], [Place(0)], [Place(1)], 1, 1))
    >>> placed.entries, list(placed.called)
    ({'adapter': 4}, ['kernel'])
    """
    result, types, lengths, inputs, outputs, _, given, factor = adapter
    places = [*inputs, *outputs]
    far = 8 * max(given, *(place.numbers for place in places)) >= 2**31
    if far or result == "double" or any(types[place.argument] == "npy_intp *" for place in places):
        return None
    whole = [k for k, kind in enumerate(types) if kind != "double"]
    kept = {k: 8 * (n - REGISTERS) + 16 if n >= REGISTERS else -8 * (n + 1) for n, k in enumerate(whole)}

    def argument(k: int, distance: int = 0) -> bytes:
        """Load an argument, or the address of a place behind it, into rax."""
        if k not in kept:
            return pointer(RAX, RBP, 4, address=True) + _number(DOUBLE)
        return pointer(RAX, RBP, 4) + _number(kept[k]) + pointer(RAX, RAX, 4, address=True) + _number(distance)

    code = bytearray(ZERO + LEAVE)  # the end of a call that fails
    code += ENTER + _number((8 * len(places) + 8 + 15) & ~15)
    code += before_displacement("store", 0, 0, RBP, 4) + _number(DOUBLE)
    for k, length in lengths:
        code += argument(k) + COMPARE[types[k]] + _number(length)
        code += UNEQUAL + _number(-len(code) - 6)
    for slot, place in enumerate(places):
        code += argument(place.argument, 8 * place.numbers) + STORE + _number(8 * slot)
    code += pointer(RDI, RSP, 4, address=True) + _number(0)
    code += pointer(RSI, RSP, 4, address=True) + _number(8 * len(inputs)) + FUNCTION
    kernel = len(code)
    code += bytes(8) + CALL + FAILED
    code += UNEQUAL + _number(-len(code) - 6)
    if factor is not None and given:
        code += argument(outputs[0].argument) + COUNT + _number(given)
        code += before_displacement("load", 0, 0, RBP, 4) + _number(DOUBLE)
        step = before_displacement("mul", 1, 0, RAX, 0) + before_displacement("store", 1, 0, RAX, 0)
        step += NEXT_NUMBER + DOWN + b"\x75"
        code += step + (-len(step) - 1).to_bytes(1, "little", signed=True)
    return PlacedCode(bytes(code + ONE + LEAVE), {"adapter": len(ZERO + LEAVE)}, {"kernel": (kernel,)})


def _number(value: int) -> bytes:
    return value.to_bytes(4, "little", signed=True)
