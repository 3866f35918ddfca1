"""Partial derivatives of every head: asked of SymPy once, kept as a template, instantiated on the graph.

Compositions whose chain rule is 0 * inf or inf / inf, differentiated as the smooth function that they are. The value of
such a node stays as written; only its derivative is taken of the equal form:

  u*u                            as u**2
  sqrt(u)**2k, |u|**2k, (u**r)**n  as u**k, u**2k, u**(rn): a norm squared is smooth at 0
  u * sqrt(u)                    as u**(3/2)
  (c sqrt(u))**n and the like    through u, however they are spelled (`symad.rules.root_powers`)
  log(1 + exp(u)), log1p(exp(u)) as softplus(u): the derivative is right where exp(u) overflows
  1/(1 + exp(u))                 as expit(-u)
  log(cosh(u))                   with derivative tanh(u)
  u/v                            as u exp(-log|v|): its slope is made of u/v, where 1/v**2 may be out of range

`edges(build, node)` is the only place where a head meets its derivative. It returns the local linear map of a node
as edges `(coefficient, source, guard)`: the tangent of the node is the sum of coefficient * tangent(source), each
under its guard. A coefficient of None is 1, a guard of None is "always". An operand without an edge is a structural
zero; a partial that cannot be given raises RuleError naming the head and the operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import sympy as sp
from sympy.core.function import AppliedUndef, ArgumentIndexError

import codegen.heads as h
from codegen.heads import Alias
from codegen.ir.program import Head, reachable
from codegen.records import dataclass
from symad.errors import RuleError
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.graph.sympy_io import from_sympy
from symad.rules.finite import presence, vanishes
from symad.rules.overrides import GATES, OVERRIDES
from symad.rules.ranged_rules import refused
from symad.rules.root_powers import PARTS, ROOTS, power_form, power_of_root, root_exponent

Form = tuple[Head, tuple[int, ...]]


class log_cosh(sp.Function):  # type: ignore[misc]
    """log(cosh(u)), a name for the composition; it is never a node."""


class falling_expit(sp.Function):  # type: ignore[misc]
    """1/(1 + exp(u)), a name for the composition; it is never a node."""


class log_modulus(sp.Function):  # type: ignore[misc]
    """log(|v|), through which u/v is differentiated in v; its value is never asked for."""


# Partial derivatives of the compositions that are no head, as rows of `symad.rules.overrides`.
COMPOSITES: dict[Head, tuple[Callable[..., int | None], ...]] = {
    log_cosh: (lambda b, p, u: b.call(sp.tanh, u),),
    falling_expit: (lambda b, p, u: b.neg(b.mul(b.call(h.expit, u), b.call(h.expit, b.neg(u)))),),
}


def derivative_form(build: Builder, node: int) -> Form:
    """Return the head and operands to differentiate for a node: its own, or those of an equal composition.

    >>> build = Builder(Graph())
    >>> x = build.graph.leaf(sp.Symbol("x"))
    >>> derivative_form(build, build.mul(x, x)) == (sp.Pow, (x, build.two))
    True
    """
    head, operands = build.graph.heads[node], build.graph.operands[node]
    recognise = _RECOGNISERS.get(head)
    return (head, operands) if recognise is None else recognise(build, operands) or (head, operands)


def is_plain_product(build: Builder, operands: tuple[int, ...]) -> bool:
    """Whether a product of two is differentiated by the product rule: it is no square, and no power of a root."""
    left, right = operands
    return left != right and _product(build, operands) is None


def _product(build: Builder, operands: tuple[int, ...]) -> Form | None:
    if len(operands) != 2:
        return None
    left, right = operands
    if left == right:
        square = (left, build.two)
        return _power(build, square) or (sp.Pow, square)
    graph = build.graph
    for root, other in ((left, right), (right, left)):
        if graph.heads[root] is sp.Pow and graph.operands[root][0] == other and (r := root_exponent(build, root)):
            return sp.Pow, (other, build.number(r + 1))
    if graph.heads[left] not in PARTS or graph.heads[right] not in PARTS:
        return None
    return power_form(build, [(left, 1), (right, 1)], COMPOSITES)


def _power(build: Builder, operands: tuple[int, ...]) -> Form | None:
    base, exponent = operands
    if exponent == build.minus_one:
        u = _one_plus_exp(build, base)
        return None if u is None else (falling_expit, (u,))
    power = build.constant(exponent)
    if power is None or build.graph.heads[base] not in ROOTS:
        return None
    form = power_of_root(build, base, power)
    if form is not None or power != int(power) or power < 2:
        return form
    return power_form(build, [(base, int(power))], COMPOSITES)


def quotient(build: Builder, node: int) -> tuple[int, int] | None:
    """Return u and the node of 1/v for a node u/v that is differentiated as a quotient, where u is no exact number."""
    operands = build.graph.operands[node]
    if build.graph.heads[node] is not sp.Mul or len(operands) != 2:
        return None
    for u, reciprocal in (operands, operands[::-1]):
        if is_reciprocal(build, reciprocal) and not isinstance(build.constant(u), int | Fraction):
            return (u, reciprocal) if is_plain_product(build, operands) else None
    return None


def is_reciprocal(build: Builder, node: int) -> bool:
    """Whether a node is 1/v, and not the 1/(1 + exp(u)) that has a derivative of its own."""
    graph = build.graph
    if graph.heads[node] is not sp.Pow or graph.operands[node][1] != build.minus_one:
        return False
    return _power(build, graph.operands[node]) is None


def log_divisor(build: Builder, reciprocal: int, active: Callable[[int], bool]) -> int | None:
    """Return the node of log(|v|) for a node 1/v, if it is active: then u/v is differentiated as u exp(-log(|v|)).

    So its slope in v is made of u/v, and not of 1/v**2, which may be too large or too small a number.
    """
    graph = build.graph
    if graph.heads[reciprocal] is not sp.Pow or graph.operands[reciprocal][1] != build.minus_one:
        return None
    logarithm = graph.known(log_modulus, graph.operands[reciprocal][0])
    return logarithm if logarithm is not None and active(logarithm) else None


def divided(build: Builder, node: int, active: Callable[[int], bool]) -> tuple[int, int, int] | None:
    """Return u, 1/v and log(|v|) for a product of two u/v, if its logarithm is active (see `log_divisor`)."""
    heads = build.graph.heads
    left, right = build.graph.operands[node]
    for u, reciprocal in ((left, right), (right, left)):
        if heads[reciprocal] is sp.Pow and (logarithm := log_divisor(build, reciprocal, active)) is not None:
            return u, reciprocal, logarithm
    return None


def _logarithm(build: Builder, operands: tuple[int, ...]) -> Form | None:
    (argument,) = operands[:1]
    if build.graph.heads[argument] is sp.cosh:
        return log_cosh, build.graph.operands[argument]
    u = _one_plus_exp(build, argument)
    return None if u is None else (h.softplus, (u,))


def _logarithm_of_one_plus(build: Builder, operands: tuple[int, ...]) -> Form | None:
    (argument,) = operands
    return (h.softplus, build.graph.operands[argument]) if build.graph.heads[argument] is sp.exp else None


def _one_plus_exp(build: Builder, node: int) -> int | None:
    """Return u when a node is 1 + exp(u), in either order, with an exact or floating 1."""
    graph = build.graph
    if graph.heads[node] is not sp.Add or len(graph.operands[node]) != 2:
        return None
    for summand, other in (graph.operands[node], graph.operands[node][::-1]):
        if build.constant(summand) == 1 and graph.heads[other] is sp.exp:
            return graph.operands[other][0]
    return None


_RECOGNISERS: dict[Head, Callable[[Builder, tuple[int, ...]], Form | None]] = {
    sp.Mul: _product,
    sp.Pow: _power,
    sp.log: _logarithm,
    h.log1p: _logarithm_of_one_plus,
}


Edge: TypeAlias = tuple[int | None, int, int | None]

TEMPLATES = 4096  # bound of the template cache, keyed by (head, number of operands, operand)
_UNUSABLE = (sp.Derivative, sp.Subs, sp.Sum, sp.Product, sp.Integral, sp.meijerg, sp.hyper, sp.DiracDelta)


@dataclass(frozen=True, slots=True)
class PartialTemplate:
    """A partial derivative as rows over placeholders: slots 0..k-1 are the operands, then constants, then rows."""

    constants: tuple[sp.Basic, ...]
    rows: tuple[tuple[Head, tuple[int, ...]], ...]
    result: int

    @classmethod
    def of(cls, graph: Graph, result: int, operands: Sequence[int]) -> PartialTemplate:
        """Make a template of the node `result`, with the given nodes as placeholders."""
        slots = {operand: k for k, operand in enumerate(operands)}
        order = [node for node in reachable(graph, [result]) if node not in slots]
        used = {operand for node in order for operand in graph.operands[node]} | {result}
        constants = [node for node in order if node in graph.atoms and node in used]
        slots.update((node, len(operands) + k) for k, node in enumerate(constants))
        rows: list[tuple[Head, tuple[int, ...]]] = []
        for node in order:
            if graph.operands[node] and node not in slots:
                rows.append((graph.heads[node], tuple(slots[operand] for operand in graph.operands[node])))
                slots[node] = len(operands) + len(constants) + len(rows) - 1
        return cls(tuple(graph.atoms[node] for node in constants), tuple(rows), slots[result])

    def instantiate(self, build: Builder, operands: tuple[int, ...]) -> int:
        """Grow the template on the graph, over the given operands: constructors fold, so this is no copy of rows."""
        nodes = list(operands)
        nodes += [build.graph.leaf(atom) for atom in self.constants]
        for head, slots in self.rows:
            nodes.append(build.call(head, *[nodes[slot] for slot in slots]))
        return nodes[self.result]


def edges(build: Builder, node: int, active: Callable[[int], bool]) -> list[Edge]:
    """Return the edges from the active operands of a node, at most one for each source and guard.

    A factor that is the constant 0 leaves none, where the other one is finite: it is a structural zero.

    >>> graph = Graph()
    >>> build = Builder(graph)
    >>> x = graph.leaf(sp.Symbol("x"))
    >>> [(coefficient, source, guard)] = edges(build, graph.node(sp.sin, x), lambda node: True)
    >>> graph.heads[coefficient], source == x, guard
    (cos, True, None)
    """
    graph = build.graph
    head, operands = graph.heads[node], graph.operands[node]
    if head is sp.Add:
        edges_of_node: list[Edge] = [(None, u, None) for u in filter(active, operands)]
        if len(operands) == 2 and operands[0] != operands[1]:
            return edges_of_node
    elif head is sp.Mul and len(operands) == 2 and is_plain_product(build, operands):
        if (parts := divided(build, node, active)) is not None:
            numerator, reciprocal, log_of_divisor = parts
            edges_of_node = [(reciprocal, numerator, None)] if active(numerator) else []
            return [*edges_of_node, (build.neg(node), log_of_divisor, None)]
        left, right = operands
        edges_of_node = []
        if active(left) and not vanishes(build, right, left):
            edges_of_node.append((None if right == build.one else right, left, presence(build, right, left)))
        if active(right) and not vanishes(build, left, right):
            edges_of_node.append((None if left == build.one else left, right, presence(build, left, right)))
        return edges_of_node
    elif (logarithm := log_divisor(build, node, active)) is not None:
        return [(build.neg(node), logarithm, None)]
    else:
        edges_of_node = _edges_of_form(build, *derivative_form(build, node), node, active)
    if len(edges_of_node) < 2 or (len(edges_of_node) == 2 and edges_of_node[0][1] != edges_of_node[1][1]):
        return edges_of_node
    return _merge(build, edges_of_node)


def _edges_of_form(
    build: Builder, head: Head, operands: tuple[int, ...], node: int, active: Callable[[int], bool]
) -> list[Edge]:
    """Return the edges of a node that is differentiated in another form."""
    gate = GATES.get(head)
    if gate is not None:
        gates = gate(build, operands)
        return [(c, u, g) for (c, g), u in zip(gates, operands, strict=True) if active(u)]
    edges_of_form: list[Edge] = []
    for position, source in enumerate(operands):
        if active(source):
            coefficient = partial(build, head, operands, node, position)
            if coefficient is not None:
                edges_of_form.append((None if coefficient == build.one else coefficient, source, None))
    return edges_of_form


def partial(build: Builder, head: Head, operands: tuple[int, ...], node: int, position: int) -> int | None:
    """Return the node of the partial derivative of `head(*operands)` in one operand, None for a structural zero.

    RuleError when neither the override table nor SymPy can give it.
    """
    if head is Alias and node in build.graph.rules:
        return build.graph.rules[node](position - 1) if position else None
    if head is sp.Add:
        return build.one
    if head is sp.Mul:
        others = operands[:position] + operands[position + 1 :]
        zero = any(vanishes(build, other, operands[position]) for other in others)
        return None if zero else build.mul(build.one, *others)
    rules = OVERRIDES.get(head) or COMPOSITES.get(head)
    if rules is not None and rules[position] is refused:
        raise _refusal(head, position, "its derivative in that operand is not an elementary or special function")
    if rules is not None:
        return rules[position](build, node, *operands)
    if build.graph.is_boolean(node):
        return None  # a truth value is piecewise constant
    template = sympy_template(head, len(operands), position)  # type: ignore[arg-type]  # classes are hashable
    return template.instantiate(build, operands)


@lru_cache(maxsize=TEMPLATES)
def sympy_template(head: Head, operand_count: int, position: int) -> PartialTemplate:
    """Ask SymPy for one partial derivative of a head and keep it as a template.

    >>> sympy_template(sp.sin, 1, 0).rows
    ((cos, (0,)),)
    """
    placeholders = [sp.Dummy(f"u{k}", real=True) for k in range(operand_count)]
    if issubclass(head, AppliedUndef):
        raise _refusal(head, position, "it is an undefined function: nothing is known about its derivative")
    expression = _ask_sympy(head, placeholders, position)
    graph = Graph()
    operands = [graph.leaf(symbol) for symbol in placeholders]
    (result,) = from_sympy(graph, [expression], binary=True)
    return PartialTemplate.of(graph, result, operands)


def _ask_sympy(head: Head, placeholders: list[sp.Dummy], position: int) -> sp.Expr:
    applied = head(*placeholders)
    try:
        expression = applied.fdiff(position + 1)
    except (AttributeError, ArgumentIndexError):
        expression = sp.diff(applied, placeholders[position])
    if expression.has(*_UNUSABLE):
        raise _refusal(head, position, f"SymPy has no formula for it but {expression}".replace("_u", "u"))
    return expression


def _refusal(head: Head, position: int, why: str) -> RuleError:
    return RuleError(
        f"{head.__name__} has no derivative in its operand {position} (counted from 0)",
        why=why,
        do="keep that operand constant, or give a function whose derivative is known",
    )


def _merge(build: Builder, edges_of_node: list[Edge]) -> list[Edge]:
    """Add the coefficients of edges that share source and guard: f(u, u) has one edge from u."""
    merged: dict[tuple[int, int | None], int | None] = {}
    for coefficient, source, guard in edges_of_node:
        key = (source, guard)
        if key not in merged:
            merged[key] = coefficient
        else:
            before = merged[key]
            merged[key] = build.add(
                build.one if before is None else before, build.one if coefficient is None else coefficient
            )
    return [(coefficient, source, guard) for (source, guard), coefficient in merged.items()]
