"""Stand-ins for `float`, `math.sin`, `np.array`, `np.zeros`... that take traced values.

NumPy's own protocols reach most of NumPy, but not immediate conversions to plain numbers: `math.*`, `float`, arrays of
lists, and stores of a traced value into ordinary arrays. These stand-ins replace the functions in the second run of a
traced function (`dispatch`). Without a traced argument a stand-in calls the original function.
"""

from __future__ import annotations

import builtins
import cmath
import collections
import functools
import itertools
import math
import operator
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import partial
from types import MethodType, ModuleType
from typing import Any

import numpy as np
import sympy as sp

import symad.tracing.numpy.protocols  # noqa: F401 (fills the table of NumPy functions that the stand-ins call)
from symad.tracing.calling.makers import arange, as_array, as_new_array, from_iterable, full, of_constants, required
from symad.tracing.calling.math_forms import (
    CMATH,
    COMPLEX_MAKERS,
    MATH,
    STATISTICS,
    array_of_complex,
    as_complex,
    holds_complex,
    holds_complex_parts,
    of_math,
)
from symad.tracing.calling.memory import check_made
from symad.tracing.calling.recorded_errors import discarding_recorded_errors
from symad.tracing.numpy.distributions import MODULES
from symad.tracing.numpy.reduce import traced
from symad.tracing.numpy.registry import ALWAYS, FUNCTIONS, HELD, STAND_INS, UFUNC_METHODS
from symad.tracing.numpy.scipy_fourier import Complex, takes_complex
from symad.tracing.numpy.shape import IN_PLACE
from symad.tracing.values.known_numbers import SymbolicValueError, value_of
from symad.tracing.values.mask_selection import Selection, settled
from symad.tracing.values.node_operands import holds_traced
from symad.tracing.values.python_numbers import as_pythons, check_rounding
from symad.tracing.values.scalar import Scalar
from symad.tracing.values.traced import Traced, TracedComplex, TracedText, has_operators, refuse_text
from symad.tracing.values.whole_numbers import as_integer

Function = Callable[..., Any]

_CHANGEABLE = 1 << 9  # of a class that Python code has made: its methods can be shadowed

arrays_are_traced: ContextVar[bool] = ContextVar("symad_arrays_are_traced", default=False)


def stand_in(original: Function, traced_form: Function) -> Function:
    """Return the function that is `traced_form` for arguments with traced values in them, else the original.

    >>> stand_in(math.sqrt, np.sqrt)(4.0)
    2.0
    """

    held = HELD.get(traced_form)
    if traced_form in ALWAYS:
        return functools.wraps(original)(traced_form)

    @functools.wraps(original)
    def call(*args: Any, **keywords: Any) -> Any:
        args = tuple([list(value) if isinstance(value, Iterator) else value for value in args])
        if _has_selection(args) and not (original.__module__ or "numpy").startswith("numpy"):
            args = settled(args)
        objects = [value for value in args if not isinstance(value, Traced)]
        held_values = [getattr(value, name, None) for value in objects for name in held or ()]
        values = (*args, *keywords.values(), *held_values)
        if not (holds_traced(values) or takes_complex(traced_form, values)) or _has_selection(args):
            return original(*args, **keywords)
        if held is not None:
            return traced_form(*args, **keywords)
        if not isinstance(traced_form, Complex) and any(isinstance(value, TracedComplex) for value in values):
            return original(*args, **keywords)  # which calls their methods
        kept = 1 if original in IN_PLACE else 0  # the target of a store stays itself
        return traced_form(*args[:kept], *map(_without_objects, args[kept:]), **keywords)

    return staticmethod(call) if isinstance(original, staticmethod) else call


def _has_selection(args: Iterable[Any]) -> bool:
    return any(type(value) is Selection for value in args)


def _without_objects(value: Any) -> Any:
    """An object array as a traced one; other values unchanged."""
    return traced(value) if isinstance(value, np.ndarray) and not isinstance(value, Traced) else value


