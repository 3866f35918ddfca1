"""Problems as C libraries: programs that link them with Ipopt alone, CasADi's `nlpsol`, pkg-config and CMake."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symad as sa
from symad.errors import ArgumentError, LoweringError, WorkbenchError
from tests.support.casadi_package import casadi, quiet, with_its_ipopt
from tests.support.exported import compiler, needs_compiler

START = [1.0, 5.0, 5.0, 1.0]
ALWAYS = ["-Wall", "-Wextra", "-Werror"]


def hs71(least: float = 25.0) -> sa.Problem:
    """The problem of Hock and Schittkowski, with a parameter that scales the product."""
    return sa.Problem(
        lambda x, scale: x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2],
        lambda x, scale: [scale * x[0] * x[1] * x[2] * x[3], np.sum(x**2)],
        bounds=(1.0, 5.0), constraint_bounds=([least, 40.0], [np.inf, 40.0]), parameters=(1.0,),
    )  # fmt: skip


def solved_in_c(folder: Path, file: Path, name: str) -> tuple[int, list[float]]:
    """Compile a program with the library and Ipopt, run it, and return the status and the numbers that it printed."""
    program = folder / f"{file.stem}.out"
    line = [*compiler(), *ALWAYS, str(file), f"-I{folder}", f"-L{folder}", f"-l{name}", *with_its_ipopt()]
    subprocess.run([*line, f"-Wl,-rpath,{folder}", "-o", str(program)], check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    words = done.stdout.split("\n\n")[-1].split()
    return int(words[0]), [float(word) for word in words[1:]]


@needs_compiler
def test_the_example_finds_what_minimize_finds(tmp_path: Path) -> None:
    made = hs71().export(tmp_path, START, abi="ipopt", name="hs")
    status, numbers = solved_in_c(tmp_path, made.files["example"], "hs")
    found = hs71().minimize(START, solver="ipopt")
    assert status == found.status == 0
    assert numbers == pytest.approx([found.fun, *found.x], abs=1e-6)  # another build of Ipopt


@needs_compiler
def test_parameters_are_user_data(tmp_path: Path) -> None:
    made = hs71().export(tmp_path, START, abi="ipopt", name="hs")
    text = made.files["example"].read_text()
    text = text.replace("double optimum;", "double optimum, scale = 0.9;\n    struct hs_parameters given = {&scale};")
    other = tmp_path / "other.c"
    other.write_text(text.replace("NULL, NULL, NULL, NULL);", "NULL, NULL, NULL, &given);"))
    status, numbers = solved_in_c(tmp_path, other, "hs")
    found = hs71().minimize(START, 0.9, solver="ipopt")
    assert status == 0
    assert numbers == pytest.approx([found.fun, *found.x], abs=1e-6)  # another build of Ipopt
    assert abs(numbers[0] - hs71().minimize(START, solver="ipopt").fun) > 0.5


EDGES: dict[str, tuple[Any, Any, Any]] = {
    "no-constraints": (lambda x: np.sum((x - 3.0) ** 4 + x * x), None, {}),
    "linear": (lambda x: np.sum(x), lambda x: x[:1] + x[1:2], {"bounds": (0.0, 2.0), "constraint_bounds": (1.0, None)}),
    "in-no-objective": (lambda x: (x[0] - 2.0) ** 2, lambda x: np.stack([0.0 * x[0] + 1.0, x[0] + 0.0]),
                        {"constraint_bounds": (0.0, 1.5)}),
}  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("name", EDGES)
def test_empty_rows_constants_and_no_constraints(name: str, tmp_path: Path) -> None:
    """In C and through CasADi; where a Hessian or a Jacobian has nothing in it, no kernel is called."""
    objective, constraints, options = EDGES[name]
    problem, start = sa.Problem(objective, constraints, **options), np.full(3, 0.5)
    found = problem.minimize(start, solver="ipopt")
    made = problem.export(tmp_path / "c", start, abi="ipopt", name="edge")
    status, numbers = solved_in_c(tmp_path / "c", made.files["example"], "edge")
    assert status == 0
    assert numbers == pytest.approx([found.fun, *found.x], abs=1e-6)
    library = problem.export(tmp_path / "casadi", start, abi="casadi").files["library"]
    solver = casadi().nlpsol("solver", "ipopt", str(library), quiet())
    low, high = options.get("bounds", (-np.inf, np.inf))
    limits = options.get("constraint_bounds", (0.0, 0.0))
    sides = {"lbg": limits[0], "ubg": np.inf if limits[1] is None else limits[1]} if constraints else {}
    theirs = solver(x0=start, lbx=low, ubx=high, **sides)
    assert np.array(theirs["x"]).ravel() == pytest.approx(found.x, abs=1e-6)


@needs_compiler
def test_nlpsol_checks_every_derivative(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    library = hs71().export(tmp_path, START, abi="casadi").files["library"]
    options = {"ipopt": {"derivative_test": "second-order", "point_perturbation_radius": 0.1, "print_level": 4}}
    solver = casadi().nlpsol("solver", "ipopt", str(library), options)
    found = solver(x0=START, p=1.0, lbx=1.0, ubx=5.0, lbg=[25.0, 40.0], ubg=[np.inf, 40.0])
    assert "No errors detected by derivative checker" in capfd.readouterr().out
    assert float(found["f"]) == pytest.approx(17.0140173, abs=1e-6)
    assert np.array(found["lam_g"]).ravel() == pytest.approx([-0.5522937, 0.1614686], abs=1e-5)
    step = 1e-4
    higher, lower = (hs71().minimize(START, 1.0 + h, solver="ipopt", tolerance=1e-11).fun for h in (step, -step))
    assert float(found["lam_p"]) == pytest.approx(-(higher - lower) / (2 * step), rel=1e-5)  # CasADi's sign


@needs_compiler
def test_a_loaded_problem_is_exported_too(tmp_path: Path) -> None:
    hs71().save(tmp_path / "saved", START)
    library = sa.load(tmp_path / "saved").export(tmp_path, START, abi="casadi").files["library"]
    solver = casadi().nlpsol("solver", "ipopt", str(library), quiet() | {"no_nlp_grad": True, "calc_lam_p": False})
    found = solver(x0=START, p=1.0, lbx=1.0, ubx=5.0, lbg=[25.0, 40.0], ubg=[np.inf, 40.0])
    assert float(found["f"]) == pytest.approx(17.0140173, abs=1e-6)


@needs_compiler
def test_an_infeasible_problem_and_nan_end_in_ipopts_status(tmp_path: Path) -> None:
    infeasible = hs71(least=1e5).export(tmp_path / "infeasible", START, abi="ipopt", name="hs")
    assert solved_in_c(tmp_path / "infeasible", infeasible.files["example"], "hs")[0] == 2
    outside = sa.Problem(lambda x: np.sum(np.log(x))).export(
        tmp_path / "nan", np.full(2, -1.0), abi="ipopt", name="nan_"
    )
    assert solved_in_c(tmp_path / "nan", outside.files["example"], "nan_")[0] == -13


@needs_compiler
def test_wrong_sizes_are_refused_by_the_callbacks(tmp_path: Path) -> None:
    made = hs71().export(tmp_path, START, abi="ipopt", name="hs")
    other = tmp_path / "other.c"
    other.write_text(
        '#include "hs.h"\nint main(void) { double x[5] = {1, 1, 1, 1, 1}, y[9]; return hs_eval_f(5, x, true, y, 0)\n'
        "+ hs_eval_g(4, x, true, 3, y, 0) + hs_eval_jac_g(4, x, true, 2, 7, 0, 0, y, 0)\n"
        "+ hs_eval_h(4, x, true, 1, 2, x, true, 9, 0, 0, y, 0) + 2 * !hs_eval_f(4, x, true, y, 0); }\n"
    )
    line = [*compiler(), *ALWAYS, str(other), f"-I{tmp_path}", str(made.files["object"]), "-lm", "-o"]
    subprocess.run([*line, str(tmp_path / "other")], check=True)
    assert subprocess.run([str(tmp_path / "other")], check=False).returncode == 0


@needs_compiler
@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="no pkg-config: apt-get install pkg-config")
def test_pkg_config_finds_a_library_wherever_it_was_moved_to(tmp_path: Path) -> None:
    sa.compile(lambda x: np.sum(x * x), np.ones(3)).export(tmp_path / "made", "squares")
    (tmp_path / "made").rename(tmp_path / "moved")
    main = tmp_path / "main.c"
    main.write_text(
        '#include "squares.h"\nint main(void) { double x[3] = {1, 2, 3}, s; return squares(x, &s) || s != 14; }\n'
    )
    asked = subprocess.run(["pkg-config", "--cflags", "--libs", "squares"], capture_output=True, text=True, check=True,
                           env={"PATH": "/usr/bin:/bin", "PKG_CONFIG_PATH": str(tmp_path / "moved")})  # fmt: skip
    subprocess.run([*compiler(), str(main), *asked.stdout.split(), "-o", str(tmp_path / "main")], check=True)
    assert subprocess.run([str(tmp_path / "main")], check=False).returncode == 0


@needs_compiler
@pytest.mark.skipif(shutil.which("cmake") is None, reason="no CMake: apt-get install cmake")
def test_cmake_finds_a_library(tmp_path: Path) -> None:
    hs71().export(tmp_path / "lib", START, abi="ipopt", name="hs")
    (tmp_path / "main.c").write_text('#include "hs.h"\nint main(void) { return hs_n != 4; }\n')
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.10)\nproject(uses C)\nfind_package(hs REQUIRED CONFIG)\n"
        "add_executable(main main.c)\ntarget_link_libraries(main hs::hs)\n"
    )
    build = tmp_path / "build"
    made = ["cmake", "-S", str(tmp_path), "-B", str(build), f"-Dhs_DIR={tmp_path / 'lib'}"]
    subprocess.run(made, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", str(build)], check=True, capture_output=True)
    assert subprocess.run([str(build / "main")], check=False).returncode == 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"abi": "snopt"}, ArgumentError, 'abi=\'snopt\'; use "ipopt" or "casadi"'),
        ({"abi": "ipopt", "name": "nlp-1"}, ArgumentError, "it is no identifier of C"),
        ({"abi": "ipopt", "cpu": "abacus"}, ArgumentError, "abacus"),
    ],
)
def test_what_is_refused(options: dict[str, Any], error: type, message: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=message):
        hs71().export(tmp_path, START, **options)
    assert not list(tmp_path.iterdir())


def test_bounds_that_do_not_fit_and_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match=r"bounds: .*they are for numbers of shape \(2,\)"):
        sa.Problem(lambda x: np.sum(x), bounds=(np.zeros(3), 1.0)).export(tmp_path, np.zeros(2), abi="ipopt")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(WorkbenchError, match="functions of ipopt: no C compiler driver"):
        hs71().export(tmp_path, START, abi="ipopt")
    assert not list(tmp_path.iterdir())


@needs_compiler
def test_functions_that_no_c_library_has(tmp_path: Path) -> None:
    special = pytest.importorskip("scipy.special")
    with pytest.raises(LoweringError, match="which no C library has"):
        sa.Problem(lambda x: np.sum(special.jv(2, x))).export(tmp_path, np.zeros(2), abi="ipopt", name="bessel")
    assert not list(tmp_path.iterdir())
