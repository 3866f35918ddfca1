"""Jamil and Yang (2013), functions 70 to 175."""

import math
from itertools import pairwise

import numpy as np
from numpy import arange, cos, exp, sin, sqrt

from objectives.corpus import problem

π = np.pi


@problem(start=[-1.2, 1.5], first=100 * 0.06**2 + 4.84, minimum=0, at=[1, 1], source="JY 70", unpacked=True)
def leon(x1, x2):
    return 100 * (x2 - x1**2) ** 2 + (1 - x1) ** 2


@problem(start=[3, -4], first=12.26, minimum=0, at=[0, 0], source="JY 71")
def matyas(x):
    Q = np.array([[0.26, -0.24], [-0.24, 0.26]])
    return x.T @ Q @ x


@problem(
    start=[0, 0], minimum=-math.sqrt(3) / 2 - math.pi / 3, at=[0.5 - math.pi / 3, -0.5 - math.pi / 3],
    source="JY 72", unpacked=True,
)  # fmt: skip
def mccormick(x1, x2):
    return sin(x1 + x2) + (x1 - x2) ** 2 - (3 / 2) * x1 + (5 / 2) * x2 + 1


@problem(start=[1, 2, 2, 2], minimum=0, at=[0, 1, 1, 1], source="JY 73", unpacked=True)
def miele_cantrell(x1, x2, x3, x4):
    return (math.exp(-x1) - x2) ** 4 + 100 * (x2 - x3) ** 6 + math.tan(x3 - x4) ** 4 + x1**8


@problem(start=[-1.5, 0.3], minimum=0, at=[[math.pi / 2, 0], [-math.pi / 2, math.pi]], source="JY 85")
def parsopoulos(x):
    return np.cos(x[0]) ** 2 + np.sin(x[1]) ** 2


@problem(
    start=[8, 9], minimum=-0.963534839, at=[[9.646168, 9.646168], [-9.646168, 9.646168]], source="JY 86",
    rounded=True, tolerance=1e-8,
)  # fmt: skip
def pen_holder(x):
    e = abs(1 - math.sqrt(x[0] ** 2 + x[1] ** 2) / math.pi)
    return -math.exp(-(abs(math.cos(x[0]) * math.cos(x[1]) * math.exp(e)) ** -1))


@problem(start=[1.0, -2.0, 0.5], minimum=0, at=np.zeros(3), source="JY 87", smooth=False)
def pathological(x):
    total = 0
    for a, b in pairwise(x):
        total += 0.5 + (sin(sqrt(100 * a**2 + b**2)) ** 2 - 0.5) / (1 + 0.001 * (a**2 - 2 * a * b + b**2) ** 2)
    return total


@problem(start=[9.0] * 10, minimum=-45.7784697074463, at=[9.350266] * 10, source="JY 88", rounded=True, tolerance=2e-9)
def paviani(x):
    a = sum(math.log(xi - 2) ** 2 + math.log(10 - xi) ** 2 for xi in x)
    b = 1.0
    for xi in x:
        b *= xi
    return a - b**0.2


@problem(start=[1, -2], minimum=0.9, at=[0, 0], source="JY 90")
def periodic(x):
    return 1 + np.sin(x[0]) ** 2 + np.sin(x[1]) ** 2 - 0.1 * np.exp(-np.sum(np.square(x)))


@problem(start=[0.5, -0.4, 0.7], minimum=0, at=np.zeros(3), source="JY 93", smooth=False)
def powell_sum(x):
    return np.sum(np.abs(x) ** np.arange(2, len(x) + 2))


@problem(start=[3, 4], minimum=0, at=[[5, 5], [-5, 5], [5, -5], [-5, -5]], source="JY 94", smooth=False)
def price_1(x):
    return (abs(x[0]) - 5) ** 2 + (abs(x[1]) - 5) ** 2


@problem(start=[1, 1], minimum=0, at=[[0, 0], [2, 4], [1.464352119663698, -2.506012760781662]], source="JY 97")
def price_4(x):
    return (2 * x[0] ** 3 * x[1] - x[1] ** 3) ** 2 + (6 * x[0] - x[1] ** 2 + x[1]) ** 2


@problem(start=[1, 1, 2], minimum=0, at=[1, -math.sqrt(2), math.sqrt(3)], source="JY 98")
def qing(x):
    i = arange(1, x.shape[-1] + 1)
    return ((x**2 - i) ** 2).sum()


