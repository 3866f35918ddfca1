"""`symad grade`: the answers of a class to one question, their marks and pages."""

from __future__ import annotations

import argparse
from pathlib import Path

from symad.classroom.grading.class_grading import grade_class, read_answers, write_marks
from symad.classroom.grading.question import read_question
from symad.commands.showing import add_json, add_seconds, print_json, told


def declare_grade(command: argparse.ArgumentParser) -> None:
    """Declare the options of `symad grade`."""
    command.add_argument("answers", metavar="FOLDER or CSV", help="text files, one for each pupil, or a table")
    command.add_argument("--question", metavar="FILE", required=True, type=Path, help="a TOML file: formula = ...")
    command.add_argument("--out", metavar="FILE", type=Path, help="write the marks as CSV")
    command.add_argument("--pages", metavar="FOLDER", type=Path, help="write a page for the class and for each pupil")
    command.add_argument("--name-column", default="", metavar="NAME", help="the column of names (default name)")
    command.add_argument("--answer-column", default="", metavar="NAME", help="the column of answers (default answer)")
    add_json(command)
    add_seconds(command, 3600.0)


def run_grade(options: argparse.Namespace) -> int:
    """Carry out `symad grade`."""
    question = read_question(options.question)
    answers = read_answers(options.answers, options.name_column, options.answer_column)
    graded = grade_class(question, answers, progress=options.progress)
    written = [] if options.out is None else [write_marks(graded, options.out)]
    if options.pages is not None:
        written.append(graded.write_pages(options.pages)[0])
    options.progress.end()
    told(written, options)
    if options.json:
        rows = [{"name": answer.name, "mark": answer.mark, "verdict": answer.verdict, "mistakes": list(answer.mistakes),
                 "problem": answer.problem} for answer in graded.graded]  # fmt: skip
        print_json("grade", {"question": question.name, "points": question.points, "graded": rows})
    elif not written:
        print(graded)
    return 0 if all(answer.mark is not None for answer in graded.graded) else 1
