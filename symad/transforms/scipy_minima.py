"""SciPy's minimisers in traced functions, differentiated as `argmin`.

Bounds that the minimum lies at hold it there: these components are constants, the others the minimum of the rest. In
kernels the methods are our own, with the same checks and a warning.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import symad.tracing.values.containers as containers
from symad.derivatives.implicit import TOLERANCE, is_symbolic_call, solve
from symad.derivatives.symbolic_equations import SymbolicEquation
from symad.derivatives.symbolic_minima import (
    PUSHES,
    SECTIONS,
    STEPS,
    bounded_minimum,
    expanded,
    free_minimum,
    held_at,
    least_between,
    strict,
)
from symad.errors import ConvergenceError, TraceError
from symad.tracing.calling.user_place import user_place
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.values.node_operands import holds_traced
from symad.tracing.values.traced import refuse_function
from symad.transforms.first_order import grad, jacobian
from symad.transforms.optimisation import argmin
from symad.transforms.scipy_solvers import Function, as_function, is_traced_call, numbers, on_numbers, own, tell

Find = Callable[[SymbolicEquation], tuple[Any, Any]]

_ACTIVE = 1e-6  # how near to 0 an inequality is that may hold a minimum


def minimum(name: str, f: Function, minimiser: Any, args: tuple[Any, ...], bounds: Any = None, **more: Any) -> Any:
    """Return the minimum that SciPy found, as an implicit function; what lies at a bound stays there."""
    y = np.atleast_1d(np.asarray(minimiser, dtype=float))
    held = (
        np.array(False) if bounds is None else _held(name, on_numbers(name, f, minimiser, args), minimiser, y, *bounds)
    )
    if not held.any():
        return argmin(f, minimiser, *args, solver=lambda objective, start: minimiser, **more)
    if more:
        refuse_function(f"{name} with constraints= at a bound", "these are not traced together", "use symad.argmin")
    if held.all():
        return minimiser
    places = np.cumsum(~held) - 1

    def rest(z: Any, *args: Any) -> Any:
        return f(np.where(held, y, z[np.maximum(places, 0)]), *args)

    free = argmin(rest, y[~held], *args, solver=lambda objective, start: y[~held])
    return np.where(held, y, free[np.maximum(places, 0)])


def _held(name: str, plain: Function, minimiser: Any, y: Any, low: Any, high: Any) -> Any:
    """Return which components lie at a bound, where the objective's slope holds them."""
    low, high = (np.broadcast_to(end, y.shape) for end in (low, high))
    slope = np.ravel(numbers(name, grad(plain)(minimiser)))
    at_low, at_high, is_sure = held_at(y, slope, low, high)
    if not is_sure:
        raise ConvergenceError(
            f"the minimum that {name} found has no derivative",
            where=user_place(),
            why="it lies at a bound that does not hold it: on one side it moves, on the other it does not",
            do="leave that bound out",
        )
    return np.asarray(at_low | at_high)


def ends_of(name: str, bounds: Any) -> Any:
    """Return the lower and the upper ends of plain bounds, as SciPy takes them."""
    if bounds is None:
        return None
    if holds_traced(containers.flatten(bounds)[0]):
        refuse_function(f"{name} with traced bounds", "only plain bounds are traced", "give it numbers")
    if hasattr(bounds, "lb"):
        return np.asarray(bounds.lb, dtype=float), np.asarray(bounds.ub, dtype=float)
    pairs = [(-math.inf if low is None else low, math.inf if high is None else high) for low, high in bounds]
    return tuple(np.array(ends, dtype=float) for ends in zip(*pairs, strict=True))


# ---- minimisers in kernels, in place of SciPy's


def minimum_on_symbols(name: str, f: Function, start: Any, args: tuple[Any, ...], ends: Any = None) -> Any:
    """Return the place of a minimum in a kernel, by Newton's method; what lies at a bound stays there."""
    tell(name, "Newton's method with a part of the identity added to the Hessian", STEPS)
    begin = 1.0 * start if holds_traced((start,)) else np.array(start, dtype=float)
    if ends is None:
        return _stationary(f, begin, args, lambda equation: free_minimum(equation, f))
    low, high = (np.broadcast_to(end, np.shape(begin)) for end in ends)
    return _stationary(f, begin, args, lambda equation: bounded_minimum(equation, f, low, high))


def minimum_of_one(name: str, f: Function, args: tuple[Any, ...], near: Any = None, ends: Any = None) -> Any:
    """Return the place of a minimum of one variable in a kernel, between ends or downhill of two places."""
    tell(name, "the golden section", SECTIONS)
    objective = as_function(f, args)

    def find(equation: SymbolicEquation) -> tuple[Any, Any]:
        low, high = expanded(objective, *(near or (0.0, 1.0))[:2]) if ends is None else ends
        return strict(equation, np.reshape(least_between(objective, low, high), (1,)))

    return _stationary(f, 1.0, args, find)


