"""Describe in words what a command or page is about: a function in a file, or a formula, and its point."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from symad.classroom.formulas.formula_names import symbol_of, symbols_named
from symad.classroom.formulas.read import read_formula
from symad.errors import ArgumentError
from symad.tracing.calling.function_names import name_of


def load_function(target: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the function `path/to/file.py:name`, and its example arguments.

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
    sys.modules[path.stem] = module  # dataclasses and pickle look up modules there
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


def of_first_argument(
    function: Callable[..., Any], arguments: tuple[Any, ...], where: str
) -> tuple[Callable[..., Any], Any]:
    """Return a function of its first argument with the others fixed, and that argument. `where` is for errors.

    >>> function, x = of_first_argument(pow, (2.0, 3.0), "nowhere")
    >>> function(x)
    8.0
    """
    first, *others = arguments
    leaves, _ = containers.flatten(first)
    if not leaves:
        raise ArgumentError(f"the first argument of {name_of(function)} holds no number", where=where)
    if not others:
        return function, first

    def of_first(x: Any) -> Any:
        return function(x, *others)

    of_first.__name__ = name_of(function)
    return of_first, first


def formula_at(
    text: str, values: Mapping[str, float], variables: Sequence[str] = (), functions: Sequence[str] = ()
) -> tuple[sp.Expr, Any]:
    """Return the expression of a formula and its symbols for `given`: one, several, or with values.

    >>> formula_at("x*sin(y)", {"y": 0.5})
    (x*sin(y), {x: x, y: 0.5})
    """
    expression = read_formula(text, [*variables, *(f"{name}(x)" for name in functions)])
    places = {symbol: (text.find(symbol.name) % (len(text) + 1), symbol.name) for symbol in expression.free_symbols}
    return expression, variables_at(text, sorted(places, key=places.__getitem__), variables, values)


def variables_at(text: str, free: Sequence[sp.Symbol], variables: Sequence[str], values: Mapping[str, Any]) -> Any:
    """Return the variables of a formula, named or all that are free: one, several, or with values."""
    symbols = symbols_named(variables, free) or list(free)
    if not symbols:
        raise ArgumentError(f"no variable in {text!r}", do="write a formula of x, or name the variables")
    values = {symbol_of(name).name: value for name, value in values.items()}
    if unknown := sorted(values.keys() - {symbol.name for symbol in symbols}):
        raise ArgumentError(f"{unknown[0]}=... as a point", do=f"the variables are {', '.join(map(str, symbols))}")
    if not values:
        return symbols[0] if len(symbols) == 1 else symbols
    return {symbol: values.get(symbol.name, symbol) for symbol in symbols}


def number_of(text: str, name: str) -> float:
    """Return a number typed for a name, such as 0.5 or pi/4; else ArgumentError."""
    value = read_formula(text)
    if value.free_symbols or not value.is_finite:
        raise ArgumentError(f"{name}={text}", do="give a finite number, such as 0.5 or pi/4")
    return float(value)
