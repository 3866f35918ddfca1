"""Export differential equations as C libraries for CVODE of SUNDIALS."""

from __future__ import annotations

import os

from codegen.machine.calls.kernel import Kernel
from codegen.machine.exports.bindings import Binding, export_binding
from codegen.machine.exports.c_interface import check_name
from codegen.machine.exports.cvode_functions import CvodeSystem, cvode_header, cvode_source
from codegen.machine.exports.export import Exported
from symad.doors.callbacks import Array
from symad.doors.with_solve_ivp import SystemKernels
from symad.errors import ArgumentError


def export_system(
    kernels: SystemKernels, start: Array, q: Array, directory: str | os.PathLike[str], *, abi: str, name: str, cpu: str
) -> Exported:
    """Write a system into a directory; see `InitialValueProblem.export`."""
    if abi != "cvode":
        raise ArgumentError(f"abi={abi!r}", do='"cvode" is for differential equations')
    checked = check_name(name)
    members: dict[str, Kernel] = {f"{checked}_right": kernels.right}
    pattern = kernels.jacobian.sparsity
    if pattern.nnz:
        members[f"{checked}_jacobian"] = kernels.jacobian
    materials = {symbol: kernel.material for symbol, kernel in members.items()}
    system = CvodeSystem(checked, start, pattern, q)
    binding = Binding(checked, abi, materials, cvode_source(system, materials), cvode_header(system))
    return export_binding(binding, directory, cpu=cpu)
