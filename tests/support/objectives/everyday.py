"""Well-known test functions in further everyday idioms: conversions on entry and exit, counters, masks, generators.

LM: Laguna and Marti (2005). SB: Surjanovic and Bingham's virtual library of simulation experiments.
"""

import itertools
import math
import operator

import numpy as np

from tests.support.objectives.corpus import problem


@problem(start=[0.4, -0.7, 1.2], minimum=0, at=np.zeros(3), source="Rastrigin (1974)")
def rastrigin(x):
    x = np.asarray(x, dtype=float)
    n = x.size
    return float(10 * n + np.sum(x**2 - 10 * np.cos(2 * np.pi * x)))


@problem(start=[0.5, 2.0, -1.5], minimum=0, at=np.ones(3), source="LM, Levy")
def levy(x):
    x = np.array(x, dtype=np.float64, copy=True)
    x -= 1
    x /= 4
    x += 1
    s = math.sin(math.pi * x[0]) ** 2
    for k in range(x.shape[0] - 1):
        s += (x[k] - 1) ** 2 * (1 + 10 * math.sin(math.pi * x[k] + 1) ** 2)
    return s + (x[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * x[-1]) ** 2)


@problem(start=[2, 1.5], minimum=-1.8013034, at=[2.20290552, 1.57079633], source="Michalewicz (1992)", tolerance=1e-8)
def michalewicz(x, m=10):
    total = np.float64(0)
    for i, xi in np.ndenumerate(x):
        total += np.sin(xi) * np.sin((i[0] + 1) * xi**2 / np.pi) ** (2 * m)
    return -total


@problem(start=[0.7, 2.1, 2.9], minimum=0, at=[1, 2, 3], source="LM, Perm(n, b)")
def perm(x, b=0.5):
    n = len(x)
    j = np.arange(1, n + 1)
    outer = 0
    for k in range(1, n + 1):
        outer += np.sum((j**k + b) * ((x / j) ** k - 1)) ** 2
    return outer


@problem(start=[1, 0.6, 0.2], minimum=0, at=[1, 1 / 2, 1 / 3], source="LM, Perm0(n, b)")
def perm_0(x, b=10):
    return sum(
        sum((j + b) * (x[j - 1] ** k - 1 / j**k) for j in range(1, len(x) + 1)) ** 2 for k in range(1, len(x) + 1)
    )


@problem(start=[1, -2, 3], minimum=0, at=np.zeros(3), source="SB: rotated hyper-ellipsoid")
def rotated_hyper_ellipsoid(x):
    return sum(itertools.accumulate([xi**2 for xi in x], operator.add))


@problem(start=[1, -2, 3], minimum=0, at=np.zeros(3), source="BBOB f12 without rotation: bent cigar")
def bent_cigar(x):
    weights = np.full(3, 1e6)
    weights[0] = 1
    return np.matmul(weights, x**2).item()


@problem(start=[0.5, -0.2, 0.7], minimum=0, at=np.zeros(3), source="BBOB f2 without oscillation: ellipsoid")
def ellipsoid(x):
    d = len(x)
    scale = np.logspace(0, 6, d)
    squares = np.fromiter([1e6 ** (i / (d - 1)) for i in range(d)], float)
    assert np.allclose(scale, squares)
    return float((scale * x**2).sum())


@problem(start=[0.5, -0.2, 0.7], minimum=0, at=-np.ones(3), source="Beyer and Finck (2012): HappyCat", smooth=False)
def happy_cat(x):
    n2 = sum(x**2)
    n = len(x)
    return abs(n2 - n) ** 0.25 + (0.5 * n2 + sum(x)) / n + 0.5


@problem(start=[1, 2], minimum=-5.1621259, at=[2.00299219, 1.006096], source="JY, Langermann, m = 5", rounded=True,
         tolerance=1e-7)  # fmt: skip
def langermann(x):
    A = np.array([[3, 5], [5, 2], [2, 1], [1, 4], [7, 9]])
    c = (1, 2, 5, 2, 3)
    value = 0
    for i in range(5):
        inner = (x[0] - A[i, 0]) ** 2 + (x[1] - A[i, 1]) ** 2
        value -= c[i] * math.exp(-inner / math.pi) * math.cos(math.pi * inner)
    return value


@problem(start=[0.5], minimum=-0.869011134989500, at=[0.548563444114526], source="Gramacy and Lee (2012)", rounded=True)
def gramacy_lee(x):
    x = x[0]
    return math.sin(10 * math.pi * x) / (2 * x) + math.pow(x - 1, 4)


@problem(
    start=[0.7], minimum=-6.020740055, at=[0.757249], source="Forrester et al. (2008)", rounded=True, tolerance=1e-9
)
def forrester(x):
    (z,) = x
    return (6 * z - 2) ** 2 * np.sin(12 * z - 4)


@problem(start=[-0.2, 0.4], minimum=0, at=[0, 0], source="a cone", smooth=False)
def cone(x):
    real, imaginary = x
    return math.sqrt(real**2 + imaginary**2)


@problem(start=[1.2, 3.4], minimum=0.9, at=[0, 0], source="JY, Price 2")
def price_2(x):
    assert x.shape == (2,)
    if not np.all(np.isfinite(x)):
        return np.inf
    return 1 + np.sum(np.sin(x) ** 2) - 0.1 * np.exp(-np.sum(x**2))


