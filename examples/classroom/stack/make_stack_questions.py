"""Write questions of STACK as Moodle XML, from symad's exercises: the typical mistakes are nodes of the response tree.

    python make_stack_questions.py "product rule" --level 2 --seeds 1 2 3 > questions.xml

Import the file in Moodle (question bank, import, Moodle XML). Each question has a test for the right answer and one for
each mistake, so that Maxima checks everything again: run "Question tests" there.
"""

from __future__ import annotations

import argparse
import sys
import xml.etree.ElementTree as ET
from html import escape

import sympy as sp

import symad as sa
from symad.classroom.formulas.read import read_formula

X = sp.Symbol("x")
KNOWN = (sp.exp, sp.log, sp.sin, sp.cos, sp.tan, sp.asin, sp.acos, sp.atan, sp.sinh, sp.cosh, sp.tanh, sp.sec, sp.csc)


def maxima(text: str) -> str:
    """Return a formula in Maxima's notation; ValueError for a function that Maxima writes in another way."""
    expression = read_formula(text)
    known = (
        sp.exp,
        sp.log,
        sp.sin,
        sp.cos,
        sp.tan,
        sp.asin,
        sp.acos,
        sp.atan,
        sp.sinh,
        sp.cosh,
        sp.tanh,
        sp.sec,
        sp.csc,
    )
    unknown = [part for part in expression.atoms(sp.Function) if not isinstance(part, known)]
    if unknown or expression.free_symbols - {X}:
        raise ValueError(f"{text} is not written for Maxima")
    plain = expression.subs({sp.E: sp.Symbol("%e"), sp.pi: sp.Symbol("%pi")})
    return sp.sstr(plain, order="none").replace("**", "^")


def add(parent: ET.Element, name: str, text: str = "", **attributes: str) -> ET.Element:
    """Add an element with a text."""
    element = ET.SubElement(parent, name, attributes)
    element.text = text
    return element


def add_text(parent: ET.Element, name: str, text: str, form: str = "") -> None:
    """Add an element of Moodle: its text stands in an element of its own."""
    add(add(parent, name, **({"format": form} if form else {})), "text", text)


def add_node(tree: ET.Element, number: int, answer: str, score: int, feedback: str, following: int) -> None:
    """Add a node of the response tree: is the answer equal to this one?"""
    node = add(tree, "node")
    for name, text in (("name", str(number)), ("answertest", "AlgEquiv"), ("sans", "ans1"), ("tans", answer),
                       ("testoptions", ""), ("quiet", "1")):  # fmt: skip
        add(node, name, text)
    branches = (("true", score, -1, feedback), ("false", 0, following, ""))
    for branch, points, after, words in branches:
        add(node, f"{branch}scoremode", "=")
        add(node, f"{branch}score", str(points))
        add(node, f"{branch}penalty", "")
        add(node, f"{branch}nextnode", str(after))
        add(node, f"{branch}answernote", f"prt1-{number}-{branch[0].upper()}")
        add_text(node, f"{branch}feedback", words, "html")


def add_test(question: ET.Element, number: int, answer: str, score: int, note: str) -> None:
    """Add a test: an answer with its score and its note."""
    test = add(question, "qtest")
    add(test, "testcase", str(number))
    given = add(test, "testinput")
    add(given, "name", "ans1")
    add(given, "value", answer)
    expected = add(test, "expected")
    for name, text in (("name", "prt1"), ("expectedscore", str(score)), ("expectedpenalty", "0" if score else "0.1"),
                       ("expectedanswernote", note)):  # fmt: skip
        add(expected, name, text)


def question_of(topic: str, level: int, seed: int) -> ET.Element:
    """Return a question of STACK for an exercise."""
    exercise = sa.exercise(topic, level, seed)
    formula, answer = maxima(exercise.question.f), maxima(exercise.answer)
    wrong = [(maxima(mistake.text), mistake.diagnosis) for mistake in exercise.wrong_answers]
    question = ET.Element("question", type="stack")
    add_text(question, "name", f"{topic}, level {level}, number {seed}")
    ask = "<p>Differentiate {@f@} with respect to {@x@}.</p><p>[[input:ans1]]</p><div>[[validation:ans1]]</div>"
    add_text(question, "questiontext", ask, "html")
    steps = "".join(f"<li>{escape(hint)}</li>" for hint in exercise.hints)
    add_text(question, "generalfeedback", f"<ol>{steps}</ol><p>The answer is {{@ta@}}.</p>", "html")
    add(question, "defaultgrade", "1")
    add(question, "penalty", "0.1")
    add_text(question, "questionvariables", f"f:{formula};\nta:{answer};")
    add_text(question, "specificfeedback", "<p>[[feedback:prt1]]</p>", "html")
    add_text(question, "questionnote", "{@f@}")
    add(question, "questionsimplify", "1")
    field = add(question, "input")
    for name, text in (("name", "ans1"), ("type", "algebraic"), ("tans", "ta"), ("boxsize", "25"), ("insertstars", "1"),
                       ("mustverify", "1"), ("showvalidation", "1")):  # fmt: skip
        add(field, name, text)
    tree = add(question, "prt")
    add(tree, "name", "prt1")
    add(tree, "value", "1")
    add(tree, "autosimplify", "1")
    add_text(tree, "feedbackvariables", "")
    add_node(tree, 0, "ta", 1, "", 1)
    for number, (text, diagnosis) in enumerate(wrong, 1):
        add_node(tree, number, text, 0, f"<p>{escape(diagnosis)}</p>", number + 1 if number < len(wrong) else -1)
    add_test(question, 1, "ta", 1, "prt1-0-T")
    for number, (text, _) in enumerate(wrong, 1):
        add_test(question, number + 1, text, 0, f"prt1-{number}-T")
    return question


def questions(topic: str, level: int, seeds: list[int]) -> str:
    """Return the questions as Moodle XML."""
    quiz = ET.Element("quiz")
    quiz.extend([question_of(topic, level, seed) for seed in seeds])
    ET.indent(quiz)
    return ET.tostring(quiz, encoding="unicode", xml_declaration=True) + "\n"


def main(arguments: list[str]) -> None:
    """Print the questions that are asked for."""
    parser = argparse.ArgumentParser(description="Write questions of STACK as Moodle XML.")
    parser.add_argument("topic", help="such as 'chain rule'; symad exercise lists all")
    parser.add_argument("--level", type=int, default=1, help="1 to 3")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="one question for each")
    options = parser.parse_args(arguments)
    print(questions(options.topic, options.level, options.seeds), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
