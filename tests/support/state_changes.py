"""Ways of changing what a function reads between two calls: `python -m tests.support.state_changes` prints a summary.

Each row is a text that defines `f(x)`, which is k * x**2 with k = 2, and `change()`, after which k is 5. A
first part is every carrier of a number in every place that a function reads; others are in `state_changes.txt`.
"""

from __future__ import annotations

import sys
import types
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import symad as sa

IMPORTS = """
import abc, argparse, array, collections, configparser, contextvars, copy, dataclasses, decimal, enum, fractions
import functools, itertools, math, operator, sys, types, typing, weakref
import numpy as np, symad as sa
import scipy.stats, scipy.special, scipy.interpolate
"""

# name: (an object, how it is read, how it is changed), with {b} for the object
CARRIERS: dict[str, tuple[str, str, str]] = {
    "list": ("[2.0]", "{b}[0]", "{b}[0] = 5.0"),
    "dict": ("{'k': 2.0}", "{b}['k']", "{b}['k'] = 5.0"),
    "list that is cleared": ("[2.0]", "{b}[0]", "{b}.clear(); {b}.append(5.0)"),
    "dict of lists": ("{'k': [2.0]}", "{b}['k'][0]", "{b}['k'][0] = 5.0"),
    "set": ("{2.0}", "sum({b})", "{b}.clear(); {b}.add(5.0)"),
    "deque": ("collections.deque([2.0])", "{b}[0]", "{b}[0] = 5.0"),
    "bytearray": ("bytearray([2])", "{b}[0]", "{b}[0] = 5"),
    "array.array": ("array.array('d', [2.0])", "{b}[0]", "{b}[0] = 5.0"),
    "OrderedDict": ("collections.OrderedDict(k=2.0)", "{b}['k']", "{b}['k'] = 5.0"),
    "order of an OrderedDict": (
        "collections.OrderedDict(a=2.0, b=5.0)", "next(iter({b}.values()))", "{b}.move_to_end('a')",
    ),
    "defaultdict": ("collections.defaultdict(float, k=2.0)", "{b}['k']", "{b}['k'] = 5.0"),
    "Counter": ("collections.Counter(k=2)", "{b}['k']", "{b}['k'] = 5"),
    "ChainMap": ("collections.ChainMap({}, {'k': 2.0})", "{b}['k']", "{b}.maps[1]['k'] = 5.0"),
    "UserDict": ("collections.UserDict(k=2.0)", "{b}['k']", "{b}['k'] = 5.0"),
    "UserList": ("collections.UserList([2.0])", "{b}[0]", "{b}[0] = 5.0"),
    "mappingproxy": ("types.MappingProxyType(INNER)", "{b}['k']", "INNER['k'] = 5.0"),
    "SimpleNamespace": ("types.SimpleNamespace(k=2.0)", "{b}.k", "{b}.k = 5.0"),
    "argparse": ("argparse.Namespace(k=2.0)", "{b}.k", "{b}.k = 5.0"),
    "object": ("Body(2.0)", "{b}.k", "{b}.k = 5.0"),
    "object of two": ("Body(Body(2.0))", "{b}.k.k", "{b}.k.k = 5.0"),
    "slots": ("Slots(2.0)", "{b}.k", "{b}.k = 5.0"),
    "dataclass": ("Record(2.0)", "{b}.k", "{b}.k = 5.0"),
    "dict of attributes": ("Body(2.0)", "{b}.k", "{b}.__dict__ = {'k': 5.0}"),
    "class of an object": ("A()", "{b}.k()", "{b}.__class__ = B"),
    "object in a set": ("{Body(2.0)}", "sum(o.k for o in {b})", "next(iter({b})).k = 5.0"),
    "object as a key": ("{Body(2.0): 1}", "sum(o.k for o in {b})", "next(iter({b})).k = 5.0"),
    "attribute of a dict's subclass": ("D(2.0)", "{b}.k", "{b}.k = 5.0"),
    "entry of a dict's subclass": ("D(2.0)", "{b}['k']", "{b}['k'] = 5.0"),
    "list's subclass": ("L([2.0])", "{b}[0]", "{b}[0] = 5.0"),
    "attribute of a tuple's subclass": ("T(2.0)", "{b}.k", "{b}.k = 5.0"),
    "attribute of a float's subclass": ("F(2.0)", "{b}.k", "{b}.k = 5.0"),
    "ndarray": ("np.array([2.0])", "{b}[0]", "{b}[0] = 5.0"),
    "0-d array": ("np.array(2.0)", "{b}", "{b}[()] = 5.0"),
    "array of ints": ("np.array([2])", "{b}[0]", "{b}[0] = 5"),
    "array of objects": ("np.array([2.0, None], dtype=object)", "{b}[0]", "{b}[0] = 5.0"),
    "list in an array of objects": ("objects([2.0])", "{b}[0][0]", "{b}[0][0] = 5.0"),
    "structured array": ("structured()", "{b}['k'][0]", "{b}['k'] = 5.0"),
    "row of a structured array": ("structured()[0]", "{b}['k']", "{b}['k'] = 5.0"),
    "record array": ("structured().view(np.recarray)", "{b}.k[0]", "{b}.k[0] = 5.0"),
    "view that is read-only": ("read_only(OWNER)", "{b}[0]", "OWNER[0] = 5.0"),
    "masked array": ("np.ma.array([2.0])", "{b}[0]", "{b}[0] = 5.0"),
    "mask": ("np.ma.array([2.0, 5.0], mask=[False, True])", "{b}.compressed()[0]", "{b}.mask = [True, False]"),
    "matrix": ("np.array([[2.0]]).view(np.matrix)", "{b}[0, 0]", "{b}[0, 0] = 5.0"),
    "shape": ("np.ones((2, 5))", "{b}.shape[0]", "{b}.shape = (5, 2)"),
    "poly1d": ("np.poly1d([2.0])", "{b}(0.0)", "{b}.coeffs[0] = 5.0"),
    "function's attribute": ("with_attribute()", "{b}.k", "{b}.k = 5.0"),
    "function's default": ("with_default()", "{b}()", "{b}.__defaults__ = (5.0,)"),
    "function's keyword": ("with_keyword()", "{b}()", "{b}.__kwdefaults__['k'] = 5.0"),
    "function's code": ("with_default()", "{b}()", "{b}.__code__ = (lambda k=2.0: k + 3.0).__code__"),
    "function's variable": ("with_variable(2.0)", "{b}()", "{b}.__closure__[0].cell_contents = 5.0"),
    "partial": ("functools.partial(identity, [2.0])", "{b}()[0]", "{b}.args[0][0] = 5.0"),
    "partial's keyword": ("functools.partial(identity, k=2.0)", "{b}()", "{b}.keywords['k'] = 5.0"),
    "bound method": ("Body(2.0).read", "{b}()", "{b}.__self__.k = 5.0"),
    "method of a dict": ("{'k': 2.0}.get", "{b}('k')", "{b}.__self__['k'] = 5.0"),
    "method of a list": ("[2.0].__getitem__", "{b}(0)", "{b}.__self__[0] = 5.0"),
    "class": ("made_class()", "{b}.k", "{b}.k = 5.0"),
    "class's method": ("made_class()", "{b}().read()", "{b}.read = lambda self: 5.0"),
    "class's base": ("made_class()", "{b}.base", "{b}.__bases__[0].base = 5.0"),
    "metaclass": ("made_class()", "{b}.meta", "type({b}).meta = 5.0"),
    "property": ("with_property()", "{b}.p", "{b}.hidden = 5.0"),
    "property's function": ("with_property()", "{b}.p", "type({b}).p = property(lambda self: 5.0)"),
    "descriptor": ("with_descriptor()", "{b}.d", "type({b}).__dict__['d'].k = 5.0"),
    "__getattr__": ("with_getattr()", "{b}.anything", "{b}.table['anything'] = 5.0"),
    "__getitem__": ("with_getitem()", "{b}[0]", "{b}.table[0] = 5.0"),
    "__missing__": ("with_missing()", "{b}['k']", "{b}.spare['k'] = 5.0"),
    "__call__": ("with_call()", "{b}()", "{b}.k = 5.0"),
    "__len__": ("with_len()", "len({b})", "{b}.n = 5"),
    "__iter__": ("with_iter()", "sum({b})", "{b}.items[0] = 5.0"),
    "__array__": ("with_array()", "np.asarray({b})[0]", "{b}.data[0] = 5.0"),
    "context variable": ("contextvars.ContextVar('k', default=2.0)", "{b}.get()", "{b}.set(5.0)"),
    "vectorized function": ("np.vectorize(lambda t: 2.0 * t)", "{b}(1.0)", "{b}.pyfunc = lambda t: 5.0 * t"),
    "configparser": ("parser()", "{b}.getfloat('a', 'k')", "{b}.set('a', 'k', '5')"),
    "frozen distribution": ("scipy.stats.uniform(loc=0.0, scale=0.5)", "{b}.pdf(0.1)", "{b}.kwds['scale'] = 0.2"),
    "spline": (
        "scipy.interpolate.CubicSpline([0.0, 1, 2, 3], [2.0] * 4)", "{b}(0.5)", "{b}.c[3, :] = 5.0",
    ),
    "interp1d": ("scipy.interpolate.interp1d([0.0, 1.0], [2.0, 2.0])", "{b}(0.5)", "{b}.y = np.array([5.0, 5.0])"),
    "RegularGridInterpolator": (
        "scipy.interpolate.RegularGridInterpolator(([0.0, 1.0],), np.full(2, 2.0))",
        "{b}([0.5])[0]", "{b}.values[:] = 5.0",
    ),
    "weak reference": ("weak()", "{b}().k", "{b}().k = 5.0"),
    "memoryview": ("memoryview(bytearray([2]))", "{b}[0]", "{b}[0] = 5"),
    "kept results": ("cached()", "{b}()", "{b}.__wrapped__.k = 5.0; {b}.cache_clear()"),
    "single dispatch": ("dispatched()", "{b}('s')", "{b}.register(str, lambda a: 5.0)"),
    "cached property": ("with_cached()", "{b}.p", "{b}.p = 5.0"),
    "generator": ("generated()", "next({b})", "[next({b}) for _ in range(4)]"),
    "iterator": ("iter([2.0] * 9 + [5.0] * 99)", "next({b})", "[next({b}) for _ in range(9)]"),
}  # fmt: skip

