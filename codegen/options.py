"""Options: how a program is to be compiled. With the program, they say all that decides a kernel's numbers."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.errors import ArgumentError

TIERS = {"default": 2, "fast": 0}  # LLVM code generation level
ACCURACIES = ("strict", "fast")


@dataclass(frozen=True, slots=True)
class Options:
    """How to compile; ArgumentError for an option that does not exist.

    `tier` is how much effort goes into machine code, and never changes a bit of the results; `accuracy="fast"` allows
    passes and functions that round differently (see `codegen.prepare`); `fma=False` keeps products and sums apart;
    `chunk` overrides the number of operations per function.

    >>> Options(accuracy="fast").level
    2
    """

    tier: str = "default"
    accuracy: str = "strict"
    fma: bool = True
    chunk: int | None = None

    def __post_init__(self) -> None:
        for name, value, known in (("tier", self.tier, tuple(TIERS)), ("accuracy", self.accuracy, ACCURACIES)):
            if value not in known:
                raise ArgumentError(f"{name}={value!r}", do=f"use one of {', '.join(known)}")

    @property
    def level(self) -> int:
        """LLVM's code generation level."""
        return TIERS[self.tier]
