"""Exponentials of matrices: scaling, an approximant of degree 13 and squaring, as routines that call BLAS and LAPACK.

Powers of a matrix say how much it has to be scaled: their norms may be far smaller than those of the matrix are.

Source: Al-Mohy and Higham, "A new scaling and squaring algorithm for the matrix exponential" (2009).
"""

from __future__ import annotations

import math

from codegen.functions.routine_values import Numbers

PADE = [math.factorial(26 - k) * math.comb(13, k) // math.factorial(13) for k in range(14)]  # of the exponential
BOUND = 4.25  # of the roots of the norms of powers of a matrix, up to which its approximant is exact to rounding
ERROR = 2.0**53 / (math.comb(26, 13) * math.factorial(27))  # of the approximant, for each unit of the 27th power
UNITS = {"double": 2.0**53, "float": 2.0**24}  # in a number
LARGEST = {"double": 1e300, "float": 1e30}  # norm of a matrix


def exponential_numbers(scalar: str) -> Numbers:
    """Return the numbers of the routine for a type of numbers, which rounds them once.

    >>> exponential_numbers("float")["LARGEST"]
    1e+30
    """
    coefficients: Numbers = {f"b{k}": float(coefficient) for k, coefficient in enumerate(PADE)}
    error = ERROR * UNITS[scalar] / UNITS["double"]
    return coefficients | {"BOUND4": BOUND**4, "BOUND6": BOUND**6, "ERROR": error, "LARGEST": LARGEST[scalar]}


EXPONENTIAL = """
def exponential(a: reals, x: reals, B: reals, order: ints32, n: int):
    count = n * n
    B2 = B[count:]
    B4 = B2[count:]
    B6 = B4[count:]
    T = B6[count:]
    U = T[count:]
    factors = U[count:]
    norm = power(a, T, U, n, 1)
    if norm < LARGEST:
        halvings = 0
        left = norm
        scale = 1.0
        while left >= 1.0:
            halvings += 1
            left *= 0.5
            scale *= 0.5
        scaled(B, a, scale, n)
        times(B, B, B2, n)
        times(B2, B2, B4, n)
        times(B4, B2, B6, n)
        four = power(B4, T, U, n, 1)
        six = power(B6, T, U, n, 1)
        further = power(B, T, U, n, 27) * ERROR
        g = 1.0
        while halvings > 0:
            h = g * 2.0
            h2 = h * h
            h4 = h2 * h2
            h6 = h4 * h2
            h12 = h6 * h6
            h24 = h12 * h12
            if not (four * h4 <= BOUND4 and six * h6 <= BOUND6 and further * (h24 * h2) <= left):
                break
            halvings -= 1
            g = h
        g2 = g * g
        g4 = g2 * g2
        scaled(B, B, g, n)
        scaled(B2, B2, g2, n)
        scaled(B4, B4, g4, n)
        scaled(B6, B6, g4 * g2, n)
        combined(T, B6, b13, B4, b11, B2, b9, 0.0, n)
        times(B6, T, U, n)
        combined(T, B6, b7, B4, b5, B2, b3, b1, n)
        combined(T, T, 1.0, U, 1.0, T, 0.0, 0.0, n)
        times(B, T, U, n)
        combined(T, B6, b12, B4, b10, B2, b8, 0.0, n)
        times(B6, T, B, n)
        combined(T, B6, b6, B4, b4, B2, b2, b0, n)
        combined(B, B, 1.0, T, 1.0, B, 0.0, 0.0, n)
        combined(B2, B, 1.0, U, -1.0, B, 0.0, 0.0, n)
        combined(B4, B, 1.0, U, 1.0, B, 0.0, 0.0, n)
        solve(B2, B4, x, factors, order, n, n, True)
        while halvings > 0:
            times(x, x, T, n)
            copy(x, T, count)
            halvings -= 1
    else:
        not_found(x, count)

def times(a: reals, b: reals, c: reals, n: int):
    product(a, b, c, 1, n, n, n, False, False, 0.0)

def scaled(to: reals, x: reals, factor: real, n: int):
    combined(to, x, factor, x, 0.0, x, 0.0, 0.0, n)

def combined(to: reals, x: reals, cx: real, y: reals, cy: real, z: reals, cz: real, diagonal: real, n: int):
    for i in range(n):
        for k in range(i * n, (i + 1) * n):
            own = diagonal if k == i * (n + 1) else 0.0
            to[k] = x[k] * cx + y[k] * cy + z[k] * cz + own

def power(a: reals, v: reals, w: reals, n: int, exponent: int) -> real:
    # the largest sum of a row in a power of the absolute values
    largest = 0.0
    for i in range(n):
        v[i] = 1.0
    for k in range(exponent):
        for i in range(n):
            row = a[i * n:]
            sum = 0.0
            for j in range(n):
                sum += fabs(row[j]) * v[j]
            w[i] = sum
        largest = 0.0
        for i in range(n):
            v[i] = w[i]
            largest = w[i] if w[i] > largest or w[i] != w[i] else largest
    return largest
"""
