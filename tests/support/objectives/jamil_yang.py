"""Jamil and Yang: A literature survey of benchmark functions (2013), Ackley to Keane."""

import math
from functools import reduce
from math import pi

import numpy as np
from numpy import cos, exp, sin, sqrt

from tests.support.objectives.corpus import problem


@problem(start=[1.1, -0.7, 0.4], minimum=0, at=np.zeros(3), source="JY, Ackley 1", smooth=False)
def ackley_1(x):
    D = len(x)
    sum1 = 0
    sum2 = 0
    for i in range(D):
        sum1 += x[i] ** 2
        sum2 += math.cos(2 * math.pi * x[i])
    return -20 * math.exp(-0.02 * math.sqrt(sum1 / D)) - math.exp(sum2 / D) + 20 + math.e


@problem(start=[3, -5], minimum=-200, at=[0, 0], source="JY, Ackley 2", unpacked=True, smooth=False)
def ackley_2(x, y):
    return -200 * np.exp(-0.02 * np.hypot(x, y))


@problem(
    start=[1, -1], minimum=-195.629028238419, at=[0.682584587365898, -0.36075325513719], source="JY, Ackley 3",
    rounded=True,
    unpacked=True, tolerance=2e-10,
)  # fmt: skip
def ackley_3(x1, x2):
    """Three times cos 3 x1 and sin 3 x2, with the signs of the published code, whose optimum this is."""
    return -200 * exp(-0.02 * sqrt(x1**2 + x2**2)) + 5 * exp(cos(3 * x1) + sin(3 * x2))


@problem(
    start=[1, 0.5], minimum=-2.02181, at=[2, 0.10578347], source="JY, Adjiman", tolerance=1e-5, low=[-1, -1],
    high=[2, 1],
    unpacked=True,
)  # fmt: skip
def adjiman(x1, x2):
    return math.cos(x1) * math.sin(x2) - x1 / (x2**2 + 1)


@problem(start=[1.0, -2.0, 3.0], minimum=0, at=np.zeros(3), source="JY, Alpine 1", smooth=False)
def alpine_1(x):
    return sum(abs(xi * sin(xi) + 0.1 * xi) for xi in x)


@problem(
    start=[7.5, 8.2], minimum=-(2.808131180**2), at=[7.9170527] * 2, source="JY, Alpine 2, negated", tolerance=1e-8
)
def alpine_2(x):
    return -np.prod(np.sqrt(x) * np.sin(x))


@problem(start=[3, -2], minimum=1, at=[0, 0], source="JY, Bartels Conn", smooth=False)
def bartels_conn(x):
    return abs(x[0] ** 2 + x[1] ** 2 + x[0] * x[1]) + abs(math.sin(x[0])) + abs(math.cos(x[1]))


@problem(start=[2, 7, 4], minimum=0, at=[1, 10, 5], source="JY, Biggs Exp3", unpacked=True)
def biggs_exp3(*x):
    value = 0.0
    for i in range(1, 11):
        t = 0.1 * i
        y = math.exp(-t) - 5 * math.exp(-10 * t)
        value += (math.exp(-t * x[0]) - x[2] * math.exp(-t * x[1]) - y) ** 2
    return value


@problem(
    start=[4, 3], minimum=-106.764537, at=[[4.70104, 3.15294], [-1.58214, -3.13024]], source="JY, Bird", tolerance=1e-7,
    unpacked=True, rounded=True,
)  # fmt: skip
def bird(x, y):
    return np.sin(x) * np.exp((1 - np.cos(y)) ** 2) + np.cos(y) * np.exp((1 - np.sin(x)) ** 2) + (x - y) ** 2


@problem(start=[0.6, -0.4], minimum=0, at=[0, 0], source="JY, Bohachevsky 1", unpacked=True)
def bohachevsky_1(x1, x2):
    return x1**2 + 2 * x2**2 - 0.3 * cos(3 * pi * x1) - 0.4 * cos(4 * pi * x2) + 0.7


@problem(start=[0.6, -0.4], minimum=0, at=[0, 0], source="JY, Bohachevsky 2", unpacked=True)
def bohachevsky_2(x1, x2):
    return x1**2 + 2 * x2**2 - 0.3 * math.cos(3 * math.pi * x1) * math.cos(4 * math.pi * x2) + 0.3


