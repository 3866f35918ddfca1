"""Kernels in PyTensor's numba mode: machine code calls machine code.

This module needs numba: it is imported when an Op of PyTensor is made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload


def register(dispatch: Any, op_type: type) -> None:
    """Tell PyTensor how numba calls the kernel of an Op."""

    def funcify(op: Any, node: Any = None, **options: Any) -> Any:
        kernel = op.order.kernel

        @dispatch.numba_njit  # type: ignore[untyped-decorator]
        def called(*inputs: Any) -> Any:
            return as_results(kernel(*as_arguments(inputs)))

        return called

    dispatch.numba_funcify.register(op_type)(funcify)


def as_arguments(inputs: Any) -> Any:
    """Return the numbers of arrays without axes, and contiguous arrays."""
    raise NotImplementedError("it runs inside of numba")


def as_results(values: Any) -> Any:
    """Return arrays of numbers, and arrays as they are."""
    raise NotImplementedError("it runs inside of numba")


@overload(as_arguments)
def _as_arguments(inputs):  # type: ignore[no-untyped-def]  # numba compares signatures
    if len(inputs) == 0:
        return lambda inputs: ()
    if inputs[0].ndim:
        return lambda inputs: (np.ascontiguousarray(inputs[0]), *as_arguments(inputs[1:]))
    return lambda inputs: (inputs[0].item(), *as_arguments(inputs[1:]))


@overload(as_results)
def _as_results(values):  # type: ignore[no-untyped-def]
    if not hasattr(values, "count"):
        return lambda values: np.asarray(values)
    if values.count == 1:
        return lambda values: (np.asarray(values[0]),)
    return lambda values: (np.asarray(values[0]), *as_results(values[1:]))
