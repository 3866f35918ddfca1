"""Find the shape of a body's result without a repetition, by tracing it on symbols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from symad.tracing.calling.function_names import name_of
from symad.tracing.calling.scope import open_scope
from symad.tracing.control.paths import MAX_PATHS, Paths
from symad.tracing.control.swept_operands import Operands
from symad.tracing.values.array import wrap
from symad.tracing.values.node_trees import Tree, lift, lift_result, paths_of


def result_shapes(f: Callable[..., Any], operands: Operands, *before: Any, may_be_none: bool = False) -> Tree:
    """Return the tree of the result of `f(*before, *row)`; its nodes belong to a closed scope."""
    with open_scope() as scope:
        graph = scope.graph

        def symbols(shape: tuple[int, ...]) -> Any:
            nodes = [graph.own_leaf(sp.Dummy(real=True)) for _ in range(int(np.prod(shape, dtype=int)))]
            return wrap(np.array(nodes, dtype=np.int64).reshape(shape), scope)

        pairs = zip(operands.leaves, operands.mapped, strict=True)
        leaves = [symbols(leaf.shape[1:]) if mapped else leaf for leaf, mapped in pairs]
        row = containers.unflatten(operands.structure, leaves)
        scope.paths = paths = Paths(scope, MAX_PATHS, name_of(f))
        return paths.explore(
            lambda: f(*before, *row),
            lambda value: (
                lift(scope, value, paths_of((value,), ["result"]))
                if may_be_none
                else lift_result(scope, value, name_of(f))
            ),
        )