@problem(start=[0.6, -0.4], minimum=0, at=[0, 0], source="JY, Bohachevsky 3")
def bohachevsky_3(x):
    a, b = 3 * np.pi * x[0], 4 * np.pi * x[1]
    return x @ np.diag([1, 2]) @ x - 0.3 * np.cos(a + b) + 0.3


@problem(start=[0, 0], first=74, minimum=0, at=[1, 3], source="JY, Booth", unpacked=True)
def booth(x, y):
    return (x + 2 * y - 7) ** 2 + (2 * x + y - 5) ** 2


@problem(
    start=[1, 1], minimum=0.39788735772973816, at=[[-pi, 12.275], [pi, 2.275], [3 * pi, 2.475]], source="JY, Branin",
)  # fmt: skip
def branin(x):
    a, b, c, r, s, t = 1, 5.1 / (4 * pi**2), 5 / pi, 6, 10, 1 / (8 * pi)
    return a * (x[1] - b * x[0] ** 2 + c * x[0] - r) ** 2 + s * (1 - t) * math.cos(x[0]) + s


@problem(start=[-9, -11], minimum=0, at=[-10, -10], source="JY, Brent", unpacked=True)
def brent(x1, x2):
    return (x1 + 10) ** 2 + (x2 + 10) ** 2 + math.exp(-(x1**2) - x2**2)


@problem(start=[0.5, -0.7, 1.2, 0.9], minimum=0, at=np.zeros(4), source="JY, Brown")
def brown(x):
    squares = np.power(x, 2)
    return np.sum(squares[:-1] ** (squares[1:] + 1) + squares[1:] ** (squares[:-1] + 1))


@problem(start=[-8, 2], minimum=0, at=[-10, 0], source="JY, Bukin 4", unpacked=True, smooth=False)
def bukin_4(x1, x2):
    return 100 * x2**2 + 0.01 * abs(x1 + 10)


@problem(start=[-8, 2], minimum=0, at=[-10, 1], source="JY, Bukin 6", smooth=False)
def bukin_6(x):
    return 100 * np.sqrt(np.fabs(x[1] - 0.01 * x[0] ** 2)) + 0.01 * np.fabs(x[0] + 10)


@problem(start=[1, -1], minimum=0, at=[0, 0], source="JY, Camel Three Hump", unpacked=True)
def camel_three_hump(x, y):
    terms = [2 * x**2, -1.05 * x**4, x**6 / 6, x * y, y**2]
    return reduce(lambda s, t: s + t, terms)


@problem(
    start=[0.5, 0.5], minimum=-1.0316284534898774, at=[[0.08984201, -0.7126564], [-0.08984201, 0.7126564]],
    source="JY, Camel Six Hump", tolerance=1e-12,
)  # fmt: skip
def camel_six_hump(x):
    return (4 - 2.1 * x[0] ** 2 + x[0] ** 4 / 3) * x[0] ** 2 + x[0] * x[1] + (4 * x[1] ** 2 - 4) * x[1] ** 2


@problem(
    start=[5, 1], minimum=-42.9443870189910, at=[6.18986658696568, 0.5], source="JY, Chichinadze, by Gavana",
    tolerance=1e-9,
    unpacked=True,
)  # fmt: skip
def chichinadze(x, y):
    first = x**2 - 12 * x + 11 + 10 * math.cos(math.pi * x / 2) + 8 * math.sin(5 * math.pi * x / 2)
    return first - 0.2**0.5 * math.exp(-0.5 * (y - 0.5) ** 2)


@problem(start=[1, -2, 3], minimum=0, at=np.zeros(3), source="JY, Chung Reynolds")
def chung_reynolds(x):
    return sum([v**2 for v in x]) ** 2


@problem(start=[0, 0, 0, 0], first=42, minimum=0, at=[1, 1, 1, 1], source="JY, Colville", unpacked=True)
def colville(x1, x2, x3, x4):
    f = 100 * (x1 - x2**2) ** 2 + (1 - x1) ** 2 + 90 * (x4 - x3**2) ** 2 + (1 - x3) ** 2
    f += 10.1 * ((x2 - 1) ** 2 + (x4 - 1) ** 2)
    f += 19.8 * (x2 - 1) * (x4 - 1)
    return f


