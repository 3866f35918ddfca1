"""Choose the storage places of matrix entries so that loops write them contiguously.

An entry of a body goes to another place of the matrix in each repetition. Entries at places that nothing else writes
are stored one after the other, repetition by repetition. Entries that share places (mostly the diagonal) are a family:
they are added up at places in the order of rows and columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from codegen.ir.sparsity import SparsityPattern
from codegen.ir.tables import Affine, Places, Table, distinct, table
from codegen.records import dataclass


@dataclass(frozen=True, eq=False)
class Arranged:
    """Of each entry the position in every repetition, and whether it is alone there; the place of each position."""

    positions: list[Places]
    alone: list[bool]
    rows: Places
    columns: Places
    shape: tuple[int, int]

    @property
    def pattern(self) -> SparsityPattern:
        """The places in the order of the positions."""
        return SparsityPattern(self.rows, self.columns, self.shape, "regions")


def arranged(entries: Sequence[tuple[Places, Places]], shape: tuple[int, int]) -> Arranged:
    """Return where entries, each with its rows and columns in every repetition, are stored.

    >>> first, second = np.arange(3), np.arange(1, 4)
    >>> found = arranged([(first, first), (second, first), (second, second)], (4, 4))
    >>> [positions.tolist() for positions in found.positions], found.alone
    ([[0, 1, 2], [4, 5, 6], [1, 2, 3]], [False, True, False])
    >>> found.rows.tolist(), found.columns.tolist()
    ([0, 1, 2, 3, 1, 2, 3], [0, 1, 2, 3, 0, 1, 2])
    """
    width = shape[1]
    keys = keys_of(entries, width)
    family, alone = _families(keys)
    positions: list[Places] = [np.empty(0, dtype=np.int64)] * len(keys)
    stored: list[Places] = [np.empty(0, dtype=np.int64)]
    begin = 0
    for members in family:
        if len(members) == 1 and alone[members[0]]:
            positions[members[0]] = np.arange(begin, begin + len(keys[members[0]]))
            stored.append(keys[members[0]])
        else:
            shortened = [keys[k][:1] if is_uniform(keys[k]) else keys[k] for k in members]
            places, inverse = _numbered(np.concatenate(shortened))
            parts = np.split(inverse + begin, np.cumsum([len(column) for column in shortened])[:-1])
            for k, part in zip(members, parts, strict=True):
                positions[k] = np.broadcast_to(part, len(keys[k])) if len(part) == 1 else part
            stored.append(places)
        begin += len(stored[-1])
    places = np.concatenate(stored)
    return Arranged(positions, alone, places // width, places % width, shape)


def _numbered(places: Places) -> tuple[Places, Places]:
    """Return the different places in rising order, and the number of each; rising columns are merged, not sorted."""
    order = np.argsort(places, kind="stable")
    ascending = places[order]
    new = np.concatenate([[True], ascending[1:] != ascending[:-1]])
    numbers = np.empty_like(places)
    numbers[order] = np.cumsum(new) - 1
    return ascending[new], numbers


def is_uniform(places: Places) -> bool:
    """Whether places are one that was repeated without being stored again (see `uniform`)."""
    return places.strides == (0,)


def uniform(places: Places) -> Places:
    """Return places that are all the same as one number that is repeated: hundreds of entries share a weight."""
    if len(places) > 1 and (places == places[0]).all():
        return np.broadcast_to(places[:1], len(places))
    return places


def table_of(places: Places) -> Table:
    """Return the table of places, at once for uniform ones."""
    return Affine(int(places[0]), 0, len(places)) if is_uniform(places) else table(places)


def reordered(places: Places, order: Places | None) -> Places:
    """Return places in an order of the repetitions."""
    return places if order is None or is_uniform(places) else places[order]


def retabled(table: Table, order: Places | None) -> Table:
    """Return a table in an order of the repetitions."""
    return table if order is None or table.fixed else table_of(table.places()[order])


def each(function: Callable[[Places, Places], Places], first: Places, second: Places) -> Places:
    """Return a function of two columns, of one number where both are uniform.

    >>> is_uniform(each(np.maximum, uniform(np.full(9, 2)), uniform(np.full(9, 3))))
    True
    """
    if is_uniform(first) and is_uniform(second):
        return np.broadcast_to(function(first[:1], second[:1]), len(first))
    return function(first, second)


def keys_of(entries: Sequence[tuple[Places, Places]], width: int) -> list[Places]:
    """Return the places in the flat matrix of entries with their rows and columns."""
    return [each(lambda row, column: row * width + column, rows, columns) for rows, columns in entries]


def _families(keys: Sequence[Places]) -> tuple[list[list[int]], list[bool]]:
    """Return the families of entries that share a place, and for each entry whether no place of it is written twice."""
    alone = [not is_uniform(column) for column in keys]
    if not keys:
        return [], alone
    shortened = [column[:1] if is_uniform(column) else column for column in keys]
    joined = np.concatenate(shortened)
    owner = np.repeat(np.arange(len(keys)), [len(column) for column in shortened])
    order = np.argsort(joined, kind="stable")  # columns that rise are merged, not sorted
    owner = owner[order]
    repeated = np.nonzero(np.diff(joined[order]) == 0)[0]
    pairs = distinct(owner[repeated] * len(keys) + owner[repeated + 1])
    families = {number: [number] for number in range(len(keys))}
    first_of = list(families)  # of the family of each entry
    for pair in zip((pairs // len(keys)).tolist(), (pairs % len(keys)).tolist(), strict=True):
        kept, gone = sorted(first_of[number] for number in pair)
        for number in pair:
            alone[number] = False
        for number in families.pop(gone) if gone != kept else ():
            families[kept].append(number)
            first_of[number] = kept
    return [sorted(family) for family in families.values()], alone
