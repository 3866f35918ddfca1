"""Linearize and transpose: the two halves of every first derivative.

`linearize` turns the part of a graph between parameters and outputs into a `Linear` map: rows
`(target, ((coefficient, source, guard), ...))`, one for each node that depends on the parameters. The coefficients
are ordinary nodes of the graph (the residuals), so whatever is built from them can be differentiated again.
Forward mode applies the map to tangents. Reverse mode is not written anywhere: `transpose` reverses the edges, and
the same `apply` then carries cotangents. Neither knows a single function.

Source: Radul, Paszke, Frostig, Johnson, Maclaurin, "You Only Linearize Once" (2022).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TypeAlias, TypeVar

import sympy as sp

from codegen.heads import Alias
from codegen.records import dataclass
from symad.derivatives.level import Kind, note
from symad.errors import ArgumentError, RuleError
from symad.graph.builder import Builder
from symad.rules.partials import Edge, edges, log_modulus, quotient
from symad.tracing.calling.scope import innermost_scope
from symad.tracing.calling.user_place import located

Row: TypeAlias = tuple[int, tuple[Edge, ...]]
K = TypeVar("K", bound=Hashable)
Term: TypeAlias = tuple[int, int | None]  # a value, and the guard under which it is not zero


@dataclass(frozen=True)
class Linear:
    """A linear map between nodes of one graph; sources come before the rows that use them."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    rows: tuple[Row, ...]
    level: int = 0  # from the outermost; 0 where no level is open
    transposed: bool = False

    def apply(self, build: Builder, tangents: Sequence[int | None]) -> list[int | None]:
        """Return the image of tangents (one node for each input); None is a structural zero."""
        start = len(build.graph)
        values = self.terms(build, [None if tangent is None else (tangent, None) for tangent in tangents])
        terms_out = (values.get(node) for node in self.outputs)
        results = [None if term is None else settle(build, term) for term in terms_out]
        note("carried", build.graph, self.level, start, self, values, results, tangents)
        return results

    def terms(self, build: Builder, tangents: Sequence[Term | None]) -> dict[int, Term]:
        """Return the terms of every node in the image of tangents, each under its guard."""
        values: dict[int, Term] = {}
        for node, seed in zip(self.inputs, tangents, strict=True):
            if seed is not None:
                values[node] = total(build, [values[node], seed]) if node in values else seed
        for target, row in self.rows:
            terms = [values[target]] if target in values else []
            for coefficient, source, guard in row:
                term = values.get(source)
                if term is not None:
                    terms.append(scale(build, term, coefficient, guard))
            if terms:
                values[target] = total(build, terms)
        return {node: term for node, term in values.items() if term[1] != build.never}

    @property
    def kind(self) -> Kind:
        """What the map carries."""
        return "cotangent" if self.transposed else "tangent"

    def coefficients(self) -> Iterator[int]:
        """Yield the nodes that the map multiplies by: the residuals."""
        return (coefficient for _, row in self.rows for coefficient, _, _ in row if coefficient is not None)

    def transpose(self) -> Linear:
        """Return the transposed map: every edge reversed, outputs and inputs exchanged."""
        targets = [target for target, _ in self.rows]
        first = dict.fromkeys(self.inputs)
        for target in targets:
            first.pop(target, None)  # an input that is a target too (an output others use) keeps its row's place
        reversed_rows: dict[int, list[Edge]] = {node: [] for node in (*first, *targets)}
        for target, row in reversed(self.rows):
            for coefficient, source, guard in row:
                reversed_rows[source].append((coefficient, target, guard))
        rows = [(node, tuple(row)) for node, row in reversed(reversed_rows.items()) if row]
        return Linear(self.outputs, self.inputs, tuple(rows), self.level, not self.transposed)


