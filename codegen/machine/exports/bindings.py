"""Several kernels in one library, behind functions in another tool's convention.

The functions of the tool are C text that calls the kernels' plain functions. The C compiler driver compiles them into
one object file and links it: the library depends on nothing else.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from codegen.emission.emit import Form
from codegen.engine import check_processor
from codegen.errors import WorkbenchError
from codegen.machine.exports.c_interface import check_name
from codegen.machine.exports.export import (
    NO_DRIVER,
    Exported,
    Material,
    all_or_nothing,
    driver,
    libraries_of,
    library_name,
    object_code,
    portable,
    shared_library,
)
from codegen.machine.exports.packages import package_files
from codegen.records import dataclass

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
            (parts / f"{symbol}.o").write_bytes(_object(material, symbol, cpu))
        _run([*command, *COMPILED, "-c", source, "-o", f"parts/{name}.adapter.o"], folder)
        objects = sorted(f"parts/{path.name}" for path in parts.iterdir())
        _run([*command, "-r", "-nostdlib", *objects, "-o", f"{name}.o"], folder)
        files = {"header": header, binding.abi: source, "object": f"{name}.o", "library": shared_library(folder, name)}
        if binding.example:
            files["example"] = f"{name}_example.c"
            (folder / files["example"]).write_text(binding.example, encoding="utf-8")
        for kind, (filename, content) in package_files(name, library_name(name), f"{name} for {binding.abi}").items():
            files[kind] = filename
            (folder / filename).write_bytes(content)
    return Exported(name, {kind: folder_of / filename for kind, filename in files.items()}, binding.notes)


def prototype(symbol: str, material: Material) -> str:
    """Return the declaration of a kernel's C function."""
    program = material.program
    arrays = ["const double *"] * len(program.arguments) + ["double *"] * len(program.outputs)
    return f"int {symbol}({', '.join(arrays)});\n"


def _object(material: Material, symbol: str, cpu: str) -> bytes:
    plan = portable(material)
    text = plan.emit(Form(lanes=material.options.number.lanes())).text
    libraries_of(symbol, text, cpu)
    return object_code(text, plan.program, symbol, cpu)


def _run(line: Sequence[str], folder: Path) -> None:
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        message = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
        raise WorkbenchError(f"{line[0]} could not compile the functions", why=message[0], do="set CC to another")
