"""Mutation testing: small defects are planted one by one, and the tests that reach each are run.

    python -m tests.mutants --record              which tests reach which statements: once, and after changes
    python -m tests.mutants [--count N] [ROOM ..] plant N mutants; a survivor is printed with its line
    python -m tests.mutants --at FILE:LINE        all mutants of a line; with --tests PLACE by tests of your choice

A survivor needs a test, or shows code that is not needed, or is equivalent to the original. Equivalent mutants stand in
`equivalent_mutants.txt` with the reason.

A mutant of a function is tried first in a fork of a process that has collected all tests (`support.planted_code`);
one that survives, and one of a table, are tried from a start, in a copy of the repository under `build/mutants`.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import pytest

from tests.support.mutations import Place, places_of, planted
from tests.support.planted_code import Forks
from tests.support.reached_lines import (
    PROBE_MODULE,
    Selection,
    end,
    fork,
    import_heavy_modules,
    record,
    start,
    with_probes,
)

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "mutants"
SOURCES = WORK / "sources.json"  # as they were when it was recorded which tests reach them
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")
ROOMS = (
    "symad/rules", "symad/derivatives", "symad/reach", "codegen/loops/optimise", "codegen/lowering",
    "codegen/encoding", "codegen/emission",
)  # fmt: skip
TESTS = (
    "tests/symad/rules", "tests/symad/derivatives", "tests/symad/reach", "tests/symad/transforms",
    "tests/symad/tracing/numpy", "tests/symad/tracing/scipy", "tests/symad/classroom/drawing",
    "tests/symad/compiling", "tests/symad/classroom/explanation/test_explain_transforms.py",
    "tests/codegen/lowering", "tests/codegen/encoding", "tests/codegen/emission",
    "tests/codegen/loops", "tests/codegen/ir", "tests/codegen/evaluation", "tests/codegen/expressions",
    "tests/codegen/matrices", "tests/codegen/machine/calls", "tests/codegen/machine/batches", *ROOMS,
)  # fmt: skip
FIRST_TESTS = 12  # enough for most mutants
HOUR = 3600.0
OPTIONS = ("-p", "no:cacheprovider", "--disable-plugin-autoload")
SECONDS = 40.0  # of unmutated time for one mutant's tests


class Mutant(NamedTuple):
    """A defect: its file and its place there."""

    file: str
    place: Place

    def source(self) -> str:
        """Return the line that it changes."""
        lines = (ROOT / self.file).read_text(encoding="utf-8").splitlines()
        return lines[self.place.line - 1].strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.place.line}: {self.place.what} | {self.source()}"


class Run(NamedTuple):
    """Tests that are run together: their files, their names if not all are meant, and a bound of time."""

    files: list[str]
    names: list[str]
    seconds: float


class Reach:
    """Which tests reach which statements, as recorded."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.by_place: dict[str, list[str]] = {}
        self.by_file: dict[str, set[str]] = {}
        for path in sorted(WORK.glob("reached-*.txt")):
            for line in path.read_text(encoding="utf-8").splitlines():
                test, seconds, places = json.loads(line)
                self.seconds[test] = seconds
                for place in places:
                    self.by_place.setdefault(place, []).append(test)
                    self.by_file.setdefault(place.partition(":")[0], set()).add(test)

    def runs_of(self, mutant: Mutant) -> list[Run]:
        """Return two runs of the tests that reach a mutant: some short ones, and the others."""
        total, kept = 0.0, list[str]()
        for test in self._tests_of(mutant):
            total += self.seconds[test]
            if total > SECONDS and len(kept) >= FIRST_TESTS:
                break
            kept.append(test)
        return [self._run(group) for group in (kept[:FIRST_TESTS], kept[FIRST_TESTS:]) if group]

    def _run(self, names: list[str]) -> Run:
        files = list(dict.fromkeys(name.partition("::")[0] for name in names))
        return Run(files, names, 60 + 2 * len(files) + 5 * sum(self.seconds[name] for name in names))

    def _tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach a mutant; at import, those that reach its file or its room.

        The shortest of each file is first, then the second ones, and so on; tests named after the file count fourfold.
        """
        file = mutant.file
        if mutant.place.statement:
            tests = self.by_place.get(f"{file}:{mutant.place.statement}", [])
        else:
            room = file.rpartition("/")[0]
            tests = sorted(self.by_file.get(file, set())) or [t for t in self.seconds if t.startswith(f"tests/{room}/")]
        ranks, places = Counter[str](), dict[str, tuple[int, float]]()
        for test in sorted(tests, key=lambda test: self.seconds[test]):
            own = test.partition("::")[0]
            places[test] = ranks[own] // (4 if Path(file).stem.rstrip("s") in own else 1), self.seconds[test]
            ranks[own] += 1
        return sorted(tests, key=lambda test: places[test])


def copy_to(folder: Path) -> Path:
    """Copy the repository to a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    ignored = shutil.ignore_patterns(".git", ".venv", "build", "*.egg-info", ".mypy_cache", ".ruff_cache")
    return Path(shutil.copytree(ROOT, folder, ignore=ignored))


