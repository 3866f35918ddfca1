"""The disk cache of object code: one sealed file per kernel, named by a hash of all that decides its code.

A file is found only by the same program, options, processor, compiler and sources of this package. It is written whole
or not at all, and its checksum is compared before a byte is used: damaged code is compiled again. Its bytes are run, so
it has to be this user's own, where nobody else can exchange it. A folder that cannot be read or written costs the
cache, never the kernel.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import struct
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from codegen.engine import identity
from codegen.errors import ArgumentError, CacheWarning
from codegen.functions.libraries import FUNCTIONS, vector_symbol, widths
from codegen.machine.storage.trust import FOLDER, SOURCES, ForeignFileError, distrusted, read_own, times_of
from codegen.records import dataclass
from codegen.sealed import seal, unseal, write_atomically

KIND, VERSION = b"object", 1
SUFFIX, UNFINISHED = ".code.symad", ".part"  # another suffix than that of saved kernels, which stay when entries go
LIMIT = 2**30  # bytes of one folder, unless SYMAD_CACHE_MEGABYTES says otherwise
UNSCANNED = 16  # part of the limit that one process writes before it looks at the folder's size again
STALE = 3600.0  # seconds after which an unfinished file belongs to a process that was killed
_HITS = struct.Struct("<Q")  # behind the sealed bytes: how often the entry was used, for display only
_PACKAGES = ("sympy", "mpmath", "numpy", "scipy")  # which fold constants, or whose ufuncs kernels call

Setting = bool | str | os.PathLike[str] | None


def default_folder() -> Path:
    """Return the folder of the cache: `symad` in XDG_CACHE_HOME or ~/.cache; ArgumentError without a home folder."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return (base if base.is_absolute() else Path.home() / ".cache") / "symad"
    except RuntimeError as error:
        raise ArgumentError("a cache", why="this user has no home folder", do="set XDG_CACHE_HOME") from error


def chosen(setting: Setting = None) -> Cache | None:
    """Return the cache that `cache=` asks for, None for none; ArgumentError for anything but a truth value or a path.

    None asks the environment variable SYMAD_CACHE: 1, on, true or yes is the default folder, a path another one;
    without it, and with 0, off, false or no, there is no cache. True is the folder of the environment, or else the
    default one.

    >>> chosen(False) is None, chosen("some/folder").folder.name
    (True, 'folder')
    """
    if setting is False:
        return None
    path = os.fspath(setting) if isinstance(setting, str | os.PathLike) else ""
    if isinstance(path, str) and path and "\0" not in path:
        return cache_in(Path(path).expanduser().absolute(), _limit())
    if setting is not None and setting is not True:
        raise ArgumentError(f"cache={setting!r}", do="give True, False or the path of a folder")
    words = os.environ.get("SYMAD_CACHE", "").strip()
    if words.lower() in ("", "0", "off", "false", "no"):
        return cache_in(default_folder(), _limit()) if setting else None
    folder = default_folder() if words.lower() in ("1", "on", "true", "yes") else Path(words).expanduser().absolute()
    return cache_in(folder, _limit())


def _limit() -> int:
    words = os.environ.get("SYMAD_CACHE_MEGABYTES", "").strip()
    if not words:
        return LIMIT
    if not words.isdecimal():
        raise ArgumentError(f"SYMAD_CACHE_MEGABYTES={words!r}", do="give a whole number")
    return int(words) * 10**6


