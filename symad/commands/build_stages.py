"""Run the stages of a command one by one, with seconds and sizes; check a Hessian's numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import symad.tracing.values.containers as containers
from codegen import Kernel
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.records import dataclass
from symad.classroom.verification.verify import exact_values, flat_floats
from symad.compiling.candidates import Primal
from symad.compiling.plan import CompilationPlan
from symad.derivatives.loops.pullback import gradient
from symad.derivatives.loops.pushforward import pushforward
from symad.errors import ArgumentError
from symad.tracing.trace import trace
from symad.tracing.values.node_trees import object_array
from symad.transforms.first_order import HessianMode, hessian

WORDS = {  # of the stages that a kernel has timed; of the encoder three
    "lower": "lower, share", "schedule": "fuse, schedule", "emit": "emit LLVM IR", "parse": "parse",
    "codegen": "generate code", "group": "put side by side", "encode": "encode machine code",
}  # fmt: skip


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
        """Return the result of the action."""
        self.progress(stage)
        start = perf_counter()
        result = action()
        seconds = perf_counter() - start
        if isinstance(result, CompilationPlan):
            traced = result.candidate.traced
            nodes = None if traced is None else len(traced.graph)
            self.stages.append(Stage(stage, seconds, nodes, result.candidate.written))
        elif isinstance(result, Kernel):
            self.stages.extend(compile_stages(result, seconds))
        else:
            self.stages.append(Stage(stage, seconds))
        return result


def compile_stages(kernel: Kernel, seconds: float) -> list[Stage]:
    """Return the stages inside compiling, as the kernel has timed them."""
    timed = kernel.stats.seconds
    stages = [Stage(WORDS[name], taken) for name, taken in timed.items()]
    first = replace(stages[0], nodes=kernel.stats.nodes, operations=kernel.stats.total)
    return [first, *stages[1:], Stage("link, call gate", seconds - sum(timed.values()))]


DIGITS = 50
DIRECTIONS = 3


def check_finite(values: Any, rows: Any, columns: Any) -> None:
    bad = np.nonzero(~np.isfinite(values))[0]
    if len(bad):
        raise ArgumentError(
            f"the Hessian is not finite at the example point: entry ({rows[bad[0]]}, {columns[bad[0]]}) is "
            f"{values[bad[0]]}",
            why=f"{len(bad)} of {len(values)} entries are NaN or infinite",
            do="choose a point where the function is twice differentiable",
        )


def exact_matrix(function: Callable[..., Any], arguments: tuple[Any, ...], mode: HessianMode) -> Any:
    size = len(flat_floats(arguments[:1]))
    values = exact_values(trace(hessian(function, mode=mode), *arguments), arguments, DIGITS)
    return object_array(values, (size, size))


def check_pattern(exact: Any, rows: Any, columns: Any) -> None:
    """Every entry outside the pattern has to be exactly zero on the other route."""
    outside = np.tril(np.ones(exact.shape, dtype=bool))
    outside[rows, columns] = False
    for i, j in np.argwhere(outside):
        if exact[i, j] != 0:
            raise ArgumentError(f"entry ({i}, {j}) is outside the pattern but not zero", why="a defect of symad")


def along_directions(primal: Primal, arguments: tuple[Any, ...], values: NDArray[np.float64], places: Any) -> float:
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
