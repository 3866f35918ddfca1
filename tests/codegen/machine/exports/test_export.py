"""Exported kernels: every form gives the same bits, the files compile without a warning, failures leave nothing."""

from __future__ import annotations

import math
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

import codegen.machine.exports.c_source as c_source
from codegen import ArgumentError, LoweringError, WorkbenchError, compile_program, program_from_sympy
from codegen.functions.intrinsics import INTRINSICS
from codegen.ir.program import Input, Output, Program
from codegen.ir.sparsity import SparsityPattern
from codegen.machine.exports.export import SUFFIX
from tests.support.exported import STRICT, bits, build, check_bits, compiler, evaluate, libraries, needs_compiler, run
from tests.support.kernel_points import EDGES, OWN_TESTS, points_of

X, Y, Z = sp.symbols("x y z")


def program_of(rows: list[tuple[Any, tuple[float, ...]]]) -> Program:
    """One input array with all variable operands; one output per head, whose leading operands may be constants."""
    widths = [len(points_of(head)[0]) - len(fixed) for head, fixed in rows]
    size = sum(widths)
    columns: list[Any] = [sp.Symbol] * size
    atoms: dict[int, Any] = {k: sp.Symbol(f"x{k}") for k in range(size)}
    operands: list[tuple[int, ...]] = [()] * size
    outputs, start = [], 0
    for (head, fixed), width in zip(rows, widths, strict=True):
        constants = range(len(columns), len(columns) + len(fixed))
        for value in fixed:
            atoms[len(columns)] = sp.Integer(int(value)) if value == int(value) else sp.Float(value)
            columns.append(type(atoms[len(columns)]))
            operands.append(())
        outputs.append(len(columns))
        columns.append(head)
        operands.append((*constants, *range(start, start + width)))
        start += width
    return Program(columns, operands, atoms, (Input("x", (size,)),), (Output((len(rows),), tuple(outputs)),))


def exportable() -> list[tuple[Any, tuple[float, ...]]]:
    """Heads that call no function of SciPy, with the operands that have to be constants."""
    found = []
    for head in INTRINSICS:
        first = points_of(head)[0]
        for fixed in () if head in OWN_TESTS else ((), first[:-1]):
            try:
                kernel = compile_program(program_of([(head, fixed)]), tier="fast")
            except (LoweringError, TypeError):
                continue
            if "scipy." not in kernel.llvm:
                found.append((head, fixed))
                break
    return found


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.thinned
def test_every_head_has_the_same_bits_in_every_form(tmp_path: Path, dtype: Any) -> None:
    rows = exportable()
    assert len(rows) > 100
    kernel = compile_program(program_of(rows), dtype=dtype)
    points = []
    for k in range(12):
        chosen = [points_of(head)[k % len(points_of(head))][len(fixed) :] for head, fixed in rows]
        points.append([np.array([value for operands in chosen for value in operands])])
    size = points[0][0].size
    points += [[np.full(size, edge)] for edge in EDGES]
    generator = np.random.default_rng(3)
    points += [[generator.choice(EDGES, size)] for _ in range(8)]
    points += [[generator.normal(scale=scale, size=size)] for scale in (0.1, 1.0, 10.0, 300.0) for _ in range(25)]
    with np.errstate(over="ignore"):
        points = [[point.astype(dtype)] for (point,) in points]
    check_bits(kernel, tmp_path, points)
    for form in ("f.o", "f.c"):
        assert run(build(tmp_path, "tested", *STRICT, "-O2", "f_test.c", form)) == "ok\n"


CHOICE = sp.Piecewise((sp.sin(X), (X > Y) | (Z <= 0)), (sp.ITE(X < Z, Y < 0, Y > 1) & (X >= 0), sp.Ne(X, 2)))
EXPRESSIONS = [
    X * Y - Z, X * Y + Z, Z - X * Y, -X * Y - Z, X**7 / (Y**2 + 1), sp.sqrt(X) * X**-1.5, X**Y, 2**X, X**2.5,
    sp.Max(X, Y, Z) + sp.Min(X, Y), CHOICE, sp.sin(X) ** 2 + sp.cos(X) ** 2, sp.nan * X, sp.oo * X, X - sp.pi, -X,
    sp.Piecewise((X, X > 0)), sp.Float("1e-320") * X, sp.Rational(1, 3) * X / 10,
]  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"fma": False}, {"chunk": 3}, {"chunk": 1}, {"dtype": "float32"}], ids=str)
@pytest.mark.thinned
def test_expressions_have_the_same_bits_in_every_form(tmp_path: Path, options: Any, monkeypatch: Any) -> None:
    if options == {"chunk": 1}:
        monkeypatch.setattr(c_source, "STACK_NUMBERS", 2)  # the workspace is allocated
    kernel = compile_program(program_from_sympy([X, (Y, Z)], [EXPRESSIONS, sp.tanh(X)]), **options)
    generator = np.random.default_rng(0)
    values = [
        *generator.normal(size=(40, 3)),
        *generator.choice(EDGES, (40, 3)),
        *np.round(generator.normal(size=(9, 3))),
    ]
    points = [[np.array(x), np.array([y, z])] for x, y, z in values]
    check_bits(kernel, tmp_path, [[array.astype(kernel.options.dtype) for array in point] for point in points])


