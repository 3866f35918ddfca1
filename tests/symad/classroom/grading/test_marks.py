"""Points for rule, result and form: an error is counted once, and what follows from it has its points."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from symad.classroom.grading.class_grading import grade_class
from symad.classroom.grading.question import question_of
from symad.errors import ArgumentError

MARKS = {"rule": 2, "result": 1, "form": 1}

MARKED: list[tuple[dict[str, Any], dict[str, float | None]]] = [
    (
        {"formula": "x^2 sin x"},
        {
            "2x sin x + x^2 cos x": 4,
            "2x cos x": 0,  # a wrong rule, and no more
            "2x cos x\n= 2 cos(x) x": 0,  # nor for writing it once more
            "2x sin x + x^2 cos x = x(2 sin x + cos x)": 3,  # a slip of algebra
            "2x sin x + x^2 (sin x)'": 3,  # not carried out
            "2x sin(": None,
        },
    ),
    (
        {"formula": "x^2 sin x", "order": 2},
        {"f' = 2x cos x\nf'' = 2 cos x - 2x sin x": 2, "f' = 2x cos x\nf'' = 2 cos x": 0},
    ),
    (
        {"formula": "x^3", "at": {"x": 2}},
        {"12": 4, "f'(x) = 3x\nf'(2) = 6": 2, "f'(x) = 3x^2, f'(2) = 10": 3, "6": 0},
    ),
    (
        {"formula": "x^2 + y^2 = 25"},
        {"2x + 2y y' = 0\ny' = -x/y": 4, "2x + 2y' = 0\ny' = -x": 2, "2x + 2y' = 0\ny' = -2x": 0},
    ),
    (
        {"formula": "x^2 + y^2 = 25", "order": 2},
        {"y' = -x/y\ny'' = -25/y^3": 4, "y' = x/y\ny'' = 1/y - x^2/y^3": 2},
    ),
    (
        {"formula": ["x^2 y", "5x + sin y"], "variables": ["x", "y"], "layout": "numerator"},
        {
            "[[2xy, x^2], [5, cos y]]": 4,
            "[[2xy, x^2], [5, -cos y]]": 3,  # one of four entries
            "∂f_1/∂x = 2xy": 1,
            "[[2xy, 5], [x^2, cos y]]": 3,  # transposed
        },
    ),
    (
        {"formula": "x^2 y^3", "variables": ["x", "y"], "order": ["x", "y", "y"]},
        {"12xy": 4, "f_x = x y^3\nf_xy = 3xy^2\nf_xyy = 6xy": 2},
    ),
    ({"formula": "x^2 y", "variables": ["x", "y"], "along": "(3, 4)/5", "at": {"x": 2, "y": 1}}, {"5.6": 4, "28": 0}),
    ({"formula": "e^{2x}", "order": "n"}, {"2^n e^{2x}": 4, "e^{2x}": 0}),
    ({"formula": "sin x", "at": {"x": 0}, "taylor": True, "order": 3}, {"x - x^3/6": 4, "x - x^3/3": 0}),
    ({"formula": "|x|", "at": {"x": 0}}, {"does not exist": 4, "0": 0}),
    ({"formula": "x^T A x"}, {"(A + A^T) x": 4, "2Ax": 0}),
    ({"formula": "(cos t, sin t)"}, {"(-sin t, cos t)": 4, "(sin t, cos t)": 2}),
]


@pytest.mark.parametrize(("parts", "answers"), MARKED, ids=[str(parts["formula"]) for parts, _ in MARKED])
def test_marks(parts: dict[str, Any], answers: dict[str, float | None]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graded = grade_class(question_of({**parts, "marks": MARKS}), {answer: answer for answer in answers}).graded
    assert {pupil.answer: pupil.mark for pupil in graded} == answers


def test_the_page_and_the_table_say_how_the_points_are_divided() -> None:
    question = question_of({"formula": "x^3", "at": {"x": 2}, "marks": MARKS})
    graded = grade_class(question, {"Ada": "f'(x) = 3x\nf'(2) = 6"})
    (ada,) = graded.graded
    assert "rule 0 of 2, result 1 of 1, form 1 of 1" in ada.text()
    assert "rule 0 of 2" in graded.csv()
    assert question.points == 4


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"formula": []}, "without a formula"),
        ({"formula": ["x", 2]}, "without a formula"),
        ({"formula": "x", "order": "m"}, 'a number from 1 to 100, "n"'),
        ({"formula": "x", "order": []}, "order = "),
        ({"formula": "x", "order": True}, "order = "),
        ({"formula": "x", "marks": {"style": 1}}, "marks = "),
        ({"formula": "x", "marks": {"rule": -1}}, "marks = "),
        ({"formula": "x y"}, "name them"),
        ({"formula": "x", "layout": "rows"}, "'numerator'"),
        ({"formula": "x y", "variables": ["x", "y"], "along": "(1, 2, 3)"}, "give 2, with commas"),
        ({"formula": "x y", "variables": ["x", "y"], "order": ["x", "z"]}, "of the variables x, y"),
        ({"formula": "x y", "variables": ["x", "y"], "order": 3}, "gradient, 2 for the Hessian"),
        ({"formula": "sin x", "taylor": True, "order": 2}, "without a point"),
        ({"formula": "sin x", "taylor": True, "order": "n", "at": {"x": 0}}, "degree"),
        ({"formula": "n x", "variables": ["x"], "order": "n"}, "rename n"),
        ({"formula": "x^2 + y^2 = 25", "at": {"x": 3, "y": 5}}, "of a point of the curve"),
        ({"formula": "x^2 + y^2 = 25", "at": {"x": 5, "y": 0}}, "without a slope"),
        ({"formula": "tr(A x)", "variables": ["x"]}, "shapes do not fit"),
    ],
)
def test_a_question_that_cannot_be_asked_is_told_in_one_message(parts: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        question_of(parts).check()
