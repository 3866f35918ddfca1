"""Ordinary classes and their objects: attributes, slots, built-in content, methods.

An object is ordinary if each of its classes is written in Python, or is a built-in container, whose content its own
methods read. Attributes are read through `type` and `object`, never through the object: a class may answer wrongly.
"""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]
import decimal
import random
import sys
import types
from abc import ABCMeta
from functools import partial
from typing import Any

import numpy as np

from symad.reach.known_packages import HEAVY, OURS, has_effects, is_pure, module_of
from symad.reach.object_rows import CONTENTS, attributes_of, content, entries, keep_array, other_row, refill_dict
from symad.reach.reach_trails import Checked, Trail
from symad.reach.reach_walk import OTHER_ROWS, ROWS, ReachWalk

RANDOM = "a generator of random numbers"
_CLASS_OF = "the class of "
_MISSING = object()
_MRO, _DICT, _FLAGS, _BASE, _SIZE = (
    type.__dict__[name].__get__ for name in ("__mro__", "__dict__", "__flags__", "__base__", "__basicsize__")
)
_HEAP, _IMMUTABLE = 1 << 9, 1 << 8
_RANDOM = (np.random.Generator, np.random.RandomState, random.Random)
_MADE_LATER = frozenset({"__slotnames__", "__annotations__", "__annotations_cache__", "__annotate_func__"})  # by Python
_BY_NAME = frozenset({  # special members that only code with their names asks for
    "__orig_bases__", "__parameters__", "__type_params__", "__static_attributes__", "__firstlineno__", "__weakref__",
    "__dict__", "__doc__", "__module__", "__qualname__", "__slots__", "__subclasshook__", "__abstractmethods__",
    "__dataclass_params__", "__dataclass_fields__", "__match_args__", "__signature__", "__attrs_attrs__",
    "__repr__", "__str__", "__format__", "__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__",
    "__setstate__", "__replace__", "__sizeof__", "__dir__", "__fspath__", "__getnewargs__", "__getnewargs_ex__",
})  # fmt: skip
_MAKERS = frozenset({"__new__", "__init__", "__post_init__", "__init_subclass__", "__set_name__", "__class_getitem__"})


def _is_python_class(kind: type) -> bool:
    """Whether a class is written in Python: its objects have only slots beyond those of its base."""
    members = _DICT(kind)
    flags, base = _FLAGS(kind), _BASE(kind)
    if not flags & _HEAP or flags & _IMMUTABLE or base is None:
        return False
    slots = sum(type(member) is types.MemberDescriptorType for member in list(members.values()))
    more = (_SIZE(kind) - _SIZE(base)) // 8 - slots
    return bool(0 <= more <= ("__weakref__" in members) + ("__dict__" in members))


def _row_of_others(walk: ReachWalk, value: Any, trail: Trail) -> None:
    """The row of objects whose exact type has none."""
    kind = type(value)
    if issubclass(kind, type):
        _of_class(walk, value, trail)
        return
    module = module_of(kind)
    package = module.partition(".")[0]
    if package in OURS:
        _of_symad(walk, value, trail)
    elif package == "numba":
        if (python := python_form(value)) is None:
            walk.stop(f"an object of type {kind.__qualname__}", trail)
        else:
            walk.lead([python], trail)
    elif package in HEAVY:
        walk.stop(f"a {kind.__qualname__}", trail)
    elif issubclass(kind, _RANDOM):
        _generator(walk, value, trail)
    else:
        is_ordinary = all(map(_is_ordinary, _MRO(kind)))
        row = other_row(kind, module, is_ordinary)
        if row is not None:
            row(walk, value, trail)
        elif is_ordinary:
            _of_object(walk, value, kind, trail)
        else:
            walk.stop(f"an object of type {kind.__qualname__}", trail)


def _generator(walk: ReachWalk, value: Any, trail: Trail) -> None:
    """Note the state of a generator of random numbers. A draw is an effect, unless the state is put back."""
    if not walk.restores:
        walk.effect(f"an object of type {type(value).__qualname__}", trail, "random")
    if type(value) not in _STATES:
        walk.stop(RANDOM, trail)
        return
    read, put_back = _STATES[type(value)]
    before = read(value)
    walk.ask(lambda: (repr(read(value)),), RANDOM, trail, lambda _: put_back(value, before))


