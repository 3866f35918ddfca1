"""Numbers that loops leave for others stand in the bodies of these, rounded as they were in memory."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import symad as sa
from codegen.ir.region import Nest, Region, regions_of
from codegen.loops.optimise.constant_propagation import with_constants
from tests.support.derive_cases import Made, region, run as table


def numbers(body_of: Region) -> list[sp.Basic]:
    return [atom for atom in body_of.body.atoms.values() if atom.is_number]


def test_a_number_goes_on_through_lines_and_into_nests_where_it_is_rounded_once() -> None:
    made = Made({"x": (6,)}, {"f": (6,), "g": (6,)}, {"third": (), "both": (2,), "all": (6,)})
    line = region(lambda: (sp.Rational(1, 3), sp.Integer(2)), 1, [], [made.to(0, "third", 0), made.to(1, "both", 1)])
    more = region(lambda a, b: (a * b,), 1, [made.at("third", 0), made.at("both", 1)], [made.to(0, "both", 0)])
    spread = region(lambda a: (a,), 6, [made.at("third", table(6, 0, 0))], [made.to(0, "all", table(6))])
    reads = [made.at("x", table(6)), made.at("both", table(6, 0, 0)), made.at("all", table(6, 5, -1))]
    loop = region(lambda x, a, b: (x * a + b,), 6, reads, [made.to(0, "f", table(6))])
    inner = region(lambda x, a: (x * a,), 6, [made.at("x", table(6)), made.at("both", table(6, 1, 0))],
                   [made.to(0, "g", table(6))])  # fmt: skip
    steps = with_constants([line, more, spread, loop, Nest(1, (inner,))])
    found = [each for each, _ in regions_of(steps)]
    assert [len(each.gathers) for each in found] == [0, 0, 0, 1, 1]
    third = sp.Float(1 / 3)
    assert numbers(found[3]) == [sp.Float(2 * (1 / 3)), third]
    assert numbers(found[4]) == [sp.Integer(2)]


@pytest.mark.parametrize(("number", "gathers"), [(sp.Integer(-2), 1), (sp.Float(-0.5), 1), (sp.Integer(0), 1)])
def test_signs_of_numbers_go_on(number: sp.Number, gathers: int) -> None:
    made = Made({"x": (4,)}, {"f": (4,)}, {"n": ()})
    line = region(lambda: (number,), 1, [], [made.to(0, "n", 0)])
    reads = [made.at("x", table(4)), made.at("n", table(4, 0, 0))]
    loop = region(lambda x, a: (x * a,), 4, reads, [made.to(0, "f", table(4))])
    _, found = with_constants([line, loop])
    assert isinstance(found, Region)
    assert len(found.gathers) == gathers
    assert numbers(found) == [number]


def test_what_moves_with_rounds_or_is_computed_stays() -> None:
    made = Made({"x": (4,)}, {"f": (4,)}, {"two": (2,), "sum": ()})
    line = region(lambda x: (sp.Integer(2), x), 1, [made.at("x", 0)], [made.to(0, "two", 0), made.to(1, "two", 1)])
    total = region(lambda: (sp.Integer(1),), 4, [], [made.to(0, "sum", table(4, 0, 0), "add")])
    reads = [made.at("x", table(4)), made.at("two", table(4, 1, 0)), made.at("sum", table(4, 0, 0))]
    loop = region(lambda x, a, b: (x * a * b,), 4, reads, [made.to(0, "f", table(4))])
    assert with_constants([line, total, loop]) == [line, total, loop]


@pytest.mark.parametrize("weight", [0.3, 1.0])
def test_a_mean_and_its_gradient_are_one_loop(weight: float) -> None:
    def f(x):  # type: ignore[no-untyped-def]
        return np.mean(np.log(np.cosh(x))) + weight * np.sum(x**2)

    x = np.random.default_rng(2).normal(size=5000)
    program = sa.plan(sa.value_and_grad(f), x).candidate.rolled.program
    assert [step.count for step in program.steps] == [5000, 1]
    value, slope = sa.compile(sa.value_and_grad(f), x)(x)
    assert value == pytest.approx(f(x), rel=1e-13)
    np.testing.assert_allclose(slope, np.tanh(x) / 5000 + 2 * weight * x, rtol=1e-14)
