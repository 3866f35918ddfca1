"""Lambdified: a kernel that is called as what `sympy.lambdify` returns is, with numbers, arrays or symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import sympy as sp

from codegen.errors import ArgumentError, LoweringError
from codegen.ir.program import Input
from codegen.ir.region import RolledProgram
from codegen.ir.unroll import unroll
from codegen.lambdified.argument_lists import Arguments, CallError
from codegen.lambdified.modules import tell
from codegen.lambdified.result_shapes import MATRIX, NUMBER, Results
from codegen.lanes import NumberType
from codegen.machine.build import compile_program
from codegen.machine.calls.arguments import Array, as_numbers
from codegen.machine.calls.kernel import Kernel


class Lambdified:
    """What `lambdify` returns: call it with numbers or arrays; `kernel` is the compiled kernel.

    Complex numbers are computed by a kernel of its own, which is compiled when the first ones come; symbols and
    expressions give expressions.

    >>> from codegen import lambdify
    >>> x, y = sp.symbols("x y")
    >>> f = lambdify([x, y], sp.sqrt(x) + y)
    >>> f(np.array([1, 4]), y=2), f(-1 + 0j, 0), f(y, x)
    (array([3., 4.]), 1j, x + sqrt(y))
    >>> f
    <Lambdified f(x, y) = sqrt(x) + y>
    """

    kernel: Kernel

    def __init__(
        self, kernel: Kernel, arguments: Arguments, results: Results, told: tuple[str, str],
        symbolic: Callable[..., Any] | None, numeric: Callable[..., Any] | None,
    ) -> None:  # fmt: skip
        self.kernel, self._arguments, self._results = kernel, arguments, results
        self._text, self.__doc__ = told
        self._symbolic, self._numeric = symbolic, numeric  # which make SymPy's functions
        self._complex: Kernel | None = None
        self._plain = arguments.plain
        shape = results.shape
        numbers = type(shape) in (list, tuple) and len(shape) > 0 and all(type(part) is str for part in shape)
        self._listed: Any = type(shape) if numbers and set(shape) == {NUMBER} else None  # floats and nothing else
        declared = kernel.program.arguments
        self._first = declared[0].shape if declared else ()  # an array of this shape is one point
        self._direct = results.shape in (NUMBER, MATRIX)  # what a kernel returns is the result

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Evaluate at one point, or at all points of arrays that broadcast against each other."""
        if keywords or not self._plain:
            args = tuple(self._arguments.apart(args, keywords))
        if args and (type(args[0]) is float or (type(args[0]) is np.ndarray and args[0].shape == self._first)):
            try:
                found = self.kernel(*args)
                if self._direct:
                    return found
                return self._results.fill(found) if self._listed is None else self._listed(found.tolist())
            except ArgumentError:  # a later argument is an array of points, or wrong and refused with its own message
                pass
        if len(args) != len(self.kernel.program.arguments):
            self._arguments.apart(args, {})  # which refuses it
        return self._of_any(args)

    def _of_any(self, args: tuple[Any, ...]) -> Any:
        """Evaluate at arrays, at expressions, or at complex numbers."""
        if any(isinstance(value, sp.Basic) for value in args):
            numbers = [_number(value) for value in args]
            if any(isinstance(value, sp.Basic) for value in numbers):
                return self._symbols(args)
            args = tuple(numbers)
        real = self.kernel.options.number.parts == 1
        if real and any(np.iscomplexobj(value) for value in args):
            return self._complex_numbers(args)
        library = _library(args)
        if library is not None:
            return _in_library(library, self._results.fill(self._broadcast(self.kernel, args)))
        try:
            return self._results.fill(self._broadcast(self.kernel, args))
        except ArgumentError:
            if self._numeric is None or not any(map(_has_ufuncs, args)):
                raise
            return self._numeric()(*args)  # values of others that know NumPy's functions, such as traced ones

    def _symbols(self, args: tuple[Any, ...]) -> Any:
        if self._symbolic is None:
            raise CallError(
                "expressions as arguments", why="the function computes with numbers",
                do="make it without modules='math', where it is made, and not of a pickle",
            )  # fmt: skip
        return self._symbolic()(*args)

    def _complex_numbers(self, args: tuple[Any, ...]) -> Any:
        """Evaluate by a kernel for complex numbers; by SymPy's own code where a function has no native form of them."""
        if self._complex is None:
            program = self.kernel.program
            straight = unroll(program) if isinstance(program, RolledProgram) else program
            try:
                self._complex = compile_program(
                    straight, **(asdict(self.kernel.options) | {"dtype": "complex128", "tier": "default"})
                )
            except (LoweringError, ArgumentError) as error:
                if self._numeric is None:
                    raise
                tell(str(error))
                return self._numeric()(*args)
        return self._results.fill(self._broadcast(self._complex, args))

    def _broadcast(self, kernel: Kernel, args: Sequence[Any]) -> Any:
        """Evaluate where an argument of shape s may have shape s + points; results have shape s + points."""
        declared = kernel.program.arguments
        number = kernel.options.number
        arrays = [_points(value, array, k, number) for k, (value, array) in enumerate(zip(args, declared, strict=True))]
        extra = [array.shape[len(given.shape) :] for array, given in zip(arrays, declared, strict=True)]
        try:
            points = np.broadcast_shapes(*extra)
        except ValueError as error:
            shapes = ", ".join(str(array.shape) for array in arrays)
            raise ArgumentError(
                f"shapes {shapes}", why="they do not broadcast", do="give arrays of one shape"
            ) from error
        if not points:
            return kernel(*arrays)
        outputs = kernel.program.outputs
        results = tuple(np.empty(output.shape + points, number.dtype) for output in outputs)
        inputs = [_leading(array, len(given.shape)) for array, given in zip(arrays, declared, strict=True)]
        out = tuple(_leading(array, len(output.shape)) for array, output in zip(results, outputs, strict=True))
        kernel.batch(*inputs, out=out)
        return results[0] if len(results) == 1 else results

    def __repr__(self) -> str:
        return f"<Lambdified f({', '.join(self._arguments.names)}) = {self._text}>"

    def __getstate__(self) -> dict[str, Any]:
        """Everything but SymPy's functions and the expressions."""
        kept = {"_symbolic": None, "_numeric": None, "_complex": None}
        return self.__dict__ | kept


