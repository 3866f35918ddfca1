"""The tables behind NumPy's protocols. Modules above fill them; traced classes below look up.

`FUNCTIONS` answers `__array_function__` (np.sum, np.where...), `UFUNC_METHODS` answers `__array_ufunc__`
("__call__", "reduce", "accumulate", "outer", "at"), `STAND_INS` replaces plain Python functions such as
scipy.special.logsumexp, and methods of SciPy's classes; `HELD` says which attributes of their objects may be traced.
`ALWAYS` and `SOLVERS`
have those that decide themselves, and their names. All are filled while modules are imported and never afterwards.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

Handler = TypeVar("Handler", bound=Callable[..., Any])

FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {}
UFUNC_METHODS: dict[str, Callable[..., Any]] = {}
STAND_INS: dict[str, Callable[..., Any]] = {}
HELD: dict[Callable[..., Any], tuple[str, ...]] = {}
ALWAYS: set[Callable[..., Any]] = set()
SOLVERS: set[str] = set()
LAPACK = frozenset(
    getattr(np.linalg, name) for name in ("inv", "solve", "cholesky", "qr", "lstsq", "pinv", "eigh", "svd")
)


def available(*names: str) -> list[Callable[..., Any]]:
    """Return the NumPy functions of these names that the installed NumPy has (2.0 lacks some of 2.1)."""
    return [getattr(np, name) for name in names if hasattr(np, name)]


def implements(*functions: Callable[..., Any]) -> Callable[[Handler], Handler]:
    """Register a handler as the traced form of NumPy functions."""

    def register(handler: Handler) -> Handler:
        FUNCTIONS.update((function, _in_c_order(handler) if function in LAPACK else handler) for function in functions)
        return handler

    return register


def _in_c_order(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return a handler whose results lie in memory as those of `numpy.linalg`: views of them say who sees a store."""

    @functools.wraps(handler)
    def call(*args: Any, **keywords: Any) -> Any:
        result = handler(*args, **keywords)
        if not isinstance(result, tuple):
            return _c_order(result)
        parts = map(_c_order, result)
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)

    return call


def _c_order(result: Any) -> Any:
    """Return an array whose rows lie one after the other; what is refused as soon as it is asked, as it is."""
    is_turned = hasattr(type(result), "nodes") and result.ndim > 1 and not result.flags.c_contiguous
    return np.copy(result, order="C") if is_turned else result


def implements_method(name: str) -> Callable[[Handler], Handler]:
    """Register a handler `(ufunc, inputs, keywords) -> result` for one way of calling a ufunc."""

    def register(handler: Handler) -> Handler:
        UFUNC_METHODS[name] = handler
        return handler

    return register


def stands_in_for(
    *names: str, held: tuple[str, ...] | None = None, always: bool = False
) -> Callable[[Handler], Handler]:
    """Register a handler for plain Python functions that know no protocol, by full name ("scipy.special.logsumexp").

    The handler has the original's signature and takes traced and ordinary values. With `held` ordinary arrays stay
    what they are, and the first argument may hold traced values in these attributes. With `always` the handler is
    called whatever the arguments are: those of a solver are functions, in which there may be traced values.
    """

    def register(handler: Handler) -> Handler:
        STAND_INS.update(dict.fromkeys(names, handler))
        if held is not None:
            HELD[handler] = held
        if always:
            ALWAYS.add(handler)
            SOLVERS.update(names)
        return handler

    return register
