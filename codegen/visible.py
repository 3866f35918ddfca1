"""Escape invisible and direction-changing characters in text."""

from __future__ import annotations

import unicodedata

_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # control, direction, half characters, private, unassigned


def visible(text: str) -> str:
    r"""Return text with characters that cannot be seen, or that turn the writing round, as their numbers.

    >>> visible("a\x1b[31m\u202eb\n")
    'a\\x1b[31m\\u202eb\n'
    """
    return text if text.isprintable() else "".join(map(_seen, text))


def _seen(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in _UNSEEN:
        return character
    return ascii(character)[1:-1]
