"""CVODE beside Radau's method at tight tolerances; a right-hand side that fails ends it at once."""

from __future__ import annotations

import importlib
import time
from typing import Any

import numpy as np
import pytest

import symad as sa
from symad.errors import ArgumentError, ConvergenceError

pytest.importorskip("sksundae")
TIGHT = {"method": "Radau", "rtol": 1e-11, "atol": 1e-13}
CLOSE = {"method": "CVODE", "rtol": 1e-9, "atol": 1e-12}


def robertson(t: Any, y: Any, k: Any) -> Any:
    slow, back, fast = k[0] * y[0], k[1] * y[1] * y[2], k[2] * y[1] ** 2
    return np.stack([-slow + back, slow - back - fast, fast])


STIFF = sa.ode(robertson, np.array([1.0, 0.0, 0.0]), (np.array([0.04, 1e4, 3e7]),))


@pytest.mark.parametrize("times", [[1.0, 40.0], [0.0, 1.0, 40.0], [40.0], [0.0, 40.0]])
def test_a_stiff_problem_and_its_sensitivities(times: list[float]) -> None:
    found, want = (STIFF.solve((0.0, 40.0), times=times, sensitivities=1, **options) for options in (CLOSE, TIGHT))
    assert (found.success, found.method) == (True, "CVODE")
    np.testing.assert_array_equal(found.t, times)
    np.testing.assert_allclose(found.y, want.y, rtol=2e-7, atol=1e-12)
    np.testing.assert_allclose(found.sensitivities[0], want.sensitivities[0], rtol=2e-5, atol=1e-9)


def test_without_times_every_step_is_told() -> None:
    found = STIFF.solve((0.0, 40.0), method="CVODE")
    assert found.t[0] == 0.0
    assert found.t[-1] == 40.0
    assert found.t.size > 50
    assert found.y.shape == (3, found.t.size)
    assert np.sum(found.y, axis=0) == pytest.approx(1.0, abs=1e-9)


def test_a_large_system_has_a_sparse_matrix_factorized() -> None:
    def diffusion(t: Any, y: Any, a: Any) -> Any:
        inner = np.roll(y, 1) - 2.0 * y + np.roll(y, -1)
        return a * 400.0 * inner - y**3

    problem = sa.ode(diffusion, np.sin(np.linspace(0, 2 * np.pi, 120, endpoint=False)) + 1.5, (1.0,))
    found, want = (problem.solve((0.0, 0.3), times=[0.1, 0.3], **options) for options in (CLOSE, TIGHT))
    np.testing.assert_allclose(found.y, want.y, rtol=1e-6)


def test_derivatives_of_a_solution_of_second_order() -> None:
    oscillator = lambda t, y, a: np.stack([y[1], -a * y[0] - 0.1 * y[1]])  # noqa: E731
    problem = sa.ode(oscillator, np.array([1.0, 0.0]), (2.0,))

    def last(a: Any, **options: Any) -> Any:
        return problem.solution(np.array([0.0, 3.0]), a, **options)[-1, 0]

    for order in (1, 2):
        ours, want = (sa.derivative(lambda a, o=o: last(a, **o), order)(2.0) for o in (CLOSE, TIGHT))
        assert ours == pytest.approx(want, rel=1e-5)


def test_back_in_time() -> None:
    problem = sa.ode(lambda t, y, a: -a * y, np.array([1.0]), (2.0,))
    found = problem.solve((1.0, 0.0), times=[0.5, 0.0], **CLOSE)
    assert found.y[0] == pytest.approx(np.exp([1.0, 2.0]), rel=1e-7)


def test_numbers_whose_squares_are_too_large() -> None:
    grows = sa.ode(lambda t, y, a: a * y, np.full(2, 1e200), (1.0,))
    assert grows.solve((0.0, 1.0), times=[1.0], **CLOSE).y == pytest.approx(np.e * 1e200, rel=1e-7)


def test_nan_on_the_way_ends_it_at_once() -> None:
    problem = sa.ode(lambda t, y, a: a * np.sqrt(1.0 - t) * y, np.ones(2), (1.0,))
    with pytest.raises(ConvergenceError, match="CVODE stopped between t = 0 and 2: the right-hand side is NaN"):
        problem.solve((0.0, 2.0), method="CVODE")


def test_what_grows_without_end_stops() -> None:
    problem = sa.ode(lambda t, y, a: a * y**2, np.array([1.0]), (1.0,))
    with np.errstate(all="ignore"):
        try:
            told = problem.solve((0.0, 2.0), method="CVODE", options={"max_num_steps": 2000}).success
        except ConvergenceError:
            told = False
    assert not told


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sa.ode(lambda t, y, a: y / t, np.ones(1), (1.0,)).solve((0.0, 1.0), method="CVODE"), "at t = 0"),
        (lambda: STIFF.value_and_grad(lambda y, k: np.sum(y), [0.0, 1.0], method="CVODE"),
         "CVODE with a dense solution, as adjoints take it; use method="),
        (lambda: STIFF.solve((0.0, 1.0), method="CVODE", options={"no_such": 1}), "no_such"),
    ],
)  # fmt: skip
def test_what_is_refused(call: Any, message: str) -> None:
    with np.errstate(all="ignore"), pytest.raises(ArgumentError, match=message):
        call()


