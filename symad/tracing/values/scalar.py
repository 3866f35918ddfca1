"""A traced number or truth value."""

from __future__ import annotations

import math
import numbers
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy.core.cache

from symad.tracing.calling.scope import Scope, join
from symad.tracing.calling.subscripts import subscripted
from symad.tracing.calling.user_place import (
    converts_numbers,
    formats_text,
    is_dispatch,
    is_library,
    stores_item,
    user_place,
)
from symad.tracing.numpy.ufuncs import UFUNCS
from symad.tracing.values.complex_points import check_real
from symad.tracing.values.constant_nodes import constant, is_boolean
from symad.tracing.values.known_numbers import shown_value, truth_of
from symad.tracing.values.node_arrays import converted
from symad.tracing.values.object_arrays import asked_by_an_index, boxed, check_making, check_truth
from symad.tracing.values.python_numbers import (
    NUMBERS,
    as_count,
    as_pythons,
    check_rounding,
    is_pythons,
    note_result,
    rounded_to,
)
from symad.tracing.values.scalar_operators import (
    TracedNumber,
    binary,
    bitwise,
    division,
    equality,
    order,
    power,
    reflected,
    repeating,
    swapped,
    unary,
)  # fmt: skip
from symad.tracing.values.traced import (
    FloatIndexError,
    NumberError,
    ScalarIndexError,
    TracedText,
    refuse_attribute,
    refuse_number,
    store_error,
    takes_no_error,
)
from symad.tracing.values.whole_numbers import are_whole, as_integer, is_integer, is_numpys, keeping_integers
from symad.tracing.values.whole_values import key_hash, text_of, whole_of

_SYMPY_CACHE = sympy.core.cache.__file__
_OF_INTEGERS = frozenset({"as_integer_ratio", "bit_count", "bit_length", "denominator", "numerator", "to_bytes"})
_OF_BITS = frozenset({"bitwise_and", "bitwise_or", "bitwise_xor", "invert"})
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {"f": float, "i": int, "u": int, "b": bool, "c": complex}


