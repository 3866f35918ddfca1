"""A traced NumPy array. Its node ids are an ordinary int64 ndarray, so views are NumPy's own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from types import MethodType
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp
from numpy.lib.mixins import NDArrayOperatorsMixin

import symad.tracing.values.node_builders as op
from symad.errors import TraceError
from symad.reach.reach_trails import Trail
from symad.reach.reach_walk import ROWS, ReachWalk
from symad.tracing.calling.recorded_errors import discard_recorded_error
from symad.tracing.calling.scope import Scope, innermost_scope, join
from symad.tracing.calling.user_place import has_labels, is_library, stores_item, user_place
from symad.tracing.values.array_form import ArrayForm
from symad.tracing.values.computed_places import picked, stored
from symad.tracing.values.constant_nodes import constant, is_boolean
from symad.tracing.values.known_numbers import Nodes, SymbolicValueError, shown_value, truth_of, value_of, values_of
from symad.tracing.values.mask_selection import Selection, has_selection, mask_of_places, settled
from symad.tracing.values.node_arrays import all_truths, constants, elementwise, like
from symad.tracing.values.node_operands import nodes_of, scope_of
from symad.tracing.values.object_arrays import asked_by_an_index, check_making, may_trace_ordinary_arrays, refuse_places
from symad.tracing.values.python_numbers import as_pythons
from symad.tracing.values.scalar import ARRAY_METHODS, Scalar
from symad.tracing.values.traced import (
    AxesError,
    NumberError,
    StoreError,
    TextIndexError,
    TracedText,
    is_left_to,
    refuse_attribute,
    refuse_number,
    store_error,
    takes_no_error,
)
from symad.tracing.values.whole_numbers import are_whole

_SHARING = {"require", "asarray_chkfinite", "as_strided"}  # Python functions of NumPy whose result shares memory


def _in_place(function: Callable[..., Any]) -> Callable[..., None]:
    """Return a method that sorts in place, following the values."""

    def method(self: Array, *args: Any, **keywords: Any) -> None:
        with self.scope.graph.arrays.storing(self.nodes):
            self.nodes[...] = function(self, *args, **keywords).nodes

    return method


class Array(ArrayForm, NDArrayOperatorsMixin):
    """A traced array of numbers or truth values: `nodes` holds one node of the graph of `scope` per element.

    Slices and reshaped forms are views, as in NumPy: writing into one writes into the array it was taken from.

    >>> from symad.tracing.calling.scope import open_scope
    >>> with open_scope() as scope:
    ...     x = Array(np.array([scope.graph.alias(scope.graph.number(k)) for k in range(3)]), scope)
    ...     x[1:] *= 2
    ...     x.shape, x.dtype, (x + 1).sum().ndim
    ((3,), dtype('float64'), 0)
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def _made(self, nodes: Nodes) -> Array:
        return Array(nodes, self.scope)

    # User code that asks isinstance(x, np.ndarray) must take its array branch. NumPy's own C code sees the real type.
    __class__ = property(lambda self: np.ndarray)

    @property
    def flat(self) -> Array:
        """The elements in C order; like NumPy's `flat` it can be read, iterated and assigned."""
        nodes = self.nodes.reshape(-1)
        return Array(nodes, self.scope) if np.may_share_memory(nodes, self.nodes) else FlatView(nodes, self)

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return (self[k] for k in range(len(self.nodes)))

    def __getitem__(self, key: Any) -> Any:
        self.scope.check_open()
        if isinstance(key, str):
            raise TextIndexError
        if has_selection(key):
            return self._at_selected(key)
        try:
            nodes = self.nodes[plain_index(key)]
        except TraceError as error:
            gathered = self._gathered(key)
            if gathered is None and isinstance(error, SymbolicValueError):
                gathered = self._selected(key, error)
            if gathered is None:
                raise
            discard_recorded_error(error)
            return gathered
        return Array(nodes, self.scope) if isinstance(nodes, np.ndarray) else Scalar(int(nodes), self.scope)

    def _gathered(self, key: Any) -> Any:
        """Return `self[key]` for a key that is known in the body of a loop, or computed; None for any other."""
        scope = innermost_scope()
        if scope is None or (nodes := self._at(scope, key)) is None:
            return None
        parts, base = key if isinstance(key, tuple) else (key,), self.nodes
        if not all(part is None or isinstance(part, int | slice | type(...)) or np.ndim(part) == 0 for part in parts):
            return wrap(nodes, scope)  # a copy, not a view

        def again() -> Nodes | None:
            return Array(base, scope)._at(scope, key) if scope.open else None

        return shown(scope, nodes, [base], again)

    def _at(self, scope: Scope, key: Any) -> Nodes | None:
        gathered = None if scope.gather is None else scope.gather(self.nodes, key)
        return picked(scope_of(self, key), self.nodes, key) if gathered is None else gathered

    def _selected(self, key: Any, error: SymbolicValueError) -> Any:
        """Return the selection of a traced mask of the first axes, or of masks of single axes; None for other keys."""
        if self._is_mask(key):
            return Selection(self.__copy__(), key.__copy__())
        parts = key if isinstance(key, tuple) else (key,)
        if not any(_is_axis_mask(part) for part in parts):
            return None
        discard_recorded_error(error)
        return self[tuple([_places_in(part) if _is_axis_mask(part) else part for part in parts])]

    def _at_selected(self, key: Any) -> Any:
        """Return the elements at selected places."""
        parts = key if isinstance(key, tuple) else (key,)
        first = next(part for part in parts if isinstance(part, Selection))
        if not all(isinstance(part, Selection) and part.has_mask(first.mask) and not part.rest for part in parts):
            return self[settled(key)]
        places = tuple([part.full for part in parts])
        if any(place.dtype == bool for place in places):
            return self[settled(key)]
        return Selection(self[places if len(places) > 1 else places[0]], first.mask)

    def _is_mask(self, key: Any) -> bool:
        """Whether a key is a traced mask of all elements, or of all parts along the first axes."""
        return type(key) is Array and key.shape == self.shape[: key.ndim] and all_truths(key.scope.graph, key.nodes)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.scope.check_open()
        key = mask_of_places(key, self.shape) if has_selection(key) else key
        if isinstance(value, Selection) and not (self._is_mask(key) and value.has_mask(key)):
            value = value.settled()
        if isinstance(value, Selection):
            value, key = np.where(value.wide_mask, value.full, self), ...
        scope = join(self.scope, scope_of(key, value, default=self.scope))
        new = like(scope.graph, self.nodes, nodes_of(value, scope))
        with scope.graph.arrays.storing(self.nodes):
            if new.ndim == 0 and isinstance(key, Array) and all_truths(scope.graph, key.nodes):
                mask = self._masked(key)  # one value for all masked elements: a choice, which needs no values
                self.nodes[...] = elementwise(scope.graph, op.select, mask, new, self.nodes)
            else:
                self._store(scope, key, new)
        self.scope = scope  # a stored value of a deeper level limits the life of the array to that level

    def _store(self, scope: Scope, key: Any, new: Nodes) -> None:
        """Store nodes at an index. At a computed one, each element becomes a choice."""
        try:
            plain = plain_index(key)
        except SymbolicValueError as error:
            if _is_axis_mask(key) and key.shape == self.shape:
                discard_recorded_error(error)
                key = _places_in(key)
            chosen = stored(scope, self.nodes, key, new)
            if chosen is None:
                raise
            discard_recorded_error(error)
            self.nodes[...] = chosen
        else:
            self.nodes[plain] = new

    def _masked(self, key: Array) -> Nodes:
        if key.shape != self.shape[: key.ndim]:
            raise IndexError(f"boolean index did not match: shape {key.shape} for an array of shape {self.shape}")
        return key.nodes.reshape(key.shape + (1,) * (self.ndim - key.ndim))

    def __bool__(self) -> bool:
        if self.size != 1:
            text = "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
            raise ValueError(text)
        return truth_of(self.scope, int(self.nodes.flat[0]))

    def __float__(self) -> float:
        return float(self._only())

    def __int__(self) -> int:
        return int(self._only())

    def __index__(self) -> int:
        return self._only().__index__()

    def __contains__(self, value: Any) -> bool:
        return bool(np.any(self == value))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return an object array of Scalars; constants also as numbers, if a number dtype is asked for."""
        if dtype is None and asked_by_an_index(sys._getframe(1)):
            return np.asarray(self._index_of_ordinary())
        if dtype is None:
            check_making(sys._getframe(1))
        if dtype is None or np.dtype(dtype) == object:
            scalars, flat = np.empty_like(self.nodes, dtype=object), np.empty(self.size, dtype=object)
            flat[:] = [Scalar(node, self.scope) for node in self.nodes.ravel().tolist()]
            scalars[...] = flat.reshape(self.shape)
            scalars.flags.writeable = False  # np.asarray(x)[0] = ... would not reach x: there, the second run does
            asking = sys._getframe(1).f_code
            if not copy and (asking.co_name in _SHARING or not is_library(asking.co_filename)):
                self.nodes.flags.writeable = False  # nor would x[0] = ... reach np.asarray(x)
            return scalars
        if stores_item():
            raise store_error()
        known = numbers_of_constants(self)
        if known is None:
            try:
                refuse_number(f"an ordinary {np.dtype(dtype)} array")
            except NumberError:
                if not takes_no_error():
                    raise
                return np.full(self.shape, np.nan, dtype)  # the error is noted, and the result of the run is refused
        return known.astype(dtype)

    def _index_of_ordinary(self) -> Any:
        """Return its values as an index. A store into an ordinary array at a mask without values is refused."""
        try:
            return plain_index(self)
        except SymbolicValueError as error:
            if stores_item() and all_truths(self.scope.graph, self.nodes):
                discard_recorded_error(error)
                raise store_error() from None
            if not may_trace_ordinary_arrays():
                raise
            discard_recorded_error(error)
            refuse_places()

    def __repr__(self) -> str:
        return TracedText(f"<traced {self}>")

    def __str__(self) -> str:
        shown = [shown_value(self.scope, node) for node in self.nodes.ravel().tolist()]
        if any(isinstance(value, str) for value in shown):
            return TracedText(np.array2string(np.array(list(map(str, shown)), dtype=object).reshape(self.shape)))
        return TracedText("~" + np.array2string(np.array(shown).reshape(self.shape)))

    def __format__(self, specification: str) -> str:
        return TracedText(format(str(self), specification))

    def item(self, *index: Any) -> Scalar:
        """Return one element, as a traced number of Python's."""
        return as_pythons(Scalar(int(self.nodes.item(*index)), self.scope))  # type: ignore[no-any-return]

    def tolist(self) -> Any:
        """Return nested lists of traced numbers of Python's."""
        numbers = self.__array__().copy()
        for place, number in enumerate(numbers.flat):
            numbers.flat[place] = as_pythons(number)
        return numbers.tolist()

    def fill(self, value: Any) -> None:
        """Set every element."""
        self[...] = value

    def __getattr__(self, name: str) -> Any:
        """Answer the ndarray methods that are NumPy functions of the same name: `.sum()`, `.ravel()`, `.argmax()`..."""
        if name == "flags" and has_labels(sys._getframe(1).f_code.co_filename):
            return self.nodes.flags
        function = getattr(np, name, None) if name in _METHODS else None
        if function is None:
            refuse_attribute("a traced array", np.ndarray, name)
        return MethodType(function, self)

    sort, partition = _in_place(np.sort), _in_place(np.partition)

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Any:
        """Return the slices for which the condition (by its values) holds."""
        return np.compress(condition, self, axis, out)

    def _only(self) -> Scalar:
        if self.size != 1 or self.ndim:
            raise AxesError("only 0-dimensional arrays can be converted to Python scalars")
        return Scalar(int(self.nodes.flat[0]), self.scope)


