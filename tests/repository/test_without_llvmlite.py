"""The teaching half works without llvmlite and SciPy, as in a browser; only compiling needs llvmlite, and says so."""

from __future__ import annotations

import subprocess
import sys

import pytest

BLOCKED = """
import sys
for name in ("llvmlite", "scipy"):
    sys.modules[name] = None
import numpy as np, sympy as sp, symad as sa
x, f = sp.Symbol("x"), lambda x: np.sin(x) * x
"""
USES = {
    "expand": 'assert "3v·x²" in str(sa.expand("x^3", "x", ["v"]))',
    "steps": 'assert "product rule" in str(sa.steps("x sin(x)", "x"))',
    "explain": 'assert "cotangent" in str(sa.explain(sa.grad(f), 1.0)).lower()',
    "explain at": "assert str(sa.explain(f, at=2.0))",
    "draw": "assert str(sa.draw(sa.grad(f), 1.0))",
    "check_derivative": 'assert sa.check_derivative("cos(x^2)", "sin(x^2)", "x").mistakes[0].kind == "chain rule"',
    "check_expansion": 'assert sa.check_expansion("x^2 + 2 x v eps_1", "x^2", "x", ["v"]).right',
    "exercise": 'assert sa.exercise("reverse traces", 1, 1).wrong_answers and "f(x)" in str(sa.exercise("chain rule"))',
    "exhibit": 'assert str(sa.exhibit("amazing-bug"))',
    "hessian": "assert sa.hessian(lambda x: np.sum(x**3))(np.ones(2)).tolist() == [[6.0, 0.0], [0.0, 6.0]]",
    "taylor": "assert sa.taylor(np.exp, (0.0,), (1.0,), 3)",
    "compare": """
verdicts = {row.verdict for row in sa.compare("exp(x)", {"x": 0.7}, 1).rows}
assert {"tested", "not installed"} <= verdicts and "failed" not in verdicts, verdicts
""",
    "compile": """
try:
    sa.compile(f, 1.0)
except sa.errors.NotInstalledError as error:
    assert "this needs llvmlite" in str(error)
else:
    raise AssertionError
""",
}


@pytest.mark.parametrize("use", USES)
def test_what_works(use: str) -> None:
    ran = subprocess.run([sys.executable, "-c", BLOCKED + USES[use]], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
