"""The result of `verify` as an object and as a document with a table of the worst entries."""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any

import numpy as np
from mpmath import mp

from codegen import Kernel
from codegen.functions.reference_functions import precision
from codegen.records import dataclass
from symad.compiling.kernel_containers import ResultTogether
from symad.display.document import Block, Cell, Document, Heading, Marked, Paragraph, Table
from symad.display.shown import Shown
from symad.tracing.values.containers import flatten, paths, unflatten

ROWS = 12  # entries in a table
DIGITS = 20  # of an exact number in a table: more than a float has
LONG = 6  # numbers of a point that are written out
FAR = 16.0  # times what rounding the inputs alone would cause


@dataclass(frozen=True)
class EntryError:
    """The worst error of one entry of a kernel's results.

    `value` is the kernel's number at `point` (its arguments), `exact` and `radius` (mpmath) the exact one and how far
    off that can be. `condition` is the error in ULP that rounding the inputs alone would cause there, None where it
    was not computed. `at_edge` says that rounding decides about a branch there: a few floats away, exact results have
    the value among or between them.
    """

    name: str
    index: int
    worst_ulp: float
    point: tuple[Any, ...]
    value: float
    exact: Any
    radius: Any = 0
    condition: float | None = None
    at_edge: bool = False

    def excess(self) -> float:
        """Return the error as a multiple of the effect of rounding the inputs (at least 1 ULP)."""
        return math.nan if self.condition is None else self.worst_ulp / max(1.0, self.condition)

    def is_unexplained(self) -> bool:
        """Whether the error is far beyond that: a fault of the formula or the kernel."""
        return self.excess() > FAR and not self.at_edge

    def is_right(self) -> bool:
        """Whether rounding the inputs, or the formula itself, may explain the error."""
        known = self.condition is not None or self.at_edge
        return not self.is_unexplained() if known else self.worst_ulp <= FAR

    def cells(self, place: str) -> tuple[Cell, ...]:
        """Return a row of a table. An unexplained error is highlighted."""
        error: Cell = Marked(ulps(self.worst_ulp), "wrong") if self.is_unexplained() else ulps(self.worst_ulp)
        condition = "edge" if self.at_edge else "" if self.condition is None else ulps(self.condition)
        at = (place,) if place else ()
        return (self.name, error, condition, *at, repr(self.value), exact_text(self.exact, self.radius))


def error_tables(rows: tuple[EntryError, ...], entries: int, *, points: bool) -> tuple[Table, ...]:
    """Return the table of the worst entries and, with `points`, a table of their points."""
    shown = rows[:ROWS]
    texts = list(dict.fromkeys(point_text(row.point) for row in shown))
    several = points and len(texts) > 1  # the statement has a single point
    places = [f"P{texts.index(point_text(row.point)) + 1}" if several else "" for row in shown]
    header = ("entry", "error in ULP", "inputs' rounding", *(("at",) if several else ()), "kernel", "exact")
    caption = f"the {len(shown)} worst of {entries} entries" if len(shown) < entries else ""
    cells = tuple(row.cells(place) for row, place in zip(shown, places, strict=True))
    table = Table(header, cells, "lrrlll" if several else "lrrll", caption)
    where = tuple((f"P{k + 1}", text) for k, text in enumerate(texts))
    return (table, Table(("", "arguments"), where)) if several else (table,)


