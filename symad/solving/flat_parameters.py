"""Parameters as one vector of numbers: how arrays and numbers lie in it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from codegen.records import dataclass
from symad.errors import ArgumentError


@dataclass(frozen=True)
class FlatParameters:
    """The shapes of parameters that lie one behind the other in a vector.

    >>> laid = FlatParameters.of((1.0, np.array([[2.0, 3.0]])))
    >>> laid.flat((1.0, np.array([[2.0, 3.0]]))), laid.split(np.arange(3.0))[1]
    (array([1., 2., 3.]), array([[1., 2.]]))
    """

    shapes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, parameters: Any) -> FlatParameters:
        """Return the shapes of parameters; ArgumentError for what is no tuple of them."""
        if not isinstance(parameters, tuple):
            raise ArgumentError(
                f"parameters of type {type(parameters).__name__}", do="give a tuple of arrays and numbers, such as (p,)"
            )
        return cls(tuple(map(np.shape, parameters)))

    @property
    def sizes(self) -> list[int]:
        """How many numbers each of them has."""
        return [int(np.prod(shape)) for shape in self.shapes]

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return sum(self.sizes)

    def flat(self, values: tuple[Any, ...]) -> Any:
        """Return parameters as a vector, one 0 where there are none: no kernel takes an empty array.

        ArgumentError for others than those of these shapes.
        """
        given = tuple(map(np.shape, values))
        if given != self.shapes:
            raise ArgumentError(
                f"parameters of shapes {', '.join(map(str, given)) or 'none'}",
                why=f"the system was made for {', '.join(map(str, self.shapes)) or 'none'}",
            )
        return np.concatenate([np.ravel(value) for value in values]) if values else np.zeros(1)

    def split(self, vector: Any) -> tuple[Any, ...]:
        """Return the parameters that lie in a vector."""
        ends = np.cumsum([0, *self.sizes]).tolist()
        parts = [vector[start:end] for start, end in pairwise(ends)]
        return tuple(
            np.reshape(part, shape) if shape else part[0] for part, shape in zip(parts, self.shapes, strict=True)
        )
