"""Section "batch": points per second of derivatives at many points, on one core and on two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

from benchmarks.derivatives import TOLERANCE, aligned, distances
from benchmarks.goals import BATCH, SHARE, WRITING, times, verdict
from benchmarks.machine import cores
from benchmarks.peers import CANDIDATES
from benchmarks.peers.base import Batched, Evaluator
from benchmarks.problems import Problem
from benchmarks.session import Session
from benchmarks.tables import number, percent, table
from benchmarks.timing import Quartiles, interleave

PROBLEMS = ("rosenbrock100", "lj10", "mlp8", "logsumexp20", "harmonics8", "bundle")
LEFT_OUT = ("symad-tier", "symengine")  # a quick build is no question here; SymEngine has no batches
RIVALS = ("heyoka", "heyoka-fast", "jax")  # those that the goal names
COUNT = 4096
COMPARED = (0, 1, 2, 3, 4, 5, 6, 7, 8, 63, 64, COUNT // 2, COUNT - 2, COUNT - 1)
THREADS = (1, 2)


@dataclass(frozen=True)
class Row:
    """Points per second of one candidate, by number of threads, and what one point costs it at least.

    Of ours also in blocks, and of the results being written on one thread, and nothing else.
    """

    candidate: str
    points: dict[int, Quartiles]
    instructions: int | None  # of a point, a fused multiply-add counted once
    bytes: int  # read and written for a point
    difference: float
    blocks: dict[int, Quartiles]
    writing: Quartiles | None


def section(session: Session) -> str:
    """Measure every candidate that has batches."""
    found: dict[str, list[Row]] = {}
    for name in PROBLEMS:
        if name in session.problems:
            session.say(f"batch: {name}")
            found[name] = measure(session, session.problems[name])
    session.data["batch"] = {name: [asdict(row) for row in rows] for name, rows in found.items()}
    titles = {name: session.problems[name].title for name in found}
    peaks = session.data.get("peak", {})
    return "\n\n".join([goals(found, titles, peaks), rates(found, titles)])


def measure(session: Session, problem: Problem) -> list[Row]:
    """Compare and time all candidates on the same points."""
    points = problem.points(COUNT)
    makers = {name: evaluator.batch for name, evaluator in built(session, problem).items() if evaluator.batch}
    rates: dict[tuple[str, str], dict[int, Quartiles]] = {}
    worst = dict.fromkeys(makers, 0.0)
    for threads in THREADS:
        with cores(threads):
            batches = {name: batch(points, threads) for name, batch in makers.items()}
            for name, value in compare(batches, problem).items():
                worst[name] = max(worst[name], value)
            calls = {(name, "call"): batched.call for name, batched in batches.items()}
            calls |= {(name, "blocks"): batched.blocks for name, batched in batches.items() if batched.blocks}
            calls |= {(name, "write"): batched.write for name, batched in batches.items() if batched.write}
            seconds = interleave(calls, session.rounds // 2, 5 * session.seconds)
        for key, found in seconds.items():
            rates.setdefault(key, {})[threads] = Quartiles(*(COUNT / t for t in reversed(astuple(found))))
    for name, value in worst.items():
        if not value <= TOLERANCE:
            session.failures.append(f"{CANDIDATES[name].name} disagrees on a batch of {problem.name}: {value:.1e}")
    return [
        Row(
            name,
            rates[name, "call"],
            b.instructions,
            8 * (problem.point.size + len(b.pattern[0])),
            worst[name],
            rates.get((name, "blocks"), {}),
            rates.get((name, "write"), {}).get(1),
        )
        for name, b in batches.items()
    ]


def built(session: Session, problem: Problem) -> dict[str, Evaluator]:
    """Return the evaluators, those of the other sections where they exist."""
    evaluators = {}
    for name in session.candidates:
        if name in LEFT_OUT or not session.may_build(name, problem):
            continue
        known = session.evaluators.get((name, problem.name))
        if known is None:
            made = session.built(session.candidates[name], problem, name)
            known = made[0] if made else None
        if known is not None:
            evaluators[name] = known
    return evaluators


def compare(batches: Mapping[str, Batched], problem: Problem) -> dict[str, float]:
    """Return the largest distance of each candidate from the median of all, over some of the points."""
    worst = dict.fromkeys(batches, 0.0)
    results = {name: batched.read(batched.call()) for name, batched in batches.items()}
    for k in COMPARED:
        entries = aligned({name: (batched.pattern, results[name][k]) for name, batched in batches.items()}, problem)
        for name, value in distances(entries).items():
            worst[name] = max(worst[name], value)
    return worst


def best(rows: Sequence[Row], names: Sequence[str], threads: int = 1) -> Row | None:
    """Return the row with the most points per second among those of `names`."""
    return max((row for row in rows if row.candidate in names), key=lambda r: r.points[threads].median, default=None)


def goals(found: Mapping[str, Sequence[Row]], titles: Mapping[str, str], peaks: Mapping[str, Any]) -> str:
    """Return the tables of goals: against the rivals, and against the machine."""
    rivals = ("points per second", "best of heyoka and JAX", "strict / it", "fast / it", "blocks / it",
              "% of writing alone, strict", f"goal {BATCH:g}, or {100 * WRITING:.0f} % of writing",
              "2 threads: strict / it", "fast / it", "blocks / it")  # fmt: skip
    machine = ("one core", "% of instruction peak, strict", "fast", "% of bandwidth, strict", "fast",
               f"goal {100 * SHARE:.0f} %", "2 threads / 1, strict", "fast")  # fmt: skip
    return "\n\n".join(
        [
            table(rivals, [[titles[name], *rival_cells(rows)] for name, rows in found.items()]),
            table(machine, [[titles[name], *machine_cells(rows, peaks)] for name, rows in found.items()]),
        ]
    )


def our_rows(rows: Sequence[Row]) -> list[Row | None]:
    """Return our rows, strict and fast."""
    return [best(rows, [name]) for name in ("symad", "symad-fast")]


def rival_cells(rows: Sequence[Row]) -> list[str]:
    """Return how many times more points we do than the best rival, on one core and on two."""
    strict, cells = best(rows, ["symad"]), []
    for threads in THREADS:
        rival = best(rows, RIVALS, threads)
        rates = [row.points[threads] if row else None for row in our_rows(rows)]
        rates.append(strict.blocks.get(threads) if strict else None)
        ratios = [rate.median / rival.points[threads].median if rate and rival else None for rate in rates]
        cells += [times(ratio) for ratio in ratios]
        if threads == 1:
            written = strict.points[1].median / strict.writing.median if strict and strict.writing else None
            near = (written or 0.0) >= WRITING
            cells.insert(0, CANDIDATES[rival.candidate].name if rival else "-")
            others = [ratio for ratio in ratios[1:] if ratio is not None]
            cells += [
                percent(written),
                "met" if near else verdict(ratios[0], BATCH, max(others, default=None), "another form"),
            ]
    return cells


def machine_cells(rows: Sequence[Row], peaks: Mapping[str, Any]) -> list[str]:
    """Return which part of the machine's peaks we reach, and what the second core adds."""
    ours = our_rows(rows)
    work, memory = (shares(ours, peaks, kind) for kind in ("instructions", "bytes"))
    reached = [max((s for s in pair if s is not None), default=None) for pair in zip(work, memory, strict=True)]
    scaling = [row.points[2].median / row.points[1].median if row else None for row in ours]
    cells = [percent(share) for share in (*work, *memory)]
    return [*cells, verdict(reached[0], SHARE, reached[1], "fast"), *(times(ratio) for ratio in scaling)]


def shares(rows: Sequence[Row | None], peaks: Mapping[str, Any], kind: str) -> list[float | None]:
    """Return which part of the peak of one core each row reaches; None where something is not known."""
    if not peaks:
        return [None for _ in rows]
    peak = peaks["bytes"][1] if kind == "bytes" else max(peaks[f"fma{w}"][1] for w in (1, 4, 8)) / 2
    return [row.points[1].median * (getattr(row, kind) or 0) / peak if row else None for row in rows]


def rates(found: Mapping[str, Sequence[Row]], titles: Mapping[str, str]) -> str:
    """Return the table of points per second, in millions: on one core, then on two."""
    names = [name for name in CANDIDATES if any(row.candidate == name for rows in found.values() for row in rows)]
    lines = []
    for problem, rows in found.items():
        by_name = {row.candidate: row for row in rows}
        cells = [titles[problem]]
        for name in names:
            row = by_name.get(name)
            medians = [row.points[threads].median / 1e6 for threads in THREADS] if row else []
            cells.append(" / ".join(number(value) for value in medians) or "-")
        lines.append(cells)
    return table(("10^6 points/s, 1 / 2 threads", *(CANDIDATES[name].name for name in names)), lines)