def record_all(places: list[str], jobs: int) -> None:
    """Run tests on code with probes, and keep which statements each reaches."""
    copied = copy_to(WORK / "probed")
    for room in ROOMS:
        for path in (copied / room).rglob("*.py"):
            text = with_probes(path.read_text(encoding="utf-8"), path.relative_to(copied).as_posix())
            path.write_text(text, encoding="utf-8")
    (copied / f"{PROBE_MODULE}.py").write_text("REACHED = set()\n", encoding="utf-8")
    files = sorted({file for place in places for file in _test_files(place)})
    random.Random(0).shuffle(files)  # an equal share for each job
    for old in WORK.glob("reached-*.txt"):
        old.unlink()
    running = [start(copied, partial(record, files[k::jobs], WORK / f"reached-{k}.txt"), WORK / f"record-{k}.log")
               for k in range(jobs)]  # fmt: skip
    SOURCES.write_text(json.dumps(sources()), encoding="utf-8")
    for child in running:
        os.waitpid(child, 0)


def sources() -> dict[str, int]:
    """Return a checksum of each file of the rooms."""
    paths = (path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): crc32(path.read_bytes()) for path in paths}


def _test_files(place: str) -> Iterator[str]:
    """Yield the files with tests or doctests at a place."""
    path = ROOT / place
    pattern = "test_*.py" if place.startswith("tests") else "*.py"
    for file in [path] if path.is_file() else path.rglob(pattern):
        if pattern == "test_*.py" or ">>>" in file.read_text(encoding="utf-8"):
            yield file.relative_to(ROOT).as_posix()


def outcome(mutant: Mutant, runs: list[Run], copied: Path) -> str:
    """Return what some runs of tests say of a mutant: killed, survived, or timeout (killed too: it hangs)."""
    target = copied / mutant.file
    original = target.read_text(encoding="utf-8")
    try:
        target.write_text(ast.unparse(planted(ROOT / mutant.file, mutant.place.number)), encoding="utf-8")
        for run in runs:
            plugins = [Selection(run.names)] if run.names else []
            work = partial(pytest.main, ["-x", *OPTIONS, *run.files], plugins)
            child = start(copied, work, copied.with_suffix(".log"))
            status = end(child, run.seconds)
            if status != 0:
                return "timeout" if status is None else "killed"
        return "survived"
    finally:
        target.write_text(original, encoding="utf-8")


def sample(rooms: list[str], count: int, seed: int) -> Iterator[Mutant]:
    """Yield mutants by chance, from each file as many as its lines ask for."""
    choice = random.Random(seed)
    files = [path for room in rooms for path in sorted((ROOT / room).rglob("*.py")) if path.stem != "__init__"]
    lines = [len(path.read_bytes().splitlines()) for path in files]
    seen: set[tuple[Path, int]] = set()
    while len(seen) < count:
        (path,) = choice.choices(files, lines)
        places = places_of(path)
        place = choice.choice(places) if places else None
        if place and (path, place.number) not in seen:
            seen.add((path, place.number))
            yield Mutant(path.relative_to(ROOT).as_posix(), place)


