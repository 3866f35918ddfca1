"""Check the memory of an array before NumPy allocates it, and add the user's place to NumPy's errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from codegen.limits import check_bytes
from symad.errors import MemoryLimitError, WorkspaceError
from symad.tracing.calling.user_place import raised_place, user_place
from symad.tracing.values.traced import Traced

Shape = tuple[int, ...]


def _of_shape(shape: Any = (), *_: Any, **keywords: Any) -> Shape:
    return tuple(map(int, shape)) if np.iterable(shape) else (int(shape),)


def _like(a: Any, *_: Any, shape: Any = None, **keywords: Any) -> Shape:
    return np.shape(a) if shape is None else _of_shape(shape)


def _matrix(*sizes: Any, **keywords: Any) -> Shape:
    rows, columns, *_ = [*sizes, keywords.get("M"), None]
    return int(rows), int(rows if columns is None else columns)


def _padded(array: Any, pad_width: Any, *_: Any, **keywords: Any) -> Shape:
    return tuple(np.add(np.shape(array), np.sum(np.broadcast_to(pad_width, (np.ndim(array), 2)), axis=1)).tolist())


def _repeated(a: Any, repeats: Any, *_: Any, **keywords: Any) -> Shape:
    count = int(np.sum(repeats))
    return (np.size(a) * count if np.size(repeats) == 1 else count,)


def _counted(start: Any, stop: Any = None, step: Any = 1, *_: Any, **keywords: Any) -> Shape:
    first, last = (0, start) if stop is None else (start, stop)
    return (max(math.ceil((last - first) / step), 0),)


def _spaced(start: Any, stop: Any, num: Any = 50, *_: Any, **keywords: Any) -> Shape:
    return (int(num), *np.broadcast_shapes(np.shape(start), np.shape(stop)))


def _diagonal(v: Any, k: Any = 0) -> Shape:
    size = np.size(v) + abs(int(k))
    return (size, size) if np.ndim(v) == 1 else ()


SHAPES: dict[Callable[..., Any], Callable[..., Shape]] = {
    np.zeros: _of_shape, np.ones: _of_shape, np.empty: _of_shape, np.full: _of_shape,
    np.zeros_like: _like, np.ones_like: _like, np.empty_like: _like, np.full_like: _like,
    np.eye: _matrix, np.tri: _matrix, np.identity: _matrix, np.pad: _padded,
    np.tile: lambda a, reps: (np.size(a) * math.prod(_of_shape(reps)),),
    **dict.fromkeys((np.outer, np.kron), lambda a, b, *_: (np.size(a), np.size(b))),
    np.vander: lambda x, N=None, *_, **keywords: (np.size(x), np.size(x) if N is None else int(N)),  # noqa: N803
    np.repeat: _repeated, np.arange: _counted, **dict.fromkeys((np.linspace, np.logspace, np.geomspace), _spaced),
    np.indices: lambda dimensions, *_, **keywords: (len(dimensions), *_of_shape(dimensions)),
    np.fromfunction: lambda function, shape, **keywords: (len(shape), *_of_shape(shape)),
    np.diag: _diagonal, np.diagflat: _diagonal, np.resize: lambda a, new_shape: _of_shape(new_shape),
}  # fmt: skip


def check_made(function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Raise MemoryLimitError for a NumPy array of more than `max_bytes`; NumPy finds other mistakes.

    >>> check_made(np.zeros, ((10**6, 10**6),), {})  # without a limit
    """
    try:
        shape = SHAPES[function](*args, **keywords) if function in SHAPES else ()
        size = np.dtype(keywords.get("dtype") or float).itemsize
    except (TypeError, ValueError, ArithmeticError):
        return
    if any(isinstance(size, Traced) for size in shape):
        return  # NumPy asks for each as a whole number, and the path decides
    check_bytes(f"np.{function.__name__}, of {' x '.join(map('{:,}'.format, shape)) or 1} numbers",
                size * math.prod(shape), where=user_place())  # fmt: skip


def told(error: Exception) -> Exception:
    """Return an error; a memory error with the user's place, and NumPy's own as one of ours."""
    if isinstance(error, WorkspaceError) or (isinstance(error, MemoryLimitError) and error.where):
        return error
    if isinstance(error, MemoryLimitError):
        return MemoryLimitError(error.what, where=raised_place(error), why=error.why, do=error.do)
    if not isinstance(error, MemoryError):
        return error
    converted = WorkspaceError(
        "there is no memory",
        where=raised_place(error),
        why=str(error) or "Python found none",
        do="make the arrays smaller; with max_bytes this is told before it is tried",
    )
    converted.__cause__ = error
    return converted


@contextmanager
def telling() -> Iterator[None]:
    """Raise errors of memory in this block with the user's place.

    >>> with telling():
    ...     raise MemoryError("too much")
    Traceback (most recent call last):
    ...
    codegen.errors.WorkspaceError: ...
    """
    try:
        yield
    except (MemoryError, MemoryLimitError) as error:
        converted = told(error)
        if converted is error:
            raise
        raise converted from error
