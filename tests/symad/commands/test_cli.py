"""The command line: the report, every option, every error; the file is never half written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import codegen
from symad.cli import main

EXAMPLES = Path(__file__).parents[3] / "examples"
ROSENBROCK = f"{EXAMPLES / 'rosenbrock.py'}:rosenbrock"


def run(capsys, *arguments):
    status = main(["hessian", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def source(tmp_path, text, name="model.py"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("mode", ["auto", "edge", "dyadic", "fwd-rev", "rev-rev", "rev-fwd", "fwd-fwd"])
def test_report_of_every_mode(capsys, mode):
    status, out, err = run(capsys, ROSENBROCK, "--mode", mode)
    assert (status, err) == (0, "")
    for part in (
        "trace + differentiate",
        "operations before CSE",
        "time per call",
        "sparsity pattern:",
        "in 50 digits",
    ):
        assert part in out
    ulp = float(out.split("largest error ")[1].split(" ULP")[0])
    assert ulp < 10


def test_the_stages_of_the_quick_tier(capsys):
    """Those of the encoder where it writes for this machine, else LLVM's."""
    status, out, err = run(capsys, ROSENBROCK, "--fast")
    assert (status, err) == (0, "")
    assert ("encode machine code" in out) != ("generate code" in out)
    assert "lower, share" in out


def test_the_lennard_jones_cluster_is_dense_and_right(capsys):
    status, out, _ = run(capsys, f"{EXAMPLES / 'lennard_jones.py'}:energy")
    assert status == 0
    assert "39 variables" in out
    assert "780 in the lower triangle, of 780" in out
    assert float(out.split("largest absolute error ")[1].split(" of")[0]) < 1e-14


@pytest.mark.parametrize(
    ("emit", "part"),
    [("llvm", "define i32 @kernel"), ("asm", "ret"), ("let", "H_0_0 = "), ("latex", r"\[ H_{0,0} = ")],
)
def test_emit(capsys, emit, part):
    status, out, _ = run(capsys, ROSENBROCK, "--emit", emit)
    assert status == 0
    assert part in out


def test_names_in_latex_are_different(capsys, tmp_path):
    (tmp_path / "square.py").write_text("import numpy as np\ndef f(x=np.ones(2)):\n    return np.exp(x[0] * x[1])\n")
    assert main(["hessian", f"{tmp_path / 'square.py'}:f", "--emit", "latex"]) == 0
    lines = capsys.readouterr().out
    assert r"\[ x_{0} =" not in lines
    assert r"\mathit{x0} = e^{x_{0} \cdot x_{1}}" in lines.replace("x_{0} x_{1}", r"x_{0} \cdot x_{1}")


def test_output_holds_the_matrix(capsys, tmp_path):
    path = tmp_path / "hessian.txt"
    status, out, _ = run(
        capsys, source(tmp_path, "def f(x=2.0, y=3.0):\n    return x**3 * y\n") + ":f", "--output", str(path)
    )
    assert status == 0
    assert f"written: {path}" in out
    assert np.array_equal(np.loadtxt(path), 36.0)
    assert [p.name for p in tmp_path.iterdir() if p.suffix == ".part"] == []


def test_sparse_prints_the_entries(capsys):
    _, out, _ = run(capsys, ROSENBROCK, "--sparse")
    last = out.strip().splitlines()[-1].split()
    assert last[:2] == ["4", "4"]
    assert float(last[2]) == 200.0


