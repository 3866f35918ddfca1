"""The checked answer and its page: a verdict on each line, the first wrong line, a witness, the mistake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import sympy as sp

from codegen.records import dataclass
from symad.classroom.answers.answer_lines import AnswerStep
from symad.classroom.answers.answer_problem import AnswerProblem
from symad.classroom.answers.mistakes import Mistake
from symad.classroom.equality.equality import Agreement, Witness
from symad.classroom.expansion.epsilon import Levels, monomial, readable
from symad.display.document import Block, Cell, Document, Formula, Heading, Inline, Marked, Paragraph, Table
from symad.display.shown import Shown

_VERDICTS: dict[bool | None, Cell] = {
    True: Marked("✓ right", "right"),
    False: Marked("✗ wrong", "wrong"),
    None: Marked("? undecided", "strong"),
}


class AnswerLine(NamedTuple):
    """A line of an answer: its number from 1, and its text."""

    number: int
    text: str


@dataclass(frozen=True)
class Judged:
    """A step of an answer: its verdict, and the evidence for each of its terms."""

    step: AnswerStep
    right: bool | None
    terms: Mapping[Levels, Agreement]
    written: Mapping[Levels, sp.Expr]
    expected: Mapping[Levels, sp.Expr]
    carried: bool = False  # wrong only because the step before is wrong


@dataclass(frozen=True)
class CheckedAnswer(Shown):
    """A checked answer: `right` is None if it is undecided.

    `line` is the first wrong one (number and text), `term` the first wrong term in it, `expected` and `written` its
    coefficients, `mistakes` what leads from one to the other, `witness` a point at which the two differ. `finished` is
    False where a right answer is not multiplied out yet. The truth value is the verdict. `steps` has the verdict on
    every side of every equation. `parts` are the entries of a vector or matrix, None for a missing one.
    """

    problem: AnswerProblem
    steps: tuple[Judged, ...]
    right: bool | None
    finished: bool = True
    line: AnswerLine | None = None
    term: sp.Expr | None = None
    expected: sp.Expr | None = None
    written: sp.Expr | None = None
    mistakes: tuple[Mistake, ...] = ()
    witness: Witness | None = None
    parts: tuple[CheckedAnswer | None, ...] = ()
    explanation: tuple[Formula, ...] = ()  # the derivation of the right answer

    def __repr__(self) -> str:
        return self.text()

    def __bool__(self) -> bool:
        """Whether the answer is right; False if undecided."""
        return self.right is True

    @property
    def is_revealed(self) -> bool:
        """Whether its page may show the right answer."""
        return self.problem.reveal == "always" or (self.problem.reveal == "after" and self.right is True)

    @property
    def title(self) -> str:
        return "Answer checked"

    def document(self) -> Document:
        """Return the remarks of a teacher."""
        problem = self.problem
        asked = (problem.formula, sp.Function(problem.name)(*problem.symbols))
        if problem.dependent_name:  # an equation
            asked = (sp.S.Zero, problem.formula)
        return (
            Heading("Answer checked", 1),
            Formula(*map(problem.named, asked)),
            Paragraph(("asked: ", _asked(problem))),
            _lines(self),
            *(Paragraph(f"{note}.") for note in dict.fromkeys(note for step in self.steps for note in step.step.notes)),
            *_remark(self),
            *self.explanation,
        )


def remarked(
    problem: AnswerProblem, steps: Sequence[Judged], step: AnswerStep, kind: str, *words: Inline,
    right: bool | None = False,
) -> CheckedAnswer:  # fmt: skip
    """Return an answer with one remark on the line of a step."""
    line = AnswerLine(step.line, step.text)
    return CheckedAnswer(problem, tuple(steps), right, line=line, mistakes=(Mistake(kind, words),))


def term_of(problem: AnswerProblem, levels: Levels) -> sp.Expr:
    if problem.expansion:
        return monomial(levels)
    symbol = problem.named(problem.symbols[0])
    return sp.Derivative(sp.Function(problem.name)(symbol), (symbol, len(levels)))


def _asked(problem: AnswerProblem) -> sp.Expr:
    """Return the question, as written above the answer."""
    if not problem.expansion:
        return term_of(problem, problem.terms[0])
    renamed = dict(zip(problem.epsilons, map(monomial, [(k + 1,) for k in range(problem.count)]), strict=True))
    return sp.Function(problem.name)(*(part.xreplace(renamed) for part in problem.moved))


def _lines(answer: CheckedAnswer) -> Table:
    """Return the answer with a verdict on each step. A left side that restates the question has none."""
    rows: list[tuple[Cell, ...]] = []
    for judgement in answer.steps:
        line = AnswerLine(judgement.step.line, judgement.step.text)
        verdict = "" if judgement.step.restated else _VERDICTS[judgement.right and line != answer.line]
        if judgement.carried and line != answer.line:
            verdict = Marked("follows from the line before", "muted")
        typeset = "\\" in line.text or "$" in line.text
        understood = answer.problem.named(judgement.step.expression) if typeset and not judgement.step.restated else ""
        rows.append((str(line.number), Marked(line.text, "code"), understood, verdict))
    if not any(row[2] for row in rows):
        return Table(("line", "written", ""), tuple((row[0], row[1], row[3]) for row in rows), "rll")
    return Table(("line", "written", "understood as", ""), tuple(rows), "rlll")


def _remark(answer: CheckedAnswer) -> list[Block]:
    """Return the remark below the lines."""
    if answer.right:
        return _praise(answer)
    if answer.line is None:
        return [Paragraph(mistake.words) for mistake in answer.mistakes]
    number = answer.line.number
    before = [judgement.right for judgement in answer.steps if judgement.step.line < number]
    start = "Everything before it is right. " if before and all(before) else ""
    term = (", at the term ", answer.term) if answer.problem.expansion and answer.term is not None else ()
    if answer.right is None and answer.mistakes:
        return [Paragraph((Marked(f"Line {number}", "strong"), ": ", *answer.mistakes[0].words, "."))]
    if answer.right is None and any(judgement.step.condition for judgement in answer.steps):
        words = " is not right everywhere: a teacher has to see whether its condition is meant."
        return [Paragraph((Marked(f"Line {number}", "strong"), words))]
    if answer.right is None:
        words = " cannot be decided: no random point gives a real number on both sides, and no algebra settles it."
        return [Paragraph((Marked(f"Line {number}", "strong"), words))]
    look = Paragraph((start, "Look at ", Marked(f"line {number}", "wrong"), *term, "."))
    if answer.written is None or answer.expected is None:
        return [look, *_reasons(answer.mistakes, sp.S.Zero)]
    if not answer.is_revealed:
        return [look, *_witnessed(answer.problem, answer.witness, reveal=False), *_reasons(answer.mistakes, None)]
    written, expected = map(answer.problem.named, (answer.written, answer.expected))
    compared = Table(("you wrote", "it is"), ((written, expected),), "ll")
    return [look, compared, *_witnessed(answer.problem, answer.witness), *_reasons(answer.mistakes, written - expected)]


def _witnessed(problem: AnswerProblem, witness: Witness | None, reveal: bool = True) -> list[Block]:
    """Return a sentence with a point at which the two sides differ."""
    if witness is None:
        return []
    right, written = witness.values
    if witness.at is None:
        at: list[Inline] = ["For a polynomial in the place of each function"]
    else:
        at = ["At " if witness.at else "As a decimal number"]
        for number, (symbol, value) in enumerate(witness.at.items()):
            at += [", " if number else "", problem.named(symbol), " = ", value]
    return [Paragraph((*at, f" yours is {written}, and the right one is {right if reveal else 'another number'}."))]


def _reasons(mistakes: Sequence[Mistake], gap: sp.Expr | None) -> list[Block]:
    if not mistakes and gap is None:
        return [Paragraph("No usual mistake leads there.")]
    if not mistakes and gap is not None:
        return [Paragraph("No usual mistake leads there. Yours minus the right one is"), Formula(readable(gap))]
    if len(mistakes) == 1:
        return [Paragraph((Marked(f"{mistakes[0].kind}: ", "strong"), *mistakes[0].words, "."))]
    rows: list[tuple[Cell, ...]] = [(Marked(mistake.kind, "strong"), mistake.words) for mistake in mistakes]
    return [Paragraph("It may have come about in one of these ways:"), Table((), tuple(rows), "ll")]


def _praise(answer: CheckedAnswer) -> list[Block]:
    ways = dict.fromkeys(str(agreement) for step in answer.steps for agreement in step.terms.values())
    blocks: list[Block] = [Paragraph((Marked("Right.", "right"), f" Checked {' and '.join(ways)}."))]
    if not answer.finished and answer.steps[-1].step.named:
        blocks.append(Paragraph(("It holds for every ", answer.problem.name, ": now put in its formula.")))
    elif not answer.finished and answer.steps[-1].step.derives:
        blocks.append(Paragraph("A derivative in it is still to be carried out."))
    elif not answer.finished:
        blocks.append(Paragraph("It is not multiplied out yet: write it as a sum of coefficients times epsilons."))
    return blocks
