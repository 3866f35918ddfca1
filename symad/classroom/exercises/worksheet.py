"""`worksheet`: numbered exercises on a sheet, with lines to write on, and the sheet of their solutions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count as counting
from typing import Any

from codegen.records import dataclass
from symad.classroom.exercises.exercise import Exercise, Solutions, exercise
from symad.classroom.exercises.topics import LEVELS, topic_named, whole
from symad.display.document import Blank, Block, Document, Heading, Paragraph
from symad.display.shown import Shown
from symad.errors import LimitError
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.calling.user_place import refusal

MOST = 60  # exercises of a sheet
_SPACE = {1: 3, 2: 5, 3: 7}  # empty lines by level
_SEEDS = 40  # that are tried for a question that is not on the sheet yet


@dataclass(frozen=True, eq=False, repr=False)
class Worksheet(Shown):
    """A sheet of exercises, without their answers; `solutions` is the sheet for the teacher.

    Pages print on A4 and on Letter.
    """

    exercises: tuple[Exercise, ...]

    @property
    def title(self) -> str:
        names = list(dict.fromkeys(exercise.topic for exercise in self.exercises))
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        return f"Worksheet: {shown}"

    @property
    def solutions(self) -> Solutions:
        """The same exercises with their derivations, answers and typical mistakes."""
        return Solutions(self.title.replace("Worksheet", "Solutions", 1), self.exercises)

    def document(self) -> Document:
        blocks: list[Block] = [Heading(self.title, 1), Paragraph("Name:")]
        for number, practice in enumerate(self.exercises, 1):
            blocks += [Heading(f"Exercise {number}"), *practice.question.asked(), Blank(_SPACE[practice.level])]
        return tuple(blocks)


@public_api
def worksheet(topics: str | Sequence[str], *, level: int = 1, seed: int = 0, count: int = 10) -> Worksheet:
    """Return a sheet of random exercises, of one topic or of several in turn, all different.

    The same arguments give the same sheet. `save("sheet.html")` writes a page that prints on A4 and Letter, `.tex` a
    LaTeX text; `.solutions.save("solutions.html")` the sheet for the teacher. Topics, level and seed are as in
    `exercise`, `count` is at most 60.

    >>> sheet = worksheet(["chain rule", "quotient rule"], seed=1, count=4)
    >>> [practice.topic for practice in sheet.exercises]
    ['chain rule', 'quotient rule', 'chain rule', 'quotient rule']
    >>> sheet.solutions.title
    'Solutions: chain rule, quotient rule'
    """
    if not isinstance(topics, str | list | tuple) or not topics:
        raise refusal(f"topics={topics!r:.60}", do='give a topic such as "chain rule", or a list of topics')
    names = [topic_named(name) for name in ([topics] if isinstance(topics, str) else topics)]
    level, seed = whole("level", level, LEVELS[0], LEVELS[-1]), whole("seed", seed)
    seeds: dict[str, Any] = {name: counting(seed) for name in names}
    exercises: dict[str, Exercise] = {}
    for number in range(whole("count", count, 1, MOST)):
        name = names[number % len(names)]
        for _ in range(_SEEDS):
            practice = exercise(name, level, next(seeds[name]))
            question = f"{name} {[str(block) for block in practice.question.asked()]}"
            if question not in exercises:
                exercises[question] = practice
                break
        else:
            do = "take fewer, another level, or more topics"
            raise LimitError(f"{count} different exercises of {name!r}, level {level}", do=do)
    return Worksheet(tuple(exercises.values()))
