"""Errors of ours that the user's code catches: the result is that of numbers, or the function is refused."""

import contextlib
import functools
import math
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import integrate, optimize

import symad as sa
from symad.errors import ArgumentError, LimitError, TraceError


def bare_except(x):
    try:
        return math.exp(x)
    except:  # noqa: E722 (as people write it)
        return 1.79e308


def except_exception(x):
    try:
        return float(x) ** 2
    except Exception:
        return 0.0


def except_type_error(x):
    total = np.zeros(2)
    try:
        total[0] = x * x
    except TypeError:
        total[1] = 5.0
    return total.sum()


def finally_with_return(x):
    value = 2.0 * x
    try:
        value = math.sin(x) * x
    finally:
        return value  # noqa: B012 (likewise)


def suppressed(x):
    with contextlib.suppress(TypeError, OverflowError):
        return math.cosh(x)
    return 2.0


class Quiet:
    """A context manager that suppresses whatever happens."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return True


def suppressed_by_a_class(x):
    value = 7.0
    with Quiet():
        value = math.log1p(x * x)
    return value


def raised_as_another(x):
    try:
        try:
            return math.tan(x)
        except Exception:
            raise KeyError("no tangent") from None
    except KeyError:
        return 1.0


def retried(x):
    for scale in (1.0, 2.0, 4.0):
        try:
            return math.atan(x * scale) * scale
        except Exception:
            continue
    return 0.0


def in_a_nested_level(x):
    try:
        return sa.derivative(lambda y: math.sin(x * y))(1.0)
    except Exception:
        return 0.0


def around_a_nested_level(x):
    def inner(y):
        try:
            return math.exp(y * x)
        except Exception:
            return 3.0

    return sa.derivative(inner)(2.0)


def in_a_thread(x):
    found = [0.0]

    def work():
        with contextlib.suppress(Exception):
            found[0] = math.sin(x) * x

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]


def in_a_pool(x):
    with ThreadPoolExecutor(1) as pool:
        error = pool.submit(lambda: math.cos(x) * x).exception()
        return 0.0 if error else pool.submit(lambda: math.cos(x) * x).result()


class Silent:
    """An object whose finalizer's error Python prints and drops."""

    def __init__(self, x, store):
        self.x, self.store = x, store

    def __del__(self):
        with contextlib.suppress(TypeError):
            self.store.append(math.sin(self.x))


def in_a_finalizer(x):
    store = []
    Silent(x, store)
    return store[0] if store else 0.0


def in_a_generator(x):
    def parts():
        for factor in (1.0, 2.0):
            try:
                yield math.sin(factor * x)
            except TypeError:
                yield 0.0

    return sum(parts())


@functools.lru_cache
def cached(x):
    return math.sin(x)


def in_a_cache(x):
    try:
        return cached(x)
    except TypeError:
        return 0.0


def of_an_object_array(x):
    try:
        return np.log1p(np.array([x, 1.0])).sum()
    except TypeError:
        return 0.0


def with_a_default_of_getattr(x):
    return x * (2.0 if getattr(np.sin(x), "dtype", None) is not None else 3.0)


def by_a_default_argument(x, sin=math.sin):
    try:
        return sin(x)
    except Exception:
        return 0.0


def with_own_errors(x):
    """An index that floats refuse too, and a solver that does not converge: with numbers it is just so."""
    try:
        return (1.0, 2.0)[x]
    except TypeError:
        return x * x


