"""What a solver for constrained optimisation asks for, in one function: values, first derivatives, Lagrangian Hessian.

All of it is written on one graph, so a compiled kernel computes what objective and constraints have in common once.
"""

from __future__ import annotations

import inspect
from typing import Any

from codegen.ir.sparsity import Format
from symad.derivatives import in_code, modes
from symad.derivatives.application import Function, call_scalar, check_choice, fitting
from symad.derivatives.level import Level, open_level
from symad.derivatives.selection import FIRST, Argnums, Paths, select_arguments
from symad.errors import ArgumentError
from symad.tracing.calling.function_names import check_function, name_of
from symad.tracing.values.node_trees import Tree
from symad.tracing.values.sparse_matrix import Triangle, triangle_of
from symad.transforms.first_order import close_matrix, described, storage_of


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

    >>> import numpy as np
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
        curvature = in_code.matrix(chosen, "Hessian", sparse, format) if constraints is None else None
        slope = None if curvature is None else in_code.gradient(chosen)
        if slope is not None:
            return slope[0], chosen.as_asked(slope[1]), curvature
        with open_level(chosen.arguments, chosen.names) as level:
            curved = objective = call_scalar(level, chosen.function, f)
            value, gradient = level.close(objective, modes.gradient(level, objective))
            found = [value, chosen.as_asked(gradient)]
            if constraints is not None:
                bounded = select_arguments(constraints, values, argnums, keywords, wrt)
                limits = level.call(bounded.function)
                curved = _lagrangian(level, objective, limits, *weights)
                slopes = modes.jacobian_entries(level, limits)
                found += [*level.close(limits), close_matrix(level, slopes, limits, chosen, storage)]
            curvature = triangle_of(modes.hessian_entries(level, curved), sparse)
            return *found, close_matrix(level, curvature, level.parameters, chosen, storage)

    made = described(apply, f, "value and derivatives")
    if constraints is not None:
        check_function(constraints)
        made.__signature__ = _signature(f)  # type: ignore[attr-defined]  # what inspect.signature reads
    return made


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
    weights = fitting(level.scope, limits, multipliers, "multipliers").flat
    (factor,) = fitting(level.scope, objective, sigma, "sigma").flat
    products = [build.mul(weight, limit) for weight, limit in zip(weights, limits.flat, strict=True)]
    return objective.refill([build.add(build.mul(factor, *objective.flat), *products)])