def linearize(build: Builder, outputs: Sequence[int], parameters: Sequence[int], *, quotients: bool = True) -> Linear:
    """Return the derivative of outputs with respect to parameters as a linear map.

    Parameters are alias nodes: what an outer level knows about the node behind an alias does not pass through it.
    Without `quotients`, u/v is differentiated as the product of u and 1/v.
    RuleError when an active operand has no derivative, ArgumentError for a parameter that is another node.

    >>> import sympy as sp
    >>> from symad.graph.graph import Graph
    >>> build = Builder(Graph())
    >>> x = build.graph.alias(build.graph.leaf(sp.Symbol("x")))
    >>> derivative = linearize(build, [build.mul(x, x)], [x])
    >>> derivative.transpose().transpose() == derivative
    True
    >>> derivative.apply(build, [build.one]) == [build.mul(build.two, x)]
    True
    """
    graph = build.graph
    if any(graph.heads[node] is not Alias and graph.operands[node] for node in parameters):
        raise ArgumentError(
            "a derivative is taken in a node that is no alias",
            why="a rule may look past it, into what it was made of, and the derivative would be another one",
            do="report this: it is a defect of symad",
        )
    active, start = set(parameters), len(graph)
    is_active = active.__contains__
    rows: list[Row] = []
    nodes = between(build, outputs, parameters)
    products = [node for node in nodes if graph.heads[node] is sp.Mul] if quotients else []
    divisors = {parts[1] for node in products if (parts := quotient(build, node))}
    for node in nodes:
        if node in divisors and graph.operands[node][0] in active:
            logarithm = graph.node(log_modulus, graph.operands[node][0])
            rows.append((logarithm, ((node, graph.operands[node][0], None),)))
            active.add(logarithm)
        try:
            row = edges(build, node, is_active)
        except RuleError as error:
            raise located(error, build.graph, node) from error
        if row:
            active.add(node)
            in_order = len(row) == 1 or (len(row) == 2 and row[0][1] <= row[1][1])
            rows.append((node, tuple(row if in_order else sorted(row, key=itemgetter(1)))))
    scope = innermost_scope()
    linear = Linear(tuple(parameters), tuple(outputs), _reaching(rows, outputs), 0 if scope is None else scope.depth)
    note("linearized", build.graph, linear.level, start, linear)
    return linear


def _reaching(rows: list[Row], outputs: Sequence[int]) -> tuple[Row, ...]:
    """Return the rows that outputs need: a root whose power is differentiated through has none (`root_powers`)."""
    needed = set(outputs)
    for target, row in reversed(rows):
        if target in needed:
            needed.update([source for _, source, _ in row])
    return tuple([row for row in rows if row[0] in needed])


def gradients(build: Builder, linear: Linear) -> dict[int, dict[int, Term]]:
    """Return for every node of a map its derivatives in the inputs it depends on, `{node: {input number: term}}`.

    This is forward mode with sparse tangents: inputs that a node does not depend on cost nothing.
    """
    start = len(build.graph)
    gradients_of: dict[int, dict[int, Term]] = {}
    for k, node in enumerate(linear.inputs):
        gradients_of.setdefault(node, {})[k] = (build.one, None)
    for target, row in linear.rows:
        terms = {k: [term] for k, term in gradients_of.get(target, {}).items()}  # of an input of a transposed map
        for coefficient, source, guard in row:
            for k, term in gradients_of[source].items():
                terms.setdefault(k, []).append(scale(build, term, coefficient, guard))
        gradients_of[target] = totals(build, terms)
    note("eliminated", build.graph, linear.level, start, linear, "gradients", linear.kind, gradients_of)
    return gradients_of


def between(build: Builder, outputs: Sequence[int], parameters: Sequence[int]) -> list[int]:
    """Return the nodes on a path from a parameter to an output, in topological order, without the parameters.

    Paths end at a parameter: the solution of an equation may depend on a number beside it.
    """
    if not outputs or not parameters:
        return []
    lowest, top = min(parameters), max(outputs)
    operands = build.graph.operands
    needed = bytearray(max(top - lowest + 1, 0))
    for node in outputs:
        if node >= lowest:
            needed[node - lowest] = 1
    depends = set(parameters)
    for node in range(top, lowest - 1, -1):
        if needed[node - lowest] and node not in depends:
            for operand in operands[node]:
                if operand >= lowest:
                    needed[operand - lowest] = 1
    nodes = []
    for node in range(lowest, top + 1):
        if needed[node - lowest] and node not in depends and not depends.isdisjoint(operands[node]):
            depends.add(node)
            nodes.append(node)
    return nodes


