"""The options of `compile` and `plan`, and which of them exclude each other."""

from __future__ import annotations

from typing import Literal, get_args

from codegen.loops.roll import Roll
from codegen.records import dataclass
from symad.derivatives.loops.checkpoints import Checkpoints, check_checkpoints
from symad.errors import ArgumentError

Strategy = Literal["auto", "straight", "sweep"]


@dataclass(frozen=True)
class Asked:
    """The options of a plan."""

    strategy: Strategy
    roll: Roll
    checkpoints: Checkpoints
    max_paths: int
    dtype: str
    freeze: bool = False

    def check(self) -> None:
        check_checkpoints(self.checkpoints)
        for name, value, words in (("strategy", self.strategy, Strategy), ("roll", self.roll, Roll)):
            if value not in get_args(words):
                raise ArgumentError(f"{name}={value!r}", do=f"use one of {', '.join(get_args(words))}")
        if self.without_loops and self.needs_loops:
            raise ArgumentError(
                f"{self.needs_loops} with {self.without_loops}",
                why="loops are written for real numbers, and straight lines or a sweep have none",
                do="leave out one of the two",
            )

    @property
    def without_loops(self) -> str:
        """The option that has no loops, "" where none does."""
        if self.strategy != "auto":
            return f"strategy={self.strategy!r}"
        return "dtype='complex128'" if self.dtype == "complex128" else "roll='never'" if self.roll == "never" else ""

    @property
    def needs_loops(self) -> str:
        """The option that asks for loops, "" where none does."""
        if self.roll == "always":
            return "roll='always'"
        return "" if self.checkpoints == "all" else f"checkpoints={self.checkpoints!r}"

    @property
    def sweeps(self) -> bool:
        """Whether a sweep may be taken."""
        return self.strategy == "sweep" or (
            self.strategy == "auto" and self.dtype == "float64" and not self.needs_loops
        )