RIGHT = [
    bare_except, except_exception, except_type_error, finally_with_return, suppressed, suppressed_by_a_class,
    raised_as_another, retried, in_a_nested_level, around_a_nested_level, in_a_thread, in_a_pool, in_a_generator,
    in_a_cache, of_an_object_array, with_a_default_of_getattr, with_own_errors, by_a_default_argument,
]  # fmt: skip
WAYS = {
    "grad": lambda f, x: (f(x), sa.grad(f)(x)),
    "value and gradient": lambda f, x: sa.value_and_grad(f)(x),
    "jvp": lambda f, x: sa.jvp(f, (x,), (1.0,)),
    "compile": lambda f, x: sa.compile(sa.value_and_grad(f), x)(x),
    "jit": lambda f, x: sa.jit(sa.value_and_grad(f))(x),
    "interpreted in a kernel": lambda f, x: sa.compile(lambda y: (f(y), sa.grad(f)(y)), x)(x),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", RIGHT, ids=lambda f: f.__name__)
def test_the_result_is_that_of_numbers(f, way):
    x, step = np.float64(0.7), 1e-5
    if f is in_a_cache and way == "interpreted in a kernel":
        cached.cache_clear()
    value, slope = WAYS[way](f, float(x))
    assert value == pytest.approx(f(x), rel=1e-14)
    assert slope == pytest.approx((f(x + step) - f(x - step)) / (2 * step), rel=1e-8)


def asks_for_the_next_number(x):
    try:
        return math.nextafter(x, 9.0)
    except TypeError:
        return 2.0 * x


def keeps_a_key(x):
    try:
        return {x: 1.0}[x] * x
    except TypeError:
        return 0.0


def asks_for_bytes(x):
    return x.hex() if hasattr(x, "hex") else x


def needs_an_untraced_function(x):
    try:
        return np.linalg.eigvals(np.array([[x, 1.0], [1.0, 2.0]])).max()
    except Exception:
        return 0.0


def in_a_callback_of_scipy(x):
    def residual(y):
        try:
            return math.exp(y[0]) - math.nextafter(x, 9.0)
        except TypeError:
            return y[0]

    return optimize.root(residual, np.array([0.1])).x[0]


def in_an_integrand(x):
    def integrand(t):
        try:
            return math.nextafter(x * t, 9.0)
        except TypeError:
            return 0.0

    return integrate.quad(integrand, 0.0, 1.0)[0]


REFUSED = [
    asks_for_the_next_number, keeps_a_key, asks_for_bytes, needs_an_untraced_function, in_a_finalizer,
    in_a_callback_of_scipy, in_an_integrand,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_what_cannot_be_helped_is_refused(f, way):
    with pytest.raises(TraceError, match=r"test_swallowed\.py:\d+"):
        WAYS[way](f, 0.7)


def test_the_refusal_names_both_lines():
    first = asks_for_the_next_number.__code__.co_firstlineno
    with pytest.raises(TraceError) as caught:
        sa.grad(asks_for_the_next_number)(0.7)
    message = str(caught.value)
    assert f"test_swallowed.py:{first + 2}: an error was caught that plain numbers would not have raised" in message
    assert f"the function went on at {__file__}:{first + 3}" in message


@pytest.mark.wide
def test_a_limit_that_is_caught():
    def f(x):
        try:
            for value in x:
                if value > 0:
                    x = x - 1
        except Exception:
            return x[0] * 0
        return x[0]

    with pytest.raises((LimitError, TraceError), match=r"test_swallowed\.py:\d+"):
        sa.compile(f, np.ones(70))


def test_errors_that_numbers_meet_too_are_the_functions_own():
    """A solver without a solution, an argument of a wrong shape: the function catches what it would catch anyway."""

    def without_a_root(x):
        try:
            return sa.root(lambda y: y * y + 1 + x * 0, 1.0)
        except sa.errors.ConvergenceError:
            return x**3

    def of_a_wrong_shape(x):
        try:
            return sa.jvp(lambda y: y * y, (x,), (np.ones(2),))[1]
        except ArgumentError:
            return x**3

    for f in (without_a_root, of_a_wrong_shape):
        assert f(2.0) == 8.0
        assert sa.grad(f)(2.0) == pytest.approx(12.0)


def test_the_errors_of_numbers_are_followed_at_a_point():
    """At 1000 math.exp raises OverflowError, and the function goes on along the branch of its `except`."""
    assert sa.value_and_grad(bare_except)(1000.0) == (1.79e308, 0.0)

    def logarithm(x):
        try:
            return math.log(x)
        except ValueError:
            return x - 1

    assert sa.value_and_grad(logarithm)(-2.0) == (-3.0, 1.0)
    assert sa.value_and_grad(logarithm)(2.0) == pytest.approx((math.log(2.0), 0.5))
    assert sa.compile(sa.value_and_grad(logarithm), 1.0)(-2.0) == (-3.0, 1.0)
    assert sa.compile(sa.value_and_grad(bare_except), 1.0)(1000.0) == (1.79e308, 0.0)


RUN_ONCE = {
    "an if": lambda x: x if x[0] > 0 else 2 * x,
    "a solution": lambda x: np.linalg.solve(np.stack([x, [1.0, 4.0]]), x),
    "text": lambda x: x * len(f"{x} {x[0]:.3f} {x!r}") ** 0,
    "probes": lambda x: x * (np.isscalar(x[0]) + isinstance(x[0], float) + hasattr(x, "__len__") + (len(x) == 2)),
    "cond": lambda x: sa.cond(x[0] > 0, lambda y: y * y, lambda y: -y, x),
    "a loop": lambda x: sa.fori_loop(0, 5, lambda k, y: np.sin(y), x),
    "an index": lambda x: sum(x[k] * x[-k] for k in range(2)) * x,
}


@pytest.mark.parametrize("name", RUN_ONCE)
def test_errors_that_we_catch_ourselves_do_not_count(name):
    """At a point each of these runs once, and as a kernel once for each path."""
    f, runs = RUN_ONCE[name], []

    def counted(x):
        runs.append(1)
        return f(x).sum()

    x = np.array([2.0, 0.5])
    sa.grad(counted)(x)
    assert len(runs) == 1
    runs.clear()
    paths = sa.trace(counted, x).paths
    assert len(runs) == paths


def test_errors_of_other_threads_do_not_count():
    stop, runs = threading.Event(), []

    def noise():
        while not stop.is_set():
            with contextlib.suppress(ArgumentError, TraceError):
                sa.grad(lambda x: math.nextafter(x, 9.0))(1.0)

    def f(x):
        runs.append(1)
        return sum(np.sin(x * k) for k in range(200))

    thread = threading.Thread(target=noise)
    thread.start()
    try:
        for _ in range(20):
            sa.grad(f)(0.5)
    finally:
        stop.set()
        thread.join()
    assert len(runs) == 20


@pytest.mark.parametrize("made", [sa.derivative, lambda f: sa.compile(f, 0.5)], ids=["derivative", "compile"])
def test_an_error_that_is_raised_while_one_of_ours_is_handled_is_refused(made):
    """Numbers would have raised neither."""

    def f(x):
        try:
            return math.nextafter(x, 9.0)
        except TypeError:
            raise KeyError("no such number") from None

    with pytest.raises(TraceError, match="an error was caught that plain numbers would not have raised"):
        made(f)(0.5)


def test_a_float_of_an_array_is_refused_as_numpy_does():
    """Since NumPy 2.4 for one element too; the store asks for stand-ins, that of `float` among them."""

    def f(x):
        kept = np.zeros(1)
        kept[0] = x
        try:
            return float(kept * 2) ** 2
        except TypeError:
            return kept[0] ** 3

    assert sa.value_and_grad(f)(2.0) == (8.0, 12.0)
    assert sa.compile(sa.value_and_grad(f), 1.0)(2.0) == (8.0, 12.0)


@pytest.mark.parametrize("argument", [2.0, np.array([2.0, 3.0])])
def test_a_name_is_stored_into_no_number(argument):
    """Code for labelled series tries to name its result; numbers and arrays raise the same error."""

    def f(x):
        y = np.sin(x)
        try:
            y.name = "sine"
        except AttributeError:
            y = y * 2
        return np.sum(y)

    np.testing.assert_allclose(sa.grad(f)(argument), 2 * np.cos(argument), rtol=1e-15)
    np.testing.assert_allclose(sa.compile(sa.grad(f), argument)(argument), 2 * np.cos(argument), rtol=1e-15)
