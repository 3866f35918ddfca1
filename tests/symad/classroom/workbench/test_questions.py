"""Questions of the page: what is read, what is refused, and that nothing typed is run unless that was allowed."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

import symad as sa
from symad.classroom.workbench.desk import Desk
from symad.classroom.workbench.questions import TRANSFORMS, Question, Study, point_of, question_of, subject_of
from symad.errors import ArgumentError
from tests.support.workbench import Bench

HOSTILE = [
    "<script>alert(1)</script>", "x</pre><img src=x onerror=alert(1)>", r"\input{/etc/passwd}", "$\\write18{id}$",
    "\x1b[31mred\x1b[0m", "x\x00y", "__import__('os').system('true')", "().__class__", "x" * 5000, "((((((" * 500,
    "9^9^9^9^9", "x^" * 100 + "x", "\u202ex", "sin(" * 60 + "x" + ")" * 60, "", " ", "1", "π", "x!", "{{7*7}}",
]  # fmt: skip


@pytest.mark.parametrize("pane", ["formula", "expansion", "graph", "code"])
def test_every_pane_says_whether_the_formula_could_be_read(pane: str) -> None:
    """Answers arrive in any order: no pane needs that of another to know why it is empty."""
    desk = Desk("", allow_code=False, seconds=10)
    half_typed = desk.carried_out({"pane": pane, "question": {"text": "sin(x) + cos("}}, lambda m: None)
    assert half_typed["unread"] is True
    assert "cos(" in half_typed["error"]
    read = desk.carried_out({"pane": pane, "question": {"text": "sin(g(x))"}}, lambda m: None)
    assert "unread" not in read


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("pane", ["formula", "expansion", "graph", "code"])
def test_hostile_text_gets_an_answer_or_a_message(text: str, pane: str) -> None:
    told = Desk("", allow_code=False, seconds=10).carried_out(
        {"pane": pane, "question": {"text": text}}, lambda m: None
    )
    kind = next(iter(told))
    assert told.keys() in ({"answer"}, {"error"}, {"error", "unread"})
    shown = told["answer"]["html"] if kind == "answer" else told["error"]
    assert "Traceback" not in shown
    assert "\x1b" not in shown
    assert "\x00" not in shown
    if kind == "answer":
        assert "<script" not in shown
        assert "<img" not in shown


def test_code_is_not_run(tmp_path: Path) -> None:
    code = f"def f(x=0.7):\n    return x\nopen({str(tmp_path / 'made')!r}, 'w')"
    for kind in ("formula", "code"):
        told = Desk("", allow_code=False, seconds=10).carried_out(
            {"pane": "formula", "question": {"kind": kind, "text": code}}, lambda m: None
        )
        assert "error" in told
    assert not (tmp_path / "made").exists()
    with pytest.raises(ArgumentError, match="--allow-code"):
        subject_of(Question(kind="code", text=code))


def test_code_is_run_where_that_was_allowed() -> None:
    found = Study(Question(kind="code", text="def f(x=0.7):\n    return np.sin(x) * x"), allow_code=True)
    assert found.kernel(0.5) == pytest.approx(np.sin(0.5) + 0.5 * np.cos(0.5), rel=1e-15)


def test_a_file_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("import numpy as np\ndef f(x=0.5, k=2.0):\n    return np.sin(k * x)\n")
    desk = Desk(f"{path}:f", allow_code=False, seconds=20)
    told = desk.carried_out({"pane": "formula", "question": {"kind": "file"}}, lambda m: None)
    assert told["answer"]["variables"] == ["x"]
    path.write_text("import numpy as np\ndef f(x=0.5, k=2.0):\n    return np.cos(k * x)\n")
    os.utime(path, (1, 1))
    told = desk.carried_out({"pane": "formula", "question": {"kind": "file"}}, lambda m: None)
    assert f"{-2 * np.sin(1.0):.6f}"[:8] in told["answer"]["html"]
    with pytest.raises(ArgumentError, match="no file was opened"):
        subject_of(Question(kind="file"))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"text": 1}, "'text' in a question"),
        ({"nothing": ""}, "'nothing' in a question"),
        ({"transform": "curl"}, "the transform 'curl'"),
        ({"order": 99}, "order 99"),
        ({"order": True}, "'order' in a question"),
        ({"kind": "shell"}, "a question about a 'shell'"),
        ({"text": "x" * 10_000}, "10000 letters"),
    ],
)
def test_questions_that_no_page_sends_are_refused(asked: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        question_of(asked)


@pytest.mark.parametrize("text", ["x", "x=", "x=abc", "x=1/0", "z=1"])
def test_bad_points_are_refused(text: str) -> None:
    with pytest.raises(ArgumentError):
        subject_of(Question(text="x*y", point=text))
    assert point_of("x=1; y = 2") == {"x": 1.0, "y": 2.0}


X, Y = 0.7, 1.1
EXACT = {  # of x**2*y + y**3 at (X, Y), by hand
    "value": X**2 * Y + Y**3,
    "grad": [2 * X * Y, X**2 + 3 * Y**2],
    "hessian": [[2 * Y, 2 * X], [2 * X, 6 * Y]],
    "grad-grad": [2 * Y + 2 * X, 2 * X + 6 * Y],
    "jvp-grad": [2 * Y + 2 * X, 2 * X + 6 * Y],
    "laplacian": 2 * Y + 6 * Y,
    "jacfwd": [2 * X * Y, X**2 + 3 * Y**2],
    "jacrev": [2 * X * Y, X**2 + 3 * Y**2],
}


@pytest.mark.parametrize("transform", EXACT)
def test_transforms_are_what_they_say(transform: str) -> None:
    found = Study(Question(text="x^2*y + y^3", transform=transform))
    assert np.asarray(found.transformed(found.subject.numbers)) == pytest.approx(np.array(EXACT[transform]), rel=1e-14)
    assert np.asarray(found.kernel(found.subject.numbers)) == pytest.approx(np.array(EXACT[transform]), rel=1e-14)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_derivatives_of_order_k(order: int) -> None:
    found = Study(Question(text="sin(2*x)", transform="derivative", order=order))
    assert found.kernel(0.3) == pytest.approx(2.0**order * np.sin(0.6 + order * np.pi / 2), rel=1e-12)
    assert sa.derivative(lambda x: np.sin(2 * x), order)(0.3) == pytest.approx(found.kernel(0.3), rel=1e-12)
    twice = {"grad-grad": 2, "jvp-grad": 2, "hessian": 2}
    for name, k in twice.items():
        assert Study(Question(text="sin(2*x)", transform=name)).kernel(0.3) == pytest.approx(
            2.0**k * np.sin(0.6 + k * np.pi / 2), rel=1e-12
        )
    assert set(EXACT) | {"derivative"} == set(TRANSFORMS)


def test_a_function_that_nothing_is_known_of_has_an_expansion(bench: Bench) -> None:
    """The chain rule of an undefined g; the panes that need its derivative say so, and the expansion is there."""
    told = bench.pane("expansion", text="sin(g(x))")
    assert "Not linked with the other panes: g has no derivative" in told["answer"]["html"]
    assert "cos" in told["answer"]["html"]
    assert "nothing is known about its derivative" in bench.pane("formula", text="sin(g(x))")["error"]


def test_a_message_about_a_formula_names_no_file(bench: Bench) -> None:
    told = bench.pane("expansion", text="x + eps_1")
    assert told["error"].startswith("the symbol eps_1 in the function or a direction")


def test_the_stages_have_the_variables_for_arguments() -> None:
    found = Study(Question(text="a*b + b", transform="hessian")).explanation.text(120)
    assert re.search(r"hessian +a, b +v1, v2", found)
    assert "argument_" not in found
