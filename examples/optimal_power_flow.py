"""Optimal power flow of two public cases: the cheapest generation that the network can carry, by Ipopt.

Voltages in polar form, flows limited at both ends of each branch. The data are of the IEEE PES Power Grid Library
("pglib_opf_case5_pjm", "pglib_opf_case14_ieee", Creative Commons Attribution 4.0; Li and Bo, 2010; Christie, 1999), of
which the optima are known: 17551.891 and 2178.08 dollars an hour.
"""

import time
from dataclasses import dataclass

import numpy as np

import symad as sa

BASE = 100.0  # MW
WIDEST = np.radians(30.0)  # difference of angles along a branch


@dataclass(frozen=True)
class Case:
    """Buses: demand (MW, MVAr) and shunt (MVAr); generators and branches in rows, as the comments name them."""

    name: str
    optimum: float
    reference: int
    demand: np.ndarray  # a row for each bus: active, reactive, shunt susceptance
    voltages: tuple[float, float]
    generators: np.ndarray  # bus, highest active, lowest and highest reactive, cost of a MWh
    branches: np.ndarray  # from, to, resistance, reactance, charging, rating, tap


FIVE = Case(
    "5 buses (PJM)", 17551.891, 3,
    np.array([[0, 0, 0], [300, 98.61, 0], [300, 98.61, 0], [400, 131.47, 0], [0, 0, 0]]),
    (0.9, 1.1),
    np.array([[0, 40, -30, 30, 14], [0, 170, -127.5, 127.5, 15], [2, 520, -390, 390, 30], [3, 200, -150, 150, 40],
              [4, 600, -450, 450, 10]]),
    np.array([
        [0, 1, 0.00281, 0.0281, 0.00712, 400, 1], [0, 3, 0.00304, 0.0304, 0.00658, 426, 1],
        [0, 4, 0.00064, 0.0064, 0.03126, 426, 1], [1, 2, 0.00108, 0.0108, 0.01852, 426, 1],
        [2, 3, 0.00297, 0.0297, 0.00674, 426, 1], [3, 4, 0.00297, 0.0297, 0.00674, 240, 1],
    ]),
)  # fmt: skip
FOURTEEN = Case(
    "14 buses (IEEE)", 2178.08, 0,
    np.array([
        [0, 0, 0], [21.7, 12.7, 0], [94.2, 19, 0], [47.8, -3.9, 0], [7.6, 1.6, 0], [11.2, 7.5, 0], [0, 0, 0],
        [0, 0, 0], [29.5, 16.6, 19], [9, 5.8, 0], [3.5, 1.8, 0], [6.1, 1.6, 0], [13.5, 5.8, 0], [14.9, 5, 0],
    ]),
    (0.94, 1.06),
    np.array([[0, 340, 0, 10, 7.920951], [1, 59, -30, 30, 23.269494], [2, 0, 0, 40, 0], [5, 0, -6, 24, 0],
              [7, 0, -6, 24, 0]]),
    np.array([
        [0, 1, 0.01938, 0.05917, 0.0528, 472, 1], [0, 4, 0.05403, 0.22304, 0.0492, 128, 1],
        [1, 2, 0.04699, 0.19797, 0.0438, 145, 1], [1, 3, 0.05811, 0.17632, 0.034, 158, 1],
        [1, 4, 0.05695, 0.17388, 0.0346, 161, 1], [2, 3, 0.06701, 0.17103, 0.0128, 160, 1],
        [3, 4, 0.01335, 0.04211, 0, 664, 1], [3, 6, 0, 0.20912, 0, 141, 0.978], [3, 8, 0, 0.55618, 0, 53, 0.969],
        [4, 5, 0, 0.25202, 0, 117, 0.932], [5, 10, 0.09498, 0.1989, 0, 134, 1], [5, 11, 0.12291, 0.25581, 0, 104, 1],
        [5, 12, 0.06615, 0.13027, 0, 201, 1], [6, 7, 0, 0.17615, 0, 167, 1], [6, 8, 0, 0.11001, 0, 267, 1],
        [8, 9, 0.03181, 0.0845, 0, 325, 1], [8, 13, 0.12711, 0.27038, 0, 99, 1], [9, 10, 0.08205, 0.19207, 0, 141, 1],
        [11, 12, 0.22092, 0.19988, 0, 99, 1], [12, 13, 0.17093, 0.34802, 0, 76, 1],
    ]),
)  # fmt: skip


