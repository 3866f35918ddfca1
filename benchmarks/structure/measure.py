"""Measure one row: every candidate in a process of its own, bursts interleaved over all of them, entries compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.structure.candidates import OURS
from benchmarks.structure.cases import Case
from benchmarks.structure.entries import Entries, difference
from benchmarks.structure.remote import NoResultError, Remote

Say = Callable[[str], None]
Row = dict[str, dict[str, Any]]  # what was found, by candidate


@dataclass(frozen=True)
class Limits:
    """Seconds of a build: of ours, in straight lines, of peers; memory of a process; how often bursts are taken."""

    ours: float = 120.0
    straight: float = 60.0
    peers: float = 30.0
    gigabytes: float = 10.0
    blocks: int = 3
    rounds: int = 7
    longest: float = 1.5  # seconds of a round after which a row has fewer rounds

    def of(self, candidate: str) -> float:
        """Return the seconds that a candidate may build."""
        return self.straight if candidate == "never" else self.ours if candidate in OURS else self.peers


def measure(case: Case, names: Sequence[str], limits: Limits, say: Say) -> Row:
    """Return what was found of each candidate: build, microseconds, differences; or the reason why there is nothing."""
    row: Row = {}
    with ExitStack() as stack:
        workers: dict[str, Remote] = {}
        for name in names:
            start = time.perf_counter()
            try:
                seconds = limits.of(name)
                workers[name] = stack.enter_context(Remote(name, case.name, seconds, limits.gigabytes))
                row[name] = dict(workers[name].found)
            except NoResultError as reason:
                row[name] = {"reason": str(reason)}
            say(f"{case.name}: {name}: {row[name].get('reason', 'built')}, {time.perf_counter() - start:.1f} s")
        for name, samples in interleaved(workers, limits).items():
            row[name] |= samples
        for name, found in differences(case, workers).items():
            row[name] |= found
    return row


def interleaved(workers: Mapping[str, Remote], limits: Limits) -> dict[str, dict[str, Any]]:
    """Return microseconds per call: the best of the medians of some blocks of rounds, and the quartiles of all."""
    rounds = limits.rounds
    samples: dict[str, list[float]] = {name: [] for name in workers}
    blocks: dict[str, list[float]] = {name: [] for name in workers}
    for _ in range(limits.blocks):
        done = 0
        while done < rounds:
            start = time.perf_counter()
            for name, worker in workers.items():
                samples[name].append(1e6 * worker.burst())
            rounds = 3 if time.perf_counter() - start > limits.longest else rounds
            done += 1
        for name in workers:
            blocks[name].append(float(np.median(samples[name][-done:])))
    return {
        name: {"microseconds": min(blocks[name]), "quartiles": np.percentile(samples[name], [25, 75]).tolist()}
        for name in workers
    }


def differences(case: Case, workers: Mapping[str, Remote]) -> dict[str, dict[str, float]]:
    """Return each candidate's largest difference to the right values, and ours' to those of straight lines."""
    right = [case.right(x) for x in case.points()]
    each = bool(case.family.steps)  # quantities of different kinds: each relative to itself
    found: dict[str, dict[str, float]] = {}
    straight = workers["never"].entries() if "never" in workers else None
    for name, worker in workers.items():
        values = worker.entries()
        found[name] = {"difference": _worst(values, right, each)}
        if straight is not None and name in OURS:
            found[name]["to straight"] = _worst(values, straight, each)
    return found


def _worst(found: Sequence[Entries], right: Sequence[Entries], each: bool) -> float:
    return max(difference(one, other, each) for one, other in zip(found, right, strict=True))
