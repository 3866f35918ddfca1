"""Differential equations: known solutions, derivatives by several routes and against 50 digits, and what is refused."""

from __future__ import annotations

import importlib
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import symad as sa
from symad.errors import ArgumentError, ConvergenceError, TraceError

TIGHT: Any = {"method": "Radau", "rtol": 1e-11, "atol": 1e-14}
EXPLICIT: Any = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-15}
RATES = np.array([0.04, 1e4, 3e7])


def robertson(t: Any, y: Any, k: Any) -> Any:
    slow, back, fast = k[0] * y[0], k[1] * y[1] * y[2], k[2] * y[1] * y[1]
    return [-slow + back, slow - back - fast, fast]


def hires(t: Any, y: Any, k: Any) -> Any:
    exchange = 280.0 * y[5] * y[7]
    return [
        -k[0] * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007,
        k[0] * y[0] - 8.75 * y[1],
        -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4],
        8.32 * y[1] + k[0] * y[2] - 1.12 * y[3],
        -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6],
        -exchange + 0.69 * y[3] + k[0] * y[4] - 0.43 * y[5] + 0.69 * y[6],
        exchange - 1.81 * y[6],
        -exchange + 1.81 * y[6],
    ]


def brusselator(t: Any, y: Any, p: Any) -> Any:
    """Two substances on a line, with diffusion between fixed ends."""
    u, v = y
    ends = np.concatenate([[1.0], u, [1.0]]), np.concatenate([[3.0], v, [3.0]])
    spread = [p[2] * (w[2:] - 2 * w[1:-1] + w[:-2]) for w in ends]
    return [p[0] + u * u * v - (p[1] + 1) * u + spread[0], p[1] * u - u * u * v + spread[1]]


def orbit(t: Any, y: Any, mu: Any, speed: Any) -> Any:
    cube = (y[0] ** 2 + y[1] ** 2) ** 1.5
    return [y[2], y[3], -mu * y[0] / cube, -mu * y[1] / cube]


def crossing(t: Any, y: Any, mu: Any, speed: Any) -> Any:
    return y[1]


crossing.direction = 1  # type: ignore[attr-defined]
ORBIT = sa.ode(orbit, lambda mu, speed: [1.0, 0.0, 0.0, speed], (1.0, 1.2), events=crossing)


def period(mu: Any, speed: Any) -> Any:
    """Return the time of one orbit that begins at distance 1: Kepler's third law."""
    half = 1 / (2 / 1.0 - speed * speed / mu)
    return 2 * np.pi * half**1.5 / np.sqrt(mu)


def logistic(t: Any, y: Any, rate: Any, room: Any, begin: Any) -> Any:
    return rate * y * (1 - y / room)


def grown(t: Any, rate: Any, room: Any, begin: Any) -> Any:
    return room / (1 + (room / begin - 1) * np.exp(-rate * t))


GROWTH = sa.ode(logistic, lambda rate, room, begin: [begin], (0.8, 3.0, 0.2))
AT = np.array([0.9, 2.5, 0.3])


def test_sensitivities_of_first_and_second_order_are_those_of_the_closed_form() -> None:
    times = np.array([0.0, 0.7, 2.0, 5.0])
    found = GROWTH.solve((0.0, 5.0), *AT, times=times, sensitivities=2, **EXPLICIT)
    assert found.success
    assert found.sensitivities is not None
    assert found.second_sensitivities is not None
    assert found.y[0] == pytest.approx(grown(times, *AT), rel=1e-11)
    for k, t in enumerate(times):
        exact = lambda p, t=t: grown(t, p[0], p[1], p[2])  # noqa: E731
        assert found.sensitivities[0, :, k] == pytest.approx(sa.grad(exact)(AT), rel=1e-10)
        assert found.second_sensitivities[0, :, :, k] == pytest.approx(sa.hessian(exact)(AT), rel=1e-9)


