"""Jacobians: three orders of one elimination, the cheapest by count, the exact pattern, and batches."""

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.derivatives.elimination import cross_country, forward, forward_operations, reverse
from symad.derivatives.level import open_level
from symad.derivatives.linear import linearize
from symad.derivatives.modes import choices
from tests.support import mixes
from tests.support.cases import CASES

MODES = ("fwd", "rev", "cross-country")
RANDOM = np.random.default_rng(5)
NARROW, WIDE = RANDOM.normal(size=(2, 12)), RANDOM.normal(size=(12, 2))
X = RANDOM.uniform(0.2, 0.9, 12)


def through_a_neck(x):
    """Twelve numbers through two: the order from both ends to the neck is the cheapest."""
    return np.tanh(WIDE @ np.tanh(NARROW @ np.exp(x)))


def chained(x):
    for _ in range(3):
        x = np.sin(x[1:] * x[:-1])
    return x


def branched(x):
    y = np.where(x > 0.5, np.sqrt(np.abs(x - 0.5)), x**2)
    return np.stack([y[0] * y[1], np.maximum(y[2], y[3]), np.where(x[4] > 0.6, y[4], 0.0) * y[5], y.sum()])


def shared(x):
    """Outputs that are inputs, that others use, and that are the same."""
    s = x[0] * x[1]
    return np.stack([s, np.sin(s), x[2], s, np.sin(s) * x[2], 7.0 * x[0] ** 0])


FUNCTIONS = [through_a_neck, chained, branched, shared]


def entries_of(f, x, way, *limit):
    with open_level((x,)) as level:
        result = level.call(f)
        return way(level.build, linearize(level.build, result.flat, level.parameters.flat), *limit)


def differences(f, x, h=1e-6):
    """Return the Jacobian by central differences."""
    return np.stack([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(x.size)], axis=-1)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_every_order_gives_the_jacobian(f):
    expected = differences(f, X)
    for mode in (*MODES, "auto"):
        assert sa.jacobian(f, mode=mode)(X) == pytest.approx(expected, abs=1e-8)
        assert sa.compile(sa.jacobian(f, mode=mode), X)(X) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_forward_and_reverse_orders_are_those_of_the_passes(f):
    """Column by column by jvp, row by row by vjp: the same to the last bit."""
    columns = np.stack([sa.jvp(f, (X,), (unit,))[1] for unit in np.eye(X.size)], axis=-1)
    assert np.array_equal(sa.jacobian(f, mode="fwd")(X), columns)
    _, pullback = sa.vjp(f, X)
    rows = np.stack([pullback(unit)[0] for unit in np.eye(len(columns))])
    assert sa.jacobian(f, mode="rev")(X) == pytest.approx(rows, rel=1e-14)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_every_order_finds_the_same_pattern(f):
    patterns = [sorted(entries_of(f, X, way)) for way in (forward, reverse, cross_country)]
    assert patterns[0] == patterns[1] == patterns[2]
    found = sa.jacobian(f, sparse=True)(X)
    assert list(zip(found.rows, found.columns, strict=True)) == patterns[0]
    assert np.all(found.toarray() == sa.jacobian(f)(X))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_gradients_of_the_cases_by_every_order(case):
    """The Jacobian of a gradient: Hessians, by another route than edge pushing."""
    x = np.array(case.point)
    expected = sa.hessian(case.function)(x)
    for mode in MODES:
        found = sa.jacobian(sa.grad(case.function), mode=mode)(x)
        assert found == pytest.approx(expected, rel=1e-11, abs=1e-12 * np.max(np.abs(expected)))


def test_the_cheapest_order_is_taken_and_shown():
    with choices() as made:
        sa.jacobian(through_a_neck)(X)
    (choice,) = made
    counted = {mode: sa.trace(sa.jacobian(through_a_neck, mode=mode), X).count_ops() for mode in MODES}
    assert dict(choice.operations) == counted
    assert choice.chosen == min(counted, key=counted.__getitem__) == "cross-country"
    assert counted["cross-country"] < 0.9 * min(counted["fwd"], counted["rev"])


