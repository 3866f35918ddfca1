"""`vmap` and `sum_over`: a function of single points over many points, stacked or summed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np
import optree
import sympy as sp

import symad.tracing.values.containers as containers
from symad.tracing.calling.function_names import argument_names, check_function, name_of, positional
from symad.tracing.calling.transformed_function import Transformed
from symad.tracing.calling.user_place import refusal
from symad.tracing.control.carries import (
    FlatContainer,
    Operands,
    added,
    countable,
    flat_result,
    operands_of,
    refuse_other_form,
    result_shapes,
    stacked,
)
from symad.tracing.control.reasons import written_if_possible
from symad.tracing.control.written import written_map, written_sum
from symad.tracing.values.array import wrap
from symad.tracing.values.container_types import NAMESPACE
from symad.tracing.values.node_trees import paths_of


def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """Return the function that applies f to every piece of its arguments and stacks the results.

    `in_axes` says along which axis each argument is taken apart, None where every repetition gets it whole: one
    number for all, or one entry for each argument, which may be a container down to its leaves. `out_axes` says where
    the axis of the repetitions stands in the results. Over no repetition the results are empty arrays.

    >>> from symad import vmap
    >>> vmap(np.dot, in_axes=(0, None))(np.eye(2), np.array([3.0, 4.0]))
    array([3., 4.])
    """
    check_function(f)

    def mapped(*args: Any, **keywords: Any) -> Any:
        if keywords:
            args = positional(f, args, keywords, "an argument that is taken apart has a position")
        operands = _operands(f, args, in_axes)
        if operands.count == 0:
            tree = result_shapes(f, operands)
            empty = [np.zeros((0, *shape)) for shape in tree.shapes]
            axes = _output_axes(f, out_axes, containers.unflatten(tree.structure, empty), tree.shapes)
            moved = [np.moveaxis(array, 0, axis) for array, axis in zip(empty, axes, strict=True)]
            return containers.unflatten(tree.structure, moved)
        with written_if_possible():
            tree, leaves = written_map(f, operands)
            axes = _output_axes(f, out_axes, containers.unflatten(tree.structure, leaves), tree.shapes)
            pairs = zip(leaves, axes, strict=True)
            traced = [wrap(np.moveaxis(leaf.nodes, 0, axis), leaf.scope) for leaf, axis in pairs]
            return containers.unflatten(tree.structure, traced)
        return _unrolled_map(f, operands, out_axes)

    transformed = Transformed.of(mapped, f)
    update_wrapper(transformed, f)
    transformed.made_by = vmap, (f, in_axes, out_axes), {}
    return transformed


def _unrolled_map(f: Callable[..., Any], operands: Operands, out_axes: Any) -> Any:
    """Return the stacked results of all repetitions."""
    results: list[FlatContainer] = []
    for k in range(operands.count):
        results.append(flat_result(f, f(*operands.row(k))))
        refuse_other_form(f, results[-1], results[0], k)
    first = results[0]
    axes = _output_axes(f, out_axes, first.filled(first.arrays), first.shapes)
    columns = zip(*[result.arrays for result in results], strict=True)
    return first.filled([stacked(column, axis) for column, axis in zip(columns, axes, strict=True)])


def _operands(f: Callable[..., Any], args: tuple[Any, ...], in_axes: Any) -> Operands:
    if isinstance(in_axes, tuple | list) and len(in_axes) != len(args):
        raise refusal(
            f"in_axes={in_axes!r} for {len(args)} arguments of {name_of(f)}",
            do="give one entry for each argument, or one number for all",
        )
    names = paths_of(args, argument_names(f, len(args)))
    entries = tuple(in_axes) if isinstance(in_axes, tuple | list) else (in_axes,) * len(args)
    axes = [axis for part, axis in zip(args, entries, strict=True) for axis in _spread(axis, part, "in_axes")]
    if all(axis is None for axis in axes):
        raise refusal(
            f"in_axes={in_axes!r}: no argument of {name_of(f)} is taken apart",
            why="how often it is to be called is the length of an axis",
            do="give at least one argument an axis",
        )
    return operands_of(args, names, axes)


def _output_axes(f: Callable[..., Any], out_axes: Any, result: Any, shapes: Sequence[tuple[int, ...]]) -> list[int]:
    axes = _spread(out_axes, result, "out_axes")
    for axis, shape in zip(axes, shapes, strict=True):
        if axis is None or not -len(shape) - 1 <= axis <= len(shape):
            raise refusal(
                f"out_axes={out_axes!r} for a result of {name_of(f)} of shape {shape}",
                why="a result of one repetition has one axis less than all of them",
            )
    return [axis for axis in axes if axis is not None]


def _spread(axes: Any, value: Any, name: str) -> list[int | None]:
    """Return one axis for each leaf of a container: axes may stop at any depth and hold for all below."""
    leaves, _ = containers.flatten(value)
    try:
        spread = optree.broadcast_prefix(axes, value, none_is_leaf=True, namespace=NAMESPACE)
    except ValueError as error:
        raise refusal(f"{name}={axes!r}", why=f"it does not fit ({error})") from error
    holders = optree.tree_leaves(value, none_is_leaf=True, namespace=NAMESPACE)
    own_axes = [axis for axis, leaf in zip(spread, holders, strict=True) if leaf is not None]
    if len(own_axes) != len(leaves) or any(isinstance(a, bool) or not isinstance(a, int | None) for a in own_axes):
        raise refusal(f"{name}={axes!r}", why="an axis is a whole number, or None")
    return own_axes


def sum_over(f: Callable[..., Any], *arrays: Any) -> Any:
    """Return the sum of `f(piece of each array)` over the pieces along the first axis, from left to right.

    The arrays, or containers of arrays, have equal lengths; what f returns is summed leaf by leaf, truth values as 0
    and 1. The sum over nothing is 0.0, in the shape that f returns. A range gives integers. In SymPy's notation
    `(k, first, last)` with a symbol k, the result is a `sympy.Sum`; where it is compiled, and the bounds are whole
    numbers, a loop over them.

    >>> from symad import sum_over
    >>> sum_over(lambda x, y: x * y, np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    >>> k, n, x = sp.symbols("k n x")
    >>> sum_over(lambda k: x**k, (k, 0, n)), sum_over(lambda k: x**k, range(3))
    (Sum(x**k, (k, 0, n)), x**2 + x + 1)
    """
    check_function(f)
    if len(arrays) == 1 and _is_symbolic_range(arrays[0]):
        return _sum_of_sympy(f, *arrays[0])
    names = paths_of(arrays, argument_names(f, len(arrays)))
    operands = operands_of(arrays, names, [0] * len(names))
    if operands.count == 0:
        tree = result_shapes(f, operands)
        return containers.unflatten(tree.structure, [np.zeros(shape) if shape else 0.0 for shape in tree.shapes])
    with written_if_possible():
        return written_sum(f, operands)
    first = flat_result(f, f(*operands.row(0)))
    total = FlatContainer(first.structure, [countable(leaf) for leaf in first.arrays])
    for k in range(1, operands.count):
        result = flat_result(f, f(*operands.row(k)))
        refuse_other_form(f, result, first, k)
        total = added(total, result)
    return total.whole


def _is_symbolic_range(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 3 and isinstance(value[0], sp.Symbol | sp.Idx)


def _sum_of_sympy(f: Callable[..., Any], index: sp.Basic, first: Any, last: Any) -> Any:
    """Return a Sum, or in a function that is traced with its loops a loop over known numbers."""
    with written_if_possible():
        if all(isinstance(bound, int | sp.Integer) for bound in (first, last)) and first < last:
            return written_sum(f, operands_of((np.arange(int(first), int(last) + 1),), ["index"], [0]))
    return sp.Sum(sp.sympify(f(index)), (index, first, last))
