"""Export a kernel as object file, shared library, header, C source and test program: all files or none.

Several kernels in one library are behind functions in another tool's convention. The functions of the tool are C text
that calls the kernels' plain functions. The C compiler driver compiles them into one object file and links it: the
library depends on nothing else.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from codegen.emission.emit import Form
from codegen.engine import check_processor, compile_object
from codegen.errors import ArgumentError, LoweringError, WorkbenchError
from codegen.ir.program import Input, Output, Program
from codegen.ir.region import RolledProgram
from codegen.machine.calls.arguments import as_input
from codegen.machine.exports.c_interface import (
    BESSEL,
    MATH,
    Interface,
    check_name,
    exported,
    header,
    in_two_versions,
    interface,
)
from codegen.machine.exports.c_kernel import kernel_source
from codegen.machine.exports.c_tables import check_program, has_sums, sparsity_header
from codegen.machine.kernel_text import Plan, planned
from codegen.matrices.matrix_loops import asks_library, without_library
from codegen.options import Options
from codegen.processor import is_x86_64
from codegen.records import dataclass

DRIVERS = ("cc", "gcc", "clang")
NO_DRIVER = f"no C compiler driver ({', '.join(DRIVERS)}) was found on PATH, nor in CC"
SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")


def driver() -> list[str] | None:
    """Return the command of the C compiler driver: that in CC, else cc, gcc or clang; None where there is none."""
    chosen = os.environ.get("CC", "").split()
    if chosen:
        return chosen if shutil.which(chosen[0]) else None
    return next(([compiler] for name in DRIVERS if (compiler := shutil.which(name))), None)


def library_name(name: str) -> str:
    """Return the file name of a shared library."""
    return f"{'' if sys.platform == 'win32' else 'lib'}{name}{SUFFIX}"


def shared_library(folder: Path, name: str) -> str:
    """Link an object file, and return the name of the library; WorkbenchError if it fails, or nothing links."""
    command = driver()
    if command is None:
        raise WorkbenchError("a shared library", why=NO_DRIVER, do="install one, or set CC")
    filename = library_name(name)
    names = {"darwin": [f"-Wl,-install_name,@rpath/{filename}"], "linux": [f"-Wl,-soname,{filename}"]}
    line = [*command, "-shared", *names.get(sys.platform, []), f"{name}.o", "-lm", "-o", filename]
    _run(line, folder, "link the shared library", "try library=False, or set CC", told=-1, made=filename)
    return filename


def _run(line: Sequence[str], folder: Path, task: str, do: str, *, told: int, made: str = ".") -> None:
    """Run the C compiler driver; WorkbenchError, with one of the lines that it told, if it fails or makes nothing."""
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode or not (folder / made).exists():
        message = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
        raise WorkbenchError(f"{line[0]} could not {task}", why=message[told], do=do)


@contextlib.contextmanager
def all_or_nothing(directory: Path) -> Iterator[Path]:
    """Give a scratch folder whose files move into the directory at the end; on any failure nothing has changed."""
    scratch: Path | None = None
    created: list[Path] = []
    try:
        created += [path for path in (directory, *directory.parents) if not path.exists()]
        directory.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".export-", dir=directory))
        yield scratch
        _move(scratch, directory)
    except OSError as error:
        raise ArgumentError(
            f"cannot write to {str(directory)!r}", why=error.strerror or str(error), do="choose another directory"
        ) from error
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
        with contextlib.suppress(OSError):
            for path in created:
                path.rmdir()  # only when it is empty: nothing was written


def _move(scratch: Path, directory: Path) -> None:
    """Move all files; when one cannot be moved, those that were there before come back."""
    paths = sorted(path for path in scratch.iterdir() if path.is_file())
    kept = scratch / "kept"
    kept.mkdir()
    try:
        for path in paths:
            target = directory / path.name
            if target.exists():
                shutil.copy2(target, kept / path.name)
            os.replace(path, target)
    except BaseException:
        for path in paths:
            target, before = directory / path.name, kept / path.name
            if not path.exists():  # it has been moved
                os.replace(before, target) if before.exists() else target.unlink()
        raise


DECLARED = re.compile(r"^declare .*?@([\w.$-]+)\(", re.MULTILINE)
KNOWN = frozenset({*MATH, *BESSEL, "malloc", "free"})
TESTED_NUMBERS = 200_000  # numbers of points and results in the test program, about
TEST_POINTS = 3


@dataclass(frozen=True)
class Exported:
    """The files that an export wrote, by kind, and notes on files that it could not write."""

    name: str
    files: dict[str, Path]
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        lines = [f"{kind.ljust(12)}{path}" for kind, path in self.files.items()]
        return "\n".join([*lines, *[f"note: {note}" for note in self.notes]])


@dataclass(frozen=True)
class Material:
    """The data of an export: a program, its options, and a function that evaluates it."""

    program: Program | RolledProgram
    options: Options
    evaluate: Callable[..., Any]


def _with_library(folder: Path, name: str, description: str) -> dict[str, str]:
    """Link the shared library in a folder and write the files of build tools; return the files' names."""
    named = {"library": shared_library(folder, name)}
    for kind, (filename, content) in package_files(name, library_name(name), description).items():
        (folder / filename).write_bytes(content)
        named[kind] = filename
    return named


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
    processor = check_processor(cpu)
    plan = portable(material)
    api = _interface(material, plan, name)
    text = plan.emit(Form(lanes=material.options.number.lanes())).text
    vector = libraries_of(material.program.name, text, cpu)
    exact = not (
        has_sums(api.program) or (isinstance(material.program, RolledProgram) and asks_library(material.program))
    )
    files = {
        "test": (f"{api.name}_test.c", check_program(api, *_checked(material, points), exact=exact).encode()),
        "object": (f"{api.name}.o", object_code(text, api.program, api.name, cpu)),
    }
    notes: list[str] = []
    if api.sparse:
        files["sparsity"] = (f"{api.name}_sparsity.h", sparsity_header(api).encode())
    if source is not False:
        try:
            if vector:
                why = f"it calls {', '.join(vector)}, which have other bits than the functions of C99"
                raise LoweringError(f"C source of {api.name}", why=why, do='compile it with accuracy="strict"')
            files["source"] = (f"{api.name}.c", kernel_source(api, plan).encode())
        except LoweringError as error:
            if source:
                raise
            notes.append(f"no {error}")
    files["header"] = (f"{api.name}.h", header(api, processor, "source" in files).encode())
    paths = {kind: Path(directory) / filename for kind, (filename, _) in files.items()}
    with all_or_nothing(Path(directory)) as folder:
        for filename, content in files.values():
            (folder / filename).write_bytes(content)
        if library or (library is None and driver() is not None):
            more = _with_library(folder, api.name, f"{api.name}, compiled by symad")
            paths |= {kind: Path(directory) / filename for kind, filename in more.items()}
        elif library is None:
            notes.append(f"no shared library: {NO_DRIVER}; link {api.name}.o with your linker")
    return Exported(api.name, paths, tuple(notes))