def widened(x):
    """A chain of one number that thirty outputs use."""
    y = np.exp(x[0] * x[1])
    for _ in range(5):
        y = np.sin(y)
    return np.cos(np.arange(1.0, 31.0) * y)


@pytest.mark.parametrize(
    ("f", "size", "tried"),
    [
        (lambda x: np.stack([x.sum() ** 2, np.prod(x)]), 30, ["rev"]),
        (lambda x: (x**2).sum(), 30, ["rev"]),
        (lambda x: np.cos(np.arange(30.0) * np.sin(x)), 1, ["fwd"]),
        (widened, 2, ["cross-country", "fwd"]),
        (np.sin, 30, ["fwd"]),
    ],
)
def test_what_obviously_loses_is_not_tried(f, size, tried):
    with choices() as made:
        sa.jacobian(f)(np.linspace(0.1, 0.9, size))
    assert sorted(made[0].operations) == tried


def test_counting_beforehand_is_counting():
    """For a dense layer of n inputs and m outputs on top of n functions: m n products, m (n - 1) sums of one entry."""
    matrix = RANDOM.normal(size=(3, 4))
    with open_level((X[:4],)) as level:
        result = level.call(lambda x: matrix @ np.sin(x))
        linear = linearize(level.build, result.flat, level.parameters.flat)
        assert forward_operations(linear) == 12
        assert forward_operations(linear.transpose()) == 12
        assert forward_operations(linear, limit=5) < 12


def test_cross_country_is_given_up_beyond_its_limit():
    assert entries_of(through_a_neck, X, cross_country, 10) is None
    assert entries_of(through_a_neck, X, cross_country) is not None


@pytest.mark.parametrize("mode", MODES)
def test_work_is_linear_in_the_length_of_a_band(mode):
    def nodes(n):
        with open_level((np.linspace(0, 1, n),)) as level:
            result = level.call(chained)
            before = len(level.build.graph.heads)
            linear = linearize(level.build, result.flat, level.parameters.flat)
            {"fwd": forward, "rev": reverse, "cross-country": cross_country}[mode](level.build, linear)
            return len(level.build.graph.heads) - before

    assert nodes(800) < 2.1 * nodes(400)


@pytest.mark.parametrize("mode", MODES)
def test_branches_not_taken_stay_outside_every_product(mode):
    traps = [
        lambda x: np.stack([np.where(x[0] > 0, np.sqrt(x[0]) * x[1], x[1]), np.sqrt(np.maximum(0, x[0] - 1))]),
        lambda x: np.sqrt(np.where(x > 1, x, 0) + np.where(x > 2, 2 * x, 0)),
        lambda x: np.where(x > 0, np.log(x), 0) * np.sum(np.where(x > 0, 1 / x, 1)),
    ]
    for f in traps:
        for apply in (sa.jacobian(f, mode=mode), sa.compile(sa.jacobian(f, mode=mode), np.zeros(2))):
            assert np.all(np.isfinite(apply(np.array([0.0, -1.0]))))
        second = sa.jacobian(sa.jacobian(f, mode=mode), mode=mode)(np.array([0.0, -1.0]))
        assert np.all(np.isfinite(second))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("word", mixes.words(2))
def test_an_entry_is_differentiated_by_every_mix(mode, word):
    def entry(t):
        return sa.jacobian(lambda x: np.stack([x[0] * np.sin(x[1]), x[1] ** 3 * t]), mode=mode)(np.stack([t, t * t]))[
            1, 1
        ]

    assert mixes.nested(word, entry)(1.1) == pytest.approx(3 * 20 * 1.1**3, rel=1e-13)  # of 3 t^5


