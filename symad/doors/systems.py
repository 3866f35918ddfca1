"""Differential systems as functions of flat states and parameters, with derivatives in the parameters of any order.

The derivative of y' = f(t, y, p) in a number of p is a differential equation again, the variational equation. Those of
one order are named by words: the numbers of the parameters that one differentiates in, in ascending order, so that
equal derivatives are there once. All are one system, compiled once for each order.

Source: Hairer, Norsett and Wanner, "Solving Ordinary Differential Equations I" (1993), section I.14.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.machine.calls.kernel import Kernel
from codegen.machine.exports.c_interface import check_name
from codegen.machine.exports.cvode_functions import CvodeSystem, cvode_header, cvode_source
from codegen.machine.exports.export import Binding, Exported, export_binding
from codegen.records import dataclass
from symad.compiling.native import compile
from symad.doors.callbacks import Array
from symad.doors.with_solve_ivp import SystemKernels
from symad.errors import ArgumentError
from symad.tracing.calling.running import callee
from symad.tracing.control.maps import vmap
from symad.transforms.first_order import jvp
from symad.transforms.linear_transforms import vjp

Function = Callable[..., Any]
Word = tuple[int, ...]


@dataclass(frozen=True)
class Sensitivities:
    """A state of `size` numbers and its derivatives in `parameters` numbers up to an order: rows, the state first.

    >>> Sensitivities(1, 2, 2).words
    [(), (0,), (1,), (0, 0), (0, 1), (1, 1)]
    """

    size: int
    parameters: int
    order: int

    @cached_property
    def words(self) -> list[Word]:
        """The parameters that each row is differentiated in."""
        return [word for k in range(self.order + 1) for word in self._of_order(k)]

    def _of_order(self, order: int) -> list[Word]:
        return list(combinations_with_replacement(range(self.parameters), order))

    @cached_property
    def _rows(self) -> dict[Word, int]:
        return {word: row for row, word in enumerate(self.words)}

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of all rows."""
        return len(self.words), self.size

    def rows(self, order: int) -> NDArray[np.intp]:
        """Return the rows of all derivatives of one order, an axis of parameters for each."""
        numbers = np.empty((self.parameters,) * order, dtype=np.intp)
        for place in np.ndindex(numbers.shape):
            numbers[place] = self._rows[tuple(sorted(place))]
        return numbers

    @property
    def above(self) -> NDArray[np.intp]:
        """For each row and each parameter, which row of the next order is its derivative."""
        higher = Sensitivities(self.size, self.parameters, self.order + 1)._rows
        return np.array(
            [[higher[tuple(sorted((*word, j)))] for j in range(self.parameters)] for word in self.words], dtype=np.intp
        ).reshape(len(self.words), self.parameters)

    def right(self, f: Function) -> Function:
        """Return the right-hand side of all rows, flat, from f(t, y, q)."""
        return partial(self._extended, f) if self.order else f

    def _extended(self, f: Function, t: Any, z: Any, q: Any) -> Any:
        f = callee(f)
        rows = np.reshape(z, self.shape)
        parts = [np.reshape(f(t, rows[0], q), (1, self.size))]
        for order in range(1, self.order + 1):
            places, along = self._mixed(order)
            parts.append(vmap(lambda given, e: mixed(lambda q, y: f(t, y, q), q, list(given), e))(rows[places], along))
        return np.ravel(np.concatenate(parts))

    def initial(self, start: Function) -> Function:
        """Return all rows at the beginning, flat, from start(q)."""

        def extended(q: Any) -> Any:
            unit = np.eye(self.parameters)
            return np.concatenate([mixed(lambda q: np.ravel(start(q)), q, [], unit[list(word)]) for word in self.words])

        return extended

    def _mixed(self, order: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return for the words of an order the rows of all parts of each, and the directions of each.

        Part number b has the letters that are bits of b.
        """
        words = self._of_order(order)
        parts = [[[letter for k, letter in enumerate(word) if b >> k & 1] for b in range(2**order)] for word in words]
        places = [[self._rows[tuple(part)] for part in of_word] for of_word in parts]
        return np.array(places, dtype=np.intp), np.eye(self.parameters)[np.array(words, dtype=np.intp)]


def mixed(f: Function, q: Any, parts: Sequence[Any], along: Any) -> Any:
    """Return the mixed derivative of f(q, y) along directions of q, once in each.

    `parts` are derivatives of y in the directions that are bits of their numbers; none where f is a function of q.
    Its depth is the order.

    >>> mixed(lambda q, y: q[0] * y, np.array([2.0]), [3.0, 5.0], np.ones((1, 1)))  # 3 + 2 * 5
    13.0
    """
    if len(along) == 0:
        return f(q, *parts)
    half = len(parts) // 2

    def below(q: Any, *low: Any) -> Any:
        return mixed(f, q, low, along[:-1])

    return jvp(below, (q, *parts[:half]), (along[-1], *parts[half:]))[1]


class System:
    """y' = f(t, y, q) and y(t0) = begin(q) for a vector of parameters q, with kernels of each order of derivatives."""

    f: Function
    begin: Function
    size: int
    examples: Array

    def __init__(self, f: Function, begin: Function, size: int, examples: Array) -> None:
        self.f, self.begin, self.size, self.examples = f, begin, size, examples
        self._kernels: dict[int, SystemKernels] = {}
        self._starts: dict[int, Kernel] = {}
        self._shifted: System | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the adjoint and the shifted system, which are made anew."""
        return {name: value for name, value in self.__dict__.items() if name != "adjoint"} | {"_shifted": None}

    def sensitivities(self, order: int) -> Sensitivities:
        """Return which derivatives there are up to an order."""
        return Sensitivities(self.size, self.examples.size, order)

    def kernels(self, order: int) -> SystemKernels:
        """Return the right-hand side of all derivatives up to an order, compiled at the first call."""
        if order not in self._kernels:
            rows = self.sensitivities(order)
            self._kernels[order] = SystemKernels(rows.right(self.f), np.ones(np.prod(rows.shape)), self.examples)
        return self._kernels[order]

    def start(self, order: int, q: Array) -> Array:
        """Return all derivatives up to an order at the beginning."""
        if order not in self._starts:
            self._starts[order] = compile(self.sensitivities(order).initial(self.begin), self.examples)
        state: Array = self._starts[order](q)
        return state

    @cached_property
    def adjoint(self) -> SystemKernels:
        """The adjoint system: its state w, and the integral of the gradient; parameters are y, and q behind it."""
        size = self.size

        def backwards(t: Any, w: Any, values: Any) -> Any:
            pulled = vjp(lambda y, q: callee(self.f)(t, y, q), values[:size], values[size:])[1](w[:size])
            return -np.concatenate(pulled)

        values = np.append(np.ones(size), self.examples)
        return SystemKernels(backwards, np.ones(values.size), values)

    def shifted(self) -> System:
        """Return the same system in the time since its beginning, which is one more parameter, the last."""
        if self._shifted is None:
            self._shifted = System(
                lambda s, y, q: callee(self.f)(q[-1] + s, y, q[:-1]),
                lambda q: self.begin(q[:-1]),
                self.size,
                np.append(self.examples, 0.0),
            )
        return self._shifted


def export_system(
    kernels: SystemKernels, start: Array, q: Array, directory: str | os.PathLike[str], *, abi: str, name: str, cpu: str
) -> Exported:
    """Write a system into a directory; see `InitialValueProblem.export`."""
    if abi != "cvode":
        raise ArgumentError(f"abi={abi!r}", do='"cvode" is for differential equations')
    checked = check_name(name)
    pattern = kernels.jacobian.sparsity
    materials = {f"{checked}_right": kernels.right.material}
    if pattern.nnz:
        materials[f"{checked}_jacobian"] = kernels.jacobian.material
    system = CvodeSystem(checked, start, pattern, q)
    binding = Binding(checked, abi, materials, cvode_source(system, materials), cvode_header(system))
    return export_binding(binding, directory, cpu=cpu)