def _left_to_others(name: str) -> Callable[[Array, Any], Any]:
    """Return an operator that leaves operands with rules of their own (labels, units, matrices of SymPy) to them."""
    method, of_matrices = vars(NDArrayOperatorsMixin)[name], name in ("__mul__", "__rmul__")

    def operator(self: Array, other: Any) -> Any:
        others = is_left_to(other) or (of_matrices and isinstance(other, sp.MatrixBase))
        return NotImplemented if others else method(self, other)

    return operator


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul", "and", "or", "xor"):
    for _method in (f"__{_name}__", f"__r{_name}__"):
        setattr(Array, _method, _left_to_others(_method))
for _method in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
    setattr(Array, _method, _left_to_others(_method))


class Picked(Array):
    """The elements at an unknown index, where NumPy has a view: they are read-only here.

    Later stores into the array change them too.
    """

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        raise StoreError(
            "a value is stored into what an index whose value is not known picks",
            where=user_place(),
            why="NumPy has a view there, and the store would not reach the array it is of",
            do="store into the array itself, or into a copy: a[i].copy()",
        )


def shown(scope: Scope, nodes: Nodes, bases: Sequence[Nodes], pick_anew: Callable[[], Nodes | None]) -> Any:
    """Return the elements of arrays at an unknown place: a number, or a view (see `ArrayNodes.shown`)."""
    return Picked(scope.graph.arrays.shown(nodes, bases, pick_anew), scope) if nodes.ndim else wrap(nodes, scope)


