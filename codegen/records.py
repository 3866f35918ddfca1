"""Data classes that are made in a third of the time of `dataclasses`. An import makes three hundred.

`dataclasses` compiles six functions for each class, one after the other. Here it finds the fields, only `__init__` is
compiled, and what compares, hashes, shows and forbids is made of the names of fields. The classes are data classes as
others are: `replace`, `fields`, `asdict` and `match` know them. To a type checker this is `dataclasses.dataclass`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass


class _Nothing:
    """Stands in the place of an argument that a field makes itself."""

    def __repr__(self) -> str:
        return "<factory>"


NOTHING: Any = _Nothing()
KNOWN = "__dataclass_params__"  # what data classes know of their options
_set = object.__setattr__


def _record(
    cls: Any = None, /, *, frozen: bool = False, slots: bool = False, eq: bool = True, repr: bool = True,
    kw_only: bool = False,
) -> Any:  # fmt: skip
    """Make a class a data class; options mean what they mean to `dataclasses.dataclass`.

    >>> from dataclasses import replace
    >>> @_record(frozen=True)
    ... class Point:
    ...     x: float
    ...     y: float = 0.0
    >>> point = replace(Point(1.0), y=2.0)
    >>> point, point == Point(1.0, 2.0), hash(point) == hash((1.0, 2.0))
    (Point(x=1.0, y=2.0), True, True)
    >>> point.x = 3.0
    Traceback (most recent call last):
    dataclasses.FrozenInstanceError: cannot assign to field 'x'
    """

    options = {"frozen": frozen, "slots": slots, "eq": eq, "repr": repr, "kw_only": kw_only}
    return partial(_made, **options) if cls is None else _made(cls, **options)


def _made(cls: Any, *, frozen: bool, slots: bool, eq: bool, repr: bool, kw_only: bool) -> Any:
    cls.__doc__ = cls.__doc__ or cls.__name__  # for which a signature would be written, slowly
    own = {"__init__", "__repr__", "__eq__", "__setattr__", "__delattr__"} & cls.__dict__.keys()
    hashed = cls.__dict__.get("__hash__") is not None
    inherits = any(vars(base)[KNOWN].frozen for base in cls.__mro__[1:] if KNOWN in vars(base))
    if inherits and not frozen:
        raise TypeError("cannot inherit non-frozen dataclass from a frozen one")
    fewest: dict[str, Any] = {"init": False, "repr": False, "eq": False, "frozen": inherits}
    cls = dataclasses.dataclass(**fewest, slots=slots, kw_only=kw_only)(cls)
    known = vars(cls)[KNOWN]
    known.init, known.repr, known.eq, known.frozen = True, repr, eq, frozen
    fields = dataclasses.fields(cls)
    names = tuple(field.name for field in fields)
    compared = tuple(field.name for field in fields if field.compare)
    methods: dict[str, Any] = {"__init__": _init(cls, fields, frozen)}
    if repr:
        methods["__repr__"] = _repr(tuple(field.name for field in fields if field.repr))
    if eq:
        methods["__eq__"] = _equal(compared)
    if frozen:
        methods |= _forbidden(cls, frozenset(names)) | (_pickled(names) if slots else {})
    for name in methods.keys() - own:
        methods[name].__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, methods[name])
    if eq and not hashed:
        cls.__hash__ = _hash(compared) if frozen else None
    return cls


def _init(cls: Any, fields: tuple[dataclasses.Field[Any], ...], frozen: bool) -> Callable[..., None]:
    """Return what `dataclasses` calls the init method: the one function that has to be written out."""
    names: dict[str, Any] = {"_set": _set, "_nothing": NOTHING}
    taken, keywords, lines = ["self"], list[str](), list[str]()
    for field in fields:
        name = value = field.name
        if field.default_factory is not dataclasses.MISSING:
            names[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}() if {name} is _nothing else {name}" if field.init else f"_make_{name}()"
        elif not field.init:
            continue
        if field.init:
            default = NOTHING if field.default_factory is not dataclasses.MISSING else field.default
            names[f"_default_{name}"] = default
            text = name if default is dataclasses.MISSING else f"{name}=_default_{name}"
            (keywords if field.kw_only else taken).append(text)
        lines.append(f"_set(self,{name!r},{value})" if frozen else f"self.{name}={value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    arguments = ",".join([*taken, *(["*", *keywords] if keywords else [])])
    exec(f"def __init__({arguments}):\n {';'.join(lines) or 'pass'}", names)  # names of fields are identifiers
    init: Callable[..., None] = names["__init__"]
    init.__annotations__ = {field.name: field.type for field in fields if field.init} | {"return": None}
    return init


def _values(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)


def _repr(names: tuple[str, ...]) -> Callable[[Any], str]:
    @recursive_repr("...")
    def __repr__(self: Any) -> str:  # noqa: N807
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"

    return __repr__


def _equal(names: tuple[str, ...]) -> Callable[[Any, Any], Any]:
    values = _values(names)

    def __eq__(self: Any, other: Any) -> Any:  # noqa: N807
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(names: tuple[str, ...]) -> Callable[[Any], int]:
    values = _values(names)

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(values(self))

    return __hash__


def _forbidden(cls: Any, names: frozenset[str]) -> dict[str, Callable[..., None]]:
    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}


def _pickled(names: tuple[str, ...]) -> dict[str, Callable[..., Any]]:
    def __getstate__(self: Any) -> list[Any]:  # noqa: N807
        return [getattr(self, name) for name in names]

    def __setstate__(self: Any, state: list[Any]) -> None:  # noqa: N807
        for name, value in zip(names, state, strict=True):
            _set(self, name, value)

    return {"__getstate__": __getstate__, "__setstate__": __setstate__}


if not TYPE_CHECKING:
    dataclass = _record
