"""Programs, straight and rolled, as Python text that makes them again: one line for a row."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np
import sympy as sp

import codegen.distribution_heads
import codegen.heads
import codegen.special_heads
from codegen.ir.program import Input, Output, Program
from codegen.ir.region import Buffer, Carry, Gather, Nest, Region, Result, RolledProgram
from codegen.ir.tables import Affine, Indexed

INDENT = "    "
WIDE = 100  # columns of a value that stays on one line


def rows(inputs: Any, outputs: Any, lines: list[Any], **more: Any) -> Program:
    """A program of rows: an atom, or a head and its operands."""
    heads = [type(line) if isinstance(line, sp.Basic) else line[0] for line in lines]
    operands = [() if isinstance(line, sp.Basic) else line[1:] for line in lines]
    atoms = {row: line for row, line in enumerate(lines) if isinstance(line, sp.Basic)}
    return Program(heads, operands, atoms, inputs, outputs, **more)


NAMES: dict[str, Any] = {
    **vars(sp), "h": codegen.heads, "special": codegen.special_heads,
    "distributions": codegen.distribution_heads, "np": np, "inf": np.inf, "nan": np.nan,
    "rows": rows, **{kind.__name__: kind for kind in (Input, Output, Buffer, Carry, Gather, Nest, Region, Result)},
    "RolledProgram": RolledProgram, "Affine": Affine, "Indexed": Indexed,
}  # fmt: skip


def written(value: Any, name: str = "PROGRAM") -> str:
    """A value as the text `name = ...`, which `read` makes again."""
    return f"{name} = {_text(value, '')}\n"


def read(text: str, name: str = "PROGRAM", **names: Any) -> Any:
    """The value of a text; `names` are the types that it speaks of besides programs."""
    found = {**NAMES, **names}
    exec(text, found)
    return found[name]


def _text(value: Any, indent: str) -> str:
    if isinstance(value, Program):
        lines = [
            value.atoms[row] if not parts else (value.heads[row], *parts) for row, parts in enumerate(value.operands)
        ]
        more = [f"{key}={getattr(value, key)!r}" for key in ("name", "seeded") if getattr(value, key)]
        listed = _listed([_text(line, "") for line in lines], "[]", indent + INDENT, narrow=True)
        return _listed([_text(value.inputs, ""), _text(value.outputs, ""), listed, *more], ("rows(", ")"), indent)
    if is_dataclass(value) and not isinstance(value, type):
        given = [
            f"{field.name}={_text(part, indent + INDENT)}"
            for field in fields(value)
            if not _is_default(part := getattr(value, field.name), field.default)
        ]
        return _listed(given, (f"{type(value).__name__}(", ")"), indent)
    if isinstance(value, type):
        return f"{_module(value)}{value.__name__}"
    if isinstance(value, sp.Basic):
        return "h.negative_zero" if value is codegen.heads.negative_zero else sp.srepr(value)
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()}, dtype=np.{value.dtype})"
    if isinstance(value, tuple | list):
        comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
        ends = ("(", comma + ")") if isinstance(value, tuple) else ("[", "]")
        return _listed([_text(part, indent + INDENT) for part in value], ends, indent)
    return repr(value)


def _is_default(value: Any, default: Any) -> bool:
    return (default is not MISSING and value is default) or (isinstance(default, tuple | str) and value == default)


def _module(kind: type) -> str:
    """Where a class is found."""
    places = {codegen.heads.__name__: "h.", codegen.special_heads.__name__: "special."}
    places[codegen.distribution_heads.__name__] = "distributions."
    return places.get(kind.__module__, "" if getattr(sp, kind.__name__, None) is kind else "h.")


def _listed(parts: list[str], ends: Any, indent: str, *, narrow: bool = False) -> str:
    """Parts between brackets, on one line if they fit."""
    line = ", ".join(parts)
    if len(line) < WIDE and "\n" not in line and not (narrow and parts):
        return f"{ends[0]}{line}{ends[1]}"
    inside = "".join(f"{indent}{INDENT}{part},\n" for part in parts)
    return f"{ends[0]}\n{inside}{indent}{ends[1].removeprefix(',')}"
