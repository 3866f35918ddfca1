"""`symad hessian`: one function through the whole pipeline, with every stage counted and the result checked."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

import symad.tracing.values.containers as containers
from codegen import Kernel
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.ir.sparsity import spy
from codegen.loops.roll import Roll
from codegen.options import Accuracy, Tier
from codegen.records import dataclass
from symad.classroom.comparison.comparison_rows import calling_time
from symad.classroom.formulas.targets import load_function
from symad.classroom.verification.balls import flat_floats
from symad.classroom.verification.verify import compare_exact, exact_values
from symad.commands.showing import add_accuracy, add_json, add_seconds, print_json
from symad.compiling.candidates import Primal
from symad.compiling.native import carry_out
from symad.compiling.plan import CompilationPlan
from symad.compiling.planning import plan
from symad.derivatives.loops.pullback import gradient
from symad.derivatives.loops.pushforward import pushforward
from symad.display import latex
from symad.display.document import Code, Document, Formula, Heading, Paragraph, Table
from symad.display.shown import Shown, write_text
from symad.errors import ArgumentError
from symad.tracing.trace import trace
from symad.tracing.values.node_trees import object_array
from symad.tracing.values.sparse_matrix import Triangle
from symad.transforms.first_order import HessianMode, hessian

MODES = ("auto", "edge", "dyadic", "fwd-rev", "rev-rev", "rev-fwd", "fwd-fwd")
FEW = 500_000  # operations of a function with loops times variables: 50 digits take seconds
DIGITS = 50
DIRECTIONS = 3
WORDS = {  # of the stages that a kernel has timed; of the encoder three
    "lower": "lower, share", "schedule": "fuse, schedule", "emit": "emit LLVM IR", "parse": "parse",
    "codegen": "generate code", "group": "put side by side", "encode": "encode machine code",
}  # fmt: skip


def declare_hessian(command: argparse.ArgumentParser) -> None:
    """Declare the options of `symad hessian`."""
    command.add_argument("target", metavar="FILE.py:FUNCTION")
    command.add_argument("--mode", choices=MODES, default="auto", help="how the two derivatives are taken")
    command.add_argument("--sparse", action="store_true", help="print the packed non-zeros instead of the matrix")
    command.add_argument("--fast", action="store_true", help="compile quickly, run slower")
    add_accuracy(command)
    what = "whether what repeats becomes loops"
    command.add_argument("--roll", choices=("auto", "never", "always"), default="auto", help=what)
    command.add_argument("--emit", choices=tuple(_EMITTERS), help="print the kernel or its let form after the report")
    what = "write what --emit gives, or the matrix, to a file"
    command.add_argument("--output", metavar="FILE", type=Path, help=what)
    add_seconds(command)
    add_json(command)


def run_hessian(options: argparse.Namespace) -> int:
    """Carry out the command; exit status 0."""
    function, arguments = load_function(options.target)
    name, tier = options.target.rpartition(":")[2], "fast" if options.fast else "default"
    mode, straight, timed = options.mode, _is_straight(options), Stopwatch(options.progress.stage)
    planned = timed("trace + differentiate", lambda: _planned(function, arguments, mode, options.roll, straight))
    how: dict[str, Any] = {"name": name, "mode": mode, "tier": tier, "accuracy": options.accuracy}
    result = study(function, arguments, planned, timed, **how)
    options.progress.end()
    if options.json:
        if options.emit or options.output is not None:
            raise ArgumentError("--json with --emit or --output", do="leave out one of the two")
        print_json("hessian", {**vars(result), "chosen": result.planned.chosen, "stages": timed.stages})
        return 0
    print(result)
    text = _EMITTERS[options.emit](result) if options.emit else values(result, options.sparse)
    if options.output is not None:
        write_text(options.output, text)
        print(f"\nwritten: {options.output}")
    elif options.emit or options.sparse:
        print("\n" + text)
    return 0


def _is_straight(options: argparse.Namespace) -> bool:
    """Whether an option asks for straight lines; ArgumentError if loops are asked for too."""
    asked = {"roll": options.roll == "never", "mode": options.mode != "auto", "emit": options.emit in ("let", "latex")}
    option = next((f"--{name} {getattr(options, name)}" for name in asked if asked[name]), "")
    if option and options.roll == "always":
        why, do = "that is of straight lines", "leave out one of the two"
        raise ArgumentError(f"--roll always with {option}", why=why, do=do)
    return bool(option)


def _planned(
    function: Callable[..., Any], arguments: tuple[Any, ...], mode: HessianMode, roll: Roll, straight: bool
) -> CompilationPlan:
    """Return the plan of the lower triangle, or of the whole matrix if it is swept."""
    if straight:
        sparse: Triangle | bool = "lower" if mode in ("auto", "edge", "dyadic") else False
        return plan(hessian(function, mode=mode, sparse=sparse), *arguments, strategy="straight")
    if roll == "auto":
        dense = plan(hessian(function), *arguments)
        if dense.chosen == "sweep":
            return dense
    return plan(hessian(function, sparse="lower"), *arguments, roll=roll)


@dataclass(frozen=True)
class Stage:
    """One row of the stage table; sizes are of the whole graph after the stage."""

    name: str
    seconds: float
    nodes: int | None = None
    operations: int | None = None

    def cells(self) -> tuple[str, str, str, str]:
        nodes, operations = ("" if size is None else str(size) for size in (self.nodes, self.operations))
        return (self.name, nodes, operations, f"{self.seconds:.3f}")


class Stopwatch:
    """Runs stages one by one and keeps the seconds and sizes of each."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self.progress = progress
        self.stages: list[Stage] = []

    def __call__(self, stage: str, action: Callable[[], Any]) -> Any:
        """Return the result of the action. The stages inside compiling are those that the kernel has timed."""
        self.progress(stage)
        start = perf_counter()
        result = action()
        seconds = perf_counter() - start
        if isinstance(result, CompilationPlan):
            traced = result.candidate.traced
            nodes = None if traced is None else len(traced.graph)
            self.stages.append(Stage(stage, seconds, nodes, result.candidate.written))
        elif isinstance(result, Kernel):
            stats = result.stats
            first, *others = (Stage(WORDS[name], taken) for name, taken in stats.seconds.items())
            self.stages += [replace(first, nodes=stats.nodes, operations=stats.total), *others]
            self.stages.append(Stage("link, call gate", seconds - sum(stats.seconds.values())))
        else:
            self.stages.append(Stage(stage, seconds))
        return result


