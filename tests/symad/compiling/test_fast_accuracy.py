"""accuracy="fast" on random programs: values against 50 digits, and costs that never rise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import symad as sa
from codegen.evaluation.interpret import evaluate
from codegen.lowering.passes import prepare
from codegen.options import Options
from codegen.pricing.price_table import nanoseconds
from symad.compiling.native import compile_trace
from symad.tracing.trace import to_program
from tests.support.draws import seeded
from tests.support.fuzz_programs import SIZE, program_text
from tests.support.nested_fuzz import load

ROUNDING_UNIT = 2.0**-53


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.thinned
def test_random_hessians(seed: int) -> None:
    """The error stays below one rounding unit of the largest value on the way for every operation."""
    draw = seeded(seed)
    text = program_text(draw)
    x = np.array([draw.real(-1, 1) for _ in range(SIZE)])
    traced = sa.trace(sa.hessian(load(text, f"<fast {seed}>", "symad")), x)
    values = dict(zip(traced.inputs.flat, x.tolist(), strict=True))
    exact = evaluate(traced.graph, traced.outputs.flat, values, arithmetic="reference", digits=50)
    strict, fast = (prepare(to_program(traced), Options(accuracy=accuracy)) for accuracy in ("strict", "fast"))
    assert nanoseconds(fast.fused.count()) <= nanoseconds(strict.fused.count())
    found = np.ravel(compile_trace(traced, accuracy="fast")(x))
    largest = max([abs(float(value)) for value in values.values() if abs(value) < 1e30], default=1.0)
    bound = ROUNDING_UNIT * largest * strict.fused.count().total()
    for value, wanted in zip(found.tolist(), exact, strict=True):
        assert np.isfinite(value) == np.isfinite(float(wanted))
        assert not np.isfinite(value) or abs(value - float(wanted)) <= bound, text


@pytest.mark.parametrize("x", [-1.0, 0.0, math.nan, math.inf])
@pytest.mark.parametrize("f", [lambda x: x / x, lambda x: x**2.5 * x**-2.5, lambda x: np.sqrt(x) / np.sqrt(x)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_nan_that_is_lost_is_in_the_table(f: Any, x: float) -> None:
    """docs/performance.md: `x/x` is 1 even for x = 0, infinite x and NaN, and so are powers for x < 0."""
    assert sa.compile(f, 1.0, accuracy="fast")(x) == 1.0


def test_infinity_and_the_sign_of_zero_are_lost_as_the_table_says() -> None:
    """docs/performance.md, "terms": infinity may be NaN, and 0 be -0."""
    kinds: tuple[Any, ...] = ("strict", "fast")
    strict, fast = (sa.compile(lambda x, y: x * y * 2.0 + x * (y + 1), 1.0, 1.0, accuracy=kind) for kind in kinds)
    assert strict(math.inf, -2.5) == -math.inf
    assert math.isnan(fast(math.inf, -2.5))
    strict, fast = (sa.compile(lambda x: (x + 1) - 1, 1.0, accuracy=kind) for kind in kinds)
    assert [math.copysign(1, kernel(-0.0)) for kernel in (strict, fast)] == [1, -1]
