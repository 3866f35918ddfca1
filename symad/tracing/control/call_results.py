"""Merge the results of the paths of a call: numbers by selects, equal constants as they are.

The elements of lists, dicts and traced arrays that the call changes are results, too. Each path begins with their
original elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optree

from codegen.records import dataclass
from symad.reach.reachable_state import ReachableState
from symad.tracing.calling.scope import Scope
from symad.tracing.calling.user_place import user_place
from symad.tracing.values.array import Array, wrap
from symad.tracing.values.container_types import NAMESPACE
from symad.tracing.values.mask_selection import settled
from symad.tracing.values.node_arrays import all_truths
from symad.tracing.values.node_operands import nodes_of
from symad.tracing.values.node_trees import Tree
from symad.tracing.values.scalar import Scalar


class NotFollowedError(Exception):
    """The paths of a function are followed by the exploration around it."""


@dataclass(frozen=True)
class Path:
    """The result of a path, and the elements of the containers that it changed, by the ids of the containers."""

    value: Any
    elements: dict[int, tuple[Any, ...]]


class CallResults:
    """The results of the paths of one call, in the order in which they were followed.

    Only numbers are merged, alone or in tuples. The user's code may hold an array or a container elsewhere, and use
    differing whole numbers and truth values as counts or indices, or compare them by `is`.
    """

    def __init__(self, scope: Scope, state: ReachableState) -> None:
        self._scope, self._state = scope, state
        self.paths: list[Path] = []
        self._changed: dict[int, Any] = {}  # containers, by their ids
        self._changes_more = False
        self._structure: Any = None
        self.constants: list[Any] = []  # of the leaves that no path changes; NUMBER for the others

    def noted(self, run: Callable[[], Any]) -> Path:
        """Run one more path and keep its results. The containers that it changes are restored."""
        try:
            value = optree.tree_map(settled, run(), none_is_leaf=True, namespace=NAMESPACE)
        finally:
            changed = self._state.changed_owners()
            can_merge = changed is not None and all(map(_can_merge, changed))
            owners = changed if can_merge and changed else []
            elements, places = {id(owner): _elements(owner) for owner in owners}, list(map(_places, owners))
            if owners:
                self._state.restore(user_place())
        self._changes_more = self._changes_more or not can_merge or places != list(map(_places, owners))
        self._changed |= {id(owner): owner for owner in owners}
        self.paths.append(Path(value, elements))
        return self.paths[-1]

    def lift(self, path: Path) -> Tree:
        """Return the nodes of the numbers of one of several paths; NotFollowedError where they cannot be merged."""
        if len(self.paths) == 1:
            return Tree(None, [])
        if self._structure is None:
            self._compare()
        kept = [
            np.asarray(nodes_of(self.number(leaf), self._scope))
            for leaf, constant in zip(self._leaves(path)[0], self.constants, strict=True)
            if constant is NUMBER or constant is TRUTH
        ]
        return Tree(None, kept)

    def whole(self, tree: Tree) -> Any:
        """Return the merged result, and change the containers; the result of a single path is returned unchanged."""
        if len(self.paths) == 1:
            value: Any = self.paths[0].value
            elements: list[Any] = list(self.paths[0].elements.values())
        else:
            numbers = iter([wrap(array, self._scope) for array in tree.arrays])
            leaves = [
                next(numbers) if kind is NUMBER else next(numbers) > 0.5 if kind is TRUTH else kind
                for kind in self.constants
            ]
            value, *elements = optree.tree_unflatten(self._structure, leaves)
        for owner, held in zip(self._changed.values(), elements, strict=True):
            _refill(owner, held)
        return value

    def _leaves(self, path: Path) -> tuple[list[Any], Any]:
        held = [path.elements.get(key, _elements(owner)) for key, owner in self._changed.items()]
        whole: Any = (path.value, *held)
        return optree.tree_flatten(whole, is_leaf=lambda part: type(part) is not tuple, none_is_leaf=True)

    def _compare(self) -> None:
        if self._changes_more:
            raise NotFollowedError
        results = [self._leaves(path) for path in self.paths]
        self._structure = results[0][1]
        if any(structure != self._structure for _, structure in results):
            raise NotFollowedError
        columns = zip(*[leaves for leaves, _ in results], strict=True)
        self.constants = [NUMBER if type(column[0]) is _Elements else self.common(list(column)) for column in columns]

    def common(self, column: list[Any]) -> Any:
        """Return the constant value of a leaf on all paths, NUMBER if it is a number that differs."""
        first = column[0]
        if all(leaf is first for leaf in column) and not isinstance(first, Scalar):
            return first
        reals = [leaf for leaf in column if type(leaf) is Scalar or type(leaf) in (float, np.float64)]
        whole = [leaf for leaf in column if type(leaf) is int]
        if len(reals) + len(whole) < len(column) or not reals:
            raise NotFollowedError
        return NUMBER

    def number(self, leaf: Any) -> Any:
        """Return the number that is merged for a leaf."""
        return leaf


class _Elements(Array):
    """The elements of an array after a path."""

    __slots__ = ()


def _can_merge(owner: Any) -> bool:
    is_container = type(owner) in (list, dict)
    return is_container or (type(owner) is Array and not all_truths(owner.scope.graph, owner.nodes))


def _elements(owner: Any) -> Any:
    if type(owner) is Array:
        return _Elements(owner.nodes.copy(), owner.scope)
    return tuple(owner.values() if type(owner) is dict else owner)


def _places(owner: Any) -> Any:
    """Return the keys or the length of a container, which no path may change."""
    return list(map(id, owner)) if type(owner) is dict else np.shape(owner) if type(owner) is Array else len(owner)


def _refill(owner: Any, elements: Any) -> None:
    if type(owner) is dict:
        owner.update(zip(owner, elements, strict=True))
    else:
        owner[... if type(owner) is Array else slice(None)] = elements


NUMBER = object()
TRUTH = object()