def _library(args: Sequence[Any]) -> Any:
    """Return the functions of another library of which there is an array (Python's array API standard), or None."""
    others = (value for value in args if hasattr(type(value), "__array_namespace__"))
    found = next((value for value in others if not isinstance(value, np.ndarray | np.generic)), None)
    return None if found is None else found.__array_namespace__()


def _in_library(library: Any, value: Any) -> Any:
    if isinstance(value, list | tuple):
        parts = [_in_library(library, part) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    return library.asarray(value)


def _number(value: Any) -> Any:
    """Return a real number of SymPy as a float, anything else as it is."""
    if isinstance(value, sp.Expr) and value.is_number and value.is_extended_real:
        return float(value)
    return value


def _has_ufuncs(value: Any) -> bool:
    """Whether a value, or one in a list, takes NumPy's functions in its own way."""
    if isinstance(value, list | tuple):
        return any(map(_has_ufuncs, value))
    own = getattr(type(value), "__array_ufunc__", None)
    return own not in (None, np.ndarray.__array_ufunc__)


def _points(value: Any, declared: Input, position: int, number: NumberType) -> Array:
    array = as_numbers(value, declared, position, number)
    if 1 in declared.shape and len(declared.shape) == 2 and array.shape == (np.prod(declared.shape),):
        array = array.reshape(declared.shape)  # NumPy's vectors have one axis, those of SymPy two
    if array.shape[: len(declared.shape)] != declared.shape:
        where = f"argument {position} ({declared.name})"
        raise CallError(f"shape {array.shape}", where=where, why=f"the first axes must be {declared.shape}")
    return array


def _leading(array: Array, rank: int) -> Array:
    """The array with the axes of its points in front."""
    return array if rank == 0 else np.moveaxis(array, range(rank), range(-rank, 0))