_STATES: dict[type, tuple[Any, Any]] = {
    np.random.Generator: (lambda v: v.bit_generator.state, lambda v, old: setattr(v.bit_generator, "state", old)),
    np.random.RandomState: (lambda v: v.get_state(), lambda v, old: v.set_state(old)),
    random.Random: (lambda v: v.getstate(), lambda v, old: v.setstate(old)),
    random.SystemRandom: (lambda v: 0, lambda v, old: None),  # it has no state
}


_WITHOUT_USERS = ("symad.tracing.values.", "symad.tracing.calling.stand_ins")  # traced values; stand-ins of NumPy's


def _of_symad(walk: ReachWalk, value: Any, trail: Trail) -> None:
    """Note the functions and arrays that one of our own objects holds: only those may be the user's."""
    if module_of(type(value)).startswith(_WITHOUT_USERS):
        return
    held = list((attributes_of(value) or {}).values())
    held += [part for part in _slots(value, _slot_members(type(value))) if part is not _MISSING]
    walk.lead([part for part in held if callable(part) or type(part) is np.ndarray], trail)


def python_form(value: Any) -> types.FunctionType | None:
    """Return the Python function behind one of numba's functions, None for all other objects."""
    if "numba" not in sys.modules or not module_of(type(value)).startswith("numba."):
        return None
    function = getattr(getattr(value, "_dispatcher", value), "py_func", None)  # numba.vectorize keeps its dispatcher
    return function if isinstance(function, types.FunctionType) else None


# ---- objects


def _slot_members(kind: type) -> list[Any]:
    return [
        member
        for base in _MRO(kind)
        for member in list(_DICT(base).values())
        if type(member) is types.MemberDescriptorType and _FLAGS(base) & _HEAP
    ]


def _slots(value: Any, members: list[Any]) -> list[Any]:
    held = []
    for member in members:
        try:
            held.append(member.__get__(value))
        except AttributeError:  # it is not set
            held.append(_MISSING)
    return held


def _of_object(walk: ReachWalk, value: Any, kind: type, trail: Trail) -> None:
    """Note an object's class, slots, attributes, and its content as an object of a built-in class."""
    mro = _MRO(kind)
    if any(type(_DICT(base).get("__dict__", _A_DICT)) not in _OF_DICT for base in mro):
        walk.stop(f"an object of type {kind.__qualname__}", trail)
        return
    members = _slot_members(kind)
    attributes = attributes_of(value)

    def now() -> list[Any]:
        return [type(value), attributes_of(value), *_slots(value, members)]

    held = walk.ask(now, "an object", trail, partial(_put_back, value, members))[2:]
    if attributes is not None:
        _of_attributes(walk, attributes, mro, trail)
    walk.lead([part for part in held if part is not _MISSING], trail)
    walk.lead([kind], Trail(f"{_CLASS_OF}{trail.words}", trail.code, trail.key, trail.name))
    for base in mro:
        if base is np.ndarray:
            walk.ask(lambda: _form_of(value), "an array", trail)
            keep_array(walk, np.ndarray.view(value, np.ndarray), trail)
        elif id(base) in _CONTENTS:
            content(walk, value, trail, base)


_OF_DICT = (types.GetSetDescriptorType, types.MemberDescriptorType)
_A_DICT = _DICT(type(attributes_of))["__dict__"]
_CONTENTS = {id(base) for base in CONTENTS}


def _is_ordinary(base: type) -> bool:
    """Whether all content of a class's objects can be read: by Python's rules, or as a built-in container."""
    if id(base) in _CONTENTS or base is np.ndarray or _is_python_class(base):
        return True
    return not _FLAGS(base) & _HEAP and issubclass(base, BaseException | np.generic) and base is not np.void


def _form_of(value: Any) -> list[Any]:
    shape, strides = np.ndarray.shape.__get__(value), np.ndarray.strides.__get__(value)
    return [*shape, *strides, np.ndarray.dtype.__get__(value)]


def _put_back(value: Any, members: list[Any], old: Any) -> None:
    kind, attributes, *held = old
    if type(value) is not kind:
        object.__setattr__(value, "__class__", kind)
    if attributes is not attributes_of(value):
        object.__setattr__(value, "__dict__", attributes)
    for member, before in zip(members, held, strict=True):
        if before is not _MISSING:
            member.__set__(value, before)
        elif _slots(value, [member])[0] is not _MISSING:
            member.__delete__(value)


