"""Energies and residuals of physics and chemistry, and differential equations fitted to their own solutions."""

import math
from itertools import combinations

import numpy as np

from tests.support.objectives.corpus import problem


def lennard_jones(r):
    return 4 * ((1 / r) ** 12 - (1 / r) ** 6)


R0 = 2 ** (1 / 6)


@problem(start=[1.2], minimum=-1, at=[R0], source="Hoare and Pal (1971): two atoms")
def lennard_jones_pair(x):
    return lennard_jones(x[0])


@problem(start=[1.1, 0.4, 1.2], minimum=-3, at=[R0, R0 / 2, R0 * math.sqrt(3) / 2], source="Hoare and Pal: three atoms")
def lennard_jones_triangle(x):
    points = np.zeros((3, 2))
    points[1, 0] = x[0]
    points[2, 0] = x[1]
    points[2, 1] = x[2]
    energy = 0.0
    for i in range(3):
        for j in range(i + 1, 3):
            d = points[i] - points[j]
            energy += lennard_jones(math.sqrt(d[0] ** 2 + d[1] ** 2))
    return energy


TETRAHEDRON = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) * R0 / math.sqrt(8)


@problem(start=TETRAHEDRON + 0.05 * np.sin(np.arange(12)).reshape(4, 3), minimum=-6, at=TETRAHEDRON,
         source="Hoare and Pal: four atoms")  # fmt: skip
def lennard_jones_tetrahedron(positions):
    return sum(lennard_jones(np.linalg.norm(a - b)) for a, b in combinations(positions, 2))


@problem(start=[1.0], minimum=-0.17, at=[1.4], source="Morse (1929), in atomic units", unpacked=True)
def morse(r, depth=0.17, a=1.03, re=1.4):
    return depth * ((1 - math.exp(-a * (r - re))) ** 2 - 1)


def unit(theta, phi):
    return np.array([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)])


@problem(start=[[1, 0.1], [1.2, 2], [1.5, 4]], minimum=math.sqrt(3), source="Thomson (1904): three charges",
         at=[[[math.pi / 2, 2 * math.pi * k / 3] for k in range(3)]])  # fmt: skip
def thomson_3(angles):
    charges = [unit(*pair) for pair in angles]
    return np.sum([1 / np.linalg.norm(a - b) for a, b in combinations(charges, 2)])


OCTAHEDRON = np.vstack([np.eye(3), -np.eye(3)])


@problem(start=OCTAHEDRON + 0.1 * np.cos(np.arange(18)).reshape(6, 3), minimum=12 / math.sqrt(2) + 3 / 2,
         at=[OCTAHEDRON, 2 * OCTAHEDRON], source="Thomson: six charges, directions of any length")  # fmt: skip
def thomson_6(x):
    p = x / np.sqrt(np.sum(x**2, axis=1))[:, None]
    difference = p[:, None, :] - p[None, :, :]
    distance = np.sqrt((difference**2).sum(axis=-1) + np.eye(6))
    return np.sum(np.triu(1 / distance, 1))


@problem(start=[0.3, 0.2], minimum=3, at=[0, 0], source="Fermat's point of an equilateral triangle")
def fermat_point(x):
    corners = [(math.cos(a), math.sin(a)) for a in (0, 2 * math.pi / 3, 4 * math.pi / 3)]
    return sum(math.hypot(x[0] - a, x[1] - b) for a, b in corners)


@problem(start=[0.8], minimum=math.sqrt(8), at=[1], source="Heron: the path of a mirrored ray")
def mirror(x):
    return math.sqrt(1 + x[0] ** 2) + math.sqrt(1 + (2 - x[0]) ** 2)


@problem(start=[2.0], minimum=-1 / (2 * 1.3**2), at=[1.3**2], source="Kepler: the circular orbit", unpacked=True)
def effective_potential(r, momentum=1.3):
    return momentum**2 / (2 * r**2) - 1 / r


@problem(start=[0.1, 0.4, -0.3, 0.2], minimum=-3 - 4 * 0.5, at=np.zeros(4), source="a chain of planar spins in a field")
def spin_chain(theta, coupling=1.0, h=0.5):
    energy = 0.0
    for i, t in enumerate(theta):
        energy -= h * math.cos(t)
        if i > 0:
            energy -= coupling * math.cos(t - theta[i - 1])
    return energy


@problem(start=[0.2, 0.9, 1.6], minimum=4 * 0.5 * 2 * 0.25**2, at=[0.75, 1.5, 2.25], source="springs in a row")
def springs(x):
    joints = [0, *x, 3]
    energy = 0
    for left, right in zip(joints, joints[1:]):  # noqa: B905, RUF007
        energy += 0.5 * 2.0 * (abs(right - left) - 0.5) ** 2
    return energy


