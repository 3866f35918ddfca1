"""A function of arrays as a kernel, with Jacobian-vector products as kernels of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from codegen.machine.calls.arguments import numbers_of
from codegen.machine.calls.kernel import Kernel
from codegen.records import dataclass
from symad.compiling.native import compile
from symad.doors.callbacks import Array
from symad.doors.flat_functions import FlattenedFunction
from symad.errors import ArgumentError
from symad.tracing.calling.function_names import check_call, name_of
from symad.tracing.calling.running import callee
from symad.transforms.linear_transforms import jvp, vjp

Function = Callable[..., Any]


class DifferentiableKernel:
    """A kernel that returns an array or a tuple of arrays. Its products are compiled on demand.

    >>> square = DifferentiableKernel(lambda x: x * x, (np.ones(2),))
    >>> pulled = square.pullback((0,))
    >>> x, w = np.array([1.0, 3.0]), np.array([1.0, 10.0])
    >>> pulled.kernel(x, w), pulled.pullback((1,)).kernel(x, w, w)
    (array([ 2., 60.]), array([ 2., 60.]))
    """

    kernel: Kernel
    arguments: int
    shapes: tuple[tuple[int, ...], ...]

    def __init__(self, f: Function, examples: Sequence[Any], kernel: Kernel | None = None) -> None:
        self._examples: tuple[Array, ...] = tuple(numbers_of(example, "an example") for example in examples)
        self.kernel = compile(f, *self._examples) if kernel is None else kernel
        self.arguments = len(self._examples)
        self.shapes = tuple(output.shape for output in self.kernel.declared.outputs)
        self._f = f
        self._products: dict[Product, DifferentiableKernel] = {}

    @property
    def argument_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the arguments."""
        return tuple(example.shape for example in self._examples)

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.kernel.declared.name

    def pullback(self, wanted: tuple[int, ...]) -> DifferentiableKernel:
        """Return the function that maps arguments and cotangents of the results to cotangents of some arguments."""
        return self._product(Pullback(self._f, self.arguments, wanted), [np.ones(shape) for shape in self.shapes])

    def pushforward(self, moving: tuple[int, ...]) -> DifferentiableKernel:
        """Return the function of arguments and tangents of some of them that gives the tangents of the results."""
        return self._product(Pushforward(self._f, self.arguments, moving), [self._examples[k] for k in moving])

    def _product(self, f: Pullback | Pushforward, more: Sequence[Array]) -> DifferentiableKernel:
        if f not in self._products:
            self._products[f] = DifferentiableKernel(f, (*self._examples, *more))
        return self._products[f]


def differentiable(f: Function, examples: tuple[Any, ...], tool: str) -> tuple[FlattenedFunction, DifferentiableKernel]:
    """Return the kernel of a function of containers, and how these come apart; ArgumentError, naming the tool, for one.

    A kernel has no derivatives.
    """
    if isinstance(f, Kernel):
        raise ArgumentError(
            f"a kernel for {tool}", why="its derivatives are those of the function that it was compiled from",
            do="give the function, and examples of its arguments",
        )  # fmt: skip
    check_call(f, examples)
    flat = FlattenedFunction(f, examples, several=True)
    return flat, DifferentiableKernel(flat.function, flat.leaves, flat.kernel)


def real_array(value: Any, number: int) -> Array:
    """Return a new array of an argument; ArgumentError for labels, units and complex numbers."""
    return np.array(numbers_of(value, f"argument {number}"))


@dataclass(frozen=True)
class Product:
    """A function of the arguments of f and of vectors, with f differentiated in some arguments."""

    f: Function
    arguments: int
    places: tuple[int, ...]

    @property
    def __name__(self) -> str:
        return f"{type(self).__qualname__.lower()}_of_{name_of(self.f)}"

    def _parts(self, given: Sequence[Any]) -> tuple[Function, tuple[Any, ...], tuple[Any, ...]]:
        """Return the function of some arguments, these, and the vectors."""
        args, vectors = given[: self.arguments], tuple(given[self.arguments :])

        def of_some(*values: Any) -> Any:
            every = list(args)
            for place, value in zip(self.places, values, strict=True):
                every[place] = value
            return callee(self.f)(*every)

        return of_some, tuple(args[k] for k in self.places), vectors


class Pullback(Product):
    """The product of cotangents of the results with the Jacobian in some arguments."""

    def __call__(self, *given: Any) -> Any:
        """Return the cotangents of these arguments."""
        f, primals, slopes = self._parts(given)
        cotangents = vjp(f, *primals)[1](slopes if len(slopes) > 1 else slopes[0])
        return cotangents if len(cotangents) > 1 else cotangents[0]


class Pushforward(Product):
    """The product of the Jacobian in some arguments with their tangents."""

    def __call__(self, *given: Any) -> Any:
        """Return the tangents of the results."""
        f, primals, tangents = self._parts(given)
        return jvp(f, primals, tangents)[1]
