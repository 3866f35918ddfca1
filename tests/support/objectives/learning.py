"""Statistics, machine learning and convex optimisation, where theory gives the optimum in closed form.

BV: Boyd and Vandenberghe, Convex Optimization (2004). Bishop: Pattern Recognition and Machine Learning (2006). GBC:
Goodfellow, Bengio and Courville, Deep Learning (2016). Networks are fitted to what known weights produce.
"""

import math
from dataclasses import dataclass

import numpy as np

from tests.support.objectives.corpus import problem

GENERATOR = np.random.default_rng(3)
X = GENERATOR.normal(size=(8, 3))
TARGET = X @ [1.0, -2.0, 0.5] + 0.1 * GENERATOR.normal(size=8)
RIDGE = np.linalg.solve(X.T @ X + 0.3 * np.eye(3), X.T @ TARGET)


@problem(start=[0, 0, 0], minimum=TARGET @ (TARGET - X @ RIDGE), at=RIDGE, source="Bishop 3.1.4: ridge regression")
def ridge(w, lam=0.3):
    loss = 0.0
    for row, t in zip(X, TARGET, strict=True):
        loss += (np.dot(row, w) - t) ** 2
    return loss + lam * np.sum(w**2)


COUNTS = {(0, 0): 3, (0, 1): 5, (1, 0): 7, (1, 1): 2}  # (feature, label): how often


def entropy_of_counts():
    total = 0.0
    for feature in (0, 1):
        n0, n1 = COUNTS[feature, 0], COUNTS[feature, 1]
        total -= n0 * math.log(n0 / (n0 + n1)) + n1 * math.log(n1 / (n0 + n1))
    return total


@problem(
    start=[0, 0], minimum=entropy_of_counts(), at=[math.log(5 / 3), math.log(2 / 7) - math.log(5 / 3)],
    source="Bishop 4.3.2: logistic regression",
)  # fmt: skip
def logistic_regression(w):
    def sigmoid(a):
        return 1 / (1 + math.exp(-a))

    loss = 0
    for (feature, label), count in COUNTS.items():
        p = sigmoid(w[0] + w[1] * feature)
        loss -= count * (math.log(p) if label == 1 else math.log(1 - p))
    return loss


@problem(start=[0.5, -0.5], minimum=math.log(2), at=[0, 0], source="softplus loss, two opposite samples")
def softplus_loss(w):
    z = np.array([[1.0, 2.0], [-1.0, -2.0]]) @ w
    return np.mean(np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0)) + 0.5 * w @ w


SHARES = np.array([0.5, 0.3, 0.2])


@problem(start=[0.3, -0.1, 0.2], minimum=-np.sum(SHARES * np.log(SHARES)), at=np.log(SHARES), source="GBC 3.13")
def cross_entropy(logits):
    shifted = logits - np.max(logits)
    log_probabilities = shifted - np.log(np.sum(np.exp(shifted)))
    return -np.sum(SHARES * log_probabilities)


@problem(start=[0.5, 0.2], minimum=0, at=[0, 0], source="GBC 3.13: divergence of N(m, s) from N(0, 1)", unpacked=True)
def kullback_leibler_normal(mu, log_sigma):
    sigma = np.exp(log_sigma)
    return (sigma**2 + mu**2 - 1) / 2 - np.log(sigma)


SAMPLE = [1.2, 0.4, 2.9, 1.7, 0.8]
SPREAD = np.std(SAMPLE)


