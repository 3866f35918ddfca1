"""Search the worst errors of a kernel over a box: sample points of many kinds, then climb from the worst."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from time import monotonic
from typing import Any

import numpy as np
from mpmath import mp

from codegen import Kernel
from codegen.machine.batches.batch_run import Progress
from codegen.records import dataclass
from symad.classroom.verification.exact import Exact, Known, condition, error_bound, spacing
from symad.classroom.verification.points import Box, Points, adversarial_points, edge_points, neighbours, random_points
from symad.classroom.verification.verification_result import FAR, ROWS, BoxVerification, EntryError, entry_names
from symad.tracing.values.containers import flatten

BINS = (0.5, 1.0, 2.0, 4.0, 16.0, 1e8, math.inf)  # ULP; 1e8 is half of the digits
CLIMB = 16  # neighbours in one step of the search
IDLE = 20  # steps without a new point, after which the search ends
SHARES = (0.3, 0.15, 0.3)  # of the points: adversarial, at edges, random; the rest is for the search
SEARCH = 0.85  # of the time; the rest is for condition numbers
CONDITIONS = 60  # points at which the effect of rounding the inputs is computed
LARGE = 2.0**20  # ULP; the sign of a zero may cause larger errors


@dataclass(frozen=True)
class Sample:
    """A result at a point: the kernel's number, the exact one, and the error bound in ULP."""

    point: Points
    value: float
    exact: Known
    error: float

    def milder(self, other: Sample | None) -> Sample:
        """Return the sample whose point has numbers closer to 1."""
        return self if other is None or self._wildness() < other._wildness() else other

    def _wildness(self) -> float:
        sizes = np.abs(self.point[self.point != 0])
        return float(np.max(np.abs(np.log2(sizes)), initial=0.0))


