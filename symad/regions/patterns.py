"""Patterns: where the entries of a matrix that loops write are stored, so that they lie side by side.

An entry of a body is written to another place of the matrix in each repetition. Entries at places that nothing else
writes are stored one after the other, repetition by repetition. Entries that meet at some place (the diagonal, for
most) are a family: they share their places, in the order of rows and columns, and are added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codegen.regions.table import Places
from codegen.sparsity import SparsityPattern


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
    keys = [rows * width + columns for rows, columns in entries]
    family, alone = _families(keys)
    positions: list[Places] = [np.empty(0, dtype=np.int64)] * len(keys)
    stored: list[Places] = [np.empty(0, dtype=np.int64)]
    begin = 0
    for number in dict.fromkeys(family):
        members = [k for k, other in enumerate(family) if other == number]
        if len(members) == 1 and alone[members[0]]:
            positions[members[0]] = np.arange(begin, begin + len(keys[members[0]]))
            stored.append(keys[members[0]])
        else:
            places, inverse = np.unique(np.concatenate([keys[k] for k in members]), return_inverse=True)
            parts = np.split(inverse + begin, np.cumsum([len(keys[k]) for k in members])[:-1])
            for k, part in zip(members, parts, strict=True):
                positions[k] = part
            stored.append(places)
        begin += len(stored[-1])
    places = np.concatenate(stored)
    return Arranged(positions, alone, places // width, places % width, shape)


def distinct(places: Places) -> Places:
    """Return the different places in rising order; by sorting, which `np.unique` does not do any more.

    >>> distinct(np.array([3, 1, 3]))
    array([1, 3])
    """
    if not len(places) or (places == places[0]).all():
        return places[:1]
    found: Places = np.sort(places)
    kept: Places = found[np.concatenate([[True], found[1:] != found[:-1]])]
    return kept


def met_alone(keys: Sequence[Places]) -> list[bool]:
    """Return for each column of places whether nothing writes one of them twice.

    >>> met_alone([np.array([0, 1]), np.array([1, 2]), np.array([3, 4])])
    [False, False, True]
    """
    return _families(keys)[1]


def _families(keys: Sequence[Places]) -> tuple[list[int], list[bool]]:
    """Return for each entry the number of its family, and whether no place of it is written twice."""
    family, alone = list(range(len(keys))), [True] * len(keys)
    if not keys:
        return family, alone
    joined = np.concatenate(keys)
    owner = np.repeat(np.arange(len(keys)), [len(column) for column in keys])
    order = np.argsort(joined, kind="stable")  # columns that rise are merged, not sorted
    owner = owner[order]
    again = np.nonzero(np.diff(joined[order]) == 0)[0]
    pairs = distinct(owner[again] * len(keys) + owner[again + 1])
    for first, second in zip((pairs // len(keys)).tolist(), (pairs % len(keys)).tolist(), strict=True):
        alone[first] = alone[second] = False
        kept, gone = sorted((family[first], family[second]))
        family = [kept if number == gone else number for number in family]
    return family, alone
