"""Hock and Schittkowski (1981), problems 46 to 113 with constraints."""

import math
from math import exp, pi, sqrt

import numpy as np

from tests.support.objectives.corpus import problem


def hs46_constraints(x):
    return [x[0] ** 2 * x[3] + math.sin(x[3] - x[4]) - 1, x[1] + x[2] ** 4 * x[3] ** 2 - 2]


@problem(
    start=[sqrt(2) / 2, 1.75, 0.5, 2, 2], first=3.337626, minimum=0, at=[1] * 5, source="HS 46", equal=hs46_constraints
)
def hs46(x):
    return (x[0] - x[1]) ** 2 + sum((x[k] - 1) ** p for k, p in zip((2, 3, 4), (2, 4, 6), strict=True))


@problem(
    start=[2, sqrt(2), -1, 2 - sqrt(2), 0.5], first=20.7381, minimum=0, at=[1] * 5, source="HS 47",
    equal=lambda x: [x[0] + x[1] ** 2 + x[2] ** 3 - 3, x[1] - x[2] ** 2 + x[3] - 1, x[0] * x[4] - 1],
)  # fmt: skip
def hs47(x):
    d = np.diff(x)
    return np.sum((-d) ** np.array([2, 3, 4, 4]))


@problem(start=[3, 5, -3, 2, -2], first=84, minimum=0, at=[1] * 5, source="HS 48",
         equal=lambda x: [x.sum() - 5, x[2] - 2 * (x[3] + x[4]) + 3])  # fmt: skip
def hs48(x):
    return (x[0] - 1) ** 2 + (x[1] - x[2]) ** 2 + (x[3] - x[4]) ** 2


@problem(start=[10, 7, 2, -3, 0.8], first=266, minimum=0, at=[1] * 5, source="HS 49",
         equal=lambda x: np.stack([x[0] + x[1] + x[2] + 4 * x[3] - 7, x[2] + 5 * x[4] - 6]))  # fmt: skip
def hs49(x):
    return (x[0] - x[1]) ** 2 + (x[2] - 1) ** 2 + (x[3] - 1) ** 4 + (x[4] - 1) ** 6


def hs50_constraints(x):
    A = np.zeros((3, 5))
    for i in range(3):
        A[i, i : i + 3] = [1, 2, 3]
    return np.dot(A, x) - 6


@problem(start=[35, -31, 11, 5, -5], first=7516, minimum=0, at=[1] * 5, source="HS 50", equal=hs50_constraints)
def hs50(x):
    powers = [2, 2, 4, 2]
    return sum((x[i] - x[i + 1]) ** powers[i] for i in range(4))


@problem(start=[2.5, 0.5, 2, -1, 0.5], first=8.5, minimum=0, at=[1] * 5, source="HS 51",
         equal=lambda x: [x[0] + 3 * x[1] - 4, x[2] + x[3] - 2 * x[4], x[1] - x[4]])  # fmt: skip
def hs51(x):
    return (x[0] - x[1]) ** 2 + (x[1] + x[2] - 2) ** 2 + (x[3] - 1) ** 2 + (x[4] - 1) ** 2


@problem(start=[2] * 5, first=42, minimum=1859 / 349, at=np.array([-33, 11, 180, -158, 11]) / 349, source="HS 52",
         equal=lambda x: [x[0] + 3 * x[1], x[2] + x[3] - 2 * x[4], x[1] - x[4]])  # fmt: skip
def hs52(x):
    residuals = (4 * x[0] - x[1], x[1] + x[2] - 2, x[3] - 1, x[4] - 1)
    return sum(map(lambda r: r * r, residuals))  # noqa: C417


