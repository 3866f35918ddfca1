"""Batches of arrays in one layout after the other, and of blocks: the bits of single calls, in any case."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import sympy as sp

import codegen.machine.batches.batch_run as batch_run
from codegen import ArgumentError, Kernel, compile_program, program_from_sympy

X = sp.symbols("x0:5")
S = sp.symbols("s")
RESULTS = [sp.exp(X[0]) / S, [X[k] * sp.sin(X[k + 1]) - S for k in range(4)]]


@pytest.fixture(scope="module", params=(1, 2, 4, 8))
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return compile_program(program_from_sympy([X, S], RESULTS), lanes=request.param)


def points(seed: int, count: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, 5)), rng.normal(size=count)


def singly(kernel: Kernel, x: Any, s: Any) -> list[bytes]:
    found = [kernel(*point) for point in zip(x, s, strict=True)]
    return [np.array([result[k] for result in found]).tobytes() for k in range(2)]


def bits(results: Any) -> list[bytes]:
    return [np.ascontiguousarray(result).tobytes() for result in results]


@pytest.mark.parametrize("count", [1, 7, 8, 9, 67])
def test_what_lies_alike_begins_at_once(kernel: Kernel, count: int) -> None:
    out = np.empty(count), np.empty((count, 4))
    for seed in range(4):
        x, s = points(seed, count)
        want = singly(kernel, x, s)
        assert bits(kernel.batch(x, s)) == want
        assert kernel.batch(x, s, out=out) is out
        assert bits(out) == want
        assert bits(kernel.batch(x, s, out=list(out))) == want
        assert bits(kernel.batch(x[::-1], s[::-1])) == bits(array[::-1] for array in kernel.batch(x, s))
        assert bits(kernel.batch(np.asfortranarray(x), s)) == want
        assert bits(kernel.batch(x, np.array(0.5))) == singly(kernel, x, np.full(count, 0.5))
    assert kernel._batch._on_arrays(x, s)[1].shape == (count, 4)


def test_shared_memory_is_seen_each_time(kernel: Kernel) -> None:
    """Arrays of the same shapes and steps may overlap one time and not the other."""
    x, s = points(1, 16)
    want = singly(kernel, x, s)
    for _ in range(3):
        memory = np.zeros(16 * 5 + 16 * 4)
        for begin in (0, 16, 64):  # where results are: 64 is in front of nothing that is read
            memory[: 16 * 5], out = x.ravel(), memory[begin : begin + 64].reshape(16, 4)
            if begin == 64:
                memory[:] = 0.0
                memory[64:] = x.ravel()
                out = memory[:64].reshape(16, 4)
            given = memory[64:].reshape(16, 5) if begin == 64 else memory[: 16 * 5].reshape(16, 5)
            assert bits(kernel.batch(given, s, out=(np.empty(16), out))) == want
        both = np.zeros(64)
        kernel.batch(x, s, out=(both[:16], both.reshape(16, 4)))
        assert both.tobytes() == want[1]


def test_results_that_may_not_be_written(kernel: Kernel) -> None:
    x, s = points(2, 8)
    out = np.empty(8), np.empty((8, 4))
    for _ in range(2):
        kernel.batch(x, s, out=out)
        out[1].flags.writeable = False
        with pytest.raises(ArgumentError, match="read-only"):
            kernel.batch(x, s, out=out)
        out[1].flags.writeable = True


def test_numbers_that_are_not_aligned(kernel: Kernel) -> None:
    x, s = points(3, 8)
    want = singly(kernel, x, s)
    for shift in (0, 1, 0, 8, 3):
        moved = np.zeros(x.nbytes + 16, dtype=np.int8)[shift : shift + x.nbytes].view(np.float64).reshape(x.shape)
        moved[...] = x
        assert bits(kernel.batch(moved, s)) == want


def test_one_layout_on_many_threads(kernel: Kernel) -> None:
    given = [points(seed, 40) for seed in range(16)]
    want = [singly(kernel, *each) for each in given]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            assert [bits(found) for found in pool.map(lambda each: kernel.batch(*each), given)] == want


@pytest.mark.parametrize("size", [0, 1 << 40])
def test_rows_by_way_of_the_nearest_cache(kernel: Kernel, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results may begin anywhere in a line, and nothing around them is written."""
    monkeypatch.setattr(batch_run, "COPIED", -1)
    monkeypatch.setattr(batch_run, "COPIED_LINES", size - 1)
    for count in (1, 8, 9, 67):
        x, s = points(count, count)
        want = singly(kernel, x, s)
        for shift in range(9):
            around = np.full(4 * count + 16, 7.0)
            out = around[shift : shift + 4 * count].reshape(count, 4)
            assert bits(kernel.batch(x, s, out=(np.empty(count), out))) == want
            out[...] = 7.0
            assert (around == 7.0).all()


