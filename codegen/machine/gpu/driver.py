"""NVIDIA's driver: devices, memory, modules, streams. The only file that calls it, by ctypes.

A device is used in its primary context, which CuPy, PyTorch, JAX and Numba share, so that their arrays are in reach;
the thread's context is what it was before when a call returns.
"""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from codegen.errors import DeviceError
from codegen.gpu_architectures import ARCHITECTURES
from codegen.records import dataclass

LIBRARIES: dict[str, tuple[str, ...]] = {
    "win32": ("nvcuda.dll",),
    "linux": ("/usr/lib/wsl/lib/libcuda.so.1", "libcuda.so.1"),
}
ELSEWHERE = "use kernel.batch, which runs on this machine's processor"
CLOCK, PROCESSORS, MAJOR, MINOR, SHARED = 13, 16, 75, 76, 97  # attributes of a device
REGISTERS, LOCAL_BYTES, SHARED_BYTES, CARVEOUT = 4, 3, 8, 9  # attributes of a function
SMALL_TILE, SHARE = 24 << 10, 40  # bytes of a warp up to which tiles get this percentage, and caches the rest
POINTS_TO = 9  # attribute of a pointer: the device whose memory it points to
WARP, THREADS, MOST_BLOCKS = 32, 128, 2**31 - 1  # threads that go together, in a block at most; blocks of a launch
GRANTED = 48 << 10  # bytes of shared memory that a block has without being asked
LOG_BYTES = 4096  # of the driver's message on a refused module
LOG, LOG_SIZE = 5, 6  # options of a module
NO_MEMORY, DEINITIALIZED = 2, 4  # results of calls

Pointer = ctypes.c_uint64


@cache
def _found() -> tuple[Any, str]:
    """The driver's library, or why there is none."""
    why = f"NVIDIA has no driver for {sys.platform}"
    for name in LIBRARIES.get(sys.platform, ()):
        try:
            return ctypes.CDLL(name), ""
        except OSError as error:
            why = str(error)
    return None, why


def has_driver() -> bool:
    """Whether there is a driver to be asked."""
    return _found()[0] is not None


@cache
def _library() -> Any:
    """The driver's library, initialised; DeviceError where there is none."""
    library, why = _found()
    if library is None:
        raise DeviceError("no GPU", why=f"its driver is not there ({why})", do=ELSEWHERE)
    _check(library, library.cuInit(0), "starting NVIDIA's driver")
    return library


def _check(library: Any, result: int, task: str) -> None:
    """Raise DeviceError, with the driver's own words, where a call did not succeed."""
    if not result:
        return
    said = ctypes.c_char_p()
    known = not library.cuGetErrorString(result, ctypes.byref(said)) and said.value
    why = said.value.decode() if known and said.value else f"result {result}"
    do = "ask for fewer points at once" if result == NO_MEMORY else ELSEWHERE
    raise DeviceError(task, why=why, do=do)


def call(name: str, *arguments: Any, task: str = "") -> None:
    """Call a function of the driver; DeviceError names the task."""
    library = _library()
    _check(library, getattr(library, name)(*arguments), task or name)


def devices() -> int:
    """Number of GPUs that the driver knows; DeviceError where there is no driver."""
    count = ctypes.c_int()
    call("cuDeviceGetCount", ctypes.byref(count), task="counting the GPUs")
    return count.value


@dataclass(frozen=True)
class Device:
    """A GPU: its number, name, architecture, multiprocessors, shared memory of a block, and context."""

    number: int
    name: str
    architecture: str
    processors: int
    shared: int
    context: int

    @contextmanager
    def current(self) -> Iterator[None]:
        """Be the device of this thread for a while."""
        call("cuCtxPushCurrent_v2", ctypes.c_void_p(self.context))
        try:
            yield
        finally:
            call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


