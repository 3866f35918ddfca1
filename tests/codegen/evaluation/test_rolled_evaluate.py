"""A rolled program by NumPy and as straight lines: the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from codegen import ArgumentError, compile_program
from codegen.errors import LimitError
from codegen.evaluation.column_functions import FUNCTIONS, evaluate_columns
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.evaluation.interpret import evaluate
from codegen.expressions.sympy_in import program_from_sympy
from codegen.functions.intrinsics import INTRINSICS
from codegen.ir.unroll import unroll
from tests.support.rolled_programs import (
    KNOWN,
    arrays_for,
    heat,
    momentum,
    newton,
    pairs,
    random_program,
    unrolled_values,
)


def close(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13)


def test_pairs() -> None:
    x = np.arange(1.0, 10.0)
    products = np.outer(x, x)[np.triu_indices(9, 1)]
    total, found = evaluate_rolled(pairs(), [x])
    assert total == products.sum() + 36
    assert found.tolist() == products.tolist()


def test_a_nest_goes_on_with_what_the_round_before_has_left() -> None:
    u = np.random.default_rng(0).random(7)
    (found,) = evaluate_rolled(heat(7, 5), [u])
    for _ in range(5):
        inside = u[1:-1] + 0.125 * (u[:-2] - 2 * u[1:-1] + u[2:])
        u = np.concatenate([[0.0], inside, [0.0]])
    np.testing.assert_allclose(found, u, rtol=1e-15)


def test_carries_and_the_last_value() -> None:
    x, speed, losses = 0.75, 0.0, []
    for _ in range(30):
        losses.append(x**2)
        speed = 0.5 * speed - 0.1 * x
        x += speed
    found, history = evaluate_rolled(momentum(30), [0.1, 0.75])
    assert found == pytest.approx(x, rel=1e-12)
    np.testing.assert_allclose(history, losses, rtol=1e-12)


def test_a_loop_that_stops_leaves_zeros_behind() -> None:
    root, count, values = evaluate_rolled(newton(), [2.0])
    assert root == pytest.approx(2**0.5, rel=1e-15)
    assert count == 5
    assert values[4] == root
    assert not values[5:].any()


@pytest.mark.parametrize("name", KNOWN)
def test_straight_lines_have_the_same_numbers(name: str) -> None:
    program = KNOWN[name]
    arrays = arrays_for(program)
    close(evaluate_rolled(program, arrays), unrolled_values(program, arrays))


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_have_the_numbers_of_their_straight_lines(seed: int) -> None:
    program = random_program(seed)
    arrays = arrays_for(program, seed)
    close(evaluate_rolled(program, arrays), unrolled_values(program, arrays))


def test_more_repetitions_than_one_block() -> None:
    program = pairs(300)
    x = np.random.default_rng(1).random(300)
    total, found = evaluate_rolled(program, [x])
    wanted = np.outer(x, x)[np.triu_indices(300, 1)]
    assert found.tolist() == wanted.tolist()
    assert total == pytest.approx(wanted.sum() + len(wanted), rel=1e-12)


def test_arrays_of_another_shape_are_refused() -> None:
    for arrays in ([], [np.zeros(8)], [np.zeros(9), 1.0]):
        with pytest.raises(ArgumentError, match="pairs takes"):
            evaluate_rolled(pairs(9), arrays)


VALUES = [0.0, -0.0, 0.5, 1.0, -1.0, 2.0, -2.5, 1e300, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("head", FUNCTIONS, ids=lambda head: head.__name__)
def test_every_column_function_is_that_of_floats(head: sp.Basic) -> None:
    """Also where numbers are not finite; truth values stand for 0 and 1."""
    one = INTRINSICS[head].number
    tests = [False, True]
    truth = head in (sp.Not, sp.And, sp.Or)
    count = {sp.Piecewise: 4, sp.ITE: 3}.get(head) or (1 if _takes(one, 1) else 2)
    grid = np.meshgrid(*[tests if truth or (count > 2 and (k % 2 if count == 4 else k == 0)) else VALUES
                         for k in range(count)])  # fmt: skip
    columns = [part.ravel() for part in grid]
    with np.errstate(all="ignore"):
        found = np.broadcast_to(FUNCTIONS[head](*columns), columns[0].shape)
    wanted = [one(*numbers) for numbers in zip(*[column.tolist() for column in columns], strict=True)]
    np.testing.assert_allclose(found.astype(float), np.array(wanted, dtype=float), rtol=4e-16, atol=0)


def _takes(function: object, count: int) -> bool:
    try:
        function(*[0.5] * count)  # type: ignore[operator]
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("exponent", [sp.Integer(3), sp.Rational(1, 2), sp.Rational(-3, 2), sp.Integer(-1), sp.pi])
def test_powers_have_the_conventions_of_the_interpreter(exponent: sp.Basic) -> None:
    x = sp.Symbol("x")
    program = program_from_sympy([x], [x**exponent, 3 * x**exponent])
    rows = [output.rows[0] for output in program.outputs]
    values = {0: np.array(VALUES)}
    evaluate_columns(program, range(1, len(program)), values)
    for row in rows:
        wanted = [evaluate(program, [row], {0: value})[0] for value in VALUES]
        np.testing.assert_allclose(values[row], wanted, rtol=4e-16)


def test_unrolling_has_a_limit() -> None:
    with pytest.raises(LimitError, match="at most 5,000,000 are written"):
        unroll(momentum(10**6))
    with pytest.raises(LimitError, match=r"may stop has up to 6,000"):
        unroll(newton(6000))


def test_a_kernel_of_straight_lines_is_right_too() -> None:
    for program in (pairs(), heat(), momentum(), newton()):
        arrays = arrays_for(program)
        found = compile_program(unroll(program), tier="fast")(*arrays)
        found = found if isinstance(found, tuple) else (found,)
        close([np.asarray(array) for array in found], evaluate_rolled(program, arrays))