SETUP = """
INNER = {"k": 2.0}
OWNER = np.array([2.0])
class Body:
    def __init__(self, k): self.k = k
    def read(self): return self.k
class Slots:
    __slots__ = ("k",)
    def __init__(self, k): self.k = k
@dataclasses.dataclass
class Record:
    k: object
class A:
    def k(self): return 2.0
class B:
    def k(self): return 5.0
class D(dict):
    def __init__(self, k): self.k = k; self["k"] = k
class L(list): pass
class T(tuple):
    def __new__(cls, k): made = tuple.__new__(cls, (1,)); made.k = k; return made
class F(float):
    def __init__(self, k): self.k = k
def identity(k): return k
def objects(part):
    made = np.empty(2, dtype=object); made[0] = part; return made
def structured():
    made = np.zeros(1, dtype=[("k", float)]); made["k"] = 2.0; return made
def read_only(owner):
    shown = owner[:1]; shown.flags.writeable = False; return shown
def with_attribute():
    def g(): return g.k
    g.k = 2.0; return g
def with_default():
    def g(k=2.0): return k
    return g
def with_keyword():
    def g(*, k=2.0): return k
    return g
def with_variable(k): return lambda: k
def made_class():
    class Meta(type): meta = 2.0
    class Base: base = 2.0
    class K(Base, metaclass=Meta):
        k = 2.0
        def read(self): return 2.0
    return K
def with_property():
    class P:
        hidden = 2.0
        @property
        def p(self): return self.hidden
    return P()
def with_descriptor():
    class Desc:
        k = 2.0
        def __get__(self, owner, kind): return self.k
    class P: d = Desc()
    return P()
def with_getattr():
    class P:
        def __init__(self): self.table = {"anything": 2.0}
        def __getattr__(self, name): return object.__getattribute__(self, "table")[name]
    return P()
def with_getitem():
    class P(list):
        def __init__(self): self.table = [2.0]
        def __getitem__(self, k): return self.table[k]
    return P()
def with_missing():
    class P(dict):
        def __init__(self): self.spare = {"k": 2.0}
        def __missing__(self, k): return self.spare[k]
    return P()
def with_call():
    class P:
        k = 2.0
        def __call__(self): return self.k
    return P()
def with_len():
    class P:
        n = 2
        def __len__(self): return self.n
    return P()
def with_iter():
    class P:
        def __init__(self): self.items = [2.0]
        def __iter__(self): return iter(self.items)
    return P()
def with_array():
    class P:
        def __init__(self): self.data = np.array([2.0])
        def __array__(self, dtype=None, copy=None): return self.data
    return P()
def parser():
    made = configparser.ConfigParser(); made.read_dict({"a": {"k": "2"}}); return made
ALIVE = []
def weak():
    ALIVE.append(Body(2.0)); return weakref.ref(ALIVE[-1])
def cached():
    def g(): return g.k
    g.k = 2.0
    return functools.cache(g)
def dispatched():
    @functools.singledispatch
    def g(a): return 2.0
    return g
def with_cached():
    class P:
        @functools.cached_property
        def p(self): return 2.0
    return P()
def generated():
    for k in itertools.count(): yield 2.0 if k < 4 else 5.0
"""

