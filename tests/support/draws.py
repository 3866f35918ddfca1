"""What random programs are drawn from: one interface, served by a seed, or by Hypothesis, which shrinks.

A choice is an integer of a range or a number of [0, 1). A seed makes the same choices every time; all are kept, so that
Hypothesis can begin with them and make them smaller: towards 0, and fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple, TypeVar

import numpy as np
from hypothesis import strategies as st

T = TypeVar("T")
Choices = tuple[int | float, ...]
SEEDS = 10_000  # of data whose numbers are not worth to be shrunk one by one


class Draw:
    """Random choices: `below(n)` gives an integer of 0..n-1, `unit()` a number of [0, 1).

    `part` is called with what draws a part of a program: Hypothesis leaves out parts as a whole.
    """

    def __init__(
        self,
        below: Callable[[int], int],
        unit: Callable[[], float],
        part: Callable[[Callable[[], T]], T] = lambda make: make(),
    ) -> None:
        self._below, self._unit, self.part = below, unit, part
        self.choices: list[int | float] = []

    def below(self, count: int) -> int:
        """An integer from 0 to count - 1."""
        self.choices.append(self._below(count))
        return int(self.choices[-1])

    def unit(self) -> float:
        """A number of [0, 1)."""
        self.choices.append(self._unit())
        return self.choices[-1]

    def integer(self, low: int, high: int) -> int:
        """An integer from low to high."""
        return low + self.below(high - low + 1)

    def real(self, low: float, high: float) -> float:
        """A number from low to high."""
        return low + (high - low) * self.unit()

    def chance(self, probability: float) -> bool:
        """True so often."""
        return self.unit() < probability

    def choice(self, some: Sequence[T]) -> T:
        """One of some."""
        return some[self.below(len(some))]

    def several(self, some: Sequence[T], count: int) -> list[T]:
        """A few of some, the same ones perhaps."""
        return [some[int(self.unit() * len(some))] for _ in range(count)]

    def sample(self, some: Sequence[T], count: int) -> list[T]:
        """A few of some, each once at most."""
        pool, found = list(some), []
        for last in range(len(pool) - 1, len(pool) - 1 - count, -1):
            place = self.below(last + 1)
            found.append(pool[place])
            pool[place] = pool[last]
        return found

    def generator(self) -> np.random.Generator:
        """A generator of data."""
        return np.random.default_rng(self.below(SEEDS))


def seeded(seed: int) -> Draw:
    """What a seed makes."""
    random = Random(seed)
    return Draw(random.randrange, random.random)


class Drawn(NamedTuple):
    """A program, and the choices that lead to it."""

    made: Any
    choices: Choices


@st.composite
def drawn(draw: st.DrawFn, make: Callable[[Draw], Any]) -> Drawn:
    """The strategy of all that `make` draws."""
    units = st.floats(0, 1, exclude_max=True)
    choosing = Draw(
        lambda count: draw(st.integers(0, count - 1)),
        lambda: draw(units),
        lambda part: draw(st.none().map(lambda _: part())),
    )
    made = make(choosing)
    return Drawn(made, tuple(choosing.choices))