def _rounding(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a method that rounds to an int of Python."""

    def method(self: Scalar) -> Any:
        check_rounding(self.scope, self.node)
        return as_integer(function(self))

    return method


class Scalar(TracedNumber):
    """A traced number: node `node` of the graph of `scope`. Immutable; works with operators and NumPy functions.

    >>> import sympy as sp
    >>> from symad.tracing.calling.scope import open_scope
    >>> with open_scope() as scope:
    ...     x = Scalar(scope.graph.leaf(sp.Symbol("x")), scope)
    ...     y = 2 * np.sin(x) + x**2
    ...     scope.graph.heads[y.node].__name__, y.shape
    ('Add', ())
    """

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """No axes; Python's own numbers have no shape."""
        self._check_numpys("shape")
        return ()

    @property
    def ndim(self) -> int:
        """The number of axes."""
        self._check_numpys("ndim")
        return 0

    @property
    def size(self) -> int:
        """The number of elements."""
        self._check_numpys("size")
        return 1

    def _check_numpys(self, name: str) -> None:
        """Raise AttributeError if user code asks a number of Python's for an attribute of NumPy's."""
        asking = sys._getframe(2).f_code.co_filename
        if is_pythons(self.scope.graph, self.node) and not (is_library(asking) or converts_numbers(asking)):
            raise AttributeError(name)  # Python then calls __getattr__

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """For user code that asks isinstance(x, float): the type that an element of an array has.

        Xarray and JAX convert NumPy's numbers to arrays, and no others.
        """
        asking = sys._getframe(1).f_code.co_filename
        if is_library(asking) or converts_numbers(asking):
            return Scalar
        return self.apparent_kind()

    def apparent_kind(self) -> type:
        """Return the type that an element of an array would have here."""
        graph, node = self.scope.graph, self.node
        if is_boolean(graph, node):
            return bool if node in graph.floats else np.bool_
        if is_integer(graph, node):
            return np.int64 if is_numpys(graph, node) else int
        return float if node in graph.floats else np.float64

    __add__, __radd__ = binary(np.add), reflected(np.add)
    __sub__, __rsub__ = binary(np.subtract), reflected(np.subtract)
    __mul__, __rmul__ = repeating(binary(np.multiply)), repeating(reflected(np.multiply), reflected=True)
    __truediv__ = division(binary(np.true_divide))
    __rtruediv__ = division(reflected(np.true_divide), reflected=True)
    __floordiv__ = division(binary(np.floor_divide))
    __rfloordiv__ = division(reflected(np.floor_divide), reflected=True)
    __mod__ = division(binary(np.remainder))
    __rmod__ = division(reflected(np.remainder), reflected=True)
    __and__, __rand__ = bitwise(np.bitwise_and), swapped(np.bitwise_and)
    __or__, __ror__ = bitwise(np.bitwise_or), swapped(np.bitwise_or)
    __xor__, __rxor__ = bitwise(np.bitwise_xor), swapped(np.bitwise_xor)
    __lshift__, __rlshift__ = bitwise(np.left_shift), swapped(np.left_shift)
    __rshift__, __rrshift__ = bitwise(np.right_shift), swapped(np.right_shift)
    __pow__, __rpow__ = power(binary(np.power)), power(reflected(np.power), reflected=True)
    __lt__, __le__ = order(np.less, "<"), order(np.less_equal, "<=")
    __gt__, __ge__ = order(np.greater, ">"), order(np.greater_equal, ">=")
    __eq__, __ne__ = equality(np.equal), equality(np.not_equal)
    __neg__, __pos__, __abs__ = unary(np.negative), unary(np.positive), unary(np.absolute)

    def __invert__(self) -> Any:
        is_pythons_truth = as_count(self.scope.graph, self.node, self.node) != self.node
        return -self - 1 if is_pythons_truth else np.invert(self)  # ~True is -2

    __iter__ = None  # or iter() would take __getitem__ for that of a sequence, and find no elements

    __floor__, __ceil__, __trunc__ = map(_rounding, (np.floor, np.ceil, np.trunc))

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
        if are_whole(self.scope.graph, self.node):  # numbers that it equals have a derivative of zero
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
                    if scope.graph.integers:
                        node = keeping_integers(scope.graph, ufunc.__name__, node, nodes)
                    if scope.graph.floats:
                        note_result(scope.graph, node, nodes, by_operator=False)
                    if node >= scope.graph.placed:
                        scope.graph.place(sys._getframe(1))
                    return Scalar(node, scope)
        return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return an array without axes: an object, or the number or truth value for a number dtype."""
        convert = None if dtype is None else _CONVERSIONS.get(np.dtype(dtype).kind)
        if convert is not None:
            return np.array(convert(self), dtype=dtype)
        if dtype is None and is_boolean(self.scope.graph, self.node) and asked_by_an_index(sys._getframe(1)):
            return np.array(truth_of(self.scope, self.node))  # all of an ordinary array, or nothing
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
            return math.nan  # the error is noted, and the result of the run is refused

    def __int__(self) -> int:
        """Follow the value, as `if` does: int() is piecewise constant, so its derivative is zero where it exists."""
        whole = self.node if are_whole(self.scope.graph, self.node) else UFUNCS["trunc"](self.scope.graph, self.node)
        return whole_of(self.scope, whole, "int() of a traced number")

    def __complex__(self) -> complex:
        if stores_item():
            raise store_error()
        return complex(self._constant("a complex number"))

    def __index__(self) -> int:
        if are_whole(self.scope.graph, self.node):
            return whole_of(self.scope, self.node, "a traced whole number as an index or a count", is_index=True)
        if is_boolean(self.scope.graph, self.node) and isinstance(subscripted(), list | tuple):
            return int(truth_of(self.scope, self.node))
        do = "write int(...), which follows the value when the function gets numbers"
        refuse_number("an integer index", do, FloatIndexError)

    def __round__(self, digits: int | None = None) -> Any:
        if digits is not None:
            return rounded_to(self, digits) if self.node in self.scope.graph.floats else np.round(self, digits)
        return _rounding(np.round)(self)

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
        """Return `.sin()`, `.arctan2(other)`..., which NumPy's loops over object arrays call, and ndarray methods."""
        if name in _OF_INTEGERS and is_integer(self.scope.graph, self.node):
            return getattr(operator.index(self), name)
        if name in UFUNCS and isinstance(getattr(np, name, None), np.ufunc):
            ufunc = getattr(np, name)
            return lambda *others: ufunc(self, *others)
        if name in ARRAY_METHODS:
            whole = getattr(np, name)
            return lambda *args, **keywords: whole(self, *args, **keywords)
        if name == "dtype" and not is_library(sys._getframe(1).f_code.co_filename):  # see ARRAY_METHODS
            self._check_numpys("dtype")
            return np.dtype(bool if is_boolean(self.scope.graph, self.node) else np.float64)
        refuse_attribute("a traced scalar", self.apparent_kind(), name)

    def __getitem__(self, key: Any) -> Any:
        """Return the scalar for () and ..., an array for None and truth values, as NumPy's numbers do."""
        keys = key if isinstance(key, tuple) else (key,)
        try:
            element = np.ravel(self)[(0, *keys)]
        except IndexError:
            raise ScalarIndexError(
                f"index {key!r} of a traced number",
                where=user_place(),
                why="a number has no axis",
                do="(), ... and None are its indices; np.atleast_1d(x) makes an array of it",
            ) from None
        return element if element.shape else self

    def copy(self, memo: object = None) -> Scalar:
        """Return the scalar itself."""
        return self

    __copy__ = __deepcopy__ = copy

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
        """Bytes of the number in its place."""
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
        """Return the number as one of Python's; an index is 0 or ().

        Compiled code, which may ask repeatedly until it gets a float, is refused.
        """
        frame = sys._getframe(1)
        code = (frame.f_back or frame).f_code if is_dispatch(frame) else frame.f_code
        if not _ITEMS & {*code.co_names, *filter(lambda text: type(text) is str, code.co_consts)}:
            refuse_number("a float")
        return np.ravel(self).item(*index) if index else as_pythons(self)

    tolist = item

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
    """Return the nodes of Scalars (none deeper than `scope`) and Python numbers; None for other values."""
    nodes = []
    for value in values:
        if type(value) is Scalar:
            if value.scope is not scope and join(value.scope, scope) is not scope:
                return None
            nodes.append(value.node)
        elif type(value) in NUMBERS:
            nodes.append(scope.graph.number(value))
        else:
            return None
    return nodes


_ITEMS = {"item", "tolist"}  # names in Python code that asks for an item
# NumPy sees no `dtype`: np.mean of a list of traced scalars would then call np.float64 on their sum.
ARRAY_METHODS = frozenset(
    {"all", "any", "argmax", "argmin", "argsort", "clip", "cumprod", "cumsum", "diagonal", "dot", "max"}
    | {"mean", "min", "nonzero", "prod", "ravel", "repeat", "round", "searchsorted", "squeeze", "std", "sum"}
    | {"swapaxes", "take", "trace", "transpose", "var"}
)
