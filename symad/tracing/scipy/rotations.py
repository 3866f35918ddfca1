"""`scipy.spatial.transform.Rotation` and `Slerp` as unit quaternions (x, y, z, w), one row each.

SciPy's own are compiled. Near the rotation by nothing, roots of squares are written as series, so that the derivatives
there are those of the rotation, not of a root at 0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.scipy.objects import array, package, taken

_CLASS = "scipy.spatial.transform.Rotation"
_HELD = ("_quat",)
_SMALL = 1e-5  # squares of half an angle, below which series are taken
_DEGENERATE = 1e-7  # how near to 0 or pi the middle of three angles is where the others are not unique
_STEPS = 9  # of the iteration for the nearest orthogonal matrix
_AXES = {"x": 0, "y": 1, "z": 2}


def _made(quaternions: Any, single: bool) -> Any:
    """Return a rotation of SciPy that holds rows of traced quaternions."""
    kind = package("spatial.transform").Rotation
    rotation = kind.__new__(kind)
    model = kind([0.0, 0.0, 0.0, 1.0])
    rotation._quat, rotation._single, rotation._xp, rotation._backend = quaternions, single, model._xp, model._backend
    return rotation


def _rows(values: Any, width: int, name: str) -> tuple[Any, bool]:
    """Return an array as rows, and whether it was a single one."""
    values = array(values)
    if values.ndim not in (1, 2) or values.shape[-1] != width:
        raise ValueError(f"Expected `{name}` to have shape ({width},) or (N, {width}), got {values.shape}.")
    return np.reshape(values, (-1, width)), values.ndim == 1


def _columns(rows: Any) -> list[Any]:
    return [rows[..., k] for k in range(rows.shape[-1])]


def _joined(columns: list[Any]) -> Any:
    return np.stack(np.broadcast_arrays(*columns), axis=-1)


def _unit(rows: Any) -> Any:
    return rows / np.sqrt(np.sum(rows * rows, axis=-1, keepdims=True))


def _product(p: Any, q: Any) -> Any:
    """Return the product of quaternions, row by row."""
    (a, b, c, d), (e, f, g, h) = _columns(p), _columns(q)
    return _joined([
        d * e + h * a + b * g - c * f,
        d * f + h * b + c * e - a * g,
        d * g + h * c + a * f - b * e,
        d * h - a * e - b * f - c * g,
    ])  # fmt: skip


def _conjugate(q: Any) -> Any:
    return q * np.array([-1.0, -1.0, -1.0, 1.0])


def _of_vectors(rows: Any) -> Any:
    """Return the quaternions of rotation vectors: v sin(a/2)/a, cos(a/2)."""
    square = np.sum(rows * rows, axis=-1, keepdims=True)
    quarter = square / 4
    is_small = quarter < _SMALL
    angle = np.sqrt(np.where(is_small, 1.0, square))
    scale = np.where(
        is_small, 0.5 * (1 - quarter / 6 + quarter**2 / 120 - quarter**3 / 5040), np.sin(angle / 2) / angle
    )
    last = np.where(is_small, 1 - quarter / 2 + quarter**2 / 24 - quarter**3 / 720, np.cos(angle / 2))
    return np.concatenate([rows * scale, last], axis=-1)


def _vectors(q: Any) -> Any:
    """Return the rotation vectors of quaternions: 2 v atan2(|v|, w)/|v|, for w not below 0."""
    q = _canonical(q)
    v, w = q[..., :3], q[..., 3:]
    square = np.sum(v * v, axis=-1, keepdims=True)
    is_small = square < _SMALL
    ratio = np.where(is_small, square / (w * w), 0.0)
    size = np.sqrt(np.where(is_small, 1.0, square))
    series = 2 * (1 - ratio / 3 + ratio**2 / 5 - ratio**3 / 7) / w
    return v * np.where(is_small, series, 2 * np.arctan2(size, w) / size)


def _canonical(q: Any) -> Any:
    """Return quaternions of the same rotations whose first number that is not 0, of w, x, y, z, is positive."""
    x, y, z, w = _columns(q)
    is_negative = (w < 0) | ((w == 0) & ((x < 0) | ((x == 0) & ((y < 0) | ((y == 0) & (z < 0))))))
    return q * np.where(is_negative, -1.0, 1.0)[..., None]


def _matrices(q: Any) -> Any:
    x, y, z, w = _columns(q)
    entries = [
        x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w),
        2 * (x * y + z * w), y * y - x * x - z * z + w * w, 2 * (y * z - x * w),
        2 * (x * z - y * w), 2 * (y * z + x * w), z * z - x * x - y * y + w * w,
    ]  # fmt: skip
    return np.reshape(_joined(entries), (*np.shape(x), 3, 3))


def _of_matrices(m: Any) -> Any:
    """Return the quaternions of orthogonal matrices: from the largest of their four squares, as SciPy does."""
    diagonal = [m[:, k, k] for k in range(3)]
    trace = diagonal[0] + diagonal[1] + diagonal[2]
    sums = [*diagonal, trace]
    quaternions: Any = _joined([m[:, 2, 1] - m[:, 1, 2], m[:, 0, 2] - m[:, 2, 0], m[:, 1, 0] - m[:, 0, 1], 1 + trace])
    for i in (2, 1, 0):
        j, k = (i + 1) % 3, (i + 2) % 3
        parts = {i: 1 - trace + 2 * m[:, i, i], j: m[:, j, i] + m[:, i, j], k: m[:, k, i] + m[:, i, k]}
        row = _joined([*[parts[n] for n in range(3)], m[:, k, j] - m[:, j, k]])
        is_largest = functools.reduce(np.logical_and, [sums[i] >= other for other in sums[:i] + sums[i + 1 :]])
        quaternions = np.where(is_largest[:, None], row, quaternions)
    return _unit(quaternions)


def _orthogonal(m: Any) -> Any:
    """Return the nearest orthogonal matrices, by Newton's iteration for the polar factor (Higham 1986)."""
    for _ in range(_STEPS):
        m = 0.5 * (m + np.swapaxes(np.linalg.inv(m), -1, -2))
    return m


