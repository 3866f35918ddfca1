"""Notation: replacement characters, the order of terms and factors, digits, named derivatives."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cmp_to_key
from typing import Any

import mpmath.libmp as libmp
import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.printing.precedence import PRECEDENCE

from codegen.records import dataclass
from codegen.visible import visible

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\textdollar{}", "&": r"\&", "#": r"\#", "%": r"\%",
    "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "\n": " ", "\t": " ", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}", "·": r"$\cdot$",
    "×": r"$\times$", "−": "$-$", "±": r"$\pm$", "≤": r"$\leq$", "≥": r"$\geq$", "≠": r"$\neq$", "≈": r"$\approx$",
    "→": r"$\to$", "←": r"$\leftarrow$", "↦": r"$\mapsto$", "⇒": r"$\Rightarrow$", "∂": r"$\partial$",
    "∇": r"$\nabla$", "∞": r"$\infty$", "√": r"$\surd$", "∑": r"$\sum$", "∏": r"$\prod$", "∫": r"$\int$",
    "∈": r"$\in$", "⟨": r"$\langle$", "⟩": r"$\rangle$", "′": "$'$", "″": "$''$", "…": r"\dots{}", "–": "--",
    "—": "---", "✓": r"$\surd$", "✗": r"$\times$", "°": r"\textdegree{}", "µ": r"$\mu$", "•": r"\textbullet{}",
    "½": r"$\frac12$", "‘": "`", "’": "'", "“": "``", "”": "''", "\N{NO-BREAK SPACE}": "~", "\N{THIN SPACE}": r"\,",
    "∘": r"$\circ$", "⊗": r"$\otimes$", "ᵀ": r"$^{\mathsf T}$", "ϵ": r"$\epsilon$", "ε": r"$\varepsilon$",
    "φ": r"$\varphi$", "ϕ": r"$\phi$", "§": r"\S{}", "∼": r"$\sim$", "≡": r"$\equiv$", "‖": r"$\|$", "∥": r"$\|$",
    "÷": r"$\div$", "∧": r"$\wedge$", "∨": r"$\vee$", "¬": r"$\neg$", "□": r"$\Box$", "⁻": "$^{-}$", "₋": "$_{-}$",
}  # fmt: skip
_PLAIN = {
    "─": "-", "━": "-", "╌": "-", "═": "=", "╶": "-", "╴": "-", "╸": "-", "╺": "-", "│": "|", "┃": "|", "║": "|",
    "−": "-", "–": "-", "—": "--", "·": "*", "×": "x", "•": "*", "±": "+-", "≤": "<=", "≥": ">=", "≠": "!=",
    "≈": "~=", "→": "->", "←": "<-", "↦": "|->", "⇒": "=>", "∂": "d", "∇": "grad", "∞": "inf", "′": "'", "″": "''",
    "‘": "'", "’": "'", "“": '"', "”": '"', "✓": "ok", "✗": "x", "●": "*", "○": "o", "■": "#", "█": "#", "▓": "#",
    "▒": "+", "░": ".", "…": "...", "∘": "o", "½": "1/2", "ß": "ss",
}  # fmt: skip
STROKE = "\N{COMBINING LONG STROKE OVERLAY}"  # strikes the letter before it through
_STRUCK = re.compile(f"(?:.{STROKE})+")
_GREEK = re.compile(r"GREEK (SMALL|CAPITAL) LETTER (\w+)$")
_RAISED, _LOWERED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿ]+"), re.compile("[₀₁₂₃₄₅₆₇₈₉₊₋]+")
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_LIKE_LATIN = dict(zip(  # letters for which LaTeX has no commands
    ("Alpha", "Beta", "Epsilon", "Zeta", "Eta", "Iota", "Kappa", "Mu", "Nu", "Omicron", "Rho", "Tau", "Chi", "omicron"),
    "ABEZHIKMNOPTXo", strict=True,
))  # fmt: skip


def latex_text(text: str) -> str:
    r"""Return prose for LaTeX: special characters are escaped, unsupported ones are named by number.

    >>> latex_text("a_b & 50%, ε₁² ≤ é"), latex_text("10⁻⁸ 変")
    ('a\\_b \\& 50\\%, $\\varepsilon _{1} ^{2}$ $\\leq$ é', '10$^{-} ^{8}$ [U+5909]')
    """
    return "".join(map(_latex, visible(text))).replace("$$", " ")


def latex_code(text: str) -> str:
    r"""Return one line of a program for LaTeX, with every space and quote kept.

    >>> latex_code("x  = -y--'")
    'x~~=~{-}y{-}{-}\\textquotesingle{}'
    """
    apart = {" ": "~", "'": r"\textquotesingle{}", "-": "{-}", ",": "{,}", "~": r"\textasciitilde{}"}
    return "".join(apart.get(c) or _latex(c) for c in visible(text))


def ascii_text(text: str) -> str:
    """Return text in ASCII. Raised and lowered characters keep a ^ or _.

    >>> ascii_text("─ ε₁ → 10⁻⁸ é 変"), ascii_text(f"a + b{STROKE}2{STROKE}")
    ('- eps_1 -> 10^-8 e ?', 'a + ~b2~')
    """
    if text.isascii():
        return text
    text = _STRUCK.sub(lambda run: f"~{run[0].replace(STROKE, '')}~", text)
    return "".join(map(_ascii, _RAISED.sub(lambda run: "^" + run[0], _LOWERED.sub(lambda run: "_" + run[0], text))))


def counted(number: int, noun: str, shown: str = "") -> str:
    """Return a number with its noun; the number may be shown in another way than by its digits.

    >>> counted(1, "loop"), counted(2, "entry"), counted(10**9, "operation", "10⁹")
    ('1 loop', '2 entries', '10⁹ operations')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}es" if noun.endswith("x") else f"{noun}s"
    return f"{shown or number} {noun if number == 1 else plural}"


