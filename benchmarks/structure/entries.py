"""Entries of a derivative by their places, so that every candidate's layout can be compared with every other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Entries:
    """Values at sorted places, each place once; what is not there is 0."""

    places: Integers  # row * number of inputs + column
    values: Floats


def entries(rows: npt.ArrayLike, columns: npt.ArrayLike, values: npt.ArrayLike, size: int, lower: bool) -> Entries:
    """Return the sums of the values at every place; `lower` leaves out what is above the diagonal.

    >>> entries([1, 0, 1], [0, 1, 0], [1.0, 5.0, 2.0], 2, lower=True)
    Entries(places=array([2]), values=array([3.]))
    """
    r, c, v = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64), np.asarray(values, dtype=float)
    if lower and not (kept := r >= c).all():
        r, c, v = r[kept], c[kept], v[kept]
    places = r * size + c
    if (places[1:] > places[:-1]).all():
        return Entries(places, v)
    union, position = np.unique(places, return_inverse=True)
    return Entries(union, np.bincount(position, v, len(union)).astype(float, copy=False))


def added(parts: Sequence[Entries]) -> Entries:
    """Return the sum of several matrices."""
    places = np.concatenate([part.places for part in parts])
    return entries(np.zeros_like(places), places, np.concatenate([part.values for part in parts]), 0, lower=False)


def difference(found: Entries, right: Entries, each: bool = False) -> float:
    """Return the largest difference relative to the largest right entry, or each to its own; NaN is infinite.

    >>> difference(entries([0], [0], [1.0], 2, False), entries([0, 0], [0, 1], [1.0, 4.0], 2, False))
    1.0
    """
    both = added([found, Entries(right.places, -right.values)])
    scale = np.abs(right.values).max(initial=0.0)
    if each:
        scale = added([right, Entries(found.places, np.zeros(len(found.places)))]).values
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = np.abs(both.values / scale).max(initial=0.0)
    return float("inf") if np.isnan(worst) else float(worst)