@cache
def device(number: int) -> Device:
    """Return a GPU by its number; DeviceError where there is none. Its context is kept for the life of the process."""
    count = devices()
    if not 0 <= number < count:
        there = "there is 1 GPU" if count == 1 else f"there are {count} GPUs"
        raise DeviceError(f"device={number}", why=there, do="count from 0")
    handle, context = ctypes.c_int(), ctypes.c_void_p()
    call("cuDeviceGet", ctypes.byref(handle), number)
    name = ctypes.create_string_buffer(100)
    call("cuDeviceGetName", name, len(name), handle)
    major, minor, processors, shared = (_attribute(kind, handle) for kind in (MAJOR, MINOR, PROCESSORS, SHARED))
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle, task="opening the GPU")
    architecture = newest_for(major, minor)
    return Device(number, name.value.decode(), architecture, processors, shared, context.value or 0)


def clock(number: int) -> int:
    """Return the highest clock of a GPU, in kilohertz."""
    handle = ctypes.c_int()
    call("cuDeviceGet", ctypes.byref(handle), number)
    return _attribute(CLOCK, handle)


def _attribute(kind: int, handle: ctypes.c_int) -> int:
    value = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(value), kind, handle)
    return value.value


def newest_for(major: int, minor: int) -> str:
    """Return the newest known architecture whose code a GPU of a compute capability runs; DeviceError for none.

    >>> newest_for(9, 0), newest_for(8, 8), newest_for(20, 0)
    ('sm_90', 'sm_87', 'sm_120')
    """
    own = 10 * major + minor
    fitting = [name for name in ARCHITECTURES if int(name.removeprefix("sm_")) <= own]
    if not fitting:
        raise DeviceError(f"a GPU of compute capability {major}.{minor}", why="it is too old", do=ELSEWHERE)
    return fitting[-1]


class _Held:
    """Something of a device that is released when the object dies."""

    __slots__ = ("__weakref__", "address", "device")

    device: Device

    def __init__(self, owner: Device, names: tuple[str, str], *arguments: Any, task: str = "") -> None:
        """Call the first function of the driver, whose result the second one releases."""
        make, release = names
        address = Pointer()
        self.device = owner
        with owner.current():
            call(make, ctypes.byref(address), *arguments, task=task)
        self.address: int = address.value
        weakref.finalize(self, _released, _library(), owner, release, address)


class Memory(_Held):
    """Memory of a device, of this process until the object dies."""

    __slots__ = ()

    def __init__(self, owner: Device, size: int, use: str) -> None:
        names = "cuMemAlloc_v2", "cuMemFree_v2"
        super().__init__(owner, names, ctypes.c_size_t(max(size, 1)), task=f"{size} bytes for {use}")


class Pinned(_Held):
    """Memory of this machine that a device copies to and from while the processor goes on."""

    __slots__ = ()

    def __init__(self, owner: Device, size: int) -> None:
        names = "cuMemHostAlloc", "cuMemFreeHost"
        super().__init__(owner, names, ctypes.c_size_t(max(size, 1)), 0, task=f"{size} pinned bytes")


class Stream(_Held):
    """A queue of work of a device."""

    __slots__ = ()

    def __init__(self, owner: Device) -> None:
        super().__init__(owner, ("cuStreamCreate", "cuStreamDestroy_v2"), 0)


