"""Laplacians and biharmonic operators of the elements of a result, in all parameters together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations

from symad.derivatives.choice import cheapest
from symad.derivatives.forward_second import inner, second_forward
from symad.derivatives.linear import linearize, settle
from symad.derivatives.second_order import edge_pushing
from symad.derivatives.taylor import taylor_coefficients
from symad.graph.builder import Builder

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
    found = second_forward(build, sweep, inner)
    terms = [None if node is None else found.get(node, {}).get(()) for node in outputs]
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
