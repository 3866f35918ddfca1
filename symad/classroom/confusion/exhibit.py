"""`exhibit`: run one nested program by wrong designs and by the right one, line by line.

`import symad` does not import this: wrong derivatives are available only on request,
`from symad.classroom.confusion.exhibit import exhibit`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

import symad.display.document as doc
from codegen.evaluation.interpret import Arithmetic, Functions, carry_out
from codegen.ir.program import Head, needed
from codegen.records import dataclass
from symad.classroom.confusion.designs import NoAlias, OneTape, Right, SharedTag, Tagless
from symad.classroom.confusion.naive import FUNCTIONS
from symad.classroom.confusion.watched_runs import SPACE, Difference, Program, RunLine, WatchedRun, equal, run
from symad.display.shown import Shown
from symad.errors import ArgumentError
from symad.graph.graph import Graph
from symad.graph.sympy_io import from_sympy


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

    def document(self) -> doc.Document:
        """Return four columns, and the two of reverse mode below them."""
        code: tuple[doc.Block, ...] = (doc.Code(self.source, "python"),) if self.source else ()
        right = doc.Marked(_number(self.right.result), "right")
        return (
            doc.Heading(self.title, 1),
            *code,
            doc.Paragraph(("The right value, by forward mode and by reverse mode at each level, is ", right, ".")),
            doc.Columns(tuple(self._column(run) for run in (*self.wrong, self.right))),
            doc.Heading("The same in reverse mode"),
            doc.Columns(tuple(self._column(run) for run in (self.tape, self.reverse))),
        )

    def _column(self, run: WatchedRun) -> doc.Document:
        difference = run.first_difference(self.right)
        wrong = None if difference is None else difference.line
        rows = tuple(_row(line, k == wrong) for k, line in enumerate(run.lines))
        leaves_out = run.design.leaves_out or "Every use of a derivative has its own epsilon and parameter."
        return (
            doc.Heading(run.design.name.capitalize(), 3),
            doc.Paragraph(leaves_out),
            *([doc.Table((), rows, "lll")] if rows else []),
            doc.Paragraph(self._verdict(run, difference)),
        )

    def _verdict(self, run: WatchedRun, difference: Difference | None) -> doc.Cell:
        if run.result is None:
            return (doc.Marked("No result", "wrong"), f": {run.refusal}.")
        number = _number(run.result)
        if difference is None:
            return (doc.Marked(f"{number}, right", "right"), ", for this program." if run.design.leaves_out else ".")
        by_luck = equal(run.result, self.right.result)
        verdict = doc.Marked(
            f"{number}, right by luck" if by_luck else f"{number}, wrong", "right" if by_luck else "wrong"
        )
        seen, expected, name = difference.seen, difference.expected, run.lines[difference.line].name
        words: tuple[doc.Inline, ...] = (verdict, "; wrong from " if by_luck else " from ", name, " on: its ")
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
        if (seen := line.seen) is not None and not (math.isfinite(seen.value) and math.isfinite(seen.slope)):
            raise _no_right_value(f"the line {line.name} has the value {seen.value}, and the slope {seen.slope}")
    wrong = tuple(run(design, program) for design in (Tagless(), SharedTag(), NoAlias()))
    return Exhibit(heading, source, wrong, right, run(OneTape(), program), reverse)


def _no_right_value(why: str) -> ArgumentError:
    return ArgumentError("a program without a right value", why=why, do="choose a point where it has a derivative")


def _row(line: RunLine, wrong: bool) -> tuple[doc.Cell, ...]:
    if not wrong:
        return ((line.name,), line.formula, line.value)
    parts = (part.content if isinstance(part, doc.Marked) else part for part in doc.inlines(line.value))
    return (
        (doc.Marked(f">{SPACE}", "wrong"), line.name),
        line.formula,
        tuple(doc.Marked(part, "wrong") for part in parts),
    )


def _number(value: float | None) -> str:
    return f"{value:.10g}"


SHORT = 60  # letters of a formula in a heading
_BY_NAME = {head: name for name in FUNCTIONS if (head := getattr(sp, name, None)) is not None}


def own_exhibit(expression: sp.Expr, symbols: tuple[sp.Basic, ...], point: list[float]) -> Exhibit:
    """Return the exhibit of a nested program with a formula of one or two variables.

    For one variable it is D x: x · D y: x · f(y) at y = x, for two D x: x · D y: f(x, y), where the inner function
    captures x. ArgumentError for more variables, and for functions that the wrong designs lack.

    >>> x, y = sp.symbols("x y")
    >>> shown = own_exhibit(x + y, (x, y), [1.0, 1.0])
    >>> shown.right.result, [wrong.result for wrong in shown.wrong]
    (1.0, [2.0, 1.0, 1.0])
    """
    if len(symbols) not in (1, 2):
        raise ArgumentError(f"the exhibit of a formula of {len(symbols)} variables", do="type one of one or two")
    f = watchable(expression, symbols)
    written = str(expression)
    names = ", ".join(map(str, symbols))
    if len(symbols) == 1:
        source = f"f = lambda {names}: {written}\nd(lambda x: x * d(lambda y: x * f(y), x), {point[0]:g})"
        shown = exhibit(lambda d: d(lambda x: x * d(lambda y: x * f(y), x), point[0]))
    else:
        source = f"f = lambda {names}: {written}\nd(lambda x: x * d(lambda y: f(x, y), {point[1]:g}), {point[0]:g})"
        shown = exhibit(lambda d: d(lambda x: x * d(lambda y: f(x, y), point[1]), point[0]))
    title = written if len(written) <= SHORT else "a formula of your own"
    return replace(shown, heading=f"with f({names}) = {title}", source=source)


def watchable(expression: sp.Expr, symbols: tuple[sp.Basic, ...]) -> Callable[..., Any]:
    """Return a formula as a function for any design: sums, products, integer powers, a few functions."""
    graph = Graph(lines=False)
    (result,) = from_sympy(graph, [expression])
    places = {atom: row for row, atom in graph.atoms.items()}
    functions = Functions(_function)
    arithmetic = Arithmetic(functions, functions, float)

    def f(*numbers: Any) -> Any:
        values: dict[int, Any] = {places[s]: n for s, n in zip(symbols, numbers, strict=True) if s in places}
        carry_out(graph, needed(graph, [result], values), values, arithmetic)
        return values[result]

    return f


def _function(head: Head) -> Callable[..., Any]:
    if head is sp.Add:
        return lambda first, *rest: sum(rest, first)
    if head is sp.Mul:
        return lambda first, *rest: math.prod(rest, start=first)
    if head not in (sp.Pow, *_BY_NAME):
        raise _refused(head.__name__)
    return _power if head is sp.Pow else getattr(np, _BY_NAME[head])


def _power(base: Any, exponent: Any) -> Any:
    size = abs(exponent) if isinstance(exponent, float) else 0.0
    if size != 0.5 and (not size or not size.is_integer()):
        raise _refused("a power")
    root = np.sqrt(base) if size == 0.5 else base if size == 1 else base ** int(size)
    return root if exponent > 0 else 1.0 / root


def _refused(subject: str) -> ArgumentError:
    do = f"use +, -, *, /, whole powers and {', '.join(_BY_NAME.values())}"
    return ArgumentError(f"{subject} in the exhibit", why="the wrong designs that are compared do not have it", do=do)
