"""Rolled programs as files: what is written comes back; what nobody can have written is refused."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen import ArgumentError, compile_program, load_kernel
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.ir.region import Region, RolledProgram, regions_of
from codegen.machine.storage.portable import KIND, VERSION, decode, encode
from codegen.options import Options
from codegen.sealed import seal, unseal
from tests.support.rolled_programs import KNOWN, arrays_for, heat, momentum, newton, pairs, random_program

Change = Callable[[dict[str, Any], list[Any]], object]


def bits(program: RolledProgram) -> list[bytes]:
    return [array.tobytes() for array in evaluate_rolled(program, arrays_for(program))]


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_come_back(seed: int) -> None:
    program = random_program(seed)
    data = encode(program, Options(tier="fast"), {"any": 1})
    found = decode(data)
    assert isinstance(found.program, RolledProgram)
    assert (found.program.name, found.options.tier, found.containers) == (program.name, "fast", {"any": 1})
    assert bits(found.program) == bits(program)
    assert encode(found.program, found.options, found.containers) == data


def test_every_field_is_written() -> None:
    again = decode(encode(momentum(), Options())).program
    assert isinstance(again, RolledProgram)
    ((one, _),), ((other, _),) = regions_of(again.steps), regions_of(momentum().steps)
    assert {field.name for field in dataclasses.fields(one)} == {
        "body", "carries", "count", "gathers", "matrix", "origin", "results", "stop",
    }  # fmt: skip
    assert (one.count, one.origin, one.stop) == (other.count, other.origin, other.stop)
    assert [carry.lag for carry in one.carries] == [1, 1]


def into(region: Region, buffer: int) -> Region:
    """The same region, whose results go into another buffer."""
    return dataclasses.replace(region, results=tuple(dataclasses.replace(use, buffer=buffer) for use in region.results))


def test_bodies_and_tables_that_are_shared_are_written_once() -> None:
    program = heat(50, 40)
    (first, nest, last), (given, space, result) = program.steps, program.buffers
    assert isinstance(first, Region)
    assert isinstance(last, Region)
    steps = (first, nest, into(last, 3), into(first, 2))
    more = dataclasses.replace(program, steps=steps, buffers=(given, space, space, result))
    assert len(encode(more, Options())) < len(encode(program, Options())) + 150
    again = decode(encode(more, Options())).program
    assert isinstance(again, RolledProgram)
    assert len({id(region.body) for region, _ in regions_of(again.steps)}) == 2


def test_a_million_places_take_their_bytes() -> None:
    program = random_program(0)
    region = next(region for region, counts in regions_of(program.steps) if not counts)
    assert region.count < 100
    assert len(encode(pairs(1500), Options())) < 2 * 2 * pairs(1500).outputs[1].size + 4000  # two tables of 2 bytes


@pytest.mark.parametrize("name", KNOWN)
def test_saved_and_loaded(name: str, tmp_path: Path) -> None:
    kernel = compile_program(KNOWN[name], tier="fast")
    kernel.save(tmp_path / "kernel.symad")
    again = load_kernel(tmp_path / "kernel.symad")
    assert repr(again) == repr(kernel)
    assert again.stats.regions == kernel.stats.regions
    assert again.llvm == kernel.llvm
    arrays = arrays_for(KNOWN[name])
    assert pickle.dumps(again(*arrays)) == pickle.dumps(kernel(*arrays))
    assert copy.deepcopy(kernel) is kernel


def test_a_pickle_is_loaded_by_another_process() -> None:
    kernel = compile_program(newton(), tier="fast")
    script = "import pickle, sys; kernel = pickle.load(sys.stdin.buffer); print(repr(kernel(2.0)[0]), repr(kernel))"
    found = subprocess.run([sys.executable, "-c", script], input=pickle.dumps(kernel), capture_output=True, check=True)
    assert found.stdout.decode().strip() == f"{kernel(2.0)[0]!r} {kernel!r}"


def test_a_rolled_kernel_is_cached(tmp_path: Path) -> None:
    first, second = (compile_program(heat(), cache=tmp_path, tier="fast") for _ in range(2))
    assert (first.stats.cached, second.stats.cached) == (False, True)
    assert first.stats.regions == second.stats.regions
    (arrays,) = arrays_for(heat())
    assert first(arrays).tobytes() == second(arrays).tobytes()
    other = compile_program(heat(7, 6), cache=tmp_path, tier="fast")
    assert not other.stats.cached


def altered(change: Change, program: RolledProgram) -> bytes:
    """A file whose checksum is right, with something else in it."""
    header, arrays = unseal(encode(program, Options()), KIND, VERSION, "")
    arrays = [array.copy() for array in arrays]
    change(header["rolled"], arrays)
    return seal(KIND, VERSION, header, arrays)


def table(number: int, **fields: Any) -> Change:
    """Change a table of `heat`: start, step, count, shifts."""

    def change(header: dict[str, Any], arrays: list[Any]) -> None:
        place, shifts = header["tables"][number]
        header["tables"][number] = [
            [fields.get(name, value) for name, value in zip(("start", "step", "count"), place, strict=True)],
            fields.get("shifts", shifts),
        ]

    return change


def region(number: int, **fields: Any) -> Change:
    return lambda header, arrays: header["regions"][number].update(fields)


def entry(name: str, value: Any) -> Change:
    return lambda header, arrays: header.__setitem__(name, value)


HOSTILE = {
    "a place behind its buffer": table(0, start=1),
    "a place before its buffer": table(0, start=-1),
    "a step out of its buffer": table(0, step=2),
    "a count of another table": table(0, count=8),
    "no repetition": table(0, count=0),
    "a place beyond all numbers": table(0, start=2**60),
    "a step that is no integer": table(0, step=1.0),
    "a shift out of its buffer": table(2, shifts=[10]),
    "a shift to the front": table(2, shifts=[-1]),
    "shifts that are none": table(2, shifts=7),
    "a region that is run no times": region(0, count=0),
    "a region that is run more often": region(0, count=8),
    "a region that is run for ever": region(1, count=2**40),
    "a negative count": region(0, count=-7),
    "a count that is true": region(0, count=True),
    "a body that there is not": region(0, body=9),
    "a negative body": region(0, body=-1),
    "the body of another region": region(0, body=1),
    "a slot too few": region(1, gathers=[[1, 2]]),
    "a buffer that there is not": region(0, gathers=[[7, 0]]),
    "a negative buffer": region(0, gathers=[[-3, 0]]),
    "a table that there is not": region(0, gathers=[[0, 77]]),
    "a result into the input": region(0, results=[[0, 0, 0, "store"]]),
    "a result of an unknown kind": region(0, results=[[0, 1, 0, "run"]]),
    "an output that there is not": region(0, results=[[1, 1, 0, "store"]]),
    "a negative output": region(0, results=[[-1, 1, 0, "store"]]),
    "a carry without a beginning": region(0, gathers=[], carries=[[0, []]]),
    "a stop that there is not": region(0, stop=3),
    "a stop at a number": region(1, stop=0),
    "a result into places that hold one": region(1, results=[[0, 1, 0, "store"]]),
    "an origin that is a number": region(0, origin=3),
    "an entry too many": region(0, system="rm"),
    "an entry too few": lambda header, arrays: header["regions"][0].pop("count"),
    "a nest that is run no times": entry("steps", [0, [0, [1]], 2]),
    "a nest that is run more often": entry("steps", [0, [6, [1]], 2]),
    "a nest of nothing that is a list": entry("steps", [0, [5], 2]),
    "a step that there is not": entry("steps", [0, 9]),
    "steps that are none": entry("steps", {"a": 1}),
    "a step that is a text": entry("steps", ["import os"]),
    "an input that is a workspace": entry("buffers", [["workspace", 7], ["workspace", 42], ["output", 7]]),
    "an output that is a workspace": entry("buffers", [["input", 7], ["workspace", 42], ["workspace", 7]]),
    "a buffer that is smaller": entry("buffers", [["input", 7], ["workspace", 41], ["output", 7]]),
    "an input of another size": entry("buffers", [["input", 8], ["workspace", 42], ["output", 7]]),
    "a giant workspace": entry("buffers", [["input", 7], ["workspace", 2**60], ["output", 7]]),
    "a buffer of an unknown kind": entry("buffers", [["input", 7], ["file", 42], ["output", 7]]),
    "constants without values": entry("buffers", [["input", 7], ["constant", 42], ["output", 7]]),
    "inputs of another shape": entry("inputs", [["u", [8]]]),
    "a name that is a number": entry("name", 3),
    "a body that is code": lambda header, arrays: header["bodies"][0].update(heads=["__import__"]),
    "an array too many": lambda header, arrays: arrays.append(np.zeros(1, np.uint8)),
    "an array too few": lambda header, arrays: arrays.pop(),
    "nothing": lambda header, arrays: header.clear(),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_by_name(name: str) -> None:
    with pytest.raises(ArgumentError, match=r"^mine: no file that can be loaded: its checksum is right and .*"):
        decode(altered(HOSTILE[name], heat()), "mine")


def test_nests_beyond_all_use_are_refused() -> None:
    steps: list[Any] = [1]
    for _ in range(100):
        steps = [[1, steps]]
    with pytest.raises(ArgumentError, match="nests 33 deep"):
        decode(altered(entry("steps", steps), heat()))


def test_indices_out_of_range_are_refused() -> None:
    def far(header: dict[str, Any], arrays: list[Any]) -> None:
        (number,) = [k for k, array in enumerate(arrays) if len(array) == 36][:1]
        arrays[number][7] = 200

    with pytest.raises(ArgumentError, match="places 0 to 200 of a buffer of 9"):
        decode(altered(far, pairs()))

    def empty(header: dict[str, Any], arrays: list[Any]) -> None:
        (number,) = [k for k, array in enumerate(arrays) if len(array) == 36][:1]
        arrays[number] = arrays[number][:0]

    with pytest.raises(ArgumentError, match="its checksum is right"):
        decode(altered(empty, pairs()))


def test_truncated_and_damaged_files_are_refused() -> None:
    data = encode(newton(), Options())
    for position in range(0, len(data), 3):
        damaged = bytearray(data)
        damaged[position] ^= 1
        for wrong in (bytes(damaged), data[:position]):
            with pytest.raises(ArgumentError):
                decode(wrong)
