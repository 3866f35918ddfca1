"""The one table of styles: what a role, a verdict or an emphasis looks like in a terminal, on paper and in a browser.

The colours are those of Okabe and Ito ("Color Universal Design", 2008), darkened where white paper asks for it: readers
who do not see red or green tell them apart. Colour never stands alone: a role has a letter too, and its level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Style = Literal[
    "primal", "parameter", "residual", "tangent", "cotangent", "epsilon", "right", "wrong", "strong", "muted", "code"
]


@dataclass(frozen=True)
class Look:
    """A colour for light ground, one for dark ground (six hexadecimal digits, or none), and the letter of a role."""

    light: str = ""
    dark: str = ""
    letter: str = ""
    bold: bool = False


GROUND = Look("FFFFFF", "16181C")  # of a page
LOOKS: dict[Style, Look] = {
    "primal": Look("1A1A1A", "E8E8E8", "P"),
    "parameter": Look("6B4C9A", "B9A3E3", "A"),
    "residual": Look("8A6100", "E69F00", "R"),
    "tangent": Look("0060A0", "56B4E9", "T"),
    "cotangent": Look("B34700", "FF9A5C", "C"),
    "epsilon": Look("007A5E", "3CCBA0"),
    "right": Look("00724F", "3CCBA0", bold=True),
    "wrong": Look("B00020", "FF7B8A", bold=True),
    "strong": Look(bold=True),
    "muted": Look("666666", "A0A0A0"),
    "code": Look(),
}

# The symbol of a level is told from those of other levels by colour too; there are colours for six.
LEVELS: tuple[Look, ...] = (
    LOOKS["epsilon"],
    Look("9C2E7C", "E48FC8"),
    Look("8A6100", "E69F00"),
    Look("0060A0", "56B4E9"),
    Look("B34700", "FF9A5C"),
    Look("5A5A5A", "B8B8B8"),
)


def look_of(style: Style, level: int = 0) -> Look:
    """Return what a style looks like; the symbols of levels have a colour for each level.

    >>> look_of("epsilon", 2).light, look_of("tangent", 2).light
    ('9C2E7C', '0060A0')
    """
    return LEVELS[(level - 1) % len(LEVELS)] if style == "epsilon" and level > 0 else LOOKS[style]


def class_of(style: Style, level: int = 0) -> str:
    """Return the names of a style in a stylesheet.

    >>> class_of("wrong"), class_of("epsilon", 2)
    ('wrong', 'epsilon level-2')
    """
    return f"epsilon level-{(level - 1) % len(LEVELS) + 1}" if style == "epsilon" and level > 0 else style