def random_program(generator):
    """Return a function of three numbers with four results: sums, products, functions, choices with traps inside."""
    steps = [(int(generator.integers(8)), *generator.integers(0, 3 + k, 2).tolist()) for k in range(25)]

    def program(x):
        values = [x[0], x[1], x[2]]
        for kind, a, b in steps:
            u, v = values[a], values[b]
            if kind == 0:
                w = u + v
            elif kind == 1:
                w = u * v
            elif kind == 2:
                w = np.sin(u) - v
            elif kind == 3:
                w = np.tanh(u * v)
            elif kind == 4:
                w = np.where(u > 0, np.sqrt(u), v)
            elif kind == 5:
                w = np.where(v > 0.1, np.log(v), np.where(v > 0, u / v, u))
            elif kind == 6:
                w = np.maximum(u, 2 * v)
            else:
                w = np.exp(-(u**2))
            values.append(w)
        return np.stack([values[-1], values[-2], values[-5], values[4]])

    return program


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.thinned
def test_random_programs_with_branches_by_every_order(seed):
    """Also at points where a branch that is not taken has an infinite slope."""
    generator = np.random.default_rng(seed)
    f = random_program(generator)
    kernels = {mode: sa.compile(sa.jacobian(f, mode=mode), np.zeros(3)) for mode in MODES}
    for point in (generator.normal(size=3), generator.normal(size=3), np.array([0.0, 1.0, -1.0])):
        columns = np.stack([sa.jvp(f, (point,), (unit,))[1] for unit in np.eye(3)], axis=-1)
        for mode in MODES:
            assert sa.jacobian(f, mode=mode)(point) == pytest.approx(columns, rel=1e-9, abs=1e-11, nan_ok=True), mode
            assert kernels[mode](point) == pytest.approx(columns, rel=1e-9, abs=1e-11, nan_ok=True), mode


def test_symbols_give_expressions_in_every_order():
    x, y = sp.symbols("x y", real=True)
    for mode in MODES:
        found = sa.jacobian(lambda v: np.stack([v[0] * v[1], sp.sin(2) * v[1] ** 2]), mode=mode)(np.array([x, y]))
        assert sp.Matrix(found) == sp.Matrix([x * y, sp.sin(2) * y**2]).jacobian([x, y])


def test_an_unknown_mode_is_refused():
    with pytest.raises(sa.errors.ArgumentError, match=r"mode='backward'.*'cross-country'"):
        sa.jacobian(np.sin, mode="backward")


# Batches

WEIGHTS = RANDOM.normal(size=(3, 4))
BATCH = RANDOM.uniform(0.2, 0.9, (5, 3))


def layer(xs):
    """A layer as in seed 003, on all rows at once."""
    return np.tanh(xs @ WEIGHTS) ** 2


def one_by_one(f, xs):
    """Return the Jacobians of the rows, each by a batch of one."""
    return np.stack([sa.jacobian(lambda x: f(x[None])[0])(x) for x in xs])


@pytest.mark.parametrize("mode", ["auto", *MODES])
def test_blocks_of_a_batch_are_the_jacobians_of_its_rows(mode):
    found = sa.batched_jacobian(layer, mode=mode)(BATCH)
    assert found.shape == (5, 4, 3)
    assert found == pytest.approx(one_by_one(layer, BATCH), rel=1e-13)
    whole = sa.jacobian(layer)(BATCH)  # shape (5, 4, 5, 3): the blocks stand on its diagonal, and all else is 0
    assert found == pytest.approx(whole[np.arange(5), :, np.arange(5)], rel=1e-13)
    assert np.count_nonzero(whole) == found.size
    assert sa.compile(sa.batched_jacobian(layer, mode=mode), BATCH)(BATCH) == pytest.approx(found, rel=1e-13)


def test_no_terms_between_rows_are_formed():
    def operations(count):
        return sa.trace(sa.batched_jacobian(layer), BATCH[:count]).count_ops()

    assert operations(4) == 2 * operations(2) == 4 * operations(1)


def test_rows_may_have_any_shape_and_results_may_be_containers():
    xs = RANDOM.normal(size=(4, 2, 3))

    def f(xs):
        return {"sum": (xs**2).sum(axis=(1, 2)), "row": np.sin(xs[:, 0, :])}

    found = sa.batched_jacobian(f)(xs)
    assert found["sum"] == pytest.approx(2 * xs)
    assert found["row"].shape == (4, 3, 2, 3)
    assert found["row"][:, 1, 0, 1] == pytest.approx(np.cos(xs[:, 0, 1]))
    numbers = sa.batched_jacobian(lambda t: t**2)(np.array([1.0, 2.0]))
    assert numbers.tolist() == [2.0, 4.0]