@problem(
    start=[1, 1], minimum=2.5 * (math.log(2 * math.pi * SPREAD**2) + 1), at=[np.mean(SAMPLE), SPREAD],
    source="Bishop 2.3.4: maximum likelihood",
)  # fmt: skip
def gaussian_likelihood(theta):
    mu, sigma = theta
    density = [math.exp(-(((s - mu) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi)) for s in SAMPLE]
    return -math.log(math.prod(density))


@problem(start=[0.2], minimum=14 - 14 * math.log(14 / 4), at=[math.log(14 / 4)], source="Poisson regression, intercept")
def poisson_likelihood(w):
    counts = np.array([2, 5, 3, 4])
    rate = np.exp(w[0] * np.ones(4))
    return np.sum(rate - counts * np.log(rate))


PRECISION = np.linalg.inv(np.array([[2.0, 0.5], [0.5, 1.0]]))


@problem(start=[[1, 0], [0, 1]], minimum=2 + math.log(1.75), at=PRECISION, source="BV 7.1.1: precision matrix")
def precision_matrix(k):
    sample = np.array([[2.0, 0.5], [0.5, 1.0]])
    _, logdet = np.linalg.slogdet(k)
    return np.trace(sample @ k) - logdet


@problem(start=[0.3, -0.8], minimum=math.log(2 * math.pi) + math.log(3.0), at=[1, 2], source="Bishop 2.3")
def multivariate_normal(x):
    covariance = np.array([[2.0, 1.0], [1.0, 5.0]])
    d = x - np.array([1, 2])
    quadratic = d @ np.linalg.solve(covariance, d)
    return 0.5 * quadratic + 0.5 * np.log(np.linalg.det(covariance)) + len(x) / 2 * np.log(2 * np.pi)


@problem(start=[0.3, 0.1, 0.5], minimum=-math.log(3), at=[1 / 3] * 3, source="BV 5.1.6", equal=lambda p: [sum(p) - 1])
def negative_entropy(p):
    return sum(pi * math.log(pi) for pi in p)


@problem(start=[1, 0.5], minimum=math.log(3), at=[0, 0], source="BV 3.1.5")
def log_sum_exp(x):
    values = [x[0], x[1], -x[0] - x[1]]
    top = max(values)
    return top + math.log(sum(math.exp(v - top) for v in values))


@problem(start=[0.5, 0.2], minimum=math.log(27), at=[1 / 3, 1 / 3], source="BV 8.5.3: analytic centre of a simplex")
def analytic_centre(x):
    barrier = 0
    for slack in (*x, 1 - x[0] - x[1]):
        barrier -= np.log(slack)
    return barrier


@problem(start=[0.9, 0.5, 0.2, 0.6], minimum=2 - 2 * math.cos(math.pi / 5), source="Courant and Fischer",
         at=[math.sin(math.pi * k / 5) for k in range(1, 5)])  # fmt: skip
def rayleigh_quotient(v):
    T = 2 * np.eye(4) - np.eye(4, k=1) - np.eye(4, k=-1)
    return (v @ T @ v) / (v @ v)


@problem(start=[[1, 0.5], [0.2, 1]], minimum=0, at=[[1, 1], [0, 2]], source="a matrix square root")
def matrix_square_root(s):
    return np.linalg.norm(s @ s - np.array([[1, 3], [0, 4]]), "fro") ** 2


@problem(
    start=[1, 1, 0.5, 0.5], minimum=1, at=[math.sqrt(3), 0, math.sqrt(3), 0],
    source="Eckart and Young: the best matrix of rank one",
)  # fmt: skip
def rank_one(z):
    u, v = np.split(z, 2)
    M = np.diag([3.0, 1.0])
    return ((M - np.outer(u, v)) ** 2).sum()


@problem(start=[0.3], minimum=0, at=[math.pi / 6], source="Procrustes: a rotation in the plane")
def procrustes(x):
    c, s = np.cos(x[0]), np.sin(x[0])
    R = np.array([[c, -s], [s, c]])
    points = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]])
    known = np.array([[3**0.5 / 2, -0.5], [0.5, 3**0.5 / 2]])
    return np.sum((R @ points - known @ points) ** 2)


@problem(start=[2.9], minimum=10, at=[3], source="Huber (1964), symmetric outliers")
def huber_location(x, k=1.0):
    data = np.array([3.0, -1.0, 7.0, 3.0, 1.0, 5.0])
    r = data - x[0]
    return np.sum(np.where(np.abs(r) <= k, 0.5 * r**2, k * (np.abs(r) - 0.5 * k)))


@problem(start=[0.3, 0.1], minimum=0.5, at=[1, 0], source="support vectors (1, 0) and (-1, 0), squared norm over two",
         smooth=False)  # fmt: skip
def hinge_loss(w):
    loss = 0.5 * np.dot(w, w)
    for label, sample in [(1, (1, 0)), (-1, (-1, 0))]:
        margin = label * (w[0] * sample[0] + w[1] * sample[1])
        loss += 5 * max(0, 1 - margin)
    return loss


@dataclass
class Layer:
    weight: np.ndarray
    bias: np.ndarray

    def __call__(self, inputs):
        return np.tanh(inputs @ self.weight + self.bias)


class Network:
    """Two layers whose weights come out of one flat vector."""

    shapes = ((2, 2), (2,), (2, 1), (1,))

    def __init__(self, flat):
        blocks, start = [], 0
        for shape in self.shapes:
            size = int(np.prod(shape))
            blocks.append(flat[start : start + size].reshape(shape))
            start += size
        self.layers = [Layer(*blocks[:2]), Layer(*blocks[2:])]

    def forward(self, inputs):
        for layer in self.layers:
            inputs = layer(inputs)
        return inputs


WEIGHTS = np.array([0.5, -0.3, 0.8, 0.2, 0.1, -0.1, 0.7, -0.6, 0.05])
INPUTS = X[:, :2]


@problem(start=WEIGHTS + 0.3, minimum=0, at=WEIGHTS, source="GBC 6: a perceptron of two layers")
def neural_network(w):
    return np.mean((Network(w).forward(INPUTS) - Network(WEIGHTS).forward(INPUTS)) ** 2)


def recurrent(w, sequence):
    hidden = 0.0
    for u in sequence:
        hidden = math.tanh(w[0] * hidden + w[1] * u + w[2])
    return hidden


@problem(start=[0.2, 0.9, -0.1], minimum=0, at=[0.5, 1.5, 0.1], source="GBC 10: a recurrent unit")
def recurrent_network(w):
    sequences = [[1, 0, -1], [0.5, 0.5, 0.5], [-1, 2, 0], [0, 0, 1]]
    return sum((recurrent(w, s) - recurrent([0.5, 1.5, 0.1], s)) ** 2 for s in sequences)


