"""The problems, each written once as plain NumPy code and shared by every candidate.

A function takes the flat point `x` and the array namespace `xp`, NumPy unless told otherwise: JAX passes `jax.numpy`,
and the libraries of scalar symbols pass an object array of symbols with a namespace whose functions work element by
element. So all candidates differentiate the same formula, in the same order of operations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from benchmarks.models import brusselator_residual, reprojection_error, spherical_harmonics

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]
Kind = Literal["hessian", "gradient", "jacobian"]


@dataclass(frozen=True)
class Problem:
    """A function of a flat vector, the derivative wanted of it, a point to time it at, and its neighbourhood.

    `large` marks what some compilers need minutes for: they are tried in a process of their own first. `sparse` marks
    the matrices that dense code should not be asked for. Who gave up on `smaller` is not asked for this one.
    """

    name: str
    title: str
    function: Callable[..., Any]
    point: Vector
    spread: float
    kind: Kind = "hessian"
    large: bool = False
    sparse: bool = False
    smaller: str = ""

    def points(self, count: int) -> Matrix:
        """Return the timing point and `count - 1` seeded random neighbours of it, one in a row."""
        rng = np.random.default_rng(7)
        shifts = rng.uniform(-self.spread, self.spread, (count, self.point.size))
        shifts[0] = 0.0
        return np.asarray(self.point + shifts)


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


def network_layers(widths: tuple[int, ...]) -> list[tuple[Matrix, Vector]]:
    """Return fixed random weights and biases, one pair for each layer."""
    rng = np.random.default_rng(2024)
    shapes = list(zip(widths[1:], widths[:-1], strict=True))
    return [(rng.normal(size=shape) / np.sqrt(shape[1]), rng.normal(size=shape[0]) / 4) for shape in shapes]


def make_network(widths: tuple[int, ...] = (8, 16, 16, 1)) -> Callable[..., Any]:
    """Return a tanh network with fixed random weights and a linear last layer, as a function of its inputs."""
    layers = network_layers(widths)

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


def cluster(atoms: int) -> Vector:
    """Return atoms on a grid of spacing 1.15, slightly shaken so that no distance is special."""
    layers = (1, 2, 2) if atoms <= 10 else (1, 3, 3)
    shape = (-(-atoms // (layers[1] * layers[2])), *layers[1:])
    grid = np.array(list(np.ndindex(shape))[:atoms], dtype=float)
    return np.asarray((1.15 * grid + np.random.default_rng(3).uniform(-0.05, 0.05, grid.shape)).ravel())


def make_problems() -> dict[str, Problem]:
    """Return the problems by name: eight Hessians, then a gradient and three Jacobians."""
    rng = np.random.default_rng(1)
    chain, atoms = chained_rosenbrock, lennard_jones_energy
    wide, camera = make_network((64, 32, 1)), np.array([0.1, -0.2, 0.3, 0.2, -0.1, 5.0, 400.0, -0.1, 0.05])
    seen = np.concatenate([camera, [0.4, -0.3, 1.2]])
    banded: dict[str, Any] = {"large": True, "sparse": True}
    problems = [
        Problem("rosenbrock100", "chained Rosenbrock, n = 100", chain, rng.uniform(-1, 1, 100), 0.5, sparse=True),
        Problem("rosenbrock1000", "chained Rosenbrock, n = 1000", chain, rng.uniform(-1, 1, 1000), 0.5, **banded),
        Problem("rosenbrock10000", "chained Rosenbrock, n = 10 000", chain, rng.uniform(-1, 1, 10000), 0.5, **banded,
                smaller="rosenbrock1000"),
        Problem("lj10", "Lennard-Jones, 10 atoms", atoms, cluster(10), 0.03),
        Problem("lj20", "Lennard-Jones, 20 atoms", atoms, cluster(20), 0.03, large=True),
        Problem("mlp8", "tanh network 8-16-16-1, in its inputs", make_network(), rng.normal(size=8), 0.5),
        Problem("mlp64", "tanh network 64-32-1, in its inputs", wide, rng.normal(size=64), 0.5, large=True),
        Problem("logsumexp20", "log-sum-exp, n = 20", make_log_sum_exp(), rng.normal(size=20), 0.5),
        Problem("lj20gradient", "gradient, Lennard-Jones, 20 atoms", atoms, cluster(20), 0.03, "gradient"),
        Problem("harmonics8", "Jacobian, real spherical harmonics of degree 1 to 8", spherical_harmonics,
                np.array([0.3, -0.5, 0.7]), 0.2, "jacobian"),
        Problem("brusselator32", "Jacobian, Brusselator on a 32 x 32 grid", brusselator_residual,
                rng.uniform(0.5, 2, 2 * 32 * 32), 0.3, "jacobian", sparse=True, large=True),
        Problem("bundle", "Jacobian, reprojection in bundle adjustment", reprojection_error, seen, 0.05, "jacobian"),
    ]  # fmt: skip
    return {problem.name: problem for problem in problems}


def two_variables() -> Problem:
    """Return the small problem of the call-overhead section: nearly all of its time is the call itself."""
    return Problem("rosenbrock2", "Rosenbrock, n = 2", chained_rosenbrock, np.array([-1.2, 1.0]), 0.1)


def chain_of(size: int) -> Problem:
    """Return the chained Rosenbrock function of any size: about ten nodes of the Hessian's graph to a variable."""
    start = np.random.default_rng(1).uniform(-1, 1, size)
    return Problem(f"chain{size}", f"chained Rosenbrock, n = {size}", chained_rosenbrock, start, 0.5, sparse=True)
