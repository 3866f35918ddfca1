"""Jamil and Yang (2013), Leon to Step."""

import math
from itertools import pairwise

import numpy as np
from numpy import arange, cos, exp, sin, sqrt

from tests.support.objectives.corpus import problem

π = np.pi


@problem(start=[-1.2, 1.5], first=100 * 0.06**2 + 4.84, minimum=0, at=[1, 1], source="JY, Leon", unpacked=True)
def leon(x1, x2):
    return 100 * (x2 - x1**2) ** 2 + (1 - x1) ** 2


@problem(start=[3, -4], first=12.26, minimum=0, at=[0, 0], source="JY, Matyas")
def matyas(x):
    Q = np.array([[0.26, -0.24], [-0.24, 0.26]])
    return x.T @ Q @ x


@problem(
    start=[0, 0], minimum=-math.sqrt(3) / 2 - math.pi / 3, at=[0.5 - math.pi / 3, -0.5 - math.pi / 3],
    source="JY, Mccormick", unpacked=True,
)  # fmt: skip
def mccormick(x1, x2):
    return sin(x1 + x2) + (x1 - x2) ** 2 - (3 / 2) * x1 + (5 / 2) * x2 + 1


@problem(start=[1, 2, 2, 2], minimum=0, at=[0, 1, 1, 1], source="JY, Miele Cantrell", unpacked=True)
def miele_cantrell(x1, x2, x3, x4):
    return (math.exp(-x1) - x2) ** 4 + 100 * (x2 - x3) ** 6 + math.tan(x3 - x4) ** 4 + x1**8


@problem(start=[-1.5, 0.3], minimum=0, at=[[math.pi / 2, 0], [-math.pi / 2, math.pi]], source="JY, Parsopoulos")
def parsopoulos(x):
    return np.cos(x[0]) ** 2 + np.sin(x[1]) ** 2


@problem(
    start=[8, 9], minimum=-0.963534839, at=[[9.646168, 9.646168], [-9.646168, 9.646168]], source="JY, Pen Holder",
    rounded=True, tolerance=1e-8,
)  # fmt: skip
def pen_holder(x):
    e = abs(1 - math.sqrt(x[0] ** 2 + x[1] ** 2) / math.pi)
    return -math.exp(-(abs(math.cos(x[0]) * math.cos(x[1]) * math.exp(e)) ** -1))


@problem(start=[1.0, -2.0, 0.5], minimum=0, at=np.zeros(3), source="JY, Pathological", smooth=False)
def pathological(x):
    total = 0
    for a, b in pairwise(x):
        total += 0.5 + (sin(sqrt(100 * a**2 + b**2)) ** 2 - 0.5) / (1 + 0.001 * (a**2 - 2 * a * b + b**2) ** 2)
    return total


@problem(
    start=[9.0] * 10, minimum=-45.7784697074463, at=[9.350266] * 10, source="JY, Paviani", rounded=True, tolerance=2e-9
)
def paviani(x):
    a = sum(math.log(xi - 2) ** 2 + math.log(10 - xi) ** 2 for xi in x)
    b = 1.0
    for xi in x:
        b *= xi
    return a - b**0.2


@problem(start=[1, -2], minimum=0.9, at=[0, 0], source="JY, Periodic")
def periodic(x):
    return 1 + np.sin(x[0]) ** 2 + np.sin(x[1]) ** 2 - 0.1 * np.exp(-np.sum(np.square(x)))


@problem(start=[0.5, -0.4, 0.7], minimum=0, at=np.zeros(3), source="JY, Powell Sum", smooth=False)
def powell_sum(x):
    return np.sum(np.abs(x) ** np.arange(2, len(x) + 2))


@problem(start=[3, 4], minimum=0, at=[[5, 5], [-5, 5], [5, -5], [-5, -5]], source="JY, Price 1", smooth=False)
def price_1(x):
    return (abs(x[0]) - 5) ** 2 + (abs(x[1]) - 5) ** 2


@problem(start=[1, 1], minimum=0, at=[[0, 0], [2, 4], [1.464352119663698, -2.506012760781662]], source="JY, Price 4")
def price_4(x):
    return (2 * x[0] ** 3 * x[1] - x[1] ** 3) ** 2 + (6 * x[0] - x[1] ** 2 + x[1]) ** 2