def test_a_solution_has_derivatives_of_every_order() -> None:
    solved = lambda p: GROWTH.solution([0.0, 2.0], p[0], p[1], p[2], **EXPLICIT)[1, 0]  # noqa: E731
    exact = lambda p: grown(2.0, p[0], p[1], p[2])  # noqa: E731
    for order in range(4):
        f, g = solved, exact
        for _ in range(order):
            f, g = sa.jacobian(f), sa.jacobian(g)
        assert np.asarray(f(AT)) == pytest.approx(np.asarray(g(AT)), rel=1e-9)
    assert sa.hessian(solved, mode="fwd-rev")(AT) == pytest.approx(sa.hessian(exact)(AT), rel=1e-9)


def test_times_and_the_beginning_move() -> None:
    def wave(y: Any, t: Any, w: Any) -> Any:
        return [w * np.cos(w * t)]

    moving = lambda s: sa.odeint(wave, [s[3]], [s[0], s[1]], s[2], **EXPLICIT)[1, 0]  # noqa: E731
    exact = lambda s: s[3] + np.sin(s[2] * s[1]) - np.sin(s[2] * s[0])  # noqa: E731
    at = np.array([0.3, 1.7, 1.3, 0.5])
    assert moving(at) == pytest.approx(exact(at), rel=1e-12)
    assert sa.grad(moving)(at) == pytest.approx(sa.grad(exact)(at), rel=1e-10)
    assert sa.hessian(moving)(at) == pytest.approx(sa.hessian(exact)(at), rel=1e-9, abs=1e-11)
    last = lambda t: sa.odeint(wave, [0.0], np.stack([0.0, t]), 2.0, **EXPLICIT)[1, 0]  # noqa: E731
    assert sa.derivative(last, 2)(0.4) == pytest.approx(-4 * np.sin(0.8), rel=1e-10)


@pytest.mark.wide
def test_robertson_against_fifty_digits() -> None:
    """First and second derivatives of stiff kinetics, by Taylor series and differences of many digits."""
    found = sa.ode(robertson, [1.0, 0.0, 0.0], (RATES,)).solve(
        (0.0, 0.004), times=[0.004], sensitivities=2, method="Radau", rtol=1e-12, atol=1e-17
    )
    assert found.sensitivities is not None
    assert found.second_sensitivities is not None

    def exact(k: Any) -> Any:
        return mp.matrix(
            mp.odefun(lambda t, y: robertson(t, y, k), 0, [mp.mpf(1), mp.mpf(0), mp.mpf(0)])(mp.mpf(0.004))
        )

    with mp.workdps(50):
        at, steps = [mp.mpf(k) for k in RATES], [mp.mpf(k) * mp.mpf(10) ** -12 for k in RATES]
        moved = lambda *moves: exact([k + sum(m * s for j, m, s in moves if j == i) for i, k in enumerate(at)])  # noqa: E731
        middle = exact(at)
        for i in range(2):
            ahead, behind = moved((i, 1, steps[i])), moved((i, -1, steps[i]))
            first, second = (ahead - behind) / (2 * steps[i]), (ahead - 2 * middle + behind) / steps[i] ** 2
            assert found.sensitivities[:, i, 0] == pytest.approx(np.array(first, dtype=float).ravel(), rel=2e-7)
            assert found.second_sensitivities[:, i, i, 0] == pytest.approx(
                np.array(second, dtype=float).ravel(), rel=2e-6
            )
        assert found.y[:, 0] == pytest.approx(np.array(middle, dtype=float).ravel(), rel=1e-9)


