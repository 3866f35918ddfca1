"""`symad hessian`: one function through the whole pipeline, every stage counted, the result checked."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

from codegen import Kernel
from codegen.ir.sparsity import spy
from codegen.loops.roll import Roll
from codegen.options import Accuracy, Tier
from symad.checking.verification.verify import Verification, compare_exact, flat_floats
from symad.commands.build_stages import (
    DIGITS,
    Stage,
    Stopwatch,
    check_finite,
    check_pattern,
    exact_matrix,
    fitted,
    show_progress,
    table,
    time_call,
)
from symad.commands.loops import SHOWN_LOOPS, LoopStudy, loop_report, study_loops, ways
from symad.commands.showing import load_function
from symad.compiling.native import carry_out
from symad.compiling.plan import CompilationPlan
from symad.compiling.planning import plan
from symad.display.printers import Latex
from symad.display.shown import write_text
from symad.display.terminal import terminal_width
from symad.errors import ArgumentError
from symad.tracing.values.sparse_matrix import Triangle
from symad.transforms.first_order import HessianMode, hessian

MODES = ("auto", "edge", "dyadic", "fwd-rev", "rev-rev", "rev-fwd", "fwd-fwd")
ACCURACY = ("strict", "fast")
OTHER_ROUTE: dict[str, HessianMode] = {"fwd-rev": "edge"}  # the check takes another mode than the kernel


def add_command(commands: Any) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "hessian",
        help="trace, differentiate, compile and check the Hessian of a scalar function",
        description="Trace FUNCTION at the example point its file gives (argument defaults or example_args), take its "
        "Hessian in the first argument, compile it, and check every entry against 50 digits.",
    )
    command.add_argument("target", metavar="FILE.py:FUNCTION")
    command.add_argument("--mode", choices=MODES, default="auto", help="how the two derivatives are taken")
    command.add_argument("--sparse", action="store_true", help="print the packed non-zeros instead of the matrix")
    command.add_argument("--fast", action="store_true", help="compile quickly, run slower")
    command.add_argument(
        "--accuracy", choices=ACCURACY, default="strict", help="fast: fewer operations, other rounding"
    )
    command.add_argument(
        "--roll", choices=("auto", "never", "always"), default="auto", help="whether what repeats becomes loops"
    )
    command.add_argument("--emit", choices=tuple(_EMITTERS), help="print the kernel or its let form after the report")
    command.add_argument(
        "--output", metavar="FILE", type=Path, help="write what --emit gives, or the matrix, to a file"
    )
    command.add_argument("--max-seconds", type=float, default=300.0, help="give up after this time (default 300)")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Carry out the command; exit status 0."""
    function, arguments = load_function(options.target)
    how: dict[str, Any] = {
        "name": options.target.rpartition(":")[2], "tier": "fast" if options.fast else "default",
        "accuracy": options.accuracy,
    }  # fmt: skip
    straight, timed = _straight_option(options), Stopwatch(show_progress)
    planned = timed(
        "trace + differentiate", lambda: _planned(function, arguments, options.mode, options.roll, bool(straight))
    )
    found = (
        study_loops(function, arguments, planned, timed, **how)
        if planned.chosen == "rolled"
        else study(function, arguments, planned, timed, mode=options.mode, **how)
    )
    show_progress("")
    told = report(found, straight) if isinstance(found, Study) else loop_report(found)
    print(fitted(told, terminal_width()) if sys.stdout.isatty() else told)
    text = emitted(found, options.emit) if options.emit else values(found, options.sparse)
    if options.output is not None:
        write_text(options.output, text)
        print(f"\nwritten: {options.output}")
    elif options.emit or options.sparse:
        print("\n" + text)
    return 0


def _straight_option(options: argparse.Namespace) -> str:
    """Return the option that asks for straight lines, "" where none does; ArgumentError if loops are asked for too."""
    asked = {"roll": options.roll == "never", "mode": options.mode != "auto", "emit": options.emit in ("let", "latex")}
    option = next((f"--{name} {getattr(options, name)}" for name in asked if asked[name]), "")
    if option and options.roll == "always":
        raise ArgumentError(
            f"--roll always with {option}", why="that is of straight lines", do="leave out one of the two"
        )
    return option


def _planned(
    function: Callable[..., Any], arguments: tuple[Any, ...], mode: HessianMode, roll: Roll, straight: bool
) -> CompilationPlan:
    """Return the plan of the lower triangle, or of the whole matrix where that is swept, which is its own triangle."""
    if straight:
        sparse: Triangle | bool = "lower" if mode in ("auto", "edge", "dyadic") else False
        return plan(hessian(function, mode=mode, sparse=sparse), *arguments, strategy="straight")
    if roll == "auto":
        dense = plan(hessian(function), *arguments)
        if dense.chosen == "sweep":
            return dense
    return plan(hessian(function, sparse="lower"), *arguments, roll=roll)


@dataclass(frozen=True)
class Study:
    """What `symad hessian` found out about a function: stages, kernel, pattern, values, check."""

    name: str
    planned: CompilationPlan
    kernel: Kernel
    rows: Any
    columns: Any
    matrix: Any
    verification: Verification
    other: str
    call_seconds: float
    stages: list[Stage]

    @property
    def values(self) -> Any:
        """The entries at `rows` and `columns`."""
        return self.matrix[self.rows, self.columns]

    @property
    def places(self) -> tuple[Any, Any]:
        """Rows and columns of the entries that are stored."""
        return self.rows, self.columns


