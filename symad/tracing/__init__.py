"""Tracing: traced scalars and arrays that plain NumPy code computes with, and containers of them.

Importing the package fills the two tables behind NumPy's protocols (see `registry`).
"""

from symad.tracing import (
    functions_decide,
    functions_linear,
    functions_reduce,
    functions_select,
    functions_shape,
    refusals,
    ufunc_methods,
)
from symad.tracing.array import Array, wrap
from symad.tracing.scalar import Scalar
from symad.tracing.scope import Scope, innermost_scope, open_scope

__all__ = [
    "Array", "Scalar", "Scope", "functions_decide", "functions_linear", "functions_reduce", "functions_select",
    "functions_shape", "innermost_scope", "open_scope", "refusals", "ufunc_methods", "wrap",
]  # fmt: skip
