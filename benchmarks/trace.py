"""Section "trace": microseconds for each node of the problems and of plain loops, with and without source lines.

The best of interleaved repetitions, the garbage collector switched off: a lower bound, which noise does not move. A
problem that takes more than LIMIT microseconds a node is a failure of the run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import symad as sa
from benchmarks.session import Session
from benchmarks.tables import table
from benchmarks.timing import burst, no_garbage_collection

LIMIT = 5.0  # microseconds a node
LARGEST = 1000  # variables: larger problems tell nothing new
REPETITIONS = 20


def loops(x: Any) -> Any:
    """Return the chained Rosenbrock function, written with a loop over elements."""
    total = 0.0
    for i in range(len(x) - 1):
        total += 100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
    return total


def branches(x: Any) -> Any:
    """Return a sum with five conditions on the elements: 32 paths."""
    return sum(value**2 if value > 0 else -value for value in x)


def seconds(function: Any, point: Any) -> tuple[int, dict[bool, float]]:
    """Return the number of nodes, and the best time with and without source lines."""
    best = {True: np.inf, False: np.inf}
    for _ in range(REPETITIONS):
        for lines in best:
            with sa.source_lines(lines), no_garbage_collection():
                best[lines] = min(best[lines], burst(lambda: sa.trace(function, point), 1))
    return len(sa.trace(function, point).graph), best


def section(session: Session) -> str:
    """Measure each problem; one above the limit is a failure."""
    session.say("trace")
    cases = [(p.title, p.function, p.point) for p in session.problems.values() if len(p.point) <= LARGEST]
    cases.append(("Rosenbrock written with a loop, n = 400", loops, np.zeros(400)))
    lines = []
    for name, function, point in cases:
        nodes, best = seconds(function, point)
        cost = best[True] / nodes * 1e6
        if cost > LIMIT:
            session.failures.append(f"tracing {name} takes {cost:.2f} us a node, limit {LIMIT}")
        lines.append([name, str(nodes), f"{cost:.2f}", f"{100 * (best[True] / best[False] - 1):+.1f} %"])
    _, best = seconds(branches, np.zeros(5))
    head = table(("function", "nodes", "us a node", "of which source lines"), lines)
    return f"{head}\n\nA function with 32 paths: {best[True] * 1e3:.1f} ms for all runs and the merge."
