"""Python's statistics module: NormalDist and linear_regression, whose C code and floats have traced forms."""

from __future__ import annotations

import statistics

import numpy as np
import pytest

import symad as sa

X = np.array([0.3, 0.7, 1.1])
STANDARD = statistics.NormalDist(0.1, 2.0)
CALLS = {
    "pdf": lambda x: STANDARD.pdf(x[0]) * x[1],
    "cdf of traced parameters": lambda x: statistics.NormalDist(x[0], x[1]).cdf(x[2]),
    "inv_cdf": lambda x: STANDARD.inv_cdf(x[0]) + statistics.NormalDist(x[1], x[2]).inv_cdf(0.3),
    "linear_regression": lambda x: statistics.linear_regression([0.1, 0.5, 0.6], list(x)).slope,
}


@pytest.mark.parametrize("name", CALLS)
def test_values_and_derivatives(name):
    f = CALLS[name]
    assert sa.compile(f, X)(X) == pytest.approx(f(X), rel=1e-12)
    slope = sa.grad(f)(X)
    ends = [[f(X + side * 1e-6 * unit) for side in (1, -1)] for unit in np.eye(3)]
    assert slope == pytest.approx([(up - down) / 2e-6 for up, down in ends], rel=1e-7, abs=1e-9)
    assert sa.compile(sa.grad(f), X)(X) == pytest.approx(slope, rel=1e-12, abs=1e-15)
    assert sa.compile(sa.hessian(f), X)(X) == pytest.approx(sa.hessian(f)(X), rel=1e-10, abs=1e-13)
