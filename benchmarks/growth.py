"""Section "build": seconds and memory from the Python function to the first number, from 10^2 to 10^6 nodes.

The sparse Hessian of the chained Rosenbrock function, about ten nodes to a variable, in straight lines too. Each build
runs in a process of its own, under a limit of time and one of memory; a candidate that fails at a size is not asked for
a larger one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict

from benchmarks.limited import Build, build_elsewhere
from benchmarks.peers import CANDIDATES, LINES, OURS
from benchmarks.session import Session
from benchmarks.tables import number, table

SIZES = (10, 100, 1000, 10_000, 100_000)
QUICK_SIZES = (10, 100, 1000)
NODES = 10  # of the Hessian's graph, to a variable
OURS_LONGEST = 240.0
LEFT_OUT = ("symad-fast", "heyoka-fast")
SHORTER = ("symad-tier",)  # at the largest size its time is that of the other tier: most of it is not LLVM's


def section(session: Session) -> str:
    """Build the family with every candidate, as far as each gets."""
    sizes = QUICK_SIZES if session.quick else SIZES
    found = {
        name: builds(session, name, sizes[:-1] if name in SHORTER else sizes)
        for name in (*session.candidates, *(LINES if "symad" in session.candidates else ()))
        if name not in LEFT_OUT
    }
    session.data["build"] = {
        name: {size * NODES: asdict(build) for size, build in row.items()} for name, row in found.items()
    }
    columns = [f"n = {size}, about 10^{math.log10(size * NODES):.0f} nodes" for size in sizes]
    header = ("build, s; peak memory, MiB", *columns, "growth of the last tenfold step")
    return table(header, [cells(name, row, sizes) for name, row in found.items()])


def builds(session: Session, name: str, sizes: Sequence[int]) -> dict[int, Build]:
    """Build larger and larger members of the family until one fails."""
    found: dict[int, Build] = {}
    for size in sizes:
        session.say(f"build: {name}, n = {size}")
        seconds = OURS_LONGEST if name in (*OURS, *LINES) else session.limits.trial_seconds
        build = found[size] = build_elsewhere(name, f"chain{size}", seconds, session.limits.gigabytes)
        if build.reason:
            session.gave_up[name, f"chain{size}"] = build.reason
            break
    return found


def cells(name: str, row: dict[int, Build], sizes: Sequence[int]) -> list[str]:
    """Return one line of the table."""
    texts = [(CANDIDATES | LINES)[name].name]
    for size in sizes:
        build = row.get(size)
        if build is None:
            texts.append("-")
        else:
            texts.append(build.reason or f"{number(build.seconds)}; {build.mebibytes:.0f}")
    good = [build.seconds for build in row.values() if not build.reason]
    return [*texts, f"{good[-1] / good[-2]:.1f}" if len(good) > 1 else "-"]
