"""Every notation that formulas are read in, with its reading or why it is asked back.

python -m tests.notation_table              print the table; exit status 1 if a notation is read otherwise
python -m tests.notation_table --write      write docs/notation.md
python -m tests.notation_table --mutations N    mutate the notations N times: read or refused, none slower than 2 s
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

import sympy as sp

from codegen import heads
from symad.classroom.answers.answer_check import check_derivative, check_expansion
from symad.classroom.answers.answer_lines import steps_of
from symad.classroom.answers.answer_problem import derivative_problem, expansion_problem
from symad.classroom.formulas.formula_names import declared
from symad.classroom.formulas.read import read_formula
from symad.errors import ArgumentError
from tests.support.mutated_text import mutated
from tests.support.notations import ANSWERS, ASKED_BACK, FORMULAS, NAMES, PRECEDENCE, Answer

PAGE = Path(__file__).parents[1] / "docs" / "notation.md"
SLOW = 2.0
_WORDS = {
    **{name: getattr(sp, name) for name in ("sin", "cos", "tan", "exp", "log", "sqrt", "Abs", "sign", "asin", "atan")},
    **{name: sp.Function(name) for name in ("f", "g", "h")},
    "cot": sp.cot, "acot": sp.acot, "asec": sp.asec, "acoth": sp.acoth, "sech": sp.sech,
    "cbrt": heads.cbrt, "log2": heads.log2, "log10": heads.log10, "pi": sp.pi,
    "factorial": sp.factorial, "E": sp.E, "Derivative": sp.Derivative, "Subs": sp.Subs, "Rational": sp.Rational,
}  # fmt: skip


def expected(plain: str) -> sp.Expr:
    """Return what SymPy's own parser makes of a formula in SymPy's notation."""
    made = sp.parse_expr(plain, {**_WORDS, **declared(NAMES)})
    return made.doit() if made.has(sp.Derivative) and not made.has(sp.core.function.AppliedUndef) else made


def is_read(text: str, plain: str) -> bool:
    """Return whether a notation is read as it should be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = read_formula(text, [name for name in NAMES if not text.startswith(f"{name} =")])
    wanted = expected(plain)
    return bool(found == wanted or sp.simplify((found - wanted).doit()) == 0)


def refusal(text: str) -> str:
    """Return what is said of a notation that is asked back, without the place; "" if it is read."""
    try:
        read_formula(text, NAMES)
    except ArgumentError as error:
        return str(error).splitlines()[0].partition(": ")[2]
    return ""


def refused() -> Iterator[tuple[str, str]]:
    """Yield what should be read, and is not, with what is said of it."""
    for text in (text for rows in FORMULAS.values() for text in rows):
        try:
            is_read(text, "x")
        except ArgumentError as error:
            yield text, str(error).splitlines()[0]
    for row in ANSWERS:
        try:
            is_right(row)
        except ArgumentError as error:
            yield row.line, str(error).splitlines()[0]


def is_right(row: Answer) -> bool:
    """Return whether a line of an answer is found right."""
    if row.directions:
        called = row.epsilons or None
        return check_expansion(row.line, row.question, "x", list(row.directions), epsilons=called).right is True
    return check_derivative(row.line, row.question, "x", order=row.order).right is True


def sides(row: Answer) -> str:
    """Return how the sides of a line of an answer are read."""
    if row.directions:
        problem = expansion_problem(row.question, "x", list(row.directions), None, row.epsilons or None)
    else:
        problem = derivative_problem(row.question, "x", row.order)
    return " = ".join(
        "what is asked for" if step.restated and not step.derives else str(problem.named(step.expression))
        for step in steps_of(row.line, problem)
    )


