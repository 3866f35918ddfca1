"""Export problems as C libraries: Ipopt's callbacks, and the functions of CasADi's `nlpsol`."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import accumulate
from typing import Literal

import numpy as np

from codegen.ir.sparsity import SparsityPattern
from codegen.machine.calls.kernel import Kernel
from codegen.machine.exports.c_interface import check_name, parameter_names
from codegen.machine.exports.casadi_functions import CasadiFunction, InputPlace, KernelStep, Slot, Writing
from codegen.machine.exports.export import Binding, Exported, Material, export_binding
from codegen.machine.exports.ipopt_functions import IpoptProblem, ipopt_example, ipopt_header, ipopt_source
from symad.doors.callbacks import Array, Bounds, Callbacks
from symad.doors.casadi_arrays import arranged, binding
from symad.doors.with_ipopt import ipopt_numbers
from symad.errors import ArgumentError

Abi = Literal["ipopt", "casadi"]


def export_problem(
    callbacks: Callbacks, start: Array, box: Bounds, limits: Bounds, slopes: Kernel | None,
    directory: str | os.PathLike[str], *, abi: Abi, name: str, cpu: str,
) -> Exported:  # fmt: skip
    """Write a problem into a directory; see `Problem.export`.

    `slopes` are the gradients of the Lagrangian in x and in the parameters.
    """
    if abi not in ("ipopt", "casadi"):
        raise ArgumentError(f"abi={abi!r}", do='use "ipopt" or "casadi"')
    name, candidates = check_name(name), callbacks.kernels._asdict() | {"slopes": slopes}
    members = {
        f"{name}_{kind}": kernel.material
        for kind, kernel in candidates.items()
        if kernel is not None and any(output.size for output in kernel.declared.outputs)
    }
    if abi == "ipopt":
        return export_binding(_ipopt(name, members, callbacks, start, box, limits), directory, cpu=cpu)
    return export_binding(binding(name, _Oracle(name, members, callbacks).functions(), members), directory, cpu=cpu)


def _ipopt(
    name: str, members: dict[str, Material], callbacks: Callbacks, start: Array, box: Bounds, limits: Bounds
) -> Binding:
    arrays = callbacks.kernels.value.declared.arguments[1:]
    fields = parameter_names([array.name for array in arrays], ("x", "n", "m", "g"))
    values = [np.asarray(value, dtype=np.float64).ravel() for value in callbacks.parameters]
    problem = IpoptProblem(
        name, start, ipopt_numbers(box), ipopt_numbers(limits), callbacks.jacobian_pattern, callbacks.hessian_pattern,
        dict(zip(fields, values, strict=True)),
    )  # fmt: skip
    source = ipopt_source(problem, members)
    return Binding(name, "ipopt", members, source, ipopt_header(problem), ipopt_example(problem))


class _Oracle:
    """The functions of x and p (all parameters in one vector) that `nlpsol` looks up in a library."""

    def __init__(self, name: str, members: dict[str, Material], callbacks: Callbacks) -> None:
        self.name, self.members, self.callbacks = name, members, callbacks
        self.sizes = [int(np.prod(callbacks.shape)), *(int(np.size(value)) for value in callbacks.parameters)]
        self.rows = callbacks.kernels.rows

    def functions(self) -> list[CasadiFunction]:
        """Return the problem and its derivatives."""
        name, n, m, count = self.name, self.sizes[0], self.rows, sum(self.sizes[1:])
        point = (Slot("x", (n, 1)), Slot("p", (count, 1)))
        weighted = (*point, Slot("lam_f", (1, 1)), Slot("lam_g", (m, 1)))
        f, g, slope = Slot("f", (1, 1)), Slot("g", (m, 1)), Slot("grad_f_x", (n, 1))
        matrix, entries = self._matrix("jac_g_x", self.callbacks.jacobian_pattern)
        curvature, lower = self._matrix("triu_hess_gamma_x_x", self.callbacks.hessian_pattern, flipped=True)
        value, limits = self._step("value", Writing(0, 1)), self._step("constraints", Writing(0, m))
        both = (*value, *self._step("constraints", Writing(1, m)))
        functions = [
            CasadiFunction(name, point, (f, g), both),
            CasadiFunction(f"{name}_f", point, (f,), value),
            CasadiFunction(f"{name}_g", point, (g,), limits),
            CasadiFunction(f"{name}_grad_f", point, (f, slope), (*value, *self._step("gradient", Writing(1, n)))),
            CasadiFunction(f"{name}_jac_g", point, (g, matrix), (*limits, *self._step("jacobian", entries))),
            CasadiFunction(f"{name}_hess_l", weighted, (curvature,), self._step("hessian", lower, weighted=bool(m))),
        ]
        if f"{name}_slopes" not in self.members:
            return functions
        writings = (Writing(2, n), Writing(3, count)) if count else (Writing(2, n),)
        slopes = (f, g, Slot("grad_gamma_x", (n, 1)), Slot("grad_gamma_p", (count, 1)))
        steps = (*both, *self._step("slopes", *writings, weighted=True))
        return [*functions, CasadiFunction(f"{name}_grad", weighted, slopes, steps)]

    def _matrix(self, name: str, pattern: SparsityPattern, flipped: bool = False) -> tuple[Slot, Writing]:
        rows, columns = (pattern.columns, pattern.rows) if flipped else (pattern.rows, pattern.columns)
        slot, writing = arranged(name, pattern.nnz, rows, columns, pattern.shape)
        return slot, replace(writing, slot=int(not flipped))

    def _step(self, kind: str, *writings: Writing, weighted: bool = False) -> tuple[KernelStep, ...]:
        if f"{self.name}_{kind}" not in self.members:
            return ()
        size, *counts = self.sizes
        offsets = accumulate(counts, initial=0)
        readings = [InputPlace(0, size), *(InputPlace(1, n, start) for n, start in zip(counts, offsets, strict=False))]
        if weighted:
            readings += [InputPlace(3, self.rows)] if self.rows else []
            readings.append(InputPlace(2, 1))
        factor = 2 if kind == "hessian" and not self.rows else None
        return (KernelStep(f"{self.name}_{kind}", tuple(readings), writings, factor),)
