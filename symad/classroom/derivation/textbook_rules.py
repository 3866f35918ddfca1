"""One rule of differentiation at a time: which rule a person would take, and the line that it gives.

`applied(f, x)` returns d/dx[f] with the derivatives of its parts pending. Slopes of functions are those of
`symad.rules`, in the spelling of books; a function that the table of names lacks is called by its own name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from codegen import heads
from codegen.records import dataclass
from symad.display.document import Inline
from symad.display.notation import Pending, WrittenProduct, WrittenSum, ordered_factors, ordered_terms
from symad.errors import RuleError
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.graph.sympy_io import to_sympy
from symad.rules.partials import partial

_WORDS = {"sin": "sine", "cos": "cosine", "tan": "tangent", "cot": "cotangent", "sec": "secant", "csc": "cosecant"}
_KINDS = (("{}", "{}"), ("a{}", "arc{}"), ("{}h", "hyperbolic {}"), ("a{}h", "inverse hyperbolic {}"))
NAMES = {getattr(sp, kind.format(f)): word.format(_WORDS[f]) for kind, word in _KINDS for f in _WORDS} | {
    sp.exp: "exponential function", sp.log: "natural logarithm", heads.log2: "logarithm", heads.log10: "logarithm",
    heads.cbrt: "cube root", **dict.fromkeys((sp.floor, sp.ceiling, sp.sign, sp.Heaviside), "step function"),
}  # fmt: skip
_U, _V = (sp.Wild(name, properties=[lambda part: part.is_extended_real]) for name in "uv")
_NUMBER = sp.Wild("w", properties=[lambda part: part.is_Number])
_SPELLINGS = (  # of slopes that the table writes for machines
    (sp.tan(_U) ** 2 + 1, sp.sec(_U) ** 2),
    (-(sp.cot(_U) ** 2) - 1, -(sp.csc(_U) ** 2)),
    (heads.one_minus_square(_U), 1 - _U**2),
    (heads.hypot(1, _U), sp.sqrt(1 + _U**2)),
    (1 / (sp.sqrt(_U - 1) * sp.sqrt(_U + 1)), 1 / sp.sqrt(_U**2 - 1)),
    (_NUMBER / (_U**2 * sp.sqrt(1 - 1 / _U**2)), _NUMBER / (sp.Abs(_U) * sp.sqrt(_U**2 - 1))),
    (_NUMBER / (_U**2 * sp.sqrt(1 + 1 / _U**2)), _NUMBER / (sp.Abs(_U) * sp.sqrt(_U**2 + 1))),
    (heads.direction_cosine(_U, _V), _U / sp.sqrt(_U**2 + _V**2)),
    (heads.hypot(_U, _V), sp.sqrt(_U**2 + _V**2)),
)


@dataclass(frozen=True)
class AppliedRule:
    """A rule, the line that it gives, what it says of its parts, and where it holds."""

    rule: str
    line: sp.Expr
    parts: tuple[Inline, ...] = ()
    condition: sp.Basic = sp.true

    @property
    def reason(self) -> tuple[Inline, ...]:
        return (self.rule, ": ", *self.parts) if self.parts else (self.rule,)


def applied(pending: Pending) -> AppliedRule:
    """Return the rule that a person would take next for a pending derivative."""
    f, x = pending.args[:2]
    if not f.has(x):
        return AppliedRule("constant rule", sp.S.Zero)
    if f == x:
        return AppliedRule("identity", sp.S.One)
    for head, rule in _RULES:
        if isinstance(f, head):
            return rule(f, pending)
    raise RuleError(f"no rule of differentiation for {type(f).__name__}", do="give a formula of ordinary functions")


def _letters(pending: Pending) -> Iterator[sp.Symbol]:
    """Yield letters for parts, which the formula does not use."""
    used = {symbol.name for symbol in pending.free_symbols}
    return (sp.Symbol(letter, real=True) for letter in "uvwpqrs" if letter not in used)


def _named(pending: Pending, *parts: sp.Expr) -> tuple[Inline, ...]:
    """Return "u = ..., v = ..."."""
    named = zip(_letters(pending), parts, strict=False)
    return tuple(text for k, (letter, part) in enumerate(named) for text in (", ", letter, " = ", part)[not k :])


def _sum(f: sp.Expr, pending: Pending) -> AppliedRule:
    return AppliedRule("sum rule", WrittenSum(*map(pending.of, ordered_terms(f))))


def _product(f: sp.Expr, pending: Pending) -> AppliedRule:
    factors, x = ordered_factors(f), pending.args[1]
    moving = [factor for factor in factors if factor.has(x)]
    if constants := [factor for factor in factors if not factor.has(x)]:
        factor = sp.Mul(*constants)
        return AppliedRule("constant factor", WrittenProduct(factor, pending.of(f.func(*moving))), (factor,))
    powers = [factor for factor in moving if factor.is_Pow and factor.exp.is_Rational]
    if len(moving) > 2 and sum(power.base.is_Add for power in powers) > 1:
        line = WrittenProduct(f, pending.of(logarithm(f, x)))
        parts = ("y′ = y·(ln|y|)′ with y = ", f)
        return AppliedRule("logarithmic differentiation", line, parts, sp.Ne(sp.Symbol("y"), 0))
    if below := [power for power in powers if power.exp < 0]:
        u, v = sp.Mul(*(g for g in moving if g not in below)), sp.Mul(*(1 / g for g in below))
        if (shorter := _divided(u, v, x)) is not None:
            condition = _nonzero(v.as_base_exp()[0], x)
            return AppliedRule("divided first", pending.of(shorter), (f, " = ", shorter), condition)
        return _quotient(u, v, pending)
    terms = [WrittenProduct(*moving[:k], pending.of(part), *moving[k + 1 :]) for k, part in enumerate(moving)]
    return AppliedRule("product rule", WrittenSum(*terms), _named(pending, *moving))


def _divided(u: sp.Expr, v: sp.Expr, x: sp.Basic) -> sp.Expr | None:
    """Return u/v without a fraction, or with a shorter divisor, where a person would divide before all else."""
    if v.as_base_exp()[0] == x:
        shorter = sp.expand(u / v)
        return shorter if all(term.as_independent(x)[1].as_base_exp()[0] in (x, 1) for term in shorter.args) else None
    shorter = sp.cancel(u / v) if u.is_polynomial(x) and v.is_polynomial(x) else u / v
    return shorter if sp.count_ops(sp.fraction(shorter)[1]) < sp.count_ops(v) else None


def _quotient(u: sp.Expr, v: sp.Expr, pending: Pending) -> AppliedRule:
    below, minus = sp.Pow(v, -2), sp.S.NegativeOne
    if u == 1:
        parts = ("(1/u)′ = -u′/u² with ", *_named(pending, v))
        return AppliedRule("reciprocal rule", WrittenProduct(minus, pending.of(v), below), parts)
    above = WrittenSum(WrittenProduct(pending.of(u), v), WrittenProduct(minus, u, pending.of(v)))
    return AppliedRule("quotient rule", WrittenProduct(above, below), _named(pending, u, v))


def logarithm(f: sp.Expr, x: sp.Basic) -> sp.Expr:
    """Return ln|f| by the laws of logarithms, with a term for each factor."""
    terms = []
    for factor in ordered_factors(f) if f.is_Mul else [f]:
        base, exponent = factor.as_base_exp()
        if base.is_Mul and not exponent.has(x):
            terms += [exponent * term for term in sp.Add.make_args(logarithm(base, x))]
            continue
        is_positive = exponent.has(x) or base.is_positive or (exponent.is_Rational and exponent.q % 2 == 0)
        terms.append(exponent * sp.log(base if is_positive else sp.Abs(base)))
    return WrittenSum(*sorted(filter(None, terms), key=lambda term: term.could_extract_minus_sign()))


def _power(f: sp.Expr, pending: Pending) -> AppliedRule:
    x, base, exponent = pending.args[1], f.base, f.exp
    if base.has(x) and exponent.has(x):
        whole = sp.exp(exponent * sp.log(base), evaluate=False)
        return AppliedRule("power as an exponential", pending.of(whole), (f, " = ", whole), base > 0)
    if exponent.has(x):
        if base.is_number and not base.is_positive:
            do = "give a formula with a positive base"
            raise RuleError(f"the derivative of {f}", why="such a power has no real slope", do=do)
        return _chain(f, exponent, WrittenProduct(f, sp.log(base)), "exponential function", pending)
    if exponent == -1 and base.is_Add:
        return _quotient(sp.S.One, base, pending)
    slope = (WrittenProduct if base.is_Add else sp.Mul)(exponent, base ** (exponent - 1))
    return _chain(f, base, slope, "square root" if 2 * exponent == 1 else "power rule", pending)


def _chain(f: sp.Expr, inner: sp.Expr, slope: sp.Expr, name: str, pending: Pending) -> AppliedRule:
    """Return the slope of the outer function, times the pending derivative of the inner one if that is not x."""
    if inner == pending.args[1]:
        return AppliedRule(name, slope)
    letter = next(_letters(pending))
    line = WrittenProduct(slope, pending.of(inner))
    return AppliedRule("chain rule", line, ("outer ", f.xreplace({inner: letter}), ", inner ", letter, " = ", inner))


def _logarithm_rule(f: sp.Expr, pending: Pending) -> AppliedRule:
    (u,) = f.args
    inside = u.args[0] if isinstance(u, sp.Abs) else u
    if inside.is_Mul or inside.is_Pow:
        shorter = logarithm(inside, pending.args[1])
        return AppliedRule("laws of logarithms", pending.of(shorter), (f, " = ", shorter))
    return _chain(f, inside, 1 / inside, "natural logarithm", pending)


def _absolute(f: sp.Expr, pending: Pending) -> AppliedRule:
    (u,) = f.args
    step = _chain(f, u, sp.sign(u), "absolute value", pending)
    return AppliedRule(step.rule, step.line, step.parts, _nonzero(u, pending.args[1]))


def _nonzero(u: sp.Expr, x: sp.Basic) -> sp.Basic:
    """Return the condition that u is not 0, as x ≠ a where u is linear."""
    return sp.Ne(x, sp.solve(u, x)[0]) if u.is_polynomial(x) and sp.degree(u, x) == 1 else sp.Ne(u, 0)


def _piecewise(f: sp.Piecewise, pending: Pending) -> AppliedRule:
    return AppliedRule("case by case", sp.Piecewise(*((pending.of(value), condition) for value, condition in f.args)))


def _extremum(f: sp.Expr, pending: Pending) -> AppliedRule:
    cases = f.rewrite(sp.Piecewise)
    return AppliedRule("cases", pending.of(cases), (f, " = ", cases))


def _unknown(f: sp.Expr, pending: Pending) -> AppliedRule:
    """Return f'(u) u' for an undefined function, and the next derivative for one of its derivatives."""
    name = f"derivative of {getattr(f, 'expr', f).func.__name__}"
    if not isinstance(f, AppliedUndef) or len(f.args) > 1 or f.args[0] == pending.args[1]:
        return AppliedRule(name, sp.diff(f, pending.args[1]))
    letter = sp.Dummy("u", real=True)
    return _chain(f, f.args[0], sp.Subs(f.func(letter).diff(letter), letter, f.args[0]), name, pending)


def _function(f: sp.Expr, pending: Pending) -> AppliedRule:
    name = NAMES.get(f.func, f"derivative of {f.func.__name__}")
    slopes = {part: slope_of(f, place) for place, part in enumerate(f.args) if part.has(pending.args[1])}
    if not any(slopes.values()):
        return AppliedRule(name, sp.S.Zero, ("constant between its jumps",))
    if len(f.args) == 1:
        return _chain(f, f.args[0], slopes[f.args[0]], name, pending)
    terms = [WrittenProduct(slope, pending.of(part)) for part, slope in slopes.items()]
    return AppliedRule("chain rule", WrittenSum(*terms), (name, " in each argument"))


def slope_of(f: sp.Expr, place: int) -> sp.Expr:
    """Return the partial derivative of a function in one argument, from the table that differentiates."""
    letters, slope = _slope(f.func, len(f.args), place)
    return slope.xreplace(dict(zip(letters, f.args, strict=True)))


@lru_cache
def _slope(head: Any, count: int, place: int) -> tuple[list[sp.Symbol], sp.Expr]:
    """Return letters for the arguments of a function, and its partial derivative in these letters."""
    graph = Graph()
    letters = [sp.Dummy("u", real=True) for _ in range(count)]
    operands = tuple(graph.leaf(letter) for letter in letters)
    node = partial(Builder(graph), head, operands, graph.node(head, *operands), place)
    slope = sp.S.Zero if node is None else to_sympy(graph, [node], evaluate=True)[0]
    for machine, book in _SPELLINGS:
        slope = slope.replace(machine, book)
    return letters, slope


_RULES: tuple[tuple[Any, Callable[[Any, Pending], AppliedRule]], ...] = (
    (sp.Add, _sum), (sp.Mul, _product), (sp.Pow, _power), (sp.log, _logarithm_rule), (sp.Abs, _absolute),
    (sp.Piecewise, _piecewise), ((sp.Max, sp.Min), _extremum), ((AppliedUndef, sp.Derivative, sp.Subs), _unknown),
    (sp.Function, _function),
)  # fmt: skip
