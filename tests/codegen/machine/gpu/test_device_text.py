"""What is written for a GPU: PTX of every form of code, assembled, and counted operation by operation."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import symad as sa
from codegen.engine import device_assembly
from codegen.gpu_architectures import ARCHITECTURES
from codegen.lanes import Lanes
from codegen.machine.gpu.device_entry import KernelEntry
from tests.support.gpu_problems import CASES, atoms, chain
from tests.support.ptxas import MISSING, assembled, ptxas

GOLDEN = Path(__file__).with_name("golden")
KEPT = ("straight", "windows", "sparse", "small sweep", "functions", "several")
ARITHMETIC = re.compile(r"^\t(?:@\S+ )?((?:add|sub|mul|div|fma|rcp|sqrt|neg|abs|setp|selp)\.[\w.]*f64)", re.MULTILINE)
MEMORY = re.compile(r"^\t(?:@\S+ )?((?:ld|st)\.(?:global|shared|local)[\w.]*)", re.MULTILINE)
needs_ptxas = pytest.mark.skipif(ptxas() is None, reason=MISSING)


def counted(ptx: str) -> str:
    """Return the operations on numbers and memory of PTX, one kind to a line."""
    found = Counter([*ARITHMETIC.findall(ptx), *MEMORY.findall(ptx)])
    return "".join(f"{kind} {count}\n" for kind, count in sorted(found.items()))


@pytest.mark.parametrize("name", KEPT)
def test_operations_are_those_that_are_kept(name: str) -> None:
    """Counts that changed are accepted by deleting the file and running this twice."""
    path = GOLDEN / f"{name.replace(' ', '_')}.txt"
    found = counted(CASES[name].make().gpu(arch="sm_90").ptx)
    if not path.exists():
        path.write_text(found)
        pytest.fail(f"{path.name} was written; look at it, and keep it")
    assert found == path.read_text()


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_contracted_or_left_open(name: str) -> None:
    ptx = CASES[name].make().gpu(arch="sm_90").ptx
    rounded = re.findall(r"\b(?:add|sub|mul|div|fma|rcp|sqrt)\.(\S*)f(?:64|32)\b", ptx)
    assert all("rn." in mode and "ftz" not in mode for mode in rounded)  # without "rn" the assembler may contract
    assert ".extern .func" not in ptx
    assert ptx.count(".entry") == 1


@needs_ptxas
@pytest.mark.parametrize("name", CASES)
@pytest.mark.thinned
def test_ptx_is_assembled(name: str, tmp_path: Path) -> None:
    found = assembled(CASES[name].make().gpu(arch="sm_90").ptx, "sm_90", tmp_path)
    assert 8 <= found.registers <= 255


@needs_ptxas
@pytest.mark.parametrize("architecture", [name for name in ARCHITECTURES if int(name[3:]) >= 75])
def test_every_architecture_is_assembled(architecture: str, tmp_path: Path) -> None:
    kernel = sa.compile(sa.hessian(chain), np.ones(6), dtype="float32")
    assert assembled(kernel.gpu(arch=architecture).ptx, architecture, tmp_path).spilled == 0


@needs_ptxas
def test_values_of_windows_stay_in_registers(tmp_path: Path) -> None:
    """A window is copied as soon as it is there: 144 results of 4 atoms need no memory of the thread."""
    kernel = sa.compile(sa.hessian(atoms), np.linspace(0.1, 3.0, 12), roll="never")
    found = assembled(kernel.gpu(arch="sm_90").ptx, "sm_90", tmp_path)
    assert (found.local, found.spilled) == (0, 0)


def test_results_go_through_the_tile() -> None:
    """Stores to global memory stand only in loops over the numbers of a warp, whatever the number of results."""
    for name, most in (("straight", 1), ("windows", 5), ("small sweep", 1), ("rolled", 1)):
        ptx = CASES[name].make().gpu(arch="sm_90").ptx
        assert 1 <= ptx.count("st.global") <= most, name


def test_large_results_go_where_they_belong() -> None:
    """Tiles that leave no room for two warps of a multiprocessor are not made."""
    entry = KernelEntry(1, 1, Lanes().type, 8, (900,))
    assert entry.shared > ARCHITECTURES["sm_90"].shared // 2
    kernel = sa.compile(sa.hessian(atoms), np.random.default_rng(0).normal(size=30), roll="always")
    assert ".shared" not in kernel.gpu(arch="sm_90").ptx


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_architectures_are_written(architecture: str) -> None:
    ptx = device_assembly("define ptx_kernel void @one() { ret void }", architecture)
    assert f".target {architecture}" in ptx
    version = ARCHITECTURES[architecture].ptx
    assert f".version {version // 10}.{version % 10}" in ptx
