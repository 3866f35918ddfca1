"""Unconstrained problems of the CUTEst collection (Bongartz, Conn, Gould, Toint, 1995, and later), small sizes."""

import math

import numpy as np
import numpy.linalg as la

from tests.support.objectives.corpus import problem


@problem(start=np.ones(5), first=12, minimum=0, at=[1, 1, 1, 1, 0], source="CUTEst ARWHEAD")
def arwhead(x):
    n = len(x)
    return sum(-4 * x[i] + 3 for i in range(n - 1)) + sum((x[i] ** 2 + x[n - 1] ** 2) ** 2 for i in range(n - 1))


@problem(start=[3, 3, 3, 3, 3], first=5427, minimum=0, at=np.zeros(5), source="CUTEst DQDRTIC")
def dqdrtic(x):
    f = 0.0
    i = 0
    while i < len(x) - 2:
        f += x[i] ** 2 + 100 * x[i + 1] ** 2 + 100 * x[i + 2] ** 2
        i += 1
    return f


@problem(start=[4] * 4, first=2340, minimum=0, at=np.ones(4), source="CUTEst LIARWHD")
def liarwhd(x):
    return np.sum(4 * (x**2 - x[0]) ** 2 + (x - 1) ** 2)


@problem(start=np.ones(5), first=14, minimum=0, at=[0.5 ** (i - 1) for i in range(1, 6)], source="CUTEst TRIDIA")
def tridia(x, alpha=2.0, beta=1.0, gamma=1.0, delta=1.0):
    f = gamma * (delta * x[0] - 1) ** 2
    for i in range(2, len(x) + 1):
        f += i * (alpha * x[i - 1] - beta * x[i - 2]) ** 2
    return f


@problem(start=[-1] * 4, first=1204, minimum=0, at=np.ones(4), source="CUTEst NONDIA")
def nondia(x):
    f = (x[0] - 1) ** 2
    for xi in x[:-1]:
        f = f + 100 * (x[0] - xi**2) ** 2
    return f


@problem(start=[1] * 4, first=30, minimum=0, at=np.zeros(4), source="CUTEst POWER")
def power(x):
    i = np.arange(1, x.size + 1)
    return np.dot(i * x, i * x)


@problem(start=[2] * 4, first=18, minimum=0, at=[1, 2, 3, 4], source="CUTEst QUARTC")
def quartc(x):
    f = 0
    for i in range(len(x)):
        f += (x[i] - (i + 1)) ** 4
    return f


@problem(start=[2, 2], first=59, minimum=0, at=[1, 0], source="CUTEst ENGVAL1")
def engval1(x):
    first = np.sum((x[:-1] ** 2 + x[1:] ** 2) ** 2)
    second = np.sum(-4 * x[:-1] + 3)
    return first + second


@problem(start=[1, 2, 0], first=629, minimum=0, at=[0, 0, 1], source="CUTEst ENGVAL2", unpacked=True)
def engval2(x1, x2, x3):
    f1 = x1**2 + x2**2 + x3**2 - 1
    f2 = x1**2 + x2**2 + (x3 - 2) ** 2 - 1
    f3 = x1 + x2 + x3 - 1
    f4 = x1 + x2 - x3 + 1
    f5 = 3 * x2**2 + x1**3 + (5 * x3 - x1 + 1) ** 2 - 36
    return la.norm(np.array([f1, f2, f3, f4, f5])) ** 2


@problem(
    start=np.ones(5),
    first=4 * math.cos(0.5),
    minimum=-4,
    at=[0.25 + math.sqrt(1 / 16 + math.pi)] * 5,
    source="CUTEst COSINE",
)
def cosine(x):
    return np.sum(np.cos(-0.5 * x[1:] + x[:-1] ** 2))


@problem(start=[1, 1], first=5 + (math.e - 1) ** 2, minimum=0, at=[0, 0], source="CUTEst DENSCHNA", unpacked=True)
def denschna(x, y):
    return x**4 + (x + y) ** 2 + (-1 + np.exp(y)) ** 2


@problem(start=[1, 1], first=6, minimum=0, at=[2, -1], source="CUTEst DENSCHNB", unpacked=True)
def denschnb(x, y):
    return (x - 2) ** 2 + ((x - 2) * y) ** 2 + (y + 1) ** 2


@problem(start=[2, 3], first=121 + (25 + math.e) ** 2, minimum=0, at=[1, 1], source="CUTEst DENSCHNC")
def denschnc(x):
    return (-2 + x[0] ** 2 + x[1] ** 2) ** 2 + (-2 + math.exp(x[0] - 1) + x[1] ** 3) ** 2


@problem(start=[2, 0], first=464, minimum=0, at=[1, 1], source="CUTEst DENSCHNF", unpacked=True)
def denschnf(x1, x2):
    def square(v):
        return v**2

    inner = square(x1 + x2) + square(x1 - x2)
    return square(2 * inner - 8) + square(5 * x1**2 + (x2 - 3) ** 2 - 9)


@problem(
    start=[2, 2], first=5.99, minimum=0.16904, at=[1.795, 1.378], source="CUTEst BRKMCC", rounded=True, tolerance=1e-5
)
def brkmcc(x):
    obj = (x[0] - 2) ** 2 + (x[1] - 1) ** 2
    obj = obj + 0.04 / (-0.25 * x[0] ** 2 - x[1] ** 2 + 1)
    obj = obj + 5 * (x[0] - 2 * x[1] + 1) ** 2
    return obj