@pytest.mark.wide
def test_the_hessian_of_a_fit_against_fifty_digits() -> None:
    """Predator and prey, four rates; the loss of two measurements, by the closed series of mpmath."""

    def prey(t: Any, y: Any, p: Any) -> Any:
        return [p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]]

    times, told = [0.0, 0.4, 0.8], [[1.1, 0.9], [1.4, 0.8]]
    system = sa.ode(prey, [1.0, 1.0], (np.ones(4),))
    loss = lambda p: np.sum((system.solution(times, p, **EXPLICIT)[1:] - np.array(told)) ** 2)  # noqa: E731
    at = np.array([1.5, 1.0, 0.75, 1.25])

    def exact(p: Any) -> Any:
        solved = mp.odefun(lambda t, y: prey(t, y, p), 0, [mp.mpf(1), mp.mpf(1)])
        states = [solved(mp.mpf(t)) for t in times[1:]]
        return sum(
            (a - mp.mpf(b)) ** 2
            for state, row in zip(states, told, strict=True)
            for a, b in zip(state, row, strict=True)
        )

    with mp.workdps(50):
        h, numbers = mp.mpf(10) ** -12, [mp.mpf(p) for p in at]
        shifted = lambda *j: exact([p + h * (j.count(i) - j.count(~i)) for i, p in enumerate(numbers)])  # noqa: E731
        slope = [(shifted(i) - shifted(~i)) / (2 * h) for i in range(2)]
        curvature = {
            (i, j): (shifted(i, j) - shifted(i, ~j) - shifted(~i, j) + shifted(~i, ~j)) / (4 * h * h)
            for i in range(2) for j in range(i + 1)
        }  # fmt: skip
    gradient = sa.grad(loss)(at)
    assert gradient[:2] == pytest.approx([float(s) for s in slope], rel=1e-10)
    hessian = sa.hessian(loss)(at)
    for place, value in curvature.items():
        assert hessian[place] == pytest.approx(float(value), rel=1e-9)
    value, adjoint = system.value_and_grad(lambda y, p: np.sum((y[1:] - np.array(told)) ** 2), times, at, **EXPLICIT)
    assert value == pytest.approx(loss(at), rel=1e-12)
    assert adjoint == pytest.approx(gradient, rel=1e-6)  # between steps the state is interpolated


def test_hires_at_the_end_of_its_published_solution() -> None:
    """The test set for initial value problem solvers (Mazzia and Magherini), problem HIRES."""
    found = sa.ode(hires, [1.0, 0, 0, 0, 0, 0, 0, 0.0057], (np.array([1.71]),)).solve(
        (0.0, 321.8122), times=[321.8122], sensitivities=1, **TIGHT
    )
    want = [
        0.7371312573325668e-3, 0.1442485726316185e-3, 0.5888729740967575e-4, 0.1175651343283149e-2,
        0.2386356198831331e-2, 0.6238968252742796e-2, 0.2849998395185769e-2, 0.2850001604814231e-2,
    ]  # fmt: skip
    assert found.y[:, 0] == pytest.approx(want, rel=1e-7)
    h = 1e-5
    ends = [
        solve_ivp(lambda t, y, k=k: hires(t, y, [k]), (0, 321.8122), [1.0, 0, 0, 0, 0, 0, 0, 0.0057],
                  method="Radau", rtol=1e-11, atol=1e-14).y[:, -1]
        for k in (1.71 - h, 1.71 + h)
    ]  # fmt: skip
    assert found.sensitivities is not None
    assert found.sensitivities[:, 0, 0] == pytest.approx((ends[1] - ends[0]) / (2 * h), rel=1e-4)