def object_code(text: str, program: Program | RolledProgram, name: str, cpu: str) -> bytes:
    """Return the object file of a kernel as the C function `name`."""
    versions = in_two_versions(text) if cpu == "generic" and is_x86_64() else text
    return compile_object(exported(versions, program, name), 2, cpu).code


def portable(material: Material) -> Plan:
    """Return the plan of a kernel for other processes, which have neither its workers nor the libraries of SciPy."""
    program = material.program
    others = without_library(program) if isinstance(program, RolledProgram) else program
    return planned(others, replace(material.options, threads=1))


def _interface(material: Material, plan: Plan, name: str | None) -> Interface:
    """Return the C function of the program of machine numbers, with the patterns of the program of numbers."""
    pairs = zip(plan.program.outputs, material.program.outputs, strict=True)
    outputs = tuple(replace(output, pattern=original.pattern) for output, original in pairs)
    return interface(replace(plan.program, outputs=outputs), name, material.options.number)


def libraries_of(name: str, text: str, cpu: str) -> list[str]:
    """Return the vector functions of the C library that IR calls; LoweringError where a C library lacks some.

    Functions of SciPy exist in this process only; vector functions take their arguments in this processor's registers.
    """
    declared = {symbol for symbol in DECLARED.findall(text) if not symbol.startswith("llvm.")}
    scipy = sorted({symbol.split(".")[1] for symbol in declared if symbol.startswith("scipy.")})
    vector = sorted(symbol for symbol in declared if symbol.startswith("_ZGV"))
    unknown = sorted(symbol for symbol in declared - KNOWN - {*vector} if not symbol.startswith("scipy."))
    if scipy or unknown:
        functions = [f"scipy.special.{symbol}" for symbol in scipy] + unknown
        raise LoweringError(
            f"export of {name}",
            why=f"it calls {', '.join(functions)}, which no C library has",
            do="keep it in Python, or write these functions out",
        )
    if vector and cpu != "host":
        why = f"it calls {', '.join(vector)}, which need this machine's registers"
        raise LoweringError(f"export of {name} for {cpu}", why=why, do='compile it with accuracy="strict"')
    return vector


