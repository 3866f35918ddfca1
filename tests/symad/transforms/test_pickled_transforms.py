"""Results of transforms go through cloudpickle, as joblib and dask send them to other processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symad as sa

POINT = np.array([0.5, 1.5])


def energy(x: Any) -> Any:
    return np.sum(np.sin(x) * x)


MADE: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "grad": sa.grad,
    "value and grad": sa.value_and_grad,
    "hessian": sa.hessian,
    "jacobian": lambda f: sa.jacobian(lambda x: f(x) * x),
    "jit": sa.jit,
    "jit of grad": lambda f: sa.jit(sa.grad(f)),
    "hvp": lambda f: lambda x: sa.hvp(f, (x,), (x,)),
}


@pytest.mark.filterwarnings("ignore::symad.errors.UnknownStateWarning")  # code that was sent is nobody's for jit
@pytest.mark.parametrize("name", MADE)
def test_results_of_transforms_are_sent(name: str) -> None:
    cloudpickle = pytest.importorskip("cloudpickle", reason="cloudpickle is no part of the tests' environment")
    made = MADE[name](lambda x: energy(x))
    expected = [made(POINT) for _ in range(3)]  # kept traces and kernels stay here
    sent = cloudpickle.loads(cloudpickle.dumps(made))
    for ours, theirs in zip(parts(sent(POINT)), parts(expected[0]), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def parts(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)
