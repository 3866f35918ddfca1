"""Data classes of ours do what those of `dataclasses` do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np
import pytest

from codegen import records

ours: Any = records.dataclass
WAYS = [dataclasses.dataclass, ours]
OPTIONS: list[dict[str, bool]] = [
    {}, {"frozen": True}, {"eq": False}, {"frozen": True, "eq": False}, {"slots": True}, {"repr": False},
    {"frozen": True, "slots": True}, {"frozen": True, "slots": True, "eq": False}, {"kw_only": True},
]  # fmt: skip


def made(way: Callable[..., Any], options: dict[str, bool]) -> Any:
    class Record:
        """A record."""

        first: Any
        second: list[int] = field(default_factory=list)
        third: float = 2.5
        silent: Any = field(default=None, repr=False, compare=False)
        late: Any = field(init=False, default=7)

        def __post_init__(self) -> None:
            object.__setattr__(self, "late", (self.first, self.third))

    return way(**options)(Record)


def told(call: Callable[[], Any]) -> Any:
    """Return what a call gives, or its error."""
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_they_do_what_those_of_dataclasses_do(options: dict[str, bool]) -> None:
    theirs, mine = (made(way, options) for way in WAYS)
    answers = []
    for kind in (theirs, mine):
        one, same, other = kind(first=1), kind(first=1, silent=4), kind(first=2, third=1.0)
        shown = repr(one) if options.get("repr", True) else ""
        calls: list[Callable[[], Any]] = [
            lambda one=one: hash(one) == hash((1, [], 2.5, (1, 2.5))), lambda kind=kind: kind(1, [2], 3.0, 4, 5), kind,
            lambda one=one: setattr(one, "first", 5), lambda one=one: delattr(one, "third"),
            lambda one=one: dataclasses.asdict(one),
            lambda one=one: dataclasses.replace(one, second=[3]).late, lambda one=one: copy.copy(one).late,
        ]  # fmt: skip
        answers.append([
            shown, one == same, one == other, one != same, one == 1, one.late, one.second is not same.second,
            [each.name for each in dataclasses.fields(one)], str(inspect.signature(kind)), kind.__match_args__,
            kind.__doc__, vars(kind)["__dataclass_params__"].frozen, hasattr(one, "__dict__"), kind.__hash__ is None,
            kind.__init__.__qualname__, *map(told, calls), one.first,
        ])  # fmt: skip
    assert answers[1] == answers[0]
    if options.get("frozen"):
        with pytest.raises(dataclasses.FrozenInstanceError, match="fourth"):  # theirs with slots is a bare TypeError
            mine(first=1).fourth = 5


@ours(frozen=True, slots=True)
class Slotted:
    """With slots."""

    a: int
    b: Any = None


@ours(frozen=True)
class Base:
    """A base."""

    a: int


@ours(frozen=True)
class Derived(Base):
    """With one field more."""

    b: int = 2

    def __repr__(self) -> str:
        return "its own"


def test_frozen_ones_with_slots_are_pickled_and_copied() -> None:
    one = Slotted(1, [2])
    assert pickle.loads(pickle.dumps(one)) == one
    assert copy.deepcopy(one) == one
    assert not hasattr(one, "__dict__")


def test_fields_are_inherited_and_methods_of_ones_own_stay() -> None:
    assert repr(Derived(1)) == "its own"
    assert (Derived(1).a, Derived(1).b) == (1, 2)
    assert Derived(1) != Base(1)
    assert hash(Derived(1)) == hash((1, 2))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Derived(1).a = 3
    theirs = dataclasses.dataclass(frozen=True)(type("Theirs", (Base,), {"__annotations__": {"c": "int"}, "c": 3}))
    assert theirs(1) == theirs(1, 3)
    with pytest.raises(TypeError, match="non-frozen"):
        ours(type("Thawed", (Base,), {"__annotations__": {"c": "int"}, "c": 3}))


def test_arrays_are_compared_as_members_of_tuples_are() -> None:
    array = np.arange(3.0)
    assert Base(array) == Base(array)  # the same object
    with pytest.raises(ValueError, match="ambiguous"):
        _ = Base(array) == Base(array.copy())


def test_what_holds_itself_is_shown() -> None:
    one = Slotted(1, [])
    one.b.append(one)
    assert repr(one) == "Slotted(a=1, b=[...])"
