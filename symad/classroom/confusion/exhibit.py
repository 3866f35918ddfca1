"""`exhibit`: run one nested program by wrong designs and by the right one, line by line.

`import symad` does not import this: wrong derivatives are available only on request,
`from symad.classroom.confusion.exhibit import exhibit`.
"""

from __future__ import annotations

import math

import numpy as np

from codegen.records import dataclass
from symad.classroom.confusion.designs import NoAlias, OneTape, Right, SharedTag, Tagless
from symad.classroom.confusion.watched_runs import SPACE, Difference, Program, RunLine, WatchedRun, equal, run
from symad.display.document import (
    Block,
    Cell,
    Code,
    Columns,
    Document,
    Heading,
    Inline,
    Marked,
    Paragraph,
    Table,
    inlines,
)
from symad.display.shown import Shown
from symad.errors import ArgumentError


@dataclass(frozen=True)
class Famous:
    """A program of the literature: its text, its function of the derivative operator, and its right value."""

    title: str
    text: str
    program: Program
    right: float


FAMOUS = {
    "siskind-pearlmutter": Famous(
        "the program of Siskind and Pearlmutter", "d(lambda x: x * d(lambda y: x + y, 1.0), 1.0)",
        lambda d: d(lambda x: x * d(lambda y: x + y, 1.0), 1.0), 1.0),
    "captured": Famous(
        "a captured variable in a product", "d(lambda x: x * d(lambda y: x * y, 1.0), 4.0)",
        lambda d: d(lambda x: x * d(lambda y: x * y, 1.0), 4.0), 8.0),
    "same-point": Famous(
        "the argument is the captured variable", "d(lambda x: x * d(lambda y: x * y, x), 3.0)",
        lambda d: d(lambda x: x * d(lambda y: x * y, x), 3.0), 6.0),
    "same-point-square": Famous(
        "the argument is the captured variable, squared", "d(lambda x: x * d(lambda y: x * y**2, x), 3.0)",
        lambda d: d(lambda x: x * d(lambda y: x * y**2, x), 3.0), 54.0),
    "difference": Famous(
        "a product of the argument and a difference", "d(lambda x: d(lambda y: y * (x - y), x), 1.0)",
        lambda d: d(lambda x: d(lambda y: y * (x - y), x), 1.0), -1.0),
    "unused": Famous(
        "a function that does not use its argument", "d(lambda x: d(lambda y: x, x), 1.0)",
        lambda d: d(lambda x: d(lambda y: x, x), 1.0), 0.0),
    "square": Famous(
        "the outer variable only as the point", "d(lambda x: x * d(lambda y: y**2, x), 1.0)",
        lambda d: d(lambda x: x * d(lambda y: y**2, x), 1.0), 4.0),
    "amazing-bug": Famous(
        "the amazing bug, a derivative used twice",
        "shift = d(lambda u: lambda g: lambda a: g(a + u), 3.0)\nshift(shift(np.exp))(5.0)",
        lambda d: (lambda shift: shift(shift(np.exp))(5.0))(d(lambda u: lambda g: lambda a: g(a + u), 3.0)),
        math.exp(11)),
}  # fmt: skip