def _stationary(
    f: Function, begin: Any, args: tuple[Any, ...], find: Callable[[SymbolicEquation], tuple[Any, Any]]
) -> Any:
    def slope(y: Any, *args: Any) -> Any:
        return grad(f)(y, *args)

    return solve(slope, begin, args, lambda *_: begin, TOLERANCE, find)


# ---- SciPy's functions


def _scalar(f: Function) -> Function:
    """Return a function whose result is a number, not an array of one."""

    def objective(y: Any, *args: Any) -> Any:
        value = f(y, *args)
        return np.reshape(value, ()) if np.ndim(value) else value

    return objective


@stands_in_for("scipy.optimize.minimize", always=True)
def minimize(
    fun: Function, x0: Any, args: Any = (), method: Any = None, jac: Any = None, hess: Any = None, hessp: Any = None,
    bounds: Any = None, constraints: Any = (), tol: Any = None, callback: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    """A minimum of a function of several variables, by one of several methods."""
    name = "scipy.optimize.minimize"
    args = args if isinstance(args, tuple) else (args,)
    objective = _scalar((lambda y, *args: fun(y, *args)[0]) if jac is True else fun)
    rules = _rules(constraints)
    begin = symbolic_start(objective, x0, args)
    if rules and (begin is not None or _are_symbolic(rules, x0)):
        refuse_function(f"{name} with constraints= in a kernel", "it has no form there", "take derivatives at numbers")
    if begin is not None:
        return _symbolic_result(
            objective, minimum_on_symbols(name, objective, begin, args, ends_of(name, bounds)), args
        )
    start = np.array(numbers(name, x0), dtype=float, ndmin=1)
    if not (is_traced_call(objective, start, args, x0) or any(_has_traced(rule, start) for rule in rules)):
        return own("minimize")(fun, x0, args, method, jac, hess, hessp, bounds, constraints, tol, callback, options)
    plain = {key: on_numbers(name, f, start, args) for key, f in (("jac", jac), ("hess", hess)) if callable(f)}
    known = [{**rule, "fun": on_numbers(name, rule["fun"], start, rule.get("args", ())), "args": ()} for rule in rules]
    result = own("minimize")(
        on_numbers(name, objective, start, args), start, (), method, bounds=bounds, constraints=known, tol=tol,
        callback=callback, options=options, **plain,
    )  # fmt: skip
    more = _equalities(name, objective, args, rules, known, (start, result.x))
    result.x = minimum(name, objective, result.x, args, ends_of(name, bounds), **more)
    return _with_value(result, objective(result.x, *args))


def symbolic_start(objective: Function, x0: Any, args: Any) -> Any:
    """Return where a solver begins in a kernel whose values have no numbers, None elsewhere."""
    begin = np.reshape(x0, -1) if holds_traced((x0,)) else np.array(x0, dtype=float, ndmin=1)
    return begin if is_symbolic_call(objective, begin, args) else None


def _are_symbolic(rules: list[Any], x0: Any) -> bool:
    starts = [isinstance(rule, dict) and symbolic_start(rule["fun"], x0, rule.get("args", ())) for rule in rules]
    return any(begin is not None and begin is not False for begin in starts)


def _symbolic_result(objective: Function, x: Any, args: Any) -> Any:
    """Return what is known of a minimum in a kernel, which is NaN where there is none."""
    success = np.logical_not(np.any(np.isnan(x)))
    return own("OptimizeResult")(x=x, fun=objective(x, *args), success=success)


def _rules(constraints: Any) -> list[Any]:
    """Return constraints as dicts, whichever of SciPy's ways they are written in."""
    kinds: Any = (own("LinearConstraint"), own("NonlinearConstraint"))
    single = isinstance(constraints, dict | kinds[0] | kinds[1])
    rules: list[Any] = []
    for rule in [constraints] if single else list(constraints):
        rules += _of_bounds(rule) if isinstance(rule, kinds) else [rule]
    return rules


def _of_bounds(rule: Any) -> list[dict[str, Any]]:
    """Return a constraint with bounds as equalities where these are equal, else inequalities where they are finite."""
    value = rule.fun if hasattr(rule, "fun") else (lambda y: np.atleast_2d(rule.A) @ y)
    low, high = (np.atleast_1d(np.asarray(end, dtype=float)) for end in (rule.lb, rule.ub))
    low, high = np.broadcast_arrays(low, high)

    def part(chosen: Any, ends: Any, sign: float) -> Function:
        def condition(y: Any) -> Any:
            values = np.ravel(value(y))
            bound = np.broadcast_to(ends, np.shape(values))
            return sign * (values - bound)[np.broadcast_to(chosen, np.shape(values))]

        return condition

    parts = [
        ("eq", low == high, low, 1.0),
        ("ineq", np.isfinite(low) & (low != high), low, 1.0),
        ("ineq", np.isfinite(high) & (low != high), high, -1.0),
    ]
    return [{"type": kind, "fun": part(chosen, ends, sign)} for kind, chosen, ends, sign in parts if np.any(chosen)]


def _has_traced(rule: Any, start: Any) -> bool:
    if not isinstance(rule, dict) or "fun" not in rule:
        refuse_function("scipy.optimize.minimize with such constraints", "", "give each as a dict of type and fun")
    return is_traced_call(rule["fun"], start, rule.get("args", ()))


def _equalities(
    name: str, objective: Function, args: Any, rules: list[Any], known: list[Any], ends: tuple[Any, Any]
) -> dict[str, Any]:
    """Return the constraints that hold a minimum, as `argmin` takes them; inequalities that do not matter go."""
    minimiser = ends[1]
    active = [
        np.ones(np.size(plain["fun"](minimiser)), dtype=bool)
        if rule["type"] == "eq"
        else np.ravel(np.asarray(plain["fun"](minimiser)) < _ACTIVE)
        for rule, plain in zip(rules, known, strict=True)
    ]
    if not any(map(np.any, active)):
        return {}

    def conditions(y: Any, *_: Any) -> Any:
        parts = []
        for rule, chosen in zip(rules, active, strict=True):
            leaves = containers.flatten(rule["fun"](y, *rule.get("args", ())))[0] if np.any(chosen) else []
            values = [np.ravel(leaf) for leaf in leaves]
            parts += [np.concatenate(values)[chosen]] if values else []
        return np.concatenate(parts)

    is_inequality = np.concatenate(
        [np.full(int(np.sum(chosen)), rule["type"] == "ineq") for rule, chosen in zip(rules, active, strict=True)]
    )
    if is_inequality.any():
        _check_pushed(name, objective, args, conditions, is_inequality, ends)
    return {"constraints": conditions}


def _check_pushed(
    name: str, objective: Function, args: Any, conditions: Function, is_inequality: Any, ends: tuple[Any, Any]
) -> None:
    """Refuse where an inequality is met without holding the minimum: it may do so on one side of this point only."""
    first, slope = (numbers(name, grad(objective)(place, *args)) for place in ends)
    rows = numbers(name, jacobian(conditions)(ends[1]))
    multipliers, *_ = np.linalg.lstsq(rows.T, slope, rcond=None)
    size = np.abs(rows).max(axis=1)
    if not np.all((multipliers * size)[is_inequality] > PUSHES * np.max(np.abs([first, slope]))):
        raise TraceError(
            f"{name} of traced values with an inequality that just holds at its minimum",
            where=user_place(),
            why="it does not push the minimum, which may leave it on one side of this point",
            do='give it as an equality, {"type": "eq", "fun": ...}, or leave it out',
        )


def _with_value(result: Any, value: Any) -> Any:
    """Return SciPy's result with the value at the minimum, without what it knows in plain numbers only."""
    result.fun = value
    for key in ("jac", "hess", "hess_inv", "lowest_optimization_result", "final_simplex"):
        result.pop(key, None)
    return result


@stands_in_for("scipy.optimize.minimize_scalar", always=True)
def minimize_scalar(
    fun: Function, bracket: Any = None, bounds: Any = None, args: Any = (), method: Any = None, tol: Any = None,
    options: Any = None,
) -> Any:  # fmt: skip
    """A minimum of a function of one variable."""
    name = "scipy.optimize.minimize_scalar"
    args = args if isinstance(args, tuple) else (args,)
    objective = _scalar(fun)
    if is_symbolic_call(objective, 1.0, args, *(bracket or ()), *(bounds or ())):
        return _symbolic_result(objective, minimum_of_one(name, objective, args, bracket, bounds), args)
    ends = None if bounds is None else tuple(float(numbers(name, end)) for end in bounds)
    first = 1.0 if bounds is None else 0.5 * sum(ends or ())
    if not is_traced_call(objective, first, args, bracket, bounds):
        return own("minimize_scalar")(fun, bracket, bounds, args, method, tol, options)
    if bounds is not None and holds_traced(tuple(bounds)):
        refuse_function(f"{name} with traced bounds", "only plain bounds are traced", "give it numbers")
    near_it = None if bracket is None else tuple(float(numbers(name, end)) for end in bracket)
    plain = on_numbers(name, objective, first, args)
    result = own("minimize_scalar")(plain, near_it, ends, (), method, tol, options)
    x = minimum(name, objective, float(result.x), args, ends)
    result.x = x if np.ndim(x) == 0 else x[0]
    return _with_value(result, objective(result.x, *args))


def _point_only(name: str, first: Callable[..., Any], scalar: bool, bounded: bool) -> None:
    """Register a minimiser that returns the place of a minimum only."""
    full, count = f"scipy.optimize.{name}", 2 if bounded else 1

    def check(given: tuple[Any, ...], full_output: Any, keywords: dict[str, Any]) -> None:
        if full_output or len(given) > count or keywords.get("retall"):
            refuse_function(f"{full} with full_output= or retall=", "only the minimum is traced", "leave it out")

    def handler(func: Function, *given: Any, args: Any = (), full_output: Any = 0, **keywords: Any) -> Any:
        args = args if isinstance(args, tuple) else (args,)
        objective = _scalar(func)
        beginning = 1.0 if scalar else np.ravel(given[0])
        if is_symbolic_call(objective, beginning, args, *given):
            check(given, full_output, keywords)
            if not scalar:
                return minimum_on_symbols(full, objective, beginning, args)
            near = keywords.get("brack") if not bounded else None
            return minimum_of_one(full, objective, args, near, given[:2] if bounded else None)
        start = first(*[numbers(full, value) for value in given[:count]])
        if not is_traced_call(objective, start, args, *given):
            return own(name)(func, *given, args=args, full_output=full_output, **keywords)
        check(given, full_output, keywords)
        plain = on_numbers(full, objective, start, args)
        if callable(slope := keywords.get("fprime")):
            keywords["fprime"] = on_numbers(full, slope, start, args)
        minimiser = own(name)(plain, *[numbers(full, value) for value in given], **keywords)
        ends = (float(given[0]), float(given[1])) if bounded else None
        x = minimum(full, objective, float(minimiser) if scalar else np.asarray(minimiser), args, ends)
        return x[0] if scalar and np.ndim(x) else x

    stands_in_for(f"scipy.optimize.{name}", always=True)(handler)


def _vector(x0: Any) -> Any:
    return np.array(x0, dtype=float, ndmin=1)


for _name in ("fmin", "fmin_powell", "fmin_cg", "fmin_bfgs"):
    _point_only(_name, _vector, scalar=False, bounded=False)
for _name in ("brent", "golden"):
    _point_only(_name, lambda *_: 1.0, scalar=True, bounded=False)
_point_only("fminbound", lambda low, high: 0.5 * (low + high), scalar=True, bounded=True)


# ---- minimisers that look everywhere


def _global(name: str, is_bounded: bool) -> None:
    """Register a minimiser that looks everywhere, between bounds or from a point."""

    def handler(func: Function, where: Any, *given: Any, args: Any = (), **keywords: Any) -> Any:
        full = f"scipy.optimize.{name}"
        args = args if isinstance(args, tuple) else (args,)
        objective = _scalar(func)
        ends = ends_of(full, where) if is_bounded else None
        start = _vector(numbers(full, where)) if ends is None else 0.5 * (ends[0] + ends[1])
        if not is_traced_call(objective, start, args, where, *given):
            return own(name)(func, where, *given, **({"args": args} if args else {}), **keywords)
        result = own(name)(on_numbers(full, objective, start, args), where, *given, **keywords)
        result.x = minimum(full, objective, result.x, args, ends)
        return _with_value(result, objective(result.x, *args))

    stands_in_for(f"scipy.optimize.{name}", always=True)(handler)


for _name, _is_bounded in (("differential_evolution", True), ("dual_annealing", True), ("shgo", True),
                           ("basinhopping", False)):  # fmt: skip
    _global(_name, _is_bounded)


# ---- what is not differentiated


@stands_in_for("scipy.optimize.linear_sum_assignment", held=())
def linear_sum_assignment(cost_matrix: Any, maximize: bool = False) -> Any:
    """The places of an assignment of least cost, which follow the values."""
    return own("linear_sum_assignment")(numbers("scipy.optimize.linear_sum_assignment", cost_matrix), maximize)


_UNTRACED = (
    ("linprog milp", "it has no traced form", "use symad.argmin, or symad.root with the equations that hold"),
    ("approx_fprime check_grad", "it takes differences", "use symad.grad"),
)


def _refusing(name: str, why: str, do: str) -> Callable[..., Any]:
    return lambda *args, **keywords: refuse_function(f"scipy.optimize.{name}", why, do)


for _names, _why, _do in _UNTRACED:
    for _name in _names.split():
        stands_in_for(f"scipy.optimize.{_name}", held=())(_refusing(_name, _why, _do))
