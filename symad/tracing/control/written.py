"""Record sums, maps and chains as one body each while a function is traced with its loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from codegen.loops.loop import Nodes
from symad.tracing.calling.scope import Scope, innermost_scope
from symad.tracing.control.carries import FlatContainer, Operands, carry_of, flat_result, next_carry
from symad.tracing.control.reasons import NotOneBodyError
from symad.tracing.control.written_bodies import ENDLESS, Kind, body_of, result_of, write_down
from symad.tracing.control.written_nests import enclose, flatten
from symad.tracing.values.constant_nodes import as_truth, is_boolean
from symad.tracing.values.containers import from_nodes
from symad.tracing.values.node_trees import Tree, wrap

Step = Callable[[Any, Any], tuple[Any, Any]]
Result = TypeVar("Result")


def written_sum(f: Callable[..., Any], operands: Operands) -> Any:
    """Return the sum of f over its operands; NotOneBodyError if it has to be unrolled."""
    scope, tree, nodes = _parallel(f, operands, "sum")
    return wrap(scope, tree.refill([int(node[0]) for node in nodes]))


def written_map(f: Callable[..., Any], operands: Operands) -> tuple[Tree, list[Any]]:
    """Return the tree of one result, and its leaves over all repetitions, stacked along the first axis."""
    scope, tree, nodes = _parallel(f, operands, "each")
    return tree, _stacks(scope, tree.arrays, nodes)


def _parallel(f: Callable[..., Any], operands: Operands, kind: Kind) -> tuple[Scope, Tree, list[Nodes]]:
    """Return the scope around, the tree of one result, and the nodes of all."""

    def written(nested: bool) -> tuple[Scope, Tree, list[Nodes]]:
        with body_of(operands.count, f, *operands.leaves, nested=nested) as body:
            row = body.row(operands)
            tree = result_of(f, body.inner, lambda: flat_result(f, f(*row())).whole)
            flatten(body)
            _, nodes = write_down(body, (), tree.flat, kind)
        return body.scope, tree, nodes

    return _nested_if_possible(written)


def written_chain(
    f: Callable[..., Any], step: Step, carry: FlatContainer, operands: Operands, *reached: Any, reverse: bool = False
) -> tuple[Any, Any]:
    """Return (last carry, stacked y) of `step(carry, x) -> (carry, y)`, which uses f and `reached`.

    Loops in f are inside the chain; small ones are unrolled.
    """

    def written(nested: bool) -> tuple[Any, Any]:
        def run() -> tuple[Any, Any]:
            (x,) = row()
            after, y = step(first(), x)
            return next_carry(f, after, carry).whole, flat_result(f, y, may_be_none=True).whole

        with body_of(operands.count, f, *reached, *operands.leaves, nested=nested) as body:
            row, first = body.row(operands, reverse=reverse), body.carry(carry)
            tree = result_of(f, body.inner, run)
            own = len(carry.arrays)
            enclose(body)
            last, columns = write_down(body, _flat(tree.arrays[:own]), _flat(tree.arrays[own:]), "each")
        ends = _wrapped(body.scope, tree.arrays[:own], last)
        columns = [column[::-1] if reverse else column for column in columns]
        after, ys = containers.unflatten(tree.structure, ends + _stacks(body.scope, tree.arrays[own:], columns))
        return after, ys

    return _nested_if_possible(written)


def _nested_if_possible(written: Callable[[bool], Result]) -> Result:
    """Return a loop with the loops in its body recorded too; they are unrolled if necessary."""
    with suppress(NotOneBodyError):
        return written(True)
    return written(False)


def written_search(
    f: Callable[..., Any],
    step: Callable[[Any], tuple[Any, Any]],
    carry: FlatContainer,
    *reached: Any,
    limit: int = ENDLESS,
    home: Scope | None = None,
) -> Any:
    """Return the carry after the first repetition of `step(carry) -> (carry, whether it was the last one)`.

    Nothing is differentiated through a loop that `home` keeps (see `body_of`).
    """

    def run() -> tuple[Any, Any]:
        after, last = step(first())
        return next_carry(f, after, carry).whole, last

    with body_of(limit, *reached, home=home) as body:
        first = body.carry(carry)
        arrays = result_of(f, body.inner, run, of_captured=home is not None).arrays
        stop = as_truth(body.scope.graph, int(arrays[-1]))
        last, _ = write_down(body, _flat(arrays[:-1]), (), "each", stop, numbers=home is not None)
    return carry.filled(_wrapped(body.scope, arrays[:-1], last))


def _flat(arrays: Sequence[Nodes]) -> list[int]:
    return [node for array in arrays for node in array.ravel().tolist()]


def _wrapped(scope: Scope, arrays: Sequence[Nodes], nodes: Sequence[int]) -> list[Any]:
    return [from_nodes(array, scope) for array in Tree(None, arrays).refill(nodes).arrays]


def _stacks(scope: Scope, arrays: Sequence[Nodes], columns: Sequence[Nodes]) -> list[Any]:
    """Return the values of all repetitions, one traced array for each array of one repetition."""
    graph, rest, stacks = scope.graph, iter(columns), []
    for array in arrays:
        parts = [(node, next(rest)) for node in array.ravel().tolist()]
        rows = [_as_truths(scope, nodes) if is_boolean(graph, node) else nodes for node, nodes in parts]
        count = len(columns[0])
        stack = np.stack(rows, axis=-1) if rows else np.empty((count, 0), dtype=np.int64)
        stacks.append(from_nodes(stack.reshape(count, *array.shape), scope))
    return stacks


def _as_truths(scope: Scope, nodes: Nodes) -> Nodes:
    graph = scope.graph
    zero = graph.number(0)
    return np.array([graph.node(sp.Unequality, node, zero) for node in nodes.tolist()], dtype=np.int64)


def repeated(step: Callable[[Any], tuple[Any, Any]], initial: Any, limit: int, *reached: Any) -> Any:
    """Return the carry after the first `step(carry) -> (carry, done)` that is done, or after `limit` steps.

    This is the loop of a solver in a kernel. Its results get derivatives by a rule (an implicit function, an integral),
    so it may stand in a function that is differentiated. Where loops are recorded it stops when it is done; elsewhere
    its steps are unrolled. `reached` are the functions that the steps call. The carry must not be differentiated.
    """
    carry = carry_of(initial, "the beginning")
    scope = innermost_scope()
    around = () if scope is None or scope.gather is not None else scope.chain()
    home = next((outer for outer in around if outer.loops is not None), None)  # not through derivatives inside
    if home is not None:
        with suppress(NotOneBodyError):
            return written_search(step, step, carry, *reached, limit=limit, home=home)
    going: Any = True
    for _ in range(limit):
        after, done = step(carry.filled(carry.arrays))
        following = next_carry(step, after, carry)
        pairs = zip(following.arrays, carry.arrays, strict=True)
        carry = FlatContainer(carry.structure, [np.where(going, new, old) for new, old in pairs])
        going = np.logical_and(going, np.logical_not(done))
    return carry.whole
