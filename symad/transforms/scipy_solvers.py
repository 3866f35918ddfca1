"""SciPy's root finders in traced functions, differentiated as implicit functions.

SciPy finds the solution, on plain numbers. Newton's method moves it by less than the solver's tolerance, and the
implicit function theorem gives its derivatives (see `symad.derivatives.implicit` and `optimisation`), which check that
it is one. A solver of a function without traced values in it is SciPy's own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import symad.tracing.values.containers as containers
from codegen.errors import UnboundSymbolError
from symad.derivatives.implicit import TOLERANCE, Equation, fixed_point as implicit_fixed_point, is_symbolic_call, solve
from symad.derivatives.solvers import newton
from symad.derivatives.symbolic_equations import (
    FAR,
    STEPS as NEWTON_STEPS,
    SymbolicEquation,
    called,
    current_scope,
    in_kernel,
    newton_on_symbols,
    polished,
)
from symad.errors import BoundWarning, ConvergenceError, TraceError
from symad.tracing.calling.scope import innermost_scope, open_scope
from symad.tracing.calling.user_place import user_place
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.scipy.objects import package
from symad.tracing.values.known_numbers import SymbolicValueError, values_of
from symad.tracing.values.node_operands import holds_traced, nodes_of, scope_of
from symad.tracing.values.node_trees import lift, paths_of, wrap
from symad.tracing.values.traced import refuse_function
from symad.transforms.kernel_roots import METHODS, RTOL, STEPS, XTOL, bracketed, open_root

Function = Callable[..., Any]


def own(name: str) -> Function:
    """Return SciPy's own function."""
    function: Function = getattr(package("optimize"), name)
    return function


def is_traced_call(f: Function, start: Any, args: Sequence[Any], *others: Any) -> bool:
    """Whether there are traced values in a function, which is called once, or among the arguments of a solver."""
    scope = innermost_scope()
    if scope is None:
        return False
    if holds_traced(containers.flatten((start, tuple(args), others))[0]):
        return True
    if scope.paths is not None:  # a kernel's function: its paths are followed for themselves
        return not scope.graph.atoms.keys() >= set(called(f, lambda _: (start, *args)).flat)
    arrays, asked = scope.graph.arrays, list[Any]()
    before, arrays.asked = arrays.asked, asked
    try:
        value = f(start, *args)
    finally:
        arrays.asked = before
        if before is not None:
            before += asked
    return bool(asked) or holds_traced(containers.flatten(value)[0])


def numbers(name: str, value: Any) -> Any:
    """Return the plain numbers of an argument that says where a solver begins, which has no derivative."""
    if not holds_traced((value,)):
        return value
    scope = scope_of(value)
    try:
        values = values_of(scope, nodes_of(value, scope))
    except SymbolicValueError as error:
        raise needs_numbers(name) from error
    return values if values.ndim else values.item()


def needs_numbers(name: str) -> TraceError:
    """Return the refusal of a solver in a kernel."""
    return TraceError(
        f"{name} was called at symbolic values",
        where=user_place(),
        why="it needs numbers, and a kernel or a SymPy expression has none",
        do="take derivatives at numbers; to compile, write the solver's steps as plain code, a fixed number of them",
    )


def on_numbers(name: str, f: Function, start: Any, args: Sequence[Any]) -> Function:
    """Return a function of plain numbers, with the numbers of traced values in it and among its arguments."""
    with open_scope() as scope:
        try:
            names = paths_of(tuple(args), [""] * len(args))
            equation = Equation(scope, f, lift(scope, start, [""]), lift(scope, tuple(args), names))
        except (SymbolicValueError, UnboundSymbolError) as error:
            raise needs_numbers(name) from error

    def call(y: Any) -> Any:
        try:
            return equation.at_numbers(f, y)
        except (SymbolicValueError, UnboundSymbolError) as error:
            raise needs_numbers(name) from error

    call(start)  # so that a refusal is made here, and not inside of SciPy
    return call


