"""Modules: long code is compiled in parts, so that Ctrl-C and time limits come through, and memory stays linear."""

from __future__ import annotations

from codegen.emission.emit import Emitted

LONGEST = 1_000_000  # characters of IR in one module: under a second of LLVM's time


def modules(emitted: Emitted) -> list[str]:
    """Return the IR of a kernel as one module or, if it is long, as several with about a million characters each.

    Chunk functions of several modules find each other by name, which only this kernel's linker sees.
    """
    if sum(map(len, emitted.chunks)) <= LONGEST:
        return [emitted.text]
    shared = emitted.declarations
    parts: list[list[str]] = [[]]
    size = 0
    for chunk in emitted.chunks:
        if size > LONGEST:
            parts.append([])
            size = 0
        parts[-1].append(chunk.replace("define internal", "define", 1))
        size += len(chunk)
    last = [*emitted.functions, *(_declaration(chunk) for chunk in emitted.chunks)]
    return ["\n".join([*part, shared]) + "\n" for part in [*parts, last]]


def _declaration(chunk: str) -> str:
    """Declaration of a chunk function, from the first line of its definition."""
    head = chunk[: chunk.index("{")]
    return head.replace("define internal", "declare", 1).replace(" noinline", "")
