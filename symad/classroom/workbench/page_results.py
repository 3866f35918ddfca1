"""Results that only the page has: code with the effect of each line, a program before and after CSE, errors in a range.

The local error of an operation is the error of its result for exact operands rounded to doubles. It is large if the
operation amplifies that rounding, as a difference of nearly equal numbers does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen import Kernel
from codegen.evaluation.interpret import evaluate
from codegen.expressions.sympy_forms import rebuild
from codegen.ir.program import reachable
from codegen.records import dataclass
from symad.classroom.code_reading.llvm_lines import Machine, body_of, kind_of_ir
from symad.classroom.code_reading.machine_code import (
    Instruction,
    instructions_of,
    is_one_function,
    kind_of,
    located_assembly,
)
from symad.classroom.drawing.boxes import count_label, is_constant, tree_operations
from symad.classroom.drawing.chart import line_chart
from symad.classroom.explanation.explanation_lines import Variable
from symad.classroom.verification.balls import flat_floats
from symad.classroom.verification.exact import as_exact, by_digits, rounded, ulp_error
from symad.display.document import Block, Cell, Code, Columns, Document, Heading, Marked, Paragraph, Table
from symad.display.notation import counted
from symad.display.shown import Shown
from symad.errors import ArgumentError, WorkbenchError
from symad.graph.graph import Graph

MOST_LINES = 600  # of code
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class CodeListing(Shown):
    """The first function of a kernel in both languages; `marks` names the values that each line of IR computes."""

    lines: tuple[str, ...]
    marks: tuple[str, ...]
    instructions: tuple[Instruction, ...]
    straight: bool
    statement: str

    title = "Machine code"

    def document(self) -> Document:
        """Return both listings. Code with loops is shown without the effects of its lines."""
        shown = self.instructions[:MOST_LINES]
        if self.straight:
            ir = (self._row(k, line, kind_of_ir(line)) for k, line in enumerate(self.lines, 1))
            left: Block = Table((), tuple(ir), "rll")
            right: Block = Table((), tuple(self._row(i.line, i.text, kind_of(i.text)) for i in shown), "rll")
        else:
            left = Code("\n".join(self.lines[:MOST_LINES]), "llvm")
            right = Code("\n".join(instruction.text for instruction in shown), "asm")
        both = ((Heading("LLVM IR", 3), left), (Heading("Assembly", 3), right))
        return (Heading(self.title, 1), Paragraph(self.statement), Columns(both))

    def _row(self, line: int, text: str, effect: Cell) -> tuple[Cell, ...]:
        """Return a line of IR, or an instruction with the number of the line of IR that it was selected for."""
        mark = f"i{line} {self.marks[line - 1]}".strip() if 0 < line <= len(self.marks) else ""
        return (Marked(str(line or ""), "muted"), Marked(text, "code", nodes=mark), effect)


def code_listing(kernel: Kernel, points: Sequence[Sequence[float]], recognise: Callable[[Numbers], str]) -> CodeListing:
    """Return the code of a kernel. `recognise` returns the marks of the values with given numbers."""
    stats = kernel.stats
    if not is_one_function(kernel):
        statement = f"This kernel has {stats.strategy}: its code is shown as it is, and its lines are not linked."
        text = kernel.llvm.split("\n")
        plain = tuple(Instruction(line) for line in kernel.assembly.split("\n"))
        return CodeListing(tuple(text), ("",) * len(text), plain, straight=False, statement=statement)
    lines = body_of(kernel.llvm)[:MOST_LINES]
    columns = iter(np.array(points, dtype=float).T)  # of each argument's elements
    machine = Machine([list(islice(columns, math.prod(argument.shape))) for argument in kernel.program.inputs])
    marks = []
    for line in lines:
        lanes = [lane for lane in machine.line(line) if lane is not None and np.ndim(lane)]
        words = " ".join(recognise(np.asarray(lane, dtype=float)) for lane in lanes)
        marks.append(" ".join(dict.fromkeys(words.split())))
    located, texts = located_assembly(kernel), instructions_of(kernel.assembly)
    if [instruction.text for instruction in located] != texts:  # the kernel's own instructions have no known lines
        located = list(map(Instruction, texts))
    statement = (
        f"{counted(len(lines), 'line')} of LLVM IR, {counted(len(located), 'instruction')}, {stats.code_bytes} bytes. "
        f"The numbers on the left are lines of the IR; an instruction has that of the line it was selected for."
    )
    return CodeListing(tuple(lines), tuple(marks), tuple(located), straight=True, statement=statement)


MOST_ROWS = 200  # of a program that are listed


@dataclass(frozen=True)
class ProgramListing(Shown):
    """A program written out, with every use computed again, and with each value computed once.

    `names` has the names of the rows, `results` the rows of the results.
    """

    name: str
    rows: Graph
    names: Mapping[int, sp.Basic]
    results: tuple[int, ...]

    @property
    def title(self) -> str:
        return f"Program of the {self.name}"

    @property
    def before(self) -> int:
        """The operations of the written-out formula."""
        return tree_operations(self.rows, self.results)

    @property
    def after(self) -> int:
        """The operations of the program that computes each value once."""
        return sum(bool(self.rows.operands[row]) for row in reachable(self.rows, self.results))

    def document(self) -> Document:
        """Return the two programs side by side."""
        before, after = self.before, self.after
        times = f", {before / after:.3g} times as many" if after and before > after else ""
        written = (
            Heading("Written out", 3),
            Paragraph(f"{count_label(before)} operations{times}: every use of a value computes it again."),
            Table((), tuple(self._written_out()), "ll", _left_out(before)),
        )
        shared = (
            Heading("Equal parts shared", 3),
            Paragraph(f"{counted(after, 'operation')}: each value is computed once."),
            Table((), tuple(self._shared()), "lll", _left_out(after)),
        )
        return (Heading(self.title, 1), Columns((written, shared)))

    def _shared(self) -> Iterator[tuple[Cell, ...]]:
        order = [row for row in reachable(self.rows, self.results) if self.rows.operands[row]]
        uses = Counter(operand for row in order for operand in self.rows.operands[row])
        for row in order[:MOST_ROWS]:
            formula = rebuild(self.rows.heads[row], [self._symbol(operand) for operand in self.rows.operands[row]])
            notes = [f"used {uses[row]} times"] * (uses[row] > 1) + ["result"] * (row in self.results)
            yield (_cell(self._symbol(row), row), _cell(formula, row), ", ".join(notes))

    def _written_out(self) -> Iterator[tuple[Cell, ...]]:
        """Yield the lines of the expression tree, operands first, without recursion."""
        work: list[tuple[int, bool]] = [(row, False) for row in reversed(self.results)]
        done: list[sp.Basic] = []
        count = 0
        while work and count < MOST_ROWS:
            row, ready = work.pop()
            operands = self.rows.operands[row]
            if not operands:
                done.append(self._symbol(row))
            elif not ready:
                work.append((row, True))
                work += [(operand, False) for operand in reversed(operands)]
            else:
                parts = done[len(done) - len(operands) :]
                del done[len(done) - len(operands) :]
                count += 1
                done.append(Variable(f"t{count}", real=None if self.rows.is_boolean(row) else True))
                yield (_cell(done[-1], row), _cell(rebuild(self.rows.heads[row], parts), row))

    def _symbol(self, row: int) -> sp.Basic:
        return self.rows.atoms[row] if is_constant(self.rows, row) else self.names[row]


def _cell(content: sp.Basic, row: int) -> Cell:
    return Marked(content, "primal", nodes=f"n{row}")


def _left_out(count: int) -> str:
    return f"the first {MOST_ROWS} of {count_label(count)}" if count > MOST_ROWS else ""


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
        series = {"ULP": points}
        chart = line_chart(series, self.variable, "error in ULP", log_y=True, width=560, height=330, field=True)
        unknown = sum(map(math.isnan, self.errors))
        apart = f" {unknown} points have no exact number." if unknown else ""
        statement = f"Largest error {_ulp(self.errors[worst])} at {self.variable} = {self.xs[worst]!r}.{apart}"
        return (Heading(self.title, 1), chart, Paragraph(statement), *self._losses())

    def _losses(self) -> Document:
        if not self.losses:
            return (Paragraph("No operation loses digits there: the errors are those of rounding each once."),)
        names = {row: Marked(name, "primal", nodes=f"n{row}") for row, name in (self.names or {}).items()}
        rows = tuple((names[loss.row], _ulp(loss.ulp), f"{loss.value:.6g}") for loss in self.losses)
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
        pairs = [(value, known.middle) for value, known in zip(values, exact(point), strict=True) if known.radius == 0]
        known = [ulp_error(value, middle) for value, middle in pairs if math.isfinite(rounded(middle))]
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
