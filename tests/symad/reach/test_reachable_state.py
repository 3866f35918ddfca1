"""What a function reaches: what may have side effects or cannot be compared is named, all else is known."""

from __future__ import annotations

import functools
import logging
import math
import os
import random
import time
import zlib
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats
from numpy.random import randn

import symad as sa
from symad.reach.reachable_state import ReachableState

GENERATOR = np.random.default_rng(0)
Pair = namedtuple("Pair", "a b")


@dataclass
class Model:
    weights: Any
    name: str = "model"

    def loss(self, x: Any) -> Any:
        return self._part(x) * len(self.name)

    def _part(self, x: Any) -> Any:
        return np.sum(self.weights * x)


class Talking(Model):
    def _part(self, x: Any) -> Any:
        print(self.name)
        return super()._part(x)


def helper(x: Any) -> Any:
    return scipy.special.gammaln(x) + math.lgamma(2.0)


def recursive(x: Any, n: int = 3) -> Any:
    return x if n == 0 else recursive(np.sin(x), n - 1)


@functools.cache
def cached(n: int) -> int:
    return n


@functools.cache
def talking(n: int) -> None:
    print(n)


def importing(x: Any) -> Any:
    import time as clock  # noqa: PLC0415 (a side effect)

    return x * clock.time()


def opening(x: Any) -> Any:
    with open("file", encoding="utf-8") as stream:
        return x * float(stream.read())


def writing(x: Any) -> Any:
    global LAST
    LAST = 1.0
    return x


@pytest.mark.parametrize(
    "f",
    [
        np.sum,
        recursive,
        Model(np.ones(2)).loss,
        lambda x: Model(x).loss(x),
        lambda x: Pair(x, x).a + sum(part for part in [x, x]),
        lambda x: helper(x) + scipy.stats.norm.logpdf(x),
        lambda x: sa.grad(helper)(x),
        sa.grad(helper),
        functools.partial(recursive, n=2),
        np.vectorize(helper),
        lambda x: x * cached(2),
        lambda x: max(sorted(map(abs, [x, 1.0])), key=lambda value: -value),
        lambda x: {"a": x}.get("a").reshape(-1) @ np.linalg.inv(np.eye(1)),
    ],
)
def test_no_side_effects(f: Callable[..., Any]) -> None:
    state = ReachableState(f)
    assert not state.effects
    assert not state.unknown
    assert state.unchanged()


@pytest.mark.parametrize(
    ("f", "effect"),
    [
        (lambda x: print(x), "print"),
        (lambda x: [print(part) for part in x], "print"),
        (sa.grad(lambda x: print(x)), "print"),
        (np.vectorize(lambda x: print(x)), "print"),
        (functools.partial(lambda f, x: f(x), print), "print"),
        (Talking(1.0).loss, "print"),
        (lambda x: Talking(x).loss(x), "print"),
        (lambda x: time.time(), "time.time"),
        (lambda x: os.environ["A"], "os.environ"),
        (opening, "open"),
        (lambda x: logging.info(x), "logging.info"),
        (lambda x: np.random.rand(), "random"),
        (lambda x: random.random(), "random.random"),
        (lambda x: randn(), "an object of type RandomState"),
        (lambda x: GENERATOR.normal(), "an object of type Generator"),
        (lambda x: scipy.stats.norm.rvs(), "rvs"),
        (lambda x: np.save("file", x), "save"),
        (lambda x: np.seterr(all="raise"), "seterr"),
        (lambda x: talking(2), "print"),
        (importing, "time"),
        (writing, "a global name (LAST) that is set"),
        (lambda x: eval("x"), "the builtin eval"),
        (lambda x: setattr(x, "a", 1), "setattr"),
        (lambda x: next(COUNT), "an iterator"),
    ],
)
def test_side_effects_are_named(f: Callable[..., Any], effect: str) -> None:
    state = ReachableState(f)
    assert effect in [obstacle.what for obstacle in (*state.effects, *state.unknown)]


COUNT = iter([1])


def test_too_much_is_a_side_effect() -> None:
    many = [[k] for k in range(20_000)]
    (obstacle,) = ReachableState(lambda x: many[0]).unknown
    assert obstacle.what == "more than 10,000 objects"


def test_classes_in_c_are_no_ordinary_ones() -> None:
    """This one can be told from Python's only by the size of its objects, which hold more than slots."""
    stream = zlib.compressobj()
    assert type(stream).__flags__ & (1 << 9)
    (obstacle,) = ReachableState(lambda x: stream).unknown
    assert obstacle.reason == "an object of type Compress (the variable stream)"
