"""A class, graded: marks, mistakes, what cannot be read, pages, and what PrairieLearn and STACK are answered."""

from __future__ import annotations

import csv
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

import symad as sa
from symad import cli
from symad.classroom.answers.answer_page import CheckedAnswer
from symad.classroom.grading.class_grading import grade_class, read_answers
from symad.classroom.grading.graders import grade_for_prairielearn, grade_for_stack
from symad.classroom.grading.question import Question, question_of, read_question
from symad.errors import ArgumentError
from tests.support.class_answers import DERIVATIVE, WRONG, answers, class_in_notations, graded
from tests.support.display_checks import HOSTILE, parsed

RECORDED = Path(__file__).parent / "recorded"
CUBE = Question("x^3", directions=("v", "w"), points=3)


def test_a_hundred_answers_are_marked_in_time() -> None:
    start = time.process_time()
    found = grade_class(Question(DERIVATIVE, points=4), answers())
    assert time.process_time() - start < 20
    for each in found.graded:
        assert (each.verdict, each.mark) == (("right", 4.0) if each.name.startswith("right") else ("wrong", 0.0)), each
    for (text, kind), each in zip([*WRONG.items()] * 2, found.graded[50:], strict=True):
        assert kind in each.mistakes if kind else not each.mistakes, (text, each.mistakes)
    assert sum(map(len, found.mistakes.values())) >= 46
    assert "50 right, 50 wrong." in found.text(100)


def test_marks_do_not_depend_on_the_notation(tmp_path: Path) -> None:
    for place, (question, rows) in enumerate(class_in_notations()):
        verdicts = graded(tmp_path / str(place), question, [(name, text) for name, text, _ in rows[:10]])
        assert verdicts == {name: "right" if is_right else "wrong" for name, _, is_right in rows[:10]}


CLASS = {
    "Ada": "x^3 + 3x^2 v ε₁ + 3x^2 w ε₂ + 6xvw ε₁ε₂",
    "Ben": "(x + v ε₁ + w ε₂)^3",
    "Cleo": "x^3 + 3x^2 v ε₁ + 3x^2 w ε₂",
    "Dan": "x^3 + 3x^2 v ε₁ +\n + 3x^2 w )",
    "Eve": "",
    "Finn": "x^3 + 3x^2 v ε₁ + 3x^2 w ε₂ + 12xvw ε₁ε₂",
}


def test_verdicts_and_marks_of_a_class() -> None:
    found = grade_class(CUBE, CLASS)
    assert [(each.name, each.verdict, each.mark) for each in found.graded] == [
        ("Ada", "right", 3.0), ("Ben", "unfinished", 1.5), ("Cleo", "wrong", 0.0), ("Dan", "unreadable", None),
        ("Eve", "unreadable", None), ("Finn", "wrong", 0.0),
    ]  # fmt: skip
    assert found.mistakes == {"dropped mixed term": ["Cleo"], "double-counted": ["Finn"]}
    assert "line 1, formula, column" in found.graded[3].problem
    text = found.text(100)
    for part in ("1 right, 1 unfinished, 2 wrong, 2 unreadable.", "For the teacher to look at", "an empty answer"):
        assert part in text


def test_marks_are_a_table_in_which_nothing_is_a_formula() -> None:
    rows = list(csv.DictReader(grade_class(CUBE, {"=cmd|' /C calc'!A0": "x^3", "-1": "+"}).csv().splitlines()))
    assert [row["name"] for row in rows] == ["'=cmd|' /C calc'!A0", "-1"]
    assert rows[0]["verdict"] == "wrong"
    assert rows[0]["of"] == "3"
    assert rows[1]["mark"] == ""
    assert rows[1]["note"].startswith("line 1")


