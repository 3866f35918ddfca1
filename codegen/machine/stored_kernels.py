"""Load kernels from files: by their machine code where it may run here, else by their program."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codegen import machine
from codegen.ir.program import Program
from codegen.limits import are_given
from codegen.machine.calls.compiled import Restore
from codegen.machine.calls.gate import adopt_gate, gate_symbols
from codegen.machine.calls.kernel import Kernel, make_kernel
from codegen.machine.storage.native_code import native_of, program_bytes
from codegen.sealed import telling
from codegen.stages import asked_for

if TYPE_CHECKING:
    from codegen.ir.region import RolledProgram
    from codegen.machine.storage.cache import Setting
    from codegen.machine.storage.portable import Portable
    from codegen.machine.storage.program_cache import ProgramCache


def load_kernel(path: str | os.PathLike[str], *, cache: Setting = None, restore: Restore | None = None) -> Kernel:
    """Return the kernel that `kernel.save(path)` wrote, for this machine; no code of a stranger's is run.

    `restore(data, declared) -> (pack, unpack)` makes containers of what the file has of them (`symad.load` does).
    ArgumentError for a file that is no kernel's, was damaged, or was written by a newer version.

    >>> import tempfile
    >>> from codegen import compile_program, program_from_sympy
    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     compile_program(program_from_sympy([x], [x + 2])).save(f"{folder}/f.symad")
    ...     load_kernel(f"{folder}/f.symad")(1.0)
    3.0
    """
    with telling("read", path, "check the path"):
        data = Path(path).read_bytes()
    return kernel_in(data, os.fspath(path), cache=cache, restore=restore)


def kernel_in(data: bytes, where: str, *, cache: Setting = None, restore: Restore | None = None) -> Kernel:
    """Return the kernel of a file's bytes.

    Its program is compiled where limits, a dump or a cache ask for a compilation.
    """
    start, given = time.perf_counter(), gate_symbols(Kernel)
    fresh = cache or are_given() or asked_for()
    native = None if fresh else native_of(data, where, given, Stored(data, where))
    if native is None or (native[1] is not None and restore is None):  # which is refused
        return machine.kernel_of(program_bytes(data, where), where, cache, restore)
    compiled, containers = native
    stats = replace(compiled.stats, seconds={"load": time.perf_counter() - start}, cached=True)
    adopt_gate(Kernel, compiled.library)
    pack, unpack = restore(containers, compiled.declared) if restore and containers else (None, None)
    return make_kernel(compiled._replace(stats=stats), pack, unpack)


class Stored:
    """The source of a kernel from a file: its program is read when more code is needed."""

    file: bytes

    def __init__(self, data: bytes, where: str) -> None:
        self.file, self._where = data, where

    @cached_property
    def _portable(self) -> Portable:
        return machine.decode(program_bytes(self.file, self._where), self._where)

    @property
    def program(self) -> Program | RolledProgram:
        """The program that was compiled."""
        return self._portable.program

    @cached_property
    def program_cache(self) -> ProgramCache:
        """Where the object code of other forms is: in the cache that the environment names."""
        return machine.ProgramCache(machine.chosen(), self.program, self._portable.options)

    @property
    def revive(self) -> Callable[..., Any]:
        """What makes the kernel again."""
        return machine.revive