def test_blocks_are_differentiated_by_every_mix():
    """Seed 003: a loss with the blocks in it, differentiated again with respect to inputs and weights."""

    def loss(xs, weights):
        blocks = sa.batched_jacobian(lambda rows, w: np.tanh(rows @ w))(xs, weights)
        return ((0.01 * blocks) ** 2).sum()

    def by_hand(xs, weights):
        slopes = 1 - np.tanh(xs @ weights) ** 2
        return ((0.01 * slopes[:, :, None] * weights.T) ** 2).sum()

    for argument in (0, 1):
        for transform in (sa.grad, sa.jacfwd, sa.hessian):
            found, expected = (transform(g, argument)(BATCH, WEIGHTS) for g in (loss, by_hand))
            assert found == pytest.approx(expected, rel=1e-11, abs=1e-15)
    assert sa.batched_jacobian(lambda w, xs: xs @ w, wrt="xs")(WEIGHTS, BATCH)[2] == pytest.approx(WEIGHTS.T)


def test_symbols_in_a_batch():
    a, b = sp.symbols("a b", real=True)
    found = sa.batched_jacobian(lambda xs: xs**2)(np.array([[a], [b]]))
    assert found.shape == (2, 1, 1)
    assert found.ravel().tolist() == [2 * a, 2 * b]


def test_a_function_that_mixes_the_rows_is_refused():
    """Batch normalisation in training, a cumulative sum: the seed leaves BatchNorm out for this reason."""
    with pytest.raises(
        sa.errors.ArgumentError, match=r"row 0 of the result depends on row 1.*normalisation.*use jacobian"
    ):
        sa.batched_jacobian(lambda xs: (xs - xs.mean(axis=0)) / xs.std(axis=0))(BATCH)
    with pytest.raises(sa.errors.ArgumentError, match=r"row 1 of the result depends on row 0"):
        sa.batched_jacobian(lambda xs: np.cumsum(xs, axis=0))(BATCH)
    with pytest.raises(sa.errors.ArgumentError, match=r"row 0 of the result depends on row 4"):
        sa.batched_jacobian(lambda xs: xs[::-1])(BATCH)


@pytest.mark.parametrize("f", [lambda xs: xs.sum(), lambda xs: xs[:3], lambda xs: (xs, xs[:, 0].sum())])
def test_results_without_the_batch_axis_are_refused(f):
    with pytest.raises(sa.errors.ArgumentError, match=r"batch of shape \(5, 3\) and results of shapes"):
        sa.batched_jacobian(f)(BATCH)
    with pytest.raises(sa.errors.ArgumentError, match="a batch of 2 arrays"):
        sa.batched_jacobian(lambda p: p["a"] * p["b"])({"a": BATCH, "b": BATCH})


# Gradients of sums (known answer A24)


def test_a24_the_gradient_of_a_vector_is_refused_and_that_of_its_sum_is_written_down():
    x = np.array([0.3, 0.7, 1.1])
    vector = lambda x: np.sin(x) * x[0]  # noqa: E731
    with pytest.raises(sa.errors.ArgumentError, match=r"gradient of a vector-valued.*jacobian.*vjp"):
        sa.grad(vector)(x)
    found = sa.grad(lambda x: np.sum(vector(x)))(x)
    assert found == pytest.approx(sa.jacobian(vector)(x).sum(axis=0), rel=1e-14)
    assert found == pytest.approx(sa.vjp(vector, x)[1](np.ones(3))[0], rel=1e-14)


def test_a24_twice_in_a_row_it_is_no_hessian():
    """Seed 004: what `tf.gradients(tf.gradients(...))` gives are the row sums of the Hessian."""
    x = np.array([0.3, 0.7])
    f = lambda x: x[0] ** 2 * x[1]  # noqa: E731
    twice = sa.grad(lambda x: np.sum(sa.grad(f)(x)))(x)
    assert twice == pytest.approx(sa.hessian(f)(x).sum(axis=0))
    assert twice.shape == (2,)


def test_hessians_show_their_choice_too():
    with choices() as made:
        sa.hessian(lambda x: np.sin(x[0] * x[1]))(np.array([0.3, 0.7]))
    assert [(choice.what, choice.chosen in choice.operations) for choice in made] == [("Hessian", True)]