def greek_name(character: str) -> str:
    """Return the English name of a Greek letter as SymPy spells it, capitals with a capital; "" for anything else.

    >>> greek_name("λ"), greek_name("Ω"), greek_name("a")
    ('lambda', 'Omega', '')
    """
    match = _GREEK.match(unicodedata.name(character, ""))
    name = match[2].lower().replace("lamda", "lambda") if match else ""
    return name.capitalize() if match and match[1] == "CAPITAL" else name


def _latex(character: str) -> str:
    if character in _LATEX:
        return _LATEX[character]
    if character.isascii() or (character.isalpha() and "À" <= character <= "ž"):
        return character
    compatible = unicodedata.normalize("NFKC", character)
    kind = unicodedata.decomposition(character).partition(">")[0]
    if kind in ("<sub", "<super") and compatible.isascii():
        return f"${'_' if kind == '<sub' else '^'}{{{compatible}}}$"
    name = greek_name(compatible) if len(compatible) == 1 else ""
    if name:
        return rf"$\{name}$" if name not in _LIKE_LATIN else f"$\\mathrm{{{_LIKE_LATIN[name]}}}$"
    if len(compatible) == 1 and compatible != character:
        return _latex(compatible)
    return f"[U+{ord(character):04X}]"


def _ascii(character: str) -> str:
    if character.isascii() or character in _PLAIN:
        return _PLAIN.get(character, character)
    if unicodedata.name(character, "").startswith("BOX DRAWINGS"):
        return "+"
    parts = unicodedata.normalize("NFKD", character)
    base = parts[0]
    if any(not unicodedata.combining(mark) for mark in parts[1:]):
        return "?"
    if base.isascii() or base in _PLAIN:
        return _PLAIN.get(base, base)
    return greek_name(base).replace("epsilon", "eps") or "?"


class Struck(sp.Expr):  # type: ignore[misc]
    """A part of a formula that is 0 and is shown once more, struck through."""

    precedence = PRECEDENCE["Mul"]


class Nothing(sp.Expr):  # type: ignore[misc]
    """The empty left side of an equation that continues the line before."""


