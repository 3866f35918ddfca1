"""One number of a function of arrays that stands at many places, of results or operands: all modes, and differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm, solve_triangular

import symad as sa

MATRIX = 3 * np.eye(20) + 0.1


def _matrix(x: Any) -> Any:
    return np.broadcast_to(x[0] * x[1], (20, 20))


X, V = np.linspace(0.1, 0.9, 20), np.cos(np.arange(20.0))
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "one number": lambda x: np.broadcast_to(np.sin(np.sum(x)), (20,)),
    "one number in a matrix": lambda x: np.broadcast_to(np.sin(np.sum(x)), (4, 5)),
    "copied": lambda x: np.broadcast_to(np.sin(np.sum(x)), (20,)).copy(),
    "rows": lambda x: np.broadcast_to(np.sin(x), (3, 20)),
    "columns": lambda x: np.broadcast_to(np.sin(x)[:, None], (20, 3)),
    "full": lambda x: np.full(20, np.sum(x) ** 2),
    "stack": lambda x: np.stack([np.sum(x * x)] * 20),
    "gradient": lambda x: sa.grad(lambda y: np.sin(np.sum(y)))(x),
    "parameter": lambda x: np.broadcast_to(x[3], (20,)),
    "sides of a system": lambda x: np.linalg.solve(MATRIX * x[0], _matrix(x))[:, 0],
    "one side of a system": lambda x: np.linalg.solve(MATRIX, np.full(20, np.sum(x))),
    "rows of sides": lambda x: np.linalg.solve(MATRIX * x[1], np.broadcast_to(np.sin(x), (20, 20)))[:, 0],
    "columns of sides": lambda x: np.linalg.solve(MATRIX, np.broadcast_to(np.sin(x)[:, None], (20, 20)))[0],
    "triangular system": lambda x: solve_triangular(np.tril(MATRIX) * x[0], _matrix(x), lower=True)[0],
    "matrix of a system": lambda x: np.linalg.solve(MATRIX + _matrix(x), x),
    "Cholesky factor": lambda x: np.linalg.cholesky(MATRIX + _matrix(x))[:, 0],
    "exponential": lambda x: expm(0.01 * _matrix(x))[0],
    "product": lambda x: _matrix(x) @ np.full(20, np.sum(x)),
    "kept axis": lambda x: np.broadcast_to(np.sum(np.sin(x).reshape(4, 5), axis=0, keepdims=True), (4, 5)),
}


def _slope(f: Callable[[Any], Any]) -> Any:
    return (np.asarray(f(X + 1e-6 * V)) - np.asarray(f(X - 1e-6 * V))) / 2e-6


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.thinned
def test_every_mode_has_its_derivatives(name: str) -> None:
    f = FUNCTIONS[name]
    weights = np.cos(np.arange(np.size(f(X)))).reshape(np.shape(f(X)))

    def total(x: Any) -> Any:
        return np.sum(f(x) * weights)

    def pushed(x: Any) -> Any:
        return sa.jvp(f, (x,), (V,))[1]

    def pulled(x: Any) -> Any:
        return sa.vjp(f, x)[1](weights)[0]

    gradient = np.array([(total(X + h) - total(X - h)) / 2e-6 for h in 1e-6 * np.eye(20)])
    second = _slope(sa.grad(total))
    compared = [
        (pushed(X), _slope(f)),
        (sa.linearize(f, X)[1](V), _slope(f)),
        (np.asarray(sa.jacfwd(f)(X)) @ V, _slope(f)),
        (np.asarray(sa.jacrev(f)(X)) @ V, _slope(f)),
        (pulled(X), gradient),
        (sa.grad(total)(X), gradient),
        (sa.jvp(pushed, (X,), (V,))[1], _slope(pushed)),
        (sa.hvp(total, (X,), (V,)), second),
        (sa.jvp(pulled, (X,), (V,))[1], second),
        (sa.linearize(pulled, X)[1](V), second),
        (sa.vjp(pushed, X)[1](weights)[0], second),
    ]
    for found, expected in compared:
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
