"""Solutions of problems as implicit functions of their parameters.

At a solution the gradient of the Lagrangian is 0, some of the bounded numbers (constraints, and x itself) are at their
bounds, and the multipliers of all others are 0 (Karush, Kuhn and Tucker). Where each multiplier of what is at its bound
pushes it there, the same numbers stay at their bounds for parameters nearby, and these equations say how the solution
moves.

Sources: Fiacco, "Introduction to Sensitivity and Stability Analysis in Nonlinear Programming" (1983), chapter 3;
Nocedal and Wright, "Numerical Optimization" (2006), chapter 12.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from symad.derivatives.implicit import TOLERANCE, Equation, solve
from symad.derivatives.solvers import newton
from symad.doors.callbacks import Bounds, Callbacks, Solution
from symad.errors import ConvergenceError
from symad.tracing.calling.user_place import user_place
from symad.transforms.first_order import grad

Array = NDArray[np.float64]
Found = tuple[Solution, Callbacks]

_NEAR = 1e-5  # how near a bound counts as there before the equations are solved, relative to 1 + |bound|
_TOUCHES = 1e-9  # how near a bound counts as there once they are
_PUSHES = 1e-7  # the least multiplier of what is at its bound, relative to 1 + the largest slope of the objective


@dataclass(frozen=True)
class Side:
    """Which numbers are at a bound, which bound, and its side: -1 the lower, 1 the upper, 0 both (an equation)."""

    is_at: NDArray[np.bool_]
    bound: Array
    side: Array

    @classmethod
    def of(cls, values: Array, bounds: Bounds) -> Side:
        """Return the numbers near their bounds."""
        finite = [np.where(np.isfinite(bound), bound, 0.0) for bound in bounds]
        low, high = (
            np.isfinite(bound) & (np.abs(values - number) <= _NEAR * (1 + np.abs(number)))
            for bound, number in zip(bounds, finite, strict=True)
        )
        side = np.where(low & high, 0.0, np.where(low, -1.0, 1.0))  # of an equation: its multiplier has either sign
        return cls(low | high, np.where(low, *finite), side)

    def without_pull(self, multipliers: Array, least: float) -> Side:
        """Drop the numbers whose multiplier does not push them to their bound."""
        pushes = (self.side == 0) | (self.side * multipliers > least)
        return Side(self.is_at & pushes, self.bound, self.side)


class Conditions:
    """The equations that hold at a solution, and the solver call that finds it."""

    objective: Callable[..., Any]
    constraints: Callable[..., Any] | None
    minimize: Callable[..., Found]

    at: Side  # the constraints first, then x

    def __init__(
        self, objective: Callable[..., Any], constraints: Callable[..., Any] | None, limits: Bounds, box: Bounds,
        minimize: Callable[..., Found],
    ) -> None:  # fmt: skip
        self.objective, self.constraints, self.minimize = objective, constraints, minimize
        self.bounds: Bounds = Bounds(np.concatenate([limits.low, box.low]), np.concatenate([limits.high, box.high]))

    def solved(self, x0: Array, parameters: tuple[Any, ...]) -> Any:
        """Return the solution, differentiable in the parameters."""
        start = x0, np.zeros(len(self.bounds.low))
        return solve(self.residual, start, parameters, self.found, TOLERANCE)[0]

    def residual(self, unknown: Any, *parameters: Any) -> Any:
        """Return the residual that is 0 at a solution and its multipliers."""
        x, multipliers = unknown

        def lagrangian(x: Any) -> Any:
            return self.objective(x, *parameters) + np.dot(multipliers, self._bounded(x, *parameters))

        at = self.at
        return grad(lagrangian)(x), np.where(at.is_at, self._bounded(x, *parameters) - at.bound, multipliers)

    def _bounded(self, x: Any, *parameters: Any) -> Any:
        """Return the numbers that have bounds."""
        if self.constraints is None:
            return np.ravel(x)
        return np.concatenate([np.ravel(self.constraints(x, *parameters)), np.ravel(x)])

    def found(self, equation: Equation, start: Any) -> Any:
        """Return the solution on plain numbers, and record the active bounds there."""
        result, callbacks = self.minimize(start[0], *equation.plain)
        if not result.success:
            raise ConvergenceError(f"{result.solver} found no solution", where=user_place(), why=result.message)
        x = np.ravel(result.x)
        slope, near = callbacks.gradient(x), Side.of(np.concatenate([result.constraints, x]), self.bounds)
        least = _PUSHES * (1 + float(np.max(np.abs(slope), initial=0.0)))
        multipliers = _multipliers(slope, callbacks, result, near)
        self.at = near.without_pull(multipliers, least)
        solution = newton(equation.residual, (result.x, np.where(self.at.is_at, multipliers, 0.0)))
        self._check(callbacks, solution, least)
        return solution

    def _check(self, callbacks: Callbacks, solution: Any, least: float) -> None:
        """Raise ConvergenceError where something is at a bound and is not pushed there."""
        x, multipliers = solution
        flat = np.ravel(x)
        limits, at = callbacks.constraints(flat), self.at
        values, bounds = np.concatenate([limits, flat]), self.bounds
        weak = at.is_at & (at.side != 0) & (at.side * multipliers <= least)
        beside = (values < bounds.low + _TOUCHES) | (values > bounds.high - _TOUCHES)
        kinks = np.nonzero(weak | (~at.is_at & beside))[0]
        if kinks.size:
            number, rows = int(kinks[0]), len(limits)
            name = f"constraint {number}" if number < rows else f"x, number {number - rows},"
            raise ConvergenceError(
                f"{name} is at its bound, and nothing pushes it there",
                where=user_place(),
                why="its multiplier is 0: it stays there or not for parameters nearby, so the solution has a kink",
                do="differentiate at other parameters",
            )


def _multipliers(slope: Array, callbacks: Callbacks, result: Solution, near: Side) -> Array:
    """Return multipliers of active bounds and constraints that balance the slope of the objective."""
    x, pattern = np.ravel(result.x), callbacks.jacobian_pattern
    if result.multipliers is not None:
        return np.concatenate([result.multipliers, -callbacks.pull(x, result.multipliers)])
    jacobian = np.zeros(pattern.shape)
    jacobian[pattern.rows, pattern.columns] = callbacks.jacobian(x)
    multipliers = np.zeros(len(near.is_at))
    columns = np.vstack([jacobian, np.eye(len(x))])[near.is_at].T
    multipliers[near.is_at] = np.linalg.lstsq(columns, -slope, rcond=None)[0]
    return multipliers
