"""Hutchinson's estimate of a trace: exact for the right probes, differentiable, checked for shapes."""

import numpy as np
import pytest

import symad as sa
from symad.errors import ArgumentError

X = np.array([0.3, -0.7, 1.2])
MATRIX = np.random.default_rng(2).normal(size=(3, 3))


def f(x):
    return np.tanh(MATRIX @ x) * x[0]


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_orthogonal_probes_give_the_trace_itself(mode):
    probes = np.sqrt(3.0) * np.eye(3)
    estimate = sa.hutchinson_trace(f, X, probes, mode=mode)
    assert estimate == pytest.approx(np.trace(sa.jacobian(f)(X)), rel=1e-14)
    assert isinstance(estimate, float)


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_the_estimate_is_differentiated_and_compiled(mode):
    probes = np.random.default_rng(3).choice([-1.0, 1.0], size=(4, 3))
    estimate = lambda x: sa.hutchinson_trace(f, x, probes, mode=mode)  # noqa: E731 (a name for two lines)
    by_matrix = lambda x: sum(v @ sa.jacobian(f)(x) @ v for v in probes) / 4  # noqa: E731 (likewise)
    assert sa.grad(estimate)(X) == pytest.approx(sa.grad(by_matrix)(X), rel=1e-12)
    assert sa.compile(sa.grad(estimate), X)(X) == pytest.approx(sa.grad(by_matrix)(X), rel=1e-12)


def test_shapes_are_checked():
    for function, probes in ((f, np.ones((2, 4))), (f, np.ones((0, 3))), (lambda x: x[:2], np.ones((2, 3)))):
        with pytest.raises(ArgumentError, match="a trace is that of a square matrix"):
            sa.hutchinson_trace(function, X, probes)
    with pytest.raises(ArgumentError, match="mode='both'"):
        sa.hutchinson_trace(f, X, np.ones((1, 3)), mode="both")
