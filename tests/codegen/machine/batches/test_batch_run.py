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
from codegen.engine import compile_text
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
    monkeypatch.setattr(batch_run, "SLICE", 2e-7)


@pytest.fixture
def always_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches that threads share, whatever time they take."""
    monkeypatch.setattr(batch_run.Timing, "threads", lambda timing, count, most: most)


@pytest.fixture
def shares(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many threads share each slice."""
    found: list[int] = []
    run = batch_run.Task.run

    def counted(task: batch_run.Task, room: Any, first: int, count: int, threads: int = 1) -> None:
        found.append(threads)
        run(task, room, first, count, threads)

    monkeypatch.setattr(batch_run.Task, "run", counted)
    return found


def bits(results: Any) -> list[bytes]:
    return [np.ascontiguousarray(result).tobytes() for result in results]


@pytest.mark.usefixtures("short_slices", "always_shared")
def test_neither_slices_nor_threads_change_a_bit(kernel: Kernel) -> None:
    x = np.random.default_rng(1).normal(size=(1003, 3))
    want = bits(zip(*[kernel(point) for point in x], strict=True))
    for threads in (1, 2, 3, 7, 64):
        assert bits(kernel.batch(x, threads=threads)) == want
    for count in (1, 2, 9, 33):
        assert bits(kernel.batch(x[:count], threads=5)) == bits(kernel.batch(x[:count]))


@pytest.mark.usefixtures("always_shared")
def test_batches_at_once_share_points_too(kernel: Kernel) -> None:
    """Arrays that lie as before, with more blocks than threads, or fewer; what all points share is brought to each."""
    x = np.random.default_rng(2).normal(size=(300, 3))
    first = program_from_sympy([X, sp.Symbol("s")], [X[0] * sp.Symbol("s"), [X[1], X[2] + sp.Symbol("s")]])
    with_shared = compile_program(first, lanes=kernel.options.lanes)
    for count in (1, 9, 33, 300):
        want = bits(kernel.batch(x[:count]))
        scaled = bits(with_shared.batch(x[:count], 0.3))
        for threads in (1, 2, 3, 7, 64, 2, 1):
            assert bits(kernel.batch(x[:count], threads=threads)) == want
            assert bits(with_shared.batch(x[:count], 0.3, threads=threads)) == scaled
            assert bits(with_shared.batch(x[:count], np.full(count, 0.3), threads=threads)) == scaled


def test_threads_share_what_was_seen_to_take_its_time(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    timing = batch_run.Timing(1e6)
    assert timing.threads(10**9, 4) == 1  # an estimate says nothing
    timing.note(1000, 1e-6)
    assert (timing.nanoseconds, timing.threads(10**5, 4), timing.threads(10**9, 4)) == (1.0, 1, 4)
    for _ in range(3):
        timing.note(10**5, 200e-6)  # nothing is made slower by larger arrays, or other processes
    assert (timing.nanoseconds, timing.threads(39_000, 2), timing.threads(10**5, 8)) == (1.0, 1, 3)
    timing.note(100, 1.0)
    timing.note(10**5, 50e-6)
    assert timing.nanoseconds == 0.5
    for _ in range(100):
        timing.note(10**5, 50e-6)
    assert not timing.needs(10**5)
    assert timing.needs(10**6)


def test_the_first_batches_are_timed(kernel: Kernel, shares: list[int]) -> None:
    """On one thread; after that they are shared, or nothing is timed."""
    fresh = compile_program(kernel.program, lanes=kernel.options.lanes)
    x = np.ones((500, 3))
    fresh.batch(x, threads=2)
    code = fresh._batch._code
    assert shares == [1]
    assert code.timing.known
    noted = code.timing.nanoseconds
    code.timing.nanoseconds = 1e6  # half a second
    fresh.batch(x[:400], threads=2)
    assert set(shares[1:]) == {2}
    assert noted > 0
    assert code.timing.nanoseconds == 1e6


@pytest.mark.usefixtures("short_slices", "always_shared")
def test_no_more_threads_than_blocks(kernel: Kernel, shares: list[int]) -> None:
    kernel.batch(np.ones((3 * kernel.lanes, 3)), threads=50)
    assert max(shares) <= 3


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


FAILING = """
define i32 @kernel(ptr %in,ptr %out) {
 %x=load ptr,ptr %in
 %number=load double,ptr %x
 %late=fcmp ogt double %number,1.5e3
 %failed=zext i1 %late to i32
 ret i32 %failed
}
"""


@pytest.mark.usefixtures("always_shared")
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("count", [400, 3000])
def test_an_error_in_a_thread_is_raised(kernel: Kernel, threads: int, count: int) -> None:
    """In slices, and in batches at once."""
    library = compile_text(FAILING, ("kernel",), {}, 0)
    fails = compile_program(kernel.program, lanes=kernel.options.lanes)
    x = np.zeros((count, 3))
    fails.batch(x, threads=threads)
    fails._batch._code.address = library.addresses["kernel"]
    fails._batch._on_arrays = fails._batch.array_call()
    for _ in range(3):
        fails.batch(x, threads=threads)
        x[count // 16 * 8, 0] = x[count - 8, 0] = 2000.0  # the first points of blocks
        with pytest.raises(WorkspaceError):
            fails.batch(x, threads=threads)
        x[:] = 0.0


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
        rest, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    assert rest.split()[-1] == "interrupted"
