"""Kernels that are written for a GPU in tests: every form of code, function and number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import symad as sa
from codegen.machine.calls.kernel import Kernel


def chain(x: Any) -> Any:
    """Return the chained Rosenbrock function."""
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def log_sum_exp(x: Any) -> Any:
    """Return log(sum(exp(x)))."""
    return np.log(np.sum(np.exp(x)))


def atoms(x: Any) -> Any:
    """Return an energy of pairs."""
    positions = x.reshape(-1, 3)
    first, second = np.triu_indices(len(positions), 1)
    inverse = 1 / np.sum((positions[first] - positions[second]) ** 2, axis=1) ** 3
    return np.sum(inverse**2 - inverse)


def functions(x: Any) -> Any:
    """Return a sum of every function that has a formula of its own at ordinary points."""
    a, b, c = x[0], x[1], x[2]
    angles = np.sin(a) * np.cos(b) + np.tan(c / 4) + np.arctan(a * b)
    powers = np.exp(a / 3) + np.exp2(b) + np.expm1(c) + (1 + a * a) ** b
    logarithms = np.log(2 + a) + np.log2(3 + b) + np.log10(4 + c) + np.log1p(a * a)
    return angles + powers + logarithms + np.sinh(a) + np.cosh(b) + np.tanh(c)


def several(a: Any, b: Any) -> Any:
    """Return a matrix, a number and a vector."""
    return np.outer(a, b), a @ b, b * 2.0


def chosen(x: Any) -> Any:
    """Return a value with a condition and a division by zero."""
    return np.where(x[0] > 0, x[0] / x[1], np.sqrt(x[0])) * x[2]


@dataclass(frozen=True)
class Case:
    """A kernel, by how it is made, and the shapes of its arguments."""

    make: Callable[[], Kernel]
    shapes: tuple[tuple[int, ...], ...]

    def points(self, count: int, dtype: str = "float64") -> list[Any]:
        """Return random arguments with a leading axis."""
        rng = np.random.default_rng(5)
        return [rng.uniform(-1.5, 1.5, (count, *shape)).astype(dtype) for shape in self.shapes]


def made(f: Callable[..., Any], *sizes: int, **options: Any) -> Case:
    """Return a case whose arguments are vectors."""
    shapes = tuple((size,) for size in sizes)
    return Case(lambda: sa.compile(f, *[np.linspace(0.3, 0.9, size) for size in sizes], **options), shapes)


CASES = {
    "straight": made(sa.hessian(chain), 4),
    "zeros": made(sa.hessian(chain), 10),
    "windows": made(sa.hessian(atoms), 12, roll="never"),
    "mirrored": made(sa.hessian(atoms), 9, roll="never"),
    "sparse": made(sa.hessian(chain, sparse="lower"), 40),
    "rolled": made(sa.hessian(chain, sparse="lower"), 120),
    "loops": made(sa.grad(atoms), 60),
    "sweep": made(sa.hessian(log_sum_exp), 20),
    "small sweep": made(sa.hessian(log_sum_exp), 6, strategy="sweep"),
    "functions": made(sa.grad(functions), 3),
    "several": made(several, 7, 7),
    "single": made(several, 1, 1),
    "value": made(chain, 5),
    "choice": made(sa.grad(chosen), 3),
    "solve": made(lambda x: np.linalg.solve(np.outer(x, x) + 3 * np.eye(4), x), 4),
}
