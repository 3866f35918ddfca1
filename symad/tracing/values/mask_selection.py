"""A selection: the elements that a mask without values picks. Their number is not known.

It supports elementwise operations with numbers and with selections by the same mask, sums, sorting, and stores where
the mask holds: all of these are choices between whole arrays. Its length is a traced whole number, its elements are at
computed places. For all other operations each possible length is a path, on which it becomes an array: later stores
into a view of that array reach it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from symad.errors import TraceError
from symad.tracing.calling.user_place import is_library, user_place
from symad.tracing.values.bounds import Bounds, bounds_of
from symad.tracing.values.constant_nodes import constant
from symad.tracing.values.node_operands import as_integers
from symad.tracing.values.object_arrays import asked_by_an_index, may_trace_ordinary_arrays, refuse_places
from symad.tracing.values.traced import Traced
from symad.tracing.values.whole_numbers import are_noted, as_integer
from symad.tracing.values.whole_values import NoNumberError, OutsideError, no_value_where, whole_of

FORMS: dict[Callable[..., Any], Callable[..., Any]] = {}  # NumPy's functions of a selection (`numpy.selections`)


class Selection(NDArrayOperatorsMixin, Traced):
    """The parts of `full` at which a mask holds: traced arrays, whose first axes are those of the mask."""

    __slots__ = ("full", "is_settled", "mask", "paths")

    is_settled: bool

    def __init__(self, full: Any, mask: Any) -> None:
        self.full, self.mask, self.is_settled = full, mask, False
        self.paths = self.scope.deciding()  # on one of which it was made

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """For user code that asks isinstance(x, np.ndarray): the type that it has on numbers."""
        return Selection if is_library(sys._getframe(1).f_code.co_filename) else np.ndarray

    scope: Any = property(attrgetter("full.scope"), doc="The scope of the elements.")
    dtype: Any = property(attrgetter("full.dtype"), doc="That of the whole array.")
    most: Any = property(attrgetter("mask.size"), doc="The largest possible number of parts.")

    @property
    def rest(self) -> tuple[int, ...]:
        """The shape of one part."""
        return tuple(self.full.shape[self.mask.ndim :])

    @property
    def count(self) -> Any:
        """The number of parts: a traced whole number, unless it is settled."""
        if self.is_settled:
            return len(self.full)
        total = np.sum(np.where(self.mask, 1, 0))
        if isinstance(total, Traced):
            graph, node = total.scope.graph, int(total.node)  # type: ignore[attr-defined]
            graph.whole[range(node, node + 1)] = Bounds(max(0, bounds_of(graph, node).low), self.most, False)
        return as_integer(total)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape, with a traced first number."""
        return (self.count, *self.rest)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return 1 + len(self.rest)

    @property
    def size(self) -> Any:
        """The number of elements, which is traced."""
        return self.count * math.prod(self.rest) if self.rest else self.count

    @property
    def T(self) -> Any:  # noqa: N802 (NumPy's name)
        """Itself if it has one axis."""
        return self.settled().T if self.rest else self

    @property
    def wide_mask(self) -> Any:
        """The mask with an axis for each one of a part."""
        return np.reshape(self.mask, self.mask.shape + (1,) * len(self.rest))

    def has_mask(self, mask: Any) -> bool:
        """Whether a mask holds at the same elements, whatever their values."""
        return bool(getattr(mask, "shape", None) == self.mask.shape and np.array_equal(mask.nodes, self.mask.nodes))

    def where(self, otherwise: Any) -> Any:
        """Return the whole array with another value where the mask does not hold."""
        return np.where(self.wide_mask, self.full, otherwise)

    def packed(self) -> Any:
        """Return the largest possible number of parts, those of the selection first."""
        order = np.argsort(np.where(np.ravel(self.mask), 0.0, 1.0), kind="stable")
        return self._of_full(np.take(np.reshape(self.full, (self.most, *self.rest)), order, axis=0))

    def _of_full(self, elements: Any) -> Any:
        """Return elements of the parts, noted as integers if they are places."""
        are_places = not _is_truth(self.full) and are_noted(self.scope.graph, self.full.nodes)
        return as_integers(elements) if are_places else elements

    def settled(self) -> Any:
        """Return the parts as an array, which they stay. Each possible number of them is a path."""
        if self.is_settled:
            return self.full
        paths = self.scope.deciding()
        if paths is not None and self.most >= paths.limit:
            self.refuse()
        length = self._length(at_once=True)
        if paths is not None and paths is not self.paths:
            paths.changes_outside(partial(self._put_back, self.full, self.mask))
        self.full = self.packed()[:length]
        self.mask = np.full_like(self.full[(slice(None), *[0] * len(self.rest))], True, dtype=bool)
        self.is_settled = True
        return self.full

    def _put_back(self, full: Any, mask: Any) -> None:
        """Be what it was before a path settled its length."""
        self.full, self.mask, self.is_settled = full, mask, False

    def at(self, place: int) -> Any:
        """Return the part at a place, counted from the beginning or the end; without a value out of bounds."""
        if self.rest or self.is_settled:  # a view
            return self.settled()[place]
        count = self.count
        outside = OutsideError(f"index {place} is out of bounds for what a mask picks")
        no_value_where(count <= place if place >= 0 else count < -place, outside)
        k = np.floor(np.clip(count * (place < 0) + place, 0, self.most - 1))
        return self._of_full(np.take(self.packed(), k, axis=0))

    def check_some(self) -> None:
        """Note that there is no value if the mask holds nowhere, for which NumPy raises an error."""
        no_value_where(self.count < 1, NoNumberError("of nothing, which a mask picks, there is none"))

    def refuse(self) -> NoReturn:
        """Raise the error for a question that only numbers can answer."""
        raise TraceError(
            "the elements that a traced mask picks were asked for, one by one or by their number",
            where=user_place(),
            why=f"how many of {self.most} there are depends on the arguments, and each number of them is a path",
            do="choose with np.where(mask, value, 0) and sum up; raise max_paths; or call the function on numbers",
        )

    @property
    def nodes(self) -> Any:
        """The nodes of an array of a known length."""
        return self.settled().nodes

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        form = FORMS.get(getattr(np, name, None)) if name != "sort" else None  # type: ignore[arg-type]
        if form is None:  # also for views, and changes in place
            return getattr(self.settled(), name)
        return lambda *args, **keywords: getattr(np, name)(self, *args, **keywords)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in Selection.__slots__:
            object.__setattr__(self, name, value)
        else:
            setattr(self.settled(), name, value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if dtype is None and asked_by_an_index(sys._getframe(1)) and may_trace_ordinary_arrays():
            refuse_places()
        return self.settled().__array__(dtype, copy=copy)

    def __len__(self) -> int:
        return self._length(at_once=False)

    def _decided(self) -> Any:
        """Return the count, which each path decides from here on."""
        paths = self.scope.deciding()
        if paths is not None:
            paths.has_lengths = True
        return self.count

    def _length(self, *, at_once: bool) -> int:
        count = self._decided()
        if not isinstance(count, Traced):
            return int(count)
        return whole_of(count.scope, count.node, _LENGTH, at_once=at_once)  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[Any]:
        if self.rest or self.is_settled:
            yield from self.settled()
            return
        packed, count = self.packed(), self._decided()
        for k in range(self.most):
            if not count > k:
                return
            yield packed[k]

    def __bool__(self) -> bool:
        return bool(self.settled())

    def __float__(self) -> float:
        return float(self.settled())

    def __contains__(self, value: object) -> bool:
        return bool(np.any(self == value))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out", ())
        if not any(isinstance(value, Selection) and value.is_settled for value in (*inputs, *out)):
            reduced = FORMS.get(ufunc.reduce) if method == "reduce" and not out else None
            if reduced is not None and len(inputs) == 1:
                return reduced(*inputs, **{"axis": 0, **kwargs})
            picked = selected(ufunc, inputs) if method == "__call__" and set(kwargs) <= {"out"} else None
            if picked is not None and (not out or _takes(out, picked)):
                return _written(picked, out)
        if out:
            kwargs["out"] = tuple(map(settled, out))
        result = getattr(ufunc, method)(*map(settled, inputs), **kwargs)
        return out[0] if len(out) == 1 else result

    def __array_function__(
        self, function: Callable[..., Any], types: Sequence[type], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        form = None if self.is_settled else FORMS.get(function)
        result = NotImplemented if form is None else form(*args, **kwargs)
        if result is not NotImplemented:
            return result
        return function(*map(settled, args), **{name: settled(value) for name, value in kwargs.items()})

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, Selection) and key.has_mask(self.mask) and _is_truth(key.full) and not key.rest:
            return Selection(self.full, self.mask & key.full)
        if isinstance(key, int | np.integer) and not isinstance(key, bool):
            return self.at(int(key))
        return self.settled()[settled(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        is_mask = isinstance(key, Selection) and key.has_mask(self.mask) and _is_truth(key.full)
        if is_mask and not np.ndim(value) and not (self.is_settled or self.rest or _is_truth(self.full)):
            self.full = np.where(key.full, value, self.full)
        else:
            self.settled()[settled(key)] = settled(value)

    def copy(self) -> Selection:
        """Return the same elements, to be stored into."""
        return Selection(self.full.copy() if self.is_settled else self.full, self.mask)


_LENGTH = "the number of elements that a traced mask picks"


def settled(value: Any) -> Any:
    """Return a value with arrays of known lengths in place of selections, also inside lists."""
    if isinstance(value, list | tuple):
        return type(value)([settled(part) for part in value])
    return value.settled() if isinstance(value, Selection) else value


def has_selection(key: Any) -> bool:
    """Whether an index is a selection, or has one among its parts."""
    return type(key) is Selection or (type(key) is tuple and any(type(part) is Selection for part in key))


def mask_of_places(key: Any, shape: tuple[int, ...]) -> Any:
    """Return the mask that holds at selected places; the key with known lengths if there is none."""
    parts = key if isinstance(key, tuple) else (key,)
    first = next(part for part in parts if isinstance(part, Selection))
    alike = all(isinstance(part, Selection) and part.has_mask(first.mask) for part in parts)
    if alike and first.mask.ndim == len(parts) and first.mask.shape == shape[: len(parts)]:
        grids = np.indices(first.mask.shape)
        own = [_counted_values(part) for part in parts]
        if all(places is not None and np.array_equal(places, grid) for places, grid in zip(own, grids, strict=True)):
            return first.mask
    return settled(key)


def _counted_values(part: Any) -> Any:
    if not isinstance(part, Selection) or part.full.dtype == bool:
        return None
    known: list[Any] = [constant(part.scope.graph, node) for node in part.full.nodes.ravel().tolist()]
    return None if None in known else np.reshape(known, part.full.shape)


def selected(ufunc: np.ufunc, inputs: Sequence[Any]) -> Any:
    """Return a ufunc of selections by one mask, and of numbers; None if that is no selection."""
    (first, *others) = (value for value in inputs if isinstance(value, Selection))
    if any(not other.has_mask(first.mask) for other in others) or ufunc.nout != 1:
        return None
    if ufunc is np.matmul and len(others) == 1 and not first.rest and not others[0].rest:
        return np.sum(first * others[0])
    by_the_user = ufunc.__name__.endswith("(vectorized)")  # which may raise for elements that are not picked
    widest = max(len(value.rest) for value in (first, *others))
    if ufunc.signature or by_the_user or any(len(value.rest) != widest for value in (first, *others)):
        return None
    if any(not isinstance(value, Selection) and np.ndim(value) > widest for value in inputs):
        return None
    return Selection(ufunc(*[value.full if isinstance(value, Selection) else value for value in inputs]), first.mask)


def _takes(out: Sequence[Any], result: Selection) -> bool:
    """Whether `out=` is one selection by the same mask, of the same kind."""
    (target, *more) = out
    alike = not more and isinstance(target, Selection) and target.has_mask(result.mask)
    return alike and _is_truth(result.full) is _is_truth(target.full) and result.full.shape == target.full.shape


def _written(result: Selection, out: Sequence[Selection]) -> Selection:
    if not out:
        return result
    out[0].full = result.full
    return out[0]


def _is_truth(array: Any) -> bool:
    return bool(array.dtype == bool)
