"""Shared parts of commands: target, point, directions, and the destination of the result."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp
from rich.console import Console

from symad.classroom.formulas.given import given
from symad.classroom.formulas.read import read_formula
from symad.classroom.formulas.targets import formula_at, load_function, number_of, of_first_argument
from symad.commands.as_json import print_json
from symad.display.shown import Shown
from symad.errors import ArgumentError
from symad.transforms.first_order import derivative, grad, hessian, jacfwd, jacrev

TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": grad, "derivative": derivative, "jacfwd": jacfwd, "jacrev": jacrev, "hessian": hessian,
}  # fmt: skip
NONE = "none"  # of transforms: the function itself
_FILE = re.compile(r".+\.py:\w+")


def add_target(command: argparse.ArgumentParser, numbers: str = "+") -> None:
    """Declare the arguments that name a target and its point; with "*" as `numbers`, `--at` may stand alone."""
    command.add_argument("target", metavar="FORMULA or FILE.py:FUNCTION", help='such as "exp(x)*sin(x)" or model.py:f')
    command.add_argument(
        "--at", nargs=numbers, default=(), metavar="NAME=NUMBER", help="a point; without it a formula stays symbolic"
    )
    command.add_argument(
        "--variables", nargs="+", default=[], metavar="NAME", help="variables of a formula, by default all its symbols"
    )
    command.add_argument(
        "--functions", nargs="+", default=[], metavar="NAME", help="undefined functions of a formula: g is g(x)"
    )
    command.add_argument("--max-seconds", type=float, default=300.0, help="give up after this time (default 300)")


def add_transform(command: argparse.ArgumentParser) -> None:
    """Declare the transforms that are applied to the target."""
    command.add_argument(
        "--transform", nargs="+", choices=(*TRANSFORMS, NONE), default=[], help="applied one after the other"
    )


def add_output(command: argparse.ArgumentParser, more: str = "") -> None:
    """Declare where the result goes."""
    command.add_argument("--html", metavar="FILE", type=Path, help="write a page that opens offline in any browser")
    command.add_argument(
        "--output", metavar="FILE", type=Path, help=f"write .html, .ipynb, .tex or .txt{more}, by the end of the name"
    )
    command.add_argument("--big", action="store_true", help="a page in large letters, for a projector")
    add_json(command)


def add_json(command: argparse.ArgumentParser) -> None:
    """Declare that the result is printed for programs."""
    command.add_argument("--json", action="store_true", help="print what was found as JSON, for programs")


def read_target(options: argparse.Namespace) -> tuple[Any, Any]:
    """Return the target for `given`: a function and its argument, or an expression and its symbols."""
    if _FILE.fullmatch(options.target):
        return _from_file(options)
    values = dict(map(assignment, options.at))
    return formula_at(options.target, values, options.variables, options.functions)


def transformed(options: argparse.Namespace) -> tuple[Callable[..., Any], Any]:
    """Return the function that a target and `--transform` name, and its argument."""
    target = given(*read_target(options))
    function = target.function
    for name in options.transform:
        function = function if name == NONE else TRANSFORMS[name](function)
    return function, target.argument


def require_point(options: argparse.Namespace) -> None:
    """Raise ArgumentError for a formula without `--at`, or not for each variable, where numbers are needed."""
    if _FILE.fullmatch(options.target):
        return
    if not options.at:
        raise ArgumentError(f"no point for {options.target!r}", do="give one, such as --at x=0.5")
    missing = [symbol for symbol in np.ravel(given(*read_target(options)).argument) if isinstance(symbol, sp.Symbol)]
    if missing:
        names = ", ".join(map(str, missing))
        raise ArgumentError(
            f"no number for {names}", do=f"give one, such as --at {' '.join(options.at)} {missing[0]}=0.5"
        )


def example(argument: Any) -> Any:
    """Return numbers in the shape of a symbolic argument. Only the shape counts in compiling.

    >>> example(sp.Symbol("x")), example(2.0)
    (1.0, 2.0)
    """
    if isinstance(argument, sp.Basic):
        return 1.0
    return np.ones(np.shape(argument)) if np.asarray(argument).dtype.kind == "O" else argument


def present(shown: Shown, options: argparse.Namespace) -> int:
    """Print a result, in colours on a terminal, or write it to files; exit status 0."""
    files = [path for path in (options.html, options.output) if path is not None]
    if options.html is not None and options.html.suffix != ".html":
        raise ArgumentError(f"--html {options.html}", do="end the name in .html, or use --output")
    options.progress.end()
    for path in files:
        print(f"written: {shown.save(path, big=options.big)}", file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print_json(options.command, shown)
    elif not files and sys.stdout.isatty():
        Console().print(shown)
    elif not files:
        print(shown)
    return 0


def read_answer(name: str) -> str:
    """Return the text of a file, or of standard input for "-"."""
    if name == "-":
        return sys.stdin.read()
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"cannot read {name!r}", why=str(error), do="give a text file, or - for input") from error


def read_directions(texts: Sequence[str], argument: Any) -> list[Any]:
    """Return directions of the argument's shape: numbers (`1,0`), or names, which stand for one symbol each entry.

    >>> read_directions(["v", "2"], 1.0)
    [v, 2]
    >>> read_directions(["v"], np.zeros(2))
    [array([v_1, v_2], dtype=object)]
    """
    return [_direction(text, np.shape(argument)) for text in texts]


def _direction(text: str, shape: tuple[int, ...]) -> Any:
    parts = [read_formula(part) for part in text.split(",")]
    if len(parts) == 1 and shape and parts[0].is_Symbol:
        size = int(np.prod(shape))
        parts = [sp.Symbol(f"{parts[0].name}_{k}", real=True) for k in range(1, size + 1)]
    if len(parts) != int(np.prod(shape)):
        raise ArgumentError(
            f"--directions {text}: {len(parts)} numbers for an argument of shape {shape}",
            do="give one number for each entry, with commas between them, or one name",
        )
    return np.array(parts, dtype=object).reshape(shape) if shape else parts[0]


def _from_file(options: argparse.Namespace) -> tuple[Any, Any]:
    if options.at or options.variables or options.functions:
        raise ArgumentError(
            "--at, --variables or --functions with a file",
            do="the file gives the point: defaults such as f(x=0.5), or a line example_args = (0.5,)",
        )
    return of_first_argument(*load_function(options.target), options.target)


def assignment(text: str) -> tuple[str, float]:
    """Return the name and the number of `--at x=0.5`."""
    name, separator, value = text.partition("=")
    if not separator:
        raise ArgumentError(f"--at {text}", do="write it as name=number, such as x=0.5")
    return name.strip(), number_of(value, name.strip())
