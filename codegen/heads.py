"""SymPy functions for heads that SymPy lacks. Both storeys use them.

Each evaluates numerically (`evalf`, through mpmath) and rewrites to ordinary SymPy functions, so that an expression
that holds one is still an ordinary SymPy expression. Their derivatives live in `symad.rules`, their native lowering
in `codegen.functions.intrinsics`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy as sp
from mpmath import mp
from sympy.codegen.cfunctions import (
    Cbrt as cbrt,  # noqa: N813
    exp2,
    expm1,
    hypot,
    log1p,
    log2,
    log10,
)
from sympy.logic.boolalg import BooleanAtom

__all__ = [
    "Alias", "NegativeZero", "cbrt", "copysign", "direction_cosine", "elliptic_moment", "exp2", "expit", "expm1",
    "fmod", "hypot", "log1p", "log2", "log10", "log_argument", "log_expit", "logaddexp", "negative_zero",
    "one_minus_square", "rint",
    "softplus", "tie_share", "trunc", "xlogy",
]  # fmt: skip


class Alias(sp.Function):  # type: ignore[misc]
    """The same value under another identity: the formal parameter of a derivative level; never interned."""

    nargs = (1,)


LEAVES = (sp.Atom, BooleanAtom, Alias)  # what is no operation


class NegativeZero(sp.AtomicExpr):  # type: ignore[misc]
    """-0.0, which SymPy's Float cannot hold (Float(-0.0) is 0.0)."""

    is_zero = True
    is_real = True
    is_number = True
    is_commutative = True

    def _eval_evalf(self, prec: int) -> sp.Float:
        return sp.Float(0, precision=prec)

    def _sympystr(self, printer: object) -> str:
        return "-0.0"


negative_zero: NegativeZero = NegativeZero()


class RealFunction(sp.Function):  # type: ignore[misc]
    """A real function defined by a formula, see `real_head`."""

    is_real = True
    formula: Callable[..., sp.Expr]

    def _eval_evalf(self, prec: int) -> sp.Expr:
        return self.formula(*self.args)._eval_evalf(prec + 10)

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        """Return the partial derivative of the definition, as SymPy's own functions do."""
        slots = [sp.Dummy(real=True) for _ in self.args]
        partial = self.formula(*slots).diff(slots[argindex - 1])
        return partial.subs(dict(zip(slots, self.args, strict=True)))

    def doit(self, **hints: object) -> sp.Expr:
        """Return the definition in ordinary SymPy functions."""
        return self.formula(*(argument.doit(**hints) for argument in self.args))

    def _eval_rewrite(self, rule: object, arguments: tuple[sp.Expr, ...], **hints: object) -> sp.Expr:
        return self.formula(*arguments)


def real_head(name: str, meaning: str, formula: Callable[..., sp.Expr]) -> Any:
    """Return a SymPy function of this name, defined by a formula in ordinary SymPy functions."""
    count, module = formula.__code__.co_argcount, formula.__module__
    fields = {"nargs": (count,), "formula": staticmethod(formula), "__doc__": meaning, "__module__": module}
    return type(name, (RealFunction,), fields)


class EvaluatedFunction(sp.Function):  # type: ignore[misc]
    """A real function by its values, see `evaluated_head`."""

    is_real = True
    value: Callable[..., Any]

    def _eval_evalf(self, prec: int) -> sp.Expr:
        with mp.workprec(prec + 10):
            values = [sp.Float(argument, precision=prec + 10)._to_mpmath(prec + 10) for argument in self.args]
            return sp.Float(type(self).value(*values), precision=prec)


def evaluated_head(name: str, meaning: str, value: Callable[..., Any]) -> Any:
    """Return a SymPy function of this name that has a value of mpmath numbers, and no formula in SymPy's functions."""
    fields = {"nargs": (value.__code__.co_argcount,), "value": staticmethod(value), "__doc__": meaning}
    return type(name, (EvaluatedFunction,), {**fields, "__module__": value.__module__})


