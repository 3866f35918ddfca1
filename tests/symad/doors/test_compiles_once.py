"""Other values of the same shapes compile nothing anew: solvers, systems of equations and their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symad as sa
from codegen.stages import Compilation

TIMES = np.array([0.0, 1.0])
PROBLEM = sa.Problem(lambda x, a: np.sum((x - a) ** 2), lambda x, a: x[0] + x[1] - a[0])
FREE = sa.Problem(lambda x: np.sum((x - 1) ** 2))
SYSTEM = sa.ode(lambda t, y, k: [-k * y[0]], [1.0], (1.0,))
SOLUTION = sa.jacobian(lambda a: PROBLEM.solution(np.zeros(2), a, solver="slsqp"))
LOSS = sa.grad(lambda k: np.sum(SYSTEM.solution(TIMES, k) ** 2))
BEND = sa.hessian(lambda k: np.sum(SYSTEM.solution(TIMES, k) ** 2))


def objective(y: Any, k: Any) -> Any:
    return np.sum(y**2)


CALLS: dict[str, Callable[[float], Any]] = {
    **{
        f"minimize by {solver}": lambda p, s=solver: PROBLEM.minimize(np.zeros(2), np.array([p, 3.0]), solver=s)
        for solver in ("ipopt", "trust-constr", "slsqp")
    },
    "minimize without parameters": lambda p: FREE.minimize(np.full(2, p), solver="ipopt"),
    "the derivative of a solution": lambda p: SOLUTION(np.array([p, 3.0])),
    **{
        f"solve by {method}, order {order}": lambda p, m=method, k=order: SYSTEM.solve(
            (0, 1.0), p, method=m, sensitivities=k
        )
        for method in ("LSODA", "BDF", "CVODE")
        for order in (0, 1)
    },
    "the adjoint system": lambda p: SYSTEM.value_and_grad(objective, TIMES, p),
    "the gradient of a loss": LOSS,
    "the Hessian of a loss": BEND,
}


@pytest.mark.parametrize("name", CALLS)
def test_other_values_compile_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call = CALLS[name]
    call(1.0)
    call(1.1)
    monkeypatch.setattr(Compilation, "__init__", None)
    call(1.2)


def test_a_loaded_problem_compiles_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FREE.save(tmp_path / "problem", np.zeros(2))
    loaded = sa.load(tmp_path / "problem")
    loaded.minimize(np.zeros(2), solver="ipopt")
    monkeypatch.setattr(Compilation, "__init__", None)
    assert loaded.minimize(np.ones(2), solver="ipopt").success
