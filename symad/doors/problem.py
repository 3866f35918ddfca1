"""`Problem`: an objective under constraints. Each derivative that a solver needs is a kernel.

A line search pays for values alone, and a Hessian of the Lagrangian is computed where one is asked for. Matrices are
sparse, with the exact pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from codegen.machine.calls.arguments import numbers_of
from codegen.machine.calls.kernel import Kernel
from symad.compiling.native import compile
from symad.compiling.problem_kernels import problem_kernels
from symad.compiling.shared_traces import shared_traces
from symad.doors.callbacks import Callbacks, Kernels, Request, Solution
from symad.doors.compiled_problem import CompiledProblem, SolverName
from symad.doors.differentiated import Conditions
from symad.doors.saved_problems import Saved
from symad.doors.scipy_constraints import ConstraintPart, bounds_at, ends_of, function_of, parts_of
from symad.errors import ArgumentError
from symad.tracing.calling.function_names import check_function
from symad.transforms.first_order import grad, hessian, jacobian


class Problem(CompiledProblem):
    """Minimise `objective(x, *parameters)` where bounds and constraints hold.

    `x` is an array of any shape. `bounds` are a tuple: the lowest and the highest `x`, numbers or arrays of its shape,
    None for none; or, as in SciPy, a list of pairs, one for each number, or `scipy.optimize.Bounds`.
    `constraints(x, *parameters)` returns an array, `constraint_bounds` are its lowest and highest values, zeros by
    default; or `constraints` are what `scipy.optimize.minimize` takes: dicts, `LinearConstraint`,
    `NonlinearConstraint`, or a list of them. `parameters` are further arguments of both functions. Kernels are compiled
    when a shape is met for the first time.

    >>> def objective(x):
    ...     return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    >>> problem = Problem(objective, lambda x: x[0] ** 2 + x[1] ** 2, constraint_bounds=(None, 1.0))
    >>> found = problem.minimize(np.zeros(2))
    >>> found.success, found.x.round(3), found.multipliers.round(2)
    (True, array([0.786, 0.618]), array([0.12]))
    """

    objective: Callable[..., Any]
    constraints: Callable[..., Any] | None

    def __init__(
        self,
        objective: Callable[..., Any],
        constraints: Any = None,
        *,
        bounds: Any = (None, None),
        constraint_bounds: Any = None,
        parameters: tuple[Any, ...] = (),
    ) -> None:
        check_function(objective)
        self._parts: tuple[ConstraintPart, ...] = ()
        if constraints is not None and not callable(constraints):
            self._parts, given = parts_of(constraints), constraint_bounds
            constraints = function_of(self._parts) if self._parts else None
            if given is not None:
                raise ArgumentError("constraint_bounds with SciPy's constraints", why="these have bounds of their own")
        if constraints is not None:
            check_function(constraints)
        limits = (0.0, 0.0) if constraint_bounds is None else ends_of(constraint_bounds, "constraint_bounds")
        super().__init__(Saved(ends_of((None, None) if bounds is None else bounds, "bounds"), limits, parameters, {}))
        self.objective, self.constraints = objective, constraints

    def kernels(self, x: Any, *parameters: Any) -> Kernels:
        """Return the kernels of a solver for the shapes of arguments; the bounds of SciPy's constraints go with x."""
        if self._parts:
            self.constraint_bounds = bounds_at(self._parts, np.array(numbers_of(x, "x0")))
        return super().kernels(x, *parameters)

    def _compiled(self, *examples: Any) -> Kernels:
        objective, limited = self.objective, self._limited
        with shared_traces():
            small = problem_kernels(objective, None if self.constraints is None else limited, examples)
            if small is not None:
                value, gradient, *constrained, curvature = small
                return Kernels(value, gradient, curvature, *constrained)
            value, gradient = compile(objective, *examples), compile(grad(objective), *examples)
            if self.constraints is None:
                return Kernels(value, gradient, compile(hessian(objective, sparse="lower"), *examples))
            limits, slopes = compile(limited, *examples), compile(jacobian(limited, sparse=True), *examples)
        weights = np.ones(limits.declared.outputs[0].size), 1.0
        curvature = compile(hessian(self._lagrangian, sparse="lower"), *examples, *weights)
        return Kernels(value, gradient, curvature, limits, slopes)

    def _limited(self, *arguments: Any) -> Any:
        assert self.constraints is not None
        return np.ravel(self.constraints(*arguments))

    def _lagrangian(self, *arguments: Any) -> Any:
        *values, sigma = arguments
        if self.constraints is None:
            return sigma * self.objective(*values)
        *values, multipliers = values
        return sigma * self.objective(*values) + np.dot(multipliers, self._limited(*values))

    def _slopes(self, callbacks: Callbacks) -> Kernel | None:
        examples = callbacks.at(np.ones(callbacks.shape))
        slopes = grad(self._lagrangian, argnums=tuple(range(len(examples))))

        def flat(*arguments: Any) -> Any:
            first, *others = map(np.ravel, slopes(*arguments))
            return (first, np.concatenate(others)) if others else first

        weights = (np.ones(callbacks.kernels.rows), 1.0) if callbacks.kernels.rows else (1.0,)
        return compile(flat, *examples, *weights)

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

        start, given = np.array(numbers_of(x0, "x0")), parameters or self.parameters
        rows = 0 if self.constraints is None else np.size(self.constraints(start, *given))
        if self._parts:
            self.constraint_bounds = bounds_at(self._parts, start)
        box, limits = self._bounds(start.shape, rows)
        return Conditions(self.objective, self.constraints, limits, box, minimize).solved(start, given)
