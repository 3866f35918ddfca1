"""Record every operation of a nested program as one design carries it out.

The program is a function of the derivative operator, `lambda d: d(lambda x: x * d(lambda y: x + y, 1.0), 1.0)`. Its
numbers are wrapped in `Watched`: each operation is carried out by the design's own numbers, and its result is kept. A
line also keeps the view of the innermost open derivative: its value, and its slope in that derivative's parameter, as
the design itself would read it at this moment. Designs with different arithmetic (dual numbers, symbols, a tape) are
compared by these two numbers.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any, NoReturn

import numpy as np
import sympy as sp
from numpy.lib.mixins import NDArrayOperatorsMixin

from codegen.records import dataclass
from symad.classroom.confusion.naive import FUNCTIONS, Derivative, applied
from symad.display.document import Cell
from symad.errors import ArgumentError, LimitError, TraceError, WorkbenchError
from symad.tracing.calling.user_place import refusal, user_place

Program = Callable[[Derivative], Any]
SPACE = "\u00a0"  # no line break here
MAX_LINES = 200  # of a run
MAX_LEVELS = 5  # inside each other: 32 coefficients
_NUMBERS = (int, float, np.floating)
_OPERATORS = {
    "add": ("+", operator.add), "subtract": ("-", operator.sub), "multiply": ("·", operator.mul),
    "divide": ("/", operator.truediv),
}  # fmt: skip
_COMPARED = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")


@dataclass
class Parameter:
    """The parameter of a derivative: the design's number, the user's name for it, and its unique name once used."""

    number: Any
    called: str
    name: sp.Symbol | None = None


@dataclass
class Opened:
    """An open derivative: its place in the program, its parameter, its function."""

    argument: Any
    parameter: Parameter = field(default_factory=lambda: Parameter(None, "u"))
    result: Cell = ""
    returns_function: bool = False


@dataclass(frozen=True)
class Seen:
    """A number as the innermost open derivative sees it: its value and its slope in the named parameter."""

    value: float
    slope: float = 0.0
    parameter: sp.Symbol | None = None

    def agrees(self, other: Seen) -> bool:
        """Whether both values and both slopes are equal up to rounding."""
        return equal(self.value, other.value) and equal(self.slope, other.slope)


@dataclass(frozen=True)
class RunLine:
    """One line of a run: its name, its formula, its value in the design.

    The line of a parameter names its level, and has no `seen`.
    """

    name: sp.Symbol
    formula: Cell
    value: Cell
    seen: Seen | None = None


class Design:
    """A method to take derivatives. `shown` formats its numbers, `seen` reads them for the innermost level."""

    name: str
    leaves_out: str
    operator: Callable[[], Derivative]  # makes a fresh one

    def __init__(self) -> None:
        self.derivative: Derivative = type(self).operator()

    def function(self, name: str, number: Any) -> Any:
        """Return a function of a number, such as its exponential."""
        return applied(name, number)

    def shown(self, number: Any, opened: Sequence[Opened]) -> Cell:
        """Return a number as the design represents it."""
        raise NotImplementedError

    def seen(self, number: Any, opened: Sequence[Opened]) -> tuple[float, float]:
        """Return the value of a number and its slope in the parameter of the innermost open derivative."""
        raise NotImplementedError


@dataclass(frozen=True)
class Difference:
    """A line with a wrong number, the wrong number, and the right one."""

    line: int
    seen: Seen
    expected: Seen


@dataclass(frozen=True)
class WatchedRun:
    """The lines of a run and its result, or a refusal if the design could not continue."""

    design: Design
    lines: tuple[RunLine, ...]
    result: float | None
    refusal: str = ""

    def first_difference(self, right: WatchedRun) -> Difference | None:
        """Return the first difference from the right run, operation by operation."""
        mine = [(k, line.seen) for k, line in enumerate(self.lines) if line.seen is not None]
        theirs = [line.seen for line in right.lines if line.seen is not None]
        for (k, seen), other in zip(mine, theirs, strict=False):
            if not seen.agrees(other):
                return Difference(k, seen, other)
        return None


def run(design: Design, program: Program) -> WatchedRun:
    """Run a program by a design. A design's error becomes its refusal; ArgumentError if no number results.

    >>> from symad.classroom.confusion.designs import Tagless
    >>> run(Tagless(), lambda d: d(lambda x: x * d(lambda y: x + y, 1.0), 1.0)).result
    2.0
    """
    recorder = _Recorder(design)
    try:
        result = program(recorder.derivative)
    except (TypeError, AttributeError, ValueError, ArithmeticError) as error:
        if not design.leaves_out or isinstance(error, WorkbenchError):
            raise
        why = "it has no derivative of a function that returns a function" if recorder.curried else str(error)
        return WatchedRun(design, tuple(recorder.lines), None, why)
    if not isinstance(result, Watched | int | float):
        raise ArgumentError(f"a program that returns {type(result).__name__}", do="let it return one number")
    value = float(design.seen(result.number if isinstance(result, Watched) else result, [])[0])
    return WatchedRun(design, tuple(recorder.lines), value)


@dataclass(eq=False)
class _Recorder:
    design: Design
    lines: list[RunLine] = field(default_factory=list)
    opened: list[Opened] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    steps: int = 0
    curried: bool = False

    def derivative(self, f: Callable[..., Any], a: Any) -> Any:
        """The program's operator: the design's operator, which also records the lines."""

        def watching(number: Any) -> Any:
            opened = self.opened[-1]
            opened.parameter = Parameter(number, _parameter_of(f))
            return self._returned(f(Watched(number, None, self, tuple(self.opened))))

        if not callable(f) or not isinstance(a, (Watched, *_NUMBERS)):
            do = "d takes a function of one number, and a number"
            raise ArgumentError(f"d({type(f).__name__}, {type(a).__name__})", do=do)
        self.name_of(a)
        argument = _plain(a)
        return self._within(Opened(argument), lambda: self.design.derivative(watching, argument))

    def _returned(self, value: Any) -> Any:
        """Return a function's result as the design's number, or as a function that returns such numbers."""
        self.opened[-1].returns_function = callable(value)
        if callable(value):
            self.curried = True
            return lambda *more: self._returned(value(*more))
        if not isinstance(value, (Watched, *_NUMBERS)):
            subject = f"a function that returns {type(value).__name__} in an exhibited program"
            raise refusal(subject, do="let it return one number")
        self.opened[-1].result = self.name_of(value)
        return _plain(value)

    def _within(self, opened: Opened, compute: Callable[[], Any]) -> Any:
        """Return a derivative: a number, or a function whose uses belong to the same derivative."""
        if len(self.opened) == MAX_LEVELS:
            raise LimitError(f"more than {MAX_LEVELS} derivatives inside each other", do="exhibit fewer")
        self.opened.append(opened)
        try:
            result = compute()
        finally:
            self.opened.pop()
        if callable(result):
            return lambda *more: self._within(replace(opened), lambda: result(*more))
        if opened.returns_function:
            raise TypeError("the derivative of a function-valued function is a number here")
        return self.write(("d", opened.result, "/d", self._name(opened.parameter)), result)

    def write(self, formula: Cell, number: Any) -> Watched:
        """Record a line and return its number under a new name."""
        self.steps += 1
        if self.steps > MAX_LINES:
            raise LimitError(f"a program of more than {MAX_LINES} operations", do="exhibit a shorter one")
        name = sp.Symbol(f"t_{self.steps}")
        parameter = self._name(self.opened[-1].parameter) if self.opened else None
        seen = Seen(*self.design.seen(number, self.opened), parameter)
        self.lines.append(RunLine(name, formula, self.design.shown(number, self.opened), seen))
        return Watched(number, name, self)

    def name_of(self, operand: Any) -> sp.Basic | str:
        """Return the name of an operand. A parameter's line is recorded before its first use."""
        if not isinstance(operand, Watched):
            return f"{operand:.6g}"
        if operand.name is None:
            operand.name = self._name(operand.levels[-1].parameter)
            level = f"level{SPACE}{len(operand.levels)}"
            self.lines.append(RunLine(operand.name, level, self.design.shown(operand.number, operand.levels)))
        return operand.name

    def _name(self, parameter: Parameter) -> sp.Symbol:
        """Return the name of a parameter: the user's, unless it is taken."""
        if parameter.name is None:
            called = parameter.called
            numbered = (f"{called}_{k}" for k in range(2, 10))
            names = itertools.chain([called], numbered, (f"{called}'{k}" for k in itertools.count(2)))
            name = next(name for name in names if name not in self.taken and not re.fullmatch(r"t_\d+", name))
            self.taken.add(name)
            parameter.name = sp.Symbol(name)
        return parameter.name


