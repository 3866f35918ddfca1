"""Windows: programs that keep the last rounds only compute the same numbers, to the last bit."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

import symad as sa
from codegen import compile_program, unroll
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.evaluation.interpret import evaluate
from codegen.ir.check import check_rolled
from codegen.ir.region import Nest, RolledProgram
from codegen.ir.tables import Affine, Indexed
from codegen.loops.optimise.contraction import contracted, zeros
from symad.derivatives.loops.checkpoints import Checkpoints
from symad.derivatives.loops.pullback import gradient, pullback
from symad.derivatives.loops.pushforward import pushforward
from tests.support.derive_cases import CASES, Made, memory, region, run as table
from tests.support.derive_flat import agree, flat_function, points
from tests.support.derive_strict import run as carried_out

WIDTH = 4


def steps_of_rounds(
    rounds: int, lag: int = 1, down: bool = False, stored: int = WIDTH, again: int = 1
) -> RolledProgram:
    """Rounds that read what those up to `lag` before have stored, from low places to high ones or `down`.

    Each stores to some places of its frame; the others are 0. `again` is how often all is run.
    """
    step, size = (-WIDTH if down else WIDTH), WIDTH * (rounds + lag)
    base = size - WIDTH if down else 0
    made = Made({"x": (WIDTH,)}, {"f": (WIDTH,)}, {"h": (size,)})
    order = np.array([1, 3, 2, 0])

    def frame(k: int, count: int = WIDTH) -> Affine:
        return table(count, base + step * k, 1, (0, step))

    body = region(
        lambda *h: (sum(np.cos(a) * (k + 1) for k, a in enumerate(h)) + h[0] * 0.5,), stored,
        [made.at("h", frame(k, stored)) for k in range(lag)]
        + [made.at("h", Indexed(order[:stored] + base + step * (lag - 1), (0, step)))],
        [made.to(0, "h", frame(lag, stored))],
    )  # fmt: skip
    initial = [
        region(
            lambda x: (x * x,), WIDTH, [made.at("x", table(WIDTH))], [made.to(0, "h", table(WIDTH, base + step * k))]
        )
        for k in range(lag)
    ]
    total = region(
        lambda a: (a,), WIDTH, [made.at("h", table(WIDTH, base + step * (rounds + lag - 1)))],
        [made.to(0, "f", table(WIDTH), "add")],
    )  # fmt: skip
    return made.program(Nest(again, (*initial, Nest(rounds, (body,)), total)))


@pytest.mark.parametrize("down", [False, True])
def test_what_the_first_round_reads_is_zero_before(down: bool) -> None:
    """Nothing has written the places that the first round reads; in a window, later rounds write to them."""
    rounds, step = 6, -WIDTH if down else WIDTH
    base, end = (WIDTH * rounds, 0) if down else (0, WIDTH * rounds)
    made = Made({"x": (WIDTH,)}, {"f": (WIDTH,)}, {"h": (WIDTH * (rounds + 1),)})
    body = region(
        lambda x, h: (x * x + np.sin(h),), WIDTH,
        [made.at("x", table(WIDTH)), made.at("h", Affine(base, 1, WIDTH, (step,)))],
        [made.to(0, "h", Affine(base + step, 1, WIDTH, (step,)))],
    )  # fmt: skip
    last = region(lambda h: (h,), WIDTH, [made.at("h", table(WIDTH, end))], [made.to(0, "f", table(WIDTH))])
    program = made.program(Nest(rounds, (body,)), last)
    small, arrays = contracted(program, 1), points(program)
    check_rolled(program)
    check_rolled(small)
    assert memory(small) == 8 * WIDTH * 2
    expected = carried_out(program, arrays)
    np.testing.assert_array_equal(carried_out(small, arrays, scratch=True), expected)
    np.testing.assert_array_equal(evaluate_rolled(small, arrays), expected)
    kernel = compile_program(small, cache=False)
    np.testing.assert_allclose(np.ravel(kernel(*arrays)), np.ravel(expected[0]), rtol=1e-14)


@pytest.mark.parametrize("rounds", [1, 2, 3, 7, 8])
@pytest.mark.parametrize(("lag", "down", "stored", "again"), [
    (1, False, WIDTH, 1), (1, True, WIDTH, 2), (2, False, WIDTH, 2), (3, True, WIDTH, 1), (1, False, 2, 1),
    (2, True, 3, 2),
])  # fmt: skip
@pytest.mark.thinned
def test_rounds_that_read_those_before(rounds: int, lag: int, down: bool, stored: int, again: int) -> None:
    program = steps_of_rounds(rounds, lag, down, stored, again)
    small, arrays = contracted(program, 1), points(program)
    assert memory(small) == (8 * WIDTH * (lag + 1) if rounds > 2 else memory(program))
    expected = carried_out(program, arrays, scratch=True)
    np.testing.assert_array_equal(evaluate_rolled(small, arrays), expected)
    np.testing.assert_array_equal(
        compile_program(small, cache=False)(*arrays), compile_program(program, cache=False)(*arrays)
    )
    flat = unroll(small)
    values = evaluate(flat, flat.outputs[0].rows, dict(enumerate(arrays[0])))
    np.testing.assert_array_equal(values, expected[0])


def rows_that_begin_with_a_zero(rounds: int, order: str) -> RolledProgram:
    """Rounds that read the two numbers before; the first is x[0], the second 0, which is stored (z) or was there."""
    made = Made({"x": (2,), "p": ()}, {"f": ()}, {"h": (rounds + 2,), "sum": (rounds,)})
    here, there, after = (table(1, k, 1, (1,)) for k in range(3))
    inside = (
        region(lambda u, v: (np.sin(u) + 0.3 * v,), 1, [made.at("h", here), made.at("h", there)],
               [made.to(0, "sum", here, "add")]),
        region(lambda m, p: (np.cos(m) + p,), 1, [made.at("sum", here), made.at("p", 0)], [made.to(0, "h", after)]),
    )  # fmt: skip
    first = {
        "x": region(lambda x: (x * x,), 1, [made.at("x", 0)], [made.to(0, "h", 0)]),
        "z": zeros(made.number["h"], 1, 1),
        "s": zeros(made.number["sum"], rounds),
    }
    end = region(lambda u, x: (u * u * x,), 1, [made.at("h", rounds + 1), made.at("x", 1)], [made.to(0, "f", 0)])
    return made.program(*(first[step] for step in order), Nest(rounds, inside), end)


@pytest.mark.parametrize("order", ["x", "xz", "zx", "sxz", "xzs"])
@pytest.mark.parametrize("rounds", [7, 9, 20])
@pytest.mark.thinned
def test_a_zero_leaves_the_numbers_beside_it(rounds: int, order: str) -> None:
    program = rows_that_begin_with_a_zero(rounds, order)
    arrays, flat = points(program), flat_function(program)
    np.testing.assert_array_equal(evaluate_rolled(contracted(program, 1), arrays), evaluate_rolled(program, arrays))
    expected = sa.grad(lambda *given: flat(*given)[0], (0, 1))(*arrays)
    for policy in get_args(Checkpoints):
        made = gradient(program, [0, 1], checkpoints=policy)
        agree(evaluate_rolled(made, arrays), expected)
        agree(evaluate_rolled(contracted(made, 1), arrays), expected)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_of_every_case(name: str) -> None:
    program = CASES[name]()
    active = range(len(program.inputs))
    cut = pullback(program, active, checkpoints="sqrt")
    for made in (program, pushforward(program, active), cut, pushforward(cut, active)):
        arrays, small = points(made), contracted(made, 1)
        assert memory(small) <= memory(made)
        for found, expected in zip(evaluate_rolled(small, arrays), evaluate_rolled(made, arrays), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_what_is_read_later_is_kept() -> None:
    program = CASES["scan_of_scan"]()
    kept = {
        name: memory(contracted(made, 1)) for name, made in (("value", program), ("gradient", pullback(program, [1])))
    }
    assert kept["value"] < memory(program) <= kept["gradient"]


@pytest.mark.parametrize("steps", [999, 1000])
def test_values_of_a_grid_in_time_need_two_rows(steps: int) -> None:
    def heat(u):
        def step(v, _):
            return np.concatenate([v[:1], v[1:-1] + 0.1 * (v[2:] - 2 * v[1:-1] + v[:-2]), v[-1:]]), None

        return sa.scan(step, u, None, length=steps)[0]

    u = np.random.default_rng(1).uniform(1, 2, 400)
    kernel = sa.compile(heat, u)
    assert 2 * u.size <= kernel.stats.workspace <= 3 * u.size
    np.testing.assert_allclose(kernel(u), heat(u), rtol=1e-13)