def test_no_contraction_and_no_other_formula_even_without_flags(tmp_path: Path) -> None:
    """gcc fuses products into sums when it may, and has other formulas for functions of the C library."""
    kernel = compile_program(program_from_sympy([X, Y, Z], [X * Y + Z, X**Y, sp.erf(X)]), fma=False)
    kernel.export(tmp_path, "f", library=False)
    library = build(tmp_path, "f.so", "-shared", "-fPIC", "-O3", "-march=native", "-std=gnu17", "f.c")
    for x, y, z in np.random.default_rng(1).normal(size=(200, 3)):
        point = [np.array(abs(x)), np.array(y), np.array(z)]
        assert np.array_equal(bits(evaluate(library, "f", kernel, point)), bits(kernel(*point)))
    assert "volatile f_erf_)(double) = erf;" in (tmp_path / "f.c").read_text()
    refused = subprocess.run(
        [*compiler(), "-ffast-math", "-c", "f.c"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "compile without -ffast-math" in refused.stderr
    assert refused.returncode


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@needs_compiler
def test_the_zero_of_a_negated_multiply_add_keeps_its_sign(tmp_path: Path, dtype: Any) -> None:
    """gcc joins -fma(-x, y, z) to one instruction: 0 came out of the source where the kernel has -0."""
    negated = sp.Mul(-1, sp.Add(Z, sp.Mul(X, Y)), evaluate=False)
    kernel = compile_program(program_from_sympy([X, Y, Z], [negated]), dtype=dtype)
    points = [
        tuple(np.asarray(value, dtype) for value in point)
        for point in ((1.0, 0.0, -0.0), (-1.0, 0.0, 0.0), (2.0, 3.0, -6.0))
    ]
    kernel.export(tmp_path, "f", points=points, library=False)
    for level in ("-O0", "-O1", "-O3"):
        path = build(tmp_path, "tested", *STRICT, level, "-ffp-contract=off", "-march=native", "f_test.c", "f.c")
        assert run(path) == "ok\n"


def product() -> Any:
    return compile_program(program_from_sympy([X, Y], [X * sp.sin(Y), (X + Y, sp.Max(X, Y))]))


@needs_compiler
@pytest.mark.parametrize(
    "form", [["f.o"], ["-L.", "-lf", "-Wl,-rpath,."], ["-O2", "-ffp-contract=off", "f.c"]], ids=str
)
def test_the_test_program_prints_ok_or_the_first_difference(tmp_path: Path, form: list[str]) -> None:
    folder = tmp_path / "a folder, with spaces"
    made = product().export(folder, "f")
    assert sorted(path.name for path in folder.iterdir()) == [
        "f-config.cmake", "f.c", "f.h", "f.o", "f.pc", "f_test.c", f"libf{SUFFIX}",
    ]  # fmt: skip
    assert sorted(made.files.values()) == sorted(folder.iterdir())
    assert run(build(folder, "tested", *STRICT, "f_test.c", *form)) == "ok\n"
    text = (folder / "f_test.c").read_text()
    last = re.findall(r"0x1\.[0-9a-f]+p[+-][0-9]+", text)[-1]
    wrong = last[:-1] + str((int(last[-1]) + 1) % 10)
    (folder / "f_test.c").write_text(text[::-1].replace(last[::-1], wrong[::-1], 1)[::-1])
    said = run(build(folder, "tested", *STRICT, "f_test.c", *form))
    assert re.fullmatch(r"point 2: out1\[1\] is 0x\S+, expected 0x\S+\n", said)


def test_points_and_structural_zeros(tmp_path: Path) -> None:
    """The given points stand in the test program; an output is cleared where the program stores nothing."""
    rows, operands = [sp.Symbol, sp.Symbol, sp.Mul], [(), (), (0, 1)]
    outputs = (Output((2, 3), (2, 0), (4, 1)), Output((3,), (), ()), Output((0,), ()))
    inputs = (Input("a", (2,)), Input("unused", (0,)))
    kernel = compile_program(Program(rows, operands, {0: X, 1: Y}, inputs, outputs, "zeros"))
    kernel.export(tmp_path, points=[([0.1, -0.0], []), ([float("nan"), float("inf")], np.zeros(0))])
    assert "0x1.999999999999ap-4, -0x0p+0," in (tmp_path / "zeros_test.c").read_text()
    for form in ("zeros.o", "zeros.c"):
        assert run(build(tmp_path, "tested", *STRICT, "zeros_test.c", form)) == "ok\n"
    for library in (tmp_path / f"libzeros{SUFFIX}", build(tmp_path, "s.so", "-shared", "-fPIC", "zeros.c")):
        found = evaluate(library, "zeros", kernel, [np.array([2.0, 3.0]), np.zeros(0)])
        assert [array.tolist() for array in found] == [[[0, 2, 0], [0, 6, 0]], [0, 0, 0], []]


MAIN = """
#include <stdio.h>
#include "first.h"
#include "second.h"
int main(void)
{
    double x = 2.0, y = 3.0, a[first_out0_size], b[first_out1_size], c[2];
    first(&x, &y, a, b);
    second(&x, &y, &c[1], c);
    printf("%g %g\\n", b[0], c[0]);
    return 0;
}
"""


@pytest.mark.parametrize("suffix", ["o", "c"])
def test_kernels_in_one_program_do_not_clash(tmp_path: Path, suffix: str) -> None:
    product().export(tmp_path, "first", library=False)
    compile_program(program_from_sympy([X, Y], [sp.Max(X, Y), sp.sin(X) - Y]), chunk=1).export(tmp_path, "second")
    (tmp_path / "main.c").write_text(MAIN)
    program = build(tmp_path, "both", *STRICT, "main.c", f"first.{suffix}", f"second.{suffix}")
    assert run(program) == f"5 {math.sin(2.0) - 3.0:g}\n"


@needs_compiler
def test_only_the_function_is_visible_whatever_its_name(tmp_path: Path) -> None:
    """The names inside of the IR do not matter: a function may be called kernel."""
    kernel = product()
    for name in ("kernel", "plain"):
        made = kernel.export(tmp_path, name)
        (found,) = evaluate(made.files["library"], name, kernel, [np.array(2.0), np.array(3.0)])[:1]
        assert found == 2.0 * math.sin(3.0)
        symbols = subprocess.run(["nm", "-g", "--defined-only", made.files["object"]], capture_output=True, text=True)
        assert [line.split()[-1] for line in symbols.stdout.splitlines()] == [name]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "no identifier"), ("2d", "no identifier"), ("a-b", "no identifier"), ("é", "no identifier"),
        ("_f", "no identifier"), ("a b", "no identifier"), ("f\n", "no identifier"), ("int", "keyword"),
        ("class", "keyword"), ("sin", "C library"), ("main", "C library"), ("write", "C library"),
        ("f_test", "a file of another name"), ("f_sparsity", "a file of another name"),
    ],
)  # fmt: skip
def test_names_that_c_does_not_allow_are_refused(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(ArgumentError, match=why):
        product().export(tmp_path / "out", name)
    assert not (tmp_path / "out").exists()


def test_functions_of_scipy_are_refused_by_name(tmp_path: Path) -> None:
    kernel = compile_program(program_from_sympy([X], [sp.besselj(2, X) + sp.digamma(X) + sp.tanh(X)]))
    with pytest.raises(LoweringError, match=r"scipy\.special\.jv, scipy\.special\.psi"):
        kernel.export(tmp_path / "out", "f")
    assert not (tmp_path / "out").exists()


def test_complex_kernels_have_the_same_bits_in_every_form(tmp_path: Path) -> None:
    """Numbers are pairs in C: kernel and files get the same memory."""
    expressions = (X * Y, X / Y, sp.sqrt(X), sp.exp(Y), sp.sin(X * Y), X**Y)
    pattern = SparsityPattern([0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1], (3, 2))
    program = program_from_sympy([X, (Y, Z)], [expressions, Z])
    outputs = (replace(program.outputs[0], pattern=pattern), program.outputs[1])
    kernel = compile_program(replace(program, outputs=outputs), dtype="complex128")
    made = kernel.export(tmp_path, "f")
    for form in ("f.o", "f.c"):
        assert run(build(tmp_path, "tested", *STRICT, "-O2", "f_test.c", form)) == "ok\n"
    assert "f_out0_nnz = 6" in made.files["sparsity"].read_text()
    assert "Complex numbers are pairs" in made.files["header"].read_text()
    generator = np.random.default_rng(4)
    for library in libraries(tmp_path, "f"):
        for numbers in [*generator.normal(size=(40, 6)), *generator.choice(EDGES, (40, 6))]:
            x, y, z = numbers.view(complex)
            point = [np.array(x), np.array([y, z])]
            for wanted, got in zip(kernel(*point), evaluate(library, "f", kernel, point), strict=True):
                parts = [np.ravel(array).view(float) for array in (np.asarray(wanted), got)]
                assert np.array_equal(bits(parts[0]), bits(parts[1]))


def test_vector_functions_of_the_c_library(tmp_path: Path) -> None:
    """Where the C library has them, accuracy="fast" calls them: no C source gives their bits, nor another processor."""
    inputs = sp.symbols("x:12")
    program = program_from_sympy([inputs], [tuple(sp.exp(x) * sp.log(y) for x, y in zip(inputs, inputs, strict=True))])
    kernel = compile_program(program, accuracy="fast")
    made = kernel.export(tmp_path, "f")
    for form in ("f.o", *(["f.c"] if "source" in made.files else [])):
        assert run(build(tmp_path, "tested", "f_test.c", form)) == "ok\n"
    assert ("source" in made.files) == ("_ZGV" not in kernel.llvm)
    assert ("main.c f.c" in made.files["header"].read_text()) == ("source" in made.files)
    if "_ZGV" in kernel.llvm:
        assert re.search(r"note: no C source of f: it calls _ZGV\w+_exp, .* accuracy=", str(made))
        for options in ({"source": True}, {"cpu": "generic"}):
            with pytest.raises(LoweringError, match=r'it calls _ZGV.* compile it with accuracy="strict"'):
                kernel.export(tmp_path / "out", "f", **options)
            assert not (tmp_path / "out").exists()


def test_processors(tmp_path: Path) -> None:
    kernel = product()
    for cpu in ("generic", "host"):
        made = kernel.export(tmp_path / cpu, "f", cpu=cpu)
        assert run(build(tmp_path / cpu, "tested", "f_test.c", "f.o")) == "ok\n"
        assert ("compiled for generic" in made.files["header"].read_text()) == (cpu == "generic")
    with pytest.raises(ArgumentError, match="LLVM knows no such processor"):
        kernel.export(tmp_path, "f", cpu="abacus")
    for cpu in ("", "a\0b", None):
        with pytest.raises(ArgumentError, match="cpu="):
            kernel.export(tmp_path, "f", cpu=cpu)


@pytest.mark.parametrize(
    ("points", "message"),
    [([], "no points"), ([(1.0,)], r"points\[0\]: 1 arrays"), ([(1.0, [1.0, 2.0])], r"argument 1 \(y\): shape \(2,\)")],
)
def test_points_that_do_not_fit_are_refused(tmp_path: Path, points: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        product().export(tmp_path / "out", "f", points=points)


def test_without_a_compiler_driver_the_rest_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    made = product().export(tmp_path / "out", "f")
    assert "no C compiler driver (cc, gcc, clang)" in str(made)
    assert sorted(made.files) == ["header", "object", "source", "test"]
    with pytest.raises(WorkbenchError, match="no C compiler driver"):
        product().export(tmp_path / "other", "f", library=True)
    assert not (tmp_path / "other").exists()


def test_a_linker_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "false")
    with pytest.raises(WorkbenchError, match=r"false could not link .*exit status 1"):
        product().export(tmp_path / "out" / "deep", "f")
    assert list(tmp_path.iterdir()) == []
    product().export(tmp_path / "out", "f", library=False)


@needs_compiler
@pytest.mark.parametrize("failing", range(1, 6))
def test_a_failure_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int) -> None:
    product().export(tmp_path, "f")
    (tmp_path / "f.c").unlink()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    replace, calls = os.replace, []

    def fail(source: Any, target: Any) -> None:
        calls.append(target)
        if len(calls) == failing:
            raise OSError("no space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ArgumentError, match="no space left"):
        compile_program(program_from_sympy([X, Y], [X - Y])).export(tmp_path, "f")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_directories_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match="cannot write to"):
        product().export(tmp_path / "file", "f")
    (tmp_path / "f.h").mkdir()
    with pytest.raises(ArgumentError, match="cannot write to"):
        product().export(tmp_path, "f")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.h", "file"]


