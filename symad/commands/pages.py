"""The commands whose result is a page: expand, check, explain, draw, compare, verify."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sympy as sp

import symad as sa
from codegen.later import Deferred
from symad.classroom.formulas.given import given
from symad.commands.names import HELP
from symad.commands.showing import (
    add_output,
    add_target,
    add_transform,
    example,
    present,
    read_answer,
    read_directions,
    read_target,
    require_point,
    transformed,
)
from symad.errors import ArgumentError

if TYPE_CHECKING:
    from codegen.ir.region import RolledProgram
    from symad.classroom.drawing import draw as draw_module
else:
    draw_module = Deferred("symad.classroom.drawing.draw")

DETAIL = ("result", "levels", "steps", "all")


def add_expand_and_check(commands: Any) -> None:
    """Declare both commands and their options."""
    command = commands.add_parser(
        "expand",
        help=HELP["expand"],
        description="Expand f(x + eps_1 v + eps_2 w + ...), every eps squaring to 0, one level at a time.",
    )
    add_target(command)
    _add_directions(command)
    command.add_argument("--detail", choices=DETAIL, default="steps", help="how much is shown (default steps)")
    command.add_argument(
        "--style", choices=("book", "rules"), help="as by hand (default where a book would), or by a table of rules"
    )
    add_output(command)
    command.set_defaults(run=run_expand)
    command = commands.add_parser(
        "check",
        help=HELP["check"],
        description="Compare the lines of ANSWER, one step each, with the expansion along --directions, or without "
        "directions with the derivative of some --order. Exit status 1 when a line is wrong.",
    )
    add_target(command)
    command.add_argument("--answer", metavar="FILE", required=True, help="a text file, or - for standard input")
    _add_directions(command)
    command.add_argument(
        "--epsilons", nargs="+", metavar="NAME", help="what the question calls the epsilons, one name for each level"
    )
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
    shown = sa.expand(f, x, given_directions, order=options.order, detail=options.detail, style=options.style)
    return present(shown, options)


def add_steps(commands: Any) -> None:
    """Declare the command and its options."""
    command = commands.add_parser("steps", help=HELP["steps"], description=f"{HELP['steps'].capitalize()}.")
    command.add_argument("target", metavar="FORMULA", help='such as "x^2 sin(x)", "x^2 + y^2 = 25", or "x^T A x"')
    command.add_argument(
        "--variables", nargs="+", default=["x"], metavar="NAME", help="default x; several: the gradient"
    )
    command.add_argument("--order", type=int, default=1, help="of the derivative (default 1)")
    command.add_argument("--at", nargs="+", default=[], metavar="NAME=NUMBER", help="a point")
    command.add_argument("--along", metavar="VECTOR", help='a direction, such as "(3, 4)/5"')
    command.add_argument("--detail", choices=("short", "full"), default="short", help="full: every rule has a line")
    command.add_argument("--max-seconds", type=float, default=300.0, help="give up after this time (default 300)")
    add_output(command)
    command.set_defaults(run=run_steps)


def run_steps(options: argparse.Namespace) -> int:
    """Carry out `symad steps`; exit status 0."""
    names = options.variables
    at = {name.strip(): value for name, _, value in (text.partition("=") for text in options.at)} or None
    x = names[0] if len(names) == 1 else names
    order, along = options.order, options.along
    return present(sa.steps(options.target, x, order=order, at=at, along=along, detail=options.detail), options)


def run_check(options: argparse.Namespace) -> int:
    """Carry out `symad check`; exit status 0 for a right answer, 1 for a wrong one."""
    (f, x), mine = read_target(options), read_answer(options.answer)
    if options.directions:
        directions = read_directions(options.directions, given(f, x).argument)
        answer = sa.check_expansion(mine, f, x, directions, order=options.order, epsilons=options.epsilons)
    elif options.epsilons is not None:
        raise ArgumentError("--epsilons of a derivative", do="give --directions, along which there are epsilons")
    else:
        answer = sa.check_derivative(mine, f, x, order=options.order or 1)
    present(answer, options)
    return 0 if answer.right else 1


def add_explain_and_draw(commands: Any) -> None:
    """Declare both commands and their options."""
    for name, run in (("explain", run_explain), ("draw", run_draw)):
        command = commands.add_parser(name, help=HELP[name], description=f"{HELP[name].capitalize()}.")
        add_target(command, "*")
        add_transform(command)
        add_output(command, ", .svg or .dot" if name == "draw" else "")
        if name == "explain":
            command.add_argument(
                "--detail", choices=("short", "all"), default="short", help="how much is printed (default short)"
            )
        if name == "draw":
            command.add_argument(
                "--loops", action="store_true", help="draw the loops that are found, or written down, as loops"
            )
        command.set_defaults(run=run)


def _point(options: argparse.Namespace) -> Any:
    """Return the point of `--at`, that of the file for `--at` alone, None without it; a formula stays symbolic."""
    if options.at == ():
        return None
    require_point(options)
    argument = given(*read_target(options)).argument
    options.at = ()
    return argument


def run_explain(options: argparse.Namespace) -> int:
    """Carry out `symad explain`; exit status 0."""
    if not options.transform:
        print("symad: no --transform: the gradient is explained (--transform none: f itself)", file=sys.stderr)
        options.transform = ["grad"]
    point = _point(options)
    explanation = sa.explain(*transformed(options), detail=options.detail, at=point)
    target = given(*read_target(options))
    return present(explanation.named(target.symbols) if target.formula else explanation, options)


def loops_of(function: Callable[..., Any], argument: Any) -> RolledProgram:
    """Return a function as a rolled program; ArgumentError with the reason where it has no loops."""
    traced = sa.plan(function, example(argument), roll="always").candidate.rolled
    assert traced is not None
    return traced.program


def run_draw(options: argparse.Namespace) -> int:
    """Carry out `symad draw`; exit status 0."""
    if options.loops:
        function, argument = transformed(options)
        return present(sa.draw(loops_of(function, argument)), options)
    point = _point(options)
    f, x = read_target(options)
    if isinstance(f, sp.Basic) and not options.transform:
        return present(sa.draw(f) if point is None else sa.draw(f, x, at=point), options)
    drawing = sa.draw(*transformed(options), at=point)
    if not isinstance(f, sp.Basic):
        return present(drawing, options)
    drawing = replace(
        drawing, about=(*drawing.about, *draw_module.about_what(f)[1:])
    )  # the formula that was differentiated
    return present(drawing, options)


def add_compare_and_verify(commands: Any) -> None:
    """Declare both commands and their options."""
    command = commands.add_parser(
        "compare",
        help=HELP["compare"],
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
        help=HELP["verify"],
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
    comparison = sa.compare(*read_target(options), options.order, plots=options.plots, progress=options.progress)
    present(comparison, options)
    return 1 if comparison.wrong else 0


def run_verify(options: argparse.Namespace) -> int:
    """Carry out `symad verify`; exit status 0, or 1 where nothing was compared, or a number is wrong without bound."""
    function, argument = transformed(options)
    if options.box is None:
        require_point(options)
    elif not options.at:
        argument = example(argument)
    kernel = sa.compile(function, argument)
    if options.box is None:
        verification = sa.verify(kernel, argument, rigorous=options.rigorous)
        present(verification, options)
        return 0 if math.isfinite(verification.worst_ulp) else 1
    box = tuple(options.box)
    found_errors = sa.verify(
        kernel, box=box, points=options.points, seed=options.seed, rigorous=options.rigorous, progress=options.progress
    )
    present(found_errors, options)
    return 1 if math.isnan(found_errors.worst_ulp) else 0
