"""Kernels compiled, called, dropped in reference cycles and collected from 8 threads, under a watchdog.

Each try is a process of its own: a deadlock, told by the stacks of all threads, ends it, and so does a crash.
"""

from __future__ import annotations

import faulthandler
import gc
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sized
from functools import partial
from itertools import count
from pathlib import Path
from random import Random, getrandbits
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import sympy as sp

from codegen import compile_program, program_from_sympy
from codegen.ir.program import Program

ROOT = Path(__file__).parents[2]
SECONDS = 10.0  # of one try
THREADS = 8
PATIENCE = 30.0  # seconds without a kernel after which nothing will come
POINT = np.linspace(0.25, 0.75, 3)
X = sp.symbols("x:3", real=True)
HEADS = (sp.sin, sp.cos, sp.exp, sp.tanh, sp.sqrt, sp.log, sp.atan)


class Node:
    """What holds a kernel and itself, so that only the collector finds it."""

    def __init__(self, kernel: Any) -> None:
        self.itself, self.kernel, self.adapter = self, kernel, None


def programs() -> list[tuple[Program, float]]:
    """Return 49 tiny programs with their values at POINT."""
    at = dict(zip(X, map(sp.Float, POINT), strict=True))
    made = [outer(2 + X[0] + inner(1 + X[1] * X[2])) for outer in HEADS for inner in HEADS]
    return [(program_from_sympy([X], [formula]), float(formula.subs(at).evalf(30))) for formula in made]


def work(random: Random, until: float, done: Callable[[None], None], wrong: list[str]) -> None:
    """Compile, call, drop and collect until the time is over."""
    try:
        table = programs()
        while time.monotonic() < until and not wrong:
            wrong += _one(random, *random.choice(table))
            done(None)
    except Exception as error:
        wrong.append(repr(error))
        raise


def _one(random: Random, program: Program, value: float) -> list[str]:
    """Compile, call and drop a kernel; return what was wrong."""
    kernel = compile_program(program, tier=random.choice(("fast", "fast", "default", "auto")))
    node = Node(kernel)
    if random.random() < 0.2:
        node.adapter = kernel.low_level_callable()
    results = [kernel(POINT), *kernel.batch(np.stack([POINT] * 3))]
    del node, kernel
    if random.random() < 0.1:
        gc.collect()
    return [] if np.allclose(results, value, rtol=1e-13) else [f"{program.name}: {results} instead of {value}"]


def _collect() -> None:
    """What the collector does where it pleases, inside llvmlite's lock too: one of eight calls, this makes it do."""
    if not getrandbits(3):
        gc.collect(0)


def _nothing() -> None:
    """What is to be done when the lock is given back."""


def tries(seed: int) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield tries of SECONDS each, with seeds from `seed` on."""
    for number in count(seed):
        yield f"{THREADS} threads, seed {number}", partial(_alone, number)


def _alone(seed: int) -> str:
    command = [sys.executable, "-m", "tests.support.kernel_threads", str(SECONDS), str(seed)]
    limit = SECONDS + 4 * PATIENCE
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=limit)
    assert not done.returncode, f"exit status {done.returncode}: {done.stdout}{done.stderr}"
    return "right"


def collected(seconds: float, seed: int) -> tuple[int, list[str]]:
    """Run the threads; return the number of kernels and what was wrong. A deadlock ends the process."""
    thresholds, done, wrong = gc.get_threshold(), deque[None](), list[str]()
    gc.set_threshold(50)
    llvm.ffi.register_lock_callback(_collect, _nothing)
    until = time.monotonic() + seconds
    threads = [
        threading.Thread(target=work, args=(Random(THREADS * seed + k), until, done.append, wrong), daemon=True)
        for k in range(THREADS)
    ]
    try:
        for thread in threads:
            thread.start()
        _watch(threads, done)
    finally:
        llvm.ffi.unregister_lock_callback(_collect, _nothing)
        gc.set_threshold(*thresholds)
    return len(done), wrong


def _watch(threads: list[threading.Thread], done: Sized) -> None:
    """Wait for the threads; where none gets on, the watchdog writes their stacks and ends the process."""
    before = -1
    while any(thread.is_alive() for thread in threads):
        if len(done) != before:
            before = len(done)
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
        time.sleep(0.1)
    faulthandler.cancel_dump_traceback_later()


def main() -> int:
    """Run one try, for the seconds and with the seed of the command line."""
    seconds, seed = float(sys.argv[1]), int(sys.argv[2])
    kernels, wrong = collected(seconds, seed)
    print(*wrong, f"{kernels} kernels from {THREADS} threads in {seconds:g} s, {len(wrong)} wrong", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
