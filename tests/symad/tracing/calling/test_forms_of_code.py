"""Forms of code in which conversions stand: each is traced as it is, and nothing of the user's changes meanwhile."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
import operator
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import symad as sa
from symad.errors import TraceError

SCALE = 1.5
TABLE = np.array([0.5, 1.0, 2.0, 4.0])
COUNTS = {"calls": 0}


def root(x):
    return math.sqrt(x)


class Model:
    """Methods, properties and operators that convert."""

    rate = 2.0

    def __init__(self, x):
        self.x = math.exp(x)

    @property
    def logarithm(self):
        return math.log(self.x)

    @functools.cached_property
    def sine(self):
        return math.sin(self.x)

    @classmethod
    def doubled(cls, x):
        return cls.rate * math.sin(x)

    @staticmethod
    def halved(x):
        return math.cos(x) / 2

    def __call__(self, x):
        return math.tanh(x) * self.x

    def __add__(self, other):
        return math.sin(self.x) + (other.x if isinstance(other, Model) else other)

    def __radd__(self, other):
        return other - math.cos(self.x)

    def __neg__(self):
        return math.atan(self.x)

    def __getitem__(self, key):
        return math.sin(self.x * key)

    def __len__(self):
        return 3

    def __iter__(self):
        for k in range(3):
            yield math.cos(self.x + k)

    def __lt__(self, other):
        return float(self.x) < float(other)

    def __getattr__(self, name):
        if name == "missing":
            return math.exp(-self.x)
        raise AttributeError(name)

    def __enter__(self):
        return math.sin(self.x)

    def __exit__(self, *_):
        return None


class Derived(Model):
    def __init__(self, x):
        super().__init__(2 * x)

    def __call__(self, x):
        return super().__call__(x) + 1.0


@dataclasses.dataclass
class Record:
    x: float
    y: float = 0.0

    def __post_init__(self):
        self.y = math.sin(self.x)


def decorated(f):
    @functools.wraps(f)
    def call(x):
        return math.sin(f(x))

    return call


@decorated
def squared(x):
    return float(x) ** 2


@functools.lru_cache(maxsize=8)
def memoized(x):
    return math.sin(x)


@functools.singledispatch
def kind(x):
    return math.sin(x)


@kind.register
def _(x: str):
    return 0.0


@contextlib.contextmanager
def scaled(x):
    yield math.exp(x)


def counting(x):
    global SCALE
    SCALE = SCALE * 1.0
    return math.sin(x) * SCALE


def generator(x) -> Iterator[float]:
    for k in range(3):
        yield math.sin(k * x)


def nonlocal_total(x):
    total = 0.0

    def add(value):
        nonlocal total
        total = total + math.sin(value)

    add(x)
    add(2 * x)
    return total


def with_context(x):
    with scaled(x) as value, Model(x) as other:
        return value * other


def matched(x):
    match [x, 1.0]:
        case [first, 1.0]:
            return math.sin(first)
        case _:
            return 0.0


def in_a_class_body(x):
    class Inner:
        value = math.sin(x)

    return Inner.value


def imported(x):
    from math import atan2  # noqa: PLC0415 - what is tested

    return atan2(x, 2.0)


def starred(x):
    arguments, names = [x, 2.0], {"abs_tol": 1.0}
    return math.atan2(*arguments) * (1.0 + math.isclose(1.0, 1.5, **names))


def in_a_dict_of_functions(x):
    return {"sin": math.sin, "root": root}["root"](x) + [math.cos, root][0](x)


def keys_are_functions(x):
    return {root: 3.0, math.sin: 4.0}[root] * math.sin(x) + {root: 3.0}.get(root, 100.0)


def hands_objects_back(x):
    model, kept = Model(x), [None]
    operator.setitem(kept, 0, model)
    others = getattr(model, "nowhere", model), next(iter([]), model), kept[0]
    return model + 2.0 if all(type(other) is Model for other in others) else 100.0


def is_itself(x):
    functions = {"root": root}
    return math.sin(x) if functions["root"] is root and root in [root] else 100.0


FORMS = {
    "function": lambda x: math.sin(x),
    "helper": lambda x: root(x) * 2,
    "builtin": lambda x: float(x) * int(2.5),
    "method": lambda x: Model(x).doubled(x),
    "static": lambda x: Model.halved(x),
    "init": lambda x: Model(x).x,
    "property": lambda x: Model(x).logarithm,
    "cached property": lambda x: Model(x).sine,
    "call": lambda x: Model(x)(x),
    "super": lambda x: Derived(x)(x),
    "add": lambda x: Model(x) + 2.0,
    "both": lambda x: Model(x) + Model(2 * x),
    "reflected": lambda x: 2.0 + Model(x),
    "negative": lambda x: -Model(x),
    "item": lambda x: Model(x)[2],
    "iteration": lambda x: sum(value for value in Model(x)),
    "order": lambda x: x * (Model(x) < 9),
    "getattr": lambda x: Model(x).missing,
    "length": lambda x: len(Model(x)) * math.sin(x),
    "with": with_context,
    "record": lambda x: Record(x).y,
    "decorated": squared,
    "memoized": memoized,
    "single dispatch": lambda x: kind(x),
    "partial": functools.partial(lambda k, x: math.sin(k * x), 2.0),
    "map": lambda x: sum(map(math.sin, [x, 2 * x])),
    "sorted": lambda x: sorted([x, -x], key=lambda value: math.sin(value))[1],
    "reduce": lambda x: functools.reduce(lambda a, b: math.hypot(a, b), [x, 1.0, 2.0]),
    "comprehension": lambda x: sum([math.sin(k * x) for k in range(3)]),
    "generator": lambda x: sum(generator(x)),
    "nonlocal": nonlocal_total,
    "global": counting,
    "match": matched,
    "class body": in_a_class_body,
    "import": imported,
    "starred": starred,
    "dict": in_a_dict_of_functions,
    "keys": keys_are_functions,
    "identity": is_itself,
    "objects handed back": hands_objects_back,
    "eval": lambda x: eval("math.sin(x) * SCALE"),
    "lambda": lambda x: (lambda y: math.sin(y))(x),
    "default": lambda x, sine=math.sin: sine(x),
    "vectorized": lambda x: np.vectorize(lambda y: math.sin(y))(np.array([x, 2 * x])).sum(),
    "table": lambda x: TABLE[int(x)] * x,
    "stored": lambda x: np.array([math.sin(x), x]).sum(),
    "pool": lambda x: sum(ThreadPoolExecutor(1).map(lambda y: math.sin(y), [x, 2 * x])),
    "pool of builtins": lambda x: sum(ThreadPoolExecutor(1).map(math.sin, [x, 2 * x])),
    "starmap": lambda x: sum(itertools.starmap(math.pow, [(x, 2.0), (2.0, x)])),
    "conditional": lambda x: math.sin(x) if math.cos(x) > 0 else math.exp(x),
    "walrus": lambda x: (y := math.sin(x)) * y,
    "annotated": lambda x: Derived(x) + Model(x),
    "attribute": lambda x: setattr(m := Model(x), "x", math.sin(x)) or m.x,
}


@pytest.mark.parametrize("name", FORMS)
def test_it_is_traced_as_it_is(name):
    f, step = FORMS[name], 1e-6
    names = dict(globals())
    for x in (0.7, 1.3):
        value, slope = sa.value_and_grad(f)(x)
        assert value == pytest.approx(float(f(x)), rel=1e-14)
        assert slope == pytest.approx((float(f(x + step)) - float(f(x - step))) / (2 * step), rel=1e-7, abs=1e-8)
    assert {key for key, value in globals().items() if names.get(key) is not value} <= {"SCALE"}


class Finalized:
    def __init__(self, x, store):
        self.x, self.store = x, store

    def __del__(self):
        self.store.append(math.sin(self.x))


class Meta(type):
    def __call__(cls, x):
        return math.sin(x)


class Made(metaclass=Meta):
    pass


def finalized(x):
    store = []
    with contextlib.suppress(IndexError):
        Finalized(x, store)
        return store[0]
    return x


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("f", [finalized, lambda x: Made(x)], ids=["finalizer", "metaclass"])
def test_what_no_call_reaches_is_refused(f):
    with pytest.raises(TraceError):
        sa.grad(f)(0.7)


@pytest.mark.filterwarnings("ignore")  # JAX warns of forks
def test_other_threads_and_children_see_the_originals():
    """While a function is traced, and its second run goes on."""
    inside, checked, seen = threading.Event(), threading.Event(), []

    def f(x):
        inside.set()
        checked.wait(10)
        return math.sin(x) * float(x)

    def look():
        inside.wait(10)
        seen.append((math is sys.modules["math"], type(TABLE) is np.ndarray, float is float, "float" in globals()))
        seen.append(issubclass(np.float64, float))
        pid = os.fork() if hasattr(os, "fork") else 0
        if not pid and hasattr(os, "fork"):
            os._exit(0 if math is sys.modules["math"] and type(TABLE) is np.ndarray else 1)
        seen.append(os.waitpid(pid, 0)[1] if pid else 0)
        checked.set()

    thread = threading.Thread(target=look)
    thread.start()
    assert sa.grad(f)(0.5) == pytest.approx(math.sin(0.5) + 0.5 * math.cos(0.5))
    thread.join()
    assert seen == [(True, True, True, False), True, 0]
