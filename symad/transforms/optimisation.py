"""Constrained optimisation: the functions of a solver as one, and `argmin` as an implicit function.

Values, first derivatives and the Hessian of the Lagrangian are written on one graph, so a compiled kernel computes what
objective and constraints have in common once.

At a minimum under the constraints c(y) = 0
there are multipliers m with grad f(y) + m . grad c(y) = 0 (Karush, Kuhn and Tucker). These equations go to `root`, so
the derivatives of every order are those of the implicit function theorem.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import symad.tracing.values.containers as containers
from codegen.ir.sparsity import Format
from symad.derivatives import in_code, modes
from symad.derivatives.application import (
    Function,
    call_scalar,
    check_choice,
    close_matrix,
    described,
    fitting,
    known_options,
    storage_of,
)
from symad.derivatives.implicit import TOLERANCE, Equation, Solver, checked_solver, solve
from symad.derivatives.level import Level, open_level
from symad.derivatives.selection import FIRST, Argnums, Paths, Selection, select_arguments
from symad.derivatives.solvers import VectorLayout, least_squares, linearized, newton
from symad.derivatives.symbolic_minima import free_minimum
from symad.errors import ArgumentError, ConvergenceError
from symad.tracing.calling.function_names import argument_names, check_function, name_of
from symad.tracing.calling.running import callee
from symad.tracing.calling.user_place import user_place
from symad.tracing.control.derivative_blocks import scope_of_code
from symad.tracing.values.node_trees import Tree
from symad.tracing.values.sparse_matrix import Triangle, triangle_of
from symad.tracing.values.traced import Traced
from symad.transforms.first_order import grad


@known_options
def value_gradient_hessian(
    f: Function,
    constraints: Function | None = None,
    argnums: Argnums = FIRST,
    *,
    wrt: Paths = None,
    sparse: bool | Triangle = True,
    format: Format = "coo",
) -> Function:
    """Return a function that gives `(value, gradient, hessian)` of a scalar f, all from one evaluation.

    With `constraints`, a function of the same arguments that returns an array (or a container of arrays), the function
    takes two more arguments and gives `(value, gradient, constraints, jacobian, hessian)`: called with
    `(*args, multipliers, sigma)`, the last one is the Hessian of the Lagrangian `sigma f + multipliers . constraints`
    (the convention of Ipopt; the multipliers have the structure of the constraints). Its pattern is the exact one for
    all multipliers. `sparse` and `format` are those of `hessian`, the Jacobian has the same format.

    >>> f, c = lambda x: x[0] ** 2 * x[1], lambda x: np.stack([x[0] * x[1], x[1] ** 2])
    >>> value, gradient, limits, slopes, curvature = value_gradient_hessian(f, c)(
    ...     np.array([2.0, 3.0]), np.array([1.0, 10.0]), 1.0
    ... )
    >>> value, gradient, limits
    (12.0, array([12.,  4.]), array([6., 9.]))
    >>> slopes.toarray(), curvature.toarray()
    (array([[3., 2.],
           [0., 6.]]), array([[ 6.,  5.],
           [ 5., 20.]]))
    """
    check_choice("sparse", sparse, (False, True, "lower", "upper", "full"))
    storage = storage_of(sparse, format)

    def apply(*args: Any, **keywords: Any) -> Any:
        values, weights = (args, ()) if constraints is None else _split(f, args)
        chosen = select_arguments(f, values, argnums, keywords, wrt)
        bounded = None if constraints is None else select_arguments(constraints, values, argnums, keywords, wrt)
        if (written := _in_code(chosen, bounded, weights, sparse, format)) is not None:
            return written
        with open_level(chosen.arguments, chosen.names) as level:
            curved = objective = call_scalar(level, chosen.function, f)
            value, gradient = level.close(objective, modes.gradient(level, objective))
            results = [value, chosen.as_asked(gradient)]
            if bounded is not None:
                limits = level.call(bounded.function)
                curved = _lagrangian(level, objective, limits, *weights)
                slopes = modes.jacobian_entries(level, limits)
                results += [*level.close(limits), close_matrix(level, slopes, limits, chosen, storage)]
            curvature = triangle_of(modes.hessian_entries(level, curved), sparse)
            return *results, close_matrix(level, curvature, level.parameters, chosen, storage)

    transformed = described(apply, f, "value and derivatives")
    if constraints is not None:
        check_function(constraints)
        transformed.__signature__ = _signature(f)  # type: ignore[attr-defined]  # what inspect.signature reads
    return transformed


def _in_code(
    chosen: Selection, bounded: Selection | None, weights: tuple[Any, ...], sparse: bool | Triangle, format: Format
) -> tuple[Any, ...] | None:
    """Return all results, each taken of the loops of a function that is compiled; None where one of them is not."""
    lagrangian = (chosen, ()) if bounded is None else _weighted(chosen, bounded, *weights)
    if lagrangian is None:
        return None
    curvature = in_code.matrix(lagrangian[0], "Hessian", sparse, format)
    if curvature is None or (slope := in_code.gradient(chosen)) is None:
        return None
    value_and_gradient = slope[0], chosen.as_asked(slope[1])
    if bounded is None:
        return *value_and_gradient, curvature
    slopes = in_code.matrix(bounded, "Jacobian", sparse, format)
    return None if slopes is None else (*value_and_gradient, *lagrangian[1], slopes, curvature)


def _weighted(
    chosen: Selection, bounded: Selection, multipliers: Any, sigma: Any
) -> tuple[Selection, tuple[Any, ...]] | None:
    """Return the Lagrangian, and the constraints; None where these are no array like the multipliers, or no code is.

    Known multipliers would leave entries out, whose pattern is that of all multipliers.
    """
    if scope_of_code() is None or not isinstance(multipliers, Traced) or containers.shape_of(sigma) != ():
        return None
    if not isinstance(sigma, Traced) and sigma == 0:
        return None
    limits = bounded.function(*bounded.arguments)
    if not containers.is_leaf(limits) or containers.shape_of(limits) != containers.shape_of(multipliers):
        return None

    def lagrangian(*values: Any) -> Any:
        return sigma * chosen.function(*values) + np.sum(multipliers * bounded.function(*values))

    return replace(chosen, function=lagrangian), (limits,)


def _split(f: Function, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the arguments of f, and those of the Lagrangian."""
    if len(args) < 3:
        raise ArgumentError(
            f"{len(args)} arguments for the derivatives of {name_of(f)} under constraints",
            why="they depend on the arguments of the function, then the multipliers, then sigma",
            do="pass sigma=1.0 as the last one for the Lagrangian f + multipliers . constraints",
        )
    return args[:-2], args[-2:]