class CountingSphere:
    """A sphere around a centre that counts its calls, as optimisers' test problems do."""

    def __init__(self, centre):
        self.centre = np.asarray(centre)
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        shifted = x.copy()
        shifted -= self.centre
        return np.sum(shifted * shifted)


problem(start=[0, 0, 0], minimum=0, at=[1, -2, 3], source="De Jong (1975), f1, shifted")(CountingSphere([1, -2, 3]))


@problem(start=[2, -1, 0.5, 3], minimum=0, at=np.zeros(4), source="squares, each sign with its own weight")
def one_sided_squares(x):
    positive = x[x > 0]
    negative = x[x < 0]
    return np.sum(positive**2) + 3 * np.sum(negative**2)


@problem(start=[0.4, 1.1], minimum=0, at=[0, 0], source="the determinant of a bordered matrix")
def gram_determinant(x):
    n = len(x) + 1
    G = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            G[i, j] = 1.0 if i == j else 0.0
    for i in range(n - 1):
        G[i, n - 1] = x[i]
        G[n - 1, i] = -x[i]
    return np.linalg.det(G) - 1


@problem(start=[0.5, -1.5, 2.5], minimum=0, at=[0, 0, 0], source="a polynomial by cases of the index")
def by_index(x):
    total = 0
    for i, xi in enumerate(x):
        match i % 3:
            case 0:
                total += xi**2
            case 1:
                total += xi**4
            case _:
                total += (square := xi * xi) + square**2
    return total


@problem(start=[0.5, -1.5, 2.5], minimum=3, at=[0, 0, 0], source="a sum of hyperbolic cosines, through nested helpers")
def cosh_sum(x):
    total = 0.0

    def add(value):
        nonlocal total
        total += value

    for xi in x.tolist():
        add(math.cosh(xi))
    return total


@problem(
    start=[[1.0, 0.2], [0.3, 2.0]], minimum=0, at=[[1, 0], [0, 1]], source="Newton and Schulz: an approximate inverse"
)
def approximate_inverse(v):
    n, _ = v.shape
    A = np.identity(n)
    R = np.empty_like(A)
    R[:, :] = A - A @ v
    return np.trace(R.T @ R)


@problem(start=[0.4, 0.9], minimum=2, at=[0, 0], source="a mean of powers through columns and rows")
def column_vector(x):
    v = x.reshape(-1, 1)
    gram = v.T @ np.diag([2, 3]) @ v
    return float(gram[0, 0]) + 2


@problem(start=[1.3, 0.8, 0.6], minimum=0, at=[1, 1, 1], source="the gap of arithmetic and geometric mean, and a scale")
def means(x):
    arithmetic = np.mean(x)
    geometric = math.prod(x) ** (1 / len(x))
    return arithmetic - geometric + (math.log(geometric)) ** 2


@problem(start=[0.3, 0.6], minimum=0, at=[0, 0], source="an area under a parabola by the trapezoidal rule, squared")
def trapezoidal_rule(x):
    t = np.linspace(0, 1, 5)
    curve = x[0] + x[1] * t**2
    return np.trapezoid(curve, t) ** 2 + np.polyval([1, 0, 0], x[1])


@problem(start=[0.3, 0.6, 1.4], minimum=0, at=[0.5, 0.5, 0.5], source="differences around a ring")
def ring(x):
    return np.sum((x - np.roll(x, 1)) ** 2) + (np.cumsum(x)[-1] - 1.5) ** 2


@problem(start=[0.3, 2.5, -1.7], minimum=0, at=[0, 1, 2], source="Huber (1964), by masks")
def huber_by_masks(x):
    r = x - np.arange(3)
    loss = np.zeros(len(r))
    small = np.abs(r) <= 1
    loss[small] = 0.5 * r[small] ** 2
    loss[~small] = np.abs(r[~small]) - 0.5
    return loss.sum()


@problem(start=[0.3, -2.5, 1.7], minimum=0, at=np.zeros(3), source="squares, weighed by a table where positive")
def weighed_where_positive(x):
    weights = np.array([1.0, 2.0, 3.0])
    positive = x > 0
    return np.dot(weights[positive], x[positive] ** 2) + sum(v**2 for v in x if v < 0)


TEMPLATE = np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0], [1.0, 0.0, 4.0]])


@problem(start=[0.4, -0.3], minimum=-21, at=[0, 0], source="a template matrix, copied and filled")
def filled_template(x):
    A = np.array(TEMPLATE)
    A[0, 1] = A[1, 0] = x[0]
    A[1, 2] += x[1]
    A[2, 1] += x[1]
    return -np.linalg.det(A)


@problem(start=[0.4, -0.3], minimum=14, at=[0, 0], source="data, changed in place by the model")
def changed_data(x):
    d = np.concatenate([[1.0, 2.0], [3.0]])
    d[:2] += x
    d -= np.repeat(0.0, 3)
    return d @ d - 2 * x[0] - 4 * x[1]


@problem(start=[0.4], minimum=1, at=[0], source="one number or an array of them", unpacked=True)
def number_or_array(x):
    if isinstance(x, (int, float)):
        x = np.array([x])
    return float(np.sum(np.cosh(x)))
