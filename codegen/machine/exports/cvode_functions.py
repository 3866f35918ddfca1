"""Callbacks of SUNDIALS' CVODE (`CVRhsFn`, `CVLsJacFn`) as C text.

A right-hand side with a NaN or an infinity in it returns 1, which CVODE takes for a failure that a smaller step may
mend; it would go on with the NaN otherwise. Source: the documentation of CVODE, "User-supplied functions".
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from codegen.ir.sparsity import SparsityPattern
from codegen.machine.exports.c_interface import guarded
from codegen.machine.exports.c_tables import c_numbers, c_table
from codegen.machine.exports.export import Material, prototype
from codegen.records import dataclass

Numbers = NDArray[np.float64]
TAKEN = """
double *N_VGetArrayPointer(void *vector);
double *SUNDenseMatrix_Data(void *matrix) WEAK;
double *SUNSparseMatrix_Data(void *matrix) WEAK;
int64_t *SUNSparseMatrix_IndexValues(void *matrix) WEAK;
int64_t *SUNSparseMatrix_IndexPointers(void *matrix) WEAK;

static int finite(const double *numbers, long size)
{
    for (long k = 0; k < size; k++) if (!isfinite(numbers[k])) return 0;
    return 1;
}
"""


@dataclass(frozen=True, eq=False)
class CvodeSystem:
    """The data of the functions: the pattern of the Jacobian, in the order "csc", the start, and parameters."""

    name: str
    start: Numbers
    jacobian: SparsityPattern
    parameters: Numbers

    @property
    def prototypes(self) -> dict[str, str]:
        """The declaration of each function."""
        more = "void *user_data, void *tmp1, void *tmp2, void *tmp3"
        matrix = f"double t, void *y, void *fy, void *jacobian, {more}"
        return {
            "rhs": f"int {self.name}_rhs(double t, void *y, void *ydot, void *user_data)",
            "jac": f"int {self.name}_jac({matrix})",
            "jac_sparse": f"int {self.name}_jac_sparse({matrix})",
        }


def cvode_header(system: CvodeSystem) -> str:
    """Return the header: sizes, the start, parameters, functions."""
    name = system.name
    sizes = {"n": system.start.size, "parameters": system.parameters.size, "nnz": system.jacobian.nnz}
    enumerated = ", ".join(f"{name}_{size} = {value}" for size, value in sizes.items())
    about = (
        f"/** @file {name}.h\n *  @brief {name}: functions of CVODE (N_Vector and SUNMatrix as void *)\n"
        " *  user_data: the parameters (double *), a null pointer for those of the export.\n"
        " *  jac writes a dense matrix, jac_sparse one of SUN_CSC_MAT with room for all entries. */\n"
    )
    lines = [f"\nenum {{ {enumerated} }};\n\nextern const double {name}_start[], {name}_values[];\n\n"]
    return guarded(name, about, "".join([*lines, *(f"{declared};\n" for declared in system.prototypes.values())]))


def cvode_source(system: CvodeSystem, members: Mapping[str, Material]) -> str:
    """Return the C text of the functions; `members` are the kernels `NAME_right` and `NAME_jacobian`."""
    name, pattern = system.name, system.jacobian
    included = [f'"{name}.h"', "<math.h>", "<stddef.h>", "<stdint.h>", "<stdlib.h>"]
    lines = [*(f"#include {file}\n" for file in included), "\n"]
    lines += ["#if defined(__GNUC__)\n#define WEAK __attribute__((weak))\n#else\n#define WEAK\n#endif\n", TAKEN]
    lines += ["\n", *(prototype(symbol, material) for symbol, material in members.items())]
    for table, values in (("start", system.start), ("values", system.parameters)):
        lines.append(c_numbers(f"const double {name}_{table}", values))
    for table, places in (("row", pattern.rows), ("column", pattern.columns), ("begin", pattern.indptr)):
        lines.append(c_table(f"static const int {table}", places.tolist()))
    bodies = _bodies(name, bool(pattern.nnz))
    lines += [f"\n{declared}\n{{\n{bodies[kind]}}}\n" for kind, declared in system.prototypes.items()]
    return "".join(lines)


def _bodies(name: str, entries: bool) -> dict[str, str]:
    parameters = f"    const double *q = user_data == NULL ? {name}_values : user_data;\n"
    unused = "    (void)fy; (void)tmp1; (void)tmp2; (void)tmp3;\n"
    called = f"    if ({name}_jacobian(&t, N_VGetArrayPointer(y), q, %s)) {{ %sreturn -1; }}\n"
    dense, sparse = (called % ("data", "free(data); "), called % ("out", "")) if entries else ("", "")
    silent = "" if entries else "    (void)t; (void)y; (void)q;\n"
    room = f"({name}_nnz + 1)"
    return {
        "rhs": f"{parameters}    double *out = N_VGetArrayPointer(ydot);\n"
        f"    if ({name}_right(&t, N_VGetArrayPointer(y), q, out)) return -1;\n    return !finite(out, {name}_n);\n",
        "jac": f"{unused}{parameters}{silent}    double *out = SUNDenseMatrix_Data(jacobian);\n"
        f"    double *data = malloc({room} * sizeof(double));\n    if (data == NULL) return -1;\n"
        f"{dense}"
        f"    for (long k = 0; k < (long){name}_n * {name}_n; k++) out[k] = 0;\n"
        f"    for (long k = 0; k < {name}_nnz; k++) out[column[k] * (long){name}_n + row[k]] = data[k];\n"
        f"    free(data);\n    return !finite(out, (long){name}_n * {name}_n);\n",
        "jac_sparse": f"{unused}{parameters}{silent}    double *out = SUNSparseMatrix_Data(jacobian);\n"
        "    int64_t *rows = SUNSparseMatrix_IndexValues(jacobian);\n"
        "    int64_t *starts = SUNSparseMatrix_IndexPointers(jacobian);\n"
        f"    for (long k = 0; k < {name}_nnz; k++) rows[k] = row[k];\n"
        f"    for (long k = 0; k <= {name}_n; k++) starts[k] = begin[k];\n"
        f"{sparse}    return !finite(out, {name}_nnz);\n",
    }
