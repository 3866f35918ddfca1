"""The wrong rules of differentiation that pupils use. Each gives the derivative that it leads to.

A rule takes one place of a formula (a node of the expression) and yields the wrong result with words that address the
pupil. Its result is compared with the pupil's expression by value, not by form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import sympy as sp

from codegen import heads
from codegen.records import dataclass
from symad.classroom.answers.answer_problem import along, slope
from symad.display.document import Inline

Words = tuple[Inline, ...]
Tangents = Mapping[sp.Symbol, sp.Expr]


@dataclass(frozen=True)
class Wrong:
    """A wrong derivative at one place: the kind of mistake, a description, and the resulting formula."""

    kind: str
    words: Words
    value: sp.Expr


Rule = Callable[[sp.Expr, Tangents], Iterator[Wrong]]


@lru_cache(1024)
def partial(node: sp.Expr, position: int, at: sp.Expr | None = None) -> sp.Expr | None:
    """Return the derivative of a node in one argument, at its own or another place; None without a rule.

    >>> x, y = sp.symbols("x y")
    >>> partial(sp.sin(x**2), 0), partial(x * y * 3, 1), partial(x**y, 1), partial(sp.sin(x**2), 0, y)
    (cos(x**2), 3*y, x**y*log(x), cos(y))
    """
    if not isinstance(node, sp.Add | sp.Mul | sp.Pow | sp.Function) or isinstance(node, sp.Piecewise):
        return None
    slot = sp.Dummy(real=True)
    outer = slope(node.func(*(slot if k == position else part for k, part in enumerate(node.args))), slot)
    return outer.subs(slot, node.args[position] if at is None else at)


def outer_and_inner(node: sp.Expr, tangents: Tangents) -> tuple[int, sp.Expr] | None:
    """Return the place of the inner function of a composition, and the function; None without a composition."""
    varying = [k for k, argument in enumerate(node.args) if argument.has(*tangents)]
    if node.is_Add or node.is_Mul or len(varying) != 1:
        return None
    inner = node.args[varying[0]]
    return None if inner.is_Symbol else (varying[0], inner)


def chain(node: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    """The chain rule: no inner derivative, the inner one twice, no outer one, the outer one at the wrong place."""
    composition = outer_and_inner(node, tangents)
    outer = partial(node, composition[0]) if composition else None
    if composition is None or outer is None:
        return
    inner = composition[1]
    moved = along(inner, tangents)
    variables = [symbol for symbol in tangents if inner.has(symbol)]
    slope = sp.diff(inner, variables[0]) if len(variables) == 1 else moved
    for direction in dict.fromkeys([*map(tangents.__getitem__, variables), sp.S.One]) if slope != 1 else ():
        yield Wrong("chain rule", ("You left out ", slope, ", the inner derivative of ", node), outer * direction)
    if len(variables) == 1 and slope != 1:
        words: Words = ("You multiplied twice by ", slope, ", the inner derivative of ", node)
        yield Wrong("double-counted", words, outer * moved * slope)
        for place, what in ((slope, "the inner derivative"), (variables[0], "the variable")):
            at = partial(node, composition[0], place) or sp.S.Zero
            words = ("You took the outer derivative of ", node, " at ", place, f", {what}, instead of at ", inner)
            yield Wrong("wrong place", words, at * moved)
            yield Wrong("wrong place", words, at * tangents[variables[0]])
        yield from _inner_misplaced(node, composition[0], slope, tangents[variables[0]])
        words = ("You multiplied by ", inner, " itself, not by its derivative, in the derivative of ", node)
        yield Wrong("chain rule", words, outer * inner * tangents[variables[0]])
    if outer != node:
        words = ("You did not differentiate the outer function of ", node)
        yield Wrong("outer derivative", words, node * moved)
        yield Wrong("outer derivative", ("You gave only the inner derivative of ", node), moved)


def _inner_misplaced(node: sp.Expr, position: int, slope: sp.Expr, direction: sp.Expr) -> Iterator[Wrong]:
    """Yield the results of an inner derivative put inside or added, and of a factor that is not squared."""
    inner, slot = node.args[position], sp.Dummy(real=True)
    inside = node.func(*(slope if k == position else part for k, part in enumerate(node.args)))
    if not (node.is_Pow and node.exp.is_negative):  # a mistake with a quotient
        yield Wrong("chain rule", ("You differentiated only what stands inside ", node), inside * direction)
    words: Words = ("You added ", slope, ", the inner derivative of ", node, ", where it is a factor")
    yield Wrong("chain rule", words, ((partial(node, position) or sp.S.Zero) + slope) * direction)
    template, factor = partial(node, position, slot) or sp.S.Zero, inner.as_coeff_Mul()[0]
    if factor != 1 and template.has(slot**2):
        words = ("You did not square the factor ", factor, " in the derivative of ", node)
        yield Wrong("algebra", words, template.subs(slot**2, slot**2 / factor).subs(slot, inner) * slope * direction)


def by_terms(node: sp.Expr) -> sp.Expr | None:
    """Return a function or a power of a sum applied term by term; None for other formulas.

    >>> by_terms(sp.sin(sp.Symbol("x") + 1)), by_terms(sp.sin(sp.Symbol("x")))
    (sin(x) + sin(1), None)
    """
    if not (node.is_Pow or isinstance(node, sp.Function)) or isinstance(node, sp.Piecewise) or not node.args:
        return None
    place = 1 if node.args[0] == sp.E else 0
    if not node.args[place].is_Add:
        return None
    rows = [[*node.args[:place], term, *node.args[place + 1 :]] for term in node.args[place].args]
    return sp.powdenest(sp.Add(*(node.func(*row) for row in rows)), force=True)


def sums(node: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    """A function of a sum, applied term by term before it is differentiated: (a + b)^n as a^n + b^n."""
    if (apart := by_terms(node)) is not None and not apart.has(sp.zoo, sp.nan, sp.I):
        words: Words = ("You took ", node, " term by term, but it is not ", apart)
        yield Wrong("algebra", words, along(apart, tangents))


def integrated(node: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    """The antiderivative in place of the derivative, for functions on every list of both."""
    u = node.base if node.is_Pow else node.args[0] if node.args else node
    slope = sp.diff(u, next((symbol for symbol in tangents if u.has(symbol)), sp.Dummy()))
    if node.is_Add or node.is_Mul or not slope.is_number or slope == 0:
        return
    ways: dict[Any, sp.Expr] = {sp.sin: -sp.cos(u), sp.cos: sp.sin(u), sp.exp: node, sp.log: u * node - u}
    value = ways.get(node.func)
    if node.is_Pow and not node.exp.has(*tangents):
        value = sp.log(u) if node.exp == -1 else node * u / (node.exp + 1)
    if value is not None:
        yield Wrong("integrated", ("You integrated ", node, " instead of differentiating it"), value / slope)


def sign(node: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    """The sign of the derivative of one function, power or term."""
    is_negative = node.is_Mul and node.args[0].is_negative
    if isinstance(node, sp.Function) or (node.is_Pow and node.exp.is_negative) or is_negative:
        slot = sp.Symbol("u", real=True)
        if len(node.args) == 1 and not isinstance(node, sp.exp):
            right = node.func(slot).diff(slot)
            words: Words = ("You have a wrong sign: the derivative of ", node.func(slot), " is ", right)
        else:
            words = ("You have a wrong sign in the derivative of ", node)
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
            (("You did not bring the exponent ", exponent, " down"), base**lowered),
            (("You did not lower the exponent ", exponent), exponent * base**exponent),
            (("You raised the exponent instead of lowering it to ", lowered), exponent * base ** (exponent + 1)),
            (("You brought ", lowered, " down instead of the exponent ", exponent), lowered * base**lowered),
            (("You lowered the exponent twice",), exponent * base ** (exponent - 2)),
            (("You gave the exponent ", lowered, " the other sign"), exponent * base**-lowered),
            (("You divided by the exponent ", exponent, " instead of multiplying by it"), base**lowered / exponent),
        ]
        if exponent.is_Rational and not exponent.is_Integer:
            one_less = sp.Rational(exponent.p - 1, exponent.q)
            words: Words = ("You subtracted 1 wrongly from the exponent ", exponent)
            ways += [(words, exponent * base**other) for other in (one_less, -exponent) if other != lowered]
    elif base.has(*tangents):
        moved = sp.S.One
        ways = [
            (("You differentiated the base only",), along(base, tangents) * exponent * base ** (exponent - 1)),
            (("You differentiated the exponent only",), along(exponent, tangents) * node * sp.log(base)),
        ]
    else:
        moved = along(exponent, tangents)
        by_power = exponent * base ** (exponent - 1)
        number, rest = exponent.as_coeff_Mul()
        ways = [
            (("You used the power rule on an exponential",), by_power),
            (("You lowered the factor ", number, " of the exponent"), base ** ((number - 1) * rest)),
            (("You brought the exponent down",), exponent * node),
            (("You lowered the exponent by 1, as the power rule does,",), base ** (exponent - 1)),
        ]
        if moved != 1 and moved != 0:
            ways.append((ways[0][0], by_power / moved))
        if base != sp.E:
            ln = sp.log(base)
            ways += [
                (("You left out the factor ", ln), node),
                (("You divided by ", ln, ", which is a factor"), node / ln),
                (("You multiplied by the base, not by ", ln), node * base),
                (("You took ", sp.log(exponent), " for ", ln), node * sp.log(exponent)),
            ]
    for words, value in ways:
        yield Wrong("power rule", (*words, " in the derivative of ", node), value * moved)
    if exponent.is_negative and base.has(*tangents):
        yield from _reciprocal(node, base, exponent, tangents)


def _reciprocal(node: sp.Expr, base: sp.Expr, exponent: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    """Yield 1 over the derivative for the derivative of 1/g."""
    below = along(base**-exponent, tangents)
    words: Words = ("You took 1 over the derivative of ", base**-exponent, ", but (1/g)′ = −g′/g²")
    yield Wrong("quotient rule", words, 1 / below if below != 0 else sp.S.NaN)
    if exponent == -1:
        words = ("You took ", sp.log(base), " for the derivative of ", node, ": the logarithm belongs to its integral")
        yield Wrong("integrated", words, sp.log(base))


_TAKEN_FOR: dict[Any, list[Callable[[sp.Expr], sp.Expr]]] = {
    sp.tan: [lambda u: sp.sec(u) * sp.tan(u), sp.cot, lambda u: 1 / (1 + u**2), sp.sec, lambda u: 1 / sp.sin(u) ** 2],
    sp.sec: [lambda u: sp.sec(u) ** 2, lambda u: -sp.csc(u) * sp.cot(u), lambda u: sp.tan(u) ** 2],
    sp.cot: [lambda u: sp.csc(u) ** 2, lambda u: -sp.csc(u) * sp.cot(u), sp.tan],
    sp.csc: [lambda u: -(sp.csc(u) ** 2), lambda u: sp.sec(u) * sp.tan(u)],
    sp.sin: [sp.sin], sp.cos: [sp.cos], sp.sinh: [sp.sinh], sp.cosh: [sp.cosh, sp.sin],
    sp.tanh: [lambda u: sp.sec(u) ** 2, lambda u: sp.sech(u) * sp.tanh(u), sp.sech],
    sp.log: [sp.log, sp.exp, lambda u: sp.S.One * u, lambda u: 1 / sp.log(u), lambda u: sp.S.One],
    sp.asin: [lambda u: -sp.cos(u) / sp.sin(u) ** 2, sp.acos, lambda u: 1 / sp.cos(u), sp.cos],
    sp.acos: [lambda u: sp.sin(u) / sp.cos(u) ** 2, lambda u: -1 / sp.sin(u), lambda u: -sp.sin(u)],
    sp.atan: [lambda u: -1 / sp.sin(u) ** 2, lambda u: sp.sec(u) ** 2, lambda u: sp.cos(u) ** 2],
    sp.asinh: [], sp.acosh: [], sp.atanh: [],
}  # fmt: skip
_OF_INVERSES: list[Callable[[sp.Expr], sp.Expr]] = [
    lambda u: 1 / sp.sqrt(1 - u**2), lambda u: -1 / sp.sqrt(1 - u**2), lambda u: 1 / sp.sqrt(1 + u**2),
    lambda u: 1 / sp.sqrt(u**2 - 1), lambda u: 1 / (1 + u**2), lambda u: -1 / (1 + u**2), lambda u: 1 / (1 - u**2),
]  # fmt: skip


def exchanged(node: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    """The derivative of another function: that of sec for tan, of arccos for arcsin; 1/sin taken for arcsin."""
    if node.func not in _TAKEN_FOR or not node.args[0].has(*tangents):
        return
    u = sp.Symbol("u", real=True)
    right = partial(node.func(u), 0)
    for wrong in [*_TAKEN_FOR[node.func], *(_OF_INVERSES if node.func.__name__[0] == "a" else ())]:
        taken = wrong(u)
        words: Words = ("You took ", taken, " for the derivative of ", node.func(u), ", which is ", right)
        value = taken.subs(u, node.args[0]) * along(node.args[0], tangents)
        yield Wrong("derivative of another function", words, value)
    if isinstance(node, sp.log) and (moved := along(node.args[0], tangents)) != 0:
        upside: Words = ("You wrote u/u′ upside down: the derivative of ", node, " is u′/u")
        yield Wrong("chain rule", upside, node.args[0] / moved)


def absolute(node: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    """The absolute value: left out, or kept."""
    if isinstance(node, sp.Abs):
        moved = along(node.args[0], tangents)
        words: Words = ("You left out the absolute value in ", node, ": where ", node.args[0], " < 0 the sign changes")
        yield Wrong("absolute value", words, moved)
        words = ("You kept the absolute value in the derivative of ", node)
        yield Wrong("absolute value", words, sp.Abs(moved))
    if isinstance(node, sp.log) and isinstance(node.args[0], sp.Abs):
        words = ("You kept the absolute value: the derivative of ", node, " has none")
        yield Wrong("absolute value", words, along(node.args[0].args[0], tangents) / node.args[0])


def base_of_logarithm(node: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    """The base of a logarithm: lost, or its logarithm above instead of below."""
    if isinstance(node, heads.log2 | heads.log10):
        base = sp.log(2 if isinstance(node, heads.log2) else 10)
        moved = along(node.args[0], tangents) / node.args[0]
        yield Wrong("logarithm", ("You lost the base of ", node, ": it gives a factor ", 1 / base), moved)
        yield Wrong("logarithm", ("You multiplied by ", base, ", which belongs below"), moved * base)
        yield Wrong("logarithm", ("You divided by the base, not by ", base), moved / base.args[0])


def constants(node: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    """A constant that is a letter, π or e, differentiated like a variable."""
    letter = sp.Dummy(positive=True)
    for constant in (sp.pi, sp.E):
        varied = node.replace(lambda part: isinstance(part, sp.exp) and part.args[0].is_number,
                              lambda part: letter ** part.args[0]) if constant == sp.E else node  # fmt: skip
        varied = varied.subs(constant, letter)
        if varied.has(letter):
            words: Words = ("You differentiated ", constant, " like a variable, but it is a constant")
            by_constant = sp.diff(varied, letter).subs(letter, constant)
            yield Wrong("constant", words, along(node, tangents) + by_constant)


def product(node: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    """The product rule: (uv)' is not u'v', has two summands, and a plus between them; constant factors stay."""
    if not node.is_Mul:
        return
    constants = [factor for factor in node.args if not factor.has(*tangents)]
    factors = [factor for factor in node.args if factor.has(*tangents)]
    whole = sp.Mul(*constants)
    for lost in dict.fromkeys([whole, *constants]) if whole not in (1, -1) else ():
        yield Wrong("constant", ("You lost the constant factor ", lost), along(node / lost, tangents))
    if constants and whole != -1:
        words: Words = ("You took 1 for the derivative of the constant ", whole)
        yield Wrong("constant", words, along(node, tangents) + sp.Mul(*factors))
    is_power = len(factors) == 1 and factors[0].is_Pow and factors[0].exp.is_Integer and whole.is_Rational
    if is_power and (root := sp.real_root(whole, factors[0].exp)).is_Rational:
        words = ("You did not raise ", root, " to the power ", factors[0].exp)
        yield Wrong("algebra", words, root * along(factors[0], tangents))
    if len(factors) > 1:
        yield from _parts_of_product(node, whole, factors, tangents)


