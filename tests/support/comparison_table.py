"""The tables of `docs/comparisons.md`, made by `compare` itself: `python -m tests.support.comparison_table`.

Other libraries and times are left out, because they depend on the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

from symad.classroom.comparison.compare import Comparison, compare, markdown_table, ulp_text
from symad.classroom.comparison.comparison_problem import derivative_name, whole
from tests.support.generated_tables import with_tables

PAGE = Path(__file__).parents[2] / "docs" / "comparisons.md"
OWN = ("sympy.diff", "AD", "Taylor", "interpolation", "differences", "Richardson", "complex step")
X = sp.Symbol("x", real=True)


@dataclass(frozen=True)
class Case:
    """A function, a point, an order, and how the function is written in the page."""

    f: Any
    x: Any
    order: int
    written: str

    @property
    def heading(self) -> str:
        """The line above the table."""
        point = ", ".join(
            f"{value:g}" for value in np.ravel(list(self.x.values()) if isinstance(self.x, dict) else self.x)
        )
        return f"`{self.written}`, {derivative_name(self.order).lower()} at {point}:"


def tower(x: Any) -> Any:
    """e <- sin(e) e, nine times."""
    for _ in range(9):
        x = np.sin(x) * x
    return x


def logistic_map(x: Any) -> Any:
    """Eight steps of the logistic map."""
    for _ in range(8):
        x = 3.75 * x * (1 - x)
    return x


def network(x: Any) -> Any:
    """Four layers of four tanh units, with weights that are sixteenths."""
    weights = np.random.default_rng(0)
    for _ in range(4):
        x = np.tanh(np.round(weights.normal(size=(4, len(x))) * 16) / 16 @ x)
    return np.sum(x)


CASES = {
    "plain": Case(lambda x: np.sin(x) * np.exp(x), 0.5, 2, "sin(x) * exp(x)"),
    "Bell": Case(lambda x: np.exp(np.exp(x) - 1), 0.0, 5, "exp(exp(x) - 1)"),
    "product": Case(np.prod, np.arange(1.0, 7.0), 2, "x[0] * x[1] * ... * x[5]"),
    "network": Case(network, np.array([0.3, -0.5]), 1, "four layers of four tanh units"),
    "tower": Case(tower, 1.6, 1, "e = x, then e = sin(e) * e nine times"),
    "logistic": Case(logistic_map, 0.3, 1, "x = 3.75 * x * (1 - x) eight times"),
    "cosine": Case(lambda x: (1 - np.cos(x)) / x**2, 1e-4, 2, "(1 - cos(x)) / x**2"),
    "expanded": Case(sp.expand((X - 1) ** 7), {X: 1.01}, 1, "(x - 1)**7, expanded"),
    "softplus": Case(lambda x: np.log(1 + np.exp(x)), 40.0, 2, "log(1 + exp(x))"),
    "hypot": Case(lambda x: np.hypot(x[0], x[1]), np.array([1e8, 1e-3]), 2, "hypot(x[0], x[1])"),
}  # fmt: skip


@cache
def compared(name: str) -> Comparison:
    """Return the comparison of a case, made once."""
    case = CASES[name]
    return compare(case.f, case.x, case.order, only=OWN, times=False, max_seconds=60.0)


def table(name: str) -> str:
    """One line for each route, without values, which differ in their last digits from machine to machine."""
    header, rows, align = compared(name).table()
    kept = [k for k, column in enumerate(header) if column != "value"]
    chosen = [tuple(row[k] for k in kept) for row in rows]
    text = markdown_table(tuple(header[k] for k in kept), chosen, "".join(align[k] for k in kept))
    return f"{CASES[name].heading}\n\n{text}\n"


def summary() -> str:
    """One line for each function: how the formula of sympy.diff swells, operations, and errors by kind of route."""
    lines = []
    for name, case in CASES.items():
        found = compared(name)
        symbolic = found["sympy.diff, codegen"]
        formulas = [row for row in found.rows if row.family == "AD" and row.sizes and row.ulp is not None]
        swell = symbolic.sizes.swell if symbolic.sizes else 0.0
        lines.append((
            f"[{name}](#{name.lower()})", str(case.order), whole(symbolic.sizes.tree if symbolic.sizes else None),
            whole(symbolic.sizes.graph if symbolic.sizes else None), f"{swell:.1f}",
            whole(min(row.operations or 0 for row in formulas)), ulp_text(symbolic),
            ulp_text(min(formulas, key=lambda row: row.ulp or 0.0)), ulp_text(found["differences central"]),
        ))  # fmt: skip
    header = (
        "function",
        "order",
        "tree",
        "graph",
        "swell",
        "AD operations",
        "ULP: sympy.diff",
        "ULP: AD",
        "ULP: central",
    )
    return markdown_table(header, lines, "lrrrrrrrr") + "\n"


TABLES: dict[str, Callable[[], str]] = {
    "summary": summary, **{name: (lambda name=name: table(name)) for name in CASES},
}  # fmt: skip


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), TABLES), encoding="utf-8")
