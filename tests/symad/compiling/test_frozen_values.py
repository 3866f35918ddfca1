"""What a function asks of the world, or changes, while it is traced: each case is told once, with the user's line."""

from __future__ import annotations

import ctypes
import datetime
import functools
import io
import itertools
import logging
import os
import random
import re
import secrets
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symad as sa
from symad.reach.reachable_state import ReachableState
from symad.tracing.control import stale_values
from symad.tracing.control.stale_values import noting_inputs

FOLDER = Path(tempfile.gettempdir())
GENERATOR = np.random.default_rng(0)
SEEN: list[int] = []
COUNT = 0
NUMBERS = iter(range(1_000_000))


def draws(x):
    return x * np.random.rand()


def draws_of_a_generator(x):
    return x * GENERATOR.normal()


def draws_of_a_new_generator(x):
    return x * np.random.default_rng().normal()


def draws_of_python(x):
    return x * random.uniform(0.0, 1.0)


def draws_secrets(x):
    return x * (1 + secrets.randbelow(1 << 40))


def reads_the_clock(x):
    return x * time.time()


def reads_now(x):
    return x * (1 + datetime.datetime.now().microsecond)


def reads_the_date(x):
    return x * datetime.date.today().day


def reads_a_file(x):
    with open(__file__) as file:
        return x * len(file.readline())


def reads_text(x):
    return x * len(Path(__file__).read_text(encoding="utf-8"))


def loads_numbers(x):
    return x * np.loadtxt(io.StringIO("2.0")) + np.genfromtxt(__file__, dtype=str, max_rows=1, comments='"').size


def reads_the_hour(x):
    return x * (1 + datetime.datetime.now().hour)


def writes_the_hour(x):
    return x * (1 + int(time.strftime("%H")))


def asks_whether_a_file_exists(x):
    return x if os.path.exists(__file__) else -x


def asks_a_path(x):
    return x if Path(__file__).exists() else -x


def asks_for_the_size(x):
    return x * os.stat(__file__).st_size


def asks_for_the_folder(x):
    return x * len(os.getcwd())


def reads_the_environment(x):
    return x * float(os.environ.get("SYMAD_NOWHERE", "2"))


def counts(x):
    SEEN.append(1)
    return x * len(SEEN)


def counts_in_a_global(x):
    global COUNT
    COUNT += 1
    return x * COUNT


def has_a_mutable_default(x, seen=[]):  # noqa: B006 - the mistake itself
    seen.append(1)
    return x * len(seen)


def takes_the_next(x):
    return x * next(NUMBERS)


RANDOM = "it is drawn while the function is traced, and is a constant from then on; pass it as an argument, or say "
RANDOM += "freeze=True to keep the one that was drawn"
FILE = "it is opened while the function is traced, and what was read is a constant from then on; read it outside, and "
FILE += "pass what is in it as an argument; or say freeze=True to keep what was read"
STATE = "each call of it finds something else, and what was made of it keeps what one of them found; pass it as an "
STATE += "argument and return it, or say freeze=True to keep what was found"
PATH = (
    "the answer is that of tracing, and a constant from then on; ask outside, and pass the answer as an argument; or "
)
PATH += "say freeze=True to keep it"
TIME = "the time is that of tracing, and a constant from then on; pass it as an argument, or say freeze=True to keep "
TIME += "that time"