@stands_in_for(f"{_CLASS}.from_quat", held=())
def from_quat(quat: Any, *, scalar_first: bool = False) -> Any:
    """Rotations of quaternions, which are made unit ones."""
    rows, single = _rows(quat, 4, "quat")
    return _made(_unit(np.roll(rows, -1, axis=-1) if scalar_first else rows), single)


@stands_in_for(f"{_CLASS}.from_matrix", held=())
def from_matrix(matrix: Any, *, assume_valid: bool = False) -> Any:
    """Rotations of matrices, or of the orthogonal ones that are nearest to them."""
    m = array(matrix)
    rows = np.reshape(m, (-1, 3, 3))
    return _made(_of_matrices(rows if assume_valid else _orthogonal(rows)), m.ndim == 2)


@stands_in_for(f"{_CLASS}.from_rotvec", held=())
def from_rotvec(rotvec: Any, degrees: bool = False) -> Any:
    """Rotations of vectors whose length is the angle."""
    rows, single = _rows(rotvec, 3, "rot_vec")
    return _made(_of_vectors(np.radians(rows) if degrees else rows), single)


@stands_in_for(f"{_CLASS}.from_mrp", held=())
def from_mrp(mrp: Any) -> Any:
    """Rotations of modified Rodrigues parameters."""
    rows, single = _rows(mrp, 3, "mrp")
    square = np.sum(rows * rows, axis=-1, keepdims=True)
    return _made(np.concatenate([2 * rows, 1 - square], axis=-1) / (1 + square), single)


@stands_in_for(f"{_CLASS}.from_euler", held=())
def from_euler(seq: str, angles: Any, degrees: bool = False) -> Any:
    """Rotations about up to three axes, fixed ones (small letters) or those that turn along (capitals)."""
    count = len(seq)
    if not 1 <= count <= 3 or not (set(seq) <= set("xyz") or set(seq) <= set("XYZ")):
        raise ValueError(f"Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], got {seq}")
    values = array(angles)
    single = values.ndim == 0 if count == 1 else values.ndim == 1
    rows = np.reshape(np.radians(values) if degrees else values, (-1, count))
    turns: Any = None
    for k, letter in enumerate(seq.lower()):
        half = rows[:, k] / 2
        parts: list[Any] = [0.0 * half] * 3 + [np.cos(half)]
        parts[_AXES[letter]] = np.sin(half)
        turn = _joined(parts)
        turns = turn if turns is None else _product(turn, turns) if seq.islower() else _product(turns, turn)
    return _made(turns, single)


def _delivered(rotation: Any, rows: Any) -> Any:
    """Return what belongs to each rotation: to the single one, where there is one."""
    return rows[0] if rotation._single else rows


