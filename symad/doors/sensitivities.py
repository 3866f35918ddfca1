"""Sensitivities of any order: derivatives of the state in the parameters, as one differential system.

The derivative of y' = f(t, y, p) in a number of p is a differential equation again, the variational equation. Those of
one order are named by words: the numbers of the parameters that one differentiates in, in ascending order, so that
equal derivatives are there once.

Source: Hairer, Norsett and Wanner, "Solving Ordinary Differential Equations I" (1993), section I.14.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from symad.tracing.calling.running import callee
from symad.tracing.control.maps import vmap
from symad.transforms.first_order import jvp

Function = Callable[..., Any]
Word = tuple[int, ...]


@dataclass(frozen=True)
class Sensitivities:
    """A state of `size` numbers and its derivatives in `parameters` numbers up to an order: rows, the state first.

    >>> Sensitivities(1, 2, 2).words
    [(), (0,), (1,), (0, 0), (0, 1), (1, 1)]
    """

    size: int
    parameters: int
    order: int

    @cached_property
    def words(self) -> list[Word]:
        """The parameters that each row is differentiated in."""
        return [word for k in range(self.order + 1) for word in self._of_order(k)]

    def _of_order(self, order: int) -> list[Word]:
        return list(combinations_with_replacement(range(self.parameters), order))

    @cached_property
    def _rows(self) -> dict[Word, int]:
        return {word: row for row, word in enumerate(self.words)}

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of all rows."""
        return len(self.words), self.size

    def rows(self, order: int) -> NDArray[np.intp]:
        """Return the rows of all derivatives of one order, an axis of parameters for each."""
        numbers = np.empty((self.parameters,) * order, dtype=np.intp)
        for place in np.ndindex(numbers.shape):
            numbers[place] = self._rows[tuple(sorted(place))]
        return numbers

    @property
    def above(self) -> NDArray[np.intp]:
        """For each row and each parameter, which row of the next order is its derivative."""
        higher = Sensitivities(self.size, self.parameters, self.order + 1)._rows
        return np.array(
            [[higher[tuple(sorted((*word, j)))] for j in range(self.parameters)] for word in self.words], dtype=np.intp
        ).reshape(len(self.words), self.parameters)

    def right(self, f: Function) -> Function:
        """Return the right-hand side of all rows, flat, from f(t, y, q)."""
        return partial(self._extended, f) if self.order else f

    def _extended(self, f: Function, t: Any, z: Any, q: Any) -> Any:
        f = callee(f)
        rows = np.reshape(z, self.shape)
        parts = [np.reshape(f(t, rows[0], q), (1, self.size))]
        for order in range(1, self.order + 1):
            places, along = self._mixed(order)
            parts.append(vmap(lambda given, e: mixed(lambda q, y: f(t, y, q), q, list(given), e))(rows[places], along))
        return np.ravel(np.concatenate(parts))

    def initial(self, start: Function) -> Function:
        """Return all rows at the beginning, flat, from start(q)."""

        def extended(q: Any) -> Any:
            unit = np.eye(self.parameters)
            return np.concatenate([mixed(lambda q: np.ravel(start(q)), q, [], unit[list(word)]) for word in self.words])

        return extended

    def _mixed(self, order: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return for the words of an order the rows of all parts of each, and the directions of each.

        Part number b has the letters that are bits of b.
        """
        words = self._of_order(order)
        parts = [[[letter for k, letter in enumerate(word) if b >> k & 1] for b in range(2**order)] for word in words]
        places = [[self._rows[tuple(part)] for part in of_word] for of_word in parts]
        return np.array(places, dtype=np.intp), np.eye(self.parameters)[np.array(words, dtype=np.intp)]


def mixed(f: Function, q: Any, parts: Sequence[Any], along: Any) -> Any:
    """Return the mixed derivative of f(q, y) along directions of q, once in each.

    `parts` are derivatives of y in the directions that are bits of their numbers; none where f is a function of q.
    Its depth is the order.

    >>> mixed(lambda q, y: q[0] * y, np.array([2.0]), [3.0, 5.0], np.ones((1, 1)))  # 3 + 2 * 5
    13.0
    """
    if len(along) == 0:
        return f(q, *parts)
    half = len(parts) // 2

    def below(q: Any, *low: Any) -> Any:
        return mixed(f, q, low, along[:-1])

    return jvp(below, (q, *parts[:half]), (along[-1], *parts[half:]))[1]
