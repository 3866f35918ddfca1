"""Carries: what one repetition hands to the next; it keeps its structure, shapes and type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import symad.tracing.values.containers as containers
from symad.errors import ArgumentError
from symad.tracing.calling.function_names import name_of
from symad.tracing.calling.user_place import user_place
from symad.tracing.control.results import Flat, is_real, is_truth


def carry_of(value: Any, source: str) -> Flat:
    """Return a carry with integers as floats; ArgumentError for truth values and for what is no real number.

    >>> carry_of((1, np.arange(2)), "init").leaves
    [1.0, array([0., 1.])]
    """
    leaves, structure = containers.flatten(value)
    for leaf in leaves:
        if not is_real(leaf) or is_truth(leaf):
            raise ArgumentError(
                f"{source} holds a {'truth value' if is_real(leaf) else f'value of type {type(leaf).__name__}'}",
                where=user_place(),
                why="a carry holds real numbers, of one type in all repetitions",
                do="carry 1.0 and 0.0, and compare with > 0.5" if is_real(leaf) else "carry real numbers and arrays",
            )
    return Flat([_promoted(leaf) for leaf in leaves], structure)


def next_carry(f: Callable[..., Any], value: Any, before: Flat) -> Flat:
    """Return the carry that a body returned; ArgumentError where its structure, shape or type is another one."""
    found = carry_of(value, f"the carry that {name_of(f)} returned")
    if not found.is_like(before):
        raise ArgumentError(
            f"{name_of(f)} was given the carry {before} and returned {found}",
            where=user_place(),
            why="what a repetition returns is what the next one gets",
            do="return a carry of the structure and shapes of init",
        )
    return found


def _promoted(leaf: Any) -> Any:
    if isinstance(leaf, int | np.integer):
        return float(leaf)
    return leaf.astype(float) if type(leaf) is np.ndarray and leaf.dtype.kind in "iu" else leaf