def test_pages_are_written_under_names_that_stay_in_the_folder(tmp_path: Path) -> None:
    names = ["../../up", "a/b", "", "Ünal", *HOSTILE[:3]]
    pages = grade_class(CUBE, [(name, f"{name} x^3") for name in names]).write_pages(tmp_path / "pages")
    assert pages[0].name == "class.html"
    assert len(pages) == len(set(pages)) == len(names) + 1
    assert {page.parent for page in pages} == {tmp_path / "pages"}
    for page in pages:
        text = page.read_text(encoding="utf-8")
        parsed(text)
        assert "<script" not in text
    with pytest.raises(ArgumentError, match="the folder"):
        grade_class(CUBE, {"a": "x"}).write_pages(pages[0])


def test_what_takes_long_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("symad.classroom.grading.class_grading.SECONDS", 0.3)
    slow = "(" * 8 + "x" + "+1)^9" * 8
    found = grade_class(Question("x^2"), {"slow": f"sin({slow})^({slow})", "good": "2x"})
    assert found.graded[1].verdict == "right"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a question without a formula"),
        ("formula = 3", "a question without a formula"),
        ("formula = 'x'\nformulas = 'y'", "did you mean 'formula'"),
        ("formula = 'x'\ndirections = 'v'", "give a list of names"),
        ("formula = 'x'\npoints = -1", "give a number from 0"),
        ("formula = 'x'\nat = 3", "write at ="),
        ("formula = [", "cannot read"),
    ],
)
def test_a_question_that_is_none_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "q.toml").write_text(text)
    with pytest.raises(ArgumentError, match=said):
        read_question(tmp_path / "q.toml")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({"formula": "3"}, "no variable"), ({"formula": "x", "at": {"y": 1}}, "y=... as a point"),
        ({"formula": "sin x y"}, "two readings"), ({"formula": "x y"}, "2 variables"),
    ],
)  # fmt: skip
def test_a_question_without_an_answer_is_refused(question: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        grade_class(question_of(question), {"a": "1"})


def test_questions_have_points_names_and_functions() -> None:
    at = Question("x^3", directions=(1,), at={"x": 2})
    assert at.checked("8 + 12ε").right
    assert Question("x y", variables=("x", "y"), directions=(["v", "w"],)).checked("x y + (y v + x w) ε").right
    assert Question("g(x)^2", functions=("g",)).checked("2 g(x) g'(x)").right
    assert Question("x^2", directions=("v",), epsilons=("η",)).checked("x^2 + 2x v η").right
    assert Question("a x^2", variables=("x",), order=2).checked("2a").right
    assert Question("sin x", at={"x": "pi/2"}).checked("0").right


def test_lists_of_answers_are_checked_each() -> None:
    found = sa.check_expansion(list(CLASS.values()), "x^3", "x", ["v", "w"], each=True)
    assert [each.right if isinstance(each, CheckedAnswer) else each.what[:6] for each in found] == [
        True, True, False, "')'", "an emp", False,
    ]  # fmt: skip
    with pytest.raises(ArgumentError, match="give a list of answers"):
        sa.check_derivative("2x", "x^2", "x", each=True)


def test_a_folder_and_a_table_are_read(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("2x")
    (tmp_path / "a.tex").write_text("\ufeff$2x$", encoding="utf-8")
    (tmp_path / ".hidden").write_text("2x")
    assert read_answers(tmp_path) == [("a", "$2x$"), ("b", "2x")]
    table = tmp_path / "class.csv"
    table.write_text('Pupil,Answer\nAda,"y\' = 2x\n= 2x"\n,3x\n')
    assert read_answers(table, "pupil") == [("Ada", "y' = 2x\n= 2x"), ("row 3", "3x")]
    with pytest.raises(ArgumentError, match="no column 'name'"):
        read_answers(table)
    with pytest.raises(ArgumentError, match="give a folder"):
        read_answers(tmp_path / "b.txt")


def test_the_command_writes_marks_and_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "answers"
    folder.mkdir()
    for name, text in CLASS.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    (tmp_path / "q.toml").write_text('formula = "x^3"\ndirections = ["v", "w"]\npoints = 3\n')
    words = ["grade", str(folder), "--question", str(tmp_path / "q.toml")]
    assert cli.main([*words, "--out", str(tmp_path / "marks.csv"), "--pages", str(tmp_path / "pages")]) == 1
    assert len(list((tmp_path / "pages").iterdir())) == 7
    marks = {
        row["name"]: row["mark"]
        for row in csv.DictReader((tmp_path / "marks.csv").read_text(encoding="utf-8").splitlines())
    }
    assert marks == {"Ada": "3", "Ben": "1.5", "Cleo": "0", "Dan": "", "Eve": "", "Finn": "0"}
    capsys.readouterr()
    assert cli.main([*words, "--json"]) == 1
    assert [each["verdict"] for each in json.loads(capsys.readouterr().out)["graded"]][:3] == [
        "right", "unfinished", "wrong",
    ]  # fmt: skip
    assert cli.main(words) == 1
    assert "Mistakes" in capsys.readouterr().out
    assert cli.main(["grade", str(tmp_path / "none"), "--question", str(tmp_path / "q.toml")]) == 2


@pytest.mark.parametrize("path", sorted(RECORDED.glob("prairielearn-*.json")), ids=lambda path: path.stem)
def test_what_prairielearn_sends_is_answered(path: Path) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))
    data = record["data"]
    for part, entries in grade_for_prairielearn(question_of(record["question"]), data, record["name"]).items():
        data[part].update(entries)
    assert {name: found["score"] for name, found in data["partial_scores"].items()} == record["scores"]
    assert sorted(data["format_errors"]) == record["format_errors"]
    assert record["said"] in json.dumps([data["feedback"], data["format_errors"]], ensure_ascii=False)


