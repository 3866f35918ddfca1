"""One plan: one trace, every way priced, one decision, which compile carries out and everything else shows."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest

import symad as sa
from codegen.loops import roll
from codegen.pricing.price_table import Price, cheapest
from symad.compiling.plan import time_text
from symad.compiling.shared_traces import can_be_replayed, replayed
from symad.tracing.calling.user_place import written_place
from symad.tracing.trace import to_program, trace

RANDOM = np.random.default_rng(5)
FIRST, SECOND = RANDOM.normal(size=(16, 8)), RANDOM.normal(size=(16, 16))


def network(x):
    return np.sum(np.tanh(SECOND @ np.tanh(FIRST @ x)))


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def pairs(x):
    """Three squared differences summed, over a flat x, as they are written in plain Python."""
    total = 0.0
    for i in range(len(x) // 3):
        for j in range(i):
            d = sum((x[3 * i + k] - x[3 * j + k]) ** 2 for k in range(3))
            inverse = 1 / (d * d * d)
            total = total + 4.0 * (inverse * inverse - inverse)
    return total


CASES = {
    "value": (rosenbrock, np.linspace(0.5, 1.5, 40)),
    "gradient": (sa.grad(rosenbrock), np.linspace(0.5, 1.5, 300)),
    "value and gradient": (sa.value_and_grad(network), np.linspace(-1, 1, 8)),
    "dense Hessian": (sa.hessian(network), np.linspace(-1, 1, 8)),
    "sparse Hessian": (sa.hessian(rosenbrock, sparse="lower"), np.linspace(0.5, 1.5, 40)),
    "Jacobian": (sa.jacobian(sa.grad(rosenbrock)), np.linspace(0.5, 1.5, 12)),
    "derivative": (sa.derivative(lambda t: np.exp(np.sin(t)), 3), 0.7),
}


@pytest.mark.parametrize("case", CASES)
def test_the_function_is_run_once(case):
    """However many ways are looked at; the transforms see what the function made, in the order in which it did."""
    transformed, x = CASES[case]
    innermost, calls = transformed, []
    while hasattr(innermost, "__wrapped__"):
        innermost = innermost.__wrapped__

    def watched(*args):
        calls.append(1)
        return innermost(*args)

    again = {
        "value": watched, "gradient": sa.grad(watched), "value and gradient": sa.value_and_grad(watched),
        "dense Hessian": sa.hessian(watched), "sparse Hessian": sa.hessian(watched, sparse="lower"),
        "Jacobian": sa.jacobian(sa.grad(watched)), "derivative": sa.derivative(watched, 3),
    }[case]  # fmt: skip
    planned = sa.plan(again, x)
    assert calls == [1]
    assert planned.chosen in planned.operations
    assert sa.compile(again, x).stats.strategy == planned.chosen
    assert calls == [1, 1]


@pytest.mark.parametrize("case", CASES)
def test_what_is_planned_is_right(case):
    """Against the transform itself, which knows nothing of plans."""
    transformed, x = CASES[case]
    kernel = sa.compile(transformed, x)
    values, expected = (tuple_of(found) for found in (kernel(x), transformed(x)))
    for value, wanted in zip(values, expected, strict=True):
        data = wanted.data if isinstance(wanted, sa.results.SparseMatrix) else wanted
        np.testing.assert_allclose(value, data, rtol=1e-11, atol=1e-11)


def tuple_of(result):
    return result if isinstance(result, tuple) else (result,)


TRANSFORMS = {
    "value": lambda g: g,
    "gradient": sa.grad,
    "edge": lambda g: sa.hessian(g, sparse="lower"),
    "fwd-rev": lambda g: sa.hessian(g, mode="fwd-rev"),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("f", [rosenbrock, network, pairs])
def test_a_recalled_trace_is_the_trace(f, transform):
    """Row by row, under transforms too, and with the user's lines."""
    x = np.linspace(0.5, 1.5, 8 if f is network else 9)
    traced = trace(f, x)
    assert can_be_replayed(traced)
    first, again = (trace(TRANSFORMS[transform](g), x) for g in (f, replayed(traced, f.__name__)))
    one, two = to_program(first), to_program(again)
    assert (one.heads, one.operands, one.atoms) == (two.heads, two.operands, two.atoms)
    assert lines(first) == lines(again)


