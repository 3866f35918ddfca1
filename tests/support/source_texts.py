"""Texts of programs that run as files do: Python finds their source, and symad rewrites it where it has to."""

import itertools
import linecache
from typing import Any

KEPT = 512  # texts whose source is known
_numbers = itertools.count()
_names: list[str] = []


def execute(text: str, names: dict[str, Any], title: str = "program") -> None:
    """Execute a text under a file name of its own."""
    name = f"<{title} {next(_numbers)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    _names.append(name)
    if len(_names) > KEPT:
        linecache.cache.pop(_names.pop(0), None)
    exec(compile(text, name, "exec"), names)
