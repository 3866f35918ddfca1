"""The wrong rules of differentiation that pupils use, as rules: each gives the derivative that it would give.

A rule takes one place of a formula (a node of the expression) and yields what it makes of it, beside the words that
say what was done. Nothing is recognised by its looks: what a rule yields is compared with what the pupil wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import sympy as sp
from sympy.core.function import ArgumentIndexError

from codegen.records import dataclass
from symad.display.document import Inline
from symad.teaching.answers.answer_problem import along

Words = tuple[Inline, ...]
Tangents = Mapping[sp.Symbol, sp.Expr]


@dataclass(frozen=True)
class Wrong:
    """A wrong derivative of one place: the kind of mistake, what was done in words, and what comes of it."""

    kind: str
    words: Words
    value: sp.Expr


Rule = Callable[[sp.Expr, Tangents], Iterator[Wrong]]


def partial(node: sp.Expr, position: int) -> sp.Expr | None:
    """Return the derivative of a node in one of its arguments, the others held; None where there is no rule.

    >>> x, y = sp.symbols("x y")
    >>> partial(sp.sin(x**2), 0), partial(x * y * 3, 1), partial(x**y, 1)
    (cos(x**2), 3*y, x**y*log(x))
    """
    if node.is_Add:
        return sp.S.One
    if node.is_Mul:
        return sp.Mul(*(factor for k, factor in enumerate(node.args) if k != position))
    if isinstance(node, sp.exp):
        return node
    if node.is_Pow:
        return node.exp * node.base ** (node.exp - 1) if position == 0 else node * sp.log(node.base)
    if not isinstance(node, sp.Function) or isinstance(node, sp.Piecewise):
        return None
    try:
        found = node.fdiff(position + 1)
    except (ArgumentIndexError, NotImplementedError):
        return None
    return found if isinstance(found, sp.Expr) else None


def outer_and_inner(node: sp.Expr, tangents: Tangents) -> tuple[int, sp.Expr] | None:
    """Return where the inner function of a composition stands and what it is; None where nothing is composed."""
    varying = [k for k, argument in enumerate(node.args) if argument.has(*tangents)]
    if node.is_Add or node.is_Mul or len(varying) != 1:
        return None
    inner = node.args[varying[0]]
    return None if inner.is_Symbol else (varying[0], inner)


def chain(node: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    """The chain rule: no inner derivative, the inner one twice, no outer one, the outer one at the wrong place."""
    found = outer_and_inner(node, tangents)
    outer = partial(node, found[0]) if found else None
    if found is None or outer is None:
        return
    inner = found[1]
    moved = along(inner, tangents)
    yield from _inner_missing(node, outer, inner, tangents)
    variables = [symbol for symbol in tangents if inner.has(symbol)]
    slope = sp.diff(inner, variables[0])
    if len(variables) == 1 and slope != 1:
        words: Words = ("the inner derivative ", slope, " of ", node, " is counted twice")
        yield Wrong("double-counted", words, outer * moved * slope)
        for place, what in ((slope, "the inner derivative"), (variables[0], "the variable")):
            at = _outer_at(node, found[0], place)
            words = ("the outer derivative of ", node, " is taken at ", place, f", {what}, and not at ", inner)
            yield Wrong("wrong place", words, at * moved)
            yield Wrong("wrong place", words, at * tangents[variables[0]])
    if outer != node:
        words = ("the outer function of ", node, " is not differentiated")
        yield Wrong("outer derivative", words, node * moved)


def _inner_missing(node: sp.Expr, outer: sp.Expr, inner: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    slopes = {symbol: sp.diff(inner, symbol) for symbol in tangents if inner.has(symbol)}
    (slope,) = slopes.values() if len(slopes) == 1 else (along(inner, tangents),)
    words: Words = ("in ", node, " the inner derivative ", slope, " is missing: the chain rule multiplies by it")
    for direction in dict.fromkeys([*(tangents[symbol] for symbol in slopes), sp.S.One]):
        if slope != 1:
            yield Wrong("chain rule", words, outer * direction)


def _outer_at(node: sp.Expr, position: int, place: sp.Expr) -> sp.Expr:
    slot = sp.Dummy(real=True)
    found = partial(node.func(*(slot if k == position else part for k, part in enumerate(node.args))), position)
    return sp.S.NaN if found is None else found.subs(slot, place)


def sign(node: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    """The sign of the derivative of one function."""
    if isinstance(node, sp.Function) or (node.is_Pow and node.exp.is_negative):
        slot = sp.Symbol("u", real=True)
        if len(node.args) == 1 and not isinstance(node, sp.exp):
            words: Words = ("a sign is wrong: the derivative of ", node.func(slot), " is ", node.func(slot).diff(slot))
        else:
            words = ("the sign of the derivative of ", node, " is wrong")
        yield Wrong("wrong sign", words, -along(node, tangents))


def power(node: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    """The power rule: the exponent stays above, or is lowered in a wrong way; a**x is no power of x."""
    if isinstance(node, sp.exp):
        base, exponent = sp.E, node.args[0]
    elif node.is_Pow:
        base, exponent = node.args
    else:
        return
    if base.has(*tangents) and not exponent.has(*tangents):
        moved, lowered = along(base, tangents), exponent - 1
        ways: list[tuple[Words, sp.Expr]] = [
            (("the exponent ", exponent, " does not come in front"), base**lowered),
            (("the exponent ", exponent, " is not lowered"), exponent * base**exponent),
            (("the exponent is raised, not lowered to ", lowered), exponent * base ** (exponent + 1)),
            (("the factor in front is ", lowered, ", not the old exponent ", exponent), lowered * base**lowered),
            (("the exponent is lowered twice",), exponent * base ** (exponent - 2)),
        ]
    elif base.has(*tangents):
        moved = sp.S.One
        ways = [
            (("only the base is differentiated",), along(base, tangents) * exponent * base ** (exponent - 1)),
            (("only the exponent is differentiated",), along(exponent, tangents) * node * sp.log(base)),
        ]
    else:
        moved = along(exponent, tangents)
        ways = [(("the exponential is treated as a power",), exponent * base ** (exponent - 1))]
        if base != sp.E:
            ways.append((("the factor ", sp.log(base), " is missing"), node))
    for words, value in ways:
        yield Wrong("power rule", ("in the derivative of ", node, " ", *words), value * moved)


def product(node: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    """The product rule: (uv)' is not u'v', has two summands, and a plus between them; constant factors stay."""
    if not node.is_Mul:
        return
    constants = [factor for factor in node.args if not factor.has(*tangents)]
    factors = [factor for factor in node.args if factor.has(*tangents)]
    if constants and sp.Mul(*constants) != -1:
        lost = sp.Mul(*constants)
        yield Wrong("constant", ("the constant factor ", lost, " is lost"), along(sp.Mul(*factors), tangents))
    if len(factors) < 2:
        return
    derivatives = [along(factor, tangents) for factor in factors]
    words: Words = ("the product ", node, " is differentiated factor by factor: (uv)' is u'v + uv', not u'v'")
    yield Wrong("product rule", words, sp.Mul(*constants, *derivatives))
    for k, factor in enumerate(factors):
        part = derivatives[k] * sp.Mul(*constants, *(other for j, other in enumerate(factors) if j != k))
        words = ("in the derivative of the product ", node, " the part with the derivative of ", factor)
        yield Wrong("product rule", (*words, " is missing"), along(node, tangents) - part)
        yield Wrong("product rule", (*words, " has the wrong sign"), along(node, tangents) - 2 * part)