NUMPY = "import numpy as np\n"
UNDEFINED = "import sympy\ng = sympy.Function('g')\ndef f(x=1.0): return x**2 * g(sympy.Symbol('t'))"
ERRORS = {
    "no function given": ("x.py", None, r"as target; write it as path/to/file\.py:function"),
    "no such file": ("{dir}/nowhere.py:f", None, "no file"),
    "missing function": ("{file}:g", "def f(x=1.0): return x", r"no function 'g'; the file has: f"),
    "not a function": ("{file}:f", "f = 3", "'f' is not a function"),
    "no point": ("{file}:f", "def f(x): return x", r"no example point for f\(x\); give the arguments defaults"),
    "syntax error": ("{file}:f", "def f(x=1.0)\n    return x", r"model\.py:1: SyntaxError"),
    "import error": ("{file}:f", "import nowhere_to_be_found", r"model\.py:1: ModuleNotFoundError"),
    "string result": ("{file}:f", "def f(x=1.0): return 'text'", "str"),
    "no result": ("{file}:f", "def f(x=1.0): pass", "f returned None"),
    "ragged result": ("{file}:f", "def f(x=1.0): return [[x, x], [x]]", "instead of one scalar"),
    "nan point": ("{file}:f", "def f(x=float('nan')): return x", r"example_args\[0\] holds NaN or infinity"),
    "infinite point": ("{file}:f", "def f(x=float('inf')): return x", "holds NaN or infinity"),
    "complex point": ("{file}:f", "def f(x=1j): return x", "complex"),
    "object point": ("{file}:f", NUMPY + "def f(x=np.array([object()])): return x.sum()", "object"),
    "example_args no tuple": ("{file}:f", "example_args = 3.0\ndef f(x): return x", "example_args is a float"),
    "not finite": ("{file}:f", NUMPY + "def f(x=0.0): return np.sqrt(x)", "not finite at the example point"),
    "math on a traced value": (
        "{file}:f",
        "import math\ndef f(x=1.0): return math.comb(x, 2)",
        r"model\.py:2: .*math\.comb",
    ),
    "endless condition": (
        "{file}:f",
        "def f(x=9.0):\n  kept = []\n  while x > 1:\n    kept.append(x)\n    x = x / 2 if x > 3 else x - 1\n  return x",
        r"model\.py:3: .*64 paths",
    ),
    "reads a file": ("{file}:f", "def f(x=1.0): return x * len(open('a.txt').read())", r"py:1: FileNotFound.*a\.txt"),
    "undefined SymPy function": ("{file}:f", UNDEFINED, r"model\.py:\d+: (the free symbol t|head g)"),
    "output folder missing": ("{rosenbrock} --output /nowhere/at/all.txt", None, "cannot write"),
    "never returns": ("{file}:f --max-seconds 1", "def f(x=1.0):\n    while True:\n        pass", "longer than 1 s"),
    "no time": ("{rosenbrock} --max-seconds 0", None, "give a positive time"),
    "negative time": ("{rosenbrock} --max-seconds -1", None, "give a positive time"),
    "a time that is no number": ("{rosenbrock} --max-seconds nan", None, "give a positive time"),
    "endless time": ("{rosenbrock} --max-seconds inf", None, "give a positive time"),
}


FAILURES = {
    "string result", "math on a traced value", "endless condition", "reads a file",
    "undefined SymPy function", "never returns",
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_one_line_that_helps(capsys, tmp_path, name):
    target, text, message = ERRORS[name]
    file = source(tmp_path, text) if text else ""
    arguments = target.format(file=file, dir=tmp_path, rosenbrock=ROSENBROCK).split(" ")
    status, _, err = run(capsys, *arguments)
    assert status == (3 if name in FAILURES else 2)
    assert err.startswith("symad: error: ")
    assert err.count("\n") == 1
    assert re.search(message, err), err


def test_an_error_in_a_helper_has_the_users_lines(capsys, tmp_path, monkeypatch):
    text = "def g(x):\n    return {}['a'] * x\ndef f(x=1.0):\n    return g(x)"
    file = source(tmp_path, text)
    status, _, err = run(capsys, f"{file}:f")
    assert status == 3
    assert err.splitlines() == [
        f"symad: error: {file}:2: KeyError: 'a'",
        f"  called at {file}:4, in f: return g(x)",
        "  (SYMAD_TRACEBACK=full shows the lines of symad's too)",
    ]
    monkeypatch.setenv("SYMAD_TRACEBACK", "full")
    status, _, err = run(capsys, f"{file}:f")
    assert status == 3
    assert err.startswith("Traceback (most recent call last):")
    assert len(re.findall(r"File .*symad", err)) > 5


def test_an_error_in_one_line_says_how_to_see_the_rest(capsys, tmp_path):
    file = source(tmp_path, "def f(x=1.0):\n    return [][0] * x")
    _, _, err = run(capsys, f"{file}:f")
    assert err == (
        f"symad: error: {file}:2: IndexError: list index out of range"
        "  (SYMAD_TRACEBACK=full shows the lines of symad's too)\n"
    )


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Two kernels in a cache, one of them used twice."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SYMAD_CACHE", raising=False)
    for name, count in (("once", 1), ("thrice", 3)):
        for _ in range(count):
            codegen.lambdify([sp.Symbol(name)], sp.Symbol(name) + 1, cache=True)
    return tmp_path / "symad"


