"""Find lesson files and split them into cells (jupytext's percent format).

A cell begins with `# %%`, or with `# %% [markdown]` for prose in comments. Metadata of a prose cell select the
workbench's panes beside it:
`# %% [markdown] workbench="f: x^3; at: x=2; take: derivative; k: 1; see: expansion, graph"`.
"""

from __future__ import annotations

import re
from dataclasses import field
from functools import cache
from pathlib import Path

from codegen.records import dataclass
from symad.errors import ArgumentError

BEGIN = "# %%"
PARTS = {"f": "text", "at": "point", "take": "transform", "k": "order", "see": "panes"}  # of the state of the workbench
_MARKER = re.compile(r'# %%( \[markdown\](?: workbench="([^"]*)")?)?$')
_PROSE = re.compile(r"#( .*)?")


@dataclass(frozen=True)
class LessonCell:
    """A cell: prose or code, its text, the line before it, and the question for the workbench beside it."""

    prose: bool
    text: str
    line: int
    beside: dict[str, str] = field(default_factory=dict)


def folder() -> Path:
    """Return the folder of the lessons: `examples/lessons` in the repository, `texts` in an installation."""
    installed = Path(__file__).parent / "texts"
    return installed if installed.is_dir() else Path(__file__).parents[3] / "examples" / "lessons"


@cache
def titles() -> dict[int, str]:
    """Return the titles of the lessons by number.

    >>> titles()[3]
    'Perturbation confusion'
    """
    titles_found = {}
    for path in sorted(folder().glob("[0-9][0-9]_*.py")):
        head = path.read_text(encoding="utf-8").split("\n", 2)[1]
        titles_found[int(path.name[:2])] = head.removeprefix("# # ")
    return titles_found


def lesson_path(number: int) -> Path:
    """Return the file of a lesson; ArgumentError for an unknown number."""
    paths = list(folder().glob(f"{number:02}_*.py"))
    if number not in titles() or not paths:
        raise ArgumentError(f"lesson {number}", do=f"there are lessons {', '.join(map(str, titles()))}")
    return paths[0]


def cells_of(path: Path) -> list[LessonCell]:
    """Return the cells of a lesson; ArgumentError if it is not in percent format."""
    lines = path.read_text(encoding="utf-8").split("\n")
    starts = [k for k, line in enumerate(lines) if line.startswith(BEGIN)]
    if not starts or starts[0] != 0:
        problem = "does not begin with a cell" if starts else "has no cells"
        raise ArgumentError(f"a lesson that {problem}", where=path.name, do=f"begin each cell with {BEGIN}")
    return [_cell(path, start, lines[start:end]) for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]


def _cell(path: Path, start: int, lines: list[str]) -> LessonCell:
    marker, where = _MARKER.match(lines[0]), f"{path.name}:{start + 1}"
    if not marker:
        raise ArgumentError(f"{lines[0]!r} is no marker of a cell", where=where, do="write # %% or # %% [markdown]")
    body = lines[1:]
    if marker[1]:
        if bad := [line for line in body if line and not _PROSE.fullmatch(line)]:
            raise ArgumentError(f"code in a cell of prose: {bad[0]!r}", where=where, do="begin another cell before it")
        body = [line.removeprefix("#").removeprefix(" ") for line in body]
    return LessonCell(bool(marker[1]), "\n".join(body).strip("\n"), start + 1, _beside(marker[2] or "", where))


def _beside(text: str, where: str) -> dict[str, str]:
    parts = [part.partition(":") for part in text.split(";") if part.strip()]
    parts_given = {name.strip(): value.strip() for name, _, value in parts}
    if (parts_given and "f" not in parts_given) or not parts_given.keys() <= PARTS.keys():
        do = f"give f, and what you need of {', '.join(PARTS)}"
        raise ArgumentError(f"{text!r} beside a lesson", where=where, do=do)
    return {PARTS[name]: value for name, value in parts_given.items()}
