"""The base class of traced scalars and arrays: NumPy's protocols, refusals, and the text of a traced value.

The text can be printed, kept and joined, but not read. `float(str(x))`, `str(x) == "nan"` and `repr(x)[0] == "-"` would
read marks that no number has (`~` before the digits, names of symbols), and continue on a path that no number takes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, NoReturn, Self

import numpy as np
import sympy as sp

from codegen.machine.calls.arguments import has_rules, way_out
from symad.errors import TraceError
from symad.tracing.calling.recorded_errors import innermost_watch
from symad.tracing.calling.scope import Scope
from symad.tracing.calling.user_place import (
    is_installed,
    is_library,
    is_ours,
    is_scipy,
    source_segment,
    user_frame,
    user_place,
)
from symad.tracing.numpy.registry import FUNCTIONS, UFUNC_METHODS
from symad.tracing.values.complex_points import check_real
from symad.tracing.values.layouts import AS_NUMPY, IN_C_ORDER, set_c_order, set_numpys_order
from symad.tracing.values.sympy_symbols import Equal, equality_asks, expression_of, operator_asks

CALLING_METHODS = frozenset({"numpy._core.fromnumeric", "numpy.lib._ufunclike_impl"})  # whose functions call methods
SPARSE: list[Callable[..., Any]] = []  # the ufuncs of traced values and SciPy's sparse matrices
_CARELESS = {"bisplev", "_root_hybr", "leastsq"}


class SymPyRefusalError(TraceError, sp.SympifyError):  # type: ignore[misc]
    """SymPy asked for an expression and got none; its operators catch this and let the traced value answer."""

    expr: str
    base_exc: None

    def __init__(self, what: str, *, where: str = "", why: str = "", do: str = "") -> None:
        TraceError.__init__(self, what, where=where, why=why, do=do)
        self.expr, self.base_exc = what, None

    __str__ = Exception.__str__


class AnsweredError(SymPyRefusalError):
    """An operator of SymPy met a traced value, which answers in its place."""

    of_tracing = False


class NumberError(TraceError):
    """A traced value was asked for a plain number."""


class IndexNumberError(NumberError):
    """A traced number was used as an index or a count, without stand-ins."""


class AxesError(TypeError):
    """An array with axes was used as a number, which NumPy refuses too."""


class FloatIndexError(IndexNumberError):
    """A traced number was used as an index, which a float refuses too."""

    of_tracing = False


class ScalarIndexError(TraceError, IndexError):
    """An element of a traced number was asked for, which numbers refuse: floats by TypeError, NumPy's by IndexError."""

    of_tracing = False


class MissingAttributeError(TraceError, AttributeError):
    """A traced value has no such attribute, and NumPy's value has."""


class TextIndexError(IndexError):
    """NumPy's error for a text as an index, which every array of numbers raises."""

    def __init__(self) -> None:
        super().__init__(
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are "
            "valid indices"
        )


class StoreError(TraceError):
    """A traced value was stored into an ordinary array."""


class TracedComplex:
    """Complex numbers with traced parts; the base class by which operations recognise them."""

    __slots__ = ()
    __array_priority__: float = 2000.0


class Traced:
    """A value that stands for nodes of a graph, usable until its scope closes."""

    __slots__ = ()
    __array_priority__: float = 1000.0
    scope: Scope

    @property
    def device(self) -> str:
        """The device of NumPy's arrays and numbers, for libraries with several kinds of arrays (array API)."""
        return "cpu"

    @property
    def real(self) -> Self:
        """The value itself: traced values are real."""
        check_real(".real")
        return self

    def apparent_kind(self) -> type:
        """Return the type that numbers in its place would have."""
        return np.ndarray

    def conjugate(self) -> Self:
        """Return the value itself: traced values are real."""
        check_real(".conjugate()")
        return self

    conj = conjugate

    def __reduce__(self) -> NoReturn:
        raise TraceError(
            "a traced value cannot be pickled", where=user_place(), why="it belongs to a running trace", do="return it"
        )

    def __array_function__(
        self, function: Callable[..., Any], types: Sequence[type], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        if any(has_operators(kind) or not issubclass(kind, Traced | np.ndarray) for kind in types):
            return NotImplemented
        handler = FUNCTIONS.get(function)
        if handler is None:
            refuse_function(numpy_name(function), "it has no traced form")
        if calls_methods(function) and any(map(has_operators, map(type, args))):
            refuse_function(numpy_name(function), "another argument has labels, which would be lost")
        start = len(self.scope.graph.marks)
        result = handler(*args, **kwargs)
        if function in IN_C_ORDER:
            set_c_order(result)
        elif function in AS_NUMPY and not any(map(callable, (*args, *kwargs.values()))):
            set_numpys_order(result, function, args, kwargs)
        self.scope.graph.place_all(start, user_frame)
        return result

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(value, TracedComplex) for value in inputs):
            return NotImplemented
        if any(hasattr(type(value), "_rmatmul_dispatch") for value in inputs):
            return SPARSE[0](ufunc, inputs)
        if any(map(is_left_to, inputs)):
            return NotImplemented  # such a class aligns labels or converts units, and calls again with the contents
        start = len(self.scope.graph.marks)
        result = UFUNC_METHODS[method](ufunc, inputs, kwargs)
        self.scope.graph.place_all(start, user_frame)
        return result

    def _sympy_(self) -> Any:
        """Return an expression for SymPy functions; operators get none, and then call the traced value."""
        if equality_asks():
            return Equal(self)
        if operator_asks():
            raise AnsweredError("a traced value met an operator of SymPy")  # SymPy catches it
        node: int | None = getattr(self, "node", None)
        if node is None:
            raise SymPyRefusalError(
                "a traced array was given to a SymPy function",
                where=user_place(),
                why="SymPy functions take scalars",
                do="use the NumPy function (np.sin instead of sympy.sin), or give it one element at a time",
            )
        return expression_of(self.scope, node)


