"""Checkpoints of nests: rows made from those before, in any number of rounds, under every policy."""

from __future__ import annotations

import numpy as np
import pytest

import symad as sa
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.ir.region import Carry, Nest, RolledProgram, Step, regions_of
from codegen.ir.tables import Affine
from codegen.loops.optimise.contraction import contracted
from symad.derivatives.loops import checkpoints
from symad.derivatives.loops.pullback import gradient, pullback
from symad.derivatives.loops.pushforward import pushforward
from tests.support.derive_cases import Made, memory, region, run as table
from tests.support.derive_flat import agree, flat_function, points
from tests.support.derive_strict import run

WIDTH = 3
POLICIES = ("sqrt", "none")


def rows(rounds: int, lag: int = 1, kept: bool = False) -> RolledProgram:
    """Rows from those before, their sum, a force for each round, and a chain through the new row.

    The loss reads the last row, and where it is `kept` also an entry of every row.
    """
    size = WIDTH * (rounds + lag)
    made = Made(
        {"x": (lag * WIDTH,), "force": (rounds,), "p": ()}, {"f": (), "each": (rounds,)},
        {"h": (size,), "mean": (rounds,), "end": (rounds,)},
    )  # fmt: skip
    before = [made.at("h", table(WIDTH, WIDTH * k, 1, (WIDTH,))) for k in range(lag)]
    new, mean = table(WIDTH, WIDTH * lag, 1, (WIDTH,)), table(WIDTH, 0, 0, (1,))
    inside: list[Step] = [
        region(lambda *u: (sum(u, 0.0) * u[0] / WIDTH,), WIDTH, before, [made.to(0, "mean", mean, "add")]),
        region(
            lambda m, f, p, *u: (np.where(u[-1] > 0.5, p * np.sin(u[-1] + f) + 0.1 * m, u[0] * p + f * 0.01),), WIDTH,
            [made.at("mean", mean), made.at("force", mean), made.at("p", table(WIDTH, 0, 0)), *before],
            [made.to(0, "h", new)],
        ),
        region(
            lambda a, c: (0.5 * c * a + a, 0.5 * c + a), WIDTH, [made.at("h", new)],
            [made.to(0, "end", Affine(0, 0, 1, (1,)), "last")],
            [Carry(0, (made.at("mean", Affine(0, 0, 1, (1,))),))],
        ),
        region(lambda e, m: (e * e * m,), 1, [made.at(name, Affine(0, 0, 1, (1,))) for name in ("end", "mean")],
               [made.to(0, "each", Affine(0, 0, 1, (1,)))]),
    ]  # fmt: skip
    last = table(WIDTH, WIDTH * (rounds + lag - 1))
    places = [last, table(rounds, WIDTH * lag + 1, WIDTH)] if kept else [last]
    ends = [
        region(lambda u: (u * u * u,), at.count, [made.at("h", at)], [made.to(0, "f", table(at.count, 0, 0), "add")])
        for at in places
    ]
    start = region(lambda x: (1.0 * x,), lag * WIDTH, [made.at("x", table(lag * WIDTH))],
                   [made.to(0, "h", table(lag * WIDTH))])  # fmt: skip
    return made.program(start, Nest(rounds, tuple(inside)), *ends)


@pytest.mark.parametrize("rounds", [1, 2, 3, 5, 17, 37])
@pytest.mark.parametrize("lag", [1, 2])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.thinned
def test_any_number_of_rounds(rounds: int, lag: int, policy: str) -> None:
    for kept in (False, True):
        program = rows(rounds, lag, kept)
        plain, made = (pullback(program, range(3), checkpoints=name) for name in ("all", policy))
        arrays = points(made)
        expected = evaluate_rolled(plain, arrays)
        for found in (evaluate_rolled(made, arrays), evaluate_rolled(contracted(made, 1), arrays)):
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-14)
        if rounds < 6 or not kept:
            agree(run(made, arrays, scratch=True), expected)


def test_gradients_are_those_of_straight_lines() -> None:
    program = rows(7, 2)
    arrays, flat = points(program), flat_function(program)
    expected = sa.grad(lambda *given: flat(*given)[0], (0, 1, 2))(*arrays)
    for policy in POLICIES:
        agree(run(gradient(program, range(3), checkpoints=policy), arrays, scratch=True), expected)