@problem(start=[0.3, -0.2, 0.1, 0.4], minimum=-0.4, at=np.zeros(4), source="JY, Cosine Mixture, negated")
def cosine_mixture(x):
    return -0.1 * np.cos(5 * np.pi * x).sum() + (x**2).sum()


@problem(
    start=[1, 1.2],
    minimum=-2.06261218,
    at=[1.349406685353340, 1.349406608602084],
    source="JY, Cross In Tray",
    tolerance=2e-7,
)
def cross_in_tray(x):
    inside = abs(math.sin(x[0]) * math.sin(x[1]) * math.exp(abs(100 - math.sqrt(x[0] ** 2 + x[1] ** 2) / math.pi)))
    return -0.0001 * (inside + 1) ** 0.1


@problem(start=[0.5, -0.7], minimum=0, at=[0, 0], source="JY, Csendes")
def csendes(x):
    total = 0.0
    for xi in x:
        if xi == 0:
            continue
        total += xi**6 * (2 + math.sin(1 / xi))
    return total


@problem(start=[-1.2, 1], minimum=0, at=[1, 1], source="JY, Cube", unpacked=True)
def cube(x, y):
    return 100 * pow(y - x**3, 2) + pow(1 - x, 2)


@problem(start=[0.3, 0.42], minimum=-1, at=[[0.1, 0.3], [-0.1, 0.5]], source="JY, Deb 1")
def deb_1(x):
    D = x.size
    return -(1 / D) * np.sum(np.sin(5 * np.pi * x) ** 6)


@problem(
    start=[1, 12], minimum=-24776.518342317686, at=[[0, 14.9451127], [0, -14.9451127]], source="JY, Deckkers Aarts",
    rounded=True,
    tolerance=1e-12, unpacked=True,
)  # fmt: skip
def deckkers_aarts(x1, x2):
    r2 = x1**2 + x2**2
    return 1e5 * x1**2 + x2**2 - r2**2 + 1e-5 * r2**4


@problem(
    start=[1, 1, 1],
    minimum=0,
    at=[2 ** -((2**i - 2) / 2**i) for i in range(1, 4)],
    source="JY, Dixon Price",
    tolerance=1e-14,
)
def dixon_price(x):
    n = len(x)
    return (x[0] - 1) ** 2 + sum(i * (2 * x[i - 1] ** 2 - x[i - 2]) ** 2 for i in range(2, n + 1))


@problem(start=[3, 2.5], minimum=-1, at=[pi, pi], source="JY, Easom")
def easom(x):
    return -math.cos(x[0]) * math.cos(x[1]) * math.exp(-((x[0] - math.pi) ** 2) - (x[1] - math.pi) ** 2)


@problem(
    start=[3, -2], minimum=1.712780354862198, at=[3.40918683, -2.17143304], source="JY, El Attar Vidyasagar Dutta",
    rounded=True,
    tolerance=1e-12, unpacked=True,
)  # fmt: skip
def el_attar_vidyasagar_dutta(x1, x2):
    return (x1**2 + x2 - 10) ** 2 + (x1 + x2**2 - 7) ** 2 + (x1**2 + x2**3 - 1) ** 2


@problem(start=[1, -2], minimum=0, at=[0, 0], source="JY, Egg Crate")
def egg_crate(x):
    return x[0] ** 2 + x[1] ** 2 + 25 * (math.sin(x[0]) ** 2 + math.sin(x[1]) ** 2)


@problem(
    start=[500, 400],
    minimum=-959.640662711,
    at=[512, 404.231805],
    source="JY, Egg Holder",
    tolerance=1e-8,
    low=-512,
    high=512,
)
def egg_holder(x):
    s = 0.0
    for i in range(len(x) - 1):
        a, b = x[i], x[i + 1]
        s += -(b + 47) * math.sin(math.sqrt(abs(b + a / 2 + 47))) - a * math.sin(math.sqrt(abs(a - (b + 47))))
    return s


@problem(start=[0.3, -0.5, 0.7], minimum=-1, at=np.zeros(3), source="JY, Exponential")
def exponential(x):
    return -np.exp(-0.5 * np.sum(x**2))


