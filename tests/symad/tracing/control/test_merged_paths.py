"""The paths of a function are merged before it is differentiated: the same derivatives, each path run once."""

import math
import time
from functools import partial

import numpy as np
import pytest
from scipy import special

import symad as sa
from codegen.ir.program import reachable
from symad.errors import LimitError, RuleError
from symad.tracing.trace import to_program
from tests.support import mixes

GENERATOR = np.random.default_rng(11)


def two_sides(x):
    return np.sin(x) * x if x > 0 else np.exp(x) + x**2


def three_pieces(x):
    y = np.cos(x)
    return y * x**3 if x > 1 else y + np.sqrt(x + 2) if x > -1 else 1 / x


def singular_on_the_other_side(x):
    return x * np.log(x) + np.sqrt(x) + x**-1.5 if x > 0 else np.log(1 - x) * x


def steps(x):
    total = x
    for edge in (-1.5, -0.5, 0.5, 1.5):
        total = total * np.sin(x + edge) if x > edge else total + x * x
    return total


def extrema(x):
    return max(x, 0.5) * min(x * x, 2.0) + abs(min(x, -0.25, key=abs))


ONE = {
    f.__name__: (f, points)
    for f, points in (
        (two_sides, (-1.3, 0.0, 0.7)),
        (three_pieces, (-2.2, -1.0, 0.3, 1.0, 1.4)),
        (singular_on_the_other_side, (-0.7, 0.0, 0.9)),
        (steps, (-2.0, -1.5, -0.7, 0.2, 0.5, 1.2, 3.0)),
        (extrema, (-3.0, -0.3, 0.1, 0.5, 1.0)),
    )
}


@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize("name", ONE)
@pytest.mark.thinned
def test_every_mix_of_modes_of_one_variable(name, order):
    """Compiled against interpreted at each point, the edges of branches and NaN among them."""
    f, points = ONE[name]
    for word in mixes.words(order):
        g = mixes.nested(word, f)
        kernel = sa.compile(g, 1.0)
        for point in (*points, math.nan):
            with np.errstate(all="ignore"):
                expected = float(g(np.float64(point)))
            assert kernel(point) == pytest.approx(expected, rel=1e-13, abs=1e-13, nan_ok=True), (word, point)


def independent(x):
    """2**n paths."""
    total = 0.0
    for k in range(len(x)):
        total = total + np.sin(x[k]) * x[0] if x[k] > 0 else total + x[k] ** 2 * np.exp(x[1])
    return total


def dependent(x):
    """2**n paths, the conditions of which depend on the paths before; what is common comes first."""
    t = np.sum(np.exp(np.sin(np.outer(x, x))))
    for k in range(len(x)):
        t = t * x[k] if t > k else t + x[k] ** 3
    return t


def nearest(x):
    total = 0.0
    for k in range(8):
        total = total + np.maximum(np.sin(x[k % len(x)] * (k + 1)), 0.1) * np.hypot(x[0], x[1] + k)
    if np.all(x > 0.5):
        total = total * 2.0
    return total * min(x, key=abs) + np.sign(x[0]) * np.sum(x**3)


def with_state(x):
    t = x
    for k in range(3):
        t = np.sin(t) * x if t[0] > t[1] + 0.1 * k else t + np.roll(x, 1) ** 2
    return np.sum(t * t)


# function, size, paths, and runs: min(x, key=abs) is met by a stand-in, in a second attempt
SEVERAL = {"independent": (independent, 6, 64, 64), "dependent": (dependent, 3, 8, 8), "nearest": (nearest, 3, 8, 9),
           "with state": (with_state, 3, 8, 8)}  # fmt: skip
