"""`python -m benchmarks.cliffs [NAME ...] [--last N] [--ways]`: what one step in size costs; how well the plan chose.

Families of programs with one size n, built and called for every n from 2 to N and beside powers of 2 and of 10 above
it. A step is a cliff where the cost of n + 1 is more than LIMIT times what the growth of n explains. `--ways` builds
every other way of compiling too, at a few sizes, and says how many times as long the chosen one takes as the best.
Times are processor time, the least of several bursts; a step that seems a cliff is measured again, both sides.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # else its idle threads count as processor time

import numpy as np

import symad as sa
from benchmarks.tables import number, table

LIMIT = 1.3  # times, beyond the growth that a step explains
DEGREE = 2  # the growth that a step may explain: that of a dense matrix
SHORTEST = {"call": 0.3e-6, "build": 0.02}  # seconds; below them a step is the clock's
AGAIN = 4  # times that a cliff is measured again
LAST = 80
FARTHER = (
    99,
    100,
    127,
    128,
    129,
    199,
    200,
    255,
    256,
    257,
    299,
    300,
    399,
    400,
    511,
    512,
    513,
    999,
    1000,
    1023,
    1024,
    1025,
)
WAYS: Mapping[str, dict[str, Any]] = {
    "straight": {"roll": "never", "strategy": "straight"},
    "sweep": {"roll": "never", "strategy": "sweep"},
    "loops": {"roll": "always"},
    "loops, straight": {"roll": "always", "strategy": "straight"},
}
WAY_SIZES = (3, 8, 17, 33, 64, 100)
LONGEST = 20.0  # seconds that another way may take to build
Program = tuple[Callable[..., Any], tuple[Any, ...]]  # the function to compile, and its arguments


@dataclass(frozen=True)
class Cost:
    """What one size costs, in seconds, and how it was compiled."""

    call: float
    build: float
    way: str


def made(n: int) -> np.random.Generator:
    """Return the generator of the data of one size."""
    return np.random.default_rng(n)


def logistic(n: int) -> Program:
    """Hessian of a logistic regression of 500 rows and n columns."""
    r = made(n)
    X, y = r.normal(size=(500, n)), np.sign(r.normal(size=500))
    return sa.hessian(lambda w: np.sum(np.log1p(np.exp(-y * (X @ w))))), (r.normal(size=n) * 0.1,)


def rows(n: int) -> Program:
    """Gradient of a robust regression of n rows and 4 columns."""
    r = made(n)
    X, y = r.normal(size=(n, 4)), r.normal(size=n)
    return sa.grad(lambda w: np.sum(np.log1p((X @ w - y) ** 2))), (r.normal(size=4),)


def centre(n: int) -> Program:
    """Hessian of a kernel sum of the distances of 100 points to one centre in n dimensions."""
    r = made(n)
    Z = r.normal(size=(100, n))
    return sa.hessian(lambda c: np.sum(np.exp(-0.01 * np.sum((Z - c) ** 2, axis=1)))), (r.normal(size=n),)


def centres(n: int) -> Program:
    """Gradient of the distances of 50 points to n centres in 3 dimensions."""
    r = made(n)
    Z = r.normal(size=(50, 3))

    def f(c: Any) -> Any:
        return np.sum(np.exp(-np.sum((Z[:, None] - c.reshape(n, 3)[None]) ** 2, axis=2)))

    return sa.grad(f), (r.normal(size=3 * n),)


def pairs(n: int) -> Program:
    """Gradient of a Lennard-Jones potential of n atoms."""
    i, j = np.triu_indices(n, 1)

    def f(x: Any) -> Any:
        d2 = np.sum((x.reshape(n, 3)[i] - x.reshape(n, 3)[j]) ** 2, axis=1)
        return np.sum(d2**-6 - d2**-3)

    return sa.grad(f), (made(n).normal(size=3 * n) * 2,)


def pairs_hessian(n: int) -> Program:
    """Hessian of springs between all pairs of n points in a plane."""
    i, j = np.triu_indices(n, 1)

    def f(x: Any) -> Any:
        d = np.sqrt(np.sum((x.reshape(n, 2)[i] - x.reshape(n, 2)[j]) ** 2, axis=1))
        return np.sum((d - 1.0) ** 2)

    return sa.hessian(f), (made(n).normal(size=2 * n),)


def network(n: int) -> Program:
    """Gradient of a network with one hidden layer of n, 40 rows of 3."""
    r = made(n)
    X, y = r.normal(size=(40, 3)), r.normal(size=40)
    return sa.grad(lambda v: np.sum((np.sum(np.tanh(X @ v.reshape(3, n)), axis=1) - y) ** 2)), (r.normal(size=3 * n),)


def layers(n: int) -> Program:
    """Gradient through n layers of 4."""
    W = made(n).normal(size=(4, 4)) * 0.5

    def f(x: Any) -> Any:
        for _ in range(n):
            x = np.tanh(W @ x)
        return np.sum(x)

    return sa.grad(f), (np.ones(4),)


def layers_hessian(n: int) -> Program:
    """Hessian of two layers of n."""
    Q = made(n).normal(size=(n, n)) / math.sqrt(n)
    return sa.hessian(lambda x: np.sum(np.tanh(Q @ np.tanh(Q @ x)))), (made(n).normal(size=n),)


def chain(n: int) -> Program:
    """Sparse Hessian of the chained Rosenbrock function."""

    def f(x: Any) -> Any:
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    return sa.hessian(f, sparse="lower"), (np.ones(n) * 0.9,)


def chain_loop(n: int) -> Program:
    """Dense Hessian of the chained Rosenbrock function, a Python loop."""

    def f(x: Any) -> Any:
        return sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(n - 1))

    return sa.hessian(f), (np.ones(n) * 0.9,)


def steps(n: int) -> Program:
    """Gradient of n steps of a pendulum, a Python loop."""

    def f(p: Any) -> Any:
        angle, speed = p[0], p[1]
        for _ in range(n):
            speed = speed - 0.1 * p[2] * np.sin(angle)
            angle = angle + 0.1 * speed
        return angle**2

    return sa.grad(f), (np.array([1.0, 0.1, 2.0]),)


def steps_hessian(n: int) -> Program:
    """Hessian of n steps of a pendulum."""
    gradient, arguments = steps(n)
    return sa.jacobian(gradient), arguments


def softmax(n: int) -> Program:
    """Gradient of a softmax of 20 rows of n."""
    Y = made(n).normal(size=(20, n))

    def f(x: Any) -> Any:
        e = np.exp(x.reshape(20, n))
        return np.sum(Y * (e / np.sum(e, axis=1, keepdims=True)))

    return sa.grad(f), (made(n).normal(size=20 * n),)


def multinomial(n: int) -> Program:
    """Hessian of a multinomial regression of 100 rows, 3 columns, n classes."""
    r = made(n)
    X, y = r.normal(size=(100, 3)), r.integers(0, n, 100)

    def f(w: Any) -> Any:
        z = X @ w.reshape(3, n)
        return np.sum(np.log(np.sum(np.exp(z), axis=1))) - np.sum(z[np.arange(100), y])

    return sa.hessian(f), (r.normal(size=3 * n) * 0.1,)


def solve(n: int) -> Program:
    """Gradient through a linear system of n unknowns."""
    A = made(n).normal(size=(n, n)) / math.sqrt(n) + 3 * np.eye(n)
    return sa.grad(lambda x: np.sum(np.linalg.solve(A + np.diag(x), x) ** 2)), (made(n).uniform(0.1, 1, n),)


def determinant(n: int) -> Program:
    """Gradient of the logarithm of a determinant, n x n."""
    A = made(n).normal(size=(n, n)) / math.sqrt(n) + 3 * np.eye(n)
    return sa.grad(lambda x: np.linalg.slogdet(A + np.outer(x, x))[1]), (made(n).uniform(0.1, 1, n),)


def tridiagonal(n: int) -> Program:
    """Gradient through a tridiagonal solve of n unknowns, a Python loop."""

    def f(d: Any) -> Any:
        c, q = [-1.0 / d[0]], [1.0 / d[0]]
        for i in range(1, n):
            m = d[i] + c[-1]
            c.append(-1.0 / m)
            q.append((1.0 + q[-1]) / m)
        x = q[-1]
        total = x**2
        for i in range(n - 2, -1, -1):
            x = q[i] - c[i] * x
            total = total + x**2
        return total

    return sa.grad(f), (np.full(n, 3.0),)


def running(n: int) -> Program:
    """Hessian of a running sum's logarithms (Cox)."""
    X = made(n).normal(size=(n, 3))
    return sa.hessian(lambda w: np.sum(np.log(np.cumsum(np.exp(X @ w)))) - np.sum(X @ w)), (np.full(3, 0.1),)


