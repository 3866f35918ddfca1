"""The dispatcher that rewritten code calls in place of functions and operators.

A function with a stand-in (`math.sin`, `float`, `np.array`) is replaced by it, a function of the user's by its
rewritten form (`rewriting`), and an object whose class defines operators by a wrapper that calls their rewritten forms
(`acting`). All other objects stay themselves. The replacements are kept during the run.
"""

from __future__ import annotations

import builtins
import copy
import functools
import operator
import sys
from abc import ABCMeta
from collections.abc import Callable
from contextvars import copy_context
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from symad.tracing.calling.acting import PANDAS_OPERATORS, acting_class, is_users
from symad.tracing.calling.jitted import python_form, traced_through
from symad.tracing.calling.makers import of_constants
from symad.tracing.calling.merged_calls import EXTREMA, merged
from symad.tracing.calling.overlay import overlaid, with_forms
from symad.tracing.calling.rewriting import (
    CALLEE,
    ITEM,
    PLACE,
    RESULT,
    VALUE,
    Style,
    evaluated,
    is_rewritten,
    provide,
    rewritten,
)
from symad.tracing.calling.running import Key, callee, copied, item, key_of, place, result, value
from symad.tracing.calling.scope import Scope, innermost_scope
from symad.tracing.calling.stand_ins import BUILTINS, arrays_are_traced, kind_of, replacements
from symad.tracing.calling.subscripts import lookup_form, subscripted_form
from symad.tracing.calling.transformed_function import Transformed
from symad.tracing.calling.user_place import is_library, is_symad
from symad.tracing.numpy.reduce import traced
from symad.tracing.values.array import numbers_of_constants
from symad.tracing.values.computed_items import Indexed, Listed, is_table
from symad.tracing.values.node_operands import holds_traced
from symad.tracing.values.traced import calls_methods, has_operators

Function = Callable[..., Any]

_OF_UFUNCS = ("__name__", "nin", "nout", "signature", "reduce", "accumulate", "reduceat", "outer", "at")
_CACHED = functools._lru_cache_wrapper
_CALLBACKS = frozenset(map(id, (map, filter, sorted, min, max, iter, functools.reduce)))  # which call their arguments
_ASKING = frozenset(  # functions that call methods of their arguments
    id(f) for f in (abs, round, iter, next, divmod, pow, *vars(operator).values()) if callable(f)
)
_OF_ITEMS = (next, operator.getitem, operator.setitem, operator.delitem, operator.contains)  # of the first operand
_PLAIN_OPERANDS = {np.ndarray, Indexed, float, int, np.float64}
_COPYING = frozenset({"copy", "astype", "repeat", "flatten"})  # methods of arrays; they are given no array
_THREADS = frozenset({"threading", "concurrent"})
_HANDING = _THREADS | {"numpy", "scipy", "symad", "pandas", "itertools", "functools"}  # packages of such functions
_CALLABLES = (FunctionType, MethodType, functools.partial, np.vectorize, Transformed)
_BY_ID = {id(vars(builtins)[name]): form for name, form in BUILTINS.items()}


