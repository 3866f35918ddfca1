"""Grade a class: marks, unreadable answers, counts of mistakes, and a page for each pupil."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from codegen.records import dataclass
from symad.classroom.answers.answer_page import CheckedAnswer
from symad.classroom.grading.question import PARTS, Question
from symad.display.document import Block, Cell, Code, Document, Heading, Marked, Paragraph, Table
from symad.display.mathematics import signs_of
from symad.display.notation import counted
from symad.display.shown import Shown, write_text
from symad.errors import ArgumentError, LimitError, WorkbenchError
from symad.limits import time_limit

SECONDS = 10.0  # for one answer
MOST_ANSWERS = 10_000
LARGEST_ANSWER, LARGEST_TABLE = 1_000_000, 100_000_000  # bytes
_WHO = 6  # names listed beside a mistake
_VERDICTS = ("right", "unfinished", "wrong", "undecided", "unreadable")
_STYLES: dict[str, Any] = {"right": "right", "unfinished": "right", "wrong": "wrong"}
COLUMNS = ("name", "mark", "of", "verdict", "line", "term", "mistake", "note")


class Unreadable(str):
    """The answer of an unreadable file: an empty text with the error."""

    __slots__ = ("error",)
    error: ArgumentError

    def __new__(cls, error: ArgumentError) -> Unreadable:
        unreadable = super().__new__(cls)
        unreadable.error = error
        return unreadable


@dataclass(frozen=True)
class Graded(Shown):
    """One pupil's answer: the result, or the error in reading it. Without a mark, a teacher has to look."""

    name: str
    answer: str
    question: Question
    found: CheckedAnswer | None
    problem: str = ""

    @property
    def verdict(self) -> str:
        """right, unfinished (right so far), wrong, undecided, unreadable."""
        if self.found is None:
            return "unreadable"
        if self.found.right is None:
            return "undecided"
        return "wrong" if not self.found.right else "right" if self.found.finished else "unfinished"

    @property
    def mark(self) -> float | None:
        """The points; None if the answer is unreadable or undecided."""
        if self.shares:
            return sum(points * self.shares[name] for name, points in self.question.marks.items())
        part = {"right": 1.0, "unfinished": self.question.unfinished, "wrong": 0.0}.get(self.verdict)
        return None if part is None else part * self.question.points

    @property
    def shares(self) -> Mapping[str, float]:
        """What part of the points for rule, result and form it earns; empty if the question does not divide them."""
        is_decided = self.found is not None and self.found.right is not None
        return shares(self.found) if self.question.marks and is_decided and self.found is not None else {}

    @property
    def mistakes(self) -> tuple[str, ...]:
        """The kinds of the mistakes that lead to the answer; several if any of them does."""
        return tuple(mistake.kind for mistake in self.found.mistakes) if self.found is not None else ()

    @property
    def title(self) -> str:
        return f"{self.name}: {self.question.name}"

    def document(self) -> Document:
        """Return the page of one pupil."""
        mark = "for the teacher to decide" if self.mark is None else f"{self.mark:.4g} of {self.question.points:g}"
        head: list[Block] = [Heading(self.title, 1), Paragraph((Marked(mark, "strong"), f" ({self.verdict})"))]
        head += [Paragraph(self._divided())] if self.shares else []
        if self.found is not None:
            return (*head, *self.found.document()[1:])
        first, *rest = self.problem.split("\n")
        said: list[Block] = [Code(self.answer or " "), Paragraph(("It could not be read: ", first))]
        return (*head, *said, *([Code("\n".join(rest))] if rest else []))

    def _divided(self) -> str:
        earned = ((name, points * self.shares[name], points) for name, points in self.question.marks.items())
        return ", ".join(f"{name} {mark:.3g} of {points:g}" for name, mark, points in earned)

    def row(self) -> tuple[str, ...]:
        """Return the line of the answer in a table of marks."""
        checked, mark = self.found, "" if self.mark is None else f"{self.mark:.4g}"
        line = str(checked.line.number) if checked is not None and checked.line is not None else ""
        term = signs_of(checked.term) if checked is not None and checked.term is not None else ""
        note = self.problem.split("\n")[0] or "; ".join(map(str, checked.mistakes if checked is not None else ()))
        note = "; ".join(filter(None, [self._divided() if self.shares else "", note]))
        kinds = " or ".join(self.mistakes)
        return (self.name, mark, f"{self.question.points:g}", self.verdict, line, term, kinds, note)