# place: text with {m} for what makes the object, {r} for what reads it at {b}
PLACES: dict[str, tuple[str, str]] = {
    "a global name": ("box = {m}\ndef f(x): return {r} * x**2", "box"),
    "a variable": ("box = {m}\ndef outer(b):\n    def f(x): return {r} * x**2\n    return f\nf = outer(box)", "b"),
    "a default": ("box = {m}\ndef f(x, b=box): return {r} * x**2", "b"),
    "a helper": ("box = {m}\ndef g(b): return {r}\ndef h(x): return g(box) * x\ndef f(x): return h(x) * x", "b"),
    "an attribute": (
        "box = {m}\nclass M:\n    def __init__(self): self.box = box\n"
        "    def value(self, x): return {r} * x**2\nf = M().value", "self.box",
    ),
}  # fmt: skip


def rows() -> dict[str, str]:
    """Return all rows: names, and the text of each."""
    found = {}
    for carrier, (make, read, change) in CARRIERS.items():
        for place, (text, at) in PLACES.items():
            body = text.format(m=make, r=read.replace("{b}", at))
            found[f"{carrier} in {place}"] = f"{SETUP}\n{body}\ndef change():\n    {change.replace('{b}', 'box')}\n"
    return found | rows_of("state_changes.txt")


def rows_of(file: str) -> dict[str, str]:
    """Return the rows of a file: a line with two number signs and a name, and the text up to the next one."""
    parts = (Path(__file__).parent / file).read_text(encoding="utf-8").split("## ")[1:]
    return {name: text for name, _, text in (part.partition("\n") for part in parts)}


