"""Sections "hessians" and "jacobians": build, compare and time every candidate on every problem, from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.goals import BUILD, C_CODE, LIBRARIES, times, verdict
from benchmarks.peers import AHEAD_OF_TIME, CANDIDATES, OURS, Evaluator
from benchmarks.peers.base import Pattern
from benchmarks.problems import Problem, Vector
from benchmarks.session import Session, timed_build
from benchmarks.tables import number, percent, table
from benchmarks.timing import Quartiles, interleave

TOLERANCE = 1e-12
POINTS = 3
BUILDS = 3
LONG_BUILD = 0.5
HEADER = (
    "candidate", "operations", "build, s", "us per call", "quartiles", "% of scalar peak", "/ best peer", "/ C code",
    "max diff",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """What was measured of one candidate on one problem."""

    candidate: str
    operations: int | None
    build: float  # median seconds
    microseconds: Quartiles
    difference: float


def hessians(session: Session) -> str:
    """Measure the Hessians."""
    return _section(session, "hessians", [p for p in session.problems.values() if p.kind == "hessian"])


def jacobians(session: Session) -> str:
    """Measure the gradient and the Jacobians."""
    return _section(session, "jacobians", [p for p in session.problems.values() if p.kind != "hessian"])


def _section(session: Session, name: str, problems: Sequence[Problem]) -> str:
    found = {}
    for problem in problems:
        session.say(f"{name}: {problem.name}")
        if rows := measure(session, problem):
            found[problem.name] = rows
    session.data[name] = {problem: [asdict(row) for row in rows] for problem, rows in found.items()}
    peaks = session.data.get("peak")
    peak = None if peaks is None else peaks["fma1"][1] / 2
    details = [
        f"### {session.problems[problem].title}\n\n{problem_table(rows, peak)}{_given_up(session, problem)}"
        for problem, rows in found.items()
    ]
    return "\n\n".join([summary(session, found), *details])


def measure(session: Session, problem: Problem) -> list[Row]:
    """Build, compare and time all candidates on one problem."""
    evaluators, builds = build_all(session, problem)
    distance = differences(evaluators, problem)
    for name, value in distance.items():
        if not value <= TOLERANCE:
            session.failures.append(f"{CANDIDATES[name].name} disagrees on {problem.name}: {value:.1e} of the largest")
    for name, evaluator in evaluators.items():
        session.evaluators[name, problem.name] = evaluator
    calls = {name: evaluator.bind(problem.point) for name, evaluator in evaluators.items()}
    times_ = interleave(calls, session.rounds, session.seconds)
    return [
        Row(name, evaluators[name].operations, float(np.median(builds[name])), times_[name].scaled(1e6), distance[name])
        for name in evaluators
    ]


def build_all(session: Session, problem: Problem) -> tuple[dict[str, Evaluator], dict[str, list[float]]]:
    """Build every candidate, in interleaved rounds; a long build is not repeated. A failure takes a candidate out."""
    evaluators: dict[str, Evaluator] = {}
    seconds: dict[str, list[float]] = {}
    for name in session.candidates:
        if session.may_build(name, problem):
            found = session.built(session.candidates[name], problem, name)
            if found is not None:
                evaluators[name], seconds[name] = found[0], [found[1]]
    for _ in range(BUILDS - 1):
        for name in evaluators:
            if seconds[name][0] <= LONG_BUILD:
                seconds[name].append(timed_build(session.candidates[name], problem)[1])
    return evaluators, seconds


def differences(evaluators: Mapping[str, Evaluator], problem: Problem) -> dict[str, float]:
    """Return each candidate's largest distance from the candidates' median entry, relative to the largest entry."""
    worst = dict.fromkeys(evaluators, 0.0)
    for x in problem.points(POINTS):
        entries = aligned({name: (e.pattern, e.read(e.bind(x)()).copy()) for name, e in evaluators.items()}, problem)
        for name, value in distances(entries).items():
            worst[name] = max(worst[name], value)
    return worst


def distances(entries: Mapping[str, Vector]) -> dict[str, float]:
    """Return the largest distance of each vector from the median of all, relative to the largest entry; NaN is inf."""
    median = np.median(list(entries.values()), axis=0)
    scale = np.abs(median).max()
    found = {name: np.abs(values - median).max() / scale for name, values in entries.items()}
    return {name: float("inf") if np.isnan(value) else float(value) for name, value in found.items()}


def aligned(read: Mapping[str, tuple[Pattern, Vector]], problem: Problem) -> dict[str, Vector]:
    """Return the entries of all candidates at the union of their places; a Hessian's lower triangle."""
    size = problem.point.size
    packed = {}
    for name, (pattern, values) in read.items():
        rows, columns = (np.asarray(places) for places in pattern)
        wanted = (values != 0) & ((rows >= columns) | (problem.kind != "hessian"))
        packed[name] = (rows[wanted] * size + columns[wanted], values[wanted])
    union = np.unique(np.concatenate([keys for keys, _ in packed.values()]))
    found = {}
    for name, (keys, values) in packed.items():
        found[name] = np.zeros(len(union))
        found[name][np.searchsorted(union, keys)] = values
    return found


