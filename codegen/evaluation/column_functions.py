"""Evaluate rows at many points at once with NumPy. A value is an array with one number for each point.

The conventions are those of `codegen.evaluation.interpret`. Sums, products and choices have its bits; functions of
NumPy may differ in the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from types import SimpleNamespace
from typing import Any

import numpy as np
import sympy as sp

import codegen.heads as h
from codegen.evaluation.bitwise_choice import select
from codegen.evaluation.interpret import Arithmetic, Functions, carry_out, leaf_number
from codegen.functions.function_rows import FLOATS
from codegen.functions.intrinsics import intrinsic
from codegen.heads import Alias
from codegen.ir.program import Head, Rows


def evaluate_columns(rows: Rows, order: Sequence[int], values: dict[int, Any]) -> None:
    """Compute rows, in order, from the values that are there: arrays, or one number for all repetitions.

    LoweringError for a head without a row of intrinsics.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y = sp.symbols("x y")
    >>> program = program_from_sympy([x, y], [x / y])
    >>> values = {0: np.array([1.0, 2.0]), 1: np.array([4.0, 0.0])}
    >>> evaluate_columns(program, range(2, len(program)), values)
    >>> values[program.outputs[0].rows[0]]
    array([0.25,  inf])
    """
    with np.errstate(all="ignore"):
        carry_out(rows, order, values, COLUMNS)


def _one_by_one(head: Head) -> Callable[..., Any]:
    """Return the function of a head that NumPy does not have: that of floats, one by one."""
    function = intrinsic(head).number
    truth = issubclass(head, sp.logic.boolalg.Boolean)

    def one_by_one(*columns: Any) -> Any:
        values = np.frompyfunc(lambda *numbers: function(*numbers), len(columns), 1)(*_plain(columns))
        return np.asarray(values, dtype=bool if truth else np.float64)

    return one_by_one


def _numbers(columns: Sequence[Any]) -> list[Any]:
    return [np.multiply(column, 1.0) if np.asarray(column).dtype == bool else column for column in columns]


def _plain(columns: Sequence[Any]) -> list[Any]:
    """Columns of Python's numbers, which functions of floats expect."""
    return [np.asarray(column).astype(object) for column in columns]


def _of_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *columns: function(*_numbers(columns))


