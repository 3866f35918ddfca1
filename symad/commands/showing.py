"""What commands share: the target and its point, from a file or a formula, the directions, where the result goes."""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import re
import sys
import traceback
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import sympy as sp
from rich.console import Console

import symad.tracing.values.containers as containers
from symad.commands.as_json import print_json
from symad.display.shown import Shown
from symad.errors import ArgumentError
from symad.formulas.read import read_formula
from symad.tracing.calling.function_names import name_of
from symad.tracing.calling.given import given
from symad.transforms.first_order import derivative, grad, hessian, jacfwd, jacrev


def load_function(target: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the function that `path/to/file.py:name` names, and its example arguments.

    The file gives the point as `example_args` (a tuple, or a dict from function name to tuple) or as defaults of the
    function's arguments. ArgumentError says what is missing, wrong or not finite, and where.
    """
    path_text, separator, name = target.rpartition(":")
    if not separator or not path_text or not name:
        raise ArgumentError(f"{target!r} as target", do="write it as path/to/file.py:function")
    path = Path(path_text)
    if not path.is_file():
        raise ArgumentError(f"no file {path_text!r}", where=str(Path.cwd()), do="check the path")
    module = _import_file(path)
    function = getattr(module, unicodedata.normalize("NFKC", name), None)  # as Python does with names in a file
    if not callable(function):
        known = [key for key, value in vars(module).items() if inspect.isfunction(value) and not key.startswith("_")]
        raise ArgumentError(
            f"no function {name!r}" if function is None else f"{name!r} is not a function",
            where=path_text,
            do=f"the file has: {', '.join(known) or 'no functions'}",
        )
    arguments = _example_arguments(module, function, name, path_text)
    _check_finite(arguments, path_text)
    return function, arguments


def _import_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ArgumentError(f"{str(path)!r} is not a Python file", do="give a file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses and pickles look their module up there
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        line = error.lineno if isinstance(error, SyntaxError) else traceback.extract_tb(error.__traceback__)[-1].lineno
        raise ArgumentError(
            f"{type(error).__name__}: {error}", where=f"{path}:{line}", why="the file could not be imported"
        ) from error
    finally:
        sys.path.remove(str(path.parent))
    return module


def _example_arguments(module: ModuleType, function: Callable[..., Any], name: str, path: str) -> tuple[Any, ...]:
    given = getattr(module, "example_args", None)
    if isinstance(given, dict):
        given = given.get(name)
    if given is not None:
        if not isinstance(given, tuple):
            raise ArgumentError(f"example_args is a {type(given).__name__}", where=path, do="make it a tuple")
        return given
    parameters = inspect.signature(function).parameters.values()
    missing = [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if missing or not parameters:
        raise ArgumentError(
            f"no example point for {name}({', '.join(missing)})",
            where=path,
            do=f"give the arguments defaults, or write example_args = (...,) in {path}",
        )
    return tuple(p.default for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))


def _check_finite(arguments: tuple[Any, ...], path: str) -> None:
    leaves, _ = containers.flatten(arguments)
    for leaf, where in zip(leaves, containers.paths(arguments, "example_args"), strict=True):
        containers.check_differentiable(leaf, where)
        if not np.all(np.isfinite(np.asarray(leaf, dtype=float))):
            raise ArgumentError(f"{where} holds NaN or infinity", where=path, do="give a finite example point")


TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": grad, "derivative": derivative, "jacfwd": jacfwd, "jacrev": jacrev, "hessian": hessian,
}  # fmt: skip
_FILE = re.compile(r".+\.py:\w+")


def add_target(command: argparse.ArgumentParser) -> None:
    """Declare what is looked at, and where."""
    command.add_argument("target", metavar="FORMULA or FILE.py:FUNCTION", help='such as "exp(x)*sin(x)" or model.py:f')
    command.add_argument(
        "--at", nargs="+", default=[], metavar="NAME=NUMBER", help="a point; without it a formula stays symbolic"
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
        "--transform", nargs="+", choices=tuple(TRANSFORMS), default=[], help="applied one after the other"
    )


def add_output(command: argparse.ArgumentParser, more: str = "") -> None:
    """Declare where the result goes."""
    command.add_argument("--html", metavar="FILE", type=Path, help="write a page that opens offline in any browser")
    command.add_argument(
        "--output", metavar="FILE", type=Path, help=f"write .html, .tex or .txt{more}, by the end of the name"
    )
    add_json(command)


def add_json(command: argparse.ArgumentParser) -> None:
    """Declare that the result is printed for programs."""
    command.add_argument("--json", action="store_true", help="print what was found as JSON, for programs")


def read_target(options: argparse.Namespace) -> tuple[Any, Any]:
    """Return what a target names as `given` takes it: a function and its argument, or an expression and its symbols."""
    if _FILE.fullmatch(options.target):
        return _from_file(options)
    expression = read_formula(options.target, [*options.variables, *(f"{name}(x)" for name in options.functions)])
    free = sorted((symbol for symbol in expression.free_symbols), key=lambda symbol: _place(options.target, symbol))
    variables = [_namesake(free, name) for name in options.variables] or free
    if not variables:
        raise ArgumentError(f"no variable in {options.target!r}", do="write a formula of x, or name --variables")
    values = {name: _number(text) for name, text in map(_assignment, options.at)}
    if unknown := sorted(values.keys() - {symbol.name for symbol in variables}):
        raise ArgumentError(f"--at {unknown[0]}=...", do=f"the variables are {', '.join(map(str, variables))}")
    if not values:
        return expression, variables[0] if len(variables) == 1 else variables
    return expression, {symbol: values.get(symbol.name, symbol) for symbol in variables}


def transformed(options: argparse.Namespace) -> tuple[Callable[..., Any], Any]:
    """Return the function that a target and `--transform` name, and its argument."""
    found = given(*read_target(options))
    function = found.function
    for name in options.transform:
        function = TRANSFORMS[name](function)
    return function, found.argument


def require_point(options: argparse.Namespace) -> None:
    """Raise ArgumentError for a formula without `--at`, where numbers are needed."""
    if not _FILE.fullmatch(options.target) and not options.at:
        raise ArgumentError(f"no point for {options.target!r}", do="give one, such as --at x=0.5")


def example(argument: Any) -> Any:
    """Return numbers of an argument's shape, where it is made of symbols: only the shape counts in compiling.

    >>> example(sp.Symbol("x")), example(2.0)
    (1.0, 2.0)
    """
    if isinstance(argument, sp.Basic):
        return 1.0
    return np.ones(np.shape(argument)) if np.asarray(argument).dtype.kind == "O" else argument


def present(shown: Shown, options: argparse.Namespace) -> int:
    """Print a result, in the colours of a terminal where there is one, or write it to files; exit status 0."""
    files = [path for path in (options.html, options.output) if path is not None]
    if options.html is not None and options.html.suffix != ".html":
        raise ArgumentError(f"--html {options.html}", do="end the name in .html, or use --output")
    for path in files:
        print(f"written: {shown.save(path)}", file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print_json(options.command, shown)
    elif not files and sys.stdout.isatty():
        Console().print(shown)
    elif not files:
        print(shown)
    return 0


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
    function, arguments = load_function(options.target)
    first, *others = arguments
    leaves, _ = containers.flatten(first)
    if not leaves:
        raise ArgumentError(f"the first argument of {name_of(function)} holds no number", where=options.target)
    if not others:
        return function, first

    def of_first(x: Any) -> Any:
        return function(x, *others)

    of_first.__name__ = name_of(function)
    return of_first, first


def _assignment(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise ArgumentError(f"--at {text}", do="write it as name=number, such as x=0.5")
    return name.strip(), value


def _number(text: str) -> float:
    value = read_formula(text)
    if value.free_symbols or not value.is_finite:
        raise ArgumentError(f"--at ...={text}", do="give a finite number, such as 0.5 or pi/4")
    return float(value)


def _namesake(symbols: Sequence[sp.Symbol], name: str) -> sp.Symbol:
    found = [symbol for symbol in symbols if symbol.name == name]
    return found[0] if found else sp.Symbol(name, real=True)


def _place(text: str, symbol: sp.Symbol) -> tuple[int, str]:
    return text.find(symbol.name) % (len(text) + 1), symbol.name