def mutants_at(where: str) -> Iterator[Mutant]:
    """Yield the mutants of a line, `FILE:LINE`."""
    file, _, line = where.partition(":")
    yield from (Mutant(file, place) for place in places_of(ROOT / file) if place.line == int(line))


def equivalent() -> set[tuple[str, str, str]]:
    """Return the mutants that are known to be equivalent: file, change, line."""
    lines = EQUIVALENT.read_text(encoding="utf-8").splitlines()
    parts = ([part.strip() for part in line.split(" || ")] for line in lines if line and line[0] != "#")
    return {(file, what, source) for file, what, source, _ in parts}


def quickly(mutants: list[Mutant], reach: Reach, log: Path) -> None:
    """Try mutants of functions in forks of a process that has collected the tests, and log what comes out."""

    def work(try_one: Callable[[ast.Module, Path, list[str], float], str]) -> None:
        with log.open("w", encoding="utf-8") as lines:
            for mutant in mutants:
                names = [name for run in reach.runs_of(mutant) for name in run.names]
                tree = planted(ROOT / mutant.file, mutant.place.number)
                found = try_one(tree, ROOT / mutant.file, names, 60 + 5 * sum(map(reach.seconds.__getitem__, names)))
                print(found, file=lines, flush=True)

    files = sorted({file for mutant in mutants for run in reach.runs_of(mutant) for file in run.files})
    forks = Forks([ROOT / room for room in ROOMS], work)
    end(start(ROOT, partial(pytest.main, [*OPTIONS, *files], [forks]), log.with_suffix(".log")), HOUR)


def try_all(mutants: list[Mutant], tests: list[str], log: Path) -> None:
    """Plant mutants, print those that survive, and write a line for each to a log; `tests` replace those recorded."""
    reach, known = Reach(), equivalent()
    copied = copy_to(log.with_suffix(".copy"))
    found = {mutant: "equivalent" for mutant in mutants if (mutant.file, mutant.place.what, mutant.source()) in known}
    rest = [mutant for mutant in mutants if mutant not in found]
    of_functions = [mutant for mutant in rest if mutant.place.statement and reach.runs_of(mutant) and not tests]
    if of_functions:
        quick = log.with_suffix(".quick")
        quickly(of_functions, reach, quick)
        found |= zip(of_functions, quick.read_text(encoding="utf-8").split(), strict=True)
    for mutant in rest:
        if found.get(mutant, "impossible") in ("impossible", "survived"):
            runs = [Run(tests, [], HOUR)] if tests else reach.runs_of(mutant)
            found[mutant] = outcome(mutant, runs, copied) if runs else "unreached"
        if found[mutant] in ("survived", "unreached") or tests:
            print(f"{found[mutant]}: {mutant}", flush=True)
    log.write_text("".join(f"{found[mutant]} {mutant}\n" for mutant in mutants), encoding="utf-8")
    shutil.rmtree(copied)


def main() -> None:
    """Plant some mutants, and print those that survive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", default=ROOMS, metavar="ROOM")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--at", metavar="FILE:LINE", action="append", default=[])
    parser.add_argument("--tests", metavar="PLACE", action="append", default=[], help="in place of those recorded")
    asked = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    import_heavy_modules()
    if asked.record:
        record_all(list(TESTS), asked.jobs)
        return
    mutants = [mutant for where in asked.at for mutant in mutants_at(where)]
    mutants = mutants or list(sample(asked.rooms, asked.count, asked.seed))
    recorded = json.loads(SOURCES.read_text(encoding="utf-8")) if SOURCES.exists() else {}
    changed = {file for file, checksum in sources().items() if recorded.get(file) != checksum}
    if not asked.tests and (stale := sorted({mutant.file for mutant in mutants} & changed)):
        sys.exit(f"{', '.join(stale)} changed since --record: record again")
    logs = [WORK / f"tried-{os.getpid()}-{k}.txt" for k in range(asked.jobs)]
    for child in [fork(partial(try_all, mutants[k :: asked.jobs], asked.tests, log)) for k, log in enumerate(logs)]:
        os.waitpid(child, 0)
    print(dict(Counter(line.split()[0] for log in logs for line in log.read_text(encoding="utf-8").splitlines())))


if __name__ == "__main__":
    main()
