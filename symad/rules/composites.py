"""Compositions whose chain rule is 0 * inf or inf / inf, differentiated as the smooth function that they are.

The value of such a node stays as written; only its derivative is taken of the equal form:

  u*u                            as u**2
  sqrt(u)**2k, |u|**2k           as u**k, u**2k: a norm squared is smooth at 0
  log(1 + exp(u)), log1p(exp(u)) as softplus(u): the derivative is right where exp(u) overflows
  1/(1 + exp(u))                 as expit(-u)
  log(cosh(u))                   with derivative tanh(u)
"""

from __future__ import annotations

from collections.abc import Callable

import sympy as sp

import codegen.heads as h
from codegen.ir.program import Head
from symad.graph.builder import Builder

Form = tuple[Head, tuple[int, ...]]


class log_cosh(sp.Function):  # type: ignore[misc]
    """log(cosh(u)), a name for the composition; it is never a node."""


class falling_expit(sp.Function):  # type: ignore[misc]
    """1/(1 + exp(u)), a name for the composition; it is never a node."""


# Partial derivatives of the compositions that are no head, as rows of `symad.rules.overrides`.
COMPOSITES: dict[Head, tuple[Callable[..., int | None], ...]] = {
    log_cosh: (lambda b, p, u: b.call(sp.tanh, u),),
    falling_expit: (lambda b, p, u: b.neg(b.mul(b.call(h.expit, u), b.call(h.expit, b.neg(u)))),),
}


def derivative_form(build: Builder, node: int) -> Form:
    """Return head and operands to differentiate for a node: its own, or those of an equal composition.

    >>> from symad.graph.graph import Graph
    >>> build = Builder(Graph())
    >>> x = build.graph.leaf(sp.Symbol("x"))
    >>> derivative_form(build, build.mul(x, x)) == (sp.Pow, (x, build.two))
    True
    """
    head, operands = build.graph.heads[node], build.graph.operands[node]
    recognise = _RECOGNISERS.get(head)
    return (head, operands) if recognise is None else recognise(build, operands) or (head, operands)


def _square(build: Builder, operands: tuple[int, ...]) -> Form | None:
    if len(operands) != 2 or operands[0] != operands[1]:
        return None
    square = (operands[0], build.two)
    return _power(build, square) or (sp.Pow, square)


def _power(build: Builder, operands: tuple[int, ...]) -> Form | None:
    base, exponent = operands
    graph = build.graph
    inner = graph.operands[base]
    if exponent == build.minus_one:
        u = _one_plus_exp(build, base)
        return None if u is None else (falling_expit, (u,))
    even = build.even_integer(exponent)
    if even is None:
        return None
    if graph.heads[base] is sp.Abs:
        return sp.Pow, (inner[0], exponent)
    if graph.heads[base] is sp.Pow and inner[1] == build.half:
        return sp.Pow, (inner[0], build.number(even // 2))
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
    for one, other in (graph.operands[node], graph.operands[node][::-1]):
        if build.constant(one) == 1 and graph.heads[other] is sp.exp:
            return graph.operands[other][0]
    return None


_RECOGNISERS: dict[Head, Callable[[Builder, tuple[int, ...]], Form | None]] = {
    sp.Mul: _square,
    sp.Pow: _power,
    sp.log: _logarithm,
    h.log1p: _logarithm_of_one_plus,
}
