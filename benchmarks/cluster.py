"""One kernel on many processes: `python -m benchmarks.cluster [--points N] [--workers N]`.

A LocalCluster of dask.distributed evaluates the Hessian of a pair potential at N points, made where they are evaluated;
what comes back of each part is its sum. In the middle one worker is killed: dask does its parts again elsewhere, and
the sum has the bits that it has in this process. Beside the seconds: the points for each second of processor time, in
this process alone and in all workers with all that they do beside, the start of the one that takes the killed one's
place among it, and how often each process compiled the kernel. Workers keep the memory of one part for the next one.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import symad as sa
from symad.extras import optional

PART = 2**18  # points of one part
KEPT = {"MALLOC_TRIM_THRESHOLD_": 2**30, "MALLOC_MMAP_THRESHOLD_": 2**30}  # bytes; dask's workers return memory at once


def potential(x: Any, y: Any) -> Any:
    """Return the energy of two atoms."""
    inverse = 1 / np.sum((x - y) ** 2) ** 3
    return 4 * (inverse * inverse - inverse)


def gufunc() -> Any:
    """Return the Hessian in the first atom."""
    return sa.compile(sa.hessian(potential), np.zeros(3), np.ones(3)).gufunc()


def part(kernel: Any, number: int) -> float:
    """Return the sum of all results of one part, whose points are drawn from its number."""
    points = np.random.default_rng(number).uniform(1.0, 2.0, (PART, 3))
    return float(kernel(points, np.zeros(3)).sum())


def compiled_here(kernel: Any) -> tuple[int, int]:
    """Return this process, and how many kernels it made of those that came to it."""
    from codegen.machine.batches.gufunc import revived  # noqa: PLC0415 - in the worker

    return os.getpid(), revived.cache_info().misses


def in_process(kernel: Any, parts: int) -> tuple[float, float]:
    """Return processor seconds of parts in this process, and their sum."""
    begin = time.process_time()
    total = sum(part(kernel, number) for number in range(parts))
    return time.process_time() - begin, total


@dataclass(frozen=True)
class Run:
    """What a cluster did: seconds, those of all its processors, the sum of all parts, kernels of each process."""

    seconds: float
    processor: float
    total: float
    made: list[int]


def on_cluster(kernel: Any, parts: int, workers: int) -> Run:
    """Carry out parts on a cluster, one worker of which is killed in the middle."""
    distributed, dask = (optional(name, "a cluster") for name in ("distributed", "dask"))
    with (
        dask.config.set({"distributed.nanny.pre-spawn-environ": KEPT}),
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        begin, before = time.perf_counter(), sum(client.run(time.process_time).values())
        # the kernel goes along with each task: what is scattered is lost with the worker that has it
        futures = client.map(lambda number, kernel: part(kernel, number), range(parts), kernel=kernel, pure=False)
        for done, _ in enumerate(distributed.as_completed(futures), start=1):
            if done == parts // 2:
                break
        victim, process = next(iter(client.run(os.getpid).items()))
        lost = client.run(time.process_time, workers=[victim])[victim]
        os.kill(process, signal.SIGKILL)
        total = sum(client.gather(futures))
        seconds = time.perf_counter() - begin
        client.wait_for_workers(workers)
        # the killed one may be listed still, where its parts were done before its death was noticed
        processor = sum(client.run(time.process_time, on_error="ignore").values()) + lost - before
        made = client.run(lambda kernel: compiled_here(kernel), kernel, on_error="ignore")
    return Run(seconds, processor, total, [count for _, count in made.values()])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the rates; 1 where the sums differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=float, default=1e8)
    parser.add_argument("--workers", type=int, default=4)
    given = parser.parse_args(arguments)
    parts = max(2, round(given.points / PART))
    kernel = gufunc()
    alone, total = in_process(kernel, parts)
    found = on_cluster(kernel, parts, given.workers)
    rate, reached = parts * PART / alone / 1e6, parts * PART / found.processor / 1e6
    print(f"{parts * PART:.3g} points, {given.workers} workers, one killed: {found.seconds:.1f} s")
    print(f"M points for each second of a processor: {rate:.2f} in this process, {reached:.2f} in the workers")
    print(f"share: {reached / rate:.2f}; kernels compiled in each process: {found.made}")
    same = total == found.total
    print("the sum has the bits of this process" if same else "WRONG: the sum has other bits")
    return int(not same)


if __name__ == "__main__":
    sys.exit(main())
