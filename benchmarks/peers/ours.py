"""symad, in the forms that the tables compare: the only file here that knows its interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from benchmarks.peers.base import Batched, Candidate, Evaluator, Pattern
from benchmarks.problems import Matrix, Problem

WHOLE = ("mlp8", "mlp64")  # dense Hessians, filled whole by a sweep over columns


class Symad(Candidate):
    """symad with its defaults: a Hessian's packed lower triangle, or the whole matrix where nearly all of it is there.

    Batches always give the packed lower triangle.
    """

    name = "symad"
    package = "symad"
    call = "`kernel(x, out=buffer)`; batch: `kernel.batch(points, out=buffer, threads=...)`"
    options: ClassVar[dict[str, Any]] = {"cache": False}  # a build is a build

    def build(self, problem: Problem) -> Evaluator:
        whole = problem.name in WHOLE
        kernel = self.library.compile(self.derivative(problem, whole), problem.point, **self.options)

        def batch(points: Matrix, threads: int) -> Batched:
            many = kernel
            if whole:
                many = self.library.compile(self.derivative(problem), problem.point, **self.options)
            pattern = places(many, problem)
            results, width = np.empty((len(points), len(pattern[0]))), many.lanes
            side = np.ascontiguousarray(points.reshape(-1, width, points.shape[1]).swapaxes(1, 2))
            beside = np.empty((len(side), *many.program.outputs[0].shape, width))
            return Batched(
                lambda: many.batch(points, out=results, threads=threads),
                lambda _: results,
                pattern,
                many.stats.executed,
                lambda: many.batch(side, out=beside, threads=threads, layout="blocks"),
                lambda: results.fill(1.0),
            )

        values = np.empty(kernel.program.outputs[0].shape)
        return Evaluator(
            bind=lambda x: lambda: kernel(x, out=values),
            read=lambda _: values.ravel(),
            pattern=places(kernel, problem),
            operations=kernel.stats.executed,
            batch=batch,
            native=(kernel, values),
        )

    def derivative(self, problem: Problem, whole: bool = False) -> Callable[..., Any]:
        """Return the transformed function."""
        sa = self.library
        if problem.kind == "hessian":
            return sa.hessian(problem.function, sparse=not whole and "lower")  # type: ignore[no-any-return]
        if problem.kind == "gradient":
            return sa.grad(problem.function)  # type: ignore[no-any-return]
        return sa.jacobian(problem.function, sparse=True)  # type: ignore[no-any-return]


def places(kernel: Any, problem: Problem) -> Pattern:
    """Return rows and columns of a kernel's values."""
    if kernel.sparsity is not None:
        return kernel.sparsity.rows, kernel.sparsity.columns
    shape = kernel.program.outputs[0].shape
    rows, columns = np.indices(shape if len(shape) == 2 else (1, problem.point.size)).reshape(2, -1)
    return rows, columns


class SymadFast(Symad):
    """symad with the accuracy class that allows algebra and vector functions of a few units in the last place."""

    name = "symad, fast accuracy"
    options: ClassVar[dict[str, Any]] = {"cache": False, "accuracy": "fast"}


class SymadTier(Symad):
    """symad with the tier that compiles fastest."""

    name = "symad, fast tier"
    options: ClassVar[dict[str, Any]] = {"cache": False, "tier": "fast"}


class SymadLines(Symad):
    """symad without loops: every operation of every repetition is written down."""

    name = "symad, straight lines"
    options: ClassVar[dict[str, Any]] = {"cache": False, "roll": "never"}


class SymadLinesTier(Symad):
    """The same with the tier that compiles fastest."""

    name = "symad, straight lines, fast tier"
    options: ClassVar[dict[str, Any]] = {"cache": False, "roll": "never", "tier": "fast"}
