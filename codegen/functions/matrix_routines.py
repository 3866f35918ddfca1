"""Matrix operations as routines (`codegen.functions.routines`), by BLAS and LAPACK where they exist.

BLAS and LAPACK store matrices by columns: one that is stored by rows is its transposed one there, so that a factor U of
theirs is L. QR, eigenvalues, singular values and exponentials have their matrices stored by columns; what is not finite
gives NaN there, as LAPACK's iterations are not made for it.

Exponentials of matrices are scaling, an approximant of degree 13 and squaring: routines that call BLAS and LAPACK.
Powers of a matrix say how much it has to be scaled: their norms may be far smaller than those of the matrix are.

Source: Al-Mohy and Higham, "A new scaling and squaring algorithm for the matrix exponential" (2009).

Orders, places of insertion, gathers and scatters are a kernel's own routines. Keys are compared as whole numbers: the
bits of a float, turned so that their order is that of the floats, 0.0 and -0.0 are one, and NaN is the largest of all.
Few keys are sorted by insertion, more of them by their bytes, the last one first; where all have the same byte nothing
is moved. Both are stable.

Source: Knuth, The Art of Computer Programming 3, 2nd edition (1998): 5.2.1 (insertion), 5.2.5 (radix list sort).
"""

from __future__ import annotations

import math

from codegen.functions.routine_values import Numbers
from codegen.functions.routines import Routines

FEW = 48  # keys that are sorted by insertion
COUNTS = 8 * 256  # of bytes
SIGN = {"double": -(1 << 63), "float": 1 << 31}  # the bit of a number's sign

# While keys are sorted, each stands before its place: two whole numbers.
ORDERS = """
def key(x: real) -> int:
    signed = bits(x + 0.0)
    turned = ~signed if signed < 0 else signed | SIGN
    return -1 if x != x else turned

def order(x: reals, p: reals, scratch: ints, rows: int, n: int):
    other = scratch[2 * n:]
    counts = scratch[4 * n:]
    for r in range(rows):
        found = scratch
        if n <= FEW:
            inserted(x[r * n:], scratch, n)
        else:
            found = by_bytes(x[r * n:], scratch, other, counts, n)
        places = p[r * n:]
        for k in range(n):
            places[k] = real(found[2 * k + 1])

def inserted(x: reals, a: ints, n: int):
    for i in range(n):
        own = key(x[i])
        j = i
        while j > 0:
            last = a[2 * (j - 1):]
            other = last[0]
            if not below(own, other):
                break
            last[2] = other
            last[3] = last[1]
            j -= 1
        to = a[2 * j:]
        to[0] = own
        to[1] = i

def by_bytes(x: reals, a: ints, b: ints, counts: ints, n: int) -> ints:
    clear(counts, COUNTS)
    for i in range(n):
        own = key(x[i])
        to = a[2 * i:]
        to[0] = own
        to[1] = i
        for d in range(8):
            counts[(d << 8) | ((own >> (d << 3)) & 255)] += 1
    for e in range(8):
        shift = e << 3
        starts = counts[e << 8:]
        if starts[(a[0] >> shift) & 255] != n:
            total = 0
            for c in range(256):
                size = starts[c]
                starts[c] = total
                total += size
            for m in range(n):
                source = a[2 * m:]
                own = source[0]
                start = starts[(own >> shift) & 255:]
                target = b[2 * start[0]:]
                start[0] += 1
                target[0] = own
                target[1] = source[1]
            a, b = b, a
    return a

def insertion(a: reals, x: reals, y: reals, n: int, m: int, right: bool):
    for i in range(m):
        own = key(x[i])
        low = 0
        high = n
        while low < high:
            middle = (low + high) >> 1
            other = key(a[middle])
            before = below(other, own) or (other == own and right)
            low = middle + 1 if before else low
            high = high if before else middle
        y[i] = real(low)

def place(p: real, n: real) -> int:
    counted = p + n if p < 0.0 else p
    inside = counted >= 0.0 and counted < n
    found = int(counted if inside else 0.0)
    return found if inside else -1

def gather(x: reals, p: reals, y: reals, rows: int, n: int, m: int, adds: bool):
    for r in range(rows):
        numbers = x[r * n:]
        start = r * m
        for k in range(m):
            at = place(p[start + k], real(n))
            read = numbers[0 if at < 0 else at]
            value = nan if at < 0 else read
            y[start + k] = y[start + k] + value if adds else value

def scatter(x: reals, p: reals, y: reals, rows: int, n: int, m: int, adds: bool):
    if not adds:
        clear(y, rows * n)
    for r in range(rows):
        numbers = y[r * n:]
        start = r * m
        for k in range(m):
            at = place(p[start + k], real(n))
            if at >= 0:
                numbers[at] += x[start + k]
"""


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