@pytest.mark.parametrize("method", ["BDF", "Radau", "LSODA"])
@pytest.mark.thinned
def test_the_brusselator_has_a_sparse_jacobian(method: Any) -> None:
    cells = 40
    line = np.linspace(0, 1, cells + 2)[1:-1]
    start, p = (
        np.stack([1 + np.sin(2 * np.pi * line), np.full(cells, 3.0)]),
        np.array([1.0, 3.0, 0.02 * (cells + 1) ** 2]),
    )
    system = sa.ode(brusselator, start, (p,))
    found = system.solve((0.0, 1.0), times=[0.5, 1.0], sensitivities=1, method=method, rtol=1e-8, atol=1e-9)
    assert (found.success, found.y.shape) == (True, (2, cells, 2))
    right, slope = system.functions()
    assert slope(0.0, start.ravel()).nnz < 8 * cells
    plain = solve_ivp(right, (0, 1), start.ravel(), method="Radau", t_eval=[0.5, 1.0], rtol=1e-9, atol=1e-10)
    assert found.y.reshape(-1, 2) == pytest.approx(plain.y, rel=1e-6)
    assert found.sensitivities is not None
    h = 1e-5
    ends = [
        system.solve((0.0, 1.0), p + h * np.eye(3)[1] * sign, times=[1.0], method="Radau", rtol=1e-11, atol=1e-12).y
        for sign in (1, -1)
    ]
    assert found.sensitivities[:, :, 1, 1] == pytest.approx((ends[0] - ends[1])[..., 0] / (2 * h), rel=1e-4, abs=1e-5)
    value, adjoint = system.value_and_grad(
        lambda y, p: np.sum(y[-1] ** 2), [0.0, 1.0], p, method="Radau", rtol=1e-9, atol=1e-11
    )
    want = 2 * np.einsum("ij,ijk->k", found.y[..., 1], found.sensitivities[..., 1])
    assert (value, adjoint) == (pytest.approx(np.sum(found.y[..., 1] ** 2), rel=1e-6), pytest.approx(want, rel=1e-4))


def test_an_orbit_comes_back_after_its_period() -> None:
    found = ORBIT.solve((0.0, 20.0), sensitivities=1, **EXPLICIT)
    exact = lambda s: period(s[0], s[1])  # noqa: E731
    at = np.array([1.0, 1.2])
    assert found.t_events[0][0] == pytest.approx(exact(at), rel=1e-10)  # the beginning is none
    assert found.t_event_sensitivities[0][0] == pytest.approx(sa.grad(exact)(at), rel=1e-8)
    assert found.y_events[0][0] == pytest.approx([1.0, 0.0, 0.0, 1.2], abs=1e-9)
    there = [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]  # it begins there whatever mu is
    assert found.y_event_sensitivities[0][0] == pytest.approx(np.array(there), abs=1e-8)
    timed = lambda s: ORBIT.event_time((0.0, 20.0), s[0], s[1], **EXPLICIT)  # noqa: E731
    assert timed(at) == pytest.approx(exact(at), rel=1e-12)
    assert sa.grad(timed)(at) == pytest.approx(sa.grad(exact)(at), rel=1e-10)
    assert sa.hessian(timed)(at) == pytest.approx(sa.hessian(exact)(at), rel=1e-8)


@pytest.mark.parametrize("kind", ["diagonal", "matrix", "function"])
def test_a_mass_matrix_stands_for_its_inverse(kind: str) -> None:
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    masses = {
        "diagonal": (np.array([2.0, 4.0]), lambda p: np.diag([2.0, 4.0])),
        "matrix": ([[2.0, 1.0], [0.0, 4.0]], lambda p: np.array([[2.0, 1.0], [0.0, 4.0]])),
        "function": (lambda p: [[2.0, p], [0.0, 4.0]], lambda p: np.array([[2.0, p], [0.0, 4.0]])),
    }
    mass, matrix = masses[kind]
    found = sa.ode(lambda t, y, p: p * (turn @ y), [1.0, 0.5], (1.0,), mass=mass).solve(
        (0.0, 2.0), times=[2.0], sensitivities=1, **EXPLICIT
    )

    def plain(p: float) -> Any:
        inverse = np.linalg.inv(matrix(p))
        return solve_ivp(lambda t, y: p * (inverse @ turn @ y), (0, 2), [1.0, 0.5], **EXPLICIT).y[:, -1]

    assert found.y[:, 0] == pytest.approx(plain(1.0), rel=1e-10)
    assert found.sensitivities is not None
    assert found.sensitivities[:, 0, 0] == pytest.approx((plain(1.0005) - plain(0.9995)) / 1e-3, rel=1e-5)


