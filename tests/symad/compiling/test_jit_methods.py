"""`jit` on methods: the object is a static argument, compared at each call, and not kept alive."""

from __future__ import annotations

import gc
import weakref
from collections import UserDict
from dataclasses import dataclass

import numpy as np
import pytest

import symad as sa
from symad.compiling import native


class Model:
    scale = 1.0

    def __init__(self, a):
        self.a = a

    @sa.jit
    def value(self, x, squared=True):
        """Return a multiple of x."""
        return self.scale * self.helper(x * x if squared else x)

    def helper(self, x):
        return self.a * x

    @classmethod
    @sa.jit
    def of_class(cls, x):
        return cls.scale * x * x

    @staticmethod
    @sa.jit
    def of_nothing(x):
        return x * x

    @sa.jit
    def __call__(self, x):
        return np.sum(self.a * x)


class Half(Model):
    scale = 0.5

    @sa.jit
    def value(self, x):
        return super().value(x) + 1.0


@pytest.fixture
def compiled(monkeypatch):
    """How often a function was compiled."""
    calls, compile = [], native.compile
    monkeypatch.setattr(native, "compile", lambda *args, **options: calls.append(1) or compile(*args, **options))
    return calls


def test_each_object_has_kernels_of_its_own(compiled) -> None:
    one, other = Model(2.0), Model(np.array([3.0, 4.0]))
    assert (one.value(3.0), one.value(4.0), one.value(x=5.0)) == (18.0, 32.0, 50.0)
    assert len(compiled) == 1
    assert other.value(2.0).tolist() == [12.0, 16.0]
    assert one.value(3.0) == 18.0
    assert len(compiled) == 2
    assert (one.value(3.0, False), one(np.array([1.0, 2.0]))) == (6.0, 6.0)
    assert Model.value(one, 3.0) == 18.0


def test_what_the_object_holds_may_change() -> None:
    model = Model(2.0)
    assert model.value(3.0) == 18.0
    model.a = 5.0
    assert model.value(3.0) == 45.0
    model.a = np.array([1.0, 2.0])
    assert model.value(3.0).tolist() == [9.0, 18.0]
    model.a[0] = 7.0
    assert model.value(3.0).tolist() == [63.0, 18.0]
    model.scale = 2.0
    assert model.value(3.0).tolist() == [126.0, 36.0]
    model.helper = lambda x: x
    assert model.value(3.0) == 18.0
    model.__dict__ = {"a": 1.0}
    assert model.value(3.0) == 9.0
    model.__class__ = Half
    assert model.value(3.0) == 5.5


def test_the_class_may_change(monkeypatch) -> None:
    model = Model(2.0)
    assert model.value(3.0) == 18.0
    monkeypatch.setattr(Model, "scale", 2.0)
    assert model.value(3.0) == 36.0
    monkeypatch.setattr(Model, "helper", lambda self, x: -x)
    assert model.value(3.0) == -18.0


def test_classes_and_what_is_below_them() -> None:
    assert (Model.of_class(3.0), Half.of_class(3.0), Model(1.0).of_class(3.0)) == (9.0, 4.5, 9.0)
    assert (Model.of_nothing(3.0), Half(1.0).of_nothing(2.0)) == (9.0, 4.0)
    assert (Half(2.0).value(3.0), Model(2.0).value(3.0)) == (10.0, 18.0)


def test_a_method_is_differentiated_as_if_it_were_not_jitted() -> None:
    model = Model(2.0)
    assert sa.grad(model.value)(3.0) == 12.0
    assert sa.compile(sa.derivative(model.value, 2), 3.0)(1.0) == 4.0


def test_objects_are_not_kept_alive() -> None:
    model = Model(np.ones(3))
    model.value(2.0), model(np.ones(3))
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_an_object_that_leads_back_to_itself_is_kept_for_a_while() -> None:
    def used():
        model = Model(2.0)
        model.parts = [model]
        assert model.value(3.0) == 18.0
        return weakref.ref(model)

    first = used()
    later = [used() for _ in range(native.KERNELS)]
    gc.collect()
    assert first() is None
    assert all(each() is not None for each in later)


def test_a_dataclass_is_an_argument_like_others(compiled) -> None:
    @dataclass
    class Line:
        slope: float

        @sa.jit
        def at(self, x):
            return self.slope * x

    assert (Line(2.0).at(3.0), Line(3.0).at(3.0)) == (6.0, 9.0)
    assert len(compiled) == 1


class Slots:
    __slots__ = ("__weakref__", "a")

    def __init__(self, a):
        self.a = a

    @sa.jit
    def value(self, x):
        return self.a * x


class Named(Slots):  # which has a __dict__ beside the slot
    pass


class Table(UserDict):
    @sa.jit
    def value(self, x):
        return self["a"] * x


class Dictionary(dict):
    @sa.jit
    def value(self, x):
        return self["a"] * x


def test_objects_whose_state_cannot_be_compared_are_refused() -> None:
    for model in (Slots(2.0), Named(2.0), Dictionary(a=2.0)):
        with pytest.raises(sa.errors.ArgumentError, match=r"jit\(object.value\)"):
            model.value(3.0)
        assert sa.grad(model.value)(3.0) == 2.0
        bound = sa.jit(model.value)
        assert bound(3.0) == 6.0
        if isinstance(model, Slots):
            model.a = 4.0
        else:
            model["a"] = 4.0
        assert bound(3.0) == 12.0
    table = Table(a=2.0)
    assert table.value(3.0) == 6.0
    table["a"] = 4.0
    assert table.value(3.0) == 12.0


def test_names_of_a_jitted_method() -> None:
    assert Model.value.__doc__ == "Return a multiple of x."
    assert Model.value.__name__ == "value"


def test_an_unknown_option_is_refused_where_it_is_given() -> None:
    with pytest.raises(sa.errors.ArgumentError, match="did you mean accuracy"):
        sa.jit(acuracy="fast")
