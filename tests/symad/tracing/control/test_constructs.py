"""sum_over, vmap, scan, fori_loop, while_loop: what plain Python loops compute, and its derivatives."""

import functools
import re

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad import cond, fori_loop, scan, sum_over, vmap, while_loop

DATA = np.array([[0.3, -1.2], [0.7, 0.4], [-0.5, 0.9], [1.1, 0.2]])
STEPS = np.array([0.5, -0.25, 0.75])
POINT = np.array([0.4, -0.6])


def python_sum(x):
    return sum(np.log(1 + np.exp(row @ x)) for row in DATA)


def summed(x):
    return sum_over(lambda row: np.log(1 + np.exp(row @ x)), DATA)


def python_chain(x):
    position, velocity = x[0], x[1]
    for step in STEPS:
        position, velocity = position + step * velocity, velocity - step * np.sin(position)
    return position * velocity


def scanned(x):
    def step(state, length):
        return (state[0] + length * state[1], state[1] - length * np.sin(state[0])), None

    (position, velocity), _ = scan(step, (x[0], x[1]), STEPS)
    return position * velocity


def counted(x):
    position, velocity = fori_loop(
        0, 3, lambda k, s: (s[0] + STEPS[k] * s[1], s[1] - STEPS[k] * np.sin(s[0])), (x[0], x[1])
    )
    return position * velocity


def python_map(x):
    return np.stack([np.tanh(row * x).sum() * x[0] for row in DATA]) @ np.arange(4.0)


def mapped(x):
    return vmap(lambda row: np.tanh(row * x).sum() * x[0])(DATA) @ np.arange(4.0)


def python_root(x):
    root = x[0] ** 2 + 1
    while abs(root**2 - x[1] ** 2 - 2) > 1e-12:
        root = (root + (x[1] ** 2 + 2) / root) / 2
    return root * x[0]


def searched(x):
    root = while_loop(
        lambda r: abs(r**2 - x[1] ** 2 - 2) > 1e-12, lambda r: (r + (x[1] ** 2 + 2) / r) / 2, x[0] ** 2 + 1, 20
    )
    return root * x[0]


def python_mixed(x):
    total = 0.0
    for row in DATA:
        inner = x[0]
        for u in row:
            inner = inner * u + (np.sqrt(inner) if inner > 0 else inner**2)
        total = total + inner * x[1]
    return total


def mixed(x):
    def step(inner, u):
        return inner * u + cond(inner > 0, np.sqrt, np.square, inner), inner

    return sum_over(lambda row: scan(step, x[0], row)[0] * x[1], DATA)