def test_parameters_of_several_shapes_and_the_adjoint() -> None:
    system = sa.ode(lambda t, y, a, b: np.sin(a @ y) + b * np.cos(t), lambda a, b: a[0] * b, (np.ones((2, 2)), 1.0))
    a, b, times = np.array([[0.3, -0.8], [0.9, 0.1]]), 0.7, np.array([0.0, 0.4, 1.0, 1.5])
    objective = lambda y, a, b: np.sum(y[::2] ** 3) + b * y[3, 0]  # noqa: E731
    value, (in_a, in_b) = system.value_and_grad(objective, times, a, b, **EXPLICIT)
    whole = lambda a, b: objective(system.solution(times, a, b, **EXPLICIT), a, b)  # noqa: E731
    want = sa.value_and_grad(whole, argnums=(0, 1))(a, b)
    assert value == pytest.approx(want[0], rel=1e-10)
    assert in_a == pytest.approx(want[1][0], rel=1e-7)
    assert in_b == pytest.approx(want[1][1], rel=1e-7)
    stiff = system.value_and_grad(objective, times, a, b, method="BDF", rtol=1e-9, atol=1e-11)
    assert stiff[1][0] == pytest.approx(want[1][0], rel=1e-4)


def test_systems_without_parameters_and_backwards() -> None:
    swing = sa.ode(lambda t, y: np.stack([y[1], -y[0]]), [0.0, 1.0])
    assert swing.solution([1.0, 0.0], **EXPLICIT)[1] == pytest.approx([-np.sin(1.0), np.cos(1.0)], rel=1e-11)
    right, slope = swing.functions()
    assert solve_ivp(right, (0, 1), [0.0, 1.0], jac=slope, method="Radau", rtol=1e-9).y[0, -1] == pytest.approx(
        np.sin(1.0), rel=1e-6
    )
    with pytest.raises(ArgumentError, match="derivatives without parameters; give the system parameters"):
        swing.solve((0.0, 1.0), sensitivities=1)
    with pytest.raises(ArgumentError, match="derivatives without parameters"):
        swing.value_and_grad(lambda y: y[1, 0], [0.0, 1.0])


def test_what_becomes_infinite_has_the_integrators_status() -> None:
    blown = sa.ode(lambda t, y, a: a * y * y, [1.0], (1.0,))
    for method in ("RK45", "DOP853", "Radau", "BDF"):
        found = blown.solve((0.0, 2.0), method=method)  # 1 / (1 - t)
        assert (found.success, found.status) == (False, -1)
        assert "step size" in found.message
    with pytest.raises(ConvergenceError, match=r"DOP853 did not come from t = 0 to 2: Required step size"):
        blown.solution([0.0, 2.0], method="DOP853")


ROOT = sa.ode(lambda t, y, a: np.sqrt(1.0 - t) * a + 0.0 * y, [1.0], (1.0,))


@pytest.mark.parametrize("method", ["RK45", "DOP853", "LSODA", "Radau", "BDF"])
@pytest.mark.filterwarnings("ignore:lsoda.*:UserWarning")
def test_nan_on_the_way_is_no_success(method: Any) -> None:
    found = ROOT.solve((0.0, 2.0), method=method)
    assert (found.success, found.status) == (False, -1)


def test_a_jacobian_of_nan_stops_with_a_name() -> None:
    wrong = sa.ode(lambda t, y, a: a * np.sqrt(y), [0.0], (1.0,))  # its slope there is infinite
    with pytest.raises(
        ConvergenceError, match="Radau stopped between t = 0 and 2: array must not contain infs or NaNs"
    ):
        wrong.solve((0.0, 2.0), method="Radau")


