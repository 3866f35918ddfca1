"""`symad export`: files that compile, the exact result at the example point, every option, every error."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import symad as sa
from symad.cli import main
from tests.support.exported import build, needs_compiler, run

EXAMPLES = Path(__file__).parents[3] / "examples"
ROSENBROCK = f"{EXAMPLES / 'rosenbrock.py'}:rosenbrock"


def command(capsys, *arguments):
    status = main(["export", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def source(tmp_path, text):
    path = tmp_path / "model.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


@needs_compiler
@pytest.mark.parametrize("of", ["value", "grad", "value_and_grad", "jacobian", "hessian"])
def test_every_derivative_is_exported(capsys, tmp_path, of):
    folder = tmp_path / "out here"
    status, out, err = command(capsys, ROSENBROCK, "--directory", folder, "--of", of)
    assert (status, err) == (0, "")
    name = "rosenbrock" if of == "value" else f"rosenbrock_{of}"
    for kind in ("object", "library", "header", "source", "test"):
        assert re.search(rf"^{kind} +{re.escape(str(folder))}.*{name}", out, re.MULTILINE)
    assert run(build(folder, "tested", f"{name}_test.c", f"{name}.o")) == "ok\n"
    assert f"cc '{folder}/{name}_test.c' '{folder}/{name}.o' -lm -o '{folder}/{name}_test' && " in out


def test_the_test_program_has_the_result_at_the_example_point(capsys, tmp_path):
    path = source(tmp_path, "def f(x=2.0, y=3.0):\n    return x**3 * y\n")
    command(capsys, f"{path}:f", "--directory", tmp_path, "--of", "hessian")
    text = (tmp_path / "f_hessian_test.c").read_text()
    assert "out_values_[1][1] = {\n{\n    0x1.2p+5,\n" in text  # 6 x y
    assert "static const double x_at_[1][1] = {\n{\n    0x1p+1,\n" in text


def test_containers_sparsity_name_and_cpu(capsys, tmp_path):
    text = (
        "import numpy as np\nexample_args = ({'a': np.ones(4), 'b': 2.0},)\n"
        "def f(p): return np.sum(p['a'][1:] * p['a'][:-1]) * p['b']\n"
        "def g(x=np.ones(4)): return np.sum(x[1:] * x[:-1] ** 2)\n"
    )
    path = source(tmp_path, text)
    status, _, _ = command(capsys, f"{path}:f", "--directory", tmp_path / "a", "--name", "energy", "--cpu", "generic")
    assert status == 0
    assert "const double *p_a, const double *p_b, double *out" in (tmp_path / "a" / "energy.h").read_text()
    path = source(tmp_path, text.replace("example_args", "_"))
    status, out, _ = command(capsys, f"{path}:g", "--directory", tmp_path / "b", "--of", "hessian", "--sparse")
    assert status == 0
    assert "g_hessian_sparsity.h" in out
    pattern = sa.compile(sa.hessian(lambda x: np.sum(x[1:] * x[:-1] ** 2), sparse=True), np.ones(4)).sparsity
    assert f"g_hessian_out_nnz = {pattern.nnz} " in (tmp_path / "b" / "g_hessian_sparsity.h").read_text()


ERRORS = {
    "no file": ("nowhere.py:f --directory {dir}", "no file"),
    "sparse value": ("{file}:f --directory {dir} --sparse", "--sparse with --of value; use it with --of jacobian"),
    "bad name": ("{file}:f --directory {dir} --name 2f", "no identifier of C"),
    "keyword": ("{file}:int_ --directory {dir} --name int", "keyword"),
    "cpu": ("{file}:f --directory {dir} --cpu abacus", "no such processor"),
    "directory": ("{file}:f --directory {file}", "cannot write to"),
    "scipy": ("{file}:special --directory {dir}", r"it calls scipy\.special\.jv, which no C library has"),
    "vector": ("{file}:vector --directory {dir} --of grad", "scalar"),
    "never returns": ("{file}:endless --directory {dir} --max-seconds 1", "longer than 1 s"),
}
FUNCTIONS = """
import numpy as np
from scipy.special import jv
def f(x=1.0): return x**2
int_ = lambda x=1.0: x
def special(x=1.0): return jv(2, x)
def vector(x=np.ones(2)): return x * 2
def endless(x=1.0):
    while True: pass
"""


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_one_line_that_helps(capsys, tmp_path, name):
    arguments, message = ERRORS[name]
    file = source(tmp_path, FUNCTIONS)
    status, _, err = command(capsys, *arguments.format(file=file, dir=tmp_path / "out").split(" "))
    assert status == (3 if name in ("scipy", "never returns") else 2)
    assert err.startswith("symad: error: ")
    assert err.count("\n") == 1
    assert re.search(message, err), err
    assert not (tmp_path / "out").exists()


def test_a_missing_compiler_is_said(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    status, out, _ = command(capsys, ROSENBROCK, "--directory", tmp_path)
    assert status == 0
    assert "note: no shared library: no C compiler driver (cc, gcc, clang) was found" in out
