"""Scalar: a traced number or truth value."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import sympy as sp
import sympy.core.cache

from symad.tracing.calling.handlers import catches_divisions
from symad.tracing.calling.instructions import is_in_place
from symad.tracing.calling.scope import Scope, join
from symad.tracing.calling.subscripts import subscripted
from symad.tracing.calling.user_place import formats_text, is_library, stores_item, user_place
from symad.tracing.numpy.ufuncs import UFUNCS
from symad.tracing.values.complex_points import check_real
from symad.tracing.values.constant_nodes import constant, is_boolean
from symad.tracing.values.known_numbers import shown_value, truth_of
from symad.tracing.values.node_arrays import converted
from symad.tracing.values.object_arrays import boxed, check_making, check_order, check_truth
from symad.tracing.values.traced import (
    IndexNumberError,
    NumberError,
    ScalarIndexError,
    Traced,
    refuse_attribute,
    refuse_number,
    store_error,
    takes_no_error,
)
from symad.tracing.values.traced_text import TracedText
from symad.tracing.values.whole_numbers import are_whole, as_integer, is_integer
from symad.tracing.values.whole_values import key_hash, text_of, whole_of

_SYMPY_CACHE = sympy.core.cache.__file__
_NUMBERS = frozenset({int, float, bool})
_NUMPY_NUMBERS = frozenset(np.dtype(code).type for code in "?bhilqBHILQefd")
_NO_NUMBERS = (type(None), str, bytes, dict, set, frozenset)
_OF_BITS = frozenset({"bitwise_and", "bitwise_or", "bitwise_xor", "invert"})
_SEQUENCES = frozenset({list, tuple, str, bytes, bytearray})
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {"f": float, "i": int, "u": int, "b": bool, "c": complex}


def _binary(ufunc: np.ufunc) -> Callable[[Scalar, Any], Any]:
    build = UFUNCS[ufunc.__name__]

    def method(self: Scalar, other: Any) -> Any:
        kind, scope = type(other), self.scope
        if kind is Scalar:
            if other.scope is not scope:
                scope = join(scope, other.scope)
            right = other.node
        elif kind in _NUMBERS:
            right = scope.graph.number(other)
        elif kind in _NUMPY_NUMBERS:
            right = scope.graph.number(other.item())
        elif isinstance(other, sp.MatrixBase):
            return NotImplemented  # SymPy's rules for matrices: 2 * M is a matrix, and its * is the matrix product
        else:
            return ufunc(self, other) if getattr(kind, "__array_ufunc__", True) is not None else NotImplemented
        if not scope.open:
            scope.check_open()
        node = build(scope.graph, self.node, right)
        if node >= scope.graph.placed:
            frame = sys._getframe(1)
            scope.graph.place(sys._getframe(2) if frame.f_code.co_filename == __file__ else frame)  # x**y, x == y
        return Scalar(node, scope)

    return method


def _repeating(multiply: Callable[[Scalar, Any], Any]) -> Callable[[Scalar, Any], Any]:
    """* of a whole number, which is a plain count then, repeats a list, a tuple or a text."""

    def method(self: Scalar, other: Any) -> Any:
        if type(other) not in _SEQUENCES or not are_whole(self.scope.graph, self.node):
            return multiply(self, other)
        count, in_place = self.__index__(), is_in_place(sys._getframe(1))
        if in_place:
            other *= count
        return other if in_place else other * count

    return method


def _equality(ufunc: np.ufunc) -> Callable[[Scalar, Any], Any]:
    """== and != also answer (by identity) what is no number at all: None, texts, dicts, sets."""
    compare, equal = _binary(ufunc), ufunc is np.equal

    def method(self: Scalar, other: Any) -> Any:
        if isinstance(other, _NO_NUMBERS):
            return NotImplemented
        if isinstance(other, bool) and is_boolean(self.scope.graph, self.node):
            return self if other is equal else ~self  # c == True is c: SymPy's Piecewise asks it of its conditions
        return compare(self, other)

    return method


def _order(ufunc: np.ufunc, sign: str) -> Callable[[Scalar, Any], Any]:
    """<, <=, >, >=: those that compiled code asks for may be NumPy's, in a loop over objects."""
    compare = _binary(ufunc)

    def method(self: Scalar, other: Any) -> Any:
        check_order(sys._getframe(1), self.scope, self.node, other, sign)
        return compare(self, other)

    return method


