"""The passes of algebra: each gains where it says so, keeps the values, and is the same in every run."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

from codegen import compile_program, lambdify, program_from_sympy
from codegen.ir.machine_rows import Row
from codegen.lowering.fuse import fuse
from codegen.lowering.lower import Lowered, lower
from codegen.lowering.passes import PASSES, prepare, simplify
from codegen.options import Options
from codegen.pricing.price_table import nanoseconds

a, b, c, d, e, x, y, z, w = sp.symbols("a b c d e x y z w")


def unevaluated(head: Any, *operands: Any) -> sp.Expr:
    return head(*operands, evaluate=False)


def times(*operands: Any) -> sp.Expr:
    return unevaluated(sp.Mul, *operands)


def plus(*operands: Any) -> sp.Expr:
    return unevaluated(sp.Add, *operands)


def rows(*expressions: Any) -> Lowered:
    return lower(program_from_sympy([a, b, c, d, e, x, y, z, w], list(expressions)))


def operations(lowered: Lowered) -> int:
    return fuse(lowered).count().total()


def named(name: str) -> Callable[[Lowered], Lowered]:
    return next(step.function for step in PASSES if step.name == name)


PRODUCT = times(x, y, z)
GAINS = [
    ("terms", [plus(plus(x, 1), 2)], 2, 1),
    ("terms", [plus(times(3, x), x)], 1, 1),
    ("terms", [plus(times(3, x), plus(x, y))], 2, 1),
    ("terms", [plus(times(800, x, x), times(-400, plus(y, times(-1, x, x))))], 4, 3),
    ("terms", [times(3, plus(times(5, x), times(7, y)))], 3, 2),
    ("terms", [PRODUCT, plus(times(3, PRODUCT), times(5, PRODUCT))], 4, 3),
    ("terms", [PRODUCT, plus(times(3, PRODUCT), times(5, x, y, z))], 6, 3),
    ("products", [times(times(x, z), y), times(times(x, y), w)], 4, 3),
    ("products", [times(x, sp.Pow(x, 2)) * y, times(times(x, x), times(x, w))], 5, 4),
    ("products", [times(3, times(y, times(5, x)))], 3, 2),
    ("products", [times(times(x, x, x), sp.Pow(times(x, x, x, x), -1))], 4, 1),
    ("signs", [-x * (y - z), -y * (y - z)], 5, 3),
    ("signs", [times(-1, plus(y, times(-1, z)))], 2, 1),
    ("sums", [plus(plus(a, c), b), plus(d, times(-1, plus(b, a)))], 4, 3),
    (
        "sums",
        [plus(plus(plus(a, b), c), d), plus(plus(plus(b, x), d), c), plus(plus(y, d), plus(b, times(-1, c)))],
        9,
        6,
    ),
    ("factors", [a * b * c + a * d * e], 4, 3),
    ("factors", [a * b * c + a * d * e + a * x * y + z], 6, 4),
    ("scales", [times(times(3, x), times(4, y))], 3, 2),
]


@pytest.mark.parametrize(("name", "expressions", "before", "after"), GAINS, ids=lambda value: str(value)[:40])
def test_a_pass_saves_operations(name: str, expressions: list[Any], before: int, after: int) -> None:
    written = rows(*expressions)
    assert (operations(written), operations(named(name)(written))) == (before, after)


def test_a_factor_stays_in_both_terms_where_multiply_adds_are_as_few() -> None:
    written = rows(a * b + a * c)
    assert named("factors")(written).count() == written.count() == {"mul": 2, "add": 1}


def test_quotients_share_a_reciprocal() -> None:
    shared = named("products")(rows(x / (y * z), w / (y * z), a / (z * y)))
    assert shared.count()["div"] == 1
    assert named("products")(rows(x / (y * z), w / (y * a))).count()["div"] == 2


def test_reciprocals_of_square_roots_are_shared() -> None:
    root = sp.sqrt(x + y)
    assert named("products")(rows(a / root, b / root, c / root)).count()["div"] == 1


def test_a_single_quotient_stays_a_quotient() -> None:
    assert sorted(named("products")(rows(x / y)).count()) == ["div"]


def test_constants_stay_with_the_factor_they_come_with() -> None:
    """exp(x) is always multiplied by 1.1 where it meets the others: 4 products of single use, not 12."""
    values = [(1.1, sp.exp(x)), (1.3, sp.exp(y)), (1.7, sp.exp(z)), (1.9, sp.exp(w))]
    pairs = [times(times(p, f), times(q, g)) for k, (p, f) in enumerate(values) for q, g in values[:k]]
    shared = named("products")(rows(*pairs))
    assert shared.count()["mul"] == 10
    written = program_from_sympy([a, b, w, x, y, z], [*pairs, times(7, x, y, z), times(x, y) / b, a / b])
    found, wanted = (compile_program(written, accuracy=each) for each in ("fast", "strict"))
    point = np.linspace(0.5, 1.5, 6)
    np.testing.assert_allclose(found(*point), wanted(*point), rtol=1e-14)


def test_squares_over_what_prevents_their_overflow() -> None:
    """x * (x/y) is not x**2 / y: the quotient stands where x is large."""
    f = lambdify([x, y], times(x, times(x, sp.Pow(y, -1))), accuracy="fast")
    assert f(1e200, 1e199) == pytest.approx(1e201, rel=1e-15)


def test_strict_is_what_it_was() -> None:
    """The exact passes alone, bit for bit."""
    assert [step.name for step in PASSES if step.exact] == ["scales", "sink_signs"]
    program = program_from_sympy([x, y, z], [plus(plus(x, 1e17), -1e17), times(3, times(5, y)), (x - y) / z])
    values = 0.1, 0.7, 0.3
    assert compile_program(program)(*values)[:2] == ((0.1 + 1e17) - 1e17, 3 * (5 * 0.7))
    assert prepare(program, Options()).effects == ()


def test_both_sides_of_a_select_stay_what_they_are() -> None:
    """No operation crosses a branch: the one that is not taken may be inf or nan."""
    expression = sp.Piecewise((sp.log(x) / x + x, x > 0), (x / x + 3 * x + x, True))
    f = lambdify(x, expression, accuracy="fast")
    assert f(-2.0) == -7.0
    assert f(1e-320) == lambdify(x, expression)(1e-320)


def test_a_negated_condition_stays_one() -> None:
    expression = sp.Piecewise((times(x, 3, x), unevaluated(sp.Not, unevaluated(sp.Xor, x > 1, y < 2))), (y, True))
    assert rows(expression).count()["logic"] == 2
    f = lambdify([x, y], expression, accuracy="fast")
    assert [f(2.0, 1.0), f(2.0, 3.0), f(0.5, 3.0)] == [12.0, 3.0, 0.75]


def test_infinities_are_as_documented() -> None:
    cancelled = lambdify(x, plus(x, y, times(-1, x)).subs(y, sp.exp(x)), accuracy="fast")
    assert cancelled(float("inf")) == float("inf")
    assert lambdify(x, times(x, sp.Pow(times(x, x), -1)), accuracy="fast")(0.0) == float("inf")


def test_a_long_chain_of_sums_and_products() -> None:
    """30000 sums and products, each of the one before: no recursion, and no work that grows with the square."""
    table: list[Row] = [("input", k) for k in range(9)]
    for k in range(10000):
        table.append(("const", struct.pack(">d", 1.0 + k)))
        table.append(("mul", len(table) - 1, k % 9))
        table.append(("add", len(table) - 1, len(table) - 4 if k else 0))
        table.append(("mul", len(table) - 1, k % 7))
    written = Lowered(table, [(0, 0, len(table) - 2), (0, 1, len(table) - 1)], len(table), 0, 0)
    assert operations(simplify(written, "fast", lambda found: fuse(found).count())[0]) <= operations(written)


PRINTED = """
import sys
sys.path[:0] = {path!r}
import sympy as sp
from codegen import program_from_sympy
from codegen.ir.machine_rows import Row
from codegen.options import Options
from codegen.lowering.passes import prepare
x = sp.symbols("x:6")
f = sum(sp.exp(u) * v / (u * v + 3) + (u - v) ** 3 * sp.sin(u) / (u * v + 3) for u in x for v in x)
print(prepare(program_from_sympy(list(x), [sp.diff(f, u) for u in x]), Options(accuracy="fast")).fused.rows)
"""


def test_rows_do_not_depend_on_hash_seeds() -> None:
    text = PRINTED.format(path=sys.path)
    printed = {
        subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(printed) == 1
    assert len(printed.pop()) > 1000


def test_effects_are_in_the_statistics() -> None:
    kernel = lambdify([x, y], plus(times(3, x), plus(x, y)), accuracy="fast").kernel
    assert [tuple(effect) for effect in kernel.stats.passes][2] == ("terms", 2, 1)
    assert [name for name, _, _ in kernel.stats.passes] == [step.name for step in PASSES]


def test_fast_float32_and_complex_kernels_agree() -> None:
    expression = plus(times(3, x, y), plus(times(x, y), x / (y + 2), y / (y + 2)))
    exact = float(expression.subs({x: 0.5, y: 0.75}))
    program = program_from_sympy([x, y], [expression])
    single = compile_program(program, accuracy="fast", dtype="float32")(0.5, 0.75)
    double = compile_program(program, accuracy="fast", dtype="complex128")(0.5, 0.75)
    np.testing.assert_allclose(single, exact, rtol=1e-6)
    np.testing.assert_allclose(double, exact, rtol=1e-15)


def test_the_cost_of_a_program_never_rises() -> None:
    expressions = [sp.expand((x + y) ** 3), x / (y * z) - z / (y * z), sp.diff(sp.exp(x * y) / (x + y) ** 2, x, y)]
    program = program_from_sympy([x, y, z], expressions)
    strict, fast = (prepare(program, Options(accuracy=accuracy)) for accuracy in ("strict", "fast"))
    assert nanoseconds(fast.fused.count()) < nanoseconds(strict.fused.count())
