"""Printers for text and LaTeX that write mathematics as it is taught, over SymPy's printers."""

# ruff: noqa: N802 - the methods' names are SymPy's

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.printing.latex import LatexPrinter, accepted_latex_functions, greek_letters_set, tex_greek_dictionary
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from codegen.heads import RealFunction
from codegen.visible import visible
from symad.display.notation import (
    LOWERED,
    RAISED,
    STROKE,
    NamedPartial,
    Nothing,
    NumberOf,
    Struck,
    WrittenProduct,
    digits,
    greek_name,
    is_as_written,
    is_epsilon,
    is_literal,
    latex_text,
    level_of,
    named_partial,
    ordered_factors,
    ordered_terms,
)

LONGEST_NAME = 60  # of a symbol; what is longer is cut
_PLAIN_NAME = re.compile(r"([A-Za-z][A-Za-z0-9]*)((?:_[A-Za-z0-9]+)*)")
_TIMES = re.compile(r"(?<!\*)\*(?!\*)")
_INDEXED = re.compile(r"([A-Za-z]+)_([0-9]{1,2})")
_GREEK_SIGNS = {greek_name(sign): sign for sign in map(chr, [*range(0x3B1, 0x3C2), *range(0x3C3, 0x3CA)])}
_NUMBER_FIRST = re.compile(r"\d|\\frac\{\d+\}")
_WORDS = (r"\mathrm", r"\mathit", r"\text")
_OPERATORS = {"log2": r"\log_{2}", "log10": r"\log_{10}", "loggamma": r"\log\Gamma", "gammaln": r"\log\Gamma"}


def shortened(name: str) -> str:
    """Return a name with invisible characters escaped, and its middle cut if it is too long.

    >>> shortened("x" * 100)
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…xxxxxxxxxxxxxxxxxxx'
    """
    name = visible(name).replace("\n", r"\n").replace("\t", r"\t")
    return name if len(name) <= LONGEST_NAME else f"{name[:40]}…{name[41 - LONGEST_NAME :]}"


class _Common:
    """Shared methods of both printers: the order of terms, and symad's heads before SymPy's of the same name."""

    def _print(self, expr: Any, **options: Any) -> str:
        if isinstance(expr, AppliedUndef | RealFunction):
            return self._applied(expr, **options)
        partial = named_partial(expr) if isinstance(expr, sp.Derivative | sp.Subs) else None
        if partial is not None:
            return self._partial(partial)
        return str(super()._print(expr, **options))  # type: ignore[misc]

    def _as_ordered_terms(self, expr: sp.Expr, order: str | None = None) -> list[sp.Expr]:
        return ordered_terms(expr)

    def _applied(self, expr: sp.Expr, **options: Any) -> str:
        raise NotImplementedError

    def _partial(self, partial: NamedPartial) -> str:
        raise NotImplementedError


