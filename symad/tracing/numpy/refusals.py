"""NumPy functions that are refused by name, each with its reason; no other module needs to know them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symad.tracing.numpy.registry import implements
from symad.tracing.values.constant_nodes import constant
from symad.tracing.values.known_numbers import values_of
from symad.tracing.values.node_operands import holds_traced, nodes_of
from symad.tracing.values.traced import Traced, numpy_name, refuse_function

Function = Callable[..., Any]

# Reason, what to do instead, and the functions.
_REFUSED: tuple[tuple[str, str, tuple[Function, ...]], ...] = (
    (
        "eigenvectors come from an iteration that has no traced form",
        "use np.linalg.eigh of a symmetric matrix; for a simple eigenvalue of another one d(value) = w @ dA @ v, with "
        "left and right eigenvectors and w @ v = 1: give that rule to symad.custom_derivative",
        (np.linalg.eig, np.linalg.eigvals),
    ),
    (
        "the roots are eigenvalues of a matrix",
        "symad.root finds one root, with its derivatives",
        (np.roots,),
    ),
    (
        "it is a transform of a signal with Hermitian symmetry",
        "use np.fft.irfft(np.conj(x)) and np.fft.rfft, with their factors",
        (np.fft.hfft, np.fft.ihfft),
    ),
    (
        "it gives complex numbers, and only real functions are differentiated",
        "use np.arctan2, np.sign, np.sort",
        (np.angle, np.sort_complex),
    ),
    (
        "the shape of its result depends on the values",
        "np.sort(x) has all elements, in order",
        (np.unique, np.unique_values, np.unique_all, np.unique_counts, np.unique_inverse, np.intersect1d, np.union1d,
         np.setdiff1d, np.setxor1d),
    ),
    (
        "its result is a count, which has no derivative",
        "give it ordinary numbers; np.bincount takes traced weights",
        (np.histogram, np.histogram2d, np.histogramdd, np.histogram_bin_edges, np.linalg.matrix_rank, np.packbits),
    ),
    (
        "a traced value belongs to a running trace",
        "return the value, and save the result",
        (np.save, np.savez, np.savez_compressed, np.savetxt),
    ),
)  # fmt: skip

REASONS: dict[Function, str] = {function: why for why, _, functions in _REFUSED for function in functions}


def _refusing(function: Function, why: str, do: str) -> Function:
    def handler(*args: Any, **keywords: Any) -> Any:
        plain = [_plain(value) for value in args]
        if holds_traced((*plain, *keywords.values())):
            refuse_function(numpy_name(function), why, do)
        return function(*plain, **keywords)

    return handler


def _plain(value: Any) -> Any:
    """Return a traced array of constants as the numbers it holds: nothing in it has a derivative."""
    if not isinstance(value, Traced):
        return value
    nodes = nodes_of(value, value.scope)
    if any(constant(value.scope.graph, node) is None for node in nodes.ravel().tolist()):
        return value
    return values_of(value.scope, nodes)


for _why, _do, _functions in _REFUSED:
    for _function in _functions:
        implements(_function)(_refusing(_function, _why, _do))
