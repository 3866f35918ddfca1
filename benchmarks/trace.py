"""What tracing costs: microseconds for each node of the four problems and of plain loops, with and without lines.

    python -m benchmarks.trace

The best of interleaved repetitions, the garbage collector switched off: a lower bound, which noise does not move. The
run exits non-zero when a problem takes more than the limit of `LIMIT` microseconds a node.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import symad as sa
from benchmarks.problems import make_problems
from benchmarks.timing import burst, no_garbage_collection

LIMIT = 5.0  # microseconds a node
REPETITIONS = 40


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


def main() -> int:
    """Print one line for each problem; return 1 when one is above the limit."""
    cases = [(problem.name, problem.function, problem.point) for problem in make_problems().values()]
    cases.append(("rosenbrock, loops", loops, np.zeros(400)))
    slowest = 0.0
    for name, function, point in cases:
        nodes, best = seconds(function, point)
        cost = best[True] / nodes * 1e6
        slowest = max(slowest, cost)
        share = best[True] / best[False] - 1
        print(f"{name:18} {nodes:6} nodes  {cost:6.2f} us a node, source lines {share:+.1%}", flush=True)
    _, best = seconds(branches, np.zeros(5))
    print(f"{'32 paths':18} {best[True] * 1e3:.1f} ms for all runs and the merge")
    print(f"limit {LIMIT} us a node: {'kept' if slowest <= LIMIT else 'exceeded'}")
    return int(slowest > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