class Text(_Common, StrPrinter):  # type: ignore[misc]
    """SymPy's notation, which can be typed again, with f'(x) for derivatives of undefined functions."""

    def _applied(self, expr: sp.Expr, **options: Any) -> str:
        return f"{shortened(type(expr).__name__)}({', '.join(map(self._print, expr.args))})"

    def _partial(self, partial: NamedPartial) -> str:
        name, arguments = shortened(type(partial.function).__name__), ", ".join(map(self._print, partial.arguments))
        if len(partial.orders) == 1:
            (order,) = partial.orders
            return f"{name}{chr(39) * order if order <= 3 else f'^({order})'}({arguments})"
        signs = (
            f"∂{str(k).translate(LOWERED)}{str(order).translate(RAISED) if order > 1 else ''}"
            for k, order in enumerate(partial.orders, 1)
            if order
        )
        return f"{''.join(signs)}{name}({arguments})"

    def _print_Symbol(self, expr: sp.Symbol) -> str:
        return shortened(expr.name)

    def _print_MatrixSymbol(self, expr: sp.MatrixSymbol) -> str:
        return shortened(expr.name)

    def _print_Str(self, expr: Any) -> str:
        return shortened(expr.name)

    def _print_Epsilon(self, expr: sp.Symbol) -> str:
        return f"eps_{level_of(expr)}"

    def _print_Dummy(self, expr: sp.Dummy) -> str:
        return shortened("_" + expr.name)

    def _print_Float(self, expr: sp.Float) -> str:
        return digits(expr)

    def _print_Cbrt(self, expr: sp.Expr) -> str:
        return f"cbrt({self._print(expr.args[0])})"

    def _print_Sqrt(self, expr: sp.Expr) -> str:
        return f"sqrt({self._print(expr.args[0])})"

    def _print_Struck(self, expr: Struck) -> str:
        return "".join(f"{letter}{STROKE}" for letter in self._print(expr.args[0]))

    def _print_Nothing(self, expr: Nothing) -> str:
        return ""

    def _print_MatrixBase(self, expr: sp.Matrix) -> str:
        rows = (", ".join(self._print(expr[i, j]) for j in range(expr.cols)) for i in range(expr.rows))
        return f"Matrix([{', '.join(f'[{row}]' for row in rows)}])"

    def _print_Mul(self, expr: sp.Mul) -> str:
        factors = ordered_factors(expr)
        levels = [factor for factor in factors if is_epsilon(factor)]
        rest = factors[: len(factors) - len(levels)]
        if levels and rest:
            return self._signed(rest) + "*".join(map(self._print, levels))
        before = self._settings["order"]
        self._settings["order"] = "none" if is_as_written(expr) else None
        try:
            return str(super()._print_Mul(expr))
        finally:
            self._settings["order"] = before

    def _print_WrittenProduct(self, expr: WrittenProduct) -> str:
        """Return the factors in their order, those with negative exponents below one line."""
        sign, rest = _without_sign(list(expr.args))
        above, below = _above_and_below(rest)
        top, bottom = ("*".join(self._factor(part) for part in side) for side in (above, below))
        whole = f"{top or 1}/{f'({bottom})' if len(below) > 1 else bottom}" if below else top
        return f"{sign.strip()}{whole}"

    def _factor(self, factor: sp.Expr) -> str:
        return str(self.parenthesize(factor, PRECEDENCE["Mul"], strict=False))

    def _signed(self, factors: list[sp.Expr]) -> str:
        """Return the factors before the symbols of levels."""
        if factors == [sp.S.NegativeOne]:
            return "-"
        product = factors[0] if len(factors) == 1 else sp.Mul(*factors, evaluate=False)
        text = self._print(product)
        return f"({text})*" if isinstance(product, sp.Add | sp.Piecewise) else f"{text}*"


_IN_BOOKS = {
    "log": "ln",
    "log2": "log₂",
    "log10": "log₁₀",
    **{f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "cot", "sec", "csc")},
}
_IN_BOOKS |= {f"a{name}": f"ar{name}" for name in ("sinh", "cosh", "tanh", "coth", "sech", "csch")}


def _power(times: int) -> str:
    return str(times).translate(RAISED) if times != 1 else ""


