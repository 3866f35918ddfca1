"""Second derivatives by one forward sweep: full second-degree Taylor polynomials, and Laplacians.

Each node carries its value, its gradient, and something linear in its Hessian:

    H(y)  =  sum of h_u H(u)  +  sum of h_uv grad(u) grad(v)^T

The Hessian itself gives the second-degree polynomial, pushed forward from (x_i, e_i, 0). Its trace gives the
Laplacian, in which grad(u) grad(v)^T collapses to one inner product before anything is multiplied by h_uv.

Source: Li et al., "A computational framework for neural network-based variational Monte Carlo with forward
Laplacian" (2023); Dangel et al., "Collapsing Taylor mode automatic differentiation" (2025).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from symad.derivatives.linear import Linear, Row, Term, gradients, scale, total
from symad.derivatives.roles import note
from symad.derivatives.second_order import second_partials
from symad.graph.builder import Builder

Gradient = dict[int, Term]
Place = tuple[int, ...]
Pair = Callable[[Builder, Gradient, Gradient], dict[Place, Term]]


def second_forward(build: Builder, sweep: Linear, pair: Pair) -> dict[int, dict[Place, Term]]:
    """Return for each node of a map the parts of its Hessian that `pair` makes of two gradients, `{place: term}`."""
    start = len(build.graph)
    active = {*sweep.inputs, *(target for target, _ in sweep.rows)}
    partials = {target: second_partials(build, target, active) for target, _ in sweep.rows}
    gradient = gradients(build, _part(sweep, {node for found in partials.values() for pair in found for node in pair}))
    found: dict[int, dict[Place, Term]] = {node: {} for node in sweep.inputs}
    for target, row in sweep.rows:
        terms: dict[Place, list[Term]] = {}
        for coefficient, source, guard in row:
            for place, term in found[source].items():
                terms.setdefault(place, []).append(scale(build, term, coefficient, guard))
        for (u, v), value in partials[target].items():
            for place, term in pair(build, gradient[u], gradient[v]).items():
                terms.setdefault(place, []).append(scale(build, term, value, None))
        found[target] = {place: total(build, collected) for place, collected in terms.items()}
    note("eliminated", build.graph, sweep.level, start, sweep, "second forward", "tangent", found, partials)
    return found


def _part(sweep: Linear, needed: set[int]) -> Linear:
    """Return the part of a map that leads to some nodes: a sum of many terms at the end needs no gradient."""
    rows: list[Row] = []
    for target, row in reversed(sweep.rows):
        if target in needed:
            rows.append((target, row))
            needed.update(source for _, source, _ in row)
    return replace(sweep, outputs=(), rows=tuple(reversed(rows)))


def outer(build: Builder, g: Gradient, h: Gradient) -> dict[Place, Term]:
    """Return g g^T, or g h^T + h g^T of two different gradients: the lower triangle, `{(row, column): term}`."""
    terms: dict[Place, list[Term]] = {}
    for i, left in g.items():
        for j, right in h.items():
            if g is h and j > i:
                continue
            product = scale(build, left, *right)
            if g is not h and i == j:
                product = scale(build, product, build.two, None)
            terms.setdefault((max(i, j), min(i, j)), []).append(product)
    return {place: total(build, collected) for place, collected in terms.items()}


def inner(build: Builder, g: Gradient, h: Gradient) -> dict[Place, Term]:
    """Return the trace of what `outer` returns, at the empty place: g.g or 2 g.h, nothing if they share no input."""
    products = [scale(build, term, *h[i]) for i, term in g.items() if i in h]
    if not products:
        return {}
    trace = total(build, products)
    return {(): trace if g is h else scale(build, trace, build.two, None)}
