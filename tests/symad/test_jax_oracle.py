"""JAX as an oracle: stores are translated, and where it is installed, it sees a wrong derivative."""

from __future__ import annotations

import ast

import numpy as np
import pytest
import sympy as sp

from symad.rules.overrides import OVERRIDES
from tests.support import jax_oracle
from tests.support.fuzzers import FUZZERS
from tests.support.fuzzing import campaign

TEXT = """
def f(x):
    r = 1.0 * x
    r[1:] += r[:-1]
    r[0] = x[1] * 2
    r[::2] **= 2
    r = r.reshape(2, -1)
    r[:, ::-1] = r * 0.5
    r[0, 1] -= 3
    return r.sum() + r[1] @ r[0]
"""


def test_stores_become_copies() -> None:
    def put(array: np.ndarray, index: object, value: object) -> np.ndarray:
        array = array.copy()
        array[index] = value
        array.flags.writeable = False
        return array

    plain: dict[str, object] = {}
    copies: dict[str, object] = {"np": np, "PUT": put}
    exec(TEXT, plain)
    exec(compile(ast.fix_missing_locations(jax_oracle.Copies().visit(ast.parse(TEXT))), "<copies>", "exec"), copies)
    assert copies["f"](np.arange(6.0)) == plain["f"](np.arange(6.0))


@pytest.mark.parametrize("name", ["arrays", "arrays-large", "nested"])
@pytest.mark.wide_rows("arrays-large", "nested")
def test_jax_agrees(name: str) -> None:
    pytest.importorskip("jax")
    done = campaign(name, jax_oracle.with_jax(FUZZERS[name], name), range(10), shrink=False)
    assert not done.failures
    assert done.outcomes["right"] > 2


@pytest.mark.wide
def test_jax_sees_a_wrong_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    right = OVERRIDES[sp.tanh]
    monkeypatch.setitem(OVERRIDES, sp.tanh, (lambda build, p, u: build.neg(right[0](build, p, u)), *right[1:]))
    found = campaign(
        "arrays", jax_oracle.with_jax(FUZZERS["arrays"], "arrays"), range(30), shrink=False, report=lambda failure: None
    )
    assert any("JAX" in failure.message for failure in found.failures)
