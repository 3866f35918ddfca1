"""Functions as people write them are known completely: `jit` tells nothing of them, and traces are kept."""

from __future__ import annotations

import abc
import enum
import functools
import logging
import math
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.interpolate
import scipy.special
import scipy.stats
from numpy.polynomial import Polynomial

import symad as sa
from symad.reach.reachable_state import ReachableState

LOG = logging.getLogger(__name__)
HERE = os.path.dirname(__file__)


class Kind(enum.Enum):
    A = 1


class Flag(enum.IntFlag):
    X = 1
    Y = 2


@dataclass
class Params:
    k: float = 2.0
    w: Any = field(default_factory=lambda: np.ones(3))
    name: str = "p"


@dataclass(frozen=True, slots=True)
class Frozen:
    k: float = 2.0


class Pair(NamedTuple):
    k: float
    b: float = 1.0


class Base(abc.ABC):
    @abc.abstractmethod
    def energy(self, x: Any) -> Any: ...


class Model(Base):
    """A class with methods that nobody calls here, and attributes that only they ask for."""

    def __init__(self, k: float, data: Any = None) -> None:
        self.k, self.data, self.log, self.figure = k, data, LOG, None
        self._cache: dict[str, Any] = {}

    def energy(self, x: Any) -> Any:
        self.log.info("%s", self)
        return self.k * self.part(x) ** 2

    def part(self, x: Any) -> Any:
        return np.sin(x) if x is not None else 0.0

    @property
    def double(self) -> float:
        return 2 * self.k

    def plot(self) -> None:
        import matplotlib.pyplot as plt  # noqa: PLC0415 (as people write it)

        plt.plot(self.data)

    def save(self, name: str) -> None:
        with open(name, "w", encoding="utf-8") as file:
            file.write(self.data.to_csv())

    @classmethod
    def load(cls, name: str) -> Model:
        return cls(pd.read_csv(name))


def timed(f: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(f)
    def call(*args: Any) -> Any:
        start = time.perf_counter()
        found = f(*args)
        LOG.debug("%s took %s", f.__name__, time.perf_counter() - start)
        return found

    return call


@functools.cache
def coefficient(n: int) -> float:
    return 1.0 / math.factorial(n)


class Coefficients:
    def __init__(self, c: list[float]) -> None:
        self.c = list(c)

    def __call__(self, x: Any) -> Any:
        return sum(c * x**k for k, c in enumerate(self.c))

    def __getitem__(self, k: int) -> float:
        return self.c[k]


def checked(x: Any) -> Any:
    if isinstance(x, (pd.Series, pd.DataFrame)):
        return x.to_numpy()
    return 0.0 if isinstance(x, pd.Index) else x


def with_a_message(x: Any) -> Any:
    if not np.isfinite(1.0):
        warnings.warn("not finite", stacklevel=2)
        raise ValueError(f"x is {x!r}; see {HERE}")
    return x


def importing(x: Any) -> Any:
    from scipy.special import gamma  # noqa: PLC0415 (the case itself)

    return gamma(x)


MODEL = Model(2.0, pd.DataFrame({"a": [1.0]}))
CONFIG = {"k": 2.0, "options": {"a": [1, 2.0]}, "kind": Kind.A}
PARAMS, FROZEN, PAIR, POLYNOMIAL = Params(), Frozen(), Pair(2.0), Coefficients([1.0, 2.0])
SPLINE = scipy.interpolate.CubicSpline([0.0, 1, 2, 3], [0.0, 1, 4, 9])
LINE = scipy.interpolate.interp1d([0.0, 1, 2, 3], [0.0, 1, 4, 9], kind="cubic")
NORMAL, SERIES, TWICE = scipy.stats.norm(0, 1), Polynomial([1.0, 2.0]), np.vectorize(lambda t: t * 2)
INNER = sa.grad(lambda y: y**3)

FUNCTIONS: list[Callable[..., Any]] = [
    MODEL.energy,
    lambda x: MODEL.energy(x) * MODEL.double,
    lambda x: Model(3.0).energy(x),
    timed(lambda x: x**2),
    lambda x: coefficient(3) * x,
    POLYNOMIAL,
    lambda x: POLYNOMIAL[1] * x,
    lambda x: PARAMS.k * x + np.sum(PARAMS.w),
    lambda x: FROZEN.k * PAIR.k * x,
    lambda x: CONFIG["options"]["a"][1] * x if CONFIG["kind"] is Kind.A else -x,
    lambda x: x if Flag.X in Flag.X | Flag.Y else -x,
    checked,
    with_a_message,
    importing,
    lambda x: SPLINE(x) + LINE(x) + SERIES(x) + TWICE(x) + np.poly1d([1.0, 2.0])(x),
    lambda x: NORMAL.logpdf(x) + scipy.stats.gamma.logpdf(x, 2.0),
    lambda x: INNER(x) + scipy.special.erf(x) + np.linalg.norm(np.array([x, x])),
    functools.partial(lambda a, x: a * x, 2.0),
    functools.singledispatch(lambda x: x * 2),
    lambda x: functools.reduce(lambda a, b: a * b, sorted([1.0, 2.0], key=lambda t: -t)) * x,
    lambda x: LOG.info("x") or print("x") or x,
]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_all_that_it_reads_is_known(f: Callable[..., Any]) -> None:
    state = ReachableState(f)
    assert [obstacle.reason for obstacle in state.unknown] == []
    assert state.unchanged()
