"""One run of the benchmarks: settings, the candidates that could be loaded, what went wrong on the way."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.limited import build_elsewhere
from benchmarks.peers import CANDIDATES, Candidate, Evaluator, Limits, TooLargeError
from benchmarks.problems import Problem, two_variables

START = time.perf_counter()


@dataclass
class Session:
    """Settings and findings that the sections share; `data` is what the plots and the JSON file are made of."""

    quick: bool
    problems: dict[str, Problem]
    limits: Limits
    folder: Path
    candidates: dict[str, Candidate] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    gave_up: dict[tuple[str, str], str] = field(default_factory=dict)  # (candidate, problem): why
    data: dict[str, Any] = field(default_factory=dict)
    evaluators: dict[tuple[str, str], Evaluator] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        """Number of interleaved rounds of a measurement."""
        return 7 if self.quick else 61

    @property
    def seconds(self) -> float:
        """Length of a burst of calls: short, so that most bursts run without an interruption."""
        return 5e-4 if self.quick else 1e-3

    def load(self, names: Sequence[str]) -> None:
        """Import the candidates' libraries; an absent one is noted by name, a broken one is a failure.

        Each builds a tiny problem once, so that no library pays for its own start in the first table.
        """
        for name in names:
            title, package = CANDIDATES[name].name, CANDIDATES[name].package
            try:
                candidate = CANDIDATES[name](self.limits)
            except (ImportError, OSError) as error:
                broken = isinstance(error, ImportError) and getattr(error, "name", None) != package
                (self.failures if broken else self.missing).append(f"{title} ({type(error).__name__}: {error})")
                continue
            tiny = two_variables()
            if self.built(candidate, tiny, name) is not None:
                self.candidates[name] = candidate

    def built(self, candidate: Candidate, problem: Problem, name: str) -> tuple[Evaluator, float] | None:
        """Return an evaluator and the seconds from the Python function to the first number, None after a failure."""
        try:
            return timed_build(candidate, problem)
        except TooLargeError as error:
            self.gave_up[name, problem.name] = str(error)
        except Exception as error:  # a peer may raise anything: the report names it, and the rest still runs
            self.failures.append(f"{candidate.name} failed on {problem.name}: {type(error).__name__}: {error}")
        return None

    def may_build(self, name: str, problem: Problem) -> bool:
        """Whether a candidate can be built here: one that cannot be interrupted is tried in a process of its own."""
        candidate = self.candidates[name]
        reason = candidate.refused.get(problem.name)
        for earlier in ((candidate.follows, problem.name), (name, problem.smaller)):
            if reason is None and earlier in self.gave_up:
                reason = f"not tried after {' on '.join(earlier)}"
        if reason is not None:
            self.gave_up[name, problem.name] = reason
            return False
        if candidate.interruptible or not problem.large:
            return True
        found = build_elsewhere(name, problem.name, self.limits.trial_seconds, self.limits.gigabytes)
        if found.reason:
            self.gave_up[name, problem.name] = found.reason
        return not found.reason

    def say(self, text: str) -> None:
        """Print a line of progress."""
        print(f"[{time.perf_counter() - START:6.1f} s] {text}", file=sys.stderr, flush=True)


def timed_build(candidate: Candidate, problem: Problem) -> tuple[Evaluator, float]:
    """Return an evaluator, and the seconds from the Python function to the first number."""
    candidate.prepare(problem)
    start = time.perf_counter()
    evaluator = candidate.build(problem)
    evaluator.bind(problem.point)()
    return evaluator, time.perf_counter() - start


Section = Callable[[Session], str]
