"""Kernels of a function compared with what it is: its plain calls, their central differences, and other modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import symad as sa

STEP = 1e-5


def differences(f: Callable[..., Any], x: Any) -> Any:
    """Return the central differences of a function of a number or a vector."""
    made = []
    for k in range(np.size(x)):
        step = np.zeros(np.shape(x))
        step[k if np.ndim(x) else ()] = STEP
        ahead, behind = (x + step, x - step) if np.ndim(x) else (float(x + step), float(x - step))
        made.append((float(f(ahead)) - float(f(behind))) / (2 * STEP))
    return np.reshape(made, np.shape(x))


def same_as_called(f: Callable[..., Any], points: Sequence[Any]) -> None:
    """Assert that kernels traced at the first point have the values and derivatives of plain calls at all of them."""
    both, hessian = sa.compile(sa.value_and_grad(f), points[0]), sa.compile(sa.hessian(f), points[0])
    for x in points:
        value, gradient = both(x)
        np.testing.assert_allclose(value, float(f(np.copy(x) if np.ndim(x) else x)), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(gradient, differences(f, x), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(gradient, sa.grad(f)(x), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(hessian(x), sa.hessian(f)(x), rtol=1e-9, atol=1e-11)
