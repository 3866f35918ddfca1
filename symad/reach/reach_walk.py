"""Walk over everything that functions can reach: names, enclosing variables, objects and their content.

The walk is an allow-list. The exact type of an object has a row (`symad.reach.object_rows`), or its class is an
ordinary one (`symad.reach.object_classes`): both say how its state is read and where it leads. All other objects make
the answer "unknown", by name. Members of classes and objects wait for code that has their names.
"""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from symad.reach.code_facts import CodeFacts, Load, facts_of, is_hidden
from symad.reach.compared_state import ComparedState, PutBack, StatePart
from symad.reach.known_packages import (
    DOING,
    EFFECT_METHODS,
    EFFECT_NAMES,
    HEAVY_CODE,
    SETTINGS,
    asks,
    has_effects,
    is_installed,
    is_pure,
    is_told,
    is_trusted_code,
    module_of,
)
from symad.reach.reach_trails import Checked, Obstacle, Trail

REACHED = 10_000  # objects in a walk
ELEMENTS = 2**18  # of all containers together
COUNTED = 1000  # elements of a container whose comparison takes time worth counting

Row = Callable[["ReachWalk", Any, "Trail"], None]
ROWS: dict[int, Row] = {}  # by the ids of exact types: a class may have a hash of its own
ATOMS: set[int] = set()  # ids of types whose objects have no state, and lead to nothing
OTHER_ROWS: list[Row] = []  # of all other objects; filled by `object_classes`

_MISSING = object()
_ASKED_BY_LIBRARIES = frozenset({  # attributes that NumPy and SciPy ask objects for
    "shape", "dtype", "ndim", "size", "T", "H", "real", "imag", "matvec", "rmatvec", "matmat", "dot", "toarray",
    "todense", "tocsr", "conjugate", "adjoint", "item", "tolist", "copy", "value2member_map_", "lhs", "fun", "jac",
})  # fmt: skip


