"""Container types beyond Python's own: records, namespaces, labelled data, registered classes.

A dataclass is flattened into its fields, without registration. Fields without numbers (texts, truth values,
enumerations, functions, classes) are static: they stay unchanged and are part of the structure, like a field with
`field(metadata={"static": True})`. Containers are rebuilt without a call of `__init__` or `__post_init__`, whose checks
do not expect traced values, gradients or object arrays.

optree keeps the registry, one for the process, under symad's namespace: a class stays registered while the process
lives, and other users of optree do not see it. Classes registered in optree's global namespace are known, too.

Of labelled arrays (pandas Series and DataFrames, xarray DataArrays) the labels are static, and stay with derivatives:
the gradient in a Series is a Series. Names of Series and arrays are left out, so that a kernel takes each row of a
DataFrame. Pandas and xarray take a traced array for one of NumPy's. Results with other dimensions, such as a Hessian,
are arrays without labels.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from threading import Lock
from typing import Any

import numpy as np
import optree
import sympy as sp

from symad.reach.strict_key import StrictKey
from symad.tracing.calling.running import callee
from symad.tracing.calling.user_place import refusal
from symad.tracing.values.traced import Traced

NAMESPACE = "symad"  # where symad registers container types of its own

_STATIC = (
    str, bytes, bool, np.bool_, Enum, type, np.dtype, np.ufunc, sp.Lambda,
    functools.partial, types.FunctionType, types.BuiltinFunctionType, types.MethodType,
)  # fmt: skip
_register: Callable[..., Any] = functools.partial(optree.register_pytree_node, namespace=NAMESPACE)
_registering = Lock()
_registered: dict[type, Callable[[Any], Any]] = {}  # how instances are taken apart

Static = tuple[tuple[str, StrictKey], ...]
Flattened = tuple[list[Any], tuple[tuple[str, ...], Static], tuple[str, ...]]


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    """An attribute: its name, whether it is static, and whether `__init__` takes it."""

    name: str
    static: bool
    given: bool = True


def register_container(
    cls: type,
    flatten: Callable[[Any], tuple[Mapping[str, Any] | Sequence[Any], Any]],
    unflatten: Callable[[Any, Any], Any],
) -> None:
    """Make instances of a class containers, as dicts and lists are: arguments and results of every transform.

    `flatten(value)` returns the parts and what is static (hashable): parts that are a mapping are written
    `value.name` in messages, a sequence `value[0]`. `unflatten(static, parts)` puts parts of the same kind together;
    it also gets traced values and gradients, so it should not check them. ArgumentError for a class that is one.

    >>> class Line:
    ...     def __init__(self, slope, offset):
    ...         self.slope, self.offset = slope, offset
    >>> register_container(Line, lambda line: (vars(line), None), lambda static, parts: Line(**parts))
    >>> optree.tree_leaves(Line(2.0, 3.0), namespace="symad")
    [2.0, 3.0]
    """
    if not isinstance(cls, type):
        raise refusal(f"{cls!r:.80} in place of a class", do="give the class itself")

    def take_apart(value: Any) -> tuple[list[Any], Any, Iterable[Any]]:
        parts, static = flatten(value)
        named = isinstance(parts, Mapping)
        entries = tuple(parts) if named else tuple(range(len(parts)))
        kept = (named, entries, StrictKey(static))
        return list(parts.values() if isinstance(parts, Mapping) else parts), kept, entries

    def put_together(metadata: Any, parts: Iterable[Any]) -> Any:
        named, entries, static = metadata
        return unflatten(static.value, dict(zip(entries, parts, strict=True)) if named else list(parts))

    with _registering:
        try:
            _register(cls, take_apart, put_together, path_entry_type=_ContainerPart)
        except ValueError as error:
            raise refusal(f"{cls.__name__} is a container already") from error
        _registered[cls] = take_apart


class _ContainerPart(optree.PyTreeEntry):
    """A part of a registered container: `.name` or `[0]`."""

    def codify(self, node: str = "") -> str:
        return f"{node}.{self.entry}" if isinstance(self.entry, str) else f"{node}[{self.entry!r}]"


def register_records(leaves: Iterable[Any]) -> bool:
    """Register the classes of leaves that are dataclass or attrs instances; whether there were any."""
    records = [cls for cls in set(map(type, leaves)) if _is_record(cls) or labelled_form(cls)]
    for cls in records:
        with _registering:
            if cls not in _registered:  # another thread may have been here
                form = labelled_form(cls)
                _register_record(cls, _fields_of(cls)) if form is None else _register_labelled(cls, *form)
    return bool(records)


_BUILT_IN = (dict, list, tuple, set, frozenset, str, int, float, BaseException)  # not to be made by object.__new__


@functools.lru_cache(maxsize=1024)  # asked for every leaf's type, at every call of a jitted function
def _is_record(cls: type) -> bool:
    is_record = dataclasses.is_dataclass(cls) or hasattr(cls, "__attrs_attrs__") or _is_model(cls)
    return is_record and not issubclass(cls, _BUILT_IN)


def _is_model(cls: type) -> bool:
    return isinstance(vars(cls).get("__pydantic_fields__"), dict)


def _fields_of(cls: Any) -> list[_Field]:
    if _is_model(cls):
        return [_Field(name, static=False) for name in cls.__pydantic_fields__]
    fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else cls.__attrs_attrs__
    return [_Field(field.name, bool(field.metadata.get("static")), bool(field.init)) for field in fields]


def _register_record(cls: type, fields: Sequence[_Field]) -> None:
    take_apart = functools.partial(_flatten_record, fields=fields)
    _register(cls, take_apart, functools.partial(_unflatten_record, cls), path_entry_type=optree.GetAttrEntry)
    _registered[cls] = take_apart


def _register_labelled(cls: type, take_apart: Any, put_together: Any, entry: Any) -> None:
    _register(cls, take_apart, put_together, path_entry_type=entry)
    _registered[cls] = lambda value: (take_apart(value)[0], ((),), ())  # a function does not read labels as parts


def static_parts(tree: Any) -> list[Any]:
    """Return the static parts of nested containers.

    >>> static_parts((types.SimpleNamespace(name="a", x=1.0), [2.0]))
    ['a']
    """
    values: list[Any] = []

    def look(value: Any) -> bool:
        if type(value) in _registered:
            static = _registered[type(value)](value)[1][-1]
            values.extend([static.value] if isinstance(static, StrictKey) else [part.value for _, part in static])
        return False

    optree.tree_leaves(tree, is_leaf=look, namespace=NAMESPACE)
    return values


def _flatten_record(value: Any, fields: Sequence[_Field]) -> Flattened:
    """Return the parts with numbers, their names and the static fields, without fields that are not set."""
    names: list[str] = []
    parts: list[Any] = []
    static: list[tuple[str, StrictKey]] = []
    for field in fields:
        if not hasattr(value, field.name):
            continue
        part = getattr(value, field.name)
        if field.static or isinstance(part, _STATIC):
            static.append((field.name, StrictKey(_hashable(part, value, field.name))))
            continue
        if not field.given and optree.tree_leaves(part, namespace=NAMESPACE):
            raise refusal(
                f"the field {field.name} of {type(value).__name__} holds numbers and is no argument of its __init__ "
                "(init=False)",
                why="it is computed from the other fields, and its value would hide that dependence from the "
                "derivative",
                do="make it a property",
            )
        names.append(field.name)
        parts.append(part)
    return parts, (tuple(names), tuple(static)), tuple(names)


def _unflatten_record(cls: type, metadata: Any, parts: Iterable[Any]) -> Any:
    names, static = metadata
    record: Any = object.__new__(cls)
    for name, part in (*zip(names, parts, strict=True), *_static(static)):
        object.__setattr__(record, name, part)
    if _is_model(cls):  # what pydantic's own model_construct sets
        for name, part in (("fields_set", {*names, *dict(static)}), ("extra", None), ("private", None)):
            object.__setattr__(record, f"__pydantic_{name}__", part)
    return record


def _static(kept: Iterable[tuple[str, StrictKey]]) -> list[tuple[str, Any]]:
    return [(name, part.value) for name, part in kept]


def _hashable(part: Any, value: Any, name: str) -> Any:
    try:
        hash(part)
    except TypeError as error:
        raise refusal(
            f"the static field {name} of {type(value).__name__} is of type {type(part).__name__}",
            why="a static field is part of the key under which kernels are kept, and has to be hashable",
            do="use a tuple, or a field that is not static",
        ) from error
    return part


def _flatten_namespace(value: types.SimpleNamespace) -> Flattened:
    return _flatten_record(value, [_Field(name, static=False) for name in sorted(vars(value))])


def _unflatten_namespace(metadata: Any, parts: Iterable[Any]) -> types.SimpleNamespace:
    names, static = metadata
    return types.SimpleNamespace(**dict(zip(names, parts, strict=True)), **dict(_static(static)))


_registered[types.SimpleNamespace] = _flatten_namespace
_register(types.SimpleNamespace, _flatten_namespace, _unflatten_namespace, path_entry_type=optree.GetAttrEntry)


Form = tuple[Callable[[Any], Any], Callable[[Any, Any], Any], type]
SHOWN = 6  # labels in a message


class _Here(optree.PyTreeEntry):
    """The numbers of a Series or a DataArray, spelled like the whole."""

    def codify(self, node: str = "") -> str:
        return node


def labelled_form(kind: type) -> Form | None:
    """Return how to flatten and rebuild instances of a class, and the spelling of their parts."""
    package = str(kind.__module__).partition(".")[0]
    if package == "pandas" and issubclass(kind, sys.modules["pandas"].Series):
        return _series_apart, functools.partial(_series, kind), _Here
    if package == "pandas" and issubclass(kind, sys.modules["pandas"].DataFrame):
        return _frame_apart, functools.partial(_frame, kind), optree.MappingEntry
    if package == "xarray" and issubclass(kind, sys.modules["xarray"].DataArray):
        return _array_apart, functools.partial(_array, kind), _Here
    return None


class _Index:
    """Labels as a key: equal if they, their names and their types are."""

    def __init__(self, labels: Any) -> None:
        self.labels = labels

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Index) and bool(self.labels.identical(other.labels))

    def __hash__(self) -> int:
        return hash((type(self.labels), len(self.labels)))

    def __repr__(self) -> str:
        shown = list(self.labels) if len(self.labels) <= SHOWN else [*self.labels[: SHOWN - 1], "...", self.labels[-1]]
        return f"{type(self.labels).__name__} of {len(self.labels)}: {', '.join(map(str, shown))}"


def _has(part: Any, *lengths: int) -> bool:
    """Whether a part is an array of this shape, or a number; a derivative of order 2 is neither."""
    return type(part) is float or (isinstance(part, Traced | np.ndarray) and np.shape(part) == lengths)  # type: ignore[arg-type]


def _numbers(series: Any) -> Any:
    """Return the array in a Series, ordinary or traced; pandas' public ways would make objects of a traced one."""
    held = series._values
    return held if isinstance(held, Traced | np.ndarray) else series.to_numpy()


