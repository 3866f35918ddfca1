"""Caches of the user's: `functools.cache` in traced code keeps no traced value after its level."""

from __future__ import annotations

import functools
from typing import Any

from symad.tracing.calling.scope import Scope, innermost_scope
from symad.tracing.calling.stand_ins import Function, arrays_are_traced
from symad.tracing.values.node_operands import holds_traced


def memoised(original: Any) -> Function:
    """Return a function with functools.cache that keeps no traced value after its level: later calls would get it."""
    caches: dict[Scope, Function] = {}

    @functools.wraps(original)
    def call(*args: Any, **keywords: Any) -> Any:
        if holds_traced((*args, *keywords.values())):
            return original.__wrapped__(*args, **keywords)
        scope = innermost_scope() if arrays_are_traced.get() else None
        if scope is None:
            return original(*args, **keywords)
        if scope not in caches:
            caches[scope] = functools.lru_cache(**original.cache_parameters())(original.__wrapped__)
        return caches[scope](*args, **keywords)

    call.cache_clear, call.cache_info = original.cache_clear, original.cache_info  # type: ignore[attr-defined]
    return call
