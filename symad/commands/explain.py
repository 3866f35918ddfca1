"""`symad explain` and `symad draw`: the program that transforms of a function write down, in words and as a picture."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import sympy as sp

from codegen.ir.region import RolledProgram
from symad.commands.showing import add_output, add_target, add_transform, example, present, read_target, transformed
from symad.compiling.planning import plan
from symad.drawing.draw import draw
from symad.teaching.explanation.explain import explain


def add_command(commands: Any) -> None:
    """Declare both commands and their options."""
    for name, run, what in (
        ("explain", run_explain, "show the stages of a derivative: program, linearized, transposed, differentiated"),
        ("draw", run_draw, "draw the graph of a function or of its derivative"),
    ):
        command = commands.add_parser(name, help=what, description=f"{what.capitalize()}.")
        add_target(command)
        add_transform(command)
        add_output(command, ", .svg or .dot" if name == "draw" else "")
        if name == "draw":
            command.add_argument(
                "--loops", action="store_true", help="draw the loops that are found, or written down, as loops"
            )
        command.set_defaults(run=run)


def run_explain(options: argparse.Namespace) -> int:
    """Carry out `symad explain`; exit status 0."""
    return present(explain(*transformed(options)), options)


def loops_of(function: Callable[..., Any], argument: Any) -> RolledProgram:
    """Return a function as a rolled program; ArgumentError with the reason where it has no loops."""
    found = plan(function, example(argument), roll="always").candidate.rolled
    assert found is not None
    return found.program


def run_draw(options: argparse.Namespace) -> int:
    """Carry out `symad draw`; exit status 0."""
    if options.loops:
        function, argument = transformed(options)
        return present(draw(loops_of(function, argument)), options)
    f, _ = read_target(options)
    if isinstance(f, sp.Basic) and not options.transform:
        return present(draw(f), options)
    return present(draw(*transformed(options)), options)