@pytest.mark.parametrize("path", sorted(RECORDED.glob("stack-*.json")), ids=lambda path: path.stem)
def test_what_stack_sends_is_answered(path: Path) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))
    found = grade_for_stack(question_of(record["question"]), record["posted"])
    assert (found["isgradable"], found["score"]) == (record["isgradable"], record["score"])
    assert record["said"] in found["specificfeedback"]
    assert found["prts"] == {"prt1": found["specificfeedback"]}


def test_what_was_typed_is_no_markup() -> None:
    for text in HOSTILE:
        for found in (grade_for_prairielearn(CUBE, text), grade_for_stack(CUBE, text)):
            assert "<script" not in json.dumps(found)
            assert "<img" not in json.dumps(found)


def test_an_answer_that_is_missing_is_not_graded() -> None:
    assert grade_for_prairielearn(CUBE, {})["format_errors"] == {"answer": "there is no answer"}
    assert grade_for_stack(CUBE, {"answers": {}})["isgradable"] is False
    with pytest.raises(ArgumentError, match="give a question points"):
        grade_for_stack(Question("x^2", points=0), "2x")


def test_a_file_that_cannot_be_read_stops_nobody_else(tmp_path: Path) -> None:
    """Not UTF-8, too large, or a link, which may lead out of the folder: a pupil sends an archive of files."""
    secret, folder = tmp_path / "secret.txt", tmp_path / "answers"
    secret.write_text("the teacher's own 3x^2")
    folder.mkdir()
    (folder / "ada.txt").write_text("3x^2")
    (folder / "ben.txt").write_bytes(b"\xff\xfe3x")
    (folder / "cy.txt").symlink_to(secret)
    (folder / "di").symlink_to(tmp_path)
    with (folder / "eve.txt").open("wb") as file:
        file.truncate(3 * 2**30)
    Path(os.fsdecode(os.fsencode(folder) + b"/\xfffay.txt")).write_text("3x")
    graded = grade_class(Question("x^3"), read_answers(folder))
    assert [(each.name, each.verdict) for each in graded.graded] == [
        ("ada", "right"), ("ben", "unreadable"), ("cy", "unreadable"), ("di", "unreadable"), ("eve", "unreadable"),
        ("\ufffdfay", "wrong"),
    ]  # fmt: skip
    problems = [each.problem for each in graded.graded if each.found is None]
    for problem, said in zip(
        problems, ("write text in UTF-8", "links are not followed", "links", "at most 1,000,000"), strict=True
    ):
        assert said in problem
    pages = graded.write_pages(tmp_path / "pages")
    assert len(pages) == 7
    assert not any("teacher's own" in page.read_text() for page in pages)
    assert "unreadable" in graded.csv()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('formula = "x"\nat = ' + "[" * 100_000, "nested too deep"),
        ('formula = "x"\npoints = ' + "9" * 5000, "cannot read"),
        ('formula = "x"\npoints = ' + "9" * 400, "give a number from 0"),
        ('formula = "x"\norder = ' + "9" * 400, "give a number from 1 to 100"),
        ('formula = "x"\ntitle = 5', "title = 5"),
        ('formula = "x"\nat = {x = {y = 2}}', "write at"),
        ("#" * 1_000_001, "more than 1,000,000 bytes"),
    ],
    ids=range(7),
)
def test_odd_questions_are_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "question.toml"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=said) as caught:
        read_question(path)
    assert len(str(caught.value)) < 600