N = 5
H = 1 / (N + 1)
NODES = H * np.arange(1, N + 1)


@problem(start=np.zeros(N), minimum=-(1 - H**2) / 24, at=NODES * (1 - NODES) / 2, source="Dirichlet energy, unit load")
def dirichlet_energy(u):
    v = np.zeros(len(u) + 2)
    v[1:-1] = u
    return np.sum((v[1:] - v[:-1]) ** 2) / (2 * H) - H * np.sum(u)


@problem(start=np.sin(np.pi * NODES), minimum=0, at=np.zeros(N), source="the heat equation, explicit Euler")
def heat_equation(x):
    u = np.zeros_like(x)
    u[:] = x
    for _ in range(4):
        u[1:-1] += 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u @ u


@problem(start=NODES**2, minimum=0, at=3 + 2 * NODES, source="a smoothing functional: straight lines are smooth")
def smoothness(x):
    curvature = np.diff(x, 2)
    return np.sum(curvature**2) + np.sum((np.gradient(x) - 2 * H) ** 2) + (x[0] - 3 - 2 * H) ** 2


def lotka_volterra(y, a, b):
    return np.array([a * y[0] - y[0] * y[1], y[0] * y[1] - b * y[1]])


def runge_kutta(y, step, count, *parameters):
    for _ in range(count):
        k1 = lotka_volterra(y, *parameters)
        k2 = lotka_volterra(y + step / 2 * k1, *parameters)
        k3 = lotka_volterra(y + step / 2 * k2, *parameters)
        k4 = lotka_volterra(y + step * k3, *parameters)
        y = y + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


FINAL = runge_kutta(np.array([1.0, 0.5]), 0.1, 5, 1.5, 0.8)


@problem(start=[1.0, 1.0], minimum=0, at=[1.5, 0.8], source="Lotka and Volterra by Runge and Kutta")
def predator_prey(p):
    return np.sum((runge_kutta(np.array([1.0, 0.5]), 0.1, 5, p[0], p[1]) - FINAL) ** 2)


def pendulum(state, steps=20):
    angle, speed = state
    for _ in range(steps):
        angle, speed = angle + 0.01 * speed, speed - 0.01 * 9.81 * math.sin(angle)
    return angle, speed


@problem(start=[0.5, 0.0], minimum=0, at=[0.7, -0.3], source="a pendulum's initial state, explicit Euler",
         residuals=True)  # fmt: skip
def pendulum_shooting(x):
    return np.array(pendulum(x)) - np.array(pendulum((0.7, -0.3)))


def newton_step(anomaly, mean, e):
    return anomaly - (anomaly - e * math.sin(anomaly) - mean) / (1 - e * math.cos(anomaly))


@problem(start=[1.0, 0.3], minimum=0, at=[1.5 - 0.2 * math.sin(1.5), 0.2], source="Kepler's equation by Newton")
def kepler_orbit(x):
    E = x[0]
    for _ in range(3):
        E = newton_step(E, x[0], x[1])
    return (E - 1.5) ** 2 + (x[1] - 0.2) ** 2


@problem(start=[2.5, 1.2], minimum=0, at=[3, 1], source="van der Waals: the reduced critical point", residuals=True)
def van_der_waals(x):
    v, t = x[0] / 3, x[1]
    slope = -24 * t / (3 * v - 1) ** 2 + 6 / v**3
    curvature = 144 * t / (3 * v - 1) ** 3 - 18 / v**4
    return slope, curvature


@problem(start=[0.2, 0.5], minimum=0, at=[math.pi / 6, math.pi / 3], source="inverse kinematics of two arms")
def inverse_kinematics(q):
    def hand(a, b):
        return math.cos(a) + math.cos(a + b), math.sin(a) + math.sin(a + b)

    x, y = hand(q[0], q[1])
    return (x - math.sqrt(3) / 2) ** 2 + (y - 1.5) ** 2


@problem(start=[1.0, 2.0], minimum=3 * 4 ** (1 / 3), at=[2 ** (1 / 3), 2 ** (1 / 3)], unpacked=True,
         source="an open box of volume one: surface 2 h (w + d) + w d")  # fmt: skip
def open_box(width, depth):
    height = 1 / (width * depth)
    return width * depth + 2 * height * (width + depth)


@problem(start=[1.5], minimum=6 * math.pi * (1 / (2 * math.pi)) ** (2 / 3), at=[(1 / (2 * math.pi)) ** (1 / 3)],
         source="a tin of volume one")  # fmt: skip
def tin(r):
    h = 1 / (math.pi * r[0] ** 2)
    return 2 * math.pi * r[0] ** 2 + 2 * math.pi * r[0] * h
