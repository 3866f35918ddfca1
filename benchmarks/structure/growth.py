"""How a build grows with the number of repetitions: time after the trace, lines of IR, memory; one process each."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchmarks.structure.cases import make_series
from benchmarks.structure.remote import NoResultError, Remote
from benchmarks.tables import number, table

GIGABYTES = 10.0
HEADER = (
    "n", "operations traced", "trace, s", "detect, s", "rest, s", "IR lines", "workspace, KiB", "peak memory, MiB",
)  # fmt: skip
FLAT = 1.5  # growth from the second size to the largest, below which it is called flat
Found = dict[str, dict[str, Any]]


def section(options: argparse.Namespace, data: dict[str, Any], say: Callable[[str], None]) -> Iterator[Any]:
    """Build every member of every series with loops; yield all that is known after each."""
    found: dict[str, Found] = {}
    for title, cases in make_series().items():
        found[title] = {}
        for case in cases:
            try:
                with Remote("always", case.name, options.limit, GIGABYTES) as worker:
                    found[title][str(case.family.size)] = worker.found
            except NoResultError as reason:
                found[title][str(case.family.size)] = {"reason": str(reason)}
            say(f"flat: {case.name}: {found[title][str(case.family.size)].get('reason', 'built')}")
            yield found


def report(found: Mapping[str, Found]) -> str:
    """Return a table for each series, and one line on each."""
    parts = []
    for title, series in found.items():
        parts += [f"### {title}", table(HEADER, [_cells(size, build) for size, build in series.items()]), _line(series)]
    return "\n\n".join([ABOUT, *parts])


ABOUT = """Builds with `roll="always"`, each in a process of its own. *detect*: the loops are found and checked at one
point; *rest*: all that comes after (derivatives of bodies, tables, IR, machine code, the first call). *peak memory*: of
the process, above what it had with everything loaded and a small kernel built."""


def _cells(size: str, build: Mapping[str, Any]) -> list[str]:
    if "reason" in build:
        return [size, str(build["reason"]), *["-"] * (len(HEADER) - 2)]
    facts = build["facts"]
    return [
        size,
        str(facts.get("traced", "-")),
        *(number(facts[stage]) for stage in ("trace", "detect", "rest")),
        str(facts.get("lines", "-")),
        number(facts["workspace"] / 1024),
        f"{build['mebibytes']:.0f}",
    ]


def _line(series: Found) -> str:
    """Say how lines and time grow from the second size on, and what memory is to one repetition."""
    good = {int(size): build for size, build in series.items() if "reason" not in build}
    if len(good) < 3:
        return "Too few sizes were built to say how it grows."
    sizes = sorted(good)
    first, last = good[sizes[1]]["facts"], good[sizes[-1]]["facts"]
    lines, rest = (_growth(first.get(key, 0.0), last.get(key, 0.0)) for key in ("lines", "rest"))
    traced = last["traced"] if last["traced"] > first["traced"] else sizes[-1]
    unit = "operation traced" if last["traced"] > first["traced"] else "repetition"
    return (
        f"From {sizes[1]} to {sizes[-1]}: IR lines x {lines:.2f} ({'flat' if lines < FLAT else 'not flat'}), "
        f"time after trace and detection x {rest:.2f} ({'flat' if rest < FLAT else 'not flat'}); peak memory at the "
        f"largest: {good[sizes[-1]]['mebibytes'] * 2**20 / traced:.0f} bytes to each {unit}."
    )


def _growth(first: float, last: float) -> float:
    """
    >>> _growth(2.0, 3.0)
    1.5
    """
    return last / max(first, 1e-9)