class DispatchedRun:
    """The replacements of callees and operands in one run of a user's function.

    `style` says how code is rewritten, `arrays` that ordinary arrays accept traced places. Calls of functions in
    `deciding` have their paths merged; the loops of functions in `stepped` are calls of their steps.
    """

    def __init__(
        self, style: Style, arrays: bool, deciding: frozenset[Key], stepped: frozenset[tuple[str, str]]
    ) -> None:
        self._style, self._arrays, self._deciding, self._stepped = style, arrays, deciding, stepped
        self._forms: dict[int, tuple[Any, Any]] = {}  # objects and their replacements, by ids
        self._acting: dict[type, Any] = {}

    def callee(self, f: Any) -> Any:
        """Return the function that is called in place of f."""
        kind = type(f)
        if kind is MethodType:
            form = self.callee(f.__func__)
            if form is f.__func__:
                return f
            return form if isinstance(f.__self__, type) and is_of_class(f) else MethodType(form, f.__self__)
        if kind is BuiltinFunctionType and not isinstance(f.__self__, ModuleType):
            if self._arrays and isinstance(f.__self__, np.ndarray) and f.__name__ in _COPYING:
                return _traced_method(f)
            return self._passing_forms(f) if f.__name__ == "sort" else lookup_form(f)
        known = self._forms.get(id(f))
        if known is not None and known[0] is f:
            return known[1]
        self._forms[id(f)] = f, lambda *args, **keywords: self.callee(f)(*args, **keywords)  # where f leads back to f
        form = self._form(f)
        self._forms[id(f)] = f, form
        return form

    def value(self, value: Any) -> Any:
        """Return the replacement of an operand: the user's objects act through rewritten methods."""
        kind = type(value)
        if kind not in self._acting:
            self._acting[kind] = acting_class(kind, self.callee, self._acting)
        form = self._acting[kind]
        return value if form is None else form(value)

    def result(self, operator_name: str, left: Any, right: Any) -> Any:
        """Return the result of an operator. A new array of numbers, which is changed later, becomes a traced one."""
        result = getattr(operator, operator_name)(self.value(left), self.value(right))
        is_array = self._arrays and result is not left and type(result) in (np.ndarray, Indexed)
        return of_constants(result) if is_array and {type(left), type(right)} <= _PLAIN_OPERANDS else result

    def item(self, value: Any) -> Any:
        """Return the replacement of an object that is indexed. Ordinary arrays accept traced places."""
        if self._arrays and is_table(value):
            return value.view(Indexed)
        if self._deciding and type(value) is list:
            return Listed(value)
        form = self.value(value)
        return subscripted_form(value) if form is value else form

    def place(self, value: Any) -> Any:
        """Return the replacement of an object one of whose items is set."""
        return Listed(value) if self._deciding and type(value) is list else self.value(value)

    def _form(self, f: Any) -> Any:
        """Return the replacement of a function, a class or an object that is called."""
        kind = type(f)
        if self._deciding and (f is max or f is min or f is sorted):
            return self._passing_forms(EXTREMA[f.__name__])
        original, form = replacements().get(id(f), (None, None))
        if original is f and not isinstance(f, ModuleType):
            return self._ufunc(f, form) if isinstance(f, np.ufunc) else self._of_numpy(f, self._passing_forms(form))
        if f is type:
            return kind_of
        if id(f) in _BY_ID:
            return self._on_forms(_BY_ID[id(f)])
        if kind is FunctionType:
            return self._of_function(f)
        if isinstance(f, type):
            return self._constructor(f) or (self._passing_forms(f) if _calls_arguments(f) else f)
        if kind in (functools.partial, Transformed):
            inner = self.callee(f.func)
            if inner is f.func:
                return f
            return f.with_function(inner) if kind is Transformed else functools.partial(inner, *f.args, **f.keywords)
        if kind is _CACHED:
            return _memoised(f, self.callee(f.__wrapped__))
        if kind is np.vectorize:
            return self._vectorized(f)
        if (function := python_form(f)) is not None:
            return f if hasattr(f, "_dispatcher") else traced_through(f, self.callee(function))
        return self._of_object(f)

    def _of_numpy(self, f: Any, form: Function) -> Function:
        """Return the form of a function. NumPy's code of np.sum and others calls the methods of labelled arguments."""
        if not calls_methods(f):
            return form

        def call(*args: Any, **keywords: Any) -> Any:
            others = [type(arg) for arg in args if has_operators(type(arg))]
            if any(hasattr(kind, "__array_function__") for kind in others):
                return f(*args, **keywords)  # which asks them
            return (self._twin(f._implementation) if others else form)(*args, **keywords)

        return call

    def _ufunc(self, f: np.ufunc, form: Any) -> Any:
        """Return the form of a ufunc. It calls the rewritten `__array_ufunc__` of an argument that has one."""
        if not self._style.operators:
            return form

        def call(*args: Any, **keywords: Any) -> Any:
            for arg in args:
                method = getattr(type(arg), "__array_ufunc__", None)
                if type(method) is FunctionType and is_users(method):
                    return self.callee(method)(arg, f, "__call__", *args, **keywords)
            return form(*args, **keywords)

        for name in _OF_UFUNCS:
            setattr(call, name, getattr(f, name))
        return call

    def _of_object(self, f: Any) -> Any:
        if f is eval or f is exec:
            return functools.partial(_evaluate, f)
        if id(f) in _ASKING:
            return self._on_forms(f, 1 if f in _OF_ITEMS else 2)
        method = _call_of(f)
        form = self.callee(method) if type(method) is FunctionType else method
        if form is not method:
            return MethodType(form, f)
        handed = self._passing_forms(f) if _calls_arguments(f) else f
        return _on_numbers(handed) if _package(f) == "pandas" else handed

    def _of_function(self, f: FunctionType) -> Any:
        if is_rewritten(f.__code__):
            return self._merged(f, f)
        if is_symad(f.__code__.co_filename):
            return self._passing_forms(with_forms(f, self.callee))  # which has functions in it, or is given some
        if not is_users(f):
            return self._passing_forms(f) if _calls_arguments(f) else f
        return self._merged(f, self._twin(f))

    def _merged(self, f: FunctionType, form: Any) -> Any:
        inner = getattr(f, "__wrapped__", f)
        codes = [function.__code__ for function in (f, inner) if isinstance(function, FunctionType)]
        return merged(form) if any(key_of(code) in self._deciding for code in codes) else form

    def _twin(self, f: FunctionType) -> Any:
        """Return a function with rewritten code and the names and variables of f."""
        code = f.__code__
        steps = (code.co_filename, code.co_qualname) in self._stepped
        changed = rewritten(code.co_filename, code, Style(self._style.operators, steps))
        if changed is None:
            return overlaid(f, self.callee)
        return copied(f, changed, f.__globals__, f.__closure__)

    def _constructor(self, kind: type) -> Any:
        """Return the maker of objects of a class whose `__init__` or `__new__` has another form, else None."""
        if type(kind) not in (type, ABCMeta) or kind.__module__ == "builtins":
            return None
        new, init = _makers(kind)
        after = getattr(kind, "__post_init__", None)
        if _is_generated(init) and type(after) is FunctionType and is_users(after):
            return functools.partial(self._dataclass_instance, kind, after)
        if not any(type(part) is FunctionType and not _is_generated(part) and self.callee(part) is not part
                   for part in (new, init)):  # fmt: skip
            return None

        def make(*args: Any, **keywords: Any) -> Any:
            instance = object.__new__(kind) if new is _makers(object)[0] else self.callee(new)(kind, *args, **keywords)
            if isinstance(instance, kind):
                self.callee(_makers(type(instance))[1])(instance, *args, **keywords)
            return instance

        return make

    def _dataclass_instance(self, kind: type, after: FunctionType, /, *args: Any, **keywords: Any) -> Any:
        """Return a new instance. Its `__init__`, which has no source, finds the rewritten `__post_init__` in it."""
        instance: Any = object.__new__(kind)
        attributes = getattr(instance, "__dict__", None)
        if attributes is None:
            return kind(*args, **keywords)
        attributes["__post_init__"] = MethodType(self.callee(after), instance)
        try:
            _makers(kind)[1](instance, *args, **keywords)
        finally:
            attributes.pop("__post_init__", None)
        return instance

    def _vectorized(self, f: Any) -> Function:
        form = copy.copy(f)
        form.pyfunc = self.callee(f.pyfunc)

        def call(*args: Any, **keywords: Any) -> Any:
            result = form(*args, **keywords)
            return traced(result) if holds_traced((result,)) else result

        return call

    def _passing_forms(self, f: Function) -> Function:
        """Return a function that gets the forms of the functions among its arguments."""
        types_too, elsewhere = id(f) in _CALLBACKS, _package(f) in _THREADS

        def handed(argument: Any) -> Any:
            form = self._argument_form(argument, types_too)
            return _in_this_context(form) if elsewhere and type(argument) in _CALLABLES else form

        def call(*args: Any, **keywords: Any) -> Any:
            return f(*map(handed, args), **{name: handed(argument) for name, argument in keywords.items()})

        return staticmethod(call) if isinstance(f, staticmethod) else call

    def _argument_form(self, argument: Any, types_too: bool) -> Any:
        kind = type(argument)
        if getattr(argument, "__module__", "") == PANDAS_OPERATORS:
            return argument
        if kind in (list, tuple, dict):
            values = argument.values() if kind is dict else argument
            if not any(type(value) in _CALLABLES or _has_stand_in(value) for value in values):
                return argument
            forms = (self._argument_form(value, False) for value in values)
            return dict(zip(argument, forms, strict=True)) if kind is dict else kind(forms)
        if kind in _CALLABLES or (types_too and callable(argument)) or _has_stand_in(argument):
            return self.callee(argument)
        method = _call_of(argument)
        is_function = type(method) is FunctionType and not is_library(method.__code__.co_filename)
        return self.callee(argument) if is_function else argument

    def _on_forms(self, f: Function, operands: int = 1) -> Function:
        """Return a builtin whose first arguments are replaced, if operators are rewritten."""
        if not self._style.operators:
            return f
        return lambda *args, **keywords: f(*map(self.value, args[:operands]), *args[operands:], **keywords)


