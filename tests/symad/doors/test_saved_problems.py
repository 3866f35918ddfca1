"""Problems in folders: the same numbers again, without a trace; what is damaged, foreign or half written is refused."""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symad as sa
import symad.doors.saved_problems as saved_problems
from codegen.sealed import seal
from symad.errors import ArgumentError

START = np.array([1.0, 5.0, 5.0, 1.0])


def hs71(x: Any, scale: Any) -> Any:
    return scale * x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]


def limits(x: Any, scale: Any) -> Any:
    return [x[0] * x[1] * x[2] * x[3], np.sum(x**2)]


def made() -> Any:
    return sa.Problem(
        hs71, limits, bounds=(1.0, [5.0] * 4), constraint_bounds=([25.0, 40.0], [np.inf, 40.0]), parameters=(1.0,)
    )


@pytest.mark.parametrize("solver", ["ipopt", "trust-constr"])
def test_a_loaded_problem_has_the_same_bits(solver: Any, tmp_path: Path) -> None:
    problem = made()
    problem.save(tmp_path / "new" / "folder", START)
    loaded = sa.load(tmp_path / "new" / "folder")
    ours, theirs = problem.minimize(START, solver=solver), loaded.minimize(START, solver=solver)
    assert theirs.success
    assert theirs.x.tobytes() == ours.x.tobytes()
    assert (theirs.fun, theirs.nit, theirs.violation) == (ours.fun, ours.nit, ours.violation)
    other = problem.minimize(START, 2.0, solver=solver), loaded.minimize(START, 2.0, solver=solver)
    assert other[0].x.tobytes() == other[1].x.tobytes()
    assert loaded.kernels(START).hessian.sparsity == problem.kernels(START).hessian.sparsity


def test_it_is_loaded_in_far_less_time_and_in_another_process(tmp_path: Path) -> None:
    problem, start = sa.Problem(rosenbrock, luksan_vlcek), np.ones(2000)
    begin = time.process_time()
    problem.save(tmp_path, start)
    built = time.process_time() - begin
    sa.load(tmp_path, cache=tmp_path / "cache")
    begin = time.process_time()
    again = sa.load(tmp_path, cache=tmp_path / "cache")
    assert time.process_time() - begin < built / 3  # some thirty times, where nothing else runs
    assert again.kernels(start).hessian.stats.cached
    code = f"""
import sys, numpy as np, symad as sa
loaded = sa.load({str(tmp_path)!r})
assert not any(name.startswith("symad.transforms") for name in sys.modules)
print(repr(float(loaded.kernels(np.ones(2000)).value(np.linspace(0.5, 1, 2000)))))
"""
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert float(found) == problem.kernels(start).value(np.linspace(0.5, 1, 2000))


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[:-1] ** 2 - x[1:]) ** 2 + (x[:-1] - 1.0) ** 2)


def luksan_vlcek(x: Any) -> Any:
    a, b, c = x[:-2], x[1:-1], x[2:]
    return 3.0 * b**3 + 2.0 * c - 5.0 + np.sin(b - c) * np.sin(b + c) + 4.0 * b - a * np.exp(a - b) - 3.0


def test_several_shapes_and_containers(tmp_path: Path) -> None:
    problem = sa.Problem(lambda x, p: np.sum((x - p["a"]) ** 2))
    for n in (2, 3):
        problem.kernels(np.zeros(n), {"a": 1.0})
    problem.save(tmp_path)
    loaded = sa.load(tmp_path)
    for n in (2, 3):
        assert loaded.minimize(np.zeros(n), {"a": 4.0}, solver="bfgs").x == pytest.approx(np.full(n, 4.0))
    with pytest.raises(
        ArgumentError, match=r"shapes \(4,\), \(.*: a loaded problem has kernels for \(2,\), \(.* or \(3,\), "
    ):
        loaded.minimize(np.zeros(4), {"a": 4.0})
    loaded.save(tmp_path / "again")
    assert sa.load(tmp_path / "again").kernels(np.zeros(2), {"a": 1.0}).value(np.ones(2), {"a": 3.0}) == 8.0


def test_saving_again_leaves_what_is_used_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    first = sa.Problem(lambda x: np.sum(x**2))
    first.save(tmp_path, np.zeros(2))
    before = {path.name for path in tmp_path.iterdir()}
    first.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == before
    sa.Problem(lambda x: np.sum(x**4)).save(tmp_path, np.zeros(2))
    after = {path.name for path in tmp_path.iterdir()}
    assert len(after) == len(before)
    assert after & before == {"mine.txt", "problem.symad"}
    assert sa.load(tmp_path).kernels(np.zeros(2)).value(np.full(2, 2.0)) == 32.0


def test_what_is_half_written_leaves_the_problem_of_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sa.Problem(lambda x: np.sum(x**2)).save(tmp_path, np.zeros(2))
    write = saved_problems.write_atomically

    def killed(path: Path, data: bytes) -> None:
        if path.name == "problem.symad":
            raise KeyboardInterrupt
        write(path, data)

    monkeypatch.setattr(saved_problems, "write_atomically", killed)
    with pytest.raises(KeyboardInterrupt):
        sa.Problem(lambda x: np.sum(x**4)).save(tmp_path, np.zeros(2))
    assert sa.load(tmp_path).kernels(np.zeros(2)).value(np.full(2, 2.0)) == 8.0


