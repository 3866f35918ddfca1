"""Hessians as sums of dyads: every nonlinear node adds its second derivative times the gradients of its operands.

With adjoint a of a node f(u, v), the Hessian is the sum over all nodes of
a f_uu grad(u) grad(u)^T + a f_uv (grad(u) grad(v)^T + grad(v) grad(u)^T) + a f_vv grad(v) grad(v)^T.
Gradients are taken forward, adjoints in reverse. This needs fewer operations than edge pushing where a function of
few variables passes through wide layers, and the same structure gives the pattern.

Source: Jackson and McCormick, "The polyadic structure of factorable function tensors with applications to high-order
minimization techniques", J. Optim. Theory Appl. 51 (1986).
"""

from __future__ import annotations

import sympy as sp

from symad.derivatives.linear import Linear, Term, gradients, scale, settle, total
from symad.derivatives.roles import note
from symad.derivatives.second_order import LINEAR, adjoints, second_partials
from symad.graph.builder import Builder
from symad.rules.composites import derivative_form
from symad.rules.partials import Edge

Gradient = dict[int, Term]
Entries = dict[tuple[int, int], int]


def dyads(build: Builder, sweep: Linear, output: int) -> Entries:
    """Return the lower triangle of the Hessian of a scalar output, `{(row, column): node}`.

    `sweep` is the output's derivative (see `linearize`); rows and columns number its inputs.

    >>> from symad.derivatives.linear import linearize
    >>> from symad.graph.graph import Graph
    >>> build = Builder(Graph())
    >>> x, y = (build.graph.alias(build.graph.leaf(sp.Symbol(name))) for name in "xy")
    >>> output = build.mul(build.mul(x, x), y)
    >>> sorted(dyads(build, linearize(build, [output], [x, y]), output))
    [(0, 0), (1, 0)]
    """
    start, gradient = len(build.graph), gradients(build, sweep)
    active = set(gradient)
    terms: dict[tuple[int, int], list[Term]] = {}
    found = adjoints(build, sweep.rows, output)
    for target, adjoint in found.items():
        for (u, v), value in second_partials(build, target, active).items():
            weight = scale(build, adjoint, value, None)
            if u == v:
                _add_square(build, terms, weight, gradient[u])
            else:
                _add_product(build, terms, weight, gradient[u], gradient[v])
    entries = {place: settle(build, total(build, collected)) for place, collected in terms.items()}
    note("eliminated", build.graph, sweep.level, start, sweep, "dyadic", "cotangent", entries, found)
    return entries


def dyad_operations(build: Builder, sweep: Linear) -> int:
    """Return an estimate of the operations that `dyads` needs, from the sizes of the gradients alone."""
    depends = {node: 1 << k for k, node in enumerate(sweep.inputs)}  # a bit for each input
    atoms = build.graph.atoms
    operations = len(sweep.inputs)
    for target, row in sweep.rows:
        mask = 0
        for coefficient, source, _ in row:
            added = mask & depends[source]
            scaled = 0 if coefficient is None or coefficient in atoms else depends[source]
            operations += 1 + added.bit_count() + scaled.bit_count()
            mask |= depends[source]
        depends[target] = mask
        if not _is_linear(build, target, row):
            size = mask.bit_count()
            operations += size + size * (size + 1)  # a scaled gradient, then product and sum for each entry
    return operations


def _is_linear(build: Builder, target: int, row: tuple[Edge, ...]) -> bool:
    head, _ = derivative_form(build, target)
    return head in LINEAR or (head is sp.Mul and len(row) == 1)


def _add_square(build: Builder, terms: dict[tuple[int, int], list[Term]], weight: Term, g: Gradient) -> None:
    for i, left in g.items():
        scaled = scale(build, weight, *left)
        for j, right in g.items():
            if j <= i:
                terms.setdefault((i, j), []).append(scale(build, scaled, *right))


def _add_product(
    build: Builder, terms: dict[tuple[int, int], list[Term]], weight: Term, g: Gradient, h: Gradient
) -> None:
    for i, left in g.items():
        scaled = scale(build, weight, *left)
        for j, right in h.items():
            product = scale(build, scaled, *right)
            if i == j:
                product = scale(build, product, build.two, None)
            terms.setdefault((max(i, j), min(i, j)), []).append(product)
