"""Sweeps over columns: the same numbers as straight-line code of every entry, for every width and shape."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import symad as sa
from codegen import compile_program, evaluate
from codegen.emission.straight import SweepPlan, lanes_of
from codegen.ir.program import Input, Output, Program
from codegen.ir.unroll import unroll
from codegen.lowering.halves import UnitVectorSums, split
from codegen.lowering.passes import prepare
from codegen.options import Options
from symad.compiling.candidates import seeded_program
from symad.compiling.native import carry_out


def network(x):
    rng = np.random.default_rng(5)
    first, second = rng.normal(size=(6, x.size)), rng.normal(size=(1, 6))
    return (second @ np.tanh(first @ x))[0]


def branching(x):
    return np.sum(np.where(x > 0.2, x**3 * x[0], np.exp(x) * x[-1])) * np.max(x)


def quadratic(x):
    return x @ x + 2 * x[0] * x[-1]


FUNCTIONS = {"network": network, "branching": branching, "quadratic": quadratic, "linear": lambda x: 2.0 * np.sum(x)}


def point(n: int) -> np.ndarray:
    return np.random.default_rng(n).uniform(-1, 1, n)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.thinned
def test_hessians_by_sweep_agree_with_straight_line_code(name: str, n: int) -> None:
    f, x = FUNCTIONS[name], point(n)
    swept = sa.compile(sa.hessian(f), x, strategy="sweep")
    assert swept.stats.strategy == "sweep"
    wanted = sa.compile(sa.hessian(f), x, strategy="straight")(x)
    np.testing.assert_allclose(swept(x), wanted, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(swept(x), sa.hessian(f, mode="rev-fwd")(x), rtol=1e-13, atol=1e-13)
    out = np.full((n, n), np.nan)
    assert swept(x, out=out) is out
    np.testing.assert_array_equal(out, swept(x))


@pytest.mark.parametrize("tier", ["default", "fast"])
@pytest.mark.parametrize("chunk", [None, 7])
def test_tiers_and_chunks_never_change_a_bit(tier: str, chunk: int | None) -> None:
    x = point(11)
    base = sa.compile(sa.hessian(branching), x, strategy="sweep")
    other = carry_out(sa.plan(sa.hessian(branching), x, strategy="sweep"), tier=tier, chunk=chunk)
    np.testing.assert_array_equal(other(x), base(x))


def test_jacobians_of_tall_wide_and_square_functions() -> None:
    matrix = np.random.default_rng(3).normal(size=(9, 5))
    for f, n in ((lambda x: np.sin(matrix @ x), 5), (lambda x: np.exp(matrix.T @ x), 9), (lambda x: x * x[::-1], 6)):
        x = point(n)
        kernel = sa.compile(sa.jacobian(f), x, strategy="sweep")
        np.testing.assert_allclose(kernel(x), sa.jacrev(f)(x), rtol=1e-14, atol=1e-15)


def test_arguments_beside_the_swept_one_and_matrices_as_argument() -> None:
    def f(a, x, b):
        return np.sum(np.sin(a * x) * np.roll(x, 1, axis=0)) * b

    a, x, b = 0.7, point(6).reshape(3, 2), 1.5
    kernel = sa.compile(sa.hessian(f, 1), a, x, b, strategy="sweep")
    assert kernel(a, x, b).shape == (3, 2, 3, 2)
    np.testing.assert_allclose(kernel(a, x, b), sa.hessian(f, 1)(a, x, b), rtol=1e-13, atol=1e-14)


def test_unrolled_it_is_the_same_matrix() -> None:
    x = point(5)
    for f in FUNCTIONS.values():
        program = seeded_program(sa.hessian(f), (x,), 1000)
        assert program is not None
        flat = unroll(program)
        assert not flat.seeded
        assert flat.inputs == program.arguments
        output = flat.outputs[0]
        matrix = np.zeros(output.size)
        places = range(output.size) if output.positions is None else output.positions
        matrix[list(places)] = evaluate(flat, output.rows, dict(enumerate(x.tolist())))
        np.testing.assert_allclose(matrix.reshape(5, 5), compile_program(program)(x), rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(compile_program(flat)(x), compile_program(program)(x), rtol=1e-13, atol=1e-14)


def test_a_seed_that_is_zero_is_structural_when_unrolled() -> None:
    program = seeded_program(sa.hessian(lambda x: np.sum(x**3)), (point(4),), 10)
    assert unroll(program).outputs[0].positions == (0, 5, 10, 15)


def test_a_choice_between_zeros_is_structural_when_unrolled() -> None:
    """Otherwise the NaN of a coefficient in another term would spread over the row."""

    def f(x):
        return np.where(x[-1] > 0, np.log(x[-1]), 0.0) ** x[-1] + np.sum(x**1.5) * x[0]

    x = np.array([0.2, 0.5, 0.7, 0.9])
    straight, swept = (sa.compile(sa.hessian(f), x, dtype="float32", strategy=way)(x) for way in ("straight", "sweep"))
    np.testing.assert_array_equal(np.isnan(straight), np.eye(4) * [0, 0, 0, 1] == 1)
    np.testing.assert_allclose(swept, straight, rtol=1e-5)


def test_outputs_that_do_not_depend_on_the_seed_are_written_once() -> None:
    x, v = sp.symbols("x v")
    inputs = (Input("x", ()), Input("v", (1,)))
    outputs = (Output((), (3,)), Output((1, 1), (2,), (0,), swept=True))
    program = Program(
        [sp.Symbol, sp.Symbol, sp.Mul, sp.sin], [(), (), (0, 1), (0,)], {0: x, 1: v}, inputs, outputs, seeded=True
    )
    value, column = compile_program(program)(2.0)
    assert (value, column.tolist()) == (np.sin(2.0), [[2.0]])


def test_the_residuals_are_what_both_halves_share() -> None:
    program = seeded_program(sa.hessian(network), (point(8),), 10)
    halves = split(program, prepare(program, Options()).fused)
    assert halves.residuals == halves.once.stores[-1][1] + 1
    assert "call" in halves.once.count()
    assert not {"call", "div", "sqrt"} & set(halves.columns.count())  # the columns are linear in the seed


@pytest.mark.parametrize(("n", "width"), [(1, 1), (2, 2), (3, 2), (4, 4), (7, 4)])
def test_lanes_are_filled(n: int, width: int) -> None:
    program = Program([], [], {}, (Input("seed", (n,)),), (), seeded=True)
    assert lanes_of(program).width == min(width, lanes_of(replace(program, inputs=(Input("seed", (64,)),))).width)


def test_structural_zero_rows_are_zero() -> None:
    def f(x):
        return x[0] ** 2 * x[2]

    x = point(5)
    kernel = sa.compile(sa.hessian(f), x, strategy="sweep")
    np.testing.assert_array_equal(kernel(x, out=np.full((5, 5), np.nan)), sa.hessian(f)(x))


def test_large_workspaces_come_from_the_heap() -> None:
    x = point(3000)  # values that pass from chunk to chunk: 64 bytes each
    kernel = sa.compile(sa.jacobian(lambda x: np.stack([np.sum(np.sin(x)), np.sum(x)])), x, strategy="sweep")
    assert "call ptr @malloc" in kernel.llvm
    np.testing.assert_allclose(kernel(x), [np.cos(x), np.ones(3000)], rtol=1e-15)


def test_the_workspace_has_a_place_for_every_lane_of_the_columns() -> None:
    program = seeded_program(sa.hessian(network), (point(11),), 10)
    halves = split(program, prepare(program, Options()).fused)
    plan = SweepPlan.of(program, halves, 7)
    numbers = plan.columns.workspace * plan.lanes.width
    assert f"alloca [{8 * numbers} x i8]" in plan.emit().text
    assert plan.workspace == halves.residuals + plan.once.workspace + numbers


def root_of_one(x):
    return np.sqrt(x[0]) + np.sum(np.outer(x, x)) * np.sum(x)


def all_roots(x):
    return np.sum(np.sqrt(x)) * np.sum(x) + np.prod(x)


def quotients(x):
    return np.log(x[0]) * x[1] + np.sum(np.tanh(x)) ** 2 + 1 / x[2]


def prefixes(x):
    return np.sum(np.sqrt(np.cumsum(x)) * np.cumsum(x[::-1]) / x) - np.sum(x) / np.sqrt(x[-1])


@pytest.mark.parametrize("f", [root_of_one, all_roots, quotients, prefixes])
@pytest.mark.parametrize("fma", [True, False])
def test_an_infinite_coefficient_stays_in_its_own_columns(f, fma: bool) -> None:
    for n in (3, 5, 9):
        usual = np.random.default_rng(n).uniform(0.5, 2, n)
        sweep = sa.compile(sa.hessian(f), usual, strategy="sweep", fma=fma)
        lines = sa.compile(sa.hessian(f, mode="fwd-rev"), usual, fma=fma)
        for zeros in ([0], [0, 2], [2], [n - 1], list(range(n))):
            x = usual.copy()
            x[zeros] = 0.0
            swept, straight = sweep(x), lines(x)
            np.testing.assert_array_equal(np.isnan(swept), np.isnan(straight))
            np.testing.assert_allclose(swept, straight, rtol=1e-12, atol=1e-12)


def test_products_with_constants_need_no_guard() -> None:
    kernel = sa.compile(sa.hessian(network), point(8), strategy="sweep")
    assert kernel.stats.machine_operations.get("select", 0) == 6  # those of six tanh
    assert "select <" not in columns_of(kernel.llvm)
    assert "select <" in columns_of(sa.compile(sa.hessian(all_roots), point(8), strategy="sweep").llvm)


def columns_of(text: str) -> str:
    """The functions of the swept half."""
    return "".join(function for function in text.split("define ") if "@columns" in function.split("(")[0])


def test_guards_of_recurrences_grow_with_the_recurrence() -> None:
    """A test of columns 0 to i and n to n + i is made of sums of beginnings: their number is linear in n."""

    def f(z):
        n = len(z) // 2
        c, y = 0.0, 0.0
        for i in range(n):
            m = 1 / (4 + z[i] ** 2 - c)
            c, y = m, (z[n + i] - y) * m
        return y * y

    rng = np.random.default_rng(0)
    executed = {}
    for n in (40, 80):
        z = rng.normal(size=2 * n)
        kernel = sa.compile(sa.hessian(f), z, strategy="sweep")
        np.testing.assert_allclose(kernel(z), sa.hessian(f)(z), rtol=1e-9, atol=1e-14)
        executed[n] = kernel.stats.executed / (2 * n)  # of a column
    assert executed[80] < 2.2 * executed[40]


@pytest.mark.parametrize("mask", [0b1, 0b110, 0b111111111111, 0b11111111110000, 0b1011111111111101111111111101])
def test_sums_of_unit_vectors_are_1_in_the_columns_of_their_mask(mask: int) -> None:
    seeds = [1 << k for k in range(30) if k != 7]  # a column that nothing depends on
    mask &= sum(seeds)
    sums = UnitVectorSums(seeds)
    values = {seed: np.array([float(seed == 1 << k) for k in range(30)]) for seed in seeds}
    for wanted in (mask, sum(seeds), mask):
        for done, operation, first, second in sums.of(wanted):
            value = values[first] + values[second] if operation == "add" else values[first] - values[second]
            np.testing.assert_array_equal(values.setdefault(done, value), value)
        np.testing.assert_array_equal(values[wanted], [float(bool(wanted >> k & 1)) for k in range(30)])
