"""One candidate on one row, in a process of its own: it builds, keeps its entries, then runs bursts when asked to.

`python -m benchmarks.structure.worker CANDIDATE ROW SECONDS GIGABYTES FILE` writes the entries at the row's points into
FILE and answers every line that it reads: the seconds of one burst.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.limited import peak_memory
from benchmarks.peers import Evaluator, Limits
from benchmarks.structure.candidates import CANDIDATES
from benchmarks.structure.cases import Case, case_named, tiny as tiny_case
from benchmarks.structure.entries import entries
from benchmarks.timing import burst, calls_per_burst, no_garbage_collection

BURST = 2e-3  # seconds


def main() -> None:
    """Build, check, answer."""
    name, row, allowed, gigabytes, path = sys.argv[1:]
    case = case_named(row)
    candidate: Any = CANDIDATES[name](Limits(seconds=float("inf")))
    candidate.build(tiny_case())  # so that the library has started
    limit_build(float(allowed), float(gigabytes))
    forget_peak()
    before = peak_memory()
    start = time.perf_counter()
    evaluator = candidate.build(case)
    call = evaluator.bind(case.point)
    call()
    seconds = time.perf_counter() - start
    resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    found = {"seconds": seconds, "mebibytes": (peak_memory() - before) / 2**20, "operations": evaluator.operations}
    np.savez(path, **kept(evaluator, case))
    number = max(calls_per_burst(call, BURST) for _ in range(3))  # a first call that waits is not the measure
    answer({**found, "facts": getattr(candidate, "facts", {}), "calls": number})
    with no_garbage_collection():
        for _ in sys.stdin:
            call()
            answer(burst(call, number) / number)


def forget_peak() -> None:
    """Let the peak of the memory begin anew, at what is in use (Linux; elsewhere it is that of the process)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def limit_build(seconds: float, gigabytes: float) -> None:
    """Limit the processor time (of this process, and of each compiler that it starts) and the memory."""
    spent, most = time.process_time(), int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_CPU, (int(spent + seconds) + 1, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def kept(evaluator: Evaluator, case: Case) -> dict[str, Any]:
    """Return the entries at every point of the row, by name."""
    found: dict[str, Any] = {}
    for k, x in enumerate(case.points()):
        values = evaluator.read(evaluator.bind(x)()).copy()
        at = entries(*evaluator.pattern, values, case.point.size, lower=case.kind == "hessian")
        found |= {f"places{k}": at.places, f"values{k}": at.values}
    return found


def answer(value: Any) -> None:
    """Write one line."""
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    main()
