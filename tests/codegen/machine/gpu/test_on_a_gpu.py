"""Kernels on an NVIDIA GPU: bits of the processor's at many points, arrays of other libraries, streams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symad as sa
from codegen.machine.gpu.driver import has_driver
from tests.support.gpu_problems import CASES, chain
from tests.support.host_gpu import on_device, same

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not has_driver(), reason="no NVIDIA driver: it takes a GPU")]
COUNT = 100_003


@pytest.mark.parametrize("name", CASES)
def test_bits_are_those_of_a_batch(name: str) -> None:
    kernel = CASES[name].make()
    points = CASES[name].points(COUNT)
    assert same(kernel.gpu()(*points), kernel.batch(*points))


@pytest.mark.parametrize("name", CASES)
def test_results_on_the_gpu_are_the_same(name: str) -> None:
    kernel = CASES[name].make()
    points = CASES[name].points(1000)
    found = kernel.gpu()(*map(on_device, points))
    ours = tuple(map(np.asarray, found)) if isinstance(found, tuple) else np.asarray(found)
    assert same(ours, kernel.batch(*points))


@pytest.mark.parametrize("value", [0.0, -0.0, 1e-310, 1e300, np.inf, -np.inf, np.nan, 1e22, -2.0])
def test_bits_of_hard_arguments(value: float) -> None:
    kernel = CASES["functions"].make()
    points = np.random.default_rng(0).uniform(-1.0, 1.0, (99, 3))
    points[:, :] = np.where(np.arange(3) == np.arange(99)[:, None] % 3, value, points)
    assert same(kernel.gpu()(points), kernel.batch(points))


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_numbers(dtype: str) -> None:
    f = (lambda z: z * z[::-1] * 0.5) if dtype == "complex128" else sa.hessian(chain)
    example = np.linspace(0.2, 1.0, 5).astype(dtype)
    kernel = sa.compile(f, example, dtype=dtype)
    points = np.random.default_rng(1).normal(size=(COUNT, 5)).astype(dtype) * example
    assert same(kernel.gpu()(points), kernel.batch(points))


def cupy_way(gpu: Any, points: Any) -> Any:
    cupy = pytest.importorskip("cupy")
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        result = gpu(cupy.asarray(points) * 1.0, out=cupy.empty((len(points), 6, 6)), stream=stream)
        return cupy.asnumpy(result)


def torch_way(gpu: Any, points: Any) -> Any:
    torch = pytest.importorskip("torch")
    return torch.as_tensor(gpu(torch.tensor(points, device="cuda")), device="cuda").cpu().numpy()


def jax_way(gpu: Any, points: Any) -> Any:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    return np.asarray(jax.dlpack.from_dlpack(gpu(jax.numpy.asarray(points))))


def numba_way(gpu: Any, points: Any) -> Any:
    cuda = pytest.importorskip("numba.cuda")
    return cuda.as_cuda_array(gpu(cuda.to_device(points))).copy_to_host()


@pytest.mark.parametrize("way", [cupy_way, torch_way, jax_way, numba_way])
def test_arrays_of_other_libraries(way: Any) -> None:
    kernel = sa.compile(sa.hessian(chain), np.ones(6))
    points = np.random.default_rng(2).normal(size=(1000, 6))
    assert same(way(kernel.gpu(), points), kernel.batch(points))
