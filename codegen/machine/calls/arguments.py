"""The slow path of a call: convert or refuse any array-like argument, then run the kernel."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from functools import partial
from inspect import Parameter, Signature, signature
from keyword import iskeyword
from typing import Any, TypeAlias, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from codegen.errors import ArgumentError, WorkspaceError
from codegen.ir.program import Input, Output
from codegen.lanes import FLOAT64, NumberType

F = TypeVar("F", bound=Callable[..., Any])
Array: TypeAlias = NDArray[Any]  # of the kernel's dtype

# What arrays of other libraries keep beside their numbers (labels, units, masks, laziness) plain numbers would lose.
_OWN = ("__array_ufunc__", "__array_finalize__", "__array_wrap__", "__mul__")


def has_rules(kind: type[Any]) -> bool:
    """Whether a class computes with arrays by rules of its own; NumPy's own classes do not.

    >>> has_rules(float), has_rules(np.ndarray), has_rules(np.matrix), has_rules(type("Metres", (np.ndarray,), {}))
    (False, False, False, False)
    >>> has_rules(type("Metres", (np.ndarray,), {"__array_finalize__": lambda self, source: None}))
    True
    """
    if kind not in _known:
        _known[kind] = _has_rules(kind)
    return _known[kind]


_known: WeakKeyDictionary[type[Any], bool] = WeakKeyDictionary()


def _has_rules(kind: type[Any]) -> bool:
    derived = issubclass(kind, np.ndarray)
    owners = [next((base for base in kind.__mro__ if name in vars(base)), None) for name in _OWN[: 4 if derived else 1]]
    foreign = [owner for owner in owners if owner and owner.__module__.partition(".")[0] not in ("numpy", "symad")]
    return bool(foreign) and (derived or getattr(kind, "__array_ufunc__", None) is not None)


def ruled_part(value: Any) -> Any:
    """Return a value with rules of its own, or the first such part of a list; None where there is none."""
    if isinstance(value, list | tuple):
        return next((part for item in value if (part := ruled_part(item)) is not None), None)
    return value if has_rules(type(value)) else None


def way_out(kind: type) -> str:
    """Return advice for an array of a class with rules of its own."""
    package = kind.__module__.partition(".")[0]
    ways = {
        "pandas": "give its numbers, s.to_numpy()", "xarray": "give its numbers, a.to_numpy()",
        "jax": "make it a function of JAX: sa.to_jax(f, *examples)",
        "torch": "give x.detach().numpy(), or make it a function of PyTorch: sa.to_torch(f, *examples)",
        "pint": "give q.m_as(unit)", "astropy": "give q.to_value(unit)", "dask": "give a.compute(), or kernel.gufunc()",
    }  # fmt: skip
    return ways.get(package, "give plain numbers: np.asarray(value) where nothing is lost in it")


def as_numbers(value: Any, declared: Input, position: int, number: NumberType = FLOAT64) -> Array:
    """Return an argument of any shape as array of the kernel's dtype; ArgumentError for what is no such number.

    A float64 becomes a float32 where the kernel computes in float32; a complex number never becomes a real one.

    >>> as_numbers([True, 2], Input("x", (2,)), 0)
    array([1., 2.])
    """
    return numbers_of(
        value, f"argument {position} ({declared.name})", number, f"give an array of shape {declared.shape}"
    )


def refuse_rules(value: Any, where: str) -> None:
    """Raise ArgumentError for an array with labels or units, which its plain numbers would lose."""
    part = ruled_part(value)
    if part is not None:
        kind = type(part)
        raise ArgumentError(
            f"a value of type {kind.__name__}", where=where, do=way_out(kind),
            why=f"what {kind.__module__.partition('.')[0]} keeps beside the numbers (labels, units...) would be lost",
        )  # fmt: skip


def numbers_of(value: Any, where: str, number: NumberType = FLOAT64, do: str = "give an array") -> Array:
    """Return a value as array of a dtype; ArgumentError for other values, and for arrays with more than numbers.

    >>> numbers_of([1, 2], "x0")
    array([1., 2.])
    """
    refuse_rules(value, where)
    array = _converted(value, where, do)
    derived = isinstance(value, np.ndarray) and type(value) is not np.ndarray
    if derived and np.ma.is_masked(value):  # NumPy imports masked arrays when they are asked for
        raise ArgumentError("a masked array", where=where, why="kernels know no masks", do="fill it first")
    if array.dtype.kind not in number.kinds:
        raise ArgumentError(
            f"dtype {array.dtype}", where=where, why=f"the kernel computes in {number.name}", do="convert it first"
        )
    return np.asarray(array, dtype=number.dtype)


def _converted(value: Any, where: str, do: str) -> Array:
    """Return a value as NumPy makes an array of it; its class may refuse: a ragged list, a tensor with slopes."""
    kind = type(value)
    try:
        array: Array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        if kind in (list, tuple):
            raise ArgumentError("a ragged nested list", where=where, do=do) from error
        why = str(error).partition("\n")[0]
        raise ArgumentError(f"a value of type {kind.__name__}", where=where, why=why, do=way_out(kind)) from error
    if array.dtype == object:
        subject = "an array of objects" if isinstance(value, np.ndarray) else f"a value of type {kind.__name__}"
        raise ArgumentError(subject, where=where, why="it is no array of numbers", do=do)
    return array


def as_input(value: Any, declared: Input, position: int, number: NumberType = FLOAT64) -> Array:
    """Return an argument as C-contiguous array of the kernel's dtype and the declared shape, without needless copies.

    ArgumentError names the argument and both shapes, or the dtype that cannot be converted.

    >>> as_input([1, 2], Input("x", (2,)), 0)
    array([1., 2.])
    """
    array = as_numbers(value, declared, position, number)
    if array.shape != declared.shape:
        where = f"argument {position} ({declared.name})"
        raise ArgumentError(f"shape {array.shape}", where=where, why=f"the kernel was compiled for {declared.shape}")
    return np.require(array, requirements=("C", "A"))


def check_output(value: Any, declared: Output, where: str, number: NumberType = FLOAT64) -> Array:
    """Return an `out` argument after checking that results can be written to it; ArgumentError otherwise.

    >>> check_output(np.zeros(2), Output((2,), (0, 1)), "out")
    array([0., 0.])
    """
    if not isinstance(value, np.ndarray):
        raise ArgumentError(f"{type(value).__name__}", where=where, why="results are written into NumPy arrays")
    refuse_rules(value, where)
    if value.dtype != number.dtype or not value.dtype.isnative:
        raise ArgumentError(
            f"dtype {value.dtype}", where=where, why=f"the kernel writes {number.name}", do=f"use dtype={number.name}"
        )
    if value.shape != declared.shape:
        raise ArgumentError(f"shape {value.shape}", where=where, why=f"the result has shape {declared.shape}")
    if not value.flags.writeable:
        raise ArgumentError("a read-only array", where=where, why="the result is written into it", do="pass a copy")
    return value


def split_out(out: Any, count: int) -> Sequence[Any]:
    """Return the output arrays given as `out`: one array, or a tuple or list of them when there are several."""
    if count == 1 and not isinstance(out, tuple | list):
        return (out,)
    if not isinstance(out, tuple | list) or len(out) != count:
        subject = f"{len(out)} arrays" if isinstance(out, tuple | list) else type(out).__name__
        raise ArgumentError(subject, where="out", why=f"the kernel has {count} outputs", do=f"give a tuple of {count}")
    return out


def results_of(out: Any, shapes: Sequence[tuple[int, ...]], number: NumberType, name: str) -> list[Array]:
    """Return the arrays that results are written into: fresh ones, or those given, which are checked.

    WorkspaceError where there is no memory for them.
    """
    if out is None:
        try:
            return [np.empty(shape, number.dtype) for shape in shapes]
        except (MemoryError, ValueError) as error:  # ValueError: more than an address can say
            raise WorkspaceError(f"results of {name}", why=str(error), do="ask for less: sparse, or a part") from error
    places = ["out"] if len(shapes) == 1 else [f"out[{k}]" for k in range(len(shapes))]
    arrays = zip(split_out(out, len(shapes)), shapes, places, strict=True)
    return [check_output(array, Output(shape, ()), place, number) for array, shape, place in arrays]


def given_back(results: Sequence[Any], unpack: Callable[[list[Any]], Any] | None) -> Any:
    """Return results as the user gets them: in their containers, one alone, several as a tuple."""
    return unpack(list(results)) if unpack is not None else results[0] if len(results) == 1 else tuple(results)


def values_of(out: Any, outputs: Sequence[Output]) -> Any:
    """Return `out` with the arrays of values in the place of sparse matrices; None where there are no matrices.

    ArgumentError for a matrix that has not the pattern of its output.
    """
    values, has_matrix = list(split_out(out, len(outputs))), False
    for k, (value, output) in enumerate(zip(values, outputs, strict=True)):
        if output.pattern is not None and not isinstance(value, np.ndarray):
            values[k], has_matrix = output.pattern.data_of(value, "out" if len(outputs) == 1 else f"out[{k}]"), True
    return None if not has_matrix else values[0] if len(values) == 1 else tuple(values)


def writable(array: Array, others: Sequence[Array]) -> Array:
    """Return the array itself if the kernel can write to it directly, else a buffer: strided or overlapping."""
    flags = array.flags
    direct = flags.c_contiguous and flags.aligned and not any(np.may_share_memory(array, other) for other in others)
    return array if direct else np.empty(array.shape, array.dtype)


def pointers(arrays: Sequence[Array]) -> ctypes.Array[ctypes.c_void_p]:
    """Return the table of data pointers of arrays."""
    return (ctypes.c_void_p * max(len(arrays), 1))(*[array.ctypes.data for array in arrays])


def signature_of(names: Sequence[str]) -> Signature:
    """Return the signature of a function of these names; a name that Python does not allow is numbered.

    >>> signature_of(["x", "y(t)", "lambda"])
    <Signature (x, argument_1, argument_2)>
    """
    taken = [name if name.isidentifier() and not iskeyword(name) else f"argument_{k}" for k, name in enumerate(names)]
    if len(set(taken)) < len(taken):
        taken = [f"argument_{k}" for k in range(len(taken))]
    return Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in taken])


class CallSignature:
    """`__signature__` of a kernel or gufunc: a parameter for each argument of the function that was compiled."""

    def __get__(self, kernel: Any, owner: Any = None) -> Signature | None:
        return None if kernel is None else signature_of(argument_roots(kernel.argument_names))


def argument_roots(names: Sequence[str]) -> list[str]:
    """Return the names of a function's arguments from those of arrays in them.

    >>> argument_roots(["x", "p['a']", "p['b'].c"])
    ['x', 'p']
    """
    return list(dict.fromkeys(re.split(r"[.\[]", name)[0] for name in names))


class SignedMethod:
    """A method of a kernel that takes its arguments by name, then options: its signature names them.

    `curve_fit(kernel.batch, t, y)` counts them there.

    >>> from codegen import lambdify
    >>> import sympy as sp
    >>> str(signature(lambdify(sp.symbols("t a"), sp.Symbol("a")).kernel.batch)).split(", out")[0]
    '(t, a, *'
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __get__(self, kernel: Any, owner: Any = None) -> Any:
        return self.function if kernel is None else _Bound(self.function, kernel)


