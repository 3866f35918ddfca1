"""SciPy's integrals in traced functions: quad and its relatives, and their refusals."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from codegen.errors import UnboundSymbolError
from symad.derivatives.implicit import is_symbolic_call
from symad.derivatives.quadrature import integral
from symad.derivatives.symbolic_quadrature import integral_on_symbols
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.scipy.objects import package
from symad.tracing.values.known_numbers import SymbolicValueError
from symad.tracing.values.node_operands import holds_traced
from symad.tracing.values.traced import refuse_function
from symad.transforms.scipy_solvers import Function, is_traced_call, needs_numbers, numbers


def _own(name: str) -> Function:
    function: Function = getattr(package("integrate"), name)
    return function


@stands_in_for("scipy.integrate.quad", always=True)
def quad(
    func: Function, a: Any, b: Any, args: Any = (), full_output: Any = 0, epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8, limit: int = 50, points: Any = None, weight: Any = None, **keywords: Any,
) -> Any:  # fmt: skip
    """The integral of a function of one variable, and an estimate of its error, which is a plain number."""
    name = "scipy.integrate.quad"
    args = args if isinstance(args, tuple) else (args,)
    inside = 0.0 if holds_traced((a, b)) else _inside(float(a), float(b))
    if is_symbolic_call(func, inside, args, a, b):
        _check_options(name, weight, keywords)
        value, error = integral_on_symbols(_of_floats(func), a, b, args, () if points is None else list(points))
        return (value, error, {}) if full_output else (value, error)
    ends = [float(numbers(name, end)) for end in (a, b)]
    options = {"epsabs": epsabs, "epsrel": epsrel, "limit": limit, "points": points}
    if not is_traced_call(func, _inside(*ends), args, a, b):
        return _own("quad")(func, a, b, args, full_output, weight=weight, **options, **keywords)
    _check_options(name, weight, keywords)
    errors: list[float] = []

    def find(f: Callable[[float], float], low: float, high: float) -> float:
        value, error = _own("quad")(f, low, high, **options)
        errors.append(error)
        return float(value)

    try:
        integral_value = integral(_of_floats(func), a, b, args, find, () if points is None else list(points))
    except (SymbolicValueError, UnboundSymbolError) as error:
        raise needs_numbers(name) from error
    return (integral_value, errors[0], {}) if full_output else (integral_value, errors[0])


def _check_options(name: str, weight: Any, keywords: dict[str, Any]) -> None:
    if weight is not None or keywords.get("complex_func"):
        refuse_function(
            f"{name} with weight= or complex_func=",
            "it has no traced form",
            "write the weight into the integrand, and integrate real and imaginary part each",
        )


def _of_floats(f: Function) -> Function:
    """Return a function whose result is a number, not an array of one."""

    def integrand(t: Any, *args: Any) -> Any:
        value = f(t, *args)
        return np.reshape(value, ()) if np.ndim(value) else value

    return wraps(f)(integrand) if inspect.isfunction(f) else integrand


def _inside(low: float, high: float) -> float:
    """Return a number between two bounds, which may be infinite."""
    if math.isinf(low) and math.isinf(high):
        return 0.0
    return high - 1.0 if math.isinf(low) else low + 1.0 if math.isinf(high) else 0.5 * (low + high)


@stands_in_for("scipy.integrate.dblquad", always=True)
def dblquad(func: Function, a: Any, b: Any, gfun: Any, hfun: Any, args: Any = (), epsabs: float = 1.49e-8,
            epsrel: float = 1.49e-8) -> Any:  # fmt: skip
    """The integral over two variables: over the first one inside."""
    low, high = (end if callable(end) else (lambda _, end=end: end) for end in (gfun, hfun))
    options: dict[str, Any] = {"epsabs": epsabs, "epsrel": epsrel}

    def outer(x: Any) -> Any:
        return quad(func, low(x), high(x), (x, *args), **options)[0]

    return quad(outer, a, b, **options)


@stands_in_for("scipy.integrate.tplquad", always=True)
def tplquad(
    func: Function, a: Any, b: Any, gfun: Any, hfun: Any, qfun: Any, rfun: Any, args: Any = (),
    epsabs: float = 1.49e-8, epsrel: float = 1.49e-8,
) -> Any:  # fmt: skip
    """The integral over three variables: over the first one inside."""
    low, high = (end if callable(end) else (lambda *_, end=end: end) for end in (qfun, rfun))
    options: dict[str, Any] = {"epsabs": epsabs, "epsrel": epsrel}

    def outer(y: Any, x: Any) -> Any:
        return quad(func, low(x, y), high(x, y), (y, x, *args), **options)[0]

    return dblquad(outer, a, b, gfun, hfun, (), **options)


@stands_in_for("scipy.integrate.nquad", always=True)
def nquad(func: Function, ranges: Any, args: Any = (), opts: Any = None, full_output: bool = False) -> Any:
    """The integral over several variables: over the first one inside."""
    if opts is not None or full_output:
        if holds_traced(args):
            refuse_function("scipy.integrate.nquad with opts= or full_output=", "it has no traced form", "leave it out")
        return _own("nquad")(func, ranges, args, opts, full_output)

    def inner(count: int) -> Function:
        """Return the integral over the first variables as a function of the others."""
        if not count:
            return lambda *rest: func(*rest, *args)
        f, ends = inner(count - 1), ranges[count - 1]

        def integrated(*rest: Any) -> Any:
            low, high = ends(*rest, *args) if callable(ends) else ends
            return quad(lambda t: f(t, *rest), low, high)[0]

        return integrated

    low, high = ranges[-1](*args) if callable(ranges[-1]) else ranges[-1]
    return quad(inner(len(ranges) - 1), low, high)


_ODE = "write its steps as plain code (a fixed number of steps of Runge and Kutta), which symad.scan takes"
_REFUSED = {
    "solve_ivp": _ODE, "odeint": _ODE, "ode": _ODE, "solve_bvp": "write the equations of collocation, and symad.root",
    "quad_vec": "use scipy.integrate.quad for each component, or fixed_quad",
    "tanhsinh": "use scipy.integrate.quad", "cubature": "use scipy.integrate.nquad",
}  # fmt: skip


def _unless_plain(name: str, do: str) -> None:
    def handler(*args: Any, **keywords: Any) -> Any:
        callbacks = [value for value in args if callable(value)]
        hidden = any(_has_traced_cell(f) for f in callbacks)
        if hidden or holds_traced((*args, *keywords.values())):
            why = "it chooses its steps by plain numbers, and differentiating these would lose accuracy in silence"
            refuse_function(f"scipy.integrate.{name}", why, do)
        return _own(name)(*args, **keywords)

    stands_in_for(f"scipy.integrate.{name}", always=True)(handler)


def _has_traced_cell(f: Any) -> bool:
    """Whether a variable of an enclosing function, which a function reads, is a traced value."""
    cells = inspect.getclosurevars(f).nonlocals if inspect.isfunction(f) else {}
    return holds_traced(tuple(cells.values()))


for _name, _do in _REFUSED.items():
    _unless_plain(_name, _do)
