"""argmin: a minimum as an implicit function of what the objective depends on.

At a minimum under the constraints c(y) = 0 there are multipliers m with grad f(y) + m . grad c(y) = 0 (Karush, Kuhn and
Tucker). These equations go to `root`, so the derivatives of every order are those of the implicit function theorem.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import symad.tracing.values.containers as containers
from symad.derivatives.implicit import TOLERANCE, Equation, Solver, solve
from symad.derivatives.solvers import Layout, linearized, newton
from symad.errors import ConvergenceError
from symad.tracing.calling.function_names import name_of
from symad.tracing.calling.user_place import user_place
from symad.transforms.first_order import grad

Function = Callable[..., Any]
Vector = NDArray[np.float64]

STEPS = 200


def argmin(
    f: Function,
    initial: Any,
    *args: Any,
    constraints: Function | None = None,
    solver: Solver | None = None,
    tolerance: float = TOLERANCE,
) -> Any:
    """Return y that minimises `f(y, *args)`, in the structure of `initial`; its derivatives of every order are exact.

    With `constraints`, a function of the same arguments that returns a vector, y keeps `constraints(y, *args) = 0`.
    `solver(objective, initial)` gets a function of y alone, on plain numbers, and returns y; without one it is Newton's
    method. ConvergenceError when y is no strict local minimum (a saddle point, a maximum, a flat direction) or when the
    solver stops elsewhere. What is differentiated, and the other errors, as for `root`.

    >>> import symad as sa
    >>> nearest = lambda p: argmin(lambda y, p: (y - p) ** 2 + y**4, 0.0, p)
    >>> round(sa.derivative(nearest)(3.0), 12) == round(1 / (1 + 6 * nearest(3.0) ** 2), 12)
    True
    """
    problem = _Problem(f, constraints, solver)
    if constraints is None:
        return solve(problem.slope, initial, args, problem.minimum, tolerance)
    count = sum(np.size(leaf) for leaf in containers.flatten(constraints(initial, *args))[0])
    y, _ = solve(problem.conditions, (initial, np.zeros(count)), args, problem.constrained_minimum, tolerance)
    return y


class _Problem:
    """An objective with or without constraints: the equations that its minimum solves, and how to find it."""

    def __init__(self, f: Function, constraints: Function | None, solver: Solver | None) -> None:
        self.f, self.constraints, self.solver = f, constraints, solver

    def slope(self, y: Any, *args: Any) -> Any:
        """Return the gradient of the objective in y."""
        return grad(self.f)(y, *args)

    def conditions(self, unknown: Any, *args: Any) -> Any:
        """Return the gradient of the Lagrangian in y, and the constraints."""
        y, multipliers = unknown

        def lagrangian(y: Any) -> Any:
            return self.f(y, *args) + np.dot(multipliers, self._constraint(y, *args))

        return grad(lagrangian)(y), self._constraint(y, *args)

    def _constraint(self, y: Any, *args: Any) -> Any:
        assert self.constraints is not None
        leaves, _ = containers.flatten(self.constraints(y, *args))
        return np.concatenate([np.ravel(leaf) for leaf in leaves])

    def minimum(self, equation: Equation, initial: Any) -> Any:
        """Return the minimiser without constraints."""
        found = self._descent(equation, initial) if self.solver is None else self._by_solver(equation, initial)
        found = newton(equation.residual, found)
        self._check(equation, initial, found, 0)
        return found

    def constrained_minimum(self, equation: Equation, start: Any) -> Any:
        """Return the minimiser under constraints, and its multipliers."""
        initial, _ = start
        found = initial if self.solver is None else self._by_solver(equation, initial)
        _, slope = linearized(partial(equation.at_numbers, self.f), found)
        _, rows = linearized(partial(equation.at_numbers, self._constraint), found)
        multipliers = -np.linalg.lstsq(rows.dense().T, slope.dense()[0], rcond=None)[0]
        solution = newton(equation.residual, (found, multipliers))
        self._check(equation, (initial, solution[1]), solution, len(multipliers))
        return solution

    def _by_solver(self, equation: Equation, initial: Any) -> Any:
        assert self.solver is not None
        return self.solver(partial(equation.at_numbers, self.f), initial)

    def _descent(self, equation: Equation, initial: Any) -> Any:
        """Newton's method with the Hessian's eigenvalues made positive, and steps halved until f decreases."""
        layout = Layout(initial)

        def objective(y: Vector) -> float:
            return float(equation.at_numbers(self.f, layout.split(y)))

        y = layout.joined(initial)
        for _ in range(STEPS):
            slope, curvature = linearized(equation.residual, layout.split(y))
            values, vectors = np.linalg.eigh(curvature.dense())
            size = np.maximum(np.abs(values), 1e-8 * np.max(np.abs(values), initial=1e-300))
            direction = -vectors @ ((vectors.T @ slope) / size)
            length, start = 1.0, objective(y)
            while not objective(y + length * direction) <= start + 1e-4 * length * (slope @ direction):
                length /= 2
                if length < 1e-12:
                    return layout.split(y)  # nothing is gained in floats any more
            y = y + length * direction
            if np.max(np.abs(direction) / (1 + np.abs(y)), initial=0.0) < 1e-9:
                break
        return layout.split(y)

    def _check(self, equation: Equation, initial: Any, found: Any, constraints: int) -> None:
        """Raise ConvergenceError unless the second-order condition for a strict minimum holds.

        The matrix of the Karush-Kuhn-Tucker system then has as many negative eigenvalues as there are constraints
        (Nocedal and Wright, "Numerical Optimization" (2006), theorem 16.3).
        """
        values, before = (
            np.linalg.eigvalsh((matrix + matrix.T) / 2)
            for matrix in (linearized(equation.residual, y)[1].dense() for y in (found, initial))
        )
        small = 1e-10 * np.max(np.abs([values, before]), initial=0.0)
        if np.sum(values > small) != len(values) - constraints or np.sum(values < -small) != constraints:
            raise ConvergenceError(
                f"the solver of argmin {name_of(self.f)} found a stationary point that is no strict minimum",
                where=user_place(),
                why=f"the eigenvalues of the second-order condition are {np.array2string(values[:6], precision=3)}",
                do="start nearer to the minimum, or give another solver",
            )
