"""Gradients of long optimisations under each checkpointing policy, a chain and a nest: stated memory, and time."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

import symad as sa
from benchmarks.limited import failure
from benchmarks.structure.cases import make_cases
from benchmarks.structure.ours import written
from benchmarks.structure.remote import ROOT
from benchmarks.tables import number, table
from benchmarks.timing import burst, calls_per_burst, no_garbage_collection
from symad.derivatives.loops.checkpoints import Checkpoints

Floats = npt.NDArray[np.float64]

POLICIES = get_args(Checkpoints)
HEADER = ("checkpoints", "workspace, KiB", "build, s", "ms per gradient", "off by, relative")
DATA, STEPS = np.linspace(-1.0, 1.0, 100), 10_000


@dataclass(frozen=True)
class Run:
    """A function of an array, a point, and the right gradient there."""

    f: Callable[[Any], Any]
    x: Floats
    right: Floats


def momentum() -> Run:
    """10^5 steps with momentum: the gradient in the start and the rate."""
    case = make_cases()["momentum5-scan-gradient"]
    return Run(written(case), case.point, case.right(case.point).values)


def descent() -> Run:
    """10^4 steps down the slope of a sum over 100 rows: the gradient in the start and the rate."""

    def f(x: Any) -> Any:
        def step(w: Any, _: object) -> tuple[Any, None]:
            return w - x[1] * sa.sum_over(lambda a: a * np.tanh(a * w) - 0.3 * a**2, DATA), None

        return sa.scan(step, x[0], None, length=STEPS)[0]

    x = np.array([2.0, 1e-5])
    return Run(f, x, _tangents(*x))


def _tangents(w: float, rate: float) -> Floats:
    """The same, pushed forward step by step in NumPy."""
    by_start, by_rate = 1.0, 0.0
    for _ in range(STEPS):
        value = np.tanh(DATA * w)
        slope, curvature = np.sum(DATA * value - 0.3 * DATA**2), np.sum(DATA**2 * (1 - value**2))
        by_start, by_rate = by_start * (1 - rate * curvature), by_rate * (1 - rate * curvature) - slope
        w -= rate * slope
    return np.array([by_start, by_rate])


RUNS: dict[str, tuple[str, Callable[[], Run]]] = {
    "chain": ("10^5 steps with momentum (a chain)", momentum),
    "nest": ("10^4 steps, each with a sum over 100 rows (a nest)", descent),
}


def section(options: argparse.Namespace, data: dict[str, Any], say: Callable[[str], None]) -> Iterator[Any]:
    """Measure every policy in a process of its own; yield all that is known after each."""
    found: dict[str, dict[str, Any]] = {name: {} for name in RUNS}
    for name, policy in [(name, policy) for name in RUNS for policy in POLICIES]:
        command = [sys.executable, "-m", "benchmarks.structure.meta", name, policy]
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=2 * options.limit)
            good = done.returncode == 0
            row = json.loads(done.stdout) if good else {"reason": failure(done.stderr, done.returncode, 0)}
        except subprocess.TimeoutExpired:
            row = {"reason": f"> {2 * options.limit:.0f} s"}
        found[name][policy] = row
        say(f"meta: {name}, {policy}: {row}")
        yield found


def measured(run: Run, policy: Checkpoints) -> dict[str, float]:
    """Build the gradient under a policy, compare it with the right one, and time it."""
    values, x = np.empty(run.x.size), run.x
    start = time.perf_counter()
    kernel: Any = sa.compile(sa.grad(run.f), x, cache=False, roll="always", checkpoints=policy)
    kernel(x, out=values)
    built, off = time.perf_counter() - start, float(np.max(np.abs(values / run.right - 1)))
    with no_garbage_collection():
        number = calls_per_burst(lambda: kernel(x, out=values), 0.05)
        seconds = float(np.median([burst(lambda: kernel(x, out=values), number) / number for _ in range(15)]))
    return {
        "workspace": 8.0 * kernel.stats.workspace,
        "build": built,
        "milliseconds": 1e3 * seconds,
        "difference": off,
    }


def report(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the tables."""
    parts = []
    for name, (title, _) in RUNS.items():
        rows = [[f'"{policy}"', *_cells(values)] for policy, values in found.get(name, {}).items()]
        parts += [f"### {title}", table(HEADER, rows)]
    return "\n\n".join(parts)


def _cells(values: Mapping[str, Any]) -> list[str]:
    if "reason" in values:
        return [str(values["reason"]), *["-"] * (len(HEADER) - 2)]
    times = [number(values[key]) for key in ("build", "milliseconds")]
    return [number(values["workspace"] / 1024), *times, f"{values['difference']:.1e}"]


if __name__ == "__main__":
    print(json.dumps(measured(RUNS[sys.argv[1]][1](), sys.argv[2])))  # type: ignore[arg-type]