def _folded(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *columns: reduce(function, _numbers(columns))


def _in_blocks(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of elements that takes long columns in blocks.

    Intermediate results of a block stay in the cache. For whole columns each step would take new memory, which costs
    more than computing.

    >>> column = np.linspace(-3.0, 3.0, 100_000).reshape(2, -1)
    >>> bool(np.all(_in_blocks(lambda u, v: u * v)(column, 2.0) == column * 2.0))
    True
    """

    def in_blocks(*columns: Any) -> Any:
        long = [column for column in columns if np.ndim(column)]
        if not long or long[0].size < 2 * BLOCK or not all(_alike(column, long[0]) for column in long):
            return function(*columns)
        flat = [column.ravel() if np.ndim(column) else column for column in columns]
        parts = [slice(start, start + BLOCK) for start in range(0, long[0].size, BLOCK)]
        first = function(*[column[parts[0]] if np.ndim(column) else column for column in flat])
        values = np.empty(long[0].size, dtype=first.dtype)
        values[parts[0]] = first
        for part in parts[1:]:
            values[part] = function(*[column[part] if np.ndim(column) else column for column in flat])
        return values.reshape(long[0].shape)

    return in_blocks


def _alike(column: Any, first: Any) -> bool:
    return bool(column.shape == first.shape and column.flags.c_contiguous)


def _log1p(t: Any) -> Any:
    """log(1 + t) for 0 <= t <= 1, the range of our formulas: 1.1 ULP, a third of the time of `np.log1p`.

    A series returns the part of t that 1 + t rounds away.
    """
    total = np.add(1.0, t)
    return np.log(total) + (t - (total - 1.0)) / total


def _expit(u: Any) -> Any:
    """1/(1 + exp(-u)); where that may overflow, the formula of `elementary_formulas.expit` with a second exponential.

    For NumPy a second exponential is cheaper than a choice.
    """
    if np.min(u, initial=0.0) > -700.0:
        return 1.0 / (1.0 + np.exp(np.negative(u)))
    return np.exp(np.minimum(u, 0.0)) / (1.0 + np.exp(-np.abs(u)))


def _power(base: Any, exponent: Any) -> Any:
    if np.ndim(exponent):
        general = np.power(base, exponent)
        half = (np.asarray(exponent) % 1 == 0.5) & (np.asarray(base) < 0)
        return np.where(half, np.nan, general)
    if exponent == 2:
        return base * base
    if exponent == -1:
        return np.divide(1.0, base)
    if exponent == 0.5:
        return np.sqrt(base)
    general = np.power(base, float(exponent))
    return np.where(np.asarray(base) < 0, np.nan, general) if exponent % 1 == 0.5 else general


def _piecewise(*flat: Any) -> Any:
    shape = np.broadcast_shapes(*map(np.shape, flat))
    last = len(flat) - 2
    otherwise = np.ndim(flat[last + 1]) == 0 and bool(flat[last + 1])  # as the last of most holds in any case
    values: Any = np.asarray(flat[last], dtype=np.float64) if otherwise else np.full(shape, np.nan)
    for k in range(last - 2 if otherwise else last, -1, -2):
        values = select(flat[k + 1], flat[k], values)
    return values if values.shape == shape else np.broadcast_to(values, shape).copy()


BLOCK = 16_384  # elements, of which a dozen arrays fit in a cache
_CALLS: dict[str, Callable[..., Any]] = {"exp": np.exp, "log": np.log, "log1p": _log1p}
_ON_COLUMNS = {"div": np.divide, "maximum": np.maximum, "select": select,
               "call": lambda symbol, columns: _CALLS[symbol](*columns)}  # fmt: skip
_MACHINE = SimpleNamespace(**vars(FLOATS) | _ON_COLUMNS)
WRITTEN: tuple[Head, ...] = (sp.sech, h.softplus, h.log_expit, h.logaddexp, h.xlogy, h.one_minus_square, h.log_argument,
                             h.tie_share)  # fmt: skip
FUNCTIONS = Functions(_one_by_one, {
    sp.Add: _folded(np.add),
    sp.Mul: _folded(np.multiply),
    sp.Pow: _of_numbers(_power),
    Alias: lambda value, *others: value,
    sp.Abs: _of_numbers(np.abs),
    sp.sign: _of_numbers(np.sign),
    sp.Max: _folded(np.maximum),
    sp.Min: _folded(np.minimum),
    sp.Piecewise: _in_blocks(_piecewise),
    h.hypot: _of_numbers(lambda u, *others: reduce(np.hypot, others, np.abs(u))),
    sp.ITE: np.where,
    sp.Not: np.logical_not,
    sp.And: lambda *columns: reduce(np.logical_and, columns),
    sp.Or: lambda *columns: reduce(np.logical_or, columns),
    h.expit: _in_blocks(_of_numbers(_expit)),
    **{head: _in_blocks(_of_numbers(partial(intrinsic(head).native, _MACHINE))) for head in WRITTEN},
    **{
        head: _of_numbers(function)
        for head, function in (
            (sp.exp, np.exp), (sp.log, np.log), (sp.sin, np.sin), (sp.cos, np.cos), (sp.tan, np.tan),
            (sp.sinh, np.sinh), (sp.cosh, np.cosh), (sp.tanh, np.tanh), (sp.asin, np.arcsin), (sp.acos, np.arccos),
            (sp.atan, np.arctan), (sp.atan2, np.arctan2), (sp.Lt, np.less), (sp.Le, np.less_equal),
            (sp.asinh, np.arcsinh), (sp.acosh, np.arccosh), (sp.atanh, np.arctanh),
            (sp.floor, np.floor), (sp.ceiling, np.ceil), (h.trunc, np.trunc), (h.rint, np.rint),
            (h.log1p, np.log1p), (h.expm1, np.expm1), (h.exp2, np.exp2), (h.log2, np.log2), (h.log10, np.log10),
            (h.cbrt, np.cbrt), (h.copysign, np.copysign), (h.fmod, np.fmod),
            (sp.Gt, np.greater), (sp.Ge, np.greater_equal), (sp.Eq, np.equal), (sp.Ne, np.not_equal),
        )
    },
})  # fmt: skip
COLUMNS = Arithmetic(FUNCTIONS, FUNCTIONS, leaf_number, _of_numbers(np.divide))
