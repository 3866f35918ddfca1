"""Moré, Garbow, Hillstrom (ACM TOMS 7, 1981), functions 19 to 35: those of variable dimension."""

import math
from functools import reduce

import numpy as np
from numpy import array, cos, empty, exp, ones, sin, zeros

from tests.support.objectives.corpus import problem

OSBORNE2 = """
1.366 1.191 1.112 1.013 0.991 0.885 0.831 0.847 0.786 0.725 0.746 0.679 0.608 0.655 0.616 0.606 0.602 0.626 0.651 0.724
0.649 0.649 0.694 0.644 0.624 0.661 0.612 0.558 0.533 0.495 0.500 0.423 0.395 0.375 0.372 0.391 0.396 0.405 0.428 0.429
0.523 0.562 0.607 0.653 0.672 0.708 0.633 0.668 0.645 0.632 0.591 0.559 0.597 0.625 0.739 0.710 0.729 0.720 0.636 0.581
0.428 0.292 0.162 0.098 0.054
"""


@problem(
    start=[1.3, 0.65, 0.65, 0.7, 0.6, 3, 5, 7, 2, 4.5, 5.5], first=2.09342, minimum=4.01377e-2, source="MGH 19",
    rounded=True,
    at=[1.30998, 0.431554, 0.633662, 0.599431, 0.754183, 0.904286, 1.36581, 4.82370, 2.39868, 4.56887, 5.67534],
    tolerance=1e-7,
)  # fmt: skip
def osborne_2(x):
    y = array([float(s) for s in OSBORNE2.split()])
    f = zeros(65)
    for i in range(65):
        t = i / 10
        f[i] = y[i] - x[0] * exp(-t * x[4])
        for k in range(3):
            f[i] -= x[1 + k] * exp(-((t - x[8 + k]) ** 2) * x[5 + k])
    return (f**2).sum()


@problem(
    start=[0] * 6, first=30, minimum=2.28767e-3, at=[-0.015725, 1.012435, -0.232992, 1.260430, -1.513729, 0.992996],
    source="MGH 20", rounded=True, tolerance=1e-8,
)  # fmt: skip
def watson(x):
    n = len(x)
    f = np.zeros(31)
    for i in range(1, 30):
        t = i / 29
        first = sum((j - 1) * x[j - 1] * t ** (j - 2) for j in range(2, n + 1))
        second = sum(x[j - 1] * t ** (j - 1) for j in range(1, n + 1))
        f[i - 1] = first - second**2 - 1
    f[29] = x[0]
    f[30] = x[1] - x[0] ** 2 - 1
    return np.sum(f**2)


@problem(start=[-1.2, 1, -1.2, 1, -1.2, 1], first=3 * 24.2, minimum=0, at=ones(6), source="MGH 21", residuals=True)
def extended_rosenbrock(x):
    f = np.zeros_like(x)
    f[0::2] = 10 * (x[1::2] - x[0::2] ** 2)
    f[1::2] = 1 - x[0::2]
    return f


@problem(start=[3, -1, 0, 1] * 2, first=2 * 215, minimum=0, at=zeros(8), source="MGH 22")
def extended_powell_singular(x):
    s = 0.0
    for i in range(0, len(x), 4):
        a, b, c, d = x[i : i + 4]
        s += (a + 10 * b) ** 2 + 5 * (c - d) ** 2 + (b - 2 * c) ** 4 + 10 * (a - d) ** 4
    return s


@problem(
    start=[1, 2, 3, 4],
    first=885.063,
    minimum=2.24997e-5,
    at=[0.25001] * 4,
    source="MGH 23",
    rounded=True,
    tolerance=1e-10,
)
def penalty_1(x, a=1e-5):
    return a * np.sum((x - 1) ** 2) + (np.sum(x**2) - 0.25) ** 2


@problem(
    start=[0.5] * 4, first=2.34001, minimum=9.37629e-6, at=[0.199999, 0.191333, 0.480149, 0.518801], source="MGH 24",
    rounded=True,
    tolerance=1e-11,
)  # fmt: skip
def penalty_2(x):
    n, a = 4, 1e-5
    f = np.empty(2 * n)
    f[0] = x[0] - 0.2
    for i in range(2, n + 1):
        y = math.exp(i / 10) + math.exp((i - 1) / 10)
        f[i - 1] = math.sqrt(a) * (math.exp(x[i - 1] / 10) + math.exp(x[i - 2] / 10) - y)
    for i in range(n + 1, 2 * n):
        f[i - 1] = math.sqrt(a) * (math.exp(x[i - n] / 10) - math.exp(-1 / 10))
    f[2 * n - 1] = sum((n - j + 1) * x[j - 1] ** 2 for j in range(1, n + 1)) - 1
    return sum(fi**2 for fi in f)


@problem(start=1 - np.arange(1, 6) / 5, minimum=0, at=ones(5), source="MGH 25")
def variably_dimensioned(x):
    n = x.shape[0]
    s = np.dot(np.arange(1, n + 1), x - 1)
    return np.linalg.norm(x - 1) ** 2 + s**2 + s**4


