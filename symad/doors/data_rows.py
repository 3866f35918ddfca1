"""Models over rows of data: one row is compiled, and any number of rows is a batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from codegen.machine.calls.arguments import numbers_of
from codegen.machine.calls.kernel import Kernel
from symad.compiling.native import compile
from symad.doors.callbacks import Array
from symad.errors import ArgumentError
from symad.tracing.calling.function_names import check_call
from symad.tracing.calling.running import callee
from symad.transforms.first_order import hessian, jacobian

CHUNK = 2**20  # numbers of second derivatives that are held at once


class Rowwise:
    """The result of `rowwise`: values and derivatives in the parameters at all rows of data.

    Each kernel is compiled once, at the first call that needs it, for every number of rows. Data are given as one array
    for each argument of a row, with the rows in front.

    >>> model = rowwise(lambda p, t, y: p[0] * np.exp(-p[1] * t) - y, np.ones(2), 0.0, 0.0)
    >>> t = np.linspace(0.0, 4.0, 9)
    >>> residuals, slopes = model.residuals(np.ones(2), t, t), model.jacobian(np.ones(2), t, t)
    >>> residuals.shape, slopes.shape, model.hessian(np.ones(2), t[:5], t[:5]).shape
    ((9,), (9, 2), (2, 2))
    """

    def __init__(self, f: Callable[..., Any], parameters: Any, row: tuple[Any, ...]) -> None:
        self._f = f
        self._examples = tuple(numbers_of(example, "an example") for example in (parameters, *row))
        if self._examples[0].ndim != 1:
            raise ArgumentError(
                f"parameters of shape {self._examples[0].shape}",
                do="give one vector, and take it apart in the function",
            )
        if not row:
            raise ArgumentError("no example of a row", do="give one value of each argument behind the parameters")

    @cached_property
    def _values(self) -> Kernel:
        return compile(lambda *arguments: np.ravel(callee(self._f)(*arguments)), *self._examples)

    @cached_property
    def _slopes(self) -> Kernel:
        return compile(jacobian(lambda *arguments: np.ravel(callee(self._f)(*arguments))), *self._examples)

    @cached_property
    def _bend(self) -> Kernel:
        return compile(hessian(lambda *arguments: np.sum(callee(self._f)(*arguments))), *self._examples)

    def residuals(self, parameters: Any, *data: Any) -> Array:
        """Return the results of all rows in one vector, as `scipy.optimize.least_squares` takes them.

        Also called as `curve_fit` does, residuals(data, *parameters), where the function is a model of data.
        """
        parameters, data = self._in_order(parameters, data)
        residuals: Array = self._values.batch(parameters, *self._rows(data))
        return residuals.ravel()

    def jacobian(self, parameters: Any, *data: Any) -> Array:
        """Return their Jacobian in the parameters: a row for each result, a column for each parameter."""
        parameters, data = self._in_order(parameters, data)
        slopes: Array = self._slopes.batch(parameters, *self._rows(data))
        return slopes.reshape(-1, self._examples[0].size)

    def value(self, parameters: Any, *data: Any) -> float:
        """Return the sum over all rows."""
        return float(np.sum(self.residuals(parameters, *data)))

    def gradient(self, parameters: Any, *data: Any) -> Array:
        """Return the gradient of the sum."""
        gradient: Array = np.sum(self.jacobian(parameters, *data), axis=0)
        return gradient

    def hessian(self, parameters: Any, *data: Any) -> Array:
        """Return the Hessian of the sum; some rows are held at a time."""
        size = self._examples[0].size
        hessian = np.zeros((size, size))
        rows, count = self._rows(data), max(CHUNK // size**2, 1)
        for first in range(0, len(rows[0]), count):
            part = [array[first : first + count] for array in rows]
            hessian += np.sum(self._bend.batch(parameters, *part), axis=0)
        return hessian

    def _in_order(self, parameters: Any, data: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """Return parameters and data; data have rows, so where numbers are in their place, these are parameters."""
        if not data or any(map(np.ndim, data)):
            return parameters, data
        return np.array(data), (parameters,) if len(self._examples) == 2 else tuple(parameters)

    def _rows(self, data: tuple[Any, ...]) -> list[Array]:
        """Return data with the rows in front, all as many; ArgumentError where they do not fit the example."""
        if len(data) != len(self._examples) - 1:
            raise ArgumentError(f"{len(data)} arrays of data", why=f"a row has {len(self._examples) - 1}")
        arrays = [numbers_of(values, f"data {k}") for k, values in enumerate(data)]
        for k, (array, example) in enumerate(zip(arrays, self._examples[1:], strict=True)):
            if array.shape[1:] != example.shape or array.ndim != example.ndim + 1:
                why = f"a row of it has shape {example.shape}, and the rows are in front"
                raise ArgumentError(f"data {k} of shape {array.shape}", why=why)
        counts = {len(array) for array in arrays}
        if len(counts) > 1:
            raise ArgumentError(f"{' and '.join(map(str, sorted(counts)))} rows", why="data have as many rows each")
        return arrays


def rowwise(f: Callable[..., Any], parameters: Any, *row: Any) -> Rowwise:
    """Return values and derivatives of f(parameters, *row) over any number of rows of data, compiled once.

    `parameters` is an example of the parameters, a vector; `row` are examples of what f takes of one row. f gives a
    number, or an array of them. The object has `residuals` and `jacobian` for `least_squares` and `curve_fit`, and
    `value`, `gradient` and `hessian` of the sum for minimisers: five folds, or data that arrive, need no compilation.
    ArgumentError for parameters that are no vector, and for data that do not fit.

    >>> from scipy.optimize import least_squares
    >>> t = np.linspace(0.0, 3.0, 50)
    >>> y = 2.0 * np.exp(-0.7 * t)
    >>> model = rowwise(lambda p, t, y: p[0] * np.exp(-p[1] * t) - y, np.ones(2), 0.0, 0.0)
    >>> least_squares(model.residuals, [1.0, 1.0], jac=model.jacobian, args=(t, y)).x.round(6)
    array([2. , 0.7])
    """
    check_call(f, (parameters, *row))
    return Rowwise(f, parameters, row)