def columns(n: int) -> Program:
    """Gradient of the distances of 300 points to 5 centres in n dimensions."""
    Z = made(n).normal(size=(300, n))

    def f(c: Any) -> Any:
        return np.sum(np.exp(-0.01 * np.sum((Z[:, None] - c.reshape(5, n)[None]) ** 2, axis=2)))

    return sa.grad(f), (made(n).normal(size=5 * n),)


def convolved(n: int) -> Program:
    """Gradient of a convolution of n values with 5."""
    return sa.grad(lambda x: np.sum(np.convolve(x, np.arange(1.0, 6.0)) ** 3)), (made(n).normal(size=n),)


def sorted_values(n: int) -> Program:
    """Gradient of weighted sorted values."""
    w = made(n).normal(size=n)
    return sa.grad(lambda x: np.sum(w * np.sort(x) ** 2)), (made(n).normal(size=n),)


def conditions(n: int) -> Program:
    """Gradient of a Huber loss with an `if` for each of n data."""
    y = made(n).normal(size=n)

    def f(p: Any) -> Any:
        total = 0.0
        for value in y:
            e = value - p[0] - p[1] * value**2
            if e * e < 1.0:  # noqa: SIM108 - a branch with a statement is what is measured
                e = e * e
            else:
                e = 2 * np.sqrt(e * e) - 1
            total = total + e
        return total

    return sa.grad(f), (np.array([0.1, 0.2]),)


