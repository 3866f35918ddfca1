"""Shared parts of the stand-ins for SciPy's objects."""

from __future__ import annotations

import sys
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


def put(target: Any, **parts: Any) -> Any:
    """Set attributes of one of SciPy's objects as they are, and return it; those that convert have an underscore."""
    for name, value in parts.items():
        hidden = f"_{name}"
        is_converting = isinstance(getattr(type(target), name, None), property)
        setattr(target, hidden if is_converting else name, value)
    if hasattr(type(target), "_asarray"):
        target._asarray = as_it_is
    return target


def as_it_is(value: Any, *_: Any, **__: Any) -> Any:
    """Return a value: the conversion of objects that hold traced ones."""
    return value


def taken(a: Any, places: Any, axis: int = 0) -> Any:
    """Return the parts of an array at places of an axis, which may be computed."""
    return np.take(a if is_plain(places) else traced(a), places, axis=axis)


def fails(question: Any, *values: Any) -> bool:
    """Whether a question about an array has the answer no, where its values are known."""
    (value,) = values
    known = question(np.asarray(value)) if is_plain(value) else known_values(value, question)
    return known is not None and not known


def check_ascending(x: Any) -> None:
    """Raise SciPy's error for abscissae that do not ascend, where they are known."""
    if fails(_ascends, x):
        raise ValueError("`x` must be strictly increasing sequence.")


def _ascends(x: Any) -> Any:
    return np.all(np.diff(x) > 0)
