"""Compiled functions inside JAX: values by kernels, derivatives by kernels of the derivatives, at every order.

JAX calls a kernel through Python (`jax.pure_callback`). What it transposes is the product of a Jacobian and a tangent;
the Jacobian is a function of this kind again, which is compiled when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any

import numpy as np

from symad.compiling.native import compile
from symad.errors import ArgumentError
from symad.extras import optional
from symad.tracing.calling.function_names import check_call, name_of
from symad.transforms.first_order import jacobian

Function = Callable[..., Any]


def to_jax(f: Function, *examples: Any) -> Function:
    """Return a function of JAX that evaluates f by a kernel, for arguments of the shapes of the examples.

    `jax.jit`, `vmap` (which is one batch of the kernel), `grad`, `jvp`, `jacobian` and `hessian` work on it as on any
    other, and mixed: f may be a part of what JAX differentiates. f returns one array or number. JAX computes in float32
    unless `jax_enable_x64` is set, and then hands over float32. ArgumentError without JAX (the extra `jax`), and for
    containers.

    >>> import jax, symad as sa
    >>> jax.config.update("jax_enable_x64", True)
    >>> f = sa.to_jax(lambda x: np.sum(np.sin(x) * x[0]), np.zeros(2))
    >>> jax.grad(lambda x: f(2 * x) ** 2)(np.array([0.5, 0.0])).round(4)
    Array([4.6509, 3.3659], dtype=float64)
    """
    jax = optional("jax", "a function for JAX")
    check_call(f, examples)
    shapes = tuple(map(np.shape, examples))
    function = _Called(jax, f, tuple(np.asarray(example, dtype=np.float64) for example in examples)).function

    def called(*args: Any) -> Any:
        given = [jax.numpy.asarray(value, dtype=float) for value in args]  # whole numbers have no tangents
        if tuple(value.shape for value in given) != shapes:
            raise ArgumentError(
                f"arguments of shapes {', '.join(str(value.shape) for value in given) or 'none'}",
                why=f"the function was made for {', '.join(map(str, shapes))}", do="use jax.vmap for many points",
            )  # fmt: skip
        return function(*given)

    return update_wrapper(called, f)


class _Called:
    """One order of derivatives: a kernel, and the function of JAX that calls it."""

    def __init__(self, jax: Any, f: Function, examples: tuple[Any, ...]) -> None:
        kernel = compile(f, *examples)
        if len(kernel.declared.outputs) != 1 or kernel.unpack is not None or kernel.pack is not None:
            raise ArgumentError(
                f"{name_of(f)} for JAX", why="it takes or returns several arrays in a container",
                do="give a function of arrays that returns one",
            )  # fmt: skip
        self.jax, self.f, self.examples = jax, f, examples
        self.gufunc: Any = kernel.gufunc()
        self.shape: tuple[int, ...] = kernel.declared.outputs[0].shape
        self.function: Any = self._function()

    @cached_property
    def slopes(self) -> list[_Called]:
        """The Jacobians in each argument."""
        return [_Called(self.jax, jacobian(self.f, argnums=k), self.examples) for k in range(len(self.examples))]

    def _function(self) -> Any:
        jax, gufunc = self.jax, self.gufunc

        def evaluated(*args: Any) -> Any:
            result = gufunc(*map(np.asarray, args))
            return result.astype(args[0].dtype, copy=False)

        def called(*args: Any) -> Any:
            told = jax.ShapeDtypeStruct(self.shape, args[0].dtype)
            return jax.pure_callback(evaluated, told, *args, vmap_method="expand_dims")

        def tangent(primals: Any, tangents: Any) -> Any:
            along = sum(
                jax.numpy.tensordot(slope.function(*primals), t, axes=np.ndim(t))
                for slope, t in zip(self.slopes, tangents, strict=True)
            )
            return function(*primals), along

        function = jax.custom_jvp(called)
        function.defjvp(tangent)
        return function
