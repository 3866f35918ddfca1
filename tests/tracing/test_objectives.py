"""Ordinary objective functions, as people write them, called unmodified."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from numpy import cos, exp, log, pi, sin, sqrt

GENERATOR = np.random.default_rng(3)
DATA = GENERATOR.normal(size=(12, 3))
LABELS = (DATA @ [1.0, -2.0, 0.5] + 0.3 * GENERATOR.normal(size=12) > 0).astype(float)
TIMES = np.linspace(0.0, 2.0, 9)
MEASURED = 2.0 * np.exp(-1.3 * TIMES) + 0.1


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0)


def rosenbrock_loop(x):
    total = 0
    for i in range(len(x) - 1):
        total += 100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
    return total


def ackley(x):
    n = x.size
    first = -20 * np.exp(-0.2 * np.sqrt(np.sum(x**2) / n))
    return first - np.exp(np.sum(np.cos(2 * np.pi * x)) / n) + 20 + np.e


def rastrigin(x):
    return 10 * len(x) + sum(xi**2 - 10 * cos(2 * pi * xi) for xi in x)


def griewank(x):
    i = np.arange(1, len(x) + 1)
    return 1 + (x**2).sum() / 4000 - np.prod(np.cos(x / np.sqrt(i)))


def himmelblau(x):
    a, b, *_ = x
    return (a**2 + b - 11) ** 2 + (a + b**2 - 7) ** 2


def beale(x):
    return (
        (1.5 - x[0] + x[0] * x[1]) ** 2 + (2.25 - x[0] + x[0] * x[1] ** 2) ** 2 + (2.625 - x[0] + x[0] * x[1] ** 3) ** 2
    )


def goldstein_price(x):
    a, b = x[0], x[1]
    left = 1 + (a + b + 1) ** 2 * (19 - 14 * a + 3 * a**2 - 14 * b + 6 * a * b + 3 * b**2)
    return left * (30 + (2 * a - 3 * b) ** 2 * (18 - 32 * a + 12 * a**2 + 48 * b - 36 * a * b + 27 * b**2))


def levy(x):
    w = 1 + (x - 1) / 4
    middle = np.sum((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:-1] + 1) ** 2))
    return sin(pi * w[0]) ** 2 + middle + (w[-1] - 1) ** 2 * (1 + sin(2 * pi * w[-1]) ** 2)


def styblinski_tang(x):
    return 0.5 * np.sum(np.power(x, 4) - 16 * np.power(x, 2) + 5 * x)


def michalewicz(x):
    return -np.sum(np.sin(x) * np.sin((np.arange(x.shape[0]) + 1) * x**2 / np.pi) ** 20)


def least_squares_decay(p):
    model = p[0] * np.exp(-p[1] * TIMES) + p[2]
    return np.sum((model - MEASURED) ** 2)


def huber_loss(p):
    r = p[0] * np.exp(-p[1] * TIMES) - MEASURED
    return np.where(np.abs(r) < 0.1, 0.5 * r**2, 0.1 * (np.abs(r) - 0.05)).sum()


def logistic_regression(w):
    z = DATA @ w[:3] + w[3]
    return np.mean(np.log1p(np.exp(-z)) * LABELS + np.log1p(np.exp(z)) * (1 - LABELS)) + 0.1 * w @ w


def cross_entropy(w):
    p = 1 / (1 + np.exp(-DATA.dot(w[:3])))
    return -(LABELS * np.log(p) + (1 - LABELS) * np.log(1 - p)).mean()


def softmax_loss(x):
    logits = np.outer(DATA[:, 0], x)
    shifted = logits - logits.max(axis=1, keepdims=True)
    probabilities = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    return -np.log(probabilities[np.arange(12), LABELS.astype(int)]).sum()


def logsumexp(x):
    top = np.max(x)
    return top + np.log(np.sum(np.exp(x - top)))


def neural_network(x):
    w1, b1, w2 = x[:3].reshape(3, 1), x[3], np.array([[0.5], [-0.2]])[:1]
    hidden = np.tanh(DATA @ w1 + b1)
    return np.sum((hidden @ w2 - LABELS[:, None]) ** 2)


def lennard_jones(x):
    points = np.concatenate([x, [0.0, 0.3, 1.5, 1.0, 0.0]]).reshape(3, 3)
    energy = 0.0
    for i in range(3):
        for j in range(i):
            r2 = np.sum((points[i] - points[j]) ** 2)
            energy += 4 * (r2**-6 - r2**-3)
    return energy


def coulomb(x):
    points = np.stack([x[:2], x[2:], np.zeros(2)])
    difference = points[:, None, :] - points[None, :, :]
    distance = np.sqrt((difference**2).sum(-1) + np.eye(3))
    return np.sum(np.triu(1 / distance, 1))


def gaussian_log_likelihood(p):
    mu, sigma = p[0], np.exp(p[1])
    residual = (MEASURED - mu) / sigma
    return 0.5 * np.sum(residual**2) + len(MEASURED) * np.log(sigma * math.sqrt(2 * math.pi))


def multivariate_normal(x):
    covariance = np.diag(np.exp(x[:2])) + 0.1
    d = x[2:]
    return 0.5 * d @ np.linalg.solve(covariance, d) + 0.5 * np.log(np.linalg.det(covariance))


def quadratic_form(x):
    h = DATA[:4, :3].T @ DATA[:4, :3]
    return 0.5 * x[:3].T @ h @ x[:3] - np.ones(3) @ x[:3]


def van_der_waals(x):
    volume, temperature = abs(x[0]) + 2, abs(x[1]) + 1
    return -temperature * np.log(volume - 1 / 3) - 3 / volume + x[2] ** 2


def euler_pendulum(x):
    angle, speed = x[0], x[1]
    for _ in range(20):
        angle, speed = angle + 0.01 * speed, speed - 0.01 * 9.81 * np.sin(angle)
    return angle**2 + speed**2


def runge_kutta(x):
    def slope(y):
        return np.array([y[1], -np.sin(y[0]) - 0.1 * y[1]])

    y = x[:2]
    for _ in range(5):
        k1 = slope(y)
        k2 = slope(y + 0.05 * k1)
        k3 = slope(y + 0.05 * k2)
        k4 = slope(y + 0.1 * k3)
        y = y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return (y**2).sum()


def heat_equation(x):
    u = np.zeros_like(x)
    u[:] = x
    for _ in range(4):
        u[1:-1] += 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u @ u


def smoothness(x):
    return np.sum(np.diff(x, 2) ** 2) + np.sum(np.abs(np.diff(x))) + np.linalg.norm(np.gradient(x))


def polynomial_fit(c):
    return np.sum((np.polyval(c, TIMES) - MEASURED) ** 2) + 1e-3 * np.linalg.norm(c, 1)


def portfolio(w):
    returns = DATA[:, :3] @ w[:3]
    return -np.mean(returns) / (np.std(returns) + 1e-3) + 10 * max(0, np.sum(w) - 100)


def penalty(x):
    value = (x[0] - 1) ** 2 + (x[1] - 2.5) ** 2
    for constraint in (x[0] - 2 * x[1] + 2, -x[0] - 2 * x[1] + 6):
        if constraint < 0:
            value += 100 * constraint**2
    return value


def kernel_matrix(x):
    squared = (DATA[:5] ** 2 @ x[:3] ** 2)[:, None] - 2 * (DATA[:5] * x[:3]) @ (DATA[:5] * x[:3]).T
    k = np.exp(-0.05 * squared) + x[3] ** 2 * np.eye(5)
    return np.trace(k) + np.sum(k**2)


def rotation(x):
    c, s = np.cos(x[0]), np.sin(x[0])
    matrix = np.array([[c, -s], [s, c]])
    return np.linalg.norm(matrix @ x[1:3] - np.array([1.0, 2.0])) ** 2


def convolution(x):
    return np.sum((np.convolve(x, [0.25, 0.5, 0.25], mode="same") - 1) ** 2)


def geometric_mean(x):
    return exp(np.mean(log(np.abs(x) + 1))) + sqrt(np.sum(x**2))


@dataclass
class Spring:
    stiffness: float
    rest: float

    def energy(self, length):
        return 0.5 * self.stiffness * (length - self.rest) ** 2


def springs(x):
    chain = [Spring(1.0 + k, 0.5) for k in range(3)]
    return sum(spring.energy(abs(b - a)) for spring, a, b in zip(chain, x, x[1:], strict=False))


def dictionary_result(x):
    return {"loss": np.sum(x**2), "parts": [x[0] * 2, x[1:]], "count": len(x)}


OBJECTIVES = [
    value for name, value in list(globals().items()) if callable(value) and getattr(value, "__module__", "") == __name__
]
OBJECTIVES.remove(Spring)
ON_SYMBOLS_TOO = [function for function in OBJECTIVES if function not in (portfolio, penalty)]
POINTS = [np.array([0.7, 1.3, -0.4, 0.9]), np.array([-1.1, 0.2, 0.8, 1.6])]


def test_there_are_many():
    assert len(OBJECTIVES) >= 30


@pytest.mark.parametrize("point", POINTS, ids=("first", "second"))
@pytest.mark.parametrize("function", OBJECTIVES, ids=lambda function: function.__name__)
def test_on_numbers(function, point, agrees_on_numbers):
    agrees_on_numbers(function, point, rtol=1e-10)


@pytest.mark.parametrize("function", ON_SYMBOLS_TOO, ids=lambda function: function.__name__)
def test_on_symbols(function, agrees_on_symbols):
    agrees_on_symbols(function, POINTS[0], rtol=1e-10)


def test_an_argument_is_never_changed(vector):
    before = vector.nodes.copy()
    heat_equation(vector)
    assert np.array_equal(vector.nodes, before)
