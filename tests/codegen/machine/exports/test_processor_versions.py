"""Exports for any processor: both versions give the bits of the kernel, and the one that is called is the right one."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symad as sa
from codegen.emission.emit import Form
from codegen.engine import compile_object, link
from codegen.machine.exports.c_interface import ASKED, in_two_versions
from codegen.machine.exports.export import portable
from codegen.processor import is_x86_64
from tests.support.exported import needs_compiler

pytestmark = pytest.mark.skipif(not is_x86_64(), reason="processors of other kinds have one version")


def network(x: Any) -> Any:
    return np.tanh(np.outer(x, x) @ np.exp(x)) / (1.0 + np.sum(x**2))


PROGRAMS = {
    "loops": (lambda x: np.log(np.sum(np.exp(x))) * x, np.linspace(-1.0, 1.0, 300)),
    "matrices": (network, np.linspace(-1.0, 1.0, 8)),
    "straight lines": (sa.hessian(lambda x: np.sin(x[0] * x[1]) ** 3), np.array([0.3, 0.7])),
    "single precision": (lambda x: np.exp(x) * x[0], np.linspace(-1, 1, 50, dtype=np.float32)),
}


def compiled(program: str) -> tuple[Any, Any]:
    f, x = PROGRAMS[program]
    return sa.compile(f, x, dtype=x.dtype.name), x


def shared(folder: Path, name: str, x: Any, kernel: Any) -> Any:
    function = ctypes.CDLL(str(folder / f"lib{name}.so"))[name]
    out = np.empty_like(kernel(x))
    assert function(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data)) == 0
    return out


@needs_compiler
@pytest.mark.parametrize("program", PROGRAMS)
def test_any_processor_gives_the_bits_of_this_one(program: str, tmp_path: Path) -> None:
    kernel, x = compiled(program)
    made = kernel.export(tmp_path, "f", cpu="generic", source=False)
    assert shared(tmp_path, "f", x, kernel).tobytes() == kernel(x).tobytes()
    assert b"\0fma" in made.files["object"].read_bytes()  # which processors without it call
    kernel.export(tmp_path, "g", cpu="x86-64", source=False)
    assert shared(tmp_path, "g", x, kernel).tobytes() == kernel(x).tobytes()


@pytest.mark.parametrize("answer", [1, 2])
@pytest.mark.parametrize("program", ["loops", "matrices", "straight lines"])
def test_each_version_gives_the_bits_of_the_kernel(program: str, answer: int) -> None:
    kernel, x = compiled(program)
    plan = portable(kernel.material)
    asked = f"define internal i32 @KERNEL.asked() {{\nret i32 {answer}\n}}\n"
    text = in_two_versions(plan.emit(Form(lanes=kernel.options.number.lanes())).text, asked=asked)
    library: Any = ctypes.CDLL(None)
    functions = {name: ctypes.cast(library[name], ctypes.c_void_p).value for name in ("fma", "malloc", "free")}
    code = link(compile_object(text, 2, "generic"), ("kernel",), {k: v for k, v in functions.items() if v})
    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(code.addresses["kernel"])
    out = np.empty_like(kernel(x))
    given, results = (ctypes.c_void_p * 1)(x.ctypes.data), (ctypes.c_void_p * 1)(out.ctypes.data)
    assert call(given, results) == 0
    assert out.tobytes() == kernel(x).tobytes()


def test_the_processor_is_asked_rightly() -> None:
    text = ASKED.replace("internal ", "").replace("KERNEL", "kernel")
    code = link(compile_object(text, 2, "generic"), ("kernel.asked",), {})
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("flags")[2].partition("\n")[0].split()
    asked = ctypes.CFUNCTYPE(ctypes.c_int)(code.addresses["kernel.asked"])()
    assert asked == (2 if {"fma", "avx2"} <= set(flags) else 1)


@needs_compiler
def test_functions_of_casadi_have_two_versions_too(tmp_path: Path) -> None:
    made = sa.export(lambda x: np.sum(np.exp(x)) * x, tmp_path, np.ones(3), name="f", abi="casadi", cpu="generic")
    assert b"kernel.avx2" in made.files["object"].read_bytes()