@dataclass(frozen=True)
class GradedClass(Shown):
    """All answers to a question, graded, in their order."""

    question: Question
    graded: tuple[Graded, ...]

    @property
    def title(self) -> str:
        return f"{self.question.name}: {counted(len(self.graded), 'answer')}"

    @cached_property
    def mistakes(self) -> dict[str, list[str]]:
        """The kinds of mistakes with the names of the pupils who may have made them, most frequent first."""
        counts = Counter(kind for graded in self.graded for kind in dict.fromkeys(graded.mistakes))
        of_kind = {kind: [each.name for each in self.graded if kind in each.mistakes] for kind in counts}
        return dict(sorted(of_kind.items(), key=lambda item: -counts[item[0]]))

    def document(self) -> Document:
        """Return the page of the class."""
        verdicts = Counter(graded.verdict for graded in self.graded)
        told = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in _VERDICTS if verdicts[verdict])
        blocks: list[Block] = [Heading(self.title, 1), Paragraph(f"{told}.")]
        if self.mistakes:
            rows: list[tuple[Cell, ...]] = []
            for kind, who in self.mistakes.items():
                more = f" and {len(who) - _WHO} more" if len(who) > _WHO else ""
                rows.append((kind, str(len(who)), ", ".join(who[:_WHO]) + more))
            caption = "an answer may have come about in several ways, and counts for each"
            blocks += [Heading("Mistakes"), Table(("mistake", "answers", "whose"), tuple(rows), "lrl", caption)]
        if unread := [graded for graded in self.graded if graded.mark is None]:
            notes = tuple((graded.name, graded.verdict, graded.row()[-1]) for graded in unread)
            blocks += [Heading("For the teacher to look at"), Table(("name", "", "why"), notes)]
            if any("recommended" in graded.problem for graded in unread):
                said = 'A question says once for a class what a notation means: readings = {"1/2x" = "1/(2x)"}.'
                blocks.append(Paragraph(said))
        marks = tuple(self._row(graded) for graded in self.graded)
        return (*blocks, Heading("Marks"), Table(("name", "mark", "verdict", "line", "mistake"), marks, "lrlrl"))

    def _row(self, graded: Graded) -> tuple[Cell, ...]:
        name, mark, _, verdict, line, _, kinds, _ = graded.row()
        style = _STYLES.get(verdict)
        return (name, mark, Marked(verdict, style) if style else verdict, line, kinds)

    def csv(self) -> str:
        """Return the marks as a table for a spreadsheet. No cell is a formula there."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(tuple(map(_cell, graded.row())) for graded in self.graded)
        return text.getvalue()

    def write_pages(self, folder: str | Path) -> list[Path]:
        """Write class.html and one page for each pupil into a folder; ArgumentError if that fails."""
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ArgumentError(
                f"the folder {str(folder)!r}", why=error.strerror or str(error), do="choose another one"
            ) from error
        names = (re.sub(r"[^A-Za-z0-9_-]+", "-", graded.name).strip("-")[:40] or "answer" for graded in self.graded)
        files = (f"{number:03d}-{name}.html" for number, name in enumerate(names, 1))
        pages = [graded.save(folder / file) for graded, file in zip(self.graded, files, strict=True)]
        return [self.save(folder / "class.html"), *pages]


_NO_RULE = frozenset(["algebra", "rounded", "constant of integration", "unit of angle", "layout", "degree"])


def shares(checked: CheckedAnswer) -> Mapping[str, float]:
    """Return what part of the points for rule, result and form an answer earns, from 0 to 1. An error counts once.

    The rule is right if a line of the derivative is, or if no rule of differentiation is to blame; the result if it is
    right, or follows from a line with a wrong rule; the form if nothing is left to carry out. Of several entries it is
    the mean.
    """
    if checked.parts and not checked.right and all(checked.parts):  # only the layout is another one
        return {"rule": 1.0, "result": 1.0, "form": 0.0}
    if checked.parts:
        entries = [dict.fromkeys(PARTS, 0.0) if part is None else shares(part) for part in checked.parts]
        return {name: sum(entry[name] for entry in entries) / len(entries) for name in PARTS}
    if checked.right:
        return {"rule": 1.0, "result": 1.0, "form": float(checked.finished)}
    steps = [judged for judged in checked.steps if not (judged.step.restated or judged.step.defines)]
    first = next((k for k, judged in enumerate(steps) if not judged.right), len(steps))
    before = any(not judged.step.is_left for judged in steps[:first])
    kinds = {mistake.kind for mistake in checked.mistakes}
    rule = before or (bool(kinds) and kinds <= _NO_RULE) or any(judged.carried for judged in steps[first : first + 1])
    wrong, after = steps[first : first + 1], steps[first + 1 :]
    problem = checked.problem
    is_general = any(symbol.name in judged.step.text for judged in wrong for symbol in problem.symbols)
    works_on = problem.count > 1 or problem.dependent_name or (problem.at and is_general)  # its value is put in later
    result = bool(after and works_on) and not before and all(judged.carried for judged in after)
    result = result or any(judged.carried for judged in wrong)
    done = bool(steps) and not (steps[-1].step.derives or steps[-1].step.named)
    return {"rule": float(rule), "result": float(result), "form": float(done and (rule or result))}


def grade_class(
    question: Question,
    answers: Mapping[str, str] | Iterable[tuple[str, str]],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> GradedClass:
    """Grade the answers of a class. One that is unreadable or takes too long does not stop the others.

    `progress(graded, answers)` is called after each.

    >>> found = grade_class(Question("x^3"), {"Ada": "3x^2", "Ben": "3x", "Cy": "3x^^2"})
    >>> [(each.name, each.verdict, each.mark) for each in found.graded]
    [('Ada', 'right', 1.0), ('Ben', 'wrong', 0.0), ('Cy', 'unreadable', None)]
    """
    pairs = list(answers.items() if isinstance(answers, Mapping) else answers)
    if not pairs:
        raise ArgumentError("a class without answers", do="give at least one")
    if len(pairs) > MOST_ANSWERS:
        raise ArgumentError(f"{len(pairs)} answers", do=f"give at most {MOST_ANSWERS} at a time")
    check = question.check()

    def graded() -> Iterator[Graded]:
        for count, (name, answer) in enumerate(pairs, start=1):
            try:
                if isinstance(answer, Unreadable):
                    raise answer.error
                with time_limit(SECONDS, "an answer"):
                    yield Graded(name, answer, question, check(question.as_meant(answer)))
            except WorkbenchError as error:
                yield Graded(name, answer, question, None, _said(error))
            if progress is not None:
                progress(count, len(pairs))

    return GradedClass(question, tuple(graded()))


def _said(error: WorkbenchError) -> str:
    """Return an error with its place in the answer, without its place in a program."""
    if isinstance(error, LimitError):
        return f"too long: it was not checked within {SECONDS:g} seconds; shorten it, or let a teacher look at it"
    return str(error) if error.where.startswith("line ") else str(error).removeprefix(f"{error.where}: ")


def read_answers(path: str | Path, name_column: str = "", answer_column: str = "") -> list[tuple[str, str]]:
    """Return names and answers: the files name.txt of a folder, or the rows of a .csv file; else ArgumentError.

    The columns of a table are called name and answer, or as is said. A file that cannot be read is an `Unreadable`
    answer; so is a link, which is not followed: it may lead out of the folder.
    """
    path = Path(path)
    if path.is_dir():
        shown = sorted(file for file in path.iterdir() if not file.name.startswith("."))
        files = [file for file in shown if file.is_symlink() or not file.is_dir()]
        names = [file.stem.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for file in files]
        return [(name, _answer(file)) for name, file in zip(names, files, strict=True)]
    if path.suffix.lower() != ".csv":
        raise ArgumentError(f"{str(path)!r} as answers", do="give a folder of text files, or a .csv file")
    rows = csv.DictReader(io.StringIO(_text(path)))
    header = rows.fieldnames or []
    columns = [_column(header, name_column, "name", path), _column(header, answer_column, "answer", path)]
    try:
        return [(row[columns[0]] or f"row {number}", row[columns[1]] or "") for number, row in enumerate(rows, 2)]
    except csv.Error as error:
        raise ArgumentError(f"the table {str(path)!r}", why=str(error), do="write it as CSV") from error


def _answer(path: Path) -> str:
    try:
        if path.is_symlink():
            raise ArgumentError("a link", why="links are not followed", do="put the file itself into the folder")
        if not path.is_file():
            raise ArgumentError("no file that can be read", do="write the answer into a text file")
        return _text(path, LARGEST_ANSWER)
    except ArgumentError as error:
        return Unreadable(error)


def _text(path: Path, largest: int = LARGEST_TABLE) -> str:
    try:
        if path.stat().st_size > largest:
            raise ArgumentError(f"a file of {path.stat().st_size:,} bytes", do=f"give at most {largest:,}")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{path.name!r} is not in UTF-8", do="write text in UTF-8: save the file again") from error
    except OSError as error:
        raise ArgumentError(f"cannot read {str(path)!r}", why=str(error), do="check the file") from error


def _column(header: Iterable[str], wanted: str, usual: str, path: Path) -> str:
    columns = [name for name in header if name.strip().lower() == (wanted or usual).lower()]
    if len(columns) != 1:
        do = f"call one of {', '.join(header) or 'no columns'} {usual!r}, or name it with --{usual}-column"
        raise ArgumentError(f"no column {wanted or usual!r} in {str(path)!r}", do=do)
    return columns[0]


def _cell(text: str) -> str:
    """Return a cell that a spreadsheet does not interpret as a formula, unless it is a number."""
    return f"'{text}" if re.match(r"[=+\-@\t\r](?!(?<=-)[0-9.]+\Z)", text) else text


def write_marks(graded: GradedClass, path: str | Path) -> Path:
    """Write the marks as CSV, completely or not at all."""
    return write_text(Path(path), graded.csv())
