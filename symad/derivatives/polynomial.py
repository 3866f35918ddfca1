"""Full Taylor polynomials: value, gradient, Hessian... around one point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

import symad.tracing.values.containers as containers
from symad.derivatives import modes
from symad.derivatives.choice import cheapest
from symad.derivatives.forward_second import outer, second_forward
from symad.derivatives.level import Level
from symad.derivatives.linear import gradients, settle
from symad.derivatives.tensor import Entries, dense, tensor_entries
from symad.tracing.values.container_types import NAMESPACE
from symad.tracing.values.node_trees import Tree


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
    """Return the derivatives of order 1 to `degree` of a result in one array of a shape; see `taylor_polynomial`."""

    def reverse() -> list[Tree]:
        return [
            dense(level, result, [tensor_entries(level, node, order) for node in result.flat], shape, order)
            for order in range(1, degree + 1)
        ]

    ways = {"reverse": reverse}
    if degree == 2:
        ways["forward"] = lambda: _second_degree(level, result, shape)
    what = f"Taylor polynomial of degree {degree}"
    return cheapest(
        level.build.graph, what, ways, level.parameters.flat, mode, lambda trees: (n for t in trees for n in t.flat)
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
