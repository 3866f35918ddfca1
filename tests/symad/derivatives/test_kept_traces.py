"""A gradient that is called again takes the trace that it has, and only where that is safe."""

from __future__ import annotations

import logging
import random
import sys
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

import symad as sa
from symad.derivatives import kept_traces
from symad.reach import object_rows
from symad.transforms import first_order

rng = np.random.default_rng(0)
DATA, LABELS = rng.normal(size=(12, 20)), np.eye(4)[rng.integers(4, size=12)]
MATRIX = np.eye(6) + 0.1 * rng.normal(size=(6, 6))
SCALE = 2.0


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often a function was run to be differentiated."""
    counted: list[int] = []
    called = first_order.call_scalar
    monkeypatch.setattr(first_order, "call_scalar", lambda *args: (counted.append(1), called(*args))[1])
    return counted


def network(w: Any) -> Any:
    hidden = np.maximum(DATA @ w.reshape(20, 4), 0.0)
    largest = np.max(hidden, axis=1, keepdims=True)
    return -np.sum(LABELS * (hidden - largest - np.log(np.sum(np.exp(hidden - largest), axis=1, keepdims=True))))


def solved(x: Any) -> Any:
    a = MATRIX + np.outer(x, x)
    return np.linalg.slogdet(a)[1] + x @ np.linalg.solve(a, x)


def small(x: Any) -> Any:
    """No arrays that are large enough to be nodes."""
    total = 0.0
    for k in range(3):
        total = total + np.sin(x[k]) * x[(k + 1) % 3] ** 2
    return total


def chain(x: Any) -> Any:
    for _ in range(5):
        x = np.tanh(x * SCALE) + np.roll(x, 1) / (1.0 + x**2)
    return np.sum(x[3:] * x[:-3]) + np.prod(x[:2])


def branching(x: Any) -> Any:
    return np.sum(x**3) if x[0] > 0.0 else np.sum(np.exp(x))


def greatest(x: Any) -> Any:
    return x[np.argmax(x)] ** 2 + np.sum(x)


def nested(x: Any) -> Any:
    inner = sa.grad(lambda y: np.sum(np.maximum(y, 0.0) ** 3))
    return np.sum(inner(x) ** 2)


SIZES = {network: 80, solved: 6, small: 3, chain: 40, branching: 30, greatest: 30, nested: 30}


@pytest.mark.parametrize("f", SIZES, ids=lambda f: f.__name__)
def test_a_kept_trace_has_the_bits_of_a_run(f: Callable[..., Any]) -> None:
    gradient = sa.value_and_grad(f)
    for _ in range(7):
        x = rng.normal(size=SIZES[f])
        found, right = gradient(x), sa.value_and_grad(f)(x)
        assert found[0] == right[0]
        assert type(found[0]) is type(right[0])
        np.testing.assert_array_equal(found[1], right[1])


PLACES = np.array([3, 3, 0, 7, 11, 5, 5, 5, 2, 19, 18, 4, 1, 1, 6, 8])
WEIGHTS = rng.normal(size=(20, 3))

GUARDED: dict[str, Callable[[Any], Any]] = {
    "a branch that is not taken": lambda x: np.sum(np.where(x > 0.0, np.log(x), x) ** 2),
    "an infinite slope behind a branch": lambda x: np.sum(np.where(x > 0.0, np.sqrt(np.abs(x)), -x)),
    "a product": lambda x: np.sum(np.maximum(x, 0.0).reshape(1, 20) @ WEIGHTS),
    "a sum that is broadcast": lambda x: np.sum((np.where(x > 1.0, x, 0.0).reshape(20, 1) * WEIGHTS) ** 2),
    "a sum of nothing": lambda x: np.sum(np.where(x > 1e9, np.log(x * 0.0), x[:1])) + np.sum(x[1:]),
    "places that come again": lambda x: np.sum(np.where(x[PLACES] > 0.0, x[PLACES], 0.0) * np.arange(16)),
    "parts of an array": lambda x: np.sum(np.abs(x[2:]) * x[:-2]) + np.max(x[3:9]) * x[0],
    "running sums": lambda x: np.sum(np.cumsum(np.clip(x, -0.5, 0.5)) ** 2),
    "the largest": lambda x: np.sum(np.max(x.reshape(4, 5), axis=0) * np.arange(5.0)) + np.min(x) ** 2,
    "the largest logarithm": lambda x: np.max(np.log(np.abs(x))) + np.sum(x),
    "equal ones": lambda x: np.max(np.round(x) + 0.0 * x) + np.max(np.concatenate([x, x, x])) + np.max(np.abs(x)),
    "logsumexp": lambda x: np.log(np.sum(np.exp(x - np.max(x)))) + np.max(x),
    "a solution": lambda x: np.sum(np.linalg.solve(MATRIX, np.where(x[:6] > 0.0, x[:6], 0.0)) * x[6:12]),
    "one number": lambda x: np.where(x[0] > 0.0, np.sqrt(x[0]), x[1]) * np.sum(x) + abs(x[3]) * np.max(x),
    "eigenvectors": lambda x: np.sum(np.linalg.eigh(MATRIX + MATRIX.T + np.outer(x[:6], x[:6]))[1][0] ** 3),
}


@pytest.mark.parametrize("name", GUARDED)
def test_guards_are_those_of_the_numbers(name: str, runs: list[int]) -> None:
    f = GUARDED[name]
    gradient = sa.value_and_grad(f)
    points = [rng.normal(size=20) for _ in range(4)]
    points += [np.zeros(20), -np.ones(20), np.where(np.arange(20) % 3, points[0], 0.0), np.repeat([2.0, -1.0], 10)]
    for number, x in enumerate(points):
        with np.errstate(all="ignore"):
            right = sa.value_and_grad(f)(x)
            before = len(runs)
            found = gradient(x)
        assert len(runs) - before == (number < 2)
        np.testing.assert_allclose(found[0], right[0], rtol=1e-14)
        np.testing.assert_allclose(found[1], right[1], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("f", [network, solved, small, chain], ids=lambda f: f.__name__)
def test_a_function_is_run_twice_for_each_shape(f: Callable[..., Any], runs: list[int]) -> None:
    gradient = sa.grad(f)
    for _ in range(6):
        gradient(rng.normal(size=SIZES[f]))
    assert len(runs) == 2


def test_shapes_and_arguments_have_traces_of_their_own(runs: list[int]) -> None:
    gradient = sa.grad(lambda p, scale: np.sum(p["a"] @ p["b"] * scale) + p["c"])
    for n in (4, 5, 4, 5, 4, 5, 4, 5):
        p = {"a": rng.normal(size=(3, n)), "b": rng.normal(size=(n, 6)), "c": 2.0}
        found = gradient(p, 3.0)
        np.testing.assert_allclose(found["a"], 3.0 * np.tile(p["b"].sum(axis=1), (3, 1)))
        assert found["c"] == 1.0
    assert len(runs) == 4
    np.testing.assert_allclose(gradient(p, 5.0)["b"], 5.0 * np.tile(p["a"].sum(axis=0)[:, None], (1, 6)))
    assert len(runs) == 5


def test_results_are_the_callers_own() -> None:
    gradient = sa.grad(chain)
    x = rng.normal(size=40)
    first = [gradient(x) for _ in range(3)][-1]
    first[:] = 7.0
    assert not np.any(gradient(x) == 7.0)


def test_answers_that_differ_make_it_run(runs: list[int]) -> None:
    gradient, x = sa.grad(branching), np.ones(30)
    for _ in range(4):
        np.testing.assert_array_equal(gradient(x), 3.0 * x**2)
    assert len(runs) == 2
    np.testing.assert_array_equal(gradient(-x), np.exp(-x))
    assert len(runs) == 3
    np.testing.assert_array_equal(gradient(2.0 * x), 12.0 * np.ones(30))
    assert len(runs) == 3


def test_every_question_is_asked_again(runs: list[int]) -> None:
    """The first answer stays, the second one differs."""

    def asking_twice(x: Any) -> Any:
        total = np.sum(x * x)
        total = total * 2.0 if x[0] > 0 else total
        return total * 3.0 if x[1] > 0 else total

    gradient, x = sa.grad(asking_twice), np.ones(30)
    for _ in range(4):
        np.testing.assert_array_equal(gradient(x), 12.0 * x)
    x[1] = -1.0
    np.testing.assert_array_equal(gradient(x), 4.0 * x)
    assert len(runs) == 3


def test_a_question_of_an_inner_integral_is_asked_again() -> None:
    def outer(p: Any) -> Any:
        def inner(s: Any) -> Any:
            return quad(lambda t: s * t * (p[0] if p[0] > 1.0 else p[0] ** 2), 0, 1)[0]

        return quad(inner, 0, 1)[0]

    gradient = sa.grad(outer)
    for value, slope in ((2.0, 0.25), (3.0, 0.25), (2.5, 0.25), (0.6, 0.3), (0.8, 0.4), (4.0, 0.25)):
        np.testing.assert_allclose(gradient(np.array([value, 1.0])), [slope, 0.0], rtol=1e-12)


def test_a_question_at_a_place_of_an_inner_integral_is_asked_again() -> None:
    """The condition has one answer at all places where p is small; for p = 1.3 it has another one near the corner."""

    def outer(p: Any) -> Any:
        def inner(s: Any) -> Any:
            return quad(lambda t: s * t * (1.0 if s * t + p < 2.0 else 2.0), 0, 1)[0]

        return p * quad(inner, 0, 1)[0]

    gradient = sa.grad(outer)
    assert [gradient(p) for p in (0.5, 0.6, 0.7, 2.5)] == pytest.approx([0.25, 0.25, 0.25, 0.5])
    with pytest.raises(
        sa.errors.TraceError, match="changes its formula at a place that depends on what is differentiated"
    ):
        gradient(1.3)


def test_what_mostly_differs_is_not_kept_for_ever(runs: list[int]) -> None:
    gradient = sa.grad(lambda x: np.sum(x * int(x[0])))
    for k in range(40):
        gradient(np.full(20, 1.0 + k))
    assert len(runs) == 40
    (why,) = (each for each in _traces(gradient)._kept.values())
    assert why == "what it asks of numbers has other answers each time"


def _traces(gradient: Any) -> kept_traces.KeptTraces:
    seen, waiting = set[int](), [gradient]
    for function in waiting:
        for cell in getattr(getattr(function, "func", function), "__closure__", None) or ():
            if isinstance(cell.cell_contents, kept_traces.KeptTraces):
                return cell.cell_contents
            if callable(cell.cell_contents) and id(cell.cell_contents) not in seen:
                seen.add(id(cell.cell_contents))
                waiting.append(cell.cell_contents)
    raise AssertionError("no traces")


def test_what_is_read_may_change() -> None:
    weights, settings = np.ones(20), SimpleNamespace(power=2)
    gradient, x = sa.grad(lambda x: np.sum(weights * x**settings.power) * SCALE), rng.normal(size=20)

    def right() -> Any:
        return SCALE * weights * settings.power * x ** (settings.power - 1)

    for _ in range(4):
        np.testing.assert_allclose(gradient(x), right())
    weights[3] = 5.0
    np.testing.assert_allclose(gradient(x), right())
    settings.power = 3
    np.testing.assert_allclose(gradient(x), right())
    globals()["SCALE"] = 4.0
    try:
        np.testing.assert_allclose(gradient(x), right())
    finally:
        globals()["SCALE"] = 2.0
    np.testing.assert_allclose(gradient(x), right())


def test_what_a_view_shows_may_change() -> None:
    owner = np.linspace(0.0, 1.0, 50)
    shown = owner[:30]
    shown.flags.writeable = False
    spread = np.broadcast_to(owner[:1], (30,))
    gradient, x = sa.grad(lambda x: np.sum(np.sin(x) * shown * spread)), np.ones(30)
    for scale in (1.0, 1.0, 1.0, 3.0):
        owner[...] = scale * np.linspace(1.0, 2.0, 50)
        assert np.allclose(gradient(x), np.cos(1.0) * owner[:30] * owner[0], rtol=1e-14, atol=0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_the_largest_arrays_may_change(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_rows, "LARGEST", 100)  # numbers of an array that is put back after a body of a loop
    data = np.arange(1, 201, dtype=dtype)
    gradient, x = sa.grad(lambda x: np.sum(np.sin(x) * data)), np.ones(200)
    for scale in (1, 1, 1, 3):
        data[...] = scale * np.arange(1, 201)
        assert np.allclose(gradient(x), np.cos(1.0) * data, rtol=1e-14, atol=0.0)


def test_what_has_side_effects_is_run_each_time(capsys: pytest.CaptureFixture[str], runs: list[int]) -> None:
    seen: list[float] = []
    generator = np.random.default_rng(1)

    def appending(x: Any) -> Any:
        seen.append(1.0)
        return np.sum(x**2)

    def counting(x: Any) -> Any:
        counting.calls = getattr(counting, "calls", 0) + 1
        return np.sum(x**2)

    with_effects = [
        lambda x: np.sum(x**2) if print("run") is None else x[0],
        appending,
        counting,
        lambda x: np.sum(x * generator.normal(size=20)),
        lambda x: np.sum(x * np.random.rand(20)),
        lambda x: np.sum(x * random.random()),
        lambda x: np.sum(x * time.time()),
    ]
    for f in with_effects:
        gradient = sa.grad(f)
        before = len(runs)
        found = [gradient(np.ones(20)) for _ in range(5)]
        assert len(runs) == before + 5
        assert len(found) == 5
    assert capsys.readouterr().out == "run\n" * 5
    assert len(seen) == 5
    assert counting.calls == 5


def test_errors_of_numbers_have_the_users_line(runs: list[int]) -> None:
    def f(a: Any) -> Any:
        return np.sum(np.linalg.cholesky(a) ** 3)

    gradient = sa.grad(f)
    for _ in range(3):
        gradient(np.eye(5))
    with pytest.raises(np.linalg.LinAlgError) as caught:
        gradient(-np.eye(5))
    assert any(entry.name == "f" for entry in caught.traceback)
    assert len(runs) == 3
    np.testing.assert_array_equal(np.diag(gradient(np.eye(5))), np.full(5, 1.5))
    assert len(runs) == 3


def test_nan_and_infinities_come_out_as_of_a_run() -> None:
    gradient = sa.grad(network)
    for value in (1.0, 1.0, 1.0, np.nan, np.inf, 0.0):
        x = np.full(80, 0.5)
        x[7] = value
        np.testing.assert_array_equal(gradient(x), sa.grad(network)(x))


def test_the_graph_does_not_grow() -> None:
    gradient, x = sa.grad(network), rng.normal(size=80)
    for _ in range(3):
        gradient(x)
    (kept,) = _traces(gradient)._kept.values()
    size = len(kept._graph), len(kept._graph.arrays.nodes)
    for _ in range(5):
        gradient(rng.normal(size=80))
    assert (len(kept._graph), len(kept._graph.arrays.nodes)) == size
    assert not kept._graph.arrays.values
    assert not kept._values


def test_threads_share_a_trace() -> None:
    gradient, points = sa.grad(network), rng.normal(size=(8, 80))
    right = [sa.grad(network)(x) for x in points]
    for x in points[:3]:
        gradient(x)
    wrong: list[int] = []

    def work(k: int) -> None:
        wrong.extend(k for _ in range(10) if not np.array_equal(gradient(points[k]), right[k]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_debugger_sees_each_run(runs: list[int]) -> None:
    gradient = sa.grad(chain)
    for _ in range(4):
        gradient(rng.normal(size=40))
    assert len(runs) == 2
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        gradient(rng.normal(size=40))
    finally:
        sys.settrace(before)
    assert len(runs) == 3


LARGE = rng.normal(size=(40_000, 20))


def test_large_arrays_are_read_at_each_call(runs: list[int]) -> None:
    data, labels = rng.normal(size=(100_000, 8)), rng.normal(size=100_000)

    def inner(x: Any) -> Any:
        return data @ x

    def f(x: Any) -> Any:
        return np.sum(np.log1p(np.exp(-labels * inner(x)))) + np.sum(x**2)

    gradient, x = sa.value_and_grad(f), rng.normal(size=8) * np.ones(16)[:8]

    def check() -> None:
        found, right = gradient(x), sa.value_and_grad(f)(x)
        assert found[0] == right[0]
        np.testing.assert_array_equal(found[1], right[1])

    for _ in range(3):
        check()
    before = len(runs)
    gradient(x)
    assert len(runs) == before, "the trace is kept"
    data[7, 3] = 5.0  # in place
    check()
    data *= 0.5
    check()
    labels = labels + 1.0  # another array under the name
    check()
    labels[3] = np.inf
    check()
    data.shape = (8, 100_000)
    with pytest.raises(ValueError, match="matmul"):
        gradient(x)


def test_large_global_arrays_are_read_at_each_call(runs: list[int]) -> None:
    gradient, x = sa.grad(lambda x: np.sum(np.tanh(LARGE @ x) ** 2)), rng.normal(size=20)
    for _ in range(3):
        gradient(x)
    before, kept = len(runs), LARGE.copy()
    try:
        LARGE[0] = 3.0
        found = gradient(x)
        assert len(runs) == before
        np.testing.assert_array_equal(found, sa.grad(lambda x: np.sum(np.tanh(LARGE @ x) ** 2))(x))
    finally:
        LARGE[:] = kept


def test_what_is_asked_of_a_large_array_is_asked_again(runs: list[int]) -> None:
    data = np.ones(2**20)

    def f(x: Any) -> Any:
        return np.sum(data * x[0]) if data[5] > 0.0 else np.sum(data * x[1] ** 2)

    gradient, x = sa.grad(f), rng.normal(size=16)
    for _ in range(3):
        gradient(x)
    before = len(runs)
    np.testing.assert_array_equal(gradient(x), sa.grad(f)(x))
    assert len(runs) == before + 1, "the trace is kept"
    data[5] = -1.0
    np.testing.assert_array_equal(gradient(x), sa.grad(f)(x))


def test_the_type_of_a_large_array_may_be_asked_for() -> None:
    data = np.ones(2**20)

    def asks(x: Any) -> Any:
        return np.sum(data * x[0]) if type(data) is np.ndarray else np.sum(data * x[1])

    gradient = sa.grad(asks)
    for factor in (1.0, 1.0, 2.0):
        data[:] = factor
        np.testing.assert_array_equal(gradient(np.ones(2)), [factor * 2**20, 0.0])


def test_a_function_that_reads_a_large_array_by_another_way_is_run(
    caplog: pytest.LogCaptureFixture, runs: list[int]
) -> None:
    data = np.ones(2**20)
    held = [np.ones(2**20)]

    def reads_from_a_list(x: Any) -> Any:
        return np.sum(held[0] * x[0])

    def both_ways(x: Any) -> Any:
        return np.sum(data * x[0]) + np.sum(both[0])

    both = [data]
    for f in (reads_from_a_list, both_ways):
        gradient, before = sa.grad(f), len(runs)
        with caplog.at_level(logging.DEBUG, "symad"):
            for _ in range(3):
                np.testing.assert_array_equal(gradient(np.ones(16))[1:], 0.0)
        assert "8,388,608 bytes that it reads would be compared at each call" in caplog.text
        assert len(runs) >= before + 3
        caplog.clear()


def test_traces_are_bounded() -> None:
    gradient = sa.grad(chain)
    for n in range(20, 20 + 2 * kept_traces.TRACES):
        for _ in range(2):
            gradient(np.ones(n))
    assert len(_traces(gradient)._kept) == kept_traces.TRACES
