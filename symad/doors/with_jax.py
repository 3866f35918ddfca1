"""Kernels as JAX functions. Their derivatives of every order are kernels too.

XLA calls a kernel's machine code (a handler of its foreign function interface, `codegen.machine.calls.conventions`);
many points at once are a batch, for which it calls Python (`jax.pure_callback`). What JAX transposes is the product of
a Jacobian and a tangent; the Jacobian is a function of this kind again, which is compiled when it is first asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property, update_wrapper
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import numpy as np

from codegen.machine.calls.arguments import numbers_of
from codegen.machine.calls.conventions import HANDLER
from codegen.machine.calls.kernel import Kernel
from symad.compiling.native import compile
from symad.doors.flat_functions import FlattenedFunction, other_shapes
from symad.errors import ArgumentError
from symad.extras import optional
from symad.tracing.calling.function_names import check_call
from symad.transforms.first_order import jacobian

Function = Callable[..., Any]


def to_jax(f: Function, *examples: Any, calls: Literal["native", "python"] = "native") -> Function:
    """Return a function of JAX that evaluates f by a kernel, for arguments of the shapes of the examples.

    `jax.jit`, `vmap` (which is one batch of the kernel), `grad`, `jvp`, `jacobian` and `hessian` work on it as on any
    other, and mixed: f may be a part of what JAX differentiates. Arguments and results may be containers. JAX computes
    in float32 unless `jax_enable_x64` is set, and then hands over float32.

    XLA calls the kernel's machine code, which stays in memory until the process ends. In float32, on other devices than
    the processor, and for the points of a `vmap` it calls Python; with `calls="python"` it always does. ArgumentError
    without JAX (the extra `jax`), where its XLA has another interface, and for complex numbers.

    >>> import jax, symad as sa
    >>> jax.config.update("jax_enable_x64", True)
    >>> f = sa.to_jax(lambda x: np.sum(np.sin(x) * x[0]), np.zeros(2))
    >>> jax.grad(lambda x: f(2 * x) ** 2)(np.array([0.5, 0.0])).round(4)
    Array([4.6509, 3.3659], dtype=float64)
    """
    jax = optional("jax", "a function for JAX")
    check_call(f, examples)
    if calls not in ("native", "python"):
        raise ArgumentError(f"calls={calls!r}", do='use "native" or "python"')
    if calls == "native":
        _require_interface(jax)
    flat = FlattenedFunction(f, examples)
    given = tuple(numbers_of(example, "an example") for example in flat.leaves)
    shapes = tuple(map(np.shape, given))
    function = _Called(jax, flat.function, given, calls == "native", flat.kernel).function

    def called(*args: Any, **keywords: Any) -> Any:
        values = _floats(jax, flat.apart(args, keywords))
        if (told := tuple(value.shape for value in values)) != shapes:
            raise other_shapes(told, shapes, "use jax.vmap for many points")
        return flat.together(function(*values))

    return update_wrapper(called, f)


def _floats(jax: Any, given: Sequence[Any]) -> list[Any]:
    """Return arguments as JAX's arrays of the floats that JAX promotes them to. ArgumentError for complex numbers.

    Whole numbers have no tangents, so they become floats.
    """
    arrays = [
        value if isinstance(value, jax.Array) else numbers_of(value, f"argument {k}") for k, value in enumerate(given)
    ]
    for k, array in enumerate(arrays):
        if array.dtype.kind == "c":
            raise ArgumentError(
                f"argument {k} of dtype {array.dtype}", why="the function is one of real numbers", do="give x.real"
            )
    dtype = jax.numpy.result_type(float, *[value for value in given if isinstance(value, jax.Array | np.ndarray)])
    return [jax.numpy.asarray(array, dtype=dtype) for array in arrays]


def _require_interface(jax: Any) -> None:
    """Raise ArgumentError if XLA's call layout is not the one that kernels know."""
    header = Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h"
    major = re.search(r"define XLA_FFI_API_MAJOR (\d+)", header.read_text(encoding="utf-8"))
    if major is None or major[1] != "0":
        raise ArgumentError(
            f"calls from JAX {jax.__version__}",
            why=f"its XLA has version {major[1] if major else 'unknown'} of the foreign function interface, and not 0",
            do='to_jax(..., calls="python")',
        )


class _Called:
    """One order of derivatives: a kernel, and the JAX function that calls it."""

    def __init__(
        self, jax: Any, f: Function, examples: tuple[Any, ...], native: bool, kernel: Kernel | None = None
    ) -> None:
        kernel = compile(f, *examples) if kernel is None else kernel
        self.jax, self.f, self.examples, self.native = jax, f, examples, native
        self.gufunc: Any = kernel.gufunc()
        self.shape: tuple[int, ...] = kernel.declared.outputs[0].shape
        self.target = _registered(jax, kernel) if native else ""
        self.function: Any = self._function()

    @cached_property
    def slopes(self) -> list[_Called]:
        """The Jacobians in each argument."""
        numbers = range(len(self.examples))
        return [_Called(self.jax, jacobian(self.f, argnums=k), self.examples, self.native) for k in numbers]

    def _function(self) -> Any:
        jax = self.jax
        at_point = jax.custom_batching.custom_vmap(self._at_one_point)

        def many(size: int, moves: Sequence[bool], *args: Any) -> Any:
            points = [value if moved else value[None] for value, moved in zip(args, moves, strict=True)]
            return self._by_python(*points, lead=(size,)), True

        at_point.def_vmap(many)

        def called(*args: Any) -> Any:
            return at_point(*args)

        def tangent(primals: Any, tangents: Any) -> Any:
            along = sum(
                jax.numpy.tensordot(slope.function(*primals), t, axes=np.ndim(t))
                for slope, t in zip(self.slopes, tangents, strict=True)
            )
            return function(*primals), along

        function = jax.custom_jvp(called)
        function.defjvp(tangent)
        return jax.jit(function)

    def _at_one_point(self, *args: Any) -> Any:
        """The kernel's machine code for these numbers on this device, if there is any."""
        jax = self.jax
        if not self.native or any(value.dtype != np.float64 for value in args):
            return self._by_python(*args)
        by_xla = jax.ffi.ffi_call(self.target, jax.ShapeDtypeStruct(self.shape, np.float64))
        return jax.lax.platform_dependent(*args, cpu=by_xla, default=self._by_python)

    def _by_python(self, *args: Any, lead: tuple[int, ...] = ()) -> Any:
        told = self.jax.ShapeDtypeStruct(lead + self.shape, args[0].dtype)
        return self.jax.pure_callback(self._evaluated, told, *args, vmap_method="expand_dims")

    def _evaluated(self, *args: Any) -> Any:
        result = self.gufunc(*(np.asarray(value, dtype=float) for value in args))
        return result.astype(args[0].dtype, copy=False)


_REGISTERED: list[Any] = []  # XLA has their addresses, and never forgets them


def _registered(jax: Any, kernel: Any) -> str:
    """Return the name of a kernel in XLA, unique to this process, as others may load what XLA compiled."""
    name = f"symad_{uuid4().hex}"
    _REGISTERED.append(kernel.callback(HANDLER))
    jax.ffi.register_ffi_target(name, _REGISTERED[-1].capsule, platform="cpu")
    return name
