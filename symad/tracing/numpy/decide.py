"""NumPy functions whose result is an index or a truth value.

Inside a derivative these answers are piecewise constant, so nothing is lost. Where values are not known, they are
computed: truth values as conditions, what is found of an array as a selection (`values.mask_selection`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symad.tracing.numpy.reduce import delivered, traced
from symad.tracing.numpy.registry import implements
from symad.tracing.numpy.select import known
from symad.tracing.values.array import plain_index, wrap
from symad.tracing.values.complex_points import check_real
from symad.tracing.values.mask_selection import Selection
from symad.tracing.values.node_arrays import constants, homogeneous
from symad.tracing.values.node_operands import nodes_of, scope_of
from symad.tracing.values.whole_values import NoNumberError, no_value_where, whole_of


def _nonzero(a: Any) -> Any:
    mask = traced(a) != 0 if traced(a).dtype != bool else traced(a)
    return tuple([Selection(wrap(constants(mask.scope.graph, grid), mask.scope), mask) for grid in np.indices(a.shape)])


def _is_in(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Any:
    flat = np.ravel(traced(test_elements))
    is_in = (
        np.any(np.equal(traced(element)[..., None], flat), axis=-1) if len(flat) else np.zeros(np.shape(element), bool)
    )
    return ~is_in if invert else is_in


def _are_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    if np.shape(a1) != np.shape(a2):
        return False
    equal = np.equal(a1, a2)
    return np.all(equal | (np.isnan(a1) & np.isnan(a2)) if equal_nan else equal)


def _are_equivalent(a1: Any, a2: Any) -> Any:
    try:
        np.broadcast_shapes(np.shape(a1), np.shape(a2))
    except ValueError:
        return False
    return np.all(np.equal(a1, a2))


def _place_of_numbers(function: Callable[..., Any], lost: float) -> Callable[..., Any]:
    """Return np.nanargmax or np.nanargmin, where it is not known which are NaN; there is no value where all are."""

    def form(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        a = traced(a)
        no_value_where(np.any(np.all(np.isnan(a), axis=axis)), NoNumberError("All-NaN slice encountered"))
        return function(np.where(np.isnan(a), lost, a), axis=axis, out=out, keepdims=keepdims)

    return form


# Functions whose answer follows the values, and what they are where these are not known
ANSWERING: dict[Callable[..., Any], Callable[..., Any]] = {
    np.nonzero: _nonzero,
    np.argwhere: lambda a: np.stack([part.settled() for part in _nonzero(np.atleast_1d(a))], axis=-1),
    np.isin: _is_in, np.array_equal: _are_equal, np.array_equiv: _are_equivalent,
    np.allclose: lambda *args, **keywords: np.all(np.isclose(*args, **keywords)),
    np.nanargmax: _place_of_numbers(np.argmax, -np.inf), np.nanargmin: _place_of_numbers(np.argmin, np.inf),
}  # fmt: skip


def _answering(function: Callable[..., Any], form: Callable[..., Any]) -> Callable[..., Any]:
    def handler(*args: Any, **keywords: Any) -> Any:
        plain = known([args, tuple(keywords.values())])
        if plain is None:
            return form(*args, **keywords)
        return function(*plain[0], **dict(zip(keywords, plain[1], strict=True)))

    return handler


for _function, _form in ANSWERING.items():
    implements(_function)(_answering(_function, _form))


implements(np.extract)(lambda condition, arr: np.ravel(arr)[np.ravel(condition).astype(bool)])
implements(np.result_type, np.common_type)(lambda *values: np.dtype(np.float64))  # that of traced values
implements(np.array_repr, np.array_str, np.array2string)(lambda a, *args, **keywords: str(a))


@implements(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Any:
    """The elements of the choices that the index array picks."""
    scope = scope_of(a, out, *choices)
    parts = np.broadcast_arrays(*homogeneous(scope.graph, [nodes_of(choice, scope) for choice in choices]))
    if known(a) is None:
        return delivered(_chosen(a, [wrap(part, scope) for part in parts], mode), out)
    return delivered(wrap(np.choose(plain_index(a), parts, mode=mode), scope), out)


def _chosen(a: Any, choices: list[Any], mode: Any) -> Any:
    """Return the elements of the choices at places that are not known."""
    last = len(choices) - 1
    places = a % len(choices) if mode == "wrap" else np.clip(a, 0, last) if mode == "clip" else a
    choice_there = np.full_like(choices[0], np.nan)
    for k, choice in enumerate(choices):
        choice_there = np.where(np.equal(places, k), choice, choice_there)
    return choice_there


@implements(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """Sums of the weights (or counts) by bin number; the numbers follow their values."""
    if known(x) is None:
        return _counted(traced(x), weights, minlength)
    places = np.asarray(plain_index(x))
    if weights is None:
        return np.bincount(places, minlength=minlength)
    weights = traced(weights)
    sums = np.full_like(weights, 0.0, shape=(max(minlength, int(places.max(initial=-1)) + 1),))
    np.add.at(sums, places, weights)
    return sums


def _counted(places: Any, weights: Any, minlength: int) -> Any:
    """Return what np.bincount does, where the numbers of the bins are not known."""
    highest = np.maximum(np.max(places) + 1, minlength)
    length = whole_of(highest.scope, highest.node, "the length of np.bincount", at_once=True)
    here = np.equal(np.arange(length)[:, None], places[None, :])
    return np.sum(np.where(here, 1 if weights is None else weights, 0), axis=1)


def _of_real(name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
    def handler(*args: Any, **keywords: Any) -> Any:
        check_real(f"np.{name}")
        return answer(*args, **keywords)

    return handler


_OF_REAL: dict[str, Callable[..., Any]] = {  # traced values are real
    "iscomplexobj": lambda x: False,
    "isrealobj": lambda x: True,
    "isreal": lambda x: np.ones(np.shape(x), dtype=bool),
    "iscomplex": lambda x: np.zeros(np.shape(x), dtype=bool),
    "real": lambda val: val,
    "imag": lambda val: val.imag,
    "real_if_close": lambda a, tol=100: a,
}
for _name, _answer in _OF_REAL.items():
    implements(getattr(np, _name))(_of_real(_name, _answer))
