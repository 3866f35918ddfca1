"""Many points: one native loop for the whole process that calls a kernel point by point."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from codegen.arguments import Array, pointers
from codegen.engine import Library, compile_text
from codegen.errors import ArgumentError, WorkspaceError
from codegen.program import Input

# Calls `kernel(pointers, pointers + n_in)` `count` times and then advances every pointer by its stride in bytes.
LOOP = """
define i32 @loop(ptr %kernel,ptr %pointers,ptr %strides,i64 %n.in,i64 %n,i64 %count) nounwind {
begin:
 %outputs=getelementptr ptr,ptr %pointers,i64 %n.in
 br label %point
point:
 %k=phi i64 [0,%begin],[%k1,%done]
 %more=icmp ult i64 %k,%count
 br i1 %more,label %call,label %end
call:
 %status=call i32 %kernel(ptr %pointers,ptr %outputs)
 %bad=icmp ne i32 %status,0
 br i1 %bad,label %fail,label %advance
advance:
 %j=phi i64 [0,%call],[%j1,%step]
 %left=icmp ult i64 %j,%n
 br i1 %left,label %step,label %done
step:
 %at=getelementptr ptr,ptr %pointers,i64 %j
 %stride.at=getelementptr i64,ptr %strides,i64 %j
 %stride=load i64,ptr %stride.at,align 8
 %old=load ptr,ptr %at,align 8
 %new=getelementptr i8,ptr %old,i64 %stride
 store ptr %new,ptr %at,align 8
 %j1=add i64 %j,1
 br label %advance
done:
 %k1=add i64 %k,1
 br label %point
end:
 ret i32 0
fail:
 ret i32 1
}
"""


@cache
def _library() -> tuple[Library, Any]:
    library = compile_text(LOOP, ("loop",), {}, 2)
    prototype = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3)
    return library, prototype(library.addresses["loop"])


def common_points(arrays: Sequence[Array], declared: Sequence[Input]) -> tuple[int, list[bool]]:
    """Return the number of points, and which arrays have none: they have the declared shape without a leading axis.

    ArgumentError for shapes that do not fit, or different numbers of points.

    >>> common_points([np.zeros((3, 2)), np.zeros(())], [Input("x", (2,)), Input("s", ())])
    (3, [False, True])
    """
    shared = [array.shape == given.shape for array, given in zip(arrays, declared, strict=True)]
    varying = [(array, given) for array, given, fixed in zip(arrays, declared, shared, strict=True) if not fixed]
    points = {array.shape[:1] for array, _ in varying}
    if len(points) != 1 or any(array.ndim == 0 or array.shape[1:] != given.shape for array, given in varying):
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ArgumentError(f"shapes {shapes}", why="they are not those of the inputs with one leading axis of points")
    return points.pop()[0], shared


def run_points(
    address: int, inputs: Sequence[Array], outputs: Sequence[Array], count: int, shared: Sequence[bool]
) -> None:
    """Run a kernel on `count` points, with the GIL released.

    Inputs and outputs are C-contiguous with a leading axis of length `count`, except the inputs marked in `shared`,
    which all points read. WorkspaceError if the kernel cannot allocate its workspace.

    >>> from codegen import compile_program, program_from_sympy
    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> kernel = compile_program(program_from_sympy([x], [x * x]))
    >>> result = np.empty(3)
    >>> run_points(kernel.address, [np.array([1.0, 2.0, 3.0])], [result], 3, [False])
    >>> result
    array([1., 4., 9.])
    """
    arrays = [*inputs, *outputs]
    steps = [0 if fixed else array.nbytes // max(count, 1) for fixed, array in zip(shared, inputs, strict=True)]
    steps += [array.nbytes // max(count, 1) for array in outputs]
    strides = np.array([*steps, 0], dtype=np.int64)
    _, loop = _library()
    if loop(address, pointers(arrays), strides.ctypes.data, len(inputs), len(arrays), count):
        raise WorkspaceError("a batch of points", why="no memory for the kernel's workspace")
