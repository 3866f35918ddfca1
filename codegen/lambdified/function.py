"""The function that `lambdify` returns. It takes numbers, arrays or symbols."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import sympy as sp

from codegen.errors import ArgumentError, LoweringError
from codegen.ir.program import Input
from codegen.ir.region import RolledProgram
from codegen.ir.unroll import unroll
from codegen.lambdified.modules import Theirs, tell
from codegen.lambdified.structures import MATRIX, NUMBER, Arguments, CallError, Results
from codegen.lanes import NumberType
from codegen.machine.build import compile_program
from codegen.machine.calls.arguments import Array, as_numbers, in_positions, signature_of
from codegen.machine.calls.kernel import Kernel

FLOAT, COMPLEX, INTEGER, OTHER = "float", "complex", "integer", "other"
_EXACT = 2**53  # integers up to here are doubles
_BY_TYPE = {float: FLOAT, np.float64: FLOAT, complex: COMPLEX, np.complex128: COMPLEX}
DOUBLE = np.dtype(float)
_BY_DTYPE = {DOUBLE: FLOAT, np.dtype(complex): COMPLEX}


def as_floats(values: Sequence[Any]) -> tuple[list[Any], bool] | None:
    """Return floats and arrays of float64, and whether numbers of NumPy's are among them: at every call.

    Integers that are doubles go with them; None for other values, and integers alone.

    >>> as_floats((0.5, np.float64(1.5), 2)), as_floats((1, 2)), as_floats((1.0, 2**60)), as_floats((1.0, True))
    (([0.5, 1.5, 2.0], True), None, None, None)
    """
    floats: list[Any] = []
    real, of_numpy = not values, False
    for value in values:
        kind = type(value)
        if kind is float:
            real = True
        elif kind is np.ndarray:
            if value.dtype is not DOUBLE:
                return None
            real = True
        elif kind is np.float64:
            real = of_numpy = True
        elif kind is not int or not -_EXACT <= value <= _EXACT:
            return None
        floats.append(value if kind is float or kind is np.ndarray else float(value))
    return (floats, of_numpy) if real else None


def kinds_of(values: Any) -> set[str]:
    """Return the kinds of numbers; NumPy makes a small integer beside a float a float.

    >>> sorted(kinds_of((1.0, [np.ones(2), 2])))
    ['float', 'integer']
    >>> kinds_of((2**53 + 1,)), kinds_of((np.float32(1),)), kinds_of((True,)), kinds_of((np.ma.array([1.0]),))
    ({'other'}, {'other'}, {'other'}, {'other'})
    """
    kinds: set[str] = set()
    for value in values:
        kind = type(value)
        if kind in _BY_TYPE:
            kinds.add(_BY_TYPE[kind])
        elif kind is np.ndarray:
            kinds.add(_BY_DTYPE.get(value.dtype, OTHER))
        elif kind is int:
            kinds.add(INTEGER if abs(value) <= _EXACT else OTHER)
        elif kind is list or kind is tuple:
            kinds |= kinds_of(value)
        elif kind is not str:  # texts are refused
            kinds.add(OTHER)
    return kinds


_OTHERS = frozenset({OTHER})
_IN_PYTHON = frozenset({int, np.int64, np.int32, np.float32})  # alone, they are given to SymPy's own function


class Lambdified:
    """What `lambdify` returns: call it with numbers or arrays; `kernel` is the compiled kernel.

    Complex numbers are computed by a kernel of its own, which is compiled when the first ones come; symbols, SymPy's
    numbers and expressions give expressions. Integers alone, float32, labels, units and whatever else NumPy does not
    compute in doubles is given to SymPy's own function.

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
        theirs: Theirs | None, *, symbolic: bool = True,
    ) -> None:  # fmt: skip
        self.kernel, self._arguments, self._results = kernel, arguments, results
        self._text, self.__doc__ = told
        self._theirs, self._symbolic = theirs, symbolic
        self._others = None if theirs is None or theirs.modules == "native" else theirs  # of what is no double
        self._complex: Kernel | None = None
        self._plain = arguments.plain
        self.__name__ = self.__qualname__ = "lambdified"
        self.__signature__ = signature_of(arguments.names)
        shape = results.shape
        numbers = type(shape) in (list, tuple) and len(shape) > 0 and all(type(part) is str for part in shape)
        self._listed: Any = type(shape) if numbers and set(shape) == {NUMBER} else None  # floats and nothing else
        declared = kernel.program.arguments
        self._arity = len(declared)
        self._first = declared[0].shape if declared else ()  # an array of this shape is one point
        self._on_arrays: Callable[..., Any] | None = None  # made at the first call with arrays
        self._direct = results.shape in (NUMBER, MATRIX)  # the kernel's result is the result

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Evaluate at one point, or at all points of arrays that broadcast against each other."""
        if self._on_arrays is not None and not keywords:
            values = self._on_arrays(*args)
            if values is not NotImplemented:
                return values if self._listed is None else self._listed(values)
        if keywords:
            args = in_positions(args, keywords, self._arguments.names)
        originals = args
        if not self._plain:
            args = tuple(self._arguments.apart(args))
        taken = as_floats(args)
        if taken is not None and (values := self._of_floats(taken[0])) is not NotImplemented:
            return _in_library(_numpys, values) if taken[1] else values
        if len(args) != self._arity:
            self._arguments.apart(args)  # which refuses it
        if taken is None and self._others is not None and _IN_PYTHON.issuperset(map(type, args)):
            return self._others.scipy(*originals)
        return self._of_any(args, originals)

    def _of_floats(self, args: Sequence[Any]) -> Any:
        """Evaluate at floats and arrays of float64; NotImplemented where these are no single point, nor all alike."""
        if self._on_arrays is not None and (values := self._on_arrays(*args)) is not NotImplemented:
            return values if self._listed is None else self._listed(values)
        if not args or not (type(args[0]) is float or args[0].shape == self._first):
            return NotImplemented
        try:
            values = self.kernel(*args)
        except ArgumentError:  # a later argument is an array of points, or wrong and refused with its own message
            return NotImplemented
        if self._direct:
            return values
        return self._results.fill(values) if self._listed is None else self._listed(values.tolist())

    def _of_any(self, args: tuple[Any, ...], originals: tuple[Any, ...]) -> Any:
        """Evaluate at arrays, expressions, complex numbers, and other values that NumPy does not compute in doubles."""
        if any(isinstance(value, sp.Basic) for value in args):
            numbers = args if self._symbolic and not any(map(_axes, args)) else tuple(map(_number, args))
            if any(isinstance(value, sp.Basic) for value in numbers):
                if self._theirs is None or not self._symbolic:
                    raise CallError(
                        "expressions as arguments", why="the function computes with numbers",
                        do="make it without modules='math', where it is made, and not of a pickle",
                    )  # fmt: skip
                return self._theirs.function("sympy")(*originals)
            args = originals = numbers
        library, args = _of_library(args)
        kinds = kinds_of(args)
        inexact = kinds & _OTHERS or kinds == {INTEGER}
        if inexact and self._others is not None and not self._has_matrices_at_points(args):
            return self._others.scipy(*originals)
        if self.kernel.options.number.parts == 1 and COMPLEX in kinds:
            return self._complex_numbers(args)
        values = self._results.fill(self._broadcast(self.kernel, args))
        return values if library is None else _in_library(library, values)

    def _has_matrices_at_points(self, args: Sequence[Any]) -> bool:
        """Whether matrices are asked for at many points, which SymPy's functions do not give."""
        declared = self.kernel.program.arguments
        many = any(_axes(value) > len(array.shape) for value, array in zip(args, declared, strict=True))
        return many and bool(self._results.matrices)

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
                if self._others is None:
                    raise
                tell(str(error))
                return self._others.scipy(*args)
        return self._results.fill(self._broadcast(self._complex, args))

    def _broadcast(self, kernel: Kernel, args: Sequence[Any]) -> Any:
        """Evaluate where an argument of shape s may have shape s + points; results have shape s + points."""
        declared = kernel.program.arguments
        number = kernel.options.number
        arrays = [_points(value, array, k, number) for k, (value, array) in enumerate(zip(args, declared, strict=True))]
        extra = [array.shape[len(declaration.shape) :] for array, declaration in zip(arrays, declared, strict=True)]
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
        inputs = [_leading(array, len(declaration.shape)) for array, declaration in zip(arrays, declared, strict=True)]
        out = tuple(_leading(array, len(output.shape)) for array, output in zip(results, outputs, strict=True))
        kernel.batch(*inputs, out=out)
        if kernel is self.kernel and (self._listed is not None or self._results.shape == NUMBER):
            self._on_arrays = kernel.array_call()
        return results[0] if len(results) == 1 else results

    def __repr__(self) -> str:
        return f"<Lambdified f({', '.join(self._arguments.names)}) = {self._text}>"

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the kernel for complex numbers, and the expressions where they are too deep for a pickle."""
        kept = self._theirs
        try:
            pickle.dumps(kept)
        except (RecursionError, pickle.PicklingError, AttributeError, TypeError):
            kept = None
        others = None if kept is None else self._others
        return self.__dict__ | {"_theirs": kept, "_others": others, "_complex": None, "_on_arrays": None}


def _of_library(args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Return a converter of results to arrays of JAX or numbers of NumPy, None without any; and the arguments.

    Arrays of JAX among the arguments become NumPy's.
    """
    jax = sys.modules.get("jax")
    if jax is None or not any(_is_of_jax(value, jax) for value in args):
        return (_numpys if any(type(value) is np.float64 for value in args) else None), args
    dtype = jax.numpy.result_type(*[value for value in args if isinstance(value, float | int | np.ndarray | jax.Array)])
    plain = tuple(np.asarray(value, float) if _is_of_jax(value, jax) else value for value in args)

    def converted(value: Any) -> Any:
        array = np.asarray(value)
        return jax.numpy.asarray(array, dtype=None if array.dtype == bool else dtype)

    return converted, plain


