"""Decide whose files may be run: those of this user and root, in folders that nobody else can change."""

from __future__ import annotations

import os
import stat
from pathlib import Path

POSIX = os.name == "posix"
MOST_LINKS = 40  # on the way to a folder, as Linux has it
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


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
