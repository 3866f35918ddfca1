"""Flows: solutions of a system as functions of times and parameters, differentiable at every order.

The derivative of a solution in its parameters is the solution of the variational equations, which is a flow again; in a
time it is the right-hand side there. The first time becomes a parameter: a system that begins at t0 is one in t - t0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from symad.derivatives.custom import custom_derivative
from symad.doors.callbacks import Array
from symad.doors.with_solve_ivp import Integrator, integrated
from symad.errors import ArgumentError, ConvergenceError
from symad.tracing.control.maps import vmap
from symad.tracing.values.traced import Traced

if TYPE_CHECKING:
    from symad.doors.systems import System


def flow(system: System, order: int, by: Integrator) -> Callable[[Any, Any], Any]:
    """Return the function of times and parameters that gives all rows of sensitivities at each time.

    Times that are traced move, and so do parameters.
    """

    def flowed(times: Any, q: Any) -> Any:
        if not isinstance(times, Traced):
            along = partial(_along, system, order, by, times)
            return custom_derivative(partial(plain, times), lambda p, d: along(p[0], d[0]), opaque=True)(q)
        if isinstance(q, Traced):
            return custom_derivative(plain, both, opaque=True)(times, q)
        return custom_derivative(lambda times: plain(times, q), lambda p, d: moved(p[0], q) * d[0][:, None, None],
                                 opaque=True)(times)  # fmt: skip

    def plain(times: Any, q: Any) -> Any:
        return _solved(system, order, by, np.asarray(times), np.asarray(q))

    def moved(times: Any, q: Any) -> Any:
        """Return the right-hand side at each time."""
        rows = flow(system, order, by)(times, q)
        right = system.sensitivities(order).right(system.f)
        slopes = vmap(lambda t, z: right(t, np.ravel(z), q))(times, rows)
        return np.reshape(slopes, rows.shape)

    def both(primals: Any, tangents: Any) -> Any:
        times, q = primals
        return _along(system, order, by, times, q, tangents[1]) + moved(times, q) * tangents[0][:, None, None]

    return flowed


def _along(system: System, order: int, by: Integrator, times: Any, q: Any, tangent: Any) -> Any:
    """Return the derivative of all rows along a direction of the parameters."""
    higher = flow(system, order + 1, by)(times, q)
    slopes = higher[:, system.sensitivities(order).above]  # times, rows, parameters, numbers
    return np.sum(slopes * tangent[:, None], axis=2)


def _solved(system: System, order: int, by: Integrator, times: Array, q: Array) -> Array:
    """Return all rows at each time; ConvergenceError where the integrator fails."""
    steps = np.diff(times)
    if times.ndim != 1 or times.size < 1 or not (np.all(steps > 0) or np.all(steps < 0)):
        raise ArgumentError(f"times {times}", why="an integrator goes one way", do="give them in order, each once")
    rows = system.sensitivities(order)
    start = system.start(order, q)
    states = np.empty((times.size, start.size))
    states[0] = start
    if times.size > 1:
        result = integrated(system.kernels(order), q, (float(times[0]), float(times[-1])), start, by, t_eval=times[1:])
        if not result.success:
            raise ConvergenceError(
                f"{result.method} did not come from t = {times[0]:g} to {times[-1]:g}", why=result.message,
                do="try another method, or see where the right-hand side is NaN or infinite",
            )  # fmt: skip
        states[1:] = result.y.T
    return states.reshape(times.size, *rows.shape)
