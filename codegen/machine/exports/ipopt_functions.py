"""Callbacks of Ipopt's C interface (`Eval_F_CB`, ... of IpStdCInterface.h) as C text.

Source: the documentation of Ipopt, "Interfacing your NLP to Ipopt: The C Interface".
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


@dataclass(frozen=True, eq=False)
class IpoptProblem:
    """The data of the callbacks: the names of kernels, patterns, bounds, the start and the values of parameters."""

    name: str
    start: Numbers
    box: tuple[Numbers, Numbers]
    limits: tuple[Numbers, Numbers]
    jacobian: SparsityPattern
    hessian: SparsityPattern
    parameters: Mapping[str, Numbers]

    @property
    def rows(self) -> int:
        """How many constraints there are."""
        return len(self.limits[0])

    @property
    def prototypes(self) -> dict[str, str]:
        """The declaration of each callback."""
        x, last = "int n, double *x, bool new_x", "void *user_data"
        places = "int *iRow, int *jCol, double *values"
        arguments = {
            "eval_f": f"{x}, double *obj_value, {last}",
            "eval_grad_f": f"{x}, double *grad_f, {last}",
            "eval_g": f"{x}, int m, double *g, {last}",
            "eval_jac_g": f"{x}, int m, int nele_jac, {places}, {last}",
            "eval_h": f"{x}, double obj_factor, int m, double *lambda, bool new_lambda, int nele_hess, "
            f"{places}, {last}",
        }
        return {callback: f"bool {self.name}_{callback}({parameters})" for callback, parameters in arguments.items()}


def ipopt_header(problem: IpoptProblem) -> str:
    """Return the header: sizes, bounds, the start, parameters, callbacks."""
    name = problem.name
    sizes = {"n": problem.start.size, "m": problem.rows, "nele_jac": problem.jacobian.nnz,
             "nele_hess": problem.hessian.nnz}  # fmt: skip
    enumerated = ", ".join(f"{name}_{size} = {value}" for size, value in sizes.items())
    tables = {"x_0": "the start", "x_L": "bounds of x", "x_U": "", "g_L": "bounds of constraints", "g_U": ""}
    about = f"/** @file {name}.h\n *  @brief {name}: callbacks of Ipopt's C interface, indices from 0 (C style) */\n"
    lines = [f"\nenum {{ {enumerated} }};\n\n"]
    lines += [f"extern double {name}_{table}[];{f'  /* {note} */' if note else ''}\n" for table, note in tables.items()]
    if problem.parameters:
        fields = "".join(f"    const double *{field};  /* {values.size} numbers */\n"
                         for field, values in problem.parameters.items())  # fmt: skip
        lines += ["\n/** User data: values of parameters. A null pointer stands for the values of the export. */\n"]
        lines += [f"struct {name}_parameters {{\n{fields}}};\n"]
    lines += ["\n", *(f"{prototyped};\n" for prototyped in problem.prototypes.values())]
    return guarded(name, about, "".join(lines), "\n#include <stdbool.h>\n")


def ipopt_source(problem: IpoptProblem, members: Mapping[str, Material]) -> str:
    """Return the C text of the callbacks; `members` are the kernels `NAME_value`, ... by C function."""
    name = problem.name
    tables = {"x_0": problem.start, "x_L": problem.box[0], "x_U": problem.box[1], "g_L": problem.limits[0],
              "g_U": problem.limits[1]}  # fmt: skip
    lines = [f'#include "{name}.h"\n#include <math.h>\n#include <stddef.h>\n\n']
    lines += [prototype(symbol, material) for symbol, material in members.items()]
    lines += [c_numbers(f"double {name}_{table}", values) for table, values in tables.items()]
    for kind, pattern in (("jacobian", problem.jacobian), ("hessian", problem.hessian)):
        lines += [c_table(f"static const int {kind}_row", pattern.rows.tolist())]
        lines += [c_table(f"static const int {kind}_column", pattern.columns.tolist())]
    lines += [
        c_numbers(f"static const double value_of_{field}", values) for field, values in problem.parameters.items()
    ]
    bodies = _bodies(problem)
    lines += [f"\n{declared}\n{{\n{bodies[callback]}}}\n" for callback, declared in problem.prototypes.items()]
    return "".join(lines)


def ipopt_example(problem: IpoptProblem) -> str:
    """Return a C program that solves the problem with Ipopt, and prints the status, the optimum and x."""
    name = problem.name
    callbacks = ", ".join(f"{name}_{call}" for call in ("eval_f", "eval_g", "eval_grad_f", "eval_jac_g", "eval_h"))
    return f"""#include <stdio.h>