# function: (the line of it that is told, the message)
FROZEN: dict[Callable[..., Any], tuple[int, str]] = {
    draws: (1, f"draws draws a random number ('np.random.rand'): {RANDOM}"),
    draws_of_a_generator: (1, f"draws_of_a_generator draws a random number ('GENERATOR.normal'): {RANDOM}"),
    draws_of_a_new_generator: (
        1,
        f"draws_of_a_new_generator draws a random number ('np.random.default_rng()'): {RANDOM}",
    ),
    draws_of_python: (1, f"draws_of_python draws a random number ('random.uniform(0.0, 1.0)'): {RANDOM}"),
    draws_secrets: (1, f"draws_secrets draws a random number ('secrets.randbelow(1 << 40)'): {RANDOM}"),
    reads_the_clock: (1, f"reads_the_clock reads the clock ('time.time()'): {TIME}"),
    reads_now: (1, f"reads_now reads the clock ('datetime.datetime.now()'): {TIME}"),
    reads_the_date: (
        1,
        "reads_the_date reads the date ('datetime.date.today()'): the date is that of tracing, and a constant from "
        "then on; pass it as an argument, or say freeze=True to keep that date",
    ),
    reads_a_file: (1, f"reads_a_file opens a file ('open(__file__)'): {FILE}"),
    reads_text: (1, f"reads_text opens a file ('Path(__file__).read_text(encoding=\"utf-8\")'): {FILE}"),
    loads_numbers: (
        1,
        "loads_numbers opens a file ('np.genfromtxt(__file__, dtype=str, max_rows=1, comments='\"')'): " + FILE,
    ),
    reads_the_hour: (1, f"reads_the_hour reads the clock ('datetime.datetime.now()'): {TIME}"),
    writes_the_hour: (
        1,
        "writes_the_hour reads the date ('time.strftime(\"%H\")'): the date is that of tracing, and a constant from "
        "then on; pass it as an argument, or say freeze=True to keep that date",
    ),
    asks_whether_a_file_exists: (
        1,
        f"asks_whether_a_file_exists asks for a file or a folder ('os.path.exists(__file__)'): {PATH}",
    ),
    asks_a_path: (1, f"asks_a_path asks for a file or a folder ('Path(__file__).exists()'): {PATH}"),
    asks_for_the_size: (1, f"asks_for_the_size asks for a file or a folder ('os.stat(__file__)'): {PATH}"),
    asks_for_the_folder: (1, f"asks_for_the_folder asks for a file or a folder ('os.getcwd()'): {PATH}"),
    reads_the_environment: (
        1,
        'reads_the_environment reads the environment (\'os.environ.get("SYMAD_NOWHERE", "2")\'): the variable is read '
        "while the function is traced, and a constant from then on; pass its value as an argument, or say freeze=True "
        "to keep what was read",
    ),
    counts: (2, f"counts changes what it reads (SEEN): {STATE}"),
    counts_in_a_global: (3, f"counts_in_a_global changes what it reads (COUNT): {STATE}"),
    has_a_mutable_default: (2, f"has_a_mutable_default changes what it reads (a list): {STATE}"),
    takes_the_next: (1, f"takes_the_next changes what it reads (an iterator): {STATE}"),
}

WAYS: dict[str, Callable[..., Any]] = {
    "compile": lambda f, **options: sa.compile(f, 1.0, **options),
    "compile a gradient": lambda f, **options: sa.compile(sa.grad(f), 1.0, **options),
    "jit": lambda f, **options: sa.jit(f, **options)(1.0),
    "trace": lambda f, **options: sa.trace(f, 1.0, **options),
    "plan": lambda f, **options: sa.plan(f, 1.0, **options),
    "straight lines": lambda f, **options: sa.compile(f, 1.0, roll="never", **options),
}


