"""Functions of NumPy, and some of SciPy, whose own Python code is run on traced values.

NumPy writes many of its functions as Python code of other ones, which have traced forms. That code is run with two
changes: functions that read memory (`asarray`) take traced values, and `empty` makes an array to store them into.
A function belongs here only if its code makes no choice by values, except to raise an error or to warn: the derivative
of a choice would be that of the branch that is taken.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from symad.reach.code_facts import codes_of
from symad.tracing.calling.makers import as_array, as_new_array, full
from symad.tracing.calling.running import copied
from symad.tracing.calling.scope import innermost_scope
from symad.tracing.numpy.complex_arrays import transforms
from symad.tracing.numpy.reduce import traced
from symad.tracing.numpy.registry import available, implements, stands_in_for
from symad.tracing.values.array import Array
from symad.tracing.values.node_arrays import constants
from symad.tracing.values.node_operands import holds_traced
from symad.tracing.values.traced import TracedComplex, refuse_function

Function = Callable[..., Any]

FUNCTIONS: tuple[Function, ...] = (
    # sums and products
    np.cov, np.ptp, np.nansum, np.nanprod, np.nancumsum, np.nancumprod, np.linalg.trace,
    *available("cumulative_sum", "cumulative_prod"), np.outer, np.kron, np.tensordot, np.linalg.tensordot,
    np.linalg.multi_dot, np.linalg.outer, np.linalg.cross, np.linalg.matmul, np.linalg.vecdot, np.linalg.vector_norm,
    np.linalg.matrix_norm, np.linalg.matrix_power, np.linalg.tensorinv, np.linalg.svdvals, np.linalg.matrix_rank,
    # curves and polynomials
    np.diff, np.trapezoid, np.unwrap, np.logspace, np.polyval, np.polyadd, np.polysub, np.polyder,
    np.polyint, np.polyfit,
    # choices
    np.nan_to_num, np.angle, np.flatnonzero, np.isclose,
    # elements and places
    np.append, np.apply_over_axes, np.apply_along_axis, np.diag_indices_from, np.triu_indices_from,
    np.tril_indices_from,
    # sets
    np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values, np.union1d,
)  # fmt: skip
_TRANSFORMS = (
    np.fft.fft2, np.fft.ifft2, np.fft.fftn, np.fft.ifftn, np.fft.rfft2, np.fft.irfft2, np.fft.rfftn, np.fft.irfftn,
    np.fft.hfft, np.fft.ihfft,
)  # fmt: skip


def own_source(function: Any) -> Function:
    """Return the Python code of a function of NumPy as its traced form."""
    return _traced_form(function._implementation)


def _reading(original: Function, traced_form: Function) -> Function:
    def read(*args: Any, **keywords: Any) -> Any:
        if args and isinstance(args[0], TracedComplex):
            return args[0]
        return (traced_form if holds_traced(args) else original)(*args, **keywords)

    return read


def _empty(*args: Any, **keywords: Any) -> Any:
    array, scope = np.empty(*args, **keywords), innermost_scope()
    if array.dtype.kind in "fb":
        array.fill(np.nan)  # so that an element without a value shows
    return Array(constants(scope.graph, array), scope) if scope and array.dtype.kind in "fb" else array


class _Float:
    """Stands for np.float64, as a function and as a dtype."""

    dtype = np.dtype(np.float64)

    def __call__(self, value: Any) -> Any:
        return (as_array if holds_traced((value,)) else np.float64)(value)


_FORMS: dict[Any, Any] = {
    np.float64: _Float(),
    np.array: _reading(np.array, as_new_array), np.asarray: _reading(np.asarray, as_array),
    np.asanyarray: _reading(np.asanyarray, as_array), np.full: _reading(np.full, full), np.empty: _empty,
    np.vander: lambda *args: traced(np.vander(*args)),  # which np.polyfit stores into
}  # fmt: skip


class _Module:
    """A module of NumPy with the traced forms of its functions."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _form(getattr(self._module, name))


Forms = dict[Function, Function]


def _form(value: Any, begun: Forms | None = None) -> Any:
    """Return what stands for a global name in NumPy's code."""
    if isinstance(value, ModuleType):
        return _Module(value)
    if isinstance(value, FunctionType) and value.__module__.startswith(("numpy.", "scipy.")):
        return _traced_form(value, begun)
    return _FORMS.get(value, value) if callable(value) else value


_traced_forms: Forms = {}  # as many as the functions above need


def _traced_form(function: FunctionType, begun: Forms | None = None) -> Function:
    """Return a function of NumPy with the forms of the functions that it calls.

    `begun` has those that call it. Forms are kept when all are complete: other threads, and interrupts, see no others.
    """
    forms: Forms = {} if begun is None else begun
    known = _traced_forms.get(function) or forms.get(function)
    if known is not None:
        return known
    names = dict(function.__globals__)
    forms[function] = copied(function, function.__code__, names, function.__closure__)
    used = {name for code in codes_of(function.__code__) for name in code.co_names}
    names |= {name: _form(names[name], forms) for name in used & names.keys()}
    if begun is None:
        _traced_forms.update(forms)
    return forms[function]


_PAD = own_source(np.pad)

for _function in FUNCTIONS:
    implements(_function)(own_source(_function))


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **keywords: Any) -> Any:
    """The array with a border: constant, of its own elements, of their statistics, or a ramp to a value."""
    if callable(mode) or mode == "empty":
        refuse_function(f"np.pad with mode={mode!r}", "its border has no traced form", "use one of NumPy's other modes")
    return _PAD(array, pad_width, mode, **keywords)


for _function in _TRANSFORMS:
    transforms(_function)(own_source(_function))


def _of_scipy(package: str, name: str) -> Function:
    """Return the traced form of a function of SciPy, which is imported when it is called."""
    return lambda *args, **keywords: _traced_form(getattr(sys.modules[package], name))(*args, **keywords)


for _package, _name in (("scipy.integrate", "simpson"), ("scipy.stats", "scoreatpercentile")):
    stands_in_for(f"{_package}.{_name}")(_of_scipy(_package, _name))
