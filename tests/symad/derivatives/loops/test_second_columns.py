"""Hessians and Jacobians by columns: of programs that have another way too, and of chains, which have none."""

import numpy as np
import pytest

import symad as sa
from codegen.ir.program import Input, Output
from codegen.ir.region import Buffer, Carry, Gather, Region, Result, RolledProgram, regions_of
from codegen.ir.tables import Affine
from symad.derivatives.loops.body_derivatives import body_program
from symad.derivatives.loops.columns_in_lanes import in_lanes
from symad.derivatives.loops.columns_of_regions import MOST_ROUNDS, hessian_by_columns, jacobian_by_columns
from symad.derivatives.loops.loop_hessian import hessian
from symad.derivatives.loops.loop_jacobian import jacobian
from symad.derivatives.loops.pullback import gradient, pullback
from symad.derivatives.loops.pushforward import pushforward
from tests.support.second_cases import MAPS, SCALARS, flat_hessian, flat_jacobian, numbers_of, points_of, rosenbrock

CASES = SCALARS | MAPS


def descent(steps, every=False):
    """Momentum on a function of two variables; inputs: start and velocity, rates. Output: the last place, or all."""

    def step(rate, decay, x, y, vx, vy):
        gx, gy = x**3 - y, y - x + np.sin(y)
        vx, vy = decay * vx - rate * gx, decay * vy - rate * gy
        return x + vx, y + vy, vx, vy

    body = body_program(step, 6)
    gathers = (Gather(1, Affine(0, 0, steps)), Gather(1, Affine(1, 0, steps)))
    carries = tuple(Carry(k, (Gather(0, Affine(k, 0, 1)),)) for k in range(4))
    if every:
        results = tuple(Result(k, 2, Affine(k, 2, steps), "store") for k in range(2))
        output = Output((steps, 2), ())
    else:
        results = tuple(Result(k, 2, Affine(k, 0, 1), "last") for k in range(2))
        output = Output((2,), ())
    buffers = (Buffer("input", 4), Buffer("input", 2), Buffer("output", output.size))
    inputs = (Input("start", (4,)), Input("rates", (2,)))
    return RolledProgram(inputs, (output,), buffers, (Region(body, steps, gathers, results, carries),))


def distance(steps):
    """The squared length of where the descent ends."""
    chain = descent(steps)
    square = body_program(lambda a: (a * a,), 1)
    buffers = (*chain.buffers[:2], Buffer("workspace", 2), Buffer("output", 1))
    total = Region(square, 2, (Gather(2, Affine(0, 1, 2)),), (Result(0, 3, Affine(0, 0, 2), "add"),))
    return RolledProgram(chain.inputs, (Output((), ()),), buffers, (*chain.steps, total))


def dense_hessian(rolled, wrt, points):
    size = rolled.inputs[wrt].size
    matrix = np.zeros((size, size))
    for (row, column), value in flat_hessian(rolled, wrt, points).items():
        matrix[row, column] = matrix[column, row] = value
    return matrix


def dense_jacobian(rolled, wrt, points):
    matrix = np.zeros((rolled.outputs[0].size, rolled.inputs[wrt].size))
    for place, value in flat_jacobian(rolled, wrt, points).items():
        matrix[place] = value
    return matrix


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.thinned
def test_hessians_by_columns(name):
    rolled = SCALARS[name]()
    points = points_of(rolled)
    found = hessian_by_columns(rolled, 0)
    (data,) = numbers_of(found, points)
    assert data.shape == rolled.inputs[0].shape * 2
    right = dense_hessian(rolled, 0, points)
    np.testing.assert_allclose(data.reshape(right.shape), right, rtol=1e-10, atol=1e-11)


def in_lanes_or_none(rolled, wrt, way):
    """The Hessian, or the Jacobian by columns or rows, with the columns side by side."""
    seed = len(rolled.inputs)
    if way == "hessian":
        shape = rolled.inputs[wrt].shape * 2
        return in_lanes(pushforward(gradient(rolled, [wrt]), [wrt], units=True), seed, shape, across=True)
    shape = rolled.outputs[0].shape + rolled.inputs[wrt].shape
    pushed = (pushforward if way == "columns" else pullback)(rolled, [wrt], units=True)
    return in_lanes(pushed, seed, shape, across=way == "columns")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", ["hessian", "columns", "rows"])
