"""`symad explain` and `symad draw`: the program that transforms of a function write down, in words and as a picture."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from symad.commands.showing import add_output, add_target, present, read_target
from symad.drawing.draw import draw
from symad.teaching.explain import explain
from symad.tracing.given import Given
from symad.transforms import derivative, grad, hessian, jacfwd, jacrev

TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": grad, "derivative": derivative, "jacfwd": jacfwd, "jacrev": jacrev, "hessian": hessian,
}  # fmt: skip


def add_command(commands: Any) -> None:
    """Declare both commands and their options."""
    for name, run, what in (
        ("explain", run_explain, "show the stages of a derivative: program, linearized, transposed, differentiated"),
        ("draw", run_draw, "draw the graph of a function or of its derivative"),
    ):
        command = commands.add_parser(name, help=what, description=f"{what.capitalize()}.")
        add_target(command)
        command.add_argument(
            "--transform", nargs="+", choices=tuple(TRANSFORMS), default=[], help="applied one after the other"
        )
        add_output(command, ", .svg or .dot" if name == "draw" else "")
        command.set_defaults(run=run)


def run_explain(options: argparse.Namespace) -> int:
    """Carry out `symad explain`; exit status 0."""
    found = read_target(options)
    return present(explain(_transformed(found, options), found.argument), options)


def run_draw(options: argparse.Namespace) -> int:
    """Carry out `symad draw`; exit status 0."""
    found = read_target(options)
    return present(draw(_transformed(found, options), found.argument), options)


def _transformed(found: Given, options: argparse.Namespace) -> Callable[..., Any]:
    function = found.function
    for name in options.transform:
        function = TRANSFORMS[name](function)
    return function
