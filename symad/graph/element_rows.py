"""Columns of a graph in which array elements have numbers, but are not stored.

Their array node knows their head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Entry = TypeVar("Entry")


class SparseColumn(dict[int, Entry]):
    """A list-like column without entries for some ranges of rows; `of_element` answers for these.

    A dict, which is as fast as a list for stored entries; iteration gives the entries of all rows.

    >>> column = SparseColumn(["a", "b"], lambda row: "element")
    >>> column.leave_out(10**9)
    >>> column.append("c")
    >>> column[1], column[7], column[10**9 + 2], len(column)
    ('b', 'element', 'c', 1000000003)
    """

    count: int

    __slots__ = ("count", "of_element")

    of_element: Callable[[int], Entry]

    def __init__(self, entries: Iterable[Entry], of_element: Callable[[int], Entry]) -> None:
        super().__init__(enumerate(entries))
        self.count, self.of_element = super().__len__(), of_element

    def __missing__(self, row: int) -> Entry:
        if not 0 <= row < self.count:
            raise IndexError(row)
        return self.of_element(row)

    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return self.count > 0

    def __iter__(self) -> Iterator[Entry]:  # type: ignore[override]
        return (self[row] for row in range(self.count))

    def append(self, entry: Entry) -> None:
        """Add a row."""
        self[self.count] = entry
        self.count += 1

    def __iadd__(self, entries: Iterable[Entry]) -> SparseColumn[Entry]:
        for entry in entries:
            self.append(entry)
        return self

    def leave_out(self, rows: int) -> None:
        """Let the next rows be elements."""
        self.count += rows
