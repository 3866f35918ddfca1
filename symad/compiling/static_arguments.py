"""Static arguments of a jitted function: truth values and enumerations, for each of which it is another function."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Mapping
from enum import Enum
from functools import update_wrapper
from threading import Lock
from typing import Any

import numpy as np

from symad.tracing.values.exactly import Exactly

Function = Callable[..., Any]
STATIC = (bool, np.bool_, Enum)


class Variants:
    """What a maker makes of a function with some of its arguments bound, kept for the last ones of them.

    >>> variants = Variants(lambda x, doubled: 2 * x if doubled else x, lambda f: f, 8)
    >>> variants.of({1: True})(3.0), variants.of({1: False})(3.0), variants.of({1: True}) is variants.of({1: True})
    (6.0, 3.0, True)
    """

    def __init__(self, function: Function, make: Callable[[Function], Function], kept: int) -> None:
        self._function, self._make, self._kept = function, make, kept
        self._made: OrderedDict[Any, Function] = OrderedDict()
        self._lock = Lock()

    def of(self, static: Mapping[int, Any]) -> Function:
        """Return what is made of the function with arguments at these positions."""
        key = tuple((position, Exactly(value)) for position, value in sorted(static.items()))
        with self._lock:
            made = self._made.get(key)
            if made is None:
                made = self._made[key] = self._make(bound(self._function, static))
            self._made.move_to_end(key)
            if len(self._made) > self._kept:
                self._made.popitem(last=False)
        return made


def bound(function: Function, static: Mapping[int, Any]) -> Function:
    """Return a function of the other arguments, which keep their names.

    >>> inspect.signature(bound(lambda x, flag, y: x, {1: True}))
    <Signature (x, y)>
    """

    def call(*others: Any) -> Any:
        rest = iter(others)
        count = len(static) + len(others)
        return function(*[static[k] if k in static else next(rest) for k in range(count)])

    update_wrapper(call, function)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin does not always have one
        return call
    kept = [parameter for k, parameter in enumerate(signature.parameters.values()) if k not in static]
    call.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return call
