"""Bodies that change what they read: a kernel has the numbers of plain Python, or the function is refused by name."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

import symad as sa
from tests.support.state_changes import IMPORTS, SETUP, rows_of

X = np.array([0.1, 0.5, 0.2, 0.7, 0.9, 0.4])
ROWS = rows_of("changing_bodies.txt")  # what makes an object; a comment that changes it, and one that reads it

FORMS = {
    "sum_over": "    def body(a):\n        {change}\n        return a * {read}\n    return sa.sum_over(body, x)",
    "scan": "    def body(c, a):\n        {change}\n        return c + a * {read}, a\n"
    "    return sa.scan(body, 0.0, x)[0]",
    "vmap": "    def body(a):\n        {change}\n        return a * {read}\n    return np.sum(sa.vmap(body)(x))",
    "condition": "    def g(a):\n        {change}\n        return a * {read} if a > 0.3 else -a * {read}\n"
    "    return sum(g(x[k]) for k in range(5))",
    "derivative": "    def g(a):\n        {change}\n        return a * a * {read}\n"
    "    return sum(sa.grad(g)(x[k]) for k in range(3))",
}


def made(text: str, form: str) -> Any:
    """Return a function that makes the object, and has a body that changes and reads it."""
    *make, change, read = text.strip().split("\n")
    body = FORMS[form].format(change=change.removeprefix("# "), read=read.removeprefix("# "))
    lines = "\n".join(f"    {line}" for line in make)
    module = types.ModuleType("row_of_a_body")
    sys.modules[module.__name__] = module
    exec(compile(f"{IMPORTS}{SETUP}\ndef f(x):\n{lines}\n{body}", "<row of a body>", "exec"), vars(module))
    return vars(module)["f"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ROWS)
def test_a_kernel_has_plain_pythons_numbers_or_there_is_none(name: str, form: str) -> None:
    plain = float(made(ROWS[name], form)(X))
    assert np.isclose(float(sa.value_and_grad(made(ROWS[name], form))(X)[0]), plain, rtol=1e-13)
    try:
        kernel = sa.compile(made(ROWS[name], form), X)
    except sa.WorkbenchError:
        return
    assert np.isclose(float(kernel(X)), plain, rtol=1e-13)