def zero_first(u: sp.Expr, value: sp.Expr) -> sp.Expr:
    """Return 0 where u = 0, else the value."""
    return sp.Piecewise((0, sp.Eq(u, 0)), (value, True))


def _to_even(u: sp.Expr) -> sp.Expr:
    down, half = sp.floor(u), sp.Rational(1, 2)
    return down + sp.Piecewise((0, u - down < half), (1, u - down > half), (sp.Mod(down, 2), True))


def _elliptic_moment(a: sp.Expr, b: sp.Expr, m: sp.Expr) -> sp.Expr:
    half = sp.Rational(1, 2)
    return sp.pi / 2 * sp.rf(half, a) / sp.factorial(a) * sp.hyper((a + half, b + half), (a + 1,), m)


expit: Any = real_head("expit", "Logistic function 1/(1 + exp(-u)), without overflow.", lambda u: 1 / (1 + sp.exp(-u)))
log_expit: Any = real_head("log_expit", "log(expit(u)) = -softplus(-u).", lambda u: -sp.log(1 + sp.exp(-u)))
softplus: Any = real_head("softplus", "log(1 + exp(u)), without overflow.", lambda u: sp.log(1 + sp.exp(u)))
logaddexp: Any = real_head(
    "logaddexp", "log(exp(u) + exp(v)), without overflow.", lambda u, v: sp.log(sp.exp(u) + sp.exp(v))
)
one_minus_square: Any = real_head(
    "one_minus_square", "(1 - u)(1 + u), which keeps the digits that 1 - u**2 loses near |u| = 1.",
    lambda u: (1 - u) * (1 + u),
)  # fmt: skip
# NaN where a logarithm has no value, so that derivatives of every order are NaN there too; in SymPy it is its operand
log_argument: Any = real_head("log_argument", "u where log(u) has a value, NaN below 0.", lambda u: u)
# NaN where an operand is, so that slopes of maxima and minima are; SymPy's form has no NaN
tie_share: Any = real_head(
    "tie_share", "Share of a tangent that a maximum or minimum passes on: 1/2 where u = v, NaN at NaN, else 1.",
    lambda u, v: sp.Piecewise((sp.Rational(1, 2), sp.Eq(u, v)), (1, True)),
)  # fmt: skip
xlogy: Any = real_head("xlogy", "u*log(v), and 0 where u = 0.", lambda u, v: zero_first(u, u * sp.log(v)))
trunc: Any = real_head("trunc", "Round towards zero.", lambda u: sp.sign(u) * sp.floor(sp.Abs(u)))
rint: Any = real_head("rint", "Round to the nearest integer, halves to the even one.", _to_even)
fmod: Any = real_head(
    "fmod", "Remainder with the sign of the dividend (C's fmod); SymPy's Mod has the sign of the divisor.",
    lambda u, v: u - v * trunc.formula(u / v),
)  # fmt: skip
copysign: Any = real_head(
    "copysign", "|u| with the sign of v (the sign of zero counts in the kernel, not in the formula).",
    lambda u, v: sp.Abs(u) * sp.Piecewise((-1, v < 0), (1, True)),
)  # fmt: skip
direction_cosine: Any = real_head(
    "direction_cosine",
    "u / hypot(u, v): the first derivative of hypot, a head of its own so that its derivative does not cancel.",
    lambda u, v: u / sp.sqrt(u**2 + v**2),
)
# K(m) is the moment (0, 0) and E(m) the moment (0, -1); the derivative in m is (b + 1/2) times the moment (a+1, b+1),
# which has none of the 0/0 at m = 0 that formulas in K and E have.
elliptic_moment: Any = real_head(
    "elliptic_moment",
    "Integral of sin(t)**(2a) (1 - m sin(t)**2)**(-b - 1/2), t from 0 to pi/2, a and b constant integers, a >= 0.",
    _elliptic_moment,
)
