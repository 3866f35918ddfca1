"""The programs, with the module that stands for NumPy as a parameter; each maker returns f(np, p) and a point.

Most are the examples of autograd's repository by their mathematics and sizes, written anew.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy

Array = Any
Objective = Callable[[Any, Array], Any]
Maker = Callable[[numpy.random.Generator], tuple[Objective, Array]]

PIXELS, CLASSES = 784, 10


def _logsumexp(np: Any, a: Array, axis: int) -> Array:
    largest = np.max(a, axis=axis, keepdims=True)
    return np.log(np.sum(np.exp(a - largest), axis=axis, keepdims=True)) + largest


def _layers(p: Array, sizes: Sequence[int]) -> tuple[list[tuple[Array, Array]], Array]:
    """Return matrices and offsets of dense layers, and the rest of the parameters."""
    found = []
    for m, n in itertools.pairwise(sizes):
        found.append((p[: m * n].reshape(m, n), p[m * n : m * n + n]))
        p = p[m * n + n :]
    return found, p


def _parameters(sizes: Sequence[int]) -> int:
    return sum(m * n + n for m, n in itertools.pairwise(sizes))


def _labels(rng: numpy.random.Generator, number: int) -> Array:
    return numpy.eye(CLASSES)[rng.integers(CLASSES, size=number)]


def _network(sizes: Sequence[int], number: int) -> Maker:
    def make(rng: numpy.random.Generator) -> tuple[Objective, Array]:
        points, labels = rng.normal(size=(number, sizes[0])), _labels(rng, number)

        def f(np: Any, p: Array) -> Any:
            values = points
            for k, (matrix, offset) in enumerate(_layers(p, sizes)[0]):
                values = (np.maximum(values, 0.0) if k else values) @ matrix + offset
            return -np.mean(np.sum(labels * (values - _logsumexp(np, values, 1)), axis=1)) + 1e-3 * np.sum(p**2)

        return f, rng.normal(size=_parameters(sizes)) * 0.1

    return make


def bayesian_network(rng: numpy.random.Generator) -> tuple[Objective, Array]:
    """A small network's mean square, at 40 points for 10 draws of its weights: 962 parameters with their spreads."""
    sizes, x = (1, 20, 20, 1), numpy.linspace(-2, 2, 40)[:, None]
    half, y = _parameters(sizes), numpy.cos(numpy.linspace(-2, 2, 40))
    noise = rng.normal(size=(10, half))

    def f(np: Any, p: Array) -> Any:
        total = np.sum(p[half:])
        for draw in noise:
            values = x
            layers, _ = _layers(p[:half] + np.exp(p[half:]) * draw, sizes)
            for k, (matrix, offset) in enumerate(layers):
                values = (np.exp(-(values**2)) if k else values) @ matrix + offset
            total = total - 50 * np.sum((values[:, 0] - y) ** 2)
        return total

    return f, numpy.concatenate([rng.normal(size=half) * 0.3, numpy.full(half, -5.0)])


def recurrent(rng: numpy.random.Generator) -> tuple[Objective, Array]:
    """A recurrent network of 40 states over 30 characters of 20 texts."""
    states, letters, texts, steps = 40, 128, 20, 30
    given, one = numpy.eye(letters)[rng.integers(letters, size=(steps, texts))], numpy.ones((texts, 1))
    inner = (letters + states + 1) * states

    def f(np: Any, p: Array) -> Any:
        hidden = np.repeat(p[:states].reshape(1, states), texts, axis=0)
        change = p[states : states + inner].reshape(-1, states)
        predict = p[states + inner :].reshape(-1, letters)
        total = 0.0
        for letter in given:
            output = np.hstack([hidden, one]) @ predict
            total = total + np.sum((output - _logsumexp(np, output, 1)) * letter)
            hidden = np.tanh(np.hstack([letter, hidden, one]) @ change)
        return -total / (steps * texts)

    return f, rng.normal(size=states + inner + (states + 1) * letters) * 0.1


