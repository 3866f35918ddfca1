"""What a table cannot show: the error of differences over their step, and how formulas swell from order to order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import sympy as sp

from symad.checking.compare_problem import Problem, problem_of
from symad.checking.compare_reference import reference_of
from symad.checking.compare_sizes import Sizes, derivative_name, sizes, sizes_of_expressions, whole
from symad.checking.differences import Kind, derivatives, standard_step
from symad.checking.precision import compare_exact
from symad.checking.routes import COMPLEX_STEP, with_complex_step
from symad.display.document import Document, Heading, Paragraph, Table
from symad.display.shown import Shown
from symad.drawing.chart import line_chart
from symad.errors import ArgumentError, LimitError, WorkbenchError
from symad.higher_order import derivative_along
from symad.limits import time_limit
from symad.tracing.place import user_place
from symad.tracing.trace import trace

STEPS = tuple(10.0 ** (-half / 2) for half in range(2, 33))  # from 0.1 down to 1e-16
_KINDS: tuple[Kind, Kind] = ("forward", "central")
_FORMS = ("tree", "graph")
_LARGE_AND_SMALL = "Large steps truncate, small ones cancel; the rule balances the two."
_NOTHING = " A complex step subtracts nothing, and may be as small as it likes."


@dataclass(frozen=True)
class StepErrors(Shown):
    """The relative error of differences, and of the complex step, at each of STEPS; and the steps of the rules."""

    name: str
    order: int
    errors: dict[str, tuple[float, ...]]
    standard: dict[str, float]

    @property
    def title(self) -> str:
        return f"{derivative_name(self.order)} of {self.name}: error over step"

    def document(self) -> Document:
        """Return the chart, and for each method its best step beside the one that the rule gives."""
        series = {name: list(zip(STEPS, line, strict=True)) for name, line in self.errors.items()}
        rows = tuple(
            (name, f"{min(line):.1e}", f"{STEPS[int(np.argmin(line))]:.1e}", f"{self.standard[name]:.1e}")
            for name, line in self.errors.items()
        )
        return (
            Heading(self.title),
            line_chart(series, "step", "relative error", log_x=True, log_y=True),
            Table(("method", "least error", "at step", "step of the rule"), rows, "lrrr"),
            Paragraph(_LARGE_AND_SMALL + (_NOTHING if "complex step" in self.errors else "")),
        )


def step_errors(f: Any, x: Any, order: int = 1) -> StepErrors:
    """Return the relative error of differences at a point for many steps: the V curve. f and x as for `compare`.

    Steps are parts of max(|x|, 1); the error is the largest absolute one over the largest derivative. ArgumentError
    where f has no derivative, or where all derivatives are 0.

    >>> found = step_errors(np.exp, 1.0)
    >>> sorted(found.errors), min(found.errors["complex step"]) < 1e-15 < min(found.errors["central"]) < 1e-9
    (['central', 'complex step', 'forward'], True)
    """
    problem = problem_of(f, x, order, 10.0)
    exact = reference_of(problem)
    if exact.refusal or not any(exact.values):
        why = exact.refusal or "all derivatives of this order are 0 here, so there is no relative error"
        what = f"the error of differences of {problem.name}"
        raise ArgumentError(what, where=user_place(), why=why, do="move the point")
    scale = np.maximum(np.abs(problem.flat), 1.0)
    errors: dict[str, tuple[float, ...]] = {}
    standard: dict[str, float] = {}
    with np.errstate(all="ignore"):
        for name, method, rule in _methods(problem):
            errors[name] = tuple(compare_exact(method(step * scale).tolist(), exact.values).scaled for step in STEPS)
            standard[name] = rule
    return StepErrors(problem.name, order, errors, standard)


def _methods(problem: Problem) -> Iterator[tuple[str, Callable[[Any], Any], float]]:
    """Yield name, derivatives by step, and the step of the rule, of each method."""
    for kind in _KINDS:
        rule = float(standard_step(kind, problem.order, np.ones(1))[0])
        yield kind, partial(derivatives, problem.kernel.call, problem.flat, problem.order, kind), rule
    if problem.order == 1:
        try:
            call = with_complex_step(problem)
        except WorkbenchError:
            return  # a function that tells complex numbers from real ones
        yield "complex step", partial(call, problem.flat), COMPLEX_STEP


@dataclass(frozen=True)
class Swell(Shown):
    """The sizes of derivatives along one direction, order by order, by way; a way that stopped says why."""

    name: str
    found: dict[str, tuple[Sizes, ...]]
    stopped: dict[str, str]

    @property
    def title(self) -> str:
        return f"Derivatives of {self.name}: how formulas swell"

    def document(self) -> Document:
        """Return the chart of trees and graphs, the numbers, and why a way stopped."""
        series = {
            f"{name}, {form}": [(order, getattr(size, form)) for order, size in enumerate(line, 1)]
            for name, line in self.found.items()
            for form in _FORMS
            if line
        }
        header = ("order", *(f"{name}, {form}" for name in self.found for form in _FORMS))
        orders = max(map(len, self.found.values()))
        rows = tuple((str(order), *self._row(order)) for order in range(1, orders + 1))
        return (
            Heading(self.title),
            line_chart(series, "order", "nodes", log_y=True),
            Table(header, rows, "r" * len(header)),
            *(Paragraph(f"{name}: {why}") for name, why in self.stopped.items()),
        )

    def _row(self, order: int) -> list[str]:
        reached = [line[order - 1] if order <= len(line) else None for line in self.found.values()]
        return [whole(getattr(size, form) if size else None) for size in reached for form in _FORMS]


def swell(f: Any, x: Any, orders: int = 5, *, max_seconds: float = 5.0) -> Swell:
    """Return how large the derivatives of a scalar function along one direction get, as trees and as graphs.

    The direction is 1 in every input. Ways: sympy.diff, forward mode nested in itself, and Taylor coefficients; each
    stops after `max_seconds`.

    >>> found = swell(lambda x: np.sin(np.sin(np.sin(x))), 1.0, 3).found
    >>> [size.tree for size in found["sympy.diff"]], [size.graph for size in found["Taylor"]]
    ([11, 47, 103], [10, 30, 58])
    """
    problem = problem_of(f, x, 1, max_seconds)
    ways: dict[str, Callable[[int], Sizes]] = {
        "sympy.diff": _by_sympy(problem),
        "nested forward": partial(_along, problem, "nested"),
        "Taylor": partial(_along, problem, "taylor"),
    }
    found: dict[str, tuple[Sizes, ...]] = {}
    stopped: dict[str, str] = {}
    for name, way in ways.items():
        line: list[Sizes] = []
        try:
            with time_limit(max_seconds, name):
                for order in range(1, orders + 1):
                    line.append(way(order))
        except (LimitError, RecursionError, MemoryError) as error:
            stopped[name] = f"stopped at order {len(line) + 1}: {next(iter(str(error).splitlines()), '')}"
        found[name] = tuple(line)
    return Swell(problem.name, found, stopped)


def _along(problem: Problem, mode: Any, order: int) -> Sizes:
    ones = problem.shaped(np.ones(problem.inputs))
    traced = trace(lambda x: derivative_along(problem.function, (x,), (ones,), order, mode=mode), problem.x)
    return sizes(traced.graph, traced.outputs.flat)


def _by_sympy(problem: Problem) -> Callable[[int], Sizes]:
    expressions: list[sp.Expr] = []

    def next_order(order: int) -> Sizes:
        last = expressions[-1] if expressions else problem.formula
        expressions.append(sp.Add(*(sp.diff(last, symbol) for symbol in problem.symbols)))
        return sizes_of_expressions(expressions[-1:])

    return next_order
