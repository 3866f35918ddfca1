"""What a notebook shows of kernels and statistics: well-formed tables, with what these say themselves."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest
import sympy as sp

import symad as sa
from codegen import compile_program, program_from_sympy


def rows(html: str) -> dict[str, str]:
    """Return the rows of a table: each name with its value."""
    return {row[0].text or "": row[1].text or "" for row in ET.fromstring(html).iter("tr")}


def chain(x):
    total = 0.0
    for k in range(1, 60):
        total = total + np.sin(x[k] * x[k - 1])
    return total


@pytest.mark.parametrize("roll", ["always", "never"])
def test_a_kernel_shows_what_it_is(roll) -> None:
    kernel = sa.compile(sa.grad(chain), np.ones(60), roll=roll)
    found = rows(kernel._repr_html_())
    assert found["shapes"] == kernel.signature == "(60)->(60)"
    assert found["strategy"] == {"always": "loops", "never": "straight lines"}[roll]
    assert found["of a call"] == f"{kernel.stats.executed:,}"
    assert found["machine operations"].startswith(f"{kernel.stats.total:,} (")
    assert found["plan"] == str(kernel.stats.plan)
    assert ("loops" in found) == (roll == "always")
    shown = rows(kernel.stats._repr_html_())
    assert shown == {name: value for name, value in found.items() if name not in ("shapes", "options")}


def test_a_sparse_kernel_in_single_precision_says_so() -> None:
    kernel = sa.compile(sa.hessian(lambda x: x[0] * x[1], sparse=True), np.ones(3), dtype="float32")
    found = rows(kernel._repr_html_())
    assert found["sparse result"] == repr(kernel.sparsity).strip("<>")
    assert found["options"].endswith(", float32")


def test_names_are_escaped() -> None:
    x = sp.Symbol("a<b>&c")
    page = compile_program(program_from_sympy([x], [x * x]))._repr_html_()
    assert "<b>" not in page
    assert "a&lt;b&gt;&amp;c" in page


def test_names_with_escape_sequences_are_shown_as_numbers(tmp_path):
    def f(x):
        return x * x

    f.__name__ = "red\x1b[31m"
    sa.compile(f, 1.0).save(tmp_path / "kernel.symad")
    kernel = sa.load(tmp_path / "kernel.symad")
    assert "\x1b" not in repr(kernel) + str(kernel) + repr(kernel.gufunc())
    assert r"red\x1b[31m(x)" in repr(kernel)
