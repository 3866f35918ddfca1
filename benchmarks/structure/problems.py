"""Functions that repeat themselves, each written once as plain Python or NumPy, and shared by every candidate.

A function takes the flat point `x` and an array namespace, as in `benchmarks.problems`. Nothing in it says what
repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Function = Callable[..., Any]
LEFT, RIGHT = 1.0, -1.0  # the ends of the 1-D reaction
START = (0.9, -1.2, 1.0)  # momentum and place


def lennard_jones(x: Any, xp: Any = np) -> Any:
    """Return the energy of atoms, three coordinates each, in units of the well depth and sigma: a loop over pairs."""
    atoms = x.shape[0] // 3
    energy = 0.0
    for i in range(atoms):
        for j in range(i):
            square = sum((x[3 * i + k] - x[3 * j + k]) ** 2 for k in range(3))
            inverse_sixth = 1 / square**3
            energy = energy + 4 * (inverse_sixth**2 - inverse_sixth)
    return energy


def make_logistic_loss(data: npt.NDArray[np.float64], labels: npt.NDArray[np.float64]) -> Function:
    """Return the loss of logistic regression on the rows of `data`, with labels -1 and 1."""

    def logistic_loss(weights: Any, xp: Any = np) -> Any:
        return xp.sum(xp.log(1 + xp.exp(-labels * (data @ weights))))

    return logistic_loss


def logistic_data(rows: int, columns: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return seeded random data with labels that a plane nearly separates."""
    rng = np.random.default_rng(5)
    data = rng.normal(size=(rows, columns))
    return data, np.where(data @ rng.normal(size=columns) + rng.normal(size=rows) > 0, 1.0, -1.0)


def reaction_1d(u: Any, xp: Any = np) -> Any:
    """Return the residual of a bistable reaction with diffusion on a line, its ends held at 1 and -1."""
    rate = 0.01 * u.shape[0] ** 2
    middle = u[1:-1]
    inner = rate * (u[:-2] - 2 * middle + u[2:]) + middle - middle**3
    return xp.concatenate([u[:1] - LEFT, inner, u[-1:] - RIGHT])


def reaction_2d(u: Any, xp: Any = np) -> Any:
    """Return the residual of the same reaction on a square grid, row by row; nothing flows through the border."""
    side = round(u.shape[0] ** 0.5)
    rate = 0.01 * side**2
    residual = []
    for i in range(side):
        for j in range(side):
            here = u[side * i + j]
            flow = sum(u[side * k + m] - here for k, m in neighbours(i, j, side))
            residual.append(rate * flow + here - here**3)
    return xp.stack(residual)


def neighbours(i: int, j: int, side: int) -> list[tuple[int, int]]:
    """Return the up to four neighbours of a place in a square grid.

    >>> neighbours(0, 1, 3)
    [(1, 1), (0, 0), (0, 2)]
    """
    around = ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1))
    return [(k, m) for k, m in around if 0 <= k < side and 0 <= m < side]


def make_momentum(steps: int) -> Function:
    """Return the loss after some steps of gradient descent with momentum on Rosenbrock's function.

    The point is the learning rate, the momentum, and the two coordinates of the start; or the learning rate alone.
    """

    def momentum_steps(point: Any, xp: Any = np) -> Any:
        rate, momentum, x, y = settings(point)
        u = v = 0.0
        for _ in range(steps):
            u, v, x, y = momentum_step(rate, momentum, u, v, x, y)
        return 100 * (y - x * x) ** 2 + (1 - x) ** 2

    return momentum_steps


def settings(point: Any) -> tuple[Any, Any, Any, Any]:
    """Return learning rate, momentum and start; all but the first have usual values where the point has one number.

    >>> settings([0.1])
    (0.1, 0.9, -1.2, 1.0)
    """
    return (point[0], *START) if len(point) == 1 else (point[0], point[1], point[2], point[3])


