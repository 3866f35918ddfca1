"""The element of PrairieLearn in `examples/classroom`, by the calls that PrairieLearn makes for one variant."""

from __future__ import annotations

import copy
import json
import runpy
from pathlib import Path
from typing import Any

import pytest

COURSE = Path(__file__).parents[2] / "examples" / "classroom" / "prairielearn"
ELEMENT = '<symad-derivative answers-name="d" function="{f}" variable="x"></symad-derivative>'


@pytest.fixture(scope="module")
def element() -> dict[str, Any]:
    return runpy.run_path(str(COURSE / "elements/symad-derivative/symad-derivative.py"))


@pytest.fixture(scope="module")
def variant(element: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The element's text and the data of a variant after `generate` and `prepare`; PrairieLearn keeps it as JSON."""
    names = (
        "params",
        "correct_answers",
        "submitted_answers",
        "raw_submitted_answers",
        "format_errors",
        "partial_scores",
    )
    data: dict[str, Any] = {name: {} for name in names} | {"variant_seed": 7, "panel": "question", "editable": True}
    runpy.run_path(str(COURSE / "questions/product-rule/server.py"))["generate"](data)
    text = ELEMENT.format(f=data["params"]["f"])
    element["prepare"](text, data)
    return text, json.loads(json.dumps(data))


def submitted(element: dict[str, Any], variant: tuple[str, dict[str, Any]], answer: str) -> dict[str, Any]:
    """Return the data after an answer was parsed and, unless it is a format error, graded."""
    text, data = variant[0], copy.deepcopy(variant[1])
    data["raw_submitted_answers"]["d"] = data["submitted_answers"]["d"] = answer
    element["parse"](text, data)
    if not data["format_errors"]:
        element["grade"](text, data)
    return json.loads(json.dumps(data))


def test_the_variant_is_the_same_for_the_same_seed(variant: tuple[str, dict[str, Any]]) -> None:
    data: dict[str, Any] = {"params": {}, "variant_seed": 7}
    runpy.run_path(str(COURSE / "questions/product-rule/server.py"))["generate"](data)
    assert {name: variant[1]["params"][name] for name in ("f", "latex")} == data["params"]


@pytest.mark.parametrize("kind", ["correct", "incorrect", "invalid"])
def test_what_the_element_submits_itself_is_graded_as_it_says(
    element: dict[str, Any], variant: tuple[str, dict[str, Any]], kind: str
) -> None:
    text, data = variant[0], copy.deepcopy(variant[1]) | {"test_type": kind}
    element["test"](text, data)
    graded = submitted(element, variant, data["raw_submitted_answers"]["d"])
    assert graded["format_errors"].keys() == data["format_errors"].keys()
    assert {name: part["score"] for name, part in graded["partial_scores"].items()} == {
        name: part["score"] for name, part in data["partial_scores"].items()
    }


def test_the_panels(element: dict[str, Any], variant: tuple[str, dict[str, Any]]) -> None:
    text = variant[0]
    graded = submitted(element, variant, variant[1]["params"]["f"] + " + 1")
    shown = {
        panel: element["render"](text, graded | {"panel": panel}) for panel in ("question", "submission", "answer")
    }
    assert 'name="d"' in shown["question"]
    assert "disabled" in element["render"](text, graded | {"editable": False})
    assert "line 1" in shown["submission"]
    assert "product rule" in shown["answer"]


def test_the_mistake_is_named_and_the_answer_is_not_shown(element: dict[str, Any]) -> None:
    data: dict[str, Any] = {name: {} for name in ("params", "correct_answers", "format_errors", "partial_scores")}
    text = ELEMENT.format(f="sin(x^2)")
    element["prepare"](text, data)
    graded = submitted(element, (text, data | {"submitted_answers": {}, "raw_submitted_answers": {}}), "cos(x^2)")
    assert graded["partial_scores"]["d"]["score"] == 0
    assert "chain rule" in graded["partial_scores"]["d"]["feedback"]
    assert "2x·cos" not in graded["partial_scores"]["d"]["feedback"]


@pytest.mark.parametrize("answer", ["", "2*(", "<script>alert(1)</script>", "__import__('os')"])
def test_what_cannot_be_read_is_a_format_error_and_text(
    element: dict[str, Any], variant: tuple[str, dict[str, Any]], answer: str
) -> None:
    data = submitted(element, variant, answer)
    assert "d" in data["format_errors"]
    assert not data["partial_scores"]
    assert "<script>" not in element["render"](variant[0], data | {"panel": "submission"})


@pytest.mark.parametrize("text", ["<symad-derivative></symad-derivative>", ELEMENT.replace("variable", "variabel")])
def test_a_wrong_attribute_is_told(element: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match="needs answers-name and function"):
        element["prepare"](text, {})


def test_the_files_of_information_are_read() -> None:
    assert (
        json.loads((COURSE / "elements/symad-derivative/info.json").read_text())["controller"] == "symad-derivative.py"
    )
    assert json.loads((COURSE / "questions/product-rule/info.json").read_text())["type"] == "v3"
    assert "<symad-derivative" in (COURSE / "questions/product-rule/question.html").read_text()
