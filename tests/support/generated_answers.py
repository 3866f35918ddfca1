"""Random questions with right answers, rewritten at random, and wrong ones by forty kinds of mistakes.

A right answer is the derivative in another form (factored, expanded, over one denominator, by identities), another
notation (text, LaTeX, signs) and other names. A wrong one differs from it at a random point, to 30 digits: what is
made by a mistake and happens to be right is left out. No verdict may be wrong in either direction.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from random import Random
from typing import Any
from unittest.mock import patch

import sympy as sp
from mpmath import mp

from codegen.errors import WorkbenchError
from symad.classroom.answers import diagnosis
from symad.classroom.answers.answer_check import check_derivative
from symad.errors import LimitError
from symad.limits import time_limit

SECONDS = 2.0  # for SymPy's rewriting of an answer
_ODD = (sp.I, sp.zoo, sp.nan, sp.re, sp.im, sp.Derivative)
_FAILURES = (
    ArithmeticError,
    AttributeError,
    TypeError,
    ValueError,
    NotImplementedError,
    sp.PolynomialError,
    LimitError,
)

x = sp.Symbol("x")
a, n = sp.symbols("a n")
NAMES = ["x", "t", "θ", "r", "u", "s", "α"]


def _linear(source: Random) -> sp.Expr:
    return source.choice(
        [
            x,
            x,
            x + source.randint(1, 4),
            source.randint(2, 5) * x,
            2 * x - source.randint(1, 3),
            x**2 + 1,
            x**2,
            x / 2,
            a * x,
        ]
    )


def _factor(source: Random) -> sp.Expr:
    inner = _linear(source)
    return source.choice(
        [
            inner ** source.randint(1, 5), 1 / (inner + 1), sp.exp(source.choice([x, -x, 2 * x, x**2])), sp.sin(inner),
            sp.cos(inner), sp.tan(inner), sp.log(inner**2 + 1), sp.sqrt(inner**2 + 1),
            sp.atan(inner), sp.sqrt(x), sp.log(x), 2**x, sp.sinh(x), sp.cosh(2 * x), x**a, sp.asin(x / 3),
            sp.tanh(x), sp.sec(x), x**x, sp.sin(x) ** 2,
            sp.Rational(source.randint(1, 5), source.randint(1, 5)) * x ** source.randint(1, 4), sp.exp(sp.sin(x)),
            sp.Abs(x),
        ]
    )  # fmt: skip


def formula(source: Random) -> sp.Expr:
    """Return a random function of the kinds that schools differentiate."""
    kind = source.random()
    parts = [_factor(source) for _ in range(source.randint(1, 3))]
    if kind < 0.35 or len(parts) == 1:
        return parts[0]
    if kind < 0.6:
        return sp.Add(*(source.choice([1, -1, 2, 3]) * part for part in parts))
    if kind < 0.85:
        return sp.Mul(*parts)
    return parts[0] / parts[1]


REWRITES: list[Callable[[Any], Any]] = [
    lambda part: part, sp.factor, sp.expand, sp.together, lambda part: sp.expand(part, trig=True), sp.factor_terms,
    lambda part: sp.collect(sp.expand(part), x), lambda part: part.rewrite(sp.tan, sp.sin), sp.radsimp, sp.powsimp,
    lambda part: sp.expand_log(part, force=False), lambda part: sp.logcombine(part), lambda part: sp.trigsimp(part),
    lambda part: part.subs(sp.tan(x), sp.sin(x) / sp.cos(x)),
    lambda part: sp.apart(part, x) if part.is_rational_function(x) else part,
    lambda part: sp.Add(part, sp.sin(x) ** 2 + sp.cos(x) ** 2, -1, evaluate=False),
    lambda part: sp.Mul(part, 1 + x**2, 1 / (1 + x**2), evaluate=False),
    lambda part: part.subs(sp.cosh(x), (sp.exp(x) + sp.exp(-x)) / 2),
]  # fmt: skip


def _plain(part: sp.Expr) -> str:
    return sp.sstr(part).replace("log(", "ln(")


def _text(part: sp.Expr, source: Random) -> str:
    """Return an expression in a notation that people write."""
    kind = source.randrange(5)
    text = _plain(part)
    if kind == 0:
        return text
    if kind == 1:
        return sp.latex(part, ln_notation=True)
    text = text.replace("**", "^")
    if kind == 2:
        return re.sub(r"(\d)\*(?=[a-zA-Z(])", r"\1", text)
    raised = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
    text = re.sub(r"\^(\d+)(?![\d./])", lambda found: found[1].translate(raised), text)
    return text.replace("*", "·" if kind == 3 else " ").replace("sqrt", "√") if kind == 3 else text.replace("*", " * ")


def _renamed(text: str, name: str) -> str:
    """Return a text in another name for x."""
    if name == "x":
        return text
    latex = {"θ": "\\theta ", "α": "\\alpha "}.get(name, name) if "\\" in text else name
    return re.sub(r"(?<![a-zA-Z])x(?![a-zA-Z])", lambda _: latex, text)


def _swapped(part: sp.Expr, pairs: dict[Any, Any]) -> sp.Expr:
    return part.replace(lambda node: node.func in pairs, lambda node: pairs[node.func](*node.args))


def _term(part: sp.Expr, source: Random) -> tuple[sp.Expr, sp.Expr]:
    terms = sp.Add.make_args(sp.expand(part))
    chosen = source.choice(terms)
    return chosen, part - chosen


def _by_factors(f: sp.Expr) -> sp.Expr:
    return sp.Mul(*(sp.diff(factor, x) for factor in sp.Mul.make_args(f) if factor.has(x)))


def _without_inner(f: sp.Expr) -> sp.Expr:
    """Return the derivative with the inner derivative of the outermost function left out."""
    if f.is_Mul or f.is_Add or not f.args or f.args[0] == x:
        return sp.diff(f, x) * 2
    slot = sp.Dummy()
    place = 0 if f.args[0].has(x) else 1
    return f.func(*(slot if k == place else part for k, part in enumerate(f.args))).diff(slot).subs(slot, f.args[place])


MISTAKES: dict[str, Callable[[sp.Expr, sp.Expr, Random], sp.Expr]] = {
    "sign of all": lambda f, d, s: -d,
    "sign of a term": lambda f, d, s: d - 2 * _term(d, s)[0],
    "a term dropped": lambda f, d, s: _term(d, s)[1],
    "a term doubled": lambda f, d, s: d + _term(d, s)[0],
    "not differentiated": lambda f, d, s: f,
    "differentiated twice": lambda f, d, s: sp.diff(d, x),
    "integrated": lambda f, d, s: sp.integrate(f, x) if f.is_polynomial(x) else f * x,
    "factor by factor": lambda f, d, s: _by_factors(f),
    "no inner derivative": lambda f, d, s: _without_inner(f),
    "at the inner derivative": lambda f, d, s: f.func(*(sp.diff(p, x) for p in f.args)) if not f.is_Pow else 3 * d,
    "sin and cos": lambda f, d, s: _swapped(d, {sp.sin: sp.cos, sp.cos: sp.sin}),
    "sin by cos": lambda f, d, s: _swapped(d, {sp.sin: sp.cos}),
    "cos by sin": lambda f, d, s: _swapped(d, {sp.cos: sp.sin}),
    "tan by cot": lambda f, d, s: _swapped(d, {sp.tan: sp.cot}),
    "sec by csc": lambda f, d, s: _swapped(d, {sp.sec: sp.csc}),
    "sinh by sin": lambda f, d, s: _swapped(d, {sp.sinh: sp.sin, sp.cosh: sp.cos}),
    "log lost": lambda f, d, s: d.subs(sp.log(2), 1),
    "log base": lambda f, d, s: d.subs(sp.log(2), sp.log(10)),
    "exp as power": lambda f, d, s: d.replace(sp.exp, lambda part: part * sp.exp(part - 1)),
    "exponent + 1": lambda f, d, s: d.replace(lambda p: p.is_Pow and p.base == x and p.exp.is_Integer, lambda p: p * x),
    "exponent - 1": lambda f, d, s: d.replace(lambda p: p.is_Pow and p.base == x and p.exp.is_Integer, lambda p: p / x),
    "a factor 2": lambda f, d, s: 2 * d,
    "a half": lambda f, d, s: d / 2,
    "plus one": lambda f, d, s: d + 1,
    "plus a constant": lambda f, d, s: d + sp.Rational(1, 1000),
    "plus x": lambda f, d, s: d + x / 100,
    "a number changed": lambda f, d, s: d.replace(lambda p: p.is_Integer and p > 1, lambda p: p + 1),
    "abs lost": lambda f, d, s: d.replace(sp.Abs, lambda part: part).replace(sp.sign, lambda part: sp.S.One),
    "abs added": lambda f, d, s: sp.Abs(d),
    "root lost": lambda f, d, s: d.replace(lambda p: p.is_Pow and abs(p.exp) == sp.S.Half, lambda p: p**2),
    "numerator only": lambda f, d, s: sp.fraction(sp.together(d))[0] * 1,
    "upside down": lambda f, d, s: 1 / d if d != 0 else d + 1,
    "times x": lambda f, d, s: d * x,
    "over x": lambda f, d, s: d / x,
    "at 2x": lambda f, d, s: d.subs(x, 2 * x),
    "at -x": lambda f, d, s: d.subs(x, -x),
    "at x + 1": lambda f, d, s: d.subs(x, x + 1),
    "parameter varied": lambda f, d, s: d + sp.diff(f, a) if f.has(a) else d * sp.Rational(99, 100),
    "parameter 1": lambda f, d, s: d.subs(a, 1) if f.has(a) else d * sp.Rational(101, 100),
    "product of the two": lambda f, d, s: f * d,
    "quotient of the two": lambda f, d, s: d / f if f != 0 else d + 1,
    "squared": lambda f, d, s: d**2,
}  # fmt: skip


def _differ(left: sp.Expr, right: sp.Expr, source: Random) -> bool:
    """Return whether two expressions are different at a real point, in 40 digits: then they are not equal."""
    function = sp.lambdify((x, a), [left, right], "mpmath")
    with mp.workdps(60):
        for low, high in ((0.1, 2.0), (0.1, 0.9), (1.1, 3.0), (-2.0, -0.2)) * 2:
            at = mp.mpf(source.uniform(low, high)), mp.mpf(source.uniform(0.5, 2.5))
            try:
                one, other = (mp.mpmathify(value) for value in function(*at))
            except (ArithmeticError, ValueError, TypeError):
                continue
            if mp.im(one) or mp.im(other) or not (mp.isfinite(one) and mp.isfinite(other)):
                continue
            if abs(one - other) > mp.mpf(10) ** -40 * (1 + abs(one) + abs(other)):  # what cancels leaves rounding
                return True
    return False


Case = tuple[str, str, str, bool, str]  # question, answer, variable, whether it is right, how it was made


def _answer(f: sp.Expr, source: Random) -> tuple[sp.Expr, bool, str] | None:
    """Return an answer to a question, whether it is right, and how it was made; None where that does not come off."""
    right = sp.diff(f, x)
    if source.random() < 0.5:
        made = source.choice(REWRITES)(source.choice(REWRITES)(right))
        if made.has(*_ODD) or _differ(made, right, source):
            return None  # SymPy's rewriting holds in a part of the domain only
        return made, True, "rewritten"
    how = source.choice(list(MISTAKES))
    made = MISTAKES[how](f, right, source)
    if source.random() < 0.3:
        made = source.choice(REWRITES[:4])(made)
    return None if made.has(*_ODD) or not _differ(made, right, source) else (made, False, how)


def case(source: Random) -> Case:
    """Return a question with an answer."""
    while True:
        f, name, answer = formula(source), source.choice(NAMES), None
        with contextlib.suppress(*_FAILURES), time_limit(SECONDS, "a question"):
            answer = _answer(f, source)
        if answer is not None:
            texts = (_renamed(_text(part, source), name) for part in (f, answer[0]))
            return next(texts), next(texts), name, answer[1], answer[2]


def judged(found: Case, counted: Counter[str], diagnosed: bool = True) -> str:
    """Judge an answer; AssertionError for a wrong verdict. Without a diagnosis it takes a third of the time."""
    question, answer, name, is_right, how = found
    no_mistakes = contextlib.nullcontext() if diagnosed else patch.object(diagnosis, "mistakes_of", return_value=())
    with no_mistakes, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with time_limit(10 * SECONDS, "an answer"):
                verdict = check_derivative(answer, question, name).right
        except WorkbenchError:
            counted["asked or refused"] += 1
            raise
    said = {True: "right", False: "wrong", None: "undecided"}[verdict]
    counted[said] += 1
    assert verdict is None or verdict is is_right, f"called {said}, made by: {how}"
    return said


def tries(seed: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield answers to judge."""
    source, counted = Random(seed), Counter[str]()
    for number in count():
        found = case(source)
        yield " | ".join(map(str, found)), partial(judged, found, counted, number % 10 == 0)
        if number % 1000 == 999:
            print(f"{number + 1} answers, {dict(counted)}", flush=True)