def _method(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return stands_in_for(f"{_CLASS}.{name}", held=_HELD)


@_method("as_quat")
def as_quat(self: Any, canonical: bool = False, *, scalar_first: bool = False) -> Any:
    """Return the quaternions."""
    rows = _canonical(self._quat) if canonical else 1.0 * self._quat
    return _delivered(self, np.roll(rows, 1, axis=-1) if scalar_first else rows)


_method("as_matrix")(lambda self: _delivered(self, _matrices(self._quat)))
_method("inv")(lambda self: _made(_conjugate(self._quat), self._single))
_method("__pow__")(lambda self, n, modulus=None: _made(_of_vectors(_vectors(array(self._quat)) * n), self._single))


@_method("as_rotvec")
def as_rotvec(self: Any, degrees: bool = False) -> Any:
    """Return the rotation vectors."""
    rows = _vectors(self._quat)
    return _delivered(self, np.degrees(rows) if degrees else rows)


@_method("as_mrp")
def as_mrp(self: Any) -> Any:
    """Return the modified Rodrigues parameters."""
    q = self._quat
    q = q * np.where(q[..., 3:] < 0, -1.0, 1.0)
    return _delivered(self, q[..., :3] / (1 + q[..., 3:]))


@_method("as_euler")
def as_euler(self: Any, seq: str, degrees: bool = False, *, suppress_warnings: bool = False) -> Any:
    """Return angles about three axes (Bernardes and Viollet 2022); where two are not unique, the last one is 0."""
    fixed = seq.islower()
    i, j, k = (_AXES[letter] for letter in (seq if fixed else seq[::-1]).lower())
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    columns = _columns(self._quat)
    w, x, y, z = columns[3], columns[i], columns[j], sign * columns[k]
    a, b, c, d = (w, x, y, z) if symmetric else (w - y, x + z, y + w, z - x)
    middle = 2 * np.arctan2(np.hypot(c, d), np.hypot(a, b))
    is_folded, is_unique = np.abs(middle - np.pi) <= _DEGENERATE, np.abs(middle) > _DEGENERATE
    is_unique = is_unique & ~is_folded
    half_sum, half_difference = np.arctan2(b, a), np.arctan2(d, c)
    first, last = half_sum - half_difference, half_sum + half_difference
    if not symmetric:
        last, middle = sign * last, middle - np.pi / 2
    angles = [first, middle, last] if fixed else [last, middle, first]
    other = np.where(is_folded, (-2 if fixed else 2) * half_difference, 2 * half_sum)
    other = other if fixed or symmetric else sign * other
    angles[0], angles[2] = np.where(is_unique, angles[0], other), np.where(is_unique, angles[2], 0.0)
    wrapped = [angle - 2 * np.pi * (angle > np.pi) + 2 * np.pi * (angle < -np.pi) for angle in angles]
    rows = _joined(wrapped)
    return _delivered(self, np.degrees(rows) if degrees else rows)


@_method("apply")
def apply(self: Any, vectors: Any, inverse: bool = False) -> Any:
    """Return the vectors turned."""
    rows, single = _rows(vectors, 3, "vectors")
    matrices = _matrices(array(self._quat))
    matrices = np.swapaxes(matrices, -1, -2) if inverse else matrices
    turned = np.sum(matrices * rows[:, None, :], axis=-1)
    return turned[0] if single and self._single else turned


@_method("__mul__")
def multiplied(self: Any, other: Any) -> Any:
    """Return one rotation after another."""
    if not hasattr(other, "_quat"):
        return NotImplemented
    return _made(_product(array(self._quat), array(other._quat)), self._single and other._single)


@_method("magnitude")
def magnitude(self: Any) -> Any:
    """Return the angles."""
    v, w = self._quat[..., :3], self._quat[..., 3]
    return _delivered(self, 2 * np.arctan2(np.sqrt(np.sum(v * v, axis=-1)), np.abs(w)))


@_method("__getitem__")
def item(self: Any, indexer: Any) -> Any:
    """Return some of the rotations."""
    if self._single:
        raise TypeError("Single rotation is not subscriptable.")
    chosen = self._quat[indexer]
    return _made(np.reshape(chosen, (-1, 4)), np.ndim(chosen) == 1)


_SLERP = "scipy.spatial.transform.Slerp"
_INTERPOLATED = ("times", "_starts", "_turns", "_quat")


@stands_in_for(f"{_SLERP}.__init__", held=_HELD)
def between(self: Any, times: Any, rotations: Any) -> None:
    """Keep rotations at times."""
    q = array(rotations._quat)
    self.times = array(times)
    self._starts, self._turns = q[:-1], _vectors(_product(_conjugate(q[:-1]), q[1:]))


@stands_in_for(f"{_SLERP}.__call__", held=_INTERPOLATED)
def interpolated(self: Any, times: Any) -> Any:
    """Return the rotations in between; outside of the times there are none."""
    t = array(times)
    starts = self._starts if hasattr(self, "_starts") else self.rotations.as_quat()
    turns = self._turns if hasattr(self, "_turns") else self.rotvecs
    points, edges = np.reshape(t, (-1,)), self.times
    place = np.searchsorted(edges[1:-1], points, side="left")
    first = taken(edges, place)
    part = (points - first) / (taken(edges, place + 1) - first)
    part = np.where((points < edges[0]) | (points > edges[-1]), np.nan, part)
    return _made(_product(taken(starts, place), _of_vectors(taken(turns, place) * part[:, None])), t.ndim == 0)