def _points(material: Material, points: Sequence[Sequence[Any]] | None) -> list[list[Any]]:
    """Return the points of the test program, as one array for each input."""
    declared, number = material.program.arguments, material.options.number
    if points is None:
        arrays: list[Input | Output] = [*declared, *material.program.outputs]
        count = TESTED_NUMBERS // max(sum(array.size for array in arrays), 1)
        generator = np.random.default_rng(0)
        rotation = 1.0 if number.parts == 1 else 0.8 + 0.6j
        points = [
            [rotation * generator.uniform(0.25, 1.75, array.shape) for array in declared]
            for _ in range(min(max(count, 1), TEST_POINTS))
        ]
    for place, point in enumerate(points):
        if len(point) != len(declared):
            raise ArgumentError(f"{len(point)} arrays", where=f"points[{place}]", why=f"the kernel has {len(declared)}")
    if not points:
        raise ArgumentError("no points", why="the test program needs one at least")
    return [[as_input(point[k], array, k, number) for k, array in enumerate(declared)] for point in points]


def _checked(material: Material, points: Sequence[Sequence[Any]] | None) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return the machine numbers of points, and those of the kernel's results there."""
    tested = _points(material, points)
    number, single = material.options.number, len(material.program.outputs) == 1
    real = np.dtype("float32" if number.scalar == "float" else "float64")
    evaluated = [material.evaluate(*point) for point in tested]
    results = [[np.asarray(array, number.dtype) for array in ([result] if single else result)] for result in evaluated]
    numbers, expected = ([[array.ravel().view(real) for array in row] for row in rows] for rows in (tested, results))
    return numbers, expected


COMPILED = ("-std=c99", "-O2", "-fPIC", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror")


@dataclass(frozen=True)
class Binding:
    """What a tool calls: the source of its functions, their header, an example; and the kernels, by C function."""

    name: str
    abi: str
    members: Mapping[str, Material]
    source: str
    header: str
    example: str = ""
    notes: tuple[str, ...] = field(default=())


def export_binding(binding: Binding, directory: str | os.PathLike[str], *, cpu: str = "host") -> Exported:
    """Write a binding into a directory: all files, or none on any error; WorkbenchError without a C compiler driver."""
    check_processor(cpu)
    name = check_name(binding.name)
    command = driver()
    if command is None:
        raise WorkbenchError(f"functions of {binding.abi}", why=NO_DRIVER, do="install one, or set CC")
    folder_of = Path(directory)
    with all_or_nothing(folder_of) as folder:
        source, header = f"{name}_{binding.abi}.c", f"{name}.h"
        (folder / header).write_text(binding.header, encoding="utf-8")
        (folder / source).write_text(binding.source, encoding="utf-8")
        parts = folder / "parts"
        parts.mkdir()
        for symbol, material in binding.members.items():
            plan = portable(material)
            text = plan.emit(Form(lanes=material.options.number.lanes())).text
            libraries_of(symbol, text, cpu)
            (parts / f"{symbol}.o").write_bytes(object_code(text, plan.program, symbol, cpu))
        symbols = sorted([*binding.members, f"{name}.adapter"])
        for line in (
            [*COMPILED, "-c", source, "-o", f"parts/{name}.adapter.o"],
            ["-r", "-nostdlib", *(f"parts/{symbol}.o" for symbol in symbols), "-o", f"{name}.o"],
        ):
            _run([*command, *line], folder, "compile the functions", "set CC to another", told=0)
        files = {"header": header, binding.abi: source, "object": f"{name}.o"}
        if binding.example:
            files["example"] = f"{name}_example.c"
            (folder / files["example"]).write_text(binding.example, encoding="utf-8")
        files |= _with_library(folder, name, f"{name} for {binding.abi}")
    return Exported(name, {kind: folder_of / filename for kind, filename in files.items()}, binding.notes)


def prototype(symbol: str, material: Material) -> str:
    """Return the declaration of a kernel's C function."""
    program = material.program
    arrays = ["const double *"] * len(program.arguments) + ["double *"] * len(program.outputs)
    return f"int {symbol}({', '.join(arrays)});\n"


def package_files(name: str, library: str, description: str) -> dict[str, tuple[str, bytes]]:
    """Return the names and contents of both files, by kind.

    >>> files = package_files("energy", "libenergy.so", "energy, compiled")
    >>> [filename for filename, _ in files.values()]
    ['energy.pc', 'energy-config.cmake']
    """
    pkg_config = f"""prefix=${{pcfiledir}}

Name: {name}
Description: {description}
Version: 0
Cflags: -I${{prefix}}
Libs: -L${{prefix}} -l{name} -Wl,-rpath,${{prefix}}
Libs.private: -lm
"""
    cmake = f"""if(NOT TARGET {name}::{name})
  add_library({name}::{name} SHARED IMPORTED)
  set_target_properties({name}::{name} PROPERTIES
    IMPORTED_LOCATION "${{CMAKE_CURRENT_LIST_DIR}}/{library}"
    INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}")
endif()
"""
    return {
        "pkg-config": (f"{name}.pc", pkg_config.encode()), "cmake": (f"{name}-config.cmake", cmake.encode()),
    }  # fmt: skip
