"""The cache: the same bits with nothing compiled; whatever happens to its files, a right kernel and never an error."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

import codegen.cache
import codegen.engine
from codegen import ArgumentError, Input, Kernel, LoweringError, compile_program, lambdify
from codegen.build import STAGES
from codegen.cache import KIND, VERSION, Cache, chosen, default_folder, machine
from codegen.program import Output, Program
from codegen.sealed import seal, unseal
from codegen.sympy_in import program_from_sympy

X, Y = sp.symbols("x y")
POINT = (0.7, 1.3)


def program_of(number: int = 0) -> Program:
    return program_from_sympy([X, Y], [sp.sin(X) * Y + number, [X**3, sp.exp(Y)]], name=f"f{number}")


def with_head(head: Any) -> Program:
    return Program([sp.Symbol, head], [(), (0,)], {0: X}, (Input("x", ()),), (Output((), (1,)),))


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    codegen.cache.cache_in.cache_clear()
    machine.cache_clear()
    codegen.engine.host.cache_clear()


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any use of the compiler or of the stages before it fails."""

    def refuse(*arguments: Any) -> Any:
        raise AssertionError("compiled")

    monkeypatch.setattr("codegen.build.compile_modules", refuse)
    monkeypatch.setattr("codegen.build.prepare", refuse)


def bits(kernel: Kernel, *point: Any) -> bytes:
    results = kernel(*(point or POINT))
    return b"".join(np.asarray(result).tobytes() for result in (results if isinstance(results, tuple) else [results]))


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.symad"))


def test_a_hit_compiles_nothing_and_gives_the_same_bits(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    first = compile_program(program_of(), cache=tmp_path)
    assert not first.stats.cached
    assert list(first.stats.seconds) == list(STAGES)
    request.getfixturevalue("no_compiler")
    second = compile_program(program_of(), cache=tmp_path)
    assert second.stats.cached
    assert list(second.stats.seconds) == ["load"]
    assert bits(first) == bits(second)
    for field in ("nodes", "machine_operations", "fused", "chunks", "workspace", "code_bytes", "strategy", "executed"):
        assert getattr(first.stats, field) == getattr(second.stats, field)
    assert second.llvm == first.llvm  # written anew
    assert repr(second) == repr(first)


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


@pytest.mark.parametrize("field", ["processor", "features", "llvm", "llvmlite", "libc", "sources", "sympy", "mpmath"])
def test_another_machine_or_version_finds_nothing(field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_program(program_of(), cache=tmp_path)
    here = machine()
    monkeypatch.setattr(codegen.cache, "machine", lambda: {**here, field: "another"})
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
    before = codegen.cache._sources(tmp_path)
    (tmp_path / "lower.py").write_text("a = 2\n")
    assert codegen.cache._sources(tmp_path) != before
    assert len(before) == len(machine()["sources"]) == 64


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
    from codegen.symbols import symbol  # noqa: PLC0415 (needs SciPy)

    compile_program(program_from_sympy([X], [sp.besselj(2, X) + sp.tanh(X)]), cache=tmp_path)
    (path,) = files(tmp_path)
    addresses = [*symbol("scipy.jv.2.0", 2).addresses.values(), *symbol("tanh", 1).addresses.values()]
    assert len(addresses) == 3
    assert not any(address.to_bytes(8, "little") in path.read_bytes() for address in addresses)


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
    key = path.stem
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


WRITER = """
import sys, time
from pathlib import Path
from codegen.cache import Cache
cache = Cache(Path(sys.argv[1]))
parts = [bytes([k % 256]) * 200_000 for k in range(20)]
print("ready", flush=True)
while True:
    for k in range(5):
        cache.store(f"key{k}", {"name": "f"}, parts)
"""


def test_a_writer_killed_at_any_moment_leaves_whole_entries_or_none(tmp_path: Path) -> None:
    generator = random.Random(3)
    expected = [bytes([k % 256]) * 200_000 for k in range(20)]
    for _ in range(6):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(generator.uniform(0.0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        cache = Cache(tmp_path)
        for path in files(tmp_path):  # what has the name of an entry is one
            found = cache.load(path.stem)
            assert found is not None
            assert found[1] == expected
    unfinished = list(tmp_path.glob(".*.part"))
    for path in unfinished:
        os.utime(path, (0, 0))
    cache.store("last", {"name": "f"}, [b"code"])
    assert not list(tmp_path.glob(".*.part"))  # those that nobody will finish are removed
    assert cache.load("last") is not None


PROCESS = """
import sys, sympy as sp
from codegen import compile_program, program_from_sympy
x, y = sp.symbols("x y")
for turn in range(6):
    for k in range(4):
        program = program_from_sympy([x, y], [sp.sin(x) * y + k], name=f"f{k}")
        kernel = compile_program(program, cache=sys.argv[1], tier="fast")
        assert kernel(0.7, 1.3) == compile_program(program, tier="fast")(0.7, 1.3)
print("done")
"""


def test_processes_share_a_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", PROCESS, str(tmp_path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    for process in running:
        out, err = process.communicate()
        assert (out, err, process.returncode) == (b"done\n", b"", 0)
    assert len(files(tmp_path)) == 4


def test_threads_share_a_folder(tmp_path: Path) -> None:
    wanted = {number: bits(compile_program(program_of(number), tier="fast")) for number in range(3)}
    wrong: list[Any] = []

    def work() -> None:
        for turn in range(8):
            number = turn % 3
            try:
                if bits(compile_program(program_of(number), cache=tmp_path, tier="fast")) != wanted[number]:
                    wrong.append(number)
                if turn == 5:
                    Cache(tmp_path).clear()
            except Exception as error:  # what a thread raises has to reach the test
                wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=100_000)
    for k in range(4):
        cache.store(f"key{k}", {"name": "f"}, [bytes(20_000)])
        os.utime(tmp_path / f"key{k}.symad", (1000 + k, 1000 + k))
    assert cache.load("key0") is not None  # used now
    for k in range(4, 7):
        cache.store(f"key{k}", {"name": "f"}, [bytes(20_000)])
    assert [path.stem for path in files(tmp_path)] == ["key0", "key4", "key5", "key6"]
    assert sum(path.stat().st_size for path in files(tmp_path)) <= 100_000


def test_an_entry_larger_than_the_cache_is_not_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=10_000)
    cache.store("small", {"name": "f"}, [bytes(100)])
    cache.store("large", {"name": "f"}, [bytes(20_000)])
    assert [path.stem for path in files(tmp_path)] == ["small"]


def test_uses_are_counted(tmp_path: Path) -> None:
    for _ in range(4):
        compile_program(program_of(), cache=tmp_path)
    (entry,) = Cache(tmp_path).entries()
    assert (entry.name, entry.hits, entry.size) == ("f0", 3, files(tmp_path)[0].stat().st_size)
    assert entry.made <= entry.used <= time.time()


def test_a_folder_that_cannot_be_made_costs_one_warning(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    with pytest.warns(
        RuntimeWarning, match=r"no cache in .*file: it cannot be read .*; kernels are compiled"
    ) as caught:
        kernels = [compile_program(program_of(k), cache=file, tier="fast") for k in range(3)]
    assert len(caught) == 1
    assert bits(kernels[0]) == bits(compile_program(program_of()))


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), OSError(30, "Read-only file system")])
def test_a_disk_that_is_full_or_read_only_costs_one_warning(
    error: OSError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any, **keywords: Any) -> None:
        raise error

    monkeypatch.setattr(codegen.cache, "write_atomically", fail)
    with pytest.warns(RuntimeWarning, match=f"it cannot be written .{error.strerror}") as caught:
        kernels = [compile_program(program_of(k), cache=tmp_path, tier="fast") for k in range(3)]
    assert len(caught) == 1
    assert bits(kernels[2]) == bits(compile_program(program_of(2)))