def made(name: str, text: str) -> tuple[Any, Any, Any]:
    """Return the function, what changes its state, and what undoes a change of a library."""
    module = types.ModuleType(f"row_{abs(hash(name))}")
    space = vars(module)
    sys.modules[module.__name__] = module
    exec(compile(IMPORTS + text, f"<{name}>", "exec"), space)
    return space["f"], space["change"], space.get("undo", lambda: None)


def of_grad(name: str, text: str) -> str:
    """Return whether a gradient on numbers is fresh after a change."""
    f, change, undo = made(name, text)
    gradient = sa.grad(f)
    for k in range(3):
        gradient(1.0 + k)
    change()
    try:
        found = gradient(1.0)
        again = gradient(1.0)
        right = 10.0
    finally:
        undo()
    return "fresh" if found == again == right else f"stale: {found} {again}"


def of_jit(name: str, text: str) -> str:
    """Return whether a kernel of `jit` is fresh after a change, or its first call has warned."""
    f, change, undo = made(name, text)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        kernel = sa.jit(f)
        kernel(1.0)
        kernel(2.0)
    change()
    try:
        found = kernel(1.0)
        right = 5.0
    except Exception as error:
        return f"raises {type(error).__name__}"
    finally:
        undo()
    warned = {each.category for each in told} & {sa.errors.UnknownStateWarning, sa.errors.FrozenValueWarning}
    return "fresh" if found == right else "warned" if warned else f"stale: {found}"


def main() -> None:
    """Print how many rows are fresh, warned and stale, and which are neither fresh nor warned."""
    warnings.simplefilter("ignore")
    table = rows()
    for check in (of_grad, of_jit):
        found = {}
        for name, text in table.items():
            try:
                found[name] = check(name, text)
            except Exception as error:
                found[name] = f"error: {type(error).__name__}: {str(error)[:150]}"
        counted = Counter(answer.partition(":")[0] for answer in found.values())
        print(check.__name__, len(found), dict(counted))
        for name, answer in found.items():
            if answer not in ("fresh", "warned"):
                print(f"  {name}: {answer}")
        if check is of_jit:
            print(
                "  warned:", sorted({name.partition(" in ")[0] for name, answer in found.items() if answer == "warned"})
            )


if __name__ == "__main__":
    main()
