"""After a change of what a function reads, gradients and kernels are those of the changed function, or jit has warned.

Side effects are those of plain calls: each call of a gradient on numbers has them.
"""

from __future__ import annotations

import math
import sys
import types
import warnings
from typing import Any

import numpy as np
import pytest

import symad as sa
from symad.reach.reachable_state import ReachableState, reached_functions
from tests.support.state_changes import made, of_grad, of_jit, rows, rows_of

ROWS = rows()


def test_there_are_enough_rows() -> None:
    assert len(ROWS) > 500


@pytest.mark.thinned
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ROWS)
def test_a_gradient_on_numbers_is_fresh(name: str) -> None:
    assert of_grad(name, ROWS[name]) == "fresh"


@pytest.mark.thinned
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ROWS)
def test_a_kernel_is_fresh_or_has_warned(name: str) -> None:
    assert of_jit(name, ROWS[name]) in ("fresh", "warned")


# Each defines f(x), which is x**2, and seen(), which counts what f did.
EFFECTS = rows_of("side_effects.txt")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EFFECTS)
def test_side_effects_are_those_of_plain_calls(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    text = EFFECTS[name] + "\ndef change(): pass"
    f, *_ = made(name, text)
    plain = vars(sys.modules[f.__module__])["seen"]
    for k in range(6):
        f(1.0 + k)
    expected = plain()
    g, *_ = made(name, text)
    seen = vars(sys.modules[g.__module__])["seen"]
    gradient = sa.grad(g)
    for k in range(6):
        gradient(1.0 + k)
    assert seen() == expected


# Objects that lie, and what is too much.


class Liar:
    """An object that answers all questions by errors."""

    def __init__(self) -> None:
        object.__setattr__(self, "k", 2.0)

    def __getattribute__(self, name: str) -> Any:
        if name == "k":
            return object.__getattribute__(self, "k")
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("asked whether it is equal")

    def __hash__(self) -> int:
        raise RuntimeError("asked for a hash")


class Pretender:
    """An object that says it is a float."""

    k = 2.0
    __class__ = float  # type: ignore[assignment]


class HashlessMeta(type):
    def __hash__(cls) -> int:
        raise RuntimeError("asked for a hash")

    def __eq__(cls, other: object) -> bool:
        raise RuntimeError("asked whether it is equal")


class OfHashless(metaclass=HashlessMeta):
    k = 2.0


def hidden_dict() -> Any:
    class P:
        k = 2.0
        __dict__ = property(lambda self: {"k": 3.0})  # type: ignore[assignment]

    return P()


@pytest.mark.parametrize("make", [Liar, Pretender, OfHashless, hidden_dict], ids=lambda make: make.__name__)
def test_objects_that_lie_are_read_by_pythons_own_rules(make: Any) -> None:
    liar = make()
    gradient = sa.grad(lambda x: liar.k * x**2)
    assert [gradient(1.0) for _ in range(3)] == [4.0] * 3
    if make is Liar:
        object.__setattr__(liar, "k", 5.0)
    elif make is OfHashless:
        OfHashless.k = 5.0
    else:
        type(liar).k = 5.0
    try:
        assert gradient(1.0) == 10.0
    finally:
        OfHashless.k = Pretender.k = 2.0


class Unasked(dict):  # type: ignore[type-arg]
    """A dict that cannot be looped over, asked for its keys, or measured."""

    __iter__ = __len__ = keys = values = items = property(lambda self: 1 / 0)  # type: ignore[assignment]

    def __init__(self) -> None:
        dict.__init__(self, k=2.0)

    @property
    def k(self) -> Any:
        return self["k"]


WAYS = {
    "jit": lambda f: sa.jit(f)(1.0),
    "compile": lambda f: sa.compile(f, 1.0)(1.0),
    "gradient": lambda f: sa.compile(sa.grad(f), 1.0)(1.0) / 2.0,
    "loop": lambda f: sa.compile(lambda x: sa.sum_over(f, x), np.ones(3))(np.ones(3)) / 3.0,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [Liar, Pretender, OfHashless, hidden_dict, Unasked], ids=lambda make: make.__name__)
def test_objects_that_lie_are_read_in_kernels(make: Any, way: str) -> None:
    liar = make()
    assert WAYS[way](lambda x: liar.k * x**2) == 2.0


def test_a_chain_of_a_hundred_thousand_objects_is_too_much() -> None:
    first: list[Any] = []
    for _ in range(100_000):
        first = [first]
    (obstacle,) = ReachableState(lambda x: first).unknown
    assert obstacle.reason == "more than 10,000 objects (the variable first)"


def test_a_million_numbers_are_too_much() -> None:
    numbers = [float(k) for k in range(1_000_000)]
    assert ReachableState(lambda x: numbers[3] * x).unknown
    gradient = sa.grad(lambda x: numbers[3] * x)
    assert [gradient(1.0) for _ in range(3)] == [3.0] * 3
    numbers[3] = 5.0
    assert gradient(1.0) == 5.0


def test_what_leads_back_to_itself_ends() -> None:
    box = types.SimpleNamespace(k=2.0)
    box.me, box.all = box, [box, {"box": box}]
    state = ReachableState(lambda x: box.me.all[1]["box"].k * x)
    assert not state.unknown
    box.k = 3.0
    assert not state.unchanged()


async def coroutine() -> float:
    return 2.0


def test_coroutines_are_unknown() -> None:
    waiting = coroutine()
    try:
        assert ReachableState(lambda x: waiting).unknown
    finally:
        waiting.close()


def test_all_answers_of_numbers_are_asked_again() -> None:
    """A trace is taken again where every condition has the answer that it had, and not only the first."""

    def f(x: Any) -> Any:
        s = np.sum(x * x)
        s = s * 2 if x[0] > 0 else s
        return s * 3 if x[1] > 0 else s

    gradient = sa.grad(f)
    for _ in range(4):
        np.testing.assert_array_equal(gradient(np.array([1.0, 1.0, 1.0])), [12.0, 12.0, 12.0])
    np.testing.assert_array_equal(gradient(np.array([1.0, -1.0, 1.0])), [4.0, -4.0, 4.0])


def test_jit_warns_once_with_the_line_and_the_way_out() -> None:
    def f(x: Any) -> Any:
        return x * globals()["math"].pi

    kernel = sa.jit(f)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert kernel(1.0) == math.pi
        kernel(np.ones(2))
    (warning,) = told
    assert warning.category is sa.errors.UnknownStateWarning
    assert "f reads what jit cannot compare: the builtin globals" in str(warning.message)
    assert (warning.filename, warning.lineno) == (__file__, f.__code__.co_firstlineno + 1)
    assert "freeze=True, or use symad.compile" in str(warning.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sa.jit(f, freeze=True)(1.0)


def test_ordinary_classes_are_known_by_what_code_asks_of_them() -> None:
    class Model:
        def __init__(self, k: float) -> None:
            self.k, self.log = k, open  # an attribute that no code here asks for

        def energy(self, x: Any) -> Any:
            return self.k * x**2

        def save(self, name: str) -> None:
            with open(name, "w", encoding="utf-8") as file:
                file.write(repr(self))

    state = ReachableState(Model(2.0).energy)
    assert not state.unknown
    assert not state.effects
    assert ReachableState(lambda x: Model(2.0).save(x)).effects


def test_functions_of_the_users_are_found() -> None:
    class Model:
        def energy(self, x: Any) -> Any:
            return self._part(x)

        def _part(self, x: Any) -> Any:
            return np.sin(x)

    def handled(x: Any) -> Any:
        return x

    table = {"handled": handled}
    functions, complete = reached_functions(lambda x: Model().energy(table["handled"](x)))
    assert complete
    assert {Model.energy, Model._part, handled} <= set(functions)
    assert not reached_functions(lambda x: globals()["f"](x))[1]
