"""Derivatives in all parameters together: tensors of any order, Taylor polynomials, Laplacians.

A derivative of order k is symmetric, so only the entries with i >= j >= ... are formed: entry (i, ..., l) is
differentiated in the inputs m <= l that it depends on, all entries together, as a sparse Jacobian. Nothing dense is
made, and a separable function of n inputs costs about n times as much as one of its terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations
from typing import Any

import numpy as np
import optree
from numpy.typing import NDArray

import symad.tracing.values.containers as containers
from codegen.records import dataclass
from symad.derivatives import modes
from symad.derivatives.level import Level
from symad.derivatives.linear import gradients, linearize, settle
from symad.derivatives.modes import cheapest
from symad.derivatives.second_order import edge_pushing, inner, outer, second_forward
from symad.derivatives.taylor import taylor_coefficients
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
    """Return the non-zeros of the derivative of order >= 1 of one scalar, `{place sorted downwards: node}`.

    They are in the order of the places sorted upwards.
    """
    output = Tree(containers.flatten(0)[1], [np.array(node, dtype=np.int64)])
    if order == 1:
        gradient = modes.derivative_of(level, output).transpose().apply(level.build, [level.build.one])
        return {(k,): entry for k, entry in enumerate(gradient) if entry is not None}
    entries: Entries = dict(modes.hessian_entries(level, output).items())
    for reached in range(3, order + 1):
        subject = f"derivative tensor of order {reached}"
        entries = _differentiated(level.build, entries, level.parameters.flat, subject, mode)
    return dict(sorted(entries.items(), key=lambda entry: entry[0][::-1]))


def _differentiated(build: Builder, entries: Entries, parameters: Sequence[int], subject: str, mode: str) -> Entries:
    """Return the entries of the next order: each entry's derivatives in the inputs up to its last one."""
    nodes = list(dict.fromkeys(entries.values()))
    candidates = modes.jacobians(build, linearize(build, nodes, parameters), mode)
    ways = {name: partial(_lower_part, entries, nodes, jacobian) for name, jacobian in candidates.items()}
    return cheapest(build.graph, subject, ways, parameters, nodes_of=dict.values)


def _lower_part(entries: Entries, nodes: Sequence[int], jacobian: dict[tuple[int, int], int]) -> Entries:
    """Return the entries of the next order from a Jacobian of the nodes of this one, places sorted downwards."""
    slopes: dict[int, list[tuple[int, int]]] = {}
    for (row, k), slope in jacobian.items():
        slopes.setdefault(nodes[row], []).append((k, slope))
    return {
        (*place, k): slope for place, node in entries.items() for k, slope in slopes.get(node, ()) if k <= place[-1]
    }


def dense(level: Level, result: Tree, elements: Sequence[Entries], shape: tuple[int, ...], order: int) -> Tree:
    """Return the full arrays of shape s + shape*order for each array of shape s in a result, from their entries."""
    size, zero = math.prod(shape), level.build.zero
    if len(elements) * size**order > LARGEST_DENSE:
        raise LimitError(
            f"a dense tensor of {len(elements) * size**order} entries",
            why=f"the limit is {LARGEST_DENSE}",
            do="use partials with sparse=True",
        )
    full = np.full((len(elements), *(size,) * order), zero, dtype=np.int64)
    for element, entries in zip(full, elements, strict=True):
        for place, node in entries.items():
            for permuted in set(permutations(place)):
                element[permuted] = node
    ends = np.cumsum([array.size for array in result.arrays])[:-1]
    parts = zip(np.split(full, ends), result.arrays, strict=True)
    return Tree(result.structure, [part.reshape(array.shape + shape * order) for part, array in parts])


def coordinates(entries: Entries, order: int) -> NDArray[np.intp]:
    """Return the places sorted upwards as an array of shape `(order, entries)`, in the order of the entries."""
    return np.array(list(entries), dtype=np.intp).reshape(len(entries), order)[:, ::-1].T.copy()


@dataclass(frozen=True, eq=False)
class TaylorPolynomial:
    """The Taylor polynomial of a function around `center`.

    `parts[k]` has the derivatives of order k (not divided by k!), in the structure of the function's result: for a
    result of shape s and a center of shape t, arrays of shape s + t*k.
    """

    center: Any
    parts: tuple[Any, ...]

    def __call__(self, x: Any) -> Any:
        """Return the polynomial's value at x: sum of parts[k] h**k / k! with h = x - center."""
        h = np.reshape(x - self.center, -1)
        leaves, structure = containers.flatten(self.parts[0])
        orders = [containers.flatten(part)[0] for part in self.parts]
        return containers.unflatten(
            structure, [self._value([part[k] for part in orders], h) for k in range(len(leaves))]
        )

    def _value(self, parts: list[Any], h: Any) -> Any:
        """Return one array of the value by Horner's rule, from the highest derivative down."""
        shape = np.shape(parts[0])
        flat = [parts[0], *(np.reshape(part, (*shape, *(h.size,) * k)) for k, part in enumerate(parts[1:], 1))]
        value = flat[-1]
        for k in range(len(flat) - 1, 0, -1):
            value = flat[k - 1] + value @ h / k
        return value