def quotient(node: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    """The quotient rule: upside down, with a plus, without the square below, as a quotient of derivatives."""
    above, below = sp.fraction(node)
    if not (node.is_Mul or node.is_Pow) or not below.has(*tangents):
        return
    up, down = along(above, tangents), along(below, tangents)
    start: Words = ("in the derivative of the quotient ", node, " ")
    ways = [
        ("the numerator is upside down: u'v comes first, then minus uv'", (above * down - up * below) / below**2),
        ("a plus stands between u'v and uv', where a minus belongs", (up * below + above * down) / below**2),
        ("the denominator is not squared", (up * below - above * down) / below),
        ("the denominator is left out", up * below - above * down),
        ("numerator and denominator are differentiated each on its own", up / down if down != 0 else sp.S.NaN),
    ]
    for words, value in ways:
        yield Wrong("quotient rule", (*start, words), value)


def terms(node: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    """Sums: a constant vanishes, and each term is differentiated."""
    if not node.is_Add:
        return
    whole = along(node, tangents)
    for term in node.args:
        if term.has(*tangents):
            yield Wrong("dropped term", ("the derivative of ", term, " is missing"), whole - along(term, tangents))
            copied: Words = ("the term ", term, " is copied without being differentiated")
            yield Wrong("not differentiated", copied, whole - along(term, tangents) + term)
        else:
            words: Words = ("the constant ", term, " is kept: its derivative is 0")
            for kept in dict.fromkeys([term, sp.S.One, sp.Abs(term)]):
                yield Wrong("constant", words, whole + kept)


def variable(node: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    """One occurrence of the variable: held, or moved twice."""
    if node in tangents:
        yield Wrong("dropped term", ("one ", node, " is held where it moves"), sp.S.Zero)
        yield Wrong("double-counted", ("the change of one ", node, " is counted twice"), 2 * tangents[node])


RULES: tuple[Rule, ...] = (chain, product, quotient, power, sign, terms)