class FlatView(Array):
    """The elements in C order of an array in another memory order. Stores reach the array."""

    __slots__ = ("whole",)

    def __init__(self, nodes: Nodes, whole: Array) -> None:
        super().__init__(nodes, whole.scope)
        self.whole: Array = whole

    def __getitem__(self, key: Any) -> Any:
        self.nodes = self.whole.nodes.reshape(-1)
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.nodes = self.whole.nodes.flatten()
        super().__setitem__(key, value)
        self.whole[...] = Array(self.nodes.reshape(self.whole.shape), self.scope)


_METHODS = (ARRAY_METHODS - {"transpose"}) | {"put", "argpartition", "choose"}


def wrap(nodes: Nodes, scope: Scope) -> Scalar | Array:
    """Return the traced value of node ids: a Scalar for a 0-d array or a number, else an Array."""
    nodes = np.asarray(nodes, dtype=np.int64)
    return Array(nodes, scope) if nodes.ndim else Scalar(int(nodes), scope)


def numbers_of_constants(value: Any) -> npt.NDArray[Any] | None:
    """Return the numbers in a traced array of constants, None for any other value."""
    if type(value) is not Array:
        return None
    known = [constant(value.scope.graph, node) for node in value.nodes.ravel().tolist()]
    if any(number is None for number in known):
        return None
    return np.array([float(number) for number in known if number is not None]).reshape(value.shape)


