"""Mistakes with a whole derivative: the wrong variable, f'/f for f', second derivatives of f(g(x)) and of products."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from symad.classroom.answers.answer_problem import AnswerProblem, slope
from symad.classroom.answers.mistake_rules import Words, Wrong, outer_and_inner, partial
from symad.classroom.expansion.epsilon import Levels


def of_whole_derivatives(problem: AnswerProblem, levels: Levels) -> Iterator[Wrong]:
    """Yield the results of mistakes with the whole derivative, for a single variable."""
    if len(problem.symbols) != 1 or not levels:
        return
    (x,), order = problem.symbols, len(levels)
    along = sp.Mul(*(part for level in levels for part in problem.directions[(level,)]))
    ways = [*_other_variables(problem.formula, x, order), *_logarithmic(problem.formula, x, order)]
    if (plain := problem.formula.replace(sp.Abs, lambda part: part)) != problem.formula:
        words: Words = ("You left out the absolute value in ", problem.formula)
        ways.append(Wrong("absolute value", words, sp.diff(plain, x, order)))
    if not problem.expansion and (lost := problem.formula.as_coeff_Mul()[0]) != 1:
        words = ("You took 0 for the derivative of a product with the constant ", lost, ": it stays as a factor")
        ways.append(Wrong("constant", words, sp.S.Zero))
    if order == 2 and not problem.expansion:
        ways.append(
            Wrong("squared derivative", ("You squared the first derivative",), sp.diff(problem.formula, x) ** 2)
        )
    if order == 2:
        ways += [*_compositions(problem.formula, x), *_products(problem.formula, x)]
    for wrong in ways:
        yield Wrong(wrong.kind, wrong.words, wrong.value * along)


def _other_variables(f: sp.Expr, x: sp.Symbol, order: int) -> Iterator[Wrong]:
    right = sp.diff(f, x, order)
    for other in sorted(f.free_symbols - {x}, key=str):
        in_other = slope(f, other)
        words: Words = ("You differentiated with respect to ", other, " and held ", x, " fixed")
        if order == 1:
            yield Wrong("wrong variable", words, in_other)
        words = ("You differentiated ", other, " too, which is held fixed")
        yield Wrong("wrong variable", words, right + sp.diff(in_other, x, order - 1))
        for term in sp.Add.make_args(f) if order == 1 else ():
            words = ("You differentiated ", other, " in ", term, ", where it is held fixed")
            yield Wrong("wrong variable", words, right + slope(term, other))
            yield Wrong("wrong variable", words, right - slope(term, x) + slope(term, other))


def _logarithmic(f: sp.Expr, x: sp.Symbol, order: int) -> Iterator[Wrong]:
    if order == 1 and f != 0:
        words: Words = ("You gave the derivative of the logarithm: multiply by the function itself at the end",)
        yield Wrong("logarithmic differentiation", words, sp.diff(f, x) / f)
    if order == 1 and f.is_Pow and f.base.has(x) and f.exp.has(x):
        words = ("You used the power rule, but the exponent of ", f, " varies too")
        yield Wrong("power rule", words, f.exp * f.base ** (f.exp - 1))
        words = ("You used the rule of exponentials, but the base of ", f, " varies too")
        yield Wrong("power rule", words, f * sp.log(f.base))


def _compositions(f: sp.Expr, x: sp.Symbol) -> Iterator[Wrong]:
    """Yield wrong second derivatives of f(g(x)), which is f''(g) g'^2 + f'(g) g''."""
    composition = outer_and_inner(f, {x: sp.S.One})
    if composition is None:
        return
    place, inner = composition
    slot = sp.Dummy("u", real=True)
    first = partial(f, place, slot)
    if first is None:
        return
    second = sp.diff(first, slot)
    once, twice = (part.subs(slot, inner) for part in (first, second))
    up, upper = sp.diff(inner, x), sp.diff(inner, x, 2)
    start: Words = ("You wrote (f∘g)″ as ",)
    ways: list[tuple[str, sp.Expr]] = [
        ("f″(g)·g″", twice * upper), ("f″(g)·g′²", twice * up**2), ("f″(g)", twice), ("f″(g)·g′", twice * up),
        ("f′(g)·g″", once * upper), ("f″(g)·g′ + f′(g)·g″", twice * up + once * upper),
        ("f″(g)·g′² + f′(g)·g′", twice * up**2 + once * up), ("f″(g)·g′² − f′(g)·g″", twice * up**2 - once * upper),
    ]  # fmt: skip
    for name, value in ways:
        yield Wrong("chain rule", (*start, name, ", but it is f″(g)·g′² + f′(g)·g″"), value)


def _products(f: sp.Expr, x: sp.Symbol) -> Iterator[Wrong]:
    """Yield wrong second derivatives of a product of two factors, which is u''v + 2u'v' + uv''."""
    factors = [factor for factor in f.args if factor.has(x)] if f.is_Mul else []
    if len(factors) != 2:
        return
    constant = sp.Mul(*(factor for factor in f.args if factor not in factors))
    (u, v), (du, dv), (ddu, ddv) = factors, [sp.diff(part, x) for part in factors], [sp.diff(p, x, 2) for p in factors]
    ways: list[tuple[str, sp.Expr]] = [
        ("u″v″", ddu * ddv), ("uv″", u * ddv), ("u″v", ddu * v), ("u″v + uv″", ddu * v + u * ddv),
        ("u″v + u′v′ + uv″", ddu * v + du * dv + u * ddv),
    ]  # fmt: skip
    for name, value in ways:
        words: Words = ("You wrote (uv)″ as ", name, ", but it is u″v + 2u′v′ + uv″")
        yield Wrong("product rule", words, constant * value)
