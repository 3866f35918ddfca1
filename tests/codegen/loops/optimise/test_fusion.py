"""Loops that become one, and those that must not; nothing is left that nothing asks for; the same result every time."""

from __future__ import annotations

import numpy as np
import pytest

import symad as sa
from codegen.ir.region import Nest, Region, RolledProgram, Step
from codegen.ir.tables import Affine
from codegen.loops.optimise.dead_code import without_dead_code
from codegen.loops.optimise.fusion import fused
from symad.derivatives.loops.pullback import gradient
from symad.derivatives.loops.pushforward import pushforward
from tests.support.derive_cases import CASES, Made, lennard_jones, log_sum_exp, momentum, region, run as table
from tests.support.derive_strict import run


def counts(program: RolledProgram) -> list[int]:
    return [step.count for step in program.steps]


def test_a_value_and_its_gradient_share_their_loop() -> None:
    assert counts(gradient(lennard_jones(5), [0], value=True)) == [10]


def test_what_a_repetition_leaves_for_the_same_one_is_passed_on() -> None:
    found = pushforward(log_sum_exp(6), [0])
    assert counts(found) == [6, 1]
    assert sum(buffer.kind == "workspace" for buffer in found.buffers) == 2  # the sum and its tangent


def test_equal_places_in_two_tables_are_the_same_places() -> None:
    made = Made({"x": (6,)}, {"f": (4,), "g": (4,)})
    one, two = (
        region(lambda x: (x * x,), 4, [made.at("x", np.array([0, 1, 3, 5]))], [made.to(0, name, table(4))])
        for name in ("f", "g")
    )
    other = region(lambda x: (x * x,), 4, [made.at("x", np.array([0, 1, 3, 4]))], [made.to(0, "g", table(4))])
    assert [len(fused([one, step])) for step in (two, other)] == [1, 2]


def test_what_reads_other_places_of_what_was_stored_waits() -> None:
    made = Made({"x": (4,)}, {"f": (4,)}, {"y": (4,)})
    first = region(lambda x: (x * x,), 4, [made.at("x", table(4))], [made.to(0, "y", table(4))])
    turned = region(lambda y, x: (y * x,), 4, [made.at("y", table(4, 3, -1)), made.at("x", table(4))],
                    [made.to(0, "f", table(4))])  # fmt: skip
    program = made.program(first, turned)
    assert len(fused(program.steps)) == 2
    x = np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(run(pushforward(program, []), [x])[0], (x * x)[::-1] * x)


def test_what_reads_in_a_later_round_what_was_stored_there_waits() -> None:
    """In the first round of the nest the places are apart; in the second they are the same."""
    made = Made({"x": (4,)}, {"f": (4,)}, {"y": (6,)})
    forward, turned = Affine(0, 1, 2, (2,)), Affine(4, 1, 2, (-2,))
    first = region(lambda x: (x * x,), 2, [made.at("x", forward)], [made.to(0, "y", forward)])
    second = region(lambda x, y: (x + y,), 2, [made.at("x", forward), made.at("y", turned)],
                    [made.to(0, "f", forward)])  # fmt: skip
    (nest,) = fused([Nest(2, (first, second))])
    assert isinstance(nest, Nest)
    assert len(nest.steps) == 2


def test_a_region_does_not_pass_what_it_reads_or_overwrites() -> None:
    made = Made({"x": (4,)}, {"f": (4,), "s": ()}, {"y": (4,), "z": (4,)})
    one = region(lambda x: (x * x,), 4, [made.at("x", table(4))], [made.to(0, "y", table(4))])
    total = region(lambda y: (y,), 4, [made.at("y", table(4, 0, 0))], [made.to(0, "s", table(4, 0, 0), "add")])
    after = region(lambda x, s: (x + s,), 4, [made.at("x", table(4)), made.at("s", table(4, 0, 0))],
                   [made.to(0, "f", table(4))])  # fmt: skip
    steps: list[Step] = [one, total, after]
    assert fused(steps) == steps
    nest = Nest(1, (one, after))
    (inner,) = fused([nest])
    assert isinstance(inner, Nest)
    assert len(inner.steps) == 1


def test_an_earlier_loop_may_as_well_run_later() -> None:
    made = Made({"x": (4,), "u": (2,)}, {"f": (4,)}, {"y": (4,), "z": (2,)})
    one = region(lambda x: (x * x,), 4, [made.at("x", table(4))], [made.to(0, "y", table(4))])
    other = region(lambda u: (u * u,), 2, [made.at("u", table(2))], [made.to(0, "z", table(2))])
    places = np.array([0, 1, 0, 1])
    after = region(lambda y, z: (y * z,), 4, [made.at("y", table(4)), made.at("z", places)],
                   [made.to(0, "f", table(4))])  # fmt: skip
    program = made.program(one, other, after)
    assert [step.count for step in fused(program.steps)] == [2, 4]  # z is read, so it comes first
    x, u = np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0, 7.0])
    np.testing.assert_array_equal(run(pushforward(program, []), [x, u])[0], x * x * (u * u)[places])
    reads_both = region(lambda u, y: (u * y,), 2, [made.at("u", table(2)), made.at("y", table(2))],
                        [made.to(0, "z", table(2))])  # fmt: skip
    assert len(fused([one, reads_both, after])) == 3


def test_what_no_output_needs_is_left_out() -> None:
    made = Made({"x": (4,)}, {"f": ()}, {"y": (4,)})
    unread = region(lambda x: (x * x,), 4, [made.at("x", table(4))], [made.to(0, "y", table(4))])
    reads = [made.at(name, table(4)) for name in ("x", "x", "y")]
    total = region(lambda a, b, c: (a, a * b, c), 4, reads, [made.to(1, "f", table(4, 0, 0), "add")])  # fmt: skip
    (step,) = without_dead_code([unread, total], [made.number["f"]])
    assert isinstance(step, Region)
    assert (len(step.gathers), len(step.body.outputs), sum(map(bool, step.body.operands))) == (1, 1, 1)


@pytest.mark.parametrize("name", CASES)
def test_every_time_the_same(name: str) -> None:
    first, again = (pushforward(gradient(CASES[name](), [0]), [0]) for _ in range(2))
    assert [written(step) for step in first.steps] == [written(step) for step in again.steps]


def written(step: Step) -> object:
    if isinstance(step, Nest):
        return step.count, [written(inner) for inner in step.steps]
    tables = [(use.buffer, use.table.places().tolist()) for use in step.gathers]
    tables += [(use.buffer, use.table.places().tolist()) for use in step.results]
    return step.count, step.body.heads, step.body.operands, step.body.outputs, tables


def test_no_inputs_and_an_output_that_is_no_scalar() -> None:
    assert gradient(momentum(3), []).outputs == ()
    vector = Made({"x": (2,)}, {"f": (2,)})
    program = vector.program(region(lambda x: (x,), 2, [vector.at("x", table(2))], [vector.to(0, "f", table(2))]))
    with pytest.raises(sa.errors.ArgumentError, match=r"shape \(2,\).*jacobian"):
        gradient(program, [0])
