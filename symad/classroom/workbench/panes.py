"""The panes of the page: the HTML of each with its links, and the files that it can be saved as."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

from codegen.records import dataclass
from symad.classroom.comparison.compare import compare
from symad.classroom.confusion.exhibit import exhibit, own_exhibit
from symad.classroom.derivation.derivation_steps import steps
from symad.classroom.drawing.boxes import GraphReading, tree_operations
from symad.classroom.drawing.draw import drawing_of, marks_of
from symad.classroom.expansion.displayed import Definitions, check_entries
from symad.classroom.expansion.epsilon import Along
from symad.classroom.expansion.expand import Expansion, expand
from symad.classroom.workbench.links import Links, Numbers
from symad.classroom.workbench.page_results import ErrorRange, ProgramListing, code_listing, error_range, losses
from symad.classroom.workbench.questions import TRANSFORMS, Question, Study
from symad.classroom.workbench.titles import EXPORTS, TITLES
from symad.derivatives.level import Epsilon
from symad.display import html
from symad.display.document import Block, Document, Formula, Heading, Marked, Paragraph
from symad.display.notation import counted
from symad.display.shown import Shown
from symad.errors import ArgumentError, WorkbenchError
from symad.graph.sympy_io import to_sympy

READ_OPERATIONS = 60  # of a derivative that is written out as a formula
REACH = 1.0  # of the range of errors on each side of the point, relative to 1 + |x|
BY_HAND = ("grad", "derivative", "hessian")  # derived as in a textbook
WHOLE = ("value", "grad", "derivative", "grad-grad", "jvp-grad", "hessian")  # all derivatives of one order

Progress = Callable[[str], None]


@dataclass(frozen=True)
class PaneContent:
    """The content of a pane: the result, its document with links, and data for the page."""

    shown: Shown
    document: Document
    more: Mapping[str, Any] = field(default_factory=dict)
    linked: bool = True


@dataclass(frozen=True)
class QuestionReading(Shown):
    """The reading of a question: the function, the chosen derivative, its value at the point."""

    heading: str
    blocks: Document

    @property
    def title(self) -> str:
        return self.heading

    def document(self) -> Document:
        return (Heading(self.title, 1), *self.blocks)


def answer(study: Study, question: Question, pane: str, progress: Progress) -> dict[str, Any]:
    """Return the content of a pane for the page: title, HTML, and the forms of its files."""
    content = content_of(study, question, pane, progress)
    fragment = html.bare(content.document)
    return {
        "title": content.shown.title,
        "html": study.links.marked(fragment) if content.linked else fragment,
        "forms": [form for form in content.shown.file_forms() if form in EXPORTS],
        **content.more,
    }


def exported(study: Study, question: Question, pane: str, suffix: str) -> bytes:
    """Return a pane as a file; ArgumentError for an unknown form."""
    return file_of(content_of(study, question, pane, lambda stage: None).shown, f"{pane}{suffix}")


def file_of(shown: Shown, name: str) -> bytes:
    """Return what a result is saved as under a name."""
    with tempfile.TemporaryDirectory() as folder:
        return shown.save(Path(folder) / name).read_bytes()


def content_of(study: Study, question: Question, pane: str, progress: Progress) -> PaneContent:
    """Return the content of a pane; ArgumentError for an unknown pane.

    >>> question = Question(text="sin(x)^2 + sin(x)", transform="value")
    >>> content_of(Study(question), question, "program", print).shown.before
    4
    """
    if pane not in PANES:
        raise ArgumentError(f"the pane {pane[:40]!r}", do=f"the panes are {', '.join(PANES)}")
    return PANES[pane](study, question, progress)


def _formula(study: Study, question: Question, progress: Progress) -> PaneContent:
    """The reading of the question, and the answer."""
    subject, title = study.subject, TITLES[question.transform]
    explanation, links = study.explanation, study.links
    arguments = ", ".join(map(str, subject.symbols))
    blocks: list[Block] = []
    if subject.expression is not None:
        blocks.append(Formula(subject.expression, sp.Function("f")(*subject.symbols)))
    at = ", ".join(f"{name} = {value:.6g}" for name, value in zip(arguments.split(", "), subject.flat, strict=False))
    blocks += [Paragraph(Marked(note, "strong")) for note in subject.notes]
    words = TRANSFORMS[question.transform].words
    blocks.append(Paragraph(f"{words[:1].upper()}{words[1:]}."))
    rows = [explanation.sharing.there[node] for node in explanation.outputs]
    result = study.transformed(subject.numbers)
    if derivation := _derivation(study, question):
        blocks += derivation
    elif tree_operations(links.plain, rows) <= READ_OPERATIONS:
        blocks.append(_result(study, question, list(to_sympy(links.plain, rows)), np.shape(result)))
    blocks.append(Paragraph((f"At {at}: ", Marked(_numbers(result), "strong"))))
    statement = f"{counted(explanation.primal_operations, 'operation')} in f, {explanation.operations} in the result"
    blocks.append(Paragraph(Marked(f"{statement}, {counted(len(explanation.levels), 'level')}.", "muted")))
    shown = QuestionReading(f"{title} of {subject.name}", tuple(blocks))
    more = {"variables": [str(symbol) for symbol in subject.symbols], "point": at}
    return PaneContent(shown, links.linked(shown.document()), more)


def _derivation(study: Study, question: Question) -> Document:
    """Return the derivation of a formula as a textbook writes it; nothing where nobody would do it by hand."""
    subject, outputs = study.subject, study.explanation.outputs
    if subject.expression is None or question.transform not in BY_HAND:
        return ()
    x = subject.symbols[0] if len(subject.symbols) == 1 else list(subject.symbols)
    try:
        *lines, last = steps(subject.expression, x, order=study.order).document()[2:]  # without the title and f itself
    except WorkbenchError:
        return ()
    if isinstance(last, Formula) and len(outputs) == 1:
        last = replace(last, nodes=study.links.of_node(outputs[0]))
    return (*lines, last)


def _result(study: Study, question: Question, entries: Sequence[sp.Expr], shape: tuple[int, ...]) -> Formula:
    """Return the result, f''(x) for one variable; InvariantError where it is not the derivative of the formula."""
    expression, symbols, left = study.subject.expression, study.subject.symbols, sp.Symbol("result")
    if expression is not None and question.transform in WHOLE:
        order = 0 if question.transform == "value" else study.order
        if len(entries) == len(symbols) ** order:
            check_entries(entries, order, Definitions("f", symbols, expression))
        if len(symbols) == 1:
            left = Along(sp.Symbol("f"), sp.Integer(order), symbols[0])
    return Formula(_in_shape(entries, shape), left)


def _in_shape(written: Sequence[sp.Expr], shape: tuple[int, ...]) -> sp.Basic:
    """Return formulas as a number, a matrix or a row."""
    if len(written) == 1:
        return written[0]
    if len(shape) == 2 and shape[0] * shape[1] == len(written):
        return sp.ImmutableMatrix(*shape, list(written))
    return sp.Tuple(*written)


def _numbers(result: Any) -> str:
    text = str(result.toarray() if hasattr(result, "toarray") else result)
    return text if len(text) <= 400 else f"{text[:400]}…"


def _expansion(study: Study, question: Question, progress: Progress) -> PaneContent:
    subject = study.subject
    if subject.expression is None:
        shown = expand(subject.function, subject.numbers, study.directions())
    else:
        point = list(subject.symbols) if len(subject.symbols) > 1 else subject.symbols[0]
        shown = expand(subject.expression, point, study.directions())
    document = shown.document()
    try:
        linked = study.links.linked(document, _names(study.links, shown))
    except WorkbenchError as error:  # a function without a formula still has an expansion
        note = Paragraph(Marked(f"Not linked with the other panes: {error}", "muted"))
        return PaneContent(shown, (*document, note), {"steps": len(document) + 1}, linked=False)
    return PaneContent(shown, linked, {"steps": len(document)})


def _names(links: Links, shown: Expansion) -> dict[str, Numbers]:
    """Return numbers for the names on an expansion page: 1 for directions, computed values for lines."""
    known: dict[str, Numbers] = {}
    for direction in shown.directions.values():
        for symbol in (s for part in direction for s in sp.sympify(part).free_symbols if not isinstance(s, Epsilon)):
            known[str(symbol)] = np.ones(len(links.points))
    for step in (step for level in shown.lines(80) for step in level):
        for name, formula in ((step.name, step.line), (step.part_name, step.part)):
            if (numbers := links.numbers_of(formula, known)) is not None:
                known[str(name)] = numbers
    return known


def _stages(study: Study, question: Question, progress: Progress) -> PaneContent:
    explanation = study.explanation
    return PaneContent(explanation, study.links.linked(explanation.document()))


def _graph(study: Study, question: Question, progress: Progress) -> PaneContent:
    explanation, links = study.explanation, study.links
    book = explanation.book
    nodes = range(len(book.graph))
    marks = marks_of(book.history, nodes)
    levels = {node: " ".join(dict.fromkeys(f"L{level}" for _, level in marks[node] if level)) for node in nodes}
    known = {node for node in nodes if book.knows(node)}
    outputs = explanation.outputs
    results = ("result",) if len(outputs) == 1 else tuple(f"[{k}]" for k in range(len(outputs)))
    names = {node: book.name(node) for node in known if book.is_line(node) or node in book.inputs}
    marks_of_nodes = {node: f"{links.of_node(node)} {levels[node]}".strip() for node in known}
    reading = GraphReading(book.graph, outputs, results, marks, names, marks_of_nodes)
    shown = drawing_of(reading, "both" if question.sharing == "both" else "after")
    return PaneContent(shown, shown.document())


def _program(study: Study, question: Question, progress: Progress) -> PaneContent:
    explanation = study.explanation
    results = tuple(dict.fromkeys(explanation.sharing.there[node] for node in explanation.outputs))
    shown = ProgramListing(explanation.name, study.links.plain, _row_names(study), results)
    return PaneContent(shown, shown.document())


def _row_names(study: Study) -> dict[int, sp.Basic]:
    """Return the names of the shared program's rows: the first variable with that value."""
    names: dict[int, sp.Basic] = {}
    for node in study.links.nodes:
        names.setdefault(study.explanation.sharing.there[node], study.explanation.book.symbol(node))
    return names


