"""A compilation plan: every way to compile a function with its price, and the choice.

A way is straight lines (every operation written out), a sweep (a dense matrix column by column, several side by side)
or loops (`rolled`). All are priced in one unit (`codegen.pricing`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, Literal, get_args

from codegen.ir.program import Program, operations_of
from codegen.ir.region import Region, RolledProgram, regions_of
from codegen.loops.loop import Loop, RolledBlock
from codegen.loops.roll import Roll
from codegen.pricing.price_table import Price, Way
from codegen.records import dataclass
from codegen.visible import visible
from symad.compiling.candidates import Primal, Rolled
from symad.derivatives.loops.checkpoints import Checkpoints, check_checkpoints
from symad.display.document import Block as Part, Document, Heading, Paragraph, Table
from symad.display.notation import counted
from symad.display.shown import Shown
from symad.errors import ArgumentError
from symad.tracing.trace import Trace

Strategy = Literal["auto", "straight", "sweep"]


@dataclass(frozen=True)
class PlanOptions:
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


WAYS: dict[Way, str] = {"straight": "straight lines", "sweep": "a sweep over columns", "rolled": "loops"}


@dataclass(frozen=True, eq=False)
class Candidate:
    """One way to compile a function: operations of a call, those of them that are written down, and the price.

    Without `program` it was not written down itself, and its numbers are estimates from another candidate. `priced` is
    the price, or what says it when it is asked for: of a single way nobody asks.
    """

    way: Way
    executed: int
    written: int
    priced: Price | Callable[[], Price]
    program: Program | None = None
    traced: Trace | None = None
    rolled: Rolled | None = None

    @property
    def estimated(self) -> bool:
        """Whether the numbers are those of another candidate's operations."""
        return self.program is None and self.rolled is None

    @cached_property
    def price(self) -> Price:
        """Nanoseconds of a call and seconds to build, as predicted."""
        return self.priced() if callable(self.priced) else self.priced

    @property
    def costs(self) -> str:
        """The price in words."""
        return f"{time_text(self.price.call)} a call and {time_text(1e9 * self.price.build)} to build"

    def summary(self) -> Candidate:
        """Return the numbers alone."""
        return Candidate(self.way, self.executed, self.written, self.priced)


@dataclass(frozen=True, eq=False)
class CompilationPlan(Shown):
    """What `compile` does with a function, and why: what repeats, every way with its price, the choice.

    `operations` are those of a call, by way; `traced` is how many the function has, before any derivative. `loops`
    are those of the function itself (`codegen.loops.loop.Loop`), `carried_out` has a sentence for each one that was
    written down and is carried out repetition by repetition, and `refused` says why a way is none.
    """

    name: str
    traced: int
    loops: Sequence[Loop]
    candidates: Sequence[Candidate]
    refused: Mapping[Way, str]
    chosen: Way
    reason: str
    carried_out: Sequence[str] = ()
    primal: Primal | None = field(default=None, repr=False)

    @property
    def what(self) -> str:
        """The subject of the plan, as `choices` shows it."""
        return f"kernel of {self.name}"

    @property
    def operations(self) -> dict[str, int]:
        """Operations that a call carries out, by way."""
        return {way.way: way.executed for way in self.candidates}

    @property
    def title(self) -> str:
        """A line above the page."""
        return f"Plan of {self.name}"

    @property
    def choice(self) -> str:
        """What is done, in words."""
        return f"compiled {'in' if self.chosen == 'straight' else 'as'} {WAYS[self.chosen]}"

    @property
    def candidate(self) -> Candidate:
        """The way that was chosen."""
        return next(way for way in self.candidates if way.way == self.chosen)

    @property
    def lines(self) -> list[str]:
        """One line for each loop, of operations on arrays as they are fused: how many copies of which lines."""
        steps = () if self.primal is None or not self.primal.traced.loops else self.primal.program.steps
        regions = [step for step in steps if isinstance(step, Region) and len(self.loops) > 1]
        if regions and len(regions) == len(steps) and not any(isinstance(loop, RolledBlock) for loop in self.loops):
            return [line_of(region) for region in regions if region.count > 1]
        return [line_of(loop) for loop in self.loops]

    def summary(self) -> CompilationPlan:
        """Return the plan without the programs and traces, which may be large."""
        return replace(self, candidates=tuple(way.summary() for way in self.candidates), loops=(), primal=None)

    def document(self) -> Document:
        """Return the loops, the ways with their prices, and the choice."""
        loops = f"{counted(len(self.loops), 'loop')} found" if self.loops else "nothing repeats"
        head = f"{counted(self.traced, 'operation')} traced; {loops}. {sentence(self.choice)[:-1]}: {self.reason}."
        parts: list[Part] = [Heading(self.title, 1), Paragraph(head), Table(_HEADER, tuple(map(self._row, WAYS)))]
        return (*parts, *(Paragraph(sentence(line)) for line in (*self.lines, *self.carried_out)))

    def __str__(self) -> str:
        return visible(f"{self.what}: {self.choice}: {self.reason}")

    def _row(self, way: Way) -> tuple[Any, ...]:
        for candidate in self.candidates:
            if candidate.way == way:
                note = "chosen" if way == self.chosen else "estimated" if candidate.estimated else ""
                return (
                    WAYS[way], str(candidate.executed), str(candidate.written), time_text(candidate.price.call),
                    time_text(1e9 * candidate.price.build), note,
                )  # fmt: skip
        return (WAYS[way], "", "", "", "", self.refused.get(way, "not looked at"))


_HEADER = ("way", "operations", "written", "a call", "to build", "")


def line_of(loop: Loop | Region) -> str:
    """Return a loop in one line; a derivative that is taken in the code with the loops of its function."""
    if isinstance(loop, RolledBlock):
        return f"{loop.origin}: {'; '.join(map(line_of, loop.found)) or _whole(loop.program)}"
    where = f" of {loop.origin}" if loop.origin else ""
    around = f" around {counted(len(loop.inside), 'loop')}" if isinstance(loop, Loop) and loop.inside else ""
    operations = operations_of(loop.body)
    if not operations and all(use.kind in ("sum", "add") for use in loop.results):
        return f"{loop.count} terms{where} added up: one loop"
    return f"{loop.count} copies{where}, {counted(operations, 'operation')} each: one loop{around}"


def _whole(program: RolledProgram) -> str:
    """Return the name of an operation on whole arrays."""
    operations = [region.matrix.description for region, _ in regions_of(program.steps) if region.matrix is not None]
    return ", ".join(operations) or program.name


def time_text(nanoseconds: float) -> str:
    """Return a time in a unit that fits, with two digits.

    >>> time_text(31.4), time_text(2170.0), time_text(4.8e7), time_text(2e9)
    ('31 ns', '2.2 us', '48 ms', '2.0 s')
    """
    unit, scale = next((pair for pair in (("s", 1e9), ("ms", 1e6), ("us", 1e3)) if nanoseconds >= pair[1]), ("ns", 1.0))
    value = nanoseconds / scale
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"


def sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