LINEAR_ALGEBRA = """
def product(
    a: reals, b: reals, c: reals, number: int, rows: int, inner: int, columns: int, ta: bool, tb: bool, beta: real
):
    for k in range(number):
        left = a[k * rows * inner:]
        right = b[k * inner * columns:]
        to = c[k * rows * columns:]
        if columns == 1:
            vector(left, right, to, rows, inner, ta, beta)
        else:
            if rows == 1:
                vector(right, left, to, columns, inner, not tb, beta)
            else:
                blas.gemm(
                    "T" if tb else "N", "T" if ta else "N", columns, rows, inner, 1.0,
                    right, inner if tb else columns, left, rows if ta else inner, beta, to, columns,
                )

def vector(a: reals, x: reals, to: reals, rows: int, inner: int, turned: bool, beta: real):
    first = rows if turned else inner
    blas.gemv("N" if turned else "T", first, inner if turned else rows, 1.0, a, first, x, 1, beta, to, 1)

def cholesky(a: reals, l: reals, n: int):
    lower(a, l, n)
    if lapack.potrf("U", n, l, n) != 0:
        for i in range(n):
            not_found(l[i * n:], i + 1)

def lower(a: reals, l: reals, n: int):
    for i in range(n):
        first = i * n
        for j in range(n):
            l[first + j] = a[first + j] if j <= i else 0.0

def triangular(l: reals, b: reals, x: reals, n: int, m: int, transposed: bool):
    copy(x, b, n * m)
    blas.trsm("L", "U", "N" if transposed else "T", "N", n, m, 1.0, l, n, x, n)

def factorized(a: reals, scratch: reals, order: ints32, n: int) -> int:
    copy(scratch, a, n * n)
    return lapack.getrf(n, n, scratch, n, order)

def solve(a: reals, b: reals, x: reals, scratch: reals, order: ints32, n: int, m: int, transposed: bool):
    if factorized(a, scratch, order, n) == 0:
        copy(x, b, n * m)
        lapack.getrs("N" if transposed else "T", n, m, scratch, n, order, x, n)
    else:
        not_found(x, n * m)

def determinant(a: reals, found: reals, sign: reals, scratch: reals, order: ints32, n: int, logarithm: bool):
    factorized(a, scratch, order, n)
    product = 1.0
    sum = 0.0
    for k in range(n):
        pivot = scratch[k * (n + 1)]
        factor = pivot if order[k] == k + 1 else -pivot
        if logarithm:
            side = 0.0 if pivot == 0.0 else copysign(1.0, factor)
            factor = side if pivot == pivot else pivot
            sum += log(fabs(pivot))
        product *= factor
    found[0] = sum if logarithm else product
    if logarithm:
        sign[0] = product

def not_found(x: reals, count: int):
    for k in range(count):
        x[k] = nan

def finite(a: reals, n: int, m: int, triangle: bool) -> bool:
    sum = 0.0
    for j in range(n):
        for i in range(j if triangle else 0, m):
            sum += a[j * m + i] * 0.0
    return sum == 0.0

def qr(a: reals, q: reals, r: reals, scratch: reals, m: int, n: int, work: int):
    copy(q, a, m * n)
    lapack.geqrf(m, n, q, m, scratch, scratch[n:], work)
    for j in range(n):
        for i in range(n):
            r[j * n + i] = q[j * m + i] if i <= j else 0.0
    lapack.orgqr(m, n, n, q, m, scratch, scratch[n:], work)

def eigen(a: reals, w: reals, v: reals, scratch: reals, order: ints32, n: int, work: int, whole: int):
    failed = 1
    if finite(a, n, n, True):
        copy(v, a, n * n)
        failed = lapack.syevd("V", "L", n, v, n, w, scratch, work, order, whole)
    if failed != 0:
        not_found(w, n)
        not_found(v, n * n)

def singular(a: reals, u: reals, s: reals, v: reals, scratch: reals, order: ints32, m: int, n: int, work: int):
    smaller = n if m > n else m
    failed = 1
    if finite(a, n, m, False):
        copy(scratch, a, m * n)
        failed = lapack.gesdd("S", m, n, scratch, m, s, u, m, v, smaller, scratch[m * n:], work, order)
    if failed != 0:
        not_found(u, m * smaller)
        not_found(s, smaller)
        not_found(v, smaller * n)
"""


def _numbers(scalar: str) -> Numbers:
    return exponential_numbers(scalar) | {"SIGN": SIGN[scalar], "FEW": FEW, "COUNTS": COUNTS}


ROUTINES = Routines({"matrix": LINEAR_ALGEBRA + EXPONENTIAL, "array": ORDERS}, _numbers)