def scale(build: Builder, term: Term, coefficient: int | None, guard: int | None) -> Term:
    """Return coefficient * term under a further guard; the guard stays outside the product, so 0 * inf cannot occur."""
    value, inner = term
    if coefficient is not None:
        value = build.mul(coefficient, value)
    elif guard is None:
        return term
    return value, inner if guard is None else build.both(inner, guard)


def settle(build: Builder, term: Term) -> int:
    """Return a term as one node: the value where its guard holds, else 0."""
    value, guard = term
    return value if guard is None else build.select(guard, value, build.zero)


def total(build: Builder, terms: Sequence[Term]) -> Term:
    """Return the sum of terms, under the guard that one of them holds: where none does, no factor can make it NaN.

    Of two terms whose guards exclude each other one is chosen instead; a term that holds nowhere is dropped.

    >>> import sympy as sp
    >>> from symad.graph.graph import Graph
    >>> build = Builder(Graph())
    >>> x, y = (build.graph.leaf(sp.Symbol(name)) for name in "xy")
    >>> holds = build.call(sp.StrictLessThan, x, y)
    >>> total(build, [(x, holds), (y, build.negate(holds))]) == (build.select(holds, x, y), None)
    True
    """
    if len(terms) == 1:  # of most nodes there is one
        return terms[0]
    terms = [term for term in terms if term[1] != build.never] or terms[:1]
    guard = terms[0][1]
    if any(other != guard for _, other in terms):
        terms = _choices(build, terms)
        guard = terms[0][1]
        for _, other in terms[1:]:
            guard = build.either(guard, other)
        if len(terms) > 1:
            terms = [(settle(build, term), None) for term in terms]
    value = terms[0][0]
    for other, _ in terms[1:]:
        value = build.add(value, other)
    return value, guard


def totals(build: Builder, terms: Mapping[K, Sequence[Term]]) -> dict[K, Term]:
    """Return the sums of terms at each place; a place without terms that can hold is a structural zero."""
    sums, never = {}, build.never
    for place, collected in terms.items():
        term = collected[0] if len(collected) == 1 else total(build, collected)
        if term[1] != never:
            sums[place] = term
    return sums


Half: TypeAlias = tuple[int | None, int, bool]  # of a guard p: p itself, a condition, and whether it holds


def _choices(build: Builder, terms: Sequence[Term]) -> list[Term]:
    """Return terms with one for each guard, and a choice under p in place of two under `p and c`, `p and not c`."""
    choices: dict[int | None, int] = {}
    halves: dict[Half, int] = {}
    for value, guard in terms:
        while guard not in choices and (half := _half(build, guard, halves, choices)) is not None:
            guard, condition, holds = half
            other = choices.pop(halves[guard, condition, not holds])
            value = build.select(condition, value, other) if holds else build.select(condition, other, value)
        choices[guard] = build.add(choices[guard], value) if guard in choices else value
        if guard is not None:
            halves.update(dict.fromkeys(_halves(build, guard), guard))
    return [(value, guard) for guard, value in choices.items()]


def _half(build: Builder, guard: int | None, halves: dict[Half, int], choices: dict[int | None, int]) -> Half | None:
    """Return a guard as a half, if the other half is among the choices."""
    for half in () if guard is None else _halves(build, guard):
        common, condition, holds = half
        other = halves.get((common, condition, not holds))
        if other is not None and other in choices:
            return half
    return None


def _halves(build: Builder, guard: int) -> list[Half]:
    """Return all ways to see a guard as the half of another one."""
    heads, operands = build.graph.heads, build.graph.operands
    parts: list[tuple[int | None, int]] = [(None, guard)]
    if heads[guard] is sp.And and len(operands[guard]) == 2:
        left, right = operands[guard]
        parts += [(left, right), (right, left)]
    return [
        (common, operands[part][0], False) if heads[part] is sp.Not else (common, part, True) for common, part in parts
    ]