@dataclass(frozen=True)
class HessianStudy(Shown):
    """The results of `symad hessian`. Values are those of the lower triangle, at `rows` and `columns`."""

    name: str
    planned: CompilationPlan
    kernel: Kernel
    rows: Any
    columns: Any
    values: NDArray[np.float64]
    size: int
    check: str
    call_seconds: float
    stages: list[Stage]

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The whole Hessian."""
        matrix = np.zeros((self.size, self.size))
        matrix[self.rows, self.columns] = matrix[self.columns, self.rows] = self.values
        return matrix

    @property
    def title(self) -> str:
        """The subject of the study."""
        return f"Hessian of {self.name}, {self.size} variables"

    def document(self) -> Document:
        """Return the stages, the plan, the sizes, the pattern, and the check."""
        rows, columns = np.concatenate([self.rows, self.columns]), np.concatenate([self.columns, self.rows])
        return (
            Heading(self.title, 1),
            Table(("stage", "nodes", "operations", "seconds"), tuple(map(Stage.cells, self.stages)), "lrrr"),
            *self.planned.document()[1:],
            Table((), tuple(self._sizes())),
            Paragraph("sparsity pattern:"),
            Code(spy(rows, columns, (self.size, self.size))),
            Paragraph(self.check),
        )

    def _sizes(self) -> Iterator[tuple[str, str]]:
        stats, rolled = self.kernel.stats, self.planned.candidate.rolled
        if saved := [f"{name} {before} -> {after}" for name, before, after in stats.passes if after != before]:
            yield "passes", ", ".join(saved)
        if rolled is None:
            yield "operations before CSE", f"{stats.operations_before:.6g} (every shared expression written out)"
            yield "operations after CSE", str(stats.operations_after)
        else:
            yield "operations written", f"{rolled.program.operations} in the bodies of the Hessian's loops"
            yield "operations carried out", f"{rolled.program.executed} a call"
        yield "machine operations", f"{stats.total} ({stats.fused} multiplications go into fused multiply-adds)"
        yield "non-zeros", f"{len(self.rows)} in the lower triangle, of {self.size * (self.size + 1) // 2}"
        yield "time per call", f"{self.call_seconds * 1e6:.3g} us"


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
) -> HessianStudy:
    """Compile, time and check the Hessian of a scalar function in its first argument, by its plan.

    ArgumentError when the Hessian is not finite at the arguments.

    >>> planned = plan(hessian(lambda x: x**4), 1.0)
    >>> study(lambda x: x**4, (1.0,), planned, Stopwatch(lambda stage: None), name="f").matrix
    array([[12.]])
    """
    kernel: Kernel = timed("compile", lambda: carry_out(planned, tier=tier, accuracy=accuracy, cache=False))
    size = len(flat_floats(arguments[:1]))
    rows, columns = kernel.sparsity or np.nonzero(np.tril(np.ones((size, size))))
    packed = np.asarray(kernel(*arguments))
    values = packed if kernel.sparsity else packed.reshape(size, size)[rows, columns]
    _check_finite(values, rows, columns)
    check = _checked(function, arguments, planned, timed, mode, size, values, (rows, columns))
    seconds = calling_time(lambda given: kernel(*given), arguments)
    return HessianStudy(name, planned, kernel, rows, columns, values, size, check, seconds, timed.stages)


def _check_finite(values: Any, rows: Any, columns: Any) -> None:
    bad = np.nonzero(~np.isfinite(values))[0]
    if len(bad):
        raise ArgumentError(
            f"the Hessian is not finite at the example point: entry ({rows[bad[0]]}, {columns[bad[0]]}) is "
            f"{values[bad[0]]}",
            why=f"{len(bad)} of {len(values)} entries are NaN or infinite",
            do="choose a point where the function is twice differentiable",
        )


def _checked(
    function: Callable[..., Any], arguments: tuple[Any, ...], planned: CompilationPlan, timed: Stopwatch,
    mode: HessianMode, size: int, values: NDArray[np.float64], places: tuple[Any, Any],
) -> str:  # fmt: skip
    """Return how right the values are, in words: against 50 digits, or where loops make that long, along directions."""
    primal = planned.primal if planned.chosen == "rolled" else None
    if primal is not None and primal.operations * size > FEW:
        worst = timed("check", lambda: _along_directions(primal, arguments, values, places))
        return (
            f"check against forward over reverse mode of the loops, along {DIRECTIONS} random directions: "
            f"off by {worst:.1e} of the largest value"
        )
    other: HessianMode = "edge" if planned.chosen == "sweep" or mode == "fwd-rev" else "fwd-rev"  # than the kernel's
    exact = timed(f"check: {other} in {DIGITS} digits", lambda: _exact_matrix(function, arguments, other, size))
    outside = np.tril(np.ones(exact.shape, dtype=bool))
    outside[places] = False
    for i, j in np.argwhere(outside):  # every entry outside the pattern has to be exactly zero on the other route
        if exact[i, j] != 0:
            raise ArgumentError(f"entry ({i}, {j}) is outside the pattern but not zero", why="a defect of symad")
    comparison = compare_exact(values.tolist(), exact[places].tolist())
    return f"check against {other} evaluated in {DIGITS} digits: {comparison.statement}"


def _exact_matrix(function: Callable[..., Any], arguments: tuple[Any, ...], mode: HessianMode, size: int) -> Any:
    values = exact_values(trace(hessian(function, mode=mode), *arguments), arguments, DIGITS)
    return object_array(values, (size, size))


def _along_directions(primal: Primal, arguments: tuple[Any, ...], values: NDArray[np.float64], places: Any) -> float:
    """Return how far packed values are from forward over reverse mode of the loops, along random directions."""
    rows, columns = places
    point = [np.asarray(array, dtype=float) for array in containers.flatten(arguments)[0]]
    second = pushforward(gradient(primal.program, [0]), [0])
    below, generator, worst = rows != columns, np.random.default_rng(0), 0.0
    for _ in range(DIRECTIONS):
        direction = generator.normal(size=point[0].shape)
        flat, size = direction.ravel(), direction.size
        product = np.bincount(rows, values * flat[columns], size)
        product += np.bincount(columns[below], values[below] * flat[rows[below]], size)
        expected = evaluate_rolled(second, [*point, direction])[1].ravel()
        worst = max(worst, float(np.max(np.abs(product - expected)) / np.max(np.abs(expected))))
    return worst


def values(result: HessianStudy, sparse: bool) -> str:
    """Return the Hessian's numbers as text: the matrix, or one line `row column value` for each stored entry."""
    if not sparse:
        return "\n".join(" ".join(repr(float(value)) for value in row) for row in result.matrix) + "\n"
    places = zip(result.rows.tolist(), result.columns.tolist(), result.values.tolist(), strict=True)
    return "".join(f"{i} {j} {value!r}\n" for i, j, value in places)


def _let(result: HessianStudy) -> tuple[Formula, ...]:
    traced = result.planned.candidate.traced
    assert traced is not None  # --emit let asks for straight lines
    replacements, reduced = traced.let()
    pattern = zip(result.rows.tolist(), result.columns.tolist(), strict=True)
    places = pattern if len(reduced) == len(result.rows) else np.ndindex(result.size, result.size)
    entries = [(sp.Symbol(f"H_{i}_{j}"), value) for (i, j), value in zip(places, reduced, strict=True)]
    return tuple(Formula(value, name) for name, value in (*replacements, *entries))


_EMITTERS: dict[str, Callable[[HessianStudy], str]] = {
    "llvm": lambda found: found.kernel.llvm,
    "asm": lambda found: found.kernel.assembly,
    "let": lambda found: "".join(f"{line.left} = {line.right}\n" for line in _let(found)),
    "latex": lambda found: latex.body(_let(found)),
}
