"""Files of an export: all are written or none, and the system's compiler driver links the shared library."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from codegen.errors import ArgumentError, WorkbenchError

DRIVERS = ("cc", "gcc", "clang")
NO_DRIVER = f"no C compiler driver ({', '.join(DRIVERS)}) was found on PATH, nor in CC"
SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")


def driver() -> list[str] | None:
    """Return the command of the C compiler driver: that in CC, else cc, gcc or clang; None where there is none."""
    chosen = os.environ.get("CC", "").split()
    if chosen:
        return chosen if shutil.which(chosen[0]) else None
    return next(([found] for name in DRIVERS if (found := shutil.which(name))), None)


def shared_library(folder: Path, name: str) -> str:
    """Link an object file, and return the name of the library; WorkbenchError if it fails, or nothing links."""
    command = driver()
    if command is None:
        raise WorkbenchError("a shared library", why=NO_DRIVER, do="install one, or set CC")
    filename = f"{'' if sys.platform == 'win32' else 'lib'}{name}{SUFFIX}"
    names = {"darwin": [f"-Wl,-install_name,@rpath/{filename}"], "linux": [f"-Wl,-soname,{filename}"]}
    line = [*command, "-shared", *names.get(sys.platform, []), f"{name}.o", "-lm", "-o", filename]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode or not (folder / filename).exists():
        message = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
        raise WorkbenchError(
            f"{command[0]} could not link the shared library", why=message[-1], do="try library=False, or set CC"
        )
    return filename


@contextlib.contextmanager
def all_or_nothing(directory: Path) -> Iterator[Path]:
    """Give a scratch folder whose files move into the directory at the end; on any failure nothing has changed."""
    try:
        created = [path for path in (directory, *directory.parents) if not path.exists()]
        directory.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".export-", dir=directory))
    except OSError as error:
        raise ArgumentError(
            f"cannot write to {str(directory)!r}", why=str(error), do="choose another directory"
        ) from error
    try:
        yield scratch
        _move(scratch, directory)
    except OSError as error:
        raise ArgumentError(
            f"cannot write to {str(directory)!r}", why=str(error), do="choose another directory"
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        with contextlib.suppress(OSError):
            for path in created:
                path.rmdir()  # only when it is empty: nothing was written


def _move(scratch: Path, directory: Path) -> None:
    """Move all files; when one cannot be moved, those that were there before come back."""
    made = sorted(path for path in scratch.iterdir() if path.is_file())
    kept = scratch / "kept"
    kept.mkdir()
    try:
        for path in made:
            target = directory / path.name
            if target.exists():
                shutil.copy2(target, kept / path.name)
            os.replace(path, target)
    except BaseException:
        for path in made:
            target, before = directory / path.name, kept / path.name
            if not path.exists():  # it has been moved
                os.replace(before, target) if before.exists() else target.unlink()
        raise