@problem(
    start=[2] * 5, first=6, minimum=176 / 43, at=np.array([-33, 11, 27, -5, 11]) / 43, source="HS 53", low=-10, high=10,
    equal=lambda x: [x[0] + 3 * x[1], x[2] + x[3] - 2 * x[4], x[1] - x[4]],
)  # fmt: skip
def hs53(x):
    r = np.array([x[0] - x[1], x[1] + x[2] - 2, x[3] - 1, x[4] - 1])
    return np.vdot(r, r)


def hs56_constraints(x):
    h = [x[i] - 4.2 * math.sin(x[i + 3]) ** 2 for i in range(3)]
    return [*h, x[0] + 2 * x[1] + 2 * x[2] - 7.2 * math.sin(x[6]) ** 2]


C56, D56 = math.asin(sqrt(4 / 7)), math.asin(sqrt(2 / 7))


@problem(
    start=[1, 1, 1, *[math.asin(sqrt(1 / 4.2))] * 3, math.asin(sqrt(5 / 7.2))], first=-1, minimum=-3.456,
    at=[2.4, 1.2, 1.2, C56, D56, D56, pi / 2], source="HS 56", equal=hs56_constraints,
)  # fmt: skip
def hs56(x):
    return -x[0] * x[1] * x[2]


@problem(
    start=[2, 2, 2], first=1, minimum=0.03256820025, at=[1.104859024, 1.196674194, 1.535262257], source="HS 60",
    tolerance=1e-9,
    low=-10, high=10, equal=lambda x: [x[0] * (1 + x[1] ** 2) + x[2] ** 4 - 4 - 3 * 2**0.5],
)  # fmt: skip
def hs60(x):
    return (x[0] - 1) ** 2 + (x[0] - x[1]) ** 2 + (x[1] - x[2]) ** 4


@problem(
    start=[0, 0, 0], first=0, minimum=-143.6461422, at=[5.326770157, -2.118998639, 3.210464239], source="HS 61",
    tolerance=1e-9,
    equal=lambda x: [3 * x[0] - 2 * x[1] ** 2 - 7, 4 * x[0] - x[2] ** 2 - 11],
)  # fmt: skip
def hs61(x):
    quadratic = np.array([4, 2, 2]) @ x**2
    linear = np.array([-33, 16, -24]) @ x
    return quadratic + linear


@problem(
    start=[0.7, 0.2, 0.1], first=-25698.3, minimum=-26272.51448, at=[0.6178126908, 0.328202223, 0.05398508606],
    source="HS 62", low=0,
    high=1, tolerance=1e-8, equal=lambda x: [sum(x) - 1],
)  # fmt: skip
def hs62(x):
    a = math.log((x[0] + x[1] + x[2] + 0.03) / (0.09 * x[0] + x[1] + x[2] + 0.03))
    b = math.log((x[1] + x[2] + 0.03) / (0.07 * x[1] + x[2] + 0.03))
    c = math.log((x[2] + 0.03) / (0.13 * x[2] + 0.03))
    return -32.174 * (255 * a + 280 * b + 290 * c)


@problem(
    start=[2, 2, 2], first=976, minimum=961.7151721, at=[3.512118414, 0.2169881741, 3.552174034], source="HS 63", low=0,
    tolerance=1e-9, equal=lambda x: [8 * x[0] + 14 * x[1] + 7 * x[2] - 56, x @ x - 25],
)  # fmt: skip
def hs63(x):
    return 1000 - x[0] ** 2 - 2 * x[1] ** 2 - x[2] ** 2 - x[0] * x[1] - x[0] * x[2]


@problem(
    start=[1, 1, 1], first=266035, minimum=6299.842428, at=[108.7347175, 85.12613942, 204.3247078], source="HS 64",
    low=1e-5,
    tolerance=1e-9, at_least_zero=lambda x: [1 - 4 / x[0] - 32 / x[1] - 120 / x[2]],
)  # fmt: skip
def hs64(x):
    cost = 0
    for price, fee, amount in zip([5, 20, 10], [50000, 72000, 144000], x, strict=True):
        cost = cost + price * amount + fee / amount
    return cost