TRANSFORMS = {
    "value": lambda f: f,
    "gradient": sa.grad,
    "value and gradient": lambda f: sa.jacobian(sa.grad(f)),
    "in part": lambda f: sa.grad(f, wrt="x"),
    "third tensor": lambda f: sa.partials(f, 3),
    "Laplacian": sa.laplacian,
    **{f"Hessian {mode}": partial(sa.hessian, mode=mode) for mode in mixes.HESSIAN_MODES},
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.thinned
def test_derivatives_of_many_paths(name, transform):
    """Compiled against interpreted at points on many paths; the function is run once for each."""
    f, size, paths, expected_runs = SEVERAL[name]
    runs = []

    def g(x):
        runs.append(1)
        return f(x)

    x = np.linspace(0.4, 1.1, size)
    kernel = sa.compile(TRANSFORMS[transform](g), x)
    assert len(runs) == expected_runs
    assert sa.trace(f, x).paths == paths
    plain = TRANSFORMS[transform](f)
    for point in (*GENERATOR.normal(size=(12, size)), np.full(size, 0.75), np.append(np.full(size - 1, 0.3), math.nan)):
        with np.errstate(all="ignore"):
            expected = plain(point)
        np.testing.assert_allclose(kernel(point), expected, rtol=1e-11, atol=1e-11)


def operations(f, *args):
    return sa.trace(f, *args).count_ops()


def test_what_paths_have_in_common_is_computed_and_differentiated_once():
    """Conditions that do not depend on each other cost a choice each, and not a choice for each path."""
    counts = [operations(independent, np.zeros(size)) for size in (3, 4, 5, 6)]
    assert len(set(np.diff(counts))) == 1
    gradients = [operations(sa.grad(independent), np.zeros(size)) for size in (3, 4, 5, 6)]
    assert max(np.diff(gradients)) <= 2 * np.diff(counts)[0] + 4
    tensor = [operations(sa.partials(independent, 3), np.zeros(size)) for size in (4, 6)]
    assert tensor[1] < 2 * tensor[0]


def test_what_comes_after_a_condition_is_written_down_once():
    def f(x):
        t = np.sin(x) if x[0] > 0 else np.cos(x)
        for _ in range(5):
            t = np.exp(t) * np.roll(t, 1)
        return np.sum(t)

    def chosen(x):
        t = np.where(x[0] > 0, np.sin(x), np.cos(x))
        for _ in range(5):
            t = np.exp(t) * np.roll(t, 1)
        return np.sum(t)

    assert operations(f, np.ones(4)) == operations(chosen, np.ones(4))
    assert operations(sa.grad(f), np.ones(4)) == operations(sa.grad(chosen), np.ones(4))
    for transform in (sa.hessian, partial(sa.hessian, mode="fwd-rev")):
        assert operations(transform(f), np.ones(4)) < 1.1 * operations(transform(chosen), np.ones(4))


def test_a_choice_is_no_deeper_than_it_pays():
    assert operations(lambda x, y: x * y if x > y else np.sin(x) * np.cos(y), 1.0, 1.0) == 6
    assert operations(lambda x, y: np.sin(np.exp(x) * y) if x > y else np.sin(np.exp(y) * y), 1.0, 1.0) == 5


@pytest.mark.parametrize("mode", mixes.HESSIAN_MODES)
def test_compositions_that_are_differentiated_as_one_stay_so(mode):
    """log(1 + exp(u)), sqrt(u)**2, |u||u| on one path: a choice inside would hide them."""
    cases = {
        lambda x: np.log(1 + np.exp(x)) if x > 0 else np.log(1 + x * x): 800.0,
        lambda x: np.abs(x) * np.abs(x) if x < 1 else np.abs(x) * x * x: 0.0,
        lambda x: np.linalg.norm(np.stack([x, 0 * x])) ** 2 if x < 1 else (x * x) ** 2: 0.0,
        lambda x: 1 / (1 + np.exp(-x)) if x < 0 else 1 / (1 + x): -800.0,
        lambda x: x**2 if x < 1 else x**3: 0.0,
        lambda x: special.jv(1, x) if x < 1 else special.jv(2, x): 0.5,
    }
    for f, point in cases.items():
        g = sa.hessian(f, mode=mode)
        assert sa.compile(g, 1.0)(point) == pytest.approx(g(point), rel=1e-14), point


def test_patterns_have_what_some_path_has_and_nothing_else():
    """A choice inside a function: the mixed derivative in what is chosen from is a structural zero."""
    functions = [
        lambda x: np.sin(x[0]) if x[2] > 0 else np.sin(x[1]),
        lambda x: np.sin(np.where(x[2] > 0, x[0], x[1])),
        lambda x: x[3] * np.exp(x[0] if x[2] > 0 else x[1] if x[3] > 0 else x[2]),
        lambda x: np.where(x[2] > 0, x[0], x[1]) * np.where(x[2] > 0, x[1], x[3]),
    ]
    expected = [
        {(0, 0), (1, 1)},
        {(0, 0), (1, 1)},
        {(0, 0), (1, 1), (2, 2), (3, 0), (3, 1), (3, 2)},
        {(1, 0), (3, 1)},
    ]
    for f, places in zip(functions, expected, strict=True):
        for mode in ("auto", "edge", "dyadic"):
            kernel = sa.compile(sa.hessian(f, sparse="lower", mode=mode), np.ones(4))
            assert set(zip(*map(np.ndarray.tolist, map(np.asarray, kernel.sparsity)), strict=True)) == places
        jacobian = sa.compile(sa.jacobian(sa.grad(f), sparse=True), np.ones(4))
        whole = places | {(j, i) for i, j in places}
        assert set(zip(*map(np.ndarray.tolist, map(np.asarray, jacobian.sparsity)), strict=True)) == whole
        for point in GENERATOR.normal(size=(8, 4)):
            dense = np.zeros((4, 4))
            dense[tuple(jacobian.sparsity)] = jacobian(point)
            np.testing.assert_allclose(dense, sa.hessian(f, mode="fwd-rev")(point), rtol=1e-13)


class OutsideError(Exception):
    """An error of the user's own."""


def raising(x):
    t = np.sum(np.sin(x))
    if x[0] < 0:
        raise OutsideError("negative")
    return t * x[1] if t > 1 else t * 3.0


@pytest.mark.parametrize("name", [name for name in TRANSFORMS if name != "value"])
def test_every_derivative_is_nan_where_the_function_raises(name):
    transform = TRANSFORMS[name]
    kernel = sa.compile(transform(raising), np.ones(3))
    assert np.isnan(kernel(-np.ones(3))).all()
    for point in (np.full(3, 0.2), np.full(3, 0.7)):
        np.testing.assert_allclose(kernel(point), transform(raising)(point), rtol=1e-13, atol=1e-15)


def test_where_only_nan_leads_there_is_no_value():
    def f(x):
        if x <= 1:
            return 3.0 * x
        elif x > 1:
            return x**2

    for transform in (sa.grad, sa.derivative, sa.hessian, lambda f: sa.partials(f, 2)):
        assert math.isnan(sa.compile(transform(f), 1.0)(math.nan))
        assert sa.compile(transform(f), 1.0)(2.0) == transform(f)(2.0)


def test_derivatives_in_the_code_merge_their_paths_too():
    runs = []

    def inner(x):
        runs.append(1)
        return independent(x)

    def outer(x):
        return np.sum(sa.grad(independent)(x) ** 2)

    for g in (outer, sa.grad(outer)):
        kernel = sa.compile(g, np.ones(4), roll="never")
        for point in GENERATOR.normal(size=(8, 4)):
            np.testing.assert_allclose(kernel(point), g(point), rtol=1e-12)
    assert sa.trace(outer, np.ones(4)).paths == 1
    assert operations(outer, np.ones(6)) < 2 * operations(outer, np.ones(3)) + 10


def test_a_condition_around_a_derivative_is_known_in_it():
    runs = []

    def inner(x):
        runs.append(1)
        return np.sin(x) if x > 0 else 1 / 0

    kernel = sa.compile(lambda x: sa.grad(inner)(x) if x > 1 else x, 1.0, roll="never")
    assert runs == [1]
    assert kernel(2.0) == pytest.approx(math.cos(2.0), rel=1e-15)


def caught(x):
    def inner(y):
        if y < 0:
            raise OutsideError("negative")
        return y**3

    try:
        return sa.grad(inner)(x)
    except OutsideError:
        return 5.0 * x


def state_read_afterwards(x):
    seen = {}

    def inner(y):
        seen["side"] = "left" if y < 0 else "right"
        return y**3

    slope = sa.grad(inner)(x)
    return slope if seen["side"] == "left" else 7.0 * x


def state_of_one_path(x):
    seen = []

    def inner(y):
        if y < 0:
            seen.append("left")
        return y**3

    slope = sa.grad(inner)(x)
    return slope if seen else 7.0 * x


def shapes_of_paths(x):
    def inner(y):
        return np.stack([y, y * y, y**3]) if y < 0 else np.stack([y, y**4])

    return np.sum(sa.jacobian(inner)(x))


def conditions_on_captured_values(x):
    z = np.sin(x)

    def inner(y):
        if y > -0.8:
            if z >= -0.3:
                return y * z
            if z < -2.0:
                raise OutsideError("never")
        return y**3 + z

    return sa.grad(inner)(x) * (sa.grad(inner)(z) if z > 0.1 else 2.0)


def mistake_caught(x):
    def inner(y):
        return y.nothing if y < 0 else y**3

    try:
        return sa.derivative(inner)(x)
    except AttributeError:
        return -1.0 * x


def values_of_an_iterator(x):
    values = iter([2.0, 3.0])

    def inner(y):
        return y**2 * next(values) if y < 0 else y**3

    return sa.grad(inner)(x)


@pytest.mark.parametrize(
    "f", [caught, state_read_afterwards, state_of_one_path, shapes_of_paths, conditions_on_captured_values,
     mistake_caught, values_of_an_iterator],
    ids=lambda f: f.__name__,
)  # fmt: skip
@pytest.mark.parametrize("roll", ["auto", "never"])
def test_paths_that_the_code_around_sees_are_its_own(f, roll):
    """What is changed, raised or returned in other shapes on one path is seen by the code around: Python's answer."""
    for transform in (lambda f: f, sa.grad):
        kernel = sa.compile(transform(f), 1.0, roll=roll)
        for point in (-1.5, 2.0):
            assert kernel(point) == pytest.approx(transform(f)(point), rel=1e-14)


def test_a_large_function_in_the_code_that_changes_something_on_one_path():
    def f(x):
        seen = {}

        def inner(y):
            seen["side"] = "left" if y[0] < 0 else "right"
            return np.sum(np.sin(y) ** 2 * y)

        slopes = sa.grad(inner)(x)
        return np.sum(slopes) if seen["side"] == "left" else np.sum(slopes**2)

    kernel = sa.compile(f, np.ones(300))
    for point in (np.linspace(-1, 1, 300), np.linspace(0.5, 1, 300)):
        assert kernel(point) == pytest.approx(f(point), rel=1e-12)


@sa.custom_derivative(derivative=lambda primals, tangents: 100.0 * primals[0] * tangents[0])
def odd(u):
    return u * 1.0


@sa.custom_derivative(
    derivative=lambda primals, tangents: (primals[0] if primals[0] > 1 else 3.0 * primals[0] ** 2) * tangents[0]
)
def odd_by_sides(u):
    return u * 1.0


def ruled(x):
    return odd(x) * x if x > 0 else sa.stop_gradient(x * x) * odd(x) + x


def ruled_by_sides(x):
    return odd_by_sides(x) * x if x > 0 else odd_by_sides(-x)


@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize("f", [ruled, ruled_by_sides], ids=lambda f: f.__name__)
def test_rules_of_the_users_own_on_paths(f, order):
    for word in mixes.words(order):
        g = mixes.nested(word, f)
        kernel = sa.compile(g, 1.0)
        for point in (-2.0, -0.3, 0.5, 1.5):
            assert kernel(point) == pytest.approx(g(point), rel=1e-14), (word, point)


def test_a_rule_with_a_condition_on_a_captured_value():
    """The rule's own derivatives are taken in the nodes that it got, which are kept where its paths are merged."""

    def f(x):
        return sa.derivative(lambda y: np.sin(odd_by_sides(x[0] * 1.0) * y) ** 2)(x[1] + x[0]) * x[1]

    for transform in (sa.grad, sa.hessian, partial(sa.hessian, mode="rev-rev"), lambda f: sa.partials(f, 3)):
        kernel = sa.compile(transform(f), np.ones(2))
        for point in np.array([[0.4, 0.6], [1.3, -0.2], [-0.7, 0.1]]):
            np.testing.assert_allclose(kernel(point), transform(f)(point), rtol=1e-12, atol=1e-13)


def test_a_rule_in_a_body_with_several_paths():
    """The rule belongs to a node of the body, which is not taken for a loop."""

    def body(u):
        return odd(u) * 2 if u > 0 else odd(u)

    def f(x):
        return np.sum(sa.grad(lambda y: sa.sum_over(body, y))(x) * x)

    x = np.array([1.0, -1.0, 2.0, -3.0])
    assert sa.compile(f, x)(x) == pytest.approx(f(x))


def test_captured_values_stay_apart_on_paths():
    def f(x):
        return sa.grad(lambda y: x * y * y if x * y > 1 else x + y)(x) * x

    for order in range(3):
        for word in mixes.words(order):
            g = mixes.nested(word, f)
            kernel = sa.compile(g, 1.0)
            for point in (-1.5, 0.5, 2.0):
                assert kernel(point) == pytest.approx(g(point), rel=1e-14), (word, point)


@pytest.mark.parametrize("transform", [sa.grad, partial(sa.hessian, sparse="lower")], ids=["gradient", "Hessian"])
def test_functions_with_loops_and_several_paths(transform):
    def f(x):
        total = sa.sum_over(lambda u, v: u * u * v if u > v else np.sin(u), x[:-1], x[1:])
        if x[0] > 0:
            total = total * x[1]
        return total + np.sum(np.cos(x[1:] * x[:-1]))

    x = np.linspace(0.5, 1.5, 100)
    kernel = sa.compile(transform(f), x)
    assert kernel.stats.strategy == "rolled"
    for point in (x, -x, GENERATOR.normal(size=100)):
        expected = transform(f)(point)
        if isinstance(expected, sa.results.SparseMatrix):
            dense = np.zeros((100, 100))
            dense[tuple(kernel.sparsity)] = kernel(point)
            np.testing.assert_allclose(dense, np.tril(sa.hessian(f)(point)), rtol=1e-11, atol=1e-12)
        else:
            np.testing.assert_allclose(kernel(point), expected, rtol=1e-11, atol=1e-12)


def test_batches_and_sweeps_of_many_paths():
    kernel = sa.compile(sa.hessian(independent), np.ones(6), strategy="sweep")
    points = GENERATOR.normal(size=(20, 6))
    expected = np.stack([sa.hessian(independent)(point) for point in points])
    np.testing.assert_allclose(kernel.batch(points), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(np.stack([kernel(point) for point in points]), expected, rtol=1e-12, atol=1e-13)


def test_the_number_of_paths_is_limited_before_anything_is_differentiated():
    def f(x):
        kept = [x[0]]
        for k, value in enumerate(x):
            kept += [value**2] if value > k else [3 * value, 1.0]
        return sum(kept)

    with (
        sa.choices() as made,
        pytest.raises(LimitError, match="f has more than 64 paths through its conditions"),
    ):
        sa.compile(sa.partials(f, 3), np.ones(7))
    assert made == []
    kernel = sa.compile(sa.hessian(f, mode="fwd-rev"), np.ones(7), max_paths=128)
    point = GENERATOR.normal(size=7)
    np.testing.assert_allclose(kernel(point), sa.hessian(f)(point), rtol=1e-12, atol=1e-14)


def test_time_is_looked_at_before_each_path():
    runs = []

    def f(x):
        runs.append(1)
        time.sleep(0.05)
        return independent(x)

    with pytest.raises(LimitError, match=r"following the paths of f: more than 0\.2 s since the start"):
        sa.compile(sa.hessian(f, mode="fwd-rev"), np.ones(6), max_seconds=0.2)
    assert 1 < len(runs) < 6


def test_errors_have_the_line_of_the_user():
    def f(x):
        y = sa.grad(np.sin)(x)
        return special.jv(y, x) if x > 0 else y  # this line

    with pytest.raises(RuleError) as caught:
        sa.compile(sa.grad(f), 1.0)
    line = f.__code__.co_firstlineno + 2
    assert f"test_merged_paths.py:{line}" in caught.value.where


def test_what_is_merged_keeps_the_bits():
    for f, *_ in SEVERAL.values():
        x = np.ones(4)
        kernel = sa.compile(f, x, fma=False, max_paths=200)
        for point in GENERATOR.normal(size=(30, 4)):
            assert kernel(point) == pytest.approx(float(f(point)), rel=4e-15)
    traced = sa.trace(independent, np.ones(6))
    assert len(to_program(traced).heads) < 80
    assert len(reachable(traced.graph, traced.outputs.flat)) < 80