def near(name: str, root: Any, better: Any) -> Any:
    """Return what Newton's method made of a solution, where that is the same one."""
    first, second = (np.concatenate([np.ravel(leaf) for leaf in containers.flatten(y)[0]]) for y in (root, better))
    if np.max(np.abs(second - first) / (1 + np.abs(first)), initial=0.0) <= FAR:
        return better
    raise ConvergenceError(
        f"what {name} found is no root",
        where=user_place(),
        why="Newton's method, which begins there, goes elsewhere",
        do="look at its success and message, start nearer, or make its tolerance smaller",
    )


def solved(name: str, f: Function, start: Any, args: Sequence[Any], root: Any) -> Any:
    """Return the root that SciPy found, as an implicit function."""

    def polished(equation: Equation, _: Any) -> Any:
        return near(name, root, newton(equation.residual, root))

    return solve(f, start, tuple(args), polished, TOLERANCE)


def solved_on_symbols(f: Function, start: Any, args: Sequence[Any], find: Callable[[SymbolicEquation], Any]) -> Any:
    """Return the root that `find(equation)` finds in a kernel, a number or an array, where what it says holds."""

    def moved(equation: SymbolicEquation) -> tuple[Any, Any]:
        root, ended = find(equation)
        better, is_near = polished(equation, np.ravel(root))
        return better, ended & is_near

    return solve(f, start, tuple(args), lambda *_: start, TOLERANCE, moved)


def as_function(f: Any, args: Sequence[Any]) -> Any:
    """Return a function of y alone of traced values, with its paths merged; None where there is none."""
    if f is None:
        return None

    def at(y: Any) -> Any:
        return wrap(current_scope(), called(f, lambda _: (y, *args)))

    return at


def tell(name: str, method: str, steps: int) -> None:
    """Warn that a kernel has another method than SciPy."""
    warnings.warn(
        f"{user_place()}: {name} in a kernel is {method}, {steps} steps at most; where it finds nothing the kernel "
        "returns NaN, and of several solutions it may find another one than SciPy",
        BoundWarning,
        stacklevel=2,
    )


# ---- roots of one equation


def _bracketed(name: str) -> None:
    def handler(f: Function, a: Any, b: Any, args: Any = (), *others: Any, **keywords: Any) -> Any:
        args = args if isinstance(args, tuple) else (args,)
        full = keywords.get("full_output", False)
        if not is_traced_call(f, a, args, b):
            return own(name)(f, a, b, args, *others, **keywords)
        full_name = f"scipy.optimize.{name}"
        if is_symbolic_call(f, a, args, b):
            return _bracketed_on_symbols(name, f, a, b, args, others, keywords)
        first, last = (float(numbers(full_name, end)) for end in (a, b))
        plain = on_numbers(full_name, f, first, args)
        result = own(name)(plain, first, last, (), *others, **keywords)
        root = solved(full_name, f, first, args, float(result[0] if full else result))
        return (root, result[1]) if full else root

    stands_in_for(f"scipy.optimize.{name}", always=True)(handler)