def test_every_damaged_byte_is_found(tmp_path: Path) -> None:
    made().save(tmp_path, START)
    rng = np.random.default_rng(0)
    for path in sorted(tmp_path.iterdir()):
        data = path.read_bytes()
        for place in (0, 9, 30, *rng.integers(len(data), size=3)):
            spoiled = bytearray(data)
            spoiled[place] ^= 1 << rng.integers(8)
            path.write_bytes(spoiled)
            with pytest.raises(ArgumentError, match=rf"{path.name}: no file that can be loaded"):
                sa.load(tmp_path)
        path.write_bytes(data[:-1])
        with pytest.raises(ArgumentError, match=rf"{path.name}: no file that can be loaded"):
            sa.load(tmp_path)
        path.write_bytes(data)
    assert sa.load(tmp_path).minimize(START).success


def test_files_of_another_problem_and_missing_ones(tmp_path: Path) -> None:
    made().save(tmp_path, START)
    sa.Problem(lambda x: np.sum(x**2)).save(tmp_path / "other", START)
    (theirs,) = (tmp_path / "other").glob("value-*")
    (ours,) = tmp_path.glob("value-*")
    data = ours.read_bytes()
    ours.write_bytes(theirs.read_bytes())
    with pytest.raises(ArgumentError, match="it is not the file that the problem was saved with; save it anew"):
        sa.load(tmp_path)
    ours.write_bytes(data)
    (gradient,) = tmp_path.glob("gradient-*")
    gradient.unlink()
    with pytest.raises(ArgumentError, match=r"cannot read '.*gradient-.*': No such file or directory"):
        sa.load(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArgumentError, match="cannot read"):
        sa.load(tmp_path / "empty")


def written(folder: Path, header: Any, arrays: Any = ()) -> None:
    (folder / "problem.symad").write_bytes(seal(b"problem", 1, header, arrays))


def test_what_a_stranger_wrote_is_refused(tmp_path: Path) -> None:
    problem = made()
    problem.save(tmp_path, START)
    header, arrays = saved_problems.unseal((tmp_path / "problem.symad").read_bytes(), b"problem", 1, "here")
    ((shapes, files),) = header["kernels"]
    written(tmp_path, header, arrays)
    assert sa.load(tmp_path).minimize(START).success
    wrong = [
        {}, [], {**header, "values": header["values"][1:]}, {**header, "values": [[3]] * 5}, {**header, "kernels": 3},
        {**header, "kernels": [[shapes, {**files, "value": ["../../value", files["value"][1]]}]]},
        {**header, "kernels": [[shapes, {**files, "eval": files["value"]}]]},
        {**header, "kernels": [[shapes, {name: files[name] for name in files if name != "hessian"}]]},
        {**header, "kernels": [[shapes, {name: files[name] for name in files if name != "jacobian"}]]},
        {**header, "kernels": [[shapes, {**files, "hessian": files["jacobian"]}]]},
        {**header, "kernels": [[shapes, {**files, "jacobian": files["hessian"]}]]},
        {**header, "kernels": [[shapes, {**files, "gradient": files["value"]}]]},
        {**header, "kernels": [[[[3], []], files]]}, {**header, "kernels": [[[], files]]},
    ]  # fmt: skip
    for given in wrong:
        written(tmp_path, given, arrays)
        with pytest.raises(ArgumentError, match=r"problem.symad: no file that can be loaded: its checksum is right"):
            sa.load(tmp_path)


def test_what_cannot_be_saved_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="nothing was compiled; give an example of x and of the parameters"):
        sa.Problem(lambda x: np.sum(x**2)).save(tmp_path)
    with pytest.raises(
        ArgumentError, match="a problem with a parameter of type dict: a folder holds numbers and arrays"
    ):
        sa.Problem(lambda x, p: np.sum(x**2) * p["a"], parameters=({"a": 1.0},)).save(tmp_path, np.zeros(2))
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match=r"cannot write a problem into '.*file'"):
        sa.Problem(lambda x: np.sum(x**2)).save(tmp_path / "file", np.zeros(2))
    sa.Problem(lambda x: np.sum(x**2)).save(tmp_path, np.zeros(2))
    with pytest.raises(sa.errors.LimitError):
        sa.load(tmp_path, max_ops=1)


SOLVED = """
import sys
import numpy as np
import symad as sa
found = sa.load(sys.argv[1]).minimize(np.array([1.0, 5.0, 5.0, 1.0]), *map(float, sys.argv[2:]), solver="ipopt")
print(found.x.tobytes().hex())
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"sympy", "mpmath", "scipy", "llvmlite", "cffi"}))
print(sum(name.partition(".")[0] in ("symad", "codegen") for name in sys.modules))
"""


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="object files are linked here for x86-64 Linux"
)
@pytest.mark.parametrize("parameters", [(), (2.0,)])
def test_a_process_that_solves_imports_no_compiler(parameters: tuple[float, ...], tmp_path: Path) -> None:
    problem = made()
    problem.save(tmp_path, START)
    sa.load(tmp_path).save(tmp_path)  # machine code of what is loaded is saved again
    line = [sys.executable, "-W", "error", "-c", SOLVED, str(tmp_path), *map(str, parameters)]
    x, heavy, count = subprocess.run(line, check=True, capture_output=True, text=True).stdout.split("\n")[:3]
    assert bytes.fromhex(x) == problem.minimize(START, *parameters, solver="ipopt").x.tobytes()
    assert heavy == ""
    assert int(count) <= 60  # of some six hundred files
