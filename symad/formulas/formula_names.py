"""What the names in a formula stand for: the table of functions and constants, and the names that are declared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import sympy as sp
from sympy.core.function import AppliedUndef, UndefinedFunction

from codegen import heads
from symad.errors import ArgumentError
from symad.formulas.tokens import LOWERED

Name: TypeAlias = "sp.Expr | UndefinedFunction"
Names: TypeAlias = "Mapping[str, Any] | Iterable[Any] | str"

_EXPONENT = 690.0  # exp of it is a number that floats hold
_FACTORIAL = 170.0
_LONGEST_WORD = 40  # letters of a word that is taken apart


@dataclass(frozen=True)
class Function:
    """A function of the table: its head, how many arguments it takes, the largest constant it is given."""

    head: Callable[..., Any]
    fewest: int = 1
    most: int = 1
    largest: float = 1e300


def _logarithm(number: sp.Expr, *base: sp.Expr) -> sp.Expr:
    """Return a logarithm; SymPy gives 0 for one of base 0."""
    if any(part.is_zero for part in base):
        raise ValueError
    return sp.log(number, *base)


def _table() -> dict[str, Function]:
    plain = {
        "sin": sp.sin, "cos": sp.cos, "tan": sp.tan, "cot": sp.cot, "sec": sp.sec, "csc": sp.csc, "tanh": sp.tanh,
        "coth": sp.coth, "asin": sp.asin, "acos": sp.acos, "atan": sp.atan, "acot": sp.acot, "asinh": sp.asinh,
        "acosh": sp.acosh, "atanh": sp.atanh, "ln": sp.log, "sqrt": sp.sqrt, "cbrt": heads.cbrt, "abs": sp.Abs,
        "sign": sp.sign, "floor": sp.floor, "ceiling": sp.ceiling, "erf": sp.erf, "erfc": sp.erfc, "sinc": sp.sinc,
        "log1p": heads.log1p, "log2": heads.log2, "log10": heads.log10, "expit": heads.expit,
        "softplus": heads.softplus, "LambertW": sp.LambertW, "Heaviside": sp.Heaviside,
    }  # fmt: skip
    table = {name: Function(head) for name, head in plain.items()}
    steep = {"exp": sp.exp, "sinh": sp.sinh, "cosh": sp.cosh, "expm1": heads.expm1, "exp2": heads.exp2}
    table |= {name: Function(head, largest=_EXPONENT) for name, head in steep.items()}
    steep = {"gamma": sp.gamma, "loggamma": sp.loggamma, "factorial": sp.factorial, "digamma": sp.digamma}
    table |= {name: Function(head, largest=_FACTORIAL) for name, head in steep.items()}
    table |= {
        "log": Function(_logarithm, 1, 2),
        "atan2": Function(sp.atan2, 2, 2),
        "hypot": Function(heads.hypot, 2, 2),
        "polygamma": Function(sp.polygamma, 2, 2, 20.0),
        "min": Function(sp.Min, 1, 8),
        "max": Function(sp.Max, 1, 8),
    }
    others = {
        "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arccot": "acot", "arcsinh": "asinh", "arsinh": "asinh",
        "arccosh": "acosh", "arcosh": "acosh", "arctanh": "atanh", "artanh": "atanh", "arctan2": "atan2",
        "Abs": "abs", "Min": "min", "Max": "max", "ceil": "ceiling",
    }  # fmt: skip
    return table | {name: table[same] for name, same in others.items()}


FUNCTIONS: dict[str, Function] = _table()
CONSTANTS: dict[str, sp.Expr] = {"pi": sp.pi, "π": sp.pi, "E": sp.E, "e": sp.E}
NO_SYMBOLS = frozenset({"I", "oo", "zoo", "nan", "inf", "NaN", "Infinity"})  # which SymPy or NumPy gives a meaning

_GREEK = [
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi",
    "omicron", "pi", "rho", "sigma_final", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
]  # fmt: skip
_LETTERS = {chr(0x3B1 + k): name for k, name in enumerate(_GREEK)} | {
    chr(0x391 + k): name.capitalize() for k, name in enumerate(_GREEK) if name != "sigma_final"
}
_LETTERS |= {"ϵ": "epsilon", "ϑ": "theta", "ϕ": "phi", "ς": "sigma"}


def plain(name: str) -> str:
    """Return one spelling of a name: Greek letters in words, a lowered index behind an underscore.

    >>> plain("ε₁"), plain("eps1"), plain("x₂"), plain("x_2"), plain("x"), plain("λ")
    ('epsilon_1', 'epsilon_1', 'x_2', 'x_2', 'x', 'lambda')
    """
    name = "".join(_LETTERS.get(letter, letter) for letter in name).translate(LOWERED)
    name = re.sub(r"^(.*[^0-9_])_?([0-9]+)$", r"\1_\2", name)
    return re.sub(r"^(?:eps|varepsilon)(_[0-9]+)?$", r"epsilon\1", name).replace("lamda", "lambda")


def is_greek(word: str) -> bool:
    """Return whether a word is the name of a Greek letter.

    >>> is_greek("phi"), is_greek("phx")
    (True, False)
    """
    return word.lower() in _GREEK


def symbol_of(word: str) -> sp.Symbol:
    """Return the symbol of a name that stands for nothing else: as typed, Greek letters in words.

    >>> symbol_of("x1"), symbol_of("ω₀")
    (x1, omega_0)
    """
    return sp.Symbol(word if word.isascii() else plain(word))


def declared(names: Names) -> dict[str, Name]:
    """Return what the declared names stand for: symbols, undefined functions ("f(x)" declares f), or given values."""
    if isinstance(names, str):
        names = [name for name in re.split(r"[\s,]+", names) if name]
    entries = names.items() if isinstance(names, Mapping) else [(None, value) for value in names]
    return dict(_declaration(name, value) for name, value in entries)


def _declaration(name: str | None, value: Any) -> tuple[str, Name]:
    if isinstance(value, str):
        word, call, _ = value.partition("(")
        return (name or word), _function(word) if call else symbol_of(word)
    if isinstance(value, AppliedUndef):
        value = value.func
    if isinstance(value, UndefinedFunction):
        return (name or value.__name__), value
    if name is None and not isinstance(value, sp.Symbol):
        raise ArgumentError(f"{value!r} as a name", do="give symbols, undefined functions, or a dict {name: value}")
    try:
        made = sp.sympify(value, strict=True)
    except sp.SympifyError:
        made = None
    if not isinstance(made, sp.Expr):
        raise ArgumentError(f"{value!r} as what {name!r} stands for", do="give a number or an expression")
    return (name or value.name), made


def _function(word: str) -> UndefinedFunction:
    try:
        return sp.Function(word)
    except ValueError as error:  # the name becomes that of a class
        raise ArgumentError(
            f"{word!r} as the name of a function", why=str(error), do="use letters and digits"
        ) from error


def known(names: Mapping[str, Name], word: str) -> Name | None:
    """Return what a word stands for among the declared names, whichever way its index or epsilon is written.

    >>> known(declared("eps_1, x"), "ε₁")
    eps_1
    """
    if word in names:
        return names[word]
    spelled = plain(word)
    matching = [value for name, value in names.items() if plain(name) == spelled]
    return matching[0] if len(matching) == 1 else None


def split(names: Mapping[str, Name], word: str) -> list[Name]:
    """Return the declared symbols that a word is the product of, where there is exactly one way; else none."""
    if len(word) > _LONGEST_WORD:
        return []
    ways: list[list[list[str]]] = [[[]], *([] for _ in word)]
    for end in range(1, len(word) + 1):
        for start in range(end):
            piece = word[start:end]
            if ways[start] and piece[0].isalpha() and isinstance(known(names, piece), sp.Expr):
                ways[end] += [[*way, piece] for way in ways[start]][: 2 - len(ways[end])]
    (only,) = ways[-1] if len(ways[-1]) == 1 else ([],)
    return [value for piece in only if (value := known(names, piece)) is not None]