def told(make: Callable[[], Any]) -> list[warnings.WarningMessage]:
    """What is told where every warning is shown."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        make()
    return shown


def named(value: Any) -> str:
    return value.__name__ if callable(value) else ""


@pytest.mark.parametrize("function", FROZEN, ids=named)
def test_each_case_is_told_with_its_line(function: Callable[..., Any]) -> None:
    (found,) = told(lambda: WAYS["compile"](function))
    line, message = FROZEN[function]
    assert str(found.message) == message
    assert found.category is sa.errors.FrozenValueWarning
    assert (found.filename, found.lineno) == (__file__, function.__code__.co_firstlineno + line)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("function", [draws, reads_the_clock, reads_a_file, reads_the_environment, counts], ids=named)
def test_every_way_tells(function: Callable[..., Any], way: str) -> None:
    assert [str(each.message) for each in told(lambda: WAYS[way](function))] == [FROZEN[function][1]]


@pytest.mark.parametrize("function", FROZEN, ids=named)
def test_freeze_quiets_it(function: Callable[..., Any]) -> None:
    for make in WAYS.values():
        assert told(lambda make=make: make(function, freeze=True)) == []  # type: ignore[misc]


def test_it_is_told_once() -> None:
    """Python shows a warning once for each line: what `jit` compiles again for other shapes is not told again."""

    def scaled(x):
        return x * np.random.rand()

    kernel = sa.jit(scaled)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        for size in (2, 3, 4):
            kernel(np.ones(size))
    assert len(shown) == 1


def test_warnings_as_errors_stop_the_compilation() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sa.errors.FrozenValueWarning)
        with pytest.raises(sa.errors.FrozenValueWarning, match="draws draws a random number"):
            sa.compile(draws, 1.0)


def test_a_helper_in_another_function_is_told_with_its_own_line() -> None:
    class Noise:
        def __init__(self) -> None:
            self.generator = np.random.default_rng(1)

        def __call__(self, x: Any) -> Any:
            return x + self.sample()

        def sample(self) -> float:
            return float(self.generator.normal())

    (found,) = told(lambda: sa.compile(Noise(), 1.0))
    assert str(found.message).startswith("Noise draws a random number: it is drawn")


def test_a_choice_by_chance_is_told() -> None:
    """The trace may be the same the second time, but another number was drawn."""

    def flips(x):
        return x if GENERATOR.random() < 2.0 else -x

    (found,) = told(lambda: sa.compile(flips, 1.0))
    assert "flips draws a random number" in str(found.message)


def test_draws_in_arrays_and_loops_are_told() -> None:
    def noisy(x):
        return np.sum(np.sin(x) * time.perf_counter())

    def repeated(x):
        return sa.sum_over(lambda part: part * time.perf_counter(), x)

    for function in (noisy, repeated):
        (found,) = told(lambda function=function: sa.compile(function, np.ones(1000)))  # type: ignore[misc]
        assert "reads the clock ('time.perf_counter()')" in str(found.message)


# What is left alone.

CACHE: dict[str, Any] = {}
MODEL_CALLS = [0]
LOG = logging.getLogger("test_frozen_values")


def draws_with_a_seed(x):
    return x * np.random.default_rng(3).normal() + x * random.Random(4).random()


def seeds_before_it_draws(x):
    np.random.seed(5)
    random.seed(6)
    return x * np.random.rand() * random.random()


def measures_how_long_it_takes(x):
    start = time.perf_counter()
    value = np.sin(x)
    CACHE["seconds"] = time.perf_counter() - start
    return value


def stops_when_it_is_late(x):
    if time.monotonic() > 1e12:
        raise TimeoutError
    return x * x


def keeps_results(x):
    if "table" not in CACHE:
        CACHE["table"] = [1.0, 2.0]
    return x * CACHE["table"][1]


def loads_once(x):
    if "lines" not in CACHE:
        with open(__file__) as file:
            CACHE["lines"] = float(len(file.readline()))
    return x * CACHE["lines"]


def counts_its_calls(x):
    MODEL_CALLS[0] += 1
    return x * x


def logs(x):
    LOG.info("x")
    LOG.warning("at %s", 1)
    return x * x


@functools.cache
def table():
    return 3.0


def has_a_cached_helper(x):
    return x * table()


def imports_inside(x):
    import colorsys  # noqa: PLC0415 - the case itself

    return x * len(colorsys.__name__)


def names_things(x):
    CACHE[uuid.uuid4().hex] = 1
    return x * x


def has_its_own_iterator(x):
    return sum(x * k for k in itertools.islice(itertools.count(), 3))


def reads_the_time_that_it_is_given(x):
    return x * time.localtime(0).tm_year + datetime.datetime(2020, 1, 1).year


def changes_its_own_list(x):
    parts = []
    for k in range(3):
        parts.append(x * k)
    return sum(parts)


def prints(x):
    print("x", end="", file=sys.stderr)
    return x


class Odd:
    """An object that answers questions for its attributes by errors of its own, as pydantic's do."""

    scale = 2.0
    __slots__ = ()

    def __getattr__(self, name):
        raise RuntimeError(name) if name == "__dict__" else AttributeError(name)


