"""Exercises: right answers, wrong answers with their diagnosis, hints without answers, the same on every machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

import symad as sa
from symad.classroom.exercises.exercise import WRONG_ANSWERS, MatrixQuestion
from symad.classroom.exercises.practice_questions import PracticeQuestion, WrongAnswer
from symad.classroom.exercises.topics import LEVELS, Draw, table, topics
from symad.errors import ArgumentError, LimitError
from tests.support import random_exercises

TOPICS = list(topics())
OTHER_HASHES = """
import json, symad as sa
chosen = [sa.exercise(topic, level, 11) for topic, level in json.load(open(0))]
print(json.dumps([[e.text(90), e.answer, [w.text for w in e.wrong_answers], e.solution.text(90)] for e in chosen]))
"""


def test_there_are_topics_of_three_levels() -> None:
    assert len(TOPICS) >= 30
    assert all(topics()[name].formulas[level] for name in TOPICS for level in LEVELS)


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.thinned
def test_answers_are_right_and_mistakes_are_diagnosed(topic: str) -> None:
    for level in LEVELS:
        practice = sa.exercise(topic, level, seed=level)
        assert practice.check(practice.answer).right is True
        assert len({wrong.text for wrong in practice.wrong_answers} | {practice.answer}) == WRONG_ANSWERS + 1
        for wrong in practice.wrong_answers:
            checked = practice.check(wrong.text)
            assert checked.right is False
            if topics()[topic].kind == "matrix":
                assert wrong.diagnosis
            elif hasattr(checked, "mistakes"):
                assert str(checked.mistakes[0]) == wrong.diagnosis
            else:
                first = next(row for row in checked.rows if row.verdict == "wrong")
                assert wrong.diagnosis.startswith(f"{first.line}: ")


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.thinned
def test_no_hint_is_the_answer_and_the_solution_has_it(topic: str) -> None:
    practice = sa.exercise(topic, 2, seed=3)
    assert [practice.hint(k) for k in range(1, len(practice.hints) + 1)] == list(practice.hints)
    assert practice.hints
    assert not any(hint.endswith(f"= {practice.answer}") for hint in practice.hints)
    assert practice.answer not in practice.text(200)
    solution = practice.solution.text(300)
    assert all(line in solution for line in practice.answer.split("\n"))
    assert practice.wrong_answers[0].diagnosis.split(":")[0] in solution


def test_the_public_checks_agree() -> None:
    practice = sa.exercise("quotient rule", 2, 5)
    f = practice.question.f
    assert sa.check_derivative(practice.answer, f, "x").right
    for wrong in practice.wrong_answers:
        assert str(sa.check_derivative(wrong.text, f, "x").mistakes[0]) == wrong.diagnosis


@pytest.mark.parametrize("row", table("matrices.toml"))
def test_every_row_of_matrices_is_right(row: str) -> None:
    topic = next(topic for topic in topics().values() if any(row in rows for rows in topic.formulas.values()))
    level = next(level for level in LEVELS if row in topic.formulas[level])
    one = replace(topic, formulas={level: [row]})
    for seed in range(3):
        question = MatrixQuestion(one, level, Draw(row, seed))
        assert question.is_right()
        assert question.check(question.answer, "always").right
        assert all(question.confirms(wrong) for wrong in question.mistaken())


def test_the_same_in_another_process_with_other_hashes() -> None:
    chosen = [(topic, 1 + k % 3) for k, topic in enumerate(TOPICS[::4])]
    texts = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"}
        command = [sys.executable, "-c", OTHER_HASHES]
        run = subprocess.run(
            command, input=json.dumps(chosen).encode(), env=environment, capture_output=True, check=True
        )
        texts.append(json.loads(run.stdout))
    assert texts[0] == texts[1]


def test_numbers_are_pinned() -> None:
    assert [Draw("a topic", 1, 5).of(range(1000)), *Draw("a topic", 1, 5).shuffled("abcdef")] == [
        464,
        "c",
        "a",
        "b",
        "e",
        "f",
        "d",
    ]


def test_another_seed_gives_another_exercise() -> None:
    texts = {sa.exercise("power rule", 2, seed).text() for seed in range(5)}
    assert len({text.split("\n", 1)[1] for text in texts}) > 3


@pytest.mark.parametrize(("arguments", "said"), [
    (("prodct rule",), "take 'product rule'"),
    (("hessian",), "'Hessians'"),
    (("zzz",), "symad exercise lists all"),
    ((3,), "no topic 3"),
    (("power rule", 0), "level=0; give an integer from 1 to 3"),
    (("power rule", True), "level=True"),
    (("power rule", 1.0), "level=1.0"),
    (("power rule", 1, 1.5), "seed=1.5; give an integer"),
    (("power rule", 1, "7"), "seed='7'"),
])  # fmt: skip
def test_bad_input_is_refused(arguments: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said.replace("(", r"\(")):
        sa.exercise(*arguments)


def test_topics_in_other_spellings_and_any_integer() -> None:
    assert sa.exercise("  Product  RULE", 1, -(10**30)).topic == "product rule"


def test_hints_beyond_the_last_are_refused() -> None:
    practice = sa.exercise("power rule")
    for k in (0, len(practice.hints) + 1, "x"):
        with pytest.raises(ArgumentError, match="solution"):
            practice.hint(k)  # type: ignore[arg-type]


def test_an_exercise_that_cannot_be_established_is_no_exercise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PracticeQuestion, "confirms", lambda self, wrong: False)
    with pytest.raises(LimitError, match="no exercise of 'power rule', level 1, seed 4 in 12 tries; take another seed"):
        sa.exercise("power rule", 1, 4)


def test_a_wrong_answer_with_another_diagnosis_is_not_taken() -> None:
    question = sa.exercise("chain rule", 1, 2).question
    wrong = next(question.mistaken())
    assert not question.confirms(WrongAnswer(question.answer, wrong.diagnosis))
    assert not question.confirms(WrongAnswer(wrong.text, "quotient rule: something else"))


def test_lines_of_an_answer_are_judged_one_by_one() -> None:
    practice = sa.exercise("product rule", 1, 3)  # x sin(x)
    checked = practice.check("sin(x) + x cos(x)\n= 2 sin(x)")
    assert [step.right for step in checked.steps] == [True, False]
    assert checked.line.number == 2
    assert "sin(x) + x·cos(x)" not in practice.check("cos(x)").text()  # the right answer is not told


@pytest.mark.parametrize(("topic", "level"), [("quotient rule", 1), ("Hessians", 2), ("traces and determinants", 3)])
def test_answers_in_other_forms_have_the_same_verdict(topic: str, level: int) -> None:
    """The quick form of the campaign "exercises"."""
    counted = Counter[str]()
    assert random_exercises.judged(topic, level, 1004, counted) == topic
    assert (counted["right answers"], counted["wrong answers"]) == (1, WRONG_ANSWERS)