def _code(study: Study, question: Question, progress: Progress) -> PaneContent:
    progress("compiling")
    kernel = study.kernel
    progress("reading the code")
    shown = code_listing(kernel, study.links.points, study.links.of_numbers)
    return PaneContent(shown, shown.document())


def _errors(study: Study, question: Question, progress: Progress) -> PaneContent:
    subject = study.subject
    index = question.variable
    if not 0 <= index < len(subject.flat):
        raise ArgumentError(f"variable {index}", do=f"there are {len(subject.flat)}")
    at = subject.flat[index]
    reach = REACH * (1 + abs(at))
    ends = float(question.low or at - reach), float(question.high or at + reach)
    progress("compiling")
    variable = str(subject.symbols[index])
    shown = error_range(study.kernel, subject.at, subject.flat, index, ends, variable, progress)
    if (worst := shown.worst) is not None:
        shown = _with_losses(study, shown, [*subject.flat[:index], shown.xs[worst], *subject.flat[index + 1 :]])
    return PaneContent(shown, shown.document(), {"range": list(ends), "variable": variable})


def _with_losses(study: Study, shown: ErrorRange, point: list[float]) -> ErrorRange:
    explanation, names = study.explanation, _row_names(study)
    there = explanation.sharing.there
    inputs = [there[node] for node in explanation.book.inputs]
    losing = losses(study.links.plain, [there[node] for node in explanation.outputs], inputs, point)
    return replace(shown, losses=tuple(loss for loss in losing if loss.row in names), names=names)


