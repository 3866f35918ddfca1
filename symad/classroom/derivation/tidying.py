"""Tidy a derivative as a book prints it: the steps by which it becomes shorter, each with its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import sympy as sp

from symad.display.mathematics import signs_of
from symad.display.notation import WrittenProduct, WrittenSum, ordered_factors, ordered_terms
from symad.errors import LimitError
from symad.limits import time_limit

_LONG, _MOST_POWER = 90, 12  # operations and powers of sums of what is only put in order
_SLOW, _SLOW_POWER = 45, 4  # the same, where SymPy tries many identities
_SECONDS = 10.0  # for one attempt to make a derivative shorter, which those bounds keep far below it
_MOST = 5  # steps of tidying
_HYPERBOLIC = (sp.sinh, sp.cosh, sp.tanh, sp.coth, sp.sech, sp.csch)
_U = sp.Wild("u")


def evaluated(line: sp.Expr, ordered: bool = False) -> sp.Expr:
    """Return a line with its sums and products carried out; if `ordered`, other sums keep their order."""
    if not line.args:
        return line
    parts = [evaluated(part, ordered) if isinstance(part, sp.Basic) else part for part in line.args]
    if isinstance(line, WrittenSum):
        total = sp.Add(*parts)
        return WrittenSum(*parts) if ordered and set(sp.Add.make_args(total)) == set(parts) else total
    if isinstance(line, sp.exp):
        for logarithm in (factor.as_base_exp()[0] for factor in sp.Mul.make_args(parts[0])):
            if isinstance(logarithm, sp.log) and not (parts[0] / logarithm).is_number:  # e^{x ln x} is x^x
                return logarithm.args[0] ** (parts[0] / logarithm)
    return sp.Mul(*parts) if isinstance(line, WrittenProduct) else line.func(*parts)


def in_book_order(expression: sp.Expr) -> sp.Expr:
    """Return a formula with its factors in the order of books: numbers, powers, functions, sums in parentheses."""
    if expression.is_Add:
        return _sum(expression)
    if expression.is_Mul:
        return _product(expression)
    if isinstance(expression, sp.Tuple | sp.MatrixBase):
        return expression.func(*map(in_book_order, expression.args))
    if expression.is_Pow and expression.base is not sp.E and (expression.base.is_Add or expression.exp.is_Add):
        return sp.Pow(in_book_order(expression.base), in_book_order(expression.exp), evaluate=False)
    return expression


def _sum(expression: sp.Expr) -> sp.Expr:
    """Return a sum with a positive term in front, over a denominator that all terms have."""
    common = {sp.fraction(term)[1] for term in expression.args}
    if len(common) == 1 and max(common).is_Integer and common != {1}:
        return WrittenProduct(in_book_order(sp.expand(expression * max(common))), 1 / max(common))
    terms = ordered_terms(expression)
    if not isinstance(expression, WrittenSum) and (not expression.is_polynomial() or terms[0].is_Number):
        positive = next((term for term in terms if not term.could_extract_minus_sign()), terms[0])
        terms = [positive, *(term for term in terms if term is not positive)]
    return WrittenSum(*(_product(term, False) if term.is_Mul else in_book_order(term) for term in terms))


def _product(expression: sp.Expr, alone: bool = True) -> sp.Expr:
    """Return a product whose sums have a positive term: -(x + y) for -x - y, and 1/(1 - x) for -1/(x - 1)."""
    number: sp.Expr = sp.S.One
    factors: list[sp.Expr] = []
    for factor in sorted(ordered_factors(expression), key=_rank):
        base, exponent = factor.as_base_exp()
        signs = [term.could_extract_minus_sign() for term in base.args] if base.is_Add and exponent.is_odd else [False]
        is_below = alone and exponent.is_negative and sp.fraction(expression)[0] == -1
        if all(signs) or (is_below and number < 0 and sorted(signs) == [False, True]):
            number, factor = -number, (-base) ** exponent
        number, factors = (number * factor, factors) if factor.is_Number else (number, [*factors, factor])
    return WrittenProduct(*([number] if number != 1 or not factors else []), *map(in_book_order, factors))


def _rank(factor: sp.Expr) -> int:
    base = factor if isinstance(factor, sp.exp) else factor.as_base_exp()[0]
    is_power = base.is_Atom and (factor == base or factor.exp.is_number)
    return 0 if factor.is_Number else 1 if is_power else 4 if base.is_Add else 2 if factor.free_symbols else 3


def tidied(expression: sp.Expr) -> Iterator[tuple[str, sp.Expr]]:
    """Yield the steps that make a derivative shorter, as names and expressions."""
    start, shortest = expression, expression
    if expression.is_polynomial() and not any(term.has(sp.Add) for term in sp.Add.make_args(expression)):
        return
    for _ in range(_MOST):
        name, best = min([(name, attempted(way, shortest)) for name, way in WAYS], key=lambda form: cost(form[1]))
        if cost(best) >= cost(shortest):
            break
        yield name if sp.fraction(best)[1].free_symbols or "denominator" not in name else "common factors", best
        shortest = best
    for way in (sp.simplify, sp.factor):
        best = attempted(way, start)
        if cost(best)[0] < cost(shortest)[0]:
            yield "simplified", best
            shortest = best


def cost(expression: sp.Expr) -> tuple[int, bool, int]:
    """Return the operations of a formula, whether it is a sum, and its length in print.

    Forms that books avoid cost more: fractions inside of fractions, factors such as 6x + 3, and x^(x - 1) for x^x/x.
    """
    if expression.has(sp.I, sp.nan, sp.zoo):
        return 10**6, True, 0
    powers = [p for p in expression.atoms(sp.Pow, sp.exp) if p.exp.free_symbols & p.base.free_symbols]
    sums = [part for part in expression.atoms(sp.Add) if part is not expression]
    awkward = sum(2 for part in sums if part.as_content_primitive()[0] != 1)
    awkward += sum(3 for part in sums if not powers and any(sp.fraction(term)[1] != 1 for term in part.args))
    awkward += sum(3 for power in powers if power.exp.is_Add and power.exp.args[0].is_Number)
    if any(part.exp.could_extract_minus_sign() for part in expression.atoms(sp.exp)):  # e^(-x)(e^(2x) + 1)
        awkward += sum(2 for part in sums if part.has(sp.exp))
    return int(sp.count_ops(expression)) + awkward, expression.is_Add, len(signs_of(expression))


def attempted(way: Callable[[sp.Expr], sp.Expr], expression: sp.Expr) -> sp.Expr:
    """Return another form of an expression; the expression itself where that takes long or cannot be done."""
    powers = (part.exp for part in expression.atoms(sp.Pow) if part.base.is_Add and part.exp.is_Integer)
    longest, most = (_SLOW, _SLOW_POWER) if way in (sp.simplify, _identity) else (_LONG, _MOST_POWER)
    is_long = sp.count_ops(expression) > longest or any(abs(power) > most for power in powers)
    if is_long and way is not sp.factor_terms:
        return expression
    try:
        with time_limit(_SECONDS, "simplification"):
            form = sp.sympify(way(expression))
    except (LimitError, ArithmeticError, ValueError, TypeError, AttributeError, NotImplementedError, RecursionError):
        return expression
    in_cosh = form.has(*_HYPERBOLIC) and not expression.has(*_HYPERBOLIC)  # and 2^(3x) does not become 8^x
    return expression if in_cosh or not _bases(form) <= _bases(expression) else form


def _bases(expression: sp.Expr) -> set[sp.Basic]:
    return {power.base for power in expression.atoms(sp.Pow) if power.base.is_number}


def _identity(expression: sp.Expr) -> sp.Expr:
    return sp.trigsimp(expression).replace(1 / sp.tan(_U), sp.cot(_U))


def _common_denominator(expression: sp.Expr) -> sp.Expr:
    top, bottom = sp.fraction(sp.together(expression))
    return sp.factor_terms(sp.expand(top)) / bottom


def _plain_denominators(expression: sp.Expr) -> sp.Expr:
    def multiplied(product: sp.Expr) -> sp.Expr:
        top, bottom = sp.fraction(product)
        return top / sp.expand(bottom)

    return expression.replace(lambda part: part.is_Mul and sp.fraction(part)[1].is_Mul, multiplied)


def _factored(expression: sp.Expr) -> sp.Expr:
    """Return a form in factors. Sums that were factors before stay whole: (x² - 1)² is not (x - 1)²(x + 1)²."""
    whole = sp.factor(expression)
    for base in {power.base for power in expression.atoms(sp.Pow) if power.base.is_Add and power.exp.is_Rational}:
        parts = sp.factor(base)
        exponents = {whole.as_powers_dict()[part] for part in parts.args} if parts.is_Mul else {0}
        if len(exponents) == 1 and exponents != {0}:
            whole = whole / parts ** max(exponents) * base ** max(exponents)
    return whole


WAYS: tuple[tuple[str, Callable[[sp.Expr], sp.Expr]], ...] = (
    ("common factors", sp.factor_terms),
    ("common denominator", _common_denominator),
    ("multiplied out", _plain_denominators),
    ("factored", _factored),
    ("cancelled", lambda u: sp.factor_terms(sp.cancel(sp.together(u)))),
    ("trigonometric identity", _identity),
    ("trigonometric identity", lambda u: sp.factor(u.replace(sp.sec(_U) ** 2, 1 + sp.tan(_U) ** 2))),
    (
        "x·sign(x) = |x|",
        lambda u: u.replace(lambda part: isinstance(part, sp.sign), lambda s: sp.Abs(*s.args) / s.args[0]),
    ),
)