@problem(
    start=[-5, 5, 0], first=1225 / 9, minimum=0.9535288567, at=[3.650461821, 3.65046169, 4.62041750], source="HS 65",
    tolerance=1e-8, low=[-4.5, -4.5, -5], high=[4.5, 4.5, 5], at_least_zero=lambda x: [48 - x.T.dot(x)],
)  # fmt: skip
def hs65(x):
    return (x[0] - x[1]) ** 2 + (x[0] + x[1] - 10) ** 2 / 9 + (x[2] - 5) ** 2


@problem(
    start=[0, 1.05, 2.9], first=0.58, minimum=0.5181632741, at=[0.1841264879, 1.202167873, 3.327322322], source="HS 66",
    tolerance=1e-9, low=0, high=[100, 100, 10], at_least_zero=lambda x: [x[1] - exp(x[0]), x[2] - exp(x[1])],
)  # fmt: skip
def hs66(x):
    return 0.2 * x[2] - 0.8 * x[0]


@problem(
    start=[1, 5, 5, 1], first=16, minimum=17.0140173, at=[1, 4.7429994, 3.8211503, 1.3794082], source="HS 71", low=1,
    high=5,
    tolerance=1e-7, equal=lambda x: [np.sum(x**2) - 40], at_least_zero=lambda x: [np.prod(x) - 25],
)  # fmt: skip
def hs71(x):
    return x[0] * x[3] * np.sum(x[0:3]) + x[2]


def hs73_constraints(x):
    quality = np.dot([2.3, 5.6, 11.1, 1.3], x) - 5
    spread = np.sqrt(0.28 * x[0] ** 2 + 0.19 * x[1] ** 2 + 20.5 * x[2] ** 2 + 0.62 * x[3] ** 2)
    return np.array([quality, 12 * x[0] + 11.9 * x[1] + 41.8 * x[2] + 52.1 * x[3] - 21 - 1.645 * spread])


@problem(
    start=[1] * 4, first=130.8, minimum=29.894378, at=[0.6355216, 0, 0.3127019, 0.05177655], source="HS 73", low=0,
    tolerance=1e-6,
    at_least_zero=hs73_constraints, equal=lambda x: [np.sum(x) - 1],
)  # fmt: skip
def hs73(x):
    return np.dot(np.array([24.55, 26.75, 39, 40.50]), x)


@problem(
    start=[0.5] * 4, first=-1.25, minimum=-4.681818181, at=[3 / 11, 23 / 11, 0, 6 / 11], source="HS 76", low=0,
    tolerance=1e-9,
    at_least_zero=lambda x: np.array(
        [5 - x[0] - 2 * x[1] - x[2] - x[3], 4 - 3 * x[0] - x[1] - 2 * x[2] + x[3], x[1] + 4 * x[2] - 1.5]
    ),
)  # fmt: skip
def hs76(x):
    squares = x[0] ** 2 + 0.5 * x[1] ** 2 + x[2] ** 2 + 0.5 * x[3] ** 2
    return squares - x[0] * x[2] + x[2] * x[3] - x[0] - 3 * x[1] + x[2] - x[3]


def hs77_constraints(x):
    return [
        x[0] ** 2 * x[3] + math.sin(x[3] - x[4]) - 2 * math.sqrt(2),
        x[1] + x[2] ** 4 * x[3] ** 2 - 8 - math.sqrt(2),
    ]


@problem(
    start=[2] * 5, first=4, minimum=0.24150513, at=[1.166172, 1.182111, 1.380257, 1.506036, 0.6109203], source="HS 77",
    tolerance=1e-6, equal=hs77_constraints,
)  # fmt: skip
def hs77(x):
    f = (x[0] - x[1]) ** 2
    for i, power in {0: 2, 2: 2, 3: 4, 4: 6}.items():
        f += (x[i] - 1) ** power
    return f


