"""Numeric solvers for implicit functions: Newton's method, fixed-point iteration, sparse linear systems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import symad.tracing.values.containers as containers
from codegen.records import dataclass
from symad.derivatives.elimination import Entries, forward
from symad.derivatives.level import open_level
from symad.derivatives.linear import linearize
from symad.errors import ConvergenceError
from symad.graph.array_values import values_of_nodes
from symad.tracing.calling.scope import Scope
from symad.tracing.calling.user_place import user_place

Function = Callable[..., Any]
Vector = NDArray[np.float64]

DENSE = 256  # rows of a system up to which a dense matrix is as good as a sparse one
NEWTON_STEPS = 100
FIXED_POINT_STEPS = 100_000


@dataclass(frozen=True)
class Matrix:
    """A square or rectangular matrix of numbers by its entries."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    values: Vector
    shape: tuple[int, int]

    @classmethod
    def of(cls, scope: Scope, entries: Entries, shape: tuple[int, int]) -> Matrix:
        """Return the numbers of a matrix of nodes."""
        places = np.array(list(entries), dtype=np.intp).reshape(len(entries), 2)
        values = np.array(values_of_nodes(scope.graph, list(entries.values()), scope.values), dtype=np.float64)
        return cls(places[:, 0], places[:, 1], values, shape)

    def dense(self) -> Vector:
        """Return the matrix as an array."""
        matrix = np.zeros(self.shape)
        matrix[self.rows, self.columns] = self.values
        return matrix

    def solve(self, right: Vector) -> Vector:
        """Return the solution of a linear system; LinAlgError when the matrix is singular.

        Above 256 rows by SciPy's sparse factorisation, where SciPy is installed.
        """
        if self.shape[0] > DENSE:
            try:
                from scipy.sparse import csc_array  # noqa: PLC0415 (optional extra)
                from scipy.sparse.linalg import splu  # noqa: PLC0415 (optional extra)
            except ImportError:
                return np.asarray(np.linalg.solve(self.dense(), right), dtype=np.float64)
            try:
                factors = splu(csc_array((self.values, (self.rows, self.columns)), shape=self.shape))
            except RuntimeError as error:
                raise np.linalg.LinAlgError("Singular matrix") from error
            return np.asarray(factors.solve(right), dtype=np.float64)
        return np.asarray(np.linalg.solve(self.dense(), right), dtype=np.float64)


def linearized(residual: Function, y: Any) -> tuple[Vector, Matrix]:
    """Return F and dF/dy in numbers."""
    with open_level((y,), ["y"]) as level:
        result, inputs = level.call(residual).flat, level.parameters.flat
        entries = forward(level.build, linearize(level.build, result, inputs))
        value = np.array(values_of_nodes(level.scope.graph, result, level.scope.values), dtype=np.float64)
        return value, Matrix.of(level.scope, entries, (len(result), len(inputs)))


class VectorLayout:
    """How a container of numbers and arrays is laid out as one vector."""

    def __init__(self, value: Any) -> None:
        leaves, self._structure = containers.flatten(value)
        self._shapes = [np.shape(leaf) for leaf in leaves]

    def joined(self, value: Any) -> Vector:
        """Return a container of this layout as a vector."""
        leaves, _ = containers.flatten(value)
        return np.concatenate([np.ravel(np.asarray(leaf, dtype=float)) for leaf in leaves])

    def split(self, vector: Vector) -> Any:
        """Return a vector as a container of this layout."""
        leaves, start = [], 0
        for shape in self._shapes:
            size = int(np.prod(shape))
            leaves.append(vector[start : start + size].reshape(shape) if shape else float(vector[start]))
            start += size
        return containers.unflatten(self._structure, leaves)


def newton(residual: Function, initial: Any) -> Any:
    """Return a root of a function of plain numbers by Newton's method, halving steps that do not reduce |F|.

    ConvergenceError after 100 steps without convergence.

    >>> newton(lambda y: y * y - 2, 1.0)
    1.4142135623730951
    """
    layout = VectorLayout(initial)
    y = layout.joined(initial)
    value, jacobian = linearized(residual, layout.split(y))
    for _ in range(NEWTON_STEPS):
        step = newton_step(jacobian, value)
        if not np.isfinite(step).all():
            break  # it would stay there
        size, length = np.linalg.norm(value), 1.0
        while True:
            trial = y - length * step
            trial_value, trial_jacobian = linearized(residual, layout.split(trial))
            if np.linalg.norm(trial_value) < size or length < 1e-6 or size == 0:
                break
            length /= 2
        moved = np.max(np.abs(trial - y) / (1 + np.abs(trial)), initial=0.0)
        if np.linalg.norm(trial_value) <= size:
            y, value, jacobian = trial, trial_value, trial_jacobian
        if moved <= 1e-15 or np.linalg.norm(value) == 0 or (moved < 1e-10 and length < 1e-6):
            return layout.split(y)
    raise ConvergenceError(
        "Newton's method does not converge",
        where=user_place(),
        why=f"after {NEWTON_STEPS} steps, or before an infinite one, the residual is {np.max(np.abs(value)):.3g}",
        do="start nearer to the root, or give another solver",
    )


def newton_step(jacobian: Matrix, value: Vector) -> Vector:
    """Return the solution of a linear system, the shortest one of a singular system; NaN if a number is not finite."""
    try:
        return jacobian.solve(value)
    except np.linalg.LinAlgError:
        return least_squares(jacobian.dense(), value)


def least_squares(matrix: Vector, right: Vector) -> Vector:
    """Return the shortest solution that is nearest; NaN for infinite numbers, which make LAPACK print errors."""
    if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
        return np.full(matrix.shape[1], np.nan)
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0], dtype=np.float64)


def fixed_point_iteration(residual: Function, initial: Any) -> Any:
    """Return a fixed point by iterating y - residual(y)."""
    layout = VectorLayout(initial)
    y, moved = layout.joined(initial), np.inf
    for _ in range(FIXED_POINT_STEPS):
        change = layout.joined(residual(layout.split(y)))
        y = y - change
        if not np.isfinite(y).all():
            break
        moved, before = np.max(np.abs(change) / (1 + np.abs(y))), moved
        if moved <= 1e-16 or 1e-12 > moved >= before:  # the last digits may keep changing
            return layout.split(y)
    raise ConvergenceError(
        "the fixed-point iteration does not converge",
        where=user_place(),
        why=f"after {FIXED_POINT_STEPS} steps y still changes by {np.max(np.abs(change)):.3g}",
        do="start nearer, or give a solver (symad.derivatives.solvers.newton)",
    )
