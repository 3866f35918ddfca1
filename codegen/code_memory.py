"""Memory pages for machine code that did not come from LLVM. A page is never writable and executable at once."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Mapping
from functools import cache
from typing import Protocol

from codegen.errors import WorkbenchError


class MachineCode(Protocol):
    """Machine code in memory: the addresses of its functions, valid while it lives."""

    @property
    def addresses(self) -> dict[str, int]: ...


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


class MappedCode:
    """Machine code in pages that are written first, and can only be read and run from then on.

    `called` says where in the code the addresses of `functions` belong, `entries` where functions begin, `inside` where
    addresses in the code itself belong. The pages are given back when the object dies, which takes no lock.
    WorkbenchError where the system does not let pages be run.

    >>> MappedCode(b"", {}, {}, {}).addresses
    {}
    """

    addresses: dict[str, int]
    entries: dict[str, int]  # places of functions in the code
    places: dict[str, int]  # of the addresses of what they call

    def __init__(
        self, code: bytes, called: Mapping[str, int], functions: Mapping[str, int], entries: Mapping[str, int],
        inside: Mapping[int, int] | None = None,
    ) -> None:  # fmt: skip
        written = bytearray(code)
        for name, place in called.items():
            written[place : place + 8] = functions[name].to_bytes(8, "little")
        self._pages = mmap.mmap(-1, max(len(written), 1), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        for place, target in (inside or {}).items():
            written[place : place + 8] = (start + target).to_bytes(8, "little")
        self._pages.write(written)
        size = ctypes.c_size_t(len(written))
        if _library().mprotect(ctypes.c_void_p(start), size, mmap.PROT_READ | mmap.PROT_EXEC):
            raise WorkbenchError("machine code", why=f"the system does not let it be run (error {ctypes.get_errno()})")
        self.addresses = {name: start + place for name, place in entries.items()}
        self.entries, self.places, self._size = dict(entries), dict(called), len(written)

    @property
    def code(self) -> bytes:
        """The bytes that are run."""
        return self._pages[: self._size]
