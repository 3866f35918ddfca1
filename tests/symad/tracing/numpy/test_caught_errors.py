"""Errors of linear algebra that the user's code catches are paths of a kernel, as they are paths on numbers."""

import numpy as np
import pytest
import scipy.linalg

import symad as sa

A = np.array([[2.0, 1.0], [0.0, 3.0]])
CALLS = {
    "inv": lambda x: np.linalg.inv(A * int(x))[0, 0] * x,
    "solve": lambda x: np.linalg.solve(A * int(x), np.ones(2) * x)[0],
    "solve 30": lambda x: np.linalg.solve(np.eye(30) * int(x), np.ones(30) * x)[0],
    "power": lambda x: np.linalg.matrix_power(A * int(x), -1)[0, 0] * x,
    "cholesky": lambda x: np.linalg.cholesky(A.T @ A * (x - 1))[0, 0],
    "cholesky 30": lambda x: np.linalg.cholesky(np.eye(30) * (x - 1))[0, 0],
    "scipy": lambda x: scipy.linalg.inv(A * int(x))[0, 0] * x,
    "triangular": lambda x: scipy.linalg.solve_triangular(A * int(x), np.ones(2) * x)[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_the_kernel_takes_the_path_of_the_handler(name):
    def f(x):
        try:
            return CALLS[name](x)
        except np.linalg.LinAlgError:
            return -x

    kernel = sa.compile(f, 1.5)
    for x in (0.5, 1.5, 2.5):
        assert sa.value_and_grad(f)(x)[0] == pytest.approx(f(x), rel=1e-14)
        assert kernel(x) == pytest.approx(f(x), rel=1e-14)


def test_counts_times_an_array():
    def f(x):
        try:
            return np.bincount([min(int(x), 9)], minlength=4) @ np.arange(4.0) * x
        except ValueError:  # of more than four counts
            return -x

    kernel = sa.compile(f, 0.5)
    assert [kernel(x) for x in (0.5, 1.5, 3.5, 5.5)] == [f(x) for x in (0.5, 1.5, 3.5, 5.5)] == [0.0, 1.5, 10.5, -5.5]
