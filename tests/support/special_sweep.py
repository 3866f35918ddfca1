"""A sweep of SciPy's special functions over 61 decades: value, first and second derivative against mpmath.

`python -m tests.support.special_sweep` makes `docs/special_ranges.md`; with names of functions behind it, it prints the
table of these. Every argument that has a derivative goes through the powers of ten from 1e-30 to 1e30, and their
negatives, while the others stay at a point of the table of functions. A derivative of mpmath is a central difference
with as many digits more as it loses.
"""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import mp

import symad as sa
from tests.support.special_table import ROWS, Row

DOCUMENT = Path(__file__).parents[2] / "docs" / "special_ranges.md"
DECADES = range(-30, 31)
DIGITS, STEP = 160, mp.mpf(10) ** -20
NOTHING = mp.mpf(10) ** -35  # beyond 1, x^k f^(k) as a part of f below which a k-th derivative is 0
GOOD, WRONG = 1e-10, 1e-8
SECONDS, PATIENCE, LONGEST = 0.1, 6, 60.0  # for a reference; how often it may be late in one argument; for a row
SMALLEST, LARGEST = mp.mpf("1e-290"), mp.mpf("1e290")  # beyond, doubles have no relative accuracy
# where these oscillate in a double's last place, no number of theirs has a relative accuracy
OSCILLATING = frozenset({"jv", "jve", "yv", "yve", "yn", "j0", "j1", "y0", "y1", "jvp", "yvp"})


class _Late(Exception):  # noqa: N818 - it is no error
    """A reference takes too long."""


def _raise_late(*_: Any) -> None:
    raise _Late


@dataclass(frozen=True)
class Cell:
    """One argument of a function at one place: relative errors of value, first and second derivative; None: unknown."""

    function: str
    argument: int
    place: float
    errors: tuple[float | None, ...]


def reference(exact: Callable[..., Any], point: tuple[float, ...], k: int) -> list[Any]:
    """Return value, first and second derivative in an argument, of mpmath.

    None where it gives none, and for a derivative that is 0: its differences are the rounding of the values, or the
    terms of higher order.
    """
    place = mp.mpf(point[k])
    step = STEP * min(abs(place), 1)

    def at(shift: Any) -> Any:
        values = [mp.mpf(value) for value in point]
        values[k] = place + shift
        found = exact(*values)
        return (
            found.real
            if isinstance(found, mp.mpc) and abs(found.imag) <= abs(found.real) * mp.mpf(10) ** -60
            else found
        )

    below, here, above = at(-step), at(0), at(step)
    found = [here, above - below, above - 2 * here + below]
    largest, scales = max(map(abs, (below, here, above))), (1, 2 * step, step**2)
    rounding, far = mp.mpf(10) ** (10 - mp.dps), max(abs(place), 1)
    zeros = [max(rounding, NOTHING * scales[k] / far**k) * largest for k in range(3)]
    return [
        value / scales[k]
        if isinstance(value, mp.mpf) and mp.isfinite(value) and (k == 0 or abs(value) > zeros[k])
        else None
        for k, value in enumerate(found)
    ]


def _is_defined(row: Row, point: tuple[float, ...]) -> bool:
    """Whether SciPy's function has a value."""
    try:
        return not np.isnan(row.function(*point))
    except (ValueError, ArithmeticError):
        return False


def _errors(row: Row, point: tuple[float, ...], k: int) -> tuple[float | None, ...]:
    if not _is_defined(row, point):
        return (None, None, None)
    signal.signal(signal.SIGVTALRM, _raise_late)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        with mp.workdps(DIGITS + max(0, int(math.log10(abs(point[k]))))):
            wanted = reference(row.exact, point, k)
    except _Late:
        raise
    except Exception:  # mpmath has no value here
        return (None, None, None)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)

    def function(value: Any) -> Any:
        return row.function(*[value if j == k else other for j, other in enumerate(point)])

    found = []
    for order, exact in enumerate(wanted):
        if exact is None or not SMALLEST < abs(exact) < LARGEST:
            found.append(None)
            continue
        try:
            traced = sa.derivative(function, order) if order else lambda x: sa.value_and_grad(function)(x)[0]
            value = float(traced(point[k]))
        except sa.WorkbenchError:
            found.append(None)
            continue
        with mp.workdps(DIGITS):
            found.append(float(abs(mp.mpf(value) - exact) / abs(exact)) if math.isfinite(value) else math.inf)
    return tuple(found)


