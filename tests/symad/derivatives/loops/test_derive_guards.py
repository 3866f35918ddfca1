"""A branch that is not taken contributes nothing, also where its derivative is infinite in another body."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.linalg
import sympy as sp

import symad as sa
from codegen.ir.body_parts import slots_behind
from codegen.ir.copy_rows import body_of
from codegen.ir.region import Carry, Nest, RolledProgram
from codegen.ir.row_table import RowTable
from codegen.ir.tables import Affine
from symad.derivatives.loops.body_derivatives import Replay, body_program, body_pullback, outputs_infinite
from symad.derivatives.loops.checkpoints import Checkpoints
from symad.derivatives.loops.pullback import gradient, pullback
from symad.derivatives.loops.pushforward import pushforward
from tests.support.derive_cases import Made, region, run as table
from tests.support.derive_flat import agree, flat_function
from tests.support.derive_strict import run

X = np.array([0.25, -1.0, 0.0, 4.0])


def choice_first() -> RolledProgram:
    """The root of what was chosen: its derivative is infinite where 0 was chosen, and nothing depends on x."""
    made = Made({"x": (4,)}, {"f": ()}, {"y": (4,)})
    return made.program(
        region(lambda x: (np.where(x > 0, x * x, 0.0),), 4, [made.at("x", table(4))], [made.to(0, "y", table(4))]),
        region(lambda y: (np.sqrt(y),), 4, [made.at("y", table(4))], [made.to(0, "f", table(4, 0, 0), "add")]),
    )


def choice_last() -> RolledProgram:
    """A root that is chosen only where its derivative is finite; it goes through a sum on its way."""
    made = Made({"x": (4,)}, {"f": ()}, {"r": (4,), "s": (4,)})
    return made.program(
        region(lambda x: (np.sqrt(x * x),), 4, [made.at("x", table(4))], [made.to(0, "r", table(4))]),
        region(lambda r: (2 * r,), 4, [made.at("r", table(4, 3, -1))], [made.to(0, "s", table(4, 3, -1), "add")]),
        region(lambda s, x: (np.where(x != 0, s * x, 0.0),), 4, [made.at("s", table(4)), made.at("x", table(4))],
               [made.to(0, "f", table(4, 0, 0), "add")]),
    )  # fmt: skip


def choice_of_a_multiple_of_nan() -> RolledProgram:
    """NaN times x, which is not chosen: the factor is a constant, and no operation."""
    made = Made({"x": (4,)}, {"f": ()}, {"r": (4,)})
    return made.program(
        region(lambda x: (np.nan * x,), 4, [made.at("x", table(4))], [made.to(0, "r", table(4))]),
        region(lambda r, x: (np.where(x < 9, x * x, r),), 4, [made.at("r", table(4)), made.at("x", table(4))],
               [made.to(0, "f", table(4, 0, 0), "add")]),
    )  # fmt: skip


def chain() -> RolledProgram:
    """A carry whose root is taken in the next repetition; only some repetitions change it."""
    made = Made({"x": (4,)}, {"f": ()}, {"end": ()}, zero=[0.0])
    step = region(
        lambda x, c: (np.where(x > 0, x * x, 0.0), np.sqrt(c)), 4, [made.at("x", table(4))],
        [made.to(0, "end", 0, "last"), made.to(1, "f", table(4, 0, 0), "add")], [Carry(0, (made.at("x", 3),))],
    )  # fmt: skip
    return made.program(
        step, region(lambda e: (np.sqrt(e),), 1, [made.at("end", 0)], [made.to(0, "f", 0, "add")])
    )  # fmt: skip


def chain_that_is_read_twice() -> RolledProgram:
    """Two places take the last value of the carry."""
    made = Made({"x": (4,)}, {"f": ()}, {"end": (), "copy": ()}, zero=[0.0])
    step = region(
        lambda x, c: (np.where(x > 0, x * x, 0.0), np.sqrt(c)), 4, [made.at("x", table(4))],
        [made.to(0, "end", 0, "last"), made.to(0, "copy", 0, "last"), made.to(1, "f", table(4, 0, 0), "add")],
        [Carry(0, (made.at("x", 3),))],
    )  # fmt: skip
    return made.program(
        step,
        region(lambda e: (np.sqrt(e),), 1, [made.at("end", 0)], [made.to(0, "f", 0, "add")]),
        region(lambda e: (3 * np.sqrt(e),), 1, [made.at("copy", 0)], [made.to(0, "f", 0, "add")]),
    )  # fmt: skip


def chain_in_a_nest() -> RolledProgram:
    made = Made({"x": (4,)}, {"f": ()}, {"end": (3,)})
    step = region(
        lambda x, c: (np.where(x > 0.5, x * x + c, 0.0), np.sqrt(c)), 2, [made.at("x", table(2, 2, -1, (1,)))],
        [made.to(0, "end", Affine(1, 0, 1, (1,)), "last"), made.to(1, "f", table(2, 0, 0), "add")],
        [Carry(0, (made.at("end", Affine(0, 0, 1, (1,))),))],
    )  # fmt: skip
    return made.program(
        region(lambda x: (np.maximum(x, 1.0) - 1.0,), 1, [made.at("x", 1)], [made.to(0, "end", 0)]), Nest(2, (step,))
    )


def product_of_infinities() -> RolledProgram:
    """A product has a finite derivative where its factors are finite, and 1/x of another loop is not."""
    made = Made({"x": (4,)}, {"f": ()}, {"r": (4,), "s": (4,), "t": (4,)})
    return made.program(
        region(lambda x: (1 / x,), 4, [made.at("x", table(4))], [made.to(0, "r", table(4))]),
        region(lambda r: (r + 1,), 4, [made.at("r", table(4))], [made.to(0, "s", table(4))]),
        region(lambda s, x: (s * x,), 4, [made.at("s", table(4)), made.at("x", table(4, 3, -1))],
               [made.to(0, "t", table(4))]),
        region(lambda t, x: (np.where(x != 0, t * x, 0.0),), 4, [made.at("t", table(4)), made.at("x", table(4))],
               [made.to(0, "f", table(4, 0, 0), "add")]),
    )  # fmt: skip


def chain_of_infinities() -> RolledProgram:
    """The same of a carry that becomes infinite in a branch that is not taken."""
    made = Made({"x": (4,)}, {"f": ()}, {"t": (4,)})
    step = region(
        lambda x, c: (c / x, c * x), 4, [made.at("x", table(4))], [made.to(1, "t", table(4))],
        [Carry(0, (made.at("x", 0),))],
    )  # fmt: skip
    return made.program(step, region(
        lambda t, x: (np.where(x > 0, t * x, 0.0),), 3, [made.at("t", table(3)), made.at("x", table(3))],
        [made.to(0, "f", table(3, 0, 0), "add")],
    ))  # fmt: skip


def held_in_part() -> RolledProgram:
    """Roots that are chosen are also read as they are, but for one where the derivative is infinite."""
    made = Made({"x": (4,)}, {"f": ()}, {"r": (4,)})
    return made.program(
        region(lambda x: (np.sqrt(x * x),), 4, [made.at("x", table(4))], [made.to(0, "r", table(4))]),
        region(lambda r, x: (np.where(x != 0, r * x, 0.0),), 4, [made.at("r", table(4)), made.at("x", table(4))],
               [made.to(0, "f", table(4, 0, 0), "add")]),
        region(lambda r: (3 * r,), 3, [made.at("r", [0, 1, 3])], [made.to(0, "f", table(3, 0, 0), "add")]),
    )  # fmt: skip


CASES: tuple[Callable[[], RolledProgram], ...] = (
    choice_first, choice_last, choice_of_a_multiple_of_nan, chain, chain_that_is_read_twice, chain_in_a_nest,
    product_of_infinities, chain_of_infinities, held_in_part,
)  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_first_order(case: Callable[[], RolledProgram]) -> None:
    program, v = case(), np.array([0.5, 1.5, -1.0, 2.0])
    flat = flat_function(program)
    expected = sa.grad(lambda x: flat(x)[0])(X)
    assert np.isfinite(expected).all()
    agree(run(gradient(program, [0]), [X]), [expected])
    agree(run(pushforward(program, [0]), [X, v]), [flat(X)[0], expected @ v])
    policies: tuple[Checkpoints, ...] = ("sqrt", "none")
    for checkpoints in policies:
        agree(run(gradient(program, [0], checkpoints=checkpoints), [X], scratch=True), [expected])


@pytest.mark.parametrize("case", CASES)
def test_second_order(case: Callable[[], RolledProgram]) -> None:
    program, v = case(), np.array([0.5, 1.5, -1.0, 2.0])
    flat = flat_function(program)
    product = sa.hvp(lambda x: flat(x)[0], (X,), (v,))
    first = gradient(program, [0])
    agree(run(pushforward(first, [0]), [X, v])[1:], [product])
    agree(run(pullback(first, [0]), [X, v])[1:], [product])


def test_guards_that_nothing_asks_for_are_left_out() -> None:
    """Rectified layers: a partial derivative that is a weight cannot be infinite."""
    made = Made({"w": (4,), "v": (4,), "x": ()}, {"f": ()}, {"h": (4,), "g": (4,)})
    layers = made.program(
        region(lambda w, x: (np.maximum(w * x, 0.0),), 4, [made.at("w", table(4)), made.at("x", table(4, 0, 0))],
               [made.to(0, "h", table(4))]),
        region(lambda h, v: (np.maximum(h * v, 0.0),), 4, [made.at("h", table(4, 3, -1)), made.at("v", table(4))],
               [made.to(0, "g", table(4))]),
        region(lambda g: (g * g,), 4, [made.at("g", table(4))], [made.to(0, "f", table(4, 0, 0), "add")]),
    )  # fmt: skip
    found = gradient(layers, [0, 1])
    assert [buffer.size for buffer in found.buffers if buffer.kind == "workspace"] == [4, 4]  # h, its cotangent


def test_what_is_read_without_a_choice_too_has_no_guards() -> None:
    """The terms of log-sum-exp go into the largest one, and into a sum as they are."""
    made = Made({"x": (4,)}, {"f": ()}, {"y": (4,), "m": ()})
    program = made.program(
        region(lambda x: (1 / x,), 4, [made.at("x", table(4))], [made.to(0, "y", table(4))]),
        region(lambda a, b, c, d: (np.maximum(np.maximum(a, b), np.maximum(c, d)),), 1,
               [made.at("y", k) for k in range(4)], [made.to(0, "m", 0)]),
        region(lambda y, m: (np.exp(y - m),), 4, [made.at("y", table(4)), made.at("m", table(4, 0, 0))],
               [made.to(0, "f", table(4, 0, 0), "add")]),
    )  # fmt: skip
    found = gradient(program, [0])
    assert [buffer.size for buffer in found.buffers if buffer.kind == "workspace"] == [4, 1, 4, 1]  # y, m, cotangents
    x = np.array([0.5, 1.5, -1.0, 2.0])
    agree(run(found, [x]), [sa.grad(lambda x: flat_function(program)(x)[0])(x)])


def test_sums_of_cotangents_ask_for_no_guards() -> None:
    """Two copies of one array, which are one loop, have cotangents with guards: their sum needs none of these."""
    body = body_program(lambda x: (x,), 1)
    made, _ = body_pullback(Replay(body, [0]), [0, 0], guarded=[0, 1])
    assert len(made.outputs) == 2
    needed = slots_behind(made, [1])
    assert needed == [1, 2]
    assert sa.from_program(made)(5.0, 0.0, 3.0, 0.0, 1.0)[1] == 3.0


@pytest.mark.parametrize(
    ("base", "exponent", "infinite"),
    [
        (16, sp.Rational(-1, 2), False),
        (sp.Float(0.5), -3, False),
        (2, -1, False),
        (0, -1, True),
        (-2, 0.5, True),
        (sp.Float(1e300), 2.5, True),
        (0, sp.Rational(1, 2), False),
    ],
)
def test_a_power_of_numbers_is_a_number(base, exponent, infinite):
    rows = RowTable()
    slot = rows.leaf(sp.Symbol("x"))
    power = rows.row(sp.Pow, (rows.leaf(sp.sympify(base)), rows.leaf(sp.sympify(exponent))))
    body = body_of(rows, ["x"], [rows.row(sp.Mul, (slot, power))], "scaled")
    assert bool(outputs_infinite(body, [])) == infinite


ROWS = 30  # a matrix of so many rows is factorized as a whole
DIAGONAL, FULL = np.diag(np.arange(1.0, ROWS + 1)), np.cos(np.outer(np.arange(ROWS), np.arange(ROWS)))
OF_MATRICES: dict[str, Callable[..., object]] = {  # no number, or no slope, at 0
    "solve": lambda t: np.sum(np.linalg.solve(np.eye(ROWS) * t, np.ones(ROWS))),
    "triangular": lambda t: np.sum(
        scipy.linalg.solve_triangular(np.tril(np.ones((ROWS, ROWS))) * t, DIAGONAL[0], lower=True)
    ),
    "cholesky": lambda t: np.sum(np.linalg.cholesky(np.eye(ROWS) * t)),
    "log determinant": lambda t: np.linalg.slogdet(np.eye(ROWS) * t)[1],
    "determinant": lambda t: np.log(np.linalg.det(np.eye(ROWS) * t)),
    "qr": lambda t: np.sum(np.linalg.qr(FULL * t)[1]),
    "eigen": lambda t: np.sum(np.linalg.eigh(DIAGONAL * t)[0]),
    "singular": lambda t: np.sum(np.linalg.svd(DIAGONAL * t)[0]),
    "exponential": lambda t: np.sum(scipy.linalg.expm(FULL / t)),
    "product": lambda t: np.sum((FULL * np.log(t)) @ (FULL / t)),
}


@pytest.mark.parametrize("of_matrix", OF_MATRICES.values(), ids=OF_MATRICES)
@pytest.mark.parametrize("transform", [sa.grad, sa.hessian])
def test_a_matrix_operation_of_a_path_that_is_not_taken_contributes_nothing(
    of_matrix: Callable[..., object], transform: Callable[..., Callable[..., np.ndarray]]
) -> None:
    def function(x: np.ndarray) -> object:
        if x[0] > 1.5:
            return of_matrix(x[0] - 1.0)
        return x[0] * x[1]

    kernel = sa.compile(transform(function), np.array([2.7, 2.0]))
    other, taken = np.array([1.0, 3.0]), np.array([2.7, 3.0])
    assert np.array_equal(kernel(other), transform(lambda x: x[0] * x[1])(other))
    assert np.allclose(kernel(taken), transform(function)(taken), rtol=1e-9, atol=1e-12)
