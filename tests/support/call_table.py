"""Tables of calls: what of a package can be traced, of which a page in `docs` is made; each row is run by a test.

A row is a line of a list: Python, as a user writes it; statements are separated by `; ` and the last one is the result.
Under `[symbols]` are calls that are traced without values, under `[inside]` those whose result has a length that
depends on the values, under `[numbers]` those that need values (a solver works with them), under `[refused]` those that
raise TraceError, under `[error]` those that the package itself refuses. Behind the bracket stands the topic.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import symad
from tests.support.source_texts import execute

_STATUS = {
    "symbols": "on symbols", "inside": "on symbols, inside", "numbers": "on numbers", "refused": "refused",
}  # fmt: skip


@dataclass(frozen=True)
class Names:
    """What calls may be made of: arguments that are traced, ordinary names, and how a row is called by its text."""

    arguments: Mapping[str, Any]
    plain: Mapping[str, Any]
    name_of: Callable[[Row], str]
    file: str


@dataclass(frozen=True)
class Row:
    """One call: what is expected of it ("symbols", "inside", "numbers", "refused", "error"), its topic and its text."""

    expected: str
    topic: str
    text: str
    names: Names = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """The function that it is about, as a user writes it."""
        return self.names.name_of(self)

    @property
    def arguments(self) -> list[str]:
        """The names of the traced arguments, in the order of the arguments."""
        used = {node.id for node in ast.walk(ast.parse(self.text)) if isinstance(node, ast.Name)}
        return [name for name in self.names.arguments if name in used]

    @property
    def values(self) -> list[Any]:
        """Fresh copies of the arguments."""
        return [np.copy(self.names.arguments[name])[()] for name in self.arguments]

    @property
    def function(self) -> Callable[..., Any]:
        """The row as a function of its arguments."""
        return _function_of(self)


@cache  # as many as the tables have rows
def _function_of(row: Row) -> Callable[..., Any]:
    *statements, last = row.text.split("; ")
    body = "".join(f"    {line}\n" for line in [*statements, f"return {last}"])
    scope = dict(row.names.plain)
    execute(f"def call({', '.join(row.arguments)}):\n{body}", scope, row.names.file)
    made: Callable[..., Any] = scope["call"]
    return made


def arguments(generator: np.random.Generator) -> dict[str, Any]:
    """Return the numbers, vectors and matrices that calls of every table are made of."""
    matrix = generator.uniform(-1.0, 1.0, (4, 4)) + 3.0 * np.eye(4)[[1, 0, 2, 3]]
    return {
        "r": np.float64(0.37),
        "x": generator.uniform(-2.0, 2.0, 5),
        "y": generator.uniform(-2.0, 2.0, 5),
        "u": generator.uniform(0.1, 0.9, 5),
        "v": generator.uniform(1.2, 2.6, 5),
        "a": generator.uniform(-1.0, 1.0, (3, 4)),
        "b": generator.uniform(-1.0, 1.0, (4, 2)),
        "m": matrix,
        "s": matrix @ matrix.T,
        "p": generator.uniform(-1.0, 1.0, (5, 3)),
    }


def listed(calls: Path, names: Names) -> list[Row]:
    """Return the rows of a list of calls."""
    found: list[Row] = []
    heading = ("", "")
    for line in calls.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            expected, _, topic = line[1:].partition("] ")
            heading = (expected, topic)
        elif line and not line.startswith("#"):
            found.append(Row(*heading, line, names))
    return found


def topics(found: list[Row], note: Callable[[str, list[Row]], str]) -> list[str]:
    """Return the lines of a page: a table for each topic, a line for each function."""
    lines: list[str] = []
    for topic in dict.fromkeys(row.topic for row in found):
        lines += ["", f"## {topic[0].upper()}{topic[1:]}", "", "| function | works | calls tested |", "|---|---|---|"]
        of_topic = [row for row in found if row.topic == topic]
        for name in dict.fromkeys(row.name for row in of_topic):
            for status in dict.fromkeys(row.expected for row in of_topic if row.name == name):
                group = [row for row in of_topic if row.name == name and row.expected == status]
                lines.append(f"| `{name}` | {_STATUS[status]} | {note(name, group)} |")
    return lines


def cell(text: str) -> str:
    """Return a text as it stands in a cell."""
    return text.replace("|", "\\|")


def shown(found: list[Row]) -> str:
    """Return the calls of a function; of those that are refused with the reason."""
    if found[0].expected == "refused":
        return "<br>".join(f"`{cell(row.text)}`: {cell(reason(row))}" for row in found)
    return "<br>".join(f"`{cell(row.text)}`" for row in found)


def reason(row: Row) -> str:
    """Return why a row is refused, and what to do instead, as the error says it."""
    try:
        symad.jvp(row.function, tuple(row.values), tuple(row.values))
    except symad.WorkbenchError as error:
        return f"{error.why or error.what}; {error.do}".rstrip("; ")
    raise AssertionError(f"{row.text} is not refused")
