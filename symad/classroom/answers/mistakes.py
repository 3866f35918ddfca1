"""Find a mistake in a coefficient by making every known mistake and comparing the results.

For the first wrong coefficient, the coefficient before it is differentiated once more, with one wrong rule at one
place (`mistake_rules`). Other candidates are mistakes with whole terms: dropped, doubled, of another level. A candidate
that agrees with the pupil's line at random points, and then by `agreement`, is named. Several may fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations_with_replacement, islice

import sympy as sp
from mpmath import mp

from codegen.records import dataclass
from symad.classroom.answers.answer_names import SLOPE
from symad.classroom.answers.answer_problem import AnswerProblem, along
from symad.classroom.answers.implicit_problem import ImplicitProblem
from symad.classroom.answers.mistake_orders import of_whole_derivatives
from symad.classroom.answers.mistake_rules import RULES, Rule, Tangents, Words, Wrong, constants, partial, variable
from symad.classroom.equality.equality import ATTEMPTS, Sampler, agreement
from symad.classroom.expansion.epsilon import Levels, monomial
from symad.display.mathematics import signs_of, too_large

MOST_CANDIDATES = 1500
MOST_SHOWN = 3
_PROBES = 3  # random points at which a candidate has to agree before the slow comparison
_DIFFERS = -1
# the kinds, most common first; several that fit are named in this order
_COMMON = {kind: place for place, kind in enumerate([
    "dropped mixed term", "factorial", "wrong order", "absolute value", "chain rule", "product rule", "quotient rule",
    "wrong sign", "derivative of another function", "logarithm", "power rule", "wrong variable", "confused levels",
    "constant", "not differentiated", "logarithmic differentiation", "outer derivative",
    "dropped term", "double-counted",
])}  # fmt: skip


# kinds of mistakes in multiplying out as well as in differentiating
OF_TERMS = frozenset(["dropped mixed term", "product of terms", "dropped term", "confused levels", "double-counted",
                      "factorial", "squared epsilon", "wrong order", "direction"])  # fmt: skip


@dataclass(frozen=True)
class Mistake:
    """A mistake that reproduces the answer: its kind, and its place in words."""

    kind: str
    words: Words

    def __str__(self) -> str:
        return f"{self.kind}: " + "".join(part if isinstance(part, str) else signs_of(part) for part in self.words)


def mistakes_of(problem: AnswerProblem, levels: Levels, written: sp.Expr) -> tuple[Mistake, ...]:
    """Return the mistakes that lead from the right coefficient of some levels to the written one.

    >>> from symad.classroom.answers.answer_problem import derivative_problem
    >>> x = sp.Symbol("x", real=True)
    >>> for mistake in mistakes_of(derivative_problem("sin(x**2)", "x", 1), (1,), sp.cos(x**2)):
    ...     print(mistake)
    chain rule: You left out 2x, the inner derivative of sin(x²)
    """
    if (own := problem.own_mistakes(written)) is not None:
        return tuple(Mistake(kind, (words,)) for kind, words in own)
    for wrongs in (wrong_coefficients, _generic):
        if (wrongs, levels) not in problem.wrongs:  # all answers to a question are compared with the same ones
            problem.wrongs[wrongs, levels] = _with_values(wrongs(problem, levels), problem)
        if fitting := _fitting(problem.wrongs[wrongs, levels], written, problem):
            return fitting
    return ()


def of_differentiated_equation(problem: ImplicitProblem, gap: sp.Expr) -> tuple[Mistake, ...]:
    """Return the mistakes that lead to a differentiated equation; `gap` is one side minus the other, in SLOPE."""
    (x,), y = problem.symbols, problem.dependent
    terms = [term for term in sp.Add.make_args(problem.formula) if term.has(y)]
    for where, without in (y, terms), *((term, [term]) for term in terms):
        in_y = (sp.diff(term, y) * (sp.S.One if term in without else SLOPE) for term in terms)
        whole = sp.diff(problem.formula, x) + sp.Add(*in_y)
        if agreement(whole, gap) or agreement(whole, -gap):
            words: Words = ("You left out ", SLOPE, ", the inner derivative of what stands in ", where)
            return (Mistake("implicit differentiation", words),)
    wrongs = _with_values(_derivations(problem.formula, {x: sp.S.One, y: SLOPE}, RULES), problem)
    ways = (_fitting(wrongs, g, problem) for g in (gap, -gap))
    return next(filter(None, ways), ())


def _with_values(wrongs: Iterator[Wrong], problem: AnswerProblem) -> list[Wrong]:
    """Return the mistakes whose results have values, at the point of the problem."""
    at_point = (replace(wrong, value=problem.value(wrong.value)) for wrong in islice(wrongs, MOST_CANDIDATES))
    return [wrong for wrong in at_point if not (too_large(wrong.value) or wrong.value.has(sp.nan, sp.zoo, sp.I))]


def _fitting(wrongs: Sequence[Wrong], written: sp.Expr, problem: AnswerProblem) -> tuple[Mistake, ...]:
    """Return the mistakes of different kinds that reproduce the written expression."""
    fitting: dict[str, Mistake] = {}
    for wrong in _agreeing(wrongs, written):
        if wrong.kind not in fitting and agreement(wrong.value, written).equal:
            fitting[wrong.kind] = Mistake(wrong.kind, tuple(map(problem.named, wrong.words)))

    def rank(mistake: Mistake) -> int:  # at a point, the value of f is the most common
        return -1 if problem.at and mistake.kind == "not differentiated" else _COMMON.get(mistake.kind, len(_COMMON))

    return tuple(sorted(fitting.values(), key=rank)[:MOST_SHOWN])


def _agreeing(candidates: Sequence[Wrong], written: sp.Expr) -> list[Wrong]:
    """Return the candidates that agree with the written expression wherever both have values at random points."""
    sampler = Sampler([written, *(wrong.value for wrong in candidates)])
    looked_at, met = list(range(len(candidates))), [0] * len(candidates)
    for attempt in range(ATTEMPTS):
        value, *values = sampler.values(sampler.point(attempt))
        going_on = [-1]  # the first expression is the written one
        for place, (candidate, candidate_value) in enumerate(zip(looked_at, values, strict=True)):
            if mp.isfinite(value) and mp.isfinite(candidate_value):
                met[candidate] = met[candidate] + 1 if mp.almosteq(candidate_value, value, 1e-25, 1e-25) else _DIFFERS
            if 0 <= met[candidate] < _PROBES:
                going_on.append(place)
        sampler.keep(place + 1 for place in going_on)
        looked_at = [looked_at[place] for place in going_on[1:]]
        if not looked_at:
            break
    return [wrong for wrong, points in zip(candidates, met, strict=True) if points > 0]


def wrong_coefficients(problem: AnswerProblem, levels: Levels) -> Iterator[Wrong]:
    """Yield wrong coefficients with the kind and the place of the mistake."""
    if isinstance(problem, ImplicitProblem):
        yield from _of_equations(problem)
        return
    yield from _of_terms(problem, levels)
    yield from of_whole_derivatives(problem, levels)
    for before, tangents in _before(problem, levels):
        yield from _derivations(before, tangents, RULES)


def _of_equations(problem: ImplicitProblem) -> Iterator[Wrong]:
    """Yield wrong slopes -F_x/F_y of F(x, y) = 0: upside down, without F_y, with a wrong rule in one of the two."""
    formula, (x,), y = problem.formula, problem.symbols, problem.dependent
    in_x, in_y = sp.diff(formula, x), sp.diff(formula, y)
    kind = "implicit differentiation"
    if problem.count > 1:
        before = problem.general(range(1, problem.count))
        fixed, moved = sp.diff(before, x), sp.diff(before, y)
        yield Wrong(kind, ("You left out ", SLOPE, ", the inner derivative of y, in the last step"), fixed + moved)
        yield Wrong(kind, ("You held y fixed in the last step, but it depends on ", x), fixed)
        yield Wrong("wrong order", (f"You gave the derivative of order {problem.count - 1}",), before)
        return
    yield Wrong(kind, ("You wrote ", SLOPE, " upside down"), -in_y / in_x)
    yield Wrong(kind, ("You left out ", in_y, ", the factor of ", SLOPE), -in_x)
    for wrong in _derivations(formula, {x: sp.S.One}, RULES):
        yield replace(wrong, value=-wrong.value / in_y)
    for wrong in _derivations(formula, {y: sp.S.One}, RULES):
        yield replace(wrong, value=-in_x / wrong.value if wrong.value != 0 else sp.nan)


def _before(problem: AnswerProblem, levels: Levels) -> Iterator[tuple[sp.Expr, Tangents]]:
    """Yield pairs of a coefficient and the direction of its last derivative; each of its levels may be the last."""
    for level in levels if problem.expansion else levels[-1:]:
        yield problem.general(tuple(other for other in levels if other != level)), problem.tangents(level)


def _derivations(before: sp.Expr, tangents: Tangents, rules: Sequence[Rule]) -> Iterator[Wrong]:
    """Yield the derivatives of an expression with one wrong rule at one place, and at all places."""
    right = along(before, tangents)
    everywhere: dict[str, list[Wrong]] = {}
    for node, outer in places(before, tangents):
        derivative = along(node, tangents)
        for rule in rules:
            for number, wrong in enumerate(rule(node, tangents)):
                mistake = Wrong(wrong.kind, wrong.words, right + outer * (wrong.value - derivative))
                everywhere.setdefault(f"{rule.__name__} {number}", []).append(mistake)
                yield mistake
    for mistakes in everywhere.values():
        if len(mistakes) > 1:
            whole = sp.Add(*(wrong.value for wrong in mistakes)) - (len(mistakes) - 1) * right
            yield Wrong(mistakes[0].kind, (*mistakes[0].words, " (and the same elsewhere)"), whole)


def places(expression: sp.Expr, tangents: Tangents) -> Iterator[tuple[sp.Expr, sp.Expr]]:
    """Yield the varying parts of an expression from the outside in, with the whole's derivative in each.

    >>> x = sp.Symbol("x")
    >>> list(places(sp.sin(x**2), {x: 1}))
    [(sin(x**2), 1), (x**2, cos(x**2)), (x, 2*x*cos(x**2))]
    """
    stack: list[tuple[sp.Expr, sp.Expr]] = [(expression, sp.S.One)]
    while stack:
        node, outer = stack.pop()
        if not node.has(*tangents):
            continue
        yield node, outer
        if isinstance(node, sp.Piecewise):
            for branch, case in node.args:  # each case is 1 where it holds, else 0
                only = [(sp.Integer(other == case), other) for _, other in node.args]
                stack.append((branch, outer * sp.Piecewise(*only)))
            continue
        parts = [(argument, partial(node, k)) for k, argument in enumerate(node.args)]
        stack += [(argument, outer * part) for argument, part in reversed(parts) if part is not None]


def _of_terms(problem: AnswerProblem, levels: Levels) -> Iterator[Wrong]:
    """Yield mistakes with a whole term: it is dropped, of other levels, counted twice, of another order."""
    right = problem.general(levels)
    yield from _other_orders(problem, levels)
    if len(problem.symbols) == 1 and len(levels) == 1:
        yield from constants(problem.formula, problem.tangents(levels[0]))
    if problem.expansion and len(levels) > 1:
        words: Words = ("You dropped the mixed term ", monomial(levels), ": only the squares of the epsilons are 0")
        yield Wrong("dropped mixed term", words, sp.S.Zero)
        first = [problem.general((level,)) for level in levels]
        words = ("You multiplied the terms of lower order: a mixed term is a derivative of higher order",)
        yield Wrong("product of terms", words, sp.Mul(*first))
    elif problem.expansion and levels:
        yield Wrong("dropped term", ("You dropped the term ", monomial(levels)), sp.S.Zero)
    elif problem.expansion:
        yield Wrong("dropped term", ("You dropped the term without epsilons",), sp.S.Zero)
    yield from _other_levels(problem, levels)
    yield from _other_variables(problem, levels)
    yield from _lengths(problem, levels, right)
    yield from _multiples(problem, levels, right)
    yield from _squares(problem, levels)


def _other_orders(problem: AnswerProblem, levels: Levels) -> Iterator[Wrong]:
    """Yield derivatives of another order along the right directions, for a single variable."""
    directions = [problem.directions[(level,)] for level in levels]
    for order in range(len(levels) + 2 if levels and len(problem.symbols) == 1 else 0):
        kind, words = "not differentiated", "You did not differentiate f"
        if order:
            kind, words = "wrong order", f"You gave the derivative of order {order}"
        derivative = sp.diff(problem.formula, problem.symbols[0], order)
        if order != len(levels) and derivative != 0:
            yield Wrong(kind, (words,), sp.Mul(derivative, *(part for (part,) in directions)))


def _repeated(problem: AnswerProblem, levels: Sequence[int]) -> sp.Expr:
    """Return the derivative along directions of levels, which may repeat."""
    ways = (dict(zip(problem.symbols, problem.directions[(level,)], strict=True)) for level in levels)
    return reduce(along, ways, problem.formula)


def _other_levels(problem: AnswerProblem, levels: Levels) -> Iterator[Wrong]:
    """Yield coefficients of other levels, or of one level in place of several."""
    if not problem.expansion or problem.count == 1 or not levels:
        return
    every = list(combinations_with_replacement(range(1, problem.count + 1), len(levels)))
    for chosen in every:
        distinct = tuple(dict.fromkeys(chosen))
        if distinct == chosen:
            words: Words = ("You wrote what belongs to ", monomial(chosen), ", not to ", monomial(levels))
        else:
            words = ("You took the direction of ", monomial(distinct[:1]), " again, where another level has its own")
        if chosen != levels:
            yield Wrong("confused levels", words, _repeated(problem, chosen))
    directions = [problem.directions[(level,)] for level in range(1, problem.count + 1)]
    everywhere = dict(zip(problem.symbols, (sp.Add(*parts) for parts in zip(*directions, strict=True)), strict=True))
    together = reduce(along, [everywhere] * len(levels), problem.formula)
    yield Wrong("confused levels", ("You used one epsilon for all levels: each has its own",), together)


def _other_variables(problem: AnswerProblem, levels: Levels) -> Iterator[Wrong]:
    """Yield the results of a direction with two exchanged parts."""
    for level in levels if len(problem.symbols) == 2 else ():
        before = problem.general(tuple(other for other in levels if other != level))
        exchanged = dict(zip(problem.symbols, reversed(problem.directions[(level,)]), strict=True))
        of_level = (" of ", monomial((level,))) if problem.expansion else ()
        words: Words = ("You exchanged the two parts of the direction", *of_level)
        yield Wrong("direction", words, along(before, exchanged))


def _lengths(problem: AnswerProblem, levels: Levels, right: sp.Expr) -> Iterator[Wrong]:
    """Yield derivatives along a direction of another length: normalised, and not normalised."""
    entries = problem.directions[(1,)]
    if problem.expansion or len(problem.symbols) == 1 or not all(entry.is_number for entry in entries):
        return
    length = sp.sqrt(sp.Add(*(entry**2 for entry in entries)))
    first = next(entry for entry in entries if entry != 0)
    ratios = [sp.nsimplify(entry / first) for entry in entries]
    longer = math.lcm(*(int(ratio.q) for ratio in ratios if ratio.is_Rational)) / first
    if sp.simplify(length - 1) != 0:
        words: Words = ("You divided by the length of the direction, ", length, ", but it is taken as it is")
        yield Wrong("normalised direction", words, right / length)
    elif longer != 1:
        words = ("You did not divide by the length of the direction: here it has the length 1",)
        yield from (Wrong("direction not normalised", words, right * longer * sign) for sign in (1, -1))


def _multiples(problem: AnswerProblem, levels: Levels, right: sp.Expr) -> Iterator[Wrong]:
    """Yield multiples of the right coefficient: counted twice, and factorials."""
    if not levels:
        return
    many = sp.factorial(len(levels))
    if problem.taylor and many > 1:
        yield Wrong("factorial", (f"You did not divide by {len(levels)}!",), many * right)
    yield Wrong("double-counted", ("You counted the term twice",), 2 * right)
    if len(levels) > 1 and problem.expansion:
        words: Words = (f"You divided by {len(levels)}!, which belongs to a Taylor polynomial in one direction",)
        yield Wrong("factorial", words, right / many)
        if many > 2:
            words = (f"You counted the term {many} times, once for each order of its levels",)
            yield Wrong("double-counted", words, many * right)


def _squares(problem: AnswerProblem, levels: Levels) -> Iterator[Wrong]:
    """Yield the results of an epsilon whose square is not 0."""
    for level in range(1, problem.count + 1 if problem.expansion else 1):
        epsilon = monomial((level,))
        others = [other for other in levels if other != level]
        more = _repeated(problem, [*others, level, level]) / 2
        read = epsilon if level in levels else sp.S.One
        words: Words = ("You took the square of ", epsilon, " as ", read, ", but it is 0")
        yield Wrong("squared epsilon", words, problem.general(levels) + more)


def _generic(problem: AnswerProblem, levels: Levels) -> Iterator[Wrong]:
    """Yield general mistakes with a whole term, if nothing more specific fits: its sign, place or direction."""
    right = problem.general(levels)
    yield Wrong("wrong sign", ("You have the wrong sign of the whole term",), -right)
    directions = dict.fromkeys(part for level in levels for part in problem.directions[(level,)] if part.is_Symbol)
    for direction in directions:
        if direction not in problem.symbols:
            yield Wrong("direction", ("You left out the direction ", direction), right.subs(direction, 1))
            yield Wrong("direction", ("You wrote the direction ", direction, " twice"), right * direction)
    for symbol in problem.symbols:
        is_factor = right.is_polynomial(symbol)  # an omitted factor is 1
        if is_factor:
            yield Wrong("missing factor", ("You left out the factor ", symbol), right.subs(symbol, 1))
        for place in dict.fromkeys([sp.S.Zero, *directions]):
            words: Words = ("You took it at ", symbol, " = ", place, ", not at ", problem.value(symbol))
            yield Wrong("wrong place", words, right.subs(symbol, place))
    for before, tangents in () if isinstance(problem, ImplicitProblem) else _before(problem, levels):
        if sum(before.count(symbol) for symbol in tangents) > 1:
            yield from _derivations(before, tangents, [variable])
    if len(levels) == 2:
        for wrong in _derivations(problem.formula, problem.tangents(levels[0]), RULES):
            words = (*wrong.words, " (already in the first derivative)")
            yield Wrong(wrong.kind, words, along(wrong.value, problem.tangents(levels[1])))
