"""Export problems as C libraries: Ipopt's callbacks, and the functions of CasADi's `nlpsol`."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Literal

import numpy as np

from codegen.ir.sparsity import SparsityPattern
from codegen.machine.calls.kernel import Kernel
from codegen.machine.exports.bindings import Binding, export_binding
from codegen.machine.exports.c_interface import check_name, parameter_names
from codegen.machine.exports.casadi_functions import (
    CasadiFunction,
    InputPlace,
    KernelStep,
    Slot,
    Writing,
    casadi_header,
    casadi_source,
)
from codegen.machine.exports.export import Exported, Material
from codegen.machine.exports.ipopt_functions import IpoptProblem, ipopt_example, ipopt_header, ipopt_source
from codegen.records import dataclass
from symad.doors.callbacks import Array, Bounds, Callbacks, Kernels
from symad.doors.casadi_arrays import arranged
from symad.doors.with_ipopt import NOWHERE
from symad.errors import ArgumentError

Abi = Literal["ipopt", "casadi"]


@dataclass(frozen=True, eq=False)
class ExportRequest:
    """Export options; `slopes` are the gradients of the Lagrangian in x and in the parameters."""

    abi: Abi
    start: Array
    box: Bounds
    limits: Bounds
    slopes: Kernel | None


def export_problem(
    callbacks: Callbacks, request: ExportRequest, directory: str | os.PathLike[str], name: str, cpu: str
) -> Exported:
    """Write a problem into a directory; see `Problem.export`."""
    if request.abi not in ("ipopt", "casadi"):
        raise ArgumentError(f"abi={request.abi!r}", do='use "ipopt" or "casadi"')
    members = _Members(callbacks.kernels, check_name(name), request.slopes)
    binding = _ipopt(members, callbacks, request) if request.abi == "ipopt" else _casadi(members, callbacks)
    return export_binding(binding, directory, cpu=cpu)


class _Members:
    """The kernels of a problem that have results, by C function."""

    def __init__(self, kernels: Kernels, name: str, slopes: Kernel | None) -> None:
        candidates: dict[str, Kernel | None] = {
            "value": kernels.value, "gradient": kernels.gradient, "constraints": kernels.constraints,
            "jacobian": kernels.jacobian, "hessian": kernels.hessian,
            "slopes": slopes,
        }  # fmt: skip
        self.name = name
        self.kernels = {kind: kernel for kind, kernel in candidates.items() if kernel is not None and _size(kernel)}
        self.materials: dict[str, Material] = {
            f"{name}_{kind}": kernel.material for kind, kernel in self.kernels.items()
        }


def _size(kernel: Kernel) -> int:
    return sum(output.size for output in kernel.declared.outputs)


def _fields(kernels: Kernels) -> list[str]:
    return parameter_names([array.name for array in kernels.value.declared.arguments[1:]], ("x", "n", "m", "g"))


def _ipopt(members: _Members, callbacks: Callbacks, request: ExportRequest) -> Binding:
    box, limits = request.box, request.limits
    values = [np.asarray(value, dtype=np.float64).ravel() for value in callbacks.parameters]
    problem = IpoptProblem(
        members.name, request.start, (box.low.clip(-NOWHERE), box.high.clip(max=NOWHERE)),
        (limits.low.clip(-NOWHERE), limits.high.clip(max=NOWHERE)), callbacks.jacobian_pattern,
        callbacks.hessian_pattern, dict(zip(_fields(callbacks.kernels), values, strict=True)),
    )  # fmt: skip
    return Binding(
        members.name, "ipopt", members.materials, ipopt_source(problem, members.materials), ipopt_header(problem),
        ipopt_example(problem),
    )  # fmt: skip


def _casadi(members: _Members, callbacks: Callbacks) -> Binding:
    functions = _Oracle(members, callbacks).functions()
    source = casadi_source(f"{members.name}.h", functions, members.materials)
    return Binding(members.name, "casadi", members.materials, source, casadi_header(members.name, functions))


class _Oracle:
    """The functions of x and p (all parameters in one vector) that `nlpsol` looks up in a library."""

    def __init__(self, made: _Members, callbacks: Callbacks) -> None:
        self.made, self.callbacks = made, callbacks
        self.sizes = [int(np.prod(callbacks.shape)), *(int(np.size(value)) for value in callbacks.parameters)]
        self.rows = callbacks.kernels.rows

    def functions(self) -> list[CasadiFunction]:
        """Return the problem and its derivatives."""
        name, n, m, count = self.made.name, self.sizes[0], self.rows, sum(self.sizes[1:])
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
        if "slopes" not in self.made.kernels:
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
        if kind not in self.made.kernels:
            return ()
        readings: list[InputPlace] = [InputPlace(0, self.sizes[0])]
        offset = 0
        for count in self.sizes[1:]:
            readings.append(InputPlace(1, count, offset))
            offset += count
        if weighted:
            readings += [InputPlace(3, self.rows)] if self.rows else []
            readings.append(InputPlace(2, 1))
        factor = 2 if kind == "hessian" and not self.rows else None
        return (KernelStep(f"{self.made.name}_{kind}", tuple(readings), writings, factor),)
