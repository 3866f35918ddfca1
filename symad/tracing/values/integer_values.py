"""Traced numbers and arrays that are ints in Python or NumPy, and so are never -0.0."""

from __future__ import annotations

from typing import Any

import numpy as np

from symad.tracing.values.node_operands import nodes_of
from symad.tracing.values.traced import Traced
from symad.tracing.values.whole_numbers import are_noted, note_integers


def as_integers(value: Any) -> Any:
    """Note traced whole numbers that are never -0.0, such as places and counts, as ints; return them."""
    if isinstance(value, Traced):
        note_integers(value.scope.graph, nodes_of(value, value.scope))
    return value


def are_integers(value: Any) -> bool:
    """Whether a value is an int, an array of ints, or a traced one noted as such."""
    if isinstance(value, Traced):
        graph = value.scope.graph
        return bool(graph.integers) and are_noted(graph, nodes_of(value, value.scope))
    return isinstance(value, int | np.integer) or (isinstance(value, np.ndarray) and value.dtype.kind in "biu")
