"""The cache: the same bits with nothing compiled; whatever happens to its files, a right kernel and never an error."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

import codegen.engine
import codegen.machine.storage.cache
from codegen import Input, LoweringError, compile_program
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.program import Output, Program
from codegen.machine.build import ENCODING, STAGES
from codegen.machine.storage.cache import KIND, SUFFIX, VERSION, Cache, machine
from codegen.options import Tier
from codegen.sealed import seal, unseal
from tests.support.cached import X, Y, bits, files, program_of


def with_head(head: Any) -> Program:
    return Program([sp.Symbol, head], [(), (0,)], {0: X}, (Input("x", ()),), (Output((), (1,)),))


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    codegen.machine.storage.cache.cache_in.cache_clear()
    machine.cache_clear()
    codegen.engine.host.cache_clear()


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any use of the compiler or of the stages before it fails."""

    def refuse(*arguments: Any) -> Any:
        raise AssertionError("compiled")

    monkeypatch.setattr("codegen.machine.storage.program_cache.compile_modules", refuse)
    monkeypatch.setattr("codegen.machine.build.prepare", refuse)
    monkeypatch.setattr("codegen.machine.batches.batch.planned", refuse)


@pytest.mark.parametrize("tier", ["default", "llvm"])
def test_a_hit_compiles_nothing_and_gives_the_same_bits(
    tier: Tier, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    first = compile_program(program_of(), cache=tmp_path, tier=tier)
    assert not first.stats.cached
    assert list(first.stats.seconds) == list(STAGES if tier == "llvm" else ENCODING)
    request.getfixturevalue("no_compiler")
    second = compile_program(program_of(), cache=tmp_path, tier=tier)
    assert second.stats.cached
    assert list(second.stats.seconds) == ["load"]
    assert bits(first) == bits(second)
    assert second.llvm == first.llvm  # written anew
    assert repr(second) == repr(first)


def test_statistics_that_are_infinite_come_back(tmp_path: Path) -> None:
    """Written out as a tree, this program has more operations than a float can count."""
    heads: list[Any] = [sp.Symbol, *[sp.Mul] * 1100]
    program = Program(heads, [(), *[(k, k) for k in range(1100)]], {0: X}, (Input("x", ()),), (Output((), (1100,)),))
    for turn in range(2):
        kernel = compile_program(program, cache=tmp_path, tier="fast")
        assert (kernel.stats.cached, kernel.stats.operations_before) == (turn == 1, float("inf"))


def test_the_code_of_batches_is_cached_too(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    program = program_from_sympy([X, Y], [(X * Y + 2) * (X - Y) ** 3 * (X + 5 * Y**2) / (1 + X**2)])
    points = np.linspace(0.1, 2.0, 2_000_000).reshape(2, -1)  # enough to be worth compiling for
    first = compile_program(program, cache=tmp_path)
    wanted = first.batch(*points)
    assert first.lanes > 1
    assert len(files(tmp_path)) == 2
    compile_program(program, cache=tmp_path, lanes=2).batch(*points)
    request.getfixturevalue("no_compiler")
    again = compile_program(program, cache=tmp_path)
    assert again.stats.cached
    assert again.batch(*points).tobytes() == wanted.tobytes()


OTHER = {
    "another program": (program_of(1), {}),
    "another name": (program_from_sympy([X, Y], [sp.sin(X) * Y, [X**3, sp.exp(Y)]], name="g"), {}),
    "no fma": (program_of(), {"fma": False}),
    "accuracy": (program_of(), {"accuracy": "fast"}),
    "chunks": (program_of(), {"chunk": 1}),
    "the fast tier": (program_of(), {"tier": "fast"}),
}


@pytest.mark.parametrize("name", OTHER)
def test_whatever_decides_the_code_is_in_the_key(name: str, tmp_path: Path) -> None:
    compile_program(program_of(), cache=tmp_path)
    program, options = OTHER[name]
    assert not compile_program(program, cache=tmp_path, **options).stats.cached
    assert compile_program(program, cache=tmp_path, **options).stats.cached


@pytest.mark.parametrize(
    "field", ["processor", "features", "llvm", "llvmlite", "libc", "vector", "sources", "sympy", "mpmath"]
)
def test_another_machine_or_version_finds_nothing(field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_program(program_of(), cache=tmp_path)
    here = machine()
    monkeypatch.setattr(codegen.machine.storage.cache, "machine", lambda: {**here, field: "another"})
    assert not compile_program(program_of(), cache=tmp_path).stats.cached
    assert len(files(tmp_path)) == 2


def test_the_key_has_the_processor_that_code_is_made_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home folder shared with a machine that has another processor: neither gets the other's code."""
    name, features = codegen.engine.host()
    compile_program(program_of(), cache=tmp_path)
    monkeypatch.setattr("codegen.engine.host", lambda: ("x86-64", features))
    machine.cache_clear()
    assert machine()["processor"] == "x86-64" != name
    assert not compile_program(program_of(), cache=tmp_path).stats.cached


def test_code_of_another_processor_under_our_name_is_not_used(tmp_path: Path) -> None:
    compile_program(program_of(), cache=tmp_path)
    (path,) = files(tmp_path)
    header, parts = unseal(path.read_bytes()[:-8], KIND, VERSION, "")
    header["machine"]["processor"] = "other"
    path.write_bytes(seal(KIND, VERSION, header, parts) + bytes(8))
    kernel = compile_program(program_of(), cache=tmp_path)
    assert not kernel.stats.cached
    assert compile_program(program_of(), cache=tmp_path).stats.cached  # it was replaced


def test_the_sources_of_this_package_are_in_the_key(tmp_path: Path) -> None:
    (tmp_path / "lower.py").write_text("a = 1\n")
    before = codegen.machine.storage.cache._sources(tmp_path)
    (tmp_path / "lower.py").write_text("a = 2\n")
    assert codegen.machine.storage.cache._sources(tmp_path) != before
    assert len(before) == 64
    assert machine()["sources"] == codegen.machine.storage.cache._sources(Path(codegen.__file__).parent)


ANOTHER_PROCESS = """
import sys, sympy as sp
from codegen import Input, Output, Program, compile_program, program_from_sympy

x, y = sp.symbols("x y")
small = program_from_sympy([x, y], [sp.besselj(2, x) + sp.tanh(y) * sp.gamma(x) + sp.loggamma(y + 7)])
heads, operands, atoms = [sp.Symbol, sp.Symbol], [(), ()], {0: x, 1: y}
for k in range(9000):  # x + k: more values than the stack is given
    atoms[len(heads)] = sp.Float(0.001 * k)
    heads += [sp.Float, sp.Add]
    operands += [(), (0, len(heads) - 2)]
for head, values in ((sp.Add, range(3, 18002, 2)), (sp.Mul, range(18001, 2, -2))):
    heads += [head] * 9000
    operands += [(1, 3), *[(len(operands) + k, value) for k, value in enumerate(values[1:])]]
large = Program(heads, operands, atoms, (Input("x", ()), Input("y", ())), (Output((2,), (27001, 36001)),))
for program in (small, large):
    kernel = compile_program(program, cache=sys.argv[1], tier="fast", chunk=500)
    print(kernel.stats.cached, kernel.stats.workspace > 8192, kernel.batch([0.7], [1.3]).tobytes().hex())
"""


def test_functions_are_bound_anew_in_another_process(tmp_path: Path) -> None:
    """Object code holds no address of the process that made it: of libm, SciPy's ufuncs, the heap."""
    command = [sys.executable, "-c", ANOTHER_PROCESS, str(tmp_path)]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(2)
    )
    assert first[0::3] == ["False", "False"]
    assert second[0::3] == ["True", "True"]
    assert first[1::3] == ["False", "True"]
    assert first[2::3] == second[2::3]


def test_object_code_holds_no_address(tmp_path: Path) -> None:
    from codegen.functions.symbols import symbol  # noqa: PLC0415 (needs SciPy)

    compile_program(program_from_sympy([X], [sp.besselj(2, X) + sp.tanh(X)]), cache=tmp_path)
    (path,) = files(tmp_path)
    addresses = [*symbol("scipy.jv.2.0", 2).addresses.values(), *symbol("tanh", 1).addresses.values()]
    assert len(addresses) == 3
    assert not any(address.to_bytes(8, "little") in path.read_bytes() for address in addresses)


@pytest.mark.parametrize("options", [{}, {"accuracy": "fast"}, {"dtype": "float32"}, {"tier": "fast"}], ids=str)
def test_statistics_come_back(options: Any, tmp_path: Path) -> None:
    first, second = (compile_program(program_of(), cache=tmp_path, **options).stats for _ in range(2))
    assert (first.cached, second.cached) == (False, True)
    assert replace(first, seconds={}) == replace(second, seconds={}, cached=False)
    assert list(map(type, first.passes)) == list(map(type, second.passes))


def test_a_function_that_this_machine_lacks_is_compiled_anew(tmp_path: Path) -> None:
    compile_program(program_of(), cache=tmp_path)
    (path,) = files(tmp_path)
    header, parts = unseal(path.read_bytes()[:-8], KIND, VERSION, "")
    header["content"]["symbols"] = ["exp_of_another_library"]
    path.write_bytes(seal(KIND, VERSION, header, parts) + bytes(8))
    kernel = compile_program(program_of(), cache=tmp_path)
    assert not kernel.stats.cached
    assert bits(kernel) == bits(compile_program(program_of()))


def small_entry(folder: Path) -> tuple[Path, bytes]:
    compile_program(program_of(), cache=folder)
    (path,) = files(folder)
    return path, path.read_bytes()


def test_every_truncation_is_compiled_anew(tmp_path: Path) -> None:
    path, data = small_entry(tmp_path)
    wanted = bits(compile_program(program_of()))
    lengths = [*range(0, 80, 7), 63, 64, 65, *random.Random(1).sample(range(80, len(data)), 8), len(data) - 9,
               len(data) - 8, len(data) - 1]  # fmt: skip
    for length in lengths:
        path.write_bytes(data[:length])
        kernel = compile_program(program_of(), cache=tmp_path)
        assert not kernel.stats.cached, length
        assert bits(kernel) == wanted
        assert compile_program(program_of(), cache=tmp_path).stats.cached  # it was replaced by a whole one


def test_every_flipped_byte_is_noticed(tmp_path: Path) -> None:
    """Of the sealed part; the counter behind it decides nothing."""
    path, data = small_entry(tmp_path)
    cache = Cache(tmp_path)
    key = path.name.removesuffix(SUFFIX)
    whole = cache.load(key)
    assert whole is not None
    for position in [*range(200), *range(200, len(data) - 8, 11)]:
        damaged = bytearray(data)
        damaged[position] ^= 1 << (position % 8)
        path.write_bytes(damaged)
        assert cache.load(key) is None, position
    for position in range(len(data) - 8, len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 255
        path.write_bytes(damaged)
        assert cache.load(key) == whole


FOREIGN = {
    "an empty file": b"",
    "a text": b"hello " * 100,
    "object code without a seal": b"\x7fELF" + bytes(1000),
    "a program": seal(b"program", 1, {}, []) + bytes(8),
    "a newer version": seal(KIND, VERSION + 1, {}, []) + bytes(8),
    "another header": seal(KIND, VERSION, {"key": 3}, []) + bytes(8),
    "a list": seal(KIND, VERSION, [], []) + bytes(8),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files_are_compiled_anew(name: str, tmp_path: Path) -> None:
    path, _ = small_entry(tmp_path)
    path.write_bytes(FOREIGN[name])
    assert not compile_program(program_of(), cache=tmp_path).stats.cached
    assert compile_program(program_of(), cache=tmp_path).stats.cached


def test_a_folder_in_place_of_an_entry(tmp_path: Path) -> None:
    path, _ = small_entry(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.warns(RuntimeWarning, match="no cache in .*: it cannot be read"):
        kernel = compile_program(program_of(), cache=tmp_path)
    assert bits(kernel) == bits(compile_program(program_of()))


def test_programs_that_files_cannot_hold_are_compiled_each_time(tmp_path: Path) -> None:
    """And what cannot be compiled is refused as without a cache."""
    with pytest.raises(LoweringError, match="head f"):
        compile_program(with_head(sp.Function("f")), cache=tmp_path)
    assert list(tmp_path.iterdir()) == []
    unused = Program([sp.Symbol, type(sp.I)], [(), ()], {0: X, 1: sp.I}, (Input("x", ()),), (Output((), (0,)),))
    assert compile_program(unused, cache=tmp_path)(2.5) == 2.5
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stored", [(), ("fast",), ("default",), ("fast", "default")])
def test_the_tier_that_improves_itself_takes_the_best_there_is(stored: tuple[Any, ...], tmp_path: Path) -> None:
    wanted = bits(compile_program(program_of()))
    for tier in stored:
        compile_program(program_of(), cache=tmp_path, tier=tier)
    kernel = compile_program(program_of(), cache=tmp_path, tier="auto")
    assert kernel.stats.cached == bool(stored)
    assert kernel.tier == "default" or "default" not in stored
    assert bits(kernel) == wanted
    assert kernel.wait()
    assert (kernel.tier, bits(kernel)) == ("default", wanted)
    assert compile_program(program_of(), cache=tmp_path).stats.cached
