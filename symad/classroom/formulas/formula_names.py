"""The meaning of names and signs in formulas: functions, constants, declared names, bounded arithmetic."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import sympy as sp
from sympy.core.function import AppliedUndef, UndefinedFunction

from codegen import heads
from codegen.records import dataclass
from symad.classroom.formulas.tokens import LOWERED
from symad.errors import ArgumentError

Name: TypeAlias = "sp.Expr | UndefinedFunction"
Names: TypeAlias = "Mapping[str, Any] | Iterable[Any] | str"

_EXPONENT = 690.0  # its exponential is still a float
_FACTORIAL = 170.0


@dataclass(frozen=True)
class Function:
    """A function of the table: its head, its number of arguments, and its largest constant argument."""

    head: Callable[..., Any]
    fewest: int = 1
    most: int = 1
    largest: float = 1e300


def _logarithm(number: sp.Expr, *base: sp.Expr) -> sp.Expr:
    """Return a logarithm; SymPy gives 0 for one of base 0."""
    if any(part.is_zero for part in base):
        raise ValueError
    return sp.log(number, *base)


CIRCULAR = "sin cos tan cot sec csc sinh cosh tanh coth sech csch"
INVERSES = "asin acos atan acot asec acsc asinh acosh atanh acoth asech acsch"
SHORT = {"sh": "sinh", "ch": "cosh", "th": "tanh", "cth": "coth"}  # only as separate words
_NO_CAPITALS = frozenset({"gamma", "digamma", "loggamma", "polygamma", "sinc", "lambertw", "heaviside", *SHORT})


def _table() -> dict[str, Function]:
    of_sympy = f"{CIRCULAR} {INVERSES} sqrt sign floor ceiling erf erfc sinc LambertW Heaviside exp gamma".split()
    of_sympy += ["loggamma", "factorial", "digamma"]
    heads_of = {name: getattr(sp, name) for name in of_sympy} | {"ln": sp.log, "abs": sp.Abs}
    of_kernels = ("cbrt", "log1p", "log2", "log10", "expit", "softplus", "expm1", "exp2")
    heads_of |= {name: getattr(heads, name) for name in of_kernels}
    steep = dict.fromkeys(("exp", "sinh", "cosh", "expm1", "exp2"), _EXPONENT)
    steep |= dict.fromkeys(("gamma", "loggamma", "factorial", "digamma"), _FACTORIAL)
    table = {name: Function(head, largest=steep.get(name, 1e300)) for name, head in heads_of.items()}
    table |= {
        "log": Function(_logarithm, 1, 2), "atan2": Function(sp.atan2, 2, 2), "hypot": Function(heads.hypot, 2, 2),
        "polygamma": Function(sp.polygamma, 2, 2, 20.0), "min": Function(sp.Min, 1, 8), "max": Function(sp.Max, 1, 8),
    }  # fmt: skip
    others = {
        "arctan2": "atan2", "arccosec": "acsc", "cosech": "csch", "ceil": "ceiling", "signum": "sign", "lb": "log2",
        "sgn": "sign", "tg": "tan", "ctg": "cot", "cotg": "cot", "arctg": "atan", "arcctg": "acot", "cosec": "csc",
    }  # fmt: skip
    others |= {f"arc{name[1:]}": name for name in INVERSES.split()}
    others |= {f"ar{name[1:]}": name for name in INVERSES.split() if name.endswith("h")}
    others |= SHORT | {f"{ar}{short}": f"a{name}" for short, name in SHORT.items() for ar in ("ar", "arg")}
    table |= {name: table[same] for name, same in others.items()}
    capitals = [name for name in table if len(name) > 1 and name.isalpha() and name not in _NO_CAPITALS]
    return table | {spelled: table[name] for name in capitals for spelled in (name.capitalize(), name.upper())}


FUNCTIONS: dict[str, Function] = _table()
CONSTANTS: dict[str, sp.Expr] = {"pi": sp.pi, "π": sp.pi, "E": sp.E, "e": sp.E}
# words of books without a reading, and their replacements
UNREAD = {
    "det": "write the determinant out", "tr": "write the trace out", "trace": "write the trace out",
    "rank": "give a formula of numbers", "diag": "give a formula of numbers", "grad": "write the derivatives",
    "div": "write the derivatives", "rot": "write the derivatives", "curl": "write the derivatives",
    "int": "give the formula without an integral", "sum": "write out all terms", "prod": "write out all factors",
    "lim": "give the formula without a limit", "Re": "give a real formula", "Im": "give a real formula",
    "arg": "give a real formula", "mod": "write the remainder out", "cis": "give a real formula",
}  # fmt: skip
NO_SYMBOLS = frozenset({"I", "oo", "zoo", "nan", "inf", "NaN", "Infinity"})  # names with a meaning in SymPy or NumPy
FRACTION = r"[0-9]{1,9}(?:/[1-9][0-9]{0,8}|\.[0-9]{1,9})"  # a base of a logarithm such as 1/2 or 0.5

_GREEK = [
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi",
    "omicron", "pi", "rho", "sigma_final", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
]  # fmt: skip
_LETTERS = {chr(0x3B1 + k): name for k, name in enumerate(_GREEK)} | {
    chr(0x391 + k): name.capitalize() for k, name in enumerate(_GREEK) if name != "sigma_final"
}
LETTER_OF = {name: letter for letter, name in _LETTERS.items()}
_LETTERS |= {"ϵ": "epsilon", "ϑ": "theta", "ϕ": "phi", "ς": "sigma"}


def plain(name: str) -> str:
    """Return one spelling of a name: Greek letters as words, an index behind an underscore.

    >>> plain("ε₁"), plain("eps1"), plain("x₂"), plain("x_2"), plain("x"), plain("λ")
    ('epsilon_1', 'epsilon_1', 'x_2', 'x_2', 'x', 'lambda')
    """
    name = "".join(_LETTERS.get(letter, letter) for letter in name).translate(LOWERED)
    name = re.sub(r"^(.*[^0-9_])_?([0-9]+)$", r"\1_\2", name)
    return re.sub(r"^(?:eps|varepsilon)(_[0-9]+)?$", r"epsilon\1", name).replace("lamda", "lambda")


def logarithm_to_a_base(word: str) -> str:
    """Return the base of a logarithm such as log_10 or log₂, "" for any other word.

    >>> logarithm_to_a_base("log₂"), logarithm_to_a_base("log_a"), logarithm_to_a_base("logx")
    ('2', 'a', '')
    """
    word = re.sub("[₀-₉]+", lambda low: f"_{low[0].translate(LOWERED)}", word)
    match = re.fullmatch(rf"log_([0-9]+|[A-Za-z]|{FRACTION})", word)
    return match[1] if match else ""


def to_a_base(base: sp.Expr) -> Function:
    """Return the logarithm to a base."""
    if base == 2 or base == 10:
        return FUNCTIONS[f"log{base}"]
    return Function(lambda number: _logarithm(number, base))


def is_greek(word: str) -> bool:
    """Whether a word is the name of a Greek letter.

    >>> is_greek("phi"), is_greek("phx")
    (True, False)
    """
    return word.lower() in _GREEK


def symbol_of(word: str) -> sp.Symbol:
    """Return the symbol of a free name: as typed, with Greek letters as words.

    >>> symbol_of("x1"), symbol_of("ω₀")
    (x1, omega_0)
    """
    return sp.Symbol(word if word.isascii() else plain(word))


def symbols_named(names: Iterable[str], free: Sequence[sp.Symbol]) -> list[sp.Symbol]:
    """Return the symbol of each name in any spelling; new real symbols for names that do not occur.

    ArgumentError for a name that does not occur, if the formula has a symbol without a name: the derivative would be 0,
    and the name is probably misspelled.

    >>> symbols_named(["θ"], [sp.Symbol("theta")])
    [theta]
    """
    result = []
    for name in names:
        spelled = plain(name)
        same = [symbol for symbol in free if symbol.name == name] or [s for s in free if plain(s.name) == spelled]
        if len(same) > 1:
            why = "the expression has several symbols of that name"
            raise ArgumentError(f"the variable {name!r}", why=why, do="give the symbol itself")
        result.append(same[0] if same else sp.Symbol(symbol_of(name).name, real=True))
    others = [symbol for symbol in free if symbol not in result]
    for name, symbol in zip(names, result, strict=True):
        if others and symbol not in free:
            do = f"name one of {', '.join(sorted(map(str, free)))}"
            raise ArgumentError(f"the variable {name!r}", why="it does not occur in the formula", do=do)
    return result


def declared(names: Names) -> dict[str, Name]:
    """Return the meanings of declared names: symbols, undefined functions ("f(x)" declares f), or given values."""
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
        expression = sp.sympify(value, strict=True)
    except sp.SympifyError:
        expression = None
    if not isinstance(expression, sp.Expr):
        raise ArgumentError(f"{value!r} as what {name!r} stands for", do="give a number or an expression")
    return (name or value.name), expression


def _function(word: str) -> UndefinedFunction:
    try:
        return sp.Function(word)
    except ValueError as error:  # the name becomes a class name
        what = f"{word!r} as the name of a function"
        raise ArgumentError(what, why=str(error), do="use letters and digits") from error


def known(names: Mapping[str, Name], word: str) -> Name | None:
    """Return the declared meaning of a word, in any spelling of its index or epsilon.

    >>> known(declared("eps_1, x"), "ε₁")
    eps_1
    """
    if word in names:
        return names[word]
    spelled = plain(word)
    matching = [value for name, value in names.items() if plain(name) == spelled]
    return matching[0] if len(matching) == 1 else None


BIT_LIMIT = 4000  # of the integers in a number: 1200 digits
EXPONENT_LIMIT = 1000
SIZE_LIMIT = 1e300  # of a constant


class Refused(Exception):  # noqa: N818 - never leaves the parser, which adds the column
    """A refused value: its description, and the spelling to use instead."""

    what: str
    do: str

    def __init__(self, what: str, do: str = "give smaller numbers") -> None:
        self.what, self.do = what, do
        super().__init__(what)


@dataclass(frozen=True)
class FormulaValue:
    """A part of a formula: its expression, its factors as written, and the approximate size of a constant."""

    expression: sp.Expr
    size: complex | None = None
    factors: tuple[sp.Expr, ...] = ()
    literal: bool = False  # an integer as typed


def constant(expression: sp.Expr, *, literal: bool = False) -> FormulaValue:
    """Return a constant that is not simplified."""
    return value(lambda: expression, (), literal=literal)


def total(terms: Sequence[FormulaValue]) -> FormulaValue:
    """Return the sum of values."""
    return terms[0] if len(terms) == 1 else value(lambda: sp.Add(*(term.expression for term in terms)), terms)


def product(factors: Sequence[FormulaValue]) -> FormulaValue:
    """Return the product of values. A constant in front of a sum is not multiplied out."""
    if len(factors) == 1:
        return factors[0]
    flat = [part for factor in factors for part in (factor.factors or (factor.expression,))]
    return value(lambda: sp.Mul(*flat), factors, tuple(flat))


def reciprocal(of: FormulaValue) -> FormulaValue:
    """Return 1 over a value, factor by factor: y/(2*(x + 1)) is not y/(2*x + 2)."""
    if of.expression.is_zero:
        raise Refused("a division by zero", "divide by what is not zero")
    minus = constant(sp.Integer(-1))
    if not of.factors or not of.expression.is_commutative:  # (A B)^-1 is not A^-1 B^-1
        return power(of, minus)
    parts = [power(FormulaValue(factor, _size(factor) if factor.is_number else None), minus) for factor in of.factors]
    return product(parts)


def power(base: FormulaValue, exponent: FormulaValue) -> FormulaValue:
    """Return base**exponent; Refused if numbers would exceed the limits."""
    number = exponent.expression
    if number.is_Number and abs(number) > EXPONENT_LIMIT:
        raise Refused("so large an exponent", f"give an exponent of at most {EXPONENT_LIMIT}")
    if exponent.size is not None:
        constants = [factor for factor in sp.Mul.make_args(base.expression) if factor.is_number]
        atoms = [atom for factor in constants for atom in factor.atoms(sp.Rational)]
        if sum(map(_bits, atoms)) * max(1.0, abs(exponent.size)) > BIT_LIMIT:
            raise Refused("so large a power of a number")
    if base.expression.is_zero and exponent.size is not None and exponent.size.real <= 0:
        raise Refused("a power of zero that is not defined" if exponent.size else "0**0", "give another exponent")
    return value(lambda: sp.Pow(base.expression, number), (base, exponent))


def applied(head: Callable[..., Any], arguments: Sequence[FormulaValue], largest: float) -> FormulaValue:
    """Return head(*arguments); Refused if a constant argument is too large for the head."""
    for argument in arguments:
        if argument.size is not None and abs(argument.size) > largest:
            raise Refused("so large an argument of a function", f"give a number of at most {largest:g}")
    return value(lambda: head(*(argument.expression for argument in arguments)), arguments)


def value(
    build: Callable[[], sp.Expr],
    parts: Sequence[FormulaValue],
    factors: tuple[sp.Expr, ...] = (),
    *,
    literal: bool = False,
) -> FormulaValue:
    """Return a value built from parts; Refused if SymPy fails or it is no finite number within the limits."""
    try:
        expression = build()
        if expression.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
            raise Refused("a value that is not finite", "leave out divisions by zero and infinities")
        size = _size(expression) if all(part.size is not None for part in parts) and expression.is_number else None
    except (ArithmeticError, AttributeError, RecursionError, TypeError, ValueError) as error:
        raise Refused(f"what cannot be computed ({type(error).__name__})", "write it differently") from error
    for number in {expression, *expression.args[:1]}:
        if number.is_Rational and _bits(number) > BIT_LIMIT:
            raise Refused("so long a number")
    return FormulaValue(expression, size, factors, literal)


def _bits(number: sp.Rational) -> int:
    """Return the length of a number in bits, 0 for 1 and -1, which do not grow."""
    return 0 if abs(number) == 1 else max(int(number.p).bit_length(), int(number.q).bit_length())


def _size(expression: sp.Expr) -> complex:
    """Return the approximate size of a constant; Refused beyond the floats."""
    if expression.is_Rational and _bits(expression) > BIT_LIMIT:
        raise Refused("so long a number")
    size = complex(expression.replace(heads.cbrt, lambda u: sp.real_root(u, 3)).evalf(15, maxn=100))
    if not abs(size) <= SIZE_LIMIT:
        raise Refused("so large a number")
    return size