class Signs(Text):
    """Handwritten notation for terminals that show its signs: 2x², |x|, √x, e^x, ln, arcsin, f′(x), ε₁.

    >>> x = sp.Symbol("x")
    >>> Signs().doprint(sp.Piecewise((x**2, x > 1), (sp.asinh(x), True)))
    '{x² if x > 1, arsinh(x) otherwise}'
    >>> Signs().doprint(2 * x**3 * sp.log(sp.Abs(x)) + sp.exp(2 * x) + sp.sqrt(2) * x + sp.pi * 3**x)
    '3^x·π + 2x³·ln(|x|) + √2·x + e^(2x)'
    """

    def doprint(self, expr: sp.Basic) -> str:
        """Return an expression on one line."""
        return self._in_signs(super().doprint(expr))

    def _print_Struck(self, expr: Struck) -> str:
        return "".join(f"{letter}{STROKE}" for letter in self._in_signs(self._print(expr.args[0])))

    def _in_signs(self, text: str) -> str:
        text = _TIMES.sub("·", text)
        text = re.sub(r"(?<![\w₀-₉.^√/])(?!1·)(\d+)·(?!d/d)(?=[^\W\d_])", r"\1", text)
        return re.sub("'+", lambda marks: "′" * len(marks[0]), text)

    def _print_Epsilon(self, expr: sp.Symbol) -> str:
        return f"ε{str(level_of(expr)).translate(LOWERED)}"

    def _print_Symbol(self, expr: sp.Symbol) -> str:
        name = shortened(expr.name)
        match = _INDEXED.fullmatch(name)
        letter, index = match.groups() if match else (name, "")
        sign = _GREEK_SIGNS.get(letter, letter)
        return sign + index.translate(LOWERED) if index or sign != letter else name

    def _print_Abs(self, expr: sp.Expr) -> str:
        return f"|{self._print(expr.args[0])}|"

    def _print_Derivative(self, expr: sp.Derivative) -> str:
        below = "".join(f"d{self._print(x)}{_power(times)}" for x, times in expr.variable_count)
        return f"d{_power(expr.derivative_count)}/{below} ({self._print(expr.expr)})"

    def _print_Piecewise(self, expr: sp.Piecewise) -> str:
        cases = (f"{self._print(value)} if {self._print(condition)}" for value, condition in expr.args)
        return f"{{{', '.join(cases)}}}".replace("if True", "otherwise")

    def _print_And(self, expr: Any) -> str:
        return " and ".join(sorted(map(self._print, expr.args)))

    def _print_Mul(self, expr: sp.Mul) -> str:
        if expr.is_commutative:
            return super()._print_Mul(expr)
        numbers, matrices = expr.args_cnc()
        text = " ".join(self._factor(part) for part in matrices)
        above, below = _above_and_below(numbers)
        front = "".join("-" if part == -1 else f"{self._factor(part)} " for part in above)
        divisor = self._print(sp.Mul(*below))
        return f"{front}{text}" + (f"/({divisor})" if len(below) > 1 else f"/{divisor}" if below else "")

    def _print_Relational(self, expr: Any) -> str:
        sign = {"==": "=", "<=": "≤", ">=": "≥", "!=": "≠"}.get(expr.rel_op, expr.rel_op)
        return f"{self._print(expr.lhs)} {sign} {self._print(expr.rhs)}"

    def _print_Exp1(self, expr: sp.Expr) -> str:
        return "e"

    def _print_Pi(self, expr: sp.Expr) -> str:
        return "π"

    def _print_exp(self, expr: sp.Expr) -> str:
        return f"e^{self._in_parentheses(expr.args[0])}"

    def _print_Function(self, expr: sp.Expr) -> str:
        name = _IN_BOOKS.get(expr.func.__name__)
        if name is None:
            return str(super()._print_Function(expr))
        return f"{name}({', '.join(map(self._print, expr.args))})"

    def _print_Sqrt(self, expr: sp.Expr) -> str:
        return f"√{self._in_parentheses(expr.args[0])}"

    def _print_Cbrt(self, expr: sp.Expr) -> str:
        return f"∛{self._in_parentheses(expr.args[0])}"

    def _print_Pow(self, expr: sp.Pow, rational: bool = False) -> str:
        if expr.exp == sp.S.Half:
            return f"√{self._in_parentheses(expr.base)}"
        if not expr.base.is_commutative and expr.exp.is_Integer:
            base = self.parenthesize(expr.base, PRECEDENCE["Pow"], strict=False)
            return f"{base}{str(expr.exp).translate(RAISED)}"
        if expr.exp.is_Rational and expr.exp < 0:
            below = expr.base if expr.exp == -1 else sp.Pow(expr.base, -expr.exp, evaluate=False)
            text = self.parenthesize(below, PRECEDENCE["Pow"], strict=True)
            return f"1/({text})" if text.startswith("1/") else f"1/{text}"
        base = self.parenthesize(expr.base, PRECEDENCE["Pow"], strict=False)
        base = f"({base})" if base.startswith(("e^", "√", "∛", "d/d", "d²/d")) else base
        if expr.exp.is_Integer and expr.exp > 1:
            return f"{base}{str(expr.exp).translate(RAISED)}"
        return f"{base}^{self._in_parentheses(expr.exp)}"

    def _in_parentheses(self, part: sp.Expr) -> str:
        text = self._print(part)
        return (
            str(text)
            if part.is_Symbol or type(part) is NumberOf or part.is_NumberSymbol or (part.is_Integer and part >= 0)
            else f"({text})"
        )