class _Bound(partial[Any]):
    """A method of an object with the signature of the object before its own options."""

    @property
    def __signature__(self) -> Signature:
        (kernel,) = self.args
        options = [
            parameter for parameter in signature(self.func).parameters.values()
            if parameter.kind is Parameter.KEYWORD_ONLY
        ]  # fmt: skip
        return Signature([*kernel.__signature__.parameters.values(), *options])

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return self.func.__doc__

    def __getattr__(self, name: str) -> Any:
        """Return the function's name, and what else it is asked for."""
        return getattr(self.func, name)


def with_names(method: F) -> F:
    """Give a method of a kernel the signature of `SignedMethod`; for type checkers it is what it was."""
    return cast("F", SignedMethod(method))


def in_positions(args: tuple[Any, ...], keywords: dict[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    """Return the arguments of a call by position; ArgumentError for an unknown or repeated name.

    >>> in_positions((1.0,), {"z": 3.0, "y": 2.0}, ["x", "y", "z"])
    (1.0, 2.0, 3.0)
    """
    if not keywords:
        return args
    rest = names[len(args) :]
    for name in keywords:
        if name not in rest:
            why = (
                "it is given by position too" if name in names else f"the kernel takes {', '.join(names)}, and options"
            )
            raise ArgumentError(f"keyword {name!r}", why=why)
    missing = [name for name in rest if name not in keywords]
    if missing:
        raise ArgumentError(f"no value for {', '.join(missing)}", why=f"the kernel takes {', '.join(names)}")
    return (*args, *(keywords[name] for name in rest))
