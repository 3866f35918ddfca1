"""Random programs on labelled data, in the words of pandas and xarray, compared with plain calls of these libraries.

A program is a function of a number, or of labelled data; its result keeps its labels:
`python -m tests.fuzz labels 500`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

import symad as sa
from codegen.errors import WorkbenchError
from codegen.limits import limits
from tests.support import array_words, label_words as words
from tests.support.draws import Draw
from tests.support.fuzzing import cause, counted
from tests.support.source_texts import execute

POINT = 0.7
SECONDS = 30.0
LARGEST = 1e6
STEP = 1e-5
DATA = words.SERIES | words.FRAMES | array_words.arrays()
SCOPE: dict[str, Any] = {"np": np, "pd": pd, **DATA}
Numbers = np.ndarray[Any, Any]


def kind_of(value: Any) -> str:
    """Return the letter of a value in the words, "" for what they do not take."""
    if isinstance(value, pd.Series):
        return "s" if value.dtype.kind in "fi" and len(value) else ""
    if isinstance(value, pd.DataFrame):
        return "d" if value.size and any(kind.kind in "fi" for kind in value.dtypes) else ""
    if type(value).__module__.startswith("xarray.") and hasattr(value, "dims") and hasattr(value, "data"):
        return "x" if value.ndim and value.size and value.dtype.kind in "fi" else "n" if value.size else ""
    return "n" if np.ndim(value) == 0 and isinstance(value, float | int | np.floating | np.integer) else ""


def numbers_of(value: Any) -> Any:
    """Return the numbers in a result, in one row."""
    if isinstance(value, pd.DataFrame):
        columns = [value.iloc[:, k] for k in range(value.shape[1])]
        return np.concatenate([column.to_numpy() for column in columns if not isinstance(column.iloc[0], str)])
    return np.ravel(value.to_numpy() if hasattr(value, "to_numpy") else value)


@contextmanager
def quietly() -> Iterator[None]:
    """Libraries say nothing of NaN and of what is to come."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), limits(max_seconds=SECONDS):
        warnings.simplefilter("ignore")
        yield


class Text:
    """A function `f(p)`, growing, and what its names hold at the point."""

    def __init__(self, draw: Draw, vocabulary: tuple[str, ...], names: list[str]) -> None:
        self.draw, self.vocabulary = draw, vocabulary
        labelled = draw.chance(0.3)
        self.point = draw.choice(names) if labelled else str(POINT)
        self.lines = list[str]()
        self.held: dict[str, Any] = {name: DATA[name] for name in names} | {"p": eval(self.point, dict(SCOPE))}
        self.moving = {"p"}

    def line(self) -> None:
        """Write a line, if plain numbers get through it."""
        word, name = self.draw.choice(self.vocabulary), f"v{len(self.lines)}"
        filled = self._filled(word)
        if filled is None or not any(moving in _names_in(filled) for moving in self.moving):
            return
        scope = dict(SCOPE) | self.held
        with quietly():
            try:
                value = eval(filled, scope)
                numbers = np.asarray(numbers_of(value), dtype=float)
            except Exception:
                return
        if numbers.size == 0 or np.isnan(numbers).all() or np.nanmax(np.abs(numbers)) > LARGEST:
            return
        self.lines.append(f"{name} = {filled}")
        self.moving.add(name)
        if kind_of(value):
            self.held[name] = value

    def _filled(self, word: str) -> str | None:
        letters = {letter for letter in "sdxnqtey" if f"{{{letter}}}" in word}
        chosen = {}
        for letter in sorted(letters):
            wanted = {"t": "s", "e": "d", "y": "x"}.get(letter, letter)
            pool = [name for name, value in self.held.items() if kind_of(value) == wanted]
            pool += ["0.3", "p"] if wanted == "n" and self.point == str(POINT) else []
            recent = [name for name in pool if name in self.moving]
            if not pool and wanted != "n":
                return None
            chosen[letter] = self.draw.choice(recent if recent and self.draw.chance(0.7) else pool or ["0.3"])
        for letter, name in chosen.items():
            word = word.replace(f"{{{letter}}}", name)
        return word

    def __str__(self) -> str:
        last = self.lines[-1].partition(" = ")[0] if self.lines else "p"
        body = "".join(f"    {line}\n" for line in self.lines)
        return f"POINT = {self.point}\n\n\ndef f(p):\n{body}    return {last}\n"


def _names_in(text: str) -> set[str]:
    return set("".join(c if c.isalnum() or c == "_" else " " for c in text).split())


