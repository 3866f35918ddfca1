"""Everything that is shown, whatever it is: text as wide as it may be, LaTeX and HTML in order, files, a short repr."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import rich.cells
import sympy as sp

import symad
from symad.classroom.answers.answer_page import CheckedAnswer
from symad.classroom.comparison.compare import step_errors
from symad.classroom.confusion.exhibit import exhibit
from symad.classroom.expansion.expand import Expansion
from symad.classroom.explanation.explanation_document import Explanation
from symad.classroom.grading.class_grading import GradedClass, grade_class
from symad.classroom.grading.question import question_of
from symad.classroom.lessons.lesson import lesson
from symad.classroom.workbench.panes import content_of
from symad.classroom.workbench.questions import Question, Study
from symad.commands.hessian import HessianStudy, Stopwatch, study
from symad.display.shown import Shown
from symad.tracing.trace import trace_structured
from tests.support.display_checks import balanced, parsed
from tests.support.notebooks import read_notebook

X = sp.Symbol("x")


class Made(NamedTuple):
    """A function that gives a result to be shown, and an example of it."""

    function: Callable[..., Any]
    example: Callable[[], Shown]


def wave(x: Any) -> Any:
    return x * np.sin(x)


@cache
def kernel() -> symad.Kernel:
    return symad.compile(wave, 1.0)


def pane(name: str) -> Shown:
    studied = Study(Question(text="x*sin(x)"))
    return content_of(studied, studied.question, name, lambda stage: None).shown


def graded() -> GradedClass:
    return grade_class(question_of({"formula": "x^2"}), {"Ada": "2x", "Ben": "2x^", "Cy": "3x"})


def hessian_study() -> HessianStudy:
    planned = symad.plan(symad.hessian(wave), 1.0)
    return study(wave, (1.0,), planned, Stopwatch(lambda stage: None), name="wave")


FORMS = {
    "HessianStudy": Made(study, hessian_study),
    "Trace": Made(symad.trace, lambda: symad.trace(symad.grad(wave), 1.0)),
    "StructuredTrace": Made(trace_structured, lambda: trace_structured(symad.grad(wave), 1.0)),
    "TracedFormula": Made(symad.from_sympy, lambda: symad.from_sympy([X], X * sp.sin(X))),
    "CheckedTrace": Made(
        symad.check_trace, lambda: symad.check_trace("x 2\nv1 0.909\nv2 1.9\ny 1.9", "x sin x", at=2, mode="reverse")
    ),
    "Derivation": Made(symad.steps, lambda: symad.steps("x^2 sin(x)", "x", at=1)),
    "Exercise": Made(symad.exercise, lambda: symad.exercise("vectors and matrices", 2, 1)),
    "Solutions": Made(symad.exercise, lambda: symad.exercise("functions by cases", 1, 1).solution),
    "Worksheet": Made(symad.worksheet, lambda: symad.worksheet(["chain rule", "reverse traces"], count=2)),
    "Expansion": Made(symad.expand, lambda: symad.expand("exp(x*y)", ["x", "y"], [[1, 0], [0, 1]])),
    "Explanation": Made(symad.explain, lambda: symad.explain(symad.grad(symad.grad(wave)), 1.0)),
    "Drawing": Made(symad.draw, lambda: symad.draw(symad.grad(wave), 1.0)),
    "LoopDrawing": Made(
        symad.draw, lambda: symad.draw(symad.compile(lambda x: np.sum(np.sin(x) * x), np.ones(200), roll="always"))
    ),
    "Spy": Made(symad.spy, lambda: symad.spy(lambda x: x[1:] * x[:-1], np.ones(4))),
    "Growth": Made(symad.growth, lambda: symad.growth(wave, 1.0, orders=3)),
    "CheckedAnswer": Made(
        symad.check_expansion, lambda: symad.check_expansion("x^2 + 2 x v eps_1", "x^2", "x", ["v", "w"])
    ),
    "Comparison": Made(
        symad.compare, lambda: symad.compare(wave, 0.7, 2, only=["AD", "differences"], times=False)
    ),
    "StepErrors": Made(step_errors, lambda: step_errors(wave, 0.7, 1)),
    "Verification": Made(symad.verify, lambda: symad.verify(kernel(), 0.7)),
    "BoxVerification": Made(symad.verify, lambda: symad.verify(kernel(), box=(0, 1), points=20)),
    "CodeReading": Made(symad.read_llvm, lambda: symad.read_llvm(kernel())),
    "CompilationPlan": Made(symad.plan, lambda: symad.plan(lambda x: np.sum(np.sin(x) * x), np.ones(200))),
    "Graded": Made(grade_class, lambda: graded().graded[1]),
    "GradedClass": Made(grade_class, lambda: graded()),
    "Exhibit": Made(exhibit, lambda: exhibit("siskind-pearlmutter")),
    "QuestionReading": Made(content_of, lambda: pane("formula")),
    "ProgramListing": Made(content_of, lambda: pane("program")),
    "CodeListing": Made(content_of, lambda: pane("code")),
    "ErrorRange": Made(content_of, lambda: pane("errors")),
    "Lesson": Made(lesson, lambda: lesson(3)),
}  # fmt: skip


@cache
def example(name: str) -> Shown:
    return FORMS[name].example()


def kinds(of: type[Shown] = Shown) -> Iterator[type[Shown]]:
    """Yield the classes below Shown that symad defines, of all its modules."""
    for kind in of.__subclasses__():
        if kind.__module__.startswith("symad."):
            yield kind
        yield from kinds(kind)


def test_every_kind_of_result_is_here() -> None:
    for module in pkgutil.walk_packages(symad.__path__, "symad."):
        importlib.import_module(module.name)
    assert {kind.__name__ for kind in kinds()} == set(FORMS)
    assert {type(example(name)).__name__ for name in FORMS} == set(FORMS)


@pytest.mark.parametrize("name", FORMS)
def test_text_fits(name: str) -> None:
    for width in (60, 80, 120, 200):
        text = example(name).text(width)
        assert text.strip()
        assert max(rich.cells.cell_len(line) for line in text.split("\n")) <= width
        assert text.replace("\n", "").isprintable()  # no spaces either that only look like one


@pytest.mark.parametrize("name", FORMS)
def test_latex_and_html_are_well_formed(name: str) -> None:
    shown = example(name)
    assert balanced(shown.latex())
    assert shown._repr_latex_() == shown.latex()
    assert shown._repr_html_() == shown.html()
    parsed(shown.html())
    for forbidden in ("<script", "javascript:", "src=", "href=", "@import", "url(", "<iframe", "<object"):
        assert forbidden not in shown.html(), forbidden


@pytest.mark.parametrize("name", FORMS)
def test_files_of_every_suffix(name: str, tmp_path: Any) -> None:
    shown = example(name)
    for suffix in (".html", ".tex", ".txt", ".ipynb", *shown.more_forms()):
        text = shown.save(tmp_path / f"shown{suffix}").read_text(encoding="utf-8")
        assert text.strip()
    page = (tmp_path / "shown.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org/", "")
    assert parsed(page).tag == "html"
    paper = (tmp_path / "shown.tex").read_text(encoding="utf-8")
    assert paper.startswith(r"\documentclass")
    assert paper.rstrip().endswith(r"\end{document}")
    notebook = read_notebook((tmp_path / "shown.ipynb").read_text(encoding="utf-8"))
    for cell in notebook.cells:
        assert balanced(re.sub(r"```.*?```", "", cell.source, flags=re.DOTALL))
        assert "http" not in cell.source


@pytest.mark.parametrize("name", FORMS)
def test_repr_and_title_are_short(name: str) -> None:
    shown = example(name)
    if isinstance(shown, Expansion | CheckedAnswer | Explanation):  # what is read in the interpreter
        assert repr(shown) == shown.text()
    else:
        assert len(repr(shown)) < 200
        assert "\n" not in repr(shown)
    assert 0 < len(shown.title) < 100


@pytest.mark.parametrize("name", FORMS)
def test_what_makes_it_has_an_example(name: str) -> None:
    assert ">>> " in str(inspect.getdoc(FORMS[name].function))
    assert inspect.getdoc(type(example(name))) != inspect.getdoc(Shown)
