"""Campaigns: what is tried many times over, counted by outcome, with every failure kept."""

from __future__ import annotations

import contextlib
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from codegen.errors import InvariantError, WorkbenchError

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")  # never in what people read
SLOW = 2.0  # seconds of processor time that one try may take


@dataclass
class Report:
    """How tries ended: outcomes by name, and the tries that failed, each with what happened."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)

    @property
    def tries(self) -> int:
        """How many tries there were."""
        return sum(self.outcomes.values())

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in self.outcomes.most_common())
        return f"{self.tries} tries, {len(self.failures)} failed: {counts}"


def tried(report: Report, what: str, attempt: Callable[[], Any]) -> None:
    """Make one attempt: it may return, or raise an error of ours; an assertion or any other error is a failure."""
    started = time.process_time()
    try:
        outcome = attempt()
        report.outcomes[outcome if isinstance(outcome, str) else "right"] += 1
    except InvariantError as error:
        report.outcomes["failed"] += 1
        report.failures.append(f"{what}\n    {error}")
    except WorkbenchError as error:
        report.outcomes[type(error).__name__] += 1
        if CONTROL.search(str(error)):
            report.failures.append(f"{what}\n    control characters in the message: {error!r}")
    except Exception as error:
        report.outcomes["failed"] += 1
        report.failures.append(f"{what}\n    {type(error).__name__}: {error}")
    if time.process_time() - started > SLOW:
        report.slow.append(f"{what}\n    {time.process_time() - started:.1f} s of processor time")


def carried_out(tries: Iterator[tuple[str, Callable[[], Any]]], count: int, seconds: float = float("inf")) -> Report:
    """Make the first `count` tries, or as many as the time or Ctrl-C allows."""
    report, end = Report(), time.monotonic() + seconds
    with contextlib.suppress(KeyboardInterrupt):
        for what, attempt in tries:
            if report.tries >= count or time.monotonic() > end:
                break
            tried(report, what, attempt)
    return report
