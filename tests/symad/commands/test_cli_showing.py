"""The commands that show and check: targets, points, directions, files, exit statuses, every error in one line."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from symad.cli import main

EXAMPLES = Path(__file__).parents[3] / "examples"
ROSENBROCK = f"{EXAMPLES / 'rosenbrock.py'}:rosenbrock"
LENNARD_JONES = f"{EXAMPLES / 'lennard_jones.py'}:energy"


def run(capsys, *arguments):
    status = main(arguments)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def source(tmp_path, text):
    path = tmp_path / "model.py"
    path.write_text(text, encoding="utf-8")
    return f"{path}:f"


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["expand", "x^3", "--directions", "v", "w"], ["6v·w·x", "[collected]"]),
        (["expand", "x^3", "--directions", "v", "w", "--style", "rules"], ["6v·w·x", "power rule"]),
        (["expand", "x y", "--directions", "1,0", "0,1", "--detail", "result"], ["f′′(x, y)[(1, 0), (0, 1)]   1"]),
        (["expand", "x y", "--directions", "v", "--at", "x=2", "y=3"], ["3.0·v₁ + 2.0·v₂", "x = 2.0"]),
        (["expand", "sin(x)", "--order", "3", "--at", "x=0"], ["Taylor polynomial"]),
        (["expand", "g(h(x))", "--functions", "g", "h"], ["v·g′(h(x))·h′(x)"]),
        (["expand", "a x^2", "--variables", "x", "a"], ["x", "a"]),
        (["expand", ROSENBROCK, "--directions", "1,0,0,0,0", "--detail", "result"], ["ε₁"]),
        (["steps", "x^2 sin(x)", "--at", "x=0"], ["product rule: u = x², v = sin(x)", "f′(0) = 0"]),
        (["steps", "x^2 + y^2 = 25", "--at", "x=3", "y=4"], ["y′ = -x/y", "At x = 3, y = 4: y′ = -3/4"]),
        (["steps", "x^2 y", "--variables", "x", "y", "--order", "2", "--detail", "full"], ["f_xy = 2x", "H = "]),
        (["exercise"], ["product rule", "reverse traces"]),
        (
            ["exercise", "product rule", "--seed", "3", "--hints", "9"],
            ["f(x) = x·sin(x)", "hint 1: Use the product rule"],
        ),
        (["exercise", "product rule", "--seed", "3", "--solution"], ["f′(x) = sin(x) + x·cos(x)", "Typical mistakes"]),
        (["exercise", "product rule", "--json"], ['"command": "exercise"', '"wrong_answers"', '"diagnosis"']),
        (
            ["worksheet", "chain rule", "power rule", "--count", "2"],
            ["Worksheet: chain rule, power rule", "Exercise 2"],
        ),
        (["steps", "x^2 y", "--json"], ['"command": "steps"', '"rule": "power rule"', '"after": "2*x*y"']),
        (["explain", "x sin(x)", "--transform", "grad"], ["linearized and transposed", "residual"]),
        (["explain", ROSENBROCK, "--transform", "grad", "jacfwd"], ["2 levels"]),
        (["explain", "x sin(x)", "--transform", "none"], ["no level was opened"]),
        (["confusion", "captured"], ["a captured variable in a product", "5, wrong", "8, right"]),
        (["confusion", "x*exp(y)", "--at", "x=2"], ["with f(x, y) = x*exp(y)", "wrong"]),
        (["draw", "sqrt(x^2+y^2)", "--transform", "hessian"], ["x ", "R1", "operations"]),
        (["draw", LENNARD_JONES, "--loops"], ["for k in range(78):", "out +=", "1 loop"]),
        (["compare", "exp(x sin(x))", "--at", "x=0.7"], ["AD F", "sympy.diff", "1.8517551"]),
        (["verify", "x^2*y", "--transform", "hessian", "--box", "0", "2", "--points", "50"], ["[1, 0]", "50 points"]),
        (["verify", ROSENBROCK, "--transform", "grad"], ["[4]", "ULP"]),
        (["verify", "sqrt(x)", "--at", "x=2", "--rigorous"], ["at most"]),
    ],
    ids=lambda value: " ".join(Path(part).name for part in value[:2]) if value[0].islower() else None,
)
def test_what_is_printed(capsys, arguments, parts):
    status, out, err = run(capsys, *arguments)
    assert (status, err) == (0, "")
    assert all(part in out for part in parts), out


@pytest.mark.parametrize(
    ("answer", "status", "part"),
    [
        ("3 x^2", 0, "Right"),
        ("3 x", 1, "Look at line 1"),
        ("= x^2 + x^2 + x^2\n= 2 x^2\n", 1, "Look at line 2"),
    ],
)
def test_an_answer_is_checked(capsys, tmp_path, monkeypatch, answer, status, part):
    path = tmp_path / "answer.txt"
    path.write_text(answer, encoding="utf-8")
    found = run(capsys, "check", "x^3", "--answer", str(path))
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert found == run(capsys, "check", "x^3", "--answer", "-")
    assert found[0] == status
    assert part in found[1]


def test_an_expansion_is_checked(capsys, tmp_path):
    path = tmp_path / "answer.txt"
    path.write_text("x^2 + 2 x v eps_1 + 2 x w eps_2", encoding="utf-8")
    status, out, _ = run(capsys, "check", "x^2", "--directions", "v", "w", "--answer", str(path))
    assert status == 1
    assert "dropped mixed term" in out


@pytest.mark.parametrize("command", ["expand", "explain", "draw", "compare"])
def test_pages_and_files(capsys, tmp_path, command):
    page, paper = tmp_path / "page.html", tmp_path / "paper.tex"
    status, out, _ = run(capsys, command, "exp(x)*x", "--at", "x=0.5", "--html", str(page), "--output", str(paper))
    assert status == 0
    assert out.splitlines() == [f"written: {page}", f"written: {paper}"]
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "<math" in text or "<svg" in text
    assert r"\begin{document}" in paper.read_text(encoding="utf-8")
    assert len(list(tmp_path.iterdir())) == 2


def test_a_graph_is_written_as_svg(capsys, tmp_path):
    path = tmp_path / "graph.svg"
    assert run(capsys, "draw", "exp(x)*x", "--output", str(path))[0] == 0
    assert ET.parse(path).getroot().tag.endswith("svg")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["expand", "x*sin(x"], "'(' that is never closed"),
        (["expand", "__import__('os')"], "the character '_'"),
        (["expand", "3"], "no variable in '3'"),
        (["expand", "x^2", "--directions", "1,2"], "2 numbers for an argument of shape ()"),
        (["expand", "x^2", "--directions", "v", "w", "--order", "2"], "--order with several directions"),
        (["expand", "x^2", "--html", "page.txt"], "end the name in .html"),
        (["expand", "x^2", "--output", "page.pdf"], "'page.pdf' as a file to show"),
        (["expand", "x^2", "--html", "/nowhere/at/all/page.html"], "cannot write"),
        (["expand", "x^2", "--at", "x"], "write it as name=number"),
        (["expand", "x^2", "--at", "x=1/0"], "a division by zero"),
        (["expand", "x^2", "--at", "y=1"], "the variables are x"),
        (["expand", ROSENBROCK, "--at", "x=1"], "the file gives the point"),
        (["exercise", "prodct rule"], "take 'product rule'"),
        (["exercise", "product rule", "--level", "0"], "level=0; give an integer from 1 to 3"),
        (["worksheet", "chain rule", "--count", "0"], "count=0"),
        (["steps", "x^2 +* 3"], "no term can go on like this"),
        (["steps", "x^2", "--at", "3"], "give a value for x"),
        (["check", "x^2", "--answer", "nowhere.txt"], "cannot read 'nowhere.txt'"),
        (["compare", "x^2"], "no point for 'x^2'"),
        (["verify", "x^2"], "no point for 'x^2'"),
        (["verify", "sqrt(x)", "--box", "2", "1", "--at", "x=1"], "box"),
        (["draw", "x^2", "--transform", "hessian", "--output", "graph.gif"], "'graph.gif' as a file to show"),
        (["draw", "x^2", "--loops"], "too few operations for loops"),
    ],
)
def test_errors_are_one_line_and_write_nothing(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith("symad: error: ")
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_the_point_is_the_file_s(capsys, tmp_path):
    target = source(tmp_path, "def f(x=2.0, scale=3.0):\n    return scale * x**2\n")
    assert "12.0" in run(capsys, "expand", target, "--directions", "1", "--detail", "result")[1]


def test_a_verification_that_compared_nothing_is_no_success(capsys):
    status, out, _ = run(capsys, "verify", "sin(x)/x", "--at", "x=0")
    assert (status, "no error could be told" in out, "ULP" in out) == (1, True, False)
    status, out, _ = run(capsys, "verify", "log(x)", "--box", "-2", "-1", "--points", "20")
    assert (status, "no result could be compared" in out) == (1, True)
    assert run(capsys, "verify", "sin(x)/x", "--at", "x=1")[0] == 0


def test_explain_takes_the_gradient_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "explain", "x sin(x)")
    assert status == 0
    assert "explain: gradient of" in out
    assert "linearized and transposed" in out
    assert err == "symad: no --transform: the gradient is explained (--transform none: f itself)\n"
    assert run(capsys, "explain", "x sin(x)", "--transform", "grad")[1:] == (out, "")


def test_pages_in_large_letters(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for more in ([], ["--big"]):
        assert (
            run(capsys, "draw", "x sin(x)", "--transform", "grad", "--html", str(tmp_path / "page.html"), *more)[0] == 0
        )
        page = (tmp_path / "page.html").read_text()
        assert ('<body class="symad-page big">' in page) == bool(more)
        assert '<div class="formula">' in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["confusion", "captured", "--at", "x=1"], "the program says where"),
        (["confusion", "captured", "square", "--json"], "name one"),
        (["confusion", "x*y*z"], "3 variables"),
        (["confusion", "no such program"], "symad: error"),
    ],
)
def test_what_confusion_refuses(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    status, _, err = run(capsys, *arguments)
    assert (status, message in err) == (2, True)


def test_a_formula_keeps_its_names(capsys):
    status, printed, _ = run(capsys, "explain", "sin(x*y)")
    assert status == 0
    assert "argument_" not in printed
    assert re.search(r"grad +x, y +v1, v2", printed)
    assert re.search(r"v1 +x +A1", printed)
    assert re.search(r"v2 +y +A1", printed)
    status, printed, _ = run(capsys, "draw", "sin(x*y)", "--transform", "grad")
    assert status == 0
    assert "argument_" not in printed
    assert re.search(r"v1 = x\*y", printed)


def test_explain_at_a_point_prints_numbers_with_the_formula_s_names(capsys):
    status, printed, _ = run(capsys, "explain", "ln(x1) + x1*x2 - sin(x2)", "--at", "x1=2", "x2=5")
    assert status == 0
    assert re.search(r"x2_bar .* ∂v\d/∂x2 = cos\(x2\) = 0.283662 ", printed)
    assert "result: x1_bar = 5.5, x2_bar = 1.71634" in printed
    status, printed, _ = run(capsys, "draw", "x*sin(y)", "--at", "x=2", "y=1")
    assert status == 0
    assert re.search(r"v2 = x·v1 +1.68294 +0.841471 by x, 2 by v1 +1", printed)


def test_a_file_has_its_own_point(capsys, tmp_path):
    path = tmp_path / "model.py"
    path.write_text("def f(x=0.5):\n    return x * x\n")
    status, printed, _ = run(capsys, "explain", f"{path}:f")
    assert (status, "0.25" in printed) == (0, False)
    status, printed, _ = run(capsys, "explain", f"{path}:f", "--at")
    assert (status, "0.25" in printed, "result: x_bar = 1" in printed) == (0, True, True)
    status, printed, _ = run(capsys, "draw", f"{path}:f", "--at")
    assert (status, "0.25" in printed) == (0, True)


@pytest.mark.parametrize("command", ["explain", "draw"])
@pytest.mark.parametrize(
    ("at", "message"), [(["x=2"], "no number for y"), ([], "no point"), (["x=2", "z=1"], "z=... as a point")]
)
def test_a_point_is_whole(capsys, command, at, message):
    status, _, err = run(capsys, command, "x*sin(y)", "--at", *at)
    assert (status, message in err) == (2, True)