class Pending(sp.Expr):  # type: ignore[misc]
    """A derivative that is still to be taken: an expression and its variable, and `true` for a partial derivative."""

    precedence = PRECEDENCE["Atom"]
    is_commutative = True

    def _sympystr(self, printer: Any) -> str:
        sign = "∂" if len(self.args) > 2 else "d"
        return f"{sign}/{sign}{printer._print(self.args[1])}[{printer._print(self.args[0])}]"

    def _latex(self, printer: Any) -> str:
        sign = r"\partial " if len(self.args) > 2 else "d"
        below = printer._print(self.args[1])
        return rf"\frac{{{sign}}}{{{sign}{below}}}\left[{printer._print(self.args[0])}\right]"

    def of(self, part: sp.Expr) -> Pending:
        """Return the pending derivative of a part, in the same variable."""
        return Pending(part, *self.args[1:])


class Transposed(sp.Expr):  # type: ignore[misc]
    """The transpose of a matrix."""

    precedence, is_commutative = PRECEDENCE["Pow"], False

    def _sympystr(self, printer: Any) -> str:
        base, exponent = self.args[0].as_base_exp()
        if exponent == -1:
            return f"{printer.parenthesize(base, PRECEDENCE['Pow'])}⁻ᵀ"
        return f"{printer.parenthesize(self.args[0], PRECEDENCE['Pow'], strict=False)}ᵀ"

    def _latex(self, printer: Any) -> str:
        base, exponent = self.args[0].as_base_exp()
        raised = r"-\mathsf{T}" if exponent == -1 else r"\mathsf{T}"
        base = base if exponent == -1 else self.args[0]
        return f"{printer.parenthesize(base, PRECEDENCE['Pow'], strict=False)}^{{{raised}}}"


class NumberOf(sp.Expr):  # type: ignore[misc]
    """A number that is made of matrices: a product of a row and a column, a trace, a norm..."""

    precedence, is_commutative, shown, typeset = PRECEDENCE["Atom"], True, "({})", r"\left({}\right)"

    def _sympystr(self, printer: Any) -> str:
        return self.shown.format(printer._print(self.args[0]))

    def _latex(self, printer: Any) -> str:
        return self.typeset.replace("{}", printer._print(self.args[0]))


class Trace(NumberOf):
    shown, typeset = "tr({})", r"\operatorname{tr}\left({}\right)"


class Determinant(NumberOf):
    shown, typeset = "det({})", r"\det\left({}\right)"


class Norm(NumberOf):
    shown, typeset = "‖{}‖", r"\left\|{}\right\|"


class Total(NumberOf):
    """The sum of all entries."""

    shown, typeset = "sum({})", r"\operatorname{sum}\left({}\right)"


class Ones(sp.Symbol):  # type: ignore[misc]
    """A column of ones."""

    def _sympystr(self, printer: Any) -> str:
        return "𝟏"

    def _latex(self, printer: Any) -> str:
        return r"\mathbf{1}"


_SHORTEST = 3  # terms of a sum with an index


class WrittenSum(sp.Add):  # type: ignore[misc]
    """A sum that keeps its terms, except 0, and their order."""

    def __new__(cls, *terms: sp.Expr) -> sp.Expr:
        parts = [part for term in terms for part in (ordered_terms(term) if term.is_Add else (term,)) if part != 0]
        return cls._from_args(parts)


class WrittenProduct(sp.Mul):  # type: ignore[misc]
    """A product that keeps its factors, except 1, and their order."""

    def __new__(cls, *factors: sp.Expr) -> sp.Expr:
        if 0 in factors:
            return sp.S.Zero
        factors = tuple(factor for factor in factors if factor != 1)
        nested = [(f,) if k and f.could_extract_minus_sign() else sp.Mul.make_args(f) for k, f in enumerate(factors)]
        return cls._from_args([part for parts in nested for part in parts])