@problem(start=[3, 12], minimum=0, at=[1, 10], source="JY, Exp 2", unpacked=True)
def exp_2(x1, x2):
    f = []
    for i in range(10):
        f.append((np.exp(-i * x1 / 10) - 5 * np.exp(-i * x2 / 10) - np.exp(-i / 10) + 5 * np.exp(-i)) ** 2)
    return np.sum(f)


@problem(start=[0.1, 0.8], minimum=0.0644704205369, at=[0.4673200277395354] * 2, source="JY, Giunta", tolerance=1e-10)
def giunta(x):
    u = 16 / 15 * x - 1
    return 0.6 + np.sum(np.sin(u) + np.sin(u) ** 2 + np.sin(4 * u) / 50)


@problem(start=[0.5, -0.5], minimum=3, at=[0, -1], source="JY, Goldstein Price", unpacked=True)
def goldstein_price(a, b):
    left = 1 + (a + b + 1) ** 2 * (19 - 14 * a + 3 * a**2 - 14 * b + 6 * a * b + 3 * b**2)
    return left * (30 + (2 * a - 3 * b) ** 2 * (18 - 32 * a + 12 * a**2 + 48 * b - 36 * a * b + 27 * b**2))


@problem(start=[3, -4, 2], minimum=0, at=np.zeros(3), source="JY, Griewank")
def griewank(x):
    p = 1.0
    for i, xi in enumerate(x):
        p *= math.cos(xi / math.sqrt(i + 1))
    return sum(map(lambda v: v**2 / 4000, x)) - p + 1  # noqa: C417


@problem(
    start=[-7, -7.5], minimum=-176.541793, at=[-7.589893, -7.708314], source="JY, Hansen", rounded=True, tolerance=1e-8,
    unpacked=True,
)  # fmt: skip
def hansen(x1, x2):
    i = np.arange(5)
    return np.sum((i + 1) * np.cos(i * x1 + i + 1)) * np.sum((i + 1) * np.cos((i + 2) * x2 + i + 1))


A3 = [[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]]
P3 = [[0.3689, 0.1170, 0.2673], [0.4699, 0.4387, 0.7470], [0.1091, 0.8732, 0.5547], [0.03815, 0.5743, 0.8828]]


@problem(
    start=[0.5, 0.5, 0.5],
    minimum=-3.86278,
    at=[0.1140, 0.5556, 0.8525],
    source="JY, Hartman 3",
    rounded=True,
    tolerance=2e-6,
)
def hartman_3(x):
    c = [1, 1.2, 3, 3.2]
    result = 0
    for i in range(4):
        inner = 0
        for j in range(3):
            inner += A3[i][j] * (x[j] - P3[i][j]) ** 2
        result -= c[i] * math.exp(-inner)
    return result


A6 = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
P6 = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


@problem(
    start=[0.25, 0.2, 0.45, 0.3, 0.3, 0.6], minimum=-3.32237, source="JY, Hartman 6", rounded=True, tolerance=1e-6,
    at=[0.201690, 0.150011, 0.476874, 0.275332, 0.311652, 0.657301],
)  # fmt: skip
def hartman_6(x):
    return -np.dot([1, 1.2, 3, 3.2], np.exp(-np.sum(A6 * (x - P6) ** 2, axis=1)))


@problem(
    start=[0, 0], first=170, minimum=0, source="JY, Himmelblau", rounded=True, unpacked=True,
    at=[[3, 2], [-2.805118, 3.131312], [-3.779310, -3.283186], [3.584428, -1.848126]],
)  # fmt: skip
def himmelblau(x, y):
    return (x * x + y - 11) ** 2 + (x + y * y - 7) ** 2


@problem(start=[3, 1.5], minimum=-2.345811576101292, at=[4, 2], source="JY, Hosaki", unpacked=True)
def hosaki(x1, x2):
    polynomial = np.polyval([1 / 4, -7 / 3, 7, -8, 1], x1)
    return polynomial * x2**2 * math.exp(-x2)


@problem(
    start=[1, 1.5], minimum=-0.673667521146855, at=[[0, 1.3932490753257145], [1.3932490753257145, 0]],
    source="JY, Keane, negated", tolerance=1e-9, unpacked=True,
)  # fmt: skip
def keane(x1, x2):
    return -(math.sin(x1 - x2) ** 2) * math.sin(x1 + x2) ** 2 / math.sqrt(x1**2 + x2**2)
