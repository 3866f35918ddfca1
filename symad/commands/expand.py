"""`symad expand` and `symad check`: an expansion in epsilons, and what a pupil wrote against it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from symad.commands.showing import add_output, add_target, present, read_directions, read_target
from symad.errors import ArgumentError
from symad.teaching.answers.answer_check import check_derivative, check_expansion
from symad.teaching.expansion.expand import expand
from symad.tracing.calling.given import given

DETAIL = ("result", "levels", "steps", "all")


def add_command(commands: Any) -> None:
    """Declare both commands and their options."""
    command = commands.add_parser(
        "expand",
        help="expand f(x + eps_1 v + eps_2 w + ...), one level at a time",
        description="Expand f(x + eps_1 v + eps_2 w + ...), every eps squaring to 0, one level at a time.",
    )
    add_target(command)
    _add_directions(command)
    command.add_argument("--detail", choices=DETAIL, default="steps", help="how much is shown (default steps)")
    add_output(command)
    command.set_defaults(run=run_expand)
    command = commands.add_parser(
        "check",
        help="find the first wrong line of an expansion or a derivative that somebody wrote",
        description="Compare the lines of ANSWER, one step each, with the expansion along --directions, or without "
        "directions with the derivative of some --order. Exit status 1 when a line is wrong.",
    )
    add_target(command)
    command.add_argument("--answer", metavar="FILE", required=True, help="a text file, or - for standard input")
    _add_directions(command)
    add_output(command)
    command.set_defaults(run=run_check)


def _add_directions(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--directions", nargs="+", default=[], metavar="V", help="a name or numbers (1,0) for each level"
    )
    command.add_argument("--order", type=int, help="so many levels along one direction; for a derivative its order")


def run_expand(options: argparse.Namespace) -> int:
    """Carry out `symad expand`; exit status 0."""
    f, x = read_target(options)
    directions = read_directions(options.directions or ["v"], given(f, x).argument)
    if options.order is not None and len(directions) > 1:
        raise ArgumentError("--order with several directions", do="give one direction, or leave --order out")
    given_directions = directions if options.order is None else directions[0]
    shown = expand(f, x, given_directions, order=options.order, detail=options.detail)
    return present(shown, options)


def run_check(options: argparse.Namespace) -> int:
    """Carry out `symad check`; exit status 0 for a right answer, 1 for a wrong one."""
    (f, x), mine = read_target(options), _answer(options.answer)
    if options.directions:
        directions = read_directions(options.directions, given(f, x).argument)
        answer = check_expansion(mine, f, x, directions, order=options.order)
    else:
        answer = check_derivative(mine, f, x, order=options.order or 1)
    present(answer, options)
    return 0 if answer.right else 1


def _answer(name: str) -> str:
    if name == "-":
        return sys.stdin.read()
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"cannot read {name!r}", why=str(error), do="give a text file, or - for input") from error