def momentum_step(rate: Any, momentum: Any, u: Any, v: Any, x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    """Return velocity and place after one step."""
    bend = y - x * x
    u = momentum * u + rate * (400 * x * bend + 2 * (1 - x))
    v = momentum * v - rate * 200 * bend
    return u, v, x + u, y + v


@dataclass(frozen=True)
class Grid:
    """An electric grid with measured flows: who is connected by lines and transformers, and the data of each."""

    buses: int
    lines: npt.NDArray[np.int64]  # from, to
    line_data: npt.NDArray[np.float64]  # conductance, susceptance, charging, measured active and reactive flow
    transformers: npt.NDArray[np.int64]
    transformer_data: npt.NDArray[np.float64]  # conductance, susceptance, ratio, shift, measured active flow
    magnitudes: npt.NDArray[np.float64]  # measured, of every bus


def make_grid(buses: int = 300, lines: int = 304, transformers: int = 107) -> Grid:
    """Return a seeded connected grid: every bus is tied to an earlier one near it, further branches are random."""
    rng = np.random.default_rng(11)
    tree = [(bus, int(rng.integers(max(0, bus - 8), bus))) for bus in range(1, buses)]
    extra = [
        (b, (b + int(rng.integers(2, 12))) % buses) for b in rng.integers(0, buses, lines + transformers - len(tree))
    ]
    branches = np.array(tree + [(int(a), int(b)) for a, b in extra])[rng.permutation(lines + transformers)]
    first, second = branches[:lines], branches[lines:]
    flows = rng.uniform(-0.5, 0.5, (2, lines))
    line = np.column_stack(
        [rng.uniform(0.5, 3, lines), rng.uniform(-20, -5, lines), rng.uniform(0, 0.2, lines), *flows]
    )
    ratio = np.column_stack([rng.uniform(0.95, 1.05, transformers), rng.uniform(-0.1, 0.1, transformers)])
    tie = np.column_stack([rng.uniform(0.1, 1, transformers), rng.uniform(-15, -4, transformers)])
    measured = rng.uniform(-0.5, 0.5, (transformers, 1))
    return Grid(buses, first, line, second, np.hstack([tie, ratio, measured]), rng.uniform(0.97, 1.03, buses))


def line_misfit(angles: Sequence[Any], sizes: Sequence[Any], data: Sequence[Any], xp: Any = np) -> Any:
    """Return the squared misfit of the active and the reactive flow of one line."""
    (v, w), (g, b, charging, active, reactive) = sizes, data
    angle = angles[0] - angles[1]
    cosine, sine = xp.cos(angle), xp.sin(angle)
    p = v * v * g - v * w * (g * cosine + b * sine)
    q = -v * v * (b + charging) - v * w * (g * sine - b * cosine)
    return 100 * (p - active) ** 2 + 50 * (q - reactive) ** 2


def transformer_misfit(angles: Sequence[Any], sizes: Sequence[Any], data: Sequence[Any], xp: Any = np) -> Any:
    """Return the squared misfit of the active flow of one transformer with a ratio and a phase shift."""
    (v, w), (g, b, ratio, shift, active) = sizes, data
    angle = angles[0] - angles[1] - shift
    low = v / ratio
    return 100 * (low * low * g - low * w * (g * xp.cos(angle) + b * xp.sin(angle)) - active) ** 2


def make_grid_misfit(grid: Grid) -> Function:
    """Return the weighted least squares of state estimation: loops over lines, transformers and buses."""

    def grid_misfit(x: Any, xp: Any = np) -> Any:
        angles, sizes = x[: grid.buses], x[grid.buses :]
        total = 0.0
        for (i, j), data in zip(grid.lines.tolist(), grid.line_data.tolist(), strict=True):
            total = total + line_misfit((angles[i], angles[j]), (sizes[i], sizes[j]), data, xp)
        for (i, j), data in zip(grid.transformers.tolist(), grid.transformer_data.tolist(), strict=True):
            total = total + transformer_misfit((angles[i], angles[j]), (sizes[i], sizes[j]), data, xp)
        for i, measured in enumerate(grid.magnitudes.tolist()):
            total = total + 1000 * (sizes[i] - measured) ** 2
        return total

    return grid_misfit
