"""Set operations: unique elements, unions, differences, as selections of sorted elements.

Which elements are kept is piecewise constant; those that are keep their derivatives: of equal ones the first in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symad.tracing.numpy.reduce import traced
from symad.tracing.numpy.registry import implements
from symad.tracing.values.traced import refuse_function


def _sorted(ar: Any, equal_nan: bool) -> tuple[Any, Any, Any]:
    """Return the order of the elements, the elements in it, and whether each is the first of its value."""
    flat = np.ravel(traced(ar))
    order = np.argsort(flat, kind="stable")
    ranked = np.take(flat, order)
    first, second = ranked[:-1], ranked[1:]
    differ = first != second
    if equal_nan:
        differ = differ & ~(np.isnan(first) & np.isnan(second))
    return order, ranked, np.concatenate([np.ones(min(len(flat), 1), dtype=bool), differ])


@implements(np.unique)
def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: Any = None,
    *, equal_nan: bool = True, sorted: bool = True,
) -> Any:  # fmt: skip
    """The elements in order, each once; where they are, which is which, and how many there are."""
    if axis is not None:
        refuse_function("np.unique with axis=", "rows are no numbers that could be sorted", "leave axis out")
    order, ranked, is_first = _sorted(ar, equal_nan)
    if not (return_index or return_inverse or return_counts):
        return ranked[is_first]
    places = np.flatnonzero(is_first)
    numbers = np.cumsum(np.where(is_first, 1, 0)) - 1
    back = np.reshape(np.take(numbers, np.argsort(order, kind="stable")), np.shape(ar))
    counts = np.concatenate([places[1:], [len(ranked)]]) - places
    wanted = zip((return_index, return_inverse, return_counts), (np.take(order, places), back, counts), strict=True)
    return (ranked[is_first], *[part for asked, part in wanted if asked])


def _kept(ar: Any, is_kept: Callable[[Any], Any]) -> Any:
    _, ranked, is_first = _sorted(ar, equal_nan=True)
    return ranked[is_first & is_kept(ranked)]


@implements(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The elements that are in both arrays."""
    if return_indices:
        refuse_function("np.intersect1d with return_indices=True", "only the elements are traced", "leave it out")
    return _kept(ar1, lambda ranked: np.isin(ranked, ar2))


@implements(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """The elements that are in one of two arrays only."""
    both = np.concatenate([np.ravel(ar1), np.ravel(ar2)])
    return _kept(both, lambda ranked: np.isin(ranked, ar1) ^ np.isin(ranked, ar2))


@implements(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """The elements that are in the first array only."""
    if assume_unique:
        flat = np.ravel(traced(ar1))
        return flat[~np.isin(flat, ar2)]
    return _kept(ar1, lambda ranked: ~np.isin(ranked, ar2))
