"""Differential equations: seconds of values and sensitivities: `python -m benchmarks.ode`.

Each problem by SciPy alone (the right-hand side in Python, no Jacobian; sensitivities by central differences of tight
solutions), by symad with the same integrators of SciPy, and with CVODE of SUNDIALS, and, where they are installed, by
CVODES with CasADi's forward sensitivities, and by diffrax. Errors are those of the last state, and of its
sensitivities, against the same system by Radau's method at tolerances of 1e-12: relative to the largest entry of each
row. Seconds of a solution are the best of `ROUNDS`, of the process; of a build, once.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import symad as sa
from benchmarks.tables import number, table
from symad.extras import optional

ROUNDS = 3
TOLERANCES = {"rtol": 1e-6, "atol": 1e-10}
TIGHT = {"method": "Radau", "rtol": 1e-12, "atol": 1e-14}
CELLS = 64


@dataclass(frozen=True)
class Case:
    """An initial value problem; its right-hand side takes what joins parts of the candidate's arrays."""

    name: str
    right: Callable[..., Any]
    start: Any
    parameters: Any
    end: float


def robertson(y: Any, k: Any, xp: Any) -> Any:
    """Three substances, three rates."""
    slow, back, fast = k[0] * y[0], k[1] * y[1] * y[2], k[2] * y[1] * y[1]
    return xp([-slow + back, slow - back - fast, fast])


def hires(y: Any, k: Any, xp: Any) -> Any:
    """Eight substances of the high irradiance response, of whose rates three move."""
    exchange = k[2] * y[5] * y[7]
    return xp([
        -k[0] * y[0] + k[1] * y[1] + 8.32 * y[2] + 0.0007,
        k[0] * y[0] - 8.75 * y[1],
        -10.03 * y[2] + k[1] * y[3] + 0.035 * y[4],
        8.32 * y[1] + k[0] * y[2] - 1.12 * y[3],
        -1.745 * y[4] + k[1] * y[5] + k[1] * y[6],
        -exchange + 0.69 * y[3] + k[0] * y[4] - k[1] * y[5] + 0.69 * y[6],
        exchange - 1.81 * y[6],
        -exchange + 1.81 * y[6],
    ])  # fmt: skip


def brusselator(y: Any, p: Any, xp: Any) -> Any:
    """Two substances on a line, one number after the other; what CasADi and NumPy both have words for."""
    left, right = y[: CELLS - 2], y[2:CELLS]
    u, v, w = y[1 : CELLS - 1], y[CELLS + 1 : 2 * CELLS - 1], y[CELLS:]
    spread_u, spread_v = left - 2 * u + right, w[: CELLS - 2] - 2 * v + w[2:CELLS]
    made_u = p[0] + u * u * v - (p[1] + 1) * u + p[2] * spread_u
    made_v = p[1] * u - u * u * v + p[2] * spread_v
    return xp([0.0 * y[0], made_u, 0.0 * y[0], 0.0 * y[0], made_v, 0.0 * y[0]])


def cases() -> list[Case]:
    """Return the problems."""
    line = np.linspace(0, 1, CELLS)
    start = np.concatenate([1 + np.sin(2 * np.pi * line), np.full(CELLS, 3.0)])
    return [
        Case("Robertson, t = 40", robertson, [1.0, 0.0, 0.0], [0.04, 1e4, 3e7], 40.0),
        Case("HIRES, t = 321.8", hires, [1.0, 0, 0, 0, 0, 0, 0, 0.0057], [1.71, 0.43, 280.0], 321.8122),
        Case(f"Brusselator, {2 * CELLS} numbers, t = 10", brusselator, start, [1.0, 3.0, 0.02 * CELLS**2], 10.0),
    ]


@dataclass(frozen=True)
class Row:
    """What one candidate needs for one case: the last state, or its sensitivities too."""

    candidate: str
    build: float
    seconds: float
    found: Any


