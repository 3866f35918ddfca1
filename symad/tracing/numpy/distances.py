"""SciPy's distances between points (`scipy.spatial.distance`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import numpy as np

from symad.errors import TraceError
from symad.tracing.calling.user_place import user_place
from symad.tracing.numpy.reduce import traced
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.values.node_operands import holds_traced

_HERE = "scipy.spatial.distance"
_Distance = Callable[..., Any]


def _sum(terms: Any, w: Any) -> Any:
    return np.sum(terms if w is None else w * terms, axis=-1)


def _cosine(u: Any, v: Any, w: Any = None) -> Any:
    return 1 - _sum(u * v, w) / np.sqrt(_sum(u * u, w) * _sum(v * v, w))


def _correlation(u: Any, v: Any, w: Any = None) -> Any:
    weights = 1.0 / np.shape(u)[-1] if w is None else w / np.sum(w)
    u, v = (part - np.sum(weights * part, axis=-1, keepdims=True) for part in (u, v))
    return _cosine(u, v, w)


def _minkowski(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    if np.ndim(p) == 0 and not holds_traced((p,)):
        if p == 1:
            return _sum(np.abs(u - v), w)
        if p == 2:
            return np.sqrt(_sum((u - v) ** 2, w))
        if np.isinf(p):
            return np.max(np.abs(u - v), axis=-1)
    return _sum(np.abs(u - v) ** p, w) ** (1.0 / p)


def _mahalanobis(u: Any, v: Any, VI: Any) -> Any:  # noqa: N803 (SciPy's name)
    return np.sqrt(np.sum(((u - v) @ (VI if holds_traced((VI,)) else np.asarray(VI))) * (u - v), axis=-1))


def _canberra(u: Any, v: Any, w: Any = None) -> Any:
    size = np.abs(u) + np.abs(v)
    return _sum(np.where(size == 0, 0.0, np.abs(u - v) / np.where(size == 0, 1.0, size)), w)


def _jensen_shannon(p: Any, q: Any, base: Any = None) -> Any:
    p, q = (part / np.sum(part, axis=-1, keepdims=True) for part in (p, q))
    middle = (p + q) / 2.0
    shares = [np.where(part > 0, part * np.log(np.where(part > 0, part / middle, 1.0)), 0.0) for part in (p, q)]
    total = np.sum(shares[0] + shares[1], axis=-1) / 2.0
    return np.sqrt(total if base is None else total / np.log(base))


# How far apart points are whose coordinates are in the last axis, with the further arguments that they take.
_METRICS: dict[str, _Distance] = {
    "euclidean": lambda u, v, w=None: np.sqrt(_sum((u - v) ** 2, w)),
    "sqeuclidean": lambda u, v, w=None: _sum((u - v) ** 2, w),
    "cityblock": lambda u, v, w=None: _sum(np.abs(u - v), w),
    "chebyshev": lambda u, v: np.max(np.abs(u - v), axis=-1),
    "cosine": _cosine,
    "correlation": _correlation,
    "minkowski": _minkowski,
    "mahalanobis": _mahalanobis,
    "seuclidean": lambda u, v, V: np.sqrt(np.sum((u - v) ** 2 / V, axis=-1)),  # noqa: N803
    "braycurtis": lambda u, v, w=None: _sum(np.abs(u - v), w) / _sum(np.abs(u + v), w),
    "canberra": _canberra,
    "jensenshannon": _jensen_shannon,
}
_FURTHER = {  # which arguments `cdist` and `pdist` take
    "minkowski": {"p", "w"}, "mahalanobis": {"VI"}, "seuclidean": {"V"}, "chebyshev": set[str](),
    "jensenshannon": set[str](),
}  # fmt: skip
_ROOTS = {"euclidean", "minkowski", "seuclidean", "mahalanobis", "jensenshannon"}
_NEEDED = {"mahalanobis", "seuclidean"}  # whose arguments SciPy estimates from all points


def _of_vectors(name: str) -> Callable[..., Any]:
    distance = _METRICS[name]

    def handler(u: Any, v: Any, *given: Any, **keywords: Any) -> Any:
        first, second = (traced(part) if holds_traced((part,)) else np.asarray(part, dtype=float) for part in (u, v))
        if first.ndim != 1 or first.shape != second.shape:
            raise ValueError("Input vector should be 1-D, and both of one length.")
        known = {key: value for key, value in keywords.items() if key not in ("axis", "keepdims") or value}
        return distance(first, second, *given, **known)

    return handler


for _name in _METRICS:
    stands_in_for(f"{_HERE}.{_name}")(_of_vectors(_name))


def _points(name: str, values: Any) -> Any:
    points = traced(values) if holds_traced((values,)) else np.asarray(values, dtype=float)
    if points.ndim != 2:
        raise ValueError(f"{name} takes points as the rows of a matrix, not an array of shape {points.shape}")
    return points


def _metric(name: str, metric: Any, out: Any, keywords: dict[str, Any]) -> _Distance:
    distance = _METRICS.get(metric) if isinstance(metric, str) else None
    further = _FURTHER.get(metric, {"w"}) if isinstance(metric, str) else set()
    has_needed = not isinstance(metric, str) or metric not in _NEEDED or keywords.keys() == further
    if callable(metric):
        return lambda u, v: _pairwise(lambda a, b: metric(a, b, **keywords), u, v)
    if distance is None or out is not None or not (keywords.keys() <= further and has_needed):
        _refuse(name, metric, out, keywords)
    return partial(distance, **keywords)


def _pairwise(metric: _Distance, u: Any, v: Any) -> Any:
    """Return a distance that a function of two vectors gives, for all pairs of points."""
    first, second = np.broadcast_arrays(u, v)
    shape = np.shape(first)
    rows = zip(np.reshape(first, (-1, shape[-1])), np.reshape(second, (-1, shape[-1])), strict=True)
    return np.reshape(np.stack([metric(a, b) for a, b in rows]), shape[:-1])


def _refuse(name: str, metric: Any, out: Any, keywords: dict[str, Any]) -> NoReturn:
    given = [f"metric={metric!r}", *(f"{key}=" for key in keywords), *["out="] * (out is not None)]
    raise TraceError(
        f"{name} of traced points with {', '.join(given)}",
        where=user_place(),
        why=f"traced are {', '.join(_METRICS)}, with VI= and V= given where they are needed",
        do="write the distance with NumPy functions",
    )


def _of_pairs(distance: _Distance, left: Any, right: Any, is_root: bool) -> Any:
    """Distances of all pairs; of a point from itself the slope is 0, where a root would have none."""
    pairs = distance(left[:, None, :], right[None, :, :])
    is_own = is_root and holds_traced((left,)) and holds_traced((right,)) and np.array_equal(left.nodes, right.nodes)
    return np.where(np.eye(len(left), dtype=bool), np.sum(left - left, axis=-1)[:, None], pairs) if is_own else pairs


@stands_in_for(f"{_HERE}.cdist")
def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **keywords: Any) -> Any:  # noqa: N803 (SciPy's)
    """Distances of each row of one matrix from each row of another."""
    distance = _metric("cdist", metric, out, keywords)
    left, right = _points("cdist", XA), _points("cdist", XB)
    if left.shape[1] != right.shape[1]:
        raise ValueError("XA and XB must have the same number of columns (i.e. feature dimension.)")
    return _of_pairs(distance, left, right, isinstance(metric, str) and metric in _ROOTS)


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


@stands_in_for("scipy.spatial.distance_matrix")
def distance_matrix(x: Any, y: Any, p: Any = 2, threshold: int = 1000000) -> Any:
    """Distances of each row of one matrix from each row of another."""
    left, right = _points("distance_matrix", x), _points("distance_matrix", y)
    return _of_pairs(partial(_minkowski, p=p), left, right, is_root=True)
