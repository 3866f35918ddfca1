"""Moré, Garbow, Hillstrom: Testing unconstrained optimization software (ACM TOMS 7, 1981), functions 1 to 18."""

import math
from math import atan, exp, pi, sqrt

import numpy as np

from tests.support.objectives.corpus import problem


@problem(start=[-1.2, 1], first=24.2, minimum=0, at=[1, 1], source="MGH 1", residuals=True)
def rosenbrock(x):
    return [10 * (x[1] - x[0] ** 2), 1 - x[0]]


@problem(
    start=[0.5, -2], first=400.5, minimum=48.9842, at=[11.4128, -0.896805], source="MGH 2", rounded=True,
    tolerance=2e-6,
    residuals=True,
)  # fmt: skip
def freudenstein_roth_local(x):
    x1, x2 = x
    return np.array([-13 + x1 + ((5 - x2) * x2 - 2) * x2, -29 + x1 + ((x2 + 1) * x2 - 14) * x2])


@problem(start=[0.5, -2], first=400.5, minimum=0, at=[5, 4], source="MGH 2")
def freudenstein_roth(x):
    f = np.zeros(2)
    f[0] = -13 + x[0] + ((5 - x[1]) * x[1] - 2) * x[1]
    f[1] = -29 + x[0] + ((x[1] + 1) * x[1] - 14) * x[1]
    return f[0] ** 2 + f[1] ** 2


@problem(start=[0, 1], first=1.13526171735, minimum=0, at=[1.09815933e-5, 9.10614674], source="MGH 3", rounded=True)
def powell_badly_scaled(x):
    fvec = np.zeros(2)
    fvec[0] = 1e4 * x[0] * x[1] - 1.0
    fvec[1] = math.exp(-x[0]) + math.exp(-x[1]) - 1.0001
    return np.dot(fvec, fvec)


@problem(start=[1, 1], first=999998000003, minimum=0, at=[1e6, 2e-6], source="MGH 4", unpacked=True)
def brown_badly_scaled(a, b):
    return (a - 1e6) ** 2 + (b - 2e-6) ** 2 + (a * b - 2) ** 2


@problem(start=[1, 1], first=14.203125, minimum=0, at=[3, 0.5], source="MGH 5")
def beale(x):
    y = [1.5, 2.25, 2.625]
    s = 0.0
    for i in range(1, 4):
        s = s + (y[i - 1] - x[0] * (1 - x[1] ** i)) ** 2
    return s


@problem(
    start=[0.3, 0.4],
    first=4171.31,
    minimum=124.362,
    at=[0.2578, 0.2578],
    source="MGH 6",
    rounded=True,
    tolerance=1e-5,
    residuals=True,
)
def jennrich_sampson(x):
    m = 10
    i = np.arange(1, m + 1)
    return 2 + 2 * i - (np.exp(i * x[0]) + np.exp(i * x[1]))


def theta(x1, x2):
    if x1 > 0:
        return atan(x2 / x1) / (2 * pi)
    else:
        return atan(x2 / x1) / (2 * pi) + 0.5


@problem(start=[-1, 0, 0], first=2500, minimum=0, at=[1, 0, 0], source="MGH 7")
def helical_valley(x):
    f1 = 10 * (x[2] - 10 * theta(x[0], x[1]))
    f2 = 10 * (sqrt(x[0] ** 2 + x[1] ** 2) - 1)
    f3 = x[2]
    return f1**2 + f2**2 + f3**2


BARD_Y = np.array([0.14, 0.18, 0.22, 0.25, 0.29, 0.32, 0.35, 0.39, 0.37, 0.58, 0.73, 0.96, 1.34, 2.10, 4.39])


@problem(
    start=[1, 1, 1],
    first=41.6817,
    minimum=8.21487e-3,
    at=[0.08241, 1.133, 2.3437],
    source="MGH 8",
    rounded=True,
    tolerance=1e-8,
)
def bard(x):
    m = len(BARD_Y)
    f = np.zeros(m)
    for i in range(1, m + 1):
        u, v = i, 16 - i
        w = min(u, v)
        f[i - 1] = BARD_Y[i - 1] - (x[0] + u / (v * x[1] + w * x[2]))
    return np.sum(f**2)


@problem(
    start=[0.4, 1, 0],
    first=3.88811e-6,
    minimum=1.12793e-8,
    at=[0.398956, 1.00002, 0],
    source="MGH 9",
    rounded=True,
    tolerance=1e-13,
)
def gaussian(x):
    half = [0.0009, 0.0044, 0.0175, 0.0540, 0.1295, 0.2420, 0.3521]
    y = [*half, 0.3989, *reversed(half)]
    fsum = 0
    for i, yi in enumerate(y, start=1):
        t = (8 - i) / 2
        fsum += (x[0] * math.exp(-x[1] * (t - x[2]) ** 2 / 2) - yi) ** 2
    return fsum


@problem(
    start=[0.02, 4000, 250], first=1.69361e9, minimum=87.9458, at=[0.00560964, 6181.346, 345.2236], source="MGH 10",
    rounded=True,
    tolerance=1e-6, residuals=True,
)  # fmt: skip
def meyer(x):
    y = np.array(
        [34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744, 8261, 7030, 6005, 5147, 4427, 3820, 3307, 2872]
    )
    t = 45 + 5 * np.arange(1, 17)
    return x[0] * np.exp(x[1] / (t + x[2])) - y


