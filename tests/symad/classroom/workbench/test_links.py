"""What the panes have in common: names, numbers and machine code are linked, and what is linked has equal values."""

from __future__ import annotations

import re

import numpy as np
import pytest
import sympy as sp

from symad.classroom.code_reading.llvm_lines import Machine, body_of
from symad.classroom.code_reading.machine_code import instructions_of, located_assembly
from symad.classroom.workbench.page_results import ProgramListing
from symad.classroom.workbench.panes import PANES, answer, content_of
from symad.classroom.workbench.questions import TRANSFORMS, Question, Study
from symad.classroom.workbench.titles import PANES as NAMES, TITLES

FORMULAS = ["x*sin(x)", "exp(x*sin(x))", "sin(x*y)", "x/(1+x^2)", "log(x)*sqrt(x^2+1)+Abs(x)", "tanh(x*y)/(x+y^2)"]
MANY = " + ".join(f"sin({k}*x*y)*exp(y/{k})" for k in range(1, 8))


def study(text: str, transform: str = "grad", **more: object) -> Study:
    return Study(Question(text=text, transform=transform, **more))  # type: ignore[arg-type]


def test_tables_have_the_same_names() -> None:
    assert tuple(PANES) == NAMES
    assert list(TRANSFORMS) == list(TITLES)


@pytest.mark.parametrize("transform", ["grad", "hessian", "grad-grad", "jvp-grad"])
@pytest.mark.parametrize("text", [*FORMULAS, MANY])
def test_each_line_of_code_that_computes_a_number_is_carried_out(text: str, transform: str) -> None:
    """The numbers of IR that is carried out here are those of the kernel: what it stores is the derivative."""
    found = study(text, transform)
    points = np.array(found.links.points)
    machine = Machine([[points[:, k] for k in range(points.shape[1])]])
    stored = []
    for line in body_of(found.kernel.llvm):
        lanes = machine.line(line)
        stored += list(lanes) if line.startswith("store") else []
    expected = [np.ravel(found.kernel(found.subject.at(point))) for point in found.links.points]
    assert np.sort(np.array(stored, dtype=float).T) == pytest.approx(np.sort(np.array(expected)), rel=1e-9)


@pytest.mark.parametrize("text", FORMULAS)
def test_instructions_are_the_kernels_own(text: str) -> None:
    """Numbering the lines of IR changes no instruction, and nearly every one says where it comes from."""
    kernel = study(text).kernel
    located = located_assembly(kernel)
    assert [each.text for each in located] == instructions_of(kernel.assembly)
    lines = body_of(kernel.llvm)
    assert sum(0 < each.line <= len(lines) for each in located) > len(located) / 2
    for each in located:
        if re.match(r"v?mulsd|fmul", each.text) and each.line:
            assert re.search("fmul|fma", lines[each.line - 1]), (each, lines[each.line - 1])


@pytest.mark.parametrize("text", FORMULAS)
def test_linked_values_are_equal(text: str) -> None:
    """A line of code is linked to values of the graph that have its numbers, or those with the other sign."""
    found = study(text, "hessian")
    links = found.links
    linked = 0
    points = np.array(links.points)
    machine = Machine([[points[:, k] for k in range(points.shape[1])]])
    for line in body_of(found.kernel.llvm):
        for lane in machine.line(line):
            marks = links.of_numbers(np.asarray(lane, dtype=float)) if np.ndim(lane) else ""
            linked += bool(marks)
            for mark in marks.split():
                assert np.abs(links.numbers[int(mark[1:])]) == pytest.approx(np.abs(lane), rel=1e-8)
    assert linked > 3


def test_constants_are_linked_to_nothing() -> None:
    links = study("x*sin(x)").links
    assert links.of_numbers(np.ones(3)) == ""
    assert links.of_numbers(np.array([1.0, np.nan, 2.0])) == ""
    assert links.of_expression(sp.Integer(2)) == ""


def test_an_expression_is_recognised_by_its_numbers() -> None:
    x = sp.Symbol("x", real=True)
    links = study("x*sin(x)").links
    result = links.of_node(links.explanation.outputs[0])
    assert result in links.of_expression(sp.diff(x * sp.sin(x), x)).split()
    assert links.of_expression(sp.cosh(x)) == ""
    assert links.of_expression(sp.Function("g")(x)) == ""


@pytest.mark.parametrize("pane", ["expansion", "stages", "graph", "program", "code"])
def test_every_pane_says_what_the_result_is(pane: str) -> None:
    """The result of the gradient has its mark in each of these panes, so that pointing at one lights all."""
    found = study("exp(x*sin(x))")
    told = answer(found, found.question, pane, lambda stage: None)
    mark = found.links.of_node(found.explanation.outputs[0])
    assert re.search(rf'data-node="[^"]*\b{mark}\b', told["html"])


def test_levels_are_marked() -> None:
    found = study("x*sin(x)", "grad-grad")
    for pane in ("expansion", "stages", "graph"):
        html = answer(found, found.question, pane, lambda stage: None)["html"]
        for level in ("L1", "L2"):
            assert re.search(rf'data-node="[^"]*\b{level}\b', html), (pane, level)


def test_names_are_those_of_the_user() -> None:
    found = study("alpha*sin(beta)")
    assert [str(symbol) for symbol in found.explanation.book.inputs.values()] == ["alpha", "beta"]
    graph = answer(found, found.question, "graph", lambda stage: None)["html"]
    assert ">alpha<" in graph
    assert ">beta<" in graph
    assert "argument_0" not in graph


def test_a_hessian_is_written_as_a_matrix() -> None:
    found = study("x^3 + x*y^2", "hessian")
    text = content_of(found, found.question, "formula", lambda stage: None).shown.text(100)
    assert "[[6x, 2y], [2y, 2x]]" in text


def test_the_first_pane_derives_as_a_textbook_does() -> None:
    found = study("exp(x sin(x))", "grad")
    text = content_of(found, found.question, "formula", lambda stage: None).shown.text(100)
    assert "[chain rule: outer e^u, inner u = x·sin(x)]" in text
    assert "f′(x) = e^(x·sin(x))·(sin(x) + x·cos(x))" in text
    assert text.count("f(x) = ") == 1


def test_program_before_and_after_sharing() -> None:
    found = study("sin(x)^2 + sin(x)", "value")
    rows = [found.explanation.sharing.there[node] for node in found.explanation.outputs]
    symbols = {found.explanation.sharing.there[n]: found.explanation.book.symbol(n) for n in found.links.nodes}
    listing = ProgramListing("f", found.links.plain, symbols, tuple(rows))
    assert (listing.before, listing.after) == (4, 3)
    text = listing.text(100)
    assert text.count("sin(x)") == 3
    assert "used 2 times" in text


def test_a_tower_is_listed_with_a_limit() -> None:
    """A formula whose tree grows twofold with each level is listed up to a limit, without recursion."""
    tower = "x"
    for _ in range(8):
        tower = f"sin({tower})*({tower})"
    found = study(tower)
    told = answer(found, found.question, "program", lambda stage: None)
    assert "the first 200 of" in told["html"]
