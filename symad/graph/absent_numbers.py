"""Structural zeros among the elements of tangent and cotangent arrays.

Whether an element is one may depend on numbers: the derivative of a branch not taken is absent, and stays absent in
products, where a number 0 could meet an infinite coefficient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.evaluation.bitwise_choice import select

Numbers = NDArray[np.float64]

_MARK = np.int64(0x7FF8_5A5A_0000_0001)  # the bits of a NaN that no operation makes
ABSENT: np.float64 = _MARK.view(np.float64)


def there(values: Any) -> NDArray[np.bool_]:
    """Return which elements are there.

    >>> there(np.array([1.0, ABSENT, np.nan]))
    array([ True, False,  True])
    """
    return np.asarray(np.asarray(values).view(np.int64) != _MARK)


def present_where(holds: Any, values: Any) -> Numbers:
    """Return values where something holds, absent elsewhere."""
    numbers: Numbers = select(holds, values, ABSENT)
    return numbers


def plus(left: Any, right: Any) -> Numbers:
    """Return sums; of one that is there and one that is absent, the one.

    >>> plus(np.array([1.0, ABSENT, ABSENT]), np.array([2.0, 2.0, ABSENT])).tolist()[:2]
    [3.0, 2.0]
    """
    first, second = there(left), there(right)
    sums: Numbers = np.where(first & second, np.add(left, right), np.where(first, left, right))
    return sums


def times(left: Any, right: Any) -> Numbers:
    """Return products; absent where a factor is.

    >>> there(times(np.array([np.inf, 2.0]), np.array([ABSENT, 3.0])))
    array([False,  True])
    """
    products: Numbers = np.multiply(left, right)
    if (np.isnan(products) == (products.view(np.int64) == _MARK)).all():
        return products  # a product with NaN has the bits of that NaN, here the mark: so it is nearly everywhere
    return present_where(there(left) & there(right), products)


def settled(values: Any) -> Numbers:
    """Return values with the number 0 for absent ones."""
    numbers: Numbers = select(there(values), values, 0.0)
    return numbers


def shares(terms: Any, best: Any, reduction: np.ufunc = np.maximum) -> Numbers:
    """Return the weights of terms for the largest or smallest one along the first axis, absent for all others.

    Each of several equal terms takes half of those before it.

    >>> shares(np.array([1.0, 3.0, 3.0]), np.array(3.0)).tolist()[1:]
    [0.5, 0.5]
    """
    equal, shared = ties(terms, best, reduction)
    return present_where(equal, 1.0 if shared is None else shared)


def ties(terms: Any, best: Any, reduction: np.ufunc = np.maximum) -> tuple[NDArray[np.bool_], Numbers | None]:
    """Return which terms are the largest or smallest ones, and their shares; None where each is alone.

    A NaN takes shares of NaN for itself, for the best term before it, and for all after it, like a chain of pairs.
    """
    equal, invalid = np.asarray(terms == best), np.isnan(best)
    if not invalid.any():
        return equal, _shares(equal)
    running = reduction.accumulate(terms)
    worst = -np.inf if reduction is np.maximum else np.inf
    before = reduction.reduce(np.where(np.isnan(running), worst, running), axis=0)
    equal = equal | (invalid & (np.isnan(running) | (terms == before)))
    shared = _shares(equal)
    return equal, np.where(invalid, np.nan, 1.0 if shared is None else shared)


def _shares(equal: NDArray[np.bool_]) -> Numbers | None:
    if len(equal) == 2:
        halves: Numbers = select(equal[:1] & equal[1:], 0.5, 1.0)
        return halves
    several = np.add.reduce(equal, axis=0, dtype=np.uint8 if len(equal) < 256 else np.intp) > 1
    if not several.any():
        return None
    shared = np.ones(equal.shape)
    before = np.cumsum(equal[:, several], axis=0)
    shared[:, several] = 0.5 ** (before[-1:] - np.maximum(before - 1, 1))
    return shared