@problem(start=[5, 2.5, 0.15], minimum=0, at=[50, 25, 1.5], source="MGH 11")
def gulf_research(x, m=20):
    total = 0.0
    for i in range(1, m + 1):
        ti = i / 100
        yi = 25 + (-50 * math.log(ti)) ** (2 / 3)
        total += (math.exp(-(abs(yi - x[1]) ** x[2]) / x[0]) - ti) ** 2
    return total


@problem(
    start=[0, 10, 20], first=1031.154, minimum=0, at=[[1, 10, 1], [10, 1, -1], [3, 3, 0]], source="MGH 12",
    unpacked=True,
    residuals=True,
)  # fmt: skip
def box_three_dimensional(x1, x2, x3):
    return [
        exp(-0.1 * i * x1) - exp(-0.1 * i * x2) - x3 * (exp(-0.1 * i) - exp(-i)) for i in range(1, 11)
    ]  # fmt: skip


@problem(start=[3, -1, 0, 1], first=215, minimum=0, at=[0, 0, 0, 0], source="MGH 13", unpacked=True)
def powell_singular(x1, x2, x3, x4):
    f = np.empty(4)
    f[0] = x1 + 10 * x2
    f[1] = sqrt(5) * (x3 - x4)
    f[2] = (x2 - 2 * x3) ** 2
    f[3] = sqrt(10) * (x1 - x4) ** 2
    return f.dot(f)


@problem(start=[-3, -1, -3, -1], first=19192, minimum=0, at=[1, 1, 1, 1], source="MGH 14")
def wood(x):
    def sq(z):
        return z * z

    a = sq(10 * (x[1] - sq(x[0]))) + sq(1 - x[0])
    b = sq(90**0.5 * (x[3] - sq(x[2]))) + sq(1 - x[2])
    return a + b + sq(10**0.5 * (x[1] + x[3] - 2)) + sq(10**-0.5 * (x[1] - x[3]))


class KowalikOsborne:
    """The residuals with their data."""

    y = [0.1957, 0.1947, 0.1735, 0.1600, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246]  # noqa: RUF012
    u = [4.0, 2.0, 1.0, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625]  # noqa: RUF012

    def __call__(self, x):
        f = []
        for yi, ui in zip(self.y, self.u, strict=True):
            f.append(yi - x[0] * (ui**2 + ui * x[1]) / (ui**2 + ui * x[2] + x[3]))
        return np.linalg.norm(f) ** 2


problem(
    start=[0.25, 0.39, 0.415, 0.39], first=5.31317e-3, minimum=3.07505e-4, at=[0.192807, 0.191282, 0.123057, 0.136062],
    source="MGH 15",
    rounded=True, tolerance=1e-9,
)(KowalikOsborne())  # fmt: skip


@problem(
    start=[25, 5, -5, -1], first=7926693.34, minimum=85822.2, at=[-11.5944, 13.2036, -0.403439, 0.236779],
    source="MGH 16", rounded=True,
    tolerance=1e-6,
)  # fmt: skip
def brown_dennis(x):
    fval = 0.0
    for i in range(20):
        t = (i + 1) / 5
        c1 = x[0] + t * x[1] - np.exp(t)
        c2 = x[2] + x[3] * np.sin(t) - np.cos(t)
        fval += (c1**2 + c2**2) ** 2
    return fval


OSBORNE1 = [
    0.844, 0.908, 0.932, 0.936, 0.925, 0.908, 0.881, 0.850, 0.818, 0.784, 0.751, 0.718, 0.685, 0.658, 0.628, 0.603,
    0.580, 0.558, 0.538, 0.522, 0.506, 0.490, 0.478, 0.467, 0.457, 0.448, 0.438, 0.431, 0.424, 0.420, 0.414, 0.411,
    0.406,
]  # fmt: skip


@problem(
    start=[0.5, 1.5, -1, 0.01, 0.02], first=0.879026, minimum=5.46489e-5,
    at=[0.375410, 1.93585, -1.46469, 0.0128675, 0.0221227],
    source="MGH 17", rounded=True, tolerance=1e-10,
)  # fmt: skip
def osborne_1(x):
    f = np.zeros(33)
    for i in range(33):
        t = 10.0 * i
        f[i] = OSBORNE1[i] - (x[0] + x[1] * np.exp(-t * x[3]) + x[2] * np.exp(-t * x[4]))
    return np.inner(f, f)


@problem(start=[1, 2, 1, 1, 1, 1], first=0.779070, minimum=0, at=[1, 10, 1, 5, 4, 3], source="MGH 18", residuals=True)
def biggs_exp6(x):
    t = 0.1 * np.linspace(1, 13, 13)
    y = np.exp(-t) - 5 * np.exp(-10 * t) + 3 * np.exp(-4 * t)
    return x[2] * np.exp(-t * x[0]) - x[3] * np.exp(-t * x[1]) + x[5] * np.exp(-t * x[4]) - y
