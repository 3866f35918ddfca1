"""`symad confusion`: nested derivatives by wrong designs beside the right one."""

from __future__ import annotations

import argparse

from symad.classroom.confusion.exhibit import FAMOUS, Exhibit, exhibit, own_exhibit
from symad.classroom.formulas.given import given
from symad.classroom.formulas.targets import formula_at
from symad.commands.showing import add_names, add_output, assignment, present
from symad.errors import ArgumentError

POINT = 1.0  # of a variable that is given none


def declare_confusion(command: argparse.ArgumentParser) -> None:
    """Declare the options of `symad confusion`."""
    command.description = (
        "Run nested derivatives by designs that confuse their levels, and by the right one. A PROGRAM is "
        f"one of {', '.join(FAMOUS)} (by default all), or a formula of one or two variables, which is nested."
    )
    command.add_argument("programs", nargs="*", metavar="PROGRAM or FORMULA", help="what is run")
    add_names(command, "--at", "the point of a formula (default 1)", "NAME=NUMBER")
    add_output(command)


def run_confusion(options: argparse.Namespace) -> int:
    """Carry out `symad confusion`; exit status 0."""
    names = options.programs or list(FAMOUS)
    if len(names) > 1 and (options.html or options.output or options.json):
        raise ArgumentError(f"{len(names)} programs on one page", do="name one")
    for name in names:
        present(_shown(name, options), options)
    return 0


def _shown(name: str, options: argparse.Namespace) -> Exhibit:
    if name in FAMOUS:
        if options.at:
            raise ArgumentError(f"--at with {name}", do="leave it out: the program says where")
        return exhibit(name)
    values = dict(map(assignment, options.at))
    expression, x = formula_at(name, values)
    symbols = given(expression, x).symbols
    return own_exhibit(expression, symbols, [values.get(str(symbol), POINT) for symbol in symbols])
