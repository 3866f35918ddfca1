"""`python -m benchmarks.lambdify [SECONDS]`: functions of arrays made by symad, SymPy and numba's `vectorize`.

Small expressions on 1 to 10^7 points: nanoseconds of a call of symad's function, and how many times as long SymPy's (by
NumPy) and numba's take. All must agree; the exit status says whether they do.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

import numpy as np
import sympy as sp

from benchmarks.tables import number, table
from benchmarks.timing import Call, interleave, no_garbage_collection
from codegen import lambdify

x, y, z = sp.symbols("x y z")
EXPRESSIONS = (
    2 * x, x * y, x + y * z, x**2 + y, x**3 + x * y + y**2, sp.sqrt(x**2 + y**2), sp.exp(-x), sp.sin(x) * sp.exp(y),
    1 / (1 + sp.exp(-x)), sp.Piecewise((x, x > y), (y, True)),
)  # fmt: skip
SIZES = (1, 10, 100, 1000, 10**4, 10**5, 10**6, 10**7)
ROUNDS = 7
TOLERANCE = 1e-13


def functions(expression: sp.Expr) -> dict[str, Any]:
    """Return the function of an expression by each tool."""
    symbols = sorted(expression.free_symbols, key=str)
    made = {"symad": lambdify(symbols, expression), "SymPy": sp.lambdify(symbols, expression)}
    if importlib.util.find_spec("numba") is not None and not expression.has(sp.Piecewise):
        plain = sp.lambdify(symbols, expression, "math")
        kinds = ", ".join(["float64"] * len(symbols))
        made["numba"] = importlib.import_module("numba").vectorize([f"float64({kinds})"])(plain)
    return made


def row(expression: sp.Expr, seconds: float) -> tuple[list[str], list[str]]:
    """Return a row of the table, and where tools disagree."""
    made, cells, wrong = functions(expression), [str(expression)], []
    rng = np.random.default_rng(0)
    for size in SIZES:
        given = [rng.uniform(0.1, 2.0, size) for _ in expression.free_symbols]
        values = {tool: f(*given) for tool, f in made.items()}
        right = values["SymPy"]
        wrong += [f"{expression}, {size}: {tool}" for tool, value in values.items() if not near(value, right)]
        calls: dict[str, Call] = {tool: lambda f=f, given=given: f(*given) for tool, f in made.items()}
        times = {tool: quartiles.low for tool, quartiles in interleave(calls, ROUNDS, seconds).items()}
        ratios = [number(times[tool] / times["symad"]) for tool in ("SymPy", "numba") if tool in times]
        cells.append(f"{number(1e9 * times['symad'])} ({', '.join(ratios)})")
    return cells, wrong


def near(value: Any, right: Any) -> bool:
    """Whether two arrays agree to rounding."""
    return np.shape(value) == np.shape(right) and bool(np.allclose(value, right, rtol=TOLERANCE, atol=0))


def main(arguments: list[str]) -> int:
    """Print the table."""
    seconds = float(arguments[0]) if arguments else 0.01
    with no_garbage_collection():
        rows, wrong = zip(*[row(expression, seconds) for expression in EXPRESSIONS], strict=True)
    print(table(["ns (SymPy, numba: times as long)", *[f"{size:.0e}" for size in SIZES]], rows))
    differences = [line for lines in wrong for line in lines]
    print(*differences, sep="\n", end="\n" * bool(differences))
    return bool(differences)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