def lines(traced):
    """The user's lines behind the operations of a trace, of this file."""
    graph = traced.graph
    places = {written_place(graph, node) for node in range(len(graph)) if graph.operands[node]}
    return {place for place in places if place.rpartition(":")[0] == __file__}


def test_levels_inside_a_recalled_function_stay_apart():
    """A captured x that equals the argument of an inner derivative, in each order of transforms."""

    def f(x):
        return x * sa.derivative(lambda y: x * y)(x)  # x**2

    for order, expected in ((1, 6.0), (2, 2.0)):
        kernel = sa.compile(sa.derivative(f, order), 3.0)
        assert kernel(3.0) == expected


def test_each_path_is_run_once_and_rules_are_not_recalled():
    calls = []

    def bent(x):
        calls.append(1)
        return np.sum(x**2) if x[0] > 0 else np.sum(x**3)

    kernel = sa.compile(sa.grad(bent), np.ones(3))
    np.testing.assert_allclose(kernel(np.array([-1.0, 2.0, 3.0])), [3.0, 12.0, 27.0])
    assert len(calls) == 2

    @sa.custom_derivative(derivative=lambda primals, tangents: 5.0 * tangents[0])
    def ruled(x):
        return x * x

    assert sa.compile(sa.derivative(lambda x: ruled(x)), 2.0)(2.0) == 5.0


def test_a_plan_says_what_compile_does_and_the_kernel_keeps_it():
    x = np.ones(8)
    planned, kernel = sa.plan(sa.hessian(network), x), sa.compile(sa.hessian(network), x)
    kept = kernel.stats.plan
    assert (kept.chosen, kept.reason, kept.operations) == (planned.chosen, planned.reason, planned.operations)
    assert kernel.stats.strategy == kept.chosen
    assert all(each.program is None and each.rolled is None for each in kept.candidates)
    with sa.choices() as made:
        sa.compile(sa.hessian(network), x)
    assert [choice.chosen for choice in made if choice.what.startswith("kernel")] == [kept.chosen]


def test_the_text_has_every_way():
    text = sa.plan(sa.hessian(network), np.ones(8)).text(150)
    for word in ("straight lines", "a sweep over columns", "loops", "chosen", "estimated", "to build"):
        assert word in text
    refused = sa.plan(rosenbrock, np.ones(3)).text(150)
    assert "only a dense Hessian or Jacobian in one array has columns" in refused
    assert "too few operations for loops" in refused


def test_what_was_planned_is_logged(caplog):
    with caplog.at_level(logging.INFO, logger="symad"):
        sa.compile(sa.grad(rosenbrock), np.ones(300))
    assert any("kernel of gradient_of_rosenbrock: compiled as loops" in line for line in caplog.messages)


@pytest.mark.parametrize(
    ("ways", "chosen"),
    [
        ({"straight": (480.0, 0.4), "rolled": (590.0, 0.05)}, "rolled"),
        ({"straight": (2.0e3, 1.0), "rolled": (3.2e3, 0.1)}, "straight"),  # which a million calls pay for
        ({"straight": (20.0, 0.010), "rolled": (31.0, 0.020)}, "straight"),
        ({"straight": (20.0, 0.010), "rolled": (29.0, 0.020)}, "straight"),  # both are less
        ({"straight": (20.0, 0.010), "rolled": (5.0, 0.020)}, "rolled"),
        ({"straight": (20.0, 0.030), "rolled": (29.0, 0.020)}, "rolled"),
        ({"straight": (2.0e3, 3.0), "rolled": (3.1e3, 0.13)}, "rolled"),  # as fast, but three seconds to build
        ({"straight": (60.0, 0.2), "sweep": (45.0, 0.1), "rolled": (80.0, 0.05)}, "rolled"),
        ({"straight": (9e3, 9.0), "sweep": (2.2e3, 0.2), "rolled": (7.0e3, 0.05)}, "sweep"),
        ({"straight": (9e3, 1.0)}, "straight"),
    ],
)
def test_build_and_calls_are_minimised(ways, chosen):
    assert cheapest({way: Price(*price) for way, price in ways.items()}) == chosen


