"""The errors of a kernel over a range of one variable, and the operations that lose digits.

The local error of an operation is the error of its result for exact operands rounded to doubles. It is large if the
operation amplifies that rounding, as a difference of nearly equal numbers does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy as sp

from codegen import Kernel
from codegen.evaluation.interpret import evaluate
from codegen.ir.program import reachable
from codegen.records import dataclass
from symad.classroom.drawing.boxes import is_constant
from symad.classroom.drawing.chart import line_chart
from symad.classroom.verification.balls import flat_floats
from symad.classroom.verification.exact import as_exact, by_digits, rounded, ulp_error
from symad.display.document import Cell, Document, Heading, Marked, Paragraph, Table
from symad.display.shown import Shown
from symad.errors import ArgumentError, WorkbenchError
from symad.graph.graph import Graph

POINTS = 120
DIGITS = 50
LOSSES = 6  # operations that are named
LEAST_LOSS = 4.0  # ULP: operations that lose less are not named
FLOOR = 1e-3  # ULP: smaller errors, and 0, are drawn here


@dataclass(frozen=True)
class Loss:
    """An operation that loses digits at the worst point: its row, the loss in ULP, its value."""

    row: int
    ulp: float
    value: float


@dataclass(frozen=True)
class ErrorRange(Shown):
    """The largest errors of a kernel's results over a range, and the operations at the worst point.

    `errors` is NaN at points without an exact number.
    """

    variable: str
    low: float
    high: float
    xs: tuple[float, ...]
    errors: tuple[float, ...]
    losses: tuple[Loss, ...] = ()
    names: dict[int, sp.Basic] | None = None

    @property
    def title(self) -> str:
        return f"Errors for {self.variable} from {self.low:g} to {self.high:g}"

    @property
    def worst(self) -> int | None:
        """The index of the worst point; None if nothing was compared."""
        known = [k for k, error in enumerate(self.errors) if not math.isnan(error)]
        return max(known, key=lambda k: self.errors[k], default=None)

    def document(self) -> Document:
        """Return the chart, the worst point, and the operations that lose digits there."""
        worst = self.worst
        if worst is None:
            return (Heading(self.title, 1), Paragraph("No point of this range has an exact number to compare with."))
        points = [(x, max(error, FLOOR)) for x, error in zip(self.xs, self.errors, strict=True) if math.isfinite(error)]
        points = points or [(self.low, FLOOR), (self.high, FLOOR)]
        chart = line_chart(
            {"ULP": points}, self.variable, "error in ULP", log_y=True, width=560, height=330, field=True
        )
        unknown = sum(map(math.isnan, self.errors))
        apart = f" {unknown} points have no exact number." if unknown else ""
        statement = f"Largest error {_ulp(self.errors[worst])} at {self.variable} = {self.xs[worst]!r}.{apart}"
        return (Heading(self.title, 1), chart, Paragraph(statement), *self._losses())

    def _losses(self) -> Document:
        if not self.losses:
            return (Paragraph("No operation loses digits there: the errors are those of rounding each once."),)
        names = self.names or {}
        rows = tuple(
            (Marked(names[loss.row], "primal", nodes=f"n{loss.row}"), _ulp(loss.ulp), f"{loss.value:.6g}")
            for loss in self.losses
        )
        header: tuple[Cell, ...] = ("operation", "loses", "its value")
        return (Paragraph("Where the digits are lost at the worst point:"), Table(header, rows, "lrr"))


def error_range(
    kernel: Kernel, at: Callable[[list[float]], Any], flat: Sequence[float], index: int, ends: tuple[float, float],
    variable: str, progress: Callable[[str], None],
) -> ErrorRange:  # fmt: skip
    """Measure a kernel while one number of `flat` moves between two ends. `at` builds its argument."""
    low, high = ends
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ArgumentError(f"a range from {low:g} to {high:g}", do="give a lower end below the upper one")
    exact, errors = by_digits(kernel, DIGITS), []
    xs = np.linspace(low, high, POINTS).tolist()
    for count, x in enumerate(xs):
        if count % 10 == 0:
            progress(f"{count} of {POINTS} points")
        point = [*flat[:index], x, *flat[index + 1 :]]
        result = kernel(at(point))
        values = flat_floats(result.toarray() if hasattr(result, "toarray") else result)
        known = [
            ulp_error(value, reference.middle)
            for value, reference in zip(values, exact(point), strict=True)
            if reference.radius == 0 and math.isfinite(rounded(reference.middle))
        ]
        errors.append(max(known, default=math.nan))
    return ErrorRange(variable, low, high, tuple(xs), tuple(errors))


def losses(rows: Graph, results: Sequence[int], inputs: Sequence[int], point: Sequence[float]) -> tuple[Loss, ...]:
    """Return the operations that lose most digits at a point, worst first.

    >>> from symad.tracing.trace import trace
    >>> traced = trace(lambda x: (1 + x) - 1, 0.1)
    >>> [loss] = losses(traced.graph, traced.outputs.flat, traced.inputs.flat, [1e-9])
    >>> loss.ulp > 1e7
    True
    """
    order = reachable(rows, list(results))
    try:
        exact = as_exact(dict(zip(inputs, point, strict=True)), DIGITS)
        evaluate(rows, order, exact, "reference", DIGITS)
    except (WorkbenchError, ArithmeticError, ValueError, TypeError):
        return ()
    losing = []
    for row in order:
        operands = rows.operands[row]
        if operands and not rows.is_boolean(row) and not any(rows.is_boolean(operand) for operand in operands):
            known = {operand: rounded(exact[operand]) for operand in operands if not is_constant(rows, operand)}
            (value,) = evaluate(rows, [row], known)
            ulp = ulp_error(float(value), exact[row])
            if LEAST_LOSS < ulp < math.inf:
                losing.append(Loss(row, ulp, float(value)))
    return tuple(sorted(losing, key=lambda loss: -loss.ulp)[:LOSSES])


def _ulp(error: float) -> str:
    return f"{error:.3g} ULP" if error < 1e6 else f"{error:.2e} ULP"
