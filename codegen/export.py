"""Export: a kernel as object file, shared library, C header, C source and test program; all files or none."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import codegen.c_tables as c_tables
from codegen.arguments import as_input
from codegen.c_interface import Interface, header, interface
from codegen.c_kernel import kernel_source
from codegen.c_names import BESSEL, MATH
from codegen.engine import check_processor, compile_object, host
from codegen.entry import exported
from codegen.errors import ArgumentError, LoweringError, WorkbenchError
from codegen.options import Options
from codegen.plan import plan, write
from codegen.prepare import prepare
from codegen.program import Input, Output, Program

DRIVERS = ("cc", "gcc", "clang")
SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
DECLARED = re.compile(r"^declare .*?@([\w.$-]+)\(", re.MULTILINE)
KNOWN = frozenset({*MATH, *BESSEL, "malloc", "free"})
TESTED_NUMBERS = 200_000  # about so many numbers of points and results go into the test program
TEST_POINTS = 3


@dataclass(frozen=True)
class Exported:
    """The files that an export wrote, by kind, and what it could not write and why."""

    name: str
    files: dict[str, Path]
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        lines = [f"{kind.ljust(10)}{path}" for kind, path in self.files.items()]
        return "\n".join([*lines, *[f"note: {note}" for note in self.notes]])


@dataclass(frozen=True)
class Material:
    """What is exported: a program, how it was compiled, and a function that evaluates it."""

    program: Program
    options: Options
    evaluate: Callable[..., Any]


def export(
    material: Material,
    directory: str | os.PathLike[str],
    name: str | None = None,
    *,
    cpu: str = "host",
    library: bool | None = None,
    source: bool | None = None,
    points: Sequence[Sequence[Any]] | None = None,
) -> Exported:
    """Write the files of a kernel into a directory; see `Kernel.export`."""
    check_processor(cpu)
    number = material.options.number
    prepared = prepare(material.program, material.options)
    pairs = zip(prepared.program.outputs, material.program.outputs, strict=True)
    outputs = tuple(replace(output, pattern=given.pattern) for output, given in pairs)  # complex parts have none
    given = interface(replace(prepared.program, outputs=outputs), name, number)
    text = write(prepared).text
    _check_symbols(material.program.name, text)
    tested = _points(material, points)
    notes: list[str] = []
    parts = {
        "header": (f"{given.name}.h", header(given, host()[0] if cpu == "host" else cpu)),
        "test": (f"{given.name}_test.c", c_tables.check_program(given, *_checked(material, tested))),
    }
    if given.sparse:
        parts["sparsity"] = (f"{given.name}_sparsity.h", c_tables.sparsity_header(given))
    if source is not False:
        try:
            parts["source"] = (f"{given.name}.c", kernel_source(given, plan(prepared)))
        except LoweringError as error:
            if source:
                raise
            notes.append(f"no C source: {error}")
    code = compile_object(exported(text, given.program, given.name), 2, cpu).code
    with _all_or_nothing(Path(directory)) as folder:
        for filename, written in parts.values():
            (folder / filename).write_text(written, encoding="utf-8", newline="\n")
        files = {"object": f"{given.name}.o", **{kind: filename for kind, (filename, _) in parts.items()}}
        (folder / files["object"]).write_bytes(code)
        if library is not False:
            made = _shared_library(folder, given, required=bool(library))
            if made is None:
                notes.append(
                    f"no shared library: no C compiler driver ({', '.join(DRIVERS)}) was found on PATH, nor in CC; "
                    f"link {given.name}.o with your linker"
                )
            else:
                files["library"] = made
    return Exported(given.name, {kind: Path(directory) / filename for kind, filename in files.items()}, tuple(notes))


def _check_symbols(name: str, text: str) -> None:
    """Raise LoweringError for functions that exist in this process only: those of SciPy."""
    declared = {symbol for symbol in DECLARED.findall(text) if not symbol.startswith("llvm.")}
    scipy = sorted({symbol.split(".")[1] for symbol in declared if symbol.startswith("scipy.")})
    unknown = sorted(symbol for symbol in declared - KNOWN if not symbol.startswith("scipy."))
    if scipy or unknown:
        functions = [f"scipy.special.{symbol}" for symbol in scipy] + unknown
        raise LoweringError(
            f"export of {name}",
            why=f"it calls {', '.join(functions)}, which no C library has",
            do="keep it in Python, or write these functions out",
        )


def _points(material: Material, points: Sequence[Sequence[Any]] | None) -> list[list[Any]]:
    """Return the points of the test program, as one array for each input."""
    declared, number = material.program.arguments, material.options.number
    if points is None:
        arrays: list[Input | Output] = [*declared, *material.program.outputs]
        count = TESTED_NUMBERS // max(sum(array.size for array in arrays), 1)
        generator = np.random.default_rng(0)
        points = [
            [generator.uniform(0.25, 1.75, array.shape) for array in declared]
            for _ in range(min(max(count, 1), TEST_POINTS))
        ]
    for place, point in enumerate(points):
        if len(point) != len(declared):
            raise ArgumentError(f"{len(point)} arrays", where=f"points[{place}]", why=f"the kernel has {len(declared)}")
    if not points:
        raise ArgumentError("no points", why="the test program needs one at least")
    return [[as_input(point[k], array, k, number) for k, array in enumerate(declared)] for point in points]


def _checked(material: Material, points: list[list[Any]]) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return the machine numbers of points, and those of the kernel's results there."""
    number, single = material.options.number, len(material.program.outputs) == 1
    real = np.dtype("float32" if number.scalar == "float" else "float64")
    found = [material.evaluate(*point) for point in points]
    results = [[np.asarray(array, number.dtype) for array in ([result] if single else result)] for result in found]
    given, expected = ([[array.ravel().view(real) for array in row] for row in rows] for rows in (points, results))
    return given, expected


def driver() -> list[str] | None:
    """Return the command of the C compiler driver: that in CC, else cc, gcc or clang; None where there is none."""
    chosen = os.environ.get("CC", "").split()
    if chosen:
        return chosen if shutil.which(chosen[0]) else None
    return next(([found] for name in DRIVERS if (found := shutil.which(name))), None)


def _shared_library(folder: Path, given: Interface, required: bool) -> str | None:
    """Link the object file; None without a compiler driver, WorkbenchError if it fails (or is required)."""
    command = driver()
    if command is None:
        if required:
            raise WorkbenchError("a shared library", why="no C compiler driver was found", do="install one, or set CC")
        return None
    filename = f"{'' if sys.platform == 'win32' else 'lib'}{given.name}{SUFFIX}"
    names = {"darwin": [f"-Wl,-install_name,@rpath/{filename}"], "linux": [f"-Wl,-soname,{filename}"]}
    line = [*command, "-shared", *names.get(sys.platform, []), f"{given.name}.o", "-lm", "-o", filename]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode or not (folder / filename).exists():
        message = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
        raise WorkbenchError(
            f"{command[0]} could not link the shared library", why=message[-1], do="try library=False, or set CC"
        )
    return filename


@contextlib.contextmanager
def _all_or_nothing(directory: Path) -> Any:
    """Give a scratch folder whose files move into the directory at the end; on any failure nothing has changed."""
    try:
        created = not directory.exists()
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
        if created:
            with contextlib.suppress(OSError):
                directory.rmdir()  # only when it is empty: nothing was written


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