def hs78_constraints(x):
    h1 = sum(xi**2 for xi in x) - 10
    h2 = x[1] * x[2] - 5 * x[3] * x[4]
    h3 = x[0] ** 3 + x[1] ** 3 + 1
    return h1, h2, h3


POINT78 = [-1.717142, 1.595708, 1.827248, -0.7636429, -0.7636435]


@problem(start=[-2, 1.5, 2, -1, -1], first=-6, minimum=-2.91970041, at=POINT78, source="HS 78", tolerance=2e-6,
         equal=hs78_constraints)  # fmt: skip
def hs78(x):
    return math.prod(x)


@problem(
    start=[2] * 5, first=1, minimum=0.0787768209, at=[1.191127, 1.362603, 1.472818, 1.635017, 1.679081], source="HS 79",
    tolerance=1e-6,
    equal=lambda x: [
        x[0] + x[1] ** 2 + x[2] ** 3 - 2 - 3 * sqrt(2), x[1] - x[2] ** 2 + x[3] + 2 - 2 * sqrt(2), x[0] * x[4] - 2,
    ],
)  # fmt: skip
def hs79(x):
    d = x[:-1] - x[1:]
    return (x[0] - 1) ** 2 + d[0] ** 2 + d[1] ** 2 + d[2] ** 4 + d[3] ** 4


@problem(
    start=[-2, 2, 2, -1, -1], first=math.exp(-8), minimum=0.0539498478, at=POINT78, source="HS 80", tolerance=2e-6,
    low=[-2.3, -2.3, -3.2, -3.2, -3.2], high=[2.3, 2.3, 3.2, 3.2, 3.2], equal=hs78_constraints,
)  # fmt: skip
def hs80(x):
    return np.exp(np.prod(x))


@problem(
    start=[-2, 2, 2, -1, -1], first=math.exp(-8) - 0.5, minimum=0.0539498478, at=POINT78, source="HS 81",
    tolerance=2e-6,
    equal=hs78_constraints,
)  # fmt: skip
def hs81(x):
    return math.exp(x[0] * x[1] * x[2] * x[3] * x[4]) - 0.5 * (x[0] ** 3 + x[1] ** 3 + 1) ** 2


def hs93_constraints(x):
    x1, x2, x3, x4, x5, x6 = x
    loss = 0.00062 * x1 * x4 * x5**2 * (x1 + x2 + x3) + 0.00058 * x2 * x3 * x6**2 * (x1 + 1.57 * x2 + x4)
    return [0.001 * x1 * x2 * x3 * x4 * x5 * x6 - 2.07, 1 - loss]


@problem(
    start=[5.54, 4.4, 12.02, 11.82, 0.702, 0.852], first=137.066, minimum=135.075961, source="HS 93", low=0,
    tolerance=1e-6,
    at=[5.332666, 4.656744, 10.43299, 12.08230, 0.7526074, 0.87865084], at_least_zero=hs93_constraints,
)  # fmt: skip
def hs93(x):
    x1, x2, x3, x4, x5, x6 = x
    inner, outer = x1 + x2 + x3, x1 + 1.57 * x2 + x4
    material = 0.0204 * x1 * x4 * inner + 0.0187 * x2 * x3 * outer
    return material + 0.0607 * x1 * x4 * x5**2 * inner + 0.0437 * x2 * x3 * x6**2 * outer


def hs100_constraints(x):
    g = np.zeros(4)
    g[0] = 127 - 2 * x[0] ** 2 - 3 * x[1] ** 4 - x[2] - 4 * x[3] ** 2 - 5 * x[4]
    g[1] = 282 - 7 * x[0] - 3 * x[1] - 10 * x[2] ** 2 - x[3] + x[4]
    g[2] = 196 - 23 * x[0] - x[1] ** 2 - 6 * x[5] ** 2 + 8 * x[6]
    g[3] = -4 * x[0] ** 2 - x[1] ** 2 + 3 * x[0] * x[1] - 2 * x[2] ** 2 - 5 * x[5] + 11 * x[6]
    return g


