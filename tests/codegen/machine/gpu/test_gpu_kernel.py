"""Kernels on a GPU that is this machine's processor: bits, arrays, memory, refusals."""

from __future__ import annotations

import ctypes
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

import symad as sa
from codegen.errors import ArgumentError, DeviceError, LoweringError
from codegen.machine.gpu import driver, host_points
from codegen.machine.gpu.device_arrays import DeviceArray
from codegen.machine.gpu.gpu_kernel import GpuKernel, stream_number
from tests.support.gpu_problems import CASES, chain, several
from tests.support.host_gpu import HostDriver, host_gpu, on_device, same

__all__ = ["host_gpu"]


@pytest.mark.quick
@pytest.mark.parametrize("name", CASES)
@pytest.mark.thinned
def test_bits_are_those_of_a_batch(name: str, host_gpu: HostDriver) -> None:
    kernel = CASES[name].make()
    points = CASES[name].points(133)  # four whole warps, and a part of one
    assert same(kernel.gpu()(*points), kernel.batch(*points))
    assert host_gpu.depth == 0


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("count", [1, 31, 32, 33, 1000])
def test_numbers(dtype: str, count: int, host_gpu: HostDriver) -> None:
    f = (lambda z: z * z[::-1] * 0.5) if dtype == "complex128" else sa.hessian(chain)
    example = np.linspace(0.2, 1.0, 5).astype(dtype)
    kernel = sa.compile(f, example, dtype=dtype)
    points = np.random.default_rng(1).normal(size=(count, 5)).astype(dtype) * example
    assert same(kernel.gpu()(points), kernel.batch(points))


def test_points_go_in_parts(host_gpu: HostDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_points, "PART_BYTES", 4000)
    kernel = sa.compile(several, np.ones(3), np.ones(3))
    first, second = np.random.default_rng(2).normal(size=(301, 3)), np.arange(3.0)
    assert same(kernel.gpu()(first, second), kernel.batch(first, second))
    assert host_gpu.calls["cuLaunchKernel"] > 5
    assert host_gpu.calls["cuMemHostAlloc"] == 2 * 4  # an argument and three results, of two parts at once


def test_points_broadcast_and_have_any_step(host_gpu: HostDriver) -> None:
    kernel = sa.compile(several, np.ones(3), np.ones(3))
    first, second = np.random.default_rng(3).normal(size=(2, 40, 1, 3))
    for arguments in ((first, second[:5, 0]), (first[::-2], second[::-2]), (np.asfortranarray(first), second)):
        assert same(kernel.gpu()(*arguments), kernel.batch(*arguments))
    assert kernel.gpu()(first[:0], second[:0])[0].shape == (0, 1, 3, 3)


def test_results_go_into_arrays(host_gpu: HostDriver) -> None:
    kernel = sa.compile(sa.hessian(chain), np.ones(4))
    points = np.random.default_rng(4).normal(size=(50, 4))
    out = np.zeros((50, 8, 4))[:, ::2]
    assert kernel.gpu()(points, out=out) is out
    assert same(out, kernel.batch(points))


def test_arrays_stay_on_the_gpu(host_gpu: HostDriver) -> None:
    kernel = sa.compile(sa.hessian(chain), np.ones(4))
    points = np.random.default_rng(5).normal(size=(70, 4))
    gpu, given = kernel.gpu(), on_device(points)
    host_gpu.calls.clear()
    result = gpu(given)
    copied = host_gpu.calls["cuMemcpyHtoDAsync_v2"] + host_gpu.calls["cuMemcpyDtoHAsync_v2"]
    assert copied == 0
    assert isinstance(result, DeviceArray)
    assert (result.shape, result.dtype, result.ndim, result.size, len(result)) == ((70, 4, 4), np.float64, 3, 1120, 70)
    assert same(np.asarray(result), kernel.batch(points))
    assert gpu(given, out=result) is result


def test_arguments_of_both_kinds(host_gpu: HostDriver) -> None:
    kernel = sa.compile(several, np.ones(3), np.ones(3))
    first, second = np.random.default_rng(6).normal(size=(2, 20, 3))
    found = kernel.gpu()(on_device(first), second[0])
    assert same(tuple(map(np.asarray, found)), kernel.batch(first, second[0]))


class Other:
    """An array of another library, with what it says of itself."""

    def __init__(self, array: DeviceArray, **said: Any) -> None:
        self.array, self.said = array, said

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.array.__cuda_array_interface__ | self.said


