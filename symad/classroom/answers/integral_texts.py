"""Integrals in a pupil's text: ∫_0^x (x - t)²/2 e^t dt, \\int, int(e^t, t, 0, x), "integral from 0 to x of e^t dt"."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

import sympy as sp
from sympy.core.evalf import PrecisionExhausted

from codegen.records import dataclass
from symad.classroom.formulas.formula_names import Name
from symad.classroom.formulas.read import read_formula
from symad.errors import LimitError
from symad.limits import time_limit
from symad.tracing.calling.user_place import refusal

_LIMIT = r"(?:\{(?:[^{}]|\{[^{}]*\})*\}|\([^()]*\)|[-−]?(?:\d+(?:[./]\d+)?|\\pi|[A-Za-zπ]))"
_END = r"([^][(),]+?)"
_BOUNDS = "|".join((
    rf"_\s*({_LIMIT})\s*\^\s*({_LIMIT})", rf"(\^)\s*({_LIMIT})\s*_\s*({_LIMIT})",
    r"([₀-₉₋₊ₐₓ]+)([⁰⁴-⁹⁻⁺ˣʰ¹²³]+)", r"(?:from|von|de)\s+(\S+)\s+(?:to|bis|à)\s+(\S+)(?:\s+(?:of|von))?",
    rf"[\[(]\s*{_END}\s*(?:,|to|\.\.)\s*{_END}\s*[\])]",
))  # fmt: skip
_SIGN = r"(?:∫|\\int(?![A-Za-z])|\b[Ii]nt(?:egral|egrate)?(?![A-Za-z]))(?:\\limits)?\s*"
_SPACE, _D = r"(?:\\[,;:! ]|[\s*·])*", r"(?:\\(?:mathrm|text|operatorname|rm)\s*\{\s*d\s*\}|(?<!\\)d)"
_TYPED = re.compile(rf"{_SIGN}(?:{_BOUNDS})([^=\n]+?){_SPACE}{_D}\s*([a-zτ])(?![A-Za-z])")
_CALLED = re.compile(rf"{_SIGN}\(([^=\n]+),\s*\(?\s*([a-zτ])\s*[,=]\s*{_END}\s*(?:,|\.\.)\s*{_END}\s*\)?\s*\)")
F = {"f": sp.Function("f")}
_DIGITS = 15  # in which two integrals are compared
_STEPS = ((1, 7), (-1, 5), (2, 5), (1, 3), (-1, 29))  # from the point
_FEWEST = 2  # points at which both have values
_SECONDS = 1.5


@dataclass(frozen=True)
class WrittenIntegral:
    """An integral, and the text that it was read from."""

    text: str
    value: sp.Integral


def with_integrals(text: str, names: Mapping[str, Name], function: sp.Lambda) -> tuple[str, dict[str, WrittenIntegral]]:
    """Return a text with words in place of its integrals, and the integrals by these words.

    >>> x = sp.Symbol("x", real=True)
    >>> text, integrals = with_integrals("R = 1/2 ∫_0^x (x - t)^2 f(t) dt", {"x": x}, sp.Lambda(x, x**2))
    >>> text, integrals["integral_1"].value
    ('R = 1/2 *(integral_1)', Integral(_t**2*(-_t + x)**2, (_t, 0, x)))
    """
    integrals: dict[str, WrittenIntegral] = {}

    def word(match: re.Match[str]) -> str:
        parts = [part for part in match.groups() if part is not None]
        if match.re is _CALLED:
            what, by, low, high = parts
        elif parts[0] == "^":
            _, high, low, what, by = parts
        else:
            low, high, what, by = parts
        variable, name = sp.Dummy(by, real=True), f"integral_{len(integrals) + 1}"
        ends = [read_formula(unicodedata.normalize("NFKC", end).strip("{} "), names) for end in (low, high)]
        integrand = of_function(read_formula(what, {**names, by: variable, **F}), function)
        integrals[name] = WrittenIntegral(match[0], sp.Integral(integrand, (variable, *ends)))
        is_factor = re.search(r"[^\W_]\s*$|[])}!]\s*$", match.string[: match.start()]) is not None
        return f"{'*' * is_factor}({name})"

    return _TYPED.sub(word, _CALLED.sub(word, text)), integrals


def of_function(expression: sp.Expr, function: sp.Lambda) -> sp.Expr:
    """Return an expression in which f and its derivatives are those of a formula."""
    return expression.subs(F["f"], function).doit()


def same_integrals(left: sp.Expr, right: sp.Expr, symbol: sp.Symbol, about: sp.Expr) -> bool:
    """Return whether two expressions with integrals have equal values near a point; ArgumentError if there are none.

    >>> x, t = sp.symbols("x t", real=True)
    >>> same_integrals(sp.exp(x) - 1 - x, sp.Integral((x - t) * sp.exp(t), (t, 0, x)), x, sp.S.Zero)
    True
    """
    compared = 0
    for step in _STEPS:
        values = [_value(side, symbol, about + sp.Rational(*step)) for side in (left, right)]
        if all(value.is_Float and value.is_finite for value in values):
            compared += 1
            if abs(values[0] - values[1]) > sp.Float(10) ** -_DIGITS * abs(values[0]):
                return False
    if compared < _FEWEST:
        raise refusal("an integral without values near the point", do="check its limits and the letter after d")
    return True


@lru_cache(maxsize=256)
def _value(side: sp.Expr, symbol: sp.Symbol, at: sp.Expr) -> sp.Expr:
    precise = {"maxn": 2 * _DIGITS + 10, "strict": True} if side.has(sp.Integral) else {}  # others try for seconds
    try:
        with time_limit(_SECONDS, "an integral"):
            return side.subs(symbol, at).evalf(_DIGITS + 5, **precise)
    except (LimitError, PrecisionExhausted) as error:
        do = "check its limits, or write the remainder with a ξ"
        raise refusal(f"an integral without a value of {_DIGITS} digits", why="it may diverge", do=do) from error