def _parts_of_product(node: sp.Expr, constant: sp.Expr, factors: list[sp.Expr], tangents: Tangents) -> Iterator[Wrong]:
    derivatives = [along(factor, tangents) for factor in factors]
    parts = [node / factor * moved for factor, moved in zip(factors, derivatives, strict=True)]
    end, whole = (" in the derivative of ", node), along(node, tangents)
    ways: list[tuple[Words, sp.Expr]] = [
        (("You differentiated each factor, but (uv)′ is u′v + uv′, not u′v′,",), sp.Mul(constant, *derivatives)),
        (("You multiplied u′v and uv′, which are added,",), sp.Mul(*parts)),
    ]
    if all(moved != 0 for moved in derivatives):
        ways.append((("You added the derivatives of the factors",), constant * sp.Add(*derivatives)))
    for factor, part in zip(factors, parts, strict=True):
        ways.append((("You left out the part with the derivative of ", factor), whole - part))
        ways.append((("You did not differentiate ", factor, " in its part"), whole - part + node))
        if not (factor.is_Pow and factor.exp.is_negative):  # the quotient rule with a plus
            ways.append((("You have a wrong sign at the part with the derivative of ", factor), whole - 2 * part))
    for words, value in ways:
        yield Wrong("product rule", (*words, *end), value)


