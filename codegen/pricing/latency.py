"""Estimate how long straight lines wait for their own results."""

from __future__ import annotations

from codegen.ir.program import Program, reachable
from codegen.pricing.price_table import NANOSECONDS, kind_of, kinds, lowered, on_lanes, operations, registers

# Nanoseconds until a result is ready, at 3.5 GHz; of functions, as formulas on lanes.
LATENCY = {"operation": 1.1, "sum": 0.0, "div": 6.6, "sqrt": 9.0}
FUNCTION = 25.0


def longest_way(program: Program) -> float:
    """Return the nanoseconds of the longest path from an input to a result.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> round(longest_way(program_from_sympy([x], [sp.sqrt(x + 1), 1 / x])), 6)
    10.1
    """
    ready: dict[int, float] = {}
    for row in reachable(program, [row for output in program.outputs for row in output.rows]):
        parts = program.operands[row]
        ready[row] = 0.0 if not parts else max(ready[part] for part in parts) + sum(
            LATENCY.get(name, FUNCTION) * count for name, count in lowered(kind_of(program, row))
        )  # fmt: skip
    return max(ready.values(), default=0.0)


def busy(program: Program, width: int) -> float:
    """Return the nanoseconds for which a program keeps the processor busy, with `width` points side by side."""
    rows = reachable(program, [row for output in program.outputs for row in output.rows])
    entries = on_lanes(operations(kinds(program, rows)))
    return registers(width) * sum(NANOSECONDS[name] * count for name, count in entries.items())
