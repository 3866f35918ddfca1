"""The commands whose result is a page: steps, expand, check, explain, draw, compare, verify."""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sympy as sp

import symad as sa
import symad.commands.showing as showing
from codegen.later import Deferred
from symad.classroom.formulas.given import given
from symad.errors import ArgumentError

if TYPE_CHECKING:
    from symad.classroom.drawing import draw as draw_module
else:
    draw_module = Deferred("symad.classroom.drawing.draw")

DETAIL = ("result", "levels", "steps", "all")


def declare_expand(command: argparse.ArgumentParser) -> None:
    """Declare the options of `symad expand`."""
    showing.add_target(command)
    _add_directions(command)
    command.add_argument("--detail", choices=DETAIL, default="steps", help="how much is shown (default steps)")
    what = "as by hand (default where a book would), or by a table of rules"
    command.add_argument("--style", choices=("book", "rules"), help=what)
    showing.add_output(command)


def declare_check(command: argparse.ArgumentParser) -> None:
    """Declare the options of `symad check`."""
    showing.add_target(command)
    command.add_argument("--answer", metavar="FILE", required=True, help="a text file, or - for standard input")
    _add_directions(command)
    what = "what the question calls the epsilons, one name for each level"
    command.add_argument("--epsilons", nargs="+", metavar="NAME", help=what)
    showing.add_output(command)


def _add_directions(command: argparse.ArgumentParser) -> None:
    showing.add_names(command, "--directions", "a name or numbers (1,0) for each level", "V")
    command.add_argument("--order", type=int, help="so many levels along one direction; for a derivative its order")


def run_expand(options: argparse.Namespace) -> int:
    """Carry out `symad expand`; exit status 0."""
    f, x = showing.read_target(options)
    directions = showing.read_directions(options.directions or ["v"], given(f, x).argument)
    if options.order is not None and len(directions) > 1:
        raise ArgumentError("--order with several directions", do="give one direction, or leave --order out")
    given_directions = directions if options.order is None else directions[0]
    shown = sa.expand(f, x, given_directions, order=options.order, detail=options.detail, style=options.style)
    return showing.present(shown, options)


def declare_steps(command: argparse.ArgumentParser) -> None:
    """Declare the options of `symad steps`."""
    command.add_argument("target", metavar="FORMULA", help='such as "x^2 sin(x)", "x^2 + y^2 = 25", or "x^T A x"')
    showing.add_names(command, "--variables", "default x; several: the gradient")
    command.add_argument("--order", type=int, default=1, help="of the derivative (default 1)")
    showing.add_names(command, "--at", "a point", "NAME=NUMBER")
    command.add_argument("--along", metavar="VECTOR", help='a direction, such as "(3, 4)/5"')
    command.add_argument("--detail", choices=("short", "full"), default="short", help="full: every rule has a line")
    showing.add_seconds(command)
    showing.add_output(command)


def run_steps(options: argparse.Namespace) -> int:
    """Carry out `symad steps`; exit status 0."""
    names = options.variables or ["x"]
    at = {name.strip(): value for name, _, value in (text.partition("=") for text in options.at)} or None
    x = names[0] if len(names) == 1 else names
    order, along = options.order, options.along
    return showing.present(sa.steps(options.target, x, order=order, at=at, along=along, detail=options.detail), options)


def run_check(options: argparse.Namespace) -> int:
    """Carry out `symad check`; exit status 0 for a right answer, 1 for a wrong one."""
    (f, x), mine = showing.read_target(options), showing.read_answer(options.answer)
    if options.directions:
        directions = showing.read_directions(options.directions, given(f, x).argument)
        answer = sa.check_expansion(mine, f, x, directions, order=options.order, epsilons=options.epsilons)
    elif options.epsilons is not None:
        raise ArgumentError("--epsilons of a derivative", do="give --directions, along which there are epsilons")
    else:
        answer = sa.check_derivative(mine, f, x, order=options.order or 1)
    showing.present(answer, options)
    return 0 if answer.right else 1


def declare_explain(command: argparse.ArgumentParser) -> None:
    """Declare the options of `symad explain`."""
    showing.add_target(command, "*")
    showing.add_transform(command)
    showing.add_output(command)
    what = "how much is printed (default short)"
    command.add_argument("--detail", choices=("short", "all"), default="short", help=what)