def test_marks_are_mathematics_and_no_code() -> None:
    graded = grade_class(Question("x^2 sin(x^2)"), {"Ada": "2x cos(x^2)", "Ben": "2x sin(x^2) + x^2 cos(x^2)"})
    table = graded.csv()
    assert "**" not in table
    assert "Derivative" not in table
    assert "f′(x)" in table
    assert "You left out 2x, the inner derivative of sin(x²)" in table


def test_the_power_rule_in_ordinary_notation_gets_its_points() -> None:
    answers = {"Ada": "nx^{n-1}", "Ben": "f'(x) = nx^(n-1)", "Cy": "n x^n"}
    graded = grade_class(Question("x^n", ("x",)), answers).graded
    assert [one.mark for one in graded] == [1.0, 1.0, 0.0]


def test_what_a_notation_means_is_set_once_for_a_class() -> None:
    question = Question("x^2/4", readings={"1/2x": "x/2"})
    graded = grade_class(question, {"Ada": "1/2x", "Ben": "x/2", "Cy": "1/3x"}).graded
    assert [one.verdict for one in graded] == ["right", "right", "unreadable"]
    with pytest.raises(ArgumentError, match="readings = "):
        question_of({"formula": "x", "readings": {"1/2x": 3}})


def test_the_page_of_a_class_says_why_the_teacher_has_to_look_and_how_a_notation_is_settled() -> None:
    found = grade_class(Question("x^2/4"), {"Ada": "1/2x", "Ben": "x^2/4 = x/2"})
    assert [each.verdict for each in found.graded] == ["unreadable", "undecided"]
    page = found.text(200)
    assert "recommended: 1/(2·x)" in page
    assert 'readings = {"1/2x" = "1/(2x)"}' in page
    assert "This is the function itself" in page
    assert "✗ wrong" not in found.graded[1].text(100)


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        (Question("x^2 + y^2 = 25"), "y' = -x/y", "y' = x/y"),
        (Question("x^2 + y^2 = 25", order=2), "y'' = -25/y^3", "y'' = -1/y"),
        (Question("x^2 y", ("x", "y")), "(2xy, x^2)", "(x^2, 2xy)"),
        (Question("x^2 y", ("x", "y"), order=2), "f_xx = 2y, f_xy = 2x, f_yy = 0", "f_xx = 2y, f_xy = 2, f_yy = 0"),
        (Question("x^2 y", ("x", "y"), at={"x": 1, "y": 2}), "(4, 1)", "(1, 4)"),
        (Question("x^T A x"), "(A + A^T) x", "2A + x"),
    ],
)
def test_a_class_is_asked_for_equations_gradients_and_matrices(question: Question, right: str, wrong: str) -> None:
    graded = grade_class(question, {"Ada": right, "Ben": wrong, "Cy": "?"})
    assert [pupil.verdict for pupil in graded.graded][:1] == ["right"]
    assert graded.graded[1].verdict in ("wrong", "unreadable")
    assert "Ada" in graded.html()