class Latex(_Common, LatexPrinter):  # type: ignore[misc]
    """LaTeX restricted to what MathML can show. Different names look different."""

    def any_text(self, text: str) -> str:
        """Return text that is no mathematics."""
        return rf"\text{{{latex_text(text)}}}"

    def operator(self, name: str) -> str:
        """Return the name of a function: several letters upright."""
        return name if name.isalpha() and len(name) == 1 else rf"\operatorname{{{latex_text(name)}}}"

    def name(self, name: str, multiple: str = r"\mathrm") -> str:
        """Return a name: Greek, one letter, or several letters upright; the part after _ is a subscript."""
        if name.startswith("∇"):
            return rf"\nabla {self.name(name[1:], multiple)}"
        if name and greek_name(name[0]):
            name = greek_name(name[0]) + name[1:]
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
        if named_partial(item) is not None:
            return self._print(item)
        return str(super().parenthesize(item, level, is_neg, strict))

    def _at(self, function: str, arguments: Sequence[sp.Basic], exp: str | None = None) -> str:
        raised = f"^{{{exp}}}" if exp else ""
        return rf"{function}{{\left({', '.join(map(self._print, arguments))} \right)}}{raised}"

    def _applied(self, expr: sp.Expr, exp: str | None = None, **options: Any) -> str:
        name = type(expr).__name__
        function = self.name(name, r"\operatorname") if isinstance(expr, AppliedUndef) else self._hprint_Function(name)
        return self._at(function, expr.args, exp)

    def _partial(self, partial: NamedPartial) -> str:
        name = self.name(type(partial.function).__name__, r"\operatorname")
        if len(partial.orders) == 1:
            (order,) = partial.orders
            return self._at(name + ("'" * order if order <= 3 else f"^{{({order})}}"), partial.arguments)
        signs = (
            rf"\partial_{{{k}}}{f'^{{{order}}}' if order > 1 else ''} "
            for k, order in enumerate(partial.orders, 1)
            if order
        )
        return self._at("".join(signs) + name, partial.arguments)

    def _hprint_Function(self, func: str) -> str:
        return rf"\{func}" if func in accepted_latex_functions else _OPERATORS.get(func) or self.operator(func)

    def _print_Symbol(self, expr: sp.Symbol, style: str = "") -> str:
        name = expr.name.rstrip("'")  # y' is the derivative of y
        if not expr.is_commutative and name[:1] == "d" and len(name) == 2:  # a differential dX
            return f"{name[0]}{self.name(name[1])}"
        return self.name(name) + expr.name[len(name) :] if name else self.name(expr.name)

    def _print_Epsilon(self, expr: sp.Symbol) -> str:
        return rf"\varepsilon_{{{level_of(expr)}}}"

    def _print_Struck(self, expr: Struck) -> str:
        return rf"\cancel{{{self._print(expr.args[0])}}}"

    def _print_Nothing(self, expr: Nothing) -> str:
        return "{}"

    def _print_NegativeZero(self, expr: sp.Expr) -> str:
        return "-0.0"

    def _print_Float(self, expr: sp.Float) -> str:
        mantissa, mark, exponent = digits(expr).partition("e")
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
            return rf"\frac{{1}}{{{self._product(_above_and_below([expr])[1])}}}"
        factors = ordered_factors(expr)
        levels = " ".join(self._print(factor) for factor in factors if is_epsilon(factor))
        rest = [factor for factor in factors if not is_epsilon(factor)]
        if not rest:
            return levels
        if is_literal(expr) and not isinstance(expr, WrittenProduct):
            return self._product(rest, followed=bool(levels)) + (rf" \, {levels}" if levels else "")
        sign, rest = _without_sign(rest)
        above, below = _above_and_below(rest)
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
                bracketed = named_partial(factor) is None
            if bracketed and not (first and (factor.is_Number or factor.is_Mul)):
                part = rf"\left({part}\right)"
            dot = (
                _NUMBER_FIRST.match(part)
                or part.startswith(_WORDS)
                or before.startswith(_WORDS)
                or before in ("0", "1")
            )
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


def _without_sign(factors: list[sp.Expr]) -> tuple[str, list[sp.Expr]]:
    """Return the sign of a product and its factors without it."""
    first = factors[0]
    if not (isinstance(first, sp.Number) and first.is_negative):
        return "", factors
    return "- ", factors[1:] if first == -1 else [-first, *factors[1:]]


def _above_and_below(factors: list[sp.Expr]) -> tuple[list[sp.Expr], list[sp.Expr]]:
    """Return the factors above and below the line of a fraction."""
    above: list[sp.Expr] = []
    below: list[sp.Expr] = []
    for factor in factors:
        if isinstance(factor, sp.Rational) and factor.q != 1:
            above += [sp.Integer(factor.p)] if factor.p != 1 else []
            below.append(sp.Integer(factor.q))
        elif isinstance(factor, sp.Pow) and factor.is_commutative and factor.exp.as_coeff_Mul()[0].is_negative:
            below.append(factor.base if factor.exp == -1 else sp.Pow(factor.base, -factor.exp, evaluate=False))
        else:
            above.append(factor)
    return above, below
