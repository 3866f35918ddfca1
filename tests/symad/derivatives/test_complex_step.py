"""The complex step: a function's complex kernel at x + i h has the derivative in its imaginary part, exactly."""

from __future__ import annotations

import numpy as np
import pytest

import symad as sa

STEP = 1e-200
POINT = np.array([0.7, -0.4, 1.3])


def rational(x):
    return np.exp(x[0]) * np.sin(x[1]) / (1 + x[2] ** 2) + (x[0] - x[1]) ** 5


def roots(x):
    return np.sqrt(1 + x @ x) * np.log(x[0] + 3) - (2 + x[1]) ** 1.7 + x[2] ** -1.5


def network(x):
    return np.tanh(np.cosh(x) @ np.array([0.3, -0.2, 0.1])) ** 2 + np.tan(x[1]) / np.cosh(x[2]) + np.expm1(x[0])


@pytest.mark.parametrize("f", [rational, roots, network])
def test_gradient_and_hessian(f):
    steps = POINT + 1j * STEP * np.eye(3)
    values = sa.compile(f, POINT, dtype="complex128").batch(steps)
    np.testing.assert_allclose(values.imag / STEP, sa.grad(f)(POINT), rtol=2e-14)
    np.testing.assert_allclose(values.real, f(POINT), rtol=1e-14)
    gradients = sa.compile(sa.grad(f), POINT, dtype="complex128").batch(steps)
    np.testing.assert_allclose(gradients.imag / STEP, sa.hessian(f)(POINT), rtol=1e-12, atol=1e-14)


def test_hessians_of_every_strategy_have_a_complex_form():
    hessian = sa.compile(sa.hessian(network), POINT, dtype="complex128")
    assert hessian(POINT).real == pytest.approx(sa.hessian(network)(POINT), rel=1e-12)
    single = sa.compile(sa.hessian(network), POINT, dtype="float32")
    assert single(POINT) == pytest.approx(sa.hessian(network)(POINT), rel=1e-4, abs=1e-5)


def test_complex_examples_give_shapes():
    point = POINT + 0.5j
    kernel = sa.compile(rational, point, dtype="complex128")
    want = np.exp(point[0]) * np.sin(point[1]) / (1 + point[2] ** 2) + (point[0] - point[1]) ** 5
    assert kernel(point) == pytest.approx(want, rel=1e-13)
    assert sa.jit(rational, dtype="complex128")(point) == kernel(point)
    pair = sa.compile(lambda p: {"sum": p["a"] + p["b"]}, {"a": 1j, "b": point}, dtype="complex128")
    assert pair({"a": 2j, "b": point})["sum"] == pytest.approx(point + 2j)
    with pytest.raises(sa.errors.ArgumentError, match="complex128"):
        sa.compile(rational, point)


def test_kinks_are_refused():
    with pytest.raises(sa.errors.LoweringError, match=r"test_complex_step.py:\d+: Abs of a complex number"):
        sa.compile(lambda x: np.abs(x).sum(), POINT, dtype="complex128")


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.conj(x) @ x,
        lambda x: np.conjugate(x[0]),
        lambda x: x.conj() @ x,
        lambda x: x[0].conjugate(),
        lambda x: np.real(x),
        lambda x: x.imag,
        lambda x: x[0].real,
        lambda x: np.vdot(x, x),
        lambda x: np.vecdot(x, x),
        lambda x: np.linalg.norm(x),
        lambda x: np.linalg.vector_norm(x),
        lambda x: np.std(x),
        lambda x: np.cov(x, x[::-1]),
        lambda x: np.correlate(x, x),
        lambda x: np.linalg.cholesky(np.outer(x, x) + np.eye(3)),
        lambda x: x if np.isrealobj(x) else 2 * x,
        lambda x: np.isreal(x) * x,
    ],
)
def test_conjugates_and_parts_are_refused(f):
    """They are the identity on real numbers, and something else at complex points."""
    with pytest.raises(sa.errors.TraceError, match="complex128"):
        sa.compile(f, POINT, dtype="complex128")
    with pytest.raises(sa.errors.TraceError, match="complex128"):
        sa.compile(sa.jacobian(f), POINT, dtype="complex128")
    np.testing.assert_allclose(sa.compile(f, POINT)(POINT), f(POINT))
