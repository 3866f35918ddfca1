"""Bodies of nests of many kinds: values and gradients are those of the function carried out step by step."""

import numpy as np
import pytest

import symad as sa
from codegen.ir.region import Nest

N = 120
RNG = np.random.default_rng(1)
START, MATRIX, PLACES = RNG.normal(size=N), RNG.normal(size=(N // 4, N // 4)), RNG.integers(0, N, size=(6, N))


def wave(u):
    def step(s, _):
        a, b = s
        new = 2 * b - a + 0.1 * (np.roll(b, 1) - 2 * b + np.roll(b, -1))
        return (b, new), None

    a, b = sa.scan(step, (u, u * 1.01), None, length=6)[0]
    return a + b


def wave_map(u):
    def step(s, _):
        a, b = s
        new = sa.vmap(lambda p, q, l, right: 2 * q - p + 0.1 * (l - 2 * q + right) * np.sin(p) * np.cos(q))(
            a, b, np.roll(b, 1), np.roll(b, -1)
        )
        return (b, new), new[3]

    return sa.scan(step, (u, u * 1.01), None, length=6)


def dirichlet(u):
    def step(b, _):
        new = b[1:-1] + 0.1 * (b[2:] - 2 * b[1:-1] + b[:-2]) - 0.01 * b[1:-1] ** 3
        return np.concatenate([[0.0], new, [2.5]]), (np.sum(new), b[0])

    return sa.scan(step, u, None, length=6)


def bodies(x):
    def step(x, _):
        f = sa.vmap(lambda p: sa.sum_over(lambda q: (q - p) / (1 + (q - p) ** 2), x))(x)
        return x + 0.01 * f, f[0]

    return sa.scan(step, x[:40], None, length=4)


def gather(u):
    def body(k, x):
        return sa.vmap(lambda place, a: a * 0.9 + 0.1 * np.sin(u[k] * a) + 0.01 * u[2 * k + 1] * place)(np.arange(N), x)

    return sa.fori_loop(1, 7, body, u)


def unused(u):
    def step(s, _):
        last, _ = sa.scan(lambda c, a: (np.sin(c) * 0.5 + a * 0.3 * np.cos(c) + a, c * a * a), 0.0, s)
        sa.sum_over(lambda a: a**2, s)
        return s * 0.9 + 0.01 * last, None

    return sa.scan(step, u, None, length=5)[0]


def choice(u):
    def step(s, _):
        def g(a, b):
            return sa.cond(a > b, lambda p, q: p - 0.1 * (p - q) ** 2, lambda p, q: p + 0.05 * np.sin(q) * q, a, b)

        return sa.vmap(g)(s, np.roll(s, 3)), None

    return sa.scan(step, u, None, length=5)[0]


def indexed(u):
    def step(s, x):
        return sa.vmap(lambda a, b: a * 0.9 + 0.1 * np.tanh(b * a) + 0.01 * b * b)(s, x), None

    return sa.scan(step, u, u[PLACES])[0]


def mixed(u):
    v = np.sin(u) * 2
    X = np.stack([v, u, np.ones(N), u * 0 + 3.0, v])

    def step(s, x):
        return sa.vmap(lambda a, b, c: a * 0.9 + 0.1 * np.tanh(b * a) + 0.01 * b * c)(s, x, v), s[::40]

    return sa.scan(step, u, X)


def numbers_times_state(u):
    def step(s, _):
        return np.tanh(MATRIX @ s), s[1]

    return sa.scan(step, u[:30], None, length=6)


def two(u):
    def step(s, _):
        m = sa.sum_over(lambda a: a * a * np.sin(a), s) / N
        t = sa.vmap(lambda a: np.tanh(a - m) * a)(s)
        m2 = sa.sum_over(lambda a, b: a * b, t, s) / N
        return sa.vmap(lambda a, b: a * 0.8 + 0.1 * b * m2)(s, t), m2

    return sa.scan(step, u, None, length=5)


def scan_vmap_scan(u):
    def step(s, _):
        def one(a):
            return sa.scan(lambda c, _: (c * 0.5 + np.sin(c) * a, None), a, None, length=4)[0]

        return sa.vmap(one)(s), None

    return sa.scan(step, u, None, length=5)[0]


def while_in_scan(u):
    def step(s, _):
        _, t = sa.while_loop(
            lambda st: st[0] < 2.5,
            lambda st: (st[0] + 1, sa.vmap(lambda a: a - 0.1 * np.sin(a) * a)(st[1])),
            (0.0, s),
            max_steps=4,
        )
        return t, None

    return sa.scan(step, u, None, length=3)[0]


def bools(u):
    def step(s, _):
        new = sa.vmap(lambda a: np.where(a > 0.1, a * 0.9, a * 1.1 + 0.01 * np.sin(a) * a))(s)
        return new, new > 0.3

    a, b = sa.scan(step, u, None, length=5)
    return np.where(b, 1.0, -1.0) * a


def passed(u):
    def step(s, _):
        a, w, t = s
        return (sa.vmap(lambda p, q: p * 0.9 + 0.1 * np.sin(q * p) + 0.001 * q * q)(a, w), w, t + 1.0), t * a[0]

    return sa.scan(step, (u, u * 2 + 1, 0.0), None, length=5)


def same_out(u):
    def step(s, _):
        a, b = s
        new = sa.vmap(lambda p, q: p * 0.9 + 0.1 * np.sin(q * p) + 0.001 * q * q)(a, b)
        return (new, new), (new, new[5], new)

    return sa.scan(step, (u, u * 2 + 1), None, length=5)


def identity_ys(u):
    def step(s, x):
        return sa.vmap(lambda p, q: p * 0.9 + 0.1 * np.sin(q * p) + 0.001 * q * q)(s, x), x

    return sa.scan(step, u, np.stack([u, u * 2, u]), reverse=True)


FUNCTIONS = [
    wave, wave_map, dirichlet, bodies, gather, unused, choice, indexed, mixed, numbers_times_state, two, scan_vmap_scan,
    while_in_scan, bools, passed, same_out, identity_ys,
]  # fmt: skip


def leaves(value):
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in leaves(part)]
    return [] if value is None else [value]


def total(f):
    return lambda u: sum(np.sum(np.sin(array) * array) for array in leaves(f(u)))


def nests(kernel):
    return [step for step in kernel.program.steps if isinstance(step, Nest)]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.thinned
def test_values_and_gradients(f):
    kernel = sa.compile(f, START, roll="always")
    assert nests(kernel)
    for found, expected in zip(leaves(kernel(START)), leaves(f(START)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    slope = sa.grad(total(f))
    np.testing.assert_allclose(
        sa.compile(slope, START, roll="always", checkpoints="sqrt")(START), slope(START), rtol=1e-11, atol=1e-12
    )


def test_the_code_does_not_grow_with_the_grid_or_the_steps():
    def lines(points, steps):
        def heat(u):
            def step(v, _):
                return np.concatenate([v[:1], v[1:-1] + 0.1 * (v[2:] - 2 * v[1:-1] + v[:-2]), v[-1:]]), None

            return np.sum(sa.scan(step, u, None, length=steps)[0] ** 2)

        return len(sa.compile(sa.grad(heat), np.ones(points), roll="always").llvm.splitlines())

    cut = lines(4000, 10)  # in blocks, which takes some lines more, once; what is left over of vectors differs
    assert max(lines(8000, 10), lines(200, 1000)) < 1.1 * cut
    assert cut < 1.5 * lines(200, 10)


def test_a_constant_inner_loop_is_run_once():
    def f(u):
        def step(v, _):
            norm = sa.sum_over(lambda a: np.sin(a) * a, u)
            return sa.vmap(lambda a, b: a * 0.9 + 0.001 * norm * np.tanh(b * a) + 0.1 * b * b)(v, u), None

        return sa.scan(step, u, None, length=5)[0]

    kernel = sa.compile(f, START, roll="always")
    (nest,) = nests(kernel)
    assert not any(use.kind == "add" for region in nest.steps for use in region.results)
    np.testing.assert_allclose(kernel(START), f(START), rtol=1e-12)


def test_short_bodies_stay_straight_lines():
    def f(u):
        return sa.scan(lambda v, _: (sa.vmap(lambda a: a * 0.9 + 0.1 * np.sin(a))(v), None), u, None, length=50)[0]

    assert not nests(sa.compile(f, START[:5], roll="always"))
