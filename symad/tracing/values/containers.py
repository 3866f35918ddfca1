"""Containers of numbers, arrays and expressions: nested dicts, lists, tuples and dataclasses.

`flatten` and `unflatten` are optree's. None is a container without leaves (as in JAX), so it may stand for an absent
parameter. Sets, texts and any other objects are leaves, which `to_nodes` refuses with the path and the type. Further
containers are in `container_types`.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from enum import Enum
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import optree
import sympy as sp

from codegen.machine.calls.arguments import has_rules, way_out
from symad.errors import ArgumentError, TraceError
from symad.reach.strict_key import StrictKey
from symad.tracing.calling.scope import Scope, join
from symad.tracing.calling.user_place import user_place
from symad.tracing.values.array import Array, wrap
from symad.tracing.values.container_types import NAMESPACE, register_records
from symad.tracing.values.known_numbers import SymbolicValueError
from symad.tracing.values.node_arrays import Nodes
from symad.tracing.values.node_operands import ExpressionError, nodes_of
from symad.tracing.values.scalar import Scalar
from symad.tracing.values.traced import Traced

Structure = optree.PyTreeSpec


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Return the leaves of a nested container and its structure.

    >>> leaves, structure = flatten({"a": None, "b": (1.0, [2.0])})
    >>> leaves, unflatten(structure, [3.0, 4.0])
    ([1.0, 2.0], {'a': None, 'b': (3.0, [4.0])})
    """
    leaves, structure = optree.tree_flatten(tree, namespace=NAMESPACE)
    while register_records(leaves):  # dataclasses of new classes, perhaps nested
        leaves, structure = optree.tree_flatten(tree, namespace=NAMESPACE)
    return leaves, structure


def unflatten(structure: Structure, leaves: Sequence[Any]) -> Any:
    """Return the container with that structure and these leaves."""
    return optree.tree_unflatten(structure, leaves)


def check_structure(actual: Structure, expected: Structure, why: str) -> None:
    """Raise ArgumentError where two structures differ, in containers or in labels.

    >>> check_structure(flatten({"a": 1.0})[1], flatten([1.0])[1], "the kernel takes")
    Traceback (most recent call last):
    codegen.errors.ArgumentError: arguments of structure {'a': *}: the kernel takes [*]
    """
    if actual == expected:
        return
    texts = [_text(structure) for structure in (actual, expected)]
    same = "; the labels differ" if texts[0] == texts[1] else ""
    raise ArgumentError(f"arguments of structure {texts[0]}", why=f"{why} {texts[1]}{same}")


def _text(structure: Structure) -> str:
    return str(structure).removeprefix("PyTreeSpec(").removesuffix(")").removesuffix(f", namespace={NAMESPACE!r}")


def flatten_exactly(args: Any) -> tuple[list[Any], tuple[Any, ...]]:
    """Return the leaves of arguments, and a key of their structure that knows the order of dicts too.

    >>> flatten_exactly(({"a": 1.0, "b": 2.0},))[1] == flatten_exactly(({"b": 2.0, "a": 1.0},))[1]
    False
    """
    leaves, structure = flatten(args)
    dicts: list[StrictKey] = []

    def look(value: Any) -> bool:
        if isinstance(value, dict):
            dicts.append(StrictKey(tuple(value)))
        return False

    if structure.num_nodes > structure.num_leaves + 1:  # there are containers among them
        optree.tree_leaves(args, is_leaf=look, namespace=NAMESPACE)
    return leaves, (structure, *dicts)


def is_leaf(value: Any) -> bool:
    """Whether a value is no container.

    >>> is_leaf(2.0), is_leaf([2.0]), is_leaf(None)
    (True, False, False)
    """
    leaves, _ = flatten(value)
    return len(leaves) == 1 and leaves[0] is value


def shape_of(leaf: Any) -> tuple[int, ...]:
    """Return the shape of a leaf. SymPy expressions, and objects without a shape, which are refused later, are numbers.

    >>> shape_of(np.ones((2, 3))), shape_of(sp.IndexedBase("b")[0])
    ((2, 3), ())
    """
    shapeless = isinstance(leaf, sp.Basic) or (has_rules(type(leaf)) and not hasattr(leaf, "shape"))
    return () if shapeless else np.shape(leaf)


def paths(tree: Any, name: str = "") -> list[str]:
    """Return the spelling of each leaf, in the order of `flatten`.

    >>> paths({"layer_1": {"weight": 1.0}, "scale": (2.0, 3.0)}, "params")
    ['params["layer_1"]["weight"]', 'params["scale"][0]', 'params["scale"][1]']
    """
    leaves, _ = flatten(tree)  # which registers the dataclasses in it
    if len(leaves) == 1 and leaves[0] is tree:
        return [name]
    return [name + "".join(map(step, accessor)) for accessor in optree.tree_accessors(tree, namespace=NAMESPACE)]


def step(entry: Any) -> str:
    """Return the spelling of one step down into a container: `["key"]`, `[0]` or `.name`."""
    if isinstance(entry, optree.MappingEntry):
        key = entry.entry
        plain = isinstance(key, str) and not set(key) & {'"', "\\", "\n"}
        return f'["{key}"]' if plain else f"[{key!r}]"
    if isinstance(entry, optree.FlattenedEntry):  # of a class registered without names
        return f"[{entry.entry!r}]"
    written: str = entry.codify("")
    return written