def has_operators(kind: type) -> bool:
    """Whether a user's or another library's class answers NumPy's functions and operators by its own rules.

    Labels (pandas, xarray), units (pint, astropy), wrappers of the user's objects (`acting`).

    >>> has_operators(np.ndarray), has_operators(Traced), has_operators(float)
    (False, False, False)
    """
    return hasattr(kind, "is_acting") or (has_rules(kind) and not issubclass(kind, Traced | TracedComplex))


def calls_methods(function: Callable[..., Any]) -> bool:
    """Whether a function of NumPy calls the methods of its arguments; `np.max` says that it is of another module."""
    code = getattr(function, "_implementation", None)
    return getattr(code, "__globals__", {}).get("__name__") in CALLING_METHODS


def is_left_to(value: Any) -> bool:
    """Whether the class of the other operand answers an operator; TraceError if that holds plain numbers only."""
    if not has_operators(type(value)):
        return False
    if isinstance(value, np.ndarray):
        raise TraceError(
            f"a {type(value).__name__} met a traced value",
            where=user_place(),
            why="its units, or what else its class keeps beside the numbers, would be lost",
            do=way_out(type(value)),
        )
    return True


def numpy_name(function: Callable[..., Any]) -> str:
    """Return the spelling of a NumPy function in code: np.linalg.eig."""
    return f"{function.__module__.replace('numpy', 'np', 1)}.{function.__name__}"


def refuse_function(
    name: str, why: str, do: str = "write it with elementwise functions, sums and products"
) -> NoReturn:
    """Raise the TraceError for a NumPy function that cannot be traced."""
    raise TraceError(f"{name} was called with a traced value", where=user_place(), why=why, do=do)


def refuse_options(package: str, name: str, **given: Any) -> None:
    """Refuse the keywords of a function that were given: not None, and not False."""
    for keyword, value in given.items():
        if value is not None and value is not False:
            refuse_function(f"{package}.{name} with {keyword}=", "it has no traced form", f"leave {keyword} out")


def refuse_number(kind: str, do: str = "", error: type[NumberError] = NumberError) -> NoReturn:
    """Raise the TraceError for code that asks a traced value for a plain number."""
    segment = source_segment()
    asked = f"{segment!r} asks" if segment else "this asks"
    raise error(
        f"{asked} for {kind} of a traced value",
        where=user_place(),
        why="a plain number would lose its derivative",
        do=do or _way_out(segment),
    )


def takes_no_error() -> bool:
    """Whether SciPy's C code asks for a number and an error would do harm.

    `bisplev` would free memory that is not its own; MINPACK prints the errors of its callbacks.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name in _CARELESS and is_scipy(frame.f_code.co_filename)


def refuse_attribute(kind: str, original: type, name: str) -> NoReturn:
    """Raise the AttributeError for a missing attribute; also a TraceError if user code would find one on numbers.

    Libraries that look for protocols (dunder names) and for `dtype` get the answer of an ordinary class.
    """
    if hasattr(original, name) and not name.startswith("__") and not is_library(sys._getframe(2).f_code.co_filename):
        raise MissingAttributeError(
            f"{kind} has no attribute {name!r}",
            where=user_place(),
            why="its numbers are not known while it is traced",
            do="write it with NumPy functions",
        )
    raise AttributeError(f"{kind} has no attribute {name!r}")


def _way_out(segment: str) -> str:
    if segment.startswith(("math.", "float(", "complex(")) or "." not in segment.partition("(")[0]:
        return "use the NumPy function (np.sin instead of math.sin), and leave out float(...)"
    return "write this step with NumPy functions: what computes with plain numbers inside a library cannot be traced"


def store_error() -> StoreError:
    """Return the error for a traced value that is stored into an ordinary array."""
    return StoreError(
        "a traced value is stored into an ordinary float array",
        where=user_place(),
        why="the array can hold plain numbers only, and the derivative would be lost",
        do="make the array inside the function, by np.zeros_like(x), np.array([...]) or np.copy(data), not data.copy()",
    )


class TracedText(str):
    """Text that user code cannot read during a trace. Packages that print it can."""

    __slots__ = ()

    def __float__(self) -> float:
        return float(self._digits())

    def __int__(self) -> int:
        return int(self._digits())

    def _digits(self) -> str:
        if innermost_watch() is not None:
            refuse_text()
        return "".join(self)


def refuse_text() -> NoReturn:
    raise TraceError(
        "the text of a traced value is read",
        where=user_place(),
        why="it is marked as traced, and no number's text",
        do="ask the value itself (np.isnan(x), x < 0, round(x, 2))",
    )


def _guarded(name: str) -> Callable[..., Any]:
    original = getattr(str, name)

    def method(self: TracedText, *args: Any, **keywords: Any) -> Any:
        file = sys._getframe(1).f_code.co_filename
        if innermost_watch() is not None and not (is_installed(file) or is_library(file)):
            refuse_text()
        return original(self, *args, **keywords)

    return method


for _name in (
    "__eq__", "__ne__", "__hash__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__", "__getitem__", "__iter__",
    "__len__", "count", "endswith", "find", "index", "isdecimal", "isdigit", "isnumeric", "partition", "rfind",
    "rindex", "rpartition", "rsplit", "split", "startswith",
):  # fmt: skip
    setattr(TracedText, _name, _guarded(_name))
TracedText.__name__ = "str"  # what messages call it
