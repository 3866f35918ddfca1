"""Memory pages for machine code that did not come from LLVM, and functions of the interpreter.

A page is never writable and executable at once.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from codegen.errors import WorkbenchError


class PlacedCode(NamedTuple):
    """Machine code, where its functions begin, where addresses of other functions belong, and where its own do."""

    code: bytes
    entries: Mapping[str, int]
    called: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    inside: Mapping[int, int] = MappingProxyType({})


class MachineCode(Protocol):
    """Machine code in memory: the addresses of its functions, valid while it lives."""

    @property
    def addresses(self) -> dict[str, int]: ...


def python_function(name: str, result: Any, *kinds: Any) -> Any:
    """Return a function of CPython's C API. Its prototype is our own: others may change those of `ctypes.pythonapi`.

    >>> python_function("PyLong_AsLong", ctypes.c_long, ctypes.py_object)(7)
    7
    """
    return ctypes.PYFUNCTYPE(result, *kinds)((name, ctypes.pythonapi))


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


class MappedCode:
    """Machine code in pages that are written first, and can only be read and run from then on.

    `functions` are the addresses of what it calls. The pages are given back when the object dies, which takes no lock.
    WorkbenchError where the system does not let pages be run.

    >>> MappedCode(PlacedCode(b"", {})).addresses
    {}
    """

    addresses: dict[str, int]

    def __init__(self, placed: PlacedCode, functions: Mapping[str, int] | None = None) -> None:
        written = bytearray(placed.code)
        for name, places in placed.called.items():
            for place in places:
                written[place : place + 8] = (functions or {})[name].to_bytes(8, "little")
        self._pages = mmap.mmap(-1, max(len(written), 1), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        for place, target in placed.inside.items():
            written[place : place + 8] = (start + target).to_bytes(8, "little")
        self._pages.write(written)
        size = ctypes.c_size_t(len(written))
        if _library().mprotect(ctypes.c_void_p(start), size, mmap.PROT_READ | mmap.PROT_EXEC):
            raise WorkbenchError("machine code", why=f"the system does not let it be run (error {ctypes.get_errno()})")
        self.addresses = {name: start + place for name, place in placed.entries.items()}
        self._placed, self._size = placed._replace(code=b""), len(written)

    @property
    def placed(self) -> PlacedCode:
        """The bytes that are run, and what is where in them."""
        return self._placed._replace(code=self._pages[: self._size])
