"""Cost: estimates of time, on which choices of strategy rest; results never depend on them.

Measured on an AVX-512 machine, as throughput in long code. Only ratios matter, and they differ little between machines.
"""

from __future__ import annotations

from collections.abc import Mapping

NANOSECONDS = {"call": 20.0, "div": 1.6, "sqrt": 2.4}
OTHERS = 0.25
LANES_AT_ONCE = 4  # doubles that go through the processor as fast as one: longer registers take two turns


def vector_operation(lanes: int) -> float:
    """Return what an operation on so many lanes costs, in scalar operations.

    >>> vector_operation(2), vector_operation(4), vector_operation(8)
    (1.0, 1.0, 2.0)
    """
    return max(1.0, lanes / LANES_AT_ONCE)


def nanoseconds(operations: Mapping[str, int]) -> float:
    """Return an estimate for operations that are counted by kind.

    >>> nanoseconds({"add": 100, "div": 10})
    41.0
    """
    return sum(NANOSECONDS.get(kind, OTHERS) * count for kind, count in operations.items())