class IndexedSum(WrittenSum):
    """A sum of terms that differ in the index of their names only, shown as Σ of the term with the index i."""

    def _sympystr(self, printer: Any) -> str:
        term, terms = one_form(self.args)  # type: ignore[misc]
        text = f"({printer._print(term)})" if term.is_Add else printer._print(term)
        return f"Σᵢ₌{str(min(terms)).translate(LOWERED)}{str(max(terms)).translate(RAISED)} {text}"

    def _latex(self, printer: Any) -> str:
        term, terms = one_form(self.args)  # type: ignore[misc]
        text = rf"\left({printer._print(term)}\right)" if term.is_Add else printer._print(term)
        return rf"\sum_{{i={min(terms)}}}^{{{max(terms)}}} {text}"


def one_form(terms: Sequence[sp.Basic]) -> tuple[sp.Expr, dict[int, sp.Expr]] | None:
    """Return a term with the index i, and the terms by their index; None unless all of them are of that form."""
    forms, terms_of = set[sp.Expr](), dict[int, sp.Expr]()
    for term in terms:
        form, index = with_index(term)
        forms.add(form)
        terms_of |= {} if index is None else {index: term}
    whole = len(forms) == 1 and len(terms) == len(terms_of) >= _SHORTEST
    together = whole and max(terms_of) - min(terms_of) + 1 == len(terms_of)
    return (forms.pop(), dict(sorted(terms_of.items()))) if together else None


def with_index(part: sp.Basic) -> tuple[Any, int | None]:
    """Return an expression with the index i for the only one of its names, and that index.

    None if there is another, or if a name has an i of its own.

    >>> x_2, v_2, a = sp.symbols("x_2 v_2 a")
    >>> with_index(a * x_2 * v_2), with_index(x_2 * sp.Symbol("x_3"))[1] is None
    ((a*v_i*x_i, 2), True)
    """
    names = {s: s.name.rpartition("_") for s in part.free_symbols if not is_epsilon(s)}
    numbered = {s: (stem, int(index)) for s, (stem, _, index) in names.items() if stem and index.isdecimal()}
    taken = any("i" in (stem, index) for stem, _, index in names.values())
    if taken or len({index for _, index in numbered.values()}) != 1:
        return part, None
    named = {s: sp.Symbol(f"{stem}_i", **s.assumptions0) for s, (stem, _) in numbered.items()}
    return part.xreplace(named), next(index for _, index in numbered.values())


def with_indexed_sums(expression: Any) -> Any:
    """Return an expression with an `IndexedSum` for each sum of at least three terms of one form.

    >>> with_indexed_sums(sp.Add(*sp.symbols("x_1:5")))
    Σᵢ₌₁⁴ x_i
    """
    if not isinstance(expression, sp.Basic) or not expression.args:
        return expression
    if expression.is_Add and (form := one_form(expression.args)) is not None:
        return IndexedSum._from_args(list(form[1].values()))
    parts = [with_indexed_sums(part) for part in expression.args]
    if parts == list(expression.args):
        return expression
    literal = {"evaluate": False} if expression.is_Mul or expression.is_Add else {}
    return expression.func(*parts, **literal)


@dataclass(frozen=True)
class NamedPartial:
    """A partial derivative of an undefined function: the order in each argument, and the arguments."""

    function: AppliedUndef
    orders: tuple[int, ...]
    arguments: tuple[sp.Expr, ...]


def named_partial(expression: sp.Basic) -> NamedPartial | None:
    """Return an expression as f', f'' or a partial derivative by argument number, None where it is no such thing.

    >>> f, x = sp.Function("f"), sp.Symbol("x")
    >>> found = named_partial(f(x**2).diff(x).args[-1])
    >>> found.orders, found.arguments
    ((1,), (x**2,))
    >>> named_partial(sp.Derivative(f(2 * x), x)) is None
    True
    """
    if isinstance(expression, sp.Subs) and isinstance(expression.expr, sp.Derivative):
        inner = named_partial(expression.expr)
        put = dict(zip(expression.variables, expression.point, strict=True))
        if inner is None or any(a.has(sp.Derivative, sp.Subs, sp.Integral) and a not in put for a in inner.arguments):
            return None
        return NamedPartial(inner.function, inner.orders, tuple(a.xreplace(put) for a in inner.arguments))
    if not (isinstance(expression, sp.Derivative) and isinstance(expression.expr, AppliedUndef)):
        return None
    function, orders = expression.expr, [0] * len(expression.expr.args)
    for variable, count in expression.variable_count:
        places = [k for k, argument in enumerate(function.args) if argument == variable or argument.has(variable)]
        if len(places) != 1 or function.args[places[0]] != variable or not count.is_Integer:
            return None
        orders[places[0]] += int(count)
    return NamedPartial(function, tuple(orders), function.args)