def _on_numbers(f: Function) -> Function:
    """Return a compiled function that gets traced arrays of constants as ordinary ones; what it writes comes back."""

    def call(*args: Any, **keywords: Any) -> Any:
        every = [(array, numbers_of_constants(array)) for array in (*args, *keywords.values())]
        given = [(array, numbers, numbers.copy()) for array, numbers in every if numbers is not None]
        plain = {id(array): numbers for array, numbers, _ in given}
        named = {name: plain.get(id(value), value) for name, value in keywords.items()}
        result = f(*(plain.get(id(value), value) for value in args), **named)
        for array, numbers, before in given:
            if not np.array_equal(numbers, before, equal_nan=True):
                array[...] = numbers
        return result

    return call


def _traced_method(method: Any) -> Function:
    """Return a method of an ordinary array, such as `copy`. A new array that it returns becomes a traced one."""

    def call(*args: Any, **keywords: Any) -> Any:
        result = method(*args, **keywords)
        is_new = isinstance(result, np.ndarray) and result.base is None and result is not method.__self__
        return of_constants(result) if is_new else result

    return call


def _makers(kind: Any) -> tuple[Any, Any]:
    return kind.__new__, kind.__init__


def is_of_class(f: MethodType) -> bool:
    """Whether a method is a class method with a stand-in, which does not get the class."""
    return id(f.__func__) in replacements() and isinstance(vars(f.__self__).get(f.__name__), classmethod)