def _bracketed_on_symbols(
    name: str, f: Function, a: Any, b: Any, args: Any, others: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Return the root in a kernel, by SciPy's own method."""
    names = ("xtol", "rtol", "maxiter", "full_output", "disp")
    given = {"xtol": XTOL, "rtol": RTOL, "maxiter": STEPS} | dict(zip(names, others, strict=False)) | keywords
    if name not in METHODS:
        tell(f"scipy.optimize.{name}", "Brent's method", int(given["maxiter"]))
    method, options = name if name in METHODS else "brentq", (given["xtol"], given["rtol"], given["maxiter"])
    root = solved_on_symbols(
        f, 1.0 * a, args, lambda equation: bracketed(method, equation.number_at, 1.0 * a, 1.0 * b, *options)
    )
    return (root, _report(root, name)) if given.get("full_output") else root


def _report(root: Any, method: Any) -> Any:
    """Return what a solver says of a root in a kernel: the root, and whether there is one."""
    return own("OptimizeResult")(root=root, converged=np.logical_not(np.isnan(root)), method=method)


for _name in ("brentq", "brenth", "ridder", "bisect", "toms748"):
    _bracketed(_name)


@stands_in_for("scipy.optimize.newton", always=True)
def newton_root(
    func: Function, x0: Any, fprime: Any = None, args: Any = (), tol: float = 1.48e-8, maxiter: int = 50,
    fprime2: Any = None, x1: Any = None, rtol: float = 0.0, full_output: bool = False, disp: bool = True,
) -> Any:  # fmt: skip
    """A root by the method of Newton, Halley or the secant."""
    name = "scipy.optimize.newton"
    args = tuple(args)  # SciPy takes any sequence here
    is_symbolic = is_symbolic_call(func, x0, args, x1)
    start = x0 if is_symbolic else _floats(numbers(name, x0))
    if not is_symbolic and not is_traced_call(func, start, args, x0, x1):
        return own("newton")(func, x0, fprime, args, tol, maxiter, fprime2, x1, rtol, full_output, disp)
    if full_output and np.ndim(start):
        refuse_function("scipy.optimize.newton of an array with full_output=True", "", "leave it out")
    if is_symbolic:
        root = _open_on_symbols(func, start, args, (fprime, fprime2), x1, (tol, rtol, maxiter))
        return (root, _report(root, "newton")) if full_output else root
    slopes = [None if f is None else on_numbers(name, f, start, args) for f in (fprime, fprime2)]
    plain = on_numbers(name, func, start, args)
    options = (tol, maxiter, slopes[1], numbers(name, x1), rtol, full_output, disp)
    result = own("newton")(plain, start, slopes[0], (), *options)
    root = solved(name, func, start, args, _floats(result[0] if full_output else result))
    return (root, result[1]) if full_output else root


def _open_on_symbols(f: Function, start: Any, args: Any, slopes: Any, second: Any, options: Any) -> Any:
    """Return the root near a point in a kernel, by SciPy's own method."""
    function, slope, curvature = (as_function(g, args) for g in (f, *slopes))
    begin = 1.0 * (start if holds_traced((start,)) else _floats(start))
    return solved_on_symbols(f, begin, args, lambda _: open_root(function, slope, curvature, begin, second, *options))


def _floats(value: Any) -> Any:
    array = np.asarray(value, dtype=float)
    return array if array.ndim else float(array)


@stands_in_for("scipy.optimize.root_scalar", always=True)
def root_scalar(
    f: Function, args: Any = (), method: Any = None, bracket: Any = None, fprime: Any = None, fprime2: Any = None,
    x0: Any = None, x1: Any = None, xtol: Any = None, rtol: Any = None, maxiter: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    """A root by one of several methods."""
    name = "scipy.optimize.root_scalar"
    args = args if isinstance(args, tuple) else (args,)
    start = x0 if x0 is not None else None if bracket is None else bracket[0]
    more = {"method": method, "xtol": xtol, "rtol": rtol, "maxiter": maxiter, "options": options}
    given = {"fprime": fprime, "fprime2": fprime2}
    if start is None or fprime is True or not is_traced_call(f, start, args, bracket, x1):
        return own("root_scalar")(f, args, bracket=bracket, x0=x0, x1=x1, **given, **more)
    if is_symbolic_call(f, start, args, *([] if bracket is None else bracket), x1):
        return _scalar_on_symbols(f, args, method, bracket, (fprime, fprime2), (x0, x1), (xtol, rtol, maxiter))
    first = float(numbers(name, start))
    plain = {key: on_numbers(name, g, first, args) if callable(g) else g for key, g in given.items()}
    ends = None if bracket is None else [float(numbers(name, end)) for end in bracket]
    places = {"x0": None if x0 is None else first, "x1": numbers(name, x1), "bracket": ends}
    result = own("root_scalar")(on_numbers(name, f, first, args), **places, **plain, **more)
    result.root = solved(name, f, first, args, float(result.root))
    return result


def _scalar_on_symbols(
    f: Function, args: Any, method: Any, bracket: Any, slopes: Any, places: Any, options: Any
) -> Any:
    """Return what root_scalar returns in a kernel."""
    if bracket is not None and method in (None, *METHODS, "toms748"):
        given = {k: v for k, v in zip(("xtol", "rtol", "maxiter"), options, strict=True) if v is not None}
        low, high = bracket
        root = _bracketed_on_symbols(method or "brentq", f, low, high, args, (), given)
    else:
        slopes = (None, None) if method == "secant" else slopes
        defaults = (1.48e-8, 0.0, 50)
        chosen = tuple(v if v is not None else d for v, d in zip(options, defaults, strict=True))
        start = places[0] if places[0] is not None else bracket[0]
        root = _open_on_symbols(f, start, args, slopes, places[1], chosen)
    return _report(root, method)


# ---- systems of equations


def _as_system(f: Function) -> Function:
    """Return a function whose result is a vector, or an array of the unknowns' shape."""

    def system(y: Any, *args: Any) -> Any:
        leaves = containers.flatten(f(y, *args))[0]
        return np.reshape(np.concatenate([np.ravel(leaf) for leaf in leaves]), np.shape(y))

    return system


def _system(name: str, f: Function, x0: Any, args: Any, run: Callable[[Function, Any], Any]) -> Any:
    """Return what SciPy returns for a system of equations, and its root as an implicit function; or None."""
    args = args if isinstance(args, tuple) else (args,)
    equations = _as_system(f)
    if in_kernel() and is_symbolic_call(
        equations, begin := np.atleast_1d(1.0 * np.asarray(x0) if not holds_traced((x0,)) else x0), args
    ):
        tell(name, "Newton's method with halved steps", NEWTON_STEPS)
        y = solve(equations, begin, args, lambda *_: begin, TOLERANCE, newton_on_symbols)
        return own("OptimizeResult")(fun=equations(y, *args), success=np.logical_not(np.any(np.isnan(y)))), y
    start = np.array(numbers(name, x0), dtype=float, ndmin=1)
    if not is_traced_call(f, start, args, x0):
        return None
    report, y = run(on_numbers(name, equations, start, args), start)
    return report, solved(name, equations, start, args, np.reshape(y, start.shape))


@stands_in_for("scipy.optimize.fsolve", always=True)
def fsolve(func: Function, x0: Any, args: Any = (), fprime: Any = None, full_output: Any = 0, *others: Any,
           **keywords: Any) -> Any:  # fmt: skip
    """A root of a system of equations."""

    def run(plain: Function, start: Any) -> Any:
        y, *report = own("fsolve")(
            plain, start, full_output=True, **{key: value for key, value in keywords.items() if key != "col_deriv"}
        )
        return report, y

    result = None if others else _system("scipy.optimize.fsolve", func, x0, args, run)
    if result is None:
        return own("fsolve")(func, x0, args, fprime, full_output, *others, **keywords)
    report, y = result[0], np.ravel(result[1])
    if not full_output:
        return y
    if isinstance(report, list):
        return (y, *report)
    return y, {"fvec": report.fun}, np.where(report.success, 1, 5), ""


@stands_in_for("scipy.optimize.root", always=True)
def root_of_system(
    fun: Function, x0: Any, args: Any = (), method: str = "hybr", jac: Any = None, tol: Any = None,
    callback: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    """A root of a system of equations, by one of several methods."""
    equations = (lambda y, *args: fun(y, *args)[0]) if jac is True else fun

    def run(plain: Function, start: Any) -> Any:
        result = own("root")(plain, start, (), method, None, tol, callback, options)
        return result, result.x

    result = _system("scipy.optimize.root", equations, x0, args, run)
    if result is None:
        return own("root")(fun, x0, args, method, jac, tol, callback, options)
    result[0].x = result[1]
    return result[0]


@stands_in_for("scipy.optimize.fixed_point", always=True)
def fixed_point(func: Function, x0: Any, args: Any = (), xtol: float = 1e-8, maxiter: int = 500,
                method: str = "del2") -> Any:  # fmt: skip
    """A point that a function leaves as it is."""
    name = "scipy.optimize.fixed_point"
    args = args if isinstance(args, tuple) else (args,)
    if is_symbolic_call(lambda y, *args: y - func(y, *args), x0, args):
        return implicit_fixed_point(func, 1.0 * (x0 if holds_traced((x0,)) else _floats(x0)), *args)
    start = _floats(numbers(name, x0))
    if not is_traced_call(func, start, args, x0):
        return own("fixed_point")(func, x0, args, xtol, maxiter, method)
    point = own("fixed_point")(on_numbers(name, func, start, args), start, (), xtol, maxiter, method)
    return solved(name, lambda y, *args: y - func(y, *args), start, args, _floats(point))
