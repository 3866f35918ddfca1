"""NumPy's values at zeros of both signs, infinities, NaN, subnormal and large numbers, on numbers and in kernels."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symad as sa

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
OPERANDS = (0.0, -0.0, 1.0, -1.0, 5.5, -5.5, 3.0, 0.1, 1e-310, 1e308, np.inf, -np.inf, np.nan)

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floor_divide": np.floor_divide,
    "operator //": lambda u, v: u // v,
    "remainder": np.remainder,
    "fmod": np.fmod,
    "divmod, quotient": lambda u, v: np.divmod(u, v)[0],
    "divmod, rest": lambda u, v: np.divmod(u, v)[1],
    "modf, fraction": lambda u, v: np.modf(u)[0],
    "modf, whole": lambda u, v: np.modf(u)[1],
    "frexp, mantissa": lambda u, v: np.frexp(u)[0],
    "frexp, exponent": lambda u, v: np.frexp(u)[1] * 1.0,
    "ldexp": lambda u, v: np.ldexp(u, 3),
    "divide": np.divide,
    "reciprocal": lambda u, v: np.reciprocal(u),
    "hypot": np.hypot,
    "arctan2": np.arctan2,
    "copysign": np.copysign,
    "heaviside": np.heaviside,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "logaddexp": np.logaddexp,
    "sign": lambda u, v: np.sign(u),
    "rint": lambda u, v: np.rint(u),
    "trunc": lambda u, v: np.trunc(u),
    "cbrt": lambda u, v: np.cbrt(u),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_at_special_operands_are_numpys(name: str) -> None:
    def function(x: Any) -> Any:
        return FUNCTIONS[name](x[0:1], x[1:2])

    kernel = sa.compile(function, np.array([1.0, 2.0]))
    gradient = sa.value_and_grad(lambda x: np.sum(function(x)))
    for k, operands in enumerate(itertools.product(OPERANDS, OPERANDS)):
        point = np.array(operands)
        expected = function(point)
        values = [kernel(point)]
        if k % 5 == 0:  # a call on numbers takes a millisecond
            values.append(np.array([gradient(point)[0]]))
        for value in values:
            np.testing.assert_allclose(value, expected, rtol=4e-16, err_msg=f"{name} of {operands}")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.thinned
def test_values_beside_a_special_constant_are_numpys(name: str) -> None:
    for constant in OPERANDS:
        for f in (lambda x, c=constant: FUNCTIONS[name](x, c), lambda x, c=constant: FUNCTIONS[name](c, x)):
            points = np.array(OPERANDS)
            expected = np.broadcast_to(f(points), points.shape)
            np.testing.assert_allclose(
                sa.compile(f, points)(points), expected, rtol=4e-16, err_msg=f"{name}, {constant}"
            )
