"""Exported kernels of transforms: sweeps, sparse matrices, containers, tiers; the same bits in every form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import codegen.machine.exports.c_kernel as c_kernel
import symad as sa
from symad.compiling.native import carry_out
from tests.support.exported import STRICT, build, check_bits, needs_compiler, run


def network(x):
    rng = np.random.default_rng(5)
    first, second = rng.normal(size=(6, x.size)), rng.normal(size=(1, 6))
    return (second @ np.tanh(first @ x))[0]


def branching(x):
    return np.sum(np.where(x > 0.2, x**3 * x[0], np.exp(x) * x[-1])) * np.max(x)


def points(n: int) -> list[list[Any]]:
    rng = np.random.default_rng(n)
    special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 0.2], (10, n))
    return [[x] for x in [*rng.uniform(-1, 1, (10, n)), *special]]


@pytest.mark.parametrize("n", [1, 4, 11])
@pytest.mark.parametrize("f", [network, branching])
@pytest.mark.thinned
def test_sweeps_have_the_same_bits_in_every_form(tmp_path: Path, f: Any, n: int, monkeypatch: Any) -> None:
    if n == 11:
        monkeypatch.setattr(c_kernel, "STACK_NUMBERS", 2)  # what the columns share is allocated
    kernel = sa.compile(sa.hessian(f), np.zeros(n), strategy="sweep")
    assert kernel.stats.strategy == "sweep"
    check_bits(kernel, tmp_path, points(n))
    for form in ("f.o", "f.c"):
        assert run(build(tmp_path, "tested", *STRICT, "-O2", "f_test.c", form)) == "ok\n"


def test_a_sweep_of_a_wide_jacobian(tmp_path: Path) -> None:
    planned = sa.plan(sa.jacobian(lambda x: np.cumsum(np.sin(x)) * x[0]), np.zeros(9), strategy="sweep")
    kernel = carry_out(planned, chunk=7)
    check_bits(kernel, tmp_path, points(9))


@pytest.mark.parametrize("tier", ["default", "fast", "auto"])
def test_tiers_export_the_same_code(tmp_path: Path, tier: Any) -> None:
    kernel = sa.compile(sa.hessian(branching), np.zeros(6), strategy="straight", tier=tier)
    check_bits(kernel, tmp_path, points(6))


def test_containers_become_parameters(tmp_path: Path) -> None:
    def loss(parameters, x):
        return np.sum(np.tanh(parameters["w"] @ x + parameters["b"])) ** 2

    parameters = {"w": np.ones((2, 3)), "b": np.zeros(2)}
    kernel = sa.compile(sa.value_and_grad(loss), parameters, np.ones(3))
    made = kernel.export(tmp_path, "loss")
    text = made.files["header"].read_text()
    assert "int loss(const double *parameters_b, const double *parameters_w, const double *x, double *out0" in text
    assert 'parameters["w"]: shape (2, 3), 6 doubles' in text
    for form in ("loss.o", "loss.c"):
        assert run(build(tmp_path, "tested", *STRICT, "loss_test.c", form)) == "ok\n"


def test_a_long_kernel_is_split_into_functions(tmp_path: Path) -> None:
    def f(x):
        for _ in range(12):
            x = x * np.roll(x, 1) + np.roll(x, 3) / (1 + x * x)
        return x

    kernel = carry_out(sa.plan(f, np.ones(99), roll="never"), tier="llvm")
    assert kernel.stats.chunks > 4
    kernel.export(tmp_path, "f")
    text = (tmp_path / "f.c").read_text()
    assert text.count("static void f_run_") == kernel.stats.chunks
    assert run(build(tmp_path, "tested", *STRICT, "-O1", "f_test.c", "f.c")) == "ok\n"


@needs_compiler
def test_the_name_is_that_of_the_function(tmp_path: Path) -> None:
    made = sa.compile(sa.hessian(branching, sparse=True), np.zeros(3)).export(tmp_path)
    assert made.name == "Hessian_of_branching"
    assert set(made.files) == {"cmake", "header", "library", "object", "pkg-config", "source", "sparsity", "test"}
    with pytest.raises(sa.errors.ArgumentError, match=r"'<lambda>' as name of a C function: .*; give another: name="):
        sa.compile(lambda x: x, 1.0).export(tmp_path)