PAIRS = {
    "sum": (summed, python_sum), "scan": (scanned, python_chain), "fori_loop": (counted, python_chain),
    "vmap": (mapped, python_map), "while_loop": (searched, python_root), "cond in scan in sum": (mixed, python_mixed),
}  # fmt: skip
ORDERS = {
    "value": lambda f: f,
    "gradient": sa.grad,
    "hessian": sa.hessian,
    "forward over reverse": lambda f: sa.hessian(f, mode="fwd-rev"),
    "jvp of gradient": lambda f: lambda x: sa.jvp(sa.grad(f), (x,), (np.array([1.0, -2.0]),))[1],
    "third derivative": lambda f: sa.jacobian(sa.hessian(f)),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.thinned
def test_what_python_loops_compute_and_its_derivatives(name, order):
    ours, python = PAIRS[name]
    transform = ORDERS[order]
    expected = transform(python)(POINT)
    assert transform(ours)(POINT) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    if order != "third derivative":
        assert sa.compile(transform(ours), POINT)(POINT) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_transforms_inside_of_loops():
    cube = lambda u: u**3 * u  # noqa: E731
    assert vmap(sa.grad(cube))(POINT) == pytest.approx(4 * POINT**3)
    assert sum_over(sa.grad(cube), POINT) == pytest.approx((4 * POINT**3).sum())
    descended, path = scan(lambda u, rate: (u - rate * sa.grad(cube)(u), u), 1.0, np.array([0.1, 0.05]))
    assert (descended, list(path)) == (pytest.approx(0.6 - 0.2 * 0.6**3), [1.0, 0.6])
    rate = sa.derivative(lambda r: fori_loop(0, 3, lambda k, u: u - r * sa.grad(cube)(u), 1.0))
    assert rate(0.1) == pytest.approx(sa.derivative(_three_steps)(0.1), rel=1e-14)


def _three_steps(rate):
    u = 1.0
    for _ in range(3):
        u = u - rate * 4 * u**3
    return u


def test_vmap_has_the_axes_of_jax():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    assert np.array_equal(vmap(lambda a, b: a * b, in_axes=(1, 0))(x, y), (x * y).T)
    assert np.array_equal(vmap(lambda a, b: a * b, in_axes=(1, 0), out_axes=1)(x, y), x * y)
    assert np.array_equal(vmap(lambda a, b: a + b, in_axes=(None, 0), out_axes=-1)(x, y), x[:, :, None] + y)
    outer = vmap(vmap(lambda a, b: a * b, in_axes=(None, 0)), in_axes=(0, None))
    assert np.array_equal(outer(y, x[0]), np.outer(y, x[0]))
    nested = vmap(lambda p, c: {"s": p["w"] @ p["b"] * c, "t": (p["w"], None)}, in_axes=({"w": 1, "b": None}, None))
    found = nested({"w": x, "b": np.ones(2)}, 2.0)
    assert np.array_equal(found["s"], 2 * x.sum(axis=0))
    assert np.array_equal(found["t"][0], x.T)
    assert found["t"][1] is None
    assert vmap(lambda a: a > 1)(y).dtype == bool


def test_scan_stacks_where_the_pieces_stood():
    total, before = scan(lambda c, x: (c + x["a"], {"c": c, "x": x["b"]}), 0, {"a": STEPS, "b": DATA[:3]})
    assert total == 1.0
    assert np.array_equal(before["c"], [0.0, 0.5, 0.25])
    assert np.array_equal(before["x"], DATA[:3])
    total, before = scan(lambda c, x: (2 * c + x, c), 0, STEPS, reverse=True)
    assert (total, list(before)) == (2 * (2 * 0.75 - 0.25) + 0.5, [2 * 0.75 - 0.25, 0.75, 0.0])
    assert scan(lambda c, x: (c * 2, None), 1, length=3) == (8.0, None)


def test_nothing_to_repeat():
    none = np.zeros((0, 2))
    assert np.array_equal(sum_over(lambda row: {"a": row * 2}, none)["a"], np.zeros(2))
    assert sum_over(lambda row: row.sum(), none) == 0.0
    assert vmap(lambda row: np.outer(row, row))(none).shape == (0, 2, 2)
    assert vmap(lambda row: row, out_axes=1)(none).shape == (2, 0)
    assert scan(lambda c, row: (c, row), 3, none)[0] == 3.0
    assert scan(lambda c, row: (c, (row, None)), 3, none)[1][0].shape == (0, 2)
    assert fori_loop(5, 2, lambda k, c: 1 / 0, 7) == 7.0
    assert while_loop(lambda c: False, lambda c: 1 / 0, 7) == 7.0
    assert while_loop(lambda c: True, lambda c: c + 1, 7, max_steps=0) == 7.0
    f = lambda x: sum_over(lambda row: row @ x, none) + x[0]  # noqa: E731
    assert np.array_equal(sa.grad(f)(POINT), [1.0, 0.0])
    assert np.array_equal(sa.compile(sa.grad(f), POINT)(POINT), [1.0, 0.0])


def test_one_repetition():
    assert sum_over(lambda a: a * 3, np.array([2.0])) == 6.0
    assert vmap(lambda a: a * 3)(np.array([2.0])) == np.array([6.0])
    assert sa.compile(lambda x: scan(lambda c, a: (c * a, c), x, np.array([2.0])), 1.0)(3.0) == (6.0, np.array([3.0]))


def test_truth_values_are_counted_and_stacked():
    assert sum_over(lambda a: a > 0, STEPS) == 2
    assert sum_over(lambda a: np.array([a > 0, True]), STEPS).tolist() == [2, 3]
    assert sa.compile(lambda x: sum_over(lambda a: a > x, STEPS), 0.0)(0.6) == 1.0
    assert sum_over(lambda m, a: np.where(m, a, 0.0), STEPS > 0, STEPS) == 1.25


def test_ranges_give_whole_numbers():
    assert sum_over(lambda k: 10 ** (20 * k), range(3)) == 1 + 10**20 + 10**40
    assert sum_over(lambda k: POINT[k], range(2)) == POINT.sum()


def test_a_sum_in_the_notation_of_sympy_is_a_loop_in_a_traced_function():
    k, n = sp.symbols("k n")

    def wave(x, last):
        return sum_over(lambda k: sp.sin(k * x) / (k + 1), (k, 0, last))

    for last in (9, 199):
        expected = sum(j * np.cos(j * 0.3) / (j + 1) for j in range(last + 1))
        assert np.isclose(sa.derivative(lambda x, last=last: wave(x, last))(0.3), expected, rtol=1e-12, atol=1e-12)
        kernel = sa.compile(sa.derivative(lambda x, last=last: wave(x, last)), 1.0, roll="always")
        assert np.isclose(kernel(0.3), expected, rtol=1e-12, atol=1e-12)
    (loop,) = sa.plan(lambda x: wave(x, 999), 1.0).loops
    assert loop.count == 1000
    assert wave(k + 1, n).has(sp.Sum)
    assert sa.compile(lambda x: wave(x, -1), 1.0)(2.0) == 0  # the empty sum
    backwards = sa.compile(lambda x: sum_over(lambda k: k * x, (k, 4, 1)), 1.0)  # -(2 + 3) x, SymPy's convention
    assert backwards(2.0) == -10.0


def test_long_sums_of_sympy_are_found_as_loops():
    for count in (10, 1000):
        i, a = sp.Symbol("i", integer=True), sp.IndexedBase("a", shape=(count,))
        square = sa.from_sympy([a], sp.Sum(sp.sin(a[i]) ** 2 * a[i], (i, 0, count - 1)))
        assert [loop.count for loop in sa.plan(square, np.ones(count)).loops] == ([1000] if count == 1000 else [])
        point = np.linspace(0, 1, count)
        slope = np.sin(point) ** 2 + 2 * point * np.sin(point) * np.cos(point)
        assert np.allclose(sa.compile(sa.grad(square), point)(point), slope, rtol=1e-13)


def test_symbols_in_symbols_out():
    x, n = sp.symbols("x n")
    k = sp.Symbol("k", integer=True)
    assert sum_over(lambda a: a**2 * x, np.array([1, 2])) == 5 * x
    assert sum_over(lambda k: x**k, (k, 0, n)) == sp.Sum(x**k, (k, 0, n))
    assert sum_over(lambda k: x**k, (k, 0, n)).subs(n, 2).doit() == 1 + x + x**2
    assert sum_over(lambda row: row[0] * row[1], sp.Matrix([[x, 1], [2, x]])) == 3 * x
    assert list(vmap(sp.sin)(np.array([x, 2 * x], dtype=object))) == [sp.sin(x), sp.sin(2 * x)]
    last, path = scan(lambda c, a: (sp.expand(c * (x + a)), c), 1, np.array([1, 2]))
    assert (last, list(path)) == (x**2 + 3 * x + 2, [1, x + 1]) or sp.expand(last - x**2 - 3 * x - 2) == 0
    assert fori_loop(0, 3, lambda k, c: c * x, sp.Integer(1)) == x**3
    steps = while_loop(lambda c: c < 3, lambda c: c + 1, x, max_steps=2)
    assert [steps.subs(x, value) for value in (1, 2.5, 4)] == [3, 3.5, 4]
    assert sa.grad(lambda u: sum_over(lambda a: a * u**2, np.array([1, 2])))(x) == 6 * x


def test_the_branch_not_taken_by_a_masked_loop_leaves_no_trace():
    """After the condition has failed, the body is at a singular point; derivatives stay those of the steps taken."""

    def f(x):
        return while_loop(lambda u: u > 0, lambda u: u - np.sqrt(u), x, max_steps=6)

    for g in (f, sa.derivative(f), sa.grad(f), sa.hessian(f)):
        kernel = sa.compile(g, 1.0)
        for point in (1.0, 2.0, 0.0, -3.0):
            assert kernel(point) == pytest.approx(g(point), rel=1e-12), (g, point)


def test_bodies_with_side_effects_are_carried_out_as_written():
    def kept(x):
        seen, count = [], 0

        def body(a):
            nonlocal count
            count += 1
            seen.append(a * x)
            return a * count

        return sum_over(body, STEPS), np.stack(seen), count

    found = sa.compile(kept, 2.0)(3.0)
    expected = kept(3.0)
    assert found[0] == expected[0]
    assert np.array_equal(found[1], expected[1])
    assert found[2] == expected[2] == 3


class Counter:
    """Counts its calls in its class, in itself, or in a slot."""

    __slots__ = ("__dict__", "own")
    total = 0

    def __init__(self):
        self.own = 0
        type(self).total = 0

    def in_class(self):
        type(self).total += 1
        return self.total

    @classmethod
    def of_class(cls):
        cls.total += 1
        return cls.total

    def in_slot(self):
        self.own += 1
        return self.own


def counted_in_a_function():
    def count(a):
        count.calls += 1
        return a * count.calls

    count.calls = 0
    return count


def counted_in_a_default():
    def count(a, *, calls=[0]):  # noqa: B006
        calls[0] += 1
        return a * calls[0]

    return count


def counted_behind_a_cache():
    calls = []

    @functools.cache
    def first():
        calls.append("first")
        return 0

    def count(a):
        first()
        calls.append("again")
        return a * (len(calls) - 1)

    return count


def counted_by(name):
    kind = type("LocalCounter", (Counter,), {})

    def make():
        count = getattr(kind(), name)
        return lambda a: a * count()

    return make


BODIES = [
    counted_in_a_function, counted_in_a_default, counted_behind_a_cache,
    *map(counted_by, ("in_class", "of_class", "in_slot")),
]  # fmt: skip


@pytest.mark.parametrize("make", BODIES)
def test_what_a_body_counts_is_counted_in_each_repetition(make):
    def f(x):
        return sum_over(make(), x)

    x = np.array([1.0, 10.0, 100.0])
    assert sa.compile(f, x)(x) == f(x) == 321.0
    assert sa.compile(sa.grad(f), x)(x).tolist() == [1.0, 2.0, 3.0]


def test_a_cache_that_would_lose_results():
    calls = []

    @functools.cache
    def known(number):
        calls.append(number)
        return number

    def f(x):
        known(1)
        return sum_over(lambda a: calls.append(a) or a * known(2) * len(calls), x)

    with pytest.raises(sa.errors.TraceError) as refused:
        sa.compile(f, np.ones(3))
    assert re.search(
        r"test_constructs\.py:\d+: the body of a loop calls known, which keeps its results, and changes something: "
        r"the body is carried out again for each repetition, and what was kept cannot be told apart; leave "
        r'functools\.cache out, or the change; or compile with roll="never"$',
        str(refused.value),
    )


def test_a_cache_of_a_function_that_changes_nothing():
    known = functools.cache(lambda number: 2.0 * number)
    known(1)
    f = lambda x: sum_over(lambda a: a * known(2), x)  # noqa: E731
    assert sa.compile(f, np.ones(3), roll="always")(np.ones(3)) == 12.0


@pytest.mark.parametrize("limit", [12, None])
def test_a_condition_with_side_effects(limit):
    def f(x):
        asked = [0]

        def below(c):
            asked[0] += 1
            return c < 1000 / asked[0]

        return while_loop(below, lambda c: 2 * c, x, max_steps=limit)

    if limit is None:
        with pytest.raises(sa.errors.TraceError, match="max_steps"):
            sa.compile(f, 1.0)
    else:
        assert sa.compile(f, 1.0, roll="never")(1.0) == sa.compile(f, 1.0)(1.0) == f(1.0) == 128.0


def test_a_value_kept_from_a_closed_level_is_refused():
    kept = []
    sa.grad(lambda x: sum_over(lambda a: kept.append(a * x) or a * x, STEPS))(1.0)
    with pytest.raises(sa.errors.EscapedValueError, match=r"test_constructs\.py:\d+"):
        kept[0] * 2
