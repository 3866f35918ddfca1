"""Selection: what a mask without values picks of a traced array. How many elements it has is not known.

It can be computed with elementwise, together with numbers and with what the same mask picks of other arrays; it can be
summed up, and stored where the mask picks: all of these are choices between whole arrays. Anything else is refused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from symad.tracing.calling.scope import Scope
from symad.tracing.calling.user_place import is_library
from symad.tracing.values.known_numbers import symbolic_error
from symad.tracing.values.traced import Traced


class Selection(NDArrayOperatorsMixin, Traced):
    """The elements of `full` that a mask picks; both are traced arrays of one shape."""

    def __init__(self, full: Any, mask: Any) -> None:
        self.full, self.mask = full, mask

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """For the user's code, which asks isinstance(x, np.ndarray): the type that it has on numbers."""
        return Selection if is_library(sys._getframe(1).f_code.co_filename) else np.ndarray

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        """The scope of the elements."""
        found: Scope = self.full.scope
        return found

    @property
    def T(self) -> Selection:  # noqa: N802 (NumPy's name)
        """Itself: it has one axis."""
        return self

    def has_mask(self, mask: Any) -> bool:
        """Whether a mask picks the same elements, whatever they are."""
        return bool(getattr(mask, "shape", None) == self.mask.shape and np.array_equal(mask.nodes, self.mask.nodes))

    def refuse(self) -> NoReturn:
        """Raise the error for a question that only numbers can answer."""
        node = int(self.mask.nodes.max(initial=0))
        raise symbolic_error(self.mask.scope.graph, node, "the value of a traced array")

    @property
    def nodes(self) -> NoReturn:
        """Refused: there is no array of a known shape."""
        self.refuse()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse()

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self.refuse()

    def __len__(self) -> int:
        self.refuse()

    def __iter__(self) -> NoReturn:
        self.refuse()

    def __bool__(self) -> bool:
        self.refuse()

    def __float__(self) -> float:
        self.refuse()

    def __contains__(self, value: object) -> bool:
        self.refuse()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out, *more = kwargs.pop("out", (None,))
        if method != "__call__" or kwargs or more:
            self.refuse()
        made = selected(ufunc, inputs)
        if out is None:
            return made
        if not (isinstance(out, Selection) and isinstance(made, Selection) and out.has_mask(made.mask)):
            self.refuse()
        if _is_truth(made.full) is not _is_truth(out.full):
            self.refuse()
        out.full = made.full
        return out

    def __array_function__(
        self, function: Callable[..., Any], types: Sequence[type], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        form = _FORMS.get(function)
        if form is None or kwargs:
            self.refuse()
        return form(*args)

    def __getitem__(self, key: Any) -> Selection:
        if not isinstance(key, Selection) or not key.has_mask(self.mask) or not _is_truth(key.full):
            self.refuse()
        return Selection(self.full, self.mask & key.full)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(key, Selection) or not key.has_mask(self.mask) or not _is_truth(key.full) or np.ndim(value):
            self.refuse()
        if _is_truth(self.full):
            self.refuse()
        self.full = np.where(key.full, value, self.full)

    def copy(self) -> Selection:
        """Return the same elements, to be stored into."""
        return Selection(self.full, self.mask)

    def sum(self) -> Any:
        """Return their sum, 0 where there are none."""
        return np.sum(np.where(self.mask, self.full, 0.0))

    def prod(self) -> Any:
        """Return their product, 1 where there are none."""
        return np.prod(np.where(self.mask, self.full, 1.0))

    def mean(self) -> Any:
        """Return their mean, NaN where there are none."""
        return self.sum() / np.sum(np.where(self.mask, 1.0, 0.0))

    def any(self) -> Any:
        """Whether one of them is not 0."""
        return np.any(self.mask & (self.full != 0))

    def all(self) -> Any:
        """Whether none of them is 0."""
        return np.all(~self.mask | (self.full != 0))

    def dot(self, other: Any) -> Any:
        """Return the sum of the products with others."""
        if not isinstance(other, Selection):
            self.refuse()
        return (self * other).sum()


def selected(ufunc: np.ufunc, inputs: Sequence[Any]) -> Any:
    """Return a ufunc of what one mask picks of several arrays, and of numbers."""
    (first, *others) = (value for value in inputs if isinstance(value, Selection))
    if any(not other.has_mask(first.mask) for other in others) or ufunc.nout != 1:
        first.refuse()
    if ufunc is np.matmul and len(others) == 1:
        return first.dot(others[0])
    by_the_user = ufunc.__name__.endswith("(vectorized)")  # which may raise for elements that are not picked
    if ufunc.signature or by_the_user or any(not isinstance(value, Selection) and np.ndim(value) for value in inputs):
        first.refuse()
    return Selection(ufunc(*[value.full if isinstance(value, Selection) else value for value in inputs]), first.mask)


def _is_truth(array: Any) -> bool:
    return bool(array.dtype == bool)


def _dot(left: Any, right: Any) -> Any:
    return left.dot(right) if isinstance(left, Selection) else right.refuse()


def _like(value: float) -> Callable[[Selection], Selection]:
    return lambda selection: Selection(np.full_like(selection.full, value), selection.mask)


_FORMS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.sum: Selection.sum, np.prod: Selection.prod, np.mean: Selection.mean, np.any: Selection.any,
    np.all: Selection.all, np.dot: _dot, np.inner: _dot, np.vdot: _dot, np.copy: Selection.copy,
    np.zeros_like: _like(0.0), np.ones_like: _like(1.0),
}  # fmt: skip