ODD = Odd()
LIBRARY = ctypes.CDLL(None)
WRITE = Odd.__dict__["scale"].__add__  # a method of C's, of no module


class Adding(list):
    """A list that answers `+` with lists from the right, as pandas' lists of names do."""

    def __radd__(self, other):
        return Adding(list.__add__(self, other))


NAMES = Adding([ODD])


def reaches_odd_objects(x):
    return x * NAMES[0].scale + WRITE(1.0) + (0 if isinstance(LIBRARY, ctypes.CDLL) else 1)


QUIET = [
    draws_with_a_seed, seeds_before_it_draws, measures_how_long_it_takes, stops_when_it_is_late, keeps_results,
    loads_once, counts_its_calls, logs, has_a_cached_helper, imports_inside, names_things, has_its_own_iterator,
    reads_the_time_that_it_is_given, changes_its_own_list, prints, reaches_odd_objects,
]  # fmt: skip


@pytest.mark.parametrize("function", QUIET, ids=named)
def test_ordinary_code_is_left_alone(function: Callable[..., Any]) -> None:
    assert told(lambda: sa.compile(function, 1.0)) == []


@pytest.mark.parametrize("function", [np.sin, lambda x: x @ x, sa.hessian(lambda x: (x**3).sum())])
def test_what_has_no_such_word_runs_once(function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> noting_inputs:
        raise AssertionError("it was traced once more")

    monkeypatch.setattr(stale_values, "noting_inputs", never)
    assert not ReachableState(function).effects
    sa.compile(function, np.ones(2))


def test_a_profiler_of_the_users_is_left_as_it_was() -> None:
    def profile(frame: Any, event: str, value: Any) -> None:
        pass

    sys.setprofile(profile)
    try:
        shown = told(lambda: sa.compile(draws, 1.0))
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(None)
    assert re.match("draws draws a random number", str(shown[0].message))


def test_gradients_of_numbers_keep_nothing() -> None:
    gradient = sa.grad(draws)
    assert len({gradient(2.0) for _ in range(4)}) == 4


# jit notices what has changed.

SCALE = 2.0
SETTINGS = {"scale": 2.0}


class Model:
    scale = 2.0


MODEL = Model()


def test_jit_notices_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    factor = 2.0
    held = np.array([2.0])
    kernels = [
        sa.jit(f)
        for f in (
            lambda x: x * SCALE,
            lambda x: x * SETTINGS["scale"],
            lambda x: x * MODEL.scale,
            lambda x: x * factor,
            lambda x: x * held[0],
        )
    ]
    assert [kernel(1.5) for kernel in kernels] == [3.0] * 5
    monkeypatch.setitem(globals(), "SCALE", 4.0)
    monkeypatch.setitem(SETTINGS, "scale", 4.0)
    monkeypatch.setattr(MODEL, "scale", 4.0, raising=False)
    factor, held[0] = 4.0, 4.0
    assert [kernel(1.5) for kernel in kernels] == [6.0] * 5


class Drawn:
    def __init__(self):
        self.weight = np.random.default_rng(3).normal()


DRAWN = Drawn()


def test_what_has_made_an_object_is_not_run_again():
    assert not ReachableState(lambda x: x * DRAWN.weight).effects
    assert ReachableState(lambda x: x * Drawn().weight).effects
