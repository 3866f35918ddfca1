"""Campaigns that go on for as long as they are given; quick forms of them are among the tests.

python -m tests.campaign NAME [COUNT] [--seconds S] [--seed N]   tries, outcomes, failures; exit status 1 if any failed
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys

os.environ.setdefault("SYMAD_STRICT", "1")

from tests.support import (
    displayed_equalities,
    environments,
    extremes,
    generated_answers,
    interruptions,
    kernel_threads,
    mutated_files,
    mutated_text,
    random_exercises,
)
from tests.support.campaigns import carried_out

CAMPAIGNS = {
    "answers": generated_answers.tries,
    "displayed": displayed_equalities.tries,
    "environments": environments.tries,
    "exercises": random_exercises.tries,
    "extremes": extremes.tries,
    "files": mutated_files.tries,
    "interrupts": interruptions.tries,
    "text": mutated_text.tries,
    "threads": kernel_threads.tries,
}
FAST = {"files", "text"}  # none of their tries may take longer than `campaigns.SLOW`


def main() -> int:
    """Run a campaign, print its report and everything that failed or was slow."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("name", choices=CAMPAIGNS)
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    stopping = signal.SIGINT, signal.SIGTERM  # a shell's background jobs ignore the first
    for stopped in stopping:
        signal.signal(stopped, signal.default_int_handler)
    gc.set_threshold(50_000)  # as in tests: SymPy's many small objects die without it
    report = carried_out(CAMPAIGNS[options.name](options.seed), options.count, options.seconds)
    for stopped in stopping:  # the report is wanted now
        signal.signal(stopped, signal.SIG_IGN)
    slow = report.slow if options.name in FAST else []
    for title, lines in (("failed", report.failures), ("slow", slow)):
        for line in lines:
            print(f"{title}: {line}")
    print(report)
    return bool(report.failures or slow)


if __name__ == "__main__":
    sys.exit(main())
