"""The tables of the rows: ours against straight lines and the best peer, and every peer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.goals import times
from benchmarks.structure.candidates import CANDIDATES, PEERS
from benchmarks.structure.cases import Case
from benchmarks.structure.measure import Row
from benchmarks.tables import number, table

TOLERANCE = 1e-13
SLOWER = 1.15  # than the faster of loops and straight lines: what the choice may cost
FIVEFOLD = ("lj50-hessian", "lj200-hessian", "rosenbrock4-hessian", "rosenbrock6-sum_over-hessian")
HEADER = (
    "row", "operations traced", "regions", "trace, s", "detect, s", "rest, s", "IR lines", "us, loops", "us, by rows",
    "us, straight", "us, chosen", "us, fast", "us, two threads", "best peer, us", "times", "times, fast",
    "largest difference", "notes",
)  # fmt: skip
ABOUT = """Rows are made one by one: all candidates of a row wait in processes of their own, and bursts are
interleaved over them; the number is the best of the medians of three blocks. Peers that gave up, or were far from the
best one, in an earlier run on such a processor keep what was found then. *loops*: `roll="always"`, sparse entries in
the order of the loops; *by rows*: the same, by rows; *straight*: `roll="never"`; *chosen*: the default, which is all
that is built above 10^6 operations. *detect*: loops are found and checked at one point. *fast*: the default with
`accuracy="fast"`, as C has `-ffast-math`. *two threads*: the default with `threads=2`, above 10^6 operations.
*times*: best peer / chosen. *largest difference*: of the loops' entries to those of straight lines, or, where these
are not built, to right values from NumPy ("ref"), relative to the largest entry (momentum: each to itself). A peer's
`>` is its limit of processor time for the build."""


def time_of(found: Mapping[str, Any] | None) -> float | None:
    """Return microseconds, None where there are none."""
    return None if found is None else found.get("microseconds")


def best_peer(row: Row) -> str | None:
    """Return the fastest peer of a row."""
    timed = {name: us for name in PEERS if (us := time_of(row.get(name))) is not None}
    return min(timed, key=timed.__getitem__, default=None)


def loops_of(row: Row) -> Mapping[str, Any]:
    """Return what was found of the loops: what was chosen, where it was loops and nothing else was built."""
    chosen = row.get("auto", {})
    return row["always"] if "always" in row else chosen if chosen.get("facts", {}).get("chosen") == "rolled" else {}


def structure_table(cases: Mapping[str, Case], rows: Mapping[str, Row]) -> str:
    """Return the table of ours."""
    return table(HEADER, [_cells(cases[name], row) for name, row in rows.items()])


def _cells(case: Case, row: Row) -> list[str]:
    rolled, chosen, peer = loops_of(row), row.get("auto", {}), best_peer(row)
    facts = rolled.get("facts", {})
    mine, fast, theirs = time_of(chosen), time_of(row.get("fast")), time_of(row[peer]) if peer else None
    return [
        case.title,
        *(str(facts.get(key, "-")) for key in ("traced", "regions")),
        *(_number(facts.get(key)) for key in ("trace", "detect", "rest")),
        str(facts.get("lines", "-")),
        _number(time_of(rolled)),
        *(_number(time_of(row.get(name))) for name in ("rows", "never")),
        f"{_number(mine)} ({chosen['facts'].get('chosen', '?')})" if mine is not None else "-",
        _number(fast),
        _number(time_of(row.get("threads"))),
        f"{CANDIDATES[peer].name}, {_number(theirs)}" if peer else "-",
        *(times(theirs / one if one and theirs else None) for one in (mine, fast)),
        _difference(rolled),
        "; ".join(_notes(case, row)) or "-",
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else number(value)


def _difference(rolled: Mapping[str, Any]) -> str:
    if "to straight" in rolled:
        return f"{rolled['to straight']:.1e}"
    return f"{rolled['difference']:.1e}, ref" if "difference" in rolled else "-"


def _notes(case: Case, row: Row) -> list[str]:
    """Say which goals a row misses, and why numbers are not there."""
    notes = [f"{CANDIDATES[name].name}: {row[name]['reason']}" for name in ("always", "never", "auto")
             if row.get(name, {}).get("reason")]  # fmt: skip
    if (mine := time_of(row.get("auto"))) is None:
        return notes
    others = [us for name in ("always", "never") if (us := time_of(row.get(name))) is not None]
    if others and mine > SLOWER * min(others):
        notes.append(f"the choice costs {100 * (mine / min(others) - 1):.0f} %")
    peer = best_peer(row)
    goal = 5.0 if case.name in FIVEFOLD else 1.0
    if peer and (ratio := row[peer]["microseconds"] / mine) < goal:
        fast = time_of(row.get("fast"))
        met = fast is not None and row[peer]["microseconds"] >= goal * fast
        notes.append(f"goal {goal:g} x met by fast only" if met else f"goal {goal:g} x missed: {times(ratio)} x")
    found = loops_of(row)
    if found.get("to straight", found.get("difference", 0.0)) > TOLERANCE:
        notes.append(f"differs by more than {TOLERANCE:g}")
    return notes


def peers_table(cases: Mapping[str, Case], rows: Mapping[str, Row]) -> str:
    """Return microseconds and build seconds of every peer."""
    header = ("us per call; build, s", *(PEERS[name].name for name in PEERS))
    return table(header, [[cases[name].title, *(_peer(row.get(peer)) for peer in PEERS)] for name, row in rows.items()])


def _peer(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "-"
    if "reason" in found:
        return str(found["reason"])
    wrong = f" (differs by {found['difference']:.0e})" if found["difference"] > 1e-12 else ""
    return f"{number(found['microseconds'])}; {number(found['seconds'])}{wrong}"