@problem(
    start=[0, 0], minimum=-3873.7241821862713, at=[0.19388, 0.48513], source="JY 99", rounded=True, tolerance=1e-12,
    unpacked=True,
)  # fmt: skip
def quadratic(x1, x2):
    return -3803.84 - 138.08 * x1 - 232.92 * x2 + 128.08 * x1**2 + 203.64 * x2**2 + 182.25 * x1 * x2


@problem(start=[-0.7, 1.3], minimum=0, at=[[-1, 2], [2, -1]], source="JY 101", smooth=False)
def quintic(x):
    return np.sum(np.abs(np.polyval([1, -3, 4, 2, -10, -4], x)))


@problem(start=[0.55, 0.45], minimum=-2.2, at=[0.1, 0.1], source="JY 103", unpacked=True)
def ripple_1(*x):
    s = 0
    for xi in x:
        s -= exp(-2 * math.log(2) * ((xi - 0.1) / 0.8) ** 2) * (sin(5 * π * xi) ** 6 + 0.1 * cos(500 * π * xi) ** 2)
    return s


@problem(start=[5, -4], minimum=0, at=[0, 0], source="JY 107", unpacked=True)
def rotated_ellipse(x1, x2):
    return 7 * x1**2 - 6 * math.sqrt(3) * x1 * x2 + 13 * x2**2


@problem(start=[1, -2, 0.5], minimum=0, at=np.zeros(3), source="JY 110", smooth=False)
def salomon(x):
    r = np.linalg.norm(x)
    return 1 - np.cos(2 * np.pi * r) + 0.1 * r


@problem(start=[3.2, -4, 1], minimum=0, at=np.zeros(3), source="JY 111")
def sargan(x):
    D = len(x)
    total = 0
    for i in range(D):
        total += D * (x[i] ** 2 + 0.4 * sum([x[i] * x[j] for j in range(D) if j != i]))
    return total


@problem(start=[1.5, -0.5], minimum=0, at=[0, 0], source="JY 112")
def schaffer_1(x):
    r2 = x[0] ** 2 + x[1] ** 2
    return 0.5 + (np.sin(r2**2) ** 2 - 0.5) / (1 + 0.001 * r2) ** 2


@problem(start=[1.5, -0.5], minimum=0, at=[0, 0], source="JY 113", unpacked=True)
def schaffer_2(x, y):
    numerator = math.sin(x**2 - y**2) ** 2 - 0.5
    return 0.5 + numerator / (1 + 0.001 * (x**2 + y**2)) ** 2


@problem(start=[5, 5, 5], minimum=3, at=[0.78547, 0.78547, 0.78547], source="JY 116", tolerance=1e-6, rounded=True)
def schmidt_vetters(x):
    x1, x2, x3 = x
    return 1 / (1 + (x1 - x2) ** 2) + sin((π * x2 + x3) / 2) + exp(((x1 + x2) / x2 - 2) ** 2)


@problem(start=[1, -2, 3, -1], minimum=0, at=np.zeros(4), source="JY 118")
def schwefel_1_2(x):
    outer = 0.0
    for i in range(len(x)):
        inner = 0.0
        for j in range(i + 1):
            inner += x[j]
        outer += inner**2
    return outer


@problem(start=[2, 3, 0.5], minimum=0, at=[1, 1, 1], source="JY 119")
def schwefel_2_4(x):
    return np.sum((x - 1) ** 2 + (x[0] - x**2) ** 2)


@problem(start=[2, 5], minimum=0, at=[1, 3], source="JY 120", smooth=False, unpacked=True)
def schwefel_2_6(x1, x2):
    return max(abs(x1 + 2 * x2 - 7), abs(2 * x1 + x2 - 5))


@problem(start=[2, -5, 3], minimum=0, at=np.zeros(3), source="JY 121", smooth=False)
def schwefel_2_20(x):
    return np.linalg.norm(x, 1)


@problem(start=[2, -5, 3], minimum=0, at=np.zeros(3), source="JY 122", smooth=False)
def schwefel_2_21(x):
    return np.abs(x).max()


@problem(start=[2, -5, 3], minimum=0, at=np.zeros(3), source="JY 123", smooth=False)
def schwefel_2_22(x):
    return sum(abs(x)) + np.multiply.reduce(abs(x))


@problem(start=[1.1, -0.7], minimum=0, at=[0, 0], source="JY 124")
def schwefel_2_23(x):
    return (x**10).sum()


@problem(start=[2, 3, 0.5], minimum=0, at=[1, 1, 1], source="JY 125")
def schwefel_2_25(x):
    return sum((x[i] - 1) ** 2 + (x[0] - x[i] ** 2) ** 2 for i in range(1, len(x)))


