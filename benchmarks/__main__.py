"""All benchmarks in one run: `python -m benchmarks [--quick] [--problems ...] [--peers ...] [--sections ...]`.

Writes a report in Markdown and as one page (HTML), pictures (SVG and PNG) and the numbers (JSON) into one folder, and
exits non-zero when two candidates disagree, one that is installed fails, or a limit is broken.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import (
    batch,
    build_stages,
    derivatives,
    first,
    goals,
    growth,
    higher,
    machine,
    meta_gradient,
    overhead,
    page,
    peak,
    repetition,
    scale,
    trace,
)
from benchmarks.peers import CANDIDATES, Limits
from benchmarks.plots import Painter, draw
from benchmarks.problems import make_problems
from benchmarks.session import Section, Session

SECTIONS: dict[str, tuple[str, Section]] = {
    "peak": ("What the machine can do", peak.section),
    "hessians": ("Hessians, called from Python", derivatives.hessians),
    "jacobians": ("A gradient and Jacobians, called from Python", derivatives.jacobians),
    "batch": ("Batches of 4096 points", batch.section),
    "structure": ("What repeats", repetition.section),
    "overhead": ("The call itself", overhead.section),
    "build": ("Build time and memory, 10^2 to 10^6 nodes", growth.section),
    "first": ("The first kernel, small Hessians, the import", first.section),
    "stages": ("Where a build of straight lines goes", build_stages.section),
    "trace": ("What tracing costs", trace.section),
    "scale": ("Long chains and shared towers", scale.section),
    "higher": ("Derivatives of higher order", higher.section),
    "meta_gradient": ("Gradient through 1,000 optimisation steps", meta_gradient.section),
}
ABOUT = """Read a row, or a table, but not one table against another. Calls: one process, {rounds} interleaved rounds
of bursts of about {seconds:.0f} ms for each candidate, medians and quartiles. "strict" is symad with its defaults,
"fast" is `accuracy="fast"`, "fast tier" is `tier="fast"`. Goals: calls {libraries:g} times faster than the best library
that needs no C compiler and {code:g} times faster than CasADi's C code; builds {build:g} times faster than every peer
that compiles; batches {batch:g} times faster than heyoka and JAX, at {share:.0f} % of the instruction peak or of the
bandwidth. A goal is "met", "met by" our other form, or the better form is at so many per cent of it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sections; return 1 when a number is wrong or a candidate failed."""
    options = parse(arguments)
    known = make_problems()
    problems = {name: known[name] for name in chosen(list(known), options.problems)}
    patience = options.patience / 3 if options.quick else options.patience
    limits = Limits(seconds=60 * patience, trial_seconds=20 * patience)
    options.output.mkdir(parents=True, exist_ok=True)
    session = Session(options.quick, problems, limits, options.output)
    session.say("loading the candidates")
    session.load(chosen(list(CANDIDATES), options.peers))
    where = machine.describe(f"{c.package} {c.version}" for c in session.candidates.values())
    parts = {}
    for name in chosen(list(SECTIONS), options.sections):
        title, section = SECTIONS[name]
        parts[title] = section(session)
        write(session, where, parts, [])  # what a run has found is not lost when it is stopped
    print(write(session, where, parts, pictures(session)))
    session.say(f"written: {page.write_page(options.output)}")
    for failure in session.failures:
        print(failure, file=sys.stderr)
    return 1 if session.failures else 0


def pictures(session: Session) -> list[str]:
    """Draw the pictures and return the lines that show them."""
    try:
        return draw(Painter(session.folder), session.data)
    except ImportError as error:
        return [f"No pictures: {error}."]


def write(session: Session, where: str, parts: dict[str, str], shown: Sequence[str]) -> str:
    """Write the report and the numbers, and return the report."""
    calls = [f"- {candidate.name}: {candidate.call}" for candidate in session.candidates.values()]
    notes = []
    if session.missing + session.failures:
        notes = ["**Missing or failed:** " + "; ".join(session.missing + session.failures) + "."]
    sections = [f"## {title}\n\n{text}" for title, text in parts.items()]
    head = ["# Benchmarks", where, about(session), *notes, *shown]
    text = "\n\n".join([*head, *sections, "## How each is called\n\n" + "\n".join(calls)]) + "\n"
    (session.folder / "report.md").write_text(text, encoding="utf-8")
    (session.folder / "numbers.json").write_text(json.dumps(session.data, indent=1) + "\n", encoding="utf-8")
    return text


def about(session: Session) -> str:
    """Return the paragraph that says how to read the report."""
    return ABOUT.format(
        rounds=session.rounds, seconds=1e3 * session.seconds, libraries=goals.LIBRARIES, code=goals.C_CODE,
        build=goals.BUILD, batch=goals.BATCH, share=100 * goals.SHARE,
    )  # fmt: skip


def chosen(known: Sequence[str], text: str) -> list[str]:
    """Return the names in a comma-separated list, in the order of the known ones, refusing unknown ones.

    >>> chosen(["a", "b", "c"], "c,a")
    ['a', 'c']
    """
    wanted = [name for name in text.split(",") if name]
    if unknown := [name for name in wanted if name not in known]:
        raise SystemExit(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
    return [name for name in known if name in wanted]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sections", default=",".join(SECTIONS), help="comma-separated; default: all")
    parser.add_argument("--problems", default=",".join(make_problems()), help="comma-separated; default: all")
    parser.add_argument("--peers", default=",".join(CANDIDATES), help="comma-separated candidates; default: all")
    parser.add_argument("--quick", action="store_true", help="short rounds, small limits: a look, not a measurement")
    parser.add_argument("--patience", type=float, default=1.0, help="factor for the limits of long builds")
    results = Path(__file__).parent / "results" / machine.folder_name()
    parser.add_argument("--output", type=Path, default=results, help="the folder where the report goes")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
