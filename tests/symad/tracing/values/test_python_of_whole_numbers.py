"""What Python does with whole numbers, a line each: plain calls, calls on numbers and kernels have the same numbers."""

from __future__ import annotations

import collections
import functools
import itertools
import math
import operator
from typing import Any

import numpy as np
import pytest

import symad as sa

POINTS = [np.array(x) for x in ([0.5, 3.2, 1.7], [0.5, 1.2, 0.4], [0.3, 2.9, -1.0], [0.3, 0.4, -1.0])]
V = (1.0, 2.0, 4.0, 8.0, 16.0)
LINES = """
sum(V[:n]) * x[0]
sum(V[n::-1]) * x[0]
sum(map(np.sin, itertools.repeat(x[0], n)))
changed(list(V), "insert", n, x[0])[2] * x[2]
list(V).pop(n) * x[0]
math.factorial(n) * x[0]
math.comb(4, n) * x[0]
math.perm(4, n) * x[0]
math.gcd(12, n) * x[0]
math.isqrt(n * 7) * x[0]
divmod(7, n + 1)[1] * x[0]
2**n * x[0]
n.bit_length() * x[0]
n.numerator * x[0] + n.denominator
n.as_integer_ratio()[0] * x[0]
int.from_bytes(n.to_bytes(2, "big"), "big") * x[0]
len(list(itertools.combinations(V, n))) * x[0]
len(list(itertools.product(V[:2], repeat=n))) * x[0]
changed(collections.deque(V), "rotate", n)[0] * x[0]
float("%d.5" % n) * x[0]
float(f"{n}.25") * x[0]
len(str(n * 5)) * x[0]
len("a".rjust(n)) * x[0]
ord(chr(65 + n)) * x[0]
len(bytes(n)) * x[0]
len(hex(n + 14)) * x[0]
(n in {1, 3}) * x[0]
{1: 2.0, 3: 4.0}.get(n, 9.0) * x[0]
collections.Counter([n, 3, 3])[3] * x[0]
sum(k * v for k, v in enumerate(V, n)) * x[0]
sum(range(n, 9, n + 1)) * x[0]
sum(itertools.islice(V, n)) * x[0]
sum(itertools.islice(V, n, None, n + 1)) * x[0]
sum(collections.deque(V, maxlen=n)) * x[0]
sum(collections.deque(list(V) + [x[2]], n)) * x[0]
isinstance(collections.deque(V, n), collections.deque) * x[0]
sum(v * k for k, v in zip(reversed(range(n)), V)) * x[0]
np.zeros(n).size * x[0]
np.sum(np.linspace(0.0, x[0], n + 2))
np.sum(np.eye(n + 1)) * x[0]
np.take(V, n) * x[0]
np.partition(np.array(V) * x[0], n)[0]
(1 << n) * x[0]
(n << 2 | 1) * x[0]
((1 << n) - 1 & 6) * x[0]
(n ^ 1) * x[0] + ~n
n // 2 * x[0] + -n % 3
sorted([3, n, 1])[0] * x[0]
max([3, n, 1]) * x[0]
sum([n] * 2) * x[0]
list(itertools.accumulate([n, 2, 3]))[-1] * x[0]
functools.reduce(operator.mul, [n, 2, 3]) * x[0]
V[operator.index(n)] * x[0]
n.real * x[0] + n.imag
round(x[0], n) * x[2]
math.ldexp(x[0], n)
math.lgamma(n + 1.5) * x[0]
math.dist([n, 0], [1, x[0]])
math.hypot(n, x[0])
math.trunc(x[1]) * x[0] + math.ceil(x[1])
math.fsum([n, x[0]]) * math.prod([n, x[0]])
(lambda *given: len(given))(*range(n)) * x[0]
len({k: 1 for k in range(n)}) * x[0]
(V * n).count(2.0) * x[0]
len(changed(list(V), "__imul__", n)) * x[0]
len(operator.concat(V[:n], V)) * x[0]
len([[x[0]] * n for _ in range(2)][1]) * x[2]
x[0] if n else x[2]
bool(n) * x[0]
isinstance(n, int) * x[0]
(n in range(2, 5)) * x[0]
{n: x[0]}[n]
"""


def changed(values, method, *args):
    """Return what a method has changed."""
    getattr(values, method)(*args)
    return values


NAMES = {
    module.__name__: module for module in (collections, functools, itertools, math, operator)
} | {"np": np, "V": V, "changed": changed}  # fmt: skip


@pytest.mark.parametrize("line", LINES.strip().splitlines())
@pytest.mark.thinned
def test_whole_numbers_are_pythons(line):
    f = eval(f"lambda x: (lambda n: {line})(min(max(int(x[1]), 0), 4))", NAMES)
    kernel = sa.compile(f, POINTS[0])
    for x in POINTS:
        wanted = pytest.approx(float(f(x)), rel=1e-14, abs=1e-14)
        assert kernel(x) == wanted
        assert sa.value_and_grad(lambda x: f(x) + 0 * x[0])(x)[0] == wanted


INTS: dict[str, Any] = {
    "round": lambda u: round(u), "int": lambda u: int(u), "ceil": math.ceil, "trunc": math.trunc,
    "floor": lambda u: math.floor(u * 0),
    "-int": lambda u: -int(u), "int * -1": lambda u: int(u) * -1, "-2 * int": lambda u: -2 * int(u),
    "int % -2": lambda u: (int(u) + 4) % -2,
    "int // -3": lambda u: int(u) // -3, "int / -3": lambda u: int(u) / -3,
    "int * int": lambda u: int(u) * round(u - 3), "np.negative": lambda u: np.negative(int(u)),
    "int ** 3": lambda u: int(u) ** 3, "max": lambda u: max(int(u), 0), "np.int64": lambda u: np.int64(u),
    "astype": lambda u: np.stack([u, u]).astype(int)[0], "bool * -1": lambda u: (u > 0) * -1,
    "shifted": lambda u: int(u) << 1, "bits": lambda u: -(int(u) & 1), "difference": lambda u: int(u) - int(u),
    "round to 0 digits": lambda u: round(u, 0), "np.round": np.round, "np.trunc": np.trunc,
}  # fmt: skip


@pytest.mark.parametrize("name", INTS)
@pytest.mark.parametrize("point", [-0.3, -0.0, 0.2])
def test_ints_are_never_negative_zeros(name: str, point: float) -> None:
    """arctan2 shows the sign of a zero: floats that are rounded keep it, ints have none."""

    def f(u: Any) -> Any:
        return np.arctan2(INTS[name](u) * 1.0, -1.0) + 0 * u

    assert sa.value_and_grad(f)(point) == (f(point), 0.0)
    assert sa.compile(f, point)(point) == f(point)
    assert sa.jit(f)(point) == f(point)
