"""Section "meta_gradient": the gradient of 1,000 unrolled momentum steps on Rosenbrock's function.

The final loss is differentiated in the learning rate, in the momentum and in the two coordinates of the starting point,
by reverse mode over a loop of reverse-mode gradients. The reference takes central differences of the same loop in 50
digits, with the gradient written by hand. A number that is off by more than 1e-12 is a failure of the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np

import symad as sa
from benchmarks.session import Session
from benchmarks.tables import table
from benchmarks.timing import burst, calls_per_burst, no_garbage_collection

STEPS = 1000
POINT = (5e-4, 0.9, np.array([-1.2, 1.0]))
NAMES = ("learning rate", "momentum", "start, x", "start, y")
TOLERANCE = 1e-12


def rosenbrock(x: Any) -> Any:
    """Return Rosenbrock's function of two variables."""
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


def trained(rate: Any, momentum: Any, start: Any) -> Any:
    """Return the loss after all steps."""
    x, velocity = start, np.zeros_like(start)
    for _ in range(STEPS):
        velocity = momentum * velocity - rate * sa.grad(rosenbrock)(x)
        x = x + velocity
    return rosenbrock(x)


def in_50_digits(rate: Any, momentum: Any, x: Any, y: Any) -> Any:
    """Return the same, with the gradient written by hand."""
    u = v = mpmath.mpf(0)
    for _ in range(STEPS):
        bend = y - x * x
        u, v = momentum * u - rate * (-400 * x * bend - 2 * (1 - x)), momentum * v - rate * 200 * bend
        x, y = x + u, y + v
    return 100 * (y - x * x) ** 2 + (1 - x) ** 2


def reference() -> list[float]:
    """Return the derivatives by central differences in 50 digits."""
    with mpmath.workdps(50):
        point, step = [mpmath.mpf(float(p)) for p in np.hstack(POINT)], mpmath.mpf(10) ** -16
        ends = (
            [in_50_digits(*(p + sign * step * (i == k) for i, p in enumerate(point))) for sign in (1, -1)]
            for k in range(len(point))
        )
        return [float((up - down) / (2 * step)) for up, down in ends]


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and the seconds that it took."""
    start = time.perf_counter()
    return call(), time.perf_counter() - start


def section(session: Session) -> str:
    """Measure numbers and costs."""
    session.say("meta_gradient")
    gradient = sa.grad(trained, (0, 1, 2))
    sa.compile(sa.grad(rosenbrock), POINT[2])(POINT[2])  # the library's own start
    value = sa.trace(trained, *POINT)
    traced, tracing = timed(lambda: sa.trace(gradient, *POINT))
    kernel, building = timed(lambda: sa.compile(gradient, *POINT))
    lines = []
    for name, found, right in zip(NAMES, np.hstack(kernel(*POINT)), reference(), strict=True):
        off = abs(found / right - 1)
        if not off <= TOLERANCE:
            session.failures.append(f"meta-gradient, {name}: off by {off:.1e}")
        lines.append([name, f"{found:.16e}", f"{right:.16e}", f"{off:.1e}"])
    with no_garbage_collection():
        calls = calls_per_burst(lambda: kernel(*POINT), 0.05)
        seconds = min(burst(lambda: kernel(*POINT), calls) for _ in range(20)) / calls
    return "\n".join(
        [
            table(("derivative in", "found", "50 digits", "off by"), lines),
            f"\n- {STEPS} steps; {value.count_ops()} operations of the loss, {traced.count_ops()} with the gradient",
            f"- {kernel.stats.operations_after} machine operations in the kernel, {kernel.stats.fused} of them fused",
            f"- build {building:.2f} s, of which tracing {tracing:.2f} s; a call {seconds * 1e6:.1f} us",
        ]
    )
