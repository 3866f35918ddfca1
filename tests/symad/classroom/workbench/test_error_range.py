"""Errors over a range, where digits are lost, and the exhibit on one's own function."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.classroom.confusion.exhibit import own_exhibit
from symad.classroom.workbench.page_results import POINTS, error_range
from symad.classroom.workbench.panes import answer
from symad.classroom.workbench.questions import Question, Study
from symad.errors import ArgumentError


def test_errors_are_those_of_verify() -> None:
    kernel = sa.compile(sa.derivative(lambda x: (1 - np.cos(x)) / x**2), 1.0)
    told: list[str] = []
    found = error_range(kernel, lambda flat: flat[0], [1.0], 0, (0.001, 0.01), "x", told.append)
    for k in (0, POINTS // 2, POINTS - 1):
        assert found.errors[k] == pytest.approx(sa.verify(kernel, found.xs[k]).worst_ulp, rel=1e-9)
    assert len(told) == POINTS // 10
    assert found.worst is not None
    assert found.errors[found.worst] > 1e4


def test_the_operation_that_loses_digits_is_named() -> None:
    study = Study(Question(text="(1-cos(x))/x^2", transform="value", low="0.0001", high="0.001"))
    made = answer(study, study.question, "errors", lambda stage: None)
    lost = made["html"].index("Where the digits are lost")
    row = made["html"][lost:].split("<tr>")[2]
    mark = row.split('data-node="')[1].split('"')[0].split()[0]
    links = study.links
    assert links.plain.heads[int(mark[1:])] is sp.Add  # 1 - cos(x)
    assert made["range"] == [0.0001, 0.001]


@pytest.mark.parametrize("ends", [(1.0, 1.0), (2.0, 1.0), (math.nan, 1.0), (0.0, math.inf)])
def test_ranges_that_are_none(ends: tuple[float, float]) -> None:
    kernel = sa.compile(lambda x: x * x, 1.0)
    with pytest.raises(ArgumentError, match="a range from"):
        error_range(kernel, lambda flat: flat[0], [1.0], 0, ends, "x", lambda stage: None)


def test_points_without_a_number_are_counted() -> None:
    kernel = sa.compile(lambda x: np.log(x), 1.0)
    found = error_range(kernel, lambda flat: flat[0], [1.0], 0, (-1.0, 1.0), "x", lambda stage: None)
    assert sum(map(math.isnan, found.errors)) > POINTS // 3
    assert "have no exact number" in found.text(90)
    nowhere = error_range(kernel, lambda flat: flat[0], [1.0], 0, (-2.0, -1.0), "x", lambda stage: None)
    assert nowhere.worst is None
    assert "No point of this range" in nowhere.text(90)


def test_own_function_of_one_variable() -> None:
    """D x: x * D y: x * f(y) at y = x is 2 x f' + x**2 f'' by hand; no alias takes the captured x for its own."""
    x = sp.Symbol("x", real=True)
    f = sp.exp(x) * sp.sin(x)
    shown = own_exhibit(f, (x,), [0.5])
    exact = sp.diff(x**2 * sp.diff(f, x), x).subs(x, 0.5)
    assert shown.right.result == pytest.approx(float(exact), rel=1e-12)
    wrong = {made.design.name: made.result for made in shown.wrong}
    assert wrong["no alias"] != pytest.approx(shown.right.result, rel=1e-6)
    assert "exp(x)*sin(x)" in shown.source


def test_own_function_of_two_variables() -> None:
    x, y = sp.symbols("x y", real=True)
    f = x / y + sp.sqrt(x * y) + x**3 * y**-2
    shown = own_exhibit(f, (x, y), [0.7, 1.1])
    exact = sp.diff(x * sp.diff(f, y), x).subs({x: 0.7, y: 1.1})
    assert shown.right.result == pytest.approx(float(exact), rel=1e-12)
    assert any(made.result != pytest.approx(shown.right.result) for made in shown.wrong)


@pytest.mark.parametrize(("text", "message"), [("x*y*z", "3 variables"), ("gamma(x)", "in the exhibit")])
def test_what_the_exhibit_cannot_show(text: str, message: str) -> None:
    study = Study(Question(text=text))
    with pytest.raises(ArgumentError, match=message):
        answer(study, study.question, "confusion", lambda stage: None)