@problem(start=[0.2] * 5, minimum=0, at=zeros(5), source="MGH 26")
def trigonometric(x):
    n = len(x)
    c = sum(cos(x))
    f = empty(n)
    for i in range(n):
        f[i] = n - c + (i + 1) * (1 - cos(x[i])) - sin(x[i])
    return sum(f * f)


@problem(start=[0.5] * 5, minimum=0, at=ones(5), source="MGH 27", residuals=True)
def brown_almost_linear(x):
    n = len(x)
    f = x[:-1] + np.sum(x) - (n + 1)
    return np.append(f, np.prod(x) - 1)


@problem(start=[0.5] * 4, minimum=1, at=[0, 0, 0, 5], source="MGH 27", residuals=True)
def brown_almost_linear_local(x):
    product = reduce(lambda a, b: a * b, x)
    return [xi + sum(x) - 5 for xi in x[:3]] + [product - 1]


GRID = np.arange(1, 7) / 7


@problem(
    start=GRID * (GRID - 1), minimum=0, at=[-0.05, -0.1, -0.13, -0.14, -0.13, -0.09], source="MGH 28", rounded=True
)
def discrete_boundary_value(x):
    n = x.size
    h = 1 / (n + 1)
    f = np.zeros(n)
    for i in range(n):
        left = 0 if i == 0 else x[i - 1]
        right = x[i + 1] if i < n - 1 else 0
        f[i] = 2 * x[i] - left - right + h**2 * (x[i] + (i + 1) * h + 1) ** 3 / 2
    return f @ f


@problem(
    start=GRID * (GRID - 1), minimum=0, at=[-0.05, -0.1, -0.13, -0.14, -0.13, -0.09], source="MGH 29", rounded=True
)
def discrete_integral_equation(x):
    n = len(x)
    h = 1 / (n + 1)
    t = np.array([(i + 1) * h for i in range(n)])
    cube = (x + t + 1) ** 3
    total = 0
    for i in range(n):
        s1 = np.sum(t[: i + 1] * cube[: i + 1])
        s2 = np.sum((1 - t[i + 1 :]) * cube[i + 1 :])
        total += (x[i] + h * ((1 - t[i]) * s1 + t[i] * s2) / 2) ** 2
    return total


@problem(
    start=[-1] * 5, minimum=0, at=[-0.57, -0.68, -0.68, -0.65, -0.55], source="MGH 30", rounded=True, residuals=True
)
def broyden_tridiagonal(x):
    padded = np.zeros(len(x) + 2)
    padded[1:-1] = x
    return (3 - 2 * x) * x - padded[:-2] - 2 * padded[2:] + 1


@problem(
    start=[-1] * 8, minimum=0, at=[-0.43, -0.48, -0.52, -0.56, -0.59, -0.62, -0.59, -0.59], source="MGH 31",
    rounded=True,
)  # fmt: skip
def broyden_banded(x):
    n, ml, mu = len(x), 5, 1
    f = zeros(n)
    for i in range(n):
        s = 0
        for j in range(max(0, i - ml), min(n - 1, i + mu) + 1):
            if j != i:
                s += x[j] * (1 + x[j])
        f[i] = x[i] * (2 + 5 * x[i] ** 2) + 1 - s
    return np.dot(f.T, f)


@problem(start=ones(4), minimum=3, at=-ones(4), source="MGH 32", residuals=True)
def linear_full_rank(x, m=7):
    t = 2 / m * np.sum(x) + 1
    f = [xi - t for xi in x]
    f.extend([-t] * (m - len(x)))
    return f


@problem(
    start=ones(3),
    first=sum((6 * i - 1) ** 2 for i in range(1, 6)),
    minimum=10 / 11,
    at=[3 / 11, 0, 0],
    source="MGH 33: m(m - 1)/(2(2m + 1))",
    residuals=True,
)
def linear_rank_one(x, m=5):
    i = np.arange(1, m + 1)
    j = np.arange(1, len(x) + 1)
    return np.outer(i, j) @ x - 1


@problem(start=ones(4), minimum=34 / 14, at=[0, 0, 1 / 7, 0], source="MGH 34: (m^2 + 3m - 6)/(2(2m - 3))")
def linear_rank_one_with_zeros(x):
    m, n = 5, len(x)
    f = -np.ones(m)
    for i in range(2, m):
        f[i - 1] = (i - 1) * sum([j * x[j - 1] for j in range(2, n)]) - 1
    return (f**2).sum(axis=0)


def chebyshev(i, z):
    return 1 if i == 0 else z if i == 1 else 2 * z * chebyshev(i - 1, z) - chebyshev(i - 2, z)


@problem(
    start=np.arange(1, 9) / 9, minimum=3.51687e-3, source="MGH 35", rounded=True, tolerance=1e-8,
    at=[0.043153, 0.193091, 0.266329, 0.5, 0.5, 0.733671, 0.806909, 0.956847],
)  # fmt: skip
def chebyquad(x):
    n = len(x)
    f = np.zeros(n)
    for i in range(1, n + 1):
        f[i - 1] = np.mean([chebyshev(i, 2 * xj - 1) for xj in x])
        if i % 2 == 0:
            f[i - 1] += 1 / (i**2 - 1)
    return np.sum(np.square(f))