def test_twenty_atoms_over_a_flat_x_are_loops():
    """Straight lines take a fifth of a second to build and are no faster."""
    planned = sa.plan(sa.hessian(pairs, sparse="lower"), np.random.default_rng(0).normal(size=60))
    assert planned.chosen == "rolled"
    by_way = {each.way: each for each in planned.candidates}
    assert by_way["rolled"].price.build < by_way["straight"].price.build / 3


def test_options_that_exclude_each_other_are_refused_before_anything_is_traced():
    def never(x):
        raise AssertionError

    for options, message in (
        ({"roll": "always", "strategy": "sweep"}, "roll='always' with strategy='sweep'"),
        ({"checkpoints": "sqrt", "roll": "never"}, "checkpoints='sqrt' with roll='never'"),
        ({"roll": "maybe"}, "roll='maybe'; use one of auto, never, always"),
        ({"strategy": "maybe"}, "strategy='maybe'; use one of auto, straight, sweep"),
    ):
        with pytest.raises(sa.errors.ArgumentError, match=message):
            sa.plan(never, 1.0, **options)


def test_times_are_written_with_a_unit():
    assert [time_text(value) for value in (0.4, 31.0, 999.0, 2170.0, 4.8e7, 3e9)] == [
        "0.4 ns", "31 ns", "999 ns", "2.2 us", "48 ms", "3.0 s",
    ]  # fmt: skip


def test_columns_are_not_looked_at_where_loops_carry_out_much():
    """What is written down counts as often as it is carried out: 100,000 columns are not traced to be refused."""
    chain = lambda x: sa.sum_over(lambda a, b: (b - a**2) ** 2, x[:-1], x[1:])  # noqa: E731
    planned = sa.plan(sa.hessian(chain), np.ones(100_000))
    assert planned.chosen == "rolled"
    assert planned.refused["sweep"].startswith("100000 columns take")


def test_loops_that_wait_for_each_other_are_a_reason_and_no_error(monkeypatch):
    def find(*args):
        found = whole(*args)
        (loop,) = found.loops
        circle = replace(loop, reads=tuple(np.full(loop.count, use.nodes[0]) for use in loop.results))
        return replace(found, loops=[circle]) if loop.reads else found

    whole = roll.find
    monkeypatch.setattr(roll, "find", find)
    found = sa.plan(lambda x: np.sum(np.sin(x) * x), np.ones(200))
    reason = "its loops wait for each other: no order runs them all"
    assert (found.chosen, found.refused["rolled"]) == ("straight", reason)
    with pytest.raises(sa.errors.ArgumentError, match="its loops wait for each other"):
        sa.plan(lambda x: np.sum(np.sin(x) * x), np.ones(200), roll="always")


def test_straight_lines_of_a_matrix_by_columns_are_not_guessed():
    """Their number was estimated as if all columns were full: a call took 316 us instead of 2.3."""
    points = np.linspace(-1, 1, 50)

    def polynomial(coefficients):
        value = 0.0 * points
        for coefficient in coefficients:
            value = value * points + coefficient
        return np.exp(value)

    found = sa.plan(sa.jacobian(polynomial), np.full(61, 0.01))
    straight = next(way for way in found.candidates if way.way == "straight")
    assert found.chosen == "straight"
    assert not straight.estimated
    assert straight.written < 10_000


def test_a_sweep_that_is_clearly_faster_is_written_down_for_a_large_function():
    """Loops one after the other, carried out for each column, take six times as long as columns side by side."""

    def moved(z, steps=60):
        p, v = [z[3 * i : 3 * i + 3] for i in range(5)], [z[15 + 3 * i : 18 + 3 * i] for i in range(5)]
        for _ in range(steps):
            for i in range(5):
                for j in range(i + 1, 5):
                    d = [p[i][k] - p[j][k] for k in range(3)]
                    square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
                    pull = 0.001 / (square * np.sqrt(square))
                    v[i] = [v[i][k] - d[k] * pull for k in range(3)]
                    v[j] = [v[j][k] + d[k] * pull for k in range(3)]
            p = [[p[i][k] + 0.001 * v[i][k] for k in range(3)] for i in range(5)]
        return sum(q * q for part in v for q in part)

    planned = sa.plan(sa.hessian(moved), np.random.default_rng(0).normal(size=30))
    by_way = {each.way: each.price.call for each in planned.candidates}
    assert planned.chosen == "sweep"
    assert by_way["sweep"] < by_way["rolled"] / 2
