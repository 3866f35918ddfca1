"""Old public functions, each a line or two of new ones; `symad.old_names` says until when they work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

import symad.tracing.values.containers as containers
from codegen import Kernel
from symad.classroom.verification.enclose import enclose
from symad.derivatives.selection import FIRST, Argnums
from symad.transforms.first_order import grad
from symad.transforms.higher_order import laplacian, partials, taylor
from symad.transforms.linear_transforms import linearize, vjp

Function = Callable[..., Any]


def biharmonic(f: Function, argnums: Argnums = FIRST, **options: Any) -> Function:
    """Return the Laplacian of the Laplacian."""
    return laplacian(f, argnums, power=2, **options)


def derivative_along(f: Function, primals: Sequence[Any], tangents: Sequence[Any], order: int, **options: Any) -> Any:
    """Return the derivative of an order of t -> f(x + v t) at t = 0."""
    return partials(f, order, tuple(range(len(primals))), along=tangents, **options)(*primals)


def enclose_range(kernel: Kernel, box: Any, **options: Any) -> Any:
    """Return proven bounds of a kernel's exact results over a box."""
    return enclose(kernel, box=box, **options)


def hutchinson_trace(f: Function, x: Any, probes: Any, *, mode: str = "fwd") -> Any:
    """Return the mean of v . f'(x) v over the probes v."""
    _, apply = linearize(f, x) if mode == "fwd" else vjp(f, x)
    images = [apply(probe) if mode == "fwd" else apply(probe)[0] for probe in probes]
    mean = sum(np.sum(probe * image) for probe, image in zip(probes, images, strict=True)) / len(probes)
    return mean.item() if isinstance(mean, np.floating) else mean


def mixed_partials(f: Function, x: Any, order: int) -> Any:
    """Return all partial derivatives of one order by interpolation."""
    return partials(f, order, mode="interpolation")(x)


def sum_gradient(f: Function, argnums: Argnums = FIRST, **options: Any) -> Function:
    """Return the gradient of the sum of all elements of f's result."""

    @wraps(f)
    def total(*args: Any, **keywords: Any) -> Any:
        return sum(np.sum(leaf) for leaf in containers.flatten(f(*args, **keywords))[0])

    return grad(total, argnums, **options)


def taylor_polynomial(f: Function, x: Any, degree: int = 2, **options: Any) -> Any:
    """Return the full Taylor polynomial of f around x."""
    return taylor(f, (x,), None, degree, **options)


def vhv(f: Function, primals: Sequence[Any], tangents: Sequence[Any], **options: Any) -> Any:
    """Return v^T H v."""
    return derivative_along(f, primals, tangents, 2, **options)
