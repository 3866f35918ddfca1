"""The same functions taken apart by hand: bodies with tables of indices and constants, for those who must be told.

`jets` differentiates them in NumPy for reference values; CasADi's `map` and JAX's `vmap` take the bodies as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.structure.problems import LEFT, RIGHT, Grid, line_misfit, neighbours, transformer_misfit

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Body = Callable[[Any, Any, Any], Any]  # slots, constants, namespace: a scalar


@dataclass(frozen=True)
class Terms:
    """`count` copies of a body. They add up to one scalar, or each is the entry of a vector at its place in `rows`."""

    body: Body
    index: Integers  # (count, slots): places of the inputs
    constants: Floats  # (count, constants)
    rows: Integers | None = None

    @property
    def count(self) -> int:
        """Number of copies."""
        return len(self.index)


def _terms(body: Body, index: Any, constants: Any = None, rows: Any = None) -> Terms:
    places = np.asarray(index, dtype=np.int64)
    columns = np.zeros((len(places), 0)) if constants is None else np.asarray(constants, dtype=np.float64)
    return Terms(body, places, columns, None if rows is None else np.asarray(rows, dtype=np.int64))


def lennard_jones_terms(size: int) -> tuple[Terms, ...]:
    """Return the pairs of atoms."""

    def pair(x: Any, c: Any, xp: Any) -> Any:
        inverse_sixth = 1 / ((x[0] - x[3]) ** 2 + (x[1] - x[4]) ** 2 + (x[2] - x[5]) ** 2) ** 3
        return 4 * (inverse_sixth**2 - inverse_sixth)

    first, second = np.tril_indices(size // 3, -1)
    return (_terms(pair, np.hstack([3 * first[:, None] + range(3), 3 * second[:, None] + range(3)])),)


def rosenbrock_terms(size: int) -> tuple[Terms, ...]:
    """Return the links of the chain."""

    def link(x: Any, c: Any, xp: Any) -> Any:
        return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2

    return (_terms(link, np.arange(size - 1)[:, None] + np.arange(2)),)


def logistic_terms(data: Floats, labels: Floats) -> tuple[Terms, ...]:
    """Return the rows of the data."""
    columns = data.shape[1]

    def loss(x: Any, c: Any, xp: Any) -> Any:
        return xp.log(1 + xp.exp(-c[columns] * sum(c[k] * x[k] for k in range(columns))))

    return (_terms(loss, np.tile(np.arange(columns), (len(data), 1)), np.column_stack([data, labels])),)


def reaction_1d_terms(size: int) -> tuple[Terms, ...]:
    """Return the inner points and the two ends."""
    rate = 0.01 * size**2

    def inner(u: Any, c: Any, xp: Any) -> Any:
        return rate * (u[0] - 2 * u[1] + u[2]) + u[1] - u[1] ** 3

    def end(u: Any, c: Any, xp: Any) -> Any:
        return u[0] - c[0]

    places = np.arange(size - 2)[:, None] + np.arange(3)
    ends = np.array([0, size - 1])
    return (_terms(inner, places, rows=places[:, 1]), _terms(end, ends[:, None], [[LEFT], [RIGHT]], ends))


def reaction_2d_terms(size: int) -> tuple[Terms, ...]:
    """Return the points of the grid by their number of neighbours."""
    side = round(size**0.5)
    rate = 0.01 * side**2

    def point(u: Any, c: Any, xp: Any) -> Any:
        around = len(u) - 1
        return rate * sum(u[1 + k] - u[0] for k in range(around)) + u[0] - u[0] ** 3

    kinds: dict[int, list[list[int]]] = {}
    for i in range(side):
        for j in range(side):
            places = [side * i + j, *(side * k + m for k, m in neighbours(i, j, side))]
            kinds.setdefault(len(places), []).append(places)
    return tuple(_terms(point, places, rows=np.array(places)[:, 0]) for _, places in sorted(kinds.items()))


def grid_terms(grid: Grid) -> tuple[Terms, ...]:
    """Return the lines, the transformers and the buses."""

    def line(x: Any, c: Any, xp: Any) -> Any:
        return line_misfit((x[0], x[1]), (x[2], x[3]), [c[k] for k in range(5)], xp)

    def transformer(x: Any, c: Any, xp: Any) -> Any:
        return transformer_misfit((x[0], x[1]), (x[2], x[3]), [c[k] for k in range(5)], xp)

    def bus(x: Any, c: Any, xp: Any) -> Any:
        return 1000 * (x[0] - c[0]) ** 2

    def ends(branches: Integers) -> Integers:
        return np.hstack([branches, branches + grid.buses])

    sizes = np.arange(grid.buses)[:, None]
    return (
        _terms(line, ends(grid.lines), grid.line_data),
        _terms(transformer, ends(grid.transformers), grid.transformer_data),
        _terms(bus, sizes + grid.buses, grid.magnitudes[:, None]),
    )