@functools.cache
def machine() -> dict[str, str]:
    """Return the dependencies of object code beside program and options: processor, compiler, versions, sources."""
    versions = {name: _version(name) for name in _PACKAGES}
    vector = [vector_symbol(name, lanes) for name in FUNCTIONS for lanes in widths()]
    return {**identity(), **versions, "vector": " ".join(filter(None, vector)), "sources": sources()}


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 (7 ms, and only a cache asks)

    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _sources(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def sources() -> str:
    """Return a digest of the imported sources; unique to this process if they were edited since then."""
    checksum = _sources(FOLDER)
    return checksum if times_of(FOLDER) == SOURCES else f"{checksum} edited {os.getpid()} {time.time_ns()}"


def key_of(portable: bytes) -> str:
    """Return the hash of a portable program and this machine."""
    return hashlib.sha256(json.dumps(machine(), sort_keys=True).encode() + b"\0" + portable).hexdigest()


@dataclass(frozen=True)
class CacheEntry:
    """One file of the cache, as the command `symad cache` shows it."""

    path: Path
    name: str  # of the kernel, "" where the file cannot be read
    size: int
    made: float  # seconds since 1970
    used: float
    hits: int


@functools.cache
def cache_in(folder: Path, limit: int = LIMIT) -> Cache:
    """Return the cache in a folder, one object for the process."""
    return Cache(folder, limit)


class Cache:
    """Object code in a folder, the least recently used removed beyond `limit` bytes; threads and processes share it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = Cache(Path(folder))
    ...     cache.store("key", {"name": "f"}, [b"code"])
    ...     cache.load("key"), cache.load("other")
    (({'name': 'f'}, [b'code']), None)
    """

    folder: Path
    limit: int

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder, self.limit = folder, limit
        self._unscanned = limit  # bytes written since the folder was last looked through
        self._warned = False

    def load(self, key: str) -> tuple[dict[str, Any], list[bytes]] | None:
        """Return the content and the object code of an entry, None where none is whole and of this machine."""
        path = self._path(key)
        try:
            if not self._is_private():
                return None
            data = read_own(path)
            header, parts = unseal(data[: -_HITS.size], KIND, VERSION, str(path))
            if header["key"] == key and header["machine"] == machine():
                self._count_hit(path)
                return header["content"], [part.tobytes() for part in parts]
        except (FileNotFoundError, ArgumentError, ValueError, TypeError, KeyError):
            pass  # none, or damaged: it is compiled anew, and the new entry takes its place
        except ForeignFileError as error:
            self._refuse(path, str(error.strerror))
        except OSError as error:
            self._warn(f"it cannot be read ({error.strerror})")
        return None

    def store(self, key: str, content: dict[str, Any], parts: Sequence[bytes]) -> None:
        """Write an entry; where that fails, warn once and go on."""
        header = {"key": key, "machine": machine(), "made": time.time(), "content": content}
        data = seal(KIND, VERSION, header, [np.frombuffer(part, np.uint8) for part in parts]) + _HITS.pack(0)
        if len(data) > self.limit:
            return
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._is_private():
                write_atomically(self._path(key), data, durable=False, mode=0o600)
                self._bound(len(data))
        except OSError as error:
            self._warn(f"it cannot be written ({error.strerror})")

    def entries(self) -> list[CacheEntry]:
        """Return all entries, the least recently used first."""
        return [_described(path, info) for path, info in self._files(SUFFIX)]

    def clear(self) -> int:
        """Remove all entries, and unfinished files of killed processes; return the number of entries."""
        entries = self._files(SUFFIX)
        for path, _ in entries:
            path.unlink(missing_ok=True)
        self._remove_unfinished()
        return len(entries)

    def _remove_unfinished(self) -> None:
        """Remove abandoned files; young ones may belong to a running process."""
        for path, info in self._files(UNFINISHED):
            if time.time() - info.st_mtime > STALE:
                path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{SUFFIX}"

    def _is_private(self) -> bool:
        """Whether nobody else can exchange files of the folder, whose code will be run."""
        self.folder.stat()  # OSError where it is none
        why = distrusted(self.folder)
        if why:
            self._warn(f"{why}, and what is in it is run (where that is this folder, chmod 700 makes it yours alone)")
        return not why

    def _refuse(self, path: Path, why: str) -> None:
        """Remove a file that is no entry of this user's, and warn."""
        removed = "removed"
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            removed = f"it cannot be removed ({error.strerror})"
        said = f"{path} is not used: {why}, and entries are run; {removed}, and the kernel is compiled anew"
        warnings.warn(said, CacheWarning, stacklevel=2)

    def _warn(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            said = f"no cache in {self.folder}: {why}; kernels are compiled anew each time"
            warnings.warn(said, CacheWarning, stacklevel=2)

    def _count_hit(self, path: Path) -> None:
        """Increment the number behind the sealed bytes, which makes the entry the most recently used."""
        with contextlib.suppress(OSError, struct.error), path.open("r+b") as file:
            file.seek(-_HITS.size, os.SEEK_END)
            (hits,) = _HITS.unpack(file.read(_HITS.size))
            file.seek(-_HITS.size, os.SEEK_END)
            file.write(_HITS.pack((hits + 1) % 2**64))

    def _bound(self, written: int) -> None:
        """Remove the least recently used entries beyond the limit, and abandoned files."""
        self._unscanned += written
        if self._unscanned * UNSCANNED < self.limit:
            return
        self._unscanned = 0
        self._remove_unfinished()
        files = self._files(SUFFIX)
        total = sum(info.st_size for _, info in files)
        for path, info in files:
            if total <= self.limit:
                break
            path.unlink(missing_ok=True)
            total -= info.st_size

    def _files(self, suffix: str) -> list[tuple[Path, os.stat_result]]:
        """Return the cache's own files with a suffix, the least recently used first."""
        return sorted(_stats(self.folder, suffix), key=lambda file: file[1].st_mtime)


def _stats(folder: Path, suffix: str) -> Iterator[tuple[Path, os.stat_result]]:
    for path in folder.glob(f"*{SUFFIX}*"):
        if path.name.endswith(suffix):
            with contextlib.suppress(OSError):  # another process may have removed it
                yield path, path.lstat()


def _described(path: Path, info: os.stat_result) -> CacheEntry:
    name, created, hits = "", info.st_mtime, 0
    with contextlib.suppress(OSError, ArgumentError, ValueError, TypeError, KeyError):
        data = read_own(path)
        header, _ = unseal(data[: -_HITS.size], KIND, VERSION, str(path))
        name, created = str(header["content"]["name"]), float(header["made"])
        (hits,) = _HITS.unpack(data[-_HITS.size :])
    return CacheEntry(path, name, info.st_size, created, info.st_mtime, hits)