@pytest.fixture
def deep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let "none" cut three rounds and more in two: 7 rounds are segments in segments, 15 have three levels of them."""
    monkeypatch.setattr(checkpoints, "FEW", 2)
    monkeypatch.setattr(checkpoints, "SIXTEEN", 2)


def levels(program: RolledProgram) -> int:
    """Return how many nests stand in each other; that of the segments of the chain in a round is one."""
    return max(len(counts) for _, counts in regions_of(program.steps))


@pytest.mark.usefixtures("deep")
@pytest.mark.parametrize(("rounds", "lag", "depth"), [(7, 1, 4), (7, 2, 4), (9, 1, 4), (15, 2, 5), (40, 1, 6)])
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.thinned
def test_segments_in_segments(rounds: int, lag: int, depth: int, kept: bool) -> None:
    program = rows(rounds, lag, kept)
    plain, made = (pullback(program, range(3), checkpoints=policy) for policy in ("all", "none"))
    assert levels(made) == depth
    arrays = points(made)
    expected = evaluate_rolled(plain, arrays)
    for found in (evaluate_rolled(made, arrays), evaluate_rolled(contracted(made, 1), arrays)):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14)
    if rounds < 10:
        agree(run(made, arrays, scratch=True), expected)
        flat, arrays = flat_function(program), points(program)
        straight = sa.grad(lambda *given: flat(*given)[0], (0, 1, 2))(*arrays)
        agree(evaluate_rolled(gradient(program, range(3), checkpoints="none"), arrays), straight)


@pytest.mark.usefixtures("deep")
@pytest.mark.parametrize(("rounds", "lag"), [(7, 1), (7, 2), (15, 1)])
def test_derivatives_of_segments_in_segments(rounds: int, lag: int) -> None:
    """Of second and third order, each kept in its own way."""
    program = rows(rounds, lag)
    plain, made = gradient(program, [0, 2]), gradient(program, [0, 2], checkpoints="none")
    for policy in ("all", "sqrt", "none"):
        expected, found = pullback(plain, [0, 2]), pullback(made, [0, 2], checkpoints=policy)
        arrays = points(expected)
        for again in (found, contracted(found, 1)):
            agree(evaluate_rolled(again, arrays), evaluate_rolled(expected, arrays))
        if rounds < 10 and lag == 1:
            agree(run(found, arrays, scratch=True), evaluate_rolled(expected, arrays))
        expected, found = pushforward(expected, [0, 2]), pushforward(found, [0, 2])
        agree(evaluate_rolled(found, points(expected)), evaluate_rolled(expected, points(expected)))
    expected, found = pushforward(plain, [0, 2]), pushforward(made, [0, 2])
    agree(evaluate_rolled(found, points(expected)), evaluate_rolled(expected, points(expected)))


@pytest.mark.parametrize("policy", POLICIES)
def test_derivatives_of_what_was_cut(policy: str) -> None:
    program = rows(5 if policy == "sqrt" else 34, 2)
    plain, made = gradient(program, [0, 2]), gradient(program, [0, 2], checkpoints=policy)
    for outer in (pushforward, pullback, lambda p, a: pullback(p, a, checkpoints=policy)):
        expected, found = outer(plain, [0, 2]), outer(made, [0, 2])
        arrays = points(expected)
        if policy == "sqrt":
            agree(run(found, arrays, scratch=True), evaluate_rolled(expected, arrays))
        agree(evaluate_rolled(contracted(found, 1), arrays), evaluate_rolled(expected, arrays))


def test_memory() -> None:
    def numbers(policy: str, rounds: int) -> float:
        return memory(contracted(gradient(rows(rounds), [0, 2], checkpoints=policy), 1)) / 8 / WIDTH

    assert numbers("all", 10_000) > 10_000
    assert numbers("sqrt", 10_000) < 10 * 100
    assert numbers("sqrt", 10_000) < 11 * numbers("sqrt", 100)
    assert numbers("none", 10_000) < 500


def test_what_is_read_later_is_kept() -> None:
    program = rows(100, kept=True)
    assert memory(gradient(program, [0], checkpoints="sqrt")) > 8 * 100 * WIDTH


@pytest.mark.parametrize(("steps", "policy"), [(0, "sqrt"), (1, "sqrt"), (13, "all"), (13, "sqrt"), (40, "none")])
def test_compiled_steps_of_descent(steps: int, policy: str) -> None:
    random = np.random.default_rng(steps)
    a, b, start = random.normal(size=(9, 2)), random.normal(size=9), random.normal(size=2)

    def descent(w, rate):
        def step(state, k):
            w, v = state
            slope = sa.sum_over(lambda row, y: np.tanh(row @ w - y) * row, a, b)
            v = 0.9 * v - rate * slope
            return (w + v, v), w[0]

        def ended(state):
            return state[0][0] ** 2 < 50.0

        (w, v), path = sa.scan(step, (w, 0 * w), np.arange(1.0 * steps))
        bounded = sa.while_loop(ended, lambda s: step(s, 0.0)[0], (w, v), max_steps=5)
        return w @ w + bounded[0] @ v + (path[-1] if steps else 0.0)

    both = sa.grad(descent, (0, 1))
    kernel = sa.compile(both, start, 0.1, roll="always", checkpoints=policy)
    for found, expected in zip(kernel(start, 0.1), both(start, 0.1), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("steps", [601, 1100, 9000])
def test_long_nests_with_sums_in_their_bodies(steps: int) -> None:
    """Segments of many rounds: gradients of all policies have the same bits, and those of forward mode in sum."""
    data = np.linspace(-1.0, 1.0, 100)

    def loss(w: object) -> object:
        def step(u: object, _: object) -> tuple[object, None]:
            slope = sa.sum_over(lambda a: a * (np.tanh(a * u[0]) - 0.3 * a) + 0.1 * u[1], data)
            return np.stack([u[0] - 0.002 * slope, u[1] + 0.001 * np.sin(u[0])]), None

        last = sa.scan(step, w, None, length=steps)[0]
        return last[0] * last[1] + last[0] ** 2

    start = np.array([0.7, -0.4])
    found = [sa.compile(sa.grad(loss), start, checkpoints=policy, roll="always") for policy in ("all", *POLICIES)]
    assert [levels(kernel.program) for kernel in found] == [1, 2, 3 + (steps == 9000)]
    everything, *others = [kernel(start) for kernel in found]
    for gradient_again in others:
        np.testing.assert_array_equal(gradient_again, everything)
    forward = sa.compile(lambda w: sa.jvp(loss, (w,), (np.ones(2),))[1], start)
    np.testing.assert_allclose(forward(start), everything.sum(), rtol=1e-12)
    assert 5 * found[1].stats.workspace < found[0].stats.workspace
