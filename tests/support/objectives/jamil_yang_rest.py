"""Jamil and Yang (2013), Styblinski to Zirilli."""

import math

import numpy as np
from numpy import cos, exp, sin

from tests.support.objectives.corpus import problem


@problem(start=[1, 2, 3], minimum=0, at=np.zeros(3), source="JY, Sum Squares")
def sum_squares(x):
    return np.einsum("i,i,i->", np.arange(1.0, 4.0), x, x)


@problem(
    start=[-2, -2],
    minimum=-78.33233140754282,
    at=[-2.903534027771177] * 2,
    source="JY, Styblinski Tang, not halved per D",
)
def styblinski_tang(x):
    return 0.5 * np.sum(np.power(x, 4) - 16 * np.power(x, 2) + 5 * x)


@problem(
    start=[8.5, 9],
    minimum=-19.2085025678845,
    at=[8.0550235, 9.6645900],
    source="JY, Holder Table",
    rounded=True,
    tolerance=1e-11,
)
def holder_table(x):
    x1, x2 = x
    return -abs(math.sin(x1) * math.cos(x2) * math.exp(abs(1 - math.sqrt(x1**2 + x2**2) / math.pi)))


@problem(
    start=[9, 9.2], minimum=-24.1568155, at=[9.646157, 9.646157], source="JY, Carrom Table", rounded=True,
    tolerance=1e-8,
    unpacked=True,
)  # fmt: skip
def carrom_table(x1, x2):
    return -1 / 30 * np.exp(2 * np.abs(1 - np.sqrt(x1**2 + x2**2) / np.pi)) * np.cos(x1) ** 2 * np.cos(x2) ** 2


@problem(
    start=[1.3, 0.3],
    minimum=-10.8723,
    at=[math.pi / 2, 0],
    source="JY, Testtube Holder",
    tolerance=1e-6,
    unpacked=True,
    rounded=True,
)
def testtube_holder(x1, x2):
    return -4 * abs(sin(x1) * cos(x2) * exp(abs(cos((x1**2 + x2**2) / 200))))


@problem(start=[1, 1], minimum=0, at=[[0, 0], [-2, 0]], source="JY, Trecanni")
def trecanni(x):
    return x[0] ** 4 + 4 * x[0] ** 3 + 4 * x[0] ** 2 + x[1] ** 2


@problem(start=[1] * 6, minimum=-50, at=[6, 10, 12, 12, 10, 6], source="JY, Trid 6")
def trid_6(x):
    return np.sum((x - 1) ** 2) - np.sum(x[1:] * x[:-1])


@problem(
    start=[0.02, 0.2], minimum=-3.3068686474752402, at=[-0.024403079, 0.210612427], source="JY, Trefethen",
    rounded=True,
    tolerance=1e-10,
)  # fmt: skip
def trefethen(x):
    s = math.exp(math.sin(50 * x[0])) + math.sin(60 * math.exp(x[1])) + math.sin(70 * math.sin(x[0]))
    return s + math.sin(math.sin(80 * x[1])) - math.sin(10 * (x[0] + x[1])) + (x[0] ** 2 + x[1] ** 2) / 4


@problem(start=[0.7, 1.1], minimum=1, at=[0.9, 0.9], source="JY, Trigonometric 2")
def trigonometric_2(x):
    z = (x - 0.9) ** 2
    return 1 + sum(8 * np.sin(7 * z) ** 2 + 6 * np.sin(14 * z[0]) ** 2 + z)


def p(x):
    return 1 if x >= 0 else 0


@problem(start=[3, -20], minimum=0, at=[0, -50], source="JY, Tripod", unpacked=True, smooth=False)
def tripod(x1, x2):
    left = p(x2) * (1 + p(x1)) + abs(x1 + 50 * p(x2) * (1 - 2 * p(x1)))
    return left + abs(x2 + 50 * (1 - 2 * p(x2)))


@problem(start=[2, 1], minimum=-400, at=[0, 0], source="JY, Venter Sobiezczanski", unpacked=True)
def venter_sobiezczanski(x1, x2):
    f = x1**2 - 100 * cos(x1) ** 2 - 100 * cos(x1**2 / 30)
    return f + x2**2 - 100 * cos(x2) ** 2 - 100 * cos(x2**2 / 30)


@problem(start=[2, 1], minimum=0, at=[1, 2], source="JY, Wayburn Seader 1")
def wayburn_seader_1(x):
    return (x[0] ** 6 + x[1] ** 4 - 17) ** 2 + (2 * x[0] + x[1] - 4) ** 2


@problem(start=[0.3, -0.2], minimum=0, at=[0, 0], source="JY, Wavy")
def wavy(x, k=10):
    return 1 - np.mean(np.cos(k * x) * np.exp(-(x**2) / 2))


@problem(start=[0.12, 0.3], minimum=0, at=[0, 0], source="JY, Weierstrass", tolerance=1e-9)
def weierstrass(x, a=0.5, b=3, kmax=4):
    k = np.arange(kmax + 1)
    waves = [np.sum(a**k * np.cos(2 * np.pi * b**k * (xi + 0.5))) for xi in x]
    return sum(waves) - len(x) * np.sum(a**k * np.cos(np.pi * b**k))


@problem(start=[0.7, 1.2, 0.8], minimum=0, at=np.ones(3), source="JY, Whitley")
def whitley(x):
    s = 0.0
    for xi in x:
        for xj in x:
            t = 100 * (xi**2 - xj) ** 2 + (1 - xj) ** 2
            s += t**2 / 4000 - cos(t) + 1
    return s


@problem(start=[1, 1, 1], minimum=0, at=np.zeros(3), source="JY, Wolfe", unpacked=True, low=0, high=2, smooth=False)
def wolfe(x1, x2, x3):
    return 4 / 3 * (x1**2 + x2**2 - x1 * x2) ** 0.75 + x3


@problem(start=[0.5, 1.5, -1], minimum=0, at=np.zeros(3), source="JY, Yang 2", smooth=False)
def yang_2(x):
    return np.sum(np.absolute(x)) * np.exp(-np.sum(np.sin(x**2)))


@problem(start=[1, -2, 0.5], minimum=0, at=np.zeros(3), source="JY, Zakharov")
def zakharov(x):
    n = len(x)
    sum1 = sum(x[i] ** 2 for i in range(n))
    sum2 = 0.5 * sum((i + 1) * x[i] for i in range(n))
    return sum1 + sum2**2 + sum2**4


@problem(
    start=[1, 1], minimum=-0.00379123722046, at=[-0.0298959978, 0], source="JY, Zettl", rounded=True, tolerance=1e-12
)
def zettl(x):
    return (x[0] ** 2 + x[1] ** 2 - 2 * x[0]) ** 2 + 0.25 * x[0]


@problem(
    start=[1, 1], minimum=-0.3523, at=[-1.0465, 0], source="JY, Zirilli", rounded=True, tolerance=1e-4, unpacked=True
)
def zirilli(x1, x2):
    return 0.25 * x1**4 - 0.5 * x1**2 + 0.1 * x1 + 0.5 * x2**2
