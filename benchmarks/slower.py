"""`python -m benchmarks.slower [--update]`: what became slower than what is kept for this kind of machine.

A minute: every row of the Hessians, Jacobians, batches and of what repeats, symad alone, with its defaults.
Nanoseconds of a call (or of a point) are the least of several bursts, seconds to build are processor time. Two probes
say how fast the machine is at the moment: calls are compared in units of multiply-adds, builds in units of a loop in
Python. A row that seems slower is measured again before it is called so. `--update` keeps what was measured, as
`reference.json`.

Exit status 1 where something became slower, 2 where nothing is kept for this kind of machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import symad as sa
from benchmarks import batch, machine, peak
from benchmarks.peers.ours import WHOLE, Symad, SymadTier
from benchmarks.price import best, caller, timed
from benchmarks.problems import Problem, make_problems, two_variables
from benchmarks.structure.cases import Case, make_cases
from benchmarks.structure.ours import arguments_of, derivative_of
from benchmarks.tables import number, table

SLOWER = {"call": 1.25, "build": 1.35}  # times that a row has to take to be called slower
AGAIN = 3  # times that such a row is measured again
STEPS = 200_000  # of the probe in Python
KEPT = "reference.json"


@dataclass(frozen=True)
class Row:
    """One kernel: how it is built, and what is called of it, of so many points."""

    build: Callable[[], Any]
    call: Callable[[Any], Callable[[], object]]
    points: int = 1


Found = dict[str, float]  # "call" in nanoseconds a point, "build" in seconds


def make_rows() -> dict[str, Row]:
    """Return all rows by name."""
    rows = dict(_problems([two_variables(), *make_problems().values()]))
    return rows | dict(_batches(make_problems())) | dict(_structure(make_cases().values()))


def _problems(problems: Iterable[Problem]) -> Iterable[tuple[str, Row]]:
    for tier, peer in (("", Symad()), (", fast tier", SymadTier())):
        for problem in problems:
            if problem.point.size > 1000 and tier:
                continue
            derivative = peer.derivative(problem, problem.name in WHOLE)
            build = partial(sa.compile, derivative, problem.point, **peer.options)
            yield f"{problem.name}{tier}", Row(build, partial(_caller, (problem.point,)))


def _batches(problems: Mapping[str, Problem]) -> Iterable[tuple[str, Row]]:
    for name in batch.PROBLEMS:
        problem = problems[name]
        build = partial(sa.compile, Symad().derivative(problem), problem.point, cache=False)
        yield (
            f"{name}, {batch.COUNT} points",
            Row(build, partial(_batch_caller, problem.points(batch.COUNT)), batch.COUNT),
        )


def _structure(cases: Iterable[Case]) -> Iterable[tuple[str, Row]]:
    for case in cases:
        if case.kind in case.family.huge:
            continue
        arguments = arguments_of(case, case.point)
        build = partial(sa.compile, derivative_of(case, "coo"), *arguments, cache=False)
        yield case.name, Row(build, partial(_caller, arguments))


def _caller(arguments: tuple[Any, ...], kernel: Any) -> Callable[[], object]:
    return caller(kernel, arguments)


def _batch_caller(points: Any, kernel: Any) -> Callable[[], object]:
    out = np.empty((len(points), kernel.program.outputs[0].size))
    return lambda: kernel.batch(points, out=out, threads=1)


def measure(row: Row) -> Found:
    """Build a row and call it."""
    kernel, seconds = timed(row.build)
    return {"call": 1e9 * best({"": row.call(kernel)})[""] / row.points, "build": seconds}


def probes() -> Found:
    """Return the rates of multiply-adds, and of steps of a loop in Python."""
    steps = []
    for _ in range(5):
        start, numbers = time.process_time(), dict[int, int]()
        for step in range(STEPS):
            numbers[step & 1023] = step
        steps.append(STEPS / (time.process_time() - start))
    return {"operations": peak.operations_per_second(1, 1, peak.STEPS // 10), "python": max(steps)}


def slower(now: Found, then: Found, machine_now: Found, machine_then: Found) -> Found:
    """Return how many times longer a row takes than then, for how fast the machine is now.

    >>> slower({"call": 3.0, "build": 1.0}, {"call": 1.0, "build": 1.0}, {"operations": 1.0, "python": 1.0},
    ...        {"operations": 2.0, "python": 1.0})
    {'call': 1.5, 'build': 1.0}
    """
    units = {"call": "operations", "build": "python"}
    return {what: now[what] * machine_now[unit] / (then[what] * machine_then[unit]) for what, unit in units.items()}


def compared(rows: Mapping[str, Row], found: dict[str, Found], kept: Any) -> list[list[str]]:
    """Return the rows that are slower than what is kept, after they were measured again; `found` gets the least."""
    lines = []
    for name in sorted(found.keys() & kept["rows"].keys()):
        row, then = rows[name], kept["rows"][name]
        for left in reversed(range(AGAIN + 1)):
            times = slower(found[name], then, kept["now"], kept["machine"])
            late = [what for what, limit in SLOWER.items() if times[what] > limit]
            if not late or not left:
                break
            again = measure(row)
            found[name] = {what: min(again[what], found[name][what]) for what in again}
        for what in late:
            unit = 1.0 if what == "call" else 1e3
            shown = (number(then[what] * unit), number(found[name][what] * unit), f"{times[what]:.2f}")
            lines.append([name, "ns a call" if what == "call" else "ms to build", *shown])
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all rows, compare them with what is kept, keep them if that is asked for."""
    options = parse(arguments)
    path, rows, now = options.folder / KEPT, make_rows(), probes()
    chosen = options.rows.split(";") if options.rows else list(rows)
    found = {}
    for name in chosen:
        print(name, file=sys.stderr, flush=True)
        found[name] = measure(rows[name])
    fastest = probes()
    now = {what: max(now[what], fastest[what]) for what in now}
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    if options.update:
        every = (kept["rows"] if kept else {}) | found
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"machine": now, "rows": every}, indent=1) + "\n", encoding="utf-8")
        print(f"kept: {len(found)} rows in {path}")
        return 0
    if kept is None:
        print(f"nothing is kept for this kind of machine: --update writes {path}")
        return 2
    lines = compared(rows, found, {**kept, "now": now})
    if lines:
        print(table(("row", "what", "then", "now", "times, for how fast the machine is"), lines))
    new = sorted(found.keys() - kept["rows"].keys())
    print(f"{len(found) - len(new)} rows compared with what is kept, {len({line[0] for line in lines})} slower"
          + (f"; not kept before: {', '.join(new)}" if new else ""))  # fmt: skip
    return 1 if lines else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slower", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--update", action="store_true", help="keep what is measured")
    parser.add_argument("--rows", help="names with semicolons between them; default: all")
    results = Path(__file__).parent / "results" / machine.folder_name()
    parser.add_argument("--folder", type=Path, default=results, help="where the kept numbers are")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
