"""Read machine code behind the program of a kernel file, so that a process runs it at once.

A file is a sealed program, possibly followed by a sealed block of machine code and a mark
(`codegen.machine.storage.trust`). Code runs only if the mark is this user's, processor, C library and sources are
those of its compilation, and no limit or dump asks for a new one; otherwise the program is compiled, and the log says
why. So a stranger's file is only a program.
"""

from __future__ import annotations

import hmac
import os
import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from codegen.code_memory import MappedCode, PlacedCode
from codegen.errors import LoweringError, WorkbenchError
from codegen.functions.libraries import c_address
from codegen.functions.symbols import addresses_of
from codegen.ir.program import Declaration, Input, Output
from codegen.ir.sparsity import SparsityPattern
from codegen.machine.calls.compiled import CodeSource, Compiled, stats_of
from codegen.machine.storage.trust import SIZE, SOURCES, mark_of, own_key
from codegen.options import Options
from codegen.sealed import first_of, kind_of, refused, unseal
from codegen.stages import LOG

PROGRAM, KIND, VERSION = b"program", b"native", 1
NEWEST = 2  # version of programs
CPU = Path("/proc/cpuinfo")


def program_bytes(data: bytes, where: str) -> bytes:
    """Return the program of a file; ArgumentError where anything but code is behind it."""
    length = first_of(data)
    if length == len(data) or kind_of(data) != PROGRAM:
        return data
    if len(data) < length + SIZE:
        raise refused(where, "there are bytes behind its end")
    unseal(data[length:-SIZE], KIND, VERSION, where)
    return data[:length]


def native_of(data: bytes, where: str, known: Mapping[str, int], source: CodeSource) -> tuple[Compiled, Any] | None:
    """Return the parts of a file's kernel, and what it has of containers; None where no code of it can be run here.

    The code is linked with known addresses too.
    """
    length = first_of(data)
    if not length < len(data) - SIZE:
        return None
    why = _not_to_be_run(data)
    if not why:
        try:
            return _read(data[:length], data[length:-SIZE], where, known, source)
        except (WorkbenchError, OSError) as error:
            why = str(error)
    LOG.info("%s: its program is compiled, its machine code is not run: %s", where, why)
    return None


def _not_to_be_run(data: bytes) -> str:
    """Return why the mark is not this user's, "" if it is."""
    key = own_key()
    if key is None:
        return "there is no key of this user's"
    body = memoryview(data)[:-SIZE]
    return "" if hmac.compare_digest(mark_of(key, [body]), data[-SIZE:]) else "it was not made by this user's symad"


def _read(
    program: bytes, code: bytes, where: str, known: Mapping[str, int], source: CodeSource
) -> tuple[Compiled, Any] | None:
    header, arrays = unseal(code, KIND, VERSION, where, damaged=False)
    if header["machine"] != here():
        raise LoweringError("machine code", why="it was compiled for another machine, or by another symad")
    _, numbers = unseal(program, PROGRAM, NEWEST, where, damaged=False)
    inputs = tuple(Input(name, tuple(shape)) for name, shape in header["inputs"])
    outputs = tuple(_output(shape, pattern, numbers) for shape, pattern in header["outputs"])
    declared, facts = Declaration(header["name"], inputs, outputs), header["facts"]
    library, options = _linked(header, known, *arrays), Options(**header["options"])
    parts = declared, library, options, stats_of(facts["stats"]), facts["release"], source, header["tier"]
    return Compiled(*parts), header["containers"]


def _output(shape: list[int], pattern: Any, numbers: list[NDArray[Any]]) -> Output:
    if pattern is None:
        return Output(tuple(shape), ())
    (height, width), format, first = pattern
    return Output(tuple(shape), (), None, SparsityPattern(numbers[first], numbers[first + 1], (height, width), format))


def _linked(
    header: dict[str, Any], known: Mapping[str, int], code: NDArray[Any], places: NDArray[Any], targets: NDArray[Any]
) -> MappedCode:
    """Return code that can be run; LoweringError for a function that this machine lacks."""
    known, called = {**addresses_of(header["symbols"]), **known}, header["called"]
    addresses = {name: known[name] if name in known else c_address(name) for name in called}
    inside = dict(zip(places.tolist(), targets.tolist(), strict=True))
    return MappedCode(PlacedCode(code.tobytes(), header["entries"], called, inside), addresses)


@cache
def here() -> dict[str, str]:
    """Return the dependencies of machine code: the processor, the C library, and the sources of the compiler.

    >>> here() == here(), len(here()["sources"])
    (True, 64)
    """
    return {"machine": platform.machine(), "processor": _processor(), "libc": _libc(), "sources": SOURCES}


def _processor() -> str:
    """Return the name and the abilities of the first processor, as Linux tells them; OSError elsewhere."""
    with CPU.open(encoding="utf-8") as file:
        kept = []
        for line in file:
            if not line.strip():
                break
            if line.partition("\t")[0].strip(": ") in ("vendor_id", "cpu family", "model", "model name", "flags"):
                kept.append(line.strip())
    return "\n".join(kept)


def _libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except ValueError:
        return ""
