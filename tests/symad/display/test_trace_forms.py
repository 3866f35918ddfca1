"""A trace is shown as its let form; `str` and `repr` stay one line, and a long trace is not written out."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from symad.tracing.trace import trace
from tests.support.display_checks import balanced, parsed


def test_forms_of_a_trace(tmp_path: Path) -> None:
    traced = trace(lambda x: [np.sin(x) * np.sin(x), np.sin(x) / 2], 1.0)
    lines = [line.split() for line in traced.text().split("\n")]
    assert ["x0", "sin(x)"] in lines
    assert ["result", "0", "x0·x0"] in lines
    assert ["result", "1", "x0/2"] in lines
    assert balanced(traced.latex())
    assert "<mi>sin</mi>" in traced.html()
    parsed(traced.save(tmp_path / "trace.html").read_text(encoding="utf-8"))


def test_str_and_repr_are_one_line() -> None:
    traced = trace(lambda x: x * x, 1.0)
    assert str(traced) == repr(traced) == "<Trace: 1 input, 1 output, 1 operation>"
    printed: list[str] = []

    class Printer:
        text = printed.append

    traced._repr_pretty_(Printer, False)
    assert printed == [repr(traced)]


def test_a_long_trace_is_named_by_its_size() -> None:
    def long(x: float) -> float:
        for _ in range(3000):
            x = x * x
        return x

    assert len(trace(long, 1.0).text().split("\n")) == 3
