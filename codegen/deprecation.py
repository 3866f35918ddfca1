"""A deprecated public name warns at each call. docs/deprecation.md has the rules."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from codegen.errors import ArgumentError

P = ParamSpec("P")
R = TypeVar("R")
KEPT = 2  # minor releases at least, between that which deprecates a name and that which has it no longer


def deprecated(*, since: str, until: str, instead: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of a function that works as before, and warns: ArgumentError for releases too near.

    The warning is a DeprecationWarning at the caller's line, which Python shows in scripts and tests.

    >>> @deprecated(since="0.3", until="0.5", instead="grad")
    ... def gradient(x):
    ...     return 2 * x
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     gradient(3.0), str(told[0].message)
    (6.0, 'gradient is deprecated since 0.3, and goes with 0.5; write grad')
    """
    if _number(until) < _number(since) + KEPT:
        raise ArgumentError(f"deprecated since {since} until {until}", do=f"keep it for {KEPT} minor releases")

    def decorator(f: Callable[P, R]) -> Callable[P, R]:
        text = f"{f.__name__} is deprecated since {since}, and goes with {until}; write {instead}"

        @wraps(f)
        def warning(*args: P.args, **keywords: P.kwargs) -> R:
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return f(*args, **keywords)

        warning.__deprecated__ = text  # type: ignore[attr-defined] # as PEP 702 has it
        return warning

    return decorator


def _number(release: str) -> int:
    """Return the number of a minor release, counted through; a major one is as far as any number of them.

    >>> _number("0.5") - _number("0.3"), _number("1.0") - _number("0.9") > KEPT
    (2, True)
    """
    major, minor = release.split(".")[:2]
    return 1000 * int(major) + int(minor)
