"""Printers for text that write mathematics as it is taught, over SymPy's printer. LaTeX: `latex_printer`."""

# ruff: noqa: N802, N815 - the methods' names are SymPy's

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

import symad.display.notation as notation
from codegen.heads import RealFunction
from codegen.visible import visible

LONGEST_NAME = 60  # of a symbol; what is longer is cut
_TIMES = re.compile(r"(?<!\*)\*(?!\*)")
_INDEXED = re.compile(r"([A-Za-z]+)_([0-9]{1,2})")
_GREEK_SIGNS = {notation.greek_name(sign): sign for sign in map(chr, [*range(0x3B1, 0x3C2), *range(0x3C3, 0x3CA)])}


def shortened(name: str) -> str:
    """Return a name with invisible characters escaped, and its middle cut if it is too long.

    >>> shortened("x" * 100)
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…xxxxxxxxxxxxxxxxxxx'
    """
    name = visible(name).replace("\n", r"\n").replace("\t", r"\t")
    return name if len(name) <= LONGEST_NAME else f"{name[:40]}…{name[41 - LONGEST_NAME :]}"


class CommonPrinter:
    """Shared methods of both printers: the order of terms, and symad's heads before SymPy's of the same name."""

    _applied: Callable[..., str]
    _partial: Callable[[notation.NamedPartial], str]

    def _print(self, expr: Any, **options: Any) -> str:
        if isinstance(expr, AppliedUndef | RealFunction):
            return self._applied(expr, **options)
        partial = notation.named_partial(expr) if isinstance(expr, sp.Derivative | sp.Subs) else None
        if partial is not None:
            return self._partial(partial)
        return str(super()._print(expr, **options))  # type: ignore[misc]

    def _as_ordered_terms(self, expr: sp.Expr, order: str | None = None) -> list[sp.Expr]:
        return notation.ordered_terms(expr)


class Text(CommonPrinter, StrPrinter):  # type: ignore[misc]
    """SymPy's notation, which can be typed again, with f'(x) for derivatives of undefined functions."""

    def _applied(self, expr: sp.Expr, **options: Any) -> str:
        return f"{shortened(type(expr).__name__)}({', '.join(map(self._print, expr.args))})"

    def _partial(self, partial: notation.NamedPartial) -> str:
        name, arguments = shortened(type(partial.function).__name__), ", ".join(map(self._print, partial.arguments))
        if len(partial.orders) == 1:
            (order,) = partial.orders
            return f"{name}{chr(39) * order if order <= 3 else f'^({order})'}({arguments})"
        taken = [(k, _power(order)) for k, order in enumerate(partial.orders, 1) if order]
        signs = (f"∂{str(k).translate(notation.LOWERED)}{raised}" for k, raised in taken)
        return f"{''.join(signs)}{name}({arguments})"

    def _print_Symbol(self, expr: Any) -> str:
        return shortened(expr.name)

    _print_MatrixSymbol = _print_Str = _print_Symbol

    def _print_Epsilon(self, expr: sp.Symbol) -> str:
        return f"eps_{notation.level_of(expr)}"

    def _print_Dummy(self, expr: sp.Dummy) -> str:
        return shortened("_" + expr.name)

    def _print_Float(self, expr: sp.Float) -> str:
        return notation.digits(expr)

    def _print_Cbrt(self, expr: sp.Expr) -> str:
        return f"cbrt({self._print(expr.args[0])})"

    def _print_Sqrt(self, expr: sp.Expr) -> str:
        return f"sqrt({self._print(expr.args[0])})"

    def _print_Struck(self, expr: notation.Struck) -> str:
        return "".join(f"{letter}{notation.STROKE}" for letter in self._print(expr.args[0]))

    def _print_Nothing(self, expr: notation.Nothing) -> str:
        return ""

    def _print_MatrixBase(self, expr: sp.Matrix) -> str:
        rows = (", ".join(self._print(expr[i, j]) for j in range(expr.cols)) for i in range(expr.rows))
        return f"Matrix([{', '.join(f'[{row}]' for row in rows)}])"

    def _print_Mul(self, expr: sp.Mul) -> str:
        factors = notation.ordered_factors(expr)
        levels = [factor for factor in factors if notation.is_epsilon(factor)]
        rest = factors[: len(factors) - len(levels)]
        if levels and rest:
            return self._signed(rest) + "*".join(map(self._print, levels))
        before = self._settings["order"]
        self._settings["order"] = "none" if notation.is_as_written(expr) else None
        try:
            return str(super()._print_Mul(expr))
        finally:
            self._settings["order"] = before

    def _print_WrittenProduct(self, expr: notation.WrittenProduct) -> str:
        """Return the factors in their order, those with negative exponents below one line."""
        sign, rest = without_sign(list(expr.args))
        above, below = above_and_below(rest)
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


