"""SciPy's fits in traced functions: sums of squares, whose minimum is an implicit function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import symad.tracing.values.containers as containers
from symad.derivatives.implicit import is_symbolic_call
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.values.node_operands import holds_traced
from symad.tracing.values.traced import refuse_function
from symad.transforms.first_order import jacfwd
from symad.transforms.scipy_minima import ends_of, minimum, minimum_on_symbols, symbolic_start
from symad.transforms.scipy_solvers import Function, is_traced_call, numbers, on_numbers, own


def _joined(f: Function) -> Function:
    """Return a function whose result is one vector."""

    def residuals(y: Any, *args: Any) -> Any:
        return np.concatenate([np.ravel(leaf) for leaf in containers.flatten(f(y, *args))[0]])

    return residuals


def _half_square(residuals: Function) -> Function:
    """Return half the sum of squares."""

    def cost(y: Any, *args: Any) -> Any:
        return 0.5 * np.sum(residuals(y, *args) ** 2)

    return cost


def _between(name: str, bounds: Any, shape: tuple[int, ...]) -> Any:
    """Return the lower and the upper ends of all parameters, None where there are none."""
    ends = bounds if hasattr(bounds, "lb") else tuple(np.broadcast_to(end, shape) for end in bounds)
    ends = ends_of(name, ends) if hasattr(ends, "lb") else ends
    if holds_traced(ends):
        refuse_function(f"{name} with traced bounds", "only plain bounds are traced", "give it numbers")
    return None if all(np.all(np.isinf(end)) for end in ends) else ends


@stands_in_for("scipy.optimize.least_squares", always=True)
def least_squares(fun: Function, x0: Any, jac: Any = "2-point", bounds: Any = (-math.inf, math.inf), *others: Any,
                  args: Any = (), kwargs: Any = None, **keywords: Any) -> Any:  # fmt: skip
    """The parameters for which a sum of squares is least."""
    name = "scipy.optimize.least_squares"
    residuals = _joined(lambda y, *args: fun(y, *args, **(kwargs or {})))
    begin = symbolic_start(residuals, x0, args)
    start = None if begin is not None else np.array(numbers(name, x0), dtype=float, ndmin=1)
    if begin is None and not is_traced_call(residuals, start, args, x0):
        return own("least_squares")(fun, x0, jac, bounds, *others, args=args, kwargs=kwargs or {}, **keywords)
    if others or keywords.get("loss", "linear") != "linear":
        refuse_function(f"{name} with loss=", "only sums of squares are traced", "use scipy.optimize.minimize")
    cost = _half_square(residuals)
    if begin is not None:
        x = minimum_on_symbols(name, cost, begin, tuple(args), _between(name, bounds, np.shape(begin)))
        result = own("OptimizeResult")(x=x, success=np.logical_not(np.any(np.isnan(x))))
    else:
        plain = on_numbers(name, residuals, start, args)
        slopes = on_numbers(name, jac, start, args) if callable(jac) else jac
        result = own("least_squares")(plain, start, slopes, bounds, **keywords)
        result.x = minimum(name, cost, result.x, tuple(args), _between(name, bounds, np.shape(result.x)))
    result.cost, result.fun = cost(result.x, *args), residuals(result.x, *args)
    for key in ("jac", "grad", "optimality"):
        result.pop(key, None)
    return result


@stands_in_for("scipy.optimize.leastsq", always=True)
def leastsq(func: Function, x0: Any, args: Any = (), Dfun: Any = None, full_output: Any = False,  # noqa: N803
            **keywords: Any) -> Any:  # fmt: skip
    """The same, by MINPACK, and how it ended."""
    name = "scipy.optimize.leastsq"
    args = args if isinstance(args, tuple) else (args,)
    residuals = _joined(func)
    if not full_output and (begin := symbolic_start(residuals, x0, args)) is not None:
        return minimum_on_symbols(name, _half_square(residuals), begin, args), 1
    start = np.array(numbers(name, x0), dtype=float, ndmin=1)
    if full_output or not is_traced_call(residuals, start, args, x0):
        return own("leastsq")(func, x0, args, Dfun, full_output, **keywords)
    plain = on_numbers(name, residuals, start, args)
    parameters, ended = own("leastsq")(plain, start, **{k: v for k, v in keywords.items() if k != "col_deriv"})
    return minimum(name, _half_square(residuals), parameters, args), ended


@stands_in_for("scipy.optimize.curve_fit", always=True)
def curve_fit(
    f: Function, xdata: Any, ydata: Any, p0: Any = None, sigma: Any = None, absolute_sigma: bool = False,
    *others: Any, bounds: Any = (-math.inf, math.inf), **keywords: Any,
) -> Any:  # fmt: skip
    """The parameters with which a function fits data best, and their covariances."""
    name = "scipy.optimize.curve_fit"
    count = f.__code__.co_argcount - 1 - hasattr(f, "__self__") if p0 is None else np.size(p0)
    x0 = np.ones(count) if p0 is None else p0

    def model(y: Any, xdata: Any) -> Any:
        return f(xdata, *[y[k] for k in range(count)])

    def residuals(y: Any) -> Any:
        off = np.ravel(model(y, xdata)) - np.ravel(ydata)
        return off if sigma is None else off / sigma

    begin = symbolic_start(residuals, x0, ())
    start = None if begin is not None else np.array(numbers(name, x0), dtype=float, ndmin=1)
    if begin is None and not is_traced_call(model, start, (xdata,), ydata, sigma):
        return own("curve_fit")(f, xdata, ydata, p0, sigma, absolute_sigma, *others, bounds=bounds, **keywords)
    has_bounds = not all(np.all(np.isinf(end)) for end in bounds)
    if others or has_bounds or keywords.get("full_output") or (sigma is not None and np.ndim(sigma) > 1):
        refuse_function(f"{name} with bounds=, full_output= or a matrix sigma=", "", "use scipy.optimize.least_squares")
    cost = _half_square(residuals)
    if begin is not None:
        best = minimum_on_symbols(name, cost, begin, ())
    else:
        plain = on_numbers(name, model, start, (xdata,))
        data, values, errors = (None if part is None else numbers(name, part) for part in (xdata, ydata, sigma))
        result = own("curve_fit")(
            lambda _, *y: plain(np.array(y)), data, values, start, errors, absolute_sigma, **keywords
        )
        best = minimum(name, cost, result[0], ())
    slopes = jacfwd(residuals)(best)
    spread = np.linalg.inv(np.transpose(slopes) @ slopes)
    if not absolute_sigma:
        spread = spread * np.sum(residuals(best) ** 2) / (np.size(ydata) - count)
    return best, spread


def _linear(name: str, A: Any, b: Any, bounds: Any, find: Callable[[Any, Any], Any]) -> Any:  # noqa: N803
    """Return the least-squares solution of a linear system within bounds, which `find` finds for numbers."""

    def cost(y: Any) -> Any:
        return 0.5 * np.sum((A @ y - b) ** 2)

    start = np.zeros(np.shape(A)[1])
    ends = _between(name, bounds, np.shape(start))
    if is_symbolic_call(cost, start, ()):
        return minimum_on_symbols(name, cost, start, (), ends)
    return minimum(name, cost, find(numbers(name, A), numbers(name, b)), (), ends)


@stands_in_for("scipy.optimize.lsq_linear", held=())
def lsq_linear(A: Any, b: Any, bounds: Any = (-math.inf, math.inf), *others: Any, **keywords: Any) -> Any:  # noqa: N803
    """The least-squares solution of a linear system, within bounds."""
    result = own("OptimizeResult")()

    def find(plain: Any, right: Any) -> Any:
        result.update(own("lsq_linear")(plain, right, bounds, *others, **keywords))
        return result.x

    result.x = _linear("scipy.optimize.lsq_linear", A, b, bounds, find)
    result.fun = A @ result.x - b
    result.cost = 0.5 * np.sum(result.fun**2)
    result.pop("unbounded_sol", None)
    return result


@stands_in_for("scipy.optimize.nnls", held=())
def nnls(A: Any, b: Any, **keywords: Any) -> Any:  # noqa: N803 (SciPy's name)
    """The least-squares solution that is nowhere negative, and the norm of the residual."""
    x = _linear("scipy.optimize.nnls", A, b, (0.0, math.inf), lambda *plain: own("nnls")(*plain, **keywords)[0])
    return x, np.sqrt(np.sum((A @ x - b) ** 2))
