"""Soak: `python -m benchmarks.soak [--quick]` compiles, calls and drops kernels for minutes, on many threads.

Three parts: 10^4 different kernels compiled, checked and dropped; 10^8 calls of one kernel from 8 threads, each result
compared; 4 threads calling one kernel while 4 others compile, and code is exchanged under the callers. Exits non-zero
when a number is wrong or memory grows.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sympy as sp

import symad as sa
from codegen import compile_program, evaluate, program_from_sympy

THREADS = 8
GROWTH = 32.0  # MiB that may come and go; a leak of 10 KiB a kernel would be 80
PAGE = 4096


@dataclass(frozen=True)
class Part:
    """What one part did."""

    name: str
    done: int
    wrong: int
    seconds: float
    grown: float  # MiB of resident memory, from the end of the warm-up to the end

    @property
    def passed(self) -> bool:
        """No wrong number, and no growth."""
        return not self.wrong and self.grown < GROWTH

    def line(self) -> str:
        """One line of the report."""
        return (
            f"{self.name}: {self.done:,} in {self.seconds:.1f} s, {self.wrong} wrong, memory {self.grown:+.1f} MiB: "
            f"{'passed' if self.passed else 'FAILED'}"
        )


def resident() -> float:
    """Return the resident memory of this process in MiB, with everything freed that can be."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * PAGE / 2**20


def compile_and_drop(count: int) -> Part:
    """Compile kernels that are all different, compare each with the interpreter, and drop it."""
    x, y = sp.symbols("x y")
    wrong, before, start = 0, 0.0, time.perf_counter()
    for k in range(count):
        if k == count // 5:
            before = resident()
        program = program_from_sympy([x, y], [sp.sin(x * (k + 1)) * y + sp.exp(x) / (k + 2), x * y - k])
        kernel = compile_program(program, tier=("fast", "default", "auto")[k % 3])
        output = evaluate(program, [output.rows[0] for output in program.outputs], {0: 0.3, 1: 0.7})
        wrong += not np.allclose(kernel(0.3, 0.7), output, rtol=1e-14)
    return Part("kernels compiled and dropped", count, wrong, time.perf_counter() - start, resident() - before)


def energy(x):
    """Return a sum over a chain."""
    return np.sum((x[1:] - x[:-1] ** 2) ** 2 + np.sin(x[:-1]))


def on_threads(workers: list[Callable[[], int]]) -> int:
    """Run workers at the same time and return the sum of what they return."""
    found: list[int] = []
    threads = [threading.Thread(target=lambda work=work: found.append(work())) for work in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(found) != len(workers):
        raise RuntimeError("a thread ended with an error")
    return sum(found)


def call(count: int) -> Part:
    """Call one kernel from many threads, and compare every result."""
    kernel = sa.compile(energy, np.zeros(4))
    points = [np.random.default_rng(k).normal(size=4) for k in range(16)]
    wanted = [kernel(x) for x in points]

    def work() -> int:
        wrong = 0
        for _ in range(count // THREADS // len(points)):
            for x, value in zip(points, wanted, strict=True):
                if kernel(x) != value:
                    wrong += 1
        return wrong

    before, start = resident(), time.perf_counter()
    wrong = on_threads([work] * THREADS)
    return Part(f"calls on {THREADS} threads", count, wrong, time.perf_counter() - start, resident() - before)


def call_while_compiling(seconds: float) -> Part:
    """Half of the threads call a kernel whose code is exchanged meanwhile, the others compile."""
    x = np.random.default_rng(0).normal(size=30)
    hessian = sa.hessian(energy, sparse="lower")
    wanted = np.asarray(sa.compile(hessian, x)(x))
    box = [sa.compile(hessian, x, tier="auto")]
    done, end = [0] * THREADS, [0.0]

    def calling(number: int) -> int:
        wrong, out = 0, np.empty_like(wanted)
        while time.perf_counter() < end[0]:
            box[0](x, out=out)
            done[number] += 1
            wrong += not np.array_equal(out, wanted)
        return wrong

    def compiling(number: int) -> int:
        wrong = 0
        while time.perf_counter() < end[0]:
            box[0] = kernel = sa.compile(hessian, x, tier="auto")
            done[number] += 1
            wrong += not np.array_equal(kernel(x), wanted)
        return wrong

    def run(duration: float) -> int:
        end[0] = time.perf_counter() + duration
        return on_threads(
            [lambda k=k: (calling if k % 2 else compiling)(k) for k in range(THREADS)]  # type: ignore[misc]
        )

    wrong = run(seconds / 4)  # warm-up: LLVM's arenas for each thread
    before, start = resident(), time.perf_counter()
    wrong += run(seconds)
    name = "calls and compilations side by side"
    return Part(name, sum(done), wrong, time.perf_counter() - start, resident() - before)


def main() -> int:
    """Run the parts and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the work")
    scale = 100 if parser.parse_args().quick else 1
    passed = True
    for run, amount in ((compile_and_drop, 10_000), (call, 100_000_000), (call_while_compiling, 60)):
        part = run(max(2, amount // scale))
        print(part.line(), flush=True)
        passed = passed and part.passed
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