def _reflected(ufunc: np.ufunc) -> Callable[[Scalar, Any], Any]:
    build = UFUNCS[ufunc.__name__]

    def method(self: Scalar, other: Any) -> Any:
        scope = self.scope
        if type(other) not in _NUMBERS:
            return NotImplemented if isinstance(other, sp.MatrixBase) else ufunc(other, self)
        if not scope.open:
            scope.check_open()
        node = build(scope.graph, scope.graph.number(other), self.node)
        if node >= scope.graph.placed:
            frame = sys._getframe(1)
            scope.graph.place(sys._getframe(2) if frame.f_code.co_filename == __file__ else frame)
        return Scalar(node, scope)

    return method


def _division(operator: Callable[[Scalar, Any], Any], *, reflected: bool = False) -> Callable[[Scalar, Any], Any]:
    """A division, which raises an error at zero where the user's code catches it: there it is meant for floats."""

    def method(self: Scalar, other: Any) -> Any:
        if catches_divisions(sys._getframe(1)):
            divisor = self if reflected else other
            if isinstance(divisor, Scalar | int | float) and divisor == 0:
                raise ZeroDivisionError("division by zero")
        return operator(self, other)

    return method


def _unary(ufunc: np.ufunc) -> Callable[[Scalar], Scalar]:
    build = UFUNCS[ufunc.__name__]

    def method(self: Scalar) -> Scalar:
        scope = self.scope
        if not scope.open:
            scope.check_open()
        node = build(scope.graph, self.node)
        if node >= scope.graph.placed:
            scope.graph.place(sys._getframe(1))
        return Scalar(node, scope)

    return method


def _bitwise(ufunc: np.ufunc) -> Callable[[Scalar, Any], Any]:
    """An operator of truth values, and of whole numbers by their bits."""
    of_truths = _binary(ufunc) if ufunc.__name__ in UFUNCS else None

    def method(self: Scalar, other: Any) -> Any:
        if of_truths is not None and is_boolean(self.scope.graph, self.node):
            return of_truths(self, other)
        return ufunc(self, other)

    return method


def _swapped(ufunc: np.ufunc) -> Callable[[Scalar, Any], Any]:
    return lambda self, other: ufunc(other, self)