def test_steps_of_others_are_followed(host_gpu: HostDriver) -> None:
    kernel = sa.compile(sa.hessian(chain), np.ones(4))
    points = np.random.default_rng(7).normal(size=(30, 6))
    given = Other(on_device(points), shape=(30, 4), strides=(48, 8), stream=None)
    assert same(np.asarray(kernel.gpu()(given)), kernel.batch(points[:, :4]))
    every_second = Other(on_device(points), shape=(15, 4), strides=(96, 8))
    assert same(np.asarray(kernel.gpu()(every_second)), kernel.batch(points[::2, :4]))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"strides": (8, 240)}, "the numbers of a point lie side by side"),
        ({"shape": (30, 3)}, "its last axes are not"),
        ({"typestr": "<f4"}, "the kernel computes in float64"),
        ({"mask": object()}, "kernels know no masks"),
        ({"stream": 0}, "the interface leaves open which one that is"),
    ],
)
def test_arrays_that_are_refused(said: dict[str, Any], message: str, host_gpu: HostDriver) -> None:
    gpu = sa.compile(sa.hessian(chain), np.ones(4)).gpu()
    given = on_device(np.ones((30, 4)))
    with pytest.raises(ArgumentError, match=message):
        gpu(Other(given, **said))


def test_results_that_are_refused(host_gpu: HostDriver) -> None:
    gpu = sa.compile(sa.hessian(chain), np.ones(4)).gpu()
    given, out = on_device(np.ones((30, 4))), on_device(np.ones((30, 4, 4)))
    for target, message in (
        (on_device(np.ones((29, 4, 4))), "the result is of shape"),
        (Other(out, data=(out.address, True)), "read-only"),
        (Other(given, shape=(30, 4, 4)), "it shares memory with"),
        (np.ones((30, 4, 4)), "ndarray: the work stays on the GPU"),
    ):
        with pytest.raises(ArgumentError, match=message):
            gpu(given, out=target)
    with pytest.raises(DeviceError, match=r"out\[0\], memory of a GPU"):
        gpu(given, out=Other(out, data=(64, False)))


def test_work_of_other_streams_is_waited_for(host_gpu: HostDriver) -> None:
    gpu = sa.compile(sa.hessian(chain), np.ones(4)).gpu()
    gpu(Other(on_device(np.ones((30, 4))), stream=77))
    assert host_gpu.calls["cuStreamWaitEvent"] == 1
    result = gpu(on_device(np.ones((30, 4))), stream=77)
    assert host_gpu.calls["cuStreamWaitEvent"] == 2  # the points were made on stream 0
    assert result.__cuda_array_interface__["stream"] == 77


def test_streams_of_others() -> None:
    class CuPy:
        ptr = 5

    class Torch:
        cuda_stream = 6

    class Numba:
        handle = ctypes.c_void_p(7)

    assert [stream_number(stream) for stream in (None, 3, CuPy(), Torch(), Numba())] == [0, 3, 5, 6, 7]
    with pytest.raises(ArgumentError, match="stream='main'"):
        stream_number("main")


def test_results_are_handed_over_by_dlpack(host_gpu: HostDriver) -> None:
    result = sa.compile(sa.hessian(chain), np.ones(4)).gpu()(on_device(np.ones((3, 4))))
    assert result.__dlpack_device__() == (2, 0)
    capsule = result.__dlpack__()
    assert "dltensor" in repr(capsule)
    del capsule  # nobody took it
    with pytest.raises(BufferError):
        result.__dlpack__(copy=True)


def test_memory_is_given_back(host_gpu: HostDriver) -> None:
    gpu = sa.compile(sa.hessian(chain), np.ones(4)).gpu()
    for _ in range(3):
        gpu(np.ones((10, 4)))
        gpu(on_device(np.ones((10, 4))))
    assert not host_gpu.memory
    del gpu
    assert not host_gpu.modules


def test_too_little_memory_is_told(host_gpu: HostDriver) -> None:
    gpu = sa.compile(sa.hessian(chain), np.ones(4)).gpu()
    given = on_device(np.ones((1000, 4)))
    host_gpu.limit = 100_000
    with pytest.raises(DeviceError, match=r"128000 bytes for results of 1000 points .*out of memory; ask for fewer"):
        gpu(given)


def test_code_for_another_gpu_is_refused(host_gpu: HostDriver) -> None:
    case = CASES["rolled"]
    gpu = case.make().gpu(arch="sm_90")
    host_gpu.shared = 32 << 10
    driver.device.cache_clear()
    with pytest.raises(DeviceError, match="bytes of shared memory, and it has 32768"):
        gpu(*case.points(3))


