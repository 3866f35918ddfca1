"""Facts about code: the names it loads, the attributes it asks for, and what cannot be followed.

They depend on the code alone and are cached by code. Nested functions and comprehensions count as code of the function
around them.
"""

from __future__ import annotations

import dis
import re
import types
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from weakref import ref

from codegen.records import dataclass

CODES = 4096  # bound of the cache

_NAMES = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_VARIABLES = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_LOCALS = frozenset({"LOAD_FAST", "LOAD_FAST_CHECK"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_STORES = frozenset({"STORE_ATTR", "DELETE_ATTR"})
_GLOBAL_STORES = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})
_FORMATS = frozenset({"FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE"})
_LOADING = _NAMES | _VARIABLES | _LOCALS | _ATTRIBUTES | {"BUILD_TUPLE"}
_CALLS = frozenset({"PRECALL", "CALL"})
_ADDS = frozenset({"append", "appendleft", "extend", "add"})
_TEXT = frozenset({"__str__", "__repr__", "__format__"})
_COPYING = frozenset({
    "__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__replace__",
})  # fmt: skip
_IMPLIED = {
    **dict.fromkeys(("str", "repr", "format", "print", "ascii"), _TEXT),
    **dict.fromkeys(("copy", "deepcopy", "replace"), _COPYING),
}
_DYNAMIC = frozenset({  # readers of attributes whose names need not occur in the code
    "getattr", "attrgetter", "methodcaller", "vars", "__dict__", "__getattribute__", "asdict", "astuple", "fields",
    "replace", "_asdict", "_replace", "getmembers",
})  # fmt: skip
_SPECIAL = frozenset(
    name for kind in (object, complex, int, float, str, list, dict, set, tuple, range) for name in dir(kind)
) | frozenset({
    "__name__", "__qualname__", "__module__", "__main__", "__call__", "__get__", "__set__", "__enter__", "__exit__",
    "__matmul__", "__rmatmul__", "__imatmul__", "__array__", "__array_ufunc__", "__array_function__", "__array_wrap__",
    "__array_finalize__", "__array_priority__", "__array_interface__", "__wrapped__", "__post_init__", "__next__",
    "__dict__", "__func__", "__self__", "__getattr__", "__missing__", "__copy__", "__deepcopy__", "__init__", "__new__",
    "__file__", "__slots__", "__bool__", "__truediv__", "__rtruediv__", "__itruediv__", "__defaults__",
    "__kwdefaults__", "__index__", "__complex__", "__build_class__", "__debug__", "__bases__", "__mro__", "__base__",
    "__version__", "__float__", "__int__", "__contains__", "__reversed__", "__members__", "__doc__", "__delitem__",
    "__radd__", "__iadd__", "__isub__", "__imul__", "__set_name__", "__init_subclass__", "__class_getitem__",
    "__classcell__", "__match_args__", "__await__", "__aiter__", "__anext__", "__aenter__", "__aexit__",
})  # fmt: skip
_HIDDEN = frozenset({  # attributes of Python's own objects that bypass the walk
    "f_globals", "f_locals", "f_builtins", "f_back", "gi_frame", "cr_frame", "ag_frame", "tb_frame", "__builtins__",
    "__loader__", "__spec__", "__path__", "__annotations__", "__annotate__",
}).union(*map(dir, (types.FunctionType, types.MethodType, types.ModuleType, type))) - _SPECIAL  # fmt: skip
_IDENTIFIER = re.compile(r"[\w.]+")


@dataclass(frozen=True)
class Load:
    """A name that code loads: a global one or a variable of an enclosing function, and which attributes of it."""

    name: str
    is_global: bool
    attributes: tuple[str, ...]
    is_stored: bool  # the last of the attributes is set or deleted
    is_checked: bool  # it is a class that `isinstance` asks for


@dataclass(frozen=True)
class CodeFacts:
    """The names that code, nested code included, asks for. `dynamic`: it may also read attributes by other names.

    `handles`: it may catch an error, or a `with` may suppress one. `asks_for_identity`: it compares something with True
    or False by `is`.
    """

    loads: tuple[Load, ...]
    names: frozenset[str]
    imports: tuple[tuple[str, int, tuple[str, ...]], ...]  # module, level, imported names
    stores: tuple[str, ...]  # global names that it sets
    hidden: tuple[str, ...]  # attributes that bypass the walk
    dynamic: bool
    added_to: frozenset[str]  # names whose values it only adds to, and never reads
    handles: bool
    asks_for_identity: bool