class _Ufunc:
    """A ufunc that also looks into lists and object arrays, and takes SymPy expressions."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        is_traced = any(isinstance(value, sp.Basic) for value in inputs) or holds_traced(inputs)
        if not is_traced or any(has_operators(type(value)) for value in inputs):
            return self._ufunc(*inputs, **keywords)
        inputs, out = inputs[: self._ufunc.nin], inputs[self._ufunc.nin :]
        if out:
            keywords["out"] = out + (None,) * (self._ufunc.nout - len(out))
        elif "out" in keywords and not isinstance(keywords["out"], tuple):
            keywords["out"] = (keywords["out"],)
        return UFUNC_METHODS["__call__"](self._ufunc, inputs, keywords)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ufunc, name)


class _Concatenator:
    """np.r_ or np.c_: a result with traced values is a traced array."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def __getitem__(self, key: Any) -> Any:
        joined = self._original[key]
        return traced(joined) if holds_traced((joined,)) else joined


def _vectorize(*args: Any, **keywords: Any) -> Any:
    """np.vectorize: a function whose result with traced values is a traced array."""
    function = np.vectorize(*args, **keywords)

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        result = function(*args, **keywords)
        return traced(result) if holds_traced((result,)) else result

    return call


# Conversions of builtins, for calls of them only: `isinstance(x, float)` and `dtype=float` get the class itself.


def _conversion(original: Any, traced_form: Function, holds: Callable[..., bool] = holds_traced) -> Function:
    """Return the function that is `traced_form` on traced arguments, else the original."""

    def call(*args: Any, **keywords: Any) -> Any:
        return (traced_form if holds((*args, *keywords.values())) else original)(*args, **keywords)

    return call


def kind_of(*args: Any, **keywords: Any) -> Any:
    """The form of type: the class of the number or array in place of a traced value."""
    if len(args) == 1 and isinstance(args[0], Traced):
        return args[0].apparent_kind() if isinstance(args[0], Scalar) else np.ndarray
    return type(*args, **keywords)


def _as_float(value: Any) -> Any:
    number = traced(value).astype(float)
    if np.ndim(number):
        raise TypeError("only 0-dimensional arrays can be converted to Python scalars")  # as NumPy has it
    return as_pythons(number)


def _as_int(value: Any, *base: Any) -> Any:
    try:
        with discarding_recorded_errors():
            number = traced(value)
            return int(value_of(number.scope, number.node) if isinstance(number, Scalar) else value, *base)
    except SymbolicValueError:  # not of int(value), which would follow every number as a path
        number = traced(value)
        if isinstance(number, Scalar):
            check_rounding(number.scope, number.node)
        return as_integer(np.trunc(number))


def _islice(values: Any, *places: Any) -> Any:
    """itertools.islice, which hides the error of a computed place."""
    return itertools.islice(values, *[place if place is None else operator.index(place) for place in places])


def _deque(values: Any = (), maxlen: Any = None) -> Any:
    """collections.deque, which hides the error of a computed length."""
    return collections.deque(values, maxlen if maxlen is None else operator.index(maxlen))


def _len(value: Any, /) -> Any:
    if type(value) is TracedText:
        refuse_text()
    return value.count if type(value) is Selection else len(value)


def _getattr(value: Any, name: str, /, *default: Any) -> Any:
    if isinstance(value, Scalar):
        kind = value.apparent_kind()
        if name == "dtype" and hasattr(kind, name):
            return np.dtype(kind)
        value = value if hasattr(kind, name) else kind
    return getattr(value, name, *default)


def _hasattr(value: Any, name: str, /) -> bool:
    if isinstance(value, Scalar) and not (hasattr(value.apparent_kind(), name) and name.startswith("__")):
        return hasattr(value.apparent_kind(), name)
    return hasattr(value, name)  # protocols of a traced number are its own


