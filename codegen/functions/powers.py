"""Integer and half-integer powers become shared multiplication chains, square roots and one reciprocal."""

from __future__ import annotations

import math

from codegen.ir.machine_rows import Machine, Reference

LONGEST_CHAIN = 32  # a chain's rounding errors add up; beyond this the libm pow is the better value


def lower_power(machine: Machine, base: Reference, exponent: Reference) -> Reference:
    """Lower `base ** exponent`.

    A constant exponent n or n + 1/2 becomes a power row, which `PowerPlan` later expands together with all other
    powers of the same base. A base of e or 2 becomes exp or exp2; anything else calls libm's pow.
    """
    fixed = machine.constant(exponent)
    if fixed is not None and abs(fixed) <= LONGEST_CHAIN and fixed * 2 == math.floor(fixed * 2):
        return machine.power(base, fixed)
    by_base = {math.e: "exp", 2.0: "exp2"}.get(machine.constant(base) or 0.0)
    return machine.call(by_base, (exponent,)) if by_base else machine.call("pow", (base, exponent))


class PowerPlan:
    """Expands powers. It knows all exponents of each base, so that chains are shared.

    Negative exponents: a single one becomes 1 / chain (one rounding more than the chain); several share one
    reciprocal, and their chains are built on it.
    """

    def __init__(self, exponents: dict[int, set[float]]) -> None:
        self._exponents = exponents

    def shares_reciprocal(self, base: int) -> bool:
        """Whether the base has more than one negative exponent."""
        return sum(exponent < 0 for exponent in self._exponents[base]) > 1

    def denominator(self, machine: Machine, base: int, value: Reference, exponent: float) -> Reference | None:
        """Return d with `base ** exponent` = 1/d, or None if the power is not computed as a quotient."""
        if exponent >= 0 or self.shares_reciprocal(base):
            return None
        return chain(machine, value, -exponent, self._exponents[base])

    def expand(self, machine: Machine, base: int, value: Reference, exponent: float) -> Reference:
        """Return `value ** exponent`, where `value` is the lowered base."""
        if exponent >= 0:
            return chain(machine, value, exponent, self._exponents[base])
        one = machine.const(1.0)
        if not self.shares_reciprocal(base):
            return machine.div(one, chain(machine, value, -exponent, self._exponents[base]))
        wanted = {-other for other in self._exponents[base] if other < 0}
        whole = math.floor(-exponent)
        root = -exponent - whole
        tail = machine.div(one, machine.sqrt(value)) if root else None
        if not whole:
            return one if tail is None else tail
        power = chain(machine, machine.div(one, value), float(whole), wanted)
        return power if tail is None else machine.mul(power, tail)


def chain(machine: Machine, value: Reference, exponent: float, wanted: set[float]) -> Reference:
    """Return `value ** exponent` for an exponent n or n + 1/2 >= 0 as products, reusing exponents in `wanted`.

    The exponents are added up from the largest wanted part: 7 = 6 + 1 when 6 is wanted, else binary (7 = 6 + 1,
    6 = 3 + 3, 3 = 2 + 1). The machine table makes equal parts one operation.
    """
    whole = math.floor(exponent)
    root = machine.sqrt(value) if exponent != whole else None
    if whole == 0:
        return machine.const(1.0) if root is None else root
    power = _integer_chain(machine, value, whole, wanted)
    return power if root is None else machine.mul(power, root)


def _integer_chain(machine: Machine, value: Reference, exponent: int, wanted: set[float]) -> Reference:
    powers = {1: value}
    stack = [exponent]
    while stack:
        goal = stack[-1]
        left = _split(goal, wanted)
        missing = [part for part in {left, goal - left} if part not in powers]
        if goal in powers or not missing:
            if goal not in powers:
                powers[goal] = machine.mul(powers[left], powers[goal - left])
            stack.pop()
        else:
            stack += missing
    return powers[exponent]


def _split(exponent: int, wanted: set[float]) -> int:
    """Return the first part of the exponent: half of it if even, else the largest wanted part with a cheap rest."""
    if exponent <= 2:
        return 1
    half = exponent // 2
    if exponent % 2 == 0:
        return half
    for part in sorted(
        (int(other) for other in wanted if other == int(other) and half < other < exponent), reverse=True
    ):
        rest = exponent - part
        if rest in (1, 2) or float(rest) in wanted:
            return part
    return exponent - 1