def quotient(node: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    """The quotient rule: upside down, with a plus, without the square below, as a quotient of derivatives."""
    above, below = sp.fraction(node)
    base = below.as_base_exp()[0]  # x^-2 and e^-x are no quotients
    of_power = (base in tangents or base == sp.E) and not above.has(*tangents)
    if not (node.is_Mul or node.is_Pow) or not below.has(*tangents) or of_power:
        return
    up, down = along(above, tangents), along(below, tangents)
    end: Words = (" in the derivative of ", node)
    ways = [
        ("You did not square the denominator", (up * below - above * down) / below),
        ("You left out the denominator", up * below - above * down),
        ("You differentiated numerator and denominator each on its own", up / down if down != 0 else sp.S.NaN),
    ]
    if above.has(*tangents):
        upside = "You wrote the numerator upside down: u′v comes first, then minus uv′"
        both, second = up * below - above * down, sp.expand(above * down)
        ways += [
            (upside, -both / below**2),
            ("You wrote a plus between u′v and uv′, where a minus belongs", (up * below + above * down) / below**2),
            ("You divided by the square of the numerator", both / above**2),
            ("You divided by the square of the derivative of the denominator", both / down**2),
            ("You left out the factor v of u′v − uv′", (up - above * down) / below**2),
            ("You left out the factor u of u′v − uv′", (up * below - down) / below**2),
        ]
        for first in second.args if second.is_Add else ():
            ways.append(("You left out the parentheses behind the minus", (up * below + second - 2 * first) / below**2))
    for words, value in ways:
        yield Wrong("quotient rule", (words, *end), value)


def terms(node: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    """Sums: a constant vanishes, and each term is differentiated."""
    if not node.is_Add:
        return
    whole = along(node, tangents)
    for term in node.args:
        if term.has(*tangents):
            yield Wrong("dropped term", ("You left out the derivative of ", term), whole - along(term, tangents))
            copied: Words = ("You copied ", term, " without differentiating it")
            yield Wrong("not differentiated", copied, whole - along(term, tangents) + term)
        else:
            words: Words = ("You kept the constant ", term, ": its derivative is 0")
            for kept in dict.fromkeys([term, sp.S.One, sp.Abs(term)]):
                yield Wrong("constant", words, whole + kept)
            slot = sp.Dummy(positive=True)
            if term.is_number and (term.is_Pow or term.is_Function):
                moved = term.func(slot, *term.args[1:]).diff(slot).subs(slot, term.args[0])
                words = ("You differentiated the constant ", term, " as if its number varied")
                yield Wrong("constant", words, whole + moved)


def variable(node: sp.Expr, tangents: Tangents) -> Iterator[Wrong]:
    """One occurrence of the variable: held, or moved twice."""
    if node in tangents:
        yield Wrong("dropped term", ("You held one ", node, " fixed where it moves"), sp.S.Zero)
        yield Wrong("double-counted", ("You counted the change of one ", node, " twice"), 2 * tangents[node])


RULES: tuple[Rule, ...] = (
    chain, product, quotient, power, sign, terms, exchanged, absolute, base_of_logarithm, sums, integrated
)  # fmt: skip
