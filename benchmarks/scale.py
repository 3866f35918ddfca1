"""Section "scale": a chain of a million operations, a shared tower, a large sparse Hessian. Seconds and peak memory.

Each measurement runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import symad as sa
from benchmarks.limited import peak_memory
from benchmarks.session import Session
from benchmarks.tables import table


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


def measured(work: Callable[[int], str], size: int, queue: Any) -> None:
    """Run one measurement and put (text, seconds, peak bytes) into the queue."""
    start = time.perf_counter()
    text = work(size)
    queue.put((text, time.perf_counter() - start, peak_memory()))


def alone(work: Callable[[int], str], size: int) -> tuple[str, float, float]:
    """Run one measurement in a process of its own and return (text, seconds, peak bytes)."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=measured, args=(work, size, queue))
    process.start()
    found: tuple[str, float, float] = queue.get()
    process.join()
    return found


def section(session: Session) -> str:
    """Run every measurement."""
    smaller = 10 if session.quick else 1
    jobs = [(deep_chain, 10**5 // smaller), (edge_chain, 10**6 // smaller), (shared_tower, 25)]
    lines = []
    for work, size in jobs:
        session.say(f"scale: {work.__name__}, {size}")
        text, seconds, peak = alone(work, size)
        lines.append([work.__name__.replace("_", " "), str(size), f"{seconds:.2f}", f"{peak / 2**20:.0f}", text])
    return table(("what", "size", "seconds", "peak MiB", "result"), lines)
