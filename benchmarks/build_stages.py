"""Section "stages": where a build of straight lines goes, by stage and tier, in microseconds for each node.

The sparse Hessian of the chained Rosenbrock function, without loops (`roll="never"`), about ten nodes to a variable;
and what is small or irregular. Processor time in one process, the best of interleaved repetitions; nothing is cached.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import codegen
import symad as sa
from benchmarks.peers.ours import WHOLE
from benchmarks.problems import Problem, chain_of, make_problems, two_variables
from benchmarks.session import Session
from benchmarks.tables import number, table
from codegen.lowering.passes import prepare
from codegen.options import Options
from symad.tracing.trace import to_program, trace

SIZES = (10, 100, 1000, 10_000, 71_429)  # the last one has a million nodes
QUICK_SIZES = (10, 100)
NAMED = ("lj20", "mlp8", "harmonics8")  # many calls of one body, a sweep, functions
TIERS = ("default", "fast")
PATIENCE = 2.0  # seconds of repetitions of one problem, at least two, unless one takes longer than LONG
LONG = 30.0


def section(session: Session) -> str:
    """Measure all problems and return the tables."""
    known = make_problems()
    sizes = QUICK_SIZES if session.quick else SIZES
    problems = [two_variables(), *(chain_of(size) for size in sizes)]
    problems += [] if session.quick else [known[name] for name in NAMED]
    rows, found = [], {}
    for problem in problems:
        session.say(f"stages: {problem.title}")
        found[problem.name] = best = measured(problem)
        rows.append([problem.title, f"{best['nodes']:.0f}", *(_cell(best, name) for name in COLUMNS)])
    session.data["stages"] = found
    return table(("us a node; in brackets ms", "nodes", *COLUMNS), rows)


COLUMNS = (
    "trace", "differentiate", "to program", "lower", *(f"machine code, {tier}" for tier in TIERS),
    *(f"all, {tier}" for tier in TIERS), *(f"us a call, {tier}" for tier in TIERS),
)  # fmt: skip


def measured(problem: Problem) -> dict[str, float]:
    """Return the best processor seconds of each stage and of whole builds, microseconds of a call, and the nodes.

    A stage that cannot be run alone is the difference between the best times with and without it.
    """
    best: dict[str, float] = {}
    end = time.process_time() + PATIENCE
    repetitions = 0
    while repetitions < 1 or time.process_time() < end or (repetitions < 2 and time.process_time() < end + LONG):
        if repetitions == 50:
            break
        for name, seconds in _once(problem).items():
            best[name] = min(best.get(name, seconds), seconds)
        repetitions += 1
    best["differentiate"] = best["traced derivative"] - best["trace"]
    for tier in TIERS:
        best[f"machine code, {tier}"] = best[f"program, {tier}"] - best["lower"]
    return best


def _once(problem: Problem) -> dict[str, float]:
    """Every stage once."""
    derivative, options = _wanted(problem)
    found: dict[str, float] = {}
    _, found["trace"] = _timed(lambda: trace(problem.function, problem.point))
    traced, found["traced derivative"] = _timed(lambda: trace(derivative, problem.point))
    program, found["to program"] = _timed(lambda: to_program(traced))
    _, found["lower"] = _timed(lambda: prepare(program, Options()))
    for tier in TIERS:
        build = partial(codegen.compile_program, program, tier=tier, cache=False)
        _, found[f"program, {tier}"] = _timed(build)
    for tier in TIERS:
        build = partial(sa.compile, derivative, problem.point, tier=tier, cache=False, **options)
        kernel, found[f"all, {tier}"] = _timed(build)
        found[f"us a call, {tier}"] = _call(kernel, problem)
        found["nodes"] = kernel.stats.nodes
    return found


def _wanted(problem: Problem) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The transformed function, and how it is compiled."""
    if problem.kind == "jacobian":
        return sa.jacobian(problem.function, sparse=True), {"roll": "never"}
    if problem.name in WHOLE:
        return sa.hessian(problem.function), {}
    return sa.hessian(problem.function, sparse="lower"), {"roll": "never"}


def _timed(make: Callable[[], Any]) -> tuple[Any, float]:
    gc.collect()
    start = time.process_time()
    made = make()
    return made, time.process_time() - start


def _call(kernel: Any, problem: Problem, seconds: float = 2e-3) -> float:
    """Microseconds of a call from Python."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(10):
            kernel(problem.point)
        best = min(best, (time.perf_counter() - start) / 10)
    return 1e6 * best


def _cell(best: dict[str, float], name: str) -> str:
    if name.startswith("us a call"):
        return number(best[name])
    return f"{number(1e6 * best[name] / best['nodes'])} ({number(1e3 * best[name])})"