@pytest.mark.parametrize("fetched", [0, 1 << 13])
def test_lines_that_are_fetched_before_they_are_written(
    kernel: Kernel, fetched: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the last block too, and nothing around them is written."""
    monkeypatch.setattr(batch_run, "FETCHED", fetched)
    for count in (515, 1037):
        x, s = points(count, count)
        want = singly(kernel, x, s)
        for shift in (0, 1, 2, 5):
            around = np.full(4 * count + 16, 7.0)
            out = around[shift : shift + 4 * count].reshape(count, 4)
            for _ in range(2):
                assert bits(kernel.batch(x, s, out=(np.empty(count), out))) == want
            out[...] = 7.0
            assert (around == 7.0).all()


def in_blocks(array: Any, width: int) -> Any:
    """Points side by side, as many as there are lanes."""
    return np.ascontiguousarray(np.moveaxis(array.reshape(-1, width, *array.shape[1:]), 1, -1))


@pytest.mark.parametrize("blocks", [1, 2, 9])
def test_blocks_have_the_bits_of_single_calls(kernel: Kernel, blocks: int) -> None:
    width = kernel.lanes
    x, s = points(blocks, blocks * width)
    want = [in_blocks(array, width).tobytes() for array in kernel.batch(x, s)]
    given = in_blocks(x, width), in_blocks(s, width)
    spaced = np.zeros((2 * blocks, 5, 3 * width))[::2, :, ::3]
    spaced[...] = given[0]
    out = np.empty((blocks, width)), np.empty((blocks, 4, width))
    room = np.empty((blocks, 4, 2 * width))
    for _ in range(2):
        assert [array.shape for array in kernel.batch(*given, layout="blocks")] == [array.shape for array in out]
        assert bits(kernel.batch(*given, layout="blocks")) == want
        assert bits(kernel.batch(*given, layout="blocks", out=out)) == want
        assert bits(kernel.batch(spaced, given[1], layout="blocks", out=(out[0], room[:, :, ::2]))) == want
        assert bits(kernel.batch(given[0], 0.5, layout="blocks")) == bits(
            kernel.batch(given[0], np.full_like(given[1], 0.5), layout="blocks")
        )
    memory = given[0].copy()
    found = kernel.batch(memory, given[1], layout="blocks", out=(out[0], memory[:, :4]))
    assert bits(found) == want
    assert (memory[:, 4] == given[0][:, 4]).all()


def test_blocks_of_other_numbers() -> None:
    single = compile_program(program_from_sympy([X, S], RESULTS), lanes=8, dtype="float32")
    x, s = (array.astype(np.float32) for array in points(4, 24))
    want = [in_blocks(array, 8).tobytes() for array in single.batch(x, s)]
    for given in (in_blocks(x, 8), in_blocks(x, 8).astype(np.float64), in_blocks(x, 8).tolist()):
        assert bits(single.batch(given, in_blocks(s, 8), layout="blocks")) == want


def test_blocks_on_threads(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_run, "FIRST_SLICE", 1e-9)
    monkeypatch.setattr(batch_run, "SLICE", 2e-6)
    x, s = points(5, 100 * kernel.lanes)
    want = [in_blocks(array, kernel.lanes).tobytes() for array in kernel.batch(x, s)]
    given = in_blocks(x, kernel.lanes), in_blocks(s, kernel.lanes)
    for threads in (1, 2, 7):
        assert bits(kernel.batch(*given, layout="blocks", threads=threads)) == want


def test_what_is_no_block_is_refused(kernel: Kernel) -> None:
    width = kernel.lanes
    x, s = np.ones((3, 5, width)), np.ones((3, width))
    with pytest.raises(ArgumentError, match=r"blocks have the shape \(blocks, 5, "):
        kernel.batch(np.ones((3, 5, width + 1)), s, layout="blocks")
    with pytest.raises(ArgumentError, match="they have 2 and 3"):
        kernel.batch(x, np.ones((2, width)), layout="blocks")
    with pytest.raises(ArgumentError, match="they have none"):
        kernel.batch(np.ones(5), 1.0, layout="blocks")
    with pytest.raises(ArgumentError, match="shape"):
        kernel.batch(x, s, layout="blocks", out=(np.empty((3, width)), np.empty((3, 4, width + 1))))
    with pytest.raises(ArgumentError, match="use one of points, blocks"):
        kernel.batch(x, s, layout="columns")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="1 arguments"):
        kernel.batch(x, layout="blocks")
    analytic = compile_program(program_from_sympy([X, S], RESULTS), lanes=width, dtype="complex128")
    with pytest.raises(ArgumentError, match="complex"):
        analytic.batch(x, s, layout="blocks")
    assert kernel.batch(np.ones((0, 5, width)), 1.0, layout="blocks")[1].shape == (0, 4, width)
