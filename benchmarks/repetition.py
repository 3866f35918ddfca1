"""Section "structure": what repeats, each row in processes of its own (`python -m benchmarks.structure`)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from benchmarks.goals import LIBRARIES, times, verdict
from benchmarks.session import Session
from benchmarks.structure.cases import make_cases
from benchmarks.structure.report import best_peer, time_of
from benchmarks.tables import number, table

QUICK = ("lj10-hessian", "logistic200x6-gradient", "momentum3-gradient")
OURS = ("auto", "never", "fast")


def section(session: Session) -> str:
    """Measure the rows; those of an earlier run on such a machine keep what peers far behind were found to take."""
    command = [sys.executable, "-m", "benchmarks.structure", "--output", str(session.folder)]
    if session.quick:
        command += ["--rows", ",".join(QUICK), "--candidates", "auto,never,casadi,jax"]
    session.say("structure: in processes of their own")
    if subprocess.run(command, stdout=subprocess.DEVNULL).returncode:
        session.failures.append("a row of what repeats is wrong: see structure.md")
    found = json.loads((session.folder / "structure.json").read_text(encoding="utf-8"))["rows"]
    titles = {name: case.title for name, case in make_cases().items()}
    session.data["structure"] = {titles[name]: microseconds(row) for name, row in found.items()}
    header = ("one call, us", "symad", "straight lines", "best peer", "times", f"goal {LIBRARIES:g}")
    return table(header, [[titles[name], *cells(row)] for name, row in found.items()])


def microseconds(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the times of a row: ours, and that of the best peer."""
    peer = best_peer(row)
    found = {name: time_of(row.get(name)) for name in OURS} | {"peer": time_of(row[peer]) if peer else None}
    return {name: us for name, us in found.items() if us is not None}


def cells(row: Mapping[str, Any]) -> list[str]:
    """Return a line of the table."""
    found, peer = microseconds(row), best_peer(row)
    ratio = found["peer"] / found["auto"] if {"peer", "auto"} <= found.keys() else None
    ours = [number(found[name]) if name in found else "-" for name in ("auto", "never")]
    return [*ours, f"{peer}, {number(found['peer'])}" if peer else "-", times(ratio), verdict(ratio, LIBRARIES)]
