"""Groups: the same bits as single operations, in every place a value can come from and go to."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import sympy as sp

import codegen.lowering.group
from codegen import compile_program, program_from_sympy
from codegen.emission.straight import StraightPlan
from codegen.functions.libraries import FUNCTIONS, no_vector_symbol, vector_symbol, widths
from codegen.lowering.group import group_operations
from codegen.lowering.lower import Lowered
from codegen.lowering.passes import prepare
from codegen.options import Options

x = sp.symbols("x:9")
EXPRESSIONS: dict[str, list[Any]] = {
    "quotients": [u / (v * v + 2) for u, v in pairwise(x)],
    "calls with constants": [k * sp.exp(u / k) + k for k, u in enumerate(x, 2)],
    "roots of sums": [sp.sqrt(u * u + v * v + 1) - u for u in x[:4] for v in x[4:7]],
    "selects": [sp.Piecewise((1 / (u + 3), u > 0), (sp.tanh(u) * 2, u > -1), (u, True)) for u in x],
    "truths read outside": [sp.Piecewise((sp.exp(u), u / 3 > 0.1), (0, True)) + sp.sin(u / 3) for u in x],
    "one after the other": [sp.exp(sp.sin(u) / (1 + sp.exp(sp.sin(u)))) for u in x],
    "of each other": [sp.sin(x[0]), sp.sin(sp.sin(x[0])), sp.sin(sp.sin(sp.sin(x[0]))), sp.sin(x[1]), sp.sin(x[2])],
    "a prime number": [sp.tanh(sum(x[: k + 1])) / (1 + x[k] ** 2) for k in range(7)],
    "equal outputs": [1 / (x[k % 3] + 5) for k in range(9)],
    "sums of quotients": [sum(u / (u + v + 5) for u, v in pairwise(x)), sum(1 / (u + 7) for u in x)],
    "minima": [sp.Min(u / 3, v / 7) + sp.Abs(u / v) for u, v in pairwise(x)],
}


def program_of(name: str) -> Any:
    return program_from_sympy([x], EXPRESSIONS[name])


def points() -> Any:
    random = np.random.default_rng(5)
    return [random.uniform(-2, 2, 9) for _ in range(5)] + [np.array([0.0, -0.0, 1e-320, 1e300, -1e300, 1, -1, 3, 700])]


def ungrouped(program: Any, **options: Any) -> Any:
    """A kernel of lanes computes every point by single operations."""
    return compile_program(program, lanes=1, **options)


@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.parametrize("chunk", [None, 1, 7])
def test_the_bits_of_single_operations(name: str, chunk: int | None) -> None:
    program = program_of(name)
    kernel = compile_program(program, chunk=chunk)
    for point in points():
        single = kernel.batch(point[None])
        for value, wanted in zip(kernel(point), single, strict=True):
            np.testing.assert_array_equal(value, wanted[0])
            assert np.signbit(value) == np.signbit(wanted[0])


def grouped(name: str, accuracy: Any = "strict") -> Lowered:
    prepared = prepare(program_of(name), Options(accuracy=accuracy))
    return group_operations(prepared.fused, widths(), vector_symbol if accuracy == "fast" else no_vector_symbol)


def wide(lowered: Lowered) -> list[Any]:
    return [lowered.rows[row][1][1:] for row in lowered.live() if lowered.rows[row][0] == "wide"]


@pytest.mark.parametrize("name", ["quotients", "roots of sums", "selects", "one after the other", "sums of quotients"])
def test_there_are_groups(name: str) -> None:
    assert len(wide(grouped(name, "fast"))) > 2


def test_quotients_go_into_groups_where_calls_do_not_pay() -> None:
    """A scalar call gains nothing in a group; of 8 calls of sinh, it is the quotients that are left."""
    program = program_from_sympy([x], [sp.sinh(u) / (v + 2) for u, v in pairwise(x)])
    found = wide(group_operations(prepare(program, Options()).fused, widths(), no_vector_symbol))
    assert ("div",) in found
    assert ("call", "sinh") not in found


def test_calls_of_each_other_are_no_group() -> None:
    calls = [shape for shape in wide(grouped("of each other", "fast")) if shape[0] == "call"]
    assert len(calls) <= 1


def test_two_quotients_are_not_worth_a_group() -> None:
    program = program_from_sympy([x], [x[0] / x[1], x[2] / x[3]])
    fused = prepare(program, Options()).fused
    assert group_operations(fused, widths(), no_vector_symbol) is fused


@pytest.mark.parametrize(("denominators", "together"), [
    ("pqrs", True), ("pqr", True), ("pqqq", True), ("pqpq", False), ("ppqq", False), ("pppp", False),
])  # fmt: skip
def test_operands_of_quotients_go_side_by_side_if_only_the_last_one_repeats(denominators: str, together: bool) -> None:
    """Three quotients are padded with the last one, so are their operands."""
    rows: list[Any] = [("input", k) for k in range(8)]
    rows += [("add", 0, k) for k in range(1, 5)]  # p, q, r and s
    rows += [("div", 4 + k, 8 + "pqrs".index(name)) for k, name in enumerate(denominators)]
    written = Lowered(rows, [(0, k, 12 + k) for k in range(len(denominators))], 12, 0, 0)
    shapes = wide(group_operations(written, (2, 4), no_vector_symbol))
    assert shapes == ([("add",)] if together else []) + [("div",)]


def test_what_reads_quotients_goes_side_by_side_too() -> None:
    rows: list[Any] = [("input", k) for k in range(8)]
    rows += [("div", k, 4 + k) for k in range(4)] + [("mul", 8 + k, 8 + k) for k in range(4)]
    written = Lowered(rows, [(0, k, 12 + k) for k in range(4)], 8, 0, 0)
    assert wide(group_operations(written, (2, 4), no_vector_symbol)) == [("div",), ("mul",)]


def test_groups_do_not_depend_on_the_run() -> None:
    assert grouped("selects").rows == grouped("selects").rows


def test_code_of_several_points_has_no_groups() -> None:
    plan = StraightPlan.of(program_of("quotients"), prepare(program_of("quotients"), Options()).fused)
    assert "insertelement" in plan.emit().text
    assert "gather" not in [row[0] for row in plan.lowered.rows]


@pytest.mark.parametrize("tier", ["default", "fast"])
def test_tiers_agree(tier: Any) -> None:
    for name in EXPRESSIONS:
        one, other = (compile_program(program_of(name), tier=tier, accuracy=a) for a in ("strict", "fast"))
        for point in points()[:5]:
            np.testing.assert_allclose(one(point), other(point), rtol=1e-13)


def test_exact_programs_agree_in_both_accuracies() -> None:
    """Without calls and algebra, fast is strict: groups round nothing."""
    program = program_of("quotients")
    strict, fast = (compile_program(program, accuracy=accuracy) for accuracy in ("strict", "fast"))
    assert not set(FUNCTIONS) & {row[1] for row in prepare(program, Options()).fused.rows if row[0] == "call"}
    for point in points():
        np.testing.assert_array_equal(strict(point), fast(point))


def columns_read_elsewhere(steps: int) -> Lowered:
    """Four columns of differences under quotients, where most of what reads each product is no column."""
    rows: list[Any] = [("input", k) for k in range(8)]
    columns, elsewhere = [0, 1, 2, 3], list[int]()

    def row(*made: Any) -> int:
        rows.append(made)
        return len(rows) - 1

    for _ in range(steps):
        products = [row("mul", value, 4 + k) for k, value in enumerate(columns)]
        elsewhere += [row("add", product, other) for product in products for other in range(3)]
        scaled = [row("mul", value, value) for value in columns]
        columns = [row("sub", value, product) for value, product in zip(scaled, products, strict=True)]
    quotients = [row("div", 4 + k, value) for k, value in enumerate(columns)]
    total = elsewhere[0]
    for value in elsewhere[1:]:
        total = row("add", total, value)
    return Lowered(rows, [(0, k, one) for k, one in enumerate([*quotients, total])], 0, 0, 0)


def test_what_is_read_elsewhere_is_not_looked_at_in_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates wait for the row that keeps them from being a group."""
    looks: list[Any] = []
    pop = codegen.lowering.group.heappop
    monkeypatch.setattr(codegen.lowering.group, "heappop", lambda heap: looks.append(heap) or pop(heap))  # type: ignore[func-returns-value]
    counts = []
    for steps in (20, 80):
        looks.clear()
        assert group_operations(columns_read_elsewhere(steps), (2, 4), no_vector_symbol).rows
        counts.append(len(looks))
    assert 20 < counts[1] <= 5 * counts[0]
