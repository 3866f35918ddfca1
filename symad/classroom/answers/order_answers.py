"""Formulas in n for derivatives of every order, derivatives that do not exist at a point, and Taylor polynomials.

Polynomials may have the remainder of Lagrange, f^(n+1)(ξ)/(n+1)! (x - a)^(n+1), also with a + θ(x - a) for ξ, or an
integral, which is compared with f minus the polynomial by numbers.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from functools import partial
from typing import Any

import sympy as sp
from mpmath import mp

from codegen.records import dataclass
from symad.classroom.answers.answer_lines import AnswerStep, steps_of
from symad.classroom.answers.answer_page import AnswerLine, CheckedAnswer, Judged, remarked
from symad.classroom.answers.answer_problem import AnswerProblem, derivative_problem, expansion_problem, of_kind, smooth
from symad.classroom.answers.answer_statements import lines_of
from symad.classroom.answers.asked import Asked
from symad.classroom.answers.integral_texts import F, WrittenIntegral, of_function, same_integrals, with_integrals
from symad.classroom.answers.mistakes import Mistake
from symad.classroom.equality.equality import Agreement, agreement
from symad.classroom.equality.slopes import side_slopes, slope_at
from symad.classroom.equality.turns import turns
from symad.classroom.expansion.epsilon import Levels
from symad.classroom.formulas.read import read_formula, reading
from symad.errors import ArgumentError
from symad.tracing.calling.user_place import refusal

ORDER = sp.Symbol("n", integer=True, nonnegative=True)
_ORDERS = range(9)  # at which a formula in n is compared
_FURTHER = (8, 12, 17)  # from which to the next one it is differentiated
_FEW = 4  # first orders for which a formula need not hold, if it says so
_SAME = mp.mpf(10) ** -8
_NTH = re.compile(
    r"[A-Za-z]\s*(?:\^\s*\{?\s*\(\s*n\s*\)\s*\}?|⁽ⁿ⁾)\s*(?:\(\s*[\w./-]+\s*\))?|D\s*\^\s*\{?n\}?\s*[A-Za-z]?(?:\(\w\))?"
    r"|\(?(?:\\frac\s*\{\s*d\s*\^\s*\{?n\}?\s*[A-Za-z]?\s*\}\s*\{\s*d\s*\w\s*\^\s*\{?n\}?\s*\}"
    r"|d\^\{?n\}?\s*[A-Za-z]?/d\w\^\{?n\}?)\s*\(?[A-Za-z]?(?:\(\w\))?\)*"
)
_FROM = re.compile(
    r"[,;(]?\s*(?:for|für|pour|\\text\s*\{[^{}]*\})?\s*n\s*(≥|>=|\\geq?(?:slant)?|>)\s*([0-9])\s*\)?\.?\s*$",
    re.MULTILINE,
)
_ABSENT = re.compile(
    r"do(?:es)?\s*(?:not|n.t)\s*exist|\bDNE\b|∄|\\nexists|not\s+(?:be\s+)?(?:differentiable|defined)|no\s+derivative"
    r"|undefined|existiert\s+nicht|nicht\s+(?:differenzierbar|definiert)|n.existe\s+pas|(?:non|pas)\s+dérivable"
    r"|no\s+existe|non\s+esiste|não\s+existe",
    re.IGNORECASE,
)
_SIDED = re.compile(
    r"[a-z]'\s*(?:_?\{?\s*(?P<low>[-−+])\s*\}?\s*\(\s*[-\w./]+\s*\)|\(\s*[-\w./]+?\s*\^?\{?(?P<high>[-−+])\}?\s*\))\s*="
    r"\s*(?P<value>[^=,;]+?)\s*(?=$|[,;]|\b(?:so|and|und|et|hence|also|thus)\b)"
)
_ENDLESS = re.compile(r"∞|\\infty|infinity|unendlich|infini", re.IGNORECASE)
_RATIOS: tuple[tuple[str, str, Callable[[int, Any], Any]], ...] = (
    ("wrong sign", "The sign is wrong for every n", lambda n, first: -1),
    ("wrong sign", "The sign alternates with n, or should", lambda n, first: first / abs(first) * (-1) ** (n - 1)),
    ("factorial", "You left out n!", lambda n, first: 1 / mp.factorial(n)),
    ("factorial", "There is no n! in it", lambda n, first: mp.factorial(n)),
    ("factorial", "The factorial is shifted by one", lambda n, first: n),
    ("factorial", "The factorial is shifted by one", lambda n, first: mp.mpf(1) / n),
    ("chain rule", "Each order brings the inner derivative once more: its power is wrong", lambda n, first: first**n),
    ("constant", "It is a multiple of the right one", lambda n, first: first),
)
PLACES = {name: sp.Symbol(name, real=True) for name in ("xi", "theta", "c", "z", "zeta")}  # between a and x
_BETWEEN = tuple(PLACES.values())
_REMAINDER = re.compile(
    r"\s*(?:\|)?R(?:_?\{?[0-9n₀-₉]\}?)?\s*(?:\(\s*\w\s*\))?\s*=(?P<value>[^=<>≤≥]+)(?:=(?P<more>[^=<>≤≥]+))?"
)
_RANGE = re.compile(
    r"[,;]?\s*(?:with|where|mit|avec|for|für)?\s*(?:some\s+)?(?:-?[\w.]+\s*[<≤]\s*)?(?:ξ|\\xi|θ|\\theta|c|z|ζ)\s*(?:[<≤∈]|\\in|between|zwischen).*$"
)


@dataclass(frozen=True)
class NthProblem(AnswerProblem):
    """The derivative of order n, as a formula in n, for n from `lowest` on."""

    lowest: int = 0

    def general(self, levels: Any) -> sp.Expr:
        """Return a name for the n-th derivative; SymPy has no formula for it."""
        return sp.Symbol(f"{self.name}^(n)") if levels else self.formula

    @property
    def own_names(self) -> dict[str, sp.Symbol]:
        return {"n": ORDER}

    def derivative_named(self, text: str) -> sp.Expr | None:
        return self.general([1]) if _NTH.fullmatch(text.strip(" $")) else None

    def derivative(self, order: int, general: bool = False) -> sp.Expr:
        """Return the derivative of some order, at the point unless it is to be a formula in x."""
        derivative = sp.diff(self.formula, self.symbols[0], order)
        return derivative if general else self.value(derivative)

    def agreement(self, expected: sp.Expr, written: sp.Expr) -> Agreement:
        """Compare a formula in n for n = 0 to 8, then differentiate it from n to n + 1."""
        if expected != self.general([1]):
            return super().agreement(expected, written)
        if written == expected:
            return Agreement(True)  # a left side
        in_x = written.has(self.symbols[0])
        verdicts = {n: agreement(self.derivative(n, in_x), _at(written, n)) for n in _ORDERS if n >= self.lowest}
        failing = [n for n, verdict in verdicts.items() if verdict.equal is False]
        if failing == [0] and not (_at(written, 0).is_finite or _at(written, 0).free_symbols):
            failing = []  # (n - 1)! is for n from 1 on
        if failing and max(failing) < _FEW and not self.lowest:
            do = f"write its condition n ≥ {max(failing) + 1} beside it, or a formula for all n"
            raise refusal(f"a formula that holds for n ≥ {max(failing) + 1} only", do=do)
        if failing:
            witness = verdicts[failing[-1]].witness
            is_shown = witness is not None and witness.at is not None
            shown = replace(witness, at={ORDER: sp.Integer(failing[-1]), **witness.at}) if is_shown else None  # type: ignore
            return Agreement(False, witness=shown)
        pairs = ((_at(written, n), n) for n in _FURTHER)
        further = ((sp.diff(now, *self.symbols), n + 1) if in_x else (self.derivative(n), n) for now, n in pairs)
        steps = [agreement(expected, _at(written, n)) for expected, n in further]
        decided = [verdict for n, verdict in verdicts.items() if n or verdict.points]  # (n - 1)! has no value at 0
        by = "for n = 0 to 8, and by differentiation from n to n + 1"
        return Agreement(True if all((*decided, *steps)) else None, by=by)

    def own_mistakes(self, written: sp.Expr) -> list[tuple[str, str]]:
        """Return the mistake that the ratios of the written formula to the derivatives show."""
        if not written.has(ORDER):
            return [("a formula in n", "The order n does not occur in it")]
        for by, sign in ((1, "+"), (-1, "-")):
            if all(agreement(self.derivative(n + by), _at(written, n)) for n in range(1, 5)):
                return [("wrong order", f"This is the derivative of order n {sign} 1: shift n by one")]
        ratios = [_ratio(_at(written, n), self.derivative(n)) for n in range(1, 6)]

        def follow(law: Callable[[int, Any], Any]) -> bool:
            return all(abs(ratio - law(n, ratios[0])) < _SAME * abs(ratio) for n, ratio in enumerate(ratios, 1))

        laws = _RATIOS if None not in ratios else ()
        return [(kind, words) for kind, words, law in laws if follow(law)][:1]


def _at(written: sp.Expr, n: int) -> sp.Expr:
    return written.subs(ORDER, n)


def _ratio(above: sp.Expr, below: sp.Expr) -> Any:
    """Return a quotient that is the same number at two points, else None."""
    quotient = above / below if below != 0 else sp.nan
    points = (dict.fromkeys(quotient.free_symbols, sp.Rational(*at)) for at in ((7, 10), (13, 9)))
    values = [sp.N(quotient.subs(point), 30) for point in points]
    if not all(value.is_real and value.is_finite and value != 0 for value in values):
        return None
    first, second = (mp.mpf(str(value)) for value in values)
    return first if abs(first - second) < _SAME * abs(first) else None


def nth_check(f: Any, x: Any, asked: Asked, check: Callable[..., CheckedAnswer]) -> Callable[[Any], CheckedAnswer]:
    """Return the check of a formula in n; its condition such as n ≥ 1 says where it has to hold."""
    first = derivative_problem(f, x, 1, asked.digits, asked.reveal)
    if any(symbol.name == "n" for symbol in (*first.formula.free_symbols, *first.symbols)):
        raise refusal("a formula with n and its n-th derivative", do="rename n in the formula")

    def checked(mine: Any) -> CheckedAnswer:
        lowest = 0
        if isinstance(mine, str) and (condition := _FROM.search(mine)) is not None:
            lowest, mine = int(condition[2]) + (condition[1] == ">"), _FROM.sub("", mine)
        if lowest > _FEW:
            raise refusal(f"a formula for n ≥ {lowest}", do=f"give one that begins at {_FEW} or before")
        return check(mine, of_kind(NthProblem, first, lowest=lowest))

    return checked


def existence_check(
    problem: AnswerProblem, check: Callable[..., CheckedAnswer]
) -> Callable[[Any], CheckedAnswer] | None:
    """Return the check of a derivative at a point that may not exist; None without a point that is a number."""
    (x,), place = problem.symbols, problem.value(problem.symbols[0])
    if problem.count != 1 or not problem.at or not place.is_number or problem.formula.free_symbols - {x}:
        return None
    slope, why = slope_at(problem.formula, x, place)
    with contextlib.suppress(ArgumentError):
        problem = smooth(problem)
        if not turns([problem.formula]) and "one side only" not in why:  # it has a derivative by rules
            slope, why = problem.truth[problem.terms[0]], ""
    if "no limit" in why:
        return None
    shown = why if problem.reveal == "always" else "compare the slopes on both sides of the point"
    is_one_sided = "one side only" in why

    def checked(mine: Any) -> CheckedAnswer:
        lines = [(number, line) for number, line in lines_of(mine) if isinstance(line, str) and line.strip()]
        absent = [_said(number, line, slope is None) for number, line in lines if _ABSENT.search(line)]
        sided = [_sided(number, match, problem, place) for number, line in lines for match in _SIDED.finditer(line)]
        said = (*sided, *absent)
        bad = next((judged for judged in said if not judged.right), None)
        if bad is not None:
            kind, words = "one-sided slope", f"The slope on that side is another one: {shown}"
            if bad in absent:
                kind, words = "no derivative", "It does exist: the slopes on both sides are equal"
            return remarked(problem, said, bad.step, kind, words)
        others = any("=" in _ABSENT.sub("", _SIDED.sub("", line)) for _, line in lines)
        if others and said:
            words = "What is said of the slopes is right; the rest has to be read by a teacher"
            return remarked(problem, said, said[-1].step, "reasons", words, right=None)
        if absent or (sided and slope is None):
            return CheckedAnswer(problem, said, True, finished=bool(absent) or is_one_sided)
        if slope is not None:
            return check(mine, problem)
        if is_one_sided or (isinstance(mine, str) and _ENDLESS.search(mine)):
            do = "write 'does not exist'" + (", or f'_+(a) = or f'_-(a) =" if is_one_sided else "")
            raise refusal(f"an answer where {why}", do=do)
        steps = tuple(Judged(step, False, {}, {}, {}) for step in steps_of(mine, problem))
        return remarked(problem, steps, steps[-1].step, "no derivative", f"It does not exist: {shown}")

    return checked


def _said(number: int, text: str, right: bool) -> Judged:
    by = Agreement(right, by="by difference quotients on both sides of the point")
    return Judged(AnswerStep(number, text.strip(), sp.Symbol("absent")), right, {(1,): by}, {}, {})


def _sided(number: int, match: re.Match[str], problem: AnswerProblem, place: sp.Expr) -> Judged:
    """Return the verdict on a one-sided derivative such as f'_+(0) = 1."""
    side = side_slopes(problem.formula, problem.symbols[0], place)[(match["low"] or match["high"]) == "+"]
    steep = side is None or abs(side) > 10**5
    text = _ABSENT.sub("", match["value"]).strip(" .$")
    if not text or _ENDLESS.search(text):
        return _said(number, match[0], steep)
    value = sp.N(read_formula(text), 30)
    if not value.is_real or not value.is_number:
        raise refusal(f"{text!r} as a slope", do="write a number")
    near = side is not None and not steep and abs(mp.mpf(str(value)) - side) < _SAME * (1 + abs(side))
    return _said(number, match[0], bool(near))


