"""Compile our own functions once in a process and link them to every kernel that calls them.

The text of a kernel has them written out, for reading and export; compiling them with each kernel would take several
times as long as a small kernel.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from codegen.code_memory import MachineCode
from codegen.emission.emit import Emitted
from codegen.emission.straight import declaration
from codegen.engine import Image, Once, compile_object, link
from codegen.functions.symbols import Symbol, addresses_of

OWN = "symad."
NAMED = r" %\w+"
CALLED = r"@([\w.]+)"
WRAPPERS = r"(?m)^define .*@(scipy\.[\w.]+)\("


def apart(emitted: Emitted) -> tuple[Emitted, dict[str, str]]:
    """Return a kernel's code with declarations of our functions, and text of each that it calls, complete.

    >>> exp = Symbol("symad.exp.f64", "define internal double @symad.exp.f64(double %x0) noinline nounwind {\\nret double 1.0\\n}")
    >>> code, own = apart(Emitted([], ["%y=call double @symad.exp.f64(double %x)"], {exp.name: exp}))
    >>> code.declarations
    'declare double @symad.exp.f64(double) nounwind'
    >>> own["symad.exp.f64"].splitlines()[0]
    'define double @symad.exp.f64(double %x0) noinline nounwind {'
    """  # noqa: E501
    symbols = emitted.symbols
    if not any(name.startswith(OWN) for name in symbols):
        return emitted, {}
    kept: dict[str, Symbol] = {}
    texts: dict[str, str] = {}
    waiting = [*emitted.chunks, *emitted.functions]
    while waiting:
        for name in dict.fromkeys(re.findall(CALLED, waiting.pop())):
            if name not in symbols or name in kept:
                continue
            kept[name] = symbols[name]
            if name.startswith(OWN):
                kept[name] = symbols[name]._replace(text=re.sub(NAMED, "", declaration(symbols[name].text)))
                texts[name] = complete(name, symbols)
            waiting.append(kept[name].text)
    return Emitted(emitted.chunks, emitted.functions, kept), texts


def own_addresses(texts: Mapping[str, str]) -> dict[str, int]:
    """Return the addresses of our functions, compiled where they are not yet."""
    return {name: _library(name, text).addresses[name] for name, text in texts.items()}


@Once
def _library(name: str, text: str) -> MachineCode:
    return link(own_object(name, text), (name,), addresses_of(wrappers(text)))


def wrappers(text: str) -> list[str]:
    """Return the wrappers of SciPy's loops in a text, which need addresses.

    >>> from codegen.functions.symbols import symbol
    >>> wrappers(complete("scipy.psi.1.0", {"scipy.psi.1.0": symbol("scipy.psi.1.0", 1)}))
    ['scipy.psi.1.0']
    """
    return re.findall(WRAPPERS, text)


@Once
def own_object(name: str, text: str) -> Image:
    """Return one of our functions as an object file."""
    return compile_object(text)


def complete(name: str, symbols: Mapping[str, Symbol]) -> str:
    """Return the text of a function that others can call, with all that it needs."""
    needed, waiting = {name: symbols[name].text.replace("define internal", "define", 1)}, [symbols[name].text]
    while waiting:
        for other in re.findall(CALLED, waiting.pop()):
            if other not in needed and other in symbols:
                needed[other] = symbols[other].text
                waiting.append(symbols[other].text)
    return "\n".join(needed.values())
