"""The V curve: the error of differences over their step, which truncation and cancellation share between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from codegen.functions.reference_functions import precision
from symad.checking.comparison.comparison_problem import Problem, problem_of
from symad.checking.comparison.comparison_sizes import derivative_name
from symad.checking.comparison.differences import Kind, derivatives, standard_step
from symad.checking.comparison.reference import reference_of
from symad.checking.comparison.routes import COMPLEX_STEP, with_complex_step
from symad.checking.verification.verify import compare_exact
from symad.display.document import Document, Heading, Paragraph, Table
from symad.display.shown import Shown
from symad.drawing.chart import line_chart
from symad.errors import ArgumentError, InvariantError, WorkbenchError
from symad.tracing.calling.user_place import user_place

STEPS = tuple(10.0 ** (-half / 2) for half in range(2, 33))  # from 0.1 down to 1e-16
_KINDS: tuple[Kind, Kind] = ("forward", "central")
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
    with precision(15):  # mpmath's precision is global
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
        except InvariantError:
            raise
        except WorkbenchError:
            return  # a function that tells complex numbers from real ones
        yield "complex step", partial(call, problem.flat), COMPLEX_STEP
