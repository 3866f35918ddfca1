"""The derivatives of an open level as trees of nodes: four passes over one linear map, and mode="auto".

mode="auto" writes every way on the graph, counts the operations, and keeps the cheapest way; the others stay unused.
`choices()` shows the choices and the counts. Each function takes the level and the tree of its result and returns
nodes; nothing here knows about the user's values.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from codegen.bound import bound
from codegen.limits import check
from codegen.records import dataclass
from symad.derivatives.array_arithmetic import GuardedArithmetic, NodeArithmetic, NumberArithmetic
from symad.derivatives.array_linear import ArrayLinear, ForAnyNumbers, InNumbers, Linearization
from symad.derivatives.elimination import Entries, cross_country, forward, forward_operations, reverse
from symad.derivatives.level import Level
from symad.derivatives.linear import Linear, linearize
from symad.derivatives.second_order import dyad_operations, dyads, edge_pushing
from symad.errors import ArgumentError
from symad.graph.array_values import values_of_array
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.tracing.calling.scope import Scope
from symad.tracing.values.node_arrays import constants
from symad.tracing.values.node_operands import symbol_met_arrays
from symad.tracing.values.node_trees import Nodes, Tree

T = TypeVar("T")
LOG = logging.getLogger("symad")


@dataclass(frozen=True)
class Choice:
    """What was computed, the way that was taken, and the operations of every way that was tried.

    A way is given up once it needs more operations than another, and counts those made until then.
    """

    what: str
    chosen: str
    operations: Mapping[str, int]

    def __str__(self) -> str:
        counts = ", ".join(f"{name} {count}" for name, count in self.operations.items())
        return f"{self.what}: {self.chosen}; operations: {counts}"


class Chosen(Protocol):
    """What a choice says of itself: a `Choice`, or the `CompilationPlan` of a kernel."""

    @property
    def what(self) -> str: ...

    @property
    def chosen(self) -> str: ...

    @property
    def operations(self) -> Mapping[str, int]: ...


_made: ContextVar[list[Chosen] | None] = ContextVar("symad_choices", default=None)


@contextmanager
def choices() -> Iterator[list[Chosen]]:
    """Give a list that collects what `mode="auto"` chooses in this block, with the operations of the alternatives.

    `compile` adds a `CompilationPlan`, whose `operations` count those of a call by each way.

    >>> import symad as sa
    >>> with choices() as made:
    ...     sa.laplacian(lambda x: np.exp(x[0] * x[1]))(np.ones(2))
    5.43656365691809
    >>> made
    [Choice(what='Laplacian', chosen='collapsed', operations={'collapsed': 6, 'hessian': 7})]
    """
    chosen: list[Chosen] = []
    with bound(_made, chosen):
        yield chosen


def cheapest(
    graph: Graph,
    subject: str,
    ways: Mapping[str, Callable[[], T]],
    known: Sequence[int],
    mode: str = "auto",
    nodes_of: Callable[[T], Iterable[int | None]] = iter,  # type: ignore[assignment]
) -> T:
    """Return the result of the way with the fewest operations beyond the `known` nodes (of a tie, the first).

    Any other mode than "auto" is the name of a way, and only that one is tried.
    """
    results = {name: way() for name, way in ways.items() if mode in ("auto", name)}
    if len(results) == 1 and not listening():
        return next(iter(results.values()))
    operations = {name: operations_of(graph, nodes_of(result), known) for name, result in results.items()}
    chosen = min(operations, key=operations.__getitem__)
    record(Choice(subject, chosen, operations))
    return results[chosen]


def listening() -> bool:
    """Whether anybody wants to know of choices: `choices`, or the log."""
    return _made.get() is not None or LOG.isEnabledFor(logging.INFO)


def record(choice: Chosen) -> None:
    """Give a choice to `choices`, where that is listening, and to the log."""
    LOG.info("%s", choice)
    if (listener := _made.get()) is not None:
        listener.append(choice)


def operations_of(graph: Graph, nodes: Iterable[int | None], known: Sequence[int]) -> int:
    """Return how many operations nodes need beyond the `known` ones; a structural zero needs none."""
    return graph.count_operations([node for node in nodes if node is not None], known)


DYADIC_INPUTS = 256  # beyond it dense gradients at every node are never the cheaper way, and looking costs memory
DEARER = 2  # a way that counts beforehand this many times the operations of another is not written down
MOST_EDGES = 100_000  # of a linear map that is eliminated cross-country

Elimination: TypeAlias = Callable[..., Entries | None]
_ORDERS: dict[str, Elimination] = {"fwd": forward, "rev": reverse, "cross-country": cross_country}


def linear_map(level: Level, result: Tree, *, nested: bool = False) -> Linear | ArrayLinear:
    """Return the linear map from the level's parameters to its result, of whole arrays where the level has them.

    At the outside its coefficients are numbers, unless the level differentiates them (`nested`).
    """
    if not level.has_array_nodes:
        return derivative_of(level, result)
    in_numbers = level.scope.parent is None and not nested
    if in_numbers and level.scope.graph.arrays.closed:
        raise symbol_met_arrays("a symbol")
    linearization = InNumbers if in_numbers else Linearization
    return linearization(level.build, result.nodes, level.parameters.nodes, level.scope.values).linear()


def derivative_of(level: Level, result: Tree) -> Linear:
    """Return the linear map from the level's parameters to its result, operation by operation."""
    return linearize(level.build, result.flat, level.parameters.flat)


