"""Functions that CVODE calls: programs in C linked with the SUNDIALS that a wheel brings, beside Radau's method."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symad as sa
from symad.errors import ArgumentError, WorkbenchError
from tests.support.exported import compiler, needs_compiler

MAIN = """
#include <stdint.h>
#include <stdio.h>
#include "NAME.h"

typedef void *N_Vector; typedef void *SUNMatrix; typedef void *SUNLinearSolver; typedef void *SUNContext;
int SUNContext_Create(int comm, SUNContext *context);
N_Vector N_VNew_Serial(int64_t size, SUNContext context);
double *N_VGetArrayPointer(N_Vector vector);
void *CVodeCreate(int method, SUNContext context);
int CVodeInit(void *memory, int (*f)(double, void *, void *, void *), double t, N_Vector y);
int CVodeSStolerances(void *memory, double relative, double absolute);
SUNMatrix SUNDenseMatrix(int64_t rows, int64_t columns, SUNContext context);
SUNLinearSolver SUNLinSol_Dense(N_Vector y, SUNMatrix matrix, SUNContext context);
int CVodeSetLinearSolver(void *memory, SUNLinearSolver solver, SUNMatrix matrix);
int CVodeSetJacFn(void *memory, int (*f)(double, void *, void *, void *, void *, void *, void *, void *));
int CVodeSetUserData(void *memory, void *data);
int CVodeSetMaxNumSteps(void *memory, long steps);
int CVode(void *memory, double end, N_Vector y, double *t, int task);

int main(void)
{
    SUNContext context; double t = 0; int status = SUNContext_Create(0, &context);
    N_Vector y = N_VNew_Serial(NAME_n, context);
    void *memory = CVodeCreate(2, context);
    SUNMatrix matrix = SUNDenseMatrix(NAME_n, NAME_n, context);
    double q[NAME_parameters + 1] = {PARAMETERS};
    for (int k = 0; k < NAME_n; k++) N_VGetArrayPointer(y)[k] = NAME_start[k];
    status |= CVodeInit(memory, NAME_rhs, 0.0, y) | CVodeSStolerances(memory, 1e-9, 1e-12);
    status |= CVodeSetLinearSolver(memory, SUNLinSol_Dense(y, matrix, context), matrix);
    status |= CVodeSetJacFn(memory, NAME_jac) | CVodeSetUserData(memory, DATA) | CVodeSetMaxNumSteps(memory, 100000);
    if (status) return 100;
    (void)q;
    status = CVode(memory, END, y, &t, 1);
    printf("%d %.12g", status, t);
    for (int k = 0; k < NAME_n; k++) printf(" %.12g", N_VGetArrayPointer(y)[k]);
    return 0;
}
"""


def libraries() -> list[str]:
    """Return the shared libraries of SUNDIALS that scikit-sundae brings."""
    found = importlib.util.find_spec("sksundae")
    if found is None or found.origin is None:
        pytest.skip("pip install 'symad[sundials]'")
    folder = Path(found.origin).parents[1] / "scikit_sundae.libs"
    names = ("core", "cvode", "nvecserial", "sunmatrixdense", "sunlinsoldense")
    return [str(next(folder.glob(f"libsundials_{name}-*.so*"))) for name in names]


def integrated(folder: Path, made: Any, name: str, end: float, q: tuple[float, ...] = ()) -> list[float]:
    """Compile the program, run it, and return its status, the time, and the state."""
    text = MAIN.replace("NAME", name).replace("END", repr(end)).replace("DATA", "q" if q else "NULL")
    main = folder / "main.c"
    main.write_text(text.replace("PARAMETERS", ", ".join(map(repr, q)) or "0"))
    first = libraries()[0]
    line = [*compiler(), "-Wall", "-Wextra", "-Werror", str(main), str(made.files["object"]), *libraries(), "-lm"]
    subprocess.run([*line, f"-Wl,-rpath,{Path(first).parent}", "-o", str(folder / "main")], check=True)
    done = subprocess.run([str(folder / "main")], check=True, capture_output=True, text=True, timeout=600)
    return [float(word) for word in done.stdout.splitlines()[-1].split()]  # before it, warnings of CVODE


def robertson(t: Any, y: Any, k: Any) -> Any:
    slow, back, fast = k[0] * y[0], k[1] * y[1] * y[2], k[2] * y[1] ** 2
    return np.stack([-slow + back, slow - back - fast, fast])


@needs_compiler
@pytest.mark.parametrize("q", [(), (0.05, 2e4, 2e7)])
def test_cvode_from_c_finds_the_trajectory(q: Any, tmp_path: Path) -> None:
    rates = np.array([0.04, 1e4, 3e7])
    problem = sa.ode(robertson, np.array([1.0, 0.0, 0.0]), (rates,))
    status, t, *state = integrated(tmp_path, problem.export(tmp_path, name="robertson"), "robertson", 40.0, q)
    assert (status, t) == (0, 40.0)
    want = problem.solve((0.0, 40.0), np.array(q) if q else rates, times=[40.0], method="Radau", rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(state, want.y[:, 0], rtol=1e-6)


@needs_compiler
def test_without_parameters_and_with_a_mass_matrix(tmp_path: Path) -> None:
    problem = sa.ode(lambda t, y: [y[1], -4.0 * y[0]], [1.0, 0.0], mass=np.array([1.0, 4.0]))
    _, _, *state = integrated(tmp_path, problem.export(tmp_path, name="swing"), "swing", 1.0)
    assert state == pytest.approx([np.cos(1.0), -np.sin(1.0)], rel=1e-6)


@needs_compiler
def test_a_slope_of_nan_is_told_by_the_error_flag(tmp_path: Path) -> None:
    """CVODE shortens its steps, and gives up with a status of its own; it would go on for ever with a NaN."""
    problem = sa.ode(lambda t, y, a: a * np.sqrt(1.0 - t) * y, np.ones(2), (1.0,))
    status, t, *_ = integrated(tmp_path, problem.export(tmp_path, name="ending"), "ending", 2.0)
    assert status < 0
    assert t < 1.01


SPARSE = """
#include <stdint.h>
#include <stdio.h>
#include "NAME.h"