@pytest.mark.parametrize("times", [1.0, None, "ab", ["a"], [0.0, np.nan], [[0.0, 1.0]], {}])
def test_times_that_are_no_list_of_numbers_are_refused(times: Any) -> None:
    decay = sa.ode(lambda t, y, k: -k * y, [1.0], (1.0,))
    calls = [lambda: sa.odeint(lambda y, t: -y, 1.0, times), lambda: decay.solution(times, 1.0)]
    if times is not None:
        calls.append(lambda: decay.solve((0.0, 1.0), 1.0, times=times))
    for call in calls:
        with pytest.raises(ArgumentError, match="give a list of numbers"):
            call()
    with pytest.raises(ArgumentError, match="no times; give some"):
        sa.odeint(lambda y, t: -y, 1.0, [])


def test_what_is_captured_and_traced_is_refused() -> None:
    with pytest.raises(TraceError, match="pass one of them in as an argument"):
        sa.grad(lambda p: sa.odeint(lambda y, t: p * y, [1.0], [0.0, 1.0])[1, 0])(1.0)
    with pytest.raises(TraceError, match="a plain number would lose its derivative"):
        sa.grad(lambda p: sa.ode(lambda t, y: y, [p]).solution([0.0, 1.0])[1, 0])(1.0)


def test_what_does_not_fit_is_refused_by_name() -> None:
    with pytest.raises(ArgumentError, match=r"<lambda> returns shape \(2,\): the state has shape \(3,\)"):
        sa.ode(lambda t, y: y[:2], np.ones(3)).solve((0.0, 1.0))
    with pytest.raises(ArgumentError, match="parameters of type float; give a tuple"):
        sa.ode(lambda t, y, k: y, [1.0], 2.0)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"parameters of shapes \(2,\): the system was made for \(\)"):
        sa.ode(lambda t, y, k: y, [1.0], (2.0,)).solve((0.0, 1.0), np.ones(2))
    with pytest.raises(ArgumentError, match="a singular mass matrix: the system has algebraic equations"):
        sa.ode(robertson, [1.0, 0.0, 0.0], (RATES,), mass=[1.0, 1.0, 0.0])
    with pytest.raises(ArgumentError, match=r"a mass matrix of shape \(2,\): the state has 3 numbers"):
        sa.ode(robertson, [1.0, 0.0, 0.0], (RATES,), mass=[1.0, 1.0])
    with pytest.raises(
        ArgumentError, match="the right-hand side is nan in number 0 at t = 0; begin where it is finite"
    ):
        sa.ode(lambda t, y: np.log(y - 2.0), [1.0]).solve((0.0, 1.0))
    with pytest.raises(ArgumentError, match="the initial state is nan in number 1 at t = 0"):
        sa.ode(lambda t, y: y, [1.0, np.nan]).solve((0.0, 1.0))
    with pytest.raises(ArgumentError, match="method='Euler'; use one of LSODA, BDF"):
        GROWTH.solve((0.0, 1.0), method="Euler")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="an integrator goes one way; give them in order, each once"):
        GROWTH.solution([0.0, 1.0, 0.5])
    with pytest.raises(ArgumentError, match="sensitivities=3; ask for 0, 1 or 2"):
        GROWTH.solve((0.0, 1.0), sensitivities=3)
    with pytest.raises(ArgumentError, match="span=3; give two times"):
        GROWTH.solve(3)  # type: ignore[arg-type]


def test_tolerances_of_each_number_and_options() -> None:
    by: Any = {"method": "DOP853", "rtol": 1e-10}
    swing = sa.ode(lambda t, y, k: [y[1], -k * y[0]], [1.0, 0.0], (4.0,))
    found = swing.solve((0.0, 1.0), times=[1.0], sensitivities=1, atol=[1e-12, 1e-10], **by)
    assert found.y[0, 0] == pytest.approx(np.cos(2.0), rel=1e-9)
    value, slope = swing.value_and_grad(lambda y, k: y[-1, 0], [0.0, 1.0], atol=[1e-12, 1e-10], **by)
    assert (value, slope) == (pytest.approx(np.cos(2.0), rel=1e-8), pytest.approx(-np.sin(2.0) / 4, rel=1e-6))
    with pytest.raises(ArgumentError, match="3 tolerances in atol; give one, or one for each number of y"):
        swing.solve((0.0, 1.0), atol=[1e-12] * 3)
    with pytest.raises(ArgumentError, match=r"LSODA from t = 0 to 1: Values in `t_eval` are not within `t_span`"):
        swing.solve((0.0, 1.0), times=[0.0, 2.0])
    with pytest.raises(ArgumentError, match=r"BDF from t = 0 to 1: .*multiple values for keyword argument 'jac'"):
        swing.solve((0.0, 1.0), method="BDF", options={"jac": None})
    steps = swing.solve((0.0, 1.0), method="RK45", options={"max_step": 0.01})
    assert np.max(np.diff(steps.t)) <= 0.01 * (1 + 1e-12)