def _call_of(value: Any) -> Any:
    """Return the `__call__` of instances of a class, None if there is none."""
    return next((vars(kind)["__call__"] for kind in type(value).__mro__ if "__call__" in vars(kind)), None)


def _is_generated(f: Any) -> bool:
    """Whether dataclasses or namedtuple made a method: its code has no source and calls nothing else."""
    return type(f) is FunctionType and f.__code__.co_filename.startswith("<")


def _has_stand_in(value: Any) -> bool:
    return type(value) is BuiltinFunctionType and id(value) in replacements()


def _calls_arguments(f: Any) -> bool:
    """Whether a function of a library may call its arguments."""
    return _package(f) in _HANDING or id(f) in _CALLBACKS


def _package(f: Any) -> str:
    module = getattr(f, "__module__", None)
    return module.partition(".")[0] if isinstance(module, str) else ""


def _in_this_context(f: Function) -> Function:
    """Return a function that another thread calls in the context of this one."""
    context = copy_context()
    return lambda *args, **keywords: context.copy().run(f, *args, **keywords)


def _evaluate(original: Function, source: Any, names: Any = None, variables: Any = None, /) -> Any:
    """The form of eval and exec: the calls in a text are dispatched too."""
    frame = sys._getframe(1)
    if variables is None:
        variables = frame.f_locals if names is None else names
    names = frame.f_globals if names is None else names
    code = evaluated(source, original.__name__) if isinstance(source, str) else source
    return original(code, names, variables)


def _memoised(original: Any, function: Function) -> Function:
    """Return a function with functools.cache that keeps no traced value after its level: later calls would get it."""
    caches: dict[Scope, Function] = {}

    @functools.wraps(original)
    def call(*args: Any, **keywords: Any) -> Any:
        if holds_traced((*args, *keywords.values())):
            return function(*args, **keywords)
        scope = innermost_scope() if arrays_are_traced.get() else None
        if scope is None:
            return original(*args, **keywords)
        if scope not in caches:
            caches[scope] = functools.lru_cache(**original.cache_parameters())(function)
        return caches[scope](*args, **keywords)

    call.cache_clear, call.cache_info = original.cache_clear, original.cache_info  # type: ignore[attr-defined]
    return call


provide({CALLEE: callee, VALUE: value, ITEM: item, PLACE: place, RESULT: result})
