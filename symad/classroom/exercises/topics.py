"""The topics of exercises, which `topics.toml` lists, and random choices that are the same on every machine."""

from __future__ import annotations

import difflib
import operator
import random
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from codegen.records import dataclass
from symad.tracing.calling.user_place import refusal

T = TypeVar("T")
LEVELS = (1, 2, 3)
_POOLS: dict[str, Sequence[Any]] = {
    "abc": range(2, 10), "nm": range(2, 6), "s": "+-", "r": "+-", "fg": ("sin", "cos", "exp", "ln"),
    "hj": ("sin", "cos", "tan"), "AB": "ABCM", "XY": "XYZ", "xy": "xuvw", "de": "abcr",
}  # fmt: skip
_LETTER = re.compile(r"\{(2?[A-Za-z]|at)\}")


@dataclass(frozen=True)
class Topic:
    """A row of the table: the kind of question, what is to be done, and the formulas by level."""

    kind: str
    formulas: Mapping[int, Sequence[str]]
    order: int = 1
    variables: str = "x"
    task: str = "Find f′(x)."
    result: str = ""
    hint: str = ""


@cache
def table(name: str) -> Any:
    """Return a table of the data beside this file."""
    return tomllib.loads(files("symad.classroom.exercises").joinpath(name).read_text(encoding="utf-8"))


@cache
def topics() -> dict[str, Topic]:
    """Return all topics by name."""
    levels = {str(level): level for level in LEVELS}
    return {name: Topic(formulas={level: row[key].split("; ") for key, level in levels.items()},
                        **{key: part for key, part in row.items() if key not in levels})
            for name, row in table("topics.toml").items()}  # fmt: skip


class Draw:
    """Random choices that are the same on every machine and in every version of Python.

    >>> Draw("chain rule", 1, 7).of("abcdefgh")
    'a'
    """

    def __init__(self, *key: Any) -> None:
        self._source = random.Random("|".join(map(str, key)))  # a text is a seed by SHA-512, `random()` is promised

    def of(self, choices: Sequence[T]) -> T:
        return choices[int(self._source.random() * len(choices))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        order = [(self._source.random(), k) for k in range(len(items))]
        return [items[k] for _, k in sorted(order)]

    def letters(self) -> dict[str, Any]:
        """Return a value for each letter of a formula; those of one pool differ."""
        drawn: dict[str, Any] = {}
        for names, pool in _POOLS.items():
            drawn |= zip(names, self.shuffled(pool), strict=False)
        return {**drawn, "2a": 2 * drawn["a"]}


def filled(template: str, drawn: Mapping[str, Any]) -> str:
    """Return a text with drawn values for its letters in braces.

    >>> filled("{a}x^{n}", {"a": 3, "n": 2})
    '3x^2'
    """
    return _LETTER.sub(lambda letter: str(drawn[letter[1]]), template)


def topic_named(name: Any) -> str:
    """Return a topic in its own spelling; ArgumentError with the nearest ones for another name.

    >>> topic_named("hessians")
    'Hessians'
    """
    lowered = {topic.lower(): topic for topic in topics()}
    text = " ".join(str(name).lower().split())
    if isinstance(name, str) and text in lowered:
        return lowered[text]
    near = difflib.get_close_matches(text, lowered, n=3, cutoff=0.4)
    near += [topic for topic in lowered if text and text in topic and topic not in near][:3]
    do = f"take {' or '.join(repr(lowered[topic]) for topic in near)}" if near else ""
    raise refusal(f"no topic {name!r:.60}", do=do or "the command symad exercise lists all")


def whole(name: str, number: Any, *bounds: int) -> int:
    """Return an option that has to be an integer, in a range if there are bounds; ArgumentError for anything else."""
    try:
        value = operator.index(number) if not isinstance(number, bool) else None
    except TypeError:
        value = None
    if value is None or (bounds and not bounds[0] <= value <= bounds[-1]):
        kinds = f"an integer from {bounds[0]} to {bounds[-1]}" if bounds else "an integer"
        raise refusal(f"{name}={number!r:.60}", do=f"give {kinds}")
    return value
