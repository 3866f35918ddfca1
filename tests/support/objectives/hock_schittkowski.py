"""Hock and Schittkowski: Test examples for nonlinear programming codes (1981), problems 1 to 45 with constraints."""

import math
from math import cos, exp, log, pi, sin, sqrt

import numpy as np

from tests.support.objectives.corpus import problem

inf = math.inf


def banana(x1, x2):
    return 100 * (x2 - x1**2) ** 2 + (1 - x1) ** 2


@problem(start=[-2, 1], first=909, minimum=0, at=[1, 1], source="HS 1", low=[-inf, -1.5])
def hs1(x):
    return banana(x[0], x[1])


A = (598 / 1200) ** 0.5


@problem(
    start=[-2, 1], first=909, minimum=0.0504261879, at=[2 * A * cos(math.acos(1 / (400 * A**3)) / 3), 1.5],
    source="HS 2",
    low=[-inf, 1.5],
)  # fmt: skip
def hs2(x):
    return banana(*x)


@problem(start=[10, 1], first=1.00081, minimum=0, at=[0, 0], source="HS 3", low=[-inf, 0])
def hs3(x):
    return x[1] + 1e-5 * (x[1] - x[0]) ** 2


@problem(start=[1.125, 0.125], first=3.323568, minimum=8 / 3, at=[1, 0], source="HS 4", low=[1, 0])
def hs4(x):
    return (x[0] + 1) ** 3 / 3 + x[1]


@problem(
    start=[0, 0], first=1, minimum=-sqrt(3) / 2 - pi / 3, at=[-pi / 3 + 0.5, -pi / 3 - 0.5], source="HS 5",
    low=[-1.5, -3],
    high=[4, 3],
)  # fmt: skip
def hs5(x):
    return sin(x[0] + x[1]) + (x[0] - x[1]) ** 2 - 1.5 * x[0] + 2.5 * x[1] + 1


@problem(start=[-1.2, 1], first=4.84, minimum=0, at=[1, 1], source="HS 6", equal=lambda x: [10 * (x[1] - x[0] ** 2)])
def hs6(x):
    return (1 - x[0]) ** 2


def hs7_constraint(x):
    return np.array([(1 + x[0] ** 2) ** 2 + x[1] ** 2 - 4])


@problem(start=[2, 2], first=-0.3905621, minimum=-sqrt(3), at=[0, sqrt(3)], source="HS 7", equal=hs7_constraint)
def hs7(x):
    return log(1 + x[0] ** 2) - x[1]


def hs8_system(x):
    h = np.zeros(2)
    h[0] = x[0] ** 2 + x[1] ** 2 - 25
    h[1] = x[0] * x[1] - 9
    return h


@problem(start=[2, 1], minimum=-1, at=[4.60159, 1.95584], source="HS 8", equal=hs8_system, tolerance=1e-6)
def hs8(x):
    return -1


@problem(
    start=[0, 0],
    first=0,
    minimum=-0.5,
    at=[-3, -4],
    source="HS 9",
    equal=lambda x: [4 * x[0] - 3 * x[1]],
    unpacked=True,
)
def hs9(x1, x2):
    return math.sin(math.pi * x1 / 12) * math.cos(math.pi * x2 / 16)


@problem(
    start=[-10, 10], first=-20, minimum=-1, at=[0, 1], source="HS 10",
    at_least_zero=lambda x: (-3 * x[0] ** 2 + 2 * x[0] * x[1] - x[1] ** 2 + 1,),
)  # fmt: skip
def hs10(x):
    return x[0] - x[1]


@problem(
    start=[4.9, 0.1], first=-24.98, minimum=-8.498464223, at=[1.2347728, 1.5246639], source="HS 11", tolerance=1e-6,
    at_least_zero=lambda x: [-(x[0] ** 2) + x[1]],
)  # fmt: skip
def hs11(x):
    return (x[0] - 5) ** 2 + x[1] ** 2 - 25


