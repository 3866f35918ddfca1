"""Write machine code behind a kernel's program (`native_code` reads it)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from codegen.code_memory import PlacedCode
from codegen.engine import compile_object
from codegen.errors import ArgumentError
from codegen.ir.program import Output
from codegen.lanes import FLOAT64
from codegen.machine.calls.compiled import Compiled, Pack, Unpack
from codegen.machine.calls.gate_routines import gate_text
from codegen.machine.storage.native_code import KIND, NEWEST, PROGRAM, VERSION, here
from codegen.machine.storage.portable_program import Arrays
from codegen.machine.storage.program_cache import ObjectCode, own_object, wrappers
from codegen.machine.storage.trust import mark_of, own_key
from codegen.object_files import UnknownObjectError, placed
from codegen.sealed import seal, unseal
from codegen.stages import LOG


def with_code(program: bytes, compiled: Compiled, containers: Any, adapters: Mapping[str, str]) -> bytes:
    """Return a file: a program and, if this machine's code can be written, the code and the mark of this user.

    `adapters` are IR texts by name of functions that call the kernel, each named `adapter` in its text.
    """
    code, options = compiled.code, compiled.options
    bisected = compiled.bisection is not None and compiled.bisection.active
    if code is None or bisected or options.tier == "auto":  # whose better code is still to come
        return program
    try:
        machine, placed_code = here(), _placed(code, adapters)
    except (UnknownObjectError, OSError) as error:
        LOG.info("%s is saved without its machine code: %s", compiled.declared.name, error)
        return program
    key = own_key(make=True)
    if key is None:
        return program
    declared, numbers = compiled.declared, unseal(program, PROGRAM, NEWEST, "", damaged=False)[1]
    header = {
        "machine": machine,
        "name": declared.name,
        "inputs": [[array.name, list(array.shape)] for array in declared.arguments],
        "outputs": [_described(output, numbers) for output in declared.outputs],
        "options": asdict(options),
        "containers": containers,
        "facts": code.facts,
        "tier": compiled.tier,
        "entries": placed_code.entries,
        "called": placed_code.called,
        "symbols": [*code.symbols, *(name for text in code.own.values() for name in wrappers(text))],
    }
    places = [np.fromiter(column, np.uint64) for column in (placed_code.inside.keys(), placed_code.inside.values())]
    data = program + seal(KIND, VERSION, header, [np.frombuffer(placed_code.code, np.uint8), *places])
    return data + mark_of(key, [data])


def _placed(code: ObjectCode, adapters: Mapping[str, str]) -> PlacedCode:
    """Return a kernel, our functions that it calls, adapters to it and the call gate as one block."""
    parts = [] if code.placed else list(code.image.parts)
    for name, text in code.own.items():
        parts += own_object(name, text).parts
    parts += compile_object(gate_text(FLOAT64)).parts
    numbered = {f"adapter.{k}": name for k, name in enumerate(adapters)}
    for number, name in numbered.items():
        parts += compile_object(adapters[name].replace("@adapter(", f"@{number}(")).parts
    placed_code = placed(parts, code.placed)
    entries = {numbered.get(name, name): place for name, place in placed_code.entries.items()}
    return placed_code._replace(entries=entries)


def _described(output: Output, numbers: Arrays) -> list[Any]:
    """Return the shape of a result and its pattern, whose places are arrays of the program."""
    pattern = output.pattern
    if pattern is None:
        return [list(output.shape), None]
    first = next(
        k for k in range(len(numbers) - 1)
        if np.array_equal(numbers[k], pattern.rows) and np.array_equal(numbers[k + 1], pattern.columns)
    )  # fmt: skip
    return [list(output.shape), [list(pattern.shape), pattern.format, first]]


def containers_of(pack: Pack | None, unpack: Unpack | None) -> dict[str, Any] | None:
    """Return how a kernel's containers are written into a file; ArgumentError for those that are no plain data."""
    if pack is None and unpack is None:
        return None
    return {name: _written(name, way) for name, way in (("arguments", pack), ("result", unpack))}


def _written(name: str, way: Any) -> Any:
    if way is None:
        return None
    if not hasattr(way, "portable"):
        raise ArgumentError(
            f"{name} that a function of its own takes apart",
            why="a file holds data and no code",
            do="pickle the kernel",
        )
    return way.portable(name)