def declare_draw(command: argparse.ArgumentParser) -> None:
    """Declare the options of `symad draw`."""
    showing.add_target(command, "*")
    showing.add_transform(command)
    showing.add_output(command, ", .svg, .png, .pdf or .dot")
    what = "draw the loops that are found, or written down, as loops"
    command.add_argument("--loops", action="store_true", help=what)


def _point(options: argparse.Namespace) -> Any:
    """Return the point of `--at`, that of the file for `--at` alone, None without it; a formula stays symbolic."""
    if options.at == ():
        return None
    showing.require_point(options)
    argument = given(*showing.read_target(options)).argument
    options.at = ()
    return argument


def run_explain(options: argparse.Namespace) -> int:
    """Carry out `symad explain`; exit status 0."""
    if not options.transform:
        print("symad: no --transform: the gradient is explained (--transform none: f itself)", file=sys.stderr)
        options.transform = ["grad"]
    point = _point(options)
    explanation = sa.explain(*showing.transformed(options), detail=options.detail, at=point)
    target = given(*showing.read_target(options))
    return showing.present(explanation.named(target.symbols) if target.formula else explanation, options)


def run_draw(options: argparse.Namespace) -> int:
    """Carry out `symad draw`; exit status 0."""
    if options.loops:
        function, argument = showing.transformed(options)
        rolled = sa.plan(function, showing.example(argument), roll="always").candidate.rolled
        assert rolled is not None  # plan says why a function has no loops
        return showing.present(sa.draw(rolled.program), options)
    point = _point(options)
    f, x = showing.read_target(options)
    if isinstance(f, sp.Basic) and not options.transform:
        return showing.present(sa.draw(f) if point is None else sa.draw(f, x, at=point), options)
    drawing = sa.draw(*showing.transformed(options), at=point)
    if isinstance(f, sp.Basic):  # the formula that was differentiated is shown too
        drawing = replace(drawing, about=(*drawing.about, *draw_module.about_what(f)[1:]))
    return showing.present(drawing, options)


def declare_compare(command: argparse.ArgumentParser) -> None:
    """Declare the options of `symad compare`."""
    showing.add_target(command)
    command.add_argument("--order", type=int, default=1, help="of the derivative (default 1)")
    command.add_argument("--plots", action="store_true", help="error against step size, and swell against order")
    showing.add_output(command, ", .md or .csv")


def declare_verify(command: argparse.ArgumentParser) -> None:
    """Declare the options of `symad verify`."""
    showing.add_target(command)
    showing.add_transform(command)
    command.add_argument("--box", nargs=2, type=float, metavar=("LOW", "HIGH"), help="bounds of every number")
    command.add_argument("--points", type=int, default=1000, help="how many points of the box (default 1000)")
    command.add_argument("--seed", type=int, default=0, help="of the random points (default 0)")
    command.add_argument("--rigorous", action="store_true", help="enclosures by ball arithmetic (symad[rigorous])")
    showing.add_output(command)


def run_compare(options: argparse.Namespace) -> int:
    """Carry out `symad compare`; exit status 0, or 1 when a route is wrong."""
    showing.require_point(options)
    comparison = sa.compare(
        *showing.read_target(options), options.order, plots=options.plots, progress=options.progress
    )
    showing.present(comparison, options)
    return 1 if comparison.wrong else 0


def run_verify(options: argparse.Namespace) -> int:
    """Carry out `symad verify`; exit status 0, or 1 where nothing was compared, or a number is wrong without bound."""
    function, argument = showing.transformed(options)
    if options.box is None:
        showing.require_point(options)
    elif not options.at:
        argument = showing.example(argument)
    kernel = sa.compile(function, argument)
    if options.box is None:
        verification = sa.verify(kernel, argument, rigorous=options.rigorous)
        showing.present(verification, options)
        return 0 if math.isfinite(verification.worst_ulp) else 1
    how = {name: getattr(options, name) for name in ("points", "seed", "rigorous", "progress")}
    over_box = sa.verify(kernel, box=tuple(options.box), **how)
    showing.present(over_box, options)
    return 1 if math.isnan(over_box.worst_ulp) else 0
