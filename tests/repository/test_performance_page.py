"""The tables of docs/performance.md are those of the code."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import symad as sa
from tests.support.generated_tables import with_tables
from tests.support.performance_table import PAGE, TABLES


def test_the_page_is_up_to_date() -> None:
    """To be made anew with `python -m tests.support.performance_table`."""
    text = PAGE.read_text(encoding="utf-8")
    assert with_tables(text, TABLES) == text


def test_the_tables_are_there() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, make in TABLES.items():
        assert f"<!-- {name} -->" in text
        assert make() in text


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_is_further_off_is_as_far_as_the_page_says(dtype: Any) -> None:
    (told,) = re.findall(r"Two are further off: (.*?)\. All", PAGE.read_text(encoding="utf-8").replace("\n", " "))
    powers = [
        (float(exponent), float(bound))
        for bound, named in re.findall(r"([\d.]+)\s+for ((?:`x\*\*[\d.-]+`(?: and )?)+)", told)
        for exponent in re.findall(r"\*\*([\d.-]+)`", named)
    ]
    (bound,) = map(float, re.findall(r"`tanh` up to ([\d.]+)", told))
    assert len(powers) == 6
    assert worst_error(np.tanh, mp.tanh, 0.05, 3.0, dtype) <= bound
    for exponent, bound in powers:
        power: Callable[[Any], Any] = lambda x, p=exponent: x**p  # noqa: E731
        assert worst_error(power, power, 0.5, 2.0, dtype) <= bound, exponent


def worst_error(f: Callable[[Any], Any], reference: Callable[[Any], Any], low: float, high: float, dtype: Any) -> float:
    """Return the largest error of a kernel, in units of the last place of its type."""
    points = np.random.default_rng(0).uniform(low, high, 2000).astype(dtype)
    values = sa.compile(f, 1.0, dtype=dtype).batch(points)
    with mp.workdps(40):
        exact = [reference(mp.mpf(float(x))) for x in points]
        return max(
            float(abs(mp.mpf(float(value)) - wanted) / float(np.spacing(np.abs(np.dtype(dtype).type(float(wanted))))))
            for value, wanted in zip(values, exact, strict=True)
        )
