"""Shared parts of commands: target, point, directions, and the destination of the result; results as JSON."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp
from mpmath import mpc, mpf
from rich.console import Console

from symad.classroom.formulas.given import given
from symad.classroom.formulas.read import read_formula
from symad.classroom.formulas.targets import formula_at, load_function, number_of, of_first_argument
from symad.commands.names import FILE
from symad.display.shown import Shown
from symad.errors import ArgumentError
from symad.transforms.first_order import derivative, grad, hessian, jacfwd, jacrev

TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": grad, "derivative": derivative, "jacfwd": jacfwd, "jacrev": jacrev, "hessian": hessian,
}  # fmt: skip
NONE = "none"  # of transforms: the function itself


def add_target(command: argparse.ArgumentParser, numbers: str = "+") -> None:
    """Declare the arguments that name a target and its point; with "*" as `numbers`, `--at` may stand alone."""
    command.add_argument("target", metavar="FORMULA or FILE.py:FUNCTION", help='such as "exp(x)*sin(x)" or model.py:f')
    what = "a point; without it a formula stays symbolic"
    command.add_argument("--at", nargs=numbers, default=(), metavar="NAME=NUMBER", help=what)
    add_names(command, "--variables", "variables of a formula, by default all its symbols")
    add_names(command, "--functions", "undefined functions of a formula: g is g(x)")
    add_seconds(command)


def add_names(command: argparse.ArgumentParser, option: str, what: str, metavar: str = "NAME") -> None:
    """Declare an option with several values, by default none."""
    command.add_argument(option, nargs="+", default=[], metavar=metavar, help=what)


def add_seconds(command: argparse.ArgumentParser, seconds: float = 300.0) -> None:
    """Declare the limit of time."""
    what = f"give up after this time (default {seconds:g})"
    command.add_argument("--max-seconds", type=float, default=seconds, help=what)


def add_accuracy(command: argparse.ArgumentParser) -> None:
    """Declare the accuracy of a kernel."""
    what = "fast: fewer operations, other rounding"
    command.add_argument("--accuracy", choices=("strict", "fast"), default="strict", help=what)


def add_transform(command: argparse.ArgumentParser) -> None:
    """Declare the transforms that are applied to the target."""
    what = "applied one after the other"
    command.add_argument("--transform", nargs="+", choices=(*TRANSFORMS, NONE), default=[], help=what)


def add_output(command: argparse.ArgumentParser, more: str = "") -> None:
    """Declare where the result goes."""
    command.add_argument("--html", metavar="FILE", type=Path, help="write a page that opens offline in any browser")
    what = f"write .html, .ipynb, .tex or .txt{more}, by the end of the name"
    command.add_argument("--output", metavar="FILE", type=Path, help=what)
    command.add_argument("--big", action="store_true", help="a page in large letters, for a projector")
    add_json(command)


def add_json(command: argparse.ArgumentParser) -> None:
    """Declare that the result is printed for programs."""
    command.add_argument("--json", action="store_true", help="print what was found as JSON, for programs")


def read_target(options: argparse.Namespace) -> tuple[Any, Any]:
    """Return the target for `given`: a function and its argument, or an expression and its symbols."""
    if re.fullmatch(FILE, options.target):
        if options.at or options.variables or options.functions:
            do = "the file gives the point: defaults such as f(x=0.5), or a line example_args = (0.5,)"
            raise ArgumentError("--at, --variables or --functions with a file", do=do)
        return of_first_argument(*load_function(options.target), options.target)
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
    if re.fullmatch(FILE, options.target):
        return
    if not options.at:
        raise ArgumentError(f"no point for {options.target!r}", do="give one, such as --at x=0.5")
    missing = [symbol for symbol in np.ravel(given(*read_target(options)).argument) if isinstance(symbol, sp.Symbol)]
    if missing:
        do = f"give one, such as --at {' '.join(options.at)} {missing[0]}=0.5"
        raise ArgumentError(f"no number for {', '.join(map(str, missing))}", do=do)


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
    told((shown.save(path, big=options.big) for path in files), options)
    if options.json:
        print_json(options.command, shown)
    elif not files and sys.stdout.isatty():
        Console().print(shown)
    elif not files:
        print(shown)
    return 0


def told(written: Iterable[Path], options: argparse.Namespace) -> None:
    """Print the files that were written, beside JSON for programs."""
    for path in written:
        print(f"written: {path}", file=sys.stderr if options.json else sys.stdout)


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
        do = "give one number for each entry, with commas between them, or one name"
        raise ArgumentError(f"--directions {text}: {len(parts)} numbers for an argument of shape {shape}", do=do)
    return np.array(parts, dtype=object).reshape(shape) if shape else parts[0]


def assignment(text: str) -> tuple[str, float]:
    """Return the name and the number of `--at x=0.5`."""
    name, separator, value = text.partition("=")
    if not separator:
        raise ArgumentError(f"--at {text}", do="write it as name=number, such as x=0.5")
    return name.strip(), number_of(value, name.strip())


DEEPEST = 6  # containers in containers
_LEFT_OUT = object()
_TOLD = ("float", "int", "bool", "str")


def print_json(command: str, result: Any) -> None:
    """Print the result of a command as JSON: its own names, numbers as numbers, formulas as text.

    >>> print_json("add", {"sum": np.float64(3.0), "of": [1, sp.Symbol("x")]})
    {
      "command": "add",
      "sum": 3.0,
      "of": [
        1,
        "x"
      ]
    }
    """
    told = {  # the properties of a result that are numbers or words
        name: getattr(result, name)
        for kind in type(result).__mro__
        for name, member in vars(kind).items()
        if isinstance(member, property) and getattr(member.fget, "__annotations__", {}).get("return") in _TOLD
    }
    data = _plain(vars(result) | told if hasattr(result, "__dict__") else result, 0)
    held = data if isinstance(data, dict) else {"result": data}
    json.dump({"command": command, **held}, sys.stdout, indent=2, allow_nan=False)
    print()


def _plain(value: Any, depth: int) -> Any:
    """Return a value as JSON data. Numbers that are not finite become text; other objects are omitted."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, np.generic):
        return _plain(value.item(), depth)
    if isinstance(value, sp.Basic | sp.MatrixBase | Path | mpf | mpc):
        return str(value)
    if depth > DEEPEST:
        return _LEFT_OUT
    if isinstance(value, np.ndarray):
        return _plain(value.tolist(), depth)
    if isinstance(value, Mapping):
        return _named(value, depth)
    if isinstance(value, list | tuple | set | frozenset | range):
        return [part for part in (_plain(item, depth + 1) for item in value) if part is not _LEFT_OUT]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _named({item.name: getattr(value, item.name) for item in dataclasses.fields(value)}, depth)
    return _LEFT_OUT


def _named(parts: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    data = {str(name): _plain(part, depth + 1) for name, part in parts.items() if not str(name).startswith("_")}
    return {name: part for name, part in data.items() if part is not _LEFT_OUT}
