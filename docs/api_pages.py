"""The reference of the site: entries of all public names, by the groups that the docstrings of the packages give.

A page of `docs/reference` names its group in a block of its own; `docs/conf.py` puts the entries there. Nothing is
listed by hand: `symad.__doc__` and `codegen.__doc__` are the maps, and `tests/repository/test_site.py` holds that every
public name is in one group, and every group on a page.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from importlib import import_module

GROUP = re.compile(r"^(\w[\w ]*?)  +(\S.*(?:\n {2,}.*)*)", re.MULTILINE)
MARK = re.compile(r"^```\{public-names\} (\w+) (.+)\n```$", re.MULTILINE)
CODE = re.compile(r"(`[^`]*`)")


def groups(package: str) -> dict[str, list[str]]:
    """Return the public names of a package by the groups of its map, in that order."""
    module = import_module(package)
    found = {}
    for title, text in GROUP.findall(module.__doc__ or ""):
        found[title] = [name for name in re.findall(r"\w+", text) if name in module.__all__]
    return found


def entries(package: str, group: str) -> str:
    """Return the entries of a group as text of MyST, for autodoc to fill in."""
    lines = ["```{eval-rst}", f".. py:currentmodule:: {package}", ""]
    for name in groups(package)[group]:
        lines += [*entry(package, name), ""]
    return "\n".join([*lines, "```"])


def entry(package: str, name: str) -> list[str]:
    """Return the entry of one name: what symad shows too is shown there."""
    thing = getattr(import_module(package), name)
    for above in ("symad", "symad.errors") if package != "symad" else ():
        module = import_module(above)
        if name in module.__all__ and getattr(module, name) is thing:
            return [f".. py:class:: {name}", "   :no-index:", "", f"   The same as :py:class:`{above}.{name}`."]
    if inspect.ismodule(thing):
        shown = ", ".join(each for each in thing.__all__ if each in import_module(package).__all__)
        options = [":members:", ":imported-members:", ":show-inheritance:", f":exclude-members: {shown}"]
        return [f".. automodule:: {package}.{name}", *(f"   {option}" for option in options)]
    if inspect.isclass(thing):
        return [f".. autoclass:: {package}.{name}", "   :members:", "   :show-inheritance:"]
    return [f".. auto{'function' if callable(thing) else 'data'}:: {package}.{name}"]


def prose(lines: Iterable[str]) -> list[str]:
    """Return a docstring with all but its code escaped: an asterisk is a product there, and no emphasis.

    >>> prose(["`*args` of f(*x) and y_", ">>> a * b"])
    ['`*args` of f(\\\\*x) and y\\\\_', '>>> a * b']
    """
    done, example = [], False
    for line in lines:
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        done.append(line if example else escaped(line))
    return done


def escaped(line: str) -> str:
    """Return a line of prose with the markup of reStructuredText escaped, outside of code."""
    parts = CODE.split(line)
    return "".join(part if CODE.fullmatch(part) else re.sub(r"([*_|\\])", r"\\\1", part) for part in parts)
