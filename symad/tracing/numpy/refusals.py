"""Functions of NumPy that are refused by name, each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symad.tracing.numpy.registry import implements
from symad.tracing.values.array import numbers_of_constants
from symad.tracing.values.node_operands import holds_traced
from symad.tracing.values.traced import numpy_name, refuse_function

Function = Callable[..., Any]

# Reason, what to do instead, and the functions.
_REFUSED: tuple[tuple[str, str, tuple[Function, ...]], ...] = (
    (
        "eigenvectors come from an iteration that has no traced form",
        "use np.linalg.eigh of a symmetric matrix; for a simple eigenvalue of another one d(value) = w @ dA @ v, with "
        "left and right eigenvectors and w @ v = 1: give that rule to symad.custom_derivative",
        (np.linalg.eig, np.linalg.eigvals),
    ),
    ("the roots are eigenvalues of a matrix", "symad.root finds one root, with its derivatives", (np.roots,)),
    ("it gives complex numbers, and only real functions are differentiated", "use np.sort", (np.sort_complex,)),
    (
        "a traced value belongs to a running trace",
        "return the value, and save the result",
        (np.save, np.savez, np.savez_compressed, np.savetxt),
    ),
)  # fmt: skip

REASONS: dict[Function, str] = {function: why for why, _, functions in _REFUSED for function in functions}


def _refusing(function: Function, why: str, do: str) -> Function:
    def handler(*args: Any, **keywords: Any) -> Any:
        known = [numbers_of_constants(value) for value in args]  # nothing in them has a derivative
        plain = [value if numbers is None else numbers for value, numbers in zip(args, known, strict=True)]
        if holds_traced((*plain, *keywords.values())):
            refuse_function(numpy_name(function), why, do)
        return function(*plain, **keywords)

    return handler


for _why, _do, _functions in _REFUSED:
    for _function in _functions:
        implements(_function)(_refusing(_function, _why, _do))