def _signature(f: Function) -> inspect.Signature:
    """Return the signature of f with multipliers and sigma at its end, or of any arguments where that cannot be."""
    last = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in ("multipliers", "sigma")]
    try:
        taken = [inspect.Parameter(name, last[0].kind) for name in _names(f)]
        return inspect.Signature([*taken, *last])
    except ValueError:  # no signature, or a name twice
        return inspect.Signature([inspect.Parameter("arguments", inspect.Parameter.VAR_POSITIONAL)])


def _names(f: Function) -> list[str]:
    """Return the names of arguments that f takes by position; ValueError when it may be called with fewer or more."""
    parameters = inspect.signature(f).parameters.values()
    if any(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.KEYWORD_ONLY) for p in parameters):
        raise ValueError
    return [p.name for p in parameters]


def _lagrangian(level: Level, objective: Tree, limits: Tree, multipliers: Any, sigma: Any) -> Tree:
    """Return sigma times the objective plus the sum of all multipliers times constraints."""
    if not limits.flat:
        raise ArgumentError("constraints that return no number", do="leave the constraints out")
    build = level.build
    graph = level.scope.graph  # aliases: a multiplier that happens to be 0 takes no entry out of the pattern
    weights = map(graph.alias, fitting(level.scope, limits, multipliers, "multipliers").flat)
    factor = graph.alias(*fitting(level.scope, objective, sigma, "sigma").flat)
    products = [build.mul(weight, limit) for weight, limit in zip(weights, limits.flat, strict=True)]
    return objective.refill([build.add(build.mul(factor, *objective.flat), *products)])


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
    solver stops elsewhere; in a kernel it is NaN then, and constraints and solvers are refused. What is differentiated,
    and the other errors, as for `root`.

    >>> import symad as sa
    >>> nearest = lambda p: argmin(lambda y, p: (y - p) ** 2 + y**4, 0.0, p)
    >>> round(sa.derivative(nearest)(3.0), 12) == round(1 / (1 + 6 * nearest(3.0) ** 2), 12)
    True
    """
    checked_solver(f, args, solver or newton)
    if constraints is not None:
        check_function(constraints, ["y", *argument_names(constraints, len(args) + 1)[1:]])
    problem = _Minimisation(f, constraints, solver)
    if constraints is None:
        on_symbols = None if solver is not None else partial(free_minimum, objective=f)
        return solve(problem.slope, initial, args, problem.minimum, tolerance, on_symbols)
    count = sum(np.size(leaf) for leaf in containers.flatten(constraints(initial, *args))[0])
    y, _ = solve(problem.conditions, (initial, np.zeros(count)), args, problem.constrained_minimum, tolerance)
    return y


class _Minimisation:
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
            return callee(self.f)(y, *args) + np.dot(multipliers, self._constraint(y, *args))

        return grad(lagrangian)(y), self._constraint(y, *args)

    def _constraint(self, y: Any, *args: Any) -> Any:
        assert self.constraints is not None
        leaves, _ = containers.flatten(self.constraints(y, *args))
        return np.concatenate([np.ravel(leaf) for leaf in leaves])

    def minimum(self, equation: Equation, initial: Any) -> Any:
        """Return the minimiser without constraints."""
        minimiser = self._descent(equation, initial) if self.solver is None else self._by_solver(equation, initial)
        minimiser = newton(equation.residual, minimiser)
        self._check(equation, initial, minimiser, 0)
        return minimiser

    def constrained_minimum(self, equation: Equation, start: Any) -> Any:
        """Return the minimiser under constraints, and its multipliers."""
        initial, _ = start
        minimiser = initial if self.solver is None else self._by_solver(equation, initial)
        _, slope = linearized(partial(equation.at_numbers, self.f), minimiser)
        _, rows = linearized(partial(equation.at_numbers, self._constraint), minimiser)
        multipliers = -least_squares(rows.dense().T, slope.dense()[0])
        solution = newton(equation.residual, (minimiser, multipliers))
        self._check(equation, (initial, solution[1]), solution, len(multipliers))
        return solution

    def _by_solver(self, equation: Equation, initial: Any) -> Any:
        assert self.solver is not None
        return self.solver(partial(equation.at_numbers, self.f), initial)

    def _descent(self, equation: Equation, initial: Any) -> Any:
        """Newton's method with the Hessian's eigenvalues made positive, and steps halved until f decreases."""
        layout = VectorLayout(initial)

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

    def _check(self, equation: Equation, initial: Any, minimiser: Any, constraints: int) -> None:
        """Raise ConvergenceError unless the second-order condition for a strict minimum holds.

        The matrix of the Karush-Kuhn-Tucker system then has as many negative eigenvalues as there are constraints
        (Nocedal and Wright, "Numerical Optimization" (2006), theorem 16.3).
        """
        values, before = (
            np.linalg.eigvalsh((matrix + matrix.T) / 2)
            for matrix in (linearized(equation.residual, y)[1].dense() for y in (minimiser, initial))
        )
        small = 1e-10 * np.max(np.abs([values, before]), initial=0.0)
        if np.sum(values > small) != len(values) - constraints or np.sum(values < -small) != constraints:
            raise ConvergenceError(
                f"the solver of argmin {name_of(self.f)} found a stationary point that is no strict minimum",
                where=user_place(),
                why=f"the eigenvalues of the second-order condition are {np.array2string(values[:6], precision=3)}",
                do="start nearer to the minimum, or give another solver",
            )
