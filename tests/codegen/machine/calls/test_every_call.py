"""The call gate answers every form of call alike, with and without the GIL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy as sp

from codegen import Kernel, compile_program, program_from_sympy

X, Y = sp.symbols("x y")


def answers(kernel: Kernel) -> list[Any]:
    """What every form of call gives, refusals too."""
    x, out = np.array([1.0, 2.0]), (np.zeros(2), np.zeros(()))
    overlapping = np.zeros(3)
    calls: list[Callable[[], Any]] = [
        lambda: kernel(x, 0.5),
        lambda: kernel(x, np.float64(0.25)),
        lambda: kernel(x, np.array(0.25)),
        lambda: kernel([1, 2], 3),
        lambda: kernel(x.astype(np.float32), 0.5),
        lambda: kernel(np.arange(4.0)[::2], 0.5),
        lambda: kernel(x, 0.5, out=out),
        lambda: kernel(x, 0.5, out=list(out)),
        lambda: kernel(overlapping[:2], 0.5, out=(overlapping[1:], out[1])),
        lambda: kernel(x, 0.5, out=out[0]),
        lambda: kernel(x),
        lambda: kernel(x, 0.5, 0.5),
        lambda: kernel(np.zeros(3), 0.5),
        lambda: kernel(x, 0.5, wrong=1),
        lambda: kernel(x, np.inf),
        lambda: kernel(x, s=0.5),
    ]
    found: list[Any] = []
    for call in calls:
        try:
            found.append([np.asarray(value).tolist() for value in call()])
        except Exception as error:
            found.append((type(error), str(error)))
    return found


def test_every_form_of_call() -> None:
    total = sp.Symbol("s")
    kernel = compile_program(program_from_sympy([(X, Y), total], [(X + total, Y * total), X + Y + total]))
    assert kernel._table is not None
    expected = answers(kernel)
    assert expected[0] == [[1.5, 1.0], 3.5]
    assert sum(isinstance(found, tuple) for found in expected) == 5
    kernel._table[3] = 1  # the GIL is released
    assert answers(kernel) == expected
