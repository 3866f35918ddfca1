"""Compilation options. With the program they decide all of a kernel's numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, Literal, TypedDict, get_args

import numpy as np

from codegen.errors import ArgumentError
from codegen.lanes import NUMBER_TYPES, Dtype, NumberType
from codegen.later import Deferred
from codegen.records import dataclass

if TYPE_CHECKING:
    import difflib
else:  # for what is misspelt
    difflib = Deferred("difflib")

Tier = Literal["default", "fast", "auto", "llvm"]
Accuracy = Literal["strict", "fast"]
LANES = (None, 1, 2, 4, 8, 16)
# LLVM's code generation level of the first machine code. Level 2 adds nothing but a scheduler behind the allocation of
# registers on some processors (of AMD), which takes up to a third of the time and gains nothing.
LEVELS = {"default": 1, "fast": 0, "auto": 0, "llvm": 1}


class OptionFields(TypedDict, total=False):
    """The fields of `Options` as keywords of the functions that compile."""

    tier: Tier
    accuracy: Accuracy
    fma: bool
    chunk: int | None
    lanes: int | None
    dtype: Dtype
    threads: int


@dataclass(frozen=True, slots=True)
class Options:
    """How to compile; ArgumentError for an option that does not exist.

    `tier` is how much effort goes into machine code, and never changes a bit of the results: straight lines are
    encoded without LLVM where `codegen.encoding` can; of loops and all else "fast" generates code faster, which runs
    more slowly; "auto" starts with the fast code and compiles in the background what LLVM does better; "llvm" is
    LLVM's code in any case.
    `accuracy="fast"` allows passes and functions that round differently (see `codegen.lowering.passes`);
    `fma=False` keeps products and sums apart; `chunk` overrides the number of operations per function, `lanes` (1, 2,
    4, 8 or 16) the number of points that a batch computes side by side; neither changes a bit of the results.
    `threads` is how many threads share a long loop whose repetitions know nothing of each other
    (`codegen.loops.emit.thread_blocks`); it never changes a bit either. Code without such loops runs on one.

    >>> Options(accuracy="fast").level
    1
    """

    tier: Tier = "default"
    accuracy: Accuracy = "strict"
    fma: bool = True
    chunk: int | None = None
    lanes: int | None = None
    dtype: Dtype = "float64"
    threads: int = 1

    def __post_init__(self) -> None:
        check_whole("threads", self.threads)
        if self.chunk is not None:
            check_whole("chunk", self.chunk)
        for name in ("chunk", "lanes", "threads"):  # a whole number of NumPy is a plain one: files hold those
            if isinstance(value := getattr(self, name), np.integer):
                object.__setattr__(self, name, int(value))
        for name, value, known in (
            ("tier", self.tier, get_args(Tier)),
            ("accuracy", self.accuracy, get_args(Accuracy)),
            ("fma", self.fma, (True, False)),
            ("lanes", self.lanes, LANES),
            ("dtype", self.dtype, tuple(NUMBER_TYPES)),
        ):
            if not any(type(value) is type(choice) and value == choice for choice in known):  # 1 is not True
                raise ArgumentError(f"{name}={value!r}", do=f"use one of {', '.join(map(str, known))}")

    @property
    def level(self) -> int:
        """LLVM's code generation level."""
        return LEVELS[self.tier]

    @property
    def number(self) -> NumberType:
        """What the kernel computes with."""
        return NUMBER_TYPES[self.dtype]


def check_whole(name: str, value: object, least: int = 1) -> None:
    """Raise ArgumentError unless an option is a whole number that is large enough; a truth value is none.

    >>> check_whole("order", True)
    Traceback (most recent call last):
        ...
    codegen.errors.ArgumentError: order=True; give a whole number, 1 or more
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ArgumentError(f"{name}={value!r}", do=f"give a whole number, {least} or more")


OPTIONS = frozenset(each.name for each in fields(Options))


def check_names(given: Iterable[str], known: Collection[str] = OPTIONS) -> None:
    """Raise ArgumentError for an option that does not exist, with the nearest one.

    >>> check_names(["acuracy"])
    Traceback (most recent call last):
        ...
    codegen.errors.ArgumentError: acuracy=...: there is no such option; did you mean accuracy?
    """
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            do = f"did you mean {near[0]}?" if near else f"the options are {', '.join(sorted(known))}"
            raise ArgumentError(f"{name}=...", why="there is no such option", do=do)