def push(scope: Scope, linear: Linear | ArrayLinear, tangents: Nodes, *, nested: bool = False) -> Nodes:
    """Return tangents of the outputs; a structural zero becomes the number 0.

    At the outside the map carries whole arrays as numbers, unless the level differentiates them (`nested`).
    """
    build = Builder(scope.graph)
    if isinstance(linear, Linear):
        carried = linear.apply(build, tangents.tolist())
        return np.array([build.zero if node is None else node for node in carried], dtype=np.int64)
    if scope.parent is not None or nested:
        map_of_nodes = linear.with_constants(scope.graph) if linear.of_numbers else linear
        return map_of_nodes.image(NodeArithmetic(build), tangents)
    if scope.graph.arrays.closed:
        raise symbol_met_arrays("a symbol")
    map_of_numbers = linear.with_numbers(scope.graph, scope.values)
    seeds = values_of_array(scope.graph, tangents, scope.values).astype(np.float64)
    return constants(scope.graph, map_of_numbers.image(NumberArithmetic(), seeds))


def gradient(level: Level, result: Tree, *, nested: bool = False) -> Tree:
    """Return the gradient of a scalar by reverse mode, in the structure of the parameters (`nested`: see `push`)."""
    pullback = linear_map(level, result, nested=nested).transpose()
    return level.parameters.refill(push(level.scope, pullback, np.array([level.build.one]), nested=nested))


def gradient_for_any_numbers(level: Level, result: Tree) -> Tree:
    """Return the gradient of a scalar as nodes, of array nodes too, that have it for any numbers."""
    by = GuardedArithmetic(level.build)
    level.scope.graph.arrays.derivative_from = len(level.scope.graph)
    taken = ForAnyNumbers(result.nodes, level.parameters.nodes, level.scope.values, by)
    pullback = taken.linear().transpose()
    return level.parameters.refill(pullback.image(by, np.array([level.build.one])))


def jacobian_entries(level: Level, result: Tree, mode: str = "auto") -> Entries:
    """Return the non-zeros of the Jacobian, `{(row, column): node}`: the pattern is exact, nothing dense is formed.

    "auto" takes the order of elimination (see `elimination`) with the fewest operations; `choices` shows the counts.
    """
    candidates = jacobians(level.build, derivative_of(level, result), mode)
    ways = {name: partial(candidates.__getitem__, name) for name in candidates}
    return cheapest(level.build.graph, "Jacobian", ways, level.parameters.flat, nodes_of=dict.values)


def jacobians(build: Builder, linear: Linear, mode: str = "auto") -> dict[str, Entries]:
    """Return the non-zeros of a linear map by each order of elimination that may be the cheapest, or by one."""
    ways = {mode: _ORDERS[mode]} if mode in _ORDERS else _worth_trying(linear)
    return {name: entries for name, way in ways.items() if (entries := way(build, linear)) is not None}


def _worth_trying(linear: Linear) -> dict[str, Elimination]:
    """Return the orders of elimination that may be the cheapest, by the products and sums they will make.

    Forward or reverse mode is left out when it makes more than twice as many as the other. Where an edge is used hardly
    more than once, the one that makes fewer is the only way. Cross-country elimination is left out for one input or
    output and beyond 100 000 edges; it is given up beyond their count. So looking costs at most three times the
    cheapest way.
    """
    into, out = len(linear.inputs), len(linear.outputs)
    maps = {"fwd": linear, "rev": linear.transpose()}
    first, second = ("rev", "fwd") if out < into else ("fwd", "rev")
    counts = {first: forward_operations(maps[first])}
    counts[second] = forward_operations(maps[second], DEARER * counts[first])
    least = min(counts.values())
    edges = sum(len(row) for _, row in linear.rows)
    if least <= edges:
        fewest = min(counts, key=counts.__getitem__)
        return {fewest: _ORDERS[fewest]}
    ways = {name: _ORDERS[name] for name in counts if counts[name] <= DEARER * least}
    if min(into, out) > 1 and edges <= MOST_EDGES:
        ways["cross-country"] = partial(cross_country, limit=least)
    return ways