@problem(
    start=[1, 2, 0, 4, 0, 1, 1], first=714, minimum=680.6300573, source="HS 100", tolerance=1e-7,
    at_least_zero=hs100_constraints,
    at=[2.330499, 1.951372, -0.4775414, 4.365726, -0.6244870, 1.038131, 1.594227],
)  # fmt: skip
def hs100(x):
    f = (x[0] - 10) ** 2 + 5 * (x[1] - 12) ** 2 + x[2] ** 4 + 3 * (x[3] - 11) ** 2
    f += 10 * x[4] ** 6 + 7 * x[5] ** 2 + x[6] ** 4
    f -= 4 * x[5] * x[6] + 10 * x[5] + 8 * x[6]
    return f


C112 = (-6.089, -17.164, -34.054, -5.914, -24.721, -14.986, -24.100, -10.708, -26.662, -22.179)


def hs112_constraints(x):
    hydrogen = x[0] + 2 * x[1] + 2 * x[2] + x[5] + x[9] - 2
    nitrogen = x[3] + 2 * x[4] + x[5] + x[6] - 1
    oxygen = x[2] + x[6] + x[7] + 2 * x[8] + x[9] - 1
    return np.array([hydrogen, nitrogen, oxygen])


@problem(
    start=[0.1] * 10, first=-20.960285, minimum=-47.707579,
    source="HS 112; its printed point is not quite the optimum", low=1e-6,
    at=[0.01773548, 0.08200180, 0.8825646, 0.7233256e-3, 0.4907851, 0.4335469e-3, 0.01727298, 0.007765639, 0.01984929,
        0.05269826],
    tolerance=1e-6, equal=hs112_constraints, smooth=False,
)  # fmt: skip
def hs112(x):
    total = np.sum(x)
    return sum([x[j] * (C112[j] + np.log(x[j] / total)) for j in range(10)])


def hs113_constraints(x):
    x1, x2, x3, x4, x5, x6, x7, x8, x9, x10 = x
    return np.array([
        105 - 4 * x1 - 5 * x2 + 3 * x7 - 9 * x8,
        -10 * x1 + 8 * x2 + 17 * x7 - 2 * x8,
        8 * x1 - 2 * x2 - 5 * x9 + 2 * x10 + 12,
        -3 * (x1 - 2) ** 2 - 4 * (x2 - 3) ** 2 - 2 * x3**2 + 7 * x4 + 120,
        -5 * x1**2 - 8 * x2 - (x3 - 6) ** 2 + 2 * x4 + 40,
        -0.5 * (x1 - 8) ** 2 - 2 * (x2 - 4) ** 2 - 3 * x5**2 + x6 + 30,
        -(x1**2) - 2 * (x2 - 2) ** 2 + 2 * x1 * x2 - 14 * x5 + 6 * x6,
        3 * x1 - 6 * x2 - 12 * (x9 - 8) ** 2 + 7 * x10,
    ])  # fmt: skip


@problem(
    start=[2, 3, 5, 5, 1, 2, 7, 3, 6, 10], first=753, minimum=24.3062091, source="HS 113", tolerance=1e-6,
    at=[2.171996, 2.363683, 8.773926, 5.095984, 0.9906548, 1.430574, 1.321644, 9.828726, 8.280092, 8.375927],
    at_least_zero=hs113_constraints,
)  # fmt: skip
def hs113(x):
    centre = np.array([10, 5, 3, 1, 0, 11, 10, 7])
    weights = np.array([1, 4, 1, 2, 5, 7, 2, 1])
    head = x[0] ** 2 + x[1] ** 2 + x[0] * x[1] - 14 * x[0] - 16 * x[1]
    return head + np.sum(weights * (x[2:] - centre) ** 2) + 45
