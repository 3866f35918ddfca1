"""A driver of a GPU that is this machine's processor: the IR that PTX was made of runs here, thread after thread.

It stands in for NVIDIA's library (`codegen.machine.gpu.driver`): memory of the "GPU" is memory here, full of NaN when
it is fresh, and every copy and launch is checked to stay within what was allocated. So all but PTX itself is tested
where there is no GPU, bit for bit; PTX is assembled by `ptxas`, and run where there is one (`benchmarks/gpu.py`).
"""

# ruff: noqa: N802, N815 - these are the driver's own names

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from codegen.engine import compile_text, device_assembly
from codegen.functions.symbols import addresses_of
from codegen.machine.gpu import driver, gpu_kernel, host_points
from codegen.machine.gpu.device_arrays import DeviceArray
from codegen.machine.gpu.device_entry import HEAD, TILE, filled

INVALID = 1
THREAD = """@thread=internal global [3 x i32] zeroinitializer
define internal i32 @own.ctaid.x() {
%p=getelementptr i32,ptr @thread,i64 0
%v=load i32,ptr %p
ret i32 %v
}
define internal i32 @own.ntid.x() {
%p=getelementptr i32,ptr @thread,i64 1
%v=load i32,ptr %p
ret i32 %v
}
define internal i32 @own.tid.x() {
%p=getelementptr i32,ptr @thread,i64 2
%v=load i32,ptr %p
ret i32 %v
}
"""
LAUNCH = """define i32 @launch(i32 %blocks,i32 %threads,ptr %table) {
start:
%pb=getelementptr i32,ptr @thread,i64 0
%ps=getelementptr i32,ptr @thread,i64 1
%pt=getelementptr i32,ptr @thread,i64 2
store i32 %threads,ptr %ps
LOADS
br label %blocks.next
blocks.next:
%b=phi i32 [0,%start],[%b1,%blocks.more]
store i32 %b,ptr %pb
br label %threads.next
threads.next:
%t=phi i32 [0,%blocks.next],[%t1,%threads.next]
store i32 %t,ptr %pt
call void @batch(ARGUMENTS)
%t1=add i32 %t,1
%tm=icmp ult i32 %t1,%threads
br i1 %tm,label %threads.next,label %blocks.more
blocks.more:
%b1=add i32 %b,1
%bm=icmp ult i32 %b1,%blocks
br i1 %bm,label %blocks.next,label %end
end:
ret i32 0
}
"""
# In the place of what a warp does together: each thread copies its own row.
FLUSH = """define internal void @flush.SIZE.PITCH.WIDTH.STRIDE(HEAD) {
begin:
%inside=icmp ult i64 %point,%count
br i1 %inside,label %copy,label %end
copy:
%row=mul i32 %lane,PITCH
%from=getelementptr SCALAR,ptr %tile,i32 %row
%skipped=mul i64 %point,%step
%into=getelementptr SCALAR,ptr %out,i64 %skipped
br label %next
next:
%j=phi i64 [0,%copy],[%then,%next]
%source=getelementptr SCALAR,ptr %from,i64 %j
%value=load SCALAR,ptr %source
%line=udiv i64 %j,WIDTH
%within=urem i64 %j,WIDTH
%down=mul i64 %line,STRIDE
%place=add i64 %down,%within
%target=getelementptr SCALAR,ptr %into,i64 %place
store SCALAR %value,ptr %target
%then=add i64 %j,1
%more=icmp ult i64 %then,SIZE
br i1 %more,label %next,label %end
end:
ret void
}"""
FLUSHES = re.compile(r"define internal void @flush\.([\d.]+)\(.*?\n}", re.DOTALL)


def flush_text(numbers: str, scalar: str) -> str:
    """Return the function `flush` of some numbers: size, pitch, width, stride."""
    named = dict(zip(("SIZE", "PITCH", "WIDTH", "STRIDE"), numbers.split("."), strict=True))
    return filled(FLUSH.replace("HEAD", HEAD), **named, SCALAR=scalar, BYTES=8)


