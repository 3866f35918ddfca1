"""NumPy functions whose answer is an index or a truth value: they follow the values.

Inside a derivative these answers are piecewise constant, so nothing is lost; symbolic values raise a TraceError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symad.tracing.numpy.reduce import delivered, traced
from symad.tracing.numpy.registry import implements
from symad.tracing.numpy.select import values
from symad.tracing.values.array import plain_index, wrap
from symad.tracing.values.complex_points import check_real
from symad.tracing.values.node_arrays import homogeneous
from symad.tracing.values.node_operands import nodes_of, scope_of

ANSWERING: tuple[Callable[..., Any], ...] = (
    np.nonzero, np.flatnonzero, np.argwhere, np.isin, np.allclose, np.array_equal,
    np.array_equiv, np.nanargmax, np.nanargmin,
)  # fmt: skip


def _answering(function: Callable[..., Any]) -> Callable[..., Any]:
    def handler(*args: Any, **keywords: Any) -> Any:
        return function(*map(values, args), **{name: values(value) for name, value in keywords.items()})

    return handler


for _function in ANSWERING:
    implements(_function)(_answering(_function))


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    """The elements where the condition holds."""
    return np.ravel(arr)[np.ravel(values(condition)).astype(bool)]


@implements(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Any:
    """The elements of the choices that the index array picks."""
    scope = scope_of(a, out, *choices)
    parts = np.broadcast_arrays(*homogeneous(scope.graph, [nodes_of(choice, scope) for choice in choices]))
    return delivered(wrap(np.choose(plain_index(a), parts, mode=mode), scope), out)


@implements(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """Sums of the weights (or counts) by bin number; the numbers follow their values."""
    places = np.asarray(plain_index(x))
    if weights is None:
        return np.bincount(places, minlength=minlength)
    weights = traced(weights)
    made = np.full_like(weights, 0.0, shape=(max(minlength, int(places.max(initial=-1)) + 1),))
    np.add.at(made, places, weights)
    return made


@implements(np.result_type, np.common_type)
def result_type(*values: Any) -> Any:
    """float64, the dtype of traced values."""
    return np.dtype(np.float64)


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


@implements(np.array_repr, np.array_str, np.array2string)
def array_text(a: Any, *args: Any, **keywords: Any) -> str:
    """The text of a traced array."""
    return str(a)
