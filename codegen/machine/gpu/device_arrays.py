"""GPU arrays: other libraries' arrays are read in place, and they read results in place.

Both ways are the CUDA array interface, version 3
(https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html), which CuPy, PyTorch, JAX and Numba have; JAX
takes results by DLPack (https://dmlc.github.io/dlpack).
"""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any, NamedTuple

import numpy as np

from codegen.code_memory import python_function
from codegen.errors import ArgumentError
from codegen.machine.calls.arguments import Array
from codegen.machine.gpu.driver import Device, Memory, copy_out, device_of, wait
from codegen.records import dataclass

EMPTY = -1  # for the device of an array without elements
LEGACY = 1  # how the interface names the stream 0
GPU_MEMORY = 2  # how DLPack names memory of NVIDIA's GPUs
CODES = {"f": 2, "c": 5}  # how DLPack names kinds of numbers


class Place(NamedTuple):
    """Where an array's points are: an address, and the bytes from a point to the next."""

    address: int
    step: int


@dataclass(frozen=True, slots=True)
class View:
    """An array of a device as it describes itself; its numbers are never read here."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in bytes; None for C order
    dtype: str  # as the interface writes it
    device: int
    stream: int | None  # the numbers are there when the work of this stream is done
    read_only: bool
    owner: object  # kept, and with it the memory

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def bounds(self) -> tuple[int, int]:
        """The addresses of its first byte and behind its last one."""
        size = int(self.dtype[2:])
        if 0 in self.shape:
            return self.address, self.address
        if self.strides is None:
            return self.address, self.address + size * prod(self.shape)
        ends = [(length - 1) * step for length, step in zip(self.shape, self.strides, strict=True)]
        return self.address + sum(min(end, 0) for end in ends), self.address + size + sum(max(end, 0) for end in ends)

    def points(self, own: tuple[int, ...], leading: tuple[int, ...]) -> Place | None:
        """Return the places of its points; None where steps differ from point to point.

        A point has the shape `own`; None, too, where its numbers are not side by side.
        """
        axes, size = self.ndim - len(own), int(self.dtype[2:])
        if self.strides is None and (self.shape[:axes] == leading or axes == 0):
            return Place(self.address, size * prod(own) if axes else 0)
        described = {"shape": self.shape, "typestr": self.dtype, "data": (self.address, False),
                     "strides": self.strides, "version": 3}  # fmt: skip
        try:
            rows = np.asarray(_Described(described)).reshape(*self.shape[:axes], prod(own), copy=False)
            view = np.broadcast_to(rows, (*leading, prod(own))).reshape(prod(leading), prod(own), copy=False)
        except ValueError:
            return None
        if (prod(own) > 1 and view.strides[1] != size) or view.strides[0] < 0:
            return None
        return Place(view.__array_interface__["data"][0], view.strides[0])


class _Described:
    """What NumPy makes an array of without looking at its numbers."""

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface


def is_on_device(value: Any) -> bool:
    """Whether an argument is an array of a GPU."""
    return hasattr(type(value), "__cuda_array_interface__")  # of the type: making the interface takes a while


def view_of(value: Any, where: str) -> View:
    """Return an array of a GPU from its own description; ArgumentError for one that is not supported.

    `where` names the argument.
    """
    if isinstance(value, DeviceArray):
        return View(value.address, value.shape, None, value.dtype.str, value.device, value.stream, False, value)
    interface = value.__cuda_array_interface__
    if interface.get("mask") is not None:
        raise ArgumentError("a masked array", where=where, why="kernels know no masks", do="fill it first")
    (address, read_only), shape, stream = interface["data"], tuple(interface["shape"]), interface.get("stream")
    if stream == 0:
        raise ArgumentError("stream 0", where=where, why="the interface leaves open which one that is", do="use 1 or 2")
    strides = None if interface.get("strides") is None else tuple(interface["strides"])
    device = device_of(address, where) if prod(shape) else EMPTY
    stream = 0 if stream == LEGACY else stream
    return View(address, shape, strides, interface["typestr"], device, stream, read_only, value)


class DeviceArray:
    """A result in the memory of a GPU, in C order; `numpy.asarray` copies it, CuPy, PyTorch, JAX and Numba share it.

    It has `shape`, `dtype`, `ndim`, `size`, `nbytes` and `device` (a number). Work of `stream` may not be done yet:
    who takes the array by its interfaces waits for it.
    """

    __slots__ = ("dtype", "memory", "shape", "stream")

    memory: Memory
    stream: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __init__(self, memory: Memory, shape: tuple[int, ...], dtype: np.dtype[Any], stream: int) -> None:
        self.memory, self.stream, self.shape, self.dtype = memory, stream, shape, dtype

    @property
    def address(self) -> int:
        """Where its first element is."""
        return self.memory.address

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return self.size * self.dtype.itemsize

    @property
    def device(self) -> int:
        """Number of the GPU."""
        return self.memory.device.number

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False), "strides": None,
                "stream": self.stream or LEGACY, "version": 3}  # fmt: skip

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("an array of a GPU cannot be read without a copy")
        result = np.empty(self.shape, self.dtype)
        owner: Device = self.memory.device
        with owner.current():
            copy_out(result.ctypes.data, self.address, self.nbytes, self.stream)
            wait(self.stream)
        return result if dtype is None else result.astype(dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        return GPU_MEMORY, self.device

    def __dlpack__(self, *, stream: int | None = None, **options: Any) -> Any:
        """Return a capsule of DLPack; the work of this array's stream is waited for."""
        if options.get("dl_device") not in (None, self.__dlpack_device__()) or options.get("copy"):
            raise BufferError("the array is handed over where it is, without a copy")
        with self.memory.device.current():
            wait(self.stream)
        return _capsule(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array of no axes has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<DeviceArray of shape {self.shape}, {self.dtype}, on GPU {self.device}>"


class _Tensor(ctypes.Structure):
    """DLManagedTensor of dlpack.h."""


_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Tensor))
_Tensor._fields_ = [
    ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32), ("ndim", ctypes.c_int32),
    ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
    ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64),
    ("context", ctypes.c_void_p), ("deleter", _DELETER),
]  # fmt: skip

_HANDED_OVER: dict[
    int, Any
] = {}  # arrays in use by others until they call the deleter, by the address of the description
_NAME = b"dltensor"


def _delete(tensor: Any) -> None:
    """Drop an array that its taker released."""
    _HANDED_OVER.pop(ctypes.addressof(tensor.contents), None)


def _drop(capsule: int) -> None:
    """Drop an array whose capsule was never taken: it still has its first name."""
    if _is_valid(capsule, _NAME):
        _HANDED_OVER.pop(_pointer_of(capsule, _NAME), None)


_POINTER, _TEXT = ctypes.c_void_p, ctypes.c_char_p
_is_valid = python_function("PyCapsule_IsValid", ctypes.c_int, _POINTER, _TEXT)
_pointer_of = python_function("PyCapsule_GetPointer", _POINTER, _POINTER, _TEXT)
_new_capsule = python_function("PyCapsule_New", ctypes.py_object, _POINTER, _TEXT, _POINTER)
_deleter, _destructor = _DELETER(_delete), ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_drop)


def _capsule(array: DeviceArray) -> Any:
    shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    tensor = _Tensor(
        array.address, GPU_MEMORY, array.device, array.ndim, CODES[array.dtype.kind], 8 * array.dtype.itemsize,
        1, shape, None, 0, None, _deleter,
    )  # fmt: skip
    address = ctypes.addressof(tensor)
    _HANDED_OVER[address] = tensor, shape, array
    return _new_capsule(address, _NAME, _destructor)
