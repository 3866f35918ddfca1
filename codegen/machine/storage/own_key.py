"""The key that marks this user's machine code in files. Code with another mark is not run.

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

from codegen.machine.storage.trust import POSIX, distrusted, read_own
from codegen.stages import LOG

SIZE = 32  # bytes of the key, and of a mark


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
