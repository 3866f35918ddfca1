"""All partial derivatives of one order from directional Taylor coefficients, by a linear system.

The Taylor coefficient of order d along a direction s is a linear form in the partial derivatives of order d:

    a_d(s)  =  sum over multi-indices i with |i| = d of  s**i / i!  times  (the derivative of multi-index i)

With as many directions as multi-indices (here the multi-indices themselves are the directions) the partials are the
solution of a linear system. Its condition number grows fast with d, and so does the error of what is found.

Source: Griewank, Utke, Walther, "Evaluating higher derivative tensors by forward propagation of univariate Taylor
series", Math. Comp. 69 (2000).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass

MultiIndex = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class MixedPartials:
    """All partial derivatives of one order, by two routes.

    `interpolated[p]` and `exact[p]` are the derivative of multi-index `multi_indices[p]`. The first solves `matrix @
    partials = coefficients`, where `coefficients[q]` is the Taylor coefficient along `directions[q]`; the second is an
    entry of the derivative tensor. `operations` counts both routes (without the linear solve).
    """

    multi_indices: tuple[MultiIndex, ...]
    coefficients: Any
    interpolated: Any
    exact: Any
    operations: Mapping[str, int]

    @property
    def directions(self) -> NDArray[np.intp]:
        """The directions, one in each row: the multi-indices."""
        return np.array(self.multi_indices, dtype=np.intp)

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The linear system: the derivatives of one order to the Taylor coefficients along the directions."""
        return interpolation_matrix(self.multi_indices)

    @property
    def condition(self) -> float:
        """The condition number of the system in the 2-norm: the largest factor of rounding errors."""
        return float(np.linalg.cond(self.matrix))

    @property
    def error(self) -> float:
        """The largest difference of the two routes over the largest exact derivative (nan where all are zero)."""
        largest = np.max(np.abs(self.exact))
        return float(np.max(np.abs(self.interpolated - self.exact)) / largest) if largest else math.nan

    def __repr__(self) -> str:
        count, order = len(self.multi_indices), sum(self.multi_indices[0])
        return f"<MixedPartials: {count} of order {order}, condition number {self.condition:.2g}>"


def multi_indices(inputs: int, order: int) -> tuple[MultiIndex, ...]:
    """Return all multi-indices of an order.

    >>> multi_indices(2, 3)
    ((3, 0), (2, 1), (1, 2), (0, 3))
    """
    chosen = combinations_with_replacement(range(inputs), order)
    return tuple(tuple(places.count(k) for k in range(inputs)) for places in chosen)


def place_of(index: MultiIndex) -> tuple[int, ...]:
    """Return the place of a derivative in the tensor, sorted downwards.

    >>> place_of((2, 0, 1))
    (2, 0, 0)
    """
    return tuple(k for k in reversed(range(len(index))) for _ in range(index[k]))


def interpolation_matrix(indices: tuple[MultiIndex, ...]) -> NDArray[np.float64]:
    """Return the matrix of s**i / i! for the directions s (rows) and the multi-indices i (columns).

    >>> interpolation_matrix(multi_indices(2, 2))
    array([[2. , 0. , 0. ],
           [0.5, 1. , 0.5],
           [0. , 0. , 2. ]])
    """
    factorials = [math.prod(map(math.factorial, index)) for index in indices]
    return np.array(
        [
            [
                math.prod(map(pow, direction, index)) / factorial
                for index, factorial in zip(indices, factorials, strict=True)
            ]
            for direction in indices
        ]
    )
