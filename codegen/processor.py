"""The features of this machine's processor, asked without LLVM on x86-64 Linux.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: CPUID, XGETBV.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from contextlib import suppress
from functools import cache

from codegen.code_memory import MappedCode, PlacedCode
from codegen.engine import host
from codegen.errors import WorkbenchError

# void asked(uint32_t leaf, uint32_t words[4]) is CPUID, uint32_t kept(void) is XGETBV
ASKED = bytes.fromhex("53 4989f0 89f8 31c9 0fa2 418900 41895804 41894808 4189500c 5b c3")
KEPT = bytes.fromhex("31c9 0f01d0 c3")
EBX, ECX = 1, 2
SAYS = 1 << 27  # in ecx of leaf 1: that XGETBV can be asked
SHORT, LONG = 0x06, 0xE6  # what the system has to keep of registers of up to 256, and of 512 bits
BITS = {  # leaf of CPUID, register, bit, what has to be kept
    "avx": (1, ECX, 28, SHORT), "fma": (1, ECX, 12, SHORT), "avx2": (7, EBX, 5, SHORT), "avx512f": (7, EBX, 16, LONG),
    "avx512dq": (7, EBX, 17, LONG), "avx512vl": (7, EBX, 31, LONG),
}  # fmt: skip


@cache
def features() -> frozenset[str]:
    """Return what this processor has, by LLVM's names; of one that is asked itself no more than what is asked here.

    >>> bool(features() & {"sse2", "neon"})
    True
    """
    if is_x86_64_linux():
        with suppress(WorkbenchError):  # of a system that lets no code of ours be run: LLVM says the same
            return own_features()
    return frozenset(name[1:] for name in host()[1].split(",") if name.startswith("+"))


def own_features() -> frozenset[str]:
    """Ask an x86-64 processor."""
    code = MappedCode(PlacedCode(ASKED + KEPT, {"asked": 0, "kept": len(ASKED)}))
    ask = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_void_p)(code.addresses["asked"])
    words = {leaf: (ctypes.c_uint32 * 4)() for leaf in (0, 1, 7)}
    ask(0, words[0])
    for leaf in (1, 7):
        if leaf <= words[0][0]:
            ask(leaf, words[leaf])
    kept = ctypes.CFUNCTYPE(ctypes.c_uint32)(code.addresses["kept"])() if words[1][ECX] & SAYS else 0
    features_named = {
        name
        for name, (leaf, register, bit, keeps) in BITS.items()
        if words[leaf][register] >> bit & 1 and kept & keeps == keeps
    }
    return frozenset(features_named | {"sse2"})


def is_x86_64() -> bool:
    """Whether code is made for x86 processors of 64 bits."""
    return platform.machine() in ("x86_64", "AMD64")


def is_x86_64_linux() -> bool:
    """Whether machine code that did not come from LLVM runs here."""
    return sys.platform == "linux" and is_x86_64()


def vector_bits() -> int:
    """Width of this processor's vector registers in bits."""
    known = features()
    return 512 if "avx512f" in known else 256 if "avx2" in known else 128


def vector_registers() -> int:
    """How many vector registers this processor has."""
    return 16 if is_x86_64() and vector_bits() < 512 else 32


def has_fma() -> bool:
    """Whether the processor has a fused multiply-add instruction."""
    return platform.machine() in ("aarch64", "arm64") or "fma" in features()
