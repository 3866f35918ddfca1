"""Threads, slices, progress and interruption of batches."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

import codegen.machine.batches.batch_run as batch_run
from codegen import Kernel, compile_program, program_from_sympy
from codegen.errors import WorkspaceError

X = sp.symbols("x0:3")
LANES = (1, 4, 8)


@pytest.fixture(scope="module", params=LANES)
def kernel(request: pytest.FixtureRequest) -> Kernel:
    program = program_from_sympy([X], [sp.sin(X[0]) * X[1] - X[2] ** 3, [X[2] / X[1], X[0]]])
    return compile_program(program, lanes=request.param)


@pytest.fixture
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices that begin with one point and stay short."""
    monkeypatch.setattr(batch_run, "FIRST_SLICE", 1e-12)
    monkeypatch.setattr(batch_run, "SLICE", 2e-5)


def bits(results: Any) -> list[bytes]:
    return [np.ascontiguousarray(result).tobytes() for result in results]


@pytest.mark.usefixtures("short_slices")
def test_neither_slices_nor_threads_change_a_bit(kernel: Kernel) -> None:
    x = np.random.default_rng(1).normal(size=(1003, 3))
    want = bits(zip(*[kernel(point) for point in x], strict=True))
    for threads in (1, 2, 3, 7, 64):
        assert bits(kernel.batch(x, threads=threads)) == want
    for count in (1, 2, 9, 33):
        assert bits(kernel.batch(x[:count], threads=5)) == bits(kernel.batch(x[:count]))


def test_what_is_brought_into_lanes_is_work_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few operations for so many numbers: threads share what takes more than a millisecond."""
    started = []
    begin = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda thread: (started.append(thread), begin(thread))[1])
    copies = compile_program(program_from_sympy([X], [[X[k % 3] * 2 for k in range(200)]]), lanes=4)
    for points, others in ((100, 0), (20_000, 1)):
        started.clear()
        copies.batch(np.ones((points, 3)), threads=2)
        assert len(started) == others


@pytest.mark.usefixtures("short_slices")
def test_no_more_threads_than_blocks(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    begin = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda thread: (started.append(thread), begin(thread))[1])
    kernel.batch(np.ones((3 * kernel.lanes, 3)), threads=50)
    assert len(started) == 2  # the third share is the caller's
    assert not any(thread.is_alive() for thread in started)


@pytest.mark.usefixtures("short_slices")
@pytest.mark.parametrize("threads", [1, 3])
def test_progress_grows_to_the_end(kernel: Kernel, threads: int) -> None:
    seen: list[tuple[int, int]] = []
    kernel.batch(np.ones((2000, 3)), threads=threads, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (2000, 2000)
    assert len(seen) > 3
    assert all(first[0] <= second[0] for first, second in pairwise(seen))
    assert {total for _, total in seen} == {2000}


def test_progress_of_a_short_batch(kernel: Kernel) -> None:
    seen: list[tuple[int, int]] = []
    kernel.batch(np.ones((5, 3)), progress=lambda done, total: seen.append((done, total)))
    kernel.batch(np.ones((0, 3)), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(5, 5)]


@pytest.mark.usefixtures("short_slices")
@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_in_progress_stops_the_work(kernel: Kernel, threads: int) -> None:
    before = threading.active_count()

    def stop(done: int, total: int) -> None:
        raise LookupError("enough")

    out = (np.full(10**5, np.nan), np.full((10**5, 2), np.nan))
    with pytest.raises(LookupError, match="enough"):
        kernel.batch(np.ones((10**5, 3)), threads=threads, progress=stop, out=out)
    assert threading.active_count() == before
    assert np.isnan(out[0]).any()


@pytest.mark.usefixtures("short_slices")
@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_in_a_thread_is_raised(kernel: Kernel, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run = batch_run.Task.run

    def fail(task: batch_run.Task, buffer: Any, first: int, count: int) -> None:
        if first + count > 1500:
            raise WorkspaceError("a batch", why="no memory")
        run(task, buffer, first, count)

    monkeypatch.setattr(batch_run.Task, "run", fail)
    with pytest.raises(WorkspaceError):
        kernel.batch(np.ones((2000, 3)), threads=threads)


INTERRUPTED = """
import signal, sys
import numpy as np, sympy as sp
from codegen import compile_program, program_from_sympy

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what is in the background without it
x = sp.symbols("x0:3")
kernel = compile_program(program_from_sympy([x], [sum(sp.sin(k * x[k % 3]) for k in range(1, 300))]))
points = np.broadcast_to(np.ones(3), (10**9, 3))[: 10**7]  # minutes of work
try:
    kernel.batch(points, threads=int(sys.argv[1]), progress=lambda done, total: print(done, flush=True))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_stops_all_threads(threads: int) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(threads)]
    folder = Path(__file__).parents[4]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) > 0
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert rest.split()[-1] == "interrupted"
