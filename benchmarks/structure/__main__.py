"""`python -m benchmarks.structure [rows|flat|meta]`: what loops are worth, what they cost, and how they grow.

Results are kept by machine and completed by later runs: peers far from the best one of a row keep their numbers, unless
`--fresh` asks for all of them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.__main__ import chosen
from benchmarks.structure import growth, meta
from benchmarks.structure.candidates import CANDIDATES, FLAT, OURS, PEERS
from benchmarks.structure.cases import Case, make_cases
from benchmarks.structure.measure import Limits, Row, measure
from benchmarks.structure.report import ABOUT, best_peer, peers_table, structure_table

WRONG = 1e-11  # relative difference to right values above which a run fails: no rounding explains it
NEAR = 2.0  # times the best peer's time: who is farther keeps the numbers of an earlier run,
FAR, CHEAP = 5.0, 10.0  # or, if a build takes no more than ten seconds, who is five times as far
LASTING = ("build >", "not tried", "out of memory")  # reasons that a later run takes for granted
START = time.perf_counter()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is asked for, and write the report and the numbers."""
    options = parse(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    numbers = options.output / "structure.json"
    data: dict[str, Any] = json.loads(numbers.read_text(encoding="utf-8")) if numbers.exists() else {}
    sections = {"rows": rows, "flat": growth.section, "meta": meta.section}
    for name in chosen(list(sections), ",".join(options.sections or ["rows"])):
        for part in sections[name](options, data, say):
            data[name] = part  # what a run has found is not lost when it is stopped
            numbers.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
            text = report(data)
            (options.output / "structure.md").write_text(text, encoding="utf-8")
    print(text)
    wrong = failures(data.get("rows", {}))
    for failure in wrong:
        print(failure, file=sys.stderr)
    return 1 if wrong else 0


def failures(found: dict[str, Row]) -> list[str]:
    """Return where a number of ours is wrong, or one of ours that should be there is not.

    >>> failures({"row": {"auto": {"difference": 1e-9}, "never": {"reason": "build > 60 s"}, "jax": {"reason": "?"}}})
    ['row: auto is off by 1e-09']
    """
    return [
        f"{name}: {mine} " + (row[mine].get("reason") or f"is off by {row[mine]['difference']:.0e}")
        for name, row in found.items()
        for mine in OURS
        if mine in row and ("failed" in row[mine].get("reason", "") or row[mine].get("difference", 0.0) > WRONG)
    ]


def rows(options: argparse.Namespace, data: dict[str, Any], say: Any) -> Any:
    """Measure the rows one by one; yield all that is known after each."""
    cases, found = make_cases(), dict(data.get("rows", {}))
    limits = Limits(options.limit, options.limit / 2, options.peers_limit)
    for name in chosen(list(cases), options.rows):
        known: Row = {} if options.fresh else found.get(name, {})
        row = dict(known)
        asked = asked_for(cases[name], known, chosen(list(CANDIDATES), options.candidates))
        told = {candidate: why for candidate in asked if (why := told_before(cases[name], found, candidate))}
        measured = measure(cases[name], [candidate for candidate in asked if candidate not in told], limits, say)
        row |= told | measured
        found[name] = {candidate: row[candidate] for candidate in CANDIDATES if candidate in row}
        yield {case: found[case] for case in cases if case in found}


def told_before(case: Case, found: dict[str, Row], candidate: str) -> dict[str, Any] | None:
    """Return what other rows say of a candidate on this one: it is the same for a peer, or it gave up on an easier one.

    >>> told_before(make_cases()["lj50-hessian"], {"lj20-hessian": {"jax": {"reason": "build > 60 s"}}}, "jax")
    {'reason': 'not tried after lj20-hessian'}
    """
    if candidate in PEERS and candidate in found.get(case.twin, {}):
        return found[case.twin][candidate]
    if candidate in FLAT and case.kind in case.family.huge:
        return {"reason": "not tried: over 10^6 operations"}
    gave_up = [row for row in case.easier if _reason(found, row, candidate).startswith(LASTING)]
    return {"reason": f"not tried after {gave_up[0]}"} if gave_up else None


def _reason(found: dict[str, Row], row: str, candidate: str) -> str:
    return str(found.get(row, {}).get(candidate, {}).get("reason", ""))


def asked_for(case: Case, known: Row, names: Sequence[str]) -> list[str]:
    """Return the candidates that are measured now: ours, and the peers that are new or may be the best one.

    >>> known = {"jax": {"microseconds": 3.0, "seconds": 1.0}, "heyoka": {"microseconds": 9.0, "seconds": 40.0}}
    >>> known |= {"casadi": {"reason": "build > 60 s"}}
    >>> asked_for(make_cases()["lj10-gradient"], known, ["auto", "rows", "casadi", "heyoka", "jax", "symengine"])
    ['auto', 'jax', 'symengine']
    """
    best = best_peer(known)
    fastest = known[best]["microseconds"] if best else 0.0
    wanted = set(OURS) - {"threads"} if case.kind in ("hessian", "jacobian") else set(OURS) - {"rows", "threads"}
    if case.kind in case.family.huge:
        wanted = {"auto", "threads"} if case.family.written == "plain" else {"auto", "fast", "threads"}
    return [name for name in names if name in wanted] + [
        name for name in names if name in PEERS and asked_again(known.get(name), fastest)
    ]


def asked_again(found: dict[str, Any] | None, fastest: float) -> bool:
    """Whether a peer is measured, given what an earlier run found, perhaps on a busy machine."""
    if found is None:
        return True
    if "reason" in found:
        return not found["reason"].startswith(LASTING)
    return bool(found["microseconds"] <= fastest * (FAR if found["seconds"] <= CHEAP else NEAR))


def report(data: dict[str, Any]) -> str:
    """Return the report."""
    cases = make_cases()
    parts = ["# Structure: loops against straight lines and peers", machine.describe(versions())]
    if found := data.get("rows"):
        parts += [ABOUT, structure_table(cases, found), "## Every peer", peers_table(cases, found)]
    if found := data.get("flat"):
        parts += ["## Growth", growth.report(found)]
    if found := data.get("meta"):
        parts += ["## Gradients of optimisations", meta.report(found)]
    return "\n\n".join(parts) + "\n"


def versions() -> Iterator[str]:
    """Yield the peers' packages that are installed, with their versions."""
    for package in sorted({candidate.package for candidate in PEERS.values()}):
        with suppress(metadata.PackageNotFoundError):
            yield f"{package} {metadata.version(package)}"


def say(text: str) -> None:
    """Print a line of progress."""
    print(f"[{time.perf_counter() - START:6.1f} s] {text}", file=sys.stderr, flush=True)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.structure", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("sections", nargs="*", help="rows, flat, meta; default: rows")
    parser.add_argument("--rows", default=",".join(make_cases()), help="comma-separated; default: all")
    parser.add_argument("--candidates", default=",".join(CANDIDATES), help="comma-separated; default: all")
    parser.add_argument("--fresh", action="store_true", help="measure every peer again")
    parser.add_argument(
        "--limit", type=float, default=120.0, help="seconds of processor time for a build of ours (straight: half)"
    )
    parser.add_argument("--peers-limit", type=float, default=30.0, help="and of a peer")
    results = Path(__file__).parents[1] / "results" / machine.folder_name()
    parser.add_argument("--output", type=Path, default=results, help="the folder where the report goes")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
