"""Balls contain the exact values: every head against mpmath at 100 digits, and what balls cannot decide."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import sympy as sp
from flint import arb
from mpmath import mp

import codegen.heads as heads
import codegen.special_heads as s
import symad as sa
from codegen.evaluation.interpret import evaluate
from codegen.functions.intrinsics import INTRINSICS
from codegen.functions.reference_functions import precision
from symad.classroom.verification.balls import (
    LOGIC,
    NUMBERS,
    enclosures,
    known_bits,
    tight,
    working_bits,
)
from symad.classroom.verification.balls_functions import as_mpf
from symad.classroom.verification.enclose import enclose
from symad.errors import ArgumentError
from symad.graph.graph import Graph
from symad.tracing.trace import trace
from tests.support.cases import HEAD_POINTS
from tests.support.kernel_points import OWN_TESTS, points_of

HEADS = [head for head in INTRINSICS if head not in OWN_TESTS and head not in LOGIC]
DIGITS = 100


def contains(enclosure, exact):
    """Whether a ball contains a number that is known to nearly DIGITS digits."""
    if not enclosure.is_finite():
        return as_mpf(enclosure) == exact
    with mp.workdps(200):
        gap = abs(as_mpf(enclosure.mid()) - exact)
        return gap <= as_mpf(enclosure.rad()) + abs(exact) * mp.mpf(10) ** (5 - DIGITS)


def test_every_head_has_an_enclosure_or_is_refused_by_name():
    assert {head for head in INTRINSICS if head not in NUMBERS and head not in LOGIC} == {sp.im}
    assert set(NUMBERS) | set(LOGIC) <= set(INTRINSICS)
    graph = Graph()
    unknown = graph.node(sp.Function("mystery"), graph.number(1))
    for node, name in ((unknown, "mystery"), (graph.node(sp.im, graph.number(1)), "im")):
        with pytest.raises(ArgumentError, match=f"an enclosure of {name}"):
            enclosures(graph, [node], {}, 64)


@pytest.mark.parametrize("head", HEADS, ids=lambda head: head.__name__)
@pytest.mark.thinned
def test_balls_contain_the_100_digit_value(head):
    for point in [*points_of(head), *HEAD_POINTS.get(head, ())]:
        graph = Graph()
        operands = [graph.own_leaf(sp.Symbol(f"u{k}")) for k in range(len(point))]
        node = graph.node(head, *operands)
        exact = evaluate(
            graph, [node], {u: mp.mpf(v) for u, v in zip(operands, point, strict=True)}, "reference", DIGITS
        )[0]
        [found] = enclosures(graph, [node], dict(zip(operands, map(float, point), strict=True)), 256)
        if isinstance(exact, bool):
            assert found == arb(int(exact)), point
        elif mp.isnan(exact):
            assert found.is_nan(), point
        else:
            assert contains(found, exact), (point, found, mp.nstr(exact, 20))
            assert known_bits(found) > 150, (point, found)


def test_a_wrong_digit_would_be_noticed():
    with working_bits(256):
        found = arb(0.7).sin()
    with mp.workdps(DIGITS):
        exact = mp.sin(mp.mpf(0.7))
        assert contains(found, exact)
        assert not contains(found, exact * (1 + mp.mpf(10) ** -70))


ROOT = sp.CRootOf(sp.Symbol("t") ** 5 - sp.Symbol("t") - 1, 0)
CONSTANTS = {
    sp.pi: "3.14159265358979", sp.E: "2.71828182845905", sp.EulerGamma: "0.577215664901533",
    sp.Catalan: "0.915965594177219", sp.GoldenRatio: "1.61803398874989", sp.TribonacciConstant: "1.83928675521416",
    sp.Rational(1, 3): "0.333333333333333", ROOT: "1.16730397826142",
}  # fmt: skip


@pytest.mark.parametrize(("symbol", "value"), CONSTANTS.items(), ids=map(str, CONSTANTS))
def test_constants(symbol, value):
    graph = Graph()
    [found] = enclosures(graph, [graph.leaf(symbol)], {}, 300)
    assert known_bits(found) > 280
    with working_bits(300):
        assert abs(found - arb(value)) < 1e-14
        assert contains(found, mp.make_mpf(symbol.evalf(DIGITS + 5)._mpf_))


def test_what_is_not_decided_has_both_sides():
    """(sqrt(x)**2 - x) is 0 for x = 2, which no precision shows: sign, branch and step keep both sides."""
    zero = lambda x: x**0.5 * x**0.5 - x  # noqa: E731
    for f, both in (
        (lambda x: np.sign(zero(x)), (-1, 1)),
        (lambda x: np.where(zero(x) > 0, 3.0, 7.0), (3, 7)),
        (lambda x: np.floor(x + zero(x)), (1, 2)),
    ):
        traced = trace(f, 2.0)
        [found] = enclosures(traced.graph, traced.outputs.flat, {traced.inputs.flat[0]: 2.0}, 300)
        assert all(found.contains(arb(value)) for value in both), (found, both)
    traced = trace(lambda x: np.where(x > 1, 3.0, 7.0), 2.0)
    for x, value in ((1.0, 7), (math.nextafter(1.0, 2.0), 3)):
        [found] = enclosures(traced.graph, traced.outputs.flat, {traced.inputs.flat[0]: x}, 64)
        assert found == value


@pytest.mark.parametrize(
    "head", [head for head in LOGIC if head not in (sp.Piecewise, heads.Alias)], ids=lambda head: head.__name__
)
def test_logic_of_what_is_undecided_is_what_both_truths_give(head):
    """Not known is the answer exactly where the possible truths of the operands give both answers."""
    count = {sp.Not: 1, sp.ITE: 3}.get(head, 2)
    for tests in product((True, False, None), repeat=count):
        possible = [(True, False) if test is None else (test,) for test in tests]
        answers = {bool(INTRINSICS[head].reference(*truths)) for truths in product(*possible)}
        assert LOGIC[head](*tests) is (answers.pop() if len(answers) == 1 else None), tests


def test_ties_are_rounded_to_even():
    graph = Graph()
    operand = graph.own_leaf(sp.Symbol("u"))
    node = graph.node(heads.rint, operand)
    for value in (-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.0, 2.0**70):
        assert enclosures(graph, [node], {operand: value}, 64)[0] == round(value)


def test_a_branch_not_taken_does_not_spoil_the_value():
    traced = trace(lambda x: np.where(x > 0, x, np.log(x)), 1.0)
    x = traced.inputs.flat[0]
    assert enclosures(traced.graph, traced.outputs.flat, {x: 2.0}, 64)[0] == 2
    assert enclosures(traced.graph, traced.outputs.flat, {x: -1.0}, 64)[0].is_nan()


def test_inputs_may_be_balls():
    traced = trace(lambda x: np.exp(x) * np.maximum(x, 0.25), 1.0)
    with working_bits(64):
        wide = arb(0.5, 0.5)
    [found] = enclosures(traced.graph, traced.outputs.flat, {traced.inputs.flat[0]: wide}, 64)
    for x in (0.0, 0.125, 0.25, 0.5, 1.0):
        assert found.contains(arb(math.exp(x) * max(x, 0.25)))


def test_the_precision_is_raised_until_the_digits_are_there():
    x = 1e-150
    traced = trace(lambda x: 1 - np.cos(x), x)
    [found] = enclose(traced, x, digits=40)
    assert known_bits(found) > 130
    with mp.workdps(400):
        assert contains(found, 1 - mp.cos(mp.mpf(x)))
    [zero] = tight(*_numbered(lambda x: x**0.5 * x**0.5 - x, 2.0), 100)
    assert zero.contains(0)
    assert not zero.is_zero()


def _numbered(f, x):
    traced = trace(f, x)
    return traced.graph, traced.outputs.flat, {traced.inputs.flat[0]: x}


def test_a_kernel_and_its_trace_have_the_same_enclosures():
    f = sa.hessian(lambda x: (x[0] - x[1]) ** 4 + np.sin(x[0] * x[2]))
    x = np.array([0.3, 1.7, -2.0])
    kernel = sa.compile(f, x)
    found, other = enclose(kernel, x, digits=30), enclose(trace(f, x), x, digits=30)
    assert len(found) == len(other) == 9
    for u, v, value in zip(found, other, kernel(x).ravel(), strict=True):
        assert u.overlaps(v)
        assert abs(u - value) <= 1e-14 * abs(value)


def test_a_sweep_is_enclosed_too():
    f = sa.hessian(lambda x: np.exp(np.sin(x) @ np.arange(1.0, 6.0)))
    x = np.linspace(0.1, 1.0, 5)
    found = enclose(sa.compile(f, x, strategy="sweep"), x, digits=20)
    for u, value in zip(found, sa.compile(f, x, strategy="straight")(x).ravel(), strict=True):
        assert abs(u - value) <= 1e-13 * abs(value)


def of(head, *operands, bits=128):
    """The enclosure of a head at balls."""
    graph = Graph()
    leaves = [graph.own_leaf(sp.Symbol(f"u{k}")) for k in range(len(operands))]
    [found] = enclosures(graph, [graph.node(head, *leaves)], dict(zip(leaves, operands, strict=True)), bits)
    return found


NAN, INFINITE = arb.nan(), arb.pos_inf()


@pytest.mark.parametrize("head", [sp.sinc, sp.sign, sp.cos, sp.tanh, sp.Abs, heads.expit, s.gammasgn, heads.cbrt])
def test_no_function_bounds_what_is_not_a_number(head):
    assert of(head, NAN).is_nan()


@pytest.mark.parametrize(
    ("head", "operands"),
    [
        (sp.cos, (INFINITE,)),
        (sp.sin, (-INFINITE,)),
        (sp.sinc, (INFINITE,)),
        (s.betainc, (-3.0, 1.5, 0.3)),
        (s.betaincc, (3.0, 0.0, 0.7)),
        (s.betainc, (arb(3, 3), 1.0, 0.2)),
        (s.gammainc, (-1.0, 2.5)),
        (s.gammaincc, (arb(0.5, 1), 2.5)),
        (s.stdtr, (0.0, 1.0)),
        (s.stdtr, (-2.0, 3.0)),
        (s.gammasgn, (-2.0,)),
        (s.gammasgn, (arb(-1.5, 0.75),)),
        (s.jacobi_am, (0.7, 2.5)),
        (sp.elliptic_k, (arb(3, 0.5),)),
        (sp.elliptic_e, (arb(20, 0.5),)),
        (s.spence, (arb(-1, 0.5),)),
    ],
    ids=str,
)
def test_nothing_is_known_outside_the_domain(head, operands):
    """Arb continues some functions to where they have no value, or bounds them where they have none."""
    assert of(head, *operands).is_nan()


def test_limits_inside_the_domain():
    assert of(sp.tanh, INFINITE) == 1
    assert of(sp.exp, -INFINITE) == 0
    assert of(s.gammainc, 0.0, 2.5) == 1
    assert of(s.gammaincc, 0.0, 2.5) == 0
    assert of(s.gammasgn, -1.5) == 1
    assert of(s.gammasgn, arb(-0.5, 0.01)) == -1


@pytest.mark.parametrize("head", [sp.besseli, s.ive, s.hyp0f1, sp.lowergamma], ids=str)
def test_infinite_arguments_are_no_error(head):
    for u in (INFINITE, -INFINITE):
        assert not of(head, 0.5, u).is_finite()


def test_an_order_that_is_no_whole_number_is_named():
    with pytest.raises(ArgumentError, match="orders are whole numbers"):
        of(sp.jn, 0.5, 1.0)


@pytest.mark.parametrize(
    ("head", "point"),
    [
        (sp.besseli, (-1.0, -0.375)), (sp.besseli, (-2.0, -1.5)), (s.ive, (-3.0, -2.5)), (sp.laguerre, (1.0, 1.0)),
        (sp.gegenbauer, (5.0, 0.75, 0.0)), (sp.jacobi, (3.0, 0.5, 0.5, 0.0)), (sp.chebyshevu, (3.0, 0.0)),
        (sp.assoc_laguerre, (1.0, 0.5, 1.5)), (s.gammainc, (0.0, 2.5)), (s.betainc, (0.5, 1.5, 0.25)),
    ],
    ids=str,
)  # fmt: skip
def test_references_are_defined_where_balls_are(head, point):
    """mpmath gives up where a polynomial vanishes, and has imaginary dust in Bessel functions of negative orders."""
    with precision(60):
        exact = INTRINSICS[head].reference(*map(mp.mpf, point))
    assert contains(of(head, *point, bits=100), exact) or abs(exact) < 1e-50
