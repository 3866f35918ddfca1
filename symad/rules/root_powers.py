"""Differentiate powers of scaled roots through the radicand.

sqrt(v)**n, |v|**n and hypot(a, b)**n with n >= 2 are smooth at 0, or have a slope there; the rule through the root
is 0/0. Such a power is found in products and powers of products too: (norm / l)**2, -norm * norm, norm**2 * norm. It is
differentiated as a composition of its own, of the exponent, what the root is taken of, and the other factors.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import sympy as sp

import codegen.heads as h
from codegen.ir.program import Head
from symad.graph.builder import Builder, Exact, simplest
from symad.rules.ranged_rules import zero

Form = tuple[Head, tuple[int, ...]]
Rules = dict[Head, tuple[Callable[..., int | None], ...]]
Factor = tuple[int, int]  # a node and its exponent

PARTS = frozenset({sp.Mul, sp.Pow, sp.Abs, h.hypot})  # heads of operands that may hold a root
ROOTS = PARTS | {h.cbrt}
MOST = 8  # factors, and the largest exponent
LONGEST = 64  # numbers whose squares nested hypots add up


def root_exponent(build: Builder, root: int) -> Exact | float | None:
    """Return r of a root u**r, 0 < r < 1."""
    r = build.constant(build.graph.operands[root][1])
    return r if r is not None and 0 < r < 1 else None


def power_of_root(build: Builder, root: int, power: Exact | float) -> Form | None:
    """Return u**(r n) for a power n of u**r, where r n >= 1, and u**n for an even power n of |u|."""
    graph = build.graph
    form: Form | None = None
    while True:
        head = graph.heads[root]
        r: Exact | float | None = None
        if head is sp.Pow:
            r = root_exponent(build, root)
        elif head is sp.Abs and power % 2 == 0:
            r = 1
        elif head is h.cbrt and power % 3 == 0:
            r = Fraction(1, 3)
        if r is None or r * power < 1:
            return form
        root, power = graph.operands[root][0], r * power
        power = power if isinstance(power, float) else simplest(power)
        form = sp.Pow, (root, build.number(power))


def power_form(build: Builder, factors: list[Factor], rules: Rules) -> Form | None:
    """Return the composition that a product of powers is, None where no root has an exponent of 2 or more."""
    flat = _flattened(build, factors)
    if flat is None:
        return None
    for root in flat:
        kind, n = _kind(build, root), flat[root]
        if kind and 2 <= n <= MOST and (kind != "abs" or n % 2 == 0):
            scales = [node for node, exponent in flat.items() if node != root for _ in range(exponent)]
            if len(scales) > MOST:
                return None
            inner = _radicands(build, root) if kind == "hypot" else build.graph.operands[root][:1]
            return _head(kind, len(inner), len(scales), rules), (build.number(n), *inner, *scales)
    return None


def _flattened(build: Builder, factors: list[Factor]) -> dict[int, int] | None:
    """Return the factors of products and whole powers with their exponents, None if there are too many."""
    graph, exponents = build.graph, dict[int, int]()
    waiting = list(reversed(factors))
    while waiting:
        node, exponent = waiting.pop()
        head, operands = graph.heads[node], graph.operands[node]
        power = build.constant(operands[1]) if head is sp.Pow else None
        if head is sp.Mul and exponent > 0:
            waiting += [(operand, exponent) for operand in reversed(operands)]
        elif isinstance(power, int) and power > 0 and graph.heads[operands[0]] in PARTS:
            waiting.append((operands[0], exponent * power))
        else:
            exponents[node] = exponents.get(node, 0) + exponent
        if len(exponents) + len(waiting) > MOST:
            return None
    return exponents


def _kind(build: Builder, node: int) -> str:
    head = build.graph.heads[node]
    if head is sp.Pow:
        return "sqrt" if build.constant(build.graph.operands[node][1]) == Fraction(1, 2) else ""
    return {sp.Abs: "abs", h.hypot: "hypot"}.get(head, "")


def _radicands(build: Builder, root: int) -> tuple[int, ...]:
    """Return the numbers whose squares nested hypots add up; the operands alone if these are too many."""
    graph, radicands, waiting = build.graph, list[int](), [root]
    while waiting:
        node = waiting.pop()
        if graph.heads[node] is h.hypot:
            waiting += reversed(graph.operands[node])
        else:
            radicands.append(node)
        if len(radicands) + len(waiting) > LONGEST:
            return graph.operands[root]
    return tuple(radicands)


@lru_cache(maxsize=256)
def _composition(kind: str, inner: int, scales: int) -> Head:
    """Return a name for the composition; it is never a node of a trace."""
    head: Head = type(f"power_of_{kind}", (sp.Function,), {"kind": kind, "inner": inner, "scales": scales})
    return head


def _head(kind: str, inner: int, scales: int, rules: Rules) -> Head:
    head = _composition(kind, inner, scales)
    if head not in rules:
        slopes = [_slope(kind, inner, k) for k in range(inner)]
        rules[head] = (zero, *slopes, *[_of_scale(kind, inner, k) for k in range(scales)])
    return head


def _exponent(build: Builder, n: int) -> int:
    value = build.constant(n)
    assert isinstance(value, int)
    return value


def _raised(build: Builder, kind: str, operands: tuple[int, ...], n: int) -> int:
    """Return root**n, n >= 0."""
    if kind == "sqrt":
        return build.power(operands[0], build.number(simplest(Fraction(n, 2))))
    if kind == "abs" and n % 2 == 0:
        return build.power(operands[0], build.number(n))
    root = build.call(sp.Abs, operands[0]) if kind == "abs" else operands[0]
    for operand in operands[1:]:
        root = build.call(h.hypot, root, operand)
    return build.power(root, build.number(n))


def _slope(kind: str, inner: int, place: int) -> Callable[..., int]:
    """n/2 v**(n/2 - 1) of a square root, else n v root**(n - 2); times the other factors."""

    def partial(build: Builder, p: int, exponent: int, *operands: int) -> int:
        n, roots, scales = _exponent(build, exponent), operands[:inner], operands[inner:]
        below = _raised(build, kind, roots, n - 2)
        if kind == "sqrt":
            first = build.mul(build.number(simplest(Fraction(n, 2))), below)
        else:
            first = build.mul(build.mul(exponent, roots[place]), below)
        return build.mul(build.one, first, *scales)

    return partial


def _of_scale(kind: str, inner: int, place: int) -> Callable[..., int]:
    def partial(build: Builder, p: int, exponent: int, *operands: int) -> int:
        roots, scales = operands[:inner], operands[inner:]
        value = _raised(build, kind, roots, _exponent(build, exponent))
        return build.mul(build.one, value, *scales[:place], *scales[place + 1 :])

    return partial