def _of_attributes(walk: ReachWalk, attributes: dict[Any, Any], mro: tuple[type, ...], trail: Trail) -> None:
    """Note the attributes of an object. Follow those that code asks for; of records all."""
    walk.ask(partial(entries, attributes), "an object", trail, partial(refill_dict, attributes), attributes)
    is_record = any("__dataclass_fields__" in _DICT(base) or "__attrs_attrs__" in _DICT(base) for base in mro)
    module = module_of(mro[0])
    if is_pure(module):  # a library's own object; SciPy's distributions draw only in `rvs`
        walk.lead([part for name, part in list(attributes.items()) if name != "_random_state"], trail)
    elif is_record or type(attributes) is not dict or not _PLAIN_BASES.issuperset(_pure_modules(mro)):
        walk.lead(list(attributes.values()), trail)
    else:
        walk.members(attributes, trail)


# Classes.


def _members_of(kind: type) -> dict[str, Any]:
    return {name: member for name, member in _DICT(kind).copy().items() if name not in _MADE_LATER}


def _of_class(walk: ReachWalk, kind: type, trail: Trail) -> None:
    """Note the attributes of a class, its bases and its metaclass. Follow the attributes that code asks for."""
    if kind is decimal.Decimal:
        ROWS[id(decimal.Decimal)](walk, kind, trail)
    module = module_of(kind)
    if has_effects(module):
        walk.effect(f"the class {kind.__qualname__}", trail, module)
        return
    if not _FLAGS(kind) & _HEAP or _FLAGS(kind) & _IMMUTABLE or is_pure(module):
        return
    if module.partition(".")[0] in HEAVY:
        walk.stop(f"the class {kind.__qualname__}", trail)
        return
    bases = type.__dict__["__bases__"]

    def now() -> list[Any]:
        members = _members_of(kind)
        return [type(kind), *bases.__get__(kind), *members, *members.values()]

    walk.ask(now, "a class", trail, partial(_put_class_back, kind, _members_of(kind)))
    members = _members_of(kind)
    if "_abc_impl" in members:
        _registered(walk, kind, trail)
    walk.lead([*bases.__get__(kind), type(kind)], trail)
    asked = {name: member for name, member in members.items() if name != "_abc_impl"}
    special = {name for name in asked if _is_special(name) and name not in _BY_NAME}
    if trail.words.startswith(_CLASS_OF):
        special -= _MAKERS
    if not _is_plain(type(kind)) or not _is_plain(kind):
        # Methods of libraries, and metaclasses such as that of enumerations, ask for members by names that no code has.
        walk.lead(list(asked.values()), trail)
        return
    walk.lead([asked[name] for name in special], trail)
    walk.members({name: member for name, member in asked.items() if name not in special}, trail)


_PLAIN_BASES = frozenset({"builtins", "abc", "typing"})  # their methods ask for no attributes by name
_PLAIN = _PLAIN_BASES | {"collections"}  # and those of collections only for attributes of their own


def _pure_modules(mro: tuple[type, ...]) -> set[str]:
    return {module_of(base) for base in mro if is_pure(module_of(base))}


def _is_plain(kind: type) -> bool:
    """Whether a class derives from no library class except containers and numbers."""
    return _PLAIN.issuperset(_pure_modules(_MRO(kind)))


def _is_special(name: Any) -> bool:
    return type(name) is not str or (name.startswith("__") and name.endswith("__"))


def _checked(walk: ReachWalk, value: Checked, trail: Trail) -> None:
    """Note what decides `isinstance` with a class: its bases, and the classes registered with them."""
    kind = value.kind

    def checks() -> list[Any]:
        return [_DICT(base)["__instancecheck__"] for base in _MRO(type(kind)) if "__instancecheck__" in _DICT(base)]

    if len(checks()) > 1 and checks()[0] is not _DICT(ABCMeta)["__instancecheck__"]:
        _of_class(walk, kind, trail)
        return
    walk.ask(lambda: [type(kind), *_MRO(kind), *checks()], "a class", trail)
    if "_abc_impl" in _DICT(kind):
        _registered(walk, kind, trail)


def _put_class_back(kind: type, before: dict[str, Any], _: Any) -> None:
    now = _members_of(kind)
    for name in now.keys() - before.keys():
        type.__delattr__(kind, name)
    for name, member in before.items():
        if name not in now or now[name] is not member:
            type.__setattr__(kind, name, member)


def _registered(walk: ReachWalk, kind: type, trail: Trail) -> None:
    def now() -> tuple[Any, ...]:
        return tuple(sorted(id(reference()) for reference in _abc._get_dump(kind)[0]))

    walk.ask(now, "a class", trail)


OTHER_ROWS.append(_row_of_others)
ROWS[id(Checked)] = _checked