class Search:
    """Measures a kernel at points of a box until time is up."""

    kernel: Kernel
    box: Box
    exact: Exact

    def __init__(self, kernel: Kernel, box: Box, exact: Exact, seconds: float, progress: Progress | None) -> None:
        self.kernel, self.box, self.exact = kernel, box, exact
        self.started: float = monotonic()
        self.seconds, self.progress, self.wanted = seconds, progress, 0
        self.worst: dict[int, Sample] = {}  # the worst sample of each entry
        self.infinite: dict[int, Sample] = {}
        self.sizes: dict[tuple[int, int], Sample] = {}  # the mildest of each entry and size of error
        self.bins: Counter[float] = Counter()
        self.kinds: Counter[str] = Counter()
        self.disputed: tuple[int, Sample] | None = None
        self.points: int = 0
        self.seen: set[bytes] = set()
        self.stopped: bool = False  # for want of time

    def add(self, entry: int, sample: Sample) -> None:
        """Count a result with an error."""
        if math.isinf(sample.error):
            self.kinds["infinite"] += 1
            self.infinite[entry] = sample.milder(self.infinite.get(entry))
            return
        if sample.error > FAR:
            size = entry, int(math.log(sample.error, FAR))
            self.sizes[size] = sample.milder(self.sizes.get(size))
        self.bins[next(bound for bound in BINS if sample.error <= bound)] += 1
        if entry not in self.worst or sample.error > self.worst[entry].error:
            self.worst[entry] = sample

    def apart(self, entry: int, value: float, known: Known, point: Points) -> None:
        """Count a result whose exact number is undefined or not known well enough."""
        if not mp.isnan(known.middle) or known.radius != 0:
            self.kinds["undecided"] += 1
            return
        self.kinds["undefined"] += 1
        if not math.isnan(value):
            self.kinds["disputed"] += 1
            self.disputed = self.disputed or (entry, Sample(point, value, known, math.inf))

    def ranked(self) -> list[int]:
        known = set(self.worst) | set(self.infinite)
        return sorted(known, key=lambda entry: (-self.of(entry).error, entry))

    def of(self, entry: int) -> Sample:
        return self.infinite.get(entry) or self.worst[entry]

    def left(self) -> float:
        """The seconds left."""
        return self.started + self.seconds - monotonic()

    def run(self, count: int, seed: int, *, digits: int, rigorous: bool, against: str) -> BoxVerification:
        """Measure `count` points, or as many as the time allows, at least one."""
        self.wanted = count
        self._sample(count, np.random.default_rng(seed))
        names, known = entry_names(self.kernel), self.conditions()

        def row(entry: int, sample: Sample) -> EntryError:
            at = known.get(sample.point.tobytes())
            error = EntryError(
                names[entry], entry, sample.error, self.box.arguments(sample.point), sample.value, sample.exact.middle,
                sample.exact.radius, None if at is None else at[entry],
            )  # fmt: skip
            return replace(error, at_edge=True) if error.is_unexplained() and self._at_edge(entry, sample) else error

        rows = tuple(row(entry, self.of(entry)) for entry in self.ranked())
        candidates = [*rows, *(row(entry, sample) for (entry, _), sample in self.sizes.items())]
        kinds = self.kinds
        return BoxVerification(
            self.points, count, not self.stopped, len(names), rows, {bound: self.bins[bound] for bound in BINS},
            max((sample.error for sample in self.worst.values()), default=math.nan),
            kinds["infinite"], kinds["undefined"], kinds["disputed"], kinds["undecided"], kinds["signed"],
            rigorous, seed, digits, against, None if self.disputed is None else row(*self.disputed),
            max(filter(EntryError.is_unexplained, candidates), key=EntryError.excess, default=None),
        )  # fmt: skip

    def _at_edge(self, entry: int, sample: Sample) -> bool:
        """Whether the kernel's number is among or between exact results a few floats away.

        This holds if rounding decides about a branch. A smooth function does not move as far as an error that rounding
        the inputs does not explain.
        """
        near = [sample.exact.middle]
        for position, step in product(range(len(sample.point)), (-8, -4, -2, -1, 1, 2, 4, 8)):
            if self.left() < 0 or not math.isfinite(sample.value):
                return False
            moved = sample.point.tolist()
            moved[position] += step * spacing(moved[position], self.box.single)
            near.append(self.exact(moved)[entry].middle)
        finite = [number for number in near if mp.isfinite(number)]
        slack = FAR * spacing(sample.value, self.box.single)
        return bool(finite) and min(finite) - slack <= sample.value <= max(finite) + slack

    def _sample(self, count: int, random: np.random.Generator) -> None:
        special, edges, spread = (round(share * count) for share in SHARES)
        kinds = [adversarial_points(self.box, special, random), random_points(self.box, spread, random)]
        if self.left() > 0 and edges:
            kinds.append(edge_points(self.kernel, self.box, edges, random)[:edges])
        first = self.box.inside(np.concatenate([*kinds, random_points(self.box, 1, random)]))
        self.measure(random.permutation(first)[:count])
        idle = 0
        while self.points < count and not self.stopped and idle < IDLE:
            before = self.points
            self.measure(self._next(random)[: count - before])
            idle = idle + 1 if self.points == before else 0

    def _next(self, random: np.random.Generator) -> Points:
        """Return points near the worst point of all entries or of one entry; random ones if there is none."""
        ranked = [entry for entry in self.ranked() if entry in self.worst]
        if not ranked:
            return random_points(self.box, CLIMB, random)
        entry = ranked[0] if random.random() < 0.5 else ranked[int(random.integers(len(ranked)))]
        return neighbours(self.box, self.worst[entry].point, CLIMB, random)

    def measure(self, points: Points) -> None:
        """Measure results at new points, one by one and as a batch. The larger error counts."""
        points = points[[point.tobytes() not in self.seen for point in points]]
        if not len(points):
            return
        together = values_of(self.kernel.batch(*self.box.arguments(points)), len(points))
        for point, values in zip(points, together, strict=True):
            self.stopped = self.left() < (1 - SEARCH) * self.seconds
            if self.stopped and self.points:
                return
            self.seen.add(point.tobytes())
            alone = values_of(self.kernel(*self.box.arguments(point)), 1)[0]
            self._compare(point, alone, values, self.exact(point.tolist()))
            self.points += 1
            if self.progress is not None:
                self.progress(self.points, self.wanted)

    def _compare(self, point: Points, alone: Points, together: Points, exact: Sequence[Known]) -> None:
        for entry, (value, other, known) in enumerate(zip(alone.tolist(), together.tolist(), exact, strict=True)):
            errors = {value: error_bound(value, known, self.box.single)}
            if other != value and not (math.isnan(other) and math.isnan(value)):
                errors[other] = error_bound(other, known, self.box.single)
            if mp.isnan(known.middle) or None in errors.values():
                self.apart(entry, value, known, point)
                continue
            worse, error = max(((u, e) for u, e in errors.items() if e is not None), key=lambda pair: pair[1])
            of_zero = error > LARGE and self._sign_of_zero(entry, point, known)
            if of_zero or (error > LARGE and self._sign_at_pole(entry, worse, point, known)):
                self.kinds["signed"] += 1
            else:
                self.add(entry, Sample(point, worse, known, error))

    def _sign_of_zero(self, entry: int, point: Points, known: Known) -> bool:
        """Whether a negative zero among the inputs causes the error: exact numbers have only one zero."""
        if not np.any((point == 0) & np.signbit(point)):
            return False
        value = float(values_of(self.kernel(*self.box.arguments(point + 0.0)), 1)[0][entry])
        error = error_bound(value, known, self.box.single)
        return error is not None and error <= LARGE

    def _sign_at_pole(self, entry: int, value: float, point: Points, known: Known) -> bool:
        """Whether both are infinite with opposite signs, and exact results nearby have the kernel's sign."""
        if not (math.isinf(value) and mp.isinf(known.middle)):
            return False
        beside = neighbours(self.box, point, CLIMB, np.random.default_rng(0))
        return any(bool(self.exact(place.tolist())[entry].middle * value > 0) for place in beside)

    def conditions(self) -> dict[bytes, list[float]]:
        """Return, for points with large errors, the effect of rounding the inputs, as far as time allows."""
        conditions: dict[bytes, list[float]] = {}
        cost = 2 * len(self.box.low) * (monotonic() - self.started) / max(self.points, 1)
        samples = [self.of(entry) for entry in self.ranked()[:ROWS]]
        samples += sorted(self.sizes.values(), key=lambda sample: -sample.error)
        for point in {sample.point.tobytes(): sample.point for sample in samples[:CONDITIONS]}.values():
            if cost > self.left():
                break
            conditions[point.tobytes()] = condition(self.exact, point.tolist(), self.box.single)
        return conditions


def values_of(results: Any, count: int) -> Points:
    """Return the results of `count` points as rows of flat numbers."""
    leaves, _ = flatten(results)
    parts = [np.asarray(leaf, dtype=float).reshape(count, -1) for leaf in leaves]
    return np.concatenate(parts or [np.zeros((count, 0))], axis=1)
