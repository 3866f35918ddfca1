"""Directional derivatives of any order: through Taylor coefficients, or by forward mode over forward mode over ..."""

from __future__ import annotations

import math
from collections.abc import Sequence

from symad.derivatives.choice import cheapest, operations_of
from symad.derivatives.linear import linearize
from symad.derivatives.taylor import taylor_coefficients
from symad.graph.builder import Builder


def derivatives_along(
    build: Builder, outputs: Sequence[int], parameters: Sequence[int], tangents: Sequence[int | None],
    order: int, mode: str = "auto",
) -> list[int | None]:  # fmt: skip
    """Return the directional derivative of an order of each output; None is a structural zero.

    "auto" gives nested passes up as soon as they need more operations than Taylor coefficients do.
    """
    bound = math.inf

    def by_taylor() -> list[int | None]:
        nonlocal bound
        last = taylor_coefficients(build, outputs, parameters, [tangents], order)[-1]
        factor = build.number(math.factorial(order))
        found = [None if node is None else build.mul(factor, node) for node in last]
        bound = operations_of(build.graph, found, given)
        return found

    def by_nesting() -> list[int | None]:
        found: list[int | None] = list(outputs)
        for _ in range(order):
            found = pushed_forward(build, found, parameters, tangents)
            if operations_of(build.graph, found, given) > bound:
                break  # a derivative of lower order, which is never chosen
        return found

    given = [*parameters, *(node for node in tangents if node is not None)]
    ways = {"taylor": by_taylor, "nested": by_nesting}
    return cheapest(build.graph, f"derivative along a direction, order {order}", ways, given, mode)


def pushed_forward(
    build: Builder, nodes: Sequence[int | None], parameters: Sequence[int], tangents: Sequence[int | None]
) -> list[int | None]:
    """Return the tangents of nodes of which some may be structural zeros."""
    pushed = iter(linearize(build, [node for node in nodes if node is not None], parameters).apply(build, tangents))
    return [None if node is None else next(pushed) for node in nodes]
