"""Measure Hessians of four problems, symad beside its peers: `python -m benchmarks.hessian [--quick]`.

Writes a Markdown report, prints it, and exits non-zero when two candidates disagree or one that is installed fails.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.overhead import overhead_section
from benchmarks.peers import AHEAD_OF_TIME, CANDIDATES, OURS, Candidate, Evaluator
from benchmarks.problems import Problem, make_problems, two_variables
from benchmarks.report import Row, heading, problem_table
from benchmarks.timing import Quartiles, interleave

TOLERANCE = 1e-12
POINTS = 3
BUILDS = 3
LONG_BUILD = 1.0
RESULTS = Path(__file__).parent / "results" / "hessian.md"


@dataclass
class Field:
    """The candidates that could be loaded, those that could not, and what went wrong on the way."""

    candidates: dict[str, Candidate]
    missing: list[str]
    failures: list[str]


def load(names: Sequence[str]) -> Field:
    """Import the candidates' libraries; an absent one is noted by name, a broken one is a failure."""
    field = Field({}, [], [])
    for name in names:
        title, package = CANDIDATES[name].name, CANDIDATES[name].package
        try:
            field.candidates[name] = CANDIDATES[name]()
        except (ImportError, OSError) as error:
            note = f"{title} ({type(error).__name__}: {error})"
            broken = isinstance(error, ImportError) and getattr(error, "name", None) != package
            (field.failures if broken else field.missing).append(note)
    return field


def timed_build(candidate: Candidate, problem: Problem) -> tuple[Evaluator, float]:
    """Return an evaluator, and the seconds from the Python function to the first number."""
    start = time.perf_counter()
    evaluator = candidate.build(problem)
    evaluator.bind(problem.point)()
    return evaluator, time.perf_counter() - start


def build_all(field: Field, problem: Problem) -> tuple[dict[str, Evaluator], dict[str, list[float]]]:
    """Build every candidate, in interleaved rounds; a long build is not repeated. A failure takes a candidate out."""
    evaluators: dict[str, Evaluator] = {}
    seconds: dict[str, list[float]] = {}
    failed: set[str] = set()
    for _ in range(BUILDS):
        for name, candidate in field.candidates.items():
            if name in failed or seconds.get(name, [0.0])[0] > LONG_BUILD:
                continue
            try:
                evaluators[name], elapsed = timed_build(candidate, problem)
            except Exception as error:  # a peer may raise anything: the report names it, and the rest still runs
                failed.add(name)
                field.failures.append(f"{candidate.name} failed on {problem.name}: {type(error).__name__}: {error}")
            else:
                seconds.setdefault(name, []).append(elapsed)
    alive = {name: evaluator for name, evaluator in evaluators.items() if name not in failed}
    return alive, seconds


def differences(evaluators: dict[str, Evaluator], problem: Problem) -> dict[str, float]:
    """Return each candidate's largest distance from the candidates' median entry, relative to max |H|."""
    worst = dict.fromkeys(evaluators, 0.0)
    for x in problem.points(POINTS):
        matrices = {name: evaluator.matrix(evaluator.bind(x)()) for name, evaluator in evaluators.items()}
        median = np.median(list(matrices.values()), axis=0)
        scale = np.abs(median).max()
        for name, matrix in matrices.items():
            distance = np.abs(matrix - median).max() / scale
            worst[name] = max(worst[name], float("inf") if np.isnan(distance) else float(distance))
    return worst


def fastest(times: dict[str, Quartiles], names: Sequence[str]) -> float:
    """Return the smallest median among those of `names` that were timed, NaN when none was."""
    return min((times[name].median for name in names if name in times), default=float("nan"))


def measure(field: Field, problem: Problem, rounds: int, seconds: float) -> list[Row]:
    """Build, compare and time all candidates on one problem."""
    evaluators, builds = build_all(field, problem)
    if not evaluators:
        return []
    distance = differences(evaluators, problem)
    for name, value in distance.items():
        if not value <= TOLERANCE:
            field.failures.append(f"{CANDIDATES[name].name} disagrees on {problem.name}: {value:.1e} of max |H|")
    times = interleave({name: evaluators[name].bind(problem.point) for name in evaluators}, rounds, seconds)
    libraries = fastest(times, [name for name in times if name not in OURS + AHEAD_OF_TIME])
    compiler = fastest(times, AHEAD_OF_TIME)
    return [
        Row(
            name=CANDIDATES[name].name,
            form=CANDIDATES[name].form,
            operations=evaluators[name].operations,
            builds=builds[name],
            per_call=times[name],
            ratio_libraries=libraries / times[name].median,
            ratio_compiler=compiler / times[name].median,
            difference=distance[name],
        )
        for name in evaluators
    ]


def warm_up(field: Field) -> None:
    """Build a tiny problem once, so that no library pays for its own start in the first table."""
    problem = two_variables()
    for name, candidate in list(field.candidates.items()):
        try:
            timed_build(candidate, problem)
        except Exception as error:  # as in build_all
            del field.candidates[name]
            note = f"{candidate.name} could not build {problem.name}: {type(error).__name__}: {error}"
            field.failures.append(note)


def write_report(field: Field, problems: Sequence[Problem], rounds: int, seconds: float) -> str:
    """Measure everything and return the report."""
    versions = dict.fromkeys(f"{candidate.package} {candidate.version}" for candidate in field.candidates.values())
    calls = [f"- {candidate.name}: {candidate.call}" for candidate in field.candidates.values()]
    warm_up(field)
    sections = []
    for problem in problems:
        print(f"measuring {problem.name} ...", file=sys.stderr, flush=True)
        sections.append(f"## {problem.title}\n\n{problem_table(measure(field, problem, rounds, seconds))}")
    sections.append(overhead_section(field.candidates, rounds, seconds))
    top = heading(list(versions), field.missing + field.failures, rounds, seconds)
    return "\n\n".join([top, "How each is called:\n\n" + "\n".join(calls), *sections]) + "\n"


def names(known: Sequence[str], text: str) -> list[str]:
    """Return the names in a comma-separated list, refusing unknown ones."""
    chosen = [name for name in text.split(",") if name]
    if unknown := [name for name in chosen if name not in known]:
        raise SystemExit(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
    return chosen


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hessian", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--problems", default=",".join(make_problems()), help="comma-separated; default: all")
    parser.add_argument("--peers", default=",".join(CANDIDATES), help="comma-separated candidates; default: all")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds: a look, not a measurement")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the report goes")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 when a number is wrong or a candidate failed."""
    options = parse(arguments)
    known = make_problems()
    problems = [known[name] for name in names(list(known), options.problems)]
    field = load(names(list(CANDIDATES), options.peers))
    rounds, seconds = (7, 1e-3) if options.quick else (41, 4e-3)
    report = write_report(field, problems, rounds, seconds)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(report, encoding="utf-8")
    print(report)
    for failure in field.failures:
        print(failure, file=sys.stderr)
    return 1 if field.failures else 0


if __name__ == "__main__":
    sys.exit(main())
