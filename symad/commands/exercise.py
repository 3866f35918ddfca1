"""`symad exercise` and `symad worksheet`: random questions, hints, verdicts, and sheets to print."""

from __future__ import annotations

import argparse
from pathlib import Path

import symad as sa
from symad.classroom.exercises.topics import topics
from symad.commands.showing import add_output, add_seconds, present, read_answer, told


def declare_exercise(command: argparse.ArgumentParser) -> None:
    """Declare the options of `symad exercise`."""
    command.add_argument("topic", nargs="?", default="", metavar="TOPIC", help='such as "product rule"')
    _add_choice(command)
    command.add_argument("--hints", type=int, default=0, metavar="K", help="print the first K hints too")
    command.add_argument("--solution", action="store_true", help="show the derivation, the answer and typical mistakes")
    command.add_argument("--answer", metavar="FILE", help="check the answer in a text file, or - for standard input")
    add_output(command)


def declare_worksheet(command: argparse.ArgumentParser) -> None:
    """Declare the options of `symad worksheet`."""
    command.add_argument("topics", nargs="+", metavar="TOPIC", help='such as "product rule" "chain rule"')
    _add_choice(command)
    command.add_argument("--count", type=int, default=10, help="how many exercises (default 10)")
    what = "write the solutions too: .html, .tex, .ipynb, .txt"
    command.add_argument("--solutions", type=Path, metavar="FILE", help=what)
    add_output(command)


def _add_choice(command: argparse.ArgumentParser) -> None:
    command.add_argument("--level", type=int, default=1, help="1 to 3 (default 1)")
    command.add_argument("--seed", type=int, default=0, help="any integer (default 0)")
    add_seconds(command)


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
        told([sheet.solutions.save(options.solutions, big=options.big)], options)
    return present(sheet, options)
