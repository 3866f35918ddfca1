"""Clocks: interleaved bursts of calls, so that a change of the machine's speed meets every candidate alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Call = Callable[[], object]
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Quartiles:
    """The median of a sample and the quartiles around it."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, sample: npt.ArrayLike) -> Quartiles:
        """
        >>> Quartiles.of([1.0, 2.0, 3.0, 4.0, 5.0])
        Quartiles(low=2.0, median=3.0, high=4.0)
        """
        return cls(*(float(value) for value in np.percentile(np.asarray(sample, dtype=float), [25, 50, 75])))

    def scaled(self, factor: float) -> Quartiles:
        """Return the same in another unit."""
        return Quartiles(self.low * factor, self.median * factor, self.high * factor)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Keep the garbage collector out of the timed loops."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def burst(call: Call, number: int) -> float:
    """Return the seconds that `number` calls take, one right after the other."""
    start = time.perf_counter()
    for _ in repeat(None, number):
        call()
    return time.perf_counter() - start


def calls_per_burst(call: Call, seconds: float) -> int:
    """Return how many calls fill `seconds`: double until the clock can tell, then scale."""
    number = 1
    while (elapsed := burst(call, number)) < seconds / 4:
        number *= 2
    return max(1, round(number * seconds / elapsed))


def interleave(calls: Mapping[K, Call], rounds: int, seconds: float) -> dict[K, Quartiles]:
    """Return seconds per call of every candidate: in each round each runs one burst, in turn.

    Every burst is preceded by one untimed call, because the others have emptied the caches in between.
    """
    numbers = {name: calls_per_burst(call, seconds) for name, call in calls.items()}
    samples: dict[K, list[float]] = {name: [] for name in calls}
    with no_garbage_collection():
        for _ in range(rounds):
            for name, call in calls.items():
                call()
                samples[name].append(burst(call, numbers[name]) / numbers[name])
    return {name: Quartiles.of(sample) for name, sample in samples.items()}
