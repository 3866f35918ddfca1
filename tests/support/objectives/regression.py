"""Nonlinear regression: NIST's reference datasets (StRD) with their certified values; Bates and Watts (1988)."""

import math

import numpy as np

from tests.support.objectives.corpus import problem

MISRA_X = [77.6, 114.9, 141.1, 190.8, 239.9, 289.0, 332.8, 378.4, 434.8, 477.3, 536.8, 593.1, 689.1, 760.0]
MISRA_Y = [10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05, 61.01, 66.40, 75.47, 81.78]


@problem(
    start=[250, 5e-4], minimum=1.2455138894e-01, at=[2.3894212918e02, 5.5015643181e-04], source="StRD Misra1a",
    rounded=True, tolerance=1e-11,
)  # fmt: skip
def misra1a(b):
    rss = 0.0
    for x, y in zip(MISRA_X, MISRA_Y, strict=True):
        rss += (y - b[0] * (1 - math.exp(-b[1] * x))) ** 2
    return rss


@problem(
    start=[300, 2e-4], minimum=7.5464681533e-02, at=[3.3799746163e02, 3.9039091287e-04], source="StRD Misra1b",
    rounded=True, tolerance=1e-11,
)  # fmt: skip
def misra1b(beta):
    b1, b2 = beta
    model = lambda x: b1 * (1 - (1 + b2 * x / 2) ** (-2))  # noqa: E731
    return np.sum([(model(x) - y) ** 2 for x, y in zip(MISRA_X, MISRA_Y, strict=True)])


@problem(
    start=[600, 2e-4], minimum=4.0966836971e-02, at=[6.3642725809e02, 2.0813627256e-04], source="StRD Misra1c",
    rounded=True, tolerance=1e-11, unpacked=True, residuals=True,
)  # fmt: skip
def misra1c(b1, b2):
    x = np.asarray(MISRA_X)
    return np.asarray(MISRA_Y) - b1 * (1 - (1 + 2 * b2 * x) ** (-0.5))


def make_chi_squared(model, x, y):
    def chi_squared(parameters):
        return np.sum((model(x, *parameters) - y) ** 2)

    return chi_squared


misra1d = make_chi_squared(lambda x, b1, b2: b1 * b2 * x / (1 + b2 * x), np.array(MISRA_X), np.array(MISRA_Y))
misra1d.__name__ = "misra1d"
problem(
    start=[450, 3e-4], minimum=5.6419295283e-02, at=[4.3736970754e02, 3.0227324449e-04], source="StRD Misra1d",
    rounded=True, tolerance=1e-11,
)(misra1d)  # fmt: skip


class DanWood:
    """Power law, as a class that keeps its data."""

    def __init__(self, x, y):
        self.x, self.y = np.array(x), np.array(y)

    def predict(self, b):
        return b[0] * np.power(self.x, b[1])

    def __call__(self, b):
        residual = self.y - self.predict(b)
        return np.dot(residual, residual)


problem(
    start=[0.7, 4], minimum=4.3173084083e-03, at=[7.6886226176e-01, 3.8604055871], source="StRD DanWood",
    rounded=True, tolerance=1e-12,
)(
    DanWood([1.309, 1.471, 1.490, 1.565, 1.611, 1.680], [2.138, 3.421, 3.597, 4.340, 4.882, 5.660])
)  # fmt: skip


@problem(
    start=[180, 0.5], minimum=1.1680088766e03, at=[2.1380940889e02, 5.4723748542e-01], source="StRD BoxBOD",
    rounded=True, tolerance=1e-10, residuals=True,
)  # fmt: skip
def boxbod(b):
    table = np.array([[109, 1], [149, 2], [149, 3], [191, 5], [213, 7], [224, 10]])
    for y, x in table:
        yield y - b[0] * (1 - np.exp(-b[1] * x))


@problem(
    start=[75, 2.5, 0.07], minimum=8.0565229338, source="StRD Rat42", rounded=True, tolerance=1e-10,
    at=[7.2462237576e01, 2.6180768402, 6.7359200066e-02],
)  # fmt: skip
def rat42(b):
    y = np.array([8.93, 10.80, 18.59, 22.33, 39.35, 56.11, 61.73, 64.62, 67.08])
    x = np.array([9, 14, 21, 28, 42, 57, 63, 70, 79], dtype=float)
    e = y - b[0] / (1 + np.exp(b[1] - b[2] * x))
    return e.T @ e


RAT43_Y = """16.08 33.83 65.80 97.20 191.55 326.20 386.87 520.53 590.03 651.92 724.93 699.56 689.96 637.56 717.41"""


@problem(
    start=[700, 5, 0.75, 1.3], minimum=8.7864049080e03, source="StRD Rat43", rounded=True, tolerance=1e-10,
    at=[6.9964151270e02, 5.2771253025, 7.5962938329e-01, 1.2792483859], unpacked=True,
)  # fmt: skip
def rat43(b1, b2, b3, b4):
    data = [float(word) for word in RAT43_Y.split()]
    residuals = np.zeros(len(data))
    for x, y in enumerate(data, start=1):
        residuals[x - 1] = y - b1 / (1 + math.exp(b2 - b3 * x)) ** (1 / b4)
    return (residuals * residuals).sum()


