"""Shared parts of the stand-ins for SciPy's objects."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from symad.tracing.numpy.reduce import traced
from symad.tracing.numpy.solve import known_values
from symad.tracing.values.node_operands import holds_traced


def array(value: Any) -> Any:
    """Return a value as a traced array where it has traced values in it, else as an ordinary one of floats."""
    return traced(value) if holds_traced((value,)) else np.asarray(value, dtype=float)


def is_plain(*values: Any) -> bool:
    """Whether there is no traced value among the values."""
    return not holds_traced(values)


def package(name: str) -> Any:
    """Return a package of SciPy, which is imported where a stand-in for something in it is called."""
    return sys.modules[f"scipy.{name}"]


def held(target: Any, *names: str) -> list[Any]:
    """Return attributes of one of SciPy's objects as they are; those that convert have an underscore."""
    return [getattr(target, f"_{name}" if hasattr(target, f"_{name}") else name) for name in names]


def put(target: Any, **parts: Any) -> Any:
    """Set attributes of one of SciPy's objects as they are, and return it; those that convert have an underscore."""
    for name, value in parts.items():
        is_converting = isinstance(getattr(type(target), name, None), property)
        setattr(target, f"_{name}" if is_converting else name, value)
    if hasattr(type(target), "_asarray"):
        target._asarray = lambda value, *_, **__: value
    return target


def taken(a: Any, places: Any, axis: int = 0) -> Any:
    """Return the parts of an array at places of an axis, which may be computed."""
    return np.take(a if is_plain(places) else traced(a), places, axis=axis)


def column(vector: Any, behind: int) -> Any:
    """Return a vector as the first axis of an array, with so many axes behind it."""
    return np.reshape(vector, (-1,) + (1,) * behind)


def weighed(values: Any, axes: Sequence[Sequence[tuple[Any, Any]]]) -> Any:
    """Return sums of parts of an array: of each of its first axes there are places to take and their weights."""
    rest = np.shape(values)[len(axes) :]
    rows = np.reshape(values, (-1, *rest))
    total: Any = 0.0
    for corner in itertools.product(*axes):
        place, weight = 0, 1.0
        for (step, factor), length in zip(corner, np.shape(values), strict=False):
            place, weight = place * length + step, weight * factor
        total = total + column(weight, len(rest)) * taken(rows, place)
    return total


def none(truths: Any) -> Any:
    """Whether no truth value is true: a question that numbers answer."""
    return not np.any(truths)


def fails(question: Any, value: Any) -> bool:
    """Whether a question about an array has the answer no, where its values are known."""
    known = question(np.asarray(value)) if is_plain(value) else known_values(value, question)
    return known is not None and not known


def check_ascent(x: Any) -> None:
    """Raise SciPy's error for abscissae that do not ascend, where they are known."""
    if fails(lambda x: np.all(np.diff(x) > 0), x):
        raise ValueError("`x` must be strictly increasing sequence.")
