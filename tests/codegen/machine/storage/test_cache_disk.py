"""The folder of the cache: killed writers, several processes, full and shared disks, size, settings."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

import codegen.engine
import codegen.machine.storage.cache
from codegen import ArgumentError, compile_program, lambdify
from codegen.machine.storage.cache import SUFFIX, Cache, chosen, default_folder
from tests.support.cached import X, bits, files, program_of

WRITER = """
import sys, time
from pathlib import Path
from codegen.machine.storage.cache import Cache
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
            found = cache.load(path.name.removesuffix(SUFFIX))
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
        os.utime(tmp_path / f"key{k}{SUFFIX}", (1000 + k, 1000 + k))
    assert cache.load("key0") is not None  # used now
    for k in range(4, 7):
        cache.store(f"key{k}", {"name": "f"}, [bytes(20_000)])
    assert [path.name.removesuffix(SUFFIX) for path in files(tmp_path)] == ["key0", "key4", "key5", "key6"]
    assert sum(path.stat().st_size for path in files(tmp_path)) <= 100_000


def test_an_entry_larger_than_the_cache_is_not_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=10_000)
    cache.store("small", {"name": "f"}, [bytes(100)])
    cache.store("large", {"name": "f"}, [bytes(20_000)])
    assert [path.name.removesuffix(SUFFIX) for path in files(tmp_path)] == ["small"]


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

    monkeypatch.setattr(codegen.machine.storage.cache, "write_atomically", fail)
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
    with pytest.warns(RuntimeWarning, match=r"others can write into .*shared, and what is in it is run"):
        compile_program(program_of(), cache=shared)
    assert list(shared.iterdir()) == []
    made = tmp_path / "made" / "here"
    compile_program(program_of(), cache=made)
    assert made.stat().st_mode & 0o777 == 0o700


class TestChoice:
    """cache= and the environment."""

    @pytest.fixture(autouse=True)
    def _environment(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        for name in ("SYMAD_CACHE", "SYMAD_CACHE_MEGABYTES"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))

    @pytest.mark.parametrize("words", [None, "", "0", "off", " OFF ", "False", "no"])
    def test_off(self, words: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        if words is not None:
            monkeypatch.setenv("SYMAD_CACHE", words)
        assert chosen() is None
        assert chosen(False) is None
        cache = chosen(True)
        assert cache is not None
        assert cache.folder == tmp_path / "xdg" / "symad"

    @pytest.mark.parametrize("words", ["1", "on", "ON ", "true", "Yes"])
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

    def test_the_home_folder_has_a_short_name(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        for setting in ("~/own", Path("~/own")):
            cache = chosen(setting)
            assert cache is not None
            assert cache.folder == tmp_path / "own"

    def test_a_relative_xdg_folder_is_ignored_as_its_rules_say(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        assert default_folder() == Path.home() / ".cache" / "symad"

    def test_nobody_is_home(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail() -> Path:
            raise RuntimeError("Could not determine home directory.")

        monkeypatch.setenv("XDG_CACHE_HOME", "")
        monkeypatch.setattr(Path, "home", fail)
        with pytest.raises(ArgumentError, match="this user has no home folder; set XDG_CACHE_HOME"):
            chosen(True)

    def test_the_limit(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("SYMAD_CACHE_MEGABYTES", "3")
        cache = chosen(tmp_path)
        assert cache is not None
        assert cache.limit == 3_000_000
        monkeypatch.setenv("SYMAD_CACHE_MEGABYTES", "-1")
        with pytest.raises(ArgumentError, match="SYMAD_CACHE_MEGABYTES='-1'; give a whole number"):
            chosen(tmp_path)

    @pytest.mark.parametrize("setting", [1, 0, "", 3.5, b"folder", "a\0b"])
    def test_anything_else_is_refused(self, setting: Any) -> None:
        with pytest.raises(ArgumentError, match="give True, False or the path of a folder"):
            chosen(setting)


def test_saved_kernels_in_the_folder_of_a_cache_stay(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=30_000)
    saved = tmp_path / "mine.symad"
    compile_program(program_of()).save(saved)
    (tmp_path / ".other.symad.part").touch()
    os.utime(saved, (0, 0))
    os.utime(tmp_path / ".other.symad.part", (0, 0))
    for k in range(3):
        cache.store(f"key{k}", {"name": "f"}, [bytes(20_000)])
    assert len(cache.entries()) == 1
    assert cache.clear() == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [".other.symad.part", "mine.symad"]


def test_nothing_is_written_without_being_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SYMAD_CACHE", raising=False)
    with warnings.catch_warnings():
        compile_program(program_of())
    assert list(tmp_path.iterdir()) == []
