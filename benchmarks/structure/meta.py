"""The gradient of 10^5 steps with momentum under each checkpointing policy: stated memory, and time."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args

import numpy as np

import symad as sa
from benchmarks.limited import failure
from benchmarks.structure.cases import Case, make_cases
from benchmarks.structure.entries import difference, entries
from benchmarks.structure.ours import written
from benchmarks.structure.remote import ROOT
from benchmarks.tables import number, table
from benchmarks.timing import burst, calls_per_burst, no_garbage_collection
from symad.regions.checkpoints import Checkpoints

POLICIES = get_args(Checkpoints)
ROW = "momentum5-scan-gradient"
HEADER = ("checkpoints", "workspace, KiB", "build, s", "ms per gradient", "off by, relative")


def section(options: argparse.Namespace, data: dict[str, Any], say: Callable[[str], None]) -> Iterator[Any]:
    """Measure every policy in a process of its own; yield all that is known after each."""
    found: dict[str, Any] = {}
    for policy in POLICIES:
        command = [sys.executable, "-m", "benchmarks.structure.meta", policy]
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=2 * options.limit)
            good = done.returncode == 0
            found[policy] = json.loads(done.stdout) if good else {"reason": failure(done.stderr, done.returncode, 0)}
        except subprocess.TimeoutExpired:
            found[policy] = {"reason": f"> {2 * options.limit:.0f} s"}
        say(f"meta: {policy}: {found[policy]}")
        yield found


def measured(case: Case, policy: Checkpoints) -> dict[str, float]:
    """Build the gradient under a policy, compare it with the right one, and time it."""
    values, x = np.empty(case.point.size), case.point
    start = time.perf_counter()
    kernel: Any = sa.compile(sa.grad(written(case)), x, cache=False, roll="always", checkpoints=policy)
    kernel(x, out=values)
    built = time.perf_counter() - start
    found = entries(np.zeros(x.size), np.arange(x.size), values.copy(), x.size, lower=False)
    with no_garbage_collection():
        number = calls_per_burst(lambda: kernel(x, out=values), 0.05)
        seconds = float(np.median([burst(lambda: kernel(x, out=values), number) / number for _ in range(15)]))
    return {
        "workspace": 8.0 * kernel.stats.workspace,
        "build": built,
        "milliseconds": 1e3 * seconds,
        "difference": difference(found, case.right(x), each=True),
    }


def report(found: Mapping[str, Any]) -> str:
    """Return the table."""
    return table(HEADER, [[f'"{policy}"', *_cells(values)] for policy, values in found.items()])


def _cells(values: Mapping[str, Any]) -> list[str]:
    if "reason" in values:
        return [str(values["reason"]), *["-"] * (len(HEADER) - 2)]
    times = [number(values[key]) for key in ("build", "milliseconds")]
    return [number(values["workspace"] / 1024), *times, f"{values['difference']:.1e}"]


if __name__ == "__main__":
    print(json.dumps(measured(make_cases()[ROW], sys.argv[1])))  # type: ignore[arg-type]