def is_epsilon(expression: sp.Basic) -> bool:
    """Whether an expression is the symbol of a level, or a power of it that was left standing.

    Display lies below the levels, so their symbols are known by the name of their class.
    """
    if isinstance(expression, sp.Pow) and expression.exp.is_Integer and expression.exp > 0:
        return is_epsilon(expression.base)
    return type(expression).__name__ == "Epsilon"


def level_of(epsilon: sp.Basic) -> int:
    """Return the number of the level of its symbol."""
    return int((epsilon.base if isinstance(epsilon, sp.Pow) else epsilon).name.rpartition("_")[2])


def is_as_written(expression: sp.Expr) -> bool:
    """Whether the arguments are in another order than SymPy's own, as in a trace."""
    arguments = list(expression.args)
    written = isinstance(expression, WrittenSum | WrittenProduct)
    return written or arguments != sorted(arguments, key=cmp_to_key(sp.Basic.compare))


def ordered_terms(expression: sp.Expr) -> list[sp.Expr]:
    """Return the terms of a sum: as they were written, if that is not how SymPy keeps them, else in SymPy's order.

    Terms in symbols of levels follow the others: 1, eps_1, eps_2, eps_1 eps_2, eps_3...
    """
    terms = list(expression.args) if is_as_written(expression) else expression.as_ordered_terms()
    if not expression.is_commutative:  # of matrices: A x - b
        return sorted(terms, key=lambda term: term.could_extract_minus_sign())
    return sorted(terms, key=_tower)


def ordered_factors(expression: sp.Mul) -> list[sp.Expr]:
    """Return the factors of a product by the same rule; the symbols of levels are the last."""
    factors = list(expression.args)
    if not is_literal(expression) and not is_as_written(expression):
        coefficient, rest = expression.as_coeff_Mul()
        others = [rest] if len(factors) == 2 and rest in factors else list(rest.as_ordered_factors())
        factors = ([] if coefficient == 1 else [coefficient]) + others
    return [f for f in factors if not is_epsilon(f)] + sorted(filter(is_epsilon, factors), key=level_of)


def is_literal(product: sp.Mul) -> bool:
    """Whether a product has a number where SymPy would have multiplied it out: it is shown as it stands."""
    return product.args[0] is sp.S.One or any(isinstance(factor, sp.Number) for factor in product.args[1:])


def digits(number: sp.Float) -> str:
    """Return the fewest digits that give the same number again, at its own precision.

    >>> digits(sp.Float(0.1)), digits(sp.Float(0.1) + sp.Float(0.2)), digits(sp.Float("1e-9", 30))
    ('0.1', '0.30000000000000004', '0.000000001')
    """
    precision, value = number._prec, number._mpf_
    if precision == 53 and (number == 0 or 1e-300 < abs(number) < 1e300):
        return repr(float(number))
    first = libmp.prec_to_dps(precision)
    candidates = (libmp.to_str(value, count, strip_zeros=True) for count in range(first, first + 4))
    same = (text for text in candidates if libmp.from_str(text, precision, "n") == value)
    return next(same, None) or str(libmp.to_str(value, libmp.repr_dps(precision)))


def _tower(term: sp.Expr) -> int:
    """Return the place of a term in 1, eps_1, eps_2, eps_1 eps_2, eps_3, ..."""
    return sum(1 << level_of(factor) for factor in sp.Mul.make_args(term) if is_epsilon(factor))