def codes_of(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield code and that of the functions and comprehensions in it, in the order of the source."""
    waiting = [code]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += [inner for inner in reversed(part.co_consts) if type(inner) is types.CodeType]


_originals: dict[int, tuple[ref[types.CodeType], types.CodeType]] = {}  # rewritten code by its id, and the user's


def note_original(code: types.CodeType, original: types.CodeType) -> None:
    """Note that code is another form of the user's (`symad.tracing.calling.rewriting`), whose facts it has."""
    number = id(code)

    def _on_collected(gone: ref[types.CodeType]) -> None:
        _originals.pop(number, None)

    _originals[number] = ref(code, _on_collected), original


def original_of(code: types.CodeType) -> types.CodeType:
    """Return the user's code from which rewritten code was made; other code unchanged.

    >>> original_of(original_of.__code__) is original_of.__code__
    True
    """
    known, original = _originals.get(id(code), (None, code))
    return original if known is not None and known() is code else code


def facts_of(code: types.CodeType) -> CodeFacts:
    """Return the facts of code.

    >>> facts = facts_of((lambda x: np.sin(x) * scale).__code__)
    >>> [(load.name, load.attributes) for load in facts.loads], facts.dynamic
    ([('np', ('sin',)), ('scale', ())], False)
    >>> [facts_of(f.__code__).asks_for_identity for f in (lambda x: x is True, lambda x: x is None)]
    [True, False]
    """
    return _facts_of(original_of(code))


@lru_cache(maxsize=CODES)
def _facts_of(code: types.CodeType) -> CodeFacts:
    loads: dict[tuple[Any, ...], Load] = {}
    imports, stores = [], list[str]()
    names, written, read = set[str](), set[str](), set[str]()
    dynamic = handles = asks_for_identity = False
    for part in codes_of(code):
        names |= {*part.co_names, *_words(part.co_consts)}
        steps = [step for step in dis.get_instructions(part) if step.opname != "EXTENDED_ARG"]
        for k, step in enumerate(steps):
            kind = step.opname
            if kind in _NAMES or kind in _VARIABLES:
                load = _load(steps, k)
                loads[load.name, load.is_global, load.attributes, load.is_stored, load.is_checked] = load
            elif kind == "IMPORT_NAME":
                imports.append((step.argval, _constant(steps[k - 2]), _constant(steps[k - 1]) or ()))
            elif kind in _GLOBAL_STORES:
                stores.append(step.argval)
            dynamic = dynamic or kind == "MATCH_CLASS"
            handles = handles or kind in ("PUSH_EXC_INFO", "WITH_EXCEPT_START")
            asks_for_identity |= kind == "IS_OP" and isinstance(_constant(steps[k - 1]), bool)
            read |= set(step.argval) if kind == "LOAD_FAST_LOAD_FAST" else set()  # two at once, since 3.13
            names |= _TEXT if kind in _FORMATS else frozenset()
            if kind in _NAMES or kind in _VARIABLES or kind in _ATTRIBUTES or kind in _LOCALS:
                after = steps[k + 1] if k + 1 < len(steps) else step
                (written if after.opname in _ATTRIBUTES and after.argval in _ADDS else read).add(step.argval)
    for word, implied in _IMPLIED.items():
        names |= implied if word in names else frozenset()
    hidden = sorted(filter(is_hidden, names))
    return CodeFacts(
        tuple(loads.values()), frozenset(names), tuple(imports), tuple(stores), tuple(hidden),
        dynamic or not names.isdisjoint(_DYNAMIC), frozenset(written - read), handles, asks_for_identity,
    )  # fmt: skip


def _load(steps: list[dis.Instruction], k: int) -> Load:
    attributes, first = [], steps[k]
    is_stored = steps[k + 1].opname == "COPY"  # `module.total += 1`
    k += is_stored
    while k + 1 < len(steps) and steps[k + 1].opname in _ATTRIBUTES:
        k += 1
        attributes.append(steps[k].argval)
    if k + 1 < len(steps) and steps[k + 1].opname in _STORES:
        is_stored = True
        attributes.append(steps[k + 1].argval)
    return Load(first.argval, first.opname in _NAMES, tuple(attributes), is_stored, _is_checked(steps, k))


def _is_checked(steps: list[dis.Instruction], k: int) -> bool:
    """Whether a load that ends at a step gives a class to `isinstance`, alone or in a tuple of such loads."""
    end, loaded = k + 1, 0
    while end < len(steps) and steps[end].opname in _LOADING:
        end += 1
    if end + 1 >= len(steps) or steps[end].opname not in _CALLS:
        return False
    start = end - 1
    classes = steps[start].argval if steps[start].opname == "BUILD_TUPLE" else 1
    while start >= 0 and loaded < classes + 2 and steps[start].opname in _LOADING:
        loaded += steps[start].opname not in _ATTRIBUTES and steps[start].opname != "BUILD_TUPLE"
        start -= 1
    first = steps[start + 1]
    return loaded == classes + 2 and first.argval == "isinstance" and steps[end].argval == 2


def _constant(step: dis.Instruction) -> Any:
    return step.argval if step.opname in ("LOAD_CONST", "LOAD_SMALL_INT") else 0


def _words(constants: tuple[Any, ...]) -> Iterator[str]:
    """Yield the words of texts that may name attributes; a text with a place for another one formats it."""
    waiting = list(constants)
    for value in waiting:  # which grows
        if type(value) is str:
            if "%" in value or "{" in value:
                yield from _TEXT
            if _IDENTIFIER.fullmatch(value):
                yield from value.split(".")
        elif type(value) in (tuple, frozenset):
            waiting += value


def is_hidden(name: str) -> bool:
    """Whether an attribute bypasses the walk: it leads to frames, or to all global names.

    >>> is_hidden("__globals__"), is_hidden("__len__"), is_hidden("f_back"), is_hidden("scale")
    (True, False, True, False)
    """
    return name in _HIDDEN


def line_of_name(code: types.CodeType, name: str) -> int:
    """Return the line on which code loads a name, else its first."""
    for part in codes_of(code):
        for step in dis.get_instructions(part):
            if step.argval == name and step.positions is not None and step.positions.lineno:
                return step.positions.lineno
    return code.co_firstlineno
