"""Right values of every case, computed in NumPy without a graph: jets of bodies, recursions and products by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.structure.entries import Entries, added, entries
from benchmarks.structure.jets import instances
from benchmarks.structure.problems import settings
from benchmarks.structure.terms import Terms

Floats = npt.NDArray[np.float64]
ORDERS = {"value": 0, "gradient": 1, "jacobian": 1, "hessian": 2}


def of_terms(terms: Sequence[Terms], x: Floats, kind: str) -> Entries:
    """Return value, gradient, Jacobian or lower Hessian of a sum of bodies, or of a vector of them."""
    parts = []
    for group in terms:
        for part, jet in instances(group, x, ORDERS[kind]):
            index = group.index[part]
            rows = np.zeros(len(index), dtype=np.int64) if group.rows is None else group.rows[part]
            if kind == "value":
                parts.append(entries(np.zeros_like(rows), rows, jet.value, x.size, lower=False))
            elif kind == "hessian":
                full = np.broadcast_to(index[:, :, None], jet.second.shape)
                across = full.transpose(0, 2, 1)
                parts.append(entries(full.ravel(), across.ravel(), jet.second.ravel(), x.size, lower=True))
            else:
                where = np.broadcast_to(rows[:, None], index.shape)
                parts.append(entries(where.ravel(), index.ravel(), jet.first.ravel(), x.size, lower=False))
    return added(parts)


def of_momentum(steps: int, point: Floats, kind: str) -> Entries:
    """Return the loss or its derivatives by the recursion of all four tangents, in extended precision."""
    rate, momentum, x, y = (np.longdouble(number) for number in settings(point))
    d_rate, d_momentum, dx, dy = np.eye(4, dtype=np.longdouble)
    u = v = np.longdouble(0)
    du: Any = np.zeros(4, dtype=np.longdouble)
    dv: Any = du
    for _ in range(steps):
        bend, d_bend = y - x * x, dy - 2 * x * dx
        g, dg = 400 * x * bend + 2 * (1 - x), 400 * (dx * bend + x * d_bend) - 2 * dx
        du = d_momentum * u + momentum * du + d_rate * g + rate * dg
        dv = d_momentum * v + momentum * dv - 200 * (d_rate * bend + rate * d_bend)
        u, v = momentum * u + rate * g, momentum * v - 200 * rate * bend
        x, y, dx, dy = x + u, y + v, dx + du, dy + dv
    bend, d_bend = y - x * x, dy - 2 * x * dx
    loss, slope = 100 * bend**2 + (1 - x) ** 2, 200 * bend * d_bend - 2 * (1 - x) * dx
    wanted = {"value": np.array([loss]), "tangent": slope[:1], "gradient": slope}[kind].astype(float)
    return entries(np.zeros(len(wanted)), np.arange(len(wanted)), wanted, len(point), lower=False)


def of_logistic(data: Floats, labels: Floats, weights: Floats, kind: str) -> Entries:
    """Return the logistic loss, its gradient or its lower Hessian, by matrix products."""
    margins, size = labels * (data @ weights), weights.size
    miss = 1 / (1 + np.exp(margins))
    if kind == "hessian":
        wanted = data.T @ ((miss * (1 - miss))[:, None] * data)
    else:
        wanted = np.log1p(np.exp(-margins)).sum() if kind == "value" else -(labels * miss) @ data
    rows, columns = np.indices(np.atleast_2d(wanted).shape).reshape(2, -1)
    return entries(rows, columns, np.ravel(wanted), size, lower=kind == "hessian")


def of_network(layers: Sequence[tuple[Floats, Floats]], point: Floats, kind: str) -> Entries:
    """Return the gradient of a tanh network in its inputs, or its Hessian times the second half of the point."""
    x, direction = (point, np.zeros_like(point)) if kind == "gradient" else np.split(point, 2)
    passed: list[tuple[Floats, Floats, Floats]] = []
    for weight, bias in layers[:-1]:
        z, dz = weight @ x + bias, weight @ direction
        x = np.tanh(z)
        direction = (1 - x**2) * dz
        passed.append((weight, x, direction))
    back, d_back = layers[-1][0][0], np.zeros(len(passed[-1][1]))
    for weight, y, dy in reversed(passed):
        slope = 1 - y**2
        d_back, back = (d_back * slope - 2 * y * dy * back) @ weight, (back * slope) @ weight
    wanted = back if kind == "gradient" else d_back
    return entries(np.zeros(len(wanted)), np.arange(len(wanted)), wanted, point.size, lower=False)