optree.register_pytree_node(
    TaylorPolynomial,  # type: ignore[arg-type]  # its stubs know only Collections
    lambda polynomial: ((polynomial.center, polynomial.parts), None),  # type: ignore[attr-defined]
    lambda _, children: TaylorPolynomial(*children),  # type: ignore[arg-type, return-value]
    namespace=NAMESPACE,
)


def polynomial_parts(level: Level, result: Tree, shape: tuple[int, ...], degree: int, mode: str) -> list[Tree]:
    """Return the derivatives of order 1 to `degree` of a result in one array of a shape; see `taylor`."""

    def reverse() -> list[Tree]:
        return [
            dense(level, result, [tensor_entries(level, node, order) for node in result.flat], shape, order)
            for order in range(1, degree + 1)
        ]

    ways = {"reverse": reverse}
    if degree == 2:
        ways["forward"] = lambda: _second_degree(level, result, shape)
    subject = f"Taylor polynomial of degree {degree}"
    return cheapest(
        level.build.graph, subject, ways, level.parameters.flat, mode, lambda trees: (n for t in trees for n in t.flat)
    )


def _second_degree(level: Level, result: Tree, shape: tuple[int, ...]) -> list[Tree]:
    """Return gradients and Hessians of all elements of a result, pushed forward through every operation."""
    build = level.build
    sweep = modes.derivative_of(level, result)
    gradient, hessian = gradients(build, sweep), second_forward(build, sweep, outer)
    first: list[Entries] = [
        {(k,): settle(build, term) for k, term in gradient.get(node, {}).items()} for node in result.flat
    ]
    second: list[Entries] = [
        {place: settle(build, term) for place, term in hessian.get(node, {}).items()} for node in result.flat
    ]
    return [dense(level, result, first, shape, 1), dense(level, result, second, shape, 2)]


Nodes = Sequence[int | None]  # None is a structural zero

HESSIAN_OUTPUTS = 64  # beyond it, one Hessian for each output takes too long to look at
TAYLOR_INPUTS = 16  # beyond it, Taylor coefficients along all pairs of axes are never the cheaper way


def laplacians(build: Builder, outputs: Sequence[int], parameters: Sequence[int], mode: str = "auto") -> Nodes:
    """Return the sum of the second derivatives in all parameters, of each output."""
    ways: dict[str, Callable[[], Nodes]] = {"collapsed": lambda: collapsed_laplacians(build, outputs, parameters)}
    if mode == "hessian" or len(outputs) <= HESSIAN_OUTPUTS:
        ways["hessian"] = lambda: [_trace_of_hessian(build, output, parameters) for output in outputs]
    return cheapest(build.graph, "Laplacian", ways, parameters, mode)


def biharmonics(build: Builder, outputs: Sequence[int], parameters: Sequence[int], mode: str = "auto") -> Nodes:
    """Return the Laplacian of the Laplacian in all parameters, of each output."""
    ways: dict[str, Callable[[], Nodes]] = {
        "nested": lambda: collapsed_laplacians(build, collapsed_laplacians(build, outputs, parameters), parameters)
    }
    if mode == "taylor" or len(parameters) <= TAYLOR_INPUTS:
        ways["taylor"] = lambda: _biharmonics_along_lines(build, outputs, parameters)
    return cheapest(build.graph, "biharmonic operator", ways, parameters, mode)


def collapsed_laplacians(build: Builder, outputs: Nodes, parameters: Sequence[int]) -> Nodes:
    """Return the Laplacian of each output (of which some may be structural zeros) by one forward sweep."""
    sweep = linearize(build, [node for node in outputs if node is not None], parameters)
    traces = second_forward(build, sweep, inner)
    terms = [None if node is None else traces.get(node, {}).get(()) for node in outputs]
    return [None if term is None else settle(build, term) for term in terms]


def _trace_of_hessian(build: Builder, output: int, parameters: Sequence[int]) -> int | None:
    entries = edge_pushing(build, linearize(build, [output], parameters), output)
    return _sum(build, [node for (row, column), node in entries.items() if row == column])


def _biharmonics_along_lines(build: Builder, outputs: Sequence[int], parameters: Sequence[int]) -> Nodes:
    """Return the operator from fourth derivatives along lines, D(s) = 24 a_4(s).

    D(e_i + e_j) + D(e_i - e_j) = 2 D(e_i) + 2 D(e_j) + 12 (derivative twice in i and twice in j). So the operator
    is the sum of D(e_i + e_j) + D(e_i - e_j) over all pairs, over 6, and of (4 - n) / 3 D(e_i).
    """
    size = len(parameters)
    weighted: list[tuple[Fraction, dict[int, int]]] = [(Fraction(24 * (4 - size), 3), {i: 1}) for i in range(size)]
    weighted += [(Fraction(4), {i: 1, j: sign}) for i, j in combinations(range(size), 2) for sign in (1, -1)]
    terms: list[list[int]] = [[] for _ in outputs]
    for weight, direction in weighted:
        if weight:
            seeds = [build.number(direction[k]) if k in direction else None for k in range(size)]
            last = taylor_coefficients(build, outputs, parameters, [seeds], 4)[-1]
            for collected, node in zip(terms, last, strict=True):
                if node is not None:
                    collected.append(build.mul(build.number(weight), node))
    return [_sum(build, collected) for collected in terms]


def _sum(build: Builder, nodes: Sequence[int]) -> int | None:
    total: int | None = None
    for node in nodes:
        total = node if total is None else build.add(total, node)
    return total