def flows(case, angle, voltage):
    """Return active and reactive power into each branch, at its first and at its last bus."""
    first, last = case.branches[:, 0].astype(int), case.branches[:, 1].astype(int)
    resistance, reactance, charging, _, tap = case.branches[:, 2:].T
    square = resistance**2 + reactance**2
    g, b = resistance / square, -reactance / square
    found = []
    for here, there, own in ((first, last, tap), (last, first, 1.0)):
        turn = angle[here] - angle[there]
        product = voltage[here] * voltage[there] / tap
        magnitude = (voltage[here] / own) ** 2
        found.append(g * magnitude - product * (g * np.cos(turn) + b * np.sin(turn)))
        found.append(-(b + charging / 2) * magnitude - product * (g * np.sin(turn) - b * np.cos(turn)))
    return found


def problem(case):
    """Return the problem, and where it starts; numbers are in units of BASE, angles before voltages before powers."""
    buses, sources = len(case.demand), len(case.generators)
    cuts = np.cumsum([buses, buses, sources])
    rating = case.branches[:, 5] / BASE
    at_bus = np.arange(buses)[:, None]
    generating = 1.0 * (at_bus == case.generators[:, 0])
    starting, ending = (1.0 * (at_bus == case.branches[:, k]) for k in (0, 1))

    def cost(x):
        return BASE * np.dot(case.generators[:, 4], x[cuts[1] : cuts[2]])

    def constraints(x):
        angle, voltage, active, reactive = np.split(x, cuts)
        first_active, first_reactive, last_active, last_reactive = flows(case, angle, voltage)
        spent = generating @ active - starting @ first_active - ending @ last_active
        bound = generating @ reactive - starting @ first_reactive - ending @ last_reactive
        return np.concatenate([
            spent - case.demand[:, 0] / BASE,
            bound - case.demand[:, 1] / BASE + case.demand[:, 2] / BASE * voltage**2,
            first_active**2 + first_reactive**2, last_active**2 + last_reactive**2,
            (starting - ending).T @ angle,
        ])  # fmt: skip

    no_power = np.zeros(2 * buses)
    wide = np.full(len(rating), WIDEST)
    fixed = np.where(np.arange(buses) == case.reference, 0.0, np.inf)
    lowest, highest = case.voltages
    powers = case.generators[:, 1:4].T / BASE
    low = np.concatenate([-fixed, np.full(buses, lowest), np.zeros(sources), powers[1]])
    high = np.concatenate([fixed, np.full(buses, highest), powers[0], powers[2]])
    limits = (
        np.concatenate([no_power, np.full(2 * len(rating), -np.inf), -wide]),
        np.concatenate([no_power, rating**2, rating**2, wide]),
    )
    start = np.concatenate([np.zeros(buses), np.ones(buses), powers[0] / 2, (powers[1] + powers[2]) / 2])
    return sa.Problem(cost, constraints, bounds=(low, high), constraint_bounds=limits), start


def main():
    for case in (FIVE, FOURTEEN):
        made, start = problem(case)
        before = time.process_time()
        made.kernels(start)
        built = time.process_time() - before
        before = time.process_time()
        found = made.minimize(start, solver="ipopt", tolerance=1e-9, options={"bound_relax_factor": 0.0})
        solved = time.process_time() - before
        print(f"{case.name}: {found.fun:.3f}, {found.nit} iterations, built in {built:.2f} s, solved in {solved:.3f} s")
        assert found.success
        assert found.violation < 1e-6
        assert abs(found.fun / case.optimum - 1) < 3e-6  # as exactly as it is published


if __name__ == "__main__":
    main()
