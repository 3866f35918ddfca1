"""Import a name of a package when it is first asked for (PEP 562). The stub `__init__.pyi` lists the names.

The stub is the one list: for this, for editors and for type checkers. So `import symad` reads no line of what draws,
checks and teaches, and a command line can answer `--help` without SymPy. Old names work for two more minor releases,
and warn; docs/deprecation.md has the rules.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from codegen.collector import imports
from codegen.errors import NotInstalledError
from codegen.records import dataclass


@dataclass(frozen=True)
class OldName:
    """A public name that goes: what to write in its place, where its value is until then, and the releases.

    `place` is `module:attribute`.

    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     OldName("root", "math:sqrt", since="0.3", until="0.5").value("squareroot")(9.0), str(told[0].message)
    (3.0, 'squareroot is deprecated since 0.3, and goes with 0.5; write root')
    """

    instead: str
    place: str
    since: str = "0.1"
    until: str = "0.3"

    def message(self, name: str) -> str:
        """Return what the warning says."""
        return f"{name} is deprecated since {self.since}, and goes with {self.until}; write {self.instead}"

    def value(self, name: str, stacklevel: int = 2) -> Any:
        """Return what an old name stands for, with a DeprecationWarning at the line of the user who wrote it."""
        warnings.warn(self.message(name), DeprecationWarning, stacklevel)
        module, attribute = self.place.split(":")
        return getattr(import_module(module), attribute)


def later(
    package: str, old_names: Mapping[str, OldName] = MappingProxyType({})
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package, for its `__init__` to bind.

    The first knows `__all__` too, and old names, which it never stores: each use of one warns.

    >>> import codegen
    >>> "lambdify" in dir(codegen), codegen.lambdify.__module__
    (True, 'codegen.lambdified.lambdify')
    """

    @cache
    def places() -> dict[str, tuple[str, str]]:
        return stub_places(_stub(package))

    def find(name: str) -> Any:
        if name == "__all__":
            return sorted(places())
        if name in old_names:
            return old_names[name].value(name, stacklevel=3)
        if name not in places():
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        module, attribute = places()[name]
        place = f"{package}.{name}" if module == package else module
        with nullcontext() if place in sys.modules else imports():
            imported = import_module(place)
        value = imported if module == package else getattr(imported, attribute)
        setattr(sys.modules[package], name, value)  # so that it is asked for once
        return value

    return find, lambda: list(places())


def _stub(package: str) -> bytes:
    """Return the text of a stub, from a folder or an archive; `pkgutil` does the same, and imports a lot."""
    spec = sys.modules[package].__spec__
    assert spec is not None
    assert spec.origin is not None
    loader: Any = spec.loader
    data: bytes = loader.get_data(f"{spec.origin.removesuffix('.pyc').removesuffix('.py')}.pyi")
    return data


class Deferred:
    """A module that is imported when a name of it is first asked for. NotInstalledError if it is not installed.

    >>> Deferred("math").hypot(3.0, 4.0)
    5.0
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        package = self._module.partition(".")[0]
        try:
            value = getattr(import_module(self._module), name)
        except ImportError as error:
            raise NotInstalledError(f"this needs {package}", why=str(error), do=f"pip install {package}") from error
        setattr(self, name, value)
        return value


def stub_places(stub: bytes) -> dict[str, tuple[str, str]]:
    """Return for each name that a stub imports the module that it is from, and its name there.

    >>> stub_places(b"from codegen.later import later as later, stub_places as places")
    {'later': ('codegen.later', 'later'), 'places': ('codegen.later', 'stub_places')}
    """
    places = {}
    for statement in ast.parse(stub).body:
        if isinstance(statement, ast.ImportFrom) and statement.module:
            for alias in statement.names:
                places[alias.asname or alias.name] = statement.module, alias.name
    return places
