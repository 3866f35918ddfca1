"""What the paths of a call return: numbers, which are merged, beside constants that are the same on all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import optree

from symad.tracing.calling.scope import Scope
from symad.tracing.values.array import wrap
from symad.tracing.values.node_operands import nodes_of
from symad.tracing.values.node_trees import Tree
from symad.tracing.values.scalar import Scalar


class NotFollowedError(Exception):
    """The paths of a function are followed by those around it."""


class CallResults:
    """The results of the paths of one call, in the order in which they were followed.

    Numbers only, alone or in tuples: an array or a container could be one that the user has elsewhere, and whole
    numbers and truth values that differ may be counts, indices, or compared by `is`.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.values: list[Any] = []
        self._structure: Any = None
        self.constants: list[Any] = []  # of the leaves that no path changes; NUMBER for the others

    def noted(self, value: Any) -> Any:
        """Keep and return the result of one more path."""
        self.values.append(value)
        return value

    def lift(self, value: Any) -> Tree:
        """Return the nodes of the numbers in one of several results; NotFollowedError where they cannot be merged."""
        if len(self.values) == 1:
            return Tree(None, [])
        if self._structure is None:
            self._compare()
        kept = [
            np.asarray(nodes_of(self.number(leaf), self._scope))
            for leaf, constant in zip(_leaves(value)[0], self.constants, strict=True)
            if constant is NUMBER or constant is TRUTH
        ]
        return Tree(None, kept)

    def whole(self, tree: Tree) -> Any:
        """Return the merged result; that of the only path as it is."""
        if len(self.values) == 1:
            return self.values[0]
        numbers = iter([wrap(array, self._scope) for array in tree.arrays])
        leaves = [
            next(numbers) if kind is NUMBER else next(numbers) > 0.5 if kind is TRUTH else kind
            for kind in self.constants
        ]
        return optree.tree_unflatten(self._structure, leaves)

    def _compare(self) -> None:
        taken = [_leaves(value) for value in self.values]
        self._structure = taken[0][1]
        if any(structure != self._structure for _, structure in taken):
            raise NotFollowedError
        columns = zip(*[leaves for leaves, _ in taken], strict=True)
        self.constants = [self.common(list(column)) for column in columns]

    def common(self, column: list[Any]) -> Any:
        """Return the constant that a leaf is on all paths, NUMBER where it is a number that they choose between."""
        first = column[0]
        if all(leaf is first for leaf in column) and not isinstance(first, Scalar):
            return first
        reals = [leaf for leaf in column if type(leaf) is Scalar or type(leaf) in (float, np.float64)]
        whole = [leaf for leaf in column if type(leaf) is int]
        if len(reals) + len(whole) < len(column) or not reals:
            raise NotFollowedError
        return NUMBER

    def number(self, leaf: Any) -> Any:
        """Return what of a leaf that is a number is merged."""
        return leaf


NUMBER = object()
TRUTH = object()


def _leaves(value: Any) -> tuple[list[Any], Any]:
    return optree.tree_flatten(value, is_leaf=lambda part: type(part) is not tuple, none_is_leaf=True)