def plain_index(key: Any) -> Any:
    """Return an index without traced values: masks and whole numbers follow their values (a decision)."""
    if isinstance(key, tuple):
        return tuple(plain_index(part) for part in key)
    if isinstance(key, Scalar):
        return truth_of(key.scope, key.node) if is_boolean(key.scope.graph, key.node) else _place(key)
    if isinstance(key, Array):
        values = values_of(key.scope, key.nodes)
        if values.dtype == bool:
            return values
        are_places = key.size > 1 and np.isfinite(values).all() and are_whole(key.scope.graph, key.nodes)
        if are_places or not key.size:
            return values.astype(np.intp)
        return np.array([_place(part) for part in key.flat]).reshape(key.shape)
    if isinstance(key, list | np.ndarray) and np.asarray(key).dtype == object:
        return np.array([plain_index(part) for part in key])
    return key


def _place(key: Scalar) -> int:
    """Return the value of a whole number; any other number is an error, not a path."""
    if not are_whole(key.scope.graph, key.node):
        return key.__index__()
    return int(value_of(key.scope, key.node))


def _is_axis_mask(part: Any) -> bool:
    return type(part) is Array and part.ndim == 1 and all_truths(part.scope.graph, part.nodes)


def _places_in(mask: Array) -> Any:
    """Return the places in a mask. Each possible number of them is a path."""
    return Selection(Array(constants(mask.scope.graph, np.arange(len(mask))), mask.scope), mask).settled()


def _keep_nodes(walk: ReachWalk, value: Array, trail: Trail) -> None:
    """Note the nodes of a traced array, which stores change."""

    def put_back(old: Any) -> None:
        value.nodes[...], value.scope = old

    if walk.restores:
        walk.ask(lambda: (value.nodes.copy(), value.scope), "an array", trail, put_back, value)


ROWS[id(Array)] = _keep_nodes
