"""The range of a kernel over a box, proven: interval evaluation by balls, bisected where it goes too far."""

from __future__ import annotations

import heapq
import math
from time import monotonic
from typing import Any

import numpy as np

from codegen import Kernel
from codegen.records import dataclass
from symad.checking.verification.balls import enclosures, results_of, working_bits
from symad.checking.verification.balls_functions import Ball, as_mpf, flint, hull
from symad.checking.verification.exact import check_kernel
from symad.checking.verification.points import Points, box_of
from symad.checking.verification.verification_result import ROWS, entry_names
from symad.display.document import Document, Heading, Paragraph, Table
from symad.display.notation import counted
from symad.display.shown import Shown
from symad.errors import ArgumentError
from symad.tracing.calling.tracebacks import public_api

BITS = 64
DEEPEST = 40  # halvings of a piece without an enclosure, after which it stays without
CLOSE = 0.01  # of the width of the range: how far an enclosure may go beyond numbers that are taken


@dataclass(frozen=True)
class RangeEnclosure(Shown):
    """Bounds of a kernel's exact results over a box.

    Every exact result lies between `low` and `high` (flat arrays, one number for each entry). That is not far too much:
    some results are `taken_low` or less, and some are `taken_high` or more. Where `unknown` is not 0, so many of the
    `pieces` have no enclosure - a pole or the end of a domain is inside, or on the edge - and the bounds of the entries
    concerned are infinite.
    """

    names: tuple[str, ...]
    low: Points
    high: Points
    taken_low: Points
    taken_high: Points
    pieces: int
    unknown: int

    @property
    def statement(self) -> str:
        """What was found, in a sentence."""
        apart = f"; {self.unknown} pieces have no enclosure" if self.unknown else ""
        entries = counted(len(self.names), "entry")
        return f"Proven range of {entries} over {self.pieces} pieces of the box{apart}"

    @property
    def title(self) -> str:
        return "Range over a box"

    def document(self) -> Document:
        """Return the statement and a table of bounds."""
        columns = (self.low, self.taken_low, self.taken_high, self.high)
        rows = tuple(
            (name, *(f"{column[k]:.6g}" for column in columns)) for k, name in enumerate(self.names[: 2 * ROWS])
        )
        caption = f"the first {len(rows)} of {len(self.names)} entries" if len(rows) < len(self.names) else ""
        header = ("entry", "never below", "taken", "taken", "never above")
        return (Heading(self.title, 1), Paragraph(self.statement + "."), Table(header, rows, "lrrrr", caption))


@public_api
def enclose_range(kernel: Kernel, box: Any, *, pieces: int = 1000, max_seconds: float = 10.0) -> RangeEnclosure:
    """Return proven bounds of a kernel's exact results over a box (extra "rigorous").

    The box (as in `verify`) is cut into up to `pieces` pieces, for `max_seconds` at most: first those whose enclosure
    goes furthest beyond the results that are known to be taken. Rounding of the kernel itself is not included.
    ArgumentError for a float32 kernel.

    >>> import symad as sa
    >>> found = enclose_range(sa.compile(lambda x: x - x**2, 0.5), (0, 1))
    >>> bool(-0.01 < found.low[0] <= 0), bool(0.25 <= found.high[0] < 0.26)
    (True, True)
    """
    if check_kernel(kernel):
        raise ArgumentError("the range of a float32 kernel", do="compile it in float64: exact results are the same")
    found = box_of(kernel, box)
    search = _Refinement(kernel, found.low, found.high)
    stop = monotonic() + max_seconds
    while len(search.heap) < pieces and monotonic() < stop and search.refine():
        pass
    low, high = search.bounds()
    unknown = sum(piece.unknown for _, _, piece in search.heap)
    return RangeEnclosure(
        tuple(entry_names(kernel)), low, high, search.taken_low, search.taken_high, len(search.heap), unknown
    )


@dataclass(frozen=True, eq=False)
class _Piece:
    """A part of the box, the bounds of the results over it, and how often it was halved."""

    corners: tuple[Points, Points]
    low: Points
    high: Points
    depth: int

    @property
    def unknown(self) -> bool:
        return bool(np.isinf(self.low).any() or np.isinf(self.high).any())


