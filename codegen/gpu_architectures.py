"""The NVIDIA architectures that LLVM writes code for, with what each needs."""

from __future__ import annotations

from typing import NamedTuple

from codegen.errors import ArgumentError


class Architecture(NamedTuple):
    """Processors of GPUs: the version of PTX that they need, and the bytes of shared memory that a block can have."""

    ptx: int
    shared: int


KIB = 1024
ARCHITECTURES = {  # that LLVM knows, oldest first; code for one runs on later ones that have as much shared memory
    "sm_60": Architecture(60, 48 * KIB), "sm_61": Architecture(60, 48 * KIB), "sm_70": Architecture(60, 64 * KIB),
    "sm_75": Architecture(63, 64 * KIB), "sm_80": Architecture(70, 163 * KIB), "sm_86": Architecture(71, 99 * KIB),
    "sm_87": Architecture(74, 163 * KIB), "sm_89": Architecture(78, 99 * KIB), "sm_90": Architecture(78, 227 * KIB),
    "sm_100": Architecture(86, 227 * KIB), "sm_103": Architecture(88, 227 * KIB), "sm_120": Architecture(87, 99 * KIB),
}  # fmt: skip


def architecture_of(name: str) -> Architecture:
    """Return what is known of an architecture; ArgumentError for one that is not known."""
    if name not in ARCHITECTURES:
        raise ArgumentError(f"arch={name!r}", do=f"use one of {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[name]