@pytest.mark.parametrize("form", ["coo", "csr", "csc"])
def test_sparsity_tables(tmp_path: Path, form: Any) -> None:
    places = [(0, 1), (2, 0), (2, 3), (3, 1)]
    order = sorted(places, key=lambda place: place[::-1]) if form == "csc" else places
    pattern = SparsityPattern(*np.array(order).T, (5, 4), form)
    program = program_from_sympy([(X, Y, Z)], [(X * Y, Y * Z, X * Z, X)])
    output = Output((4,), program.outputs[0].rows, None, pattern)
    program = Program(program.heads, program.operands, program.atoms, program.inputs, (output,), "entries")
    kernel = compile_program(program)
    kernel.export(tmp_path)
    text = (tmp_path / "entries_sparsity.h").read_text()
    tables = {
        name: np.array(values.replace("\n", " ").strip(" ,").split(","), dtype=int)
        for name, values in re.findall(r"entries_out_(\w+)\[\d+\] = \{([^}]*)\}", text)
    }
    matrix = pattern.scipy(kernel([2.0, 3.0, 5.0])).tocsr()
    data = np.asarray(kernel([2.0, 3.0, 5.0]))
    assert np.array_equal(tables["row"], pattern.rows)
    assert np.array_equal(tables["column"], pattern.columns)
    for letter, inner, wanted in (("r", "column", matrix), ("c", "row", matrix.tocsc())):
        assert np.array_equal(tables[f"cs{letter}_start"], wanted.indptr)
        assert np.array_equal(tables[f"cs{letter}_{inner}"], wanted.indices)
        assert np.array_equal(data[tables[f"cs{letter}_entry"]], wanted.data)
    assert "entries_out_rows = 5, entries_out_columns = 4, entries_out_nnz = 4" in text
    (tmp_path / "t.c").write_text('#include "entries_sparsity.h"\nint main(void) { return entries_out_row[0]; }\n')
    build(tmp_path, "t", *STRICT, "-Wno-unused-const-variable", "t.c")