def blocks(level: Level, result: Tree, entries: Entries) -> Tree:
    """Return the Jacobians of the rows of a batch, each array of shape (batch, out..., in...), from all entries.

    ArgumentError when a row of the result depends on another row of the only parameter.
    """
    (batch,) = level.parameters.arrays
    count, width = len(batch), batch.size // len(batch)
    row_of = np.concatenate([np.arange(array.size) // max(1, array.size // count) for array in result.arrays])
    matrix = np.full((len(row_of), width), level.build.zero, dtype=np.int64)
    for (place, column), node in entries.items():
        if row_of[place] != column // width:
            raise ArgumentError(
                f"row {row_of[place]} of the result depends on row {column // width} of the batch",
                why="something mixes the rows (a mean over the batch, batch normalisation in training), so that the "
                "Jacobians of single rows leave out terms",
                do="use jacobian, which has all terms, or a function that treats every row on its own",
            )
        matrix[place, column % width] = node
    parts = np.split(matrix, np.cumsum([array.size for array in result.arrays])[:-1])
    shapes = [array.shape + batch.shape[1:] for array in result.arrays]
    return Tree(result.structure, [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)])


def hessian_entries(level: Level, result: Tree, mode: str = "auto") -> Entries:
    """Return the non-zeros of the lower triangle of a scalar's Hessian, by edge pushing or by dyads.

    "auto" pushes edges, and takes dyads where they need fewer operations; `choices` shows the counts.
    """
    sweep = derivative_of(level, result)
    build, output, parameters = level.build, result.flat[0], level.parameters.flat
    ways = {"edge": partial(edge_pushing, build, sweep, output), "dyadic": partial(dyads, build, sweep, output)}
    if mode == "auto":
        pushed = ways["edge"]()
        ways["edge"] = partial(dict, pushed)
        if len(sweep.inputs) > DYADIC_INPUTS or dyad_operations(build, sweep) >= build.graph.count_operations(
            pushed.values(), parameters
        ):
            del ways["dyadic"]
    return cheapest(build.graph, "Hessian", ways, parameters, mode, nodes_of=dict.values)


WRITTEN_OUT = frozenset({"solve", "triangular", "determinant", "log_determinant", "cholesky"})  # if need be
FEW = 200  # operations on elements: up to them, element by element is as soon (37 Hessians of 3 to 112 variables)
# Tangents that are carried at once: 32 MiB of numbers. A heat equation at 200 points takes 3.8 s by 2**18, .6 by 2**22.
CARRIED = 2**22

Direction = Literal["auto", "fwd", "rev"]


def array_jacobian(level: Level, result: Tree, direction: Direction | None = "auto") -> Nodes:
    """Return the matrix of nodes (outputs x parameters) of a level that has array nodes.

    "fwd" computes a column for each parameter, "rev" a row for each output, "auto" the fewer of both.
    """
    outputs, parameters = result.nodes.size, level.parameters.nodes.size
    linear = linear_map(level, result)
    if direction == "rev" or (direction == "auto" and outputs < parameters):
        return _images(level, linear.transpose(), outputs, parameters)
    return _images(level, linear, parameters, outputs).T


def array_hessian(level: Level, gradient: Tree) -> Nodes:
    """Return the Hessian of a scalar result whose gradient is given, as a matrix of nodes: forward over reverse."""
    return _images(level, linear_map(level, gradient), gradient.nodes.size, gradient.nodes.size)


def _images(level: Level, linear: Linear | ArrayLinear, count: int, size: int) -> Nodes:
    """Return the images of unit vectors, one in each row; a function called on numbers carries numbers."""
    assert isinstance(linear, ArrayLinear)
    graph, outside = level.scope.graph, level.scope.parent is None
    linear = linear.with_numbers(graph, level.scope.values) if outside else linear
    columns: NDArray[Any] = np.empty((size, count), dtype=np.float64 if outside else np.int64)
    carried = sum(node.size for node in graph.arrays.nodes[_arrays_before(level) :]) + len(linear.rows)
    width = max(1, CARRIED // carried)
    for start in range(0, count, width):
        check("computing the columns of a matrix")
        chunk = np.arange(start, min(start + width, count))
        by = NumberArithmetic(chunk.shape) if outside else NodeArithmetic(level.build, chunk.shape)
        seeds = np.where(np.arange(count)[:, None] == chunk, by.number(1), by.absent)
        columns[:, chunk] = linear.image(by, seeds)
    return constants(graph, columns.T) if outside else columns.T


def is_cheaper(level: Level) -> bool:
    """Whether a dense matrix of a level with array nodes is to be made by them, and not element by element."""
    arrays, before = level.scope.graph.arrays, _arrays_before(level)
    matrices = [node.matrix for node in arrays.nodes[before:] if node.matrix is not None]
    return any(matrix.kind not in WRITTEN_OUT for matrix in matrices) or arrays.operations(before) > FEW


def _arrays_before(level: Level) -> int:
    """Return how many array nodes there were when a level was opened."""
    return bisect_left(level.scope.graph.arrays.firsts, level.start)
