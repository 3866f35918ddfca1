"""How symad scales: a chain of a million operations, a shared tower, a large sparse Hessian. Seconds and peak memory.

usage: python -m benchmarks.scale [--quick]

Each measurement runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import symad as sa


def chain(x: Any, depth: int) -> Any:
    """Return sin(sin(...sin(x)))."""
    for _ in range(depth):
        x = np.sin(x)
    return x


def tower(x: Any) -> Any:
    """Return the sharing tower e <- sin(e) * e, 25 levels."""
    for _ in range(25):
        x = np.sin(x) * x
    return x


def rosenbrock(x: Any) -> Any:
    """Return the chained Rosenbrock function."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def deep_chain(depth: int) -> str:
    """Differentiate a chain twice, forward over forward, on numbers."""
    return f"second derivative {sa.derivative(lambda x: chain(x, depth), 2)(0.5):.6e}"


def edge_chain(depth: int) -> str:
    """Take the Hessian of a chain by edge pushing."""
    return f"second derivative {sa.hessian(lambda x: chain(x, depth))(0.5):.6e}"


def shared_tower(_: int) -> str:
    """Take the first and second derivative of the tower."""
    return f"derivatives {sa.derivative(tower)(1.9):.6e} {sa.derivative(tower, 2)(1.9):.6e}"


def sparse_hessian(size: int) -> str:
    """Trace and compile the sparse Hessian of the chained Rosenbrock function."""
    traced = sa.trace(sa.hessian(rosenbrock, sparse="lower"), np.ones(size))
    kernel = sa.native.compile_trace(traced, tier="fast")
    values = kernel(np.ones(size))
    return f"{len(values)} non-zeros, {kernel.stats.total} operations, diagonal starts {values[0]:g} {values[2]:g}"


def measured(work: Callable[[int], str], size: int, queue: Any) -> None:
    """Run one measurement and put (text, seconds, peak bytes) into the queue."""
    start = time.perf_counter()
    text = work(size)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    queue.put((text, time.perf_counter() - start, peak))


def main() -> None:
    """Run every measurement and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="sizes ten times smaller")
    scale = 10 if parser.parse_args().quick else 1
    jobs = [
        (deep_chain, 10**6 // scale),
        (edge_chain, 10**6 // scale),
        (shared_tower, 25),
        (sparse_hessian, 10**3 // scale),
        (sparse_hessian, 10**4 // scale),
        (sparse_hessian, 10**5 // scale),
    ]
    context = multiprocessing.get_context("spawn")
    for work, size in jobs:
        queue = context.Queue()
        process = context.Process(target=measured, args=(work, size, queue))
        process.start()
        text, seconds, peak = queue.get()
        process.join()
        print(f"{work.__name__:15} n = {size:>8}: {seconds:8.3f} s, peak {peak / 2**20:7.0f} MiB; {text}", flush=True)


if __name__ == "__main__":
    main()
