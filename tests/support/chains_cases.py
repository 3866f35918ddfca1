"""Functions that step through time: plain Python loops whose trace is a chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

import symad

Function: TypeAlias = Callable[..., Any]
TABLE = np.random.default_rng(0).normal(size=300)
RISING = np.linspace(0.1, 1.0, 200)
THREE = np.array([0.5, 0.6, 0.7])


def slope(x: Any) -> Any:
    return 4 * x**3 - 2 * x + 0.5


def descent(x: Any, rate: Any) -> Any:
    for _ in range(300):
        x = x - rate * slope(x)
    return x


def momentum(steps: int, rate_of: Function | None = None, restart: int = 10**9) -> Function:
    """Momentum steps, with a schedule of rates, and a speed that is 0 again every `restart` steps."""

    def run(x: Any, rate: Any) -> Any:
        speed = 0.0
        for k in range(steps):
            speed = 0.0 if k % restart == 0 else speed
            speed = 0.9 * speed - (rate_of(rate, k) if rate_of else rate) * slope(x)
            x = x + speed
        return x

    return run


def adam(x: Any, rate: Any, decay: Any) -> Any:
    mean, square = 0.0, 0.0
    for k in range(300):
        g = slope(x)
        mean, square = decay * mean + (1 - decay) * g, 0.999 * square + 0.001 * g**2
        x = x - rate * mean / (1 - decay ** (k + 1)) / (np.sqrt(square / (1 - 0.999 ** (k + 1))) + 1e-8)
    return x


def loss(x: Any) -> Any:
    return np.sum((x - 1) ** 2 * x**2) + x[0] * x[1]


def learned(x: Any, rate: Any) -> Any:
    """Gradient descent whose gradients symad takes, with all losses added up and a path."""
    gradient, total, path = symad.grad(loss), 0.0, []
    for _ in range(100):
        x = x - rate * gradient(x)
        total = total + loss(x)
        path.append(x[0])
    return total, np.array(path)


def vector_momentum(x: Any, rate: Any) -> Any:
    matrix, speed = np.array([[2, 0.5, 0.1], [0.5, 1, 0.2], [0.1, 0.2, 3]]), np.zeros(3)
    for _ in range(100):
        speed = 0.9 * speed - rate * (matrix @ x + x**3)
        x = x + speed
    return x


def network(weights: Any, bias: Any, u: Any) -> Any:
    state = np.zeros(4)
    for k in range(200):
        state = np.tanh(weights @ state + bias * u[k])
    return np.sum(state)


def heat(u: Any) -> Any:
    for _ in range(100):
        u = np.concatenate([u[:1], u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]), u[-1:]])
    return np.sum(u**2)


def logistic(x: Any, rate: Any) -> Any:
    for _ in range(500):
        x = rate * x * (1 - x)
    return x


def horner(x: Any) -> Any:
    y = TABLE[0]
    for coefficient in TABLE[1:101]:
        y = y * x + coefficient
    return y


def newton(a: Any) -> Any:
    x = 1.0
    for _ in range(30):
        x = x - (x**3 - a) / (3 * x**2)
    return x


def fibonacci(a: Any, b: Any) -> Any:
    for _ in range(201):
        a, b = b, 0.5 * a + 0.4 * b
    return b


def three_back(a: Any, b: Any, c: Any) -> Any:
    for _ in range(200):
        a, b, c = b, c, 0.5 * a * c + 0.4 * b
    return c


def feedback(u: Any, c: Any) -> Any:
    """A filter with lags of 1, 2 and 5 of its output and of 3 of its input; all outputs are shown."""
    y = [0.1, 0.2, 0.3, 0.4, 0.5]
    for k in range(5, 200):
        y.append(c * y[k - 1] + 0.1 * y[k - 2] - 0.2 * y[k - 5] + u[k] - 0.5 * u[k - 3])
    return y


def pendulum(q: Any, p: Any, h: Any) -> Any:
    def force(q: Any, p: Any) -> Any:
        return p, -np.sin(q) - 0.1 * p

    for _ in range(200):
        a, b = force(q, p)
        c, d = force(q + h / 2 * a, p + h / 2 * b)
        e, f = force(q + h / 2 * c, p + h / 2 * d)
        g, i = force(q + h * e, p + h * f)
        q, p = q + h / 6 * (a + 2 * c + 2 * e + g), p + h / 6 * (b + 2 * d + 2 * f + i)
    return q, p


def product(x: Any) -> Any:
    y = 1.0
    for k in range(200):
        y = y * x[k]
    return y


def kahan(x: Any) -> Any:
    total, lost = 0.0, 0.0
    for k in range(200):
        y = x[k] - lost
        above = total + y
        total, lost = above, (above - total) - y
    return total


def with_end(x: Any, y: Any) -> Any:
    for _ in range(300):
        x, y = np.sin(x * y), np.cos(x + y)
    z = x * y + np.exp(x)
    return z * np.tanh(z) + x / y


def interleaved(x: Any, y: Any) -> Any:
    """Two chains at once, one of which moves in every second step."""
    for k in range(300):
        x = np.sin(x) * 1.1
        y = np.cos(y) + y * y * 0.1 if k % 2 else y
    return x + y


def there_and_back(x: Any, y: Any) -> Any:
    """A chain, and another that reads it backwards."""
    path = []
    for _ in range(300):
        x = np.sin(x) * 1.1 + y
        path.append(x)
    for k in range(300):
        y = np.cos(y) * path[299 - k]
    return y


def choice(x: Any, y: Any) -> Any:
    for _ in range(300):
        x = np.where(x > y, x * 0.9, x + y * 0.3)
    return x


def fixed_choice(x: Any, y: Any) -> Any:
    for _ in range(300):
        x = np.where(y > 0.35, np.sin(x), np.cos(x) * y)
    return x


def quotients(x: Any, d: Any) -> Any:
    """1 / d[0] is written before the loop, and 1 / d[k] in it: x / d is rounded once."""
    for k in range(200):
        x = np.sin(x) / d[k] + x / d[0]
    return x


def running_sums(x: Any) -> Any:
    total, totals = 0.0, []
    for k in range(200):
        total = total + np.sin(x[k]) ** 2
        totals.append(total)
    return totals


# name: function, arguments, and of the chains that must be found: count, operations, carries
CASES: dict[str, tuple[Function, tuple[Any, ...], list[tuple[int, int, int]]]] = {
    "descent": (descent, (0.5, 0.01), [(300, 9, 1)]),
    "momentum": (momentum(1000), (0.5, 0.01), [(999, 11, 2)]),
    "schedule": (momentum(300, lambda rate, k: rate / (1 + 0.1 * k)), (0.5, 0.01), [(299, 13, 2)]),
    "table": (momentum(300, lambda rate, k: rate * TABLE[k]), (0.5, 0.01), [(299, 12, 2)]),
    "restart": (momentum(300, None, 10), (0.5, 0.01), [(30, 109, 1)]),
    "adam": (adam, (0.3, 0.01, 0.9), [(299, 27, 3)]),
    "learned": (learned, (THREE, 0.01), [(99, 43, 4)]),
    "vector_momentum": (vector_momentum, (THREE, 0.01), [(99, 36, 6)]),
    "network": (network, (np.eye(4) * 0.3 + 0.1, np.ones(4) * 0.3, RISING), [(200, 40, 4)]),
    "heat": (heat, (RISING[:32],), [(100, 180, 30)]),
    "logistic": (logistic, (0.3, 3.7), [(500, 4, 1)]),
    "horner": (horner, (0.3,), [(100, 2, 1)]),
    "newton": (newton, (0.3,), [(29, 8, 1)]),
    "fibonacci": (fibonacci, (0.3, 0.4), [(201, 3, 2)]),
    "three_back": (three_back, (0.3, 0.4, 0.5), [(200, 4, 3)]),
    "feedback": (feedback, (RISING, 0.3), [(190, 10, 3)]),
    "pendulum": (pendulum, (0.5, 0.1, 0.01), [(199, 46, 2)]),
    "product": (product, (RISING,), [(200, 1, 1)]),
    "kahan": (kahan, (RISING,), [(198, 7, 2)]),
    "with_end": (with_end, (0.3, 0.4), [(300, 4, 2)]),
    "interleaved": (interleaved, (0.3, 0.4), [(150, 8, 2)]),
    "there_and_back": (there_and_back, (0.3, 0.4), [(300, 3, 1), (300, 2, 1)]),
    "choice": (choice, (0.3, 0.4), [(299, 4, 1)]),
    "fixed_choice": (fixed_choice, (0.3, 0.4), [(300, 4, 1)]),
    "quotients": (quotients, (0.4, RISING + 1.5), [(199, 5, 1)]),
    "running_sums": (running_sums, (RISING,), [(200, 3, 1)]),
}
