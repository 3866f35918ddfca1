"""Hyper-dual numbers of many digits: coefficients of all products of epsilons with square 0.

They check displayed formulas, so they share nothing with symad's rules of differentiation: a function is extended by
its Taylor coefficients, which mpmath computes from values of the function alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from mpmath import mp

Number = Any  # an mpf or mpc of mpmath


class HyperDual:
    """A sum of coefficients times products of epsilons: `parts[0b101]` is the coefficient of eps_1 eps_3.

    >>> x = HyperDual({0: mp.mpf(3), 1: mp.mpf(1)})
    >>> (x * x).parts == {0: 9, 1: 6}
    True
    """

    parts: Mapping[int, Number]

    def __init__(self, parts: Mapping[int, Number]) -> None:
        self.parts = {mask: part for mask, part in parts.items() if part != 0 or not mask}

    @property
    def real(self) -> Number:
        """The value without epsilons."""
        return self.parts.get(0, mp.mpf(0))

    @property
    def is_real(self) -> bool:
        """Whether all coefficients are finite real numbers."""
        return all(mp.isfinite(part) and mp.im(part) == 0 for part in self.parts.values())

    @property
    def is_constant(self) -> bool:
        """Whether it contains no epsilon."""
        return not any(self.parts.keys() - {0})

    def __add__(self, other: HyperDual) -> HyperDual:
        masks = self.parts.keys() | other.parts.keys()
        return HyperDual({mask: self.parts.get(mask, 0) + other.parts.get(mask, 0) for mask in masks})

    def __neg__(self) -> HyperDual:
        return HyperDual({mask: -part for mask, part in self.parts.items()})

    def __mul__(self, other: HyperDual) -> HyperDual:
        product: dict[int, Number] = {0: mp.mpf(0)}
        for mask, part in self.parts.items():
            for other_mask, other_part in other.parts.items():
                if not mask & other_mask:
                    product[mask | other_mask] = product.get(mask | other_mask, 0) + part * other_part
        return HyperDual(product)

    def coefficient(self, mask: int) -> HyperDual:
        """Return the coefficient of a product of epsilons, which may contain other epsilons.

        >>> HyperDual({0: 1, 1: 2, 3: 5}).coefficient(1).parts
        {0: 2, 2: 5}
        """
        return HyperDual({other ^ mask: part for other, part in self.parts.items() if other & mask == mask})

    def under(self, function: Callable[[Number], Number]) -> HyperDual:
        """Apply a function. Its Taylor series ends, because the square of each epsilon is 0."""
        if self.is_constant:
            return constant(function(self.real))
        rest = HyperDual({mask: part for mask, part in self.parts.items() if mask})
        degree = reduce(operator.or_, rest.parts, 0).bit_count()
        total, power = constant(0), constant(1)
        for slope in mp.taylor(function, self.real, degree):
            total, power = total + power * constant(slope), power * rest
        return total

    def distance(self, other: HyperDual) -> tuple[Number, Number]:
        """Return the largest difference and the largest size of coefficients."""
        masks = self.parts.keys() | other.parts.keys()
        pairs = [(self.parts.get(mask, mp.mpf(0)), other.parts.get(mask, mp.mpf(0))) for mask in masks]
        gap = max((abs(left - right) for left, right in pairs), default=mp.mpf(0))
        return gap, max((abs(part) for pair in pairs for part in pair), default=mp.mpf(0))


def constant(value: Any) -> HyperDual:
    """Return a number without epsilons."""
    return HyperDual({0: value if isinstance(value, mp.mpf | mp.mpc) else mp.mpf(value)})
