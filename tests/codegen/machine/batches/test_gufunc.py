"""Kernels as gufuncs: the bits of batches, through dask and xarray, in threads and in other processes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad as sa
from codegen import ArgumentError, compile_program, program_from_sympy

dask_array = pytest.importorskip("dask.array")
xarray = pytest.importorskip("xarray")

X, Y, K = sp.symbols("x y k")
RNG = np.random.default_rng(0)
POINTS, SCALES = RNG.normal(size=(1000, 2)), RNG.uniform(1.0, 2.0, size=1000)
KERNEL = compile_program(
    program_from_sympy([(X, Y), K], [K * sp.sqrt(X**2 + Y**2), sp.Matrix([[X * K, sp.sin(Y), X * Y]] * 2)], name="both")
)
GUFUNC = KERNEL.gufunc()
WANT = KERNEL.batch(POINTS, SCALES)


def test_it_says_what_it_takes() -> None:
    assert repr(GUFUNC) == "<Gufunc both (2),()->(),(2,3)>"
    assert GUFUNC.sizes == {"output_dtypes": [np.dtype("float64")] * 2, "output_sizes": {"3": 3}}
    assert [part.shape for part in GUFUNC(POINTS[0], 1.0)] == [(), (2, 3)]
    with pytest.raises(ArgumentError, match=r"its last axes are not \(2,\)"):
        GUFUNC(POINTS[:, :1], SCALES)
    single = sa.compile(lambda x: np.sum(x), np.zeros(3), dtype="float32").gufunc(threads=2)
    assert single.sizes == {"output_dtypes": np.dtype("float32"), "output_sizes": {}}
    with pytest.raises(ArgumentError, match="a gufunc of a kernel that takes or returns containers"):
        sa.compile(lambda p: p["a"], {"a": 1.0}).gufunc()


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
def test_dask_gives_the_bits_of_a_batch(scheduler: Any) -> None:
    points, scales = dask_array.from_array(POINTS, chunks=(300, 2)), dask_array.from_array(SCALES, chunks=300)
    found = dask_array.apply_gufunc(GUFUNC, GUFUNC.signature, points, scales, **GUFUNC.sizes)
    assert [part.shape for part in found] == [(1000,), (1000, 2, 3)]
    import dask  # noqa: PLC0415 - optional extra

    for part, want in zip(dask.compute(*found, scheduler=scheduler, num_workers=2), WANT, strict=True):
        assert part.tobytes() == want.tobytes()
    one = dask_array.apply_gufunc(GUFUNC, GUFUNC.signature, points, 2.0, **GUFUNC.sizes)[0]
    assert one.compute(scheduler=scheduler).tobytes() == KERNEL.batch(POINTS, 2.0)[0].tobytes()


def test_xarray_gives_the_bits_of_a_batch() -> None:
    points = xarray.DataArray(POINTS.reshape(10, 100, 2), dims=("run", "point", "axis")).chunk(run=3)
    scales = xarray.DataArray(SCALES[:100], dims=("point",))
    found = xarray.apply_ufunc(
        GUFUNC, points, scales, input_core_dims=[["axis"], []], output_core_dims=[[], ["row", "column"]],
        dask="parallelized", output_dtypes=[float, float], dask_gufunc_kwargs={"output_sizes": {"row": 2, "column": 3}},
    )  # fmt: skip
    want = KERNEL.batch(POINTS.reshape(10, 100, 2), SCALES[:100])
    assert [part.dims for part in found] == [("run", "point"), ("run", "point", "row", "column")]
    for part, array in zip(found, want, strict=True):
        assert part.compute().to_numpy().tobytes() == array.tobytes()


def test_a_process_compiles_it_once() -> None:
    data = pickle.dumps(GUFUNC)
    assert pickle.loads(data) is pickle.loads(data)
    assert pickle.loads(pickle.dumps(KERNEL.gufunc(threads=2))) is not pickle.loads(data)
    code = f"""
import pickle, numpy as np
again = [pickle.loads({data!r}) for _ in range(3)]
assert again[0] is again[1] is again[2]
print(again[0](np.array([3.0, 4.0]), 2.0)[0])
"""
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "10.0"
