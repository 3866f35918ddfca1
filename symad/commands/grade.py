"""`symad grade`: the answers of a class to one question, their marks and pages."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from symad.classroom.grading.class_grading import grade_class, read_answers, write_marks
from symad.classroom.grading.question import read_question
from symad.commands.as_json import print_json
from symad.commands.names import HELP


def add_command(commands: Any) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "grade",
        help=HELP["grade"],
        description="Check every answer in a folder of text files, or in a table with columns name and answer, against "
        "the question in a TOML file (formula, directions, order, points...). Answers that cannot be read are "
        "reported with the place. Exit status 0 when all were read and decided, 1 otherwise.",
    )
    command.add_argument("answers", metavar="FOLDER or CSV", help="text files, one for each pupil, or a table")
    command.add_argument("--question", metavar="FILE", required=True, type=Path, help="a TOML file: formula = ...")
    command.add_argument("--out", metavar="FILE", type=Path, help="write the marks as CSV")
    command.add_argument("--pages", metavar="FOLDER", type=Path, help="write a page for the class and for each pupil")
    command.add_argument("--name-column", default="", metavar="NAME", help="the column of names (default name)")
    command.add_argument("--answer-column", default="", metavar="NAME", help="the column of answers (default answer)")
    command.add_argument("--json", action="store_true", help="print what was found as JSON, for programs")
    command.add_argument("--max-seconds", type=float, default=3600.0, help="give up after this time (default 3600)")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Carry out `symad grade`."""
    question = read_question(options.question)
    answers = read_answers(options.answers, options.name_column, options.answer_column)
    graded = grade_class(question, answers, progress=options.progress)
    written = [] if options.out is None else [write_marks(graded, options.out)]
    if options.pages is not None:
        written.append(graded.write_pages(options.pages)[0])
    options.progress.end()
    for path in written:
        print(f"written: {path}", file=sys.stderr if options.json else sys.stdout)
    if options.json:
        rows = [{"name": answer.name, "mark": answer.mark, "verdict": answer.verdict, "mistakes": list(answer.mistakes),
                 "problem": answer.problem} for answer in graded.graded]  # fmt: skip
        print_json("grade", {"question": question.name, "points": question.points, "graded": rows})
    elif not written:
        print(graded)
    return 0 if all(answer.mark is not None for answer in graded.graded) else 1
