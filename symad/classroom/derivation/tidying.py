"""Tidy a derivative as a book prints it: the steps by which it becomes shorter, each with its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import sympy as sp

from symad.display.mathematics import signs_of
from symad.display.notation import WrittenProduct, WrittenSum, ordered_factors, ordered_terms
from symad.errors import LimitError
from symad.limits import time_limit

_LONG = 90  # operations of a derivative that is only put in order
_SECONDS = 0.8  # for one attempt to make a derivative shorter
_MOST = 5  # steps of tidying
_TRIGONOMETRIC = (sp.sin, sp.cos, sp.tan, sp.cot, sp.sec, sp.csc, sp.sinh, sp.cosh, sp.tanh, sp.coth, sp.sech, sp.csch)


def evaluated(line: sp.Expr, ordered: bool = False) -> sp.Expr:
    """Return a line with its sums and products carried out; if `ordered`, other sums keep their order.

    >>> x = sp.Symbol("x", real=True)
    >>> evaluated(WrittenProduct(sp.cos(x**2), 2 * x))
    2*x*cos(x**2)
    """
    if not line.args:
        return line
    parts = [evaluated(part, ordered) if isinstance(part, sp.Basic) else part for part in line.args]
    if isinstance(line, WrittenProduct):
        return sp.Mul(*parts)
    if isinstance(line, WrittenSum):
        total = sp.Add(*parts)
        as_written = ordered and len(total.args) == len(parts) and set(total.args) == set(parts)
        return WrittenSum(*parts) if as_written else total
    if isinstance(line, sp.exp):
        for factor in sp.Mul.make_args(parts[0]):
            if isinstance(factor, sp.log) and not (parts[0] / factor).is_number:  # e^{x ln x} is x^x
                return factor.args[0] ** (parts[0] / factor)
    return line.func(*parts)


def in_book_order(expression: sp.Expr) -> sp.Expr:
    """Return a formula with its factors in the order of books: numbers, powers, functions, sums in parentheses.

    >>> x = sp.Symbol("x", real=True)
    >>> signs_of(in_book_order((x + 2) * x * sp.exp(x))), signs_of(in_book_order(sp.cos(x) - sp.cos(x) ** 3))
    ('x·e^x·(x + 2)', 'cos(x) - cos(x)³')
    """
    if isinstance(expression, sp.Tuple | sp.MatrixBase):
        return (
            expression.func(*map(in_book_order, expression))
            if isinstance(expression, sp.Tuple)
            else expression.applyfunc(in_book_order)
        )
    if expression.is_Add and not isinstance(expression, WrittenSum):
        terms = ordered_terms(expression)
        positive = next((term for term in terms if not term.could_extract_minus_sign()), terms[0])
        if not expression.is_polynomial():
            terms = [positive, *(term for term in terms if term is not positive)]
        return WrittenSum(*map(in_book_order, terms))
    if expression.is_Add:
        return WrittenSum(*map(in_book_order, expression.args))
    if expression.is_Mul:
        factors = sorted(ordered_factors(expression), key=_rank)
        negative = [f for f in factors if f.is_Add and all(term.could_extract_minus_sign() for term in f.args)]
        factors = [-factor if factor in negative else factor for factor in factors]
        if len(negative) % 2:
            factors = [-factors[0], *factors[1:]] if factors[0].is_Number else [sp.S.NegativeOne, *factors]
        return WrittenProduct(*(in_book_order(factor) for factor in factors if factor != 1))
    if expression.is_Pow and expression.exp.is_Integer and expression.base.is_Add:
        return sp.Pow(in_book_order(expression.base), expression.exp, evaluate=False)
    return expression


def _rank(factor: sp.Expr) -> int:
    base, _ = factor.as_base_exp()
    kinds = (
        factor.is_Number,
        base.is_Atom and not factor.has(sp.exp),
        not base.is_Add and factor.free_symbols,
        not base.is_Add,
    )
    return next((place for place, holds in enumerate(kinds) if holds), len(kinds))


def tidied(expression: sp.Expr) -> Iterator[tuple[str, sp.Expr]]:
    """Yield the steps that make a derivative shorter, as names and expressions.

    >>> x = sp.Symbol("x", real=True)
    >>> list(tidied(2 * x * sp.exp(x) + x**2 * sp.exp(x)))
    [('common factors', x*(x + 2)*exp(x))]
    """
    start, shortest = expression, expression
    for _ in range(_MOST):
        forms = [(name, attempted(way, shortest)) for name, way in _WAYS]
        name, best = min(forms, key=lambda form: cost(form[1]))
        if cost(best) >= cost(shortest):
            break
        yield name, best
        shortest = best
    for way in (sp.simplify, sp.factor):
        best = attempted(way, start)
        if cost(best)[0] < cost(shortest)[0]:
            yield "simplified", best
            shortest = best


def cost(expression: sp.Expr) -> tuple[int, int]:
    """Return the operations of a formula, and its length in print."""
    if expression.has(sp.I, sp.nan, sp.zoo):
        return 10**6, 0
    return int(sp.count_ops(expression)), len(signs_of(expression))


def attempted(way: Callable[[sp.Expr], sp.Expr], expression: sp.Expr) -> sp.Expr:
    """Return another form of an expression; the expression itself where that takes long or cannot be done."""
    if sp.count_ops(expression) > _LONG:
        return expression
    try:
        with time_limit(_SECONDS, "simplification"):
            return sp.sympify(way(expression))
    except (LimitError, ArithmeticError, ValueError, TypeError, AttributeError, NotImplementedError, RecursionError):
        return expression


def _cancelled(expression: sp.Expr) -> sp.Expr:
    return sp.factor_terms(sp.cancel(sp.together(expression)))


def _common_denominator(expression: sp.Expr) -> sp.Expr:
    top, bottom = sp.fraction(sp.together(expression))
    return sp.factor_terms(sp.expand(top)) / bottom


def _identity(expression: sp.Expr) -> sp.Expr:
    return sp.trigsimp(expression) if expression.has(*_TRIGONOMETRIC) else expression


def _powers(expression: sp.Expr) -> sp.Expr:
    """Return a form with powers of one base together; 2^(3x) does not become 8^x."""
    collected = sp.powsimp(expression)
    return collected if _bases(collected) <= _bases(expression) else expression


def _bases(expression: sp.Expr) -> set[sp.Basic]:
    return {power.base for power in expression.atoms(sp.Pow) if power.base.is_number}


def _factored(expression: sp.Expr) -> sp.Expr:
    """Return a form in factors. Sums that were factors before stay whole: (x² - 1)² is not (x - 1)²(x + 1)²."""
    whole = sp.factor(expression)
    sums = {power.base for power in expression.atoms(sp.Pow) if power.base.is_Add and power.exp.is_Rational}
    for base in sums:
        parts = sp.factor(base)
        exponents = [whole.as_powers_dict()[part] for part in parts.args] if parts.is_Mul else []
        if exponents and all(exponents) and len(set(exponents)) == 1:
            whole = whole / parts ** exponents[0] * base ** exponents[0]
    return whole


_WAYS: tuple[tuple[str, Callable[[sp.Expr], sp.Expr]], ...] = (
    ("common factors", sp.factor_terms),
    ("simplified", _powers),
    ("common denominator", sp.together),
    ("common denominator", _common_denominator),
    ("factored", _factored),
    ("cancelled", _cancelled),
    ("trigonometric identity", _identity),
)
