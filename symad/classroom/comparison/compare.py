"""`compare`: one derivative by every route, with the error and the cost of each."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from codegen.functions.reference_functions import precision
from codegen.machine.batches.batch_run import Progress
from codegen.records import dataclass
from symad.classroom.comparison.comparison_problem import ComparisonProblem, derivative_name, problem_of, whole
from symad.classroom.comparison.comparison_rows import Measures, Row, row_of
from symad.classroom.comparison.differences import Kind, derivatives, standard_step
from symad.classroom.comparison.identity import samples_of
from symad.classroom.comparison.reference import Enclosure, Reference, enclosure_of, reference_of
from symad.classroom.comparison.routes import COMPLEX_STEP, Route, routes, with_complex_step
from symad.classroom.drawing.chart import line_chart
from symad.classroom.drawing.growth import Growth, growth
from symad.classroom.verification.verify import compare_exact
from symad.compiling.plan import time_text
from symad.display.document import Cell, Document, Formula, Heading, Marked, Paragraph, Table, inlines
from symad.display.shown import Shown
from symad.display.styles import Style
from symad.errors import InvariantError, WorkbenchError
from symad.extras import optional
from symad.limits import time_limit
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.calling.user_place import refusal
from symad.tracing.trace import Trace

STEPS = tuple(10.0 ** (-half / 2) for half in range(2, 33))  # from 0.1 down to 1e-16
_KINDS: tuple[Kind, Kind] = ("forward", "central")
_LARGE_AND_SMALL = "Large steps truncate, small ones cancel; the rule balances the two."
_NOTHING = " A complex step subtracts nothing, and may be as small as it likes."


@dataclass(frozen=True)
class StepErrors(Shown):
    """Relative errors of differences and of the complex step at each of STEPS, and the standard steps."""

    name: str
    order: int
    errors: dict[str, tuple[float, ...]]
    standard: dict[str, float]

    @property
    def title(self) -> str:
        return f"{derivative_name(self.order)} of {self.name}: error over step"

    def document(self) -> Document:
        """Return the chart, and for each method its best step and its standard step."""
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


@public_api
def step_errors(f: Any, x: Any, order: int = 1) -> StepErrors:
    """Return the relative error of differences at a point for many steps: the V curve. f and x as for `compare`.

    Steps are parts of max(|x|, 1); the error is the largest absolute one over the largest derivative. ArgumentError
    where f has no derivative, or where all derivatives are 0.

    >>> result = step_errors(np.exp, 1.0)
    >>> sorted(result.errors), min(result.errors["complex step"]) < 1e-15 < min(result.errors["central"]) < 1e-9
    (['central', 'complex step', 'forward'], True)
    """
    problem = problem_of(f, x, order, 10.0)
    with precision(15):  # mpmath's precision is global
        exact = reference_of(problem)
    if exact.refusal or not any(exact.values):
        why = exact.refusal or "all derivatives of this order are 0 here, so there is no relative error"
        raise refusal(f"the error of differences of {problem.name}", why, "move the point")
    scale = np.maximum(np.abs(problem.flat), 1.0)
    errors: dict[str, tuple[float, ...]] = {}
    standard: dict[str, float] = {}
    with np.errstate(all="ignore"):
        for name, method, rule in _methods(problem):
            errors[name] = tuple(compare_exact(method(step * scale).tolist(), exact.values).scaled for step in STEPS)
            standard[name] = rule
    return StepErrors(problem.name, order, errors, standard)


def _methods(problem: ComparisonProblem) -> Iterator[tuple[str, Callable[[Any], Any], float]]:
    """Yield the name, the derivatives as a function of the step, and the standard step of each method."""
    for kind in _KINDS:
        rule = float(standard_step(kind, problem.order, np.ones(1))[0])
        yield kind, partial(derivatives, problem.kernel.call, problem.flat, problem.order, kind), rule
    if problem.order == 1:
        try:
            call = with_complex_step(problem)
        except InvariantError:
            raise
        except WorkbenchError:
            return  # a function that treats complex numbers differently
        yield "complex step", partial(call, problem.flat), COMPLEX_STEP


STYLES: dict[str, Style] = {
    "proved": "right", "tested": "right", "agrees": "right", "wrong": "wrong", "inaccurate": "strong",
    "no derivative": "strong", "no number": "strong", "failed": "muted", "not installed": "muted",
}  # fmt: skip
ABOUT_COLUMNS = (
    "Modes: F forward, R reverse, outermost first. ULP: the largest error in units of the last place, without entries "
    "below 1.5e-8 of the largest one; those without a right digit are counted as lost. Operations are "
    "those of one call; tree and graph are nodes of the formula, with equal parts repeated and shared."
)


@dataclass(frozen=True)
class Comparison(Shown):
    """The rows of `compare`, their reference, f itself if it is short, and plots on request."""

    name: str
    x: Any
    order: int
    reference: Reference
    enclosure: Enclosure
    rows: tuple[Row, ...]
    formula: sp.Expr | None = None
    times: bool = True
    pictures: Document = ()

    def __getitem__(self, route: str) -> Row:
        """Return the row of a route by its name; KeyError if there is none."""
        return {row.route: row for row in self.rows}[route]

    def __bool__(self) -> bool:
        """Whether no route is wrong."""
        return not self.wrong

    @property
    def wrong(self) -> tuple[str, ...]:
        """The routes whose formula is not the derivative of f."""
        return tuple(row.route for row in self.rows if row.verdict == "wrong")

    @property
    def title(self) -> str:
        return f"{derivative_name(self.order)} of {self.name} by every route"

    def document(self) -> Document:
        """Return the table of routes, the exact value, and the reasons for the verdicts."""
        return (
            Heading(self.title, 1),
            *([Formula(self.formula, sp.Symbol(self.name))] if self.formula is not None else []),
            Paragraph(self._about()),
            *([Paragraph(Marked(f"wrong: {', '.join(self.wrong)}", "wrong"))] if self.wrong else []),
            Table(*self.table()),
            Paragraph(ABOUT_COLUMNS + (" Times are of this machine." if self.times else "")),
            Heading("What the verdicts rest on"),
            Table((), tuple(_reasons(self.rows)), "ll"),
            *self.pictures,
        )

    def table(self) -> tuple[tuple[Cell, ...], tuple[tuple[Cell, ...], ...], str]:
        """Return header, rows and alignment. Values are only for a scalar, times only if measured."""
        scalar = all(len(row.values) <= 1 for row in self.rows)
        none_lost = scalar or not any(row.lost for row in self.rows)
        left_out = {"value": not scalar, "lost": none_lost, "build": not self.times, "call": not self.times}
        columns = [column for column in COLUMNS if not left_out.get(column[0])]
        header: tuple[Cell, ...] = tuple(name for name, _, _ in columns)
        rows = tuple(tuple(cell(row) for _, _, cell in columns) for row in self.rows)
        return header, rows, "".join(side for _, side, _ in columns)

    def _about(self) -> str:
        point = np.array2string(np.asarray(self.x), threshold=8, precision=6)
        if self.reference.refusal:
            return f"At {point}: {self.reference.refusal}."
        exact = self.reference.values
        shown = ", ".join(mpmath.nstr(value, 20 if len(exact) == 1 else 8) for value in exact[:6])
        more = f", ... ({len(exact)} entries)" if len(exact) > 6 else ""
        return f"At {point}, exactly {shown}{more}: {self.reference.source}. {self._enclosed()}"

    def _enclosed(self) -> str:
        """Return a sentence that compares the enclosure with the exact values."""
        if not self.enclosure.middles:
            return f"No enclosure by ball arithmetic: {self.enclosure.refusal}."
        says = "encloses the same values" if self.enclosure.contains(self.reference.values) else "encloses OTHER values"
        return f"Ball arithmetic {says}, with radii up to {mpmath.nstr(max(self.enclosure.radii), 1)}."

    def markdown(self) -> str:
        """Return the table of the routes in Markdown."""
        return markdown_table(*self.table())

    def csv(self) -> str:
        """Return all columns as comma-separated values."""
        text, records = io.StringIO(), self.records()
        writer = csv.DictWriter(text, list(records[0]) if records else ["route"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return text.getvalue()

    def records(self) -> list[dict[str, Any]]:
        """Return one dict of plain values for each route; whole numbers are exact."""
        return [
            {
                "route": row.route, "family": row.family, "verdict": row.verdict,
                "value": row.values[0] if len(row.values) == 1 else None, "ulp": row.ulp, "ulp_bound": row.ulp_bound,
                "digits": row.digits, "absolute_error": row.absolute, "lost": row.lost, "operations": row.operations,
                "tree": row.sizes and row.sizes.tree, "graph": row.sizes and row.sizes.graph,
                "build_seconds": row.build_seconds, "call_seconds": row.call_seconds, "reason": row.reason,
            }
            for row in self.rows
        ]  # fmt: skip

    def dataframe(self) -> Any:
        """Return the routes as a pandas data frame (extra: symad[table])."""
        return optional("pandas", "a comparison as a data frame").DataFrame(self.records())

    def more_forms(self) -> dict[str, Any]:
        return {".md": lambda: self.markdown() + "\n", ".csv": self.csv}


def _seconds(taken: float | None) -> str:
    return "" if taken is None else time_text(1e9 * taken)


def ulp_text(row: Row) -> str:
    """Return the error of a row: in units of the last place, or absolute where the exact value is 0."""
    if row.ulp is not None:
        return f"{row.ulp:.2g}" if row.ulp > 1e-6 else "0"
    return "" if row.absolute is None else f"{row.absolute:.1g} abs."


COLUMNS: tuple[tuple[str, str, Callable[[Row], Cell]], ...] = (
    ("route", "l", lambda row: row.route),
    ("verdict", "l", lambda row: Marked(row.verdict, STYLES[row.verdict])),
    ("value", "l", lambda row: f"{row.values[0]:.10g}" if row.values else ""),
    ("ULP", "r", ulp_text),
    ("lost", "r", lambda row: whole(row.lost)),
    ("operations", "r", lambda row: whole(row.operations)),
    ("tree", "r", lambda row: whole(row.sizes.tree if row.sizes else None)),
    ("graph", "r", lambda row: whole(row.sizes.graph if row.sizes else None)),
    ("build", "r", lambda row: _seconds(row.build_seconds)),
    ("call", "r", lambda row: _seconds(row.call_seconds)),
)


def _reasons(rows: Sequence[Row]) -> list[tuple[Cell, ...]]:
    """Return each reason once, with its routes."""
    routes_of: dict[str, list[str]] = {}
    for row in rows:
        routes_of.setdefault(row.reason, []).append(row.route)
    return [("; ".join(names), reason) for reason, names in routes_of.items()]


def markdown_table(header: Sequence[Cell], rows: Sequence[Sequence[Cell]], align: str) -> str:
    r"""Return a table in Markdown.

    >>> print(markdown_table(("a", "b"), [("1", "x|y")], "rl"))
    | a | b |
    |--:|---|
    | 1 | x\|y |
    """
    rules = "|".join("--:" if side == "r" else "---" for side in align)
    lines = ["| " + " | ".join(map(_plain, cells)) + " |" for cells in (header, *rows)]
    return "\n".join([lines[0], f"|{rules}|", *lines[1:]])


def _plain(cell: Cell) -> str:
    parts = (part.content if isinstance(part, Marked) else part for part in inlines(cell))
    return "".join(map(str, parts)).replace("|", "\\|")


@public_api
def compare(
    f: Any, x: Any, order: int = 1, *, only: Sequence[str] | None = None, max_seconds: float = 10.0,
    times: bool = True, plots: bool = False, progress: Progress | None = None,
) -> Comparison:  # fmt: skip
    """Compare every route to the derivatives of an order of a scalar function at a point.

    f is a function and x its number or array; or f is a SymPy expression or a formula in a string, and x a dict
    {symbol: value}. A function of a vector has a gradient, a Hessian, and from order 3 on the whole tensor. Routes are
    `sympy.diff` with two kinds of lambdify, every mix of forward (F) and reverse (R) mode up to order 3, edge pushing
    and dyads, Taylor coefficients, interpolation, differences, the complex step, and other libraries where they are
    installed; `only` keeps those whose name starts so. A route that fails, or takes longer than `max_seconds`, is a
    row with the reason. `times=False` leaves building and calling times out, `plots=True` adds `step_errors` and
    `growth`. `progress(routes taken, routes)` is called after each.

    The exact values are differences of f itself in hundreds of digits: no rule of differentiation takes part. Verdicts:
    "proved" (algebra shows that the formula equals that of sympy.diff), "tested" (it agrees to 30 digits at random
    points), "agrees" (a route without a formula has the digits it should have at random points), "inaccurate" (it has
    few digits, here or at all random points), "wrong" (as a formula, in 50 digits, it is not the derivative), "no
    derivative" (f has none here: a kink, the edge of its domain), "no number" (the result is nan or infinite),
    "failed", "not installed". The truth value of the result says whether no route is wrong.

    >>> table = compare(lambda x: np.sin(x) * np.exp(x), 0.5, 2, only=["sympy.diff, lambdify", "AD", "differences"])
    >>> [(row.route, row.verdict) for row in table.rows][:4]
    [('sympy.diff, lambdify', 'tested'), ('AD FF', 'proved'), ('AD FR', 'proved'), ('AD RF', 'proved')]
    >>> table["AD FR"].ulp < 2 < 1e4 < table["differences central"].ulp
    True
    """
    problem = problem_of(f, x, order, max_seconds)
    with precision(15):  # one comparison at a time: mpmath's precision is global
        return _compared(problem, (f, x), only, times, plots, progress)


def _compared(
    problem: ComparisonProblem, function_and_point: tuple[Any, Any], only: Sequence[str] | None, times: bool,
    plots: bool, progress: Progress | None,
) -> Comparison:  # fmt: skip
    chosen = _chosen(problem, only)
    with time_limit(10 * problem.seconds, "compare: values of f in hundreds of digits"):
        measures = Measures(problem, reference_of(problem), samples_of(problem), times)
    rows: list[Row] = []
    formulas: dict[str, Trace] = {}
    for name, variant, route in chosen:
        provable = any(known.startswith("sympy.diff") for known in formulas)
        row, exact = row_of(replace(measures, provable=provable), name, variant, route)
        rows.append(row)
        if progress is not None:
            progress(len(rows), len(chosen))
        if exact is not None:
            formulas[name] = exact
    none = Enclosure((), (), "no formula is exact")
    enclosure = next((enclosure_of(formula, problem) for formula in formulas.values()), none)
    if enclosure.middles:
        rows = [row if row.ulp is None else replace(row, ulp_bound=enclosure.ulp_bound(row.values)) for row in rows]
    return Comparison(
        problem.name, problem.x, problem.order, measures.reference, enclosure, tuple(rows), problem.short_formula,
        times, _pictures(*function_and_point, problem) if plots else (),
    )  # fmt: skip


def _chosen(problem: ComparisonProblem, only: Sequence[str] | None) -> list[tuple[str, str, Route]]:
    """Return the routes whose names begin with `only`; ArgumentError if there are none."""
    known = routes(problem.order, np.shape(problem.x))
    if only is None:
        return known
    begins = (only,) if isinstance(only, str) else tuple(only)
    if chosen := [route for route in known if route[0].startswith(begins)]:
        return chosen
    names = ", ".join(name for name, _, _ in known)
    raise refusal(f"only={only!r}", "no route begins so", f"there are {names}")


def _pictures(f: Any, x: Any, problem: ComparisonProblem) -> Document:
    """Return the plots, or the reason why there are none."""
    blocks: Document = ()
    for plot in (lambda: step_errors(f, x, problem.order), lambda: _growth(problem)):
        try:
            blocks += plot().document()
        except WorkbenchError as error:
            blocks += (Paragraph(str(error).splitlines()[0]),)
    return blocks


def _growth(problem: ComparisonProblem) -> Growth:
    """Return the growth of operations with the order, for a function of an array along the diagonal."""
    ones = problem.shaped(np.ones(problem.inputs))
    f, x = (problem.function, problem.x) if problem.scalar else (lambda t: problem.function(t * ones), 0.0)
    return replace(growth(f, x, max(problem.order, 4)), name=problem.name)