def test_hits_on_a_read_only_disk_are_hits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_program(program_of(), cache=tmp_path)
    opened = Path.open

    def read_only(path: Path, mode: str = "r", *rest: Any, **keywords: Any) -> Any:
        if mode != "rb" and path.suffix == ".symad":
            raise OSError(30, "Read-only file system")
        return opened(path, mode, *rest, **keywords)

    monkeypatch.setattr(Path, "open", read_only)
    assert compile_program(program_of(), cache=tmp_path).stats.cached


def test_no_part_file_stays_after_a_failed_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.warns(RuntimeWarning, match="No space left"):
        compile_program(program_of(), cache=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_others_can_write_into_is_not_used(tmp_path: Path) -> None:
    """Its files are run: whoever can write there could run anything."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="others can write into it"):
        compile_program(program_of(), cache=shared)
    assert list(shared.iterdir()) == []
    made = tmp_path / "made" / "here"
    compile_program(program_of(), cache=made)
    assert made.stat().st_mode & 0o777 == 0o700


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


class TestChoice:
    """cache= and the environment."""

    @pytest.fixture(autouse=True)
    def _environment(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        for name in ("SYMAD_CACHE", "SYMAD_CACHE_MEGABYTES"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))

    @pytest.mark.parametrize("words", [None, "", "0", "off", " OFF "])
    def test_off(self, words: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        if words is not None:
            monkeypatch.setenv("SYMAD_CACHE", words)
        assert chosen() is None
        assert chosen(False) is None
        cache = chosen(True)
        assert cache is not None
        assert cache.folder == tmp_path / "xdg" / "symad"

    @pytest.mark.parametrize("words", ["1", "on", "ON "])
    def test_on(self, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("SYMAD_CACHE", words)
        for setting in (None, True):
            cache = chosen(setting)
            assert cache is not None
            assert cache.folder == default_folder() == tmp_path / "xdg" / "symad"
        assert chosen(False) is None

    def test_a_folder(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("SYMAD_CACHE", str(tmp_path / "own"))
        for setting, folder in ((None, "own"), (True, "own"), (tmp_path / "given", "given")):
            cache = chosen(setting)
            assert cache is not None
            assert cache.folder == tmp_path / folder
        assert lambdify([X], X + 1, cache=None)(1.0) == 2.0
        assert len(files(tmp_path / "own")) == 1

    def test_a_relative_xdg_folder_is_ignored_as_its_rules_say(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        assert default_folder() == Path.home() / ".cache" / "symad"

    def test_the_limit(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("SYMAD_CACHE_MEGABYTES", "3")
        cache = chosen(tmp_path)
        assert cache is not None
        assert cache.limit == 3_000_000
        monkeypatch.setenv("SYMAD_CACHE_MEGABYTES", "-1")
        with pytest.raises(ArgumentError, match="SYMAD_CACHE_MEGABYTES='-1'; give a whole number"):
            chosen(tmp_path)

    @pytest.mark.parametrize("setting", [1, 0, "", 3.5, b"folder"])
    def test_anything_else_is_refused(self, setting: Any) -> None:
        with pytest.raises(ArgumentError, match="give True, False or the path of a folder"):
            chosen(setting)


def test_nothing_is_written_without_being_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SYMAD_CACHE", raising=False)
    with warnings.catch_warnings():
        compile_program(program_of())
    assert list(tmp_path.iterdir()) == []
