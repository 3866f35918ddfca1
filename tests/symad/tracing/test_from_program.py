"""from_program: kernels of straight lines and of loops as functions again, against the kernels themselves."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import symad as sa
from codegen import program_from_sympy
from symad.tracing.from_sympy import from_program


def pairs(x):
    return sum((x[i] - x[j]) ** 4 * np.sin(x[i]) for i in range(20) for j in range(i))


def chain(x, rate):
    return sa.scan(lambda v, _: (v + rate * np.sin(v), v), x, None, length=12)


POINT = np.random.default_rng(1).uniform(-1, 1, 20)
CASES = {
    "straight": (lambda x: np.sin(x) * x[0], (POINT,), {}),
    "sum": (pairs, (POINT,), {"roll": "always"}),
    "gradient": (sa.grad(pairs), (POINT,), {"roll": "always"}),
    "sparse Hessian": (sa.hessian(lambda x: np.sum(x[1:] ** 2 * x[:-1]), sparse="lower"), (POINT,), {}),
    "two results": (chain, (0.3, 0.1), {"roll": "always"}),
    "zeros": (lambda x: np.array([x[0], 0.0, x[1] ** 2]), (POINT,), {}),
    "sweep": (sa.hessian(lambda x: np.sum(np.tanh(np.outer(x, x) @ x))), (POINT[:6],), {"strategy": "sweep"}),
}


@pytest.mark.parametrize("name", CASES)
def test_it_computes_what_the_kernel_does(name):
    f, args, options = CASES[name]
    kernel = sa.compile(f, *args, **options)
    formula = from_program(kernel)
    found, expected = formula(*args), kernel(*args)
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for one, other in pairs:
        other = getattr(other, "data", other) if kernel.sparsity is not None else other
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_the_let_form_and_the_expressions_are_those_of_sympy():
    kernel = sa.compile(lambda x: sa.fori_loop(0, 3, lambda k, v: v + x * sp.sin(v), x), 1.0, roll="always")
    assert kernel.stats.strategy == "rolled"
    formula, x = from_program(kernel.program), sp.Symbol("x", real=True)
    replacements, (reduced,) = formula.let()
    for symbol, value in reversed(replacements):
        reduced = reduced.subs(symbol, value)
    assert abs(float(reduced.subs(x, 0.5)) - kernel(0.5)) < 1e-15
    expected = x
    for _ in range(3):
        expected = expected + x * sp.sin(expected)
    assert sp.simplify(formula.expr() - expected) == 0


def test_derivatives_of_a_kernel():
    kernel = sa.compile(pairs, POINT, roll="always")
    again = sa.compile(sa.grad(from_program(kernel)), POINT)
    np.testing.assert_allclose(again(POINT), sa.grad(pairs)(POINT), rtol=1e-11)


def test_what_is_no_program_is_refused():
    with pytest.raises(sa.errors.ArgumentError, match="function as a program; give a kernel or its program"):
        from_program(pairs)


def test_a_kernel_with_long_sums_may_stand_in_a_branch():
    """What two paths have in common is rebuilt without aliases, sums of three terms too."""
    x, y, z = sp.symbols("x y z")
    formula = from_program(program_from_sympy([x, y, z], [sp.sin(x + y + z)]))

    def f(v):
        return formula(v[0], v[1], v[2]) if v[0] > 0 else formula(v[1], v[0], v[2]) * 2

    kernel = sa.compile(sa.grad(f), np.ones(3))
    for point, scale in ((np.array([1.0, 2.0, 3.0]), 1.0), (np.array([-1.0, 2.0, 3.0]), 2.0)):
        np.testing.assert_allclose(kernel(point), np.full(3, scale * np.cos(point.sum())), rtol=1e-14)


def test_a_program_keeps_no_stopped_gradient() -> None:
    """As the page says: its derivatives are those of the operations in it."""

    def f(x):
        return x * sa.stop_gradient(x)

    assert sa.grad(f)(3.0) == 3.0
    assert sa.grad(sa.from_program(sa.compile(f, 1.0)))(3.0) == 6.0
