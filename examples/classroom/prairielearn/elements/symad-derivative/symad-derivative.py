"""An element of PrairieLearn: a text field for a derivative, graded line by line, with the mistake named.

    <symad-derivative answers-name="d" function="{{params.f}}" variable="x"></symad-derivative>

`order` (1), `weight` (1) and `rows` (3) are optional. An answer that cannot be read is a format error: it costs no
attempt. Nothing is evaluated as Python; the right answer is shown in the answer panel only.
"""

from __future__ import annotations

import html
from html.parser import HTMLParser
from typing import Any

import symad as sa

KNOWN = {"answers-name", "function", "variable", "order", "weight", "rows"}


class _Attributes(HTMLParser):
    """Reads the attributes of one element."""

    def __init__(self, element: str) -> None:
        super().__init__()
        self.attributes: dict[str, str] = {}
        self.feed(element)
        unknown = self.attributes.keys() - KNOWN
        if unknown or not {"answers-name", "function"} <= self.attributes.keys():
            raise ValueError(f"symad-derivative needs answers-name and function; unknown: {sorted(unknown)}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes = self.attributes or {name: value or "" for name, value in attrs}


def _read(element_html: str) -> tuple[str, dict[str, Any]]:
    """Return the name of the answer, and the function, variable, order, weight and rows."""
    given = _Attributes(element_html).attributes
    numbers = {name: int(given.get(name, default)) for name, default in (("order", 1), ("weight", 1), ("rows", 3))}
    return given["answers-name"], {"function": given["function"], "variable": given.get("variable", "x"), **numbers}


def _checked(asked: dict[str, Any], answer: str) -> Any:
    question = (asked["function"], asked["variable"])
    return sa.check_derivative(answer, *question, order=asked["order"], reveal="never")


def prepare(element_html: str, data: dict[str, Any]) -> None:
    """Derive once, so that a question that cannot be derived is an error when the variant is made."""
    name, asked = _read(element_html)
    steps = sa.steps(asked["function"], asked["variable"], order=asked["order"])
    data["correct_answers"][name] = str(steps.result)
    data["params"][f"{name}_derivation"] = steps.html()


def render(element_html: str, data: dict[str, Any]) -> str:
    """Return the text field, the graded answer, or the derivation."""
    name, asked = _read(element_html)
    written = html.escape(str(data["raw_submitted_answers"].get(name, "")))
    error = data["format_errors"].get(name)
    message = f'<pre class="text-danger">{html.escape(error)}</pre>' if error else ""
    if data["panel"] == "question":
        disabled = "" if data["editable"] else " disabled"
        field = f'<textarea class="form-control" name="{html.escape(name)}" rows="{asked["rows"]}"'
        return f'{field} aria-label="Your derivative, line by line"{disabled}>{written}</textarea>{message}'
    if data["panel"] == "submission":
        return f"<pre>{written}</pre>{message}{data['partial_scores'].get(name, {}).get('feedback', '')}"
    return str(data["params"][f"{name}_derivation"])


def parse(element_html: str, data: dict[str, Any]) -> None:
    """Refuse what cannot be read or decided; this costs no attempt."""
    name, asked = _read(element_html)
    answer = data["raw_submitted_answers"].get(name, "")
    try:
        if not answer.strip():
            raise sa.errors.ArgumentError("Write your derivative.")
        if _checked(asked, answer).right is None:
            raise sa.errors.ArgumentError("This could not be decided. Write it in another form, or ask your teacher.")
    except sa.errors.ArgumentError as error:
        data["format_errors"][name], data["submitted_answers"][name] = str(error), None
    else:
        data["submitted_answers"][name] = answer


def grade(element_html: str, data: dict[str, Any]) -> None:
    """Give 1, one half for a derivative that is right and not carried out, or 0; the feedback names the mistake."""
    name, asked = _read(element_html)
    if name in data["submitted_answers"] and name not in data["format_errors"]:
        checked = _checked(asked, data["submitted_answers"][name])
        score = (1.0 if checked.finished else 0.5) if checked.right else 0.0
        data["partial_scores"][name] = {"score": score, "weight": asked["weight"], "feedback": checked.html()}


def test(element_html: str, data: dict[str, Any]) -> None:
    """Submit a right, a wrong or an unreadable answer: PrairieLearn's own test of a question."""
    name, asked = _read(element_html)
    answers = {"correct": data["correct_answers"][name], "incorrect": asked["function"] + " + 1", "invalid": "2*("}
    data["raw_submitted_answers"][name] = answers[data["test_type"]]
    if data["test_type"] == "invalid":
        data["format_errors"][name] = "unreadable"
    else:
        data["partial_scores"][name] = {"score": float(data["test_type"] == "correct"), "weight": asked["weight"]}
