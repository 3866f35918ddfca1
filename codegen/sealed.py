"""Sealed files: a JSON header and number arrays behind a checksum. Reading one runs none of its content.

    magic, kind of file, version, length of the header, length of the whole, SHA-256 of all the rest; header; arrays

Nothing is compressed, so a file takes no more memory than its own length. Files of other programs, of newer versions,
cut short or damaged are refused by name.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.errors import ArgumentError

MAGIC = b"\x89symad\r\n"
_FIXED = struct.Struct("<8s8sIIQ")  # magic, kind, version, length of the header, length of the whole
_DIGEST = hashlib.sha256().digest_size
_DTYPES = frozenset({"|u1", "<u2", "<u4", "<u8", "<f8"})


def seal(kind: bytes, version: int, header: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> bytes:
    """Return the bytes of a file; the arrays are one-dimensional, and come back in the same order.

    >>> unseal(seal(b"test", 1, {"a": [1, None]}, [np.array([2.5])]), b"test", 1, "a file")
    ({'a': [1, None]}, [array([2.5])])
    """
    plain = [np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")) for array in arrays]
    described = {"header": header, "arrays": [[array.dtype.str, len(array)] for array in plain]}
    text = json.dumps(described, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    length = _FIXED.size + _DIGEST + len(text) + sum(array.nbytes for array in plain)
    fixed = _FIXED.pack(MAGIC, kind, version, len(text), length)
    body = b"".join([text, *(array.tobytes() for array in plain)])
    return fixed + _digest(fixed, body) + body


def first_of(data: bytes) -> int:
    """Return where the first of several files ends that stand one behind the other; the end of all, if that is unclear.

    >>> one = seal(b"test", 1, {}, [])
    >>> first_of(one + b"more") == len(one), first_of(b"none")
    (True, 4)
    """
    length = _FIXED.unpack_from(data)[4] if len(data) >= _FIXED.size and data.startswith(MAGIC) else len(data)
    return min(length, len(data)) if length >= _FIXED.size + _DIGEST else len(data)


def kind_of(data: bytes) -> bytes:
    """Return what a file says that it holds.

    >>> kind_of(seal(b"test", 1, {}, []))
    b'test'
    """
    return data[len(MAGIC) : 2 * len(MAGIC)].rstrip(b"\0")


def unseal(
    data: bytes, kind: bytes, version: int, where: str, *, damaged: bool = True
) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    """Return the header and the arrays of a file; ArgumentError for anything else than what `seal` has made.

    With `damaged=False` it is known that it is as it was written, and its checksum is not asked for.
    """
    body = memoryview(data)[_checked(data, kind, version, where, damaged=damaged) :]
    size = _FIXED.unpack_from(data)[3]
    try:
        described = json.loads(bytes(body[:size]))
        arrays, start = [], size
        for dtype, count in described["arrays"]:
            if dtype not in _DTYPES or type(count) is not int or count < 0:
                raise ValueError(f"an array of {count} {dtype}")
            arrays.append(np.frombuffer(body, dtype, count, start))
            start += arrays[-1].nbytes
        if start != len(body):
            raise ValueError(f"{len(body) - start} bytes too many")
        return described["header"], arrays
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise refused(where, f"its checksum is right and its content is not ({error})") from error


def _checked(data: bytes, kind: bytes, version: int, where: str, *, damaged: bool) -> int:
    """Return where the header begins, after all checks that do not look into it."""
    start = _FIXED.size + _DIGEST
    if data[: len(MAGIC)] != MAGIC[: len(data)] or not data:
        raise refused(where, "it does not begin as symad's files do")
    if len(data) < start:
        raise refused(where, f"it is cut short: {len(data)} bytes are less than any file has")
    _, own_kind, written, _, length = _FIXED.unpack_from(data)
    if own_kind.rstrip(b"\0") != kind:
        raise refused(where, f"it holds {own_kind.rstrip(bytes(1))!r}, not {kind!r}")
    if written > version:
        raise refused(
            where, f"it was written in version {written} of the format, and {version} is known", "update symad"
        )
    if len(data) != length:
        raise refused(
            where, f"it is {'cut short' if len(data) < length else 'too long'}: {len(data)} bytes of {length}"
        )
    if damaged and _digest(data[: _FIXED.size], memoryview(data)[start:]) != data[_FIXED.size : start]:
        raise refused(where, "it is damaged: its checksum is another")
    return start


def _digest(fixed: bytes, body: bytes | memoryview) -> bytes:
    digest = hashlib.sha256(fixed)
    digest.update(body)
    return digest.digest()


def refused(where: str, why: str, do: str = "write it anew") -> ArgumentError:
    """Return the error for a file that cannot be read."""
    return ArgumentError("no file that can be loaded", where=where, why=why, do=do)


def write_atomically(path: Path, data: bytes, *, durable: bool = True, mode: int = 0o666) -> None:
    """Write a file completely or not at all, even when the process is killed; OSError with its name if it cannot be.

    With `durable` the bytes are on the disk when the function returns; without, the last writes before a loss of power
    may be lost. `mode` is that of the file, less the process's umask.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.part")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.errno is not None:  # the name of the temporary one says nothing
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


@contextlib.contextmanager
def telling(doing: str, path: object, do: str) -> Iterator[None]:
    """Raise ArgumentError in place of an error of the file system, or of a path that is none."""
    try:
        yield
    except (OSError, ValueError, TypeError) as error:  # the last two for "", a zero byte, a number
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ArgumentError(f"cannot {doing} {str(path)!r}", why=why, do=do) from error


def write_kernel(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a kernel's file; ArgumentError when it cannot be written."""
    with telling("write", path, "choose another path"):
        write_atomically(Path(path), data)
