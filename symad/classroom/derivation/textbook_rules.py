"""One rule of differentiation at a time: which rule a person would take, and the line that it gives.

`applied(f, x)` returns d/dx[f] with the derivatives of its parts pending. Slopes of functions are those of
`symad.rules`, in the spelling of books; a function that the table of names lacks is called by its own name.
"""

from __future__ import annotations

import sympy as sp
from sympy.core.function import AppliedUndef

from codegen import heads
from codegen.records import dataclass
from symad.display.document import Inline
from symad.display.mathematics import signs_of
from symad.display.notation import Pending, WrittenProduct, WrittenSum, ordered_factors, ordered_terms
from symad.errors import RuleError
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.graph.sympy_io import to_sympy
from symad.rules.partials import partial

NAMES = {
    sp.exp: "exponential function", sp.log: "natural logarithm", heads.log2: "logarithm", heads.log10: "logarithm",
    sp.sin: "sine", sp.cos: "cosine", sp.tan: "tangent", sp.cot: "cotangent", sp.sec: "secant", sp.csc: "cosecant",
    sp.asin: "arcsine", sp.acos: "arccosine", sp.atan: "arctangent", sp.acot: "arccotangent", sp.asec: "arcsecant",
    sp.acsc: "arccosecant", sp.sinh: "hyperbolic sine", sp.cosh: "hyperbolic cosine", sp.tanh: "hyperbolic tangent",
    sp.coth: "hyperbolic cotangent", sp.sech: "hyperbolic secant", sp.csch: "hyperbolic cosecant",
    sp.asinh: "inverse hyperbolic sine", sp.acosh: "inverse hyperbolic cosine", sp.atanh: "inverse hyperbolic tangent",
    sp.acoth: "inverse hyperbolic cotangent", sp.asech: "inverse hyperbolic secant",
    sp.acsch: "inverse hyperbolic cosecant", heads.cbrt: "cube root", sp.Abs: "absolute value",
    sp.floor: "step function", sp.ceiling: "step function", sp.sign: "step function", sp.Heaviside: "step function",
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
    def is_direct(self) -> bool:
        """Whether no derivative is pending."""
        return not self.line.has(Pending)

    @property
    def reason(self) -> tuple[Inline, ...]:
        return (self.rule, ": ", *self.parts) if self.parts else (self.rule,)


def applied(pending: Pending) -> AppliedRule:
    """Return the rule that a person would take next for a pending derivative.

    >>> x = sp.Symbol("x", real=True)
    >>> step = applied(Pending(x * sp.sin(x), x))
    >>> step.rule, signs_of(step.line)
    ('product rule', 'd/dx[x]·sin(x) + x·d/dx[sin(x)]')
    """
    f, x = pending.args[:2]
    if not f.has(x):
        return AppliedRule("constant rule", sp.S.Zero)
    if f == x:
        return AppliedRule("identity", sp.S.One)
    for head, rule in _RULES:
        if isinstance(f, head):
            return rule(f, pending)
    raise RuleError(f"no rule of differentiation for {type(f).__name__}", do="give a formula of ordinary functions")


def derivative_of(part: sp.Expr, pending: Pending) -> Pending:
    """Return the pending derivative of a part in the same variable."""
    return Pending(part, *pending.args[1:])


def _named(pending: Pending, **parts: sp.Expr) -> tuple[Inline, ...]:
    """Return "u = ..., v = ..." in letters that the formula does not use."""
    used = {symbol.name for symbol in pending.free_symbols}
    letters = iter(letter for letter in "uvwpqrs" if letter not in used)
    texts: list[Inline] = []
    for part in parts.values():
        texts += [", " if texts else "", sp.Symbol(next(letters)), " = ", part]
    return tuple(texts)


def _letter(pending: Pending) -> sp.Symbol:
    used = {symbol.name for symbol in pending.free_symbols}
    return sp.Symbol(next(letter for letter in "uvwpqrs" if letter not in used), real=True)


def _sum(f: sp.Expr, pending: Pending) -> AppliedRule:
    return AppliedRule("sum rule", WrittenSum(*(derivative_of(term, pending) for term in ordered_terms(f))))


def _product(f: sp.Expr, pending: Pending) -> AppliedRule:
    x = pending.args[1]
    factors = ordered_factors(f)
    constants = [factor for factor in factors if not factor.has(x)]
    moving = [factor for factor in factors if factor.has(x)]
    if constants:
        factor = sp.Mul(*constants)
        rest = derivative_of(sp.Mul(*moving), pending)
        return AppliedRule("constant factor", WrittenProduct(factor, rest), (factor,))
    if is_shorter_by_logarithms(moving):
        return _logarithmic(f, moving, pending)
    below = [factor for factor in moving if factor.is_Pow and factor.exp.is_Rational and factor.exp < 0]
    above = [factor for factor in moving if factor not in below]
    if below:
        return _quotient(sp.Mul(*above), sp.Mul(*(1 / factor for factor in below)), pending)
    terms = [
        WrittenProduct(*(derivative_of(g, pending) if k == place else g for k, g in enumerate(moving)))
        for place in range(len(moving))
    ]
    parts = _named(pending, **{f"part{k}": factor for k, factor in enumerate(moving)})
    return AppliedRule("product rule", WrittenSum(*terms), parts)


def _quotient(u: sp.Expr, v: sp.Expr, pending: Pending) -> AppliedRule:
    du, dv = derivative_of(u, pending), derivative_of(v, pending)
    if u == 1:
        line = WrittenProduct(sp.S.NegativeOne, dv, sp.Pow(v, -2))
        return AppliedRule("reciprocal rule", line, ("(1/u)′ = -u′/u² with ", *_named(pending, u=v)))
    top = WrittenSum(WrittenProduct(du, v), WrittenProduct(sp.S.NegativeOne, u, dv))
    line = WrittenProduct(top, sp.Pow(v, -2))
    return AppliedRule("quotient rule", line, _named(pending, u=u, v=v), sp.true)


def is_shorter_by_logarithms(factors: list[sp.Expr]) -> bool:
    """Whether a product is differentiated through its logarithm: three factors, two of them powers of sums."""
    sums = [factor for factor in factors if factor.is_Pow and factor.exp.is_Rational and factor.base.is_Add]
    return len(factors) > 2 and len(sums) > 1


def logarithm(f: sp.Expr, x: sp.Basic) -> sp.Expr:
    """Return ln|f| by the laws of logarithms, with a term for each factor.

    >>> x = sp.Symbol("x", real=True)
    >>> logarithm(x**2 / (x + 1), x)
    2*log(Abs(x)) - log(Abs(x + 1))
    """
    terms = []
    factors = ordered_factors(f) if f.is_Mul else [f]
    for factor in sorted(factors, key=lambda factor: factor.as_base_exp()[1].could_extract_minus_sign()):
        base, exponent = factor.as_base_exp()
        if isinstance(factor, sp.exp):
            terms.append(factor.args[0])
        elif not exponent.has(x) and (base.is_positive or (exponent.is_Rational and exponent.q % 2 == 0)):
            terms.append(exponent * sp.log(base))
        elif not exponent.has(x):
            terms.append(exponent * sp.log(sp.Abs(base)))
        else:
            terms.append(exponent * sp.log(base))
    return terms[0] if len(terms) == 1 else WrittenSum(*terms)


def _logarithmic(f: sp.Expr, factors: list[sp.Expr], pending: Pending) -> AppliedRule:
    sum_of_logarithms = logarithm(sp.Mul(*factors, evaluate=False), pending.args[1])
    line = WrittenProduct(f, derivative_of(sum_of_logarithms, pending))
    parts = ("y′ = y·(ln|y|)′ with y = ", f)
    return AppliedRule("logarithmic differentiation", line, parts, sp.Ne(f, 0))


def _power(f: sp.Expr, pending: Pending) -> AppliedRule:
    x, base, exponent = pending.args[1], f.base, f.exp
    if base.has(x) and exponent.has(x):
        whole = sp.exp(exponent * sp.log(base), evaluate=False)
        return AppliedRule("power as an exponential", derivative_of(whole, pending), (f, " = ", whole), base > 0)
    if exponent.has(x):
        return _chain(f, exponent, WrittenProduct(f, sp.log(base)), "exponential function", pending)
    if exponent == sp.S.Half:
        return _chain(f, base, 1 / (2 * f), "square root", pending)
    if exponent == -1 and base.is_Add:
        return _quotient(sp.S.One, base, pending)
    return _chain(f, base, exponent * base ** (exponent - 1), "power rule", pending)


def _chain(f: sp.Expr, inner: sp.Expr, slope: sp.Expr, name: str, pending: Pending) -> AppliedRule:
    """Return the slope of the outer function, times the pending derivative of the inner one if that is not x."""
    if inner == pending.args[1]:
        return AppliedRule(name, slope)
    letter = _letter(pending)
    outer = f.func(letter, *f.args[1:]) if f.args[0] == inner else f.func(f.args[0], letter)
    line = WrittenProduct(slope, derivative_of(inner, pending))
    return AppliedRule("chain rule", line, ("outer ", outer, ", inner ", letter, " = ", inner))


def _logarithm_rule(f: sp.Expr, pending: Pending) -> AppliedRule:
    (u,), x = f.args, pending.args[1]
    inside = u.args[0] if isinstance(u, sp.Abs) else u
    shorter = logarithm(inside, x)
    if inside.is_Mul or (inside.is_Pow and not inside.is_number):
        return AppliedRule("laws of logarithms", derivative_of(shorter, pending), (f, " = ", shorter))
    if isinstance(u, sp.Abs):
        step = _chain(sp.log(inside), inside, 1 / inside, "natural logarithm", pending)
        parts = ("(ln|u|)′ = u′/u, ", *_named(pending, u=inside)) if step.parts else ()
        return AppliedRule(step.rule, step.line, parts)
    return _chain(f, u, 1 / u, "natural logarithm", pending)


def _absolute(f: sp.Expr, pending: Pending) -> AppliedRule:
    (u,) = f.args
    step = _chain(f, u, sp.sign(u) if u == pending.args[1] else u / f, "absolute value", pending)
    return AppliedRule(step.rule, step.line, step.parts, sp.Ne(u, 0))


def _piecewise(f: sp.Piecewise, pending: Pending) -> AppliedRule:
    cases = [(derivative_of(value, pending), condition) for value, condition in f.args]
    return AppliedRule("case by case", sp.Piecewise(*cases))


def _extremum(f: sp.Expr, pending: Pending) -> AppliedRule:
    cases = f.rewrite(sp.Piecewise)
    return AppliedRule("cases", derivative_of(cases, pending), (f, " = ", cases))


def _unknown(f: sp.Expr, pending: Pending) -> AppliedRule:
    """Return f'(u) u' for an undefined function, and the next derivative for one of its derivatives."""
    x = pending.args[1]
    if isinstance(f, AppliedUndef) and len(f.args) == 1 and f.args[0] != x:
        letter = sp.Dummy("u", real=True)
        slope = sp.Subs(f.func(letter).diff(letter), letter, f.args[0])
        return _chain(f, f.args[0], slope, f"derivative of {f.func.__name__}", pending)
    name = getattr(f, "expr", f).func.__name__
    return AppliedRule(f"derivative of {name}", sp.diff(f, x))


def _function(f: sp.Expr, pending: Pending) -> AppliedRule:
    name = NAMES.get(f.func, f"derivative of {f.func.__name__}")
    moving = [place for place, part in enumerate(f.args) if part.has(pending.args[1])]
    slopes = [slope_of(f, place) for place in moving]
    if all(slope == 0 for slope in slopes):
        return AppliedRule(name, sp.S.Zero, ("constant between its jumps",))
    if len(f.args) == 1:
        return _chain(f, f.args[0], slopes[0], name, pending)
    terms = [WrittenProduct(s, derivative_of(f.args[k], pending)) for k, s in zip(moving, slopes, strict=True)]
    return AppliedRule("chain rule", WrittenSum(*terms), (name, " in each argument"))


def slope_of(f: sp.Expr, place: int) -> sp.Expr:
    """Return the partial derivative of a function in one argument, from the table that differentiates.

    >>> slope_of(sp.asinh(sp.Symbol("u", real=True)), 0)
    1/sqrt(u**2 + 1)
    """
    graph = Graph()
    build = Builder(graph)
    letters = [sp.Dummy("u", real=True) for _ in f.args]
    operands = tuple(graph.leaf(letter) for letter in letters)
    node = partial(build, f.func, operands, graph.node(f.func, *operands), place)
    if node is None:
        return sp.S.Zero
    (slope,) = to_sympy(graph, [node], evaluate=True)
    for machine, book in _SPELLINGS:
        slope = slope.replace(machine, book)
    return slope.xreplace(dict(zip(letters, f.args, strict=True)))


_RULES = (
    (sp.Add, _sum),
    (sp.Mul, _product),
    (sp.Pow, _power),
    (sp.log, _logarithm_rule),
    (sp.Abs, _absolute),
    (sp.Piecewise, _piecewise),
    ((sp.Max, sp.Min), _extremum),
    ((AppliedUndef, sp.Derivative, sp.Subs), _unknown),
    (sp.Function, _function),
)
