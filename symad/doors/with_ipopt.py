"""Solve problems with Ipopt through `ipyopt`, with exact sparse first and second derivatives.

Source: Wachter and Biegler, "On the implementation of an interior-point filter line-search algorithm for large-scale
nonlinear programming", Math. Programming 106 (2006).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from codegen.machine.calls.arguments import numbers_of
from codegen.machine.calls.callables import Callback
from symad.doors.callbacks import Array, Bounds, Callbacks, Request, Solution, solution
from symad.errors import ArgumentError
from symad.extras import optional

NOWHERE = 2e19  # what is no bound for Ipopt
STOPPED = 5
SOLVED = {0: "solved", 1: "solved to an acceptable level"}
SIGNATURES = {  # of ipyopt's C functions, in its order
    "value": "bool (int, double *, double *, void *)",
    "gradient": "bool (int, double *, double *, void *)",
    "constraints": "bool (int, double *, int, double *, void *)",
    "jacobian": "bool (int, double *, int, int, double *, void *)",
    "hessian": "bool (int, double *, double, int, double *, int, double *, void *)",
}
ENDS = SOLVED | {
    2: "infeasible problem detected", 3: "search direction becomes too small", 4: "iterates diverge",
    STOPPED: "stopped by the caller", 6: "feasible point found", -1: "too many iterations", -2: "restoration failed",
    -3: "error in the step computation", -4: "processor time is over", -5: "time is over",
    -10: "not enough degrees of freedom", -11: "invalid problem definition", -12: "invalid option",
    -13: "invalid number detected", -100: "unrecoverable exception", -102: "insufficient memory",
}  # fmt: skip


def solved_by_ipopt(
    _: str, callbacks: Callbacks, start: Array, box: Bounds, limits: Bounds, request: Request
) -> Solution:
    """Solve with Ipopt; ArgumentError if it is missing or does not know an option."""
    ipyopt = optional("ipyopt", "the solver ipopt")
    options: dict[str, Any] = {"print_level": 0, "sb": "yes"}
    if request.tolerance is not None:
        options["tol"] = request.tolerance
    if request.max_iterations is not None:
        options["max_iter"] = request.max_iterations
    if request.multipliers is not None:
        options["warm_start_init_point"] = "yes"
    guard, functions = _Guard(request), _functions(callbacks)
    try:
        problem = ipyopt.Problem(
            start.size, *ipopt_numbers(box), callbacks.kernels.rows, *ipopt_numbers(limits),
            (callbacks.jacobian_pattern.rows, callbacks.jacobian_pattern.columns),
            (callbacks.hessian_pattern.rows, callbacks.hessian_pattern.columns),
            *(_nothing if function is None else function.capsule for function in functions),
            intermediate_callback=guard.iterated, ipopt_options=options | dict(request.options),
        )  # fmt: skip
    except (TypeError, ValueError) as error:
        raise ArgumentError("options of ipopt", why=str(error), do="use those of Ipopt's manual") from error
    multipliers, beside = _multipliers(request.multipliers, callbacks, start)
    low, high = np.maximum(-beside, 0.0), np.maximum(beside, 0.0)
    x, _value, status = problem.solve(start.copy(), mult_g=multipliers, mult_x_L=low, mult_x_U=high)
    guard.raise_again(int(status))
    return solution(
        "ipopt", callbacks, x, box, limits, success=status in SOLVED, status=int(status),
        message=ENDS.get(int(status), f"status {status} of Ipopt"), nit=guard.iterations,
        multipliers=multipliers if callbacks.kernels.rows else None, bound_multipliers=high - low,
    )  # fmt: skip


def _functions(callbacks: Callbacks) -> list[Callback | None]:
    """Return the kernels as C functions, in the order of `ipyopt`: no Python runs where Ipopt asks for numbers.

    They live as long as the list.
    """
    kernels, parameters = callbacks.kernels, callbacks.leaves
    pairs = [(getattr(kernels, kind), signature) for kind, signature in SIGNATURES.items()]
    return [None if kernel is None else kernel.callback(signature, *parameters) for kernel, signature in pairs]


def _nothing(_: Array, out: Array) -> None:
    """There are no constraints: nothing is written."""


class _Guard:
    """Stops Ipopt after an exception in `progress` or a signal handler, and raises the exception afterwards."""

    def __init__(self, request: Request) -> None:
        self.progress, self.iterations = request.progress, 0
        self.printed = getattr(sys, "last_value", None)
        self.error: BaseException | None = None

    def iterated(self, mode: int, number: int, value: float, violation: float, *_: Any) -> bool:
        """Count an iteration and tell of it; False stops Ipopt."""
        try:
            self.iterations = number
            if self.progress is not None and number:
                self.progress(number, value, violation)
        except BaseException as error:
            self.error = error
        return self.error is None

    def raise_again(self, status: int) -> None:
        """Raise the kept exception, or an interrupt that ipyopt has printed before `iterated` could keep it."""
        if self.error is None and status == STOPPED:
            printed = getattr(sys, "last_value", None)
            self.error = KeyboardInterrupt() if printed is self.printed or printed is None else printed
        if self.error is not None:
            raise self.error


def ipopt_numbers(bounds: Bounds) -> tuple[Array, Array]:
    """Return lower and upper bounds as Ipopt takes them."""
    return np.maximum(bounds.low, -NOWHERE), np.minimum(bounds.high, NOWHERE)


def _multipliers(given: Any, callbacks: Callbacks, start: Array) -> tuple[Array, Array]:
    """Return multipliers of the constraints and of the bounds, which stationarity says where they are not given."""
    rows = callbacks.kernels.rows
    if given is None:
        return np.zeros(rows), np.zeros(start.size)
    if isinstance(given, Solution):
        if given.multipliers is None and rows:
            raise ArgumentError(f"multipliers of a solution of {given.solver}", why="it gives none", do="give an array")
        values, beside = np.zeros(0) if given.multipliers is None else given.multipliers, given.bound_multipliers
    else:
        values, beside = numbers_of(given, "multipliers").ravel(), None
    if values.size != rows:
        raise ArgumentError(f"{values.size} multipliers", why=f"there are {rows} constraints")
    if beside is None:
        beside = -callbacks.pull(start, values)
    return values.copy(), beside.ravel()
