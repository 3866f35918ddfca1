"""The practice pane: a verdict on each line of an answer, hints one by one, and the solution when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from symad.classroom.exercises.exercise import Exercise, exercise
from symad.display import html
from symad.errors import WorkbenchError

_exercise = lru_cache(maxsize=8)(exercise)


def content(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return an exercise for the page, what is said of the answer, and as many hints as are asked for."""
    practice = _exercise(asked.get("topic", ""), asked.get("level", 1), asked.get("seed", 0))
    count = asked.get("hints", 0)
    hints = practice.hints[: count if isinstance(count, int) else 0]
    return {
        "title": f"Exercise: {practice.title}", "html": html.bare(practice.question.asked()), "hints": hints,
        "more": len(hints) < len(practice.hints), "verdict": _verdict(practice, str(asked.get("mine", ""))),
        "solution": html.bare(practice.solution.document()[1:]) if asked.get("solution") else "",
    }  # fmt: skip


def _verdict(practice: Exercise, mine: str) -> dict[str, Any]:
    """Return whether an answer is right and its lines with verdicts, or the message of one that is not readable."""
    if not mine.strip():
        return {"right": None, "html": "", "error": ""}
    try:
        checked = practice.check(mine)
    except WorkbenchError as error:
        return {"right": None, "html": "", "error": str(error)}
    blocks = [block for block in checked.document()[1:] if block not in practice.question.asked()]
    return {"right": checked.right, "html": html.bare(tuple(blocks)), "error": ""}