def attention(mixing, tokens):
    scores = tokens @ mixing @ tokens.T / np.sqrt(tokens.shape[1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ tokens


MIXING = np.array([[0.4, -0.2], [0.1, 0.9]])


@problem(start=MIXING + 0.2, minimum=0, at=MIXING, source="Vaswani et al. (2017): attention")
def attention_fit(w):
    return np.sum((attention(w, X[:4, :2]) - attention(MIXING, X[:4, :2])) ** 2)


KERNEL = np.array([0.25, 0.5, -0.25])


@problem(start=[0, 0, 0.5], minimum=0, at=KERNEL, source="deconvolution of a known signal")
def deconvolution(k):
    signal = np.array([1.0, 2.0, -1.0, 0.5, 3.0])
    return np.sum((np.convolve(signal, k) - np.convolve(signal, KERNEL)) ** 2)


@problem(
    start=[0.2, 0.2, 0.6], minimum=1 / (1 / 0.04 + 1 / 0.09 + 1 / 0.01), equal=lambda w: [np.sum(w) - 1],
    at=np.array([25, 100 / 9, 100]) / (125 + 100 / 9), source="Markowitz: minimum variance, independent assets",
)  # fmt: skip
def portfolio(w):
    return w @ np.diag([0.2, 0.3, 0.1]) ** 2 @ w


@problem(start=[0.9, 1.2, 2.5], minimum=0, at=[1, 2, 3], source="an interpolating parabola")
def polynomial_fit(c):
    t = np.linspace(-1, 1, 6)
    values = np.array([c[0] + c[1] * s + c[2] * s**2 for s in t])
    return np.linalg.norm(values - np.polynomial.polynomial.polyval(t, [1, 2, 3])) ** 2


@problem(start=[0.2, 2.9], minimum=1, at=[0.5, 2.5], source="Lloyd (1982): two centres on a line")
def k_means(c):
    data = np.array([0.0, 1.0, 2.0, 3.0])
    return sum(min((d - c[0]) ** 2, (d - c[1]) ** 2) for d in data)


GROUPS = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
LABELS = np.array([0, 0, 1, 2, 0, 1, 2, 2, 2])
SHARE = np.array([[2, 1, 1], [1, 1, 3]]) / [[4], [5]]


@problem(start=[[0.1, -0.2, 0.3], [0, 0.5, -0.4]], minimum=-np.sum(np.log(SHARE[GROUPS, LABELS])), at=np.log(SHARE),
         source="Bishop 4.3.4: softmax regression on two groups")  # fmt: skip
def softmax_regression(weights):
    logits = np.eye(2)[GROUPS] @ weights
    logits = logits - logits.max(axis=1, keepdims=True)
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return -np.log(probabilities[np.arange(len(LABELS)), LABELS]).sum()


RETURNS = np.array([[0.2, 0.1], [0.4, -0.1], [0.1, 0.3], [-0.1, 0.2]])
BEST = np.linalg.solve(np.cov(RETURNS.T, ddof=0), RETURNS.mean(axis=0))


@problem(start=[0.5, 0.5], minimum=-math.sqrt(RETURNS.mean(axis=0) @ BEST), at=[BEST, 0.1 * BEST],
         source="Sharpe (1966): the ratio of reward to risk")  # fmt: skip
def sharpe_ratio(w):
    returns = RETURNS.dot(w)
    return -np.mean(returns) / np.std(returns)


STATIONS = np.array([0.0, 0.4, 1.0])
OBSERVED = np.array([0.5, -0.3, 0.8])


def squared_exponential(s, t):
    return math.exp(-0.5 * (s - t) ** 2 / 0.3**2)


NEAR = np.array([[squared_exponential(s, t) for t in STATIONS] for s in STATIONS])
VARIANCE = OBSERVED @ np.linalg.solve(NEAR, OBSERVED) / 3


@problem(start=[0.4], minimum=1.5 + 0.5 * math.log(np.linalg.det(VARIANCE * NEAR)), at=[VARIANCE],
         source="Rasmussen and Williams (2006), 5.8")  # fmt: skip
def gaussian_process(theta):
    n = len(STATIONS)
    K = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            K[i, j] = K[j, i] = theta[0] * squared_exponential(STATIONS[i], STATIONS[j])
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, OBSERVED))
    return 0.5 * OBSERVED @ alpha + np.sum(np.log(np.diag(L)))


@problem(start=[0.4, -0.3, 0.8], minimum=0, at=[1, 0.5, 2], source="a Kalman filter on its own predictions")
def kalman_gain(p):
    def filtered(gain, drift, scale):
        state, path = np.zeros((2, 1)), []
        F = np.array([[1, 0.1], [0, 1]])
        for measured in (1.0, 1.1, 0.9):
            state = F @ state + drift * np.array([[0.005], [0.1]])
            state = state + gain * np.array([[0.5], [0.1]]) * (scale * measured - state[0, 0])
            path.append(state[0, 0])
        return np.array(path)

    return float(np.sum((filtered(*p) - filtered(1, 0.5, 2)) ** 2))
