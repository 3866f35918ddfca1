"""Operation budgets: a Lennard-Jones Hessian as edge pushing writes it, checked against the closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

from codegen import Input, Output, Program, compile_program

ATOMS = 10
BUDGET = 3400  # machine operations, without fusion


class Table:
    """Rows of a program, hash-consed."""

    def __init__(self) -> None:
        self.heads: list[Any] = []
        self.operands: list[tuple[int, ...]] = []
        self.atoms: dict[int, sp.Basic] = {}
        self.memo: dict[Any, int] = {}

    def leaf(self, atom: Any) -> int:
        atom = sp.sympify(atom)
        if atom not in self.memo:
            self.atoms[len(self.heads)] = atom
            self.memo[atom] = self.append(type(atom), ())
        return self.memo[atom]

    def append(self, head: Any, operands: tuple[int, ...]) -> int:
        self.heads.append(head)
        self.operands.append(operands)
        return len(self.heads) - 1

    def node(self, head: Any, *operands: int) -> int:
        key = (head, operands)
        if key not in self.memo:
            self.memo[key] = self.append(head, operands)
        return self.memo[key]

    def mul(self, *factors: int) -> int:
        total = factors[0]
        for factor in factors[1:]:
            total = self.node(sp.Mul, *sorted((total, factor)))
        return total

    def add(self, a: int, b: int) -> int:
        return self.node(sp.Add, *sorted((a, b)))


def pair_derivatives(table: Table, d: list[int]) -> tuple[int, int]:
    """First and second derivative of 4 (s**6 - s**3), s = 1/r2, with respect to r2."""
    number = table.leaf
    r2 = table.add(table.add(table.mul(d[0], d[0]), table.mul(d[1], d[1])), table.mul(d[2], d[2]))
    inverse = table.node(sp.Pow, table.node(sp.Pow, r2, number(3)), number(-1))
    slope = table.mul(number(4), table.add(table.mul(number(2), inverse), number(-1)))
    first = table.mul(number(-1), table.mul(inverse, inverse))
    second = table.mul(number(2), table.mul(inverse, table.mul(inverse, inverse)))
    by_cube = table.mul(slope, first)
    bend = table.add(table.mul(number(8), table.mul(first, first)), table.mul(slope, second))
    square, double = table.mul(number(3), table.node(sp.Pow, r2, number(2))), table.mul(number(6), r2)
    total = table.add(table.mul(bend, table.mul(square, square)), table.mul(by_cube, double))
    return table.mul(by_cube, square), total


def hessian_program() -> Program:
    """Dense 3n x 3n lower triangle."""
    table, size = Table(), 3 * ATOMS
    x = [table.leaf(sp.Symbol(f"x{k}")) for k in range(size)]
    entries: dict[tuple[int, int], int] = {}

    def accumulate(i: int, j: int, value: int) -> None:
        key = (max(i, j), min(i, j))
        entries[key] = table.add(entries[key], value) if key in entries else value

    minus, two = table.leaf(-1), table.leaf(2)
    for a in range(ATOMS):
        for b in range(a):
            d = [table.add(x[3 * a + k], table.mul(minus, x[3 * b + k])) for k in range(3)]
            first, second = pair_derivatives(table, d)
            for k in range(3):
                for m in range(k + 1):
                    value = table.mul(second, table.mul(table.mul(two, d[k]), table.mul(two, d[m])))
                    value = table.add(value, table.mul(two, first)) if k == m else value
                    accumulate(3 * a + k, 3 * a + m, value)
                    accumulate(3 * b + k, 3 * b + m, value)
                    for p, q in {(k, m), (m, k)}:
                        accumulate(3 * a + p, 3 * b + q, table.mul(minus, value))
    positions = sorted(entries)
    output = Output((size, size), tuple(entries[key] for key in positions), tuple(i * size + j for i, j in positions))
    return Program(table.heads, table.operands, table.atoms, (Input("x", (size,)),), (output,))


def closed_form(x: Any) -> Any:
    """The same by matrices: 4 U'' dd' + 2 U' 1 for each pair."""
    points, hessian = x.reshape(-1, 3), np.zeros((len(x), len(x)))
    for a in range(len(points)):
        for b in range(a):
            d = points[a] - points[b]
            r2 = d @ d
            first = 4 * (-6 * r2**-7 + 3 * r2**-4)
            second = 4 * (42 * r2**-8 - 12 * r2**-5)
            block = 4 * second * np.outer(d, d) + 2 * first * np.eye(3)
            for p, q, sign in ((a, a, 1), (b, b, 1), (a, b, -1), (b, a, -1)):
                hessian[3 * p : 3 * p + 3, 3 * q : 3 * q + 3] += sign * block
    return np.tril(hessian)


def test_lennard_jones_hessian() -> None:
    x = np.random.default_rng(0).normal(size=3 * ATOMS) * 3
    kernel = compile_program(hessian_program())
    assert kernel.stats.total <= BUDGET
    assert kernel.stats.machine_operations["div"] == ATOMS * (ATOMS - 1) // 2  # one quotient a pair
    want = closed_form(x)
    np.testing.assert_allclose(kernel(x), want, rtol=0, atol=1e-12 * np.abs(want).max())
    fast = compile_program(hessian_program(), tier="fast")
    np.testing.assert_array_equal(kernel(x), fast(x))
