"""Functions of containers as functions of arrays, and parameters in containers as one vector."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from codegen.machine.calls.arguments import numbers_of
from codegen.machine.calls.kernel import Kernel
from codegen.records import dataclass
from symad.compiling.native import compile
from symad.errors import ArgumentError
from symad.tracing.calling.function_names import name_of, positional
from symad.tracing.calling.running import callee
from symad.tracing.values.containers import Structure, check_structure, flatten, shape_of, unflatten
from symad.tracing.values.node_operands import holds_traced


class FlatFunction:
    """A function of containers of arrays, called with the arrays; with `joined` its result is one vector.

    >>> flat = FlatFunction(lambda p: (p["a"], 2 * p["b"]), flatten(({"a": 1.0, "b": 2.0},))[1], joined=True)
    >>> flat(1.0, 2.0)
    array([1., 4.])
    """

    def __init__(self, f: Callable[..., Any], structure: Structure, *, joined: bool) -> None:
        self.f, self.structure, self.joined = f, structure, joined
        self.__name__ = name_of(f)

    def __call__(self, *leaves: Any) -> Any:
        """Return the result for these arrays."""
        result = callee(self.f)(*unflatten(self.structure, leaves))
        return np.concatenate([np.ravel(part) for part in flatten(result)[0]]) if self.joined else result


class FlattenedFunction:
    """A function of arrays, with the structure of its containers of arguments and results.

    `several` says whether the tool knows functions with several results.

    >>> f = lambda p: {"sum": p["a"] + p["b"], "both": np.stack([p["a"], p["b"]])}
    >>> made = FlattenedFunction(f, ({"a": 1.0, "b": 2.0},))
    >>> made.together(made.function(*made.apart(({"a": 3.0, "b": 4.0},), {})))
    {'sum': array(7.), 'both': array([3., 4.])}
    """

    def __init__(self, f: Callable[..., Any], examples: tuple[Any, ...], *, several: bool = False) -> None:
        self._f = f
        self.leaves, self._structure = flatten(examples)
        self._plain: bool = len(self.leaves) == len(examples) and all(map(operator.is_, self.leaves, examples))
        self.function: Callable[..., Any] = f if self._plain else FlatFunction(f, self._structure, joined=False)
        self.kernel: Kernel = compile(self.function, *self.leaves)
        self._shapes: list[tuple[int, ...]] = [output.shape for output in self.kernel.declared.outputs]
        as_it_is = self.kernel.unpack is None and (several or len(self._shapes) == 1)
        self._result: Structure | None = None if as_it_is else _of(self.kernel)
        if not as_it_is:
            self.function = FlatFunction(f, self._structure, joined=True)
            self.kernel = compile(self.function, *self.leaves)

    def apart(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> list[Any]:
        """Return the arrays among arguments; ArgumentError for another structure."""
        if keywords:
            args = positional(self._f, args, keywords, "a tool knows arguments by their positions")
        if self._plain:
            return list(args)
        leaves, structure = flatten(args)
        check_structure(structure, self._structure, "the function takes")
        return leaves

    def together(self, result: Any) -> Any:
        """Return the containers of the user's function; their arrays are parts of the tool's vector."""
        if self._result is None:
            return result
        vectors = _split(result, self._shapes)
        return unflatten(
            self._result, [vector.reshape(shape) for vector, shape in zip(vectors, self._shapes, strict=True)]
        )


def _split(vector: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """Return the parts of a vector that are arrays of these shapes."""
    ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)]).tolist()
    return [vector[start:end] for start, end in pairwise(ends)]


def other_shapes(given: Iterable[Any], made_for: Iterable[Any], do: str) -> ArgumentError:
    """Return the refusal of arguments of other shapes than those of the examples."""
    why = f"the function was made for {', '.join(map(str, made_for))}"
    return ArgumentError(f"arguments of shapes {', '.join(map(str, given)) or 'none'}", why=why, do=do)


def _of(kernel: Kernel) -> Structure:
    """Return the structure of a kernel's result."""
    arrays = [np.zeros(output.shape) for output in kernel.declared.outputs]
    return flatten(tuple(arrays) if kernel.unpack is None else kernel.unpack(arrays))[1]


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
    def size(self) -> int:
        """How many numbers there are."""
        return sum(int(np.prod(shape)) for shape in self.shapes)

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
        pairs = zip(_split(vector, self.shapes), self.shapes, strict=True)
        leaves = [np.reshape(part, shape) if shape else number(part[0]) for part, shape in pairs]
        values: tuple[Any, ...] = unflatten(self.structure, leaves)
        return values
