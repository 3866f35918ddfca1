"""What other users could have put into the cache is never run."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest
import sympy as sp

import symad as sa
from codegen import compile_program, program_from_sympy
from codegen.errors import ArgumentError, CacheWarning
from codegen.machine.storage.cache import SUFFIX, Cache, distrusted

STRANGER = 65533
pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")
root_only = pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0, reason="only root can give files to another user, or become one"
)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    made = Cache(tmp_path / "cache")
    made.store("key", {"name": "f"}, [b"code"])
    assert made.load("key") == ({"name": "f"}, [b"code"])
    return made


def entry(cache: Cache) -> Path:
    return cache.folder / f"key{SUFFIX}"


def refused(cache: Cache, why: str) -> None:
    """The entry is not used, is removed and made anew."""
    with pytest.warns(
        CacheWarning, match=rf"key\.code\.symad is not used: {why}.* removed, and the kernel is compiled"
    ):
        assert cache.load("key") is None
    assert not os.path.lexists(entry(cache))
    cache.store("key", {"name": "f"}, [b"code"])
    assert cache.load("key") is not None


@root_only
def test_an_entry_of_another_user_is_refused(cache: Cache) -> None:
    os.chown(entry(cache), STRANGER, -1)
    refused(cache, "it belongs to another user .65533.")


@root_only
def test_what_was_planted_while_the_folder_was_open_to_all_is_not_run(tmp_path: Path) -> None:
    """The way in which it was shown: an open folder, a planted entry, and then chmod 700 as the warning advises."""
    folder = tmp_path / "cache"
    x = sp.Symbol("x")
    program, wrong = program_from_sympy([x], [x + 1]), program_from_sympy([x], [x + 666])
    compile_program(program, cache=folder)
    compile_program(wrong, cache=folder)
    os.chown(folder, os.geteuid(), -1)
    folder.chmod(0o777)
    for path in folder.iterdir():
        os.chown(path, STRANGER, -1)
    folder.chmod(0o700)
    with pytest.warns(CacheWarning, match="belongs to another user"):
        kernel = compile_program(program, cache=folder)
    assert not kernel.stats.cached
    assert kernel(1.0) == 2.0


def test_an_entry_that_others_can_write_is_refused(cache: Cache) -> None:
    entry(cache).chmod(0o620)
    refused(cache, "others can write it")


def test_links_are_refused(cache: Cache, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    entry(cache).rename(elsewhere)
    entry(cache).symlink_to(elsewhere)
    refused(cache, "it is a link")
    entry(cache).unlink()
    os.link(elsewhere, entry(cache))
    refused(cache, "it has a second name elsewhere")
    entry(cache).unlink()
    entry(cache).symlink_to(tmp_path / "nowhere")
    refused(cache, "it is a link")


def test_a_pipe_is_refused_and_not_waited_for(cache: Cache) -> None:
    entry(cache).unlink()
    os.mkfifo(entry(cache), 0o600)
    assert [found.name for found in cache.entries()] == [""]
    refused(cache, "it is no file")


def test_entries_are_this_users_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        cache = Cache(tmp_path / "cache")
        cache.store("key", {"name": "f"}, [b"code"])
    finally:
        os.umask(before)
    assert entry(cache).stat().st_mode & 0o777 == 0o600
    assert cache.load("key") is not None


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o702])
def test_a_folder_below_one_that_others_can_write_is_refused(mode: int, tmp_path: Path) -> None:
    above = tmp_path / "above"
    cache = Cache(above / "here" / "cache")
    cache.store("key", {"name": "f"}, [b"code"])
    above.chmod(mode)
    with pytest.warns(
        CacheWarning, match=r"no cache in .*cache: others can write into .*above, and what is in it is run"
    ):
        assert cache.load("key") is None
    above.chmod(mode | 0o1000)  # the sticky bit leaves each name to its owner
    assert cache.load("key") is not None


@root_only
def test_a_folder_in_another_users_folder_or_behind_another_users_link_is_refused(cache: Cache, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(cache.folder)
    assert Cache(link).load("key") is not None
    os.chown(link, STRANGER, -1, follow_symlinks=False)
    assert distrusted(link) == f"{link} is another user's link"
    os.chown(cache.folder, STRANGER, -1)
    assert distrusted(cache.folder) == f"{cache.folder} belongs to another user (65533)"
    os.chown(cache.folder, 0, -1)
    assert not distrusted(cache.folder)
    above = tmp_path / "other"
    (above / "cache").mkdir(parents=True)
    os.chown(above, STRANGER, -1)
    assert distrusted(above / "cache") == f"{above} belongs to another user (65533)"


def test_links_lead_where_they_lead(tmp_path: Path) -> None:
    for name in ("a/b", "c"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "c" / "up").symlink_to("../a/b")
    (tmp_path / "c" / "loop").symlink_to("loop")
    assert not distrusted(tmp_path / "c" / "up")
    (tmp_path / "a").chmod(0o777)
    assert distrusted(tmp_path / "c" / "up") == f"others can write into {tmp_path / 'a'}"
    assert distrusted(tmp_path / "c" / "loop") == "too many links lead to it"


@root_only
def test_what_root_has_put_there_is_used_by_all() -> None:
    """A cache that the administrator fills is as trustworthy as the interpreter."""
    cache = Cache(Path("/tmp") / f"symad-{os.getpid()}")
    try:
        cache.store("key", {"name": "f"}, [b"code"])
        entry(cache).chmod(0o644)
        cache.folder.chmod(0o755)
        os.seteuid(STRANGER)
        try:
            found = cache.load("key")
        finally:
            os.seteuid(0)
    finally:
        cache.clear()
        cache.folder.rmdir()
    assert found == ({"name": "f"}, [b"code"])


def test_machine_code_is_never_loaded_as_a_file(cache: Cache) -> None:
    with pytest.raises(ArgumentError, match="it holds b'object', not b'program'"):
        sa.load(entry(cache))


def test_nothing_is_said_of_an_ordinary_cache(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            sa.compile(lambda x: x * x, 1.0, cache=tmp_path / "a" / "cache")
