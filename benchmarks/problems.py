"""The four problems, each written once as plain NumPy code and shared by every candidate.

A function takes the flat point `x` and the array namespace `xp`, NumPy unless told otherwise: JAX passes `jax.numpy`,
and the libraries of scalar symbols pass an object array of symbols with a namespace whose functions work element by
element. So all candidates differentiate the same formula, in the same order of operations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """A scalar function of a flat vector, a point to time it at, and more points to compare the numbers at."""

    name: str
    title: str
    function: Callable[..., Any]
    point: Vector
    spread: float

    def points(self, count: int) -> list[Vector]:
        """Return the timing point and `count - 1` seeded random neighbours of it."""
        rng = np.random.default_rng(7)
        shifts = [rng.uniform(-self.spread, self.spread, self.point.size) for _ in range(count - 1)]
        return [self.point.copy(), *(self.point + shift for shift in shifts)]


def chained_rosenbrock(x: Any, xp: Any = np) -> Any:
    """Return the chained Rosenbrock function of any number of variables."""
    return xp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def lennard_jones_energy(x: Any, xp: Any = np) -> Any:
    """Return the energy of atoms at the rows of `x.reshape(-1, 3)`, in units of the well depth and sigma."""
    positions = x.reshape(-1, 3)
    first, second = np.triu_indices(positions.shape[0], 1)
    differences = positions[first] - positions[second]
    inverse_sixth = 1 / xp.sum(differences**2, axis=1) ** 3
    return 4 * xp.sum(inverse_sixth**2 - inverse_sixth)


def make_network(widths: tuple[int, ...] = (8, 16, 16, 1)) -> Callable[..., Any]:
    """Return a tanh network with fixed random weights and a linear last layer, as a function of its inputs."""
    rng = np.random.default_rng(2024)
    shapes = list(zip(widths[1:], widths[:-1], strict=True))
    layers = [(rng.normal(size=shape) / np.sqrt(shape[1]), rng.normal(size=shape[0]) / 4) for shape in shapes]

    def tanh_network(x: Any, xp: Any = np) -> Any:
        for weight, bias in layers[:-1]:
            x = xp.tanh(weight @ x + bias)
        weight, bias = layers[-1]
        return (weight @ x + bias)[0]

    return tanh_network


def make_log_sum_exp(n: int = 20) -> Callable[..., Any]:
    """Return log(sum(exp(a * x))) with fixed slopes `a`."""
    slopes = np.linspace(0.5, 1.5, n)

    def log_sum_exp(x: Any, xp: Any = np) -> Any:
        return xp.log(xp.sum(xp.exp(slopes * x)))

    return log_sum_exp


def cluster_of_ten() -> Vector:
    """Return ten atoms on a grid of spacing 1.15, slightly shaken so that no distance is special."""
    grid = np.array([(i, j, k) for i in range(3) for j in range(2) for k in range(2)][:10], dtype=float)
    return np.asarray((1.15 * grid + np.random.default_rng(3).uniform(-0.05, 0.05, grid.shape)).ravel())


def make_problems() -> dict[str, Problem]:
    """Return the problems by name."""
    rng = np.random.default_rng(1)
    problems = [
        Problem("rosenbrock100", "chained Rosenbrock, n = 100", chained_rosenbrock, rng.uniform(-1, 1, 100), 0.5),
        Problem("lj10", "Lennard-Jones, 10 atoms", lennard_jones_energy, cluster_of_ten(), 0.03),
        Problem("mlp8", "tanh network 8-16-16-1, Hessian in the inputs", make_network(), rng.normal(size=8), 0.5),
        Problem("logsumexp20", "log-sum-exp, n = 20", make_log_sum_exp(), rng.normal(size=20), 0.5),
    ]
    return {problem.name: problem for problem in problems}


def two_variables() -> Problem:
    """Return the small problem of the call-overhead section: nearly all of its time is the call itself."""
    return Problem("rosenbrock2", "Rosenbrock, n = 2", chained_rosenbrock, np.array([-1.2, 1.0]), 0.1)
