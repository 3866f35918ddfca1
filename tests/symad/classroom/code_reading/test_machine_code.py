"""Code that is read line by line: LLVM IR carried out on symbols gives the formula that was compiled."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import symad as sa
from symad.classroom.code_reading.machine_code import kind_of, read_assembly, read_llvm
from symad.compiling.native import carry_out

X, A, B = sp.Symbol("x", real=True), *sp.symbols("x_0 x_1", real=True)

# name: (function, point, what the kernel stores)
CASES = {
    "product": (sa.derivative(lambda x: x * np.exp(-(x**2))), 0.5, [sp.diff(X * sp.exp(-(X**2)), X)]),
    "quotient": (sa.derivative(lambda x: np.sin(x) / (1 + x)), 0.5, [sp.diff(sp.sin(X) / (1 + X), X)]),
    "root": (sa.derivative(lambda x: np.sqrt(x) * x), 0.5, [sp.sqrt(X) + X / sp.sqrt(X) / 2]),
    "gradient": (sa.grad(lambda x: x[0] ** 3 * np.cos(x[1])), np.ones(2), [3 * A**2 * sp.cos(B), -(A**3) * sp.sin(B)]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_formulas_that_are_stored(name: str) -> None:
    function, point, expected = CASES[name]
    found = read_llvm(sa.compile(function, point)).results
    assert len(found) == len(expected)
    for result, formula in zip(found, expected, strict=True):
        at = {X: 0.7, A: 0.7, B: 1.3}
        assert float(result.subs(at)) == pytest.approx(float(formula.subs(at)), rel=1e-14)


def test_each_line_has_a_kind_and_arithmetic_a_formula() -> None:
    read = read_llvm(sa.compile(CASES["product"][0], 0.5))
    assert sum(read.count().values()) == len(read.lines)
    assert read.count()["exp"] == 1
    assert all(line.value is not None for line in read.lines[:-1])
    assert read.lines[0].value == X


def test_a_choice_stands_for_itself() -> None:
    (result,) = read_llvm(sa.compile(lambda x: np.where(x > 0, x, 3) * x, 1.0)).results
    (register,) = result.free_symbols - {X}
    assert result == X * register
    assert register.name.startswith("r_")


def test_what_cannot_be_read_is_refused() -> None:
    matrix = np.arange(64.0).reshape(8, 8) / 64
    planned = sa.plan(sa.hessian(lambda x: np.sum(np.tanh(matrix @ x))), np.ones(8), strategy="sweep")
    swept = carry_out(planned, tier="llvm")
    rolled = sa.compile(lambda x: sum(np.sin(x[k]) * x[k] for k in range(40)), np.ones(40), roll="always")
    assert rolled.stats.strategy == "rolled"
    for read in (read_llvm, read_assembly):
        for kernel in (swept, rolled):
            with pytest.raises(sa.errors.ArgumentError, match="a kernel in several parts"):
                read(kernel)
    with pytest.raises(sa.errors.ArgumentError, match="a kernel in several parts"):
        read_llvm(sa.compile(sa.hessian(lambda x: np.sum(np.tanh(matrix @ x))), np.ones(8), strategy="sweep"))
    long = sa.compile(lambda x: x * x - 1, np.ones(2000), roll="never")
    assert long.stats.strategy == "straight"
    with pytest.raises(sa.errors.ArgumentError, match="a kernel in several parts"):  # whose IR is several functions
        read_llvm(long)
    with pytest.raises(sa.errors.LimitError, match="lines of code: more than 400 are not read"):
        read_llvm(sa.compile(lambda x: np.sum(np.sin(x)), np.ones(300), roll="never"))


@pytest.mark.parametrize("tier", ["default", "fast", "llvm"])
def test_assembly_has_the_operations_of_the_kernel(tier: str) -> None:
    kernel = carry_out(sa.plan(CASES["product"][0], 0.5), tier=tier)
    count = read_assembly(kernel).count()
    operations = kernel.stats.machine_operations
    assert count["call"] == operations["call"] == 1
    assert count["return"] == 1
    assert count["arithmetic"] + count["fused multiply-add"] >= operations["mul"]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("vfnmadd213sd %xmm0, %xmm2, %xmm1", "fused multiply-add"), ("fmsub d0, d1, d2, d0", "fused multiply-add"),
        ("vmulsd %xmm0, %xmm0, %xmm0", "arithmetic"), ("fmul d1, d0, d0", "arithmetic"), ("sqrtsd %xmm0", "arithmetic"),
        ("vxorpd (%rax), %xmm0, %xmm0", "sign of a number"), ("fneg d0, d0", "sign of a number"),
        ("callq *%rax", "call"), ("blr x8", "call"), ("retq", "return"), ("ret", "return"),
        ("ldr d8, [x0]", "memory and registers"), ("vmovsd %xmm1, (%rbx)", "memory and registers"),
        ("pushq %rbx", "stack and addresses"), ("hlt", "something else"),
    ],
)  # fmt: skip
def test_kinds_of_lines_of_two_processors(line: str, kind: str) -> None:
    assert kind_of(line) == kind


def test_all_forms() -> None:
    kernel = sa.compile(CASES["product"][0], 0.5)
    for read in (read_llvm(kernel), read_assembly(kernel)):
        assert read.language in read.text(100)
        assert "<table>" in read.html()
        assert r"\begin{tabular}" in read.latex()
