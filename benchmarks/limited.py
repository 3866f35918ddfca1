"""Builds in processes of their own, under limits of time and memory: a candidate that explodes is reported as such.

`python -m benchmarks.limited CANDIDATE PROBLEM GIGABYTES` builds one and prints what it took as JSON; a problem called
chainN is the chained Rosenbrock function of N variables.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.peers import CANDIDATES, LINES
from benchmarks.problems import Problem, chain_of, make_problems, two_variables

STARTING = 5.0  # seconds that a process may take to import its library


@dataclass(frozen=True)
class Build:
    """Seconds to the first number and peak memory of the process, or the reason why there is none."""

    seconds: float = float("nan")
    mebibytes: float = float("nan")
    operations: int | None = None
    reason: str = ""


def build_elsewhere(candidate: str, problem: str, seconds: float, gigabytes: float) -> Build:
    """Build in a process of its own; `seconds` is for the build, the process gets a little more for its start."""
    command = [sys.executable, "-m", "benchmarks.limited", candidate, problem, str(gigabytes)]
    root, pipe = Path(__file__).parents[1], subprocess.PIPE
    with subprocess.Popen(command, cwd=root, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as child:
        try:
            output, errors = child.communicate(timeout=seconds + STARTING)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)  # with the compilers that it has started
            return Build(reason=f"no result in {seconds:.0f} s")
    if child.returncode == 0:
        return Build(**json.loads(output.splitlines()[-1]))
    return Build(reason=failure(errors, child.returncode, gigabytes))


def peak_memory() -> float:
    """Return the largest memory of this process so far, or of a compiler that it ran, in bytes."""
    status, unit = Path("/proc/self/status"), 1 if sys.platform == "darwin" else 1024
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit
    if not status.exists():
        return float(max(children, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit))
    # getrusage would give the parent's, if that was larger when it started this process
    lines = status.read_text(encoding="utf-8").splitlines()
    return float(max(children, *(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))))


def failure(errors: str, status: int, gigabytes: float) -> str:
    """Say in a few words why a process ended without a result.

    >>> failure("terminate called after throwing an instance of\\nstd::bad_alloc", 1, 12.0)
    'out of memory at 12 GB'
    >>> failure("ValueError: no such thing", 1, 12.0)
    'failed: ValueError: no such thing'
    """
    last = (errors.strip().splitlines() or ["no message"])[-1]
    if "MemoryError" in last or "bad_alloc" in last or "out of memory" in last:
        return f"out of memory at {gigabytes:g} GB"
    return f"killed by signal {-status}" if status < 0 else f"failed: {last[:100]}"


def problem_named(name: str) -> Problem:
    """Return one of the problems, or the chained Rosenbrock function of any size."""
    return chain_of(int(name.removeprefix("chain"))) if name.startswith("chain") else make_problems()[name]


def main() -> None:
    """Build the tiny problem, so that the library has started, then the one that is asked for."""
    name, problem = (CANDIDATES | LINES)[sys.argv[1]], problem_named(sys.argv[2])
    limit = int(float(sys.argv[3]) * 2**30)
    candidate = name()
    candidate.build(two_variables())
    candidate.prepare(problem)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    start = time.perf_counter()
    evaluator = candidate.build(problem)
    evaluator.bind(problem.point)()
    seconds = time.perf_counter() - start
    print(json.dumps(asdict(Build(seconds, peak_memory() / 2**20, evaluator.operations))))


if __name__ == "__main__":
    main()
