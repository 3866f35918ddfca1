"""Two problems of any size for solvers: for symad, and for CasADi in both of its forms.

Luksan and Vlcek's first problem (1999), and the swing-up of a cart-pole by
trapezoidal collocation (Kelly, "An introduction to trajectory optimization", SIAM Review 59, 2017). CasADi's SX writes
out scalars; its MX calls one small function mapped over all steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

LENGTH, CART, POLE, GRAVITY = 0.5, 1.0, 0.3, 9.81
DURATION, DISTANCE, FORCE = 2.0, 1.0, 20.0
ENDS = np.array([[0.0, 0.0, 0.0, 0.0], [DISTANCE, np.pi, 0.0, 0.0]])


def chain_cost(x: Any) -> Any:
    """Return the cost of neighbours."""
    return np.sum(100.0 * (x[:-1] ** 2 - x[1:]) ** 2 + (x[:-1] - 1.0) ** 2)


def chain_limits(x: Any) -> Any:
    """Return the equations of three neighbours."""
    return chain_row(x[:-2], x[1:-1], x[2:], np)


def chain_row(a: Any, b: Any, c: Any, xp: Any) -> Any:
    """Return one equation."""
    return 3.0 * b**3 + 2.0 * c - 5.0 + xp.sin(b - c) * xp.sin(b + c) + 4.0 * b - a * xp.exp(a - b) - 3.0


def accelerations(angle: Any, turning: Any, force: Any, xp: Any) -> tuple[Any, Any]:
    """Return those of the cart and of the pole."""
    sine, cosine = xp.sin(angle), xp.cos(angle)
    inertia = CART + POLE * (1.0 - cosine * cosine)
    cart = (LENGTH * POLE * sine * turning * turning + force + POLE * GRAVITY * cosine * sine) / inertia
    pole = LENGTH * POLE * cosine * sine * turning * turning + force * cosine + (CART + POLE) * GRAVITY * sine
    return cart, -pole / (LENGTH * inertia)


def swing_cost(z: Any) -> Any:
    """Return the work of the force; rows of z are place, angle, both speeds, force."""
    force = z[4]
    return DURATION / (z.shape[1] - 1) * (np.sum(force * force) - (force[0] ** 2 + force[-1] ** 2) / 2)


def swing_limits(z: Any) -> Any:
    """Return the defects of all steps, and what is missing at both ends."""
    cart, pole = accelerations(z[1], z[3], z[4], np)
    rates = np.stack([z[2], z[3], cart, pole])
    defects = z[:4, 1:] - z[:4, :-1] - DURATION / (2 * (z.shape[1] - 1)) * (rates[:, 1:] + rates[:, :-1])
    return np.concatenate([np.ravel(defects), z[:4, 0] - ENDS[0], z[:4, -1] - ENDS[1]])


@dataclass(frozen=True)
class SolverProblem:
    """A problem of about `n` variables, the start, the bounds."""

    name: str
    start: Any
    bounds: tuple[Any, Any]


def chain(n: int) -> SolverProblem:
    """Return the chain of n variables."""
    return SolverProblem("Luksan-Vlcek", np.where(np.arange(n) % 2, 1.0, -1.2), (None, None))


def swing(n: int) -> SolverProblem:
    """Return the swing-up with n/5 points."""
    points = n // 5
    start = np.zeros((5, points))
    start[:4] = ENDS[0][:, None] + (ENDS[1] - ENDS[0])[:, None] * np.linspace(0.0, 1.0, points)
    wide = np.full((5, points), np.inf)
    wide[4] = FORCE
    return SolverProblem("cart-pole", start, (-wide, wide))


PROBLEMS = {"chain": chain, "swing": swing}


def in_casadi(name: str, size: int, form: str, ca: Any) -> dict[str, Any]:
    """Return the problem as CasADi's `nlpsol` takes it, in "SX" or mapped "MX"."""
    return (_chain_in_casadi if name == "chain" else _swing_in_casadi)(size, form, ca)


def _chain_in_casadi(n: int, form: str, ca: Any) -> dict[str, Any]:
    x = getattr(ca, form).sym("x", n)
    if form == "SX":
        a, b = x[:-1], x[1:]
        return {"x": x, "f": ca.sum1(100 * (a * a - b) ** 2 + (a - 1) ** 2), "g": chain_row(x[:-2], x[1:-1], x[2:], ca)}
    a, b, c = (ca.SX.sym(letter) for letter in "abc")
    pair = ca.Function("pair", [a, b], [100 * (a * a - b) ** 2 + (a - 1) ** 2]).map(n - 1)
    row = ca.Function("row", [a, b, c], [chain_row(a, b, c, ca)]).map(n - 2)
    return {"x": x, "f": ca.sum2(pair(x[:-1].T, x[1:].T)), "g": row(x[:-2].T, x[1:-1].T, x[2:].T).T}


def _swing_in_casadi(points: int, form: str, ca: Any) -> dict[str, Any]:
    x = getattr(ca, form).sym("x", 5 * points)
    z = ca.reshape(x, points, 5).T  # rows as in NumPy's order
    force, h = z[4, :], DURATION / (points - 1)

    def rates(column: Any) -> Any:
        return ca.vertcat(column[2, :], column[3, :], *accelerations(column[1, :], column[3, :], column[4, :], ca))

    if form == "MX":
        one = ca.SX.sym("one", 5)
        moved = ca.Function("rates", [one], [rates(one)]).map(points)(z)
    else:
        moved = rates(z)
    defects = z[:4, 1:] - z[:4, :-1] - h / 2 * (moved[:, 1:] + moved[:, :-1])
    ends = ca.vertcat(z[:4, 0] - ENDS[0], z[:4, -1] - ENDS[1])
    cost = h * (ca.sum2(force * force) - (force[0] ** 2 + force[-1] ** 2) / 2)
    return {"x": x, "f": cost, "g": ca.vertcat(ca.vec(defects.T), ends)}