def best(solve: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least seconds of the process, and what was found."""
    seconds, found = [], None
    for _ in range(ROUNDS):
        begin = time.process_time()
        found = solve()
        seconds.append(time.process_time() - begin)
    return min(seconds), found


def by_symad(case: Case, method: Any, order: int, **more: Any) -> Row:
    """Return seconds of symad's derivatives and an integrator of SciPy."""
    begin = time.process_time()
    system = sa.ode(lambda t, y, p: case.right(y, p, joined), case.start, (np.asarray(case.parameters, dtype=float),))

    def solve() -> Any:
        found = system.solve(
            (0.0, case.end), times=[case.end], method=method, sensitivities=order, **(TOLERANCES | more)
        )
        assert found.success, found.message
        return [found.y[:, 0]] + ([] if found.sensitivities is None else list(found.sensitivities[:, :, 0].T))

    system.solve((0.0, 1e-9 * case.end), method=method, sensitivities=order)
    build = time.process_time() - begin
    return Row(f"symad, {method}", build, *best(solve))


def by_scipy(case: Case, method: Any, order: int) -> Row:
    """Return seconds of SciPy alone."""
    integrate = optional("scipy.integrate", "the comparison")

    def end(p: Any, **given: Any) -> Any:
        return integrate.solve_ivp(
            lambda t, y: case.right(y, p, joined), (0.0, case.end), case.start, method=method, **given
        ).y[:, -1]

    def solve() -> Any:
        p = np.asarray(case.parameters, dtype=float)
        found = [end(p, **TOLERANCES)]
        for k in range(len(p) if order else 0):
            step = np.eye(len(p))[k] * p[k] * 1e-4
            ahead, behind = end(p + step, rtol=1e-9, atol=1e-13), end(p - step, rtol=1e-9, atol=1e-13)
            found.append((ahead - behind) / (2 * step[k]))
        return found

    return Row(f"SciPy alone, {method}" + (", differences" if order else ""), 0.0, *best(solve))


def by_casadi(case: Case, order: int) -> Row:
    """Return seconds of CVODES by way of CasADi."""
    ca = importlib.import_module("casadi")
    begin = time.process_time()
    y, p = ca.SX.sym("y", len(case.start)), ca.SX.sym("p", len(case.parameters))
    slope = case.right(y, p, lambda parts: ca.vertcat(*parts))
    options = {"reltol": TOLERANCES["rtol"], "abstol": TOLERANCES["atol"], "max_num_steps": 100_000}
    made = ca.integrator("end", "cvodes", {"x": y, "p": p, "ode": slope}, 0.0, case.end, options)
    point, values = ca.MX.sym("p", len(case.parameters)), ca.MX.sym("y", len(case.start))
    last = made(x0=values, p=point)["xf"]
    function = ca.Function("f", [values, point], [last, *([ca.jacobian(last, point)] if order else [])])

    def solve() -> Any:
        found = function(case.start, case.parameters)
        if not order:
            return [np.asarray(found).ravel()]
        return [np.asarray(found[0]).ravel(), *np.asarray(found[1]).T]

    build = time.process_time() - begin
    return Row("CasADi, CVODES", build, *best(solve))


def by_diffrax(case: Case, order: int) -> Row:
    """Return seconds of diffrax, with an implicit method of order 5 and sensitivities by JAX's forward mode."""
    diffrax, jax = importlib.import_module("diffrax"), importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    begin = time.process_time()
    control = diffrax.PIDController(**TOLERANCES)

    def join(parts: Any) -> Any:
        return jax.numpy.concatenate([jax.numpy.reshape(part, -1) for part in parts])

    def end(p: Any) -> Any:
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, p: case.right(y, p, join)), diffrax.Kvaerno5(), 0.0, case.end, None,
            jax.numpy.array(case.start), p, stepsize_controller=control, adjoint=diffrax.ForwardMode(),
            max_steps=100_000,
        )  # fmt: skip
        return found.ys[-1]

    function = jax.jit(lambda p: (end(p), jax.jacfwd(end)(p)) if order else (end(p),))

    def solve() -> Any:
        last, *slopes = map(np.asarray, function(np.asarray(case.parameters, dtype=float)))
        return [last, *(slopes[0].T if slopes else [])]

    solve()
    build = time.process_time() - begin
    return Row("diffrax, Kvaerno5", build, *best(solve))


def joined(parts: Any) -> Any:
    """Return numbers and vectors one behind the other."""
    return np.concatenate([np.reshape(part, -1) for part in parts])


def rows(case: Case, order: int) -> Iterator[Row]:
    """Yield what each candidate needs."""
    sundials = ["CVODE"] if importlib.util.find_spec("sksundae") is not None else []
    for method in ["LSODA", "BDF", "Radau", *sundials]:
        yield by_symad(case, method, order)
    for method in ("LSODA", "BDF"):
        yield by_scipy(case, method, order)
    if importlib.util.find_spec("casadi") is not None:
        yield by_casadi(case, order)
    if importlib.util.find_spec("diffrax") is not None:
        yield by_diffrax(case, order)


def report(case: Case) -> Iterator[str]:
    """Yield the tables of a case, and how far each candidate is from tight solutions."""
    exact = by_symad(case, TIGHT["method"], 1, rtol=TIGHT["rtol"], atol=TIGHT["atol"]).found
    for order, what in enumerate(("values", f"values and {len(case.parameters)} sensitivities")):
        lines = []
        for row in rows(case, order):
            error = max(
                float(np.max(np.abs(a - b)) / np.max(np.abs(b))) for a, b in zip(row.found, exact, strict=False)
            )
            build = number(1e3 * row.build) if row.build else "-"
            lines.append([row.candidate, build, number(1e3 * row.seconds), f"{error:.1e}"])
        yield f"\n{case.name}: {what}\n"
        yield table(["", "build, ms", "ms", "error"], lines)


def main() -> int:
    """Print all tables."""
    for case in cases():
        for line in report(case):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
