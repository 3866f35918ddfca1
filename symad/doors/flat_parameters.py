"""The layout of arrays, numbers and containers in one vector of parameters."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from codegen.machine.calls.arguments import numbers_of
from codegen.records import dataclass
from symad.errors import ArgumentError
from symad.tracing.values.containers import Structure, check_structure, flatten, shape_of, unflatten
from symad.tracing.values.node_operands import holds_traced


@dataclass(frozen=True)
class FlatParameters:
    """The shapes of parameters that follow each other in one vector.

    >>> laid = FlatParameters.of((1.0, np.array([[2.0, 3.0]])))
    >>> laid.flat((1.0, np.array([[2.0, 3.0]]))), laid.split(np.arange(3.0))[1]
    (array([1., 2., 3.]), array([[1., 2.]]))
    """

    shapes: tuple[tuple[int, ...], ...]
    structure: Structure

    @classmethod
    def of(cls, parameters: Any) -> FlatParameters:
        """Return the shapes of parameters; ArgumentError unless they are a tuple."""
        if not isinstance(parameters, tuple):
            raise ArgumentError(
                f"parameters of type {type(parameters).__name__}", do="give a tuple of them, such as (p,)"
            )
        leaves, structure = flatten(parameters)
        return cls(tuple(map(np.shape, leaves)), structure)

    @property
    def sizes(self) -> list[int]:
        """How many numbers each of them has."""
        return [int(np.prod(shape)) for shape in self.shapes]

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return sum(self.sizes)

    def flat(self, values: tuple[Any, ...]) -> Any:
        """Return parameters as a vector. Without parameters it is one 0, since no kernel takes an empty array.

        ArgumentError for others than those of these shapes.
        """
        leaves, structure = flatten(values)
        given = tuple(map(shape_of, leaves))
        if given == self.shapes:
            check_structure(structure, self.structure, "the system was made for")
        else:
            raise ArgumentError(
                f"parameters of shapes {', '.join(map(str, given)) or 'none'}",
                why=f"the system was made for {', '.join(map(str, self.shapes)) or 'none'}",
                do="give parameters of the same shapes in the same containers",
            )
        numbers = [leaf if holds_traced((leaf,)) else numbers_of(leaf, "a parameter") for leaf in leaves]
        return np.concatenate([np.ravel(value) for value in numbers]) if numbers else np.zeros(1)

    def split(self, vector: Any, number: Callable[[Any], Any] = lambda element: element) -> tuple[Any, ...]:
        """Return the parameters that lie in a vector, those without axes by `number`."""
        ends = np.cumsum([0, *self.sizes]).tolist()
        parts = [vector[start:end] for start, end in pairwise(ends)]
        pairs = zip(parts, self.shapes, strict=True)
        leaves = [np.reshape(part, shape) if shape else number(part[0]) for part, shape in pairs]
        values: tuple[Any, ...] = unflatten(self.structure, leaves)
        return values
