"""Solve problems with `scipy.optimize`, with sparse derivatives where a method takes them."""

from __future__ import annotations

from itertools import count
from typing import Any, Literal

import numpy as np

from symad.doors.callbacks import Array, Bounds, Callbacks, Request, Solution, solution
from symad.errors import ArgumentError
from symad.extras import optional

Method = Literal["trust-constr", "slsqp", "l-bfgs-b", "tnc", "bfgs", "newton-cg", "trust-exact", "trust-krylov"]
BOUNDED = ("trust-constr", "slsqp", "l-bfgs-b", "tnc")
CONSTRAINED = ("trust-constr", "slsqp")
SECOND = ("trust-constr", "trust-exact")  # derivatives, as a matrix
PRODUCTS = ("newton-cg", "trust-krylov")  # of that matrix and vectors


def solved_by_scipy(
    method: str, callbacks: Callbacks, start: Array, box: Bounds, limits: Bounds, request: Request
) -> Solution:
    """Solve with `scipy.optimize.minimize`; ArgumentError if the method has no bounds or constraints."""
    scipy = optional("scipy.optimize", f"the solver {method}")
    constrained = bool(callbacks.kernels.rows)
    for asked, methods, what in ((box.finite, BOUNDED, "bounds"), (constrained, CONSTRAINED, "constraints")):
        if asked and method not in methods:
            raise ArgumentError(f"{what} with solver={method!r}", do=f"use one of {', '.join([*methods, 'ipopt'])}")
    options = dict(request.options)
    if request.max_iterations is not None and method != "tnc":
        options["maxiter"] = request.max_iterations
    given: dict[str, Any] = {}
    hessian = _hessian(callbacks)
    if method in SECOND:
        given["hess"] = hessian if method != "trust-exact" else lambda x: hessian(x).toarray()  # which factorizes
    if method in PRODUCTS:
        given["hessp"] = _Product(hessian)
    if box.finite:
        given["bounds"] = scipy.Bounds(box.low, box.high)
    if constrained:
        given["constraints"] = _constraints(scipy, callbacks, limits, method)
    if request.progress is not None or method == "tnc":
        most = request.max_iterations if method == "tnc" else None
        given["callback"] = _told(callbacks, box, limits, request, most)
    result = _minimized(scipy, callbacks, start, method, request.tolerance, options, given)
    multipliers = result.v[0] if constrained and method == "trust-constr" else None
    return solution(
        method, callbacks, np.asarray(result.x), box, limits, success=bool(result.success), message=str(result.message),
        status=int(result.get("status", 0)), nit=int(result.get("nit", 0)), multipliers=multipliers,
    )  # fmt: skip


def _minimized(
    scipy: Any, callbacks: Callbacks, start: Array, method: str, tolerance: float | None, options: dict[str, Any],
    given: dict[str, Any],
) -> Any:  # fmt: skip
    """Call SciPy's method; ArgumentError for unknown options."""
    try:
        return scipy.minimize(
            callbacks.value, start, jac=callbacks.gradient, method=method, tol=tolerance, options=options, **given,
        )  # fmt: skip
    except _TooManyError as error:
        return scipy.OptimizeResult(
            x=error.x, success=False, status=3, message="Maximum number of iterations reached", nit=error.iterations
        )
    except ValueError as error:  # of factorizations at NaN
        if "infs or NaNs" not in str(error):
            raise
        return scipy.OptimizeResult(x=start, success=False, status=4, message=str(error), nit=0)
    except TypeError as error:
        if "_minimize_" not in str(error):
            raise
        raise ArgumentError(f"options of {method}", why=str(error), do="use those that SciPy's method has") from error


class _TooManyError(Exception):
    """The limit of iterations is reached. SciPy's tnc has no option for it."""

    def __init__(self, x: Array, iterations: int) -> None:
        super().__init__()
        self.x, self.iterations = x.copy(), iterations


def _told(callbacks: Callbacks, box: Bounds, limits: Bounds, request: Request, most: int | None) -> Any:
    numbers = count(1)

    def told(x: Array, *_: Any) -> None:
        number = next(numbers)
        if request.progress is not None:
            violation = max(box.violation(x), limits.violation(callbacks.constraints(x)))
            request.progress(number, callbacks.value(x), violation)
        if number == most:
            raise _TooManyError(x, number)

    return told


def _hessian(callbacks: Callbacks) -> Any:
    nothing = np.zeros(callbacks.kernels.rows)
    return lambda x: _symmetric(callbacks, x, nothing, 1.0)


class _Product:
    """Products of a Hessian with many vectors at one point. The Hessian is computed once."""

    def __init__(self, hessian: Any) -> None:
        self.hessian, self.point = hessian, np.empty(0)
        self.matrix: Any = None

    def __call__(self, x: Array, vector: Array) -> Any:
        if not np.array_equal(x, self.point):
            self.point, self.matrix = x.copy(), self.hessian(x)
        return self.matrix @ vector


def _constraints(scipy: Any, callbacks: Callbacks, limits: Bounds, method: str) -> list[Any]:
    """Return constraints as SciPy takes them: all at once, or, for slsqp, equations apart from the others, dense."""
    pattern = callbacks.jacobian_pattern

    def part(rows: Any, **more: Any) -> Any:
        return scipy.NonlinearConstraint(
            lambda x: callbacks.constraints(x)[rows], limits.low[rows], limits.high[rows], **more
        )

    if method == "trust-constr":
        return [part(
            slice(None), jac=lambda x: pattern.scipy(callbacks.jacobian(x)).tocsr(),
            hess=lambda x, multipliers: _symmetric(callbacks, x, np.ascontiguousarray(multipliers), 0.0),
        )]  # fmt: skip
    equal = limits.low == limits.high
    return [
        part(rows, jac=lambda x, rows=rows: pattern.scipy(callbacks.jacobian(x)).toarray()[rows], hess=scipy.BFGS())
        for rows in (equal, ~equal)
        if rows.any()
    ]


def _symmetric(callbacks: Callbacks, x: Array, multipliers: Array, sigma: float) -> Any:
    """Return the whole Hessian of the Lagrangian, whose lower triangle a kernel gives."""
    matrix = callbacks.hessian_pattern.scipy(callbacks.hessian(x, multipliers, sigma)).tocsr()
    whole = matrix + matrix.T
    whole.setdiag(matrix.diagonal())
    return whole