def test_branches_and_a_state_that_is_a_matrix() -> None:
    turning = sa.ode(
        lambda t, y, a: np.where(t < 0.5, a, -a) * y @ np.array([[0.0, 1.0], [-1.0, 0.0]]), np.eye(2), (0.7,)
    )
    found = turning.solve((0.0, 1.0), times=[0.25, 1.0], sensitivities=2, **EXPLICIT, options={"max_step": 0.1})
    assert found.second_sensitivities is not None
    assert (found.y.shape, found.second_sensitivities.shape) == ((2, 2, 2), (2, 2, 1, 1, 2))
    assert found.y[..., 1] == pytest.approx(np.eye(2), abs=1e-8)
    assert found.y[0, 0, 0] == pytest.approx(np.cos(0.25 * 0.7), rel=1e-12)
    assert found.second_sensitivities[0, 0, 0, 0, 0] == pytest.approx(-np.cos(0.25 * 0.7) / 16, rel=1e-10)


def test_an_event_that_never_happens() -> None:
    found = ORBIT.solve((0.0, 1.0), sensitivities=1)
    assert [len(found.t_events[0]), found.t_event_sensitivities[0].shape] in ([0, (0, 2)], [1, (1, 2)])
    with pytest.raises(ConvergenceError, match=r"event 0 happens \d times between t = 0 and 1: occurrence 4 was asked"):
        ORBIT.event_time((0.0, 1.0), occurrence=4)
    never = sa.ode(lambda t, y, a: a * y, [1.0], (1.0,), events=[lambda t, y, a: y[0] + 1, lambda t, y, a: y[0] - 2])
    told = never.solve((0.0, 1.0), sensitivities=1)
    assert [times.size for times in told.t_events] == [0, 1]
    assert [states.shape for states in told.y_events] == [(0, 1), (1, 1)]
    assert [moves.shape for moves in told.y_event_sensitivities] == [(0, 1, 1), (1, 1, 1)]
    assert told.t_event_sensitivities[1][0, 0] == pytest.approx(-np.log(2.0), rel=1e-6)
    with pytest.raises(ConvergenceError, match="event 0 happens 0 times"):
        never.event_time((0.0, 1.0))
    with pytest.raises(ArgumentError, match="event=1: there are 1 events, counted from 0"):
        ORBIT.event_time((0.0, 1.0), event=1)


def test_an_event_that_ends_it_and_one_that_only_touches() -> None:
    def falls(t: Any, y: Any, h: Any) -> Any:
        return y[0]

    falls.terminal = True  # type: ignore[attr-defined]
    fall = sa.ode(lambda t, y, h: [y[1], -9.81], lambda h: [h, 0.0], (5.0,), events=[falls])
    found = fall.solve((0.0, 10.0), sensitivities=1)
    assert (found.status, found.success) == (1, True)
    assert found.t[-1] == pytest.approx(np.sqrt(10 / 9.81), rel=1e-8)
    assert found.t_event_sensitivities[0][0, 0] == pytest.approx(np.sqrt(10 / 9.81) / 10, rel=1e-7)
    touching = sa.ode(lambda t, y, a: [3 * (t - 1.0) ** 2 + 0 * a], [-1.0], (1.0,), events=lambda t, y, a: y[0])
    with pytest.raises(ConvergenceError, match="touches 0, or passes it at no speed"):
        touching.solve((0.0, 2.0), sensitivities=1, method="RK23", options={"max_step": 0.5})


