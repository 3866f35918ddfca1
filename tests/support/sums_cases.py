"""Functions of repeated terms, as people write them, and the loops that are to be found in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

RANDOM = np.random.default_rng(5)


class Case(NamedTuple):
    """A function, the shapes of its arguments, its loops ("count x operations results"), and what is left straight."""

    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    loops: tuple[str, ...]
    left: int


def lennard_jones(x: Any) -> Any:
    energy = 0.0
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            d = x[i] - x[j]
            s = 1 / (d[0] ** 2 + d[1] ** 2 + d[2] ** 2) ** 3
            energy += 4 * (s * s - s)
    return energy


def lennard_jones_arrays(x: Any) -> Any:
    i, j = np.triu_indices(len(x), 1)
    s = np.sum((x[i] - x[j]) ** 2, axis=1) ** -3.0
    return np.sum(4 * (s**2 - s))


def two_types(x: Any) -> Any:
    energy = 0.0
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            d = x[i] - x[j]
            s = 1 / (d[0] ** 2 + d[1] ** 2 + d[2] ** 2) ** 3
            kind = i % 2 + j % 2
            energy += 4 * (s * s - s) if kind == 0 else 2 * (s * s - s * d[0]) if kind == 1 else s * s * s - np.exp(-s)
    return energy


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2) + np.sum((1 - x[:-1]) ** 2)


def rosenbrock_loop(x: Any) -> Any:
    total = 0.0
    for i in range(len(x) - 1):
        total += 100 * (x[i + 1] - x[i] ** 2) ** 2
        total += (1 - x[i]) ** 2
    return total


def log_sum_exp(x: Any) -> Any:
    return np.log(np.sum(np.exp(x)))


def softmax(x: Any) -> Any:
    return np.exp(x) / np.sum(np.exp(x))


def network(width: int) -> Callable[..., Any]:
    first, second, last = (RANDOM.standard_normal(shape) for shape in ((16, width), (16, 16), 16))
    return lambda x: last @ np.tanh(second @ np.tanh(first @ x + last) + last)


def logistic(data: np.ndarray) -> Callable[..., Any]:
    labels = np.where(RANDOM.random(len(data)) < 0.5, -1.0, 1.0)
    return lambda w: np.sum(np.log(1 + np.exp(-labels * (data @ w))))


def reaction_line(u: Any) -> Any:
    inner = u[:-2] - 2 * u[1:-1] + u[2:] + u[1:-1] * (1 - u[1:-1] ** 2)
    return np.concatenate([u[:1], inner, u[-1:] - 1])


def reaction_plane(u: Any) -> Any:
    around = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
    return around - 4 * u + u * (1 - u)


def reaction_plane_with_walls(u: Any) -> Any:
    r = u * (1 - u)
    r[1:] += u[:-1] - u[1:]
    r[:-1] += u[1:] - u[:-1]
    r[:, 1:] += u[:, :-1] - u[:, 1:]
    r[:, :-1] += u[:, 1:] - u[:, :-1]
    return r


FROM, TO, TYPE = RANDOM.integers(0, 30, 90), RANDOM.integers(30, 40, 90), np.arange(90) % 3
G, B = RANDOM.random(90), RANDOM.random(90)


def power_flow(v: Any, angle: Any) -> Any:
    """Losses, flows and transformers in one sum: three bodies."""
    total = 0.0
    for i, j, kind, g, b in zip(FROM, TO, TYPE, G, B, strict=True):
        c, s = np.cos(angle[i] - angle[j]), np.sin(angle[i] - angle[j])
        if kind == 0:
            total += g * (v[i] ** 2 + v[j] ** 2 - 2 * v[i] * v[j] * c)
        elif kind == 1:
            total += (v[i] * v[j] * (g * c + b * s)) ** 2
        else:
            total += g * ((v[i] / 1.02) ** 2 - v[i] / 1.02 * v[j] * c)
    return total


NEIGHBOURS = [sorted({int(j) for j in RANDOM.integers(0, 60, RANDOM.integers(1, 6)) if j != i}) for i in range(60)]


def ragged_energy(angle: Any) -> Any:
    return sum(sum(1 - np.cos(angle[j] - angle[i]) for j in NEIGHBOURS[i]) for i in range(60))


def ragged_kuramoto(angle: Any, speed: Any) -> Any:
    return [speed[i] + 0.5 * sum(np.sin(angle[j] - angle[i]) for j in NEIGHBOURS[i]) for i in range(60)]


def embedded_atoms(x: Any) -> Any:
    """A sum of functions of sums of many lengths."""
    energy = 0.0
    for i in range(60):
        density = 0.1
        for j in NEIGHBOURS[i]:
            density += np.exp(-((x[i] - x[j]) ** 2))
        energy -= np.sqrt(density)
    return energy


def node_balances(v: Any, angle: Any) -> Any:
    """What lines of two types bring to the nodes of a network."""
    balance = [0.0] * 40
    for i, j, kind, g, b in zip(FROM, TO, TYPE % 2, G, B, strict=True):
        c, s = np.cos(angle[i] - angle[j]), np.sin(angle[i] - angle[j])
        v_i = v[i] / 1.02 if kind else v[i]
        balance[i] += g * v_i**2 - v_i * v[j] * (g * c + b * s)
        balance[j] += g * v[j] ** 2 - v_i * v[j] * (g * c - b * s)
    return balance


def kuramoto(angle: Any, speed: Any) -> Any:
    return speed + np.sum(np.sin(angle[None, :] - angle[:, None]), axis=1) / len(angle)


def residual_and_its_square(x: Any) -> Any:
    residual = x[1:] - np.sin(x[:-1])
    return residual, np.sum(residual**2)


def heat(u: Any) -> Any:
    for _ in range(6):
        u = u + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
    return u


WIDE = RANDOM.standard_normal((10, 1000))
EDGES = sum(map(len, NEIGHBOURS))

CASES = {
    "lennard_jones_10": Case(lennard_jones, ((10, 3),), ("45 x 18 sum",), 0),
    "lennard_jones_20": Case(lennard_jones, ((20, 3),), ("190 x 18 sum",), 0),
    "lennard_jones_50": Case(lennard_jones, ((50, 3),), ("1225 x 18 sum",), 0),
    "lennard_jones_arrays": Case(lennard_jones_arrays, ((20, 3),), ("190 x 16 sum",), 0),
    "two_types": Case(two_types, ((20, 3),), ("100 x 19 sum", "45 x 18 sum", "45 x 20 sum"), 1),
    "rosenbrock_100": Case(rosenbrock, ((100,),), ("99 x 8 sum sum",), 1),
    "rosenbrock_4000": Case(rosenbrock, ((4000,),), ("3999 x 8 sum sum",), 1),
    "rosenbrock_loop": Case(rosenbrock_loop, ((1000,),), ("999 x 8 sum sum",), 1),
    "log_sum_exp_20": Case(log_sum_exp, ((20,),), (), 40),
    "log_sum_exp_500": Case(log_sum_exp, ((500,),), ("500 x 1 sum",), 1),
    "softmax": Case(softmax, ((500,),), ("500 x 1 sum each", "500 x 1 each"), 1),
    "network_8": Case(network(8), ((8,),), ("16 x 17 each", "16 x 34 sum"), 0),
    "network_64": Case(network(64), ((64,),), ("16 x 129 each", "16 x 34 sum"), 0),
    "network_256": Case(network(256), ((256,),), ("16 x 34 sum", "256 x 16" + 16 * " sum"), 32),
    "wide": Case(lambda x: WIDE @ x, ((1000,),), ("1000 x 10" + 10 * " sum",), 0),
    "logistic": Case(logistic(RANDOM.standard_normal((200, 6))), ((6,),), ("200 x 15 sum",), 0),
    "logistic_whole": Case(logistic(1.0 * RANDOM.integers(-2, 3, (200, 6))), ((6,),), ("200 x 15 sum",), 0),
    "reaction_line": Case(reaction_line, ((1000,),), ("998 x 9 each",), 1),
    "reaction_plane": Case(reaction_plane, ((32, 32),), ("1024 x 10 each",), 0),
    "reaction_plane_with_walls": Case(
        reaction_plane_with_walls, ((32, 32),), ("120 x 9 each", "900 x 11 each"), 28
    ),
    "power_flow": Case(power_flow, ((40,), (40,)), ("30 x 10 sum", "30 x 11 sum", "30 x 12 sum"), 1),
    "ragged_energy": Case(ragged_energy, ((60,),), (f"{EDGES} x 5 sum",), 0),
    "ragged_kuramoto": Case(ragged_kuramoto, ((60,), (60,)), (f"{EDGES} x 3 add", "60 x 2 each"), 0),
    "embedded_atoms": Case(embedded_atoms, ((60,),), (f"{EDGES} x 5 add", "60 x 0 add", "60 x 2 sum"), 0),
    "node_balances": Case(
        node_balances, ((40,), (40,)),
        ("150 x 2 add", "30 x 12 add add", "30 x 4 add", "60 x 6 add", "60 x 7 add", "78 x 4 each each"), 0,
    ),
    "kuramoto": Case(kuramoto, ((40,), (40,)), ("40 x 123 each",), 0),
    "kuramoto_150": Case(kuramoto, ((150,), (150,)), ("150 x 3 each", "22500 x 3 add"), 0),
    "residual_and_its_square": Case(residual_and_its_square, ((300,),), ("299 x 4 sum each",), 0),
    "heat": Case(heat, ((32,),), ("32 x 24 each", *4 * ("32 x 6 each",)), 0),
}  # fmt: skip
