"""SciPy's distances between points (`scipy.spatial.distance`) on traced values, whose own are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from symad.errors import TraceError
from symad.tracing.calling.user_place import user_place
from symad.tracing.numpy.reduce import traced
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.values.node_operands import holds_traced

_HERE = "scipy.spatial.distance"


def _cosine(u: Any, v: Any) -> Any:
    return 1 - np.sum(u * v, axis=-1) / np.sqrt(np.sum(u * u, axis=-1) * np.sum(v * v, axis=-1))


# How far apart points are whose coordinates are in the last axis.
_METRICS: dict[str, Callable[[Any, Any], Any]] = {
    "euclidean": lambda u, v: np.sqrt(np.sum((u - v) ** 2, axis=-1)),
    "sqeuclidean": lambda u, v: np.sum((u - v) ** 2, axis=-1),
    "cityblock": lambda u, v: np.sum(np.abs(u - v), axis=-1),
    "chebyshev": lambda u, v: np.max(np.abs(u - v), axis=-1),
    "cosine": _cosine,
}


def _points(name: str, values: Any) -> Any:
    points = traced(values) if holds_traced((values,)) else np.asarray(values, dtype=float)
    if points.ndim != 2:
        raise ValueError(f"{name} takes points as the rows of a matrix, not an array of shape {points.shape}")
    return points


def _metric(name: str, metric: Any, out: Any, keywords: dict[str, Any]) -> Callable[[Any, Any], Any]:
    found = _METRICS.get(metric) if isinstance(metric, str) else None
    if found is None or out is not None or keywords:
        _refuse(name, metric, out, keywords)
    return found


def _refuse(name: str, metric: Any, out: Any, keywords: dict[str, Any]) -> NoReturn:
    given = [f"metric={metric!r}", *(f"{key}=" for key in keywords), *["out="] * (out is not None)]
    raise TraceError(
        f"{name} of traced points with {', '.join(given)}",
        where=user_place(),
        why=f"traced are {', '.join(_METRICS)} without more arguments",
        do="write the distance with NumPy functions",
    )


@stands_in_for(f"{_HERE}.cdist")
def cdist(
    XA: Any,  # noqa: N803 (SciPy's names)
    XB: Any,  # noqa: N803
    metric: Any = "euclidean",
    *,
    out: Any = None,
    **keywords: Any,
) -> Any:
    """Distances of each row of one matrix from each row of another."""
    distance = _metric("cdist", metric, out, keywords)
    left, right = _points("cdist", XA), _points("cdist", XB)
    if left.shape[1] != right.shape[1]:
        raise ValueError("XA and XB must have the same number of columns (i.e. feature dimension.)")
    return distance(left[:, None, :], right[None, :, :])


@stands_in_for(f"{_HERE}.pdist")
def pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **keywords: Any) -> Any:  # noqa: N803
    """Distances of each row of a matrix from each row after it."""
    distance, points = _metric("pdist", metric, out, keywords), _points("pdist", X)
    first, second = np.triu_indices(points.shape[0], 1)
    return distance(points[first], points[second])


@stands_in_for(f"{_HERE}.squareform")
def squareform(X: Any, force: Any = "no", checks: bool = True) -> Any:  # noqa: N803
    """The matrix of what `pdist` returns, or what it returned of a matrix."""
    values = traced(X)
    if values.ndim == 1 and str(force).lower() != "tovector":
        n = round((1 + np.sqrt(1 + 8 * values.size)) / 2)
        if n * (n - 1) != 2 * values.size:
            raise ValueError("Incompatible vector size. It must be a binomial coefficient n choose 2")
        where = np.full((n, n), values.size)
        where[np.triu_indices(n, 1)] = np.arange(values.size)
        return np.append(values, 0.0)[np.minimum(where, where.T)]
    if values.ndim == 2 and values.shape[0] == values.shape[1] and str(force).lower() != "tomatrix":
        return values[np.triu_indices(values.shape[0], 1)]
    raise ValueError(f"squareform takes distances or a square matrix of them, not an array of shape {values.shape}")
