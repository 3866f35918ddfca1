"""`jit` compiles again where it would answer wrongly: for static parts that are equal, not the same, and changes."""

from __future__ import annotations

import contextlib
import copy
import enum
import math
import sys
import types
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import symad as sa
from symad.compiling import native
from symad.errors import ArgumentError
from symad.reach.strict_key import StrictKey, same

FACTOR = 2.0
SETTINGS = types.SimpleNamespace(scale=1.0)
TABLE = np.arange(3.0)


@dataclass
class Model:
    x: float
    kind: Any = field(metadata={"static": True})


@dataclass(frozen=True)
class Config:
    order: int
    name: str = "a"


class Yes:
    """Equal to all of its kind."""

    def __init__(self, k: float) -> None:
        self.k = k

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Yes)

    def __hash__(self) -> int:
        return 1


class Text(str):
    pass


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


def agree(f: Any, *calls: tuple[Any, ...]) -> None:
    """A jitted function gives what the function gives, in any order of calls."""
    for order in (calls, calls[::-1]):
        jitted = sa.jit(f)
        for args in order * 2:
            assert jitted(*args) == f(*args), args


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was compiled."""
    made: list[Any] = []
    compile_now = native.compile

    def noted(f: Any, *args: Any, **options: Any) -> Any:
        made.append(f)
        return compile_now(f, *args, **options)

    monkeypatch.setattr(native, "compile", noted)
    return made


@pytest.mark.parametrize(
    ("one", "other", "asked"),
    [
        (2, 2.0, lambda kind: isinstance(kind, float)),
        (1, True, lambda kind: kind is True),
        (True, np.True_, lambda kind: kind is True),
        (0.0, -0.0, lambda kind: math.copysign(1.0, kind) > 0),
        ((1, 0.0), (True, -0.0), lambda kind: kind[0] is True),
        ((0.0,), (-0.0,), lambda kind: math.copysign(1.0, kind[0]) > 0),
        (np.float64(1.0), np.float32(1.0), lambda kind: isinstance(kind, np.float32)),
        (1.0, np.float64(1.0), lambda kind: type(kind) is float),
        (1, Level.LOW, lambda kind: isinstance(kind, Level)),
        ("a", Text("a"), lambda kind: isinstance(kind, Text)),
        (Decimal("1.0"), Decimal("1.00"), lambda kind: str(kind) == "1.0"),
        (Config(1), Config(True), lambda kind: kind.order is True),
        (Yes(1.0), Yes(2.0), lambda kind: kind.k == 1.0),
        (frozenset({1}), frozenset({True}), lambda kind: True in kind and all(type(part) is bool for part in kind)),
    ],
)
def test_static_parts_that_are_equal_and_not_the_same(one: Any, other: Any, asked: Any) -> None:
    assert one == other
    agree(lambda m: m.x * 10 if asked(m.kind) else m.x, (Model(1.0, one),), (Model(1.0, other),))
    kernel = sa.compile(lambda m: m.x, Model(1.0, one))
    with pytest.raises(ArgumentError, match="arguments of structure"):
        kernel(Model(1.0, other))


def test_static_parts_that_are_the_same_share_a_kernel(compiled: list[Any]) -> None:
    jitted = sa.jit(lambda m: m.x * m.kind.order)
    assert [jitted(Model(2.0, Config(3, f"{'na' * 2}"))) for _ in range(3)] == [6.0] * 3
    jitted = sa.jit(lambda m: m.x)
    assert [jitted(Model(2.0, float("nan"))) for _ in range(3)] == [2.0] * 3
    assert len(compiled) == 2


def test_a_static_object_that_was_mutated() -> None:
    jitted, model = sa.jit(lambda m: m.x * m.kind.k), Model(1.0, Yes(2.0))
    assert jitted(model) == 2.0
    model.kind.k = 5.0
    assert jitted(model) == 5.0


def test_registered_containers_too() -> None:
    class Line:
        def __init__(self, slope: Any, power: Any) -> None:
            self.slope, self.power = slope, power

    sa.register_container(Line, lambda line: ([line.slope], line.power), lambda power, parts: Line(parts[0], power))
    agree(lambda line: line.slope * (10 if isinstance(line.power, float) else 1), (Line(1.0, 2),), (Line(1.0, 2.0),))
    jitted, line = sa.jit(lambda line: line.slope * line.power.k), Line(1.0, Yes(2.0))
    assert jitted(line) == 2.0
    line.power.k = 5.0
    assert jitted(line) == 5.0


def test_containers_and_their_order() -> None:
    agree(lambda v: v[0] if isinstance(v, list) else 2 * v[0], ([1.0],), ((1.0,),))
    agree(lambda d: next(iter(d.values())) * 1.0, ({"a": 1.0, "b": 2.0},), ({"b": 2.0, "a": 1.0},))
    agree(lambda d: d[0]["p"] - 2 * next(iter(d[0].values())), ([{"p": 1.0, "q": 2.0}],), ([{"q": 2.0, "p": 1.0}],))
    agree(lambda d: 1.0 * d[1] if all(type(key) is int for key in d) else 2.0 * d[1], ({1: 1.0},), ({True: 1.0},))
    agree(lambda d: math.copysign(1.0, next(iter(d))) * d[0.0], ({0.0: 1.0},), ({-0.0: 1.0},))
    agree(lambda d: sum(d.values()) * 1.0, ({math.nan: 1.0},), ({float("nan"): 2.0},))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (True, "a truth value has no derivative"),
        (np.True_, "a truth value has no derivative"),
        (Level.LOW, "an enumeration is no number"),
        ("1", "a text is no number"),
        (type("Angle", (float,), {})(1.0), "its class may redefine arithmetic"),
        (type("Count", (int,), {})(1), "its class may redefine arithmetic"),
        (np.ones(1).view(type("Tagged", (np.ndarray,), {})), "its class may redefine arithmetic"),
        (np.ma.array([1.0]), "its class may redefine arithmetic"),
        (np.array([True]), "its dtype is bool"),
    ],
)
def test_what_is_no_plain_number_is_refused_after_one_too(value: Any, why: str) -> None:
    jitted = sa.jit(lambda x: x * 2.0 if x is not True else x)
    jitted(1.0)
    jitted(np.ones(1))
    with pytest.raises(ArgumentError, match=why):
        jitted(value)
    with pytest.raises(ArgumentError, match=why):
        sa.grad(lambda x: np.sum(x))(value)


def test_truth_values_and_enumerations_beside_numbers_are_static(compiled: list[Any]) -> None:
    def f(x: Any, flag: Any, level: Any = Level.LOW) -> Any:
        return (2 * x if flag is True else 3 * x) + (100 if level is Level.LOW else 0)

    jitted = sa.jit(f)
    assert [jitted(1.0, True), jitted(1.0, False), jitted(2.0, True), jitted(1.0, 1)] == [102.0, 103.0, 104.0, 103.0]
    assert len(compiled) == 3
    assert jitted(1.0, flag=False, level=Level.HIGH) == 3.0
    gradient = sa.jit(sa.grad(f))
    assert (gradient(1.0, True), gradient(1.0, False), gradient(1.0, 1.0)) == (2.0, 3.0, 3.0)
    assert sa.grad(lambda x: jitted(x, True) * x)(1.0) == 104.0


def test_numbers_of_any_type_are_floats(compiled: list[Any]) -> None:
    jitted = sa.jit(lambda x: x / 3)
    assert [jitted(number) for number in (1, 1.0, np.float64(1), np.float32(1), np.int64(1))] == [1 / 3] * 5
    assert len(compiled) == 1


def helper(x: Any) -> Any:
    return x * FACTOR


def test_a_global_that_changed(monkeypatch: pytest.MonkeyPatch, compiled: list[Any]) -> None:
    jitted, gradient = sa.jit(lambda x: helper(x) * SETTINGS.scale), sa.jit(sa.grad(lambda x: helper(x) * x))
    assert (jitted(1.0), jitted(1.0), gradient(1.0)) == (2.0, 2.0, 4.0)
    assert len(compiled) == 2
    monkeypatch.setitem(globals(), "FACTOR", 7.0)
    assert (jitted(1.0), gradient(1.0)) == (7.0, 14.0)
    monkeypatch.setattr(SETTINGS, "scale", -0.0)
    assert math.copysign(1.0, jitted(1.0)) == -1.0
    monkeypatch.setattr(SETTINGS, "scale", 0.0)
    assert math.copysign(1.0, jitted(1.0)) == 1.0
    monkeypatch.setitem(globals(), "helper", lambda x: 3 * x + FACTOR)
    assert gradient(1.0) == 13.0
    monkeypatch.setattr(SETTINGS, "scale", 1.0)
    assert jitted(1.0) == 10.0
    monkeypatch.setitem(globals(), "abs", lambda x: 100.0)
    assert jitted(1.0) == 10.0


def test_a_name_that_was_not_bound_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    jitted = sa.jit(lambda x: x * abs(-2.0))
    assert jitted(1.0) == 2.0
    monkeypatch.setitem(globals(), "abs", lambda x: 100.0)
    assert jitted(1.0) == 100.0


def test_an_array_that_changed(compiled: list[Any]) -> None:
    jitted = sa.jit(lambda x: np.sum(TABLE * x))
    assert (jitted(1.0), jitted(2.0)) == (3.0, 6.0)
    assert len(compiled) == 1
    try:
        TABLE[1] = 5.0
        assert jitted(1.0) == 7.0
    finally:
        TABLE[1] = 1.0


def test_an_array_that_is_read_only_and_shows_another(compiled: list[Any]) -> None:
    owner = np.array([1.0, 2.0, 3.0])
    shown, fixed = owner[1:], np.array([5.0, 7.0])
    shown.flags.writeable = fixed.flags.writeable = False
    f = sa.jit(lambda x: np.sum(x * shown * fixed))
    assert f(1.0) == 31.0
    owner[1] = 4.0
    assert f(1.0) == 41.0 == f(1.0)
    assert len(compiled) == 2


def test_variables_around_the_function_that_changed() -> None:
    scale, weights, table = 2.0, [3.0], {"k": 5.0}
    jitted = sa.jit(lambda x: x * scale * weights[0] * table["k"])
    assert jitted(1.0) == 30.0
    scale = 1.0
    assert jitted(1.0) == 15.0
    weights[0] = 1.0
    assert jitted(1.0) == 5.0
    table["k"] = 7.0
    assert jitted(1.0) == 7.0


def test_a_function_that_was_edited() -> None:
    """As autoreload does: the function stays, with another text."""

    def f(x: Any, power: int = 2) -> Any:
        return x**power

    def g(x: Any, power: int = 2) -> Any:
        return 10 * x**power

    jitted = sa.jit(f)
    assert jitted(3.0) == 9.0
    f.__code__ = g.__code__
    assert jitted(3.0) == 90.0
    f.__defaults__ = (3,)
    assert jitted(3.0) == 270.0


def test_a_method_whose_object_or_class_changed() -> None:
    class Spring:
        exponent = 2

        def __init__(self, k: float) -> None:
            self.k = k

        def energy(self, x: Any) -> Any:
            return self.k * x**self.exponent

    spring = Spring(1.0)
    jitted = sa.jit(spring.energy)
    assert jitted(3.0) == 9.0
    spring.k = 2.0
    assert jitted(3.0) == 18.0
    Spring.exponent = 3
    assert jitted(3.0) == 54.0
    Spring.energy = lambda self, x: x + 1  # type: ignore[method-assign]
    assert sa.jit(spring.energy)(3.0) == 4.0


def test_functions_behind_decorators_of_libraries() -> None:
    scale = 2.0

    @contextlib.contextmanager
    def scaled(x: Any) -> Any:
        yield x * scale

    def f(x: Any) -> Any:
        with scaled(x) as found:
            return found

    jitted = sa.jit(f)
    assert jitted(1.0) == 2.0
    scale = 5.0
    assert jitted(1.0) == 5.0


def test_a_variable_that_is_gone() -> None:
    scale = 2.0

    def f(x: Any) -> Any:
        return x * scale

    jitted = sa.jit(f)
    assert jitted(1.0) == 2.0
    del f.__closure__[0].cell_contents  # type: ignore[index]
    with pytest.raises(NameError, match="scale"):
        jitted(1.0)


def test_classes_of_installed_packages_are_not_looked_into(compiled: list[Any]) -> None:
    jitted = sa.jit(lambda x: x * 2 if not isinstance(x, pytest.Session) else x)
    assert [jitted(1.0), jitted(1.0)] == [2.0, 2.0]
    assert len(compiled) == 1


def test_more_than_can_be_looked_at_is_told() -> None:
    many = [[k] for k in range(20_000)]
    with pytest.warns(sa.errors.UnknownStateWarning, match=r"reads what jit cannot compare: more than 10,000 objects"):
        assert sa.jit(lambda x: x * many[3][0])(1.0) == 3.0
    assert sa.compile(lambda x: x * many[3][0], 1.0)(1.0) == 3.0


def test_exactly() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    other: list[Any] = [1]
    other.append(other)
    assert same(loop, loop)
    assert not same(loop, other)  # it ends, and says no
    assert StrictKey((1, "a", None)) == StrictKey((1, "a", None))
    assert StrictKey(lambda: 1) != StrictKey(lambda: 1)
    assert same(np.array([math.nan, -0.0]), np.array([math.nan, -0.0]))
    assert not same(np.array([0.0]), np.array([-0.0]))
    assert not same(np.zeros(2), np.zeros(2, np.float32))
    assert not same(np.array([1, "a"], object), np.array([True, "a"], object))


def test_what_python_notes_in_a_class_compiles_nothing_again(compiled: list[Any]) -> None:
    class Kind:
        order = 3

    jitted = sa.jit(lambda m: m.x * m.kind.order)
    given = Model(2.0, Kind())
    assert jitted(given) == 6.0
    copy.copy(given.kind)
    assert "__slotnames__" in vars(Kind)
    assert Kind.__annotations__ == {}
    assert jitted(given) == 6.0
    assert len(compiled) == 1
    Kind.order = 4
    assert jitted(given) == 8.0


@pytest.mark.parametrize(
    ("function", "argument"),
    [
        (lambda x: math.sin(x) * x, 1.0),
        (lambda x: np.sin(x[0]) * x[1] * FACTOR, np.array([1.0, 2.0])),
        (lambda x, y: x @ y + FACTOR, np.array([1.0, 2.0])),
    ],
    ids=["number", "array", "two arrays"],
)
def test_a_call_asks_little(function: Any, argument: Any) -> None:
    """Of numbers and arrays: a kernel takes some 40 ns, and what jit asks before it half a microsecond."""
    given = [argument] * function.__code__.co_argcount
    jitted = sa.jit(function)
    jitted(*given)
    events: list[str] = []
    sys.setprofile(lambda frame, event, value: events.append(event))
    try:
        jitted(*given)
    finally:
        sys.setprofile(None)
    assert events.count("call") <= 5, events
    assert events.count("c_call") <= 10, events


def test_a_name_that_stands_for_an_equal_number_compiles_nothing_again(
    monkeypatch: pytest.MonkeyPatch, compiled: list[Any]
) -> None:
    jitted = sa.jit(lambda x: x * FACTOR)
    assert jitted(1.5) == 3.0
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", float("2.0"))  # another object
    assert (jitted(1.5), len(compiled)) == (3.0, 1)
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 4.0)
    assert (jitted(1.5), len(compiled)) == (6.0, 2)


def test_a_kernel_that_is_called_again_and_again_is_kept(compiled: list[Any]) -> None:
    jitted = sa.jit(lambda x: np.sum(x) * FACTOR)
    for size in range(1, 3 * native.KERNELS):
        assert jitted(np.ones(1)) == 2.0
        assert jitted(np.ones(size + 1)) == 2.0 * (size + 1)
    assert len(compiled) == 3 * native.KERNELS
    assert jitted(np.ones(2)) == 4.0
    assert len(compiled) == 3 * native.KERNELS + 1


def test_what_changed_and_changed_back(monkeypatch: pytest.MonkeyPatch) -> None:
    jitted, this = sa.jit(lambda x, n: x * n * FACTOR), sys.modules[__name__]
    for factor, numbers in ((2.0, (1, 1.0, np.float32(1))), (3.0, (1.0, np.int64(1))), (2.0, (np.float32(1), 1))):
        monkeypatch.setattr(this, "FACTOR", factor)
        assert [jitted(5.0, number) for number in numbers] == [5.0 * factor] * len(numbers)


def test_an_attribute_of_a_function_that_had_none(compiled: list[Any]) -> None:
    def factor(x: Any) -> Any:
        return x * getattr(factor, "by", 1.0)

    jitted = sa.jit(lambda x: factor(x))
    assert jitted(3.0) == 3.0
    factor.by = 2.0  # type: ignore[attr-defined]
    assert (jitted(3.0), len(compiled)) == (6.0, 2)
