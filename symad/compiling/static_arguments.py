"""Static arguments of jitted functions: truth values, enumerations, classes, the object of a method.

Each static value makes another function.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Container, Mapping
from enum import Enum
from functools import update_wrapper
from threading import Lock
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from symad.errors import ArgumentError
from symad.reach.strict_key import StrictKey
from symad.tracing.calling.function_names import name_of
from symad.tracing.values.traced import Traced

Function = Callable[..., Any]
Roots = Callable[[], tuple[Any, ...]]  # objects whose reachable state is compared
STATIC = (bool, np.bool_, Enum, type)
_NEVER = (int, float, complex, np.ndarray, np.generic, Traced, sp.Basic)


class Variants:
    """Results of a maker for a function with some arguments bound, kept for the latest of them.

    >>> variants = Variants(lambda x, doubled: 2 * x if doubled else x, lambda f: f, 8)
    >>> variants.of({1: True})(3.0), variants.of({1: False})(3.0), variants.of({1: True}) is variants.of({1: True})
    (6.0, 3.0, True)
    """

    def __init__(self, function: Function, make: Callable[[Function], Function], kept: int) -> None:
        self._function, self._make, self._kept = function, make, kept
        self._variants: OrderedDict[Any, Function] = OrderedDict()
        self._lock = Lock()

    def of(self, static: Mapping[int, Any]) -> Function:
        """Return the variant with static arguments at these positions."""
        key = tuple((position, StrictKey(value)) for position, value in sorted(static.items()))
        with self._lock:
            variant = self._variants.get(key)
            if variant is None:
                variant = self._variants[key] = self._make(bound(self._function, static))
            self._variants.move_to_end(key)
            if len(self._variants) > self._kept:
                self._variants.popitem(last=False)
        return variant


class Instances:
    """The variants of a method by the object that it is bound to, which they do not keep alive.

    The maker gets the method without the object, and the object's class and attributes.

    >>> class Model:
    ...     def times(self, x):
    ...         return self.factor * x
    >>> instances, model = Instances(Model.times, lambda bound, roots: bound, 8), Model()
    >>> model.factor = 3.0
    >>> instances.takes(model), instances.takes(3.0), instances.of(model)(2.0)
    (True, False, 6.0)
    """

    def __init__(self, function: Function, make: Callable[[Function, Roots], Function], kept: int) -> None:
        self._function, self._make, self._kept = function, make, kept
        self._methods = WeakKeyDictionary[type, bool]()  # whether the function is a method of a class
        self._variants: OrderedDict[int, tuple[ReferenceType[Any], Any, Function]] = OrderedDict()  # by the object's id
        self._lock = Lock()

    def takes(self, value: Any) -> bool:
        """Whether the function is a method of this object, which is no container and no number."""
        kind = type(value)
        if isinstance(value, (*_NEVER, *STATIC)):
            return False
        is_one = self._methods.get(kind)
        if is_one is None:
            is_one = self._methods[kind] = is_method(self._function, kind) and containers.is_leaf(value)
        return is_one

    def of(self, instance: Any) -> Function:
        """Return the variant for an object; ArgumentError where its attributes cannot be compared."""
        key = id(instance)
        with self._lock:
            reference, roots, variant = self._variants.get(key, (None, (), None))
            if variant is None or reference is None or reference() is not instance or not _are_current(roots, instance):
                reference, roots, variant = self._variants[key] = self._of_new(instance)
            self._variants.move_to_end(key)
            if len(self._variants) > self._kept:
                self._variants.popitem(last=False)
        return variant

    def _of_new(self, instance: Any) -> tuple[ReferenceType[Any], Any, Function]:
        key, variants, function = id(instance), self._variants, self._function
        if not has_only_a_dict(instance):
            name = name_of(function)
            raise ArgumentError(
                f"jit on a method of {type(instance).__name__}, whose objects hold more than their __dict__",
                why="what a method reads of its object is compared at each call, and slots cannot be",
                do=f"leave __slots__ out of the class, or jit the method of one object: jit(object.{name})",
            )

        def _on_collected(gone: ReferenceType[Any]) -> None:
            if variants.get(key, (None,))[0] is gone:
                variants.pop(key, None)

        reference, roots = ref(instance, _on_collected), (type(instance), vars(instance))
        bound = update_wrapper(lambda *others: function(reference(), *others), function)
        _with_signature(bound, function, (0,))
        return reference, roots, self._make(bound, lambda: roots)


def _are_current(roots: tuple[Any, ...], instance: Any) -> bool:
    """Whether these are the class and the attributes of an object, which may have been replaced."""
    return roots[0] is type(instance) and roots[1] is vars(instance)


class _Plain:
    """A class whose objects have a __dict__, and can be referenced weakly."""


def has_only_a_dict(value: Any) -> bool:
    """Whether all that an object holds is in its __dict__: no slots, nothing that a class in C keeps.

    >>> has_only_a_dict(_Plain()), has_only_a_dict({}), has_only_a_dict(ValueError())
    (True, False, False)
    """
    kind = type(value)
    return hasattr(value, "__dict__") and (kind.__basicsize__, kind.__itemsize__) == (_Plain.__basicsize__, 0)


def is_method(function: Function, kind: type) -> bool:
    """Whether a class has this function as an attribute, possibly wrapped.

    >>> is_method(_Plain.__init__, _Plain), is_method(print, _Plain)
    (True, False)
    """
    attributes = (attribute for base in kind.__mro__ for attribute in vars(base).values() if callable(attribute))
    return any(inspect.unwrap(attribute) is function for attribute in attributes)


def bound(function: Function, static: Mapping[int, Any]) -> Function:
    """Return a function of the other arguments, which keep their names.

    >>> inspect.signature(bound(lambda x, flag, y: x, {1: True}))
    <Signature (x, y)>
    """

    def call(*others: Any) -> Any:
        rest = iter(others)
        count = len(static) + len(others)
        return function(*[static[k] if k in static else next(rest) for k in range(count)])

    update_wrapper(call, function)
    _with_signature(call, function, static)
    return call


def _with_signature(call: Function, function: Function, static: Container[int]) -> None:
    """Give a function the signature of another one without its static parameters."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin does not always have one
        return
    kept = [parameter for k, parameter in enumerate(signature.parameters.values()) if k not in static]
    call.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
