"""docs/tracing.md: where numbers of Python raise and nothing catches it, a kernel goes on with what NumPy has."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symad as sa


@pytest.mark.parametrize(
    ("f", "x", "value", "slope"),
    [
        (lambda x: 1 / x, 0.0, math.inf, -math.inf),
        (lambda x: math.log(x), 0.0, -math.inf, math.inf),
        (lambda x: math.log(x), -1.0, math.nan, math.nan),
        (lambda x: math.sqrt(x), -1.0, math.nan, math.nan),
        (lambda x: math.exp(x), 1e3, math.inf, math.inf),
        (lambda x: 10.0**x, 400.0, math.inf, math.inf),
    ],
)
def test_a_kernel_has_infinity_or_nan(f: Callable[[Any], Any], x: float, value: float, slope: float) -> None:
    with pytest.raises((ZeroDivisionError, ValueError, OverflowError)):
        sa.grad(f)(x)
    kernel = sa.compile(sa.value_and_grad(f), 1.0)
    np.testing.assert_equal([float(part) for part in kernel(x)], [value, slope])


def test_what_raises_whatever_the_arguments_are_is_an_error_of_the_function() -> None:
    with pytest.raises(ZeroDivisionError):
        sa.compile(lambda x: x / 0.0, 1.0)
    kernel = sa.compile(sa.value_and_grad(lambda x: x / 0.0 if x > 0 else -x), 1.0)
    np.testing.assert_equal([kernel(1.0), kernel(-2.0)], [(math.nan, math.nan), (2.0, -1.0)])


@pytest.mark.parametrize("picked", [lambda v: np.sum(np.concatenate([v, v])), lambda v: np.sum(np.outer(v, v))])
def test_a_mask_may_pick_from_62_elements(picked: Callable[[Any], Any]) -> None:
    """docs/tracing.md, "Masks": where each length is a path."""
    x = np.ones(62)
    assert sa.compile(lambda x: picked(x[x > 0]), x)(x) == picked(x)
    with pytest.raises(sa.errors.TraceError):
        sa.compile(lambda x: picked(x[x > 0]), np.ones(64))
