"""Random expressions of labelled data and a parameter, in the words of pandas and xarray, and what symad makes of them.

`python -m tests.support.labelled_expressions 500` compares values and slopes with those of the plain calls.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import symad as sa

Function = Callable[[Any], Any]

SERIES = [
    pd.Series([1.0, 2.0, 3.0], index=list("abc")),
    pd.Series([10.0, 20.0, 35.0], index=list("cba")),
    pd.Series([0.5, 0.25], index=list("bd")),
    pd.Series([0.3, np.nan, 0.9, 1.4], index=list("abce")),
]
FRAMES = [
    pd.DataFrame({"u": [1.0, 2.0, 3.0], "v": [0.1, 0.2, 0.7]}, index=list("abc")),
    pd.DataFrame({"v": [3.0, np.nan, 5.0], "u": [0.3, 0.2, 0.1]}, index=list("cab")),
    pd.DataFrame({"u": [2.0, 4.0], "w": [1.0, 3.0]}, index=list("ad")),
]
ARRAYS = [
    xr.DataArray([1.0, 2.0], dims="i"),
    xr.DataArray([10.0, 20.0], dims="j"),
    xr.DataArray([[1.0, 2.0], [3.0, np.nan]], dims=("i", "j")),
    xr.DataArray([[0.1, 0.2], [0.3, 0.7]], dims=("j", "i")),
]
PLACED = [
    xr.DataArray([1.0, 2.0, 4.0], dims="t", coords={"t": [0, 1, 2]}),
    xr.DataArray([5.0, 0.3, 0.7], dims="t", coords={"t": [2, 3, 1]}),
    xr.DataArray([[1.0, np.nan], [0.4, 2.0]], dims=("t", "s"), coords={"t": [1, 0], "s": ["x", "y"]}),
    xr.DataArray([0.6, 0.2, 0.1], dims="s", coords={"s": ["y", "x", "z"]}),
]
POOLS = {"Series": SERIES, "DataFrame": FRAMES, "dims": ARRAYS, "coordinates": PLACED}
_UNARY: dict[str, Function] = {
    "np.exp({})": lambda a: np.exp(a * 0.1), "np.sin({})": np.sin, "-{}": lambda a: -a, "abs({})": abs,
    "{}**2": lambda a: a**2, "np.sqrt(1+{}**2)": lambda a: np.sqrt(1 + a * a), "{}.clip": lambda a: a.clip(-3.0, 3.0),
    "{}.fillna": lambda a: a.fillna(0.3), "{}.where": lambda a: a.where(a > 0.4), "np.square": np.square,
}  # fmt: skip
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / (b**2 + 1),
    "np.add": np.add, "np.multiply": np.multiply, "np.maximum": np.maximum, "np.hypot": np.hypot,
}  # fmt: skip
_REDUCED: dict[str, Function] = {
    "np.sum({})": np.sum, "{}.sum()": lambda a: a.sum(), "{}.mean()": lambda a: a.mean(), "np.mean": np.mean,
    "{}.std()": lambda a: a.std(), "np.std": np.std, "{}.max()": lambda a: a.max(), "np.var": np.var,
    "{}.prod()": lambda a: (a * 0.1 + 1).prod(), "{}.sum(skipna=False)": lambda a: a.sum(skipna=False),
}  # fmt: skip


def expression(seed: int) -> tuple[str, Function]:
    """Return the text of an expression and its function of one parameter."""
    rng = random.Random(seed)
    pool = rng.choice(list(POOLS))
    text, whole = _drawn(rng, pool, rng.randint(1, 3))
    name, reduced = rng.choice(list(_REDUCED.items()))
    return f"{pool}: {name} of {text}", lambda p: _number(reduced(whole(p) + p * POOLS[pool][0]))


def _number(value: Any) -> Any:
    """Return the sum over what is left after a reduction along one axis."""
    while getattr(value, "ndim", 0):
        value = value.sum()
    return value


def _drawn(rng: random.Random, pool: str, depth: int) -> tuple[str, Function]:
    if depth == 0 or rng.random() < 0.1:
        place = rng.randrange(len(POOLS[pool]))
        factor = rng.choice(["", "p*", "*p", "p-", "np.multiply(p, "])
        data = POOLS[pool][place]
        leaves: dict[str, Function] = {
            "": lambda p: data, "p*": lambda p: p * data, "*p": lambda p: data * p, "p-": lambda p: p - data,
            "np.multiply(p, ": lambda p: np.multiply(p, data),
        }  # fmt: skip
        return f"{factor}D{place}", leaves[factor]
    if rng.random() < 0.35:
        name, unary = rng.choice(list(_UNARY.items()))
        text, inner = _drawn(rng, pool, depth - 1)
        return f"{name}({text})", lambda p: unary(inner(p))
    name, binary = rng.choice(list(_BINARY.items()))
    (left, first), (right, second) = _drawn(rng, pool, depth - 1), _drawn(rng, pool, depth - 1)
    return f"({left} {name} {right})", lambda p: binary(first(p), second(p))


def outcome(f: Function, p: float = 0.7) -> str:
    """Return "right", "wrong: ..." or "refused: ..." for value and slope of an expression."""
    step = 1e-5
    value, slope = float(f(p)), (float(f(p + step)) - float(f(p - step))) / (2 * step)
    try:
        found = float(sa.compile(f, p)(p)), float(sa.derivative(f)(p))
    except sa.WorkbenchError as error:
        return f"refused: {str(error).partition(': ')[2]:.100}"
    if value == 0 or np.isnan(value):  # the deviation of one number has a kink; numbers that are NaN have any slope
        found, slope = (found[0], slope), slope
    same = np.allclose(found, (value, slope), rtol=1e-5, atol=1e-7, equal_nan=True)
    return "right" if same else f"wrong: {found} for {(value, slope)}"


def main(count: int) -> None:
    """Print how many expressions are right, and those that are not."""
    seen: Counter[str] = Counter()
    for seed in range(count):
        text, f = expression(seed)
        result = outcome(f)
        seen[result.partition(":")[0]] += 1
        if result != "right":
            print(seed, text, result)
    print(dict(seen))


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main(int(sys.argv[1]))