@problem(
    start=[0, 0],
    first=0,
    minimum=-30,
    at=[2, 3],
    source="HS 12",
    at_least_zero=lambda x: [25 - 4 * x[0] ** 2 - x[1] ** 2],
)
def hs12(x):
    x1, x2 = x
    return 0.5 * x1**2 + x2**2 - x1 * x2 - 7 * x1 - 7 * x2


@problem(
    start=[-2, -2], first=20, minimum=1, at=[1, 0], source="HS 13: the constraints are irregular at the optimum",
    smooth=False,
    at_least_zero=lambda x: [(1 - x[0]) ** 3 - x[1]], low=0,
)  # fmt: skip
def hs13(x):
    return np.sum((x - np.array([2, 0])) ** 2)


@problem(
    start=[2, 2], first=1, minimum=9 - 2.875 * sqrt(7), at=[0.5 * (sqrt(7) - 1), 0.25 * (sqrt(7) + 1)], source="HS 14",
    equal=lambda x: [x[0] - 2 * x[1] + 1], at_least_zero=lambda x: [-0.25 * x[0] ** 2 - x[1] ** 2 + 1],
)  # fmt: skip
def hs14(x):
    return np.linalg.norm(x - [2, 1]) ** 2


@problem(
    start=[-2, 1], first=909, minimum=306.5, at=[0.5, 2], source="HS 15", high=[0.5, inf],
    at_least_zero=lambda x: [x[0] * x[1] - 1, x[0] + x[1] ** 2],
)  # fmt: skip
def hs15(x):
    f = 0
    f += 100 * (x[1] - x[0] ** 2) ** 2
    f += (1 - x[0]) ** 2
    return f


@problem(
    start=[-2, 1], first=909, minimum=0.25, at=[0.5, 0.25], source="HS 16", low=[-0.5, -inf], high=[0.5, 1],
    at_least_zero=lambda x: [x[0] + x[1] ** 2, x[0] ** 2 + x[1]],
)  # fmt: skip
def hs16(x):
    return banana(x1=x[0], x2=x[1])


@problem(
    start=[2, 2], first=4.04, minimum=5, at=[sqrt(250), sqrt(2.5)], source="HS 18", low=[2, 0], high=50,
    at_least_zero=lambda x: [x[0] * x[1] - 25, x[0] ** 2 + x[1] ** 2 - 25],
)  # fmt: skip
def hs18(x):
    return np.dot(x, np.multiply([0.01, 1], x))


def hs19_constraints(x):
    return np.array([(x[0] - 5) ** 2 + (x[1] - 5) ** 2 - 100, 82.81 - (x[1] - 5) ** 2 - (x[0] - 6) ** 2])


@problem(
    start=[20.1, 5.84], first=-1808.858296, minimum=-6961.81381, at=[14.095, 0.84296079], source="HS 19", low=[13, 0],
    high=100,
    tolerance=1e-8, at_least_zero=hs19_constraints,
)  # fmt: skip
def hs19(x):
    return (x[0] - 10) ** 3 + (x[1] - 20) ** 3


@problem(start=[-1, -1], first=-98.99, minimum=-99.96, at=[2, 0], source="HS 21", low=[2, -50], high=50,
         at_least_zero=lambda x: [10 * x[0] - x[1] - 10])  # fmt: skip
def hs21(x):
    return 0.01 * x[0] ** 2 + x[1] ** 2 - 100


@problem(start=[2, 2], first=1, minimum=1, at=[1, 1], source="HS 22",
         at_least_zero=lambda x: [-x[0] - x[1] + 2, -(x[0] ** 2) + x[1]])  # fmt: skip
def hs22(x):
    return (x[0] - 2) ** 2 + (x[1] - 1) ** 2


def hs23_constraints(x):
    g = np.empty(5)
    g[0] = x[0] + x[1] - 1
    g[1] = x[0] ** 2 + x[1] ** 2 - 1
    g[2] = 9 * x[0] ** 2 + x[1] ** 2 - 9
    g[3] = x[0] ** 2 - x[1]
    g[4] = x[1] ** 2 - x[0]
    return g


@problem(start=[3, 1], first=10, minimum=2, at=[1, 1], source="HS 23", at_least_zero=hs23_constraints, low=-50, high=50)
def hs23(x):
    return sum(x * x)


