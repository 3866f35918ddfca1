"""Trails: how the walk reached an object, in words and with the user's line."""

from __future__ import annotations

import types
from typing import NamedTuple

from symad.reach.code_facts import line_of_name


class Trail(NamedTuple):
    """How an object was reached: in words, by the code that has the name; `name` of a global, "" of another one."""

    words: str
    code: types.CodeType | None
    key: str
    name: str


class Obstacle(NamedTuple):
    """What cannot be followed, or what has an effect, and how it was reached."""

    what: str
    trail: Trail
    asks: bool = False  # the world for something

    @property
    def reason(self) -> str:
        """What it is, and what leads to it."""
        return self.what if self.what in self.trail.words else f"{self.what} ({self.trail.words})"

    @property
    def place(self) -> tuple[str, int]:
        """The user's file and line; line 0 where they are not known."""
        code = self.trail.code
        return ("<unknown>", 0) if code is None else (code.co_filename, line_of_name(code, self.trail.key))


class Checked(NamedTuple):
    """A class of which only objects are asked whether they are of it."""

    kind: type