class _Refinement:
    """Pieces of a box in a heap, the one that overestimates most on top."""

    def __init__(self, kernel: Kernel, low: Points, high: Points) -> None:
        self.rows, self.results = results_of(kernel)
        self.width = np.where(high > low, high / 2 - low / 2, 1.0)
        self.taken_low = np.full(len(self.results), math.inf)
        self.taken_high = np.full(len(self.results), -math.inf)
        self.heap: list[tuple[float, int, _Piece]] = []
        self.made = 0
        self._add(low, high, 0)

    def refine(self) -> bool:
        """Cut the piece on top in two across its longest side; whether there was one worth it."""
        least, _, piece = self.heap[0]
        low, high = piece.corners
        side = int(np.argmax((high / 2 - low / 2) / self.width)) if len(low) else 0
        middle = low[side] / 2 + high[side] / 2 if len(low) else 0.0
        if -least <= CLOSE or not len(low) or not low[side] < middle < high[side]:
            return False
        heapq.heappop(self.heap)
        for start, end in ((low[side], middle), (middle, high[side])):
            left, right = low.copy(), high.copy()
            left[side], right[side] = start, end
            self._add(left, right, piece.depth + 1)
        return True

    def bounds(self) -> tuple[Points, Points]:
        """Return bounds over all pieces."""
        pieces = [piece for _, _, piece in self.heap]
        return np.min([piece.low for piece in pieces], axis=0), np.max([piece.high for piece in pieces], axis=0)

    def _add(self, low: Points, high: Points, depth: int) -> None:
        at_middle = self._enclosed([flint().arb(number) for number in (low / 2 + high / 2).tolist()])
        known = np.isfinite(at_middle[0]) & np.isfinite(at_middle[1])
        self.taken_low = np.where(known, np.minimum(self.taken_low, at_middle[1]), self.taken_low)
        self.taken_high = np.where(known, np.maximum(self.taken_high, at_middle[0]), self.taken_high)
        with working_bits(BITS):
            sides = [hull(flint().arb(u), flint().arb(v)) for u, v in zip(low.tolist(), high.tolist(), strict=True)]
        piece = _Piece((low, high), *self._enclosed(sides), depth)
        self.made += 1
        heapq.heappush(self.heap, (-self._excess(piece), self.made, piece))

    def _excess(self, piece: _Piece) -> float:
        """How far a piece's bounds go beyond the results that are taken, in widths of that range."""
        if piece.unknown:
            return 0.0 if piece.depth >= DEEPEST else math.inf
        width = np.maximum(self.taken_high - self.taken_low, np.abs(self.taken_high) * 1e-9 + 1e-300)
        beyond = np.maximum(self.taken_low - piece.low, piece.high - self.taken_high)
        with np.errstate(invalid="ignore"):
            return float(np.max(np.nan_to_num(beyond / width, nan=math.inf), initial=0.0))

    def _enclosed(self, inputs: list[Ball]) -> tuple[Points, Points]:
        wanted = list(dict.fromkeys(row for row in self.results if row is not None))
        found = dict(zip(wanted, enclosures(self.rows, wanted, dict(enumerate(inputs)), BITS), strict=True))
        ends = [(0.0, 0.0) if row is None else _ends(found[row]) for row in self.results]
        pairs = np.array(ends, dtype=float).reshape(len(ends), 2)
        return pairs[:, 0], pairs[:, 1]


def _ends(enclosure: Ball) -> tuple[float, float]:
    """Return the ends of a ball as floats, rounded outward; infinite ones of what is not known."""
    if not enclosure.is_finite():
        return (-math.inf, math.inf)
    with working_bits(BITS):
        low, high = float(as_mpf(enclosure.lower())), float(as_mpf(enclosure.upper()))
    exact = enclosure.is_exact() and low == high and enclosure == low
    return (low, high) if exact else (math.nextafter(low, -math.inf), math.nextafter(high, math.inf))