def ground(t: Any, y: Any, height: Any) -> Any:
    return y[0]


def top(t: Any, y: Any, height: Any) -> Any:
    return y[1]


ground.terminal, top.direction = True, -1  # type: ignore[attr-defined]
BALL = sa.ode(lambda t, y, h: [y[1], -9.81], lambda h: [h, 3.0], (5.0,), events=[ground, top])


@pytest.mark.parametrize("times", [None, [0.5, 1.0, 9.0], [0.2], [8.0]])
def test_events_and_their_derivatives(times: Any) -> None:
    found, want = (BALL.solve((0.0, 9.0), times=times, sensitivities=1, **options) for options in (CLOSE, TIGHT))
    assert (found.success, found.message) == (True, "Detected one or more events.")
    if times is not None:
        np.testing.assert_array_equal(found.t, want.t)
        np.testing.assert_allclose(found.y, want.y, rtol=1e-6)
    for ours, exact in zip(
        [*found.t_events, *found.t_event_sensitivities, *found.y_events, *found.y_event_sensitivities],
        [*want.t_events, *want.t_event_sensitivities, *want.y_events, *want.y_event_sensitivities], strict=True,
    ):  # fmt: skip
        assert ours.shape == exact.shape
        np.testing.assert_allclose(ours, exact, rtol=1e-6, atol=1e-7)
    assert found.t_events[1] == pytest.approx([3.0 / 9.81])
    if times is None:
        assert found.t[-1] == found.t_events[0][0]


def test_an_event_of_the_wrong_direction_and_one_that_ends_at_its_third_time() -> None:
    def zero(t: Any, y: Any) -> Any:
        return y[0]

    def never(t: Any, y: Any) -> Any:
        return y[0] - 2.0

    zero.terminal = 3  # type: ignore[attr-defined]
    turning = sa.ode(lambda t, y: [y[1], -y[0]], [1.0, 0.0], events=[zero, never])
    found = turning.solve((0.0, 20.0), **CLOSE)
    assert found.t_events[0] == pytest.approx(np.pi * np.array([0.5, 1.5, 2.5]), rel=1e-6)
    assert found.t_events[1].shape == (0,)
    zero.direction = 1  # type: ignore[attr-defined]
    rising = sa.ode(lambda t, y: [y[1], -y[0]], [1.0, 0.0], events=zero).solve((0.0, 20.0), **CLOSE)
    assert rising.t_events[0] == pytest.approx(np.pi * np.array([1.5, 3.5, 5.5]), rel=1e-6)


def test_the_time_of_an_event_is_differentiated_twice() -> None:
    hits = lambda h: BALL.event_time((0.0, 9.0), h, **CLOSE)  # noqa: E731
    for order in (0, 1, 2):
        falls = lambda h: (3.0 + np.sqrt(9.0 + 2 * 9.81 * h)) / 9.81  # noqa: E731
        ours, want = (sa.derivative(f, order)(5.0) if order else f(5.0) for f in (hits, falls))
        assert ours == pytest.approx(want, rel=1e-6)


def test_an_error_in_an_event_comes_out() -> None:
    turning = sa.ode(lambda t, y, a: [y[1], -y[0]], [1.0, 0.0], (1.0,), events=lambda t, y, a: np.sqrt(y[0] - 0.5) - a)
    with np.errstate(all="ignore"):
        found = turning.solve((0.0, 3.0), method="CVODE")
    assert not found.success or not found.t_events[0].size


def test_sparse_matrices_are_factorized_by_one_thread() -> None:
    """SuperLU_MT would start a thread for each processor at each factorization, which takes a hundred times as long."""
    line = np.linspace(0, 2 * np.pi, 120, endpoint=False)
    problem = sa.ode(lambda t, y, a: a * 4e2 * (np.roll(y, 1) - 2 * y + np.roll(y, -1)) - y**3, np.sin(line), (1.0,))

    def seconds(**options: Any) -> float:
        taken = []
        for _ in range(3):
            start = time.process_time()
            problem.solve((0.0, 0.3), times=[0.3], rtol=1e-6, **options)
            taken.append(time.process_time() - start)
        return min(taken)

    seconds(method="CVODE")
    assert seconds(method="CVODE") < seconds(method="BDF")


def test_an_integrator_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    import_module = importlib.import_module

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("sksundae"):
            raise ImportError("No module named 'sksundae'")
        return import_module(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(ArgumentError, match=r"the integrator CVODE without .*pip install 'symad\[sundials\]'"):
        STIFF.solve((0.0, 1.0), method="CVODE")
