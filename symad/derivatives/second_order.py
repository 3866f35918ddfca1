"""Hessians by symmetric edge pushing: one reverse sweep that carries first and second adjoints.

The sweep visits the nodes from the output down. `adjoint[i]` is the derivative of the output in node i, and
`weights[i][j]` the second derivative in nodes i and j (j <= i), both with the nodes above already eliminated.
Symmetry is used at every step, and an entry that never appears is a proved structural zero: the sparsity pattern
is exact and costs nothing.

Source: Gower and Mello, "A new framework for the computation of Hessians", Optim. Methods Softw. 27 (2012).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import sympy as sp

from codegen.program import Head
from symad.derivatives.linear import Row, Term, linearize, scale, settle, total
from symad.graph.builder import Builder
from symad.graph.table import Graph
from symad.rules.overrides import GATES
from symad.rules.partials import Template, derivative_form, partial

LINEAR: frozenset[Head] = frozenset({sp.Add, *GATES})
TEMPLATES = 4096  # bound of the cache of second partials, keyed by (head, constant operands, two operand numbers)

Weights = dict[int, dict[int, list[Term]]]


def edge_pushing(build: Builder, output: int, parameters: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return the lower triangle of the Hessian of a scalar output: `{(row, column): node}`, row >= column.

    Rows and columns number the parameters; a missing entry is a structural zero.

    >>> build = Builder(Graph())
    >>> x, y = (build.graph.alias(build.graph.leaf(sp.Symbol(name))) for name in "xy")
    >>> sorted(edge_pushing(build, build.mul(build.mul(x, x), y), [x, y]))
    [(0, 0), (1, 0)]
    """
    sweep = linearize(build, [output], parameters)
    active = {target for target, _ in sweep.rows}.union(parameters)
    adjoint: dict[int, list[Term]] = {output: [(build.one, None)]}
    weights: Weights = {}
    for row in reversed(sweep.rows):
        target = row[0]
        _push_weights(build, row, weights)
        if target in adjoint:
            _create_weights(build, target, total(build, adjoint[target]), active, weights)
            _push_adjoint(build, row, adjoint)
    return _entries(build, parameters, weights)


def second_partials(build: Builder, node: int, active: set[int]) -> dict[tuple[int, int], int]:
    """Return the non-zero local second partials of a node as `{(source, source): coefficient}`, larger source first."""
    head, operands = derivative_form(build, node)
    if head in LINEAR:
        return {}
    constants = tuple(None if u in active else build.graph.atoms.get(u) for u in operands)
    positions = [k for k, u in enumerate(operands) if u in active]
    found: dict[tuple[int, int], int] = {}
    for i in positions:
        for j in positions:
            pair = (operands[i], operands[j])
            if pair[0] < pair[1]:
                continue  # the pair in the other order is the same entry
            template = _second_template(head, constants, i, j)
            if template is not None:
                value = template.instantiate(build, operands)
                found[pair] = build.add(found[pair], value) if pair in found else value
    return found


@lru_cache(maxsize=TEMPLATES)
def _second_template(head: Head, constants: tuple[sp.Basic | None, ...], i: int, j: int) -> Template | None:
    """Differentiate the first partial of a head once more, on a graph of its own; None is a structural zero."""
    graph = Graph()
    build = Builder(graph)
    operands = tuple(
        graph.alias(graph.leaf(sp.Dummy(f"u{k}", real=True))) if atom is None else graph.leaf(atom)
        for k, atom in enumerate(constants)
    )
    node = graph.node(head, *operands)
    first = partial(build, head, operands, node, i)
    if first is None:
        return None
    (second,) = linearize(build, [first], [operands[j]]).apply(build, [build.one])
    return None if second is None else Template.of(graph, second, operands)


def _push_weights(build: Builder, row: Row, weights: Weights) -> None:
    """Eliminate a node from the second-order weights: the chain rule on w(i, j) and w(i, i)."""
    target, edges = row
    for other, terms in weights.pop(target, {}).items():
        weight = total(build, terms)
        for position, (coefficient, source, guard) in enumerate(edges):
            pushed = scale(build, weight, coefficient, guard)
            if other != target:
                _accumulate(build, weights, source, other, pushed)
                continue
            _insert(weights, source, source, scale(build, pushed, coefficient, guard))
            for coefficient2, source2, guard2 in edges[:position]:
                _insert(weights, source, source2, scale(build, pushed, coefficient2, guard2))


def _create_weights(build: Builder, target: int, adjoint: Term, active: set[int], weights: Weights) -> None:
    for (source, source2), value in second_partials(build, target, active).items():
        _insert(weights, source, source2, scale(build, adjoint, value, None))


def _push_adjoint(build: Builder, row: Row, adjoint: dict[int, list[Term]]) -> None:
    term = total(build, adjoint.pop(row[0]))
    for coefficient, source, guard in row[1]:
        adjoint.setdefault(source, []).append(scale(build, term, coefficient, guard))


def _accumulate(build: Builder, weights: Weights, source: int, other: int, term: Term) -> None:
    """Add to w(source, other); the diagonal receives it twice, once for each order of the pair."""
    _insert(weights, source, other, scale(build, term, build.two, None) if source == other else term)


def _insert(weights: Weights, source: int, other: int, term: Term) -> None:
    if source < other:
        source, other = other, source
    weights.setdefault(source, {}).setdefault(other, []).append(term)


def _entries(build: Builder, parameters: Sequence[int], weights: Weights) -> dict[tuple[int, int], int]:
    index = {node: k for k, node in enumerate(parameters)}
    found: dict[tuple[int, int], int] = {}
    for source, row in weights.items():
        for other, terms in row.items():
            place = sorted((index[source], index[other]), reverse=True)
            found[place[0], place[1]] = settle(build, total(build, terms))
    return found