def test_a_kernel_has_no_integrator_and_its_absence_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TraceError, match=r"at symbolic values: an integrator needs numbers.*as a loop \(sa.scan\)"):
        sa.compile(lambda k: sa.odeint(lambda y, t, k: -k * y, [1.0], [0.0, 1.0], k), 1.0)
    found = importlib.import_module
    monkeypatch.setattr(
        "importlib.import_module",
        lambda name, *more: found(name if name != "scipy.integrate" else "scipy.no_integrate", *more),
    )
    with pytest.raises(ArgumentError, match=r"an integrator without scipy: .*; pip install 'symad\[special\]'"):
        GROWTH.solve((0.0, 1.0))


def test_an_event_before_all_times_that_were_asked_for() -> None:
    def ground(t: Any, y: Any, height: Any) -> Any:
        return y[0]

    ground.terminal = True  # type: ignore[attr-defined]
    fall = sa.ode(lambda t, y, h: [y[1], -9.81], lambda h: [h, 0.0], (5.0,), events=ground)
    found = fall.solve((0.0, 10.0), times=[8.0], sensitivities=1)
    assert (found.t.shape, found.y.shape, found.sensitivities.shape) == ((0,), (2, 0), (2, 1, 0))
    assert found.t_event_sensitivities[0] == pytest.approx(np.sqrt(1 / (2 * 9.81 * 5.0)))


def test_odeint_takes_its_arguments_as_scipy_does() -> None:
    times, wanted = [0.0, 1.0], [1.0, np.exp(-0.7)]

    def decay(y: Any, t: Any, p: Any) -> Any:
        return -p * y

    assert sa.odeint(decay, [1.0], times, 0.7).ravel() == pytest.approx(wanted, rel=1e-7)
    assert sa.odeint(decay, [1.0], times, args=(0.7,)).ravel() == pytest.approx(wanted, rel=1e-7)
    assert sa.odeint(lambda t, y, p: -p * y, [1.0], times, 0.7, tfirst=True).ravel() == pytest.approx(wanted, rel=1e-7)
    with pytest.raises(ArgumentError, match=r"takes the time first: odeint calls f\(y, t\)"):
        sa.odeint(lambda t, y, p: -p * y, [1.0], times, 0.7)


@pytest.mark.parametrize("method", ["LSODA", "BDF", "Radau", "RK45", "DOP853", "RK23"])
def test_an_event_that_is_0_at_the_start_does_not_end_it_there(method: Any) -> None:
    def crosses(t: Any, y: Any, k: Any) -> Any:
        return y[0]

    crosses.terminal = True  # type: ignore[attr-defined]
    swing = sa.ode(lambda t, y, k: [y[1], -k * y[0]], [0.0, 1.0], (4.0,), events=crosses)
    for end in (2.0, -2.0):
        found = swing.solve((0.0, end), method=method, sensitivities=1, rtol=1e-10, atol=1e-12)
        assert found.t[-1] == pytest.approx(np.copysign(np.pi / 2, end), rel=1e-8)
        assert found.t_events[0] == pytest.approx([found.t[-1]])
        assert found.t_event_sensitivities[0][0, 0] == pytest.approx(-found.t[-1] / 8, rel=1e-6)
    still = sa.ode(lambda t, y, k: [-k * y[0]], [1.0], (1.0,), events=lambda t, y, k: 0.0 * y[0])
    assert still.solve((0.0, 1.0), times=[0.0, 1.0], method=method).y[0, -1] == pytest.approx(np.exp(-1))


def test_an_option_whose_result_nobody_gets_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r'"dense_output": \.\.\.}: no result holds it; ask for `times`'):
        sa.ode(lambda t, y: -y, [1.0]).solve((0.0, 1.0), options={"dense_output": True})
