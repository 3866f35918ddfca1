"""The result of each path and where it has no value. Neighbours are merged until one is left."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import optree

import symad.tracing.values.node_builders as op
from codegen.records import dataclass
from symad.errors import ArgumentError
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.tracing.control.decisions import Decisions, in_words
from symad.tracing.control.merging import merged, without_aliases
from symad.tracing.values.container_types import NAMESPACE
from symad.tracing.values.node_trees import Tree

Guards = tuple[int | None, ...]  # of which one holds; None always does
RAISED = object()  # in place of a result that a path does not have
UNIONS: dict[type, Callable[[Sequence[Any]], Sequence[Any]]] = {}  # for results whose structure depends on the path


class UnlikeResultsError(ArgumentError):
    """The results of two paths differ in structure or shape."""


@dataclass(frozen=True)
class Result:
    """The result of a path: nodes, or None where the function raises; and the guards under which it has no value."""

    tree: Tree | None
    raised: Guards


def lifted(values: list[Any], raised: Sequence[Guards], lift: Callable[[Any], Tree]) -> list[Result]:
    """Return the results of paths as trees of nodes."""
    if len(values) > 1:
        values = _aligned(values)
    trees = [None if value is RAISED else lift(value) for value in values]
    return [Result(tree, guards) for tree, guards in zip(trees, raised, strict=True)]


def of_all_paths(
    graph: Graph, name: str, paths: Sequence[Decisions], results: Sequence[Result], plain: dict[int, int], start: int
) -> Result:
    """Return the result of a function: neighbouring paths, which differ in their last decision, are merged.

    `plain` maps nodes to nodes without aliases (see `without_aliases`); nodes below `start` are older than the paths.
    UnlikeResultsError if two results cannot be merged.
    """
    whole = next(result.tree for result in results if result.tree is not None)
    stack: list[tuple[Decisions, Result]] = []
    for path, result in zip(paths, results, strict=True):
        if result.tree is not None and len(paths) > 1:
            _check_alike(name, whole, result.tree, paths[0], path)
            result = replace(result, tree=result.tree.refill(without_aliases(graph, result.tree.flat, plain)))
        stack.append((path, result))
        while len(stack) > 1 and stack[-2][0][:-1] == stack[-1][0][:-1]:
            (decisions, holds), (_, fails) = stack[-2:]
            del stack[-2:]
            stack.append((decisions[:-1], _either(graph, decisions[-1].condition, holds, fails, start)))
    ((_, merged_result),) = stack
    return merged_result


def _either(graph: Graph, condition: int, holds: Result, fails: Result, start: int) -> Result:
    """Return the result of two paths; if one of them has no value, that of the other."""
    build = Builder(graph)
    sides = ((condition, holds.raised), (build.negate(condition), fails.raised))
    conditions = [build.both(side, guard) for side, guards in sides for guard in guards]
    raised: Guards = (reduce(build.either, conditions),) if conditions else ()
    if holds.tree is None or fails.tree is None:
        return Result(fails.tree if holds.tree is None else holds.tree, raised)
    return Result(merged(graph, condition, holds.tree, fails.tree, start), raised)


def _check_alike(name: str, first: Tree, other: Tree, path: Decisions, other_path: Decisions) -> None:
    if first.is_like(other):
        return
    met, expected = (other.shapes, first.shapes) if first.structure == other.structure else (other, first)
    raise UnlikeResultsError(
        f"{name} returns {_form(met)} where {in_words(other_path)}",
        why=f"it returns {_form(expected)} where {in_words(path)}",
        do="return the same structure and shapes on every path",
    )


def with_nan(graph: Graph, tree: Tree, condition: int | None) -> Tree:
    """Return a tree with NaN where a condition holds."""
    if condition is None:
        return tree
    nan = graph.number(math.nan)
    return tree.refill([op.select(graph, condition, nan, node) for node in tree.flat])


def _aligned(values: list[Any]) -> list[Any]:
    """Return results with parts whose structure depends on the path (sparse matrices) in a common structure."""
    whole = [k for k, value in enumerate(values) if value is not RAISED]
    parts = [optree.tree_flatten(values[k], lambda v: type(v) in UNIONS, namespace=NAMESPACE) for k in whole]
    if len({structure for _, structure in parts}) != 1 or not parts[0][0]:
        return values
    columns = [list(column) for column in zip(*[leaves for leaves, _ in parts], strict=True)]
    for k, column in enumerate(columns):
        kind = type(column[0])
        if kind in UNIONS and all(type(leaf) is kind for leaf in column):
            columns[k] = list(UNIONS[kind](column))
    aligned = list(values)
    for k, leaves in zip(whole, zip(*columns, strict=True), strict=True):
        aligned[k] = optree.tree_unflatten(parts[0][1], leaves)
    return aligned


def _form(value: Tree | list[tuple[int, ...]]) -> str:
    if isinstance(value, Tree):
        return str(value.structure).removeprefix("PyTreeSpec(").removesuffix(")")
    return ("shape " if len(value) == 1 else "shapes ") + ", ".join(map(str, value))
