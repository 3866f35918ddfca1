"""lambdify: a fast replacement for sympy.lambdify, with native code behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Unpack, get_args

import numpy as np
import sympy as sp

from codegen.errors import ArgumentError
from codegen.expressions.sympy_forms import can_be_input
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.program import Input, Program
from codegen.ir.region import RolledProgram
from codegen.lanes import NumberType
from codegen.loops.loop import StraightError
from codegen.loops.roll import Roll, repeats_enough, roll_program
from codegen.machine.build import compile_program
from codegen.machine.calls.arguments import Array, as_numbers
from codegen.machine.calls.kernel import Kernel
from codegen.machine.storage.cache import Setting
from codegen.options import OPTIONS, OptionFields, Options, check_names
from codegen.pricing.price import rolled_work, straight_work
from codegen.pricing.price_table import Price, Way, cheapest


class Lambdified:
    """What `lambdify` returns: call it with numbers or arrays; `kernel` is the compiled kernel.

    >>> x = sp.Symbol("x")
    >>> lambdify(x, x + 1)(np.array([1, 2]))
    array([2., 3.])
    """

    __slots__ = ("_collected", "_shape", "kernel")

    kernel: Kernel

    def __init__(self, kernel: Kernel, shape: Any, collected: bool) -> None:
        self.kernel, self._shape = kernel, shape
        self._collected = collected  # the scalars of a nested result are the first output, one array

    def __call__(self, *args: Any) -> Any:
        """Evaluate at one point, or at all points of arrays that broadcast against each other."""
        results = self._at_point(args) if args and type(args[0]) is float else self._broadcast(args)
        if self._shape in (SCALAR, MATRIX):  # equal, not identical, after a pickle
            return results
        results = results if isinstance(results, tuple) else (results,)
        scalars = iter(results[0] if self._collected else ())
        return _fill(self._shape, scalars, iter(results[1:] if self._collected else results))

    def _at_point(self, args: Sequence[Any]) -> Any:
        try:
            return self.kernel(*args)
        except ArgumentError:  # a later argument is an array of points, or wrong and refused with its own message
            return self._broadcast(args)

    def _broadcast(self, args: Sequence[Any]) -> Any:
        """Evaluate where an argument of shape s may have shape s + points; results have shape s + points."""
        declared = self.kernel.program.arguments
        if len(args) != len(declared):
            raise ArgumentError(f"{len(args)} arguments", why=f"the function takes {len(declared)}")
        number = self.kernel.options.number
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
            return self.kernel(*arrays)
        outputs = self.kernel.program.outputs
        results = tuple(np.empty(output.shape + points, number.dtype) for output in outputs)
        inputs = [_leading(array, len(given.shape)) for array, given in zip(arrays, declared, strict=True)]
        out = tuple(_leading(array, len(output.shape)) for array, output in zip(results, outputs, strict=True))
        self.kernel.batch(*inputs, out=out)
        return results[0] if len(results) == 1 else results


SCALAR, MATRIX = "scalar", "matrix"


def lambdify(
    args: Any,
    expressions: Any,
    modules: Any = None,
    *,
    roll: Roll = "auto",
    cache: Setting = None,
    **options: Unpack[OptionFields],
) -> Lambdified:
    """Return a function of numbers or arrays that evaluates SymPy expressions natively.

    `args` is one argument or a list of arguments: symbols, x(t) and its derivatives, (nested) lists or matrices of
    these, an IndexedBase or MatrixSymbol of known shape. `expressions` is a scalar (result: float), a list or tuple,
    possibly nested (same structure), or a matrix (2-D array). An argument of shape s also takes arrays of shape s +
    points; all points broadcast. `modules` is accepted for sympy.lambdify's sake and ignored; the options are those of
    `Options`, and `cache` that of `compile_program`. `roll` says whether what repeats becomes loops, whose code does
    not grow with the number of repetitions: "auto" where that is cheaper to build and call, "always" (ArgumentError
    with the reason where nothing repeats), or "never". UnboundSymbolError for a symbol that is no argument,
    LoweringError for a head without a native lowering.

    >>> x, y = sp.symbols("x y")
    >>> f = lambdify([x, y], [x + y, sp.Matrix([[x, y]])])
    >>> f(1.0, 2.0)
    [3.0, array([[1., 2.]])]
    """
    check_names(options, OPTIONS | {"roll", "cache"})
    single = can_be_input(args) or isinstance(args, sp.IndexedBase | sp.MatrixSymbol)
    arguments = [args] if single else list(args)
    scalars: list[Any] = []
    matrices: list[Any] = []
    shape = _describe(expressions, scalars, matrices)
    outputs = [*scalars, *matrices] if shape in (SCALAR, MATRIX) else [*([scalars] if scalars else []), *matrices]
    program = program_from_sympy(arguments, outputs, name="lambdified")
    kernel = compile_program(_with_loops(program, roll, Options(**options)), cache=cache, **options)
    return Lambdified(kernel, shape, bool(scalars))


def _with_loops(program: Program, roll: Roll, options: Options) -> Program | RolledProgram:
    """Return the program as loops where they are asked for, or cost less."""
    if roll not in get_args(Roll):
        raise ArgumentError(f"roll={roll!r}", do=f"use one of {', '.join(get_args(Roll))}")
    if options.number.parts > 1 and roll == "always":
        raise ArgumentError(
            f'roll="always" with dtype={options.dtype!r}', why="loops are written for real numbers", do="leave one out"
        )
    if roll == "never" or options.number.parts > 1:
        return program
    try:
        found = roll_program(program)
    except StraightError as reason:
        if roll == "always":
            raise ArgumentError('roll="always"', why=str(reason), do="leave the option out") from None
        return program
    prices: dict[Way, Price] = {
        "straight": straight_work(program).price,
        "rolled": rolled_work(found, len(program)).price,
    }
    worth_it = repeats_enough(found) and cheapest(prices) == "rolled"
    return found if roll == "always" or worth_it else program


def _describe(value: Any, scalars: list[Any], matrices: list[Any]) -> Any:
    """Collect scalars and matrices of a nested list; return its structure. Depth is that of the user's own lists."""
    if isinstance(value, sp.MatrixBase | sp.NDimArray | sp.MatrixExpr):
        matrices.append(value)
        return MATRIX
    if isinstance(value, list | tuple | sp.Tuple):
        parts = [_describe(item, scalars, matrices) for item in value]
        return parts if isinstance(value, list) else tuple(parts)
    scalars.append(value)
    return SCALAR


def _fill(shape: Any, scalars: Iterator[Any], matrices: Iterator[Any]) -> Any:
    if shape == SCALAR:
        value = next(scalars)
        return value.item() if np.ndim(value) == 0 else value
    if shape == MATRIX:
        return next(matrices)
    parts = [_fill(part, scalars, matrices) for part in shape]
    return parts if isinstance(shape, list) else tuple(parts)


def _points(value: Any, declared: Input, position: int, number: NumberType) -> Array:
    array = as_numbers(value, declared, position, number)
    if array.shape[: len(declared.shape)] != declared.shape:
        where = f"argument {position} ({declared.name})"
        raise ArgumentError(f"shape {array.shape}", where=where, why=f"the first axes must be {declared.shape}")
    return array


def _leading(array: Array, rank: int) -> Array:
    """The array with the axes of its points in front."""
    return np.moveaxis(array, range(rank), range(-rank, 0))