def test_parameters_have_names_of_c(tmp_path: Path) -> None:
    names = ["x", "p['w'][0]", "int", "w_", "v1_", "f", "long name*/", "x"]
    symbols = sp.symbols("a:8")
    program = program_from_sympy(symbols, [sum(symbols)])
    inputs = tuple(Input(name, ()) for name in names)
    kernel = compile_program(Program(program.heads, program.operands, program.atoms, inputs, program.outputs))
    kernel.export(tmp_path, "f")
    text = (tmp_path / "f.h").read_text()
    wanted = ["x", "p_w_0", "int_value", "w", "v1", "f_value", "long_name", "x_2"]
    assert re.search(r"^int f\((.*)\);", text, re.MULTILINE)[1] == ", ".join(  # type: ignore[index]
        [*(f"const double *{name}" for name in wanted), "double *out"]
    )
    for form in ("f.o", "f.c"):
        assert run(build(tmp_path, "tested", *STRICT, "f_test.c", form)) == "ok\n"


def named(name: str) -> Any:
    """A kernel of one input of this name, as its program is called."""
    program = program_from_sympy([X], [X + 1])
    return compile_program(replace(program, inputs=(Input(name, ()),), name=name))


@pytest.mark.parametrize("name", ["a/*b", "/*/", "*\\\n/ int y;", "??/", "\\", "\ud800", "a\nb", "\u202e"], ids=ascii)
def test_no_name_leaves_its_comment(tmp_path: Path, name: str) -> None:
    named(name).export(tmp_path, "f")
    assert run(build(tmp_path, "tested", *STRICT, "f_test.c", "f.c")) == "ok\n"


@pytest.mark.parametrize("name", ["M_PI", "DBL_MAX", "HUGE_VAL", "RAND_MAX", "complex", "INT_MIN", "EXIT_FAILURE"])
def test_macros_are_no_names(tmp_path: Path, name: str) -> None:
    named(name).export(tmp_path, "f")
    assert f"*{name}_value, " in (tmp_path / "f.h").read_text()
    headers = "".join(f"#include <{header}.h>\n" for header in ("complex", "float", "limits", "math", "stdlib"))
    (tmp_path / "t.c").write_text(headers + '#include "f.h"\nint main(void) { return 0; }\n')
    build(tmp_path, "t", "-std=gnu17", "t.c")
    with pytest.raises(ArgumentError, match="macro"):
        named("x").export(tmp_path, name)


def test_headers_whose_names_differ_in_case_go_together(tmp_path: Path) -> None:
    for folder, name in (("small", "f"), ("large", "F")):
        named("x").export(tmp_path / folder, name, library=False)
    main = '#include "small/f.h"\n#include "large/F.h"\nint main(void) { return f_out_size - F_out_size; }\n'
    (tmp_path / "t.c").write_text(main)
    build(tmp_path, "t", *STRICT, "t.c")
