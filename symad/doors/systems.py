"""Differential systems as functions of flat states and parameters, compiled once for each order."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from codegen.machine.calls.kernel import Kernel
from symad.compiling.native import compile
from symad.doors.callbacks import Array
from symad.doors.sensitivities import Sensitivities
from symad.doors.with_solve_ivp import SystemKernels
from symad.tracing.calling.running import callee
from symad.transforms.linear_transforms import vjp

Function = Callable[..., Any]


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