@problem(start=[400, 430], minimum=-418.982887272433, at=[420.968746, 420.968746], source="JY 126", tolerance=1e-11)
def schwefel_2_26(x):
    return -1 / len(x) * np.sum(x * np.sin(np.sqrt(np.abs(x))))


@problem(start=[10, 11], minimum=-3456, at=[12, 12], source="JY 127", unpacked=True)
def schwefel_2_36(x1, x2):
    return -x1 * x2 * (72 - 2 * x1 - 2 * x2)


SHEKEL_A = np.array(
    [[4.0] * 4, [1.0] * 4, [8.0] * 4, [6.0] * 4, [3, 7, 3, 7], [2, 9, 2, 9], [5, 5, 3, 3], [8, 1, 8, 1], [6, 2, 6, 2],
     [7, 3.6, 7, 3.6]]
)  # fmt: skip
SHEKEL_C = [0.1, 0.2, 0.2, 0.4, 0.4, 0.6, 0.3, 0.7, 0.5, 0.5]


@problem(start=[3.5, 4.5, 3.8, 4.2], minimum=-10.1532, at=[4] * 4, source="JY 130", rounded=True, tolerance=1e-6)
def shekel_5(x):
    return -sum(1 / (np.sum((x - SHEKEL_A[i]) ** 2) + SHEKEL_C[i]) for i in range(5))


@problem(start=[3.5, 4.5, 3.8, 4.2], minimum=-10.5364, at=[4] * 4, source="JY 132", rounded=True, tolerance=1e-6)
def shekel_10(x):
    total = 0.0
    for a, c in zip(SHEKEL_A, SHEKEL_C, strict=True):
        d = x - a
        total -= 1.0 / (np.dot(d, d) + c)
    return total


@problem(
    start=[-1.2, -0.7], minimum=-186.7309, source="JY 133", rounded=True, tolerance=1e-7,
    at=[[-7.0835, 4.8580], [-7.0835, -7.7083], [-1.4251, -0.8003], [5.4828, 4.8580]],
)  # fmt: skip
def shubert(x):
    return np.prod([sum(j * cos((j + 1) * xi + j) for j in range(1, 6)) for xi in x])


@problem(start=[1, -2, 3], minimum=0, at=np.zeros(3), source="JY 137")
def sphere(x):
    return np.inner(x, x)


@problem(start=[0.7, -1.4, 2.6], minimum=0, at=np.zeros(3), source="JY 138")
def step_function(x):
    return np.sum(np.floor(np.abs(x)))


@problem(start=[0.7, -1.4, 2.6], minimum=0, at=[-0.5, 0, 0.4], source="JY 139")
def step_2(x):
    total = 0
    for xi in x:
        total += math.floor(xi + 0.5) ** 2
    return total


@problem(start=[1, 2, 3], minimum=0, at=np.zeros(3), source="JY 143")
def sum_squares(x):
    return np.einsum("i,i,i->", np.arange(1.0, 4.0), x, x)


@problem(start=[-2, -2], minimum=-78.33233140754282, at=[-2.903534027771177] * 2, source="JY 144, not halved per D")
def styblinski_tang(x):
    return 0.5 * np.sum(np.power(x, 4) - 16 * np.power(x, 2) + 5 * x)


@problem(
    start=[8.5, 9], minimum=-19.2085025678845, at=[8.0550235, 9.6645900], source="JY 146", rounded=True, tolerance=1e-11
)
def holder_table(x):
    x1, x2 = x
    return -abs(math.sin(x1) * math.cos(x2) * math.exp(abs(1 - math.sqrt(x1**2 + x2**2) / math.pi)))


@problem(
    start=[9, 9.2], minimum=-24.1568155, at=[9.646157, 9.646157], source="JY 147", rounded=True, tolerance=1e-8,
    unpacked=True,
)  # fmt: skip
def carrom_table(x1, x2):
    return -1 / 30 * np.exp(2 * np.abs(1 - np.sqrt(x1**2 + x2**2) / np.pi)) * np.cos(x1) ** 2 * np.cos(x2) ** 2


@problem(
    start=[1.3, 0.3],
    minimum=-10.8723,
    at=[math.pi / 2, 0],
    source="JY 148",
    tolerance=1e-6,
    unpacked=True,
    rounded=True,
)
def testtube_holder(x1, x2):
    return -4 * abs(sin(x1) * cos(x2) * exp(abs(cos((x1**2 + x2**2) / 200))))


@problem(start=[1, 1], minimum=0, at=[[0, 0], [-2, 0]], source="JY 149")
def trecanni(x):
    return x[0] ** 4 + 4 * x[0] ** 3 + 4 * x[0] ** 2 + x[1] ** 2