def test_columns_side_by_side(name, way):
    rolled = CASES[name]()
    if len(rolled.outputs) > 1 or (way == "hessian" and name not in SCALARS):
        return
    found = in_lanes_or_none(rolled, 0, way)
    if found is None:
        assert any(region.matrix is not None or region.stop is not None for region, _ in regions_of(rolled.steps))
        return
    points = points_of(rolled)
    (data,) = numbers_of(found, points)
    right = (dense_hessian if way == "hessian" else dense_jacobian)(rolled, 0, points)
    np.testing.assert_allclose(data.reshape(right.shape), right, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("wrt", [0, 1])
def test_columns_of_chains_side_by_side(steps, wrt):
    for rolled, ways in ((distance(steps), ["hessian"]), (descent(steps, every=True), ["columns", "rows"])):
        points = points_of(rolled)
        for way in ways:
            (data,) = numbers_of(in_lanes_or_none(rolled, wrt, way), points)
            right = (dense_hessian if way == "hessian" else dense_jacobian)(rolled, wrt, points)
            np.testing.assert_allclose(data.reshape(right.shape), right, rtol=1e-10, atol=1e-11)


def test_no_columns_of_chains_that_would_leave_gigabytes():
    assert in_lanes_or_none(distance(100_000), 0, "hessian") is not None
    assert in_lanes_or_none(distance(4_000_000), 0, "hessian") is None


def test_more_columns_than_fit_side_by_side():
    """53 columns: 32, and 21 that are left over; kernels have the numbers of the second derivative along each axis."""

    def chain(x):
        s = 0.0
        for k in range(2120):
            s = np.sin(s + x[k % 53]) * x[k % 53]
        return s

    x = np.linspace(0.1, 0.9, 53)
    kernel = sa.compile(sa.hessian(chain), x, roll="always")
    rows = [sa.hvp(chain, (x,), (unit,)) for unit in np.eye(53)[::13]]
    np.testing.assert_allclose(kernel(x)[::13], rows, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", [name for name in CASES if name != "normalised"])
@pytest.mark.thinned
def test_jacobians_by_columns_or_rows(name):
    rolled = CASES[name]()
    points = points_of(rolled)
    (data,) = numbers_of(jacobian_by_columns(rolled, 0), points)
    right = dense_jacobian(rolled, 0, points)
    np.testing.assert_allclose(data.reshape(right.shape), right, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("wrt", [0, 1])
def test_hessian_of_a_chain(wrt):
    rolled = distance(7)
    points = [np.array([0.5, -0.3, 0.1, 0.2]), np.array([0.05, 0.8])]
    (data,) = numbers_of(hessian_by_columns(rolled, wrt), points)
    np.testing.assert_allclose(data, dense_hessian(rolled, wrt, points), rtol=1e-11, atol=1e-12)
    assert hessian(rolled, wrt, None) is None  # so short a chain is faster in straight lines


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("wrt", [0, 1])
def test_jacobian_of_a_chain(wrt, every):
    rolled = descent(7, every)
    points = [np.array([0.5, -0.3, 0.1, 0.2]), np.array([0.05, 0.8])]
    (data,) = numbers_of(jacobian_by_columns(rolled, wrt), points)
    right = dense_jacobian(rolled, wrt, points)
    np.testing.assert_allclose(data.reshape(right.shape), right, rtol=1e-11, atol=1e-12)
    assert jacobian(rolled, wrt, False) is None


def test_long_chains_have_dense_matrices_only():
    rolled = distance(2000)
    assert hessian(rolled, 0, None).outputs[0].shape == (4, 4)
    assert jacobian(rolled, 0, False).outputs[0].shape == (4,)
    assert hessian(rolled, 0, "lower") is jacobian(rolled, 0, True) is None


def test_too_many_columns():
    assert hessian_by_columns(SCALARS["Rosenbrock"](), 0) is not None
    assert hessian_by_columns(rosenbrock(MOST_ROUNDS + 1), 0) is None


@pytest.mark.parametrize("every", [False, True])
def test_an_infinite_derivative_stays_in_its_column(every):
    """The unit vectors of the other columns have a zero there, and not 0 * inf."""
    body = body_program(lambda x, c: (0.5 * np.sin(c) + np.sqrt(x),), 2)
    result = Result(0, 1, Affine(0, 1, 5), "store") if every else Result(0, 1, Affine(0, 0, 1), "last")
    gather, carry = Gather(0, Affine(0, 1, 5)), Carry(0, (Gather(0, Affine(0, 0, 1)),))
    output = Output((5,) if every else (), ())
    buffers = (Buffer("input", 5), Buffer("output", output.size))
    program = RolledProgram(
        (Input("x", (5,)),), (output,), buffers, (Region(body, 5, (gather,), (result,), (carry,)),)
    )  # fmt: skip
    x = np.array([0.3, 0.5, 0.0, 0.7, 0.9])
    expected = np.zeros((5, 5))
    flat = flat_jacobian(program, 0, [x]) if every else flat_hessian(program, 0, [x])
    for (row, column), value in flat.items():
        expected[row, column] = value
        if not every:
            expected[column, row] = value
    (found,) = numbers_of((jacobian_by_columns if every else hessian_by_columns)(program, 0), [x])
    others = [0, 1, 3, 4]
    np.testing.assert_allclose(found[:, others], expected[:, others], rtol=1e-12, atol=1e-14)