def cache_command(capsys, *arguments):
    status = main(["cache", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_the_cache_is_shown(capsys, cache):
    status, out, err = cache_command(capsys)
    assert (status, err) == (0, "")
    first, header, _, *rows = out.splitlines()
    assert re.fullmatch(
        rf"{cache}: 2 entries, \S+ kB of at most 1.1 GB \(used when .* SYMAD_CACHE asks for it\)", first
    )
    assert header.split() == ["kernel", "size", "made", "last", "used", "hits"]
    assert [(row.split()[0], row.split()[-1]) for row in rows] == [("lambdified", "2"), ("lambdified", "0")]
    assert cache_command(capsys, "--path") == (0, f"{cache}\n", "")


def test_damaged_entries_are_shown_as_such(capsys, cache):
    for path in cache.glob("*.symad"):
        path.write_bytes(path.read_bytes()[:100])
    assert cache_command(capsys)[1].count("(damaged, made anew when it is needed)") == 2


def test_the_cache_is_cleared(capsys, cache, tmp_path):
    other = cache / "notes.txt"
    other.write_text("mine")
    assert cache_command(capsys, "--clear") == (0, f"2 entries removed from {cache}\n", "")
    assert list(cache.iterdir()) == [other]
    assert cache_command(capsys)[1].startswith(f"{cache}: 0 entries, 0 bytes of at most")
    nowhere = tmp_path / "nowhere"
    assert cache_command(capsys, "--clear", "--folder", str(nowhere)) == (0, f"0 entries removed from {nowhere}\n", "")
    assert not nowhere.exists()


def test_the_cache_in_use_is_the_one_of_the_environment(capsys, cache, monkeypatch, tmp_path):
    monkeypatch.setenv("SYMAD_CACHE", str(tmp_path / "own"))
    assert cache_command(capsys, "--path") == (0, f"{tmp_path / 'own'}\n", "")
    assert "in use: SYMAD_CACHE is set" in cache_command(capsys)[1]
    assert "2 entries" in cache_command(capsys, "--folder", str(cache))[1]


def test_the_hessian_command_compiles_every_stage_again(capsys, cache, monkeypatch):
    """It shows the stages' seconds, which code from a cache has not."""
    monkeypatch.setenv("SYMAD_CACHE", "1")
    for _ in range(2):
        assert re.search("generate code|encode machine code", run(capsys, ROSENBROCK)[1])
    assert "2 entries" in cache_command(capsys)[1]


def test_the_installed_command_works_and_helps():
    done = subprocess.run(
        [sys.executable, "-m", "symad.cli", "hessian", "--help"], capture_output=True, text=True, check=True
    )
    assert "FILE.py:FUNCTION" in done.stdout


def test_a_reader_that_stops_reading_is_no_error():
    command = f'"{sys.executable}" -m symad.cli hessian "{EXAMPLES}/lennard_jones.py:energy" --emit let | head -n 1'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stdout.count("\n") == 1
    assert "Error" not in done.stderr


def test_what_was_typed_reaches_the_terminal_as_it_can_be_read(capsys):
    with pytest.raises(SystemExit):
        main(["cache", "\x1b[31mred\x00"])
    said = capsys.readouterr().err
    assert said.startswith("usage: symad cache ")
    assert "unrecognized arguments: \\x1b[31mred\\x00; names and numbers belong to an option" in said


def test_an_expansion_loads_no_compiler_and_no_mathml():
    code = (
        "import sys; from symad.cli import main; main(['expand', 'x**2']); "
        "print([name for name in ('symad.compiling.native', 'latex2mathml', 'llvmlite') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
