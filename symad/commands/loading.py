"""`file.py:function` on the command line: the function and the point at which the file wants it looked at."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
import unicodedata
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import symad.tracing.values.containers as containers
from symad.errors import ArgumentError


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
