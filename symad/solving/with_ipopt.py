"""Ipopt on problems, through `ipyopt`: exact sparse first and second derivatives, in the order of the kernels.

Source: Wachter and Biegler, "On the implementation of an interior-point filter line-search algorithm for large-scale
nonlinear programming", Math. Programming 106 (2006).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symad.errors import ArgumentError
from symad.extras import optional
from symad.solving.callbacks import Array, Bounds, Callbacks, Request, Solution, solution

NOWHERE = 2e19  # what is no bound for Ipopt
SOLVED = {0: "solved", 1: "solved to an acceptable level"}
ENDS = SOLVED | {
    2: "infeasible problem detected", 3: "search direction becomes too small", 4: "iterates diverge",
    5: "stopped by the caller", 6: "feasible point found", -1: "too many iterations", -2: "restoration failed",
    -3: "error in the step computation", -4: "processor time is over", -5: "time is over",
    -10: "not enough degrees of freedom", -11: "invalid problem definition", -12: "invalid option",
    -13: "invalid number detected", -100: "unrecoverable exception", -102: "insufficient memory",
}  # fmt: skip


def solved_by_ipopt(
    _: str, callbacks: Callbacks, start: Array, box: Bounds, limits: Bounds, request: Request
) -> Solution:
    """Return what Ipopt finds; ArgumentError where it is not installed, or does not know an option."""
    ipyopt = optional("ipyopt", "the solver ipopt")
    options: dict[str, Any] = {"print_level": 0, "sb": "yes"}
    if request.tolerance is not None:
        options["tol"] = request.tolerance
    if request.max_iterations is not None:
        options["max_iter"] = request.max_iterations
    if request.multipliers is not None:
        options["warm_start_init_point"] = "yes"
    guard = _Guard(request)
    try:
        problem = ipyopt.Problem(
            start.size, *_numbers(box), callbacks.kernels.rows, *_numbers(limits),
            (callbacks.jacobian_pattern.rows, callbacks.jacobian_pattern.columns),
            (callbacks.hessian_pattern.rows, callbacks.hessian_pattern.columns),
            guard.number(callbacks.value), guard.written(callbacks.gradient), guard.written(callbacks.constraints),
            guard.written(callbacks.jacobian), guard.written(callbacks.hessian),
            intermediate_callback=guard.iterated, ipopt_options=options | dict(request.options),
        )  # fmt: skip
    except (TypeError, ValueError) as error:
        raise ArgumentError("options of ipopt", why=str(error), do="use those of Ipopt's manual") from error
    multipliers = _multipliers(request.multipliers, callbacks.kernels.rows)
    low, high = np.zeros(start.size), np.zeros(start.size)
    x, _value, status = problem.solve(start.copy(), mult_g=multipliers, mult_x_L=low, mult_x_U=high)
    guard.raise_again()
    return solution(
        "ipopt", callbacks, x, box, limits, success=status in SOLVED, status=int(status),
        message=ENDS.get(int(status), f"status {status} of Ipopt"), nit=guard.iterations,
        multipliers=multipliers if callbacks.kernels.rows else None,
    )  # fmt: skip


class _Guard:
    """Keeps the first exception in a callback, which Ipopt would swallow: it stops, and the exception is raised after.

    Until it stops, what the callbacks give is NaN.
    """

    def __init__(self, request: Request) -> None:
        self.progress, self.iterations = request.progress, 0
        self.error: BaseException | None = None

    def iterated(self, mode: int, number: int, value: float, violation: float, *_: Any) -> bool:
        """Count an iteration and tell of it; False stops Ipopt."""
        self.iterations = number
        if self.progress is not None and number:
            self._tried(self.progress, number, value, violation)
        return self.error is None

    def number(self, function: Any) -> Any:
        """Return a callback that returns a number."""

        def guarded(x: Array) -> float:
            found = self._tried(function, x)
            return float("nan") if found is None else found

        return guarded

    def written(self, function: Any) -> Any:
        """Return a callback that writes its result into its last argument."""

        def guarded(*arguments: Any) -> None:
            *given, out = arguments
            found = self._tried(function, *given)
            out[...] = np.nan if found is None else found

        return guarded

    def raise_again(self) -> None:
        """Raise what was kept."""
        if self.error is not None:
            raise self.error

    def _tried(self, function: Any, *arguments: Any) -> Any:
        if self.error is not None:
            return None
        try:
            return function(*arguments)
        except BaseException as error:
            self.error = error
            return None


def _numbers(bounds: Bounds) -> tuple[Array, Array]:
    return np.maximum(bounds.low, -NOWHERE), np.minimum(bounds.high, NOWHERE)


def _multipliers(given: Any, rows: int) -> Array:
    found = np.zeros(rows) if given is None else np.array(given, dtype=np.float64).ravel()
    if found.size != rows:
        raise ArgumentError(f"{found.size} multipliers", why=f"there are {rows} constraints")
    return found