@problem(
    start=[0, -1], first=9e-4 - 1 + math.exp(20), minimum=0.199786613, at=[3, 3.1497866], source="CUTEst CLIFF",
    rounded=True, tolerance=1e-8,
    unpacked=True,
)  # fmt: skip
def cliff(a, b):
    return ((a - 3) / 100) ** 2 - (a - b) + np.exp(20 * (a - b))


@problem(start=[3, 8], first=-16.6, minimum=-18.2, at=[4, 9], source="CUTEst ZANGWIL2")
def zangwil2(x):
    return (16 * x[0] ** 2 + 16 * x[1] ** 2 - 8 * x[0] * x[1] - 56 * x[0] - 256 * x[1] + 991) / 15


@problem(start=[1, 0.1], first=2.9803, minimum=0, at=[0, 0], source="CUTEst SISSER")
def sisser(x):
    return 3 * x[0] ** 4 - 2 * (x[0] * x[1]) ** 2 + 3 * x[1] ** 4


@problem(
    start=[0, 0],
    first=24.0625,
    minimum=0.2405106,
    at=[0.479, 0.688],
    source="CUTEst EXPFIT",
    rounded=True,
    tolerance=1e-7,
)
def expfit(x):
    p, h = 10, 0.25
    total = 0
    for i in range(1, p + 1):
        total = total + (x[0] * math.exp(i * h * x[1]) - i * h) ** 2
    return total


@problem(start=[2] * 6, first=58, minimum=1, at=np.zeros(6), source="CUTEst DIXMAANA")
def dixmaana(x):
    n = len(x)
    m = n // 3
    alpha, beta, gamma, delta = 1.0, 0.0, 0.125, 0.125
    f = 1 + alpha * np.sum(x**2)
    f += beta * sum(x[i] ** 2 * (x[i + 1] + x[i + 1] ** 2) ** 2 for i in range(n - 1))
    f += gamma * sum(x[i] ** 2 * x[i + m] ** 4 for i in range(2 * m))
    f += delta * sum(x[i] * x[i + 2 * m] for i in range(m))
    return f


@problem(start=[1.5, 0.4, -0.6, 0.2], minimum=1, at=np.ones(4), source="CUTEst GENROSE")
def genrose(x):
    s = 1.0
    for k in range(1, len(x)):
        s += 100 * (x[k] - x[k - 1] ** 2) ** 2 + (x[k] - 1) ** 2
    return s


@problem(
    start=[1, 2, 2, 2], first=(math.e - 2) ** 4 + 2, minimum=0, at=[0, 1, 1, 1], source="CUTEst CRAGGLVY with n = 4"
)
def cragglvy(x):
    f = (np.exp(x[0]) - x[1]) ** 4 + 100 * (x[1] - x[2]) ** 6
    f += (np.tan(x[2] - x[3]) + x[2] - x[3]) ** 4 + x[0] ** 8
    f += (x[3] - 1) ** 2
    return f


@problem(start=[0.5, 0.5], first=1.25 / math.e, minimum=0, at=[0, 0], source="CUTEst HIMMELBG")
def himmelbg(x):
    a, b = x.tolist()
    return np.exp(-(a + b)) * (2 * a**2 + 3 * b**2)


@problem(start=[-1.2, 1], first=26656.13, minimum=0, at=[0, 0], source="CUTEst HIMMELBB", unpacked=True)
def himmelbb(x1, x2):
    return (x1 * x2 * (1 - x1) * (1 - x2 - x1 * (1 - x1) ** 5)) ** 2


@problem(start=[0.1] * 5, first=0.03228175, minimum=0, at=np.zeros(5), source="CUTEst HILBERTA")
def hilberta(x):
    n = len(x)
    H = np.array([[1 / (i + j + 1) for j in range(n)] for i in range(n)])
    return 0.5 * x @ (H @ x)


@problem(start=[-3, -1, -3, -1], first=19193, minimum=1, at=[1, 1, 1, 1], source="CUTEst CHAINWOO with n = 4")
def chainwoo(x):
    f = 1.0
    for j in range(0, len(x) - 2, 2):
        f += 100 * (x[j + 1] - x[j] ** 2) ** 2 + (1.0 - x[j]) ** 2 + 90 * (x[j + 3] - x[j + 2] ** 2) ** 2
        f += (1.0 - x[j + 2]) ** 2 + 10 * (x[j + 1] + x[j + 3] - 2) ** 2 + 0.1 * (x[j + 1] - x[j + 3]) ** 2
    return f


@problem(start=[0.1] * 4, first=0.6561, minimum=0, at=np.ones(4), source="CUTEst SINQUAD")
def sinquad(x):
    last = len(x) - 1
    f = (x[0] - 1) ** 4 + (x[last] ** 2 - x[0] ** 2) ** 2
    for i in range(1, last):
        f += (np.sin(x[i] - x[last]) - x[0] ** 2 + x[i] ** 2) ** 2
    return f


@problem(start=[1, 1, 1], first=5, minimum=0, at=[0, 0, 0], source="CUTEst DENSCHND", unpacked=True)
def denschnd(x1, x2, x3):
    a = x1**2 + x2**3 - x3**4
    b = 2 * x1 * x2 * x3
    c = 2 * x1 * x2 - 3 * x2 * x3 + x1 * x3
    return a * a + b * b + c * c