def test_many_threads(host_gpu: HostDriver) -> None:
    kernel = sa.compile(sa.hessian(chain), np.ones(4))
    gpu, points = kernel.gpu(), np.random.default_rng(8).normal(size=(40, 4))
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(gpu(points))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(same(one, kernel.batch(points)) for one in found)
    assert len(found) == 4


def test_containers(host_gpu: HostDriver) -> None:
    kernel = sa.compile(lambda p: {"a": p["w"] * 2.0, "b": np.sum(p["v"])}, {"w": np.ones(3), "v": np.ones(2)})
    points = {"w": np.random.default_rng(9).normal(size=(6, 3)), "v": np.ones(2)}
    ours, theirs = kernel.gpu()(points), kernel.batch(points)
    assert same(ours["a"], theirs["a"])
    assert same(ours["b"], theirs["b"])


def test_files_and_pickles(host_gpu: HostDriver, tmp_path: Path) -> None:
    kernel = sa.compile(sa.hessian(chain), np.ones(4))
    gpu = kernel.gpu()
    again: GpuKernel = pickle.loads(pickle.dumps(gpu))
    points = np.random.default_rng(10).normal(size=(9, 4))
    assert again.ptx == gpu.ptx
    assert same(again(points), gpu(points))
    gpu.save(tmp_path / "kernel.ptx")
    text = (tmp_path / "kernel.ptx").read_text()
    assert text.startswith(f"// {gpu!r}")
    assert text.endswith(gpu.ptx)
    assert gpu.resources == {"registers": 32, "local bytes": 0}
    with pytest.raises(ArgumentError, match="cannot write"):
        gpu.save(tmp_path / "nowhere" / "kernel.ptx")


def test_without_a_driver_kernels_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_found", lambda: (None, "libcuda.so.1: cannot open shared object file"))
    driver._library.cache_clear()
    gpu = sa.compile(sa.hessian(chain), np.ones(4)).gpu()
    assert gpu.architecture == "sm_70"
    assert ".target sm_70" in gpu.ptx
    with pytest.raises(
        DeviceError, match=r"no GPU: its driver is not there \(libcuda.*use kernel.batch, which runs on"
    ):
        gpu(np.ones((3, 4)))


def test_devices_that_are_not_there(host_gpu: HostDriver) -> None:
    with pytest.raises(DeviceError, match="device=3: there is 1 GPU"):
        sa.compile(chain, np.ones(4)).gpu(device=3)
    with pytest.raises(ArgumentError, match="arch='sm_12'; use one of sm_60"):
        sa.compile(chain, np.ones(4)).gpu(arch="sm_12")


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: special.gamma(x[0]) + special.jv(0, x[1]), "on a GPU: there is no formula for it; use kernel.batch"),
        (lambda x: np.cumsum(np.tile(x, 40_000))[::1000], "needs more than 65536 bytes of workspace"),
    ],
)
def test_what_a_gpu_has_not_is_refused(f: Any, message: str) -> None:
    kernel = sa.compile(f, np.ones(2))
    with pytest.raises(LoweringError, match=message):
        kernel.gpu(arch="sm_90")


@pytest.mark.parametrize("count", [1, 2, 33, 1000, 20_000])
def test_sums_over_points(count: int, host_gpu: HostDriver) -> None:
    kernel = sa.compile(several, np.ones(5), np.ones(5))
    first, second = np.random.default_rng(11).normal(size=(2, count, 5))
    ours = kernel.gpu().sum(first, second)
    for one, all_points in zip(ours, kernel.batch(first, second), strict=True):
        exact = np.sum(all_points.astype(np.longdouble), axis=0)
        assert one.shape == exact.shape
        assert np.all(np.abs(one - exact) <= 1e-15 * (2 + count**0.5) * np.sum(np.abs(all_points), axis=0))


def test_sums_do_not_depend_on_where_points_are(host_gpu: HostDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = sa.compile(sa.grad(chain), np.ones(4))
    points = np.random.default_rng(12).normal(size=(700, 4))
    gpu = kernel.gpu()
    here, there = gpu.sum(points), gpu.sum(on_device(points))
    assert isinstance(there, DeviceArray)
    assert same(np.asarray(there), here)
    monkeypatch.setattr(host_points, "SUMMED_BYTES", 3000)  # parts of 93 points
    assert np.allclose(gpu.sum(points), here, rtol=1e-13)


def test_no_points_have_no_sum(host_gpu: HostDriver) -> None:
    with pytest.raises(ArgumentError, match="no points: there is nothing to add up"):
        sa.compile(sa.grad(chain), np.ones(4)).gpu().sum(np.ones((0, 4)))