def study(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    planned: CompilationPlan,
    timed: Stopwatch,
    *,
    name: str,
    mode: HessianMode = "auto",
    tier: Tier = "default",
    accuracy: Accuracy = "strict",
) -> Study:
    """Compile, time and check the Hessian of a scalar function in its first argument, as it is planned.

    ArgumentError when the Hessian is not finite at the arguments.
    """
    kernel: Kernel = timed("compile", lambda: carry_out(planned, tier=tier, accuracy=accuracy, cache=False))
    size = len(flat_floats(arguments[:1]))
    rows, columns = kernel.sparsity or np.nonzero(np.tril(np.ones((size, size))))
    packed = np.asarray(kernel(*arguments))
    values = packed if kernel.sparsity else packed.reshape(size, size)[rows, columns]
    check_finite(values, rows, columns)
    other = "edge" if planned.chosen == "sweep" else OTHER_ROUTE.get(mode, "fwd-rev")
    exact = timed(f"check: {other} in {DIGITS} digits", lambda: exact_matrix(function, arguments, other))
    check_pattern(exact, rows, columns)
    verification = compare_exact(values.tolist(), exact[rows, columns].tolist())
    seconds = time_call(kernel, arguments)
    matrix = _full(values, rows, columns, size)
    return Study(name, planned, kernel, rows, columns, matrix, verification, other, seconds, timed.stages)


def report(found: Study, straight: str = "") -> str:
    """Return the study as text: stage table, pattern, check; `straight` is the option that asked for straight lines."""
    stats = found.kernel.stats
    lines = [f"Hessian of {found.name}, {found.matrix.shape[0]} variables", ""]
    lines += table(("stage", "nodes", "operations", "seconds"), [stage.cells() for stage in found.stages])
    lines += ["", *_passes(found.kernel)]
    lines += [
        f"operations before CSE  {stats.operations_before:.6g} (every shared expression written out)",
        f"operations after CSE   {stats.operations_after}",
        f"machine operations     {stats.total} ({stats.fused} multiplications go into fused multiply-adds)",
        f"non-zeros              {len(found.rows)} in the lower triangle, of {_lower(found.matrix.shape[0])}",
        f"time per call          {found.call_seconds * 1e6:.3g} us",
    ]
    lines += ways(found.planned)
    lines.append("loops                  " + ("\n" + " " * 23).join(_loops(found.planned, straight)))
    lines.append("")
    rows, columns = np.concatenate([found.rows, found.columns]), np.concatenate([found.columns, found.rows])
    lines += ["sparsity pattern:", spy(rows, columns, found.matrix.shape), ""]
    lines += [f"check against {found.other} evaluated in {DIGITS} digits: {found.verification.statement}"]
    return "\n".join(lines)


def _loops(planned: CompilationPlan, straight: str) -> list[str]:
    """The loops that were found, why none are compiled, and which loops are carried out."""
    why = straight or planned.refused.get("rolled", "")  # prices are shown above
    return [*planned.lines[:SHOWN_LOOPS], *planned.carried_out, f"{planned.choice}{': ' * bool(why)}{why}"]


def _passes(kernel: Kernel) -> list[str]:
    """The passes of accuracy "fast" that saved operations; none in "strict"."""
    saved = [f"{name} {before} -> {after}" for name, before, after in kernel.stats.passes if after != before]
    return [f"passes                 {', '.join(saved)}"] if saved else []


def emitted(found: Study | LoopStudy, what: str) -> str:
    """Return LLVM IR, assembly, the let form, or its LaTeX."""
    return _EMITTERS[what](found)


def values(found: Study | LoopStudy, sparse: bool) -> str:
    """Return the Hessian's numbers as text: the matrix, or one line `row column value` for each stored entry."""
    if not sparse:
        return "\n".join(" ".join(repr(float(value)) for value in row) for row in found.matrix) + "\n"
    rows, columns = found.places
    places = zip(rows.tolist(), columns.tolist(), found.values.tolist(), strict=True)
    return "".join(f"{i} {j} {value!r}\n" for i, j, value in places)


def _let_lines(found: Study) -> list[tuple[sp.Symbol, sp.Expr]]:
    traced = found.planned.candidate.traced
    assert traced is not None  # --emit let asks for straight lines
    replacements, reduced = traced.let()
    size = found.matrix.shape[0]
    pattern = zip(found.rows.tolist(), found.columns.tolist(), strict=True)
    places = pattern if len(reduced) == len(found.rows) else np.ndindex(size, size)
    entries = [(sp.Symbol(f"H[{i},{j}]"), value) for (i, j), value in zip(places, reduced, strict=True)]
    return [*replacements, *entries]


def _let_text(found: Study) -> str:
    return "\n".join(f"{name} = {value}" for name, value in _let_lines(found)) + "\n"


def _let_latex(found: Study) -> str:
    latex = Latex().doprint  # x0 is not x_0
    lines = [
        (name.name if name.name.startswith("H[") else latex(name), latex(value)) for name, value in _let_lines(found)
    ]
    body = [name.replace("H[", "H_{").replace("]", "}") + " &= " + value for name, value in lines]
    return "\\begin{align*}\n" + " \\\\\n".join(body) + "\n\\end{align*}\n"


_EMITTERS: dict[str, Callable[[Any], str]] = {
    "llvm": lambda found: found.kernel.llvm,
    "asm": lambda found: found.kernel.assembly,
    "let": _let_text,
    "latex": _let_latex,
}


def _lower(size: int) -> int:
    return size * (size + 1) // 2


def _full(values: Any, rows: Any, columns: Any, size: int) -> Any:
    matrix = np.zeros((size, size))
    matrix[rows, columns] = matrix[columns, rows] = values
    return matrix
