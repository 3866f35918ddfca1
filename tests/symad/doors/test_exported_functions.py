"""Functions that CasADi loads: values and derivatives beside CasADi's own of the same formula, solved by its Ipopt."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symad as sa
from symad.errors import ArgumentError, LoweringError, WorkbenchError
from tests.support.casadi_package import casadi, quiet
from tests.support.exported import needs_compiler

ca = casadi()
MATRIX = np.arange(6.0).reshape(2, 3) + 0.5
POINT = (np.array([0.3, -0.4, 0.5, 1.0]), MATRIX, 1.7)


def several(x: Any, matrix: Any, a: Any) -> Any:
    return np.sin(x) * (matrix @ x[:3])[0] * a, np.sum(matrix**2) * x[0] + a**2, matrix.T * a


def several_in_casadi(x: Any, matrix: Any, a: Any) -> Any:
    return ca.sin(x) * ca.mtimes(matrix, x[:3])[0] * a, ca.sumsqr(matrix) * x[0] + a**2, matrix.T * a


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    made = sa.export(several, tmp_path_factory.mktemp("several"), *POINT, abi="casadi", name="several")
    x, matrix, a = ca.SX.sym("x", 4), ca.SX.sym("matrix", 2, 3), ca.SX.sym("a")
    theirs = ca.Function("theirs", [x, matrix, a], list(several_in_casadi(x, matrix, a)))
    return ca.external("several", str(made.files["library"])), theirs


@needs_compiler
def test_values_and_names(functions: tuple[Any, Any]) -> None:
    ours, theirs = functions
    assert str(ours).startswith("several:(x[4],matrix[2x3],a)->(out0[4],out1,out2[3x2])")
    for found, expected in zip(ours(*POINT), theirs(*POINT), strict=True):
        assert np.array(found) == pytest.approx(np.array(expected), rel=1e-14)


@needs_compiler
def test_jacobians_and_their_patterns(functions: tuple[Any, Any]) -> None:
    ours, theirs = (function.jacobian()(*POINT, *function(*POINT)) for function in functions)
    assert len(ours) == 9
    for found, expected in zip(ours, theirs, strict=True):
        assert found.sparsity() == expected.sparsity()
        assert np.array(found) == pytest.approx(np.array(expected), rel=1e-14, abs=1e-15)


def curvature(function: Any) -> Any:
    """Gradient and Hessian of a number that depends on all results, by CasADi."""
    flat = ca.MX.sym("flat", 11)
    first, second, third = function(flat[:4], ca.reshape(flat[4:10], 2, 3), flat[10])
    number = ca.dot(ca.cos(first), first) + second**2 + ca.sumsqr(ca.sin(third))
    return ca.Function("curvature", [flat], list(ca.hessian(number, flat)))


@needs_compiler
def test_second_derivatives_through_casadi(functions: tuple[Any, Any]) -> None:
    flat = np.concatenate([POINT[0], MATRIX.T.ravel(), [POINT[2]]])
    for found, expected in zip(*(curvature(function)(flat) for function in functions), strict=True):
        assert np.array(found) == pytest.approx(np.array(expected), rel=1e-12, abs=1e-11)


@needs_compiler
def test_derivatives_are_those_of_casadis_finite_differences(functions: tuple[Any, Any]) -> None:
    ours, _ = functions
    x, matrix, a = ca.MX.sym("x", 4), ca.MX.sym("matrix", 2, 3), ca.MX.sym("a")
    wrapped = ca.Function(
        "wrapped", [x, matrix, a], ours(x, matrix, a), {"enable_fd": True, "enable_forward": False,
        "enable_reverse": False, "enable_jacobian": False},
    )  # fmt: skip
    differences = wrapped.forward(1)(*POINT, *ours(*POINT), np.ones(4), np.ones((2, 3)), 1.0)
    exact = ours.forward(1)(*POINT, *ours(*POINT), np.ones(4), np.ones((2, 3)), 1.0)
    for found, expected in zip(exact, differences, strict=True):
        assert np.array(found) == pytest.approx(np.array(expected), rel=1e-5, abs=1e-6)


def cost(x: Any) -> Any:
    return np.sum(100.0 * (x[:-1] ** 2 - x[1:]) ** 2 + (x[:-1] - 1.0) ** 2)


def limits(x: Any) -> Any:
    a, b, c = x[:-2], x[1:-1], x[2:]
    return 3 * b**3 + 2 * c - 5 + np.sin(b * c) + 4 * b - a * np.exp(a - b) - 3


@needs_compiler
def test_a_problem_of_casadis_with_our_functions(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The check that Ipopt has finds no error in any derivative."""
    start = np.where(np.arange(30) % 2, 1.0, -1.2)
    files = [sa.export(made, tmp_path, start).files["library"] for made in (cost, limits)]
    value, rows = (ca.external(name, str(file)) for name, file in zip(("cost", "limits"), files, strict=True))
    x = ca.MX.sym("x", start.size)
    checked = {"derivative_test": "second-order", "point_perturbation_radius": 0.1, "print_level": 4}
    solver = ca.nlpsol("solver", "ipopt", {"x": x, "f": value(x), "g": rows(x)}, quiet(**checked))
    found = solver(x0=start, lbg=0, ubg=0)
    assert solver.stats()["return_status"] == "Solve_Succeeded"
    assert "No errors detected by derivative checker" in capfd.readouterr().out
    assert float(found["f"]) == pytest.approx(sa.Problem(cost, limits).minimize(start, solver="ipopt").fun, rel=1e-8)


