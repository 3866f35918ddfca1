"""Every row of the table of SciPy calls: value, first and second derivative, kernel, or the refusal."""

from __future__ import annotations

import numpy as np
import pytest

import symad as sa
from tests.support.call_table import Row
from tests.support.scipy_table import DOCUMENT, document, rows
from tests.support.table_checks import (
    check_curvature,
    check_kernels,
    check_refusal,
    check_values_and_derivatives,
    expecting,
)

ROWS = rows()
GENERATOR = np.random.default_rng(4)


@expecting(ROWS, "symbols", "numbers")
@pytest.mark.thinned
def test_values_and_derivatives_of_scipy_calls(row: Row) -> None:
    """On numbers: SciPy's values; forward mode against central differences of SciPy; reverse against forward mode."""
    check_values_and_derivatives(row, GENERATOR)


@expecting(ROWS, "symbols", "numbers")
@pytest.mark.thinned
@pytest.mark.wide_rows("integrate.dblquad(lambda s, t: np.exp(-r * t * s), 0, 1, 0, lambda t: t)[0]")
def test_second_derivatives_of_scipy_calls(row: Row) -> None:
    check_curvature(row, GENERATOR)


@expecting(ROWS, "symbols")
@pytest.mark.thinned
@pytest.mark.wide_rows(  # 10 to 100 s each, the last tests of a run
    "integrate.dblquad(lambda s, t: np.exp(-r * t * s), 0, 1, 0, lambda t: t)[0]",
    "linalg.solve_continuous_lyapunov(s, m)", "linalg.logm(m[:2, :2] / 9 + np.eye(2))",
    "interpolate.make_interp_spline(k, q)(u)",
)  # fmt: skip
def test_kernels_of_scipy_calls(row: Row) -> None:
    check_kernels(row, GENERATOR)


@expecting(ROWS, "numbers")
def test_what_needs_values_is_refused_on_symbols(row: Row) -> None:
    with pytest.raises(sa.errors.TraceError, match=r"needs numbers|depends on a symbolic value|in a kernel"):
        sa.trace(row.function, *row.values)


@expecting(ROWS, "refused")
def test_refusals_name_the_function_of_scipy(row: Row) -> None:
    check_refusal(row)


def test_the_page_of_scipy_is_generated_from_the_table() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document()