def fastest(rows: Sequence[Row], names: Sequence[str]) -> Row | None:
    """Return the row with the smallest median among those of `names`."""
    return min((row for row in rows if row.candidate in names), key=lambda r: r.microseconds.median, default=None)


def libraries() -> list[str]:
    """Return the names of the peers that need no C compiler."""
    return [name for name in CANDIDATES if name not in OURS + AHEAD_OF_TIME]


def problem_table(rows: Sequence[Row], peak: float | None) -> str:
    """Return the table of one problem, fastest first; `peak` is in instructions per second."""
    best, code = fastest(rows, libraries()), fastest(rows, AHEAD_OF_TIME)
    ranked = sorted(rows, key=lambda row: row.microseconds.median)
    return table(HEADER, [_cells(row, best, code, peak) for row in ranked])


def _cells(row: Row, best: Row | None, code: Row | None, peak: float | None) -> list[str]:
    call = row.microseconds
    share = None if row.operations is None or peak is None else row.operations / call.median * 1e6 / peak
    return [
        CANDIDATES[row.candidate].name,
        "-" if row.operations is None else str(row.operations),
        number(row.build),
        number(call.median),
        f"{number(call.low)} to {number(call.high)}",
        percent(share),
        *(times(peer.microseconds.median / call.median if peer else None) for peer in (best, code)),
        f"{row.difference:.1e}",
    ]


def _given_up(session: Session, problem: str) -> str:
    notes = [f"{CANDIDATES[name].name}: {why}" for (name, given), why in session.gave_up.items() if given == problem]
    return "\n\nNo row: " + "; ".join(notes) + "." if notes else ""


def summary(session: Session, found: Mapping[str, Sequence[Row]]) -> str:
    """Return the tables of goals, for calls and for builds: one line for each problem."""
    titles = {name: session.problems[name].title for name in found}
    calls = ("one call", "us, strict", "us, fast", "best peer", "strict / it", "fast / it", f"goal {LIBRARIES:g}",
             "strict / C code", "fast / C code", f"goal {C_CODE:g}")  # fmt: skip
    builds = ("build", "s", "s, fast tier", "quickest peer that compiles", "times", "fast tier", f"goal {BUILD:g}")
    return "\n\n".join(
        [
            table(calls, [[titles[name], *call_cells(rows)] for name, rows in found.items()]),
            table(builds, [[titles[name], *build_cells(rows)] for name, rows in found.items()]),
        ]
    )


def call_cells(rows: Sequence[Row]) -> list[str]:
    """Return how much faster a call is than the best peer and than the C code."""
    ours = [fastest(rows, [name]) for name in ("symad", "symad-fast")]
    best, code = fastest(rows, libraries()), fastest(rows, AHEAD_OF_TIME)
    cells = [number(row.microseconds.median) if row else "-" for row in ours]
    cells.append(f"{CANDIDATES[best.candidate].name}, {number(best.microseconds.median)}" if best else "-")
    for peer, goal in ((best, LIBRARIES), (code, C_CODE)):
        ratios = [peer.microseconds.median / row.microseconds.median if row and peer else None for row in ours]
        cells += [*(times(ratio) for ratio in ratios), verdict(ratios[0], goal, ratios[1], "fast")]
    return cells


def build_cells(rows: Sequence[Row]) -> list[str]:
    """Return how much faster a build is than the quickest of the peers that compile."""
    compilers = [row for row in rows if CANDIDATES[row.candidate].compiles and row.candidate not in OURS]
    quickest = min(compilers, key=lambda row: row.build, default=None)
    ours = [fastest(rows, [name]) for name in ("symad", "symad-tier")]
    ratios = [quickest.build / row.build if row and quickest else None for row in ours]
    cells = [number(row.build) if row else "-" for row in ours]
    cells.append(f"{CANDIDATES[quickest.candidate].name}, {number(quickest.build)}" if quickest else "-")
    return [*cells, *(times(ratio) for ratio in ratios), verdict(ratios[0], BUILD, ratios[1], "fast tier")]
