"""Mutated kernel files: bytes cut, flipped and added, and files whose checksum is right with something else in them.

Whatever a file holds, reading it gives a kernel that stays inside of its arrays, or an error of ours, and takes memory
in proportion to the file's own length.
"""

from __future__ import annotations

import copy
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import sympy as sp

import symad as sa
from codegen.errors import ArgumentError
from codegen.expressions.sympy_in import program_from_sympy
from codegen.functions.intrinsics import INTRINSICS
from codegen.ir.program import Program
from codegen.ir.region import RolledProgram
from codegen.machine.build import compile_program
from codegen.machine.storage.portable import KIND, VERSION, decode, encode
from codegen.options import Options
from codegen.sealed import seal, unseal
from tests.support.rolled_programs import KNOWN, random_program

MEMORY_FACTOR, MEMORY_OFFSET = 400, 2**20  # bytes of memory for a byte of the file, and for any file
LARGEST = 10**5  # operations, and numbers in memory, of a loaded program that is compiled and called
WORDS = [
    None, True, -1, 0, 1, 2, 3, 7, 255, 2**31, 2**63, 10**30, 0.5, float("nan"), "", "x", "sin", "__import__", "eval",
    [], [[]], {}, [0], [2**40, 2**40], {"a": 1}, "0x1p3", "-" * 400, [1, [2, [3]]],
]  # fmt: skip


@cache
def files() -> list[bytes]:
    """Files of kernels of every kind: straight lines, a sweep, sparse results, containers, loops, nests."""
    x, y = sp.symbols("x y", real=True)
    shapes = (np.zeros(3), {"a": 1.0, "b": [np.zeros((2, 2)), 2.0]})
    kernels = [
        sa.compile(lambda u, v: {"s": np.sin(u) @ u, "t": (v["a"], v["b"][0])}, *shapes),
        sa.compile(sa.hessian(lambda u: np.sum(np.exp(u * u))), np.zeros(6), strategy="sweep"),
        sa.compile(sa.hessian(lambda u: np.sum(u[1:] * u[:-1]), sparse="lower"), np.zeros(5), roll="never"),
    ]
    found = [encode(program_from_sympy([(x, y)], [sp.sin(x) * y + sp.Rational(1, 3), [x, 0.5]]), Options())]
    found += [encode(program, Options()) for program in (*KNOWN.values(), *map(random_program, range(6)))]
    with tempfile.TemporaryDirectory() as folder:
        for kernel in kernels:
            kernel.save(Path(folder) / "kernel")
            found.append((Path(folder) / "kernel").read_bytes())
    return found


def tries(seed: int) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield mutated files and what is done with them, without end."""
    source = Random(seed)
    number = 0
    while True:
        number += 1
        which, state = source.randrange(len(files())), source.getrandbits(64)
        kind = ("damaged", "altered", "altered", "swapped")[number % 4]
        yield (
            f"{kind} file {which}, state {state}",
            lambda kind=kind, which=which, state=state: KINDS[kind](Random(state), files()[which]),
        )


def _damaged(source: Random, data: bytes) -> str:
    """Bytes that are not those of the checksum are always refused."""
    first, last = sorted(source.choices(range(len(data) + 1), k=2))
    bits = bytes(byte ^ (1 << source.randrange(8)) for byte in data[first : first + 1])
    flipped, cut = data[:first] + bits + data[first + 1 :], data[:first] + data[last:]
    made = source.choice([data[:first], flipped, cut, data + b"0"])
    if made == data:
        return "whole"
    try:
        decode(made)
    except ArgumentError:
        return "refused"
    raise AssertionError("a damaged file was read")


def _altered(source: Random, data: bytes) -> str:
    header, arrays = unseal(data, KIND, VERSION, "")
    arrays = [array.copy() for array in arrays]
    for _ in range(source.randrange(1, 4)):
        _alter(source, header, arrays)
    return _read(source, seal(KIND, VERSION, header, arrays))


def _swapped(source: Random, data: bytes) -> str:
    """The header of one file with the arrays of another."""
    header, _ = unseal(data, KIND, VERSION, "")
    _, arrays = unseal(source.choice(files()), KIND, VERSION, "")
    return _read(source, seal(KIND, VERSION, header, source.sample(arrays, len(arrays))))


KINDS: dict[str, Callable[[Random, bytes], str]] = {"damaged": _damaged, "altered": _altered, "swapped": _swapped}


def _read(source: Random, data: bytes) -> str:
    tracemalloc.start()
    try:
        found = decode(data)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < MEMORY_FACTOR * len(data) + MEMORY_OFFSET, f"{peak} bytes for a file of {len(data)}"
    program = found.program
    if source.random() < 0.2 and _operations(program) < LARGEST and sum(_sizes(program)) < LARGEST:
        kernel = compile_program(program, tier="fast")
        kernel(*[np.full(given.shape, 0.5) for given in program.inputs])
        return "called"
    return "read"


def _operations(program: Program | RolledProgram) -> int:
    return program.executed if isinstance(program, RolledProgram) else len(program.heads)


def _sizes(program: Program | RolledProgram) -> list[int]:
    sizes = [array.size for array in (*program.inputs, *program.outputs)]
    return [*sizes, *(buffer.size for buffer in program.buffers)] if isinstance(program, RolledProgram) else sizes


def _alter(source: Random, header: dict[str, Any], arrays: list[Any]) -> None:
    """Change one thing: a number of an array, an array's type or length, a value somewhere in the header."""
    if arrays and source.random() < 0.4:
        number = source.randrange(len(arrays))
        array = arrays[number]
        if len(array) and source.random() < 0.7:
            array[source.randrange(len(array))] = source.choice([0, 1, 2, 3, 5, 9, 40, 200, 255])
        else:
            arrays[number] = source.choice([array[:-1], np.tile(array, 2), array.astype(float), array.astype("u8")])
        return
    place: Any = header
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = source.choice(keys)
        if isinstance(place[key], list | dict) and source.random() < 0.8:
            place = place[key]
            continue
        heads = [head.__name__ for head in INTRINSICS]
        place[key] = copy.deepcopy(source.choice([*WORDS, source.choice(heads), source.randrange(50)]))
        return