def to_nodes(value: Any, scope: Scope, *, path: str, role: str = "argument") -> Nodes:
    """Return the node ids of a leaf (int64; shape () for a scalar): numbers become constants, SymPy is converted.

    A column Matrix of SymPy's as an argument is a vector: `v[0]` is its first entry.

    ArgumentError (role "argument") or TraceError (role "result") for anything that is no real number, array or
    expression, naming `path` and the type.

    >>> from symad.tracing.calling.scope import open_scope
    >>> with open_scope() as scope:
    ...     to_nodes(np.ones((2, 3)), scope, path="x").shape, to_nodes(sp.Symbol("a") + 1, scope, path="y").shape
    ((2, 3), ())
    """
    why = _unsuitable(value)
    if why:
        raise _refusal(value, path, role, why)
    if isinstance(value, Traced):
        join(scope, value.scope)
    try:
        nodes = scope.graph.arrays.copied(nodes_of(value, scope))
    except SymbolicValueError:
        raise
    except TraceError as error:
        do = error.do if isinstance(error, ExpressionError) else ""
        raise _refusal(value, path, role, error.what + (f" ({error.why})" if error.why else ""), do) from error
    is_column = role == "argument" and isinstance(value, sp.MatrixBase) and value.shape[1] == 1
    return nodes.reshape(-1) if is_column else nodes


def from_nodes(nodes: Nodes, scope: Scope) -> Scalar | Array:
    """Return the traced value of node ids: a Scalar for shape (), else an Array of its own (the ids are copied)."""
    return wrap(scope.graph.arrays.copied(nodes), scope)


def check_differentiable(value: Any, path: str) -> None:
    """Raise ArgumentError unless a derivative with respect to this leaf makes sense.

    Integers, and arrays of them, are taken as floats; truth values, complex numbers and anything that is no number are
    refused.
    """
    why = _unsuitable(value)
    if why:
        raise _refusal(value, path, "argument", why)
    if isinstance(value, bool | np.bool_):
        raise _refusal(value, path, "argument", "a truth value has no derivative", _BIND)
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "b":
            why = f"its dtype is {value.dtype}, and a derivative needs real numbers"
            do = "use .astype(float)" + ("" if path.isidentifier() else ", or choose parts with wrt=")
            raise _refusal(value, path, "argument", why, do)
        for item in value.ravel().tolist() if value.dtype == object else ():
            if not isinstance(item, Scalar | sp.Expr | int | float | np.number | Fraction):
                raise _refusal(value, path, "argument", f"it holds a value of type {type(item).__name__}")
    plain = next((kind for kind in _PLAINLY if isinstance(value, kind)), None)
    if plain is not None and type(value) not in _PLAIN and not isinstance(value, Traced):
        why, do = "its class may redefine arithmetic, or mean more than its numbers", f"pass {_PLAINLY[plain]}"
        raise _refusal(value, path, "argument", why, do)


_BIND = "pass a float, or bind it: lambda x: f(x, True); jit takes it beside numbers"
_PLAINLY = {np.ndarray: "np.asarray(...)", float: "float(...)", int: "int(...)"}
_PLAIN = frozenset({np.ndarray, np.memmap, float, int, np.float64})


_COMPLEX = "only real functions are differentiated"
_TEXT = "a text is no number"
_DATE = "a date is no real number"
# Types with their own reason; all other types are named.
_REASONS: tuple[tuple[Any, str], ...] = (
    (complex | np.complexfloating, _COMPLEX),
    (str | bytes | np.str_ | np.bytes_, _TEXT),
    (type(None), "None is no number"),
    (set | frozenset, "a set has no order"),
    (np.datetime64 | np.timedelta64, _DATE),
    (Enum, "an enumeration is no number"),
    (types.FunctionType | types.BuiltinFunctionType | types.MethodType | partial, "a function is no number"),
    (sp.Lambda, "a Lambda is a function, and wants to be called with arguments"),
    (types.GeneratorType, "a generator can be read only once"),
    (np.matrix, "np.matrix redefines * and is deprecated"),
)
_SUITABLE = frozenset({float, int, np.float64, Scalar, Array})
_KINDS = {"c": _COMPLEX, "U": _TEXT, "S": _TEXT, "M": _DATE, "m": _DATE}  # by dtype.kind


def _unsuitable(value: Any) -> str:
    """Return why a leaf cannot be traced, "" if it can."""
    if type(value) in _SUITABLE or (type(value) is np.ndarray and value.dtype.kind == "f"):
        return ""
    for kind, why in _REASONS:
        if isinstance(value, kind):
            return why
    if isinstance(value, np.ndarray) and not has_rules(type(value)):
        return _KINDS.get(value.dtype.kind, "" if value.dtype.kind in "biufO" else f"its dtype is {value.dtype}")
    if has_rules(type(value)) and not isinstance(value, Traced):
        return "what its class keeps beside the numbers (labels, units...) would be lost"
    if isinstance(value, sp.Expr) and value.is_number and value.is_real is False and not value.is_extended_real:
        return _COMPLEX
    return ""


_DO = {
    "argument": "pass numbers, NumPy arrays, SymPy expressions, or containers of them",
    "result": "return numbers, arrays, or containers of them",
}


def _refusal(value: Any, path: str, role: str, why: str, do: str = "") -> ArgumentError | TraceError:
    error = ArgumentError if role == "argument" else TraceError
    kind = f"an array of {value.dtype}" if type(value) is np.ndarray else f"of type {type(value).__name__}"
    subject = path if path.startswith(role) else f"{role} {path}"
    do = do or (way_out(type(value)) if has_rules(type(value)) else _DO[role])
    return error(f"{subject} is {kind}", where=user_place(), why=why, do=do)


def real_parts(tree: Any) -> Any:
    """Return nested containers with the real parts of complex leaves.

    >>> real_parts((1.0, [2 + 3j]))
    (1.0, [2.0])
    """
    leaves, structure = flatten(tree)
    return unflatten(structure, [np.real(leaf) if np.iscomplexobj(leaf) else leaf for leaf in leaves])