S3 = sqrt(3)


@problem(
    start=[1, 0.5], first=-0.01336459, minimum=-1, at=[3, S3], source="HS 24", low=0,
    at_least_zero=lambda x: np.array([x[0] / S3 - x[1], x[0] + S3 * x[1], -x[0] - S3 * x[1] + 6]),
)  # fmt: skip
def hs24(x):
    return 1 / (27 * math.sqrt(3)) * ((x[0] - 3) ** 2 - 9) * x[1] ** 3


@problem(start=[-2.6, 2, 2], first=21.16, minimum=0, at=[1, 1, 1], source="HS 26", unpacked=True,
         equal=lambda x: [(1 + x[1] ** 2) * x[0] + x[2] ** 4 - 3])  # fmt: skip
def hs26(x, y, z):
    return (x - y) ** 2 + (y - z) ** 4


@problem(
    start=[2, 2, 2], first=4.01, minimum=0.04, at=[-1, 1, 0], source="HS 27", equal=lambda x: [x[0] + x[2] ** 2 + 1]
)
def hs27(x):
    return 0.01 * (x[0] - 1) ** 2 + (x[1] - x[0] ** 2) ** 2


@problem(start=[-4, 1, 1], first=13, minimum=0, at=[0.5, -0.5, 0.5], source="HS 28",
         equal=lambda x: [np.array([1, 2, 3]) @ x - 1])  # fmt: skip
def hs28(x):
    return np.sum((x[:-1] + x[1:]) ** 2)


@problem(start=[1, 1, 1], first=-1, minimum=-16 * sqrt(2), at=[4, 2 * sqrt(2), 2], source="HS 29",
         at_least_zero=lambda x: [48 - np.sum(np.array([1, 2, 4]) * x**2)])  # fmt: skip
def hs29(x):
    return -np.prod(x)


@problem(start=[1, 1, 1], first=3, minimum=1, at=[1, 0, 0], source="HS 30", low=[1, -10, -10], high=10,
         at_least_zero=lambda x: [x[0] ** 2 + x[1] ** 2 - 1])  # fmt: skip
def hs30(x):
    return x.dot(x)


@problem(
    start=[1, 1, 1], first=19, minimum=6, at=[1 / S3, S3, 0], source="HS 31", low=[-10, 1, -10], high=[10, 10, 1],
    at_least_zero=lambda x: [x[0] * x[1] - 1],
)  # fmt: skip
def hs31(x):
    return 9 * x[0] ** 2 + x[1] ** 2 + 9 * x[2] ** 2


@problem(
    start=[0.1, 0.7, 0.2], first=7.2, minimum=1, at=[0, 0, 1], source="HS 32", low=0, equal=lambda x: [1 - np.sum(x)],
    at_least_zero=lambda x: [6 * x[1] + 4 * x[2] - x[0] ** 3 - 3],
)  # fmt: skip
def hs32(x):
    (a, b, c) = x
    return (a + 3 * b + c) ** 2 + 4 * (a - b) ** 2


@problem(
    start=[0, 0, 3], first=-3, minimum=sqrt(2) - 6, at=[0, sqrt(2), sqrt(2)], source="HS 33", low=0, high=[inf, inf, 5],
    at_least_zero=lambda x: [x[2] ** 2 - x[1] ** 2 - x[0] ** 2, sum(xi**2 for xi in x) - 4],
)  # fmt: skip
def hs33(x):
    product = 1
    for k in (1, 2, 3):
        product *= x[0] - k
    return product + x[2]


@problem(
    start=[0, 1.05, 2.9], first=0, minimum=-log(log(10)), at=[log(log(10)), log(10), 10], source="HS 34", low=0,
    high=[100, 100, 10], at_least_zero=lambda x: [x[1] - exp(x[0]), x[2] - exp(x[1])],
)  # fmt: skip
def hs34(x):
    return -x[0]


@problem(start=[0.5] * 3, first=2.25, minimum=1 / 9, at=[4 / 3, 7 / 9, 4 / 9], source="HS 35", low=0,
         at_least_zero=lambda x: [3 - x[0] - x[1] - 2 * x[2]])  # fmt: skip
