"""The price model: every head has a price, more costs more, and what was measured comes out in the order it had."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import sympy as sp

import symad as sa
from benchmarks.price import Found, fit
from benchmarks.problems import cluster, make_network
from benchmarks.structure.problems import lennard_jones
from codegen import heads
from codegen.functions.intrinsics import INTRINSICS
from codegen.functions.lane_table import FORMULAS
from codegen.ir.region import RolledProgram
from codegen.pricing.price import (
    halves_of,
    rolled_work,
    rows_work,
    straight_work,
    sweep_work,
    unrolled_work,
)
from codegen.pricing.price_table import NANOSECONDS, SECONDS, Price, lowered, on_lanes, operations

TREES = [(sp.Add, 2, None), (sp.Mul, 2, None), (sp.Pow, 2, -1.0), (sp.Pow, 2, 0.5), (sp.exp, 1, None)]


@pytest.mark.parametrize("head", INTRINSICS, ids=lambda head: head.__name__)
def test_every_head_has_a_price(head):
    """By what it is lowered to, with any number of operands."""
    for arity in (1, 2, 3, 4):
        found = lowered((head, arity, None))
        assert {name for name, _ in found} <= set(NANOSECONDS)
        assert all(count > 0 for _, count in found)


def test_functions_on_lanes_are_priced_where_there_are_formulas_and_nowhere_else():
    rest = {"operation", "sum", "div", "sqrt", "load", "store"}
    assert {name.removeprefix("lanes ") for name in NANOSECONDS if name.startswith("lanes ")} - rest == set(FORMULAS)
    assert set(FORMULAS) <= set(NANOSECONDS)
    for head, symbol in ((heads.exp2, "exp2"), (heads.log2, "log2"), (heads.log10, "log10")):
        assert on_lanes(operations({(head, 1, None): 1})) == Counter({f"lanes {symbol}": 1})
    assert on_lanes(operations({(sp.Pow, 2, None): 1})) == Counter({"lanes pow": 1})


def test_a_function_has_one_price_in_straight_lines_sweeps_and_loops():
    """A tanh was an operation of 0.08 ns in a sweep and 8 ns in a loop; four lanes take no longer than four numbers."""
    tanh, product = (operations({(head, arity, None): 1}) for head, arity in ((sp.tanh, 1), (sp.Mul, 2)))
    price = {kind: sum(NANOSECONDS[name] * n for name, n in found.items()) for kind, found in
             (("tanh", tanh), ("product", product), ("lanes", on_lanes(tanh)))}  # fmt: skip
    assert price["tanh"] > 20 * price["product"]
    assert price["tanh"] / 4 < price["lanes"] < 4 * price["tanh"]


@pytest.mark.parametrize("kind", TREES, ids=str)
def test_more_costs_more(kind):
    few, many = (rows_work({(sp.Add, 2, "sum"): 9, kind: count}).price for count in (5, 50))
    assert few.call < many.call
    assert few.build < many.build
    some = {(sp.Add, 2, "sum"): 9}
    for more in ({"stored": 10}, {"zeros": 100}, {"waits": 50.0}):
        assert rows_work(some, **more).price.call > rows_work(some).price.call
    assert all(value > 0 for value in (*NANOSECONDS.values(), *SECONDS.values()))


def test_code_that_leaves_the_caches_is_dear():
    """Measured, dense Hessians of 80, 100 and 200 atoms in straight lines: 0.22, 0.34 and 0.7 ns an operation."""
    singly = [rows_work({(sp.Mul, 2, None): count}).price.call / count for count in (200_000, 400_000, 1_600_000)]
    assert 2 * singly[0] < singly[1] < singly[2] / 1.5


def test_prices_add_up():
    both = Price(1.0, 2.0) + Price(3.0, 4.0)
    assert both == Price(4.0, 6.0)
    assert both.total(1e9) == 10.0
    work = rows_work({(sp.exp, 1, None): 3})
    assert (work + work).price.call == 2 * work.price.call


def test_functions_are_priced_in_groups_where_they_do_not_wait_for_each_other():
    """Written out and from loops: of 100 tangents side by side four go at once, 100 in a chain are calls one by one."""

    def chain(x):
        for _ in range(100):
            x = np.tan(x) * 0.5 + 0.1
        return x

    side_by_side = lambda x: np.sum(np.tan(x))  # noqa: E731
    for f, x, amount in ((side_by_side, np.ones(100), {"lanes tan": 25}), (chain, 0.5, {"tan": 100})):
        written = straight_work(straight(f, x)).call
        unrolled = unrolled_work(rolled(f, x)).call
        for call in (written, unrolled):
            assert {name: count for name, count in call.items() if name.endswith("tan")} == amount


def rolled(f, *args) -> RolledProgram:
    program = sa.compile(f, *args, roll="always", cache=False).program
    assert isinstance(program, RolledProgram)
    return program


def straight(f, *args):
    return sa.compile(f, *args, roll="never", strategy="straight", cache=False).program


def test_lennard_jones_over_a_flat_x():
    """Measured: 20 atoms 2.1 us in straight lines, 1.4 in loops, 0.19 and 0.07 s to build; 10 atoms 0.8 and 0.5 us."""
    for atoms in (10, 20):
        x = cluster(atoms)
        loops, lines = (
            rolled_work(rolled(sa.hessian(lennard_jones), x)).price,
            straight_work(straight(sa.hessian(lennard_jones), x)).price,
        )
        assert 0.6 < loops.call / lines.call < 1.6
        assert loops.build < lines.build / 2
        assert loops.total() < lines.total()
    assert sa.compile(sa.hessian(lennard_jones), x).stats.strategy == "rolled"


def test_a_network_is_not_written_out():
    """Measured: 0.9 us as a sweep, 1.0 us in loops, 2.1 us in straight lines; its lower triangle takes as long."""
    x, f = np.linspace(-1, 1, 8), make_network()
    swept = sa.compile(sa.hessian(f), x, strategy="sweep", cache=False).program
    sweep, lines = sweep_work(swept, 8).price, straight_work(straight(sa.hessian(f), x)).price
    triangle = straight_work(straight(sa.hessian(f, sparse="lower"), x)).price
    assert sweep.call < 0.7 * lines.call
    assert sweep.call < 0.7 * triangle.call
    assert sweep.total() < 1.1 * rolled_work(rolled(sa.hessian(f), x)).price.total()
    assert sweep.total() < 1.1 * rolled_work(rolled(sa.hessian(f, sparse="lower"), x)).price.total()


def test_a_dense_result_costs_its_zeros():
    x = np.linspace(-1, 1, 100)

    def f(x):
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2)

    for work, made in ((straight_work, straight), (rolled_work, rolled)):
        dense, triangle = work(made(sa.hessian(f), x)), work(made(sa.hessian(f, sparse="lower"), x))
        assert dense.price.call > 3 * triangle.price.call


def test_the_straight_lines_of_loops_are_priced_as_those_that_are_written():
    x = np.linspace(0.1, 1, 300)
    for f in (lambda x: np.sum(np.sin(x) * x), lambda x: np.exp(x) / (1 + x), lambda x: x[1:] * x[:-1]):
        guess, lines = unrolled_work(rolled(f, x)).price, straight_work(straight(f, x)).price
        assert 0.8 < guess.call / lines.call < 1.25


def test_a_sweep_counts_the_rows_that_its_columns_reach():
    """Against following every column by itself."""
    f = sa.hessian(lambda x: np.sum(np.sin(x)) * x[0] + np.prod(x[2:]))
    program = sa.compile(f, np.ones(6), strategy="sweep", cache=False).program
    start, once, entries = program.input_count - 6, set(range(len(program))), 0
    for column in range(6):
        reached = {start + column}
        for row, operands in enumerate(program.operands):
            if reached & set(operands):
                reached.add(row)
                entries += 1
        once -= reached
    halves = halves_of(program)
    assert halves.entries.total() == entries
    assert halves.once.total() == sum(bool(program.operands[row]) for row in once)
    assert halves.written_out(symmetric=False).total() == entries + halves.once.total()
    assert abs(halves.written_out(symmetric=True).total() - entries / 2 - halves.once.total()) <= len(halves.entries)


def test_the_fit_finds_the_prices_that_times_were_made_with():
    rng, prices = np.random.default_rng(4), {"a": 1.0, "b": 20.0, "unseen": 3.0}
    amounts = [{"a": float(a), "b": float(b)} for a, b in rng.integers(10, 1000, (40, 2))]
    found = [
        Found(f"row {k}", "straight", 50 + 2 * one["a"] + 5 * one["b"], 50.0, 1.0, one, {})
        for k, one in enumerate(amounts)
    ]
    made = fit(found, prices, lambda one: one.call, lambda one: one.nanoseconds, [50.0] * len(found))
    assert made["a"] == pytest.approx(2, rel=0.1)
    assert made["b"] == pytest.approx(5, rel=0.1)
    assert made["unseen"] == 3.0