class Watched(NDArrayOperatorsMixin):
    """A number of a design. Operations on it are the design's, and are recorded.

    A parameter has no name at first, and keeps the levels that were open when it was created.
    """

    def __init__(self, number: Any, name: sp.Symbol | None, recorder: _Recorder, levels: Sequence[Opened] = ()) -> None:
        self.number, self.name, self.recorder, self.levels = number, name, recorder, levels

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Carry out an operation or a function. Operators and NumPy functions call this."""
        name, recorder = ufunc.__name__, self.recorder
        if name in _COMPARED:
            self.__bool__()
        if not all(isinstance(side, (Watched, *_NUMBERS)) for side in inputs):
            return NotImplemented
        known = name in (*_OPERATORS, *FUNCTIONS, "negative") or (name == "power" and isinstance(inputs[1], int))
        if not known or method != "__call__" or keywords:
            _refuse_function("a power that is no integer" if name == "power" else f"np.{name}")
        if name in FUNCTIONS:
            formula: Cell = sp.Function(name)(recorder.name_of(self))
            return recorder.write(formula, recorder.design.function(name, self.number))
        left = recorder.name_of(inputs[0])
        if name == "negative":
            return recorder.write(("-", left), -self.number)
        if name == "power":
            return recorder.write((sp.Pow(left, inputs[1], evaluate=False),), _plain(inputs[0]) ** inputs[1])
        sign, operation = _OPERATORS[name]
        formula = (left, f"{SPACE}{sign}{SPACE}", recorder.name_of(inputs[1]))
        return recorder.write(formula, operation(*map(_plain, inputs)))

    def __bool__(self) -> NoReturn:
        raise TraceError(
            "a condition on a number of an exhibited program",
            where=user_place(),
            why="runs are compared line by line, and wrong numbers would take other branches",
            do="exhibit the branch that is taken",
        )

    def __float__(self) -> NoReturn:
        _refuse_function("a plain float")


def _refuse_function(subject: str) -> NoReturn:
    functions = ", ".join(f"np.{name}" for name in FUNCTIONS)
    why = "the designs that are compared do not have it"
    raise TraceError(f"{subject} in an exhibited program", where=user_place(), why=why, do=f"use {functions}")


def equal(a: float | None, b: float | None) -> bool:
    """Whether two numbers exist and are equal up to rounding."""
    return a is not None and b is not None and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


def _parameter_of(f: Callable[..., Any]) -> str:
    code = getattr(f, "__code__", None)
    return code.co_varnames[0] if code is not None and code.co_argcount else "u"


def _plain(value: Any) -> Any:
    return value.number if isinstance(value, Watched) else value
