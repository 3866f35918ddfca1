"""Reference values: second-order jets on NumPy columns, one instance of a body in each row. No graph, no symbols.

>>> x, y = seeds(np.array([[2.0, 3.0]]), order=2)
>>> product = x**2 * y
>>> product.value, product.first, product.second
(array([12.]), array([[12.,  4.]]), array([[[6., 4.],
        [4., 0.]]]))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.structure.terms import Terms

Floats = npt.NDArray[np.float64]
CHUNK = 1 << 22  # entries of second derivatives at a time


@dataclass(frozen=True)
class Jet:
    """Values, first and second derivatives of an expression in all instances; None above the order that is wanted."""

    value: Floats
    first: Any = None
    second: Any = None

    __array_ufunc__ = None  # an array on the left asks the jet

    def chain(self, value: Floats, slope: Floats, bend: Floats) -> Jet:
        """Return a function of one variable of this jet, given its value and two derivatives."""
        if self.first is None:
            return Jet(value)
        first = slope[:, None] * self.first
        if self.second is None:
            return Jet(value, first)
        dyad = self.first[:, :, None] * self.first[:, None, :]
        return Jet(value, first, slope[:, None, None] * self.second + bend[:, None, None] * dyad)

    def _combined(self, other: Jet, left: Any, right: Any) -> Jet:
        """Return left * self + right * other in the derivatives, without a value."""
        first = None if self.first is None else left[:, None] * self.first + right[:, None] * other.first
        if self.second is None:
            return Jet(self.value, first)
        return Jet(self.value, first, left[:, None, None] * self.second + right[:, None, None] * other.second)

    def __add__(self, other: Any) -> Jet:
        if not isinstance(other, Jet):
            return Jet(self.value + other, self.first, self.second)
        one = np.ones_like(self.value)
        sum_ = self._combined(other, one, one)
        return Jet(self.value + other.value, sum_.first, sum_.second)

    def __mul__(self, other: Any) -> Jet:
        if not isinstance(other, Jet):
            factor = other * np.ones_like(self.value)
            return self.chain(self.value * factor, factor, np.zeros_like(factor))
        product = self._combined(other, other.value, self.value)
        second = product.second
        if second is not None:
            dyad = self.first[:, :, None] * other.first[:, None, :]
            second = second + dyad + dyad.transpose(0, 2, 1)
        return Jet(self.value * other.value, product.first, second)

    def __pow__(self, exponent: int) -> Jet:
        x, n = self.value, exponent
        bend = n * (n - 1) * x ** (n - 2.0) if n not in (0, 1) else np.zeros_like(x)
        return self.chain(x**n, n * x ** (n - 1.0), bend)

    def __neg__(self) -> Jet:
        return self * -1.0

    def __sub__(self, other: Any) -> Jet:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> Jet:
        return self.__neg__().__add__(other)

    def __truediv__(self, other: Any) -> Jet:
        return self.__mul__(other**-1 if isinstance(other, Jet) else 1 / other)

    def __rtruediv__(self, other: Any) -> Jet:
        return self.__pow__(-1).__mul__(other)

    __radd__ = __add__
    __rmul__ = __mul__


def _unary(rule: Callable[[Floats], tuple[Floats, Floats, Floats]]) -> Callable[[Jet], Jet]:
    return lambda x: x.chain(*rule(x.value))


FUNCTIONS = SimpleNamespace(
    exp=_unary(lambda x: (np.exp(x),) * 3),
    log=_unary(lambda x: (np.log(x), 1 / x, -1 / x**2)),
    sin=_unary(lambda x: (np.sin(x), np.cos(x), -np.sin(x))),
    cos=_unary(lambda x: (np.cos(x), -np.sin(x), -np.cos(x))),
)


def seeds(values: Floats, order: int) -> list[Jet]:
    """Return the slots of all instances (one in a row) as jets of an order."""
    count, slots = values.shape
    unit, flat = np.eye(slots), np.zeros((count, slots, slots))
    tangents = [np.broadcast_to(unit[k], (count, slots)) for k in range(slots)]
    return [Jet(values[:, k], tangents[k] if order else None, flat if order > 1 else None) for k in range(slots)]


def instances(terms: Terms, x: Floats, order: int) -> Iterator[tuple[slice, Jet]]:
    """Evaluate a body in all its instances, some at a time."""
    step = max(1, CHUNK // terms.index.shape[1] ** 2)
    for start in range(0, terms.count, step):
        part = slice(start, start + step)
        constants = list(terms.constants[part].T)
        yield part, terms.body(seeds(x[terms.index[part]], order), constants, FUNCTIONS)