class Module:
    """Machine code of one function on a device, made of PTX by the driver."""

    __slots__ = ("__weakref__", "device", "function", "shared", "threads")

    device: Device
    threads: int
    shared: int

    def __init__(self, owner: Device, ptx: str, entry: str, shared: int = 0) -> None:
        """Load PTX; each warp of the function's threads has `shared` bytes of shared memory."""
        warps = min(THREADS // WARP, owner.shared // shared) if shared else THREADS // WARP
        if not warps:
            why = f"its points need {shared} bytes of shared memory, and it has {owner.shared}"
            raise DeviceError(f"{owner.name}: code for another GPU", why=why, do="write the kernel for this one: gpu()")
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.device, self.threads, self.shared = owner, WARP * warps, shared * warps
        log = ctypes.create_string_buffer(LOG_BYTES)
        options = (ctypes.c_int * 2)(LOG, LOG_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), LOG_BYTES)
        with owner.current():
            try:
                text = ctypes.c_char_p(ptx.encode())
                call("cuModuleLoadDataEx", ctypes.byref(module), text, 2, options, values, task="PTX for this GPU")
            except DeviceError as error:
                said = log.value.decode(errors="replace").strip()
                raise DeviceError(error.what, why=f"{error.why} {said}".strip(), do=error.do) from None
            weakref.finalize(self, _released, _library(), owner, "cuModuleUnload", module)
            call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
            if self.shared > GRANTED:
                call("cuFuncSetAttribute", function, SHARED_BYTES, self.shared, task="shared memory of the GPU")
            if shared <= SMALL_TILE:
                call("cuFuncSetAttribute", function, CARVEOUT, SHARE, task="shared memory of the GPU")
        self.function: int = function.value or 0

    def attribute(self, kind: int) -> int:
        """Return an attribute of the function."""
        value = ctypes.c_int()
        with self.device.current():
            call("cuFuncGetAttribute", ctypes.byref(value), kind, ctypes.c_void_p(self.function))
        return value.value

    def launch(self, count: int, places: Sequence[tuple[int, int]], stream: int, task: str) -> None:
        """Start the function on many points: addresses and steps of all arrays; the context must be current."""
        numbers = [ctypes.c_uint64(number) for number in (count, *(part for place in places for part in place))]
        table = (ctypes.c_void_p * len(numbers))(*map(ctypes.addressof, numbers))
        blocks = -(-count // self.threads)
        if blocks > MOST_BLOCKS:
            raise DeviceError(task, why="a GPU starts at most 2**31 blocks of threads", do="call it with fewer points")
        grid = (blocks, 1, 1, self.threads, 1, 1, self.shared)
        call("cuLaunchKernel", ctypes.c_void_p(self.function), *grid, ctypes.c_void_p(stream), table, None, task=task)


def _released(library: Any, owner: Device, name: str, handle: Any) -> None:
    """Release a handle in a finalizer: errors cannot be reported there, and the end of a process releases all."""
    if library.cuCtxPushCurrent_v2(ctypes.c_void_p(owner.context)):
        return
    getattr(library, name)(handle)
    library.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


def copy_in(target: int, source: int, size: int, stream: int) -> None:
    """Copy to the current device, in the order of a stream."""
    call("cuMemcpyHtoDAsync_v2", Pointer(target), ctypes.c_void_p(source), ctypes.c_size_t(size),
         ctypes.c_void_p(stream), task="copying to the GPU")  # fmt: skip


def copy_out(target: int, source: int, size: int, stream: int) -> None:
    """Copy from the current device, in the order of a stream."""
    call("cuMemcpyDtoHAsync_v2", ctypes.c_void_p(target), Pointer(source), ctypes.c_size_t(size),
         ctypes.c_void_p(stream), task="copying from the GPU")  # fmt: skip


def wait(stream: int) -> None:
    """Wait for all work of a stream: this is where a failure of a kernel is told."""
    call("cuStreamSynchronize", ctypes.c_void_p(stream), task="work on the GPU")


def wait_for(stream: int, other: int) -> None:
    """Make later work of a stream wait for the present work of another one."""
    if stream == other:
        return
    event = ctypes.c_void_p()
    call("cuEventCreate", ctypes.byref(event), 2)
    call("cuEventRecord", event, ctypes.c_void_p(other))
    call("cuStreamWaitEvent", ctypes.c_void_p(stream), event, 0)
    call("cuEventDestroy_v2", event)


def device_of(address: int, where: str) -> int:
    """Return the number of the device whose memory is at an address; DeviceError for memory of no device."""
    number = ctypes.c_int()
    call("cuPointerGetAttribute", ctypes.byref(number), POINTS_TO, Pointer(address), task=f"{where}, memory of a GPU")
    return number.value
