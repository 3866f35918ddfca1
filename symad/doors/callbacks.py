"""The callbacks of solvers on flat vectors, a solver's request, and its solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.ir.sparsity import SparsityPattern
from codegen.machine.calls.arguments import numbers_of
from codegen.machine.calls.kernel import Kernel
from codegen.options import check_whole
from codegen.records import dataclass
from symad.errors import ArgumentError

Array: TypeAlias = NDArray[np.float64]
Progress: TypeAlias = Callable[[int, float, float], Any]


class Kernels(NamedTuple):
    """The kernels of a solver, called as `(x, *parameters)`; the Hessian also takes multipliers and sigma.

    Its lower triangle is packed in coordinate form, and so is the Jacobian. Without constraints there is neither them
    nor a Jacobian, and there are no multipliers.
    """

    value: Kernel
    gradient: Kernel
    hessian: Kernel
    constraints: Kernel | None = None
    jacobian: Kernel | None = None

    @property
    def parameters(self) -> int:
        """How many arrays the parameters are."""
        return len(self.value.declared.arguments) - 1

    @property
    def rows(self) -> int:
        """How many constraints there are."""
        return 0 if self.constraints is None else self.constraints.declared.outputs[0].size


class Callbacks(NamedTuple):
    """Kernels at flat vectors of variables, with the parameters bound."""

    kernels: Kernels
    shape: tuple[int, ...]
    parameters: tuple[Any, ...]
    leaves: tuple[Any, ...]  # the parameters as arrays, those in containers too

    def at(self, x: Array) -> tuple[Any, ...]:
        """Return the arguments of kernels."""
        return x.reshape(self.shape), *self.parameters

    def value(self, x: Array) -> float:
        """Return the objective."""
        return float(self.kernels.value(*self.at(x)))

    def gradient(self, x: Array) -> Array:
        """Return its gradient, flat."""
        return np.ravel(self.kernels.gradient(*self.at(x)))

    def constraints(self, x: Array) -> Array:
        """Return the constraints."""
        values: Array = np.empty(0) if self.kernels.constraints is None else self.kernels.constraints(*self.at(x))
        return values

    def jacobian(self, x: Array) -> Array:
        """Return the entries of the Jacobian of the constraints that may be non-zero."""
        entries: Array = np.empty(0) if self.kernels.jacobian is None else self.kernels.jacobian(*self.at(x))
        return entries

    def hessian(self, x: Array, multipliers: Array, sigma: float) -> Array:
        """Return the entries of the lower triangle of the Hessian of the Lagrangian that may be non-zero."""
        weights = (multipliers, sigma) if self.kernels.rows else ()
        entries: Array = self.kernels.hessian(*self.at(x), *weights)
        return entries if weights else sigma * entries

    def pull(self, x: Array, multipliers: Array) -> Array:
        """Return the gradient of the Lagrangian without bounds of x."""
        pattern = self.jacobian_pattern
        pulled = np.bincount(pattern.columns, self.jacobian(x) * multipliers[pattern.rows], minlength=len(x))
        slope: Array = self.gradient(x) + pulled
        return slope

    @property
    def jacobian_pattern(self) -> SparsityPattern:
        """Where the Jacobian may be non-zero."""
        if self.kernels.jacobian is None:
            nothing = np.empty(0, dtype=np.intp)
            return SparsityPattern(nothing, nothing, (0, int(np.prod(self.shape))))
        pattern: SparsityPattern = self.kernels.jacobian.sparsity
        return pattern

    @property
    def hessian_pattern(self) -> SparsityPattern:
        """The pattern of the lower triangle of the Hessian, for all multipliers."""
        pattern: SparsityPattern = self.kernels.hessian.sparsity
        return pattern


class Bounds(NamedTuple):
    """The lower and upper bounds of a vector, infinite where there are none."""

    low: Array
    high: Array

    @property
    def finite(self) -> bool:
        """Whether there are any."""
        return bool(np.isfinite(self.low).any() or np.isfinite(self.high).any())

    def violation(self, values: Array) -> float:
        """Return by how much values are outside at most."""
        return float(max(np.max(self.low - values, initial=0.0), np.max(values - self.high, initial=0.0)))


def bounds_of(given: Any, shape: tuple[int, ...], name: str) -> Bounds:
    """Return bounds of a vector from the lowest and the highest numbers; ArgumentError where they do not fit.

    >>> bounds_of((None, 1.0), (2,), "bounds")
    Bounds(low=array([-inf, -inf]), high=array([1., 1.]))
    >>> bounds_of(([0.0, 2.0], 1.0), (2,), "bounds")
    Traceback (most recent call last):
    codegen.errors.ArgumentError: bounds: the lowest of number 1 is 2.0, the highest 1.0; exchange the two
    """
    low, high = (_side(side, nothing, shape, name) for side, nothing in zip(given, (-np.inf, np.inf), strict=True))
    crossed = np.nonzero(low > high)[0]
    if crossed.size:
        number = crossed[0]
        raise ArgumentError(
            f"{name}: the lowest of number {number} is {low[number]}, the highest {high[number]}", do="exchange the two"
        )
    return Bounds(low, high)


def _side(side: Any, nothing: float, shape: tuple[int, ...], name: str) -> Array:
    try:
        several = isinstance(side, list | tuple) or (isinstance(side, np.ndarray) and side.ndim == 1)
        filled = [nothing if end is None else end for end in side] if several else nothing if side is None else side
        ends = numbers_of(filled, name)
        is_flat = ends.ndim == 1 and ends.size == np.prod(shape, dtype=int)
        bounds = ends if is_flat else np.broadcast_to(ends, shape).ravel()
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name}: {side!r}", why=f"they are for numbers of shape {shape}: {error}") from error
    if np.isnan(bounds).any():
        raise ArgumentError(f"{name}: NaN", do="None, or an infinity, stands for no bound")
    return bounds.copy()


class Request(NamedTuple):
    """The options of a solver call."""

    multipliers: Any = None
    tolerance: float | None = None
    max_iterations: int | None = None
    options: Mapping[str, Any] = MappingProxyType({})
    progress: Progress | None = None

    def check(self) -> None:
        """Raise ArgumentError for a tolerance that is no positive number, and iterations that are no count."""
        if self.max_iterations is not None:
            check_whole("max_iterations", self.max_iterations)
        if self.tolerance is not None and not float(numbers_of(self.tolerance, "tolerance")) > 0:
            raise ArgumentError(f"tolerance={self.tolerance!r}", do="give a positive number")


@dataclass(frozen=True, eq=False)
class Solution:
    """A solver's solution, with the names of `scipy.optimize.OptimizeResult`.

    `x` has the shape of the start, `multipliers` are those of the constraints (the gradient of the objective plus
    their multiples of the gradients of constraints is 0 where no bound of x holds); None where the solver gives none.
    `bound_multipliers` are those of the bounds of x, which make that sum 0 everywhere: Ipopt gives them.
    `status` and `message` are the solver's own; `violation` is by how much constraints and bounds are missed at most.

    >>> import symad as sa
    >>> found = sa.Problem(lambda x: np.sum((x - 2) ** 2), bounds=(0, 1)).minimize(np.zeros(2), solver="l-bfgs-b")
    >>> found.success, found.x, found.fun, found.multipliers
    (True, array([1., 1.]), 2.0, None)
    """

    x: Array
    fun: float
    success: bool
    status: int
    message: str
    nit: int
    constraints: Array
    violation: float
    multipliers: Array | None
    solver: str
    bound_multipliers: Array | None = None


def solution(
    solver: str, callbacks: Callbacks, x: Array, box: Bounds, limits: Bounds, *, success: bool, status: int,
    message: str, nit: int, multipliers: Array | None, bound_multipliers: Array | None = None,
) -> Solution:  # fmt: skip
    """Return the solution at x, with the values of the problem there."""
    values = callbacks.constraints(x)
    violation = max(box.violation(x), limits.violation(values))
    return Solution(
        x.reshape(callbacks.shape), callbacks.value(x), success, status, message, nit, values, violation,
        multipliers, solver, bound_multipliers,
    )  # fmt: skip