@problem(start=[1, 1, 2], minimum=0, at=[1, -math.sqrt(2), math.sqrt(3)], source="JY, Qing")
def qing(x):
    i = arange(1, x.shape[-1] + 1)
    return ((x**2 - i) ** 2).sum()


@problem(
    start=[0, 0], minimum=-3873.7241821862713, at=[0.19388, 0.48513], source="JY, Quadratic", rounded=True,
    tolerance=1e-12,
    unpacked=True,
)  # fmt: skip
def quadratic(x1, x2):
    return -3803.84 - 138.08 * x1 - 232.92 * x2 + 128.08 * x1**2 + 203.64 * x2**2 + 182.25 * x1 * x2


@problem(start=[-0.7, 1.3], minimum=0, at=[[-1, 2], [2, -1]], source="JY, Quintic", smooth=False)
def quintic(x):
    return np.sum(np.abs(np.polyval([1, -3, 4, 2, -10, -4], x)))


@problem(start=[0.55, 0.45], minimum=-2.2, at=[0.1, 0.1], source="JY, Ripple 1", unpacked=True)
def ripple_1(*x):
    s = 0
    for xi in x:
        s -= exp(-2 * math.log(2) * ((xi - 0.1) / 0.8) ** 2) * (sin(5 * π * xi) ** 6 + 0.1 * cos(500 * π * xi) ** 2)
    return s


@problem(start=[5, -4], minimum=0, at=[0, 0], source="JY, Rotated Ellipse", unpacked=True)
def rotated_ellipse(x1, x2):
    return 7 * x1**2 - 6 * math.sqrt(3) * x1 * x2 + 13 * x2**2


@problem(start=[1, -2, 0.5], minimum=0, at=np.zeros(3), source="JY, Salomon", smooth=False)
def salomon(x):
    r = np.linalg.norm(x)
    return 1 - np.cos(2 * np.pi * r) + 0.1 * r


@problem(start=[3.2, -4, 1], minimum=0, at=np.zeros(3), source="JY, Sargan")
def sargan(x):
    D = len(x)
    total = 0
    for i in range(D):
        total += D * (x[i] ** 2 + 0.4 * sum([x[i] * x[j] for j in range(D) if j != i]))
    return total


@problem(start=[1.5, -0.5], minimum=0, at=[0, 0], source="JY, Schaffer 1")
def schaffer_1(x):
    r2 = x[0] ** 2 + x[1] ** 2
    return 0.5 + (np.sin(r2**2) ** 2 - 0.5) / (1 + 0.001 * r2) ** 2


@problem(start=[1.5, -0.5], minimum=0, at=[0, 0], source="JY, Schaffer 2", unpacked=True)
def schaffer_2(x, y):
    numerator = math.sin(x**2 - y**2) ** 2 - 0.5
    return 0.5 + numerator / (1 + 0.001 * (x**2 + y**2)) ** 2


@problem(
    start=[5, 5, 5],
    minimum=3,
    at=[0.78547, 0.78547, 0.78547],
    source="JY, Schmidt Vetters",
    tolerance=1e-6,
    rounded=True,
)
def schmidt_vetters(x):
    x1, x2, x3 = x
    return 1 / (1 + (x1 - x2) ** 2) + sin((π * x2 + x3) / 2) + exp(((x1 + x2) / x2 - 2) ** 2)


@problem(start=[1, -2, 3, -1], minimum=0, at=np.zeros(4), source="JY, Schwefel 1 2")
def schwefel_1_2(x):
    outer = 0.0
    for i in range(len(x)):
        inner = 0.0
        for j in range(i + 1):
            inner += x[j]
        outer += inner**2
    return outer


@problem(start=[2, 3, 0.5], minimum=0, at=[1, 1, 1], source="JY, Schwefel 2 4")
def schwefel_2_4(x):
    return np.sum((x - 1) ** 2 + (x[0] - x**2) ** 2)


