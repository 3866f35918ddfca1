"""Which numbers among a row's operands decide its class, and which may go into a table."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

import codegen.distribution_heads as d
import codegen.special_heads as s
from codegen.ir.program import Head
from codegen.ir.row_table import COMMUTATIVE

RELATIONALS = (sp.Eq, sp.Ne, sp.Lt, sp.Le, sp.Gt, sp.Ge)
_TABLES = frozenset({
    sp.Piecewise, *RELATIONALS, sp.beta,
    s.stdtr, s.gammainc, s.gammaincc, s.betainc, s.betaincc, s.gamma_kernel, s.beta_kernel, s.betaln,
    d.stdtrit, d.gammaincinv, d.gammainccinv, d.betaincinv, d.betainccinv,
})  # fmt: skip # besides COMMUTATIVE: any numbers
_ORDERS: dict[Head, int] = {s.polygamma_difference: 1, d.gamma_moment: 1, d.beta_moment: 2}  # first operands, orders
COMMUTES, PLAIN, POWER, STRICT, ORDER, TWO_ORDERS = range(6)


def rule_of(head: Head) -> int:
    """Return the rule of a head.

    >>> rule_of(sp.Mul) == COMMUTES, rule_of(sp.polygamma) == STRICT, rule_of(s.polygamma_difference) == ORDER
    (True, True, True)
    """
    if head in COMMUTATIVE:
        return COMMUTES
    if head in _ORDERS:
        return ORDER if _ORDERS[head] == 1 else TWO_ORDERS
    return PLAIN if head in _TABLES else POWER if head is sp.Pow else STRICT


def deciding(rule: int, count: int) -> Sequence[int]:
    """Return the operands, of `count`, whose numbers decide.

    >>> deciding(POWER, 2), deciding(COMMUTES, 2), deciding(STRICT, 2)
    ((1,), (), range(0, 2))
    """
    places: dict[int, Sequence[int]] = {STRICT: range(count), POWER: (1,), ORDER: (0,), TWO_ORDERS: (0, 1)}
    return places.get(rule, ())
