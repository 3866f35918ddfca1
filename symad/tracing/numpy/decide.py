"""NumPy functions whose answer is an index, an order or a truth value, and sorting: they follow the values.

Inside a derivative these answers are piecewise constant, so nothing is lost; symbolic values raise a TraceError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from symad.tracing.numpy.reduce import delivered, keeps_axes, traced
from symad.tracing.numpy.registry import implements
from symad.tracing.numpy.select import values
from symad.tracing.values.array import plain_index, wrap
from symad.tracing.values.complex_points import check_real
from symad.tracing.values.node_arrays import homogeneous
from symad.tracing.values.node_operands import nodes_of, scope_of
from symad.tracing.values.traced import refuse_function

ANSWERING: tuple[Callable[..., Any], ...] = (
    np.argmax, np.argmin, np.argsort, np.argpartition, np.lexsort, np.searchsorted, np.digitize, np.nonzero,
    np.flatnonzero, np.argwhere, np.isin, np.allclose, np.array_equal, np.array_equiv, np.nanargmax,
    np.nanargmin,
)  # fmt: skip


def _answering(function: Callable[..., Any]) -> Callable[..., Any]:
    def handler(*args: Any, **keywords: Any) -> Any:
        return function(*map(values, args), **{name: values(value) for name, value in keywords.items()})

    return handler


for _function in ANSWERING:
    implements(_function)(_answering(_function))


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    """The elements where the condition holds."""
    return np.ravel(arr)[np.ravel(values(condition)).astype(bool)]


@implements(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Any:
    """The elements of the choices that the index array picks."""
    scope = scope_of(a, out, *choices)
    parts = np.broadcast_arrays(*homogeneous(scope.graph, [nodes_of(choice, scope) for choice in choices]))
    return delivered(wrap(np.choose(plain_index(a), parts, mode=mode), scope), out)


@implements(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """Sums of the weights (or counts) by bin number; the numbers follow their values."""
    places = np.asarray(plain_index(x))
    if weights is None:
        return np.bincount(places, minlength=minlength)
    weights = traced(weights)
    made = np.full_like(weights, 0.0, shape=(max(minlength, int(places.max(initial=-1)) + 1),))
    np.add.at(made, places, weights)
    return made


@implements(np.result_type, np.common_type)
def result_type(*values: Any) -> Any:
    """float64, the dtype of traced values."""
    return np.dtype(np.float64)


def _of_real(name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
    def handler(*args: Any, **keywords: Any) -> Any:
        check_real(f"np.{name}")
        return answer(*args, **keywords)

    return handler


_OF_REAL: dict[str, Callable[..., Any]] = {  # traced values are real
    "iscomplexobj": lambda x: False,
    "isrealobj": lambda x: True,
    "isreal": lambda x: np.ones(np.shape(x), dtype=bool),
    "iscomplex": lambda x: np.zeros(np.shape(x), dtype=bool),
    "real": lambda val: val,
    "imag": lambda val: val.imag,
    "real_if_close": lambda a, tol=100: a,
}
for _name, _answer in _OF_REAL.items():
    implements(getattr(np, _name))(_of_real(_name, _answer))


@implements(np.array_repr, np.array_str, np.array2string)
def array_text(a: Any, *args: Any, **keywords: Any) -> str:
    """The text of a traced array."""
    return str(a)


@implements(np.sort)
def sort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """The elements in the order of their values."""
    a = traced(a)
    a = np.ravel(a) if axis is None else a
    axis = -1 if axis is None else axis
    return np.take_along_axis(a, np.argsort(a, axis=axis, kind="stable", order=order), axis)


@implements(np.partition)
def partition(a: Any, kth: Any, axis: int | None = -1, kind: Any = "introselect", order: Any = None) -> Any:
    """The elements with the kth in its sorted place (here: all of them)."""
    return sort(a, axis)


def _rows(a: Any, axis: Any) -> tuple[Any, list[int]]:
    """Return an array with the given axes merged into a last one, and its shape with those axes of length 1."""
    a = traced(a)
    axes = normalize_axis_tuple(range(a.ndim) if axis is None else axis, a.ndim)
    kept = [k for k in range(a.ndim) if k not in axes]
    rows = np.reshape(np.transpose(a, [*kept, *axes]), [*(a.shape[k] for k in kept), -1])
    return rows, [1 if k in axes else a.shape[k] for k in range(a.ndim)]


def _quantiles(rows: Any, q: Any, method: Any) -> Any:
    """Return the quantiles of the last axis, in the shape of q and the rest; NaN for rows that hold NaN."""
    ordered = sort(rows)
    places = np.quantile(np.arange(rows.shape[-1], dtype=float), q, method=method)  # between which two, and how far
    low = np.floor(places).astype(int)
    high = np.minimum(low + 1, rows.shape[-1] - 1)
    part = np.reshape(places - low, np.shape(q) + (1,) * (rows.ndim - 1))
    below, above = (np.moveaxis(ordered[..., k], range(rows.ndim - 1), range(-rows.ndim + 1, 0)) for k in (low, high))
    made = np.where(part == 0, below, below + (above - below) * part)
    last = ordered[..., -1]
    return np.where(values(np.isnan(last)), last, made)


def _quantiles_of_numbers(rows: Any, q: Any, method: Any) -> Any:
    """Return the same with NaN left out of each row that holds a number."""
    flat = np.reshape(rows, (-1, rows.shape[-1]))
    numbers = ~values(np.isnan(flat))
    kept = [row[mask] if mask.any() else row for row, mask in zip(flat, numbers, strict=True)]
    made = np.stack([_quantiles(row, q, method) for row in kept], axis=-1)
    return np.reshape(made, np.shape(q) + rows.shape[:-1])


def _quantile(quantiles: Callable[[Any, Any, Any], Any], scale: float) -> Callable[..., Any]:
    def handler(
        a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: Any = "linear",
        keepdims: Any = False, *, weights: Any = None,
    ) -> Any:  # fmt: skip
        if weights is not None:
            refuse_function("np.quantile with weights", "only unweighted quantiles are traced")
        q = np.asarray(q, dtype=float) / scale
        rows, shape = _rows(a, axis)
        made = quantiles(rows, q, method)
        return delivered(np.reshape(made, (*q.shape, *shape)) if keeps_axes(keepdims) else made, out)

    return handler


def _median(quantiles: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    handler = _quantile(quantiles, 1.0)

    def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
        return handler(a, 0.5, axis, out, keepdims=keepdims)

    return median


implements(np.quantile)(_quantile(_quantiles, 1.0))
implements(np.percentile)(_quantile(_quantiles, 100.0))
implements(np.nanquantile)(_quantile(_quantiles_of_numbers, 1.0))
implements(np.nanpercentile)(_quantile(_quantiles_of_numbers, 100.0))
implements(np.median)(_median(_quantiles))
implements(np.nanmedian)(_median(_quantiles_of_numbers))
