"""Every row of the table of NumPy calls: value, derivative in both modes, kernel, or the refusal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symad as sa
from symad.tracing.values.containers import flatten
from tests.support.call_table import Row
from tests.support.numpy_table import DOCUMENT, WITHOUT_ROWS, document, public_functions, rows
from tests.support.table_checks import check_kernels, check_refusal, check_values_and_derivatives, expecting

ROWS = rows()
GENERATOR = np.random.default_rng(4)

pytestmark = pytest.mark.filterwarnings("ignore:numpy.fix is deprecated")  # since NumPy 2.5


@expecting(ROWS, "symbols", "inside")
def test_values_and_derivatives(row: Row) -> None:
    """On numbers: NumPy's values; forward mode against central differences of NumPy; reverse against forward mode."""
    check_values_and_derivatives(row, GENERATOR)


@expecting(ROWS, "symbols")
@pytest.mark.thinned
def test_kernels(row: Row) -> None:
    """Traced on symbols and compiled: NumPy's values, and the derivatives found on numbers."""
    check_kernels(row, GENERATOR)


@expecting(ROWS, "inside")
def test_what_has_a_length_that_depends_on_values(row: Row) -> None:
    """A kernel cannot return it; its sum is that of NumPy, with the derivative found on numbers."""
    with pytest.raises(sa.errors.ArgumentError, match="returns shape"):
        sa.compile(row.function, *row.values)

    def summed(*point: Any) -> Any:
        return sum(np.sum(leaf) for leaf in flatten(row.function(*point))[0])

    value, gradient = sa.compile(sa.value_and_grad(summed), *row.values)(*row.values)
    np.testing.assert_allclose(value, summed(*row.values), 1e-9)
    np.testing.assert_allclose(gradient, sa.grad(summed)(*row.values), 1e-9)


@expecting(ROWS, "refused")
def test_refusals_name_the_function(row: Row) -> None:
    check_refusal(row)


@expecting(ROWS, "error")
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


@pytest.mark.wide
def test_the_documentation_is_generated_from_the_table() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document()