@problem(start=[1] * 6, minimum=-50, at=[6, 10, 12, 12, 10, 6], source="JY 150")
def trid_6(x):
    return np.sum((x - 1) ** 2) - np.sum(x[1:] * x[:-1])


@problem(
    start=[0.02, 0.2], minimum=-3.3068686474752402, at=[-0.024403079, 0.210612427], source="JY 152", rounded=True,
    tolerance=1e-10,
)  # fmt: skip
def trefethen(x):
    s = math.exp(math.sin(50 * x[0])) + math.sin(60 * math.exp(x[1])) + math.sin(70 * math.sin(x[0]))
    return s + math.sin(math.sin(80 * x[1])) - math.sin(10 * (x[0] + x[1])) + (x[0] ** 2 + x[1] ** 2) / 4


@problem(start=[0.7, 1.1], minimum=1, at=[0.9, 0.9], source="JY 154")
def trigonometric_2(x):
    z = (x - 0.9) ** 2
    return 1 + sum(8 * np.sin(7 * z) ** 2 + 6 * np.sin(14 * z[0]) ** 2 + z)


def p(x):
    return 1 if x >= 0 else 0


@problem(start=[3, -20], minimum=0, at=[0, -50], source="JY 155", unpacked=True, smooth=False)
def tripod(x1, x2):
    left = p(x2) * (1 + p(x1)) + abs(x1 + 50 * p(x2) * (1 - 2 * p(x1)))
    return left + abs(x2 + 50 * (1 - 2 * p(x2)))


@problem(start=[2, 1], minimum=-400, at=[0, 0], source="JY 161", unpacked=True)
def venter_sobiezczanski(x1, x2):
    f = x1**2 - 100 * cos(x1) ** 2 - 100 * cos(x1**2 / 30)
    return f + x2**2 - 100 * cos(x2) ** 2 - 100 * cos(x2**2 / 30)


@problem(start=[2, 1], minimum=0, at=[1, 2], source="JY 163")
def wayburn_seader_1(x):
    return (x[0] ** 6 + x[1] ** 4 - 17) ** 2 + (2 * x[0] + x[1] - 4) ** 2


@problem(start=[0.3, -0.2], minimum=0, at=[0, 0], source="JY 166")
def wavy(x, k=10):
    return 1 - np.mean(np.cos(k * x) * np.exp(-(x**2) / 2))


@problem(start=[0.12, 0.3], minimum=0, at=[0, 0], source="JY 167", tolerance=1e-9)
def weierstrass(x, a=0.5, b=3, kmax=4):
    k = np.arange(kmax + 1)
    waves = [np.sum(a**k * np.cos(2 * np.pi * b**k * (xi + 0.5))) for xi in x]
    return sum(waves) - len(x) * np.sum(a**k * np.cos(np.pi * b**k))


@problem(start=[0.7, 1.2, 0.8], minimum=0, at=np.ones(3), source="JY 168")
def whitley(x):
    s = 0.0
    for xi in x:
        for xj in x:
            t = 100 * (xi**2 - xj) ** 2 + (1 - xj) ** 2
            s += t**2 / 4000 - cos(t) + 1
    return s


@problem(start=[1, 1, 1], minimum=0, at=np.zeros(3), source="JY 169", unpacked=True, low=0, high=2, smooth=False)
def wolfe(x1, x2, x3):
    return 4 / 3 * (x1**2 + x2**2 - x1 * x2) ** 0.75 + x3


@problem(start=[0.5, 1.5, -1], minimum=0, at=np.zeros(3), source="JY 171", smooth=False)
def yang_2(x):
    return np.sum(np.absolute(x)) * np.exp(-np.sum(np.sin(x**2)))


@problem(start=[1, -2, 0.5], minimum=0, at=np.zeros(3), source="JY 173")
def zakharov(x):
    n = len(x)
    sum1 = sum(x[i] ** 2 for i in range(n))
    sum2 = 0.5 * sum((i + 1) * x[i] for i in range(n))
    return sum1 + sum2**2 + sum2**4


@problem(start=[1, 1], minimum=-0.00379123722046, at=[-0.0298959978, 0], source="JY 174", rounded=True, tolerance=1e-12)
def zettl(x):
    return (x[0] ** 2 + x[1] ** 2 - 2 * x[0]) ** 2 + 0.25 * x[0]


@problem(start=[1, 1], minimum=-0.3523, at=[-1.0465, 0], source="JY 175", rounded=True, tolerance=1e-4, unpacked=True)
def zirilli(x1, x2):
    return 0.25 * x1**4 - 0.5 * x1**2 + 0.1 * x1 + 0.5 * x2**2