#include "IpStdCInterface.h"
#include "{name}.h"

/* cc {name}_example.c -I. -I<headers of Ipopt> -L. -l{name} -lipopt -lm -Wl,-rpath,. */
int main(void)
{{
    IpoptProblem problem = CreateIpoptProblem({name}_n, {name}_x_L, {name}_x_U, {name}_m, {name}_g_L, {name}_g_U,
        {name}_nele_jac, {name}_nele_hess, 0, {callbacks});
    double optimum;
    int status;
    if (problem == NULL) return 2;
    AddIpoptIntOption(problem, "print_level", 0);
    status = IpoptSolve(problem, {name}_x_0, NULL, &optimum, NULL, NULL, NULL, NULL);
    printf("%d %.10g\\n", status, optimum);
    for (int k = 0; k < {name}_n && k < 10; k++) printf("%.10g\\n", {name}_x_0[k]);
    FreeIpoptProblem(problem);
    return status != 0;
}}
"""


def _bodies(problem: IpoptProblem) -> dict[str, str]:
    name, m = problem.name, problem.rows
    unused = "    (void)new_x; (void)user_data;\n"
    parameters = _parameters(problem)
    passed = "".join(f", {field}" for field in problem.parameters)
    weights = ", lambda, &obj_factor" if m else ""
    same = f"    if (n != {name}_n) return false;\n"
    constrained = f"    if (n != {name}_n || m != {name}_m) return false;\n"
    call = f"    return {name}_{{}}(x{passed}, {{}}) == 0;\n"
    scaled = f"    for (int k = 0; k < {name}_nele_hess; k++) values[k] *= obj_factor;\n"
    no_constraints = "    (void)x; (void)g;\n    return true;\n"
    no_entries = "    (void)x;\n    return true;\n"
    unread = f"    (void)x; (void)obj_factor;{' (void)lambda;' if m else ''}\n"
    hessian = (
        f"    if ({name}_hessian(x{passed}{weights}, values)) return false;\n{'' if m else scaled}    return true;\n"
    )
    return {
        "eval_f": f"{unused}{same}{parameters}{call.format('value', 'obj_value')}",
        "eval_grad_f": f"{unused}{same}{parameters}{call.format('gradient', 'grad_f')}",
        "eval_g": unused + constrained + (parameters + call.format("constraints", "g") if m else no_constraints),
        "eval_jac_g": unused
        + constrained.replace(") return", f" || nele_jac != {name}_nele_jac) return")
        + _places("jacobian", f"{name}_nele_jac")
        + (parameters + call.format("jacobian", "values") if problem.jacobian.nnz else no_entries),
        "eval_h": f"    (void)new_lambda;{'' if m else ' (void)lambda;'}\n{unused}"
        + constrained.replace(") return", f" || nele_hess != {name}_nele_hess) return")
        + _places("hessian", f"{name}_nele_hess")
        + (parameters + hessian if problem.hessian.nnz else f"{unread}    return true;\n"),
    }


def _places(kind: str, count: str) -> str:
    return f"""    if (values == NULL) {{
        for (int k = 0; k < {count}; k++) {{ iRow[k] = {kind}_row[k]; jCol[k] = {kind}_column[k]; }}
        return true;
    }}
"""


def _parameters(problem: IpoptProblem) -> str:
    if not problem.parameters:
        return ""
    lines = [f"    const struct {problem.name}_parameters *given = user_data;\n"]
    for field in problem.parameters:
        known = f"given != NULL && given->{field} != NULL"
        lines.append(f"    const double *{field} = {known} ? given->{field} : value_of_{field};\n")
    return "".join(lines)
