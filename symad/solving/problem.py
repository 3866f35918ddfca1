"""Problems: an objective under constraints, each derivative that a solver asks for a kernel of its own.

A line search pays for values alone, and a Hessian of the Lagrangian is computed where one is asked for. Matrices are
sparse, with the exact pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import numpy as np

from symad.compiling.native import compile
from symad.errors import ArgumentError
from symad.solving.callbacks import Bounds, Callbacks, Kernels, Progress, Request, Solution, bounds_of
from symad.solving.differentiated import Conditions
from symad.solving.with_ipopt import solved_by_ipopt
from symad.solving.with_scipy import Method, solved_by_scipy
from symad.tracing.calling.function_names import check_function
from symad.transforms.first_order import grad, hessian, jacobian

SolverName = Literal[Method, "ipopt"]


class Problem:
    """Minimise `objective(x, *parameters)` where bounds and constraints hold.

    `x` is an array of any shape. `bounds` are the lowest and the highest `x`, numbers or arrays of its shape, None for
    none; `constraints(x, *parameters)` returns an array, `constraint_bounds` are its lowest and highest values: zeros,
    unless told. `parameters` are further arguments of both. Kernels are compiled when a shape is met for the first
    time.

    >>> def objective(x):
    ...     return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    >>> problem = Problem(objective, lambda x: x[0] ** 2 + x[1] ** 2, constraint_bounds=(None, 1.0))
    >>> found = problem.minimize(np.zeros(2))
    >>> found.success, found.x.round(3), found.multipliers.round(2)
    (True, array([0.786, 0.618]), array([0.12]))
    """

    objective: Callable[..., Any]
    constraints: Callable[..., Any] | None
    parameters: tuple[Any, ...]
    bounds: tuple[Any, Any]
    constraint_bounds: tuple[Any, Any]

    def __init__(
        self,
        objective: Callable[..., Any],
        constraints: Callable[..., Any] | None = None,
        *,
        bounds: tuple[Any, Any] = (None, None),
        constraint_bounds: tuple[Any, Any] = (0.0, 0.0),
        parameters: tuple[Any, ...] = (),
    ) -> None:
        check_function(objective)
        if constraints is not None:
            check_function(constraints)
        self.objective, self.constraints, self.parameters = objective, constraints, parameters
        self.bounds, self.constraint_bounds = bounds, constraint_bounds
        self._kernels: dict[Any, Kernels] = {}  # of each shape that was met

    def kernels(self, x: Any, *parameters: Any) -> Kernels:
        """Return what solvers call, for the shapes of arguments; it is compiled at the first call.

        >>> made = Problem(lambda x: np.sum(x**4), lambda x: x[1:] * x[:-1]).kernels(np.ones(3))
        >>> made.gradient(np.ones(3)), made.hessian.sparsity.nnz
        (array([4., 4., 4.]), 5)
        """
        examples = (np.asarray(x, dtype=np.float64), *(parameters or self.parameters))
        key = tuple(map(np.shape, examples))
        if key not in self._kernels:
            self._kernels[key] = self._compiled(*examples)
        return self._kernels[key]

    def _compiled(self, *examples: Any) -> Kernels:
        objective, constraints = self.objective, self.constraints
        value, gradient = compile(objective, *examples), compile(grad(objective), *examples)
        if constraints is None:
            return Kernels(value, gradient, compile(hessian(objective, sparse="lower"), *examples))

        def flat(*arguments: Any) -> Any:
            return np.ravel(constraints(*arguments))

        def lagrangian(*arguments: Any) -> Any:
            *values, multipliers, sigma = arguments
            return sigma * objective(*values) + np.dot(multipliers, flat(*values))

        limits = compile(flat, *examples)
        weights = np.ones(limits.program.outputs[0].size), 1.0
        curvature = compile(hessian(lagrangian, sparse="lower"), *examples, *weights)
        return Kernels(value, gradient, curvature, limits, compile(jacobian(flat, sparse=True), *examples))

    def minimize(
        self,
        x0: Any,
        *parameters: Any,
        solver: SolverName = "trust-constr",
        multipliers: Any = None,
        tolerance: float | None = None,
        max_iterations: int | None = None,
        options: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> Solution:
        """Return what a solver finds from x0 on: "ipopt" (the extra `ipopt`), or a method of `scipy.optimize`.

        `multipliers` of the constraints let Ipopt start warm; `options` go to the solver as they are; `progress(
        iteration, value, violation)` is called after each iteration. What the solver says of its end is in the
        solution: an infeasible problem, or too many iterations, raise nothing. ArgumentError for bounds that cross,
        hold NaN or do not fit, for a solver that has no bounds or constraints, or that is not installed.

        >>> problem = Problem(lambda x, a: np.sum((x - a) ** 2), bounds=(0.0, 1.0))
        >>> problem.minimize(np.ones(2), np.array([0.5, 2.0]), solver="l-bfgs-b").x.round(6)
        array([0.5, 1. ])
        """
        asked = Request(multipliers, tolerance, max_iterations, options or {}, progress)
        return self._found(x0, parameters, solver, asked)[0]

    def solution(
        self,
        x0: Any,
        *parameters: Any,
        solver: SolverName = "trust-constr",
        tolerance: float | None = None,
        max_iterations: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the x that `minimize` finds as a function of the parameters; its derivatives of every order are exact.

        Parameters may be traced, so problems nest: an objective may hold the solution of another problem.
        ConvergenceError where the solver finds none, or where a constraint is at its bound without being pushed there,
        so that the solution has a kink. TraceError when compiled: a solver needs numbers. Source: the implicit function
        theorem on the conditions of Karush, Kuhn and Tucker (Fiacco, 1983).

        >>> import symad as sa
        >>> problem = Problem(lambda x, a: np.sum((x - a) ** 2), lambda x, a: x[0] + x[1], bounds=(None, 1.0))
        >>> nearest = lambda a: problem.solution(np.zeros(2), a, solver="slsqp")
        >>> sa.jacobian(nearest)(np.array([0.5, 1.0]))
        array([[ 0.5, -0.5],
               [-0.5,  0.5]])
        """

        def minimize(start: Any, *values: Any) -> tuple[Solution, Callbacks]:
            return self._found(start, values, solver, Request(None, tolerance, max_iterations, options or {}))

        start, given = np.array(x0, dtype=np.float64), parameters or self.parameters
        rows = 0 if self.constraints is None else np.size(self.constraints(start, *given))
        box, limits = self._bounds(start.shape, rows)
        return Conditions(self.objective, self.constraints, limits, box, minimize).solved(start, given)

    def _bounds(self, shape: tuple[int, ...], rows: int) -> tuple[Bounds, Bounds]:
        return bounds_of(self.bounds, shape, "bounds"), bounds_of(self.constraint_bounds, (rows,), "constraint_bounds")

    def _found(
        self, x0: Any, parameters: tuple[Any, ...], solver: SolverName, asked: Request
    ) -> tuple[Solution, Callbacks]:
        names = [*get_args(Method), "ipopt"]
        if solver not in names:
            raise ArgumentError(f"solver={solver!r}", do=f"use one of {', '.join(names)}")
        start, given = np.array(x0, dtype=np.float64), parameters or self.parameters
        callbacks = Callbacks(self.kernels(start, *given), start.shape, given)
        box, limits = self._bounds(start.shape, callbacks.kernels.rows)
        solve = solved_by_ipopt if solver == "ipopt" else solved_by_scipy
        return solve(solver, callbacks, start.ravel(), box, limits, asked), callbacks
