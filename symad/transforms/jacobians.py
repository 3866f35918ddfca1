"""Jacobians with structure: of batches, and their sparsity patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

import symad.tracing.values.containers as containers
from codegen.ir.sparsity import SparsityPattern
from codegen.options import check_whole
from symad.derivatives import modes
from symad.derivatives.application import Function, check_choice, described, known_options
from symad.derivatives.level import Level, open_level
from symad.derivatives.linear import Linear
from symad.derivatives.selection import FIRST, Argnums, Paths, select_arguments
from symad.derivatives.signatures import P
from symad.errors import ArgumentError
from symad.graph.array_values import values_of_nodes
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.trace import trace
from symad.transforms.first_order import JacobianMode, grad, hessian, jacobian

Directions = NDArray[np.float64]  # one in each column


def images(level: Level, linear: Linear, directions: Directions) -> Directions:
    """Return the images of directions (inputs x number) under a linear map of an open level, at its numbers.

    >>> from symad.derivatives.modes import derivative_of
    >>> with open_level([np.array([2.0, 3.0])]) as level:
    ...     linear = derivative_of(level, level.call(lambda x: x * x[0]))
    ...     images(level, linear, np.eye(2))
    array([[4., 0.],
           [3., 2.]])
    """
    number = _numbers(level, linear)
    values = dict(zip(linear.inputs, directions, strict=True))
    with np.errstate(all="ignore"):
        for target, row in linear.rows:
            for coefficient, source, guard in row:
                if source not in values or (guard is not None and not number[guard]):
                    continue
                term = values[source] if coefficient is None else number[coefficient] * values[source]
                values[target] = values[target] + term if target in values else term
    nothing = np.zeros(directions.shape[1])
    return np.array([values.get(node, nothing) for node in linear.outputs]).reshape(-1, directions.shape[1])


def _numbers(level: Level, linear: Linear) -> dict[int, float | bool]:
    """Return the values of all coefficients and guards."""
    edges = [edge for _, row in linear.rows for edge in row]
    nodes = sorted({node for coefficient, _, guard in edges for node in (coefficient, guard) if node is not None})
    return dict(zip(nodes, values_of_nodes(level.scope.graph, nodes, level.scope.values), strict=True))


Order = Literal[1, 2]
Place = tuple[int, int]
Vector = NDArray[np.float64]
Push = Callable[[Directions], Directions]
T = TypeVar("T")

LARGEST_POWER = 50  # of two, which columns are multiplied by
SIDE_BY_SIDE = 16  # groups of columns, or columns, in one pass


@known_options
def batched_jacobian(
    f: Callable[P, Any], argnums: int = FIRST, *, wrt: str | None = None, mode: JacobianMode = "auto"
) -> Callable[P, Any]:
    """Return the Jacobian of each row of a batch: shape (batch, out..., in...) for xs of shape (batch, in...).

    f takes the whole batch and returns arrays with a leading batch axis, row k from row k alone (for a function g of
    one row: `lambda xs: np.stack([g(x) for x in xs])`). Only these blocks are formed, no zeros between rows.
    ArgumentError when a row of the result depends on another row of xs, as under batch normalisation in training:
    `jacobian` has all the terms then.

    >>> f = lambda xs: np.stack([xs[:, 0] * xs[:, 1], xs[:, 1]], axis=1)
    >>> batched_jacobian(f)(np.array([[2.0, 3.0], [4.0, 5.0]]))
    array([[[3., 2.],
            [0., 1.]],
    <BLANKLINE>
           [[5., 4.],
            [0., 1.]]])
    """
    check_choice("mode", mode, get_args(JacobianMode))

    def apply(*args: Any, **keywords: Any) -> Any:
        chosen = select_arguments(f, args, argnums, keywords, wrt)
        with open_level(chosen.arguments, chosen.names) as level:
            result = level.call(chosen.function)
            _check_batch(level.parameters.shapes, result.shapes)
            return level.close(modes.blocks(level, result, modes.jacobian_entries(level, result, mode)))[0]

    return described(apply, f, "batched Jacobian")


@public_api
def sparsity(f: Function, *args: Any, order: Order = 1, argnums: Argnums = FIRST, wrt: Paths = None) -> SparsityPattern:
    """Return the exact pattern of the Jacobian (order 1) or of a scalar's Hessian (order 2) over flat inputs.

    The arguments give structure and shapes; their values are not used, and both branches of every `if` count. An entry
    that is not in the pattern is a proved zero at every point; one that is in it may happen to be zero. Printed, it is
    a picture; see `verify_sparsity` for a second opinion.

    >>> pattern = sparsity(lambda x: (x[1:] - x[:-1] ** 2) ** 2, np.zeros(4))
    >>> pattern
    <SparsityPattern 3x4, 6 non-zeros, density 0.5, coo>
    >>> print(pattern)
    ⠙⠦
    """
    check_choice("order", order, (1, 2))
    transform = jacobian(f, argnums, wrt=wrt, sparse=True)
    if order == 2:
        transform = hessian(f, argnums, wrt=wrt, mode="edge", sparse="full")
    outputs = trace(transform, *args).outputs
    pattern: SparsityPattern = containers.unflatten(outputs.structure, outputs.arrays).pattern
    return pattern


@public_api
def verify_sparsity(
    f: Function,
    pattern: SparsityPattern,
    *args: Any,
    order: Order = 1,
    argnums: Argnums = FIRST,
    wrt: Paths = None,
    points: int = 3,
    spread: float = 0.5,
    seed: int = 0,
) -> list[Place]:
    """Return the entries (row, column) outside of a pattern that are not zero at random points; none is expected.

    The points lie around args (`spread` times max(1, |x|)), where f follows its conditions. At each, the columns are
    put into groups of which no two share a row, and a forward pass along the columns of a group is compared with one
    along multiples of them: a row that meets one column of the group is multiplied as that column is (by a power of
    two, so exactly), and a row that meets none stays 0. ArgumentError for a pattern of another shape.

    >>> f = lambda x: x[:-1] * x[1:]
    >>> diagonal = SparsityPattern(np.arange(2), np.arange(2), (2, 3))
    >>> verify_sparsity(f, sparsity(f, np.ones(3)), np.ones(3)), verify_sparsity(f, diagonal, np.ones(3))
    ([], [(0, 1), (1, 2)])
    """
    check_choice("order", order, (1, 2))
    check_whole("points", points)
    check_whole("seed", seed, 0)
    if not isinstance(pattern, SparsityPattern):
        raise ArgumentError(f"a pattern of type {type(pattern).__name__}", do="give one that sa.sparsity returns")
    chosen = select_arguments(f, args, argnums, {}, wrt)
    every = tuple(range(len(chosen.arguments)))
    function = chosen.function if order == 1 else grad(chosen.function, every)
    generator, entries = np.random.default_rng(seed), set[Place]()
    for _ in range(points):
        with open_level(_nearby(chosen.arguments, generator, spread), chosen.names) as level:
            linear = modes.derivative_of(level, level.call(function))
            shape = (len(linear.outputs), len(linear.inputs))
            if shape != pattern.shape:
                raise ArgumentError(f"a pattern of shape {pattern.shape}", why=f"the derivative has shape {shape}")
            entries |= _violations(partial(images, level, linear), pattern, generator)
    return sorted(entries)


def _nearby(arguments: Any, generator: np.random.Generator, spread: float) -> Any:
    """Return a random point around arguments."""
    leaves, structure = containers.flatten(arguments)
    arrays = [np.asarray(leaf, dtype=float) for leaf in leaves]
    noise = [generator.uniform(-spread, spread, array.shape) for array in arrays]
    moved = [array + np.maximum(1, np.abs(array)) * part for array, part in zip(arrays, noise, strict=True)]
    return containers.unflatten(structure, [array[()] for array in moved])


def _violations(push: Push, pattern: SparsityPattern, generator: np.random.Generator) -> set[Place]:
    """Return non-zeros outside of the pattern: those of all columns in the groups that do not agree with it."""
    groups, width = pattern.groups(generator.permutation(pattern.shape[1])), pattern.shape[1]
    suspects: list[int] = []
    for some in _portions(groups):
        weights = [np.ldexp(1.0, generator.integers(1, LARGEST_POWER, len(group))) for group in some]
        directions = np.zeros((width, 2 * len(some)))
        for k, (group, weight) in enumerate(zip(some, weights, strict=True)):
            directions[group, 2 * k], directions[group, 2 * k + 1] = 1.0, weight
        passes = push(directions)
        for k, group in enumerate(some):
            if not _agrees(passes[:, 2 * k], passes[:, 2 * k + 1], pattern, directions[:, 2 * k + 1]):
                suspects += group.tolist()
    violations = set[Place]()
    for columns in _portions(suspects):
        units = np.zeros((width, len(columns)))
        units[columns, range(len(columns))] = 1.0
        values = push(units)
        values[np.isnan(values)] = 0.0  # NaN: the point is outside of f's domain
        for column, image in zip(columns, values.T, strict=True):
            outside = np.setdiff1d(np.flatnonzero(image), pattern.rows[pattern.columns == column])
            violations |= {(row, column) for row in outside.tolist()}
    return violations


def _portions(items: list[T]) -> Iterator[list[T]]:
    """Yield as many at a time as go side by side."""
    return (items[start : start + SIDE_BY_SIDE] for start in range(0, len(items), SIDE_BY_SIDE))


def _agrees(once: Vector, scaled: Vector, pattern: SparsityPattern, weight: Vector) -> bool:
    """Whether a pass along weighted columns is what the pattern makes of the pass along the columns themselves."""
    met = weight[pattern.columns] > 0
    expected = np.zeros_like(once)
    expected[pattern.rows[met]] = once[pattern.rows[met]] * weight[pattern.columns[met]]
    return bool(np.all((scaled == expected) | np.isnan(scaled)))


def _check_batch(inputs: list[tuple[int, ...]], outputs: list[tuple[int, ...]]) -> None:
    """Raise ArgumentError unless one array goes in, and all arrays have its leading axis."""
    if len(inputs) != 1:
        raise ArgumentError(f"a batch of {len(inputs)} arrays", do="choose one of them by wrt")
    if len({shape[:1] for shape in (*inputs, *outputs)}) != 1 or not inputs[0]:
        raise ArgumentError(
            f"a batch of shape {inputs[0]} and results of shapes {', '.join(map(str, outputs))}",
            why="the first axis of all of them is that of the batch",
            do="use jacobian for a function that is not of this form",
        )