@problem(start=[2, 5], minimum=0, at=[1, 3], source="JY, Schwefel 2 6", smooth=False, unpacked=True)
def schwefel_2_6(x1, x2):
    return max(abs(x1 + 2 * x2 - 7), abs(2 * x1 + x2 - 5))


@problem(start=[2, -5, 3], minimum=0, at=np.zeros(3), source="JY, Schwefel 2 20", smooth=False)
def schwefel_2_20(x):
    return np.linalg.norm(x, 1)


@problem(start=[2, -5, 3], minimum=0, at=np.zeros(3), source="JY, Schwefel 2 21", smooth=False)
def schwefel_2_21(x):
    return np.abs(x).max()


@problem(start=[2, -5, 3], minimum=0, at=np.zeros(3), source="JY, Schwefel 2 22", smooth=False)
def schwefel_2_22(x):
    return sum(abs(x)) + np.multiply.reduce(abs(x))


@problem(start=[1.1, -0.7], minimum=0, at=[0, 0], source="JY, Schwefel 2 23")
def schwefel_2_23(x):
    return (x**10).sum()


@problem(start=[2, 3, 0.5], minimum=0, at=[1, 1, 1], source="JY, Schwefel 2 25")
def schwefel_2_25(x):
    return sum((x[i] - 1) ** 2 + (x[0] - x[i] ** 2) ** 2 for i in range(1, len(x)))


@problem(
    start=[400, 430],
    minimum=-418.982887272433,
    at=[420.968746, 420.968746],
    source="JY, Schwefel 2 26",
    tolerance=1e-11,
)
def schwefel_2_26(x):
    return -1 / len(x) * np.sum(x * np.sin(np.sqrt(np.abs(x))))


@problem(start=[10, 11], minimum=-3456, at=[12, 12], source="JY, Schwefel 2 36", unpacked=True)
def schwefel_2_36(x1, x2):
    return -x1 * x2 * (72 - 2 * x1 - 2 * x2)


SHEKEL_A = np.array(
    [[4.0] * 4, [1.0] * 4, [8.0] * 4, [6.0] * 4, [3, 7, 3, 7], [2, 9, 2, 9], [5, 5, 3, 3], [8, 1, 8, 1], [6, 2, 6, 2],
     [7, 3.6, 7, 3.6]]
)  # fmt: skip
SHEKEL_C = [0.1, 0.2, 0.2, 0.4, 0.4, 0.6, 0.3, 0.7, 0.5, 0.5]


@problem(start=[3.5, 4.5, 3.8, 4.2], minimum=-10.1532, at=[4] * 4, source="JY, Shekel 5", rounded=True, tolerance=1e-6)
def shekel_5(x):
    return -sum(1 / (np.sum((x - SHEKEL_A[i]) ** 2) + SHEKEL_C[i]) for i in range(5))


@problem(start=[3.5, 4.5, 3.8, 4.2], minimum=-10.5364, at=[4] * 4, source="JY, Shekel 10", rounded=True, tolerance=1e-6)
def shekel_10(x):
    total = 0.0
    for a, c in zip(SHEKEL_A, SHEKEL_C, strict=True):
        d = x - a
        total -= 1.0 / (np.dot(d, d) + c)
    return total


@problem(
    start=[-1.2, -0.7], minimum=-186.7309, source="JY, Shubert", rounded=True, tolerance=1e-7,
    at=[[-7.0835, 4.8580], [-7.0835, -7.7083], [-1.4251, -0.8003], [5.4828, 4.8580]],
)  # fmt: skip
def shubert(x):
    return np.prod([sum(j * cos((j + 1) * xi + j) for j in range(1, 6)) for xi in x])


@problem(start=[1, -2, 3], minimum=0, at=np.zeros(3), source="JY, Sphere")
def sphere(x):
    return np.inner(x, x)


@problem(start=[0.7, -1.4, 2.6], minimum=0, at=np.zeros(3), source="JY, Step Function")
def step_function(x):
    return np.sum(np.floor(np.abs(x)))


@problem(start=[0.7, -1.4, 2.6], minimum=0, at=[-0.5, 0, 0.4], source="JY, Step 2")
def step_2(x):
    total = 0
    for xi in x:
        total += math.floor(xi + 0.5) ** 2
    return total
