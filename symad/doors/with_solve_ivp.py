"""Integrate by `scipy.integrate.solve_ivp` or CVODE: compiled right-hand sides, exact Jacobians, events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from codegen.machine.calls.arguments import numbers_of
from codegen.machine.calls.kernel import Kernel
from codegen.records import dataclass
from symad.compiling.native import compile
from symad.doors.callbacks import Array
from symad.doors.with_sundials import integrated_by_cvode
from symad.errors import ArgumentError, ConvergenceError
from symad.extras import optional
from symad.transforms.first_order import jacobian

Parameters = Array | Callable[[float], Array]  # numbers, or numbers at each time
Method = Literal["LSODA", "BDF", "Radau", "RK45", "DOP853", "RK23", "CVODE"]
IMPLICIT = ("LSODA", "BDF", "Radau", "CVODE")  # which take a Jacobian
FACTORIZED = ("BDF", "Radau", "CVODE")  # which take a sparse one
DENSE = 40  # numbers up to which a dense matrix is factorized sooner
LARGE = 100  # numbers from which on sparse matrices are what counts
FILLED = 0.25  # the density from which on a dense matrix is


@dataclass(frozen=True)
class Integrator:
    """The options of SciPy's integrator. The default method is LSODA for small systems, BDF for large ones."""

    method: Method | None = None
    rtol: float = 1e-8
    atol: Any = 1e-10
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if "dense_output" in self.options:
            raise ArgumentError('options={"dense_output": ...}', why="no result holds it", do="ask for `times`")
        if self.method is not None and self.method not in get_args(Method):
            raise ArgumentError(f"method={self.method!r}", do=f"use one of {', '.join(get_args(Method))}")

    def method_for(self, size: int) -> Method:
        """Return the method for a number of unknowns."""
        return self.method or ("LSODA" if size < LARGE else "BDF")

    def atol_for(self, size: int) -> Any:
        """Return absolute tolerances of all unknowns. Derivatives have those of y.

        ArgumentError for another number of them.
        """
        given = np.ravel(numbers_of(self.atol, "atol"))
        if np.ndim(self.atol) == 0:
            return float(given[0])
        if given.size == 0 or size % given.size:
            raise ArgumentError(f"{given.size} tolerances in atol", do="give one, or one for each number of y")
        return np.tile(given, size // given.size)


class SystemKernels:
    """A compiled right-hand side f(t, z, q), and its Jacobian in z on request."""

    right: Kernel

    def __init__(self, f: Callable[..., Any], state: Array, q: Array) -> None:
        self._f, self._examples = f, (0.0, state, q)
        self.right = compile(f, *self._examples)

    @cached_property
    def jacobian(self) -> Kernel:
        """The entries of the Jacobian that may be non-zero, column by column."""
        return compile(jacobian(self._f, argnums=1, sparse=True, format="csc"), *self._examples)

    def of(self, q: Parameters) -> Callable[[float, Array], Array]:
        """Return the right-hand side for parameters."""
        right = self.right
        return (lambda t, z: right(t, z, q(t))) if callable(q) else (lambda t, z: right(t, z, q))

    def jacobian_of(self, q: Parameters, *, sparse: bool) -> Callable[[float, Array], Any]:
        """Return the Jacobian for parameters, as a sparse matrix where the method takes one and it pays."""
        kernel = self.jacobian
        pattern = kernel.sparsity
        at = q if callable(q) else lambda t: q
        if sparse and pattern.shape[0] > DENSE and pattern.density < FILLED:
            return lambda t, z: pattern.scipy(kernel(t, z, at(t)))
        rows, columns = pattern

        def dense(t: float, z: Array) -> Array:
            matrix = np.zeros(pattern.shape)
            matrix[rows, columns] = kernel(t, z, at(t))
            return matrix

        return dense


def integrated(
    kernels: SystemKernels, q: Parameters, span: tuple[float, float], start: Array, by: Integrator, **asked: Any
) -> Any:
    """Integrate by `solve_ivp`. A state that becomes infinite or NaN is a failure.

    ArgumentError for a right-hand side that is NaN or infinite at the start, and what SciPy says of its arguments;
    ConvergenceError where it stops with an error on the way.
    """
    integrate = optional("scipy.integrate", "an integrator")
    right, method = kernels.of(q), by.method_for(start.size)
    _check_start(start, right(span[0], start), span[0])
    if method in IMPLICIT:
        asked["jac"] = kernels.jacobian_of(q, sparse=method in FACTORIZED)
    try:
        with np.errstate(all="ignore"):  # NaN ends a step, as SciPy sees to
            if method == "CVODE":
                trajectory = integrated_by_cvode(right, asked.pop("jac"), span, start, by, asked)
            else:
                trajectory = integrate.solve_ivp(
                    right, span, start, method=method, rtol=by.rtol, atol=by.atol_for(start.size), **asked, **by.options
                )
    except (ValueError, TypeError) as error:
        if "infs or NaNs" not in str(error):
            raise ArgumentError(f"{method} from t = {span[0]:g} to {span[1]:g}", why=str(error)) from error
        raise _stopped(method, span, error) from error
    except (ArithmeticError, np.linalg.LinAlgError, RuntimeError) as error:
        raise _stopped(method, span, error) from error
    return _ended(trajectory, method, start.size)


def _ended(trajectory: Any, method: str, size: int) -> Any:
    """Return the result with its method. A state that became infinite or NaN is a failure."""
    trajectory.method = method
    if not len(trajectory.t):  # an event before all times that were asked for: SciPy gives empty lists
        trajectory.t, trajectory.y = np.empty(0), np.empty((size, 0))
    if trajectory.success and not np.isfinite(trajectory.y).all():
        trajectory.success, trajectory.status = False, -1
        trajectory.message = "The state became infinite or NaN."
    return trajectory


def _stopped(method: str, span: tuple[float, float], error: Exception) -> ConvergenceError:
    return ConvergenceError(
        f"{method} stopped between t = {span[0]:g} and {span[1]:g}", why=str(error),
        do="see where the right-hand side is NaN or infinite, or try another method",
    )  # fmt: skip


def _check_start(start: Array, slope: Array, t: float) -> None:
    for values, name in ((start, "the initial state"), (slope, "the right-hand side")):
        wrong = np.nonzero(~np.isfinite(values))[0]
        if wrong.size:
            raise ArgumentError(
                f"{name} is {values[wrong[0]]} in number {wrong[0]} at t = {t:g}", do="begin where it is finite"
            )
