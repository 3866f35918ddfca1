"""Campaigns of random programs: each is checked, what became of them is counted, what fails is shrunk and kept.

A regression is a text file in `tests/regressions`: a few lines of comment, then the program, which can be run.
"""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from hypothesis import Phase, find, settings
from hypothesis.database import InMemoryExampleDatabase, choices_to_bytes
from hypothesis.errors import Flaky, NoSuchExample

from codegen.errors import WorkbenchError
from tests.support.draws import Choices, Draw, Drawn, drawn, seeded

TESTS = Path(__file__).parents[1]
REGRESSIONS = TESTS / "regressions"
OURS = (str(TESTS.parent / "symad"), str(TESTS.parent / "codegen"))
COMPARED: ContextVar[Counter[str] | None] = ContextVar("COMPARED", default=None)  # of the campaign that is running
MOST_RUNS, SHRINKING = 4000, 120.0  # runs and seconds for one program that is shrunk


@dataclass(frozen=True)
class Fuzzer:
    """How random programs are made and checked, and how they are written down.

    `make` draws a program. `check` says in a word what became of it, and raises where a number is wrong.
    """

    make: Callable[[Draw], Any]
    check: Callable[[Any], str]
    written: Callable[[Any], str] = str
    read: Callable[[str], Any] = str


def counted(mode: str, count: int = 1) -> None:
    """Count comparisons of a program by one mode, in the campaign that is running, if one is."""
    counts = COMPARED.get()
    if counts is not None:
        counts[mode] += count


@dataclass(frozen=True)
class Failure:
    """A program that failed: as it was drawn, and as small as it gets."""

    fuzzer: str
    seed: int
    blame: str
    message: str
    drawn: str
    shrunk: str

    def __str__(self) -> str:
        sizes = f"{lines_of(self.drawn)} lines, shrunk to {lines_of(self.shrunk)}"
        return f"{self.fuzzer}, seed {self.seed}: {self.blame}; {sizes}\n{self.shrunk}\n{self.message}"


@dataclass
class Campaign:
    """What became of programs: counts by word, comparisons by mode, and failures."""

    outcomes: Counter[str] = field(default_factory=Counter)
    compared: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {word}" for word, count in self.outcomes.most_common())
        modes = f"; {self.compared.total()} comparisons by {len(self.compared)} modes" if self.compared else ""
        return f"{self.outcomes.total() + len(self.failures)} programs: {counts or 'none right'}; " + (
            f"{len(self.failures)} wrong{modes}"
        )


def lines_of(text: str) -> int:
    """Lines that are not empty."""
    return sum(1 for line in text.splitlines() if line.strip())


def blame_of(error: Exception) -> str:
    """What kind of failure this is: the error's type, and the innermost function of the packages in which it was."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(OURS)]
    if isinstance(error, AssertionError) and (not ours or not frames[-1].filename.startswith(OURS)):
        return "wrong number"
    places = [f" in {Path(frame.filename).name}:{frame.name}" for frame in ours[-1:]]
    return type(error).__name__ + "".join(places)


def cause(error: WorkbenchError) -> str:
    """What a refusal is about, without names and numbers."""
    words = [word for word in (error.why or error.what).partition("(")[0].split() if word.strip(",;:").isalpha()]
    return f"{type(error).__name__}: {' '.join(words[:12])}"


def failure_of(fuzzer: Fuzzer, case: Any) -> Exception | None:
    """The error with which the check of a program fails; None if it is right."""
    try:
        fuzzer.check(case)
    except Exception as error:
        return error
    return None


class Enough(BaseException):
    """No more time to shrink; no Exception, which Hypothesis would take for another failure."""


def shrunk(fuzzer: Fuzzer, choices: Choices, blame: str, seconds: float = SHRINKING) -> Any:
    """The smallest program that fails in the same way, found from the choices of one that does; None without one."""
    smallest, end = list[Any](), time.monotonic() + seconds

    def fails(case: Drawn) -> bool:
        if smallest and time.monotonic() > end:
            raise Enough
        error = failure_of(fuzzer, case.made)
        if error is None or blame_of(error) != blame:
            return False
        smallest[:] = [case]
        return True

    quiet = {"phases": (Phase.reuse, Phase.shrink), "deadline": None, "max_examples": MOST_RUNS, "print_blob": False}
    begun: Choices | None = None
    while choices != begun:
        begun, kept = choices, InMemoryExampleDatabase()
        kept.save(b"program.secondary", choices_to_bytes(choices))  # Hypothesis shrinks what it finds under this key
        try:
            return find(
                drawn(fuzzer.make), fails, settings=settings(database=kept, **quiet), database_key=b"program"
            ).made
        except Flaky:  # Hypothesis gives up on choices that lead elsewhere when they are made again: it begins anew
            choices = smallest[0].choices if smallest else choices
        except (Enough, NoSuchExample):
            break
    return smallest[0].made if smallest else None


def campaign(
    name: str, fuzzer: Fuzzer, seeds: Iterable[int], *, shrink: bool = True, report: Callable[[Failure], object] = print
) -> Campaign:
    """Check the programs of some seeds; what fails is shrunk and reported."""
    done = Campaign()
    for seed in seeds:
        draw = seeded(seed)
        case = fuzzer.make(draw)
        counting = COMPARED.set(done.compared)
        try:
            outcome = fuzzer.check(case)
        except Exception as error:
            COMPARED.reset(counting)  # what is shrunk is not counted
            blame = blame_of(error)
            known = any(failure.blame == blame for failure in done.failures) and blame != "wrong number"
            small = (shrunk(fuzzer, tuple(draw.choices), blame) if shrink and not known else None) or case
            last = failure_of(fuzzer, small) or error
            done.failures.append(Failure(name, seed, blame, str(last), fuzzer.written(case), fuzzer.written(small)))
            report(done.failures[-1])
        else:
            COMPARED.reset(counting)
            done.outcomes[outcome] += 1
    return done


def save(failure: Failure, folder: Path = REGRESSIONS) -> Path:
    """Keep a failing program, for the test that replays it."""
    digest = blake2b(failure.shrunk.encode(), digest_size=4).hexdigest()
    path = folder / f"{failure.fuzzer}_{digest}.txt"
    first = failure.message.strip().splitlines()[:1]
    path.write_text(
        f"# fuzzer: {failure.fuzzer}\n# was: {failure.blame}{''.join(f': {line}' for line in first)}\n\n"
        f"{failure.shrunk.strip()}\n"
    )
    return path


@dataclass(frozen=True)
class Regression:
    """A program that failed once; `open` says why it still does."""

    name: str
    fuzzer: str
    text: str
    open: str


def regressions(folder: Path = REGRESSIONS) -> Iterator[Regression]:
    """The programs that were kept."""
    for path in sorted(folder.glob("*.txt")):
        text = path.read_text()
        words = {
            key: value
            for key, _, value in (
                line.removeprefix("# ").partition(": ") for line in text.splitlines() if line[:2] == "# "
            )
        }
        yield Regression(path.stem, words["fuzzer"], text, words.get("open", ""))
