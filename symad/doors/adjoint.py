"""Gradients of scalar objectives of trajectories, by the adjoint system integrated backward.

Between the times that the objective reads, the adjoint state w follows w' = -(df/dy)^T w; at each of them it jumps by
the gradient of the objective there, and the gradient in the parameters is the integral of (df/dq)^T w.

Source: Cao, Li, Petzold and Serban, "Adjoint sensitivity analysis for differential-algebraic equations: the adjoint DAE
system and its numerical solution", SIAM J. Sci. Comput. 24 (2003).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from symad.doors.callbacks import Array
from symad.doors.systems import System
from symad.doors.with_solve_ivp import Integrator, SystemKernels, integrated
from symad.errors import ArgumentError, ConvergenceError
from symad.transforms.first_order import value_and_grad

Function = Callable[..., Any]


def value_and_gradient(
    system: System, objective: Function, times: Array, q: Array, by: Integrator
) -> tuple[float, Array]:
    """Return objective(y at times, q) and its gradient in q."""
    if times.ndim != 1 or times.size < 2 or not (np.all(np.diff(times) > 0) or np.all(np.diff(times) < 0)):
        raise ArgumentError(f"times {times}", why="an integrator goes one way", do="give two or more, in order")
    start = system.start(0, q)
    ahead = integrated(
        system.kernels(0), q, (float(times[0]), float(times[-1])), start, by, t_eval=None, dense_output=True
    )
    require_success(ahead)
    states = ahead.sol(times).T
    states[0], states[-1] = start, ahead.y[:, -1]
    value, (of_states, of_q) = value_and_grad(objective, argnums=(0, 1))(states, q)
    by = replace(by, atol=float(np.min(by.atol)))  # of the adjoint state, which has other numbers
    w = np.append(of_states[-1], np.zeros(q.size))
    pending = times.size - 1  # where w begins
    for number in range(times.size - 2, -1, -1):
        if number and not of_states[number].any():
            continue  # nothing happens there
        span = float(times[pending]), float(times[number])
        w = _back(system.adjoint, lambda t: np.concatenate([ahead.sol(t), q]), span, w, by)
        w[: system.size] += of_states[number]
        pending = number
    in_start = system.start(1, q).reshape(-1, system.size)[1:]
    return float(value), of_q + w[system.size :] + in_start @ w[: system.size]


def _back(kernels: SystemKernels, values: Function, span: tuple[float, float], w: Array, by: Integrator) -> Array:
    """Return the adjoint state at the other end of a span; `values` are the state and the parameters at each time."""
    trajectory = integrated(kernels, values, span, w, by, t_eval=[span[1]])
    require_success(trajectory)
    last: Array = trajectory.y[:, -1].copy()
    return last


def require_success(trajectory: Any) -> None:
    """Raise ConvergenceError where an integrator failed."""
    if not trajectory.success:
        raise ConvergenceError(
            f"{trajectory.method} found no trajectory", why=trajectory.message, do="try another method"
        )
