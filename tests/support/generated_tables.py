"""Tables in pages that are made from the code: each stands between two comments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping


def with_tables(text: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """Return a page with its tables made anew.

    >>> with_tables("<!-- squares -->\\nold\\n<!-- end -->", {"squares": lambda: "| 1 | 4 |\\n"})
    '<!-- squares -->\\n| 1 | 4 |\\n<!-- end -->'
    """
    for name, make in tables.items():
        text = re.sub(rf"(<!-- {name} -->\n).*?(<!-- end -->)", rf"\g<1>{make()}\g<2>", text, flags=re.DOTALL)
    return text
