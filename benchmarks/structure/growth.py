"""How a build grows with the number of repetitions: time after the trace, lines of IR, memory; one process each."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.structure.cases import make_series
from benchmarks.structure.remote import NoResultError, Remote
from benchmarks.tables import number, table

GIGABYTES = 10.0
HEADER = (
    "n", "operations traced", "trace, s", "detect, s", "rest, s", "IR lines", "workspace, KiB", "peak memory, MiB",
)  # fmt: skip
FLAT = 1.5  # from the second size to the largest: growth of IR lines below which it is called flat
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
    """Say how the last columns grow from the second size on, when constant parts no longer hide it."""
    good = {int(size): build for size, build in series.items() if "reason" not in build}
    if len(good) < 3:
        return "Too few sizes were built to say how it grows."
    sizes = sorted(good)
    first, last = good[sizes[1]], good[sizes[-1]]
    parts = [f"From {sizes[1]} to {sizes[-1]} (x {sizes[-1] / sizes[1]:.0f}):"]
    lines = _growth([first["facts"].get("lines", 0), last["facts"].get("lines", 0)])
    parts.append(f"IR lines x {lines:.2f} ({'flat' if lines < FLAT else 'not flat'}),")
    parts.append(f"rest x {_growth([first['facts']['rest'], last['facts']['rest']]):.2f},")
    parts.append(f"peak memory x {_growth([first['mebibytes'], last['mebibytes']]):.1f}.")
    return " ".join(parts)


def _growth(ends: Sequence[float]) -> float:
    """
    >>> _growth([2.0, 3.0])
    1.5
    """
    return ends[1] / max(ends[0], 1e-9)