def _routes(study: Study, question: Question, progress: Progress) -> PaneContent:
    subject = study.subject
    order = {"value": 1}.get(question.transform, study.order)
    progress(f"every route to order {order}")
    if subject.expression is None:
        shown = compare(subject.function, subject.numbers, order)
    else:
        shown = compare(subject.expression, dict(zip(subject.symbols, subject.flat, strict=True)), order)
    return PaneContent(shown, shown.document())


def _confusion(study: Study, question: Question, progress: Progress) -> PaneContent:
    subject = study.subject
    if subject.expression is not None:
        shown = own_exhibit(subject.expression, subject.symbols, subject.flat)
    else:
        if len(subject.flat) != 1:
            raise ArgumentError(f"the exhibit of a function of {len(subject.flat)} numbers", do="open one of one")
        f, at = subject.function, subject.flat[0]
        shown = exhibit(lambda d: d(lambda x: x * d(lambda y: x * f(y), x), at))
    return PaneContent(shown, shown.document())


PANES: dict[str, Callable[[Study, Question, Progress], PaneContent]] = {
    "formula": _formula, "expansion": _expansion, "stages": _stages, "graph": _graph, "program": _program,
    "code": _code, "errors": _errors, "routes": _routes, "confusion": _confusion,
}  # fmt: skip