THURBER_Y = np.array([
    80.574, 84.248, 87.264, 87.195, 89.076, 89.608, 89.868, 90.101, 92.405, 95.854, 100.696, 101.060, 401.672, 390.724,
    567.534, 635.316, 733.054, 759.087, 894.206, 990.785, 1090.109, 1080.914, 1122.643, 1178.351, 1260.531, 1273.514,
    1288.339, 1327.543, 1353.863, 1414.509, 1425.208, 1421.384, 1442.962, 1464.350, 1468.705, 1447.894, 1457.628,
])  # fmt: skip
THURBER_X = np.array([
    -3.067, -2.981, -2.921, -2.912, -2.840, -2.797, -2.702, -2.699, -2.633, -2.481, -2.363, -2.322, -1.501, -1.460,
    -1.274, -1.212, -1.100, -1.046, -0.915, -0.714, -0.566, -0.545, -0.400, -0.309, -0.109, -0.103, 0.010, 0.119,
    0.377, 0.790, 0.963, 1.006, 1.115, 1.572, 1.841, 2.047, 2.200,
])  # fmt: skip


@problem(
    start=[1300, 1500, 500, 75, 1, 0.4, 0.05], minimum=5.6427082397e03, source="StRD Thurber", rounded=True,
    at=[1.2881396800e03, 1.4910792535e03, 5.8323836877e02, 7.5416644291e01, 9.6629502864e-01, 3.9797285797e-01,
        4.9727297349e-02],
    tolerance=1e-10,
)  # fmt: skip
def thurber(b):
    numerator = np.polyval(b[3::-1], THURBER_X)
    denominator = 1 + THURBER_X * np.polyval(b[:3:-1], THURBER_X)
    return np.sum((THURBER_Y - numerator / denominator) ** 2)


ECKERLE_Y = [
    0.0001575, 0.0001699, 0.0002350, 0.0003102, 0.0004917, 0.0008710, 0.0017418, 0.0046400, 0.0065895, 0.0097302,
    0.0149002, 0.0237310, 0.0401683, 0.0712559, 0.1264458, 0.2073413, 0.2902366, 0.3445623, 0.3698049, 0.3668534,
    0.3106727, 0.2078154, 0.1164354, 0.0616764, 0.0337200, 0.0194023, 0.0117831, 0.0074357, 0.0022732, 0.0008800,
    0.0004579, 0.0002345, 0.0001586, 0.0001143, 0.0000710,
]  # fmt: skip


@problem(
    start=[1.5, 5, 450], minimum=1.4635887487e-03, at=[1.5543827178, 4.0888321754, 4.5154121844e02],
    source="StRD Eckerle4", rounded=True, tolerance=1e-12,
)  # fmt: skip
def eckerle4(b):
    wavelength = np.concatenate([np.arange(400, 435, 5), np.arange(435, 465, 1.5), np.arange(465, 505, 5)])
    gauss = np.exp(-0.5 * ((wavelength - b[2]) / b[1]) ** 2)
    return np.square(ECKERLE_Y - b[0] / b[1] * gauss).sum()


ROSZMAN = np.array([
    0.252429, -4868.68, 0.252141, -4868.09, 0.251809, -4867.41, 0.297989, -3375.19, 0.296257, -3373.14, 0.295319,
    -3372.03, 0.339603, -2473.74, 0.337731, -2472.35, 0.333820, -2469.45, 0.389510, -1894.65, 0.386998, -1893.40,
    0.438864, -1497.24, 0.434887, -1495.85, 0.427893, -1493.41, 0.471568, -1208.68, 0.461699, -1206.18, 0.461144,
    -1206.04, 0.513532, -997.92, 0.506641, -996.61, 0.505062, -996.31, 0.535648, -834.94, 0.533726, -834.66, 0.568064,
    -710.03, 0.612886, -530.16, 0.624169, -464.17,
]).reshape(-1, 2)  # fmt: skip


@problem(
    start=[0.2, -5e-6, 1200, -150], minimum=4.9484847331e-04, source="StRD Roszman1", rounded=True, tolerance=1e-13,
    at=[2.0196866396e-01, -6.1953516256e-06, 1.2044556708e03, -1.8134269537e02],
)  # fmt: skip
def roszman1(b):
    y, x = ROSZMAN.T
    return np.linalg.norm(y - (b[0] - b[1] * x - np.arctan(b[2] / (x - b[3])) / np.pi)) ** 2


LANCZOS_Y = [
    2.5134, 2.0443, 1.6684, 1.3664, 1.1232, 0.9269, 0.7679, 0.6389, 0.5338, 0.4479, 0.3776, 0.3197, 0.2720, 0.2325,
    0.1997, 0.1723, 0.1493, 0.1301, 0.1138, 0.1000, 0.0883, 0.0783, 0.0698, 0.0624,
]  # fmt: skip


@problem(
    start=[0.5, 0.7, 3.6, 4.2, 4, 6.3], minimum=1.6117193594e-08, source="StRD Lanczos3", rounded=True, tolerance=1e-14,
    at=[8.6816414977e-02, 9.5498101505e-01, 8.4400777463e-01, 2.9515951832, 1.5825685901, 4.9863565084],
)  # fmt: skip
def lanczos3(b):
    x = np.linspace(0, 1.15, 24)
    f = np.array(LANCZOS_Y)
    for amplitude, rate in b.reshape(3, 2):
        f = f - amplitude * np.exp(-rate * x)
    return f @ f


@problem(
    start=[200, 0.1], minimum=1195.449, at=[212.68, 0.06412], source="Bates and Watts: puromycin", rounded=True,
    tolerance=1e-6, residuals=True,
)  # fmt: skip
def michaelis_menten(theta):
    concentration = np.repeat([0.02, 0.06, 0.11, 0.22, 0.56, 1.10], 2)
    rate = [76, 47, 97, 107, 123, 139, 159, 152, 191, 201, 207, 200]
    return [v - theta[0] * s / (theta[1] + s) for v, s in zip(rate, concentration, strict=True)]
