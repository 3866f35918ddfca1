"""Derivatives of every order by a formula in n, and derivatives that do not exist at a point."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import sympy as sp
from mpmath import mp

from codegen.records import dataclass
from symad.classroom.answers.answer_lines import AnswerStep, steps_of
from symad.classroom.answers.answer_page import AnswerLine, CheckedAnswer, Judged
from symad.classroom.answers.answer_problem import AnswerProblem, derivative_problem, of_kind, smooth
from symad.classroom.answers.answer_statements import lines_of
from symad.classroom.answers.asked import Asked
from symad.classroom.answers.mistakes import Mistake
from symad.classroom.equality.equality import Agreement, agreement
from symad.classroom.equality.slopes import side_slopes, slope_at
from symad.classroom.equality.turns import turns
from symad.classroom.formulas.read import read_formula
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
        steps = [
            agreement(self.derivative(n), _at(written, n))
            if not in_x
            else agreement(sp.diff(_at(written, n), self.symbols[0]), _at(written, n + 1))
            for n in _FURTHER
        ]
        decided = [verdict for n, verdict in verdicts.items() if n or verdict.points]  # (n - 1)! has no value at 0
        return Agreement(
            True if all((*decided, *steps)) else None, by="for n = 0 to 8, and by differentiation from n to n + 1"
        )

    def own_mistakes(self, written: sp.Expr) -> list[tuple[str, str]]:
        """Return the mistake that the ratios of the written formula to the derivatives show."""
        if not written.has(ORDER):
            return [("a formula in n", "The order n does not occur in it")]
        for by in (1, -1):
            if all(agreement(self.derivative(n + by), _at(written, n)) for n in range(1, 5)):
                return [
                    ("wrong order", f"This is the derivative of order n {'+' if by > 0 else '-'} 1: shift n by one")
                ]
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
        bad = next((judged for judged in (*sided, *absent) if not judged.right), None)
        if bad is not None:
            kind, words = "one-sided slope", f"The slope on that side is another one: {shown}"
            if bad in absent:
                kind, words = "no derivative", "It does exist: the slopes on both sides are equal"
            return _wrong(problem, (*sided, *absent), bad.step, kind, words)
        others = any("=" in _ABSENT.sub("", _SIDED.sub("", line)) for _, line in lines)
        if others and (absent or sided):
            words = "What is said of the slopes is right; the rest has to be read by a teacher"
            return replace(_wrong(problem, (*sided, *absent), (*sided, *absent)[-1].step, "reasons", words), right=None)
        if absent or (sided and slope is None):
            return CheckedAnswer(problem, (*sided, *absent), True, finished=bool(absent) or is_one_sided)
        if slope is not None:
            return check(mine, problem)
        if is_one_sided or (isinstance(mine, str) and _ENDLESS.search(mine)):
            do = "write 'does not exist'" + (", or f'_+(a) = or f'_-(a) =" if is_one_sided else "")
            raise refusal(f"an answer where {why}", do=do)
        steps = tuple(Judged(step, False, {}, {}, {}) for step in steps_of(mine, problem))
        return _wrong(problem, steps, steps[-1].step, "no derivative", f"It does not exist: {shown}")

    return checked


def _wrong(
    problem: AnswerProblem, steps: tuple[Judged, ...], step: AnswerStep, kind: str, words: str
) -> CheckedAnswer:  # fmt: skip
    return CheckedAnswer(
        problem, steps, False, True, AnswerLine(step.line, step.text), mistakes=(Mistake(kind, (words,)),)
    )


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
