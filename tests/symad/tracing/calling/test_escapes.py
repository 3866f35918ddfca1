"""Values and linear maps where they do not belong: other threads, other traces, closed levels. Refused, never stale."""

from __future__ import annotations

import asyncio
import functools
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sympy as sp

import symad as sa


def in_thread(call):
    """Run a call in a fresh thread and return its result, or raise its error here."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


@pytest.mark.parametrize("make", [sa.vjp, sa.linearize], ids=["pullback", "pushforward"])
def test_a_linear_map_of_an_open_level_used_in_another_thread(make):
    """It would answer with a number there, and its derivative in x would be a misleading zero."""

    def f(x):
        _, linear = make(lambda y: x * y * y, 2.0)
        image = in_thread(lambda: linear(1.0))
        return image[0] if isinstance(image, tuple) else image

    with pytest.raises(sa.errors.TraceError, match="two independent traces"):
        sa.grad(f)(3.0)


@pytest.mark.parametrize("make", [sa.vjp, sa.linearize], ids=["pullback", "pushforward"])
def test_a_linear_map_of_no_level_may_be_used_anywhere(make):
    _, linear = make(lambda y: y**3, 2.0)

    def image(t):
        found = linear(t)
        return found[0] if isinstance(found, tuple) else found

    assert image(1.0) == 12.0
    assert in_thread(lambda: image(1.0)) == 12.0
    assert sa.grad(lambda t: image(t) * t)(3.0) == 72.0
    assert sa.compile(sa.grad(lambda t: image(t) * t), 1.0)(3.0) == 72.0


@pytest.mark.parametrize(
    "inner",
    [
        lambda x: sa.compile(lambda y: x * y, 1.0)(2.0),
        lambda x: sa.trace(lambda y: x * y, 1.0).expr(),
        lambda x: sa.jit(lambda y: x * y)(2.0),
        lambda x: sa.compile(sa.grad(lambda x2: x * x2), 1.0)(2.0),
        lambda x: sa.compile(lambda y: sa.derivative(lambda z: x * z)(y), 1.0)(2.0),
    ],
    ids=["compile", "trace", "jit", "compile grad", "compile derivative"],
)
@pytest.mark.parametrize(
    "outer", [lambda f: sa.grad(f)(3.0), lambda f: sa.compile(f, 3.0)(3.0)], ids=["grad", "compile"]
)
def test_a_trace_of_its_own_that_captures_a_traced_value(inner, outer):
    """A kernel has no derivative: x would be baked in as a number, and d/dx would be a misleading zero."""
    with pytest.raises(sa.errors.TraceError, match="two independent traces"):
        outer(lambda x: inner(x) + x)


def test_a_trace_of_its_own_inside_a_level_keeps_its_symbols_apart():
    def f(x):
        kernel = sa.compile(lambda x: x * x, 1.0)  # an input symbol of the same name
        return kernel(2.0) * x

    assert sa.grad(f)(3.0) == 4.0
    assert sa.compile(f, 3.0)(3.0) == 12.0


def test_a_jitted_function_inside_a_transform_is_differentiated():
    square = sa.jit(lambda y: y * y * y)
    assert square(2.0) == 8.0
    assert sa.grad(square)(2.0) == 12.0
    assert sa.grad(lambda x: square(x) * x)(2.0) == 32.0
    curvature = sa.compile(sa.hessian(lambda x: square(x).sum()), np.ones(2))
    assert curvature(np.ones(2)).tolist() == [[6.0, 0.0], [0.0, 6.0]]


def test_an_escaped_linear_map_is_refused():
    kept = []

    def f(x):
        value, pullback = sa.vjp(lambda y: x * y, 2.0)
        kept.append(pullback)
        return value

    assert sa.grad(f)(3.0) == 2.0
    for use in (lambda: kept[0](1.0), lambda: sa.grad(lambda z: kept[0](z)[0])(1.0)):
        with pytest.raises(sa.errors.EscapedValueError, match="after its derivative level closed"):
            use()


def test_an_outer_pullback_inside_an_inner_level():
    def f(x):
        _, pullback = sa.vjp(lambda t: t**3, x)
        return sa.grad(lambda y: pullback(y)[0] * y)(x)  # d/dy 3x^2 y^2 at y = x: 6x^3

    assert sa.grad(f)(2.0) == 72.0
    assert sa.compile(sa.grad(f), 1.0)(2.0) == 72.0


def test_a_function_that_works_in_threads_is_traced_whole():
    """Many threads grow one graph: no node may be lost or doubled."""
    x = np.linspace(0.1, 1.0, 40)

    def piece(part):
        total = part
        for k in range(60):
            total = np.sin(total) * part + k
        return total

    def f(x):
        with ThreadPoolExecutor(8) as pool:
            return sum(pool.map(piece, list(x)))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        found = [sa.grad(f)(x) for _ in range(3)]
    finally:
        sys.setswitchinterval(before)
    right = sa.grad(lambda x: sum(map(piece, list(x))))(x)
    assert all(np.allclose(gradient, right, rtol=1e-12) for gradient in found)


def test_levels_in_many_threads_do_not_meet():
    def work(k):
        f = lambda x: np.sin(x[0] * k) * sa.derivative(lambda y: y * x[1] * k)(x[0])  # noqa: E731
        return [tuple(sa.grad(f)(np.array([1.0, 2.0])).tolist()) for _ in range(30)]

    found = [[] for _ in range(4)]
    threads = [threading.Thread(target=lambda k=k: found[k].extend(work(k))) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, answers in enumerate(found):
        assert set(answers) == {tuple(work(k)[0])}
        assert answers[0][0] == pytest.approx(2 * k * k * np.cos(k), rel=1e-14)


def test_a_generator_left_open_in_a_level():
    def powers(x):
        for k in range(3):
            yield sa.derivative(lambda y, k=k: x * y**k)(x)

    kept = []

    def f(x):
        kept.append(powers(x))
        return next(kept[0]) + next(kept[0]) * x

    assert sa.grad(f)(2.0) == 4.0
    with pytest.raises(sa.errors.EscapedValueError):
        next(kept[0])
    assert sa.grad(lambda x: sum(powers(x)))(2.0) == 9.0  # 0 + x + 2x^2


def test_an_exception_inside_a_level_leaves_nothing_open():
    def f(x):
        with pytest.raises(ZeroDivisionError):
            sa.grad(lambda y: y * (1 / 0))(x)
        return x * x

    assert sa.grad(f)(3.0) == 6.0
    with pytest.raises(ZeroDivisionError):
        sa.grad(lambda y: y * (1 / 0))(3.0)
    assert sa.grad(lambda x: x * x)(3.0) == 6.0


def test_jitted_functions_that_need_each_other_do_not_wait_for_ever():
    @sa.jit
    def area(shape):
        return shape["side"] * area(2.0) if isinstance(shape, dict) else shape * shape

    assert in_thread(lambda: area({"side": 3.0})) == 12.0


def test_functions_that_are_default_arguments_are_answered_by_stand_ins():
    def f(x, exp=np.exp, array=np.array):
        return exp(array([x[0], 1.0])).sum()

    x = np.array([0.3, 0.7])
    assert sa.grad(f)(x).tolist() == [np.exp(0.3), 0.0]
    assert sa.jit(f)(x) == pytest.approx(f(x), rel=1e-15)


def test_object_arrays_in_code_without_source_are_refused_with_the_way_out():
    """Of code whose source is not known only names are answered, and a default argument is none."""
    names = {"np": np}
    exec("def f(x, exp=np.exp, array=np.array):\n    return exp(array([x[0], 1.0])).sum()", names)
    for call in (sa.grad, sa.hessian, sa.jit):
        with pytest.raises(sa.errors.TraceError, match=r"<string>:\d+: .*object array.*np\.stack"):
            call(names["f"])(np.array([0.3, 0.7]))


def test_a_sparse_matrix_inside_a_level_gives_a_traced_dense_matrix():
    def total(transform):
        return lambda x: np.exp(transform(x) / 9).sum()

    sparse = total(lambda x: sa.hessian(lambda u: (u**3).sum(), sparse="full")(x).toarray())
    dense = total(sa.hessian(lambda u: (u**3).sum()))
    x = np.array([0.3, 0.7])
    assert sa.grad(sparse)(x) == pytest.approx(sa.grad(dense)(x), rel=1e-15)
    assert sa.compile(sa.grad(sparse), x)(x) == pytest.approx(sa.grad(dense)(x), rel=1e-14)
    with pytest.raises(sa.errors.ArgumentError, match="traced"):
        sa.grad(lambda x: sa.hessian(lambda u: (u**3).sum(), sparse="full")(x).to_scipy().sum())(x)


@pytest.mark.parametrize("make", [sa.trace, sa.compile], ids=["trace", "compile"])
def test_a_symbol_with_the_name_of_an_argument_is_not_that_argument(make):
    """x * X must not become x**2."""
    namesake = sp.Symbol("x", real=True)
    for f in (lambda x: x * namesake, sa.grad(lambda x: x**2 * namesake)):
        with pytest.raises(sa.errors.ArgumentError, match=r"the symbol x .*same name"):
            make(f, 1.0)
    _, pullback = sa.vjp(lambda t: t * namesake, 1.0)
    with pytest.raises(sa.errors.ArgumentError, match=r"the symbol x .*same name"):
        make(lambda x: pullback(x)[0], 1.0)
    assert sa.grad(lambda x: x * namesake)(3.0) == namesake  # no trace, no names


def test_keywords_of_a_jitted_function_have_positions():
    product = sa.jit(lambda a, b: a - b)
    assert (product(1.0, b=2.0), product(b=5.0, a=1.0)) == (-1.0, -4.0)
    with pytest.raises(
        sa.errors.ArgumentError, match="keyword 'b' of <lambda>: a kernel knows its arguments by their positions"
    ):
        sa.jit(lambda a, *, b: a * b)(1.0, b=2.0)


def test_a_task_started_inside_a_level_runs_after_it_closed():
    symbol = sp.Symbol("s")

    async def later():
        await asyncio.sleep(0)
        return sa.grad(lambda x: x * x)(symbol), sa.grad(lambda x: x * x)(2.0)

    async def main():
        tasks = []

        def f(x):
            tasks.append(asyncio.ensure_future(later()))
            return x * x

        return sa.grad(f)(1.0), await tasks[0]

    assert asyncio.run(main()) == (2.0, (2 * symbol, 4.0))


def test_many_calls_of_a_pullback_do_not_make_its_graph_grow():
    _, pullback = sa.vjp(lambda x: np.sin(x) * x, np.arange(1.0, 4.0))
    first = pullback(np.ones(3))
    size = len(pullback._scope.graph)
    for _ in range(5):
        assert np.array_equal(pullback(np.ones(3))[0], first[0])
    assert len(pullback._scope.graph) == size


@pytest.mark.parametrize(
    "f", [lambda x: x if x in {0.0, 1.0} else -x, lambda x: {1.0: x}.get(x), lambda x: x * len({x, 1.0 * x, 1.0})]
)
def test_a_traced_number_is_no_key(f):
    """A key of a set or dict is found by its hash: 1.0 would not find the traced 1.0, silently."""
    with pytest.raises(sa.errors.TraceError, match="as a key of a dict"):
        sa.grad(f)(1.0)


def test_a_cache_that_gets_a_traced_number():
    @functools.cache
    def square(x):
        return x * x

    assert sa.grad(lambda x, y: square(x) + 3 * square(y), (0, 1))(2.0, 2.0) == (4.0, 12.0)
    globals()["cached_square"] = square
    try:
        assert sa.grad(lambda x, y: cached_square(x) + 3 * cached_square(y), (0, 1))(2.0, 2.0) == (4.0, 12.0)  # noqa: F821
    finally:
        del globals()["cached_square"]
