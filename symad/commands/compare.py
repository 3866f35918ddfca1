"""`symad compare` and `symad verify`: every route to a derivative side by side; a kernel against exact numbers."""

from __future__ import annotations

import argparse
import math
from typing import Any

from symad.checking.comparison.compare import compare
from symad.checking.verification.verify import verify
from symad.commands.showing import (
    add_output,
    add_target,
    add_transform,
    example,
    present,
    read_target,
    require_point,
    transformed,
)
from symad.compiling.native import compile


def add_command(commands: Any) -> None:
    """Declare both commands and their options."""
    command = commands.add_parser(
        "compare",
        help="compare every route to a derivative: values, errors, operations, times",
        description="Compare symbolic differentiation, every mode of automatic differentiation, Taylor coefficients, "
        "differences and other libraries where they are installed, at a point.",
    )
    add_target(command)
    command.add_argument("--order", type=int, default=1, help="of the derivative (default 1)")
    command.add_argument("--plots", action="store_true", help="error against step size, and swell against order")
    add_output(command, ", .md or .csv")
    command.set_defaults(run=run_compare)
    command = commands.add_parser(
        "verify",
        help="compare a compiled kernel with exact numbers, at a point or all over a box",
        description="Compile the target, or its derivative, and compare its results with exact ones, at its point or "
        "at random and adversarial points of a box.",
    )
    add_target(command)
    add_transform(command)
    command.add_argument("--box", nargs=2, type=float, metavar=("LOW", "HIGH"), help="bounds of every number")
    command.add_argument("--points", type=int, default=1000, help="how many points of the box (default 1000)")
    command.add_argument("--seed", type=int, default=0, help="of the random points (default 0)")
    command.add_argument("--rigorous", action="store_true", help="enclosures by ball arithmetic (symad[rigorous])")
    add_output(command)
    command.set_defaults(run=run_verify)


def run_compare(options: argparse.Namespace) -> int:
    """Carry out `symad compare`; exit status 0, or 1 when a route is wrong."""
    require_point(options)
    comparison = compare(*read_target(options), options.order, plots=options.plots)
    present(comparison, options)
    return 1 if comparison.wrong else 0


def run_verify(options: argparse.Namespace) -> int:
    """Carry out `symad verify`; exit status 0, or 1 where nothing was compared, or a number is wrong without bound."""
    function, argument = transformed(options)
    if options.box is None:
        require_point(options)
    elif not options.at:
        argument = example(argument)
    kernel = compile(function, argument)
    if options.box is None:
        found = verify(kernel, argument, rigorous=options.rigorous)
        present(found, options)
        return 0 if math.isfinite(found.worst_ulp) else 1
    box = tuple(options.box)
    found_errors = verify(kernel, box=box, points=options.points, seed=options.seed, rigorous=options.rigorous)
    present(found_errors, options)
    return 1 if math.isnan(found_errors.worst_ulp) else 0
