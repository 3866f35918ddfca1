"""Operations on whole arrays as routines (`codegen.functions.routines`): those on matrices, by BLAS and LAPACK, here.

BLAS and LAPACK store matrices by columns: one that is stored by rows is its transposed one there, so that a factor U of
theirs is L. QR, eigenvalues, singular values and exponentials have their matrices stored by columns; what is not finite
gives NaN there, as LAPACK's iterations are not made for it.
"""

from __future__ import annotations

from codegen.functions.exponentials import EXPONENTIAL, exponential_numbers
from codegen.functions.order_routines import COUNTS, FEW, ORDERS, SIGN
from codegen.functions.routine_values import Numbers
from codegen.functions.routines import Routines

LINEAR_ALGEBRA = """
def product(
    a: reals, b: reals, c: reals, number: int, rows: int, inner: int, columns: int, ta: bool, tb: bool, beta: real
):
    for k in range(number):
        blas.gemm(
            "T" if tb else "N", "T" if ta else "N", columns, rows, inner, 1.0,
            b[k * inner * columns:], inner if tb else columns, a[k * rows * inner:], rows if ta else inner,
            beta, c[k * rows * columns:], columns,
        )

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