@dataclass(frozen=True)
class BoxVerification(Shown):
    """The worst errors of a kernel over points of a box.

    `worst_ulp` is the largest error in units of the last place of the exact number, at the arguments `worst_point`;
    `rows` has the worst error of every entry, the worst entry first. It is infinite where the kernel gives nan or inf
    and the exact number is finite (or the other way round): `infinite` counts those results, `finite_ulp` is the
    largest of the other errors. Set apart, and in no error: `undefined` results, where exact arithmetic gives no number
    (in `disputed` of them the kernel gave one), `undecided` ones, whose exact number could not be told well enough, and
    `signed_zeros`, which are right but for the sign of a zero (input, divisor). `bins` counts errors up to a bound.
    `unexplained` is the error that is the most times larger than rounding the inputs alone would cause, None where none
    of those looked at is FAR times larger: the formula's or the kernel's own fault, which a large error at an
    ill-conditioned point is not. It is not `complete` where time was up before all points that were wanted.
    With `rigorous`, exact numbers are enclosed by ball arithmetic, and errors at the points are proven bounds.
    """

    points: int
    wanted: int
    complete: bool
    entries: int
    rows: tuple[EntryError, ...]
    bins: dict[float, int]
    finite_ulp: float
    infinite: int
    undefined: int
    disputed: int
    undecided: int
    signed_zeros: int
    rigorous: bool
    seed: int
    digits: int
    against: str = ""
    example: EntryError | None = field(default=None, repr=False)  # of a disputed result
    unexplained: EntryError | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        """Whether results were compared, all are finite, and rounding the inputs explains every error."""
        return self.worst is not None and not self.infinite and self.unexplained is None

    @property
    def worst(self) -> EntryError | None:
        """The entry with the largest error; None if nothing was compared."""
        return self.rows[0] if self.rows else None

    @property
    def worst_ulp(self) -> float:
        """The largest error in ULP; nan if nothing was compared."""
        return self.rows[0].worst_ulp if self.rows else math.nan

    @property
    def worst_point(self) -> tuple[Any, ...]:
        """The kernel's arguments at the largest error."""
        return self.rows[0].point if self.rows else ()

    @property
    def statement(self) -> str:
        """The result in a sentence or two."""
        done = f"{self.points} points" if self.complete else f"{self.points} of {self.wanted} points (time was up)"
        if self.worst is None:
            return f"{done}: no result could be compared"
        text = f"{done}: largest error {'at most ' if self.rigorous else ''}{ulps(self.worst_ulp)} ULP"
        if self.infinite:
            text += f" ({self.infinite} results; of the others {ulps(self.finite_ulp)} ULP)"
        text += f", at {point_text(self.worst_point)}"
        if self.worst.condition is not None:
            text += f", where rounding the inputs alone causes up to {ulps(self.worst.condition)} ULP"
        return text

    title = "Verification over a box"

    def document(self) -> Document:
        """Return the statement, the table of entries, the distribution of errors, and notes on excluded results."""
        blocks: list[Block] = [Heading(self.title, 1), Paragraph(self.statement + ".")]
        if self.rows:
            blocks += [*error_tables(self.rows, self.entries, points=True), self._distribution()]
        blocks += [Paragraph(note) for note in self._notes()]
        return (*blocks, Paragraph(Marked(self._method(), "muted")))

    def _distribution(self) -> Table:
        bounds = [*(f"up to {bound:g}" if math.isfinite(bound) else "more" for bound in self.bins), "infinite"]
        counts = [*map(str, self.bins.values()), str(self.infinite)]
        return Table(("error in ULP", *bounds), (("results", *counts),), "l" + "r" * len(counts))

    def _notes(self) -> list[str]:
        notes = []
        if self.unexplained is not None:
            worst = self.unexplained
            notes.append(
                f"Rounding the inputs does not explain {worst.name} at {point_text(worst.point)}: "
                f"{ulps(worst.worst_ulp)} ULP, where it causes up to {ulps(worst.condition or 0.0)} ULP (kernel "
                f"{worst.value!r}, exact {exact_text(worst.exact, worst.radius)})."
            )
        if any(row.at_edge for row in self.rows):
            notes.append(
                'Where the table says "edge", rounding decides about a branch: a few floats away, exact results have '
                "the kernel's number among or between them."
            )
        if self.undefined:
            where = f", for example {self.example.value!r} at {point_text(self.example.point)}" if self.example else ""
            also = f"; in {self.disputed} of them the kernel gives a number{where}" if self.disputed else ""
            notes.append(f"{self.undefined} results are undefined in exact arithmetic{also}.")
        if self.undecided:
            why = "no precision decides a branch, or a number is too large for high precision"
            notes.append(f"{self.undecided} results have no exact number to compare with: {why}.")
        if self.signed_zeros:
            notes.append(f"{self.signed_zeros} results are right but for the sign of a zero, an input or a divisor.")
        return notes

    def _method(self) -> str:
        exact = "enclosures by ball arithmetic" if self.rigorous else f"evaluation in {self.digits} digits or more"
        return f"Exact numbers: {exact}{' of ' + self.against if self.against else ''}. Seed {self.seed}."


def entry_names(kernel: Kernel) -> list[str]:
    """Return the name of each flat result of a kernel.

    >>> import symad as sa
    >>> entry_names(sa.compile(lambda x: {"a": x * x, "b": 2.0}, np.zeros(2)))
    ['["a"][0]', '["a"][1]', '["b"]']
    """
    outputs = kernel.program.outputs
    stems = [""] if len(outputs) == 1 else [f"result {k} " for k in range(len(outputs))]
    if isinstance(kernel.unpack, ResultTogether):
        structure = kernel.unpack.structure
        stems = paths(unflatten(structure, [0.0] * structure.num_leaves))
    names = []
    for stem, output in zip(stems, outputs, strict=True):
        if output.pattern is None:
            places: Any = np.ndindex(*output.shape)
        else:
            rows, columns = output.pattern
            places = zip(rows.tolist(), columns.tolist(), strict=True)
        names += [(stem + (str(list(place)) if place else "")).strip() or "result" for place in places]
    return names


def ulps(error: float) -> str:
    """Return an error as text.

    >>> ulps(0.5), ulps(1234567.0), ulps(math.inf)
    ('0.5', '1.23e+06', 'infinite')
    """
    return "infinite" if math.isinf(error) else f"{error:.3g}"


def exact_text(exact: Any, radius: Any = 0) -> str:
    """Return an exact number with more digits than a float has, and its radius."""
    with precision(2 * DIGITS):
        near = mp.nstr(mp.mpf(exact), DIGITS)
        return near if radius == 0 else f"{near} ± {mp.nstr(mp.mpf(radius), 2)}"


def point_text(point: tuple[Any, ...]) -> str:
    """Return arguments as text. Long arrays are shortened.

    >>> point_text((0.1, np.zeros(2))), point_text((np.arange(9.0),)), point_text(({"a": 1.0, "b": (2.0, 3.0)},))
    ('0.1, [0.0, 0.0]', '[0.0, 1.0, 2.0, 3.0, 4.0, ..., 8.0]', '["a"]: 1.0, ["b"][0]: 2.0, ["b"][1]: 3.0')
    """
    leaves = [(path, leaf) for value in point for path, leaf in zip(paths(value), flatten(value)[0], strict=True)]
    return ", ".join(f"{path}: {_leaf_text(leaf)}" if path else _leaf_text(leaf) for path, leaf in leaves)


def _leaf_text(value: Any) -> str:
    numbers = [repr(number) for number in np.ravel(value).tolist()]
    if not np.ndim(value):
        return numbers[0]
    return f"[{', '.join(numbers if len(numbers) <= LONG else [*numbers[: LONG - 1], '...', numbers[-1]])}]"
