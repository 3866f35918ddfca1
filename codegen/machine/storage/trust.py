"""Decide whose code may be run: files of this user and root, in folders that nobody else can change; marked code.

And of which sources: those of this package as they are imported.

Anybody may send a saved kernel, which is data. Its machine code runs only if its mark was made with the key in this
user's home folder: then this user's symad has compiled it.

Source: Krawczyk, Bellare and Canetti, "HMAC: Keyed-Hashing for Message Authentication", RFC 2104 (1997).
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import stat
from collections.abc import Iterable
from pathlib import Path

import codegen.errors
from codegen.stages import LOG

POSIX = os.name == "posix"
MOST_LINKS = 40  # on the way to a folder, as Linux has it
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
SIZE = 32  # bytes of the key, and of a mark


class ForeignFileError(PermissionError):
    """A file is a link, none at all, or one that others own or can write."""


def distrusted(folder: Path) -> str:
    """Return why others could exchange what lies in a folder, "" where they cannot; OSError for a folder that is none.

    Looked at are the folder and everything on the way to it, links too: each belongs to this user or root, and nobody
    else can write there, except where the sticky bit leaves each name to its owner (as in /tmp).
    """
    if not POSIX:
        return ""
    at, coming, links = Path("/"), list(reversed(folder.absolute().parts[1:])), 0
    while coming:
        why = _unsafe(at, os.lstat(at), sticky=True)
        if why:
            return why
        name = coming.pop()
        at = at.parent if name == ".." else at / name
        info = os.lstat(at)
        if stat.S_ISLNK(info.st_mode):
            links += 1
            if not _ours(info) or links > MOST_LINKS:
                return f"{at} is another user's link" if not _ours(info) else "too many links lead to it"
            target = Path(os.readlink(at))
            at = Path("/") if target.is_absolute() else at.parent
            coming += reversed(target.parts[target.is_absolute() :])
    return _unsafe(at, os.lstat(at), sticky=False)


def read_own(path: Path) -> bytes:
    """Return the bytes of a file that is this user's or root's alone; ForeignFileError for any other."""
    if not POSIX:
        return path.read_bytes()
    if path.is_symlink():
        raise ForeignFileError(0, "it is a link")
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        info = os.fstat(file.fileno())
        why = _foreign(info)
        if why:
            raise ForeignFileError(0, why)
        return file.read()


def _foreign(info: os.stat_result) -> str:
    """Return why a file is not this user's alone, "" where it is."""
    if not stat.S_ISREG(info.st_mode):
        return "it is no file"
    if POSIX and not _ours(info):
        return f"it belongs to another user ({info.st_uid})"
    if POSIX and info.st_mode & _OTHERS:
        return "others can write it"
    return "it has a second name elsewhere" if info.st_nlink > 1 else ""


def _ours(info: os.stat_result) -> bool:
    return info.st_uid in (os.geteuid(), 0)


def _unsafe(folder: Path, info: os.stat_result, *, sticky: bool) -> str:
    if not _ours(info):
        return f"{folder} belongs to another user ({info.st_uid})"
    if info.st_mode & _OTHERS and not (sticky and info.st_mode & stat.S_ISVTX):
        return f"others can write into {folder}"
    return ""


def key_file() -> Path:
    """Return the path of the key: `symad/key` in XDG_DATA_HOME, or in ~/.local/share; OSError without a home folder."""
    base = Path(os.environ.get("XDG_DATA_HOME", ""))
    try:
        return (base if base.is_absolute() else Path.home() / ".local" / "share") / "symad" / "key"
    except RuntimeError as error:
        raise OSError(0, "this user has no home folder") from error


def own_key(*, make: bool = False) -> bytes | None:
    """Return the key of this user, None where there is none, or where others could know it; `make` one if need be."""
    try:
        path = key_file()
        if make and not path.exists():
            _make(path)
        why = distrusted(path.parent)
        if not why and POSIX and path.lstat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            why = f"others can read {path}"
        key = b"" if why else read_own(path)
    except OSError as error:
        why, key = f"no key: {error.strerror}", b""
    if len(key) == SIZE:
        return key
    LOG.info("machine code in files of kernels is neither written nor run: %s", why or "the key is damaged")
    return None


def mark_of(key: bytes, parts: Iterable[bytes | memoryview]) -> bytes:
    """Return the mark of some bytes.

    >>> mark_of(bytes(32), [b"a", b"b"]) == mark_of(bytes(32), [b"ab"])
    True
    """
    mark = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        mark.update(part)
    return mark.digest()


def _make(path: Path) -> None:
    """Write a new key, unless another process is quicker: then that one's stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.urandom(8).hex()}.part")
    try:
        with open(unfinished, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(os.urandom(SIZE))
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def times_of(folder: Path) -> str:
    """Return a digest of all files of this package: of their names, sizes and times, which is fifty times as quick."""
    digest, waiting = hashlib.sha256(), [(folder, "")]
    while waiting:
        at, name = waiting.pop()
        with os.scandir(at) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir():
                    waiting += [(Path(entry.path), f"{name}/{entry.name}")] if entry.name != "__pycache__" else []
                elif entry.name.endswith(".py"):
                    info = entry.stat()
                    digest.update(f"{name}/{entry.name} {info.st_size} {info.st_mtime_ns}\n".encode())
    return digest.hexdigest()


FOLDER = Path(codegen.errors.__file__).parent
SOURCES = times_of(FOLDER)  # as they are imported: they may be edited while the process runs