def hs35(x):
    H = np.array([[4.0, 2, 2], [2, 4, 0], [2, 0, 2]])
    c = np.array([-8.0, -6, -4])
    return 9 + c @ x + 0.5 * x @ H @ x


@problem(start=[10, 10, 10], first=-1000, minimum=-3300, at=[20, 11, 15], source="HS 36", low=0, high=[20, 11, 42],
         unpacked=True,
         at_least_zero=lambda x: [72 - x[0] - 2 * x[1] - 2 * x[2]])  # fmt: skip
def hs36(length, width, height):
    volume = length * width * height
    return -volume


@problem(start=[2, 2, 2, 2], first=-2, minimum=-1, at=[1, 1, 0, 0], source="HS 39",
         equal=lambda x: [x[1] - x[0] ** 3 - x[2] ** 2, x[0] ** 2 - x[1] - x[3] ** 2])  # fmt: skip
def hs39(x):
    return -1 * x[0]


@problem(
    start=[0.8] * 4, first=-0.4096, minimum=-0.25, at=[2 ** (-1 / 3), 2 ** (-1 / 2), 2 ** (-11 / 12), 2 ** (-1 / 4)],
    source="HS 40",
    equal=lambda x: [x[0] ** 3 + x[1] ** 2 - 1, x[0] ** 2 * x[3] - x[2], x[3] ** 2 - x[1]],
)  # fmt: skip
def hs40(x):
    f = -1.0
    for i in range(4):
        f *= x[i]
    return f


@problem(start=[2] * 4, first=-6, minimum=52 / 27, at=[2 / 3, 1 / 3, 1 / 3, 2], source="HS 41", low=0,
         high=[1, 1, 1, 2],
         equal=lambda x: [x[0] + 2 * x[1] + 2 * x[2] - x[3]])  # fmt: skip
def hs41(x):
    return 2 - x[0] * x[1] * x[2]


@problem(
    start=[1] * 4, first=14, minimum=28 - 10 * sqrt(2), at=[2, 2, 0.6 * sqrt(2), 0.8 * sqrt(2)], source="HS 42",
    equal=lambda x: [x[0] - 2, x[2] ** 2 + x[3] ** 2 - 2],
)  # fmt: skip
def hs42(x):
    return sum((xi - i) ** 2 for i, xi in enumerate(x, 1))


def rosen_suzuki_constraints(x):
    x1, x2, x3, x4 = x
    return [
        8 - x1**2 - x2**2 - x3**2 - x4**2 - x1 + x2 - x3 + x4,
        10 - x1**2 - 2 * x2**2 - x3**2 - 2 * x4**2 + x1 + x4,
        5 - 2 * x1**2 - x2**2 - x3**2 - 2 * x1 + x2 + x4,
    ]


@problem(start=[0] * 4, first=0, minimum=-44, at=[0, 1, 2, -1], source="HS 43", at_least_zero=rosen_suzuki_constraints)
def hs43(x):
    x1, x2, x3, x4 = x
    return x1**2 + x2**2 + 2 * x3**2 + x4**2 - 5 * x1 - 5 * x2 - 21 * x3 + 7 * x4


C44 = np.array([[1, 2, 0, 0], [4, 1, 0, 0], [3, 4, 0, 0], [0, 0, 2, 1], [0, 0, 1, 2], [0, 0, 1, 1]])


@problem(start=[0] * 4, first=0, minimum=-15, at=[0, 3, 0, 4], source="HS 44", low=0,
         at_least_zero=lambda x: np.array([8, 12, 12, 8, 8, 5]) - C44 @ x)  # fmt: skip
def hs44(x):
    return x[0] - x[1] - x[2] - x[0] * x[2] + x[0] * x[3] + x[1] * x[2] - x[1] * x[3]


@problem(start=[2] * 5, first=26 / 15, minimum=1, at=[1, 2, 3, 4, 5], source="HS 45", low=0, high=[1, 2, 3, 4, 5])
def hs45(x):
    return 2 - np.prod(x) / math.factorial(5)
