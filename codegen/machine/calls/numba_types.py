"""Call a kernel inside `numba.njit` without Python.

This module needs numba, which imports it when it asks a kernel for its type (`Kernel._numba_type_`). A function whose
argument is a kernel can be cached (`cache=True`), because the address comes with the call; numba refuses to cache one
that uses a global kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, errors, types as numba_types, typing
from numba.core.imputils import lower_constant
from numba.extending import NativeValue, lower_builtin, models, register_model, unbox
from numba.np import arrayobj

from codegen.errors import ArgumentError
from codegen.ir.program import Declared
from codegen.lanes import NumberType

types: Any = numba_types
Shapes = tuple[tuple[int, ...], ...]


class KernelType(types.Callable):  # type: ignore[misc]
    """Kernels with arrays of these shapes."""

    def __init__(self, inputs: Shapes, outputs: Shapes) -> None:
        self.inputs, self.outputs = inputs, outputs
        super().__init__(name=f"Kernel({inputs} -> {outputs})")

    def get_call_type(self, context: Any, args: Sequence[Any], kws: Any) -> Any:
        """Return the types of a call; numba's TypingError where arguments do not fit."""
        if kws or len(args) != len(self.inputs):
            raise errors.TypingError(f"the kernel takes {len(self.inputs)} arguments by position")
        for k, (kind, shape) in enumerate(zip(args, self.inputs, strict=True)):
            if not _fits(kind, shape):
                expected = f"a C-contiguous array of float64 of shape {shape}" if shape else "a real number"
                raise errors.TypingError(f"argument {k} of the kernel is {expected}, and not {kind}")
        arguments = [kind if shape else types.float64 for kind, shape in zip(args, self.inputs, strict=True)]
        results = [types.Array(types.float64, len(shape), "C") if shape else types.float64 for shape in self.outputs]
        return typing.signature(results[0] if len(results) == 1 else types.Tuple(results), *arguments, recvr=self)

    def get_call_signatures(self) -> tuple[tuple[()], bool]:
        """Return none: they depend on the arguments."""
        return (), False

    def get_impl_key(self, sig: Any) -> Any:
        """Return the key under which the code of a call is registered."""
        return KernelType


def numba_type(program: Declared, number: NumberType, plain: bool) -> KernelType:
    """Return the type of a kernel; ArgumentError where it takes or gives containers, or others than float64."""
    if number.name != "float64" or not plain:
        numbers = "containers" if not plain else f"numbers of {number.name}"
        raise ArgumentError(f"a kernel with {numbers} in numba", do="compile it for numbers and arrays of float64")
    inputs = tuple(tuple(array.shape) for array in program.arguments)
    return KernelType(inputs, tuple(tuple(output.shape) for output in program.outputs))


def _fits(kind: Any, shape: tuple[int, ...]) -> bool:
    if not shape:
        return isinstance(kind, types.Integer | types.Float | types.Boolean)
    return isinstance(kind, types.Array) and (kind.ndim, kind.layout, kind.dtype) == (len(shape), "C", types.float64)


register_model(KernelType)(models.OpaqueModel)  # the address of its C function


@unbox(KernelType)  # type: ignore[untyped-decorator]
def _address(_: Any, kernel: Any, c: Any) -> Any:
    number = c.pyapi.object_getattr_string(kernel, "c_address")
    with cgutils.if_unlikely(c.builder, cgutils.is_null(c.builder, number)):
        c.builder.ret(c.pyapi.get_null_object())
    value = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    return NativeValue(value, is_error=c.pyapi.c_api_error())


@lower_constant(KernelType)  # type: ignore[untyped-decorator]
def _constant(context: Any, builder: Any, _: Any, kernel: Any) -> Any:
    return context.add_dynamic_addr(builder, kernel.c_address, info="kernel")


@lower_builtin(KernelType, KernelType, types.VarArg(types.Any))  # type: ignore[untyped-decorator]
def _called(context: Any, builder: Any, sig: Any, args: Sequence[Any]) -> Any:
    """Write the call down: pointers to numbers and arrays, results in room of their own."""
    kind, *arguments = sig.args
    pointers = []
    for k, (value, argument, shape) in enumerate(zip(args[1:], arguments, kind.inputs, strict=True)):
        if shape:
            pointers.append(
                _checked(context, builder, k, arrayobj.make_array(argument)(context, builder, value), shape)
            )
        else:
            pointers.append(cgutils.alloca_once_value(builder, value))
    returned = [sig.return_type] if len(kind.outputs) == 1 else list(sig.return_type)
    arrays = []
    for declared, shape in zip(returned, kind.outputs, strict=True):
        sizes = [context.get_constant(types.intp, size) for size in shape]
        array = arrayobj._empty_nd_impl(context, builder, declared, sizes) if shape else None
        arrays.append(array)
        pointers.append(cgutils.alloca_once(builder, ir.DoubleType()) if array is None else array.data)
    signature = ir.FunctionType(ir.IntType(32), [pointer.type for pointer in pointers])
    status = builder.call(builder.bitcast(args[0], signature.as_pointer()), pointers)
    with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, status)):
        context.call_conv.return_user_exc(builder, MemoryError, ("the workspace of a kernel",))
    room = pointers[len(arguments) :]
    results = [
        builder.load(place) if array is None else array._getvalue() for array, place in zip(arrays, room, strict=True)
    ]
    return results[0] if len(results) == 1 else context.make_tuple(builder, sig.return_type, results)


def _checked(context: Any, builder: Any, number: int, array: Any, shape: tuple[int, ...]) -> Any:
    """Return the pointer to the numbers of an array, after lines that check its shape."""
    for size, expected in zip(cgutils.unpack_tuple(builder, array.shape, len(shape)), shape, strict=True):
        different = builder.icmp_unsigned("!=", size, ir.Constant(size.type, expected))
        with cgutils.if_unlikely(builder, different):
            message = f"argument {number} of the kernel has not the shape {shape}"
            context.call_conv.return_user_exc(builder, ValueError, (message,))
    return array.data