@dataclass(frozen=True)
class TaylorProblem(AnswerProblem):
    """A Taylor polynomial. Terms with ξ or an integral are the remainder, and no part of the polynomial."""

    integrals: Mapping[str, WrittenIntegral] = field(default_factory=dict)  # by the words in their places in the text

    @property
    def own_names(self) -> dict[str, sp.Symbol]:
        return {**PLACES, "ξ": PLACES["xi"], "θ": PLACES["theta"], **{name: sp.Symbol(name) for name in self.integrals}}

    def parts(self, expression: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
        """Return the polynomial, and the terms with a symbol that occurs in a remainder only."""
        polynomial, rest = expression.as_independent(*_BETWEEN, *map(sp.Symbol, self.integrals), as_Add=True)
        return polynomial, rest

    def coefficients(self, expression: sp.Expr) -> dict[Levels, sp.Expr]:
        return super().coefficients(self.parts(expression)[0])

    def slope(self, order: int, at: sp.Expr) -> sp.Expr:
        """Return the derivative of f of some order at a place."""
        return sp.diff(self.formula, self.symbols[0], order).subs(self.symbols[0], at)

    def remainders(self, place: sp.Symbol, step: sp.Expr) -> Iterator[tuple[str, sp.Expr]]:
        """Yield the remainder at a place, then wrong ones with what is wrong; step is x - a."""
        order, a = self.count + 1, self.value(self.symbols[0])
        between = a + place * step if place == PLACES["theta"] else place

        def term(k: int, at: sp.Expr, below: int, power: int) -> sp.Expr:
            return self.slope(k, at) / sp.factorial(below) * step**power

        yield "", term(order, between, order, order)
        if self.slope(order, a) == 0:  # the polynomial is that of the next order too
            yield "", term(order + 1, between, order + 1, order + 1)
        yield f"You did not divide by {order}!", term(order, between, 0, order)
        yield f"You divided by {order - 1}!, and not by {order}!", term(order, between, order - 1, order)
        yield _LOWER, term(order - 1, between, order - 1, order - 1)
        yield "You took the derivative of one order too few", term(order - 1, between, order, order)
        yield _POWER, term(order, between, order, order - 1)

    def integral_remainders(self, step: sp.Expr) -> Iterator[tuple[str, sp.Expr]]:
        """Yield the remainder as f minus the polynomial, then wrong integrals with what is wrong."""
        n, t, x, a = self.count, sp.Dummy("t", real=True), self.symbols[0], self.value(self.symbols[0])
        plain = step + a
        terms = (self.slope(k, a) / sp.factorial(k) * step**k for k in range(n + 1))
        rest = self.formula.subs(x, plain) - sp.Add(*terms)

        def integral(k: int, power: int) -> sp.Expr:
            return sp.Integral(self.slope(k, t) * (plain - t) ** power, (t, a, plain)) / sp.factorial(n)

        yield "", rest
        yield f"The sign is wrong: it is the integral from {a} to {plain}, with the power of {plain} - t", -rest
        yield f"You did not divide by {n}!", sp.factorial(n) * rest
        yield f"You divided by {n + 1}!, and not by {n}!: this belongs to the remainder with ξ", rest / (n + 1)
        yield _LOWER, integral(n, n)
        yield f"The power of {plain} - t is {n}, that of the polynomial", integral(n + 1, n + 1)
        yield f"The power of {plain} - t is {n}, that of the polynomial", integral(n + 1, n - 1)
        yield f"The power is that of {plain} - t, and not of {step}", integral(n + 1, 0) * step**n


_LOWER = "You took the derivative of the order of the polynomial: the remainder has the next one"
_POWER = "The power of x - a is that of the polynomial, and not the next one"


def taylor_check(f: Any, x: Any, asked: Asked, check: Callable[..., CheckedAnswer]) -> Callable[[Any], CheckedAnswer]:
    """Return the check of a Taylor polynomial about the point in x, with or without its remainder."""
    if not isinstance(x, Mapping) or len(x) != 1:
        raise refusal("a Taylor polynomial without a point", do='give one, as {"x": 0}')
    without = of_kind(TaylorProblem, expansion_problem(f, x, [1], asked.order, None, asked.digits, asked.reveal))
    return partial(_checked_taylor, without=without, check=check)


Remainder = tuple[int, str, sp.Expr]  # its line, its text, and what was read


def _checked_taylor(mine: Any, without: TaylorProblem, check: Callable[..., CheckedAnswer]) -> CheckedAnswer:
    """Return an answer to a Taylor polynomial, checked: the polynomial first, then each remainder."""
    mine, taylor, remainders = _apart(mine, without) if isinstance(mine, str) else (mine, without, [])
    answer = check(mine, taylor)
    answer = replace(answer, steps=tuple(_as_written(judged, taylor) for judged in answer.steps))
    if not answer.right:
        return answer
    (symbol,), order = taylor.symbols, taylor.count
    x = sp.Symbol(symbol.name, real=True)
    step = x - taylor.value(symbol)
    along = {epsilon: sp.S.Zero if k else step for k, epsilon in enumerate(taylor.epsilons)}
    for judged in answer.steps:
        whole, rest = (part.subs(along) for part in taylor.parts(judged.step.expression))
        remainders += [(judged.step.line, judged.step.text, rest)] if rest != 0 else []
    if whole.is_polynomial(x) and sp.degree(whole, x) > order:
        words = f"The polynomial of degree {order} has no term of a higher degree"
        return remarked(taylor, answer.steps, answer.steps[-1].step, "degree", words)
    for number, text, written in remainders:
        if (what := _wrong_remainder(taylor, written, step)) is not None:
            mistakes = (Mistake("remainder", (what,)),) if what else ()
            return replace(answer, right=False, line=AnswerLine(number, text), mistakes=mistakes)
    return replace(answer, finished=bool(whole.is_polynomial(x)))


def _apart(mine: str, without: TaylorProblem) -> tuple[str, TaylorProblem, list[Remainder]]:
    """Return a text without its lines R = ..., its problem, with the integrals that it has, and these remainders."""
    (symbol,), remainders = without.symbols, list[Remainder]()
    x, function = {symbol.name: sp.Symbol(symbol.name, real=True)}, sp.Lambda(symbol, without.formula)
    mine, integrals = with_integrals(mine, x, function)
    taylor = replace(without, integrals=integrals)
    lines = [_RANGE.sub("", line) for line in mine.splitlines()]
    for number, line in enumerate(lines, 1):
        for match in _REMAINDER.finditer(line) if "R" in line else ():
            for text in filter(None, (match["value"], match["more"])):
                read = reading(text.strip(" .;,$"), {**taylor.own_names, **x, **F}).expression
                remainders.append((number, match[0], of_function(read, function)))
    mine = "\n".join(re.sub(r"[,;\s]*$", "", _REMAINDER.sub("", line)) for line in lines)
    if remainders and not mine.strip():
        raise refusal("a remainder without its polynomial", do="write the polynomial in a line before it")
    return mine, taylor, remainders


def _as_written(judged: Judged, problem: TaylorProblem) -> Judged:
    """Return a step with its integrals as they were written."""
    text = judged.step.text
    for name, integral in problem.integrals.items():
        text = re.sub(rf"\*?\({name}\)", lambda _, written=integral.text: written, text)  # type: ignore[misc]
    return replace(judged, step=replace(judged.step, text=text))


def _wrong_remainder(problem: TaylorProblem, written: sp.Expr, step: sp.Expr) -> str | None:
    """Return what is wrong with a remainder, "" if no usual mistake leads there; None if it is right."""
    integrals = {sp.Symbol(name): integral.value for name, integral in problem.integrals.items()}
    if written.has(*integrals):
        whole, a = written.xreplace(integrals), problem.value(problem.symbols[0])
        others = problem.integral_remainders(step)
        kinds = (words for words, other in others if same_integrals(other, whole, step + a, a))
        return next((words or None for words in kinds), "")
    places = [place for place in _BETWEEN if written.has(place)]
    if len(places) > 1:
        raise refusal("two places in one remainder", do="write one ξ between the point and x")
    for words, expression in problem.remainders(places[0] if places else PLACES["xi"], step):
        if agreement(expression, written):
            return words or None
    at_point = next(problem.remainders(PLACES["xi"], step))[1].subs(PLACES["xi"], problem.value(problem.symbols[0]))
    return "Its derivative is taken at the point, and not at a ξ between" if agreement(at_point, written) else ""