def polynomial(n: int) -> Program:
    """Jacobian of a polynomial of degree n at 50 points, by Horner's rule."""
    t = np.linspace(-1, 1, 50)

    def f(c: Any) -> Any:
        value = 0.0 * t
        for k in range(n):
            value = value * t + c[k]
        return np.exp(value)

    return sa.jacobian(f), (made(n).normal(size=n) * 0.1,)


def scalars(n: int) -> Program:
    """A gradient by n scalar arguments."""
    f = sa.grad(lambda *a: sum(v * v for v in a) + np.sin(a[0] * a[-1]), argnums=tuple(range(n)))
    return f, tuple(float(v) for v in made(n).normal(size=n))


def quadratic(n: int) -> Program:
    """Hessian of an exponential of a quadratic form."""
    Q = made(n).normal(size=(n, n))
    Q = Q + Q.T
    return sa.hessian(lambda x: np.exp(-0.01 * (x @ Q @ x))), (made(n).normal(size=n) * 0.1,)


def products(n: int) -> Program:
    """Hessian of a product of all entries and a norm."""
    return sa.hessian(lambda x: np.prod(x) + np.linalg.norm(x)), (made(n).uniform(0.5, 1.5, n),)


def grid(n: int) -> Program:
    """Sparse Jacobian of a reaction with diffusion on n x 3 cells."""

    def f(u: Any) -> Any:
        v = u.reshape(3, n)
        return (np.roll(v, 1, axis=1) + np.roll(v, -1, axis=1) - 2 * v + v * (1 - v * v)).ravel()

    return sa.jacobian(f, sparse=True), (made(n).normal(size=3 * n),)


def gathered(n: int) -> Program:
    """Sparse Jacobian of residuals that gather their operands by index arrays."""
    r = made(n)
    i, j = r.integers(0, n, 4 * n), r.integers(0, n, 4 * n)
    return sa.jacobian(lambda x: np.exp(-(x[i] ** 2)) * np.sin(x[j]), sparse=True), (r.normal(size=n),)


FAMILIES: Mapping[str, Callable[[int], Program]] = {
    maker.__name__: maker
    for maker in (
        logistic, rows, centre, centres, pairs, pairs_hessian, network, layers, layers_hessian, chain, chain_loop,
        steps, steps_hessian, softmax, multinomial, solve, determinant, tridiagonal, running, columns, convolved,
        sorted_values, conditions, polynomial, scalars, quadratic, products, grid, gathered,
    )
}  # fmt: skip
SMALL = {"pairs": 200, "pairs_hessian": 80, "multinomial": 80, "products": 129, "quadratic": 400, "layers_hessian": 257}


def call_seconds(kernel: Any, arguments: tuple[Any, ...]) -> float:
    """Return the least time of a call, of bursts of about a millisecond."""
    kernel(*arguments)
    start = time.process_time()
    for _ in range(5):
        kernel(*arguments)
    number_of_calls = max(3, int(1e-3 / max((time.process_time() - start) / 5, 1e-7)))
    bursts = []
    for _ in range(7):
        start = time.process_time()
        for _ in range(number_of_calls):
            kernel(*arguments)
        bursts.append((time.process_time() - start) / number_of_calls)
    return min(bursts)


