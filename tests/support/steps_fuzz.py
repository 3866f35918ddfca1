"""Random functions with loops that have conditions inside, compiled, against the same functions on numbers.

On numbers a function takes Python's own path, step by step. A kernel has one step for all items, or the paths of each
step merged with what they change. `python -m tests.fuzz steps 1000`.
"""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import symad as sa
from symad.errors import BoundWarning, WorkbenchError
from tests.support.draws import Draw
from tests.support.fuzzing import cause, counted

SIZE = 24
HEADERS = (
    "for v in x:", "for i, v in enumerate(x):", "for i in range(len(x)):\n        v = x[i]",
    "for u, v in zip(x[1:], x[:-1], strict=True):", "for row in x.reshape(-1, 3):\n        v = row[0] * row[1]",
    "for i in range(1, 20, 2):\n        v = x[i] - x[i - 1]", "for v in list(x[:12]):",
    "k = 0.0\n    while k < 9 + s:\n        k = k + 1\n        v = np.sin(k) * s", "for v in (x * 2)[::-1]:",
    "for i in range(6):\n        v = x[i] * TABLE[i]",
)  # fmt: skip
CONDITIONS = (
    "v > 0.1", "v < s", "s * v > t", "on", "not on", "n > 3", "a[0] > v", "y[1] < 0.3", "v > 0 and s < 1",
    "d['p'] < v or t > 1", "abs(v) > 0.7", "w > v", "np.sum(y) > 1",
)  # fmt: skip
NUMBERS = (
    "v", "s", "t * 0.5", "v * v", "np.sin(s)", "x[2] * v", "a[1] * 0.3", "y[0]", "d['q'] * 0.5", "1.5", "w",
    "(v if v > t else s * 0.5)", "n * 0.1", "np.sum(y) * 0.1", "max(v, t)", "np.tanh(v + s)",
)  # fmt: skip
STATEMENTS = (
    "s = s * 0.7 + {e}", "t = {e}", "a[{k}] = {e}", "a[{k}] = a[{k}] * 0.5 + {e}", "y[{k}] = {e}", "y[{k}] += {e}",
    "y *= 0.8", "y = y * 0.9 + {e}", "d['p'] = {e}", "d['q'] += {e}", "n += 1", "n = 7", "on = True", "on = {c}",
    "on = not on", "w = {e}", "s, t = t, {e}", "a[0], a[1] = a[1], a[0]", "b = a", "b[2] = {e}", "z[1] = {e}",
    "z = y", "a = [s, t, {e}]", "g({e})", "s = h({e}, t)",
)  # fmt: skip
LEAVING = ("continue", "break", "return s + t")
TABLE = np.array([0.3, -1.2, 0.8, 1.1, -0.4, 0.6])
CLOSE = 1e-9


START = """\
def f(x):
    s, t, n, on = x[0], 0.4, 0, False
    a, y, d = [0.1, x[1], 2.0], np.zeros(3), {'p': 0.2, 'q': x[2]}
    y[2] = x[3]
    b, z = a, y
    def g(value):
        if value > 0.2:
            a[2] = a[2] * 0.5 + value
    def h(value, other):
        return value * other if value > other else value - other"""
END = "    return s + 2 * t + 3 * a[0] + 4 * a[1] + 5 * b[2] + np.sum(y * z) + d['p'] * d['q'] + n * "


def make(draw: Draw) -> str:
    """Draw a program and points, as text."""
    lines = [START, *(["    w = 0.3"] if draw.chance(0.7) else [])]
    if draw.chance(0.25):  # no loop, but a row of conditions
        lines += ["    v = x[5]", *_block(draw, 4, draw.integer(8, 14), 0, LEAVING[2:])]
    else:
        lines += [f"    {draw.choice(HEADERS)}", *_block(draw, 8, draw.integer(1, 4), 0, LEAVING)]
    if draw.chance(0.3):
        lines += ["    for v in y:", *_block(draw, 8, 1, 0, LEAVING)]
    points = [[round(draw.real(-1.5, 1.5), 3) for _ in range(SIZE)] for _ in range(3)]
    return "\n".join([*lines, END + draw.choice(NUMBERS[:3]), f"\nPOINTS = {points}\n"])


def _block(draw: Draw, indent: int, count: int, depth: int, leaving: Sequence[str]) -> list[str]:
    return [line for _ in range(count) for line in draw.part(lambda: _statement(draw, indent, depth, leaving))]


def _statement(draw: Draw, indent: int, depth: int, leaving: Sequence[str]) -> list[str]:
    space = " " * indent
    if depth < 2 and draw.chance(0.5):
        inside = _block(draw, indent + 4, draw.integer(1, 2), depth + 1, leaving)
        lines = [f"{space}if {draw.choice(CONDITIONS)}:", *inside]
        if draw.chance(0.5):
            lines += [f"{space}else:", *_block(draw, indent + 4, 1, depth + 1, leaving)]
        return lines
    if depth and draw.chance(0.1):
        return [space + draw.choice(leaving)]
    text = draw.choice(STATEMENTS)
    return [space + text.format(e=draw.choice(NUMBERS), c=draw.choice(CONDITIONS), k=draw.below(3))]


def check(text: str) -> str:
    """Compare a kernel with calls on numbers; AssertionError where they differ."""
    name = f"<program {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, Any] = {"np": np, "TABLE": TABLE}
    exec(compile(text, name, "exec"), names)
    f, points = names["f"], [np.array(point) for point in names["POINTS"]]
    right = [(x, value) for x in points if (value := _plain(f, x)) is not None]
    if not right:
        return "without numbers"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            kernel = sa.compile(sa.value_and_grad(f), points[0])
        except WorkbenchError as error:
            return f"refused: {cause(error)}"
        except (UnboundLocalError, NameError):
            return "a variable is not bound on one of the paths"
        for x, value in right:
            counted("value and gradient")
            found, slopes = kernel(x)
            wanted = sa.grad(f)(x)
            size = 1 + float(np.max(np.abs(wanted)))
            assert abs(found - value) <= CLOSE * (1 + abs(value)), f"{found} for {value} at {x.tolist()}"
            assert np.all(np.abs(slopes - wanted) <= 1e-7 * size), f"slopes {slopes} for {wanted} at {x.tolist()}"
    return f"right, {kernel.stats.strategy}"


def _plain(f: Callable[[Any], Any], x: Any) -> float | None:
    try:
        value = float(f(x))
    except (UnboundLocalError, NameError, OverflowError):
        return None
    return value if abs(value) < 1e6 else None
