"""Results of transforms go through cloudpickle, as joblib and dask send them to other processes."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint

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


def slope(t: Any, y: Any, k: Any) -> Any:
    return [-k * y[0]]


def start(k: Any) -> Any:
    return [k]


def half(t: Any, y: Any, k: Any) -> Any:
    return y[0] - 0.5


def difference(x: Any) -> Any:
    return x[0] - x[1]


SOLVED: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "a system": (
        lambda: sa.ode(slope, start, (1.0,), mass=[[2.0]], events=half),
        lambda system: system.solve((0.0, 3.0), times=[1.0], sensitivities=2).second_sensitivities,
    ),
    "constraints of SciPy": (
        lambda: sa.Problem(energy, [{"type": "eq", "fun": difference}, LinearConstraint([[1, 1]], 1, 3)]),
        lambda problem: problem.minimize(POINT, solver="slsqp").x,
    ),
    "a plan": (lambda: sa.plan(sa.grad(energy), POINT), lambda plan: plan.choice),
    "statistics": (lambda: sa.compile(energy, POINT).stats, lambda stats: stats.total),
}


@pytest.mark.parametrize("name", SOLVED)
def test_what_was_made_and_used_is_pickled(name: str) -> None:
    make, use = SOLVED[name]
    made = make()
    expected = use(made)
    found = use(pickle.loads(pickle.dumps(made)))
    assert found == expected if isinstance(expected, str) else np.allclose(found, expected, rtol=1e-12)
