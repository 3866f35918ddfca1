"""Labelled arrays (pandas Series and DataFrames, xarray DataArrays) as containers of numbers.

Labels are static, and stay with derivatives: the gradient in a Series is a Series. Names of Series and arrays are left
out, so that a kernel takes each row of a DataFrame. Pandas and xarray take a traced array for one of NumPy's. Results
with other dimensions, such as a Hessian, are arrays without labels.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree

from symad.reach.strict_key import StrictKey
from symad.tracing.calling.running import callee
from symad.tracing.values.traced import Traced

Form = tuple[Callable[[Any], Any], Callable[[Any, Any], Any], type]
SHOWN = 6  # labels in a message


class _Here(optree.PyTreeEntry):
    """The numbers of a Series or a DataArray, spelled like the whole."""

    def codify(self, node: str = "") -> str:
        return node


def labelled_form(kind: type) -> Form | None:
    """Return how to flatten and rebuild instances of a class, and the spelling of their parts."""
    package = str(kind.__module__).partition(".")[0]
    if package == "pandas" and issubclass(kind, sys.modules["pandas"].Series):
        return _series_apart, functools.partial(_series, kind), _Here
    if package == "pandas" and issubclass(kind, sys.modules["pandas"].DataFrame):
        return _frame_apart, functools.partial(_frame, kind), optree.MappingEntry
    if package == "xarray" and issubclass(kind, sys.modules["xarray"].DataArray):
        return _array_apart, functools.partial(_array, kind), _Here
    return None


class _Index:
    """Labels as a key: equal if they, their names and their types are."""

    def __init__(self, labels: Any) -> None:
        self.labels = labels

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Index) and bool(self.labels.identical(other.labels))

    def __hash__(self) -> int:
        return hash((type(self.labels), len(self.labels)))

    def __repr__(self) -> str:
        shown = list(self.labels) if len(self.labels) <= SHOWN else [*self.labels[: SHOWN - 1], "...", self.labels[-1]]
        return f"{type(self.labels).__name__} of {len(self.labels)}: {', '.join(map(str, shown))}"


def _has(part: Any, *lengths: int) -> bool:
    """Whether a part is an array of this shape, or a number; a derivative of order 2 is neither."""
    return type(part) is float or (isinstance(part, Traced | np.ndarray) and np.shape(part) == lengths)  # type: ignore[arg-type]


def _numbers(series: Any) -> Any:
    """Return the array in a Series, ordinary or traced; pandas' public ways would make objects of a traced one."""
    held = series._values
    return held if isinstance(held, Traced | np.ndarray) else series.to_numpy()


def _holds_scalars(column: Any) -> bool:
    """Whether traced numbers are in a column; pandas takes them for objects where it is not asked by a stand-in."""
    return column.dtype == object and any(isinstance(item, Traced) for item in column)


def _series_apart(series: Any) -> Any:
    return [_numbers(series)], (_Index(series.index),), (0,)


def _series(kind: type, static: Any, parts: Sequence[Any]) -> Any:
    (index,), (part,) = static, parts
    if not _has(part, len(index.labels)):
        return part
    return callee(kind)(part, index=index.labels, copy=False)


def _frame_apart(frame: Any) -> Any:
    """Flatten a DataFrame: columns with numbers are parts, the others static."""
    columns = [frame.iloc[:, k] for k in range(frame.shape[1])]
    moving = [k for k, column in enumerate(columns) if column.dtype.kind in "fiu" or _holds_scalars(column)]
    static = tuple((k, StrictKey(tuple(columns[k]))) for k in range(len(columns)) if k not in moving)
    parts = [_numbers(columns[k]) for k in moving]
    return parts, (_Index(frame.index), _Index(frame.columns), static), tuple(frame.columns[k] for k in moving)


def _frame(kind: Any, static: Any, parts: Sequence[Any]) -> Any:
    index, columns, kept = static
    held = {k: column.value for k, column in kept}
    if not all(_has(part, len(index.labels)) for part in parts):
        names = (columns.labels[k] for k in range(len(columns.labels)) if k not in held)
        return dict(zip(names, parts, strict=True))
    rest = iter(parts)
    content = {k: held[k] if k in held else next(rest) for k in range(len(columns.labels))}
    frame = callee(kind)(content, index=index.labels, copy=False)
    frame.columns = columns.labels
    return frame


def _array_apart(array: Any) -> Any:
    coordinates = tuple(
        (name, part.dims, StrictKey(tuple(part.values.ravel().tolist()))) for name, part in array.coords.items()
    )
    return [array.data], (array.dims, array.shape, coordinates, _Kept(array.coords)), (0,)


class _Kept:
    """An object that accompanies a key without being part of it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kept)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"{type(self.value).__name__}"


def _array(kind: Any, static: Any, parts: Sequence[Any]) -> Any:
    dims, shape, _, coordinates = static
    (part,) = parts
    if not _has(part, *shape):
        return part
    data = np.full(shape, part) if type(part) is float else part
    return callee(kind)(data, dims=dims, coords=coordinates.value)