def host_text(text: str, shared: int = 0) -> tuple[str, int]:
    """Return IR for a GPU as IR for this machine, whose `launch` runs all threads, and the number of parameters."""
    found = re.search(r"define ptx_kernel void @batch\(([^{]*)\) \{", text)
    assert found is not None
    kinds = ["ptr" if part.startswith("ptr") else "i64" for part in found[1].split(",")]
    loads = [f"%q{k}=getelementptr i64,ptr %table,i64 {k}\n%a{k}=load {kind},ptr %q{k}" for k, kind in enumerate(kinds)]
    arguments = ",".join(f"{kind} %a{k}" for k, kind in enumerate(kinds))
    scalar = "float" if "global [0 x float]" in text else "double"
    here = FLUSHES.sub(lambda each: flush_text(each[1], scalar), text)
    here = re.sub(r"(?m)^declare .*@llvm\.nvvm.*\n|^@tile=.*\n", "", here)
    here = here.replace("define ptx_kernel void", "define internal void").replace(TILE, "@tile")
    here = here.replace("llvm.nvvm.read.ptx.sreg.", "own.") + THREAD
    here += f"@tile=internal global [{max(shared, 1)} x i8] zeroinitializer,align 64\n"
    return here + LAUNCH.replace("LOADS", "\n".join(loads)).replace("ARGUMENTS", arguments), len(kinds)


