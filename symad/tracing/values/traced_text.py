"""The text of a traced value: it can be printed, kept and joined, but not read.

`float(str(x))`, `str(x) == "nan"` and `repr(x)[0] == "-"` would read marks that no number has (`~` before the digits,
names of symbols), and continue on a path that no number takes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

from symad.errors import TraceError
from symad.tracing.calling.recorded_errors import innermost_watch
from symad.tracing.calling.user_place import is_installed, is_library, user_place


class TracedText(str):
    """Text that user code cannot read during a trace. Packages that print it can."""

    __slots__ = ()

    def __float__(self) -> float:
        return float(self._digits())

    def __int__(self) -> int:
        return int(self._digits())

    def _digits(self) -> str:
        if innermost_watch() is not None:
            refuse_text()
        return "".join(self)


def refuse_text() -> NoReturn:
    raise TraceError(
        "the text of a traced value is read",
        where=user_place(),
        why="it is marked as traced, and no number's text",
        do="ask the value itself (np.isnan(x), x < 0, round(x, 2))",
    )


def _guarded(name: str) -> Callable[..., Any]:
    original = getattr(str, name)

    def method(self: TracedText, *args: Any, **keywords: Any) -> Any:
        file = sys._getframe(1).f_code.co_filename
        if innermost_watch() is not None and not (is_installed(file) or is_library(file)):
            refuse_text()
        return original(self, *args, **keywords)

    return method


for _name in (
    "__eq__", "__ne__", "__hash__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__", "__getitem__", "__iter__",
    "__len__", "count", "endswith", "find", "index", "isdecimal", "isdigit", "isnumeric", "partition", "rfind",
    "rindex", "rpartition", "rsplit", "split", "startswith",
):  # fmt: skip
    setattr(TracedText, _name, _guarded(_name))
TracedText.__name__ = "str"  # what messages call it
