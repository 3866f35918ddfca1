"""Copies: a value that goes to very many places is stored in some, and copied to the others in functions of their own.

LLVM's cost is superlinear in the stores of one function: 10 000 stores of one constant took it 20 s.
"""

from __future__ import annotations

from collections.abc import Sequence

Place = tuple[int, int]  # output array, flat position
MOST = 500  # stores in one function, but for the first store of each value


def split_stores(
    chunks: Sequence[Sequence[int]], stores: Sequence[tuple[int, int, int]], most: int = MOST
) -> tuple[dict[int, list[Place]], list[dict[Place, list[Place]]]]:
    """Return where each row is stored in its chunk, and functions' worth of copies: where from, where to.

    >>> split_stores([[7, 8]], [(0, 0, 7), (0, 1, 8), (0, 2, 7), (0, 3, 7), (0, 4, 7)], most=3)
    ({7: [(0, 0), (0, 2)], 8: [(0, 1)]}, [{(0, 0): [(0, 3), (0, 4)]}])
    """
    places: dict[int, list[Place]] = {}
    for array, position, row in stores:
        places.setdefault(row, []).append((array, position))
    copies: list[dict[Place, list[Place]]] = []
    size = most
    for chunk in chunks:
        stored = [row for row in chunk if row in places]
        left = max(0, most - len(stored))
        for row in stored:
            here = places[row]
            kept = 1 + min(left, len(here) - 1)
            left -= kept - 1
            places[row] = here[:kept]
            for place in here[kept:]:
                if size >= most:
                    copies.append({})
                    size = 0
                copies[-1].setdefault(here[0], []).append(place)
                size += 1
    return places, copies
