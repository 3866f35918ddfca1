"""Old public names: each works for two more minor releases, and warns; docs/deprecation.md has the rules."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

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
