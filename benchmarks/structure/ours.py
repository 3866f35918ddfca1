"""symad on the rows: with loops as they are found, with loops always, and in straight lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

import numpy as np

import symad as sa
from benchmarks.peers.base import Candidate, Evaluator
from benchmarks.problems import Vector
from benchmarks.structure.cases import Case
from benchmarks.structure.flat_peers import row_pattern
from benchmarks.structure.problems import Function, momentum_step, settings
from codegen.loops import roll
from codegen.loops.roll import Roll
from symad import scan, sum_over
from symad.compiling import candidates

STAGES = {
    "trace_structured": ("trace", candidates),
    "plain_rows": ("detect", candidates),
    "find": ("detect", roll),
    "agree": ("detect", roll),
}  # functions on the clock, and where they are looked up


class Symad(Candidate):
    """symad with its defaults: it chooses between loops and straight lines."""

    name = "symad"
    package = "symad"
    call = "`kernel(x, out=buffer)`"
    roll: ClassVar[Roll] = "auto"
    accuracy: ClassVar[Literal["strict", "fast"]] = "strict"
    threads: ClassVar[int] = 1

    def build(self, problem: Any) -> Evaluator:
        case: Case = problem
        arguments = arguments_of(case, case.point)
        watch = Stopwatch()
        with watch.running():
            start = time.perf_counter()
            kernel: Any = sa.compile(
                derivative_of(case, self.layout), *arguments,
                roll=self.roll, accuracy=self.accuracy, threads=self.threads, cache=False,
            )  # fmt: skip
            watch.seconds["rest"] = time.perf_counter() - start - sum(watch.seconds.values())
        self.facts = _facts(kernel, watch.seconds, watch.found)
        output = kernel.program.outputs[0].shape
        values = np.empty(output)
        pattern = row_pattern(max(1, values.size))
        if kernel.sparsity is not None:
            pattern = kernel.sparsity.rows, kernel.sparsity.columns

        def bind(x: Vector) -> Callable[[], Any]:
            given = arguments_of(case, x)
            return (lambda: kernel(*given, out=values)) if output else lambda: kernel(*given)

        def read(result: object) -> Vector:
            return values.ravel() if output else np.atleast_1d(np.asarray(result, dtype=float))

        return Evaluator(bind, read, pattern, kernel.stats.executed)

    @property
    def layout(self) -> str:
        """Order of a sparse matrix's entries: as loops write them fastest."""
        return "regions"


class SymadFast(Symad):
    """symad as it chooses, with the functions of the fast accuracy: what `-ffast-math` is to C."""

    name = "symad, fast accuracy"
    accuracy = "fast"


class SymadThreads(Symad):
    """symad as it chooses, on two threads."""

    name = "symad, two threads"
    threads = 2


class SymadAlways(Symad):
    """symad, always with loops."""

    name = "symad, loops"
    roll = "always"


class SymadRows(SymadAlways):
    """symad with loops, the entries in the order of rows."""

    name = "symad, loops, by rows"
    layout = "coo"


class SymadNever(Symad):
    """symad in straight lines."""

    name = "symad, straight"
    roll = "never"
    layout = "coo"


def _facts(kernel: Any, seconds: dict[str, float], found: Any) -> dict[str, Any]:
    """Return what the tables say about a build."""
    stats = kernel.stats
    facts = {**seconds, "chosen": stats.strategy, "loops": len(stats.regions), "workspace": 8 * stats.workspace}
    if found is not None:
        rows, written, loops = found
        bodies = sum(sum(map(bool, loop.body.operands)) for loop in written)
        facts |= {"traced": sum(map(bool, rows.operands)) + bodies, "regions": len(loops.loops)}
    return facts if stats.strategy != "rolled" else {**facts, "lines": kernel.llvm.count("\n")}


class Stopwatch:
    """Takes the time of stages of a build, by the functions that carry them out, and keeps what detection found."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys([stage for stage, _ in STAGES.values()], 0.0)
        self.found: Any = None

    def timed(self, function: Function, name: str) -> Function:
        """Return the function on the clock."""

        def run(*args: Any, **keywords: Any) -> Any:
            start = time.perf_counter()
            result = function(*args, **keywords)
            self.seconds[STAGES[name][0]] += time.perf_counter() - start
            if name == "find":
                self.found = args[0], args[3], result
            return result

        return run

    @contextmanager
    def running(self) -> Iterator[None]:
        """Put the functions on the clock."""
        originals = {name: getattr(module, name) for name, (_, module) in STAGES.items()}
        for name, original in originals.items():
            setattr(STAGES[name][1], name, self.timed(original, name))
        try:
            yield
        finally:
            for name, original in originals.items():
                setattr(STAGES[name][1], name, original)


def arguments_of(case: Case, x: Vector) -> tuple[Any, ...]:
    if case.kind == "product":
        return tuple(np.split(x, 2))
    return (float(x[0]),) if case.kind == "tangent" else (x,)


def derivative_of(case: Case, layout: str) -> Function:
    """Return the transformed function that is compiled."""
    f = written(case)
    if case.kind == "value":
        return f
    if case.kind == "gradient":
        return sa.grad(f)
    if case.kind == "hessian":
        return sa.hessian(f, sparse="lower", format=layout)  # type: ignore[arg-type]
    if case.kind == "jacobian":
        return sa.jacobian(f, sparse=True, format=layout)  # type: ignore[arg-type]
    if case.kind == "tangent":
        return sa.derivative(lambda rate: f([rate]))
    return lambda x, direction: sa.hvp(f, (x,), (direction,))


def written(case: Case) -> Function:
    """Return the plain function, or the same with its loop written down."""
    family = case.family
    if family.written == "plain":
        return family.function
    if family.written == "scan":
        return _scanned(family.steps)
    if family.name.startswith("rosenbrock"):
        return lambda x: sum_over(lambda a, b: 100 * (b - a**2) ** 2 + (1 - a) ** 2, x[:-1], x[1:])
    terms = (family.terms or tuple)()[0]
    data, labels = terms.constants[:, :-1], terms.constants[:, -1]
    return lambda weights: sum_over(lambda row, label: np.log(1 + np.exp(-label * (row @ weights))), data, labels)


def _scanned(steps: int) -> Function:
    def trained(point: Any) -> Any:
        rate, momentum, *start = settings(point)

        def step(state: Any, _: Any) -> Any:
            return momentum_step(rate, momentum, *state), None

        (_, _, x, y), _ = scan(step, (0.0, 0.0, *start), length=steps)
        return 100 * (y - x * x) ** 2 + (1 - x) ** 2

    return trained
