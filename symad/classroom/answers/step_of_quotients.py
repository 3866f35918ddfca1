"""The step h in difference quotients and Taylor polynomials: its limit, and the remainder."""

from __future__ import annotations

import re

import sympy as sp

from symad.classroom.equality.equality import agreement

STEP = sp.Dummy("h", real=True)  # the h of f(x + h)
MOVED = re.compile(r"\w\s*\+\s*h\s*[)}]")
_TO_ZERO = r"h ?(?:→|⟶|->|\\to(?![a-z])|\\rightarrow) ?0"
LIMIT = re.compile(rf"\s*\\?lim_? ?[{{(]? ?{_TO_ZERO}(?![.0-9]) ?[)}}]?")
AS_IT_VANISHES = re.compile(rf",? ?\(?(?:as|for|when|where|with)? ?{_TO_ZERO} ?\)?\.?$")
_MOST_ZEROS = 3  # of a denominator, in h


def at_zero(quotient: sp.Expr) -> sp.Expr:
    """Return the limit of a difference quotient for step 0, by the rule for 0/0; nan if there is none.

    >>> x = sp.Symbol("x", real=True)
    >>> at_zero(((x + STEP) ** 2 - x**2) / STEP), at_zero(x / STEP)
    (2*x, nan)
    """
    above, below = sp.fraction(sp.together(quotient))
    for _ in range(_MOST_ZEROS):
        if sp.expand(below.subs(STEP, 0)) != 0:
            break
        if not agreement(above.subs(STEP, 0), sp.S.Zero):
            return sp.nan
        above, below = above.diff(STEP), below.diff(STEP)
    return (above / below).subs(STEP, 0)


def completed(polynomial: sp.Expr, moved: sp.Expr, degree: int) -> sp.Expr:
    """Return f(x + h) plus the terms below h^degree by which a polynomial differs from it.

    >>> x = sp.Symbol("x", real=True)
    >>> completed(x**2 + 2 * x * STEP, (x + STEP) ** 2, 2) == (x + STEP) ** 2
    True
    """
    gap = polynomial - moved
    terms = [gap.diff(STEP, k).subs(STEP, 0) * STEP**k / sp.factorial(k) for k in range(degree)]
    return moved + sp.Add(*terms)