def cost(family: Callable[[int], Program], n: int, options: Mapping[str, Any], builds: int = 1) -> Cost:
    """Build and call the program of one size."""
    f, arguments = family(n)
    times = []
    for _ in range(builds):
        start = time.process_time()
        kernel = sa.compile(f, *arguments, cache=False, **options)
        kernel(*arguments)
        times.append(time.process_time() - start)
    return Cost(call_seconds(kernel, arguments), min(times), kernel.stats.strategy)


def worst(n: int, m: int, before: Cost, after: Cost) -> dict[str, float]:
    """Return by how much each cost of a step is beyond what growth explains."""
    growth = (m / n) ** DEGREE
    ratios = {}
    for kind, shortest in SHORTEST.items():
        low, high = getattr(before, kind), getattr(after, kind)
        ratios[kind] = max(high, shortest) / max(low, shortest) / growth
    return ratios


def sweep(name: str, last: int) -> Iterator[tuple[str, ...]]:
    """Yield the cliffs of one family, as rows, and at the end its curve's ends."""
    family = FAMILIES[name]
    farther = [n for n in FARTHER if last < n <= SMALL.get(name, 1025)] if last >= LAST else []
    sizes = [*range(2, last + 1), *farther]
    costs = {sizes[0]: cost(family, sizes[0], {}, 2)}
    steepest = dict.fromkeys(SHORTEST, 0.0)
    for n, m in pairwise(sizes):
        costs[m] = cost(family, m, {}, 2 if m <= LAST else 1)
        if m > n + 1:
            continue
        ratios = worst(n, m, costs[n], costs[m])
        for _ in range(AGAIN):
            if max(ratios.values()) <= LIMIT:
                break
            costs[n], costs[m] = (better(costs[k], cost(family, k, {})) for k in (n, m))
            ratios = worst(n, m, costs[n], costs[m])
        for kind, ratio in ratios.items():
            steepest[kind] = max(steepest[kind], ratio)
            if ratio > LIMIT:
                low, high = getattr(costs[n], kind), getattr(costs[m], kind)
                ways = f"{costs[n].way} -> {costs[m].way}"
                yield name, f"{n} -> {m}", kind, number(low * 1e6), number(high * 1e6), f"{ratio:.2f}", ways
    yield name, f"2 .. {sizes[-1]}", "worst", "", "", f"{steepest['call']:.2f} / {steepest['build']:.2f}", ""


def better(a: Cost, b: Cost) -> Cost:
    """Return the lesser of two measurements of one size."""
    return Cost(min(a.call, b.call), min(a.build, b.build), b.way)


def ways(name: str) -> Iterator[tuple[str, ...]]:
    """Yield, for a few sizes, what the chosen way takes beside the best one."""
    family = FAMILIES[name]
    for n in WAY_SIZES:
        if n > SMALL.get(name, n):
            continue
        chosen = cost(family, n, {}, 2)
        costs = {}
        for way, options in WAYS.items():
            try:
                costs[way] = cost(family, n, options | {"max_seconds": LONGEST})
            except (sa.LimitError, sa.ArgumentError, sa.TraceError):
                continue
        best = min(costs, key=lambda way: costs[way].call)
        regret = chosen.call / costs[best].call
        if regret > 1.15:
            chosen = better(chosen, cost(family, n, {}))
            costs[best] = better(costs[best], cost(family, n, WAYS[best] | {"max_seconds": LONGEST}))
            regret = chosen.call / costs[best].call
        yield (
            name,
            str(n),
            chosen.way,
            number(chosen.call * 1e6),
            number(chosen.build),
            best,
            number(costs[best].call * 1e6),
            number(costs[best].build),
            f"{regret:.2f}",
        )


def main() -> int:
    """Sweep the families named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cliffs", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*FAMILIES, []], help="families; all of them if none is named")
    parser.add_argument("--last", type=int, default=LAST, help="the last size of single steps")
    parser.add_argument("--ways", action="store_true", help="compare the chosen way with the others instead")
    options = parser.parse_args()
    found: list[list[str]] = []
    for name in options.names or FAMILIES:
        for row in ways(name) if options.ways else sweep(name, options.last):
            print("  ".join(row), file=sys.stderr, flush=True)
            found.append(list(row))
    header = (
        ("family", "n", "chosen", "us", "build, s", "best", "us", "build, s", "times as long")
        if options.ways
        else ("family", "step", "what", "us before", "us after", "times beyond growth", "ways")
    )
    print(table(header, found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
