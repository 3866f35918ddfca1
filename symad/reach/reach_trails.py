"""Trails: how the walk reached an object, in words and with the user's line."""

from __future__ import annotations

import types
from typing import NamedTuple

from symad.reach.code_facts import line_of_name


class Trail(NamedTuple):
    """How an object was reached: in words, by code that has the name; `name` of a global name, else ""."""

    words: str
    code: types.CodeType | None
    key: str
    name: str


class Obstacle(NamedTuple):
    """Something that cannot be followed or has an effect, and how it was reached."""

    what: str
    trail: Trail
    asks: bool = False  # the world for something

    @property
    def reason(self) -> str:
        """What it is, and how it was reached."""
        return self.what if self.what in self.trail.words else f"{self.what} ({self.trail.words})"

    @property
    def place(self) -> tuple[str, int]:
        """The user's file and line; line 0 if they are not known."""
        code = self.trail.code
        return ("<unknown>", 0) if code is None else (code.co_filename, line_of_name(code, self.trail.key))


class Checked(NamedTuple):
    """A class that code only uses in `isinstance`."""

    kind: type
