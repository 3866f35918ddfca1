"""Rolled kernels as C functions, object files and C source with loops."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from codegen import Input, LoweringError, Output, compile_program
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.region import Buffer, Gather, Region, Result, RolledProgram
from codegen.ir.tables import Affine
from tests.support.exported import compiler
from tests.support.rolled_programs import KNOWN, A, B, arrays_for, heat, momentum, newton, pairs, random_program

STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-std=c99", "-O1"]


def outcome(folder: Path, name: str, form: str) -> str:
    """Build the test program with an object file or the source, and run it."""
    files = [f"{name}_test.c", f"{name}.{form}", "-lm", "-o", "tested"]
    done = subprocess.run([*compiler(), *STRICT, *files], cwd=folder, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return subprocess.run([str(folder / "tested")], capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize(
    "program", [*KNOWN.values(), heat(300, 60), random_program(8), random_program(31)], ids=lambda found: found.name
)
@pytest.mark.thinned
def test_object_and_source_have_the_numbers_of_the_kernel(program: RolledProgram, tmp_path: Path) -> None:
    compile_program(program, tier="fast").export(tmp_path, "f", library=False)
    for form in ("o", "c"):
        assert outcome(tmp_path, "f", form) == "ok\n"


@pytest.mark.parametrize("program", [*KNOWN.values(), random_program(8)], ids=lambda found: found.name)
@pytest.mark.thinned
def test_single_precision(program: RolledProgram, tmp_path: Path) -> None:
    compile_program(program, dtype="float32", tier="fast").export(tmp_path, "f", library=False)
    text = (tmp_path / "f.c").read_text()
    assert "float slots_[" in text
    assert "double slots_[" not in text
    for form in ("o", "c"):
        assert outcome(tmp_path, "f", form) == "ok\n"


def test_the_source_is_written_in_loops(tmp_path: Path) -> None:
    sizes = []
    for points, steps in ((300, 40), (3000, 400)):
        compile_program(heat(points, steps), tier="fast").export(
            tmp_path, "heat", library=False, points=[[np.zeros(points)]]
        )
        sizes.append(len((tmp_path / "heat.c").read_text()))
    assert sizes[1] < sizes[0] + 100
    text = (tmp_path / "heat.c").read_text()
    assert "for (long long r0_ = 0; r0_ < 400; r0_++) {" in text
    assert "/* heat.py:3 */" in text
    assert "in the order of their repetitions" in (tmp_path / "heat.h").read_text()


def test_a_wrong_number_is_found(tmp_path: Path) -> None:
    """Only the last bits may differ."""
    compile_program(pairs(), tier="fast").export(tmp_path, "f", library=False)
    text = (tmp_path / "f.c").read_text()
    (tmp_path / "f.c").write_text(text.replace("out0[0] += values_[0]", "out0[0] += values_[0] * (1 + 1e-9)"))
    assert outcome(tmp_path, "f", "c").startswith("point 0: out0[0] is")


def test_source_with_too_many_constants_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 1001
    monkeypatch.setattr("codegen.machine.exports.c_kernel.LARGEST", 1000)
    body = program_from_sympy([A], [A])
    region = Region(body, count, (Gather(1, Affine(0, 1, count)),), (Result(0, 2, Affine(0, 0, count), "add"),))
    buffers = (Buffer("input", 1), Buffer("constant", count, np.ones(count)), Buffer("output", 1))
    kernel = compile_program(RolledProgram((Input("x", ()),), (Output((), ()),), buffers, (region,), "many"))
    found = kernel.export(tmp_path, library=False)
    assert "more than 1,000 numbers; export the object file" in found.notes[0]
    with pytest.raises(LoweringError, match="C source of many"):
        kernel.export(tmp_path, source=True)


@pytest.mark.parametrize("program", [momentum(), newton(), heat(300, 60)], ids=lambda found: found.name)
def test_plain_c_functions(program: RolledProgram) -> None:
    kernel = compile_program(program, tier="fast")
    arrays = arrays_for(program)
    outputs = [np.full(output.shape, 7.0) for output in program.outputs]
    assert kernel.ctypes(*[array.ctypes for array in (*arrays, *outputs)]) == 0
    for found, wanted in zip(outputs, evaluate_rolled(program, arrays), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_low_level_callables() -> None:
    body = program_from_sympy([A, B], [A * B])
    gathers = (Gather(0, Affine(0, 0, 10)), Gather(1, Affine(0, 1, 10)))
    region = Region(body, 10, gathers, (Result(0, 2, Affine(0, 0, 10), "add"),))
    buffers = (Buffer("input", 1), Buffer("input", 10), Buffer("output", 1))
    inputs: Any = (Input("x", ()), Input("y", (10,)))
    kernel = compile_program(RolledProgram(inputs, (Output((), ()),), buffers, (region,)))
    found = kernel.low_level_callable("double (double, void *)", np.arange(10.0))
    assert quad(found, 0.0, 1.0)[0] == pytest.approx(22.5)