class HostDriver:
    """The functions of the driver that are used, each with its result; `calls` counts them."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.memory: dict[int, np.ndarray[Any, Any]] = {}  # by address
        self.texts: dict[str, str] = {}  # IR by its PTX
        self.modules: dict[int, Any] = {}
        self.depth = 0  # of current contexts
        self.limit = 1 << 32  # bytes
        self.shared = 227 << 10

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("cu"):
            self.calls[name] += 1
        return super().__getattribute__(name)

    def assembly(self, text: str, architecture: str) -> str:
        """Return PTX, and remember what it was made of."""
        ptx = device_assembly(text, architecture)
        self.texts[ptx] = text
        return ptx

    def cuInit(self, flags: int) -> int:
        return 0

    def cuGetErrorString(self, result: int, said: Any) -> int:
        said._obj.value = {2: b"out of memory", INVALID: b"invalid argument"}.get(result, b"unknown error")
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = 1
        return 0

    def cuDeviceGet(self, handle: Any, number: int) -> int:
        handle._obj.value = number
        return 0

    def cuDeviceGetName(self, name: Any, size: int, handle: Any) -> int:
        name.value = b"this machine's processor"
        return 0

    def cuDeviceGetAttribute(self, value: Any, kind: int, handle: Any) -> int:
        value._obj.value = {driver.MAJOR: 9, driver.MINOR: 0, driver.PROCESSORS: 1, driver.SHARED: self.shared}[kind]
        return 0

    def cuDevicePrimaryCtxRetain(self, context: Any, handle: Any) -> int:
        context._obj.value = 1
        return 0

    def cuCtxPushCurrent_v2(self, context: Any) -> int:
        self.depth += 1
        return 0

    def cuCtxPopCurrent_v2(self, context: Any) -> int:
        self.depth -= 1
        return 0

    def cuMemAlloc_v2(self, address: Any, size: Any) -> int:
        if size.value + sum(array.nbytes for array in self.memory.values()) > self.limit:
            return driver.NO_MEMORY
        array = np.full(size.value, 0xFF, np.uint8)  # NaN, whatever the format
        address._obj.value = array.ctypes.data
        self.memory[array.ctypes.data] = array
        return 0

    def cuMemHostAlloc(self, address: Any, size: Any, flags: int) -> int:
        return self.cuMemAlloc_v2(address, size)

    def cuMemFree_v2(self, address: Any) -> int:
        return 0 if self.memory.pop(address.value, None) is not None else INVALID

    cuMemFreeHost = cuMemFree_v2

    def _inside(self, address: int, size: int) -> bool:
        return any(start <= address and address + size <= start + one.nbytes for start, one in self.memory.items())

    def cuMemcpyHtoDAsync_v2(self, target: Any, source: Any, size: Any, stream: Any) -> int:
        if not self.depth or not self._inside(target.value, size.value):
            return INVALID
        ctypes.memmove(target.value, source.value, size.value)
        return 0

    def cuMemcpyDtoHAsync_v2(self, target: Any, source: Any, size: Any, stream: Any) -> int:
        if not self.depth or not self._inside(source.value, size.value):
            return INVALID
        ctypes.memmove(target.value, source.value, size.value)
        return 0

    def cuPointerGetAttribute(self, value: Any, kind: int, address: Any) -> int:
        value._obj.value = 0
        return 0 if self._inside(address.value, 0) else INVALID

    def cuStreamCreate(self, handle: Any, flags: int) -> int:
        handle._obj.value = 1000 + self.calls["cuStreamCreate"]
        return 0

    def cuStreamDestroy_v2(self, handle: Any) -> int:
        return 0

    def cuStreamSynchronize(self, handle: Any) -> int:
        return 0

    def cuEventCreate(self, event: Any, flags: int) -> int:
        event._obj.value = 1
        return 0

    def cuEventRecord(self, event: Any, stream: Any) -> int:
        return 0

    def cuStreamWaitEvent(self, stream: Any, event: Any, flags: int) -> int:
        return 0

    def cuEventDestroy_v2(self, event: Any) -> int:
        return 0

    def cuModuleLoadDataEx(self, module: Any, ptx: Any, count: int, options: Any, values: Any) -> int:
        text, arrays = host_text(self.texts[ptx.value.decode()], 1 << 20)
        names = set(re.findall(r"(?m)^declare \w+ @([\w.]+)\(", text))
        library = compile_text(text, ("launch",), addresses_of(name for name in names if "llvm." not in name))
        number = self.calls["cuModuleLoadDataEx"]
        run = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
        self.modules[number] = library, run(library.addresses["launch"]), arrays
        module._obj.value = number
        return 0

    def cuModuleGetFunction(self, function: Any, module: Any, name: bytes) -> int:
        function._obj.value = module.value
        return 0

    def cuModuleUnload(self, module: Any) -> int:
        return 0 if self.modules.pop(module.value, None) is not None else INVALID

    def cuFuncSetAttribute(self, function: Any, kind: int, value: int) -> int:
        allowed = {driver.SHARED_BYTES: self.shared, driver.CARVEOUT: 100}[kind]
        return 0 if value <= allowed else INVALID

    def cuFuncGetAttribute(self, value: Any, kind: int, function: Any) -> int:
        value._obj.value = {driver.REGISTERS: 32, driver.LOCAL_BYTES: 0}[kind]
        return 0

    def cuLaunchKernel(self, function: Any, blocks: int, *rest: Any) -> int:
        threads, places = rest[2], rest[7]
        _, run, parameters = self.modules[function.value]
        table = (ctypes.c_uint64 * parameters)()
        for k in range(parameters):
            table[k] = ctypes.c_uint64.from_address(places[k]).value
        if not self.depth or not all(self._inside(table[k], 0) for k in range(1, parameters, 2)):
            return INVALID
        return int(run(blocks, threads, ctypes.addressof(table)))


def same(ours: Any, theirs: Any) -> bool:
    """Whether results have the same bits; all NaN are one."""
    pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
    return all(a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True) and _signs(a, b) for a, b in pairs)


def _signs(a: Any, b: Any) -> bool:
    return np.iscomplexobj(a) or bool(np.all((np.signbit(a) == np.signbit(b)) | np.isnan(a)))


def on_device(array: np.ndarray[Any, Any]) -> DeviceArray:
    """Return a copy of an array in the memory of the GPU."""
    owner = driver.device(0)
    memory = driver.Memory(owner, array.nbytes, "a test")
    with owner.current():
        driver.copy_in(memory.address, array.ctypes.data, array.nbytes, 0)
    return DeviceArray(memory, array.shape, array.dtype, 0)


@pytest.fixture
def host_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[HostDriver]:
    """Let this machine's processor be the GPU."""
    found = HostDriver()
    for name, value in (("_found", lambda: (found, "")), ("_library", lambda: found)):
        monkeypatch.setattr(driver, name, value)
    driver.device.cache_clear()
    for module in (gpu_kernel, host_points):
        monkeypatch.setattr(module, "device_assembly", found.assembly)
    yield found
    driver.device.cache_clear()
