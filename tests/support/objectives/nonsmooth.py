"""Functions with kinks and cases: those of Lukšan and Vlček (LV, 2000), penalties, others that decide on values."""

import math
from math import sqrt

import numpy as np

from tests.support.objectives.corpus import problem


@problem(start=[1, -0.1], minimum=1.9522245, at=[1.139286, 0.899365], source="LV, CB2", smooth=False,
         tolerance=1e-6)  # fmt: skip
def cb2(x):
    return max(x[0] ** 2 + x[1] ** 4, (2 - x[0]) ** 2 + (2 - x[1]) ** 2, 2 * math.exp(-x[0] + x[1]))


@problem(start=[2, 2], minimum=2, at=[1, 1], source="LV, CB3", smooth=False)
def cb3(x):
    x1, x2 = x
    f = [x1**4 + x2**2, (2 - x1) ** 2 + (2 - x2) ** 2, 2 * np.exp(-x1 + x2)]
    return np.max(f)


@problem(start=[1, 1], minimum=-3, at=[0, -3], source="LV, DEM", smooth=False)
def dem(x):
    f = np.zeros(3)
    f[0] = 5 * x[0] + x[1]
    f[1] = -5 * x[0] + x[1]
    f[2] = x[0] ** 2 + x[1] ** 2 + 4 * x[1]
    return f.max()


@problem(start=[-1, 5], minimum=7.2, at=[1.2, 2.4], source="LV, QL", smooth=False, unpacked=True)
def ql(x1, x2):
    f1 = x1**2 + x2**2
    f2 = f1 + 10 * (-4 * x1 - x2 + 4)
    f3 = f1 + 10 * (-x1 - 2 * x2 + 6)
    biggest = f1
    if f2 > biggest:
        biggest = f2
    if f3 > biggest:
        biggest = f3
    return biggest


@problem(start=[-0.5, -0.6], minimum=-sqrt(2), at=[1 / sqrt(2), 1 / sqrt(2)], source="LV, LQ", smooth=False)
def lq(x):
    return np.maximum(-x[0] - x[1], -x[0] - x[1] + (x[0] ** 2 + x[1] ** 2 - 1))


@problem(start=[0.9, 0.6], minimum=-1, at=[1, 0], source="LV, Mifflin 1", smooth=False)
def mifflin_1(x):
    violation = x[0] ** 2 + x[1] ** 2 - 1
    return -x[0] + 20 * (violation if violation > 0 else 0)


@problem(start=[-1, -1], minimum=-1, at=[1, 0], source="LV, Mifflin 2", smooth=False)
def mifflin_2(x):
    c = x[0] ** 2 + x[1] ** 2 - 1.0
    return -x[0] + 2.0 * c + 1.75 * abs(c)


@problem(start=[3, 2], minimum=-8, at=[-1, 0], source="LV, Wolfe", smooth=False)
def wolfe_cases(x):
    if x[0] >= abs(x[1]):
        return 5 * math.sqrt(9 * x[0] ** 2 + 16 * x[1] ** 2)
    elif 0 < x[0] < abs(x[1]):
        return 9 * x[0] + 16 * abs(x[1])
    else:
        return 9 * x[0] + 16 * abs(x[1]) - x[0] ** 9


@problem(start=[-1.5, 2], minimum=0, at=[0, 0], source="Kiwiel's crescent", smooth=False)
def crescent(x):
    candidates = []
    candidates.append(x[0] ** 2 + (x[1] - 1) ** 2 + x[1] - 1)
    candidates.append(-(x[0] ** 2) - (x[1] - 1) ** 2 + x[1] + 1)
    return sorted(candidates)[-1]


@problem(start=[1, -2, 3, -4], minimum=0, at=np.zeros(4), source="LV, MAXQ", smooth=False)
def maxq(x):
    best = 0.0
    for xi in x:
        best = max(best, xi**2)
    return best


@problem(start=[1, -2, 3.5, -4], minimum=0, at=np.zeros(4), source="Haarala: MXHILB", smooth=False)
def mxhilb(x):
    n = len(x)
    sums = [abs(sum(x[j] / (i + j + 1) for j in range(n))) for i in range(n)]
    return max(sums)


@problem(start=[-1, 2, 0.5], minimum=0, at=[1, 1, 1], source="Nesterov: Chebyshev-Rosenbrock, smooth variant")
def nesterov(x):
    terms = [0.25 * (x[0] - 1) ** 2]
    for a, b in zip(x[:-1], x[1:], strict=True):  # noqa: RUF007
        terms.append((b - 2 * a**2 + 1) ** 2)
    return sum(terms)


def u(x, a, k, m):
    """The penalty of Yao, Liu and Lin."""
    if x > a:
        return k * (x - a) ** m
    if x < -a:
        return k * (-x - a) ** m
    return 0


@problem(start=[2, -12, 11], minimum=0, at=[-1, -1, -1], source="Yao, Liu, Lin (1999), f12")
def generalized_penalized_1(x):
    n = len(x)
    y = [1 + (xi + 1) / 4 for xi in x]
    body = 10 * math.sin(math.pi * y[0]) ** 2 + (y[-1] - 1) ** 2
    for i in range(n - 1):
        body += (y[i] - 1) ** 2 * (1 + 10 * math.sin(math.pi * y[i + 1]) ** 2)
    return math.pi / n * body + sum(u(xi, 10, 100, 4) for xi in x)


@problem(start=[2, -6, 0.5], minimum=0, at=[1, 1, 1], source="Yao, Liu, Lin (1999), f13")
def generalized_penalized_2(x):
    penalty = np.sum([u(v, 5, 100, 4) for v in x])
    inner = np.sum((x[:-1] - 1) ** 2 * (1 + np.sin(3 * np.pi * x[1:]) ** 2))
    last = (x[-1] - 1) ** 2 * (1 + np.sin(2 * np.pi * x[-1]) ** 2)
    return 0.1 * (np.sin(3 * np.pi * x[0]) ** 2 + inner + last) + penalty


@problem(
    start=[3, 4], minimum=0.8, at=[1.4, 1.7], source="Nocedal and Wright, example 16.4, exact penalty", smooth=False
)
def exact_penalty(x):
    value = (x[0] - 1) ** 2 + (x[1] - 2.5) ** 2
    for constraint in (x[0] - 2 * x[1] + 2, -x[0] - 2 * x[1] + 6, -x[0] + 2 * x[1] + 2, x[0], x[1]):
        if constraint < 0:
            value -= 10 * constraint
    return value


@problem(start=[0.5, 3.5], minimum=4.25, at=[2.5, 1.5], source="a price with a discount above two")
def discount(x):
    amount, other = x
    price = 2 * amount if amount <= 2 else 4 + 1.5 * (amount - 2)
    return (price - 4.75) ** 2 + (other - 1.5) ** 2 + 4.25
