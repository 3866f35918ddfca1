"""Results as JSON for `--json`: their own names, numbers as numbers, formulas as text."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp
from mpmath import mpc, mpf

DEEPEST = 6  # containers in containers

_LEFT_OUT = object()
_TOLD = ("float", "int", "bool", "str")


def print_json(command: str, result: Any) -> None:
    """Print the result of a command as JSON.

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
    data = _plain(_of_result(result), 0)
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


def _of_result(result: Any) -> Any:
    """Return the fields of a result, and its properties that are numbers or words."""
    told = {
        name: getattr(result, name)
        for kind in type(result).__mro__
        for name, member in vars(kind).items()
        if isinstance(member, property) and getattr(member.fget, "__annotations__", {}).get("return") in _TOLD
    }
    return vars(result) | told if hasattr(result, "__dict__") else result


def _named(parts: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    data = {str(name): _plain(part, depth + 1) for name, part in parts.items() if not str(name).startswith("_")}
    return {name: part for name, part in data.items() if part is not _LEFT_OUT}
