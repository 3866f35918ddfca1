"""`symad exercise` and `symad worksheet`: random questions, hints, verdicts, and sheets to print."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import symad as sa
from symad.classroom.exercises.topics import topics
from symad.commands.names import HELP
from symad.commands.showing import add_output, present, read_answer


def add_commands(commands: Any) -> None:
    """Declare both commands and their options."""
    command = commands.add_parser(
        "exercise",
        help=HELP["exercise"],
        description="Print a random exercise of a topic, the same for the same seed; without a topic, all topics. "
        "With --answer, exit status 1 when a line of it is wrong.",
    )
    command.add_argument("topic", nargs="?", default="", metavar="TOPIC", help='such as "product rule"')
    _add_choice(command)
    command.add_argument("--hints", type=int, default=0, metavar="K", help="print the first K hints too")
    command.add_argument("--solution", action="store_true", help="show the derivation, the answer and typical mistakes")
    command.add_argument("--answer", metavar="FILE", help="check the answer in a text file, or - for standard input")
    add_output(command)
    command.set_defaults(run=run_exercise)
    command = commands.add_parser(
        "worksheet",
        help=HELP["worksheet"],
        description="Make a sheet of different exercises, of one topic or of several in turn, and its solutions. "
        "Pages print on A4 and Letter.",
    )
    command.add_argument("topics", nargs="+", metavar="TOPIC", help='such as "product rule" "chain rule"')
    _add_choice(command)
    command.add_argument("--count", type=int, default=10, help="how many exercises (default 10)")
    command.add_argument(
        "--solutions", type=Path, metavar="FILE", help="write the solutions too: .html, .tex, .ipynb, .txt"
    )
    add_output(command)
    command.set_defaults(run=run_worksheet)


def _add_choice(command: argparse.ArgumentParser) -> None:
    command.add_argument("--level", type=int, default=1, help="1 to 3 (default 1)")
    command.add_argument("--seed", type=int, default=0, help="any integer (default 0)")
    command.add_argument("--max-seconds", type=float, default=300.0, help="give up after this time (default 300)")


def run_exercise(options: argparse.Namespace) -> int:
    """Carry out `symad exercise`; exit status 0, or 1 for a wrong answer."""
    if not options.topic:
        options.progress.end()
        print("\n".join(topics()))
        return 0
    practice = sa.exercise(options.topic, options.level, options.seed)
    if options.answer is not None:
        checked = practice.check(read_answer(options.answer))
        present(checked, options)
        return 0 if checked.right else 1
    present(practice.solution if options.solution else practice, options)
    for k, hint in enumerate(practice.hints[: max(options.hints, 0)], 1):
        print(f"\nhint {k}: {hint}")
    return 0


def run_worksheet(options: argparse.Namespace) -> int:
    """Carry out `symad worksheet`; exit status 0."""
    sheet = sa.worksheet(options.topics, level=options.level, seed=options.seed, count=options.count)
    if options.solutions is not None:
        options.progress.end()
        file = sheet.solutions.save(options.solutions, big=options.big)
        print(f"written: {file}", file=sys.stderr if options.json else sys.stdout)
    return present(sheet, options)