_TRIGONOMETRIC = ("sin", "cos", "tan", "cot", "sec", "csc")
_IN_BOOKS = {"log": "ln", "log2": "log₂", "log10": "log₁₀"} | {f"a{name}": f"arc{name}" for name in _TRIGONOMETRIC}
_IN_BOOKS |= {f"a{name}h": f"ar{name}h" for name in _TRIGONOMETRIC}


def _power(times: int) -> str:
    return str(times).translate(notation.RAISED) if times != 1 else ""


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

    def _print_Struck(self, expr: notation.Struck) -> str:
        return "".join(f"{letter}{notation.STROKE}" for letter in self._in_signs(self._print(expr.args[0])))

    def _in_signs(self, text: str) -> str:
        text = _TIMES.sub("·", text)
        text = re.sub(r"(?<![\w₀-₉.^√/])(?!1·)(\d+)·(?!d/d)(?=[^\W\d_])", r"\1", text)
        return re.sub("'+", lambda marks: "′" * len(marks[0]), text)

    def _print_Epsilon(self, expr: sp.Symbol) -> str:
        return f"ε{str(notation.level_of(expr)).translate(notation.LOWERED)}"

    def _print_Symbol(self, expr: Any) -> str:
        name = shortened(expr.name)
        match = _INDEXED.fullmatch(name)
        letter, index = match.groups() if match else (name, "")
        sign = _GREEK_SIGNS.get(letter, letter)
        if name.endswith("_i"):  # of a sum with an index
            return f"{_GREEK_SIGNS.get(name[:-2], name[:-2])}ᵢ"
        return sign + index.translate(notation.LOWERED) if index or sign != letter else name

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
        above, below = above_and_below(numbers)
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
            return f"{base}{str(expr.exp).translate(notation.RAISED)}"
        if expr.exp.is_Rational and expr.exp < 0:
            below = expr.base if expr.exp == -1 else sp.Pow(expr.base, -expr.exp, evaluate=False)
            text = self.parenthesize(below, PRECEDENCE["Pow"], strict=True)
            return f"1/({text})" if text.startswith("1/") else f"1/{text}"
        base = self.parenthesize(expr.base, PRECEDENCE["Pow"], strict=False)
        base = f"({base})" if base.startswith(("e^", "√", "∛", "d/d", "d²/d")) else base
        if expr.exp.is_Integer and expr.exp > 1:
            return f"{base}{str(expr.exp).translate(notation.RAISED)}"
        return f"{base}^{self._in_parentheses(expr.exp)}"

    def _in_parentheses(self, part: sp.Expr) -> str:
        is_named = part.is_Symbol or part.is_NumberSymbol or type(part) is notation.NumberOf
        alone = is_named or (part.is_Integer and part >= 0)
        return str(self._print(part)) if alone else f"({self._print(part)})"


def without_sign(factors: list[sp.Expr]) -> tuple[str, list[sp.Expr]]:
    """Return the sign of a product and its factors without it."""
    first = factors[0]
    if not (isinstance(first, sp.Number) and first.is_negative):
        return "", factors
    return "- ", factors[1:] if first == -1 else [-first, *factors[1:]]


def above_and_below(factors: list[sp.Expr]) -> tuple[list[sp.Expr], list[sp.Expr]]:
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