@dataclass(frozen=True)
class Exhibit(Shown):
    """The runs of one program: `wrong` by three designs, `right` by symad; `tape` and `reverse` in reverse mode."""

    heading: str
    source: str
    wrong: tuple[WatchedRun, ...]
    right: WatchedRun
    tape: WatchedRun
    reverse: WatchedRun

    @property
    def title(self) -> str:
        return f"Perturbation confusion: {self.heading}"

    def first_wrong(self, design: str) -> RunLine | None:
        """Return the first line in which a design, given by name, differs from the right run, if any.

        >>> exhibit("siskind-pearlmutter").first_wrong("no tag").seen
        Seen(value=2.0, slope=2.0, parameter=y)
        """
        (wrong_run,) = (run for run in (*self.wrong, self.tape) if run.design.name == design)
        difference = wrong_run.first_difference(self.right)
        return None if difference is None else wrong_run.lines[difference.line]

    def document(self) -> Document:
        """Return four columns, and the two of reverse mode below them."""
        code: tuple[Block, ...] = (Code(self.source, "python"),) if self.source else ()
        right = Marked(_number(self.right.result), "right")
        return (
            Heading(self.title, 1),
            *code,
            Paragraph(("The right value, by forward mode and by reverse mode at each level, is ", right, ".")),
            Columns(tuple(self._column(run) for run in (*self.wrong, self.right))),
            Heading("The same in reverse mode"),
            Columns(tuple(self._column(run) for run in (self.tape, self.reverse))),
        )

    def _column(self, run: WatchedRun) -> Document:
        difference = run.first_difference(self.right)
        wrong = None if difference is None else difference.line
        rows = tuple(_row(line, k == wrong) for k, line in enumerate(run.lines))
        leaves_out = run.design.leaves_out or "Every use of a derivative has its own epsilon and parameter."
        return (
            Heading(run.design.name.capitalize(), 3),
            Paragraph(leaves_out),
            *([Table((), rows, "lll")] if rows else []),
            Paragraph(self._verdict(run, difference)),
        )

    def _verdict(self, run: WatchedRun, difference: Difference | None) -> Cell:
        if run.result is None:
            return (Marked("No result", "wrong"), f": {run.refusal}.")
        number = _number(run.result)
        if difference is None:
            return (Marked(f"{number}, right", "right"), ", for this program." if run.design.leaves_out else ".")
        by_luck = equal(run.result, self.right.result)
        verdict = Marked(f"{number}, right by luck" if by_luck else f"{number}, wrong", "right" if by_luck else "wrong")
        seen, expected, name = difference.seen, difference.expected, run.lines[difference.line].name
        words: tuple[Inline, ...] = (verdict, "; wrong from " if by_luck else " from ", name, " on: its ")
        if seen.parameter is None or not equal(seen.value, expected.value):
            return (*words, f"value is {_number(seen.value)}, and should be {_number(expected.value)}.")
        slopes = f" is {_number(seen.slope)}, and should be {_number(expected.slope)}."
        return (*words, "slope in ", seen.parameter, slopes)


def exhibit(program: str | Program) -> Exhibit:
    """Run a nested program with no tag, a shared tag, no alias, one tape, and right; show where each breaks.

    The program is the name of a famous one (a key of FAMOUS), or a function of the derivative operator: `d(f, a)` is
    f'(a). Forward and reverse mode at each level give the right value. ArgumentError for an unknown name, for an object
    that is no program, and for a program without a right value; LimitError for more than 200 operations or 5 levels.

    >>> shown = exhibit(lambda d: d(lambda x: x * d(lambda y: x + y, 1.0), 1.0))
    >>> shown.right.result, [wrong.result for wrong in shown.wrong], shown.tape.result
    (1.0, [2.0, 1.0, 1.0], 1.0)
    >>> for line in shown.text(70).splitlines()[9:15]:
    ...     print(line.replace("\u00a0", " "))
     x      level 1   1 + ε
     y      level 2   1 + ε
     > t₁   x + y     2 + 2 ε
     t₂     dt₁/dy    2
     t₃     x · t₂    2 + 2 ε
     t₄     dt₃/dx    2
    """
    heading, source = "a program of your own", ""
    if isinstance(program, str):
        if program not in FAMOUS:
            raise ArgumentError(f"the program {program!r}", do=f"choose one of {', '.join(FAMOUS)}, or give a function")
        known = FAMOUS[program]
        heading, source, program = known.title, known.text, known.program
    elif not callable(program):
        raise ArgumentError(f"a program of type {type(program).__name__}", do="give a function of the derivative d")
    right, reverse = (run(Right(reverse=mode), program) for mode in (False, True))
    if not equal(right.result, reverse.result):
        raise _no_right_value(f"forward mode gives {right.result}, reverse mode {reverse.result}")
    for line in right.lines:  # where 0 divides, no design has a right value
        if line.seen is not None and not (math.isfinite(line.seen.value) and math.isfinite(line.seen.slope)):
            raise _no_right_value(
                f"the line {line.name} has the value {line.seen.value}, and the slope {line.seen.slope}"
            )
    wrong = tuple(run(design, program) for design in (Tagless(), SharedTag(), NoAlias()))
    return Exhibit(heading, source, wrong, right, run(OneTape(), program), reverse)


def _no_right_value(why: str) -> ArgumentError:
    return ArgumentError("a program without a right value", why=why, do="choose a point where it has a derivative")


def _row(line: RunLine, wrong: bool) -> tuple[Cell, ...]:
    if not wrong:
        return ((line.name,), line.formula, line.value)
    parts = (part.content if isinstance(part, Marked) else part for part in inlines(line.value))
    return ((Marked(f">{SPACE}", "wrong"), line.name), line.formula, tuple(Marked(part, "wrong") for part in parts))


def _number(value: float | None) -> str:
    return f"{value:.10g}"