BUILTINS: dict[str, Function] = {
    "float": _conversion(float, _as_float), "int": _conversion(int, _as_int),
    "complex": _conversion(complex, as_complex, holds_complex),
    "len": _len, "type": kind_of, "getattr": _getattr, "hasattr": _hasattr,
}  # fmt: skip


# NumPy's functions that make arrays


_MAKERS: dict[Function, Function | None] = {
    np.array: as_new_array, np.asarray: as_array, np.asanyarray: as_array,
    np.ascontiguousarray: partial(as_array, order="C"), np.asfortranarray: partial(as_array, order="F"),
    np.require: required,
    np.full: full, np.zeros: None, np.ones: None, np.empty: None, np.eye: None, np.identity: None, np.arange: arange,
    np.linspace: None, np.logspace: None, np.zeros_like: None, np.ones_like: None, np.empty_like: None,
    np.full_like: None, np.copy: None, np.diag: None, np.diagflat: None, np.tile: None, np.repeat: None, np.outer: None,
    np.kron: None, np.concatenate: None, np.stack: None, np.vstack: None, np.hstack: None, np.column_stack: None,
    np.tri: None, np.triu: None, np.tril: None, np.meshgrid: None, np.resize: None, np.pad: None, np.vander: None,
}  # fmt: skip


def _maker(original: Function, traced_form: Function | None) -> Function:
    """Return a function that makes arrays. In a run with traced arrays, a float array becomes one of constants."""

    @functools.wraps(original)
    def call(*args: Any, **keywords: Any) -> Any:
        args = settled(args)
        check_made(original, args, keywords)
        if original in COMPLEX_MAKERS and holds_complex_parts(args[:1]):
            return array_of_complex(original, *args, **keywords)
        if traced_form is not None and holds_traced((*args, *keywords.values())):
            return traced_form(*args, **keywords)
        array = original(*args, **keywords)
        if not arrays_are_traced.get():
            return array
        if original in (np.empty, np.empty_like) and array.dtype.kind == "f":
            array.fill(np.nan)  # so that an element without a value shows
        return type(array)(map(of_constants, array)) if isinstance(array, list | tuple) else of_constants(array)

    return call


# The table


class _Module(ModuleType):
    """A module with some names changed."""

    def __init__(self, original: ModuleType, changed: dict[str, Any]) -> None:
        super().__init__(original.__name__, original.__doc__)
        vars(self).update(changed)
        self._original = original

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


def replacements() -> dict[int, tuple[Any, Any]]:
    """Return `id(original) -> (original, stand-in)` for all functions and modules that have a stand-in."""
    named = _inner_first(len(STAND_INS))
    return _table(tuple([name for name in named if _is_imported(name)]), len(STAND_INS))


def _is_imported(owner: str) -> bool:
    """Whether a module has been imported to its end, or a class is in one: another thread may be importing it."""
    if (imported := sys.modules.get(owner)) is not None:
        return not getattr(getattr(imported, "__spec__", None), "_initializing", False)
    module, _, kind = owner.rpartition(".")
    around = sys.modules.get(module)
    return around is not None and isinstance(vars(around).get(kind), type)