class ReachWalk:
    """Everything that functions reach: state, the user's functions, effects, and unknown objects.

    The walk ends where it has met the `most` functions of the user's.
    `restores`: state is put back after the body of a loop, and generators of random numbers and what packages hold are
    state too; else it is compared before a kernel or a trace is taken again.
    """

    def __init__(
        self,
        roots: Iterable[Any],
        *,
        restores: bool = False,
        left: Collection[int] = (),
        largest: float = 0,
        most: float = math.inf,
    ) -> None:
        self.restores, self.left, self.largest, self._most = restores, left, largest, most
        self.state = ComparedState()
        self.functions: list[types.FunctionType] = []
        self.closures: list[types.FunctionType] = []  # functions of libraries with other functions in their closures
        self.effects: list[Obstacle] = []
        self.unknown: list[Obstacle] = []
        self.caches: list[tuple[Any, Any]] = []
        self.named: list[tuple[str, Any]] = []  # lists and sets by the names that lead to them
        self.runs_out = self.keeps_results = False
        self.added_to, self._read = set[str](), set[str]()
        self._names = set[str](_ASKED_BY_LIBRARIES)
        self._all_names = self._has_bare_module = False
        self._spaces: list[tuple[dict[Any, Any], Trail]] = []  # members that wait for their names
        self._seen = set[int]()
        self._alive: list[Any] = []  # so that ids stay unique
        self._elements = 0
        self._doing: list[tuple[str, set[str] | None, Trail]] = []
        self._waiting: list[tuple[Any, Trail]] = []
        self._later: list[tuple[Any, Trail]] = []  # objects behind global names, which are not put back
        start = Trail("the function", None, "", "")
        self.lead(list(roots), start)
        self._run()
        for what, reads, trail in self._doing:
            if reads is None or self._all_names or not reads.isdisjoint(self._names):
                self.stop(what, trail)
        if "__str__" in self._names:  # the text of an array
            self.ask(lambda: (repr(np.get_printoptions()),), "how arrays are printed", start)

    def _run(self) -> None:
        while self._waiting or self._later:
            value, trail = self._waiting.pop() if self._waiting else self._later.pop()
            if id(value) in self._seen:
                continue
            self._seen.add(id(value))
            self._alive.append(value)
            if len(self._seen) > REACHED:
                self.stop(f"more than {REACHED:,} objects", trail)
            if len(self._seen) > REACHED or self._elements > ELEMENTS:
                return
            if (self.restores and self.unknown) or len(self.functions) >= self._most:
                return  # one unknown object decides about a body
            row = ROWS.get(id(type(value)))
            if row is not None:
                row(self, value, trail)
            else:
                OTHER_ROWS[0](self, value, trail)

    # What rows say.

    def lead(self, values: Collection[Any], trail: Trail) -> None:
        """Follow the contents of an object."""
        self._elements += len(values)
        if self._elements > ELEMENTS and not self.unknown:
            self.stop(f"more than {ELEMENTS:,} elements", trail)
        if ATOMS.issuperset(map(id, map(type, values))):
            return
        waiting = self._later if self.restores and trail.name else self._waiting
        waiting += [(value, trail) for value in values if id(type(value)) not in ATOMS]

    def ask(
        self,
        now: Callable[[], Sequence[Any]],
        what: str,
        trail: Trail,
        put_back: PutBack | None = None,
        owner: Any = None,
    ) -> Sequence[Any]:
        """Note the state of an object, and return it; `owner` is the object if it is a container."""
        before = now()
        self.state.parts.append(StatePart(now, before, put_back, what, trail.name, owner))
        self.state.bytes += 8 * len(before) if len(before) > COUNTED else 0
        return before

    def stop(self, what: str, trail: Trail) -> None:
        """Note that something cannot be followed."""
        self.unknown.append(Obstacle(what, trail))

    def effect(self, what: str, trail: Trail, module: str = "") -> None:
        """Note a possible side effect, of a module, which only a call of the function shows."""
        self.effects.append(Obstacle(what, trail, asks(module) or (what in EFFECT_NAMES and what not in DOING)))
        if module and not is_told(module, what.rpartition(".")[2].rpartition(" ")[2]):
            self.stop(what, trail)

    def only_does(self, what: str, reads: set[str] | None, trail: Trail) -> None:
        """Note an object with side effects. It is unknown if code has one of the names that read it."""
        self._doing.append((what, reads, trail))

    def members(self, space: dict[Any, Any], trail: Trail) -> None:
        """Follow the members of an object or a class whose names code has; the others wait."""
        space = dict(space)  # another thread may add some
        self.named += [(name, value) for name, value in space.items() if is_listed(value)]
        if self._all_names:
            self.lead(list(space.values()), trail)
            return
        self._spaces.append((space, trail))
        names = self._names
        self.lead([value for name, value in space.items() if type(name) is not str or name in names], trail)

    # Functions.

    def follow(self, f: types.FunctionType, trail: Trail) -> None:
        """Follow what a function reads."""
        code, space = f.__code__, f.__globals__
        if is_trusted_code(code.co_filename, space.get("__name__")):
            self._of_library(f, trail)
            return
        if is_installed(code.co_filename):
            module = str(space.get("__name__"))
            if has_effects(module):
                self.effect(f"{module}.{f.__qualname__}", trail, module)
                return
            if module.partition(".")[0] in HEAVY_CODE:
                self.stop(f"{module}.{f.__qualname__}", trail)
                return
        self.functions.append(f)
        attributes = f.__dict__
        self.state.functions.append((f, code, f.__defaults__, f.__kwdefaults__, attributes, trail.name))
        if attributes:
            self.lead([attributes], trail)
        else:
            self.state.empty.append(attributes)
        within = Trail("a default", code, "", trail.name)
        if f.__defaults__:
            self.lead(f.__defaults__, within)
        if f.__kwdefaults__:
            self.lead([f.__kwdefaults__], within)
        facts, cells = facts_of(code), self._variables(f)
        for load in facts.loads:
            if load.is_global:
                self._global(f, load)
            elif load.name in cells:
                self.through(cells[load.name], load, Trail(f"the variable {load.name}", code, load.name, ""))
        loaded = {load.name for load in facts.loads}
        rest = [value for name, value in cells.items() if name not in loaded]  # the class that super() asks for
        self.lead(rest, Trail("a variable around the function", code, "", ""))
        self._with_facts(facts, code)

    def _variables(self, f: types.FunctionType) -> dict[str, Any]:
        """Note the variables of enclosing functions, and return them."""
        values = {}
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            try:
                values[name] = cell.cell_contents
            except ValueError:  # nothing is bound to it
                self.state.unbound.append((cell, name))
                continue
            self.state.cells.append((cell, values[name], name))
            self.named += [(name, values[name])] if is_listed(values[name]) else []
        return values

    def _of_library(self, f: types.FunctionType, trail: Trail) -> None:
        """Follow the functions in the closure of a library function."""
        self.closures += [f] if f.__closure__ else []
        if f.__name__ in EFFECT_NAMES:
            self.effect(f.__name__, trail)
        elif f.__name__ in SETTINGS:
            self.stop(f"a setting ({f.__name__})", trail)
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            if name not in ("dispatch_cache", "cache_token") and _is_called(value, name):
                self.lead([value], trail)

    def everything(self) -> None:
        """Follow all members: code may ask for attributes by names that it does not contain."""
        if not self._all_names:
            self._all_names = True
            for space, trail in self._spaces:
                self.lead(list(space.values()), trail)

    def words(self, names: Iterable[str], trail: Trail) -> None:
        """Note the names of attributes that an object such as operator.attrgetter asks for."""
        parts = [part for name in names if type(name) is str for part in name.split(".")]
        for part in filter(is_hidden, parts):
            self.stop(part, trail)
        self._release_members(frozenset(parts))

    def _release_members(self, names: frozenset[str]) -> None:
        """Follow the waiting members with these names."""
        if names <= self._names:
            return
        fresh = names - self._names
        self._names |= fresh
        for members, trail in list(self._spaces):
            self.lead([members[name] for name in fresh & members.keys()], trail)

    def _with_facts(self, facts: CodeFacts, code: types.CodeType) -> None:
        for name in facts.hidden:
            self.stop(name, Trail(f"the attribute {name}", code, name, ""))
        for name in facts.stores:
            self.effect(f"a global name ({name}) that is set", Trail(f"the global name {name}", code, name, name))
        for module, level, names in facts.imports:
            self._import(module, level, names, Trail(f"the import of {module}", code, module, ""))
        self.added_to |= facts.added_to
        self._read |= facts.names - facts.added_to
        self._release_members(facts.names)
        self._effects_in(facts.names, code)
        if facts.dynamic:
            self.everything()

    def _effects_in(self, names: Iterable[str], code: types.CodeType | None) -> None:
        suspects = EFFECT_NAMES if self._has_bare_module else EFFECT_METHODS
        for name in () if suspects.isdisjoint(names) else suspects.intersection(names):
            self.effect(name, Trail(f"the attribute {name}", code, name, ""))

    def _note_package_value(self, code: types.CodeType | None) -> None:
        """Note that a package is used as a value: any attribute may be one of its names."""
        if not self._has_bare_module:
            self._has_bare_module = True
            self._effects_in(self._names, code)

    def _import(self, module: str, level: int, names: tuple[str, ...], trail: Trail) -> None:
        if not level and is_pure(module):
            self._note_package_value(trail.code)
            for name in names:
                self.through(sys.modules.get(module), Load(name, False, (name,), False, False), trail)
            return
        if not level and has_effects(module):
            self.effect(module, trail, module)
            return
        imported = sys.modules.get(module) if not level else None
        if imported is None or not names:
            self.stop("imported when it is called", trail)
            return
        self._name(sys.modules, module, trail)
        for name in names:
            self.through(imported, Load(name, False, (name,), False, False), trail)

    def _global(self, f: types.FunctionType, load: Load) -> None:
        space, name = f.__globals__, load.name
        trail = Trail(f"the global name {name}", f.__code__, name, name)
        value = self._name(space, name, trail)
        if value is _MISSING:
            defined = vars(types.FunctionType)["__builtins__"].__get__(f)
            value = self._name(defined, name, trail) if type(defined) is dict else _MISSING
            if value is _MISSING:
                return
        self.through(value, load, trail)

    def _name(self, space: dict[str, Any], name: str, trail: Trail, words: str = "") -> Any:
        """Note the value of a name in a namespace, or that it has none."""
        value = space.get(name, _MISSING)
        if value is _MISSING:
            self.state.absent.setdefault(id(space), (space, set()))[1].add(name)
        else:
            self.state.read(space, name, value, words or trail.name or name)
            if is_listed(value):
                self.named.append((name, value))
        return value

    # Modules: only "load a module, load its attribute" is followed.

    def through(self, value: Any, load: Load, trail: Trail) -> None:
        """Follow an attribute of a module, with the modules in between; any other value directly."""
        attributes = load.attributes
        while type(value) is types.ModuleType:
            name = vars(value).get("__name__")
            name = name if type(name) is str and (self.restores or sys.modules.get(name) is value) else ""
            if not attributes:
                self.module(value, name, trail)
                return
            if load.is_stored and len(attributes) == 1:
                self.effect(f"the attribute {attributes[0]} of {name or 'a module'} that is set", trail)
                if self.restores and not load.is_global:
                    self.stop("a module whose attribute is set", trail)
            value, attributes = self._attribute(value, name, attributes[0], trail), attributes[1:]
            if value is _MISSING:
                return
        owner = value if issubclass(type(value), type) else type(value)
        if attributes and attributes[0] in EFFECT_NAMES and is_pure(module_of(owner)):
            self.effect(attributes[0], trail)
        if load.is_checked and issubclass(type(value), type):
            value = Checked(value)
        self.lead([value], trail)

    def _attribute(self, module: types.ModuleType, name: str, attribute: str, trail: Trail) -> Any:
        """Return an attribute of a module, _MISSING if there is nothing to follow."""
        space = vars(module)
        known = is_pure(name)
        if known and attribute in EFFECT_NAMES and not self.restores:
            self.effect(attribute, trail)
            return _MISSING
        if known and (self.restores or attribute not in space):  # such as one that is imported when it is asked for
            listed = attribute in space or attribute in dir(module)  # old names are not, and warn
            return getattr(module, attribute, _MISSING) if listed else _MISSING
        if attribute == "__dict__":
            self.stop(f"the names of the module {name}", trail)
            return _MISSING
        if attribute not in space and "__getattr__" in space:
            self.stop(f"the module {name}, which has a __getattr__", trail)
            return _MISSING
        value = self._name(space, attribute, trail, f"{trail.name}.{attribute}")
        if has_effects(name) and id(type(value)) not in ATOMS and type(value) is not types.ModuleType:
            self.effect(f"{name}.{attribute}", trail, name)
            return _MISSING
        return value

    def module(self, value: types.ModuleType, name: str, trail: Trail) -> None:
        """Note a module that is used as a value."""
        if is_pure(name):
            self._note_package_value(trail.code)
        elif has_effects(name):
            self.effect(name, trail, name)
        else:
            self.stop(f"the module {name or type(value).__name__} as a value", trail)

    def only_written(self) -> set[int]:
        """Return the ids of the lists and sets whose names code only adds to."""
        looked_at = {id(value) for name, value in self.named if name in self._read}
        return {id(value) for name, value in self.named if name in self.added_to and name not in self._read} - looked_at


def is_listed(value: Any) -> bool:
    """Whether a value is a list or a set. Types are compared by identity: a metaclass may have an `==` of its own."""
    kind = type(value)
    return kind is list or kind is set


def _is_called(value: Any, name: str) -> bool:
    """Whether a closure of a library function holds something callable. A weak reference is an argument."""
    return (callable(value) and type(value) is not ref) or name == "registry"
