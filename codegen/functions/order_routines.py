"""Orders, places of insertion, gathers and scatters: a kernel's own routines (`codegen.functions.routines`).

Keys are compared as whole numbers: the bits of a float, turned so that their order is that of the floats, 0.0 and -0.0
are one, and NaN is the largest of all. Few keys are sorted by insertion, more of them by their bytes, the last one
first; where all have the same byte nothing is moved. Both are stable.

Source: Knuth, The Art of Computer Programming 3, 2nd edition (1998): 5.2.1 (insertion), 5.2.5 (radix list sort).
"""

from __future__ import annotations

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