def replaced(names: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the stand-ins of the functions, modules and bound methods that have one, by their names.

    >>> list(replaced([("root", math.sqrt), ("ten", 10)]))
    ['root']
    """
    table, forms = replacements(), dict[str, Any]()
    for name, value in names:
        if id(value) in table:
            forms[name] = table[id(value)][1]
        elif isinstance(value, MethodType) and id(value.__func__) in table:
            forms[name] = MethodType(table[id(value.__func__)][1], value.__self__)
    return forms


def original_of(value: Any) -> Any:
    """Return the original of a stand-in, other values unchanged.

    >>> original_of(replaced([("root", math.sqrt)])["root"]) is math.sqrt
    True
    """
    pairs = (*replacements().values(), *((vars(builtins)[name], form) for name, form in BUILTINS.items()))
    return next((original for original, form in pairs if form is value), value)


def owners() -> set[str]:
    """Return the full names of the modules and classes that have functions with stand-ins."""
    return {name.rpartition(".")[0] for name in STAND_INS}


@functools.lru_cache(maxsize=4)
def _inner_first(count: int) -> list[str]:
    """Return the owners of the first `count` functions, and packages with names of their own, inner ones first."""
    return sorted({*owners(), "scipy", "scipy.spatial"}, key=lambda name: (-name.count("."), name))


def modules_with_methods() -> frozenset[str]:
    """Return the names of the modules of SciPy that define classes whose methods have stand-ins."""
    replacements()
    named = _inner_first(len(STAND_INS))
    return _modules(tuple([name for name in named if name.rpartition(".")[0] in sys.modules]))


@functools.lru_cache(maxsize=4)
def _modules(owners: tuple[str, ...]) -> frozenset[str]:
    places = (name.rpartition(".") for name in owners)
    kinds = (vars(sys.modules[module]).get(name) for module, _, name in places)
    return frozenset({*MODULES, *(kind.__module__ for kind in kinds if isinstance(kind, type))})


@functools.lru_cache(maxsize=4)
def _table(optional: tuple[str, ...], count: int) -> dict[int, tuple[Any, Any]]:
    known = [(getattr(math, name), form) for name, form in MATH.items() if hasattr(math, name)]
    pairs: list[tuple[Any, Any]] = [(original, stand_in(original, of_math(original, form))) for original, form in known]
    pairs += [(f := getattr(cmath, name), _conversion(f, form, holds_complex)) for name, form in CMATH.items()]
    pairs += [(f := getattr(statistics, name), stand_in(f, form)) for name, form in STATISTICS.items()]
    pairs += [(function, stand_in(function, handler)) for function, handler in FUNCTIONS.items()]
    pairs += [(ufunc, _Ufunc(ufunc)) for ufunc in vars(np).values() if isinstance(ufunc, np.ufunc)]
    pairs += [(maker, _maker(maker, form or FUNCTIONS.get(maker))) for maker, form in _MAKERS.items()]
    pairs += [(function, stand_in(function, form)) for function, form in _optional_functions()]
    pairs += [(np.fromiter, from_iterable), (np.vectorize, _vectorize)]
    pairs += [(original, _Concatenator(original)) for original in (np.r_, np.c_)]
    pairs += [(itertools.islice, _islice), (collections.deque, _conversion(collections.deque, _deque))]
    for kind in (np.float64, np.int64, np.int32):  # of an array it is an array
        pairs.append((kind, _conversion(kind, lambda value, kind=kind: as_array(value, dtype=kind)[()])))
    table = {id(original): (original, form) for original, form in pairs}
    inner = (math, cmath, statistics, itertools, collections, np.linalg, np.lib.stride_tricks, np.lib, np)
    for module in (*inner, *[sys.modules[name] for name in optional if name in sys.modules]):  # inner modules first
        named = ((name, value) for name, value in vars(module).items() if id(value) in table)
        changed = {name: table[id(value)][1] for name, value in named if not isinstance(value, type)}
        table[id(module)] = (module, _Module(module, changed))
    return table


def _optional_functions() -> list[tuple[Any, Function]]:
    """The functions of optional packages that are imported."""
    pairs = []
    for full_name, form in STAND_INS.items():
        owner, _, name = full_name.rpartition(".")
        module, _, kind = owner.rpartition(".")
        around = vars(sys.modules[module]) if sys.modules.get(module) else {}  # SciPy imports modules lazily
        place = sys.modules.get(owner, around.get(kind))
        original = vars(place).get(name) if isinstance(place, type) else getattr(place, name, None)  # not inherited
        if original is not None and not (isinstance(place, type) and not place.__flags__ & _CHANGEABLE):
            pairs.append((original, form))
            if isinstance(original, staticmethod | classmethod):
                pairs.append((original.__func__, form))
    return pairs
