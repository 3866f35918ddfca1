"""Adapters between questions and learning systems that ask for marks.

A wrong diagnosis is worse than none: an undecided answer is not graded, and if several mistakes fit, all are named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import Any

from symad.classroom.grading.class_grading import Graded, grade_class
from symad.classroom.grading.question import Question
from symad.errors import ArgumentError

_MAXIMA = {"%e": "e", "%pi": "pi"}


def grade_for_prairielearn(question: Question, answer: Mapping[str, Any] | str, name: str = "answer") -> dict[str, Any]:
    """Return the entries that `grade(data)` of a PrairieLearn question has to put into `data`.

    `answer` is that `data` (its submitted_answers[name] is taken), or the text itself. In server.py:

        def grade(data):
            for part, entries in grade_for_prairielearn(QUESTION, data).items():
                data[part].update(entries)

    An answer that cannot be read is a format error with the place, and costs no try; one that cannot be decided has no
    score, and says so.

    >>> found = grade_for_prairielearn(Question("x^3"), {"submitted_answers": {"answer": "3x"}})
    >>> found["partial_scores"]["answer"]["score"], found["format_errors"]
    (0.0, {})
    """
    text = answer if isinstance(answer, str) else answer.get("submitted_answers", {}).get(name)
    if not isinstance(text, str):
        return {"partial_scores": {}, "format_errors": {name: "there is no answer"}, "feedback": {}}
    graded = _graded(question, name, text)
    if graded.verdict == "unreadable":
        return {"partial_scores": {}, "format_errors": {name: escape(graded.problem)}, "feedback": {}}
    said = feedback(graded)
    score = {"score": _part(graded), "weight": 1, "feedback": said}
    return {"partial_scores": {name: score}, "format_errors": {}, "feedback": {name: said}}


def grade_for_stack(question: Question, answer: Mapping[str, Any] | str, name: str = "ans1") -> dict[str, Any]:
    """Return the answer to STACK's grading call: isgradable, score (0 to 1), prts with feedback in HTML.

    `answer` is the posted object, {"answers": {"ans1": "3*x^2"}, ...}, or the text itself; it may use Maxima's %e and
    %pi. An unreadable or undecided answer is not gradable, and the feedback says why.

    >>> found = grade_for_stack(Question("e^x"), {"answers": {"ans1": "%e^x"}})
    >>> found["isgradable"], found["score"]
    (True, 1.0)
    """
    text = answer if isinstance(answer, str) else answer.get("answers", {}).get(name)
    text = re.sub(r"%(?:e|pi)\b", lambda match: _MAXIMA[match[0]], text) if isinstance(text, str) else ""
    graded = _graded(question, name, text)
    part, said = _part(graded), feedback(graded)
    return {
        "isgradable": part is not None,
        "score": part,
        "scores": {} if part is None else {"prt1": part, "total": part},
        "scoreweights": {"prt1": 1, "total": 1},
        "specificfeedback": said,
        "prts": {"prt1": said},
        "gradingassets": [],
    }


def feedback(graded: Graded) -> str:
    """Return feedback for a pupil as HTML. Typed text is escaped."""
    checked = graded.found
    if checked is None:
        first, *rest = graded.problem.split("\n")
        shown = "<pre>" + escape("\n".join(rest)) + "</pre>" if rest else ""
        return f"<p>It could not be read: {escape(first)}</p>{shown}"
    if checked.right is None:
        return "<p>It cannot be decided by the computer: a teacher has to look at it.</p>"
    if checked.right:
        return "<p>Right.</p>" if checked.finished else "<p>Right so far, but not finished.</p>"
    ways = "".join(f"<li>{escape(str(mistake))}</li>" for mistake in checked.mistakes)
    said = f"<ul>{ways}</ul>" if ways else "<p>No usual mistake leads there.</p>"
    if checked.line is None:
        return said
    return f"<p>Line {checked.line.number} is the first wrong one: <code>{escape(checked.line.text)}</code></p>{said}"


def _graded(question: Question, name: str, text: str) -> Graded:
    (graded,) = grade_class(question, [(name, text)]).graded
    return graded


def _part(graded: Graded) -> float | None:
    """Return the fraction of the points for an answer; None if it is unreadable or undecided."""
    if graded.question.points <= 0:
        raise ArgumentError(
            f"points = {graded.question.points:g}", do="give a question points, so that parts can be given"
        )
    return None if graded.mark is None else graded.mark / graded.question.points