def make(draw: Draw) -> str:
    """Draw a program of a few lines."""
    of_xarray = "xr" in DATA and draw.chance(0.4)
    names = [name for name in DATA if name[0] == "A"] if of_xarray else [*words.SERIES, *words.FRAMES]
    text = Text(draw, array_words.XARRAY if of_xarray else words.PANDAS, names)
    wanted = draw.integer(1, 4)
    for _ in range(60):
        if len(text.lines) < wanted:
            draw.part(text.line)
    return str(text)


def check(text: str) -> str:
    """Compare value, slopes and kernel of a program with plain calls; AssertionError where they differ."""
    scope = dict(SCOPE)
    execute(text, scope)
    f, point = scope["f"], scope["POINT"]
    with quietly():
        return _checked(f, point)


def _checked(f: Callable[[Any], Any], point: Any) -> str:
    wanted = f(point)
    size = numbers_of(wanted).size
    weights = np.random.default_rng(0).uniform(0.5, 1.5, size)

    def total(p: Any) -> Any:
        values = numbers_of(f(p))
        return np.sum(np.where(np.isnan(values), 0.0, values) * weights)

    refused = list[str]()
    for name, run in (
        ("kernel", lambda: same(sa.compile(f, point)(point), wanted)),
        ("slopes", lambda: _slopes(sa.grad(total), total, point)),
        ("kernel of slopes", lambda: _slopes(sa.compile(sa.grad(total), point), total, point)),
    ):
        try:
            run()
            counted(name)
        except WorkbenchError as error:
            refused.append(cause(error))
    return f"refused: {refused[0]}" if refused else "right"


def _slopes(gradient: Callable[[Any], Any], total: Callable[[Any], Any], point: Any) -> None:
    found, here = numbers_of(gradient(point)), float(total(point))
    given = numbers_of(point).astype(float)
    for k, step in enumerate(STEP * np.eye(given.size)):
        try:
            before, after = float(total(_with(point, given - step))), float(total(_with(point, given + step)))
        except ValueError:  # a row more, or less
            counted("at a kink")
            continue
        left, right, wanted = (here - before) / STEP, (after - here) / STEP, (after - before) / (2 * STEP)
        if np.isnan(given[k]) or abs(left - right) > 1e-2 * (1 + abs(wanted)):
            counted("at a kink")
            continue
        assert np.isclose(found[k], wanted, rtol=1e-4, atol=1e-5), f"slope {k}: {found[k]} and not {wanted}"


def _with(point: Any, numbers: Numbers) -> Any:
    """Return an object of the labels of a point, with other numbers."""
    if isinstance(point, pd.DataFrame):
        moved = point.copy()
        names = point.select_dtypes("number").columns
        for name, column in zip(names, numbers.reshape(-1, len(point)), strict=True):
            moved[name] = column
        return moved
    if isinstance(point, pd.Series):
        return pd.Series(numbers, index=point.index)
    return float(numbers[0]) if isinstance(point, float) else point.copy(data=numbers.reshape(point.shape))


def same(found: Any, wanted: Any) -> None:
    """Compare results with their labels; a Series of labelled numbers may be ordinary numbers in a kernel's list."""
    if isinstance(wanted, pd.Series):
        pd.testing.assert_series_equal(found, wanted, check_dtype=False, check_names=False, check_freq=False, rtol=1e-9)
    elif isinstance(wanted, pd.DataFrame):
        pd.testing.assert_frame_equal(found, wanted, check_dtype=False, check_freq=False, rtol=1e-9)
    elif kind_of(wanted) == "x":
        DATA["xr"].testing.assert_allclose(found, wanted, rtol=1e-9)
    else:
        np.testing.assert_allclose(np.asarray(found, float), np.asarray(wanted, float), rtol=1e-9, atol=1e-12)


def outcome(f: Callable[[Any], Any], p: float = POINT) -> str:
    """Return "right", "wrong: ..." or "refused: ..." for the value and the slope of a function of a number."""
    value, slope = float(f(p)), (float(f(p + STEP)) - float(f(p - STEP))) / (2 * STEP)
    try:
        found = float(sa.compile(f, p)(p)), float(sa.derivative(f)(p))
    except WorkbenchError as error:
        return f"refused: {str(error).partition(': ')[2]:.100}"
    if value == 0 or np.isnan(value):  # the deviation of one number has a kink; numbers that are NaN have any slope
        found, slope = (found[0], slope), slope
    right = np.allclose(found, (value, slope), rtol=1e-5, atol=1e-7, equal_nan=True)
    return "right" if right else f"wrong: {found} for {(value, slope)}"
