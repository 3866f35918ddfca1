"""The Markdown report: where and with what it was measured, and one table a problem."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.timing import Quartiles

HEADER = [
    "candidate", "output", "operations", "build, s: first", "median", "us per call", "quartiles",
    "/ best peer", "/ C code", "max diff",
]  # fmt: skip


@dataclass(frozen=True)
class Row:
    """What was measured of one candidate on one problem, and its speed relative to the best of two kinds of peers."""

    name: str
    form: str
    operations: int | None
    builds: Sequence[float]
    per_call: Quartiles
    ratio_libraries: float
    ratio_compiler: float
    difference: float


def processor_name() -> str:
    """Return the processor's name where the system tells it, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def machine() -> str:
    """Return one line about the machine and the interpreter."""
    return (
        f"{processor_name()}, {os.cpu_count()} processors, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}"
    )


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table: the first column to the left, the others to the right.

    >>> print(table(["name", "ns"], [["a", "1"]]))
    | name | ns |
    |:--|--:|
    | a | 1 |
    """
    lines = [header, *rows]
    text = ["| " + " | ".join(line) + " |" for line in lines]
    text.insert(1, "|:--|" + "--:|" * (len(header) - 1))
    return "\n".join(text)


def problem_table(rows: Sequence[Row]) -> str:
    """Return the table of one problem, fastest first."""
    return table(HEADER, [cells(row) for row in sorted(rows, key=lambda row: row.per_call.median)])


def cells(row: Row) -> list[str]:
    """Return one line of a problem's table."""
    call = row.per_call
    return [
        row.name,
        row.form,
        "-" if row.operations is None else str(row.operations),
        f"{row.builds[0]:.3g}",
        f"{Quartiles.of(row.builds).median:.3g}",
        f"{call.median * 1e6:.3g}",
        f"{call.low * 1e6:.3g} to {call.high * 1e6:.3g}",
        f"{row.ratio_libraries:.3g}",
        f"{row.ratio_compiler:.3g}",
        f"{row.difference:.1e}",
    ]


def heading(versions: Sequence[str], missing: Sequence[str], rounds: int, seconds: float) -> str:
    """Return the head of the report."""
    lines = [
        "# Hessians, side by side",
        "",
        f"{datetime.date.today().isoformat()}; {machine()}.",
        "",
        "Versions: " + "; ".join(versions) + ".",
        "",
        f"One process; {rounds} interleaved rounds of bursts of about {seconds * 1e3:.3g} ms a candidate; medians. "
        "Build: from the Python function to the first number. `/ best peer`: speed relative to the fastest peer that "
        "needs no C compiler, `/ C code`: relative to the C code a peer generates, compiled by gcc; above 1 is faster. "
        "Max diff: the largest distance of an entry from the candidates' median, over max |H|, at several points.",
    ]
    if missing:
        lines += ["", "**Missing or failed:** " + "; ".join(missing) + "."]
    return "\n".join(lines)
