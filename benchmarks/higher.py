"""Section "higher": derivatives of higher order: growth with the order, tensors that stay sparse, interpolation.

Operations are counted on the traced graph (shared ones once, no leaves). Seconds and peak memory of a tensor are those
of a process of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import symad as sa
from benchmarks.problems import make_log_sum_exp, make_network
from benchmarks.scale import alone, chain, rosenbrock
from benchmarks.session import Session

ORDERS = range(1, 11)

# name: (function, point): directional derivatives along (1, ..., 1)
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "1/(1 + x²)": (lambda x: 1 / (1 + x * x), 0.7),
    "exp(x sin x)": (lambda x: np.exp(x * np.sin(x)), 0.7),
    "tanh tanh tanh x": (lambda x: np.tanh(np.tanh(np.tanh(x))), 0.7),
    "sqrt(1 + sin² x)": (lambda x: np.sqrt(1 + np.sin(x) ** 2), 0.7),
    "six sines": (lambda x: chain(x, 6), 1.0),
    "network 8-16-16-1": (make_network(), np.linspace(-1, 1, 8)),
    "log-sum-exp, n = 20": (make_log_sum_exp(), np.linspace(-1, 1, 20)),
}


def growth(orders: range) -> Iterator[str]:
    """Yield the table of operations of the k-th directional derivative, nested and through Taylor coefficients."""
    yield "| function | " + " | ".join(f"k = {k}" for k in orders) + " | Taylor from |"
    yield "|---" * (len(orders) + 2) + "|"
    for name, (f, point) in FUNCTIONS.items():
        counts = {mode: [directional_operations(f, point, k, mode) for k in orders] for mode in ("nested", "taylor")}
        pairs = list(zip(*counts.values(), strict=True))
        behind = [k for k, (nested, taylor) in zip(orders, pairs, strict=True) if nested < taylor]
        crossover = max(behind, default=0) + 1
        cells = " | ".join(f"{nested} / {taylor}" for nested, taylor in pairs)
        yield f"| {name} | {cells} | k = {crossover} |"


def directional_operations(f: Callable[[Any], Any], point: Any, order: int, mode: Any) -> int:
    """Return the operations of one directional derivative."""
    direction = np.ones(np.shape(point), dtype=int) if np.shape(point) else 1
    return sa.trace(lambda x: sa.partials(f, order, along=direction, mode=mode)(x), point).count_ops()


def single_values() -> Iterator[str]:
    """Yield the values and times of two derivatives of very high order."""
    x = np.linspace(0.0, 2.0, 20)
    works: dict[str, Callable[[], float]] = {
        "d^20/dx_1..dx_20 of x_1 x_2 ... x_20": lambda: sa.partials(np.prod, range(20))(x),
        "tenth derivative of six sines at 1": lambda: sa.partials(lambda t: chain(t, 6), 10, along=1.0)(1.0),
        "a_171 of 1/(1 - x) at 0": lambda: sa.taylor(lambda t: 1 / (1 - t), (0.0,), (1.0,), 171)[171],
    }
    for text, work in works.items():
        start = time.perf_counter()
        value = work()
        yield f"- {text} = {value!r}, {time.perf_counter() - start:.3f} s"


def third_tensor(size: int) -> str:
    """Trace the sparse third derivative of the chained Rosenbrock function."""
    return sparse_tensor(size, 3)


def fourth_tensor(size: int) -> str:
    """Trace the sparse fourth derivative of the chained Rosenbrock function."""
    return sparse_tensor(size, 4)


def sparse_tensor(size: int, order: int) -> str:
    """Return what a table says about the derivative tensor of an order."""
    traced = sa.trace(sa.partials(rosenbrock, order, sparse=True), np.ones(size))
    return f"{len(traced.outputs.flat)} | {len(traced.graph)} | {traced.count_ops()}"


def tensors(sizes: list[int]) -> Iterator[str]:
    """Yield the table of sparse tensors, each measured in a process of its own."""
    yield "| tensor | n | non-zeros | nodes | operations | seconds | peak MiB |"
    yield "|---|---|---|---|---|---|---|"
    for work in (third_tensor, fourth_tensor):
        for size in sizes:
            text, seconds, peak = alone(work, size)
            yield f"| {work.__name__.replace('_', ' ')} | {size} | {text} | {seconds:.2f} | {peak / 2**20:.0f} |"


def interpolation(orders: range) -> Iterator[str]:
    """Yield the table of mixed partials of a function of three variables, interpolated and exact."""
    yield "| order | unknowns | condition number | error of interpolation | operations: interpolation / tensor |"
    yield "|---|---|---|---|---|"
    for order in orders:
        found = sa.partials(lambda x: np.exp(x[0] * x[1]) * np.sin(x[2]), order, mode="interpolation")(
            np.array([0.3, -0.7, 1.1])
        )
        counts = f"{found.operations['interpolation']} / {found.operations['tensor']}"
        yield f"| {order} | {len(found.exact)} | {found.condition:.2g} | {found.error:.1e} | {counts} |"


def operators() -> Iterator[str]:
    """Yield what `mode="auto"` counted for Laplacians and biharmonic operators."""
    cases = {"exp(xy)": (lambda x: np.exp(x[0] * x[1]), np.ones(2)), "network": (make_network(), np.linspace(-1, 1, 8)),
             "log-sum-exp, n = 20": (make_log_sum_exp(), np.linspace(-1, 1, 20)),
             "chained Rosenbrock, n = 100": (rosenbrock, np.linspace(-1, 1, 100))}  # fmt: skip
    for name, (f, point) in cases.items():
        with sa.choices() as made:
            sa.laplacian(f)(point)
            if len(point) <= 8:
                sa.laplacian(f, power=2)(point)
        yield from (f"- {name}, {choice.what}: {choice.chosen} of {dict(choice.operations)}" for choice in made)


def section(session: Session) -> str:
    """Count and measure."""
    session.say("higher: operations by order")
    quick = session.quick
    parts = {
        "Operations of the k-th directional derivative: nested forward mode / Taylor coefficients": growth(
            ORDERS[:4] if quick else ORDERS
        ),
        "Single derivatives of high order": single_values(),
        "Chained Rosenbrock: symmetric COO tensors, nothing dense": tensors([100] if quick else [100, 1000, 10_000]),
        "Mixed partials of exp(xy) sin(z) by interpolation": interpolation(range(1, 5) if quick else range(1, 13)),
        "Laplacians: what was chosen, by operations": operators(),
    }
    return "\n\n".join(f"### {title}\n\n" + "\n".join(lines) for title, lines in parts.items())