@needs_compiler
def test_zeros_for_what_is_not_given_and_room_for_what_is_not_asked(tmp_path: Path) -> None:
    """Null pointers, as CasADi passes them: a program in C calls the functions so."""
    made = sa.export(lambda x, a: (np.sum(x * x) + a, x * a), tmp_path, np.ones(2), 1.0, name="two")
    main = tmp_path / "main.c"
    main.write_text(
        """#include <stdio.h>
#include "two.h"
int main(void)
{
    double x[2] = {3, 4}, first, w[100];
    const double *arg[2] = {x, 0};
    double *res[2] = {&first, 0};
    casadi_int sizes[4];
    two_work(sizes, sizes + 1, sizes + 2, sizes + 3);
    if (sizes[0] != 2 || sizes[1] != 2 || sizes[2] != 0 || sizes[3] > 100) return 1;
    if (two(arg, res, 0, w, 0)) return 2;
    printf("%g %d %s\\n", first, (int)two_n_in(), two_name_out(1));
    return two_name_in(2) != 0;
}
"""
    )
    library = made.files["library"]
    line = ["cc", "-Wall", "-Werror", main, f"-I{tmp_path}", library, f"-Wl,-rpath,{tmp_path}", "-o", tmp_path / "main"]
    subprocess.run(line, check=True)
    done = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True)
    assert done.stdout == "25 2 out1\n"


@needs_compiler
@pytest.mark.parametrize(
    ("examples", "options", "message"),
    [
        (
            (np.ones((2, 2, 2)),),
            {},
            r"x for CasADi: it has shape \(2, 2, 2\); CasADi has numbers, vectors and matrices",
        ),
        ((1.0,), {"abi": "fmi"}, "abi='fmi'"),
        ((1.0,), {"name": "double"}, "'double' as name of a C function"),
        ((1.0,), {"cpu": "abacus"}, "abacus"),
    ],
)
def test_what_is_refused(examples: Any, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=message):
        sa.export(lambda x: x * 2.0, tmp_path, *examples, **({"name": "twice"} | options))
    assert not list(tmp_path.iterdir())


@needs_compiler
def test_functions_of_scipy_are_refused(tmp_path: Path) -> None:
    special = pytest.importorskip("scipy.special")
    with pytest.raises(LoweringError, match=r"scipy\.special\.jv, which no C library has"):
        sa.export(lambda x: special.jv(2, x), tmp_path, 1.0, name="bessel")
    assert not list(tmp_path.iterdir())


def test_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(WorkbenchError, match="functions of casadi: no C compiler driver"):
        sa.export(lambda x: x * x, tmp_path, 1.0, name="square")
    assert not list(tmp_path.iterdir())


@needs_compiler
def test_jacobians_are_differentiated_again(functions: tuple[Any, Any]) -> None:
    again = [function.jacobian().jacobian() for function in functions]
    given = [np.zeros(again[1].size_in(k)) for k in range(again[1].n_in())]
    given[:3] = POINT
    for found, expected in zip(*(function(*given) for function in again), strict=True):
        assert found.shape == expected.shape
        assert np.array(ca.densify(found)) == pytest.approx(np.array(ca.densify(expected)), rel=1e-13, abs=1e-14)


@needs_compiler
def test_sensitivities_of_casadis_integrators(tmp_path: Path) -> None:
    def rhs(y: Any, k: Any) -> Any:
        return np.stack([-k * y[0] + y[1] ** 2, -y[1]])

    made = sa.export(rhs, tmp_path, np.ones(2), 1.0, abi="casadi", name="rhs")
    ours, y, k = ca.external("rhs", str(made.files["library"])), ca.MX.sym("y", 2), ca.MX.sym("k")
    flow = ca.integrator("flow", "cvodes", {"x": y, "p": k, "ode": ours(y, k)}, 0, 1)
    end = flow(x0=ca.DM([1, 0]), p=k)["xf"]
    slope = ca.Function("slope", [k], [ca.jacobian(end, k)])(2.0)
    assert float(slope[0]) == pytest.approx(-np.exp(-2.0), rel=1e-4)