def autoencoder(rng: numpy.random.Generator) -> tuple[Objective, Array]:
    """A variational autoencoder's bound, 784 pixels to 10 numbers and back."""
    down, up = (PIXELS, 200, 20), (10, 200, PIXELS)
    pictures, noise = (rng.random((200, PIXELS)) < 0.3) * 2.0 - 1.0, rng.normal(size=(200, 10))

    def f(np: Any, p: Array) -> Any:
        encoder, rest = _layers(p, down)
        decoder, _ = _layers(rest, up)
        code = np.tanh(pictures @ encoder[0][0] + encoder[0][1]) @ encoder[1][0] + encoder[1][1]
        mean, spread = code[:, :10], code[:, 10:]
        drawn = mean + np.exp(spread) * noise
        logits = np.tanh(drawn @ decoder[0][0] + decoder[0][1]) @ decoder[1][0] + decoder[1][1]
        likelihood = -np.sum(np.logaddexp(0.0, -logits * pictures), axis=1)
        return -np.mean(likelihood + np.sum(spread - 0.5 * drawn**2, axis=1))

    return f, rng.normal(size=_parameters(down) + _parameters(up)) * 0.05


def _gaussian_process(number: int) -> Maker:
    def make(rng: numpy.random.Generator) -> tuple[Objective, Array]:
        x = rng.normal(size=(number, 1))
        y = numpy.sin(2 * x[:, 0])

        def f(np: Any, p: Array) -> Any:
            apart = (x[:, None, :] - x[None, :, :]) / np.exp(p[3])
            kernel = np.exp(p[1]) * np.exp(-0.5 * np.sum(apart**2, axis=2))
            factor = np.linalg.cholesky(kernel + (np.exp(p[2]) + 1e-3) * np.eye(number))
            scaled = np.linalg.solve(factor, y - p[0])
            return 0.5 * scaled @ scaled + np.sum(np.log(np.diag(factor)))

        return f, numpy.array([0.0, 0.0, -1.0, 0.0])

    return make


def mixture(rng: numpy.random.Generator) -> tuple[Objective, Array]:
    """A mixture of 25 normal distributions at 1,000 points of 10 dimensions."""
    points, kinds = rng.normal(size=(1000, 10)), 25

    def f(np: Any, p: Array) -> Any:
        weights, mean, spread = p[:kinds], p[kinds : 11 * kinds].reshape(kinds, 10), p[11 * kinds :].reshape(kinds, 10)
        apart = (points[:, None, :] - mean[None]) * np.exp(-spread)[None]
        each = -0.5 * np.sum(apart**2, axis=2) - np.sum(spread, axis=1) + weights - _logsumexp(np, weights, 0)
        return -np.sum(_logsumexp(np, each, 1))

    return f, rng.normal(size=21 * kinds) * 0.3


def components(rng: numpy.random.Generator) -> tuple[Objective, Array]:
    """Independent components: 24 signals of 500 samples."""
    signals = rng.normal(size=(24, 500))

    def f(np: Any, p: Array) -> Any:
        return np.sum(np.log(np.cosh(p.reshape(24, 24) @ signals))) / 500 + 0.5 * np.sum(p**2)

    return f, rng.normal(size=24 * 24) * 0.2


def logistic(rng: numpy.random.Generator) -> tuple[Objective, Array]:
    """Logistic regression, 100,000 x 20."""
    data = rng.normal(size=(100_000, 20)) * numpy.where(rng.random(100_000) < 0.5, -1.0, 1.0)[:, None]
    return lambda np, p: np.sum(np.log1p(np.exp(-(data @ p)))), rng.normal(size=20)


def fluid(rng: numpy.random.Generator) -> tuple[Objective, Array]:
    """Five steps of a fluid of 64 x 64 cells, by rolls of arrays."""
    n = 64
    wanted, smoke = rng.random((n, n)), rng.random((n, n))

    def gradient(np: Any, a: Array) -> tuple[Array, Array]:
        return tuple(0.5 * (np.roll(a, -1, axis) - np.roll(a, 1, axis)) for axis in (0, 1))

    def f(np: Any, p: Array) -> Any:
        across, along, found = p[: n * n].reshape(n, n), p[n * n :].reshape(n, n), smoke
        for _ in range(5):
            flow = -(gradient(np, across)[0] + gradient(np, along)[1]) / n
            pressure = np.zeros((n, n))
            for _ in range(10):
                around = sum(np.roll(pressure, step, axis) for axis in (0, 1) for step in (1, -1))
                pressure = (flow + around) / 4.0
            push = gradient(np, pressure)
            across, along = across - n * push[0], along - n * push[1]
            slope = gradient(np, found)
            found = found - 0.2 * (across * slope[0] + along * slope[1])
        return np.mean((found - wanted) ** 2)

    return f, rng.normal(size=2 * n * n) * 0.1


