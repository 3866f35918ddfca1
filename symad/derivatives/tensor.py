"""Derivative tensors of any order with their exact pattern: the Hessian's entries, differentiated again and again.

A derivative of order k is symmetric, so only the entries with i >= j >= ... are formed: entry (i, ..., l) is
differentiated in the inputs m <= l that it depends on, all entries together, as a sparse Jacobian. Nothing dense is
made, and a separable function of n inputs costs about n times as much as one of its terms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import optree
from numpy.typing import NDArray

import symad.tracing.values.containers as containers
from symad.derivatives import modes
from symad.derivatives.choice import cheapest
from symad.derivatives.level import Level
from symad.derivatives.linear import linearize
from symad.errors import LimitError
from symad.graph.builder import Builder
from symad.tracing.values.container_types import NAMESPACE
from symad.tracing.values.node_trees import Tree
from symad.tracing.values.traced import Traced

Place = tuple[int, ...]
Entries = dict[Place, int]

LARGEST_DENSE = 10_000_000  # entries of a dense tensor


@dataclass(frozen=True, eq=False)
class SymmetricTensor:
    """A symmetric tensor in coordinate form: each set of equal entries is stored once.

    `data[p]` stands at `indices[:, p]`, which is sorted upwards, and at all permutations of it; everything else is a
    structural zero. `data` is float64, or traced, or an object array of SymPy expressions.

    >>> SymmetricTensor(np.array([1.0, 2.0]), np.array([[0, 0], [0, 1]]), (2, 2)).toarray()
    array([[1., 2.],
           [2., 0.]])
    """

    data: Any
    indices: NDArray[np.intp]
    shape: tuple[int, ...]

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return len(self.indices[0])

    def toarray(self) -> Any:
        """Return the dense array."""
        data = self.data if isinstance(self.data, Traced) else np.asarray(self.data)
        dense = np.zeros_like(data, shape=self.shape)
        for axes in permutations(range(len(self.shape))):
            dense[tuple(self.indices[list(axes)])] = data
        return dense

    def __repr__(self) -> str:
        return f"<SymmetricTensor {'x'.join(map(str, self.shape))}, {self.nnz} stored non-zeros>"


def _rebuilt(pattern: Any, children: Any) -> SymmetricTensor:
    indices, shape = pattern
    return SymmetricTensor(children[0], np.array(indices, dtype=np.intp).reshape(len(shape), -1), shape)


optree.register_pytree_node(
    SymmetricTensor,  # type: ignore[arg-type]  # its stubs know only Collections
    lambda tensor: ((tensor.data,), (tuple(map(tuple, tensor.indices.tolist())), tensor.shape)),  # type: ignore[attr-defined]
    _rebuilt,  # type: ignore[arg-type]
    namespace=NAMESPACE,
)


def tensor_entries(level: Level, node: int, order: int, mode: str = "auto") -> Entries:
    """Return the non-zeros of the derivative of an order >= 1 of one scalar, `{place sorted downwards: node}`.

    They come in the order of the places sorted upwards.
    """
    output = Tree(containers.flatten(0)[1], [np.array(node, dtype=np.int64)])
    if order == 1:
        gradient = modes.derivative_of(level, output).transpose().apply(level.build, [level.build.one])
        return {(k,): entry for k, entry in enumerate(gradient) if entry is not None}
    entries: Entries = dict(modes.hessian_entries(level, output).items())
    for reached in range(3, order + 1):
        what = f"derivative tensor of order {reached}"
        entries = _differentiated(level.build, entries, level.parameters.flat, what, mode)
    return dict(sorted(entries.items(), key=lambda entry: entry[0][::-1]))


def _differentiated(build: Builder, entries: Entries, parameters: Sequence[int], what: str, mode: str) -> Entries:
    """Return the entries of the next order: each entry's derivatives in the inputs up to its last one."""
    nodes = list(dict.fromkeys(entries.values()))
    made = modes.jacobians(build, linearize(build, nodes, parameters), mode)
    ways = {name: partial(_lower_part, entries, nodes, found) for name, found in made.items()}
    return cheapest(build.graph, what, ways, parameters, nodes_of=dict.values)


def _lower_part(entries: Entries, nodes: Sequence[int], jacobian: dict[tuple[int, int], int]) -> Entries:
    """Return the entries of the next order from a Jacobian of the nodes of this one, places sorted downwards."""
    slopes: dict[int, list[tuple[int, int]]] = {}
    for (row, k), slope in jacobian.items():
        slopes.setdefault(nodes[row], []).append((k, slope))
    return {
        (*place, k): slope for place, node in entries.items() for k, slope in slopes.get(node, ()) if k <= place[-1]
    }


def dense(level: Level, result: Tree, found: Sequence[Entries], shape: tuple[int, ...], order: int) -> Tree:
    """Return the full arrays of shape s + shape*order for each array of shape s in a result; `found` is per element."""
    size, zero = math.prod(shape), level.build.zero
    if len(found) * size**order > LARGEST_DENSE:
        raise LimitError(
            f"a dense tensor of {len(found) * size**order} entries",
            why=f"the limit is {LARGEST_DENSE}",
            do="use derivative_tensor with sparse=True",
        )
    full = np.full((len(found), *(size,) * order), zero, dtype=np.int64)
    for element, entries in zip(full, found, strict=True):
        for place, node in entries.items():
            for permuted in set(permutations(place)):
                element[permuted] = node
    ends = np.cumsum([array.size for array in result.arrays])[:-1]
    parts = zip(np.split(full, ends), result.arrays, strict=True)
    return Tree(result.structure, [part.reshape(array.shape + shape * order) for part, array in parts])


def coordinates(entries: Entries, order: int) -> NDArray[np.intp]:
    """Return the places sorted upwards as an array of shape `(order, entries)`, in the order of the entries."""
    return np.array(list(entries), dtype=np.intp).reshape(len(entries), order)[:, ::-1].T.copy()