def swept(number: int) -> list[Cell]:
    """Return the cells of a row of the table of functions."""
    row, cells = ROWS[number], list[Cell]()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for k in row.active():
            late = 0
            for place in (sign * float(f"1e{decade}") for sign in (1, -1) for decade in DECADES):
                point = tuple(place if j == k else value for j, value in enumerate(row.points[0]))
                try:
                    errors: tuple[float | None, ...] = _errors(row, point, k) if late < PATIENCE else (None,) * 3
                except _Late:
                    late, errors = late + 1, (None,) * 3
                cells.append(Cell(row.name, k, place, errors))
    return cells


def _ranges(cells: list[Cell], order: int) -> Iterator[str]:
    """Yield the ranges in which an error is good, as texts."""
    run: list[float] = []
    for cell in [*cells, Cell("", 0, math.nan, (math.inf,) * 3)]:
        error = cell.errors[order]
        if error is not None and error <= GOOD and (not run or (run[0] > 0) == (cell.place > 0)):
            run.append(cell.place)
        elif error is not None or not math.isfinite(cell.place):
            if run:
                yield f"{run[0]:.0e} to {run[-1]:.0e}" if len(run) > 1 else f"{run[0]:.0e}"
            run = [cell.place] if error is not None and error <= GOOD else []


def _line(name: str, argument: str, cells: list[Cell]) -> str:
    columns = []
    for order in range(3):
        known = [cell for cell in cells if cell.errors[order] is not None]
        good = "; ".join(_ranges(cells, order)) or "none"
        wrong = [cell for cell in known if (cell.errors[order] or 0) > WRONG]
        worst = max((cell.errors[order] or 0.0 for cell in known), default=0.0)
        beyond = (
            f"; {len(wrong)} of {len(known)} beyond 1e-8, at {', '.join(f'{cell.place:.0e}' for cell in wrong[:4])}"
        )
        columns.append("no value" if not known else f"{good} (worst {worst:.0e}{beyond if wrong else ''})")
    return f"| `{name}` in `{argument}` | {' | '.join(columns)} |"


def lines(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of the table, of each row by a process of its own: mpmath cannot always be interrupted."""
    with ThreadPoolExecutor(2) as pool:
        yield from chain.from_iterable(pool.map(_in_a_process, rows))


def _in_a_process(row: Row) -> list[str]:
    command = [sys.executable, "-m", "tests.support.special_sweep", str(ROWS.index(row))]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=True)
    except subprocess.TimeoutExpired:
        return [f"| `{row.name}` | not swept: mpmath takes too long | | |"]
    return done.stdout.splitlines()


def lines_of(row: Row) -> Iterator[str]:
    """Yield the lines of one row: one for each argument that has a derivative."""
    cells = swept(ROWS.index(row))
    arguments = row.name.partition("(")[2].partition(")")[0].split(", ")
    for k in row.active():
        argument = arguments[k] if k < len(arguments) else arguments[0]
        yield _line(row.name, argument, [cell for cell in cells if cell.argument == k])


HEAD = """# Where special functions and their derivatives are accurate

Generated by `python -m tests.support.special_sweep` (some minutes on two cores); do not edit. Each argument goes
through the powers of ten from 1e-30 to 1e30 and their negatives, the others stay at the first point of
[the table](special.md). Compared with mpmath at 160 digits and more: the ranges in which the relative error stays below
1e-10, the worst error, and the places of errors beyond 1e-8. Places where the exact number is not within 1e-290
and 1e290, those where SciPy's function is NaN, and those where mpmath has no value within .1 seconds of work, are left
out. Bessel functions that oscillate are not in the table: beyond 1e15 a double is not close enough to their zeros.

| function | value | first derivative | second derivative |
|---|---|---|---|
"""


def main(given: list[str]) -> None:
    """Write the page; or print the lines of some rows, by their numbers or the names of functions."""
    chosen = [row for k, row in enumerate(ROWS) if str(k) in given or row.name.partition("(")[0] in given]
    for row in chosen:
        for line in lines_of(row):
            print(line, flush=True)
    if not given:
        rows = [row for row in ROWS if row.name.partition("(")[0] not in OSCILLATING and row.active()]
        DOCUMENT.write_text(HEAD + "\n".join(lines(rows)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
