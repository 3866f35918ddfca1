"""The questions of STACK that `examples/classroom` writes: their response tree by SymPy, and by Maxima if there."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sympy as sp

SCRIPT = Path(__file__).parents[2] / "examples" / "classroom" / "stack" / "make_stack_questions.py"
TOPICS = ("product rule", "chain rule", "quotient rule", "exponential functions")
EQUAL = "block([difference: ratsimp(trigsimp(exponentialize(({}) - ({})))), simp: true], is(difference = 0))"


@cache
def quiz(topic: str) -> ET.Element:
    text: str = runpy.run_path(str(SCRIPT))["questions"](topic, 1, [1, 2])
    return ET.fromstring(text)


def texts(element: ET.Element, *names: str) -> list[str]:
    return [element.findtext(name) or "" for name in names]


def variables(question: ET.Element) -> dict[str, str]:
    lines = (question.findtext("questionvariables/text") or "").split(";")
    return {name.strip(): value for name, _, value in (line.partition(":") for line in lines if line.strip())}


def value(text: str) -> sp.Expr:
    return sp.sympify(text.replace("^", "**").replace("%e", "E"), locals={"x": sp.Symbol("x", positive=True)})


def reached(question: ET.Element, answer: str) -> tuple[str, str]:
    """Return the note and the score at which an answer leaves the response tree."""
    known = variables(question)
    nodes = {node.findtext("name"): node for node in question.findall("prt/node")}
    number = "0"
    while True:
        node = nodes[number]
        target = known.get(node.findtext("tans") or "", node.findtext("tans") or "")
        branch = "true" if sp.simplify(value(known.get(answer, answer)) - value(target)) == 0 else "false"
        note, score, following = texts(node, f"{branch}answernote", f"{branch}score", f"{branch}nextnode")
        if following == "-1":
            return note, score
        number = following


@pytest.mark.parametrize("topic", TOPICS)
def test_the_tree_does_what_its_tests_say(topic: str) -> None:
    for question in quiz(topic).findall("question"):
        tests = question.findall("qtest")
        assert len(tests) == 4
        for test in tests:
            (answer,) = texts(test, "testinput/value")
            note, score = texts(test, "expected/expectedanswernote", "expected/expectedscore")
            assert reached(question, answer) == (note, score)


@pytest.mark.parametrize("topic", TOPICS)
def test_the_answer_is_the_derivative(topic: str) -> None:
    for question in quiz(topic).findall("question"):
        known = variables(question)
        assert sp.simplify(sp.diff(value(known["f"]), sp.Symbol("x", positive=True)) - value(known["ta"])) == 0


def test_feedback_names_the_mistake() -> None:
    question: Any = quiz("product rule").find("question")
    nodes = question.findall("prt/node")
    words = [node.findtext("truefeedback/text") for node in nodes]
    assert words[0] == ""
    assert all(": " in text for text in words[1:])


def test_a_topic_that_maxima_writes_in_another_way_is_refused() -> None:
    with pytest.raises(ValueError, match="is not written for Maxima"):
        runpy.run_path(str(SCRIPT))["questions"]("absolute values", 1, [1])


@pytest.mark.skipif(shutil.which("maxima") is None, reason="Maxima is not installed (Debian: apt-get install maxima)")
@pytest.mark.parametrize("topic", TOPICS)
def test_maxima_agrees(topic: str) -> None:
    lines = ["display2d: false$"]
    for question in quiz(topic).findall("question"):
        known = variables(question)
        derivative = f"diff({known['f']}, x)"
        wrong = [node.findtext("tans") or "" for node in question.findall("prt/node")[1:]]
        lines += [f"print({EQUAL.format(derivative, target)})$" for target in (known["ta"], *wrong)]
    done = subprocess.run(
        ["maxima", "--very-quiet", "--batch-string", "".join(lines)], capture_output=True, text=True, timeout=120
    )
    verdicts = [line.strip() for line in done.stdout.splitlines() if line.strip() in ("true", "false", "unknown")]
    assert verdicts == ["true", "false", "false", "false"] * 2, done.stdout