def page() -> str:
    """Return docs/notation.md."""
    table = ["| sign | binds | so |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in PRECEDENCE)]
    lines = [_HEAD.replace("{precedence}", "\n".join(table))]
    for title, rows in FORMULAS.items():
        lines += [f"## {title}\n", "| written | read as |", "|---|---|"]
        lines += [f"| {_code(text)} | {_code(plain)} |" for text, plain in rows.items()]
        lines.append("")
    lines += [_ANSWERS, "| question | line of an answer | its sides |", "|---|---|---|"]
    lines += [f"| {_code(row.question)} | {_code(row.line)} | {_code(sides(row))} |" for row in ANSWERS]
    lines += ["", _ASKED, "| written | what is said |", "|---|---|"]
    lines += [f"| {_code(text)} | {_cell(refusal(text))} |" for text in ASKED_BACK]
    return "\n".join([*lines, ""])


_HEAD = """# Mathematics as it is written

Made by `python -m tests.notation_table --write`; `tests/symad/classroom/formulas/test_notations.py` holds every row.
One reader reads the formulas of all commands and functions. It evaluates nothing but what stands in its tables, takes
no formula of more than 4,000 characters, and says with a caret where it cannot go on. What has two readings is asked
back with both written out. A decimal comma is told (`NotationWarning`, a line of the command line, a line beside an
answer).

## Precedence

What binds first stands first.

{precedence}

Asked back, because books differ: `1/2x`, `1/xy`, `e^2x`, `e^xy`, `x^1/2`, `sin x y`, `sin x/2`, `√2x`. A name of
several letters that is declared beside a name for each of its letters is asked back too. A word that is no declared
name and no known function is never multiplied out in silence: a note says so, or it is asked back.
"""
_ANSWERS = """## Answers

Lines of answers have left sides too, epsilons of several spellings (or those that the question names), a remainder,
and notes in brackets. A derivative that is written down, but not carried out, is compared, and is not the end. Lines
may give names to parts (`u = x^2, v = sin x`), which later lines use (`u'v + uv'`, `dy/du · du/dx`).
"""
_ASKED = """## What is asked back
"""


def _code(text: str) -> str:
    ticks = "``" if "`" in text else "`"
    return ticks + text.replace("|", "\\|") + ticks


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;").replace("_", "\\_").replace("$", "\\$")


@dataclass
class Mutations:
    """What became of mutated notations: so many were read, refused, failed, slow; causes of refusals; the slowest."""

    found: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, str] = (0.0, "")

    def tried(self, text: str, read: Callable[[], object]) -> None:
        """Read one; a failure is any error but an ArgumentError, and more than two seconds."""
        start = time.process_time()
        try:
            read()
            self.found["read"] += 1
        except ArgumentError as error:
            self.found["refused"] += 1
            self.causes[cause(str(error))] += 1
        except Exception as error:
            self.found["failed"] += 1
            print(f"failed: {text!r}: {type(error).__name__}: {error}", flush=True)
        seconds = time.process_time() - start
        self.slowest = max(self.slowest, (seconds, text))
        if seconds > SLOW:
            self.found["slow"] += 1
            print(f"slow: {text!r}: {seconds:.1f} s", flush=True)

    def report(self) -> str:
        """Return the numbers, the slowest, and the causes of refusals, the most frequent first."""
        counts = ", ".join(f"{number} {what}" for what, number in sorted(self.found.items()))
        slowest = f"slowest: {self.slowest[0]:.2f} s for {self.slowest[1]!r}"
        return "\n".join((counts, slowest, *(f"{number:7} {what}" for what, number in self.causes.most_common(12))))


def cause(message: str) -> str:
    """Return what is said of a formula without the place and what was met there.

    >>> cause("formula, column 5: the name 'x': it stands for nothing here; known are no names")
    'the name ...: it stands for nothing here'
    """
    said = message.splitlines()[0].partition(": ")[2] or message.splitlines()[0]
    return re.sub(r"'.*?'|\".*?\"|\d+", "...", said).split(";")[0][:90]


def mutations(count: int, seed: int) -> Mutations:
    """Read mutated notations and lines of answers."""
    source, found = Random(seed), Mutations()
    texts = [text for rows in FORMULAS.values() for text in rows] + list(ASKED_BACK)
    lines = [(row, row.line) for row in ANSWERS]
    warnings.simplefilter("ignore")
    for number in range(count):
        row, line = source.choice(lines)
        text, other = source.choice(texts), source.choice(texts)
        text = mutated(source, text if source.random() < 0.5 else text + source.choice(["", " ", "+", "*"]) + other)
        line = mutated(source, line)
        if number % 4:
            names, others = source.choice([NAMES, ["x"], []]), source.random() < 0.5
            found.tried(text, partial(read_formula, text, names, others=others))
        elif row.directions:
            found.tried(line, partial(check_expansion, line, row.question, "x", list(row.directions)))
        else:
            found.tried(line, partial(check_derivative, line, row.question, "x", order=row.order))
    return found


def main() -> int:
    """Print the table, write the page, or mutate."""
    parser = argparse.ArgumentParser(prog="python -m tests.notation_table")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--mutations", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.write:
        PAGE.write_text(page(), encoding="utf-8")
    if options.mutations is not None:
        made = mutations(options.mutations, options.seed)
        print(made.report())
        return bool(made.found["failed"] or made.found["slow"])
    wrong = [f"{text}: {said}" for text, said in refused()] or [
        text for rows in FORMULAS.values() for text, plain in rows.items() if not is_read(text, plain)
    ]
    wrong = wrong if any(": " in each for each in wrong) else wrong + [row.line for row in ANSWERS if not is_right(row)]
    wrong += [f"not asked back: {text}" for text in ASKED_BACK if not refusal(text)]
    if not wrong:
        print(page())
    print("\n".join(f"read otherwise: {text}" for text in wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
