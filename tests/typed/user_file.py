"""What a user writes with types: calls whose inferred types are asserted; it runs, and the numbers are asserted too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict, assert_type

import numpy as np
import sympy as sp
from numpy.typing import NDArray

import symad as sa

Vector = NDArray[np.float64]


class Parameters(TypedDict):
    """A container of arguments."""

    slope: float
    shift: float


def energy(x: Vector, stiffness: float = 2.0) -> float:
    """Return the energy of a chain."""
    total: float = 0.5 * stiffness * np.sum((x[1:] - x[:-1]) ** 2)
    return total


def wave(t: float) -> float:
    """Return a function of a number."""
    value: float = np.sin(t) * t
    return value


def pair(t: float) -> tuple[float, float]:
    """Return two numbers."""
    return t * t, 3.0 * t


def loss(parameters: Parameters, x: float) -> float:
    """Return a function of a container."""
    return parameters["slope"] * x + parameters["shift"] ** 2


class Model:
    """A class with jitted methods."""

    scale = 3.0

    @sa.jit
    def value(self, x: Vector) -> float:
        """Return a multiple."""
        total: float = self.scale * np.sum(x * x)
        return total


@sa.jit(accuracy="fast")
def length(x: Vector) -> float:
    """Return a jitted function's result."""
    root: float = np.sum(x * x) ** 0.5
    return root


@sa.custom_derivative(derivative=lambda primals, tangents: 2.0 * primals[0] * tangents[0])
def square(t: float) -> float:
    """Return a function with a derivative of its own."""
    return t * t


X = np.array([1.0, 2.0, 4.0])

# first order: the signature of the function, with the result of its first argument
assert_type(sa.grad(energy)(X), Vector)
assert_type(sa.grad(energy)(X, stiffness=1.0), Vector)
assert_type(sa.grad(wave)(1.0), float)
slope = sa.grad(wave)
assert_type(sa.grad(slope)(1.0), float)
assert_type(sa.grad(loss)({"slope": 1.0, "shift": 2.0}, 3.0), Parameters)
assert_type(sa.grad(energy, 1)(X, 2.0), Any)
assert_type(sa.grad(energy, wrt="stiffness")(X, 2.0), Any)
assert_type(sa.value_and_grad(energy)(X), tuple[float, Vector])
assert_type(sa.value_and_grad(wave)(1.0), tuple[float, float])
assert_type(sa.derivative(wave)(1.0), float)
assert_type(sa.derivative(wave, 3)(1.0), float)
assert_type(sa.derivative(pair)(1.0), tuple[float, float])
assert_type(sa.jvp(energy, (X,), (X,)), tuple[float, float])
assert_type(sa.linearize(wave, 1.0)[1](2.0), float)
assert_type(sa.vjp(wave, 1.0), tuple[float, Callable[[float], tuple[Any, ...]]])

# functions without types give no types, and no errors
assert_type(sa.grad(lambda x: x * x)(2.0), Any)
assert_type(sa.grad(lambda x: x @ x)(X), Any)
assert_type(sa.hessian(lambda x: np.sum(x**3))(X), Any)

# matrices and higher orders
assert_type(sa.hessian(energy)(X), Any)
assert_type(sa.hessian(energy, sparse=True)(X), sa.results.SparseMatrix)
assert_type(sa.hessian(energy, sparse="lower")(X, stiffness=3.0), sa.results.SparseMatrix)
assert_type(sa.jacobian(lambda x: x * x, sparse=True)(X), sa.results.SparseMatrix)
assert_type(sa.sparsity(energy, X, order=2), sa.SparsityPattern)
assert_type(sa.taylor(wave, (1.0,), (1.0,), 3), tuple[float, ...])
assert_type(sa.partials(energy, 2, along=X)(X), float)
assert_type(sa.laplacian(energy)(X), float)
assert_type(sa.partials(energy, 2, sparse=True)(X), sa.results.SymmetricTensor)
assert_type(sa.taylor(energy, (X,), None, 2), sa.results.TaylorPolynomial)
assert_type(sa.partials(energy, 2, mode="interpolation")(X), sa.results.MixedPartials)

# rules
assert_type(square(3.0), float)
assert_type(sa.grad(square)(3.0), float)
assert_type(sa.stop_gradient(3.0), float)

# native
kernel = sa.compile(sa.grad(energy), X, 2.0)
assert_type(kernel, sa.Kernel)
assert_type(kernel.signature, str)
assert_type(kernel.stats.executed, int)
assert_type(sa.plan(energy, X), sa.results.CompilationPlan)
assert_type(length(X), float)
assert_type(sa.grad(length)(X), Vector)
assert_type(Model().value(X), float)

# seeing and checking
x = sp.Symbol("x", real=True)
assert_type(sa.trace(energy, X), sa.results.Trace)
assert_type(sa.expand("x^3", "x", "v w"), sa.results.Expansion)
assert_type(sa.explain(sa.grad(wave), 1.0), sa.results.Explanation)
assert_type(sa.draw(wave, 1.0), sa.results.Drawing)
assert_type(sa.spy(sa.hessian(energy), X), sa.results.Spy)
assert_type(sa.verify(kernel, X, 2.0), sa.results.Verification)
assert_type(sa.verify(kernel, box=((-1.0, 1.0), (1.0, 2.0)), points=20), sa.results.BoxVerification)
assert_type(sa.compare(wave, 1.0, only="AD"), sa.results.Comparison)
assert_type(sa.check_derivative("2x", "x^2", "x"), sa.results.CheckedAnswer)
assert_type(sa.check_trace([("x", 1, 1), ("v1", 1, 2)], "x^2", at=1), sa.results.CheckedTrace)

# the numbers are those of the types
assert isinstance(sa.grad(wave)(1.0), float)
assert isinstance(sa.hessian(energy, sparse=True)(X), sa.results.SparseMatrix)
assert sa.grad(loss)({"slope": 1.0, "shift": 2.0}, 3.0) == {"slope": 3.0, "shift": 4.0}
assert sa.grad(energy)(X).tolist() == [-2.0, -2.0, 4.0]
assert (Model().value(X), square(3.0), sa.grad(square)(3.0)) == (63.0, 9.0, 6.0)
