"""Operations on large arrays: loops where a function is compiled, and the numbers of what is written out."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import symad as sa
from codegen.ir.region import regions_of
from symad.compiling.candidates import primal_of, traced_with_loops
from symad.tracing.control.array_loops import GATHERED, LARGE, SMALL, ArrayLoops

RNG = np.random.default_rng(5)
DATA = RNG.normal(size=(300, 20))
SIGNS = np.where(RNG.random(300) < 0.5, -1.0, 1.0)
LONG = RNG.normal(size=450)
SPECIAL = np.where(np.arange(450) % 9 == 0, -0.0, LONG)
LEFT = RNG.normal(size=(70, 2))
SQUARE = RNG.normal(size=(64, 64)) * 0.1
WIDE = RNG.normal(size=(20, 20))


def logistic(w):
    return np.sum(np.log1p(np.exp(-SIGNS * (DATA @ w[:20])))) + np.sum((DATA * w[:20]) ** 2)


def network(p):
    first, second = p[:400].reshape(20, 20), p[400:420].reshape(20, 1)
    hidden = np.tanh(DATA[:40] @ first + p[420:440])
    return np.mean((hidden @ second - SIGNS[:40, None]) ** 2)


def both_sides_move(x):
    a = x[:400].reshape(20, 20)
    return np.sum(np.sin(a @ a.T)) + np.sum(a.T @ WIDE) + np.trace(WIDE @ a)


def stores_and_views(x):
    y = np.exp(x[:450] * 0.1)
    y[::3] *= 2.0
    y[10:20] = x[:10] * x[1]
    z = y.reshape(9, 50).T
    z[5] = 0.0
    return np.sum(np.cumsum(y)[::7]) + np.sum(z * z) + y[3] * y[449]


def stores_after_a_use(x):
    y = x[:490] * 1.0
    square = y.reshape(7, 70)
    first, second, third = np.sin(y), square @ LEFT, np.sum(square * 2.0, axis=0)
    line = square[:, :20].T.copy().T @ x[:20]
    y[:] = 3.0
    square[0] = x[0]
    return np.sum(first) + np.sum(second * second) + np.sum(third**2) + np.sum(line) + np.sum(y)


def sums_along_axes(x):
    a = x[:450].reshape(9, 50)
    cube = x[:450].reshape(5, 9, 10)
    first, last = np.sum(np.cos(a), axis=0), np.mean(a * a, axis=1, keepdims=True)
    return np.sum(first**3) + np.sum(last * a) + np.sum(np.sum(cube, axis=(0, 2)) ** 2)


def choices(x):
    y = x[:450]
    chosen = np.where(y > LONG, y * LONG, np.maximum(y, 0.25))
    return np.sum(chosen) + np.max(y * 2.0) + np.sum(np.abs(y - LONG))


def branches(x):
    y = np.tanh(x[:450])
    return np.sum(y * y) if x[0] > 0 else np.sum(np.sqrt(1 + y * y))


def constants_of_all_kinds(x):
    y = x[:450]
    powers = np.where(np.arange(450) % 2 == 0, 2.0, 3.0)
    return np.sum(y**powers) + np.sum(y * SPECIAL) + np.sum(y / (LONG + 10.0)) + np.sum(y * np.arange(450)) * 1e-4


def vector_and_matrix(x):
    return np.sum((x[:20] @ DATA.T) ** 3) + np.sum((x[:300] @ DATA) ** 2) + x[:450] @ LONG + np.dot(LONG, x[:450])


def used_again(x):
    y = np.sin(x[:450])
    return np.sum(y) * np.sum(np.sin(x[:450])) + np.sum(np.concatenate([y, LONG]) * 2.0)


def softmax_of_rows(x):
    a = x[:480].reshape(6, 80)
    shifted = np.exp(a - np.max(a, axis=1, keepdims=True))
    shares = shifted / np.sum(shifted, axis=1, keepdims=True)
    return np.sum(np.log(shares) * LEFT[:6, :1]) + np.sum(np.min(a, axis=0) ** 2) + np.max(a) * np.min(x[:450])


def products_and_running(x):
    y = 1.0 + 0.1 * np.sin(x[:480])
    columns = np.prod(y.reshape(40, 12), axis=0)
    return np.sum(columns) + np.sum(np.cumsum(y) * y) * 1e-3 + np.sum(np.cumprod(y.reshape(120, 4) ** 0.01, axis=0))


def truth_values(x):
    y = x[:450]
    low, high = y < LONG, y > 0.5
    either, neither = low | high, ~low & ~high
    first = np.where(either, y * y, np.exp(y)) * neither
    second = np.where(np.arange(450) % 3 == 0, y, LONG * y) * (low.reshape(9, 50).T.T.ravel() * 2.0 - high)
    return np.sum(first) + np.sum(second**2) + np.sum(low) * y[0] + (np.sum(y) if np.any(high) else 0.0)


def contractions(x):
    stack, matrix = x[:720].reshape(3, 15, 16), x[:256].reshape(16, 16)
    vectors = np.einsum("bij,kj->bik", stack, matrix)
    traces = np.einsum("bij,bij->b", stack, vectors) + np.einsum("...ij->...", stack * stack)
    outer = np.einsum("i,j->ij", x[:70], x[70:140])
    small = x[:900].reshape(100, 3, 3) @ x[:300].reshape(100, 3, 1)
    mixed = np.tensordot(stack, WIDE[:3, :4], axes=0)[:, 0, 0]
    scores = stack @ np.swapaxes(stack, 1, 2)
    return np.sum(traces**2) + np.sum(np.sin(outer)) + np.sum(small**2) + np.sum(mixed) + np.sum(scores * scores) * 1e-3


def small_arrays_between_large_ones(x):
    hidden = x[:300].reshape(20, 15)
    weights = x[300:900].reshape(15, 40)
    for k in range(3):
        joined = np.hstack([hidden, DATA[:20, :4] * k, np.ones((20, 1))])
        hidden = np.tanh(joined @ np.vstack([weights, LEFT[:20].reshape(1, 40), weights[:4]]))[:, :15]
    return np.sum(hidden * hidden)


CASES = (
    softmax_of_rows, products_and_running, truth_values, contractions, small_arrays_between_large_ones, logistic,
    network, both_sides_move, stores_and_views, stores_after_a_use, sums_along_axes, choices, branches,
    constants_of_all_kinds, vector_and_matrix, used_again,
)  # fmt: skip
X = RNG.normal(size=900)
Y = RNG.normal(size=4900)


@pytest.fixture
def smaller(monkeypatch):
    """Arrays of a tenth of the size are large: operations on numbers, which these are compared with, take long."""
    monkeypatch.setattr("symad.compiling.candidates.ArrayLoops", partial(ArrayLoops, least=300))
    monkeypatch.setattr("symad.tracing.control.array_loops.SMALL", 30)


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
@pytest.mark.thinned
def test_compiled_loops_give_what_is_written_out(f, smaller):
    x = np.abs(X) if f is branches else X
    kernel = sa.compile(sa.value_and_grad(f), x)
    value, gradient = kernel(x)
    wanted, by_levels = sa.value_and_grad(f)(x)  # on numbers, operation by operation
    assert value == pytest.approx(wanted, rel=1e-12)
    assert value == pytest.approx(f(x), rel=1e-12)
    np.testing.assert_allclose(gradient, by_levels, rtol=1e-9, atol=1e-9 * np.abs(by_levels).max())
    step = RNG.normal(size=x.shape) * 1e-6
    if f not in (choices, truth_values):  # which have kinks and jumps between the two points
        assert np.dot(gradient, step) == pytest.approx((f(x + step) - f(x - step)) / 2, rel=2e-4)


def test_the_other_path_is_compiled_too(smaller):
    kernel = sa.compile(sa.grad(branches), X)
    for x in (np.abs(X), -np.abs(X)):
        np.testing.assert_allclose(kernel(x), sa.grad(branches)(x), rtol=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        logistic,
        network,
        both_sides_move,
        sums_along_axes,
        vector_and_matrix,
        softmax_of_rows,
        truth_values,
        contractions,
    ],
    ids=lambda f: f.__name__,
)
def test_nothing_is_traced_element_by_element(f, smaller):
    traced = traced_with_loops(f, (X,))
    assert traced.count_ops() < 4000  # what is done to arrays of 300 and 400 elements
    assert all(loop.origin.startswith("test_array_loops.py:") for loop in traced.loops)


def test_the_rows_of_a_trace_do_not_grow_with_the_data():
    def rows(size):
        data, signs = RNG.normal(size=(size, 20)), np.sign(RNG.normal(size=size))
        traced = traced_with_loops(lambda w: np.sum(np.log1p(np.exp(-signs * (data @ w)))), (X[:20],))
        return sum(map(bool, traced.graph.operands)), len(traced.loops)

    assert rows(10_000) == rows(100_000)


def test_what_is_done_twice_is_one_loop():
    def f(x):
        return np.sum(np.sin(x)) * np.sum(np.sin(x))

    loops = traced_with_loops(f, (Y,)).loops
    assert [(loop.count, loop.results[0].kind) for loop in loops] == [(4900, "each"), (4900, "sum")]


def test_small_arrays_are_written_out():
    rows = np.random.default_rng(2).permutation(GATHERED - 1)
    assert not traced_with_loops(lambda x: np.sum(np.sin(x)), (Y[: SMALL - 1],)).loops
    assert not traced_with_loops(lambda x: np.sum(np.sin(x[rows])), (Y[: GATHERED - 1],)).loops
    assert not traced_with_loops(lambda x: np.sum(np.sin(np.ones((60, 3)) @ x.reshape(3, -1))), (Y[:63],)).loops


@pytest.mark.parametrize(
    ("f", "loops"),
    [
        (lambda x: np.sin(x[1:] - x[:-1]), 2),
        (lambda x: x.reshape(2, -1)[:, ::2] * 2, 1),
        (lambda x: x[:-1] * np.arange(1.0, len(x)), 1),
        (lambda x: np.square(x[np.r_[0 : len(x) - 1, 0]]), 1),  # which has an element twice
        (lambda x: x[:20, None] - x[None, :20], 0),  # few pairs: found as a nest
        (lambda x: np.sin(x[np.triu_indices(30, 1)[0]]) ** 2, 0),  # and so is what is done to them
    ],
)
def test_what_is_done_to_arguments_in_even_steps_is_a_loop_at_once(f, loops):
    x = RNG.normal(size=4 * SMALL)
    traced = traced_with_loops(f, (x,))
    assert len(traced.loops) == loops
    np.testing.assert_allclose(sa.compile(f, x)(x), f(x), rtol=1e-14)


def test_rounds_on_small_arrays_are_written_out_and_found() -> None:
    def steps(u, number):
        for _ in range(number):
            u = np.concatenate([u[:1], u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]), u[-1:]])
        return np.sum(u**2)

    u = RNG.normal(size=300)
    few, many = (sa.plan(lambda u, number=number: steps(u, number), u) for number in (20, 60))
    assert [plan.chosen for plan in (few, many)] == ["rolled", "rolled"]
    assert 20 in [loop.count for loop in few.loops]  # one chain, with a long body
    assert {loop.count for loop in many.loops} <= {298, 300}
    np.testing.assert_allclose(sa.compile(lambda u: steps(u, 20), u)(u), steps(u, 20), rtol=1e-12)


@pytest.mark.parametrize(("size", "of_small"), [(SMALL - 1, False), (SMALL, True), (4095, True), (4096, False)])
def test_a_trace_says_whether_small_operations_are_loops(size: int, of_small: bool) -> None:
    """Only then is there another trace, in which they are written out."""
    traced = traced_with_loops(lambda x: np.sum(np.sin(x)), (np.ones(size),))
    assert traced.of_small_arrays is of_small
    assert traced.of_arrays is (size >= SMALL)


def test_the_hessian_of_one_body_is_taken_of_loops():
    data, signs = RNG.normal(size=(6000, 5)), np.where(RNG.random(6000) < 0.5, -1.0, 1.0)
    hessian = sa.hessian(lambda w: np.sum(np.log1p(np.exp(-signs * (data @ w)))))
    shares = 1 / (1 + np.exp(signs * (data @ np.ones(5))))
    wanted = data.T * (shares * (1 - shares)) @ data
    np.testing.assert_allclose(sa.compile(hessian, np.ones(5))(np.ones(5)), wanted, rtol=1e-11)
    steps = sa.plan(hessian, np.ones(5)).primal.program.steps
    assert [(step.count, len(step.results)) for step in steps] == [(6000, 1)]


def many_loops(x):
    a = SQUARE * x[0] + x[1]
    shares = np.exp(a - np.max(a, axis=1, keepdims=True))
    return np.sum(np.log(shares / np.sum(shares, axis=1, keepdims=True)) * SQUARE * x[1])


def test_the_dense_hessian_of_many_loops_is_taken_by_columns():
    x = np.array([0.7, 0.3])
    gradient = sa.compile(sa.grad(many_loops), x)
    wanted = [(gradient(x + step) - gradient(x - step)) / 2e-6 for step in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(sa.compile(sa.hessian(many_loops), x)(x), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("f", [logistic, softmax_of_rows], ids=lambda f: f.__name__)
def test_products_with_the_hessian_are_taken_of_the_same_loops(f, smaller):
    v = RNG.normal(size=X.shape) * 1e-6
    kernel = sa.compile(lambda x, v: sa.hvp(f, (x,), (v,)), X, v)
    gradient = sa.compile(sa.grad(f), X)
    wanted = (gradient(X + v) - gradient(X - v)) / 2
    np.testing.assert_allclose(kernel(X, v), wanted, atol=1e-7 * np.abs(wanted).max())


def test_derivatives_inside_the_function_go_through_the_loops_around_them():
    def f(x):
        inner = sa.grad(lambda t: np.sum(np.exp(0.1 * t * x)))(np.cos(x))
        return np.sum(inner * inner)

    x = Y[:4500] * 0.3
    np.testing.assert_allclose(sa.compile(sa.grad(f), x)(x), sa.grad(f)(x), rtol=1e-10)


@pytest.mark.parametrize("f", [np.max, np.min, lambda x: np.max(x.reshape(100, 45), axis=0)[0], np.cumsum])
def test_nan_is_what_it_is_in_numpy(f):
    x = Y[:4500].copy()
    x[90] = np.nan
    np.testing.assert_array_equal(sa.compile(f, Y[:4500])(x), f(x))


@pytest.mark.parametrize("f", [np.max, np.min, lambda x: np.sum(np.max(x.reshape(9, 50), axis=0))])
def test_ties_are_shared_as_where_it_is_written_out(f, smaller):
    x = np.round(X[:450])
    np.testing.assert_array_equal(sa.compile(sa.grad(f), x)(x), sa.grad(f)(x))


def test_all_paths_write_down_the_same_loops():
    def f(x):
        small = np.sum(np.sin(x[:300]))  # written out, as nothing large came before
        return small * (np.sum(np.cos(x)) if small > 0 else np.sum(x * x))

    kernel = sa.compile(sa.grad(f), Y[:4500])
    for x in (Y[:4500], -Y[:4500]):
        np.testing.assert_allclose(kernel(x), sa.grad(f)(x), rtol=1e-11, atol=1e-12)


def test_constants_among_what_moves():
    mask = np.tri(70, dtype=bool)

    def f(x):
        scores = np.where(mask, x[:4900].reshape(70, 70), -30.0)
        joined = np.hstack([scores, np.ones((70, 1))])
        return np.sum(np.log(np.sum(np.exp(scores), axis=1))) + np.sum(np.max(scores, axis=0) ** 2) + np.sum(joined**2)

    assert traced_with_loops(f, (Y,)).count_ops() < 400
    np.testing.assert_allclose(sa.compile(sa.grad(f), Y)(Y), sa.grad(f)(Y), rtol=1e-11)


@pytest.mark.parametrize("test", [np.any, np.all], ids=["any", "all"])
def test_a_condition_of_all_elements_chooses_a_path(test):
    def f(x):
        return np.sum(x * x) if test(x > 0.5) else np.sum(x)

    kernel = sa.compile(sa.grad(f), Y[:4500])
    for x in (np.abs(Y[:4500]) + 0.6, -np.abs(Y[:4500]), Y[:4500]):
        np.testing.assert_array_equal(kernel(x), sa.grad(f)(x))


def test_what_a_chain_leaves_at_its_end_stands_side_by_side():
    """The largest of each of 20 rows is asked for in one loop, and gets its cotangents from one."""

    def f(x, rows=20):
        values = x.reshape(rows, 40)
        return np.sum(np.exp(values - np.max(values, axis=1, keepdims=True)))

    x = RNG.normal(size=800)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("symad.compiling.candidates.ArrayLoops", partial(ArrayLoops, least=300))
        program = sa.plan(sa.value_and_grad(f), x, roll="always").candidate.rolled.program
        kernel = sa.compile(sa.value_and_grad(f), x, roll="always")
    regions = [region for region, _ in regions_of(program.steps)]
    assert len(regions) < 10
    assert max(len(region.carries) for region in regions) == 20
    np.testing.assert_allclose(kernel(x)[1], sa.grad(f)(x), rtol=1e-12, atol=1e-14)


def test_what_is_read_again_and_again_is_copied_once(smaller):
    """Rows with ones beside them, for two products, and a transposed matrix; a part of an array is read where it is."""

    def f(x):
        matrix, rows = x[9:429].reshape(21, 20), np.hstack([x[429:829].reshape(20, 20), np.ones((20, 1))])
        return np.sum(np.tanh(rows @ matrix)) + np.sum((rows @ matrix.T.reshape(21, 20)) ** 2 + rows @ matrix)

    program = primal_of(traced_with_loops(f, (X,)), "f", False).program
    copies = [region for region, _ in regions_of(program.steps) if region.origin == "copies"]
    assert sum(region.count for region in copies) == 2 * 420
    np.testing.assert_allclose(sa.compile(sa.grad(f), X)(X), sa.grad(f)(X), rtol=1e-12, atol=1e-14)


def test_no_atoms_are_made_of_arrays_of_constants():
    """Those beside others in one array are copied as numbers."""
    data = RNG.normal(size=(250, 20))

    def f(x):
        return np.sum(np.tanh(np.hstack([data, x[:250].reshape(250, 1)]) @ x[:840].reshape(21, 40)))

    traced = traced_with_loops(f, (X,))
    program = primal_of(traced, "f", True).program
    assert dict.__len__(traced.graph.atoms) < data.size / 2
    constants = [buffer.values for buffer in program.buffers if buffer.values is not None]
    assert any(np.isin(data, values).all() for values in constants)
    np.testing.assert_allclose(sa.compile(sa.grad(f), X)(X), sa.grad(f)(X), rtol=1e-12, atol=1e-14)


def test_what_a_chain_leaves_is_kept_apart_where_one_is_needed_without_the_others():
    """The sum that is carried along is added to the result, so a gradient alone needs no value of it."""
    times = np.linspace(0, 1, 3000)

    def f(x):
        def step(carry, t):
            return (np.sin(carry[0]) + x[0] * t, carry[1] + carry[0] ** 2), None

        (last, total), _ = sa.scan(step, (x[1], 0.0), times)
        return last**3 + total

    def ends(f):
        program = sa.plan(f, X[:2]).candidate.rolled.program
        return max(sum(use.kind == "last" for use in region.results) for region, _ in regions_of(program.steps[:2]))

    assert (ends(sa.value_and_grad(f)), ends(sa.grad(f))) == (2, 1)


def test_rows_with_constants_lie_side_by_side_before_they_are_compared(smaller):
    mask = np.tri(20, dtype=bool)

    def largest(x):
        scores = np.where(mask, x[:400].reshape(20, 20) ** 2, -1e9)
        return np.sum(np.max(scores, axis=-1) ** 2 + np.max(scores.T[::-1], axis=-1))

    x = RNG.normal(size=400)
    kernel = sa.compile(sa.value_and_grad(largest), x)
    assert len(kernel.stats.regions) < 20  # and not one for each of the columns
    scores = np.where(mask, x.reshape(20, 20) ** 2, -1e9)
    rows, columns = np.argmax(scores, axis=1), np.argmax(scores, axis=0)
    wanted = np.zeros((20, 20))
    np.add.at(wanted, (np.arange(20), rows), 2 * scores.max(axis=1))
    np.add.at(wanted, (columns, np.arange(20)), 1.0)
    value, gradient = kernel(x)
    np.testing.assert_allclose(value, np.sum(scores.max(axis=1) ** 2) + np.sum(scores.max(axis=0)), rtol=1e-13)
    np.testing.assert_allclose(gradient, (wanted * 2 * x.reshape(20, 20)).ravel(), rtol=1e-12)
    np.testing.assert_allclose(sa.grad(largest)(x), gradient, rtol=1e-12)


def test_one_body_is_made_for_all_operations_that_are_alike():
    def steps(x):
        for _ in range(12):
            x = np.sin(0.5 * x) + np.roll(x, 1)
        return np.sum(x)

    bodies = {id(loop.body) for loop in traced_with_loops(steps, (RNG.normal(size=LARGE),)).loops}
    assert len(bodies) == 4  # a product, a sine, a sum of two, and of all


def test_bodies_of_equal_constants_of_other_types_are_not_one():
    def squares(x):
        return np.sum(x**2) + np.sum(x**2.0) + np.sum(x * 2) + np.sum(x * 2.0)

    x = RNG.normal(size=LARGE)
    loops = traced_with_loops(squares, (x,)).loops
    assert len({tuple(map(str, loop.body.atoms.values())) for loop in loops}) > 2
    value, gradient = sa.compile(sa.value_and_grad(squares), x)(x)
    np.testing.assert_allclose(value, squares(x), rtol=1e-12)
    np.testing.assert_allclose(gradient, 4 * x + 4, rtol=1e-13, atol=1e-14)


def test_clipped_places_in_two_axes():
    """Floors that are clipped stay whole: bilinear interpolation of an image at moved and turned points."""
    image = np.random.default_rng(0).random((40, 50))
    rows, columns = np.mgrid[0:40, 0:50]

    def warped(p):
        x = columns * np.cos(p[2]) - rows * np.sin(p[2]) + p[0]
        y = columns * np.sin(p[2]) + rows * np.cos(p[2]) + p[1]
        at_x, at_y = np.clip(np.floor(x).astype(int), 0, 48), np.clip(np.floor(y).astype(int), 0, 38)
        a, b = x - at_x, y - at_y
        upper = (1 - a) * image[at_y, at_x] + a * image[at_y, at_x + 1]
        lower = (1 - a) * image[at_y + 1, at_x] + a * image[at_y + 1, at_x + 1]
        return np.sum(((1 - b) * upper + b * lower) ** 2)

    p = np.array([1.3, -0.4, 0.02])
    for transform in (sa.grad, sa.hessian):
        kernel = sa.compile(transform(warped), p)
        for point in (p, 1.7 * p):
            np.testing.assert_allclose(kernel(point), transform(warped)(point), rtol=1e-9)
