"""The printer for LaTeX: mathematics as it is taught, restricted to what MathML can show."""

# ruff: noqa: N802 - the methods' names are SymPy's

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.printing.latex import LatexPrinter, accepted_latex_functions, greek_letters_set, tex_greek_dictionary
from sympy.printing.precedence import PRECEDENCE

import symad.display.notation as notation
from symad.display.printers import LONGEST_NAME, CommonPrinter, above_and_below, shortened, without_sign

_PLAIN_NAME = re.compile(r"([A-Za-z][A-Za-z0-9]*)((?:_[A-Za-z0-9]+)*)")
_NUMBER_FIRST = re.compile(r"\d|\\frac\{\d+\}")
_WORDS = (r"\mathrm", r"\mathit", r"\text")
_OPERATORS = {"log2": r"\log_{2}", "log10": r"\log_{10}", "loggamma": r"\log\Gamma", "gammaln": r"\log\Gamma"}


class Latex(CommonPrinter, LatexPrinter):  # type: ignore[misc]
    """LaTeX restricted to what MathML can show. Different names look different."""

    def any_text(self, text: str) -> str:
        """Return text that is no mathematics."""
        return rf"\text{{{notation.latex_text(text)}}}"

    def operator(self, name: str) -> str:
        """Return the name of a function: several letters upright."""
        return name if name.isalpha() and len(name) == 1 else rf"\operatorname{{{notation.latex_text(name)}}}"

    def name(self, name: str, multiple: str = r"\mathrm") -> str:
        """Return a name: Greek, one letter, or several letters upright; the part after _ is a subscript."""
        if name.startswith("∇"):
            return rf"\nabla {self.name(name[1:], multiple)}"
        if name and notation.greek_name(name[0]):
            name = notation.greek_name(name[0]) + name[1:]
        match = _PLAIN_NAME.fullmatch(name)
        if match is None or len(name) > LONGEST_NAME:
            return self.any_text(shortened(name))
        below = ",".join(_letters(part, r"\mathrm") for part in match[2].split("_")[1:])
        return _letters(match[1], multiple) + (f"_{{{below}}}" if below else "")

    def emptyPrinter(self, expr: Any) -> str:
        """Return an object that SymPy's printers have no form for."""
        return self.any_text(shortened(str(expr)))

    _print_str = emptyPrinter

    def _print_Str(self, expr: Any) -> str:
        return self.any_text(shortened(expr.name))

    def _deal_with_super_sub(self, string: str, style: str = "plain") -> str:
        return self.name(string)

    def parenthesize(self, item: sp.Basic, level: int, is_neg: bool = False, strict: bool = False) -> str:
        """Return a part of a larger expression; f'(x) needs no brackets."""
        if notation.named_partial(item) is not None:
            return self._print(item)
        return str(super().parenthesize(item, level, is_neg, strict))

    def _at(self, function: str, arguments: Sequence[sp.Basic], exp: str | None = None) -> str:
        raised = f"^{{{exp}}}" if exp else ""
        return rf"{function}{{\left({', '.join(map(self._print, arguments))} \right)}}{raised}"

    def _applied(self, expr: sp.Expr, exp: str | None = None, **options: Any) -> str:
        name = type(expr).__name__
        function = self.name(name, r"\operatorname") if isinstance(expr, AppliedUndef) else self._hprint_Function(name)
        return self._at(function, expr.args, exp)

    def _partial(self, partial: notation.NamedPartial) -> str:
        name = self.name(type(partial.function).__name__, r"\operatorname")
        if len(partial.orders) == 1:
            (order,) = partial.orders
            return self._at(name + ("'" * order if order <= 3 else f"^{{({order})}}"), partial.arguments)
        taken = [(k, f"^{{{order}}}" if order > 1 else "") for k, order in enumerate(partial.orders, 1) if order]
        signs = (rf"\partial_{{{k}}}{raised} " for k, raised in taken)
        return self._at("".join(signs) + name, partial.arguments)

    def _hprint_Function(self, func: str) -> str:
        return rf"\{func}" if func in accepted_latex_functions else _OPERATORS.get(func) or self.operator(func)

    def _print_Symbol(self, expr: sp.Symbol, style: str = "") -> str:
        name = expr.name.rstrip("'")  # y' is the derivative of y
        if not expr.is_commutative and name[:1] == "d" and len(name) == 2:  # a differential dX
            return f"{name[0]}{self.name(name[1])}"
        return self.name(name) + expr.name[len(name) :] if name else self.name(expr.name)

    def _print_Epsilon(self, expr: sp.Symbol) -> str:
        return rf"\varepsilon_{{{notation.level_of(expr)}}}"

    def _print_Struck(self, expr: notation.Struck) -> str:
        return rf"\cancel{{{self._print(expr.args[0])}}}"

    def _print_Nothing(self, expr: notation.Nothing) -> str:
        return "{}"

    def _print_NegativeZero(self, expr: sp.Expr) -> str:
        return "-0.0"

    def _print_Float(self, expr: sp.Float) -> str:
        mantissa, mark, exponent = notation.digits(expr).partition("e")
        return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if mark else mantissa

    def _print_Cbrt(self, expr: sp.Expr, exp: str | None = None) -> str:
        return str(self._do_exponent(rf"\sqrt[3]{{{self._print(expr.args[0])}}}", exp))

    def _print_Sqrt(self, expr: sp.Expr, exp: str | None = None) -> str:
        return str(self._do_exponent(rf"\sqrt{{{self._print(expr.args[0])}}}", exp))

    def _print_Heaviside(self, expr: sp.Expr, exp: str | None = None) -> str:
        return self._at(self.operator("Heaviside"), expr.args[:1] if expr.args[1] == sp.S.Half else expr.args, exp)

    def _print_polygamma(self, expr: sp.Expr, exp: str | None = None) -> str:
        order = "" if expr.args[0] == 0 else rf"^{{\left({self._print(expr.args[0])}\right)}}"
        return self._at(rf"\psi{order}", expr.args[1:], exp)

    def _print_Limit(self, expr: sp.Limit) -> str:
        inner, variable, point, direction = expr.args
        side = "" if str(direction) == "+-" else f"^{direction}"
        below = rf"{self._print(variable)} \to {self._print(point)}{side}"
        return rf"\lim_{{{below}}} {self.parenthesize(inner, PRECEDENCE['Mul'], strict=True)}"

    def _hprint_airy(self, expr: sp.Expr, exp: str | None = None, notation: str = "") -> str:
        return self._at(self.operator(notation), expr.args, exp)

    def _hprint_airy_prime(self, expr: sp.Expr, exp: str | None = None, notation: str = "") -> str:
        return self._at(self.operator(notation) + "'", expr.args, exp)

    def _print_Subs(self, expr: sp.Subs) -> str:
        pairs = zip(expr.variables, expr.point, strict=True)
        below = r",\; ".join(f"{self._print(variable)} = {self._print(value)}" for variable, value in pairs)
        return rf"\left. {self._print(expr.expr)} \right|_{{{below}}}"

    def _print_Mul(self, expr: sp.Expr) -> str:
        if not isinstance(expr, sp.Mul):  # SymPy asks so for x**-2
            return rf"\frac{{1}}{{{self._product(above_and_below([expr])[1])}}}"
        factors = notation.ordered_factors(expr)
        levels = " ".join(self._print(factor) for factor in factors if notation.is_epsilon(factor))
        rest = [factor for factor in factors if not notation.is_epsilon(factor)]
        if not rest:
            return levels
        if notation.is_literal(expr) and not isinstance(expr, notation.WrittenProduct):
            return self._product(rest, followed=bool(levels)) + (rf" \, {levels}" if levels else "")
        sign, rest = without_sign(rest)
        above, below = above_and_below(rest)
        if below:
            coefficient = rf"\frac{{{self._product(above)}}}{{{self._product(below)}}}"
        elif not above and levels:
            return sign + levels
        else:
            coefficient = self._product(above, alone=not sign and not levels, followed=bool(levels))
        return sign + coefficient + (rf" \, {levels}" if levels else "")

    def _product(self, factors: list[sp.Expr], alone: bool = True, followed: bool = False) -> str:
        """Return factors side by side, with a dot where they would run into each other."""
        if len(factors) == 1 and alone and not followed:
            return self._print(factors[0])
        text = before = ""
        for place, factor in enumerate(factors):
            first = place == 0 and alone
            part = self._print(factor)
            last = place == len(factors) - 1 and not followed
            bracketed = self._needs_mul_brackets(factor, first, last) or part.startswith("-")
            if not last and isinstance(factor, sp.Derivative):  # what follows would be read as differentiated too
                bracketed = notation.named_partial(factor) is None
            if bracketed and not (first and (factor.is_Number or factor.is_Mul)):
                part = rf"\left({part}\right)"
            words = any(side.startswith(_WORDS) for side in (part, before))
            dot = words or _NUMBER_FIRST.match(part) or before in ("0", "1")
            text += (r" \cdot " if dot else " ") + part if text else part
            before = part
        return text or "1"


def _letters(name: str, multiple: str) -> str:
    """Return one part of a name: a Greek letter, one letter, a number, or several letters."""
    if name == "epsilon":
        return r"\varepsilon"  # as the symbols of levels are written
    if name.lower() in greek_letters_set and name in (name.lower(), name.capitalize()):
        return str(tex_greek_dictionary.get(name, rf"\{name}"))
    if name[1:].isdigit() and name[0].isalpha():
        return rf"\mathit{{{name}}}"
    return name if len(name) == 1 or name.isdigit() else f"{multiple}{{{name}}}"