class Scalar(Traced):
    """A traced number: node `node` of the graph of `scope`. Immutable; works with operators and NumPy functions.

    >>> from symad.tracing.calling.scope import open_scope
    >>> with open_scope() as scope:
    ...     x = Scalar(scope.graph.leaf(sp.Symbol("x")), scope)
    ...     y = 2 * np.sin(x) + x**2
    ...     scope.graph.heads[y.node].__name__, y.shape
    ('Add', ())
    """

    __slots__ = ("node", "scope")
    shape: ClassVar[tuple[int, ...]] = ()
    ndim: ClassVar[int] = 0
    size: ClassVar[int] = 1

    def __init__(self, node: int, scope: Scope) -> None:
        self.node: int = node
        self.scope = scope

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """For the user's code, which asks isinstance(x, float): the type that an element of an array has."""
        if is_library(sys._getframe(1).f_code.co_filename):
            return Scalar
        return self.apparent_kind()

    def apparent_kind(self) -> type:
        """Return the type that an element of an array would have here."""
        if is_boolean(self.scope.graph, self.node):
            return np.bool_
        return int if is_integer(self.scope.graph, self.node) else np.float64

    __add__, __radd__ = _binary(np.add), _reflected(np.add)
    __sub__, __rsub__ = _binary(np.subtract), _reflected(np.subtract)
    __mul__, __rmul__ = _repeating(_binary(np.multiply)), _repeating(_reflected(np.multiply))
    __truediv__ = _division(_binary(np.true_divide))
    __rtruediv__ = _division(_reflected(np.true_divide), reflected=True)
    __floordiv__ = _division(_binary(np.floor_divide))
    __rfloordiv__ = _division(_reflected(np.floor_divide), reflected=True)
    __mod__ = _division(_binary(np.remainder))
    __rmod__ = _division(_reflected(np.remainder), reflected=True)
    __and__, __rand__ = _bitwise(np.bitwise_and), _swapped(np.bitwise_and)
    __or__, __ror__ = _bitwise(np.bitwise_or), _swapped(np.bitwise_or)
    __xor__, __rxor__ = _bitwise(np.bitwise_xor), _swapped(np.bitwise_xor)
    __lshift__, __rlshift__ = _bitwise(np.left_shift), _swapped(np.left_shift)
    __rshift__, __rrshift__ = _bitwise(np.right_shift), _swapped(np.right_shift)
    _power, __rpow__ = _binary(np.power), _reflected(np.power)
    __lt__, __le__ = _order(np.less, "<"), _order(np.less_equal, "<=")
    __gt__, __ge__ = _order(np.greater, ">"), _order(np.greater_equal, ">=")
    __eq__, __ne__ = _equality(np.equal), _equality(np.not_equal)
    __neg__, __pos__, __abs__ = _unary(np.negative), _unary(np.positive), _unary(np.absolute)

    def __invert__(self) -> Any:
        return np.invert(self)

    __iter__ = None  # or iter() would take __getitem__ for that of a sequence, and find no elements

    def __floor__(self) -> Any:
        return as_integer(np.floor(self))

    def __ceil__(self) -> Any:
        return as_integer(np.ceil(self))

    def __trunc__(self) -> Any:
        return as_integer(np.trunc(self))

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        return self._power(other) if modulus is None else NotImplemented

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __hash__(self) -> int:
        if sys._getframe(1).f_code.co_filename == _SYMPY_CACHE:  # which would keep the graph and compare nodes by ==
            raise TypeError("unhashable type: 'Scalar'")
        if is_boolean(self.scope.graph, self.node):
            return hash(truth_of(self.scope, self.node))  # {True: a, False: b}[x > 0] finds its key
        self.scope.check_open()
        known = constant(self.scope.graph, self.node)
        if known is not None:
            return hash(known)
        if are_whole(self.scope.graph, self.node):  # whatever it is equal to has a derivative of zero
            return key_hash(self.scope, self.node)
        raise NumberError(
            "a traced number as a key of a dict or an element of a set",
            where=user_place(),
            why="a key finds what is equal to it, and equal numbers may have different derivatives",
            do="use int(x) as the key, or compare with the elements of a list or tuple",
        )

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs and ufunc.__name__ not in _OF_BITS:
            build = UFUNCS.get(ufunc.__name__)
            scope = self.scope
            if build is not None and scope.open:
                nodes = [self.node] if len(inputs) == 1 else quick_nodes(inputs, scope)
                if nodes is not None:
                    node = build(scope.graph, *nodes)
                    if node >= scope.graph.placed:
                        scope.graph.place(sys._getframe(1))
                    return Scalar(node, scope)
        return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return an array without axes: an object, or the number or truth value that a number dtype asks for."""
        convert = None if dtype is None else _CONVERSIONS.get(np.dtype(dtype).kind)
        if convert is not None:
            return np.array(convert(self), dtype=dtype)
        if dtype is None:
            check_making(sys._getframe(1))
        return boxed(self)

    def __bool__(self) -> bool:
        if not is_boolean(self.scope.graph, self.node):
            check_truth(sys._getframe(1))
        return truth_of(self.scope, self.node)

    def __float__(self) -> float:
        if formats_text():
            shown = shown_value(self.scope, self.node)
            return math.nan if isinstance(shown, str) else float(shown)
        if stores_item():
            raise store_error()
        try:
            return float(self._constant("a float"))
        except NumberError:
            if not takes_no_error():
                raise
            return math.nan  # the error is noted: what comes of it is refused

    def __int__(self) -> int:
        """Follow the value, as `if` does: int() is piecewise constant, so its derivative is zero where it exists."""
        whole = self.node if are_whole(self.scope.graph, self.node) else UFUNCS["trunc"](self.scope.graph, self.node)
        return whole_of(self.scope, whole, "int() of a traced number")

    def __complex__(self) -> complex:
        return complex(self._constant("a complex number"))

    def __index__(self) -> int:
        if are_whole(self.scope.graph, self.node):
            return whole_of(self.scope, self.node, "a traced whole number as an index or a count", is_index=True)
        if is_boolean(self.scope.graph, self.node) and isinstance(subscripted(), list | tuple):
            return int(truth_of(self.scope, self.node))
        do = "write int(...), which follows the value when the function gets numbers"
        refuse_number("an integer index", do, IndexNumberError)

    def __round__(self, digits: int | None = None) -> Any:
        made = np.round(self, digits or 0)
        return as_integer(made) if digits is None else made

    def __repr__(self) -> str:
        return TracedText(f"<traced {self}>")

    def __str__(self) -> str:
        whole = text_of(self.scope, self.node, "", sys._getframe(1))
        if whole is not None:
            return whole
        value = shown_value(self.scope, self.node)
        if isinstance(value, str):
            return TracedText(value) if self.scope.open else value
        return TracedText(f"~{value}" if isinstance(value, bool) else f"~{value:.6g}")

    def __format__(self, specification: str) -> str:
        whole = text_of(self.scope, self.node, specification, sys._getframe(1))
        if whole is not None:
            return whole
        if not specification:
            return str(self)
        value = shown_value(self.scope, self.node)
        try:
            shown = format(value, specification)
            return TracedText(shown if isinstance(value, str) else f"~{shown}")
        except ValueError:  # a format for integers, or one for numbers where the value is symbolic
            return str(self)

    def __getattr__(self, name: str) -> Any:
        """Answer `.sin()`, `.arctan2(other)`...: what NumPy's loops over object arrays call, and ndarray methods."""
        if name in UFUNCS and isinstance(getattr(np, name, None), np.ufunc):
            ufunc = getattr(np, name)
            return lambda *others: ufunc(self, *others)
        if name in _ARRAY_METHODS:
            whole = getattr(np, name)
            return lambda *args, **keywords: whole(self, *args, **keywords)
        if name == "dtype" and not is_library(sys._getframe(1).f_code.co_filename):  # see _ARRAY_METHODS
            return np.dtype(bool if is_boolean(self.scope.graph, self.node) else np.float64)
        refuse_attribute("a traced scalar", np.float64, name)

    def __getitem__(self, key: Any) -> Any:
        """Return the scalar for () and ..., an array for None and truth values, as NumPy's numbers do."""
        keys = key if isinstance(key, tuple) else (key,)
        try:
            found = np.ravel(self)[(0, *keys)]
        except IndexError:
            raise ScalarIndexError(
                f"index {key!r} of a traced number",
                where=user_place(),
                why="a number has no axis",
                do="(), ... and None are its indices; np.atleast_1d(x) makes an array of it",
            ) from None
        return found if found.shape else self

    def __copy__(self) -> Scalar:
        return self

    def __deepcopy__(self, memo: object) -> Scalar:
        return self

    @property
    def T(self) -> Scalar:  # noqa: N802 (NumPy's name)
        """The scalar itself."""
        return self

    @property
    def flat(self) -> Any:
        """An array of one element."""
        return np.ravel(self)

    @property
    def itemsize(self) -> int:
        """Bytes of the number that it stands for."""
        return np.dtype(self.apparent_kind()).itemsize

    nbytes = itemsize

    def is_integer(self) -> Any:
        """Return whether it is a whole number: a traced truth value."""
        return np.isfinite(self) & np.equal(np.floor(self), self)

    @property
    def imag(self) -> Scalar:
        """Zero: traced values are real."""
        check_real(".imag")
        return Scalar(self.scope.graph.number(0), self.scope)

    def flatten(self, order: str = "C") -> Any:
        """Return an array of one element."""
        return np.ravel(self)

    def reshape(self, *shape: Any, order: Any = "C") -> Any:
        """Return an array of one element in this shape, the scalar for ()."""
        return np.reshape(self, shape[0] if len(shape) == 1 else shape)

    def compress(self, condition: Any, axis: Any = None) -> Any:
        """Return an array of one element, or of none where the condition does not hold."""
        return np.compress(condition, self, axis)

    def item(self, *index: Any) -> Any:
        """Return the scalar itself (an element stays traced); an index is 0 or ()."""
        return np.ravel(self).item(*index) if index else self

    tolist = copy = item

    def astype(self, dtype: Any, **keywords: Any) -> Scalar:
        """Return the scalar as float; NumPy's rules for bool and int (which truncates)."""
        nodes = converted(self.scope.graph, np.array(self.node, dtype=np.int64), dtype)
        return Scalar(int(nodes), self.scope)

    def _constant(self, kind: str) -> float:
        self.scope.check_open()
        known = constant(self.scope.graph, self.node)
        return refuse_number(kind) if known is None else float(known)


numbers.Number.register(Scalar)  # np.isscalar asks for it


def quick_nodes(values: Sequence[Any], scope: Scope) -> list[int] | None:
    """Return the nodes of Scalars (none deeper than `scope`) and Python numbers; None when there is anything else."""
    nodes = []
    for value in values:
        if type(value) is Scalar:
            if value.scope is not scope and join(value.scope, scope) is not scope:
                return None
            nodes.append(value.node)
        elif type(value) in _NUMBERS:
            nodes.append(scope.graph.number(value))
        else:
            return None
    return nodes


# NumPy sees no `dtype`: np.mean of a list of traced scalars would then call np.float64 on their sum.
_ARRAY_METHODS = frozenset(
    {"all", "any", "argmax", "argmin", "argsort", "clip", "cumprod", "cumsum", "diagonal", "dot", "max"}
    | {"mean", "min", "nonzero", "prod", "ravel", "repeat", "round", "searchsorted", "squeeze", "std", "sum"}
    | {"swapaxes", "take", "trace", "transpose", "var"}
)
