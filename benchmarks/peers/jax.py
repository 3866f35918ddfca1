"""JAX: `jit` of its own transforms, on arrays."""

from __future__ import annotations

import importlib
from typing import Any, Literal

import numpy as np

import symad as sa
from benchmarks.peers.base import Batched, Call, Candidate, Evaluator, Pattern
from benchmarks.problems import Matrix, Problem, Vector


class Jax(Candidate):
    """JAX in float64 on the processor, with the point already a JAX array.

    Sparse matrices are compressed: columns that share no row get one colour, and one product is taken for each colour,
    all of them in one `vmap`. The pattern is what a user knows beforehand: it is not timed.
    """

    name = "JAX"
    package = "jax"
    form = "dense, or compressed by colours"
    call = "`jit(hessian(f))(x).block_until_ready()` and the like, x a JAX array; batch: `vmap`"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.library.config.update("jax_enable_x64", True)
        self.library.config.update("jax_platforms", "cpu")
        self.numpy: Any = importlib.import_module("jax.numpy")
        self.patterns: dict[str, Pattern] = {}

    def prepare(self, problem: Problem) -> None:
        """Find the pattern of a sparse matrix: what is not timed."""
        if problem.sparse and problem.name not in self.patterns:
            order: Literal[1, 2] = 2 if problem.kind == "hessian" else 1
            self.patterns[problem.name] = coordinates(sa.sparsity(problem.function, problem.point, order=order))

    def build(self, problem: Problem) -> Evaluator:
        jax = self.library

        def function(x: Any) -> Any:
            return problem.function(x, self.numpy)

        pattern = self.patterns.get(problem.name)
        if pattern is not None:
            derivative, pattern = self.compressed(function, problem, pattern)
        elif problem.kind == "gradient":
            size = problem.point.size
            derivative, pattern = jax.grad(function), (np.zeros(size, dtype=int), np.arange(size))
        else:
            wide = problem.kind == "jacobian"
            derivative = jax.hessian(function) if not wide else best_jacobian(jax, function, problem)
            pattern = full_pattern(problem)
        compiled, mapped = jax.jit(derivative), jax.jit(jax.vmap(derivative))

        def bind(x: Vector) -> Call:
            point = self.numpy.asarray(x)
            return lambda: compiled(point).block_until_ready()

        def batch(points: Matrix, threads: int) -> Batched:
            array, count = self.numpy.asarray(points), len(points)
            return Batched(
                lambda: mapped(array).block_until_ready(),
                lambda result: np.asarray(result).reshape(count, -1),
                pattern,
            )

        return Evaluator(bind, lambda result: np.asarray(result).ravel(), pattern, None, batch)

    def compressed(self, function: Any, problem: Problem, pattern: Pattern) -> tuple[Any, Pattern]:
        """Return the function that computes the non-zeros from one product for each colour of columns."""
        jax, (rows, columns) = self.library, pattern
        colours = colouring(pattern, problem.point.size)
        seeds = np.zeros((colours.max() + 1, problem.point.size))
        seeds[colours, np.arange(problem.point.size)] = 1.0
        pushed = jax.grad(function) if problem.kind == "hessian" else function
        if problem.kind == "hessian":
            rows, columns = rows[rows >= columns], columns[rows >= columns]

        def entries(x: Any) -> Any:
            products = jax.vmap(lambda seed: jax.jvp(pushed, (x,), (seed,))[1])(seeds)
            return products[colours[columns], rows]

        return entries, (rows, columns)


def best_jacobian(jax: Any, function: Any, problem: Problem) -> Any:
    """Return forward mode for tall Jacobians, reverse mode for wide ones."""
    outputs = np.size(problem.function(problem.point))
    return jax.jacfwd(function) if outputs >= problem.point.size else jax.jacrev(function)


def full_pattern(problem: Problem) -> Pattern:
    """Return the places of a dense matrix, row by row."""
    size = problem.point.size
    outputs = size if problem.kind == "hessian" else np.size(problem.function(problem.point))
    rows, columns = np.indices((outputs, size)).reshape(2, -1)
    return rows, columns


def coordinates(pattern: Any) -> Pattern:
    """Return rows and columns of a sparsity pattern."""
    return np.asarray(pattern.rows), np.asarray(pattern.columns)


def colouring(pattern: Pattern, size: int) -> Any:
    """Return a colour for each column so that columns of one colour share no row: greedy, in order.

    >>> colouring((np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2])), 3)
    array([0, 1, 0])
    """
    rows_of: list[list[int]] = [[] for _ in range(size)]
    columns_of: dict[int, list[int]] = {}
    for row, column in zip(*(indices.tolist() for indices in pattern), strict=True):
        rows_of[column].append(row)
        columns_of.setdefault(row, []).append(column)
    colours = np.full(size, -1)
    for column in range(size):
        taken = {int(colours[other]) for row in rows_of[column] for other in columns_of[row]}
        colours[column] = next(colour for colour in range(size + 1) if colour not in taken)
    return colours