def _holds_scalars(column: Any) -> bool:
    """Whether traced numbers are in a column; pandas takes them for objects where it is not asked by a stand-in."""
    return column.dtype == object and any(isinstance(item, Traced) for item in column)


def _series_apart(series: Any) -> Any:
    return [_numbers(series)], (_Index(series.index),), (0,)


def _series(kind: type, static: Any, parts: Sequence[Any]) -> Any:
    (index,), (part,) = static, parts
    if not _has(part, len(index.labels)):
        return part
    return callee(kind)(part, index=index.labels, copy=False)


def _frame_apart(frame: Any) -> Any:
    """Flatten a DataFrame: columns with numbers are parts, the others static."""
    columns = [frame.iloc[:, k] for k in range(frame.shape[1])]
    moving = [k for k, column in enumerate(columns) if column.dtype.kind in "fiu" or _holds_scalars(column)]
    static = tuple((k, StrictKey(tuple(columns[k]))) for k in range(len(columns)) if k not in moving)
    parts = [_numbers(columns[k]) for k in moving]
    return parts, (_Index(frame.index), _Index(frame.columns), static), tuple(frame.columns[k] for k in moving)


def _frame(kind: Any, static: Any, parts: Sequence[Any]) -> Any:
    index, columns, kept = static
    held = {k: column.value for k, column in kept}
    if not all(_has(part, len(index.labels)) for part in parts):
        names = (columns.labels[k] for k in range(len(columns.labels)) if k not in held)
        return dict(zip(names, parts, strict=True))
    rest = iter(parts)
    content = {k: held[k] if k in held else next(rest) for k in range(len(columns.labels))}
    frame = callee(kind)(content, index=index.labels, copy=False)
    frame.columns = columns.labels
    return frame


def _array_apart(array: Any) -> Any:
    coordinates = tuple(
        (name, part.dims, StrictKey(tuple(part.values.ravel().tolist()))) for name, part in array.coords.items()
    )
    return [array.data], (array.dims, array.shape, coordinates, _Kept(array.coords)), (0,)


class _Kept:
    """An object that accompanies a key without being part of it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kept)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"{type(self.value).__name__}"


def _array(kind: Any, static: Any, parts: Sequence[Any]) -> Any:
    dims, shape, _, coordinates = static
    (part,) = parts
    if not _has(part, *shape):
        return part
    data = np.full(shape, part) if type(part) is float else part
    return callee(kind)(data, dims=dims, coords=coordinates.value)