def factors(rng: numpy.random.Generator) -> tuple[Objective, Array]:
    """Ten factors of a matrix of 200 x 150 numbers, of which a third are known."""
    known, numbers = rng.random((200, 150)) < 0.3, rng.normal(size=(200, 150))

    def f(np: Any, p: Array) -> Any:
        off = np.where(known, numbers - p[:2000].reshape(200, 10) @ p[2000:].reshape(150, 10).T, 0.0)
        return np.sum(off**2) + 0.1 * np.sum(p**2)

    return f, rng.normal(size=3500) * 0.3


def attention(rng: numpy.random.Generator) -> tuple[Objective, Array]:
    """A block of attention: 4 heads of 16, 32 places, 4 texts."""
    texts, heads, places, width = 4, 4, 32, 16
    n = heads * width
    given, past = rng.normal(size=(texts, places, n)), numpy.tril(numpy.ones((places, places), dtype=bool))

    def f(np: Any, p: Array) -> Any:
        query, key, value, output = (p[k * n * n : (k + 1) * n * n].reshape(n, n) for k in range(4))
        q, k, v = ((given @ m).reshape(texts, places, heads, width) for m in (query, key, value))
        scores = np.where(past, np.einsum("bthd,bshd->bhts", q, k) / 4.0, -1e9)
        shares = np.exp(scores - _logsumexp(np, scores, -1))
        return np.mean((np.einsum("bhts,bshd->bthd", shares, v).reshape(texts, places, n) @ output) ** 2)

    return f, rng.normal(size=4 * n * n) * 0.1


def convolution(rng: numpy.random.Generator) -> tuple[Objective, Array]:
    """Six filters of 5 x 5 on 20 pictures of 28 x 28, the largest of four, and a layer to ten classes."""
    pictures, labels = rng.normal(size=(20, 28, 28)), _labels(rng, 20)
    windows = numpy.lib.stride_tricks.sliding_window_view(pictures, (5, 5), axis=(1, 2)).copy()

    def f(np: Any, p: Array) -> Any:
        found = np.maximum(np.einsum("nijkl,fkl->nfij", windows, p[:150].reshape(6, 5, 5)), 0.0)
        largest = np.max(np.max(found.reshape(20, 6, 12, 2, 12, 2), axis=5), axis=3)
        output = np.tanh(largest.reshape(20, -1)) @ p[150:].reshape(-1, CLASSES)
        return -np.sum((output - _logsumexp(np, output, 1)) * labels)

    return f, rng.normal(size=150 + 6 * 144 * CLASSES) * 0.1


def kalman(rng: numpy.random.Generator) -> tuple[Objective, Array]:
    """A Kalman filter of two states over 200 steps."""
    seen, move = rng.normal(size=(200, 2)), numpy.array([[1.0, 0.1], [0.0, 1.0]])

    def f(np: Any, p: Array) -> Any:
        drift, noise, state, spread = np.diag(np.exp(p[:2])), np.diag(np.exp(p[2:4])), p[4:6], np.eye(2)
        total = 0.0
        for y in seen:
            state, spread = move @ state, move @ spread @ move.T + drift
            off, inverse = y - state, np.linalg.inv(spread + noise)
            total = total + off @ inverse @ off - np.log(np.linalg.det(inverse))
            gain = spread @ inverse
            state, spread = state + gain @ off, spread - gain @ spread
        return 0.5 * total

    return f, numpy.zeros(6)


PROGRAMS: dict[str, Maker] = {
    "Bayesian network, 962 parameters": bayesian_network,
    "network 784-200-100-10, 256 points": _network((PIXELS, 200, 100, CLASSES), 256),
    "network 784-1000-200-10, 64 points": _network((PIXELS, 1000, 200, CLASSES), 64),
    "recurrent network, 30 steps": recurrent,
    "variational autoencoder": autoencoder,
    "Gaussian process, 50 points": _gaussian_process(50),
    "Gaussian process, 300 points": _gaussian_process(300),
    "mixture 1,000 x 10 x 25": mixture,
    "independent components": components,
    "logistic regression 100,000 x 20": logistic,
    "fluid 64 x 64": fluid,
    "matrix factorization with a mask": factors,
    "attention": attention,
    "convolution": convolution,
    "Kalman filter, 200 steps": kalman,
}
