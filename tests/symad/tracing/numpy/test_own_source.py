"""Functions of NumPy that are traced through NumPy's own code: what it reads, and that it chooses nothing by values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symad as sa
from symad.tracing.numpy.own_source import FUNCTIONS
from tests.support.call_table import Row
from tests.support.numpy_table import rows

X = np.array([0.4, -1.3, 0.7, 2.1, -0.2])
A = np.arange(12.0).reshape(3, 4) / 7 - 0.5
ASKING = (  # only LAPACK computes singular values; how many elements differ is a path
    "np.linalg.svdvals", "np.linalg.matrix_rank", "np.linalg.matrix_norm", "np.unique_all", "np.unique_counts",
    "np.unique_inverse", "np.unique_values", "np.union1d",
)  # fmt: skip


def _named(name: str) -> Any:
    function: Any = np
    for part in name.split(".")[1:]:
        function = getattr(function, part, None)
    return function


ROWS = [row for row in rows() if row.expected == "symbols" and _named(row.name) in FUNCTIONS]


@pytest.mark.parametrize("row", [row for row in ROWS if row.name not in ASKING], ids=lambda row: row.text)
def test_nothing_is_chosen_by_values(row: Row, agrees_on_symbols: Callable[..., None]) -> None:
    """Symbols have no values: a question about them would be an error here."""
    agrees_on_symbols(row.function, *row.values, rtol=1e-9)


def test_every_function_has_a_row() -> None:
    assert {_named(row.name) for row in ROWS} >= set(FUNCTIONS) - {np.linalg.vecdot}


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.nansum([x[0], x[1]]),
        lambda x: np.nan_to_num([x[0], 1.0]),
        lambda x: np.polyval(x, [1.0, 2.0]),
        lambda x: np.linalg.matrix_power([[x[0], 1.0], [0.0, x[1]]], 2),
        lambda x: np.pad(x, 7, mode="reflect", reflect_type="odd"),
        lambda x: np.polyfit(np.arange(5.0), x, 1, full=True)[0],
    ],
)
def test_lists_and_all_modes_are_read(function: Callable[[Any], Any]) -> None:
    value, slope = sa.jvp(function, (X,), (np.ones(5),))
    np.testing.assert_allclose(value, function(X), rtol=1e-13)
    step = 1e-6
    difference = (function(X + step) - function(X - step)) / (2 * step)
    np.testing.assert_allclose(slope, difference, rtol=1e-6, atol=1e-8)


def test_a_border_around_whole_numbers_is_whole() -> None:
    """NumPy stores the border into an array of integers."""
    value, slope = sa.jvp(lambda r: np.pad(np.arange(3), 1, constant_values=r), (0.37,), (1.0,))
    assert value.tolist() == np.pad(np.arange(3), 1, constant_values=0.37).tolist()
    assert not np.any(slope)


@pytest.mark.parametrize(
    "function",
    [np.unwrap, np.trapezoid, np.linalg.norm, lambda a: np.kron(a, a), lambda a: np.pad(a, 2, mode="mean")],
)
def test_numbers_have_numpys_bits(function: Callable[[Any], Any]) -> None:
    value, _ = sa.jvp(function, (A,), (A,))
    assert np.asarray(value).tobytes() == np.asarray(function(A)).tobytes()