def _numpys(value: Any) -> Any:
    """Return a number or truth value of Python as NumPy's, anything else unchanged."""
    return np.float64(value) if type(value) is float else np.bool_(value) if type(value) is bool else value


def _axes(value: Any) -> int:
    """Return how many axes a value has, also where its class makes no array of it."""
    return np.ndim(value) if isinstance(value, list | tuple) else getattr(value, "ndim", 0)


def _is_of_jax(value: Any, jax: Any) -> bool:
    """Whether a value is an array of floats of JAX's, and not one that JAX traces."""
    return isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer) and value.dtype.kind == "f"


def _in_library(library: Any, value: Any) -> Any:
    if isinstance(value, list | tuple):
        parts = [_in_library(library, part) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    return library(value)


def _number(value: Any) -> Any:
    """Return a real number of SymPy as a float, anything else unchanged."""
    if isinstance(value, sp.Expr) and value.is_number and value.is_extended_real:
        return float(value)
    return value


def _points(value: Any, declared: Input, position: int, number: NumberType) -> Array:
    array = as_numbers(value, declared, position, number)
    if 1 in declared.shape and len(declared.shape) == 2 and array.shape == (np.prod(declared.shape),):
        array = array.reshape(declared.shape)  # NumPy's vectors have one axis, those of SymPy two
    if array.shape[: len(declared.shape)] != declared.shape:
        where = f"argument {position} ({declared.name})"
        raise CallError(f"shape {array.shape}", where=where, why=f"the first axes must be {declared.shape}")
    return array


def _leading(array: Array, rank: int) -> Array:
    """Return the array with the axes of its points in front."""
    return array if rank == 0 else np.moveaxis(array, range(rank), range(-rank, 0))
