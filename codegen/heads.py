"""Heads that SymPy lacks, as SymPy functions: the vocabulary that both storeys share.

Each evaluates numerically (`evalf`, through mpmath) and rewrites to ordinary SymPy functions, so that an expression
that holds one is still an ordinary SymPy expression. Their derivatives live in `symad.rules`, their native lowering
in `codegen.functions.intrinsics`.
"""

from __future__ import annotations

import sympy as sp
from sympy.codegen.cfunctions import Cbrt as cbrt  # noqa: N813
from sympy.codegen.cfunctions import exp2, expm1, hypot, log1p, log2, log10

__all__ = [
    "Alias", "NegativeZero", "cbrt", "copysign", "direction_cosine", "elliptic_moment", "exp2", "expit", "expm1",
    "fmod", "hypot", "log1p", "log2", "log10", "log_expit", "logaddexp", "negative_zero", "one_minus_square", "rint",
    "softplus", "trunc", "xlogy",
]  # fmt: skip


class Alias(sp.Function):  # type: ignore[misc]
    """The same value under another identity: the formal parameter of a derivative level; never interned."""

    nargs = (1,)


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


negative_zero = NegativeZero()


class RealFunction(sp.Function):  # type: ignore[misc]
    """A real function defined by a formula: subclasses give `formula(*arguments)`."""

    is_real = True

    @staticmethod
    def formula(*arguments: sp.Expr) -> sp.Expr:
        raise NotImplementedError

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


class expit(RealFunction):
    """Logistic function 1/(1 + exp(-u)), without overflow."""

    nargs = (1,)

    @staticmethod
    def formula(*arguments: sp.Expr) -> sp.Expr:
        return 1 / (1 + sp.exp(-arguments[0]))


class log_expit(RealFunction):
    """log(expit(u)) = -softplus(-u)."""

    nargs = (1,)

    @staticmethod
    def formula(*arguments: sp.Expr) -> sp.Expr:
        return -sp.log(1 + sp.exp(-arguments[0]))


class softplus(RealFunction):
    """log(1 + exp(u)), without overflow."""

    nargs = (1,)

    @staticmethod
    def formula(*arguments: sp.Expr) -> sp.Expr:
        return sp.log(1 + sp.exp(arguments[0]))


class logaddexp(RealFunction):
    """log(exp(u) + exp(v)), without overflow."""

    nargs = (2,)

    @staticmethod
    def formula(*arguments: sp.Expr) -> sp.Expr:
        return sp.log(sp.exp(arguments[0]) + sp.exp(arguments[1]))


class one_minus_square(RealFunction):
    """(1 - u)(1 + u), which keeps the digits that 1 - u**2 loses near |u| = 1."""

    nargs = (1,)

    @staticmethod
    def formula(*arguments: sp.Expr) -> sp.Expr:
        (u,) = arguments
        return (1 - u) * (1 + u)


class xlogy(RealFunction):
    """u*log(v), and 0 where u = 0."""

    nargs = (2,)

    @staticmethod
    def formula(*arguments: sp.Expr) -> sp.Expr:
        u, v = arguments
        return sp.Piecewise((0, sp.Eq(u, 0)), (u * sp.log(v), True))


class trunc(RealFunction):
    """Round towards zero."""

    nargs = (1,)

    @staticmethod
    def formula(*arguments: sp.Expr) -> sp.Expr:
        return sp.sign(arguments[0]) * sp.floor(sp.Abs(arguments[0]))


class rint(RealFunction):
    """Round to the nearest integer, halves to the even one."""

    nargs = (1,)

    @staticmethod
    def formula(*arguments: sp.Expr) -> sp.Expr:
        (u,) = arguments
        down = sp.floor(u)
        odd = sp.Mod(down, 2)
        half = sp.Rational(1, 2)
        return down + sp.Piecewise((0, u - down < half), (1, u - down > half), (odd, True))


class fmod(RealFunction):
    """Remainder with the sign of the dividend (C's fmod); SymPy's Mod has the sign of the divisor."""

    nargs = (2,)

    @staticmethod
    def formula(*arguments: sp.Expr) -> sp.Expr:
        u, v = arguments
        return u - v * trunc.formula(u / v)


class copysign(RealFunction):
    """|u| with the sign of v (the sign of zero counts in the kernel, not in the formula)."""

    nargs = (2,)

    @staticmethod
    def formula(*arguments: sp.Expr) -> sp.Expr:
        u, v = arguments
        return sp.Abs(u) * sp.Piecewise((-1, v < 0), (1, True))


class direction_cosine(RealFunction):
    """u / hypot(u, v): the first derivative of hypot, a head of its own so that its derivative does not cancel."""

    nargs = (2,)

    @staticmethod
    def formula(*arguments: sp.Expr) -> sp.Expr:
        u, v = arguments
        return u / sp.sqrt(u**2 + v**2)


class elliptic_moment(RealFunction):
    """Integral of sin(t)**(2a) (1 - m sin(t)**2)**(-b - 1/2) for t from 0 to pi/2, a and b constant integers, a >= 0.

    K(m) is the moment (0, 0) and E(m) the moment (0, -1); the derivative in m is (b + 1/2) times the moment
    (a+1, b+1), which has none of the 0/0 at m = 0 that formulas in K and E have.
    """

    nargs = (3,)

    @staticmethod
    def formula(*arguments: sp.Expr) -> sp.Expr:
        a, b, m = arguments
        half = sp.Rational(1, 2)
        return sp.pi / 2 * sp.rf(half, a) / sp.factorial(a) * sp.hyper((a + half, b + half), (a + 1,), m)
