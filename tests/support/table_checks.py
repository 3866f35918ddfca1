"""Checks of rows of a table of calls: value, derivative in both modes, kernel, or the refusal."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import symad as sa
from symad.errors import BoundWarning
from symad.tracing.values.containers import flatten
from tests.support.call_table import Row

STEP = 1e-5


def expecting(found: list[Row], *kinds: str) -> Any:
    """Parametrize a test by the rows of which one of these is expected."""
    chosen = [row for row in found if row.expected in kinds]
    return pytest.mark.parametrize("row", chosen, ids=lambda row: row.text)


def _leaves(result: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in flatten(result)[0]]


def _same(found: Any, wanted: Any, rtol: float, atol: float) -> None:
    assert [leaf.shape for leaf in found] == [leaf.shape for leaf in wanted]
    for left, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(left.astype(float), right.astype(float), rtol, atol)


def _total(left: Any, right: Any) -> float:
    return sum(float(np.sum(np.multiply(p, q, dtype=float))) for p, q in zip(left, right, strict=True))


def check_values_and_derivatives(row: Row, generator: np.random.Generator) -> None:
    """On numbers: the package's values; forward mode against central differences; reverse against forward mode."""
    function, point = row.function, row.values
    direction = [generator.uniform(-1.0, 1.0, np.shape(value)) for value in point]
    with np.errstate(all="ignore"):
        wanted = _leaves(function(*row.values))
        ahead, behind = (
            _leaves(function(*[v + s * STEP * d for v, d in zip(row.values, direction, strict=True)])) for s in (1, -1)
        )
    value, forward = (_leaves(part) for part in sa.jvp(function, tuple(point), tuple(direction)))
    assert [leaf.dtype == bool for leaf in value] == [leaf.dtype == bool for leaf in wanted]
    _same(value, wanted, 1e-9, 1e-12)
    slopes = [(p.astype(float) - q.astype(float)) / (2 * STEP) for p, q in zip(ahead, behind, strict=True)]
    _same(forward, slopes, 1e-5, 1e-6)
    weights = [generator.uniform(-1.0, 1.0, leaf.shape) for leaf in value]
    result, pullback = sa.vjp(function, *point)
    structure = flatten(result)[1]
    reverse = pullback(structure.unflatten([weight[()] for weight in weights]))
    size = sum(float(np.abs(leaf).sum()) for leaf in forward) + 1.0
    assert _total(weights, forward) == pytest.approx(_total(reverse, direction), abs=1e-12 * size)


def check_kernels(row: Row, generator: np.random.Generator) -> None:
    """Traced on symbols and compiled: the package's values, and the derivatives found on numbers."""
    direction = [generator.uniform(-1.0, 1.0, np.shape(value)) for value in row.values]
    function = row.function  # what is known to stay as it is, is traced once

    def both(*point: Any) -> Any:
        return sa.jvp(function, point, direction)

    with np.errstate(all="ignore"):
        wanted = _leaves(function(*row.values))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundWarning)  # of another method than SciPy's: test_kernel_solvers.py
        value, derivative = sa.compile(both, *row.values)(*row.values)
    _same(_leaves(value), wanted, 1e-9, 1e-12)
    _same(_leaves(derivative), _leaves(both(*row.values)[1]), 1e-9, 1e-12)


def check_curvature(row: Row, generator: np.random.Generator) -> None:
    """The second derivative in a direction, against central differences of the first."""
    direction = [generator.uniform(-1.0, 1.0, np.shape(value)) for value in row.values]
    function = row.function

    def slope(*point: Any) -> Any:
        return _stacked(sa.jvp(function, point, direction)[1])

    curvature = sa.jvp(slope, tuple(row.values), tuple(direction))[1]
    ahead, behind = (
        slope(*[v + s * STEP * d for v, d in zip(row.values, direction, strict=True)]) for s in (1.0, -1.0)
    )
    differences = (np.asarray(ahead, dtype=float) - np.asarray(behind, dtype=float)) / (2 * STEP)
    scale = 1.0 + float(np.max(np.abs(differences), initial=0.0))
    np.testing.assert_allclose(np.asarray(curvature, dtype=float), differences, 1e-5, 1e-6 * scale)


def _stacked(result: Any) -> Any:
    return np.concatenate([np.ravel(leaf) for leaf in flatten(result)[0]])


def check_refusal(row: Row) -> None:
    """The error names the function."""
    with pytest.raises(sa.WorkbenchError) as caught:
        sa.jvp(row.function, tuple(row.values), tuple(row.values))
    name = row.name.split(".")[-1]
    known = getattr(np, name, None)
    assert re.search(rf"\b({name}|{getattr(known, '__name__', 'no')})\b", str(caught.value))
