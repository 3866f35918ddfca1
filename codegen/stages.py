"""Dump, log and number the state between two passes of a compilation.

`SYMAD_DUMP=folder` writes every stage of every compilation into files in numbered order,
`folder/NNN-function/NNN-stage.txt`; a text of more than 20,000 lines is cut there and says so.
`SYMAD_BISECT=n` carries out the first n optional passes of every compilation and leaves out the others,
`SYMAD_BISECT=-name,-name` leaves out passes by their names (`OPTIONAL`), `n,-name` does both. What is needed for right
numbers is not optional. While either is set, the disk cache is not used.
The loggers are "symad" (what was planned, and why, at INFO) and "symad.codegen" (what was built at INFO, every pass
with its sizes and its time at DEBUG); nothing is printed unless the user asks `logging` for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import field
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from codegen.bound import bound
from codegen.errors import ArgumentError
from codegen.later import Deferred
from codegen.limits import check
from codegen.records import dataclass

if TYPE_CHECKING:
    import logging
else:  # when there is something to say
    logging = Deferred("logging")

T = TypeVar("T")

DUMP, BISECT = "SYMAD_DUMP", "SYMAD_BISECT"
LARGEST = 20_000  # lines of a stage that are written
LONGEST_NAME = 60


class _Log:
    """The logger "symad.codegen", made when it is first used."""

    def __getattr__(self, name: str) -> Any:
        logging.getLogger("symad").addHandler(logging.NullHandler())
        value = getattr(logging.getLogger("symad.codegen"), name)
        setattr(self, name, value)
        return value


LOG: logging.Logger = _Log()  # type: ignore[assignment]

OPTIONAL = {
    "rolling": "what repeats becomes loops",
    "sweep": "a dense matrix is computed column by column in vector lanes",
    "checkpoints": "reverse mode keeps a part of a loop, and runs the rest again",
    "constants": "a number that a loop leaves for others is written into these",
    "dead-code": "what no output needs is left out of loops, what is read twice is read once",
    "reordering": "repetitions of a loop run in the order in which their results lie in memory",
    "loop-fusion": "loops over the same repetitions become one",
    "contraction": "buffers of nests keep the last rounds only",
    "sharing": "what two loops compute alike is computed by the first",
    "sum-unrolling": "sums of few terms at many places become repetitions of one sum",
    "packing": "what loops read or add to in steps lies side by side in a workspace",
    "equal-loops": "loops that differ only in their arrays become one function",
    "vectorization": "repetitions run side by side in vector registers",
    "lane-functions": "exp, sin... are formulas of this package, and not the C library's",
    "vector-library": "exp, sin... of all lanes at once, by the C library (accuracy fast)",
    "scales": "constant factors of products become one",
    "sink_signs": "the sign of a product goes into its constant",
    "terms": "like terms of sums are collected",
    "products": "powers, shared factors and reciprocals of products",
    "sums": "sums that several sums have in them are added once",
    "factors": "common factors of terms",
    "signs": "signs move where they cost least",
    "multiply-add": "products and sums become fused multiply-adds",
    "groups": "equal operations share vector registers",
}


class Effect(NamedTuple):
    """What a pass did to a program: machine operations before and after; equal where it found nothing to gain."""

    name: str
    before: int
    after: int


@dataclass(slots=True)
class Bisection:
    """Which optional passes are carried out: the first `limit`, but for those `without`; `ran` has those that were."""

    limit: float = float("inf")
    without: frozenset[str] = frozenset()
    ran: list[str] = field(default_factory=list)

    @property
    def active(self) -> bool:
        """Whether anything may be left out."""
        return bool(self.without) or self.limit < float("inf")

    def allows(self, name: str) -> bool:
        """Whether an optional pass is carried out now, which counts it."""
        if name in self.without or len(self.ran) >= self.limit:
            return False
        self.ran.append(name)
        return True

    def copy(self) -> Bisection:
        """Return the same decisions for more code of what has been compiled so far."""
        return Bisection(self.limit, self.without, list(self.ran))


def bisection_of(words: str) -> Bisection:
    """Return what SYMAD_BISECT asks for; ArgumentError for anything but numbers and -names.

    >>> bisection_of("3,-packing")
    Bisection(limit=3, without=frozenset({'packing'}), ran=[])
    """
    limit, without = float("inf"), set()
    for word in filter(None, (part.strip() for part in words.split(","))):
        if word.isdecimal():
            limit = int(word)
        elif word[0] == "-" and word[1:] in OPTIONAL:
            without.add(word[1:])
        else:
            names = ", ".join(f"-{name}" for name in OPTIONAL)
            raise ArgumentError(f"{BISECT}={words!r}", why=f"{word!r} is no pass", do=f"give a number, or {names}")
    return Bisection(limit, frozenset(without))


class Listing(NamedTuple):
    """How a subject is written: as lines, and as its number of operations."""

    lines: Callable[[Any], Iterable[str]] = lambda subject: str(subject).splitlines()
    size: Callable[[Any], int] = lambda subject: 0


@dataclass(slots=True)
class Compilation:
    """One compilation: its name, which optional passes it carries out, and the folder of its dump, if there is one."""

    name: str
    bisection: Bisection
    listing: Listing
    folder: Path | None
    part: str = ""  # of the program, before the names of passes
    written: int = 0

    def write(self, name: str, subject: object, note: str = "") -> None:
        """Write a stage, whole or not at all, if the stages are dumped."""
        if self.folder is None:
            return
        title = f"{self.part} {name}".strip()
        lines = iter(self.listing.lines(subject() if callable(subject) else subject))
        text = "\n".join([f"# {self.name}: {title}{note}", *islice(lines, LARGEST)])
        if next(lines, None) is not None:
            text += f"\n# cut here: a dump has at most {LARGEST:,} lines of a stage"
        self.written += 1
        path = self.folder / f"{self.written:03d}-{file_name(title)}.txt"
        unfinished = path.with_suffix(".part")
        with writing(self.folder):
            unfinished.write_text(text + "\n", encoding="utf-8")
            unfinished.replace(path)


_opened: ContextVar[Compilation | None] = ContextVar("codegen_compilation", default=None)
_given: ContextVar[Bisection | None] = ContextVar("codegen_bisection", default=None)


@contextmanager
def compilation(name: str, listing: Listing, bisection: Bisection | None = None) -> Iterator[Compilation]:
    """Open the stages of a compilation; `bisection` is that of earlier code of the same program."""
    if bisection is None:
        bisection = _given.get() or bisection_of(os.environ.get(BISECT, ""))
    folder = os.environ.get(DUMP, "")
    opened = Compilation(name, bisection, listing, _new_folder(Path(folder), name) if folder else None)
    try:
        with bound(_opened, opened):
            yield opened
    finally:
        if bisection.active:
            last = f"number {len(bisection.ran)}, {bisection.ran[-1]}" if bisection.ran else "none"
            LOG.info("%s: the last optional pass of %s that was carried out: %s", BISECT, name, last)


@contextmanager
def within_compilation(name: str, listing: Listing) -> Iterator[Compilation]:
    """Give the compilation that is open, or open one."""
    opened = _opened.get()
    with compilation(name, listing) if opened is None else nullcontext(opened) as current:
        yield current


@contextmanager
def bisecting(bisection: Bisection) -> Iterator[None]:
    """Let all compilations of this block share a bisection, whatever the environment says."""
    with bound(_given, bisection):
        yield


@contextmanager
def part(name: str) -> Iterator[None]:
    """Put a name before those of the stages in this block: of a body of a program with many."""
    opened = _opened.get()
    if opened is None:
        yield
        return
    before, opened.part = opened.part, name
    try:
        yield
    finally:
        opened.part = before


def asked_for() -> bool:
    """Whether compilations are to be dumped or bisected, so that nothing may come from a file of machine code."""
    return bool(os.environ.get(DUMP) or os.environ.get(BISECT)) or _given.get() is not None


def watched() -> bool:
    """Whether the open compilation is dumped or bisected, so that no code may come from a cache."""
    opened = _opened.get()
    return opened is not None and (opened.folder is not None or opened.bisection.active or _given.get() is not None)


def stage(name: str, subject: object) -> None:
    """Dump a stage, if that is asked for; `subject` is anything that has `str()`, or a function that returns it."""
    opened = _opened.get()
    if opened is not None and opened.folder is not None:
        opened.write(name, subject)


def allowed(name: str) -> bool:
    """Whether an optional pass is to be carried out now: to be asked once for each application."""
    opened = _opened.get()
    return opened is None or opened.bisection.allows(name)


def observed(subject: T, after: str, *, whole: Callable[[T], Any] | None = None) -> T:
    """Return what a pass made, and let it be seen; `whole(subject)` is what is shown of a part of a program."""
    opened = _opened.get()
    if opened is not None and opened.folder is not None:
        ran = opened.bisection.ran
        note = f", optional pass {len(ran)}" if ran[-1:] == [after] else ""
        opened.write(f"after {after}", subject if whole is None else whole(subject), note)
    return subject


def carried_out(
    name: str, change: Callable[[T], T], subject: T, *, optional: bool = True, whole: Callable[[T], Any] | None = None
) -> T:
    """Return what a pass makes of a subject; the subject as it is where an optional pass is left out.

    >>> carried_out("packing", lambda numbers: numbers[:1], [1, 2])
    [1]
    >>> with bisecting(bisection_of("0")), compilation("f", Listing()):
    ...     carried_out("packing", lambda numbers: numbers[:1], [1, 2])
    [1, 2]
    """
    if optional and not allowed(name):
        return subject
    check(f"the pass {name}")
    start = perf_counter()
    result = change(subject)
    if LOG.isEnabledFor(logging.DEBUG) and (opened := _opened.get()) is not None:
        milliseconds = 1000 * (perf_counter() - start)
        before, after = (opened.listing.size(form if whole is None else whole(form)) for form in (subject, result))
        title = f"{opened.part} {name}".strip()
        LOG.debug("%s: %s: %d operations before, %d after, %.2f ms", opened.name, title, before, after, milliseconds)
    return observed(result, name, whole=whole)


def file_name(title: str) -> str:
    """Return a name as part of a file's: letters, digits and signs that every file system takes.

    >>> file_name("<lambda>"), file_name("../x y"), file_name("∂f")
    ('lambda', 'x-y', 'f')
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "-", title).strip("-.")[:LONGEST_NAME] or "unnamed"


def _new_folder(root: Path, name: str) -> Path:
    """Make the next folder; other threads and processes may do the same at this moment."""
    claims = root / ".numbers"
    with writing(root):
        claims.mkdir(parents=True, exist_ok=True)
        number = 1 + sum(1 for _ in claims.iterdir())
        while True:
            try:
                (claims / f"{number:03d}").touch(exist_ok=False)
                break
            except FileExistsError:
                number += 1
        folder = root / f"{number:03d}-{file_name(name)}"
        folder.mkdir()
        return folder


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Say of an error of the file system which setting led to it."""
    try:
        yield
    except OSError as error:
        raise ArgumentError(
            f"{DUMP}={os.environ.get(DUMP, '')!r}",
            where=str(folder), why=f"the stages cannot be written there ({error.strerror})",
            do="name a folder that can be made and written, or leave the variable out",
        ) from error  # fmt: skip
