"""Traced forms of SciPy's functions by their parameters: SciPy's own signature says which argument is which."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from inspect import Signature, signature
from operator import attrgetter
from typing import Any

import numpy as np

from symad.tracing.numpy.reduce import is_traced
from symad.tracing.numpy.registry import Handler, stands_in_for
from symad.tracing.numpy.solve import known_values
from symad.tracing.values.traced import refuse_options

# Parameters that say how SciPy computes a result, and not which one.
_HOW = re.compile("overwrite_.*|check_finite|(lapack_)?driver|lwork|type|workers|quiet|maxit|dtype")
_CHECKED = ("a", "b", "ab", "x", "y")  # parameters that `check_finite` is about


def scipy_form(name: str, *, held: tuple[str, ...] | None = None) -> Callable[[Handler], Handler]:
    """Register the traced form of a function of SciPy. It has the parameters that decide what its result is.

    Any other one is refused unless it has its default, or only says how SciPy computes. `held` is as of
    `stands_in_for`. Where the function has `check_finite`, SciPy's error is raised.
    """

    def register(form: Handler) -> Handler:
        taken = signature(form).parameters
        package, _, short = name.removesuffix(".__init__").rpartition(".")

        @functools.wraps(form)
        def call(*args: Any, **keywords: Any) -> Any:
            parameters, given = signature_of(name).parameters, arguments_of(name, args, keywords)
            if "check_finite" in parameters and given.get("check_finite", parameters["check_finite"].default):
                require_finite(*[value for key, value in given.items() if key in _CHECKED])
            for key in [key for key in given if key in parameters and key not in taken]:
                value, default = given.pop(key), parameters[key].default
                is_default = value is default or (type(value) is type(default) and value == default)
                refuse_options(package, short, **{key: not (is_default or _HOW.fullmatch(key))})
            return form(**given)

        stands_in_for(name, held=held)(call)
        return form

    return register


def arguments_of(name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call of a function of SciPy with this full name, by its parameters."""
    given: dict[str, Any] = signature_of(name).bind(*args, **keywords).arguments
    given.update(given.pop("kwargs", {}))
    return given


@functools.cache
def signature_of(name: str) -> Signature:
    """Return the signature of a function of SciPy with this full name, whose package is imported."""
    return signature(attrgetter(name.removeprefix("scipy."))(sys.modules["scipy"]))


def require_finite(*values: Any) -> None:
    """Raise SciPy's ValueError where numbers are known and not finite."""
    for value in values:
        known = known_values(np.atleast_1d(value), _is_finite) if is_traced(value) else _is_finite(np.asarray(value))
        if known is not None and not known:
            raise ValueError("array must not contain infs or NaNs")


def _is_finite(numbers: Any) -> Any:
    return numbers.dtype.kind not in "fc" or np.isfinite(numbers).all()