static double data[NAME_nnz];
static int64_t rows[NAME_nnz], starts[NAME_n + 1];
double *N_VGetArrayPointer(void *vector) { return vector; }
double *SUNSparseMatrix_Data(void *matrix) { (void)matrix; return data; }
int64_t *SUNSparseMatrix_IndexValues(void *matrix) { (void)matrix; return rows; }
int64_t *SUNSparseMatrix_IndexPointers(void *matrix) { (void)matrix; return starts; }

int main(void)
{
    double y[NAME_n];
    for (int k = 0; k < NAME_n; k++) y[k] = 0.5 + 0.1 * k;
    if (NAME_jac_sparse(0.0, y, 0, 0, 0, 0, 0, 0)) return 1;
    for (int k = 0; k < NAME_n; k++)
        for (int64_t e = starts[k]; e < starts[k + 1]; e++) printf("%d %d %.17g\\n", (int)rows[e], k, data[e]);
    y[0] = -1e308;
    return NAME_jac_sparse(0.0, y, 0, 0, 0, 0, 0, 0) != 1;
}
"""


@needs_compiler
def test_the_sparse_matrix_of_the_jacobian(tmp_path: Path) -> None:
    """SUNDIALS' functions for sparse matrices are the program's here: what they point to is looked at."""

    def right(t: Any, y: Any, a: Any) -> Any:
        return np.concatenate([y[:1] ** 3, a * y[1:] * y[:-1]])

    made = sa.ode(right, np.ones(5), (2.0,)).export(tmp_path, name="chain")
    main = tmp_path / "main.c"
    main.write_text(SPARSE.replace("NAME", "chain"))
    line = [*compiler(), "-Wall", "-Wextra", "-Werror", str(main), str(made.files["object"]), "-lm"]
    subprocess.run([*line, "-o", str(tmp_path / "main")], check=True)
    done = subprocess.run([str(tmp_path / "main")], check=True, capture_output=True, text=True)
    found = np.zeros((5, 5))
    for row, column, value in (text.split() for text in done.stdout.splitlines()):
        found[int(row), int(column)] = float(value)
    y = 0.5 + 0.1 * np.arange(5)
    np.testing.assert_allclose(found, sa.jacobian(lambda y: right(0.0, y, 2.0))(y), rtol=1e-14)


@needs_compiler
def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = sa.ode(lambda t, y, a: a * y, np.ones(2), (1.0,))
    with pytest.raises(ArgumentError, match="abi='ida'; \"cvode\" is for differential equations"):
        problem.export(tmp_path, abi="ida")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(WorkbenchError, match="functions of cvode: no C compiler driver"):
        problem.export(tmp_path)
    assert not list(tmp_path.iterdir())
