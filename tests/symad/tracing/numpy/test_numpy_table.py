"""Every row of the table of NumPy calls: value, derivative in both modes, kernel, or the refusal."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import symad as sa
from symad.tracing.values.containers import flatten
from tests.support.numpy_table import DOCUMENT, WITHOUT_ROWS, Row, document, public_functions, rows

ROWS = rows()
STEP = 1e-5
GENERATOR = np.random.default_rng(4)

pytestmark = pytest.mark.filterwarnings("ignore:numpy.fix is deprecated")  # since NumPy 2.5


def expecting(*kinds: str) -> Any:
    chosen = [row for row in ROWS if row.expected in kinds]
    return pytest.mark.parametrize("row", chosen, ids=lambda row: row.text)


def leaves(result: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in flatten(result)[0]]


def same(found: Any, wanted: Any, rtol: float, atol: float) -> None:
    assert [leaf.shape for leaf in found] == [leaf.shape for leaf in wanted]
    for left, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(left.astype(float), right.astype(float), rtol, atol)


def total(left: Any, right: Any) -> float:
    return sum(float(np.sum(np.multiply(p, q, dtype=float))) for p, q in zip(left, right, strict=True))


@expecting("symbols", "inside")
def test_values_and_derivatives(row: Row) -> None:
    """On numbers: NumPy's values; forward mode against central differences of NumPy; reverse against forward mode."""
    function, point = row.function, row.values
    direction = [GENERATOR.uniform(-1.0, 1.0, np.shape(value)) for value in point]
    with np.errstate(all="ignore"):
        wanted = leaves(function(*row.values))
        ahead, behind = (
            leaves(function(*[v + s * STEP * d for v, d in zip(row.values, direction, strict=True)])) for s in (1, -1)
        )
    value, forward = (leaves(part) for part in sa.jvp(function, tuple(point), tuple(direction)))
    assert [leaf.dtype == bool for leaf in value] == [leaf.dtype == bool for leaf in wanted]
    same(value, wanted, 1e-9, 1e-12)
    slopes = [(p.astype(float) - q.astype(float)) / (2 * STEP) for p, q in zip(ahead, behind, strict=True)]
    same(forward, slopes, 1e-5, 1e-6)
    weights = [GENERATOR.uniform(-1.0, 1.0, leaf.shape) for leaf in value]
    result, pullback = sa.vjp(function, *point)
    structure = flatten(result)[1]
    reverse = pullback(structure.unflatten([weight[()] for weight in weights]))
    size = sum(float(np.abs(leaf).sum()) for leaf in forward) + 1.0
    assert total(weights, forward) == pytest.approx(total(reverse, direction), abs=1e-12 * size)


@expecting("symbols")
def test_kernels(row: Row) -> None:
    """Traced on symbols and compiled: NumPy's values, and the derivatives found on numbers."""
    direction = [GENERATOR.uniform(-1.0, 1.0, np.shape(value)) for value in row.values]

    def both(*point: Any) -> Any:
        return sa.jvp(row.function, point, direction)

    with np.errstate(all="ignore"):
        wanted = leaves(row.function(*row.values))
    value, derivative = sa.compile(both, *row.values)(*row.values)
    same(leaves(value), wanted, 1e-9, 1e-12)
    same(leaves(derivative), leaves(both(*row.values)[1]), 1e-9, 1e-12)


@expecting("inside")
def test_what_has_a_length_that_depends_on_values(row: Row) -> None:
    """A kernel cannot return it; its sum is that of NumPy, with the derivative found on numbers."""
    with pytest.raises(sa.ArgumentError, match="returns shape"):
        sa.compile(row.function, *row.values)

    def summed(*point: Any) -> Any:
        return sum(np.sum(leaf) for leaf in flatten(row.function(*point))[0])

    value, gradient = sa.compile(sa.value_and_grad(summed), *row.values)(*row.values)
    np.testing.assert_allclose(value, summed(*row.values), 1e-9)
    np.testing.assert_allclose(gradient, sa.grad(summed)(*row.values), 1e-9)


@expecting("refused")
def test_refusals_name_the_function(row: Row) -> None:
    with pytest.raises(sa.TraceError) as caught:
        sa.jvp(row.function, tuple(row.values), tuple(row.values))
    known = getattr(np, row.name.split(".")[-1], None)
    assert re.search(rf"\b({row.name.split('.')[-1]}|{getattr(known, '__name__', 'no')})\b", str(caught.value))


@expecting("error")
def test_what_numpy_refuses(row: Row) -> None:
    """Errors of NumPy are errors of ours; but np.ldexp takes any exponent."""
    with pytest.raises((TypeError, ValueError, IndexError)):
        row.function(*row.values)
    if row.name != "np.ldexp":
        with pytest.raises((TypeError, ValueError, IndexError)):
            sa.jvp(row.function, tuple(row.values), tuple(row.values))


def test_no_function_is_forgotten() -> None:
    """Every public function of np, np.linalg and np.fft has a row, or is in a list with a reason."""
    listed = {f"np.{name}" for names in WITHOUT_ROWS.values() for name in names.split()}
    tried = {row.name for row in ROWS}
    assert sorted(set(public_functions()) - tried - listed) == []
    assert sorted(tried & listed) == []


def test_the_documentation_is_generated_from_the_table() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document()
