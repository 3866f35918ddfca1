"""Problems in folders: the files of their kernels, and an index file.

That file is written last and at once, and names the others by their contents: whenever a process is killed, the folder
holds the problem of before or the new one. Files hold programs and numbers, no code: a stranger's folder can be loaded.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from codegen.ir.program import Declared
from codegen.machine.calls.compiled import Pack, Unpack
from codegen.machine.calls.kernel import Kernel
from codegen.machine.stored_kernels import kernel_in
from codegen.sealed import refused, seal, telling, unseal, write_atomically
from symad import compiling
from symad.doors.callbacks import Array, Kernels
from symad.doors.with_ipopt import SIGNATURES
from symad.errors import ArgumentError

if TYPE_CHECKING:
    from codegen.machine.storage.cache import Setting

KIND, VERSION = b"problem", 1
NAME = "problem.symad"
_FILE = re.compile(rf"({'|'.join(Kernels._fields)})-[0-9a-f]{{32}}\.symad")
Shapes = tuple[tuple[Any, ...], ...]


class Saved(NamedTuple):
    """The saved state of a problem: numbers, and kernels for the shapes of x and of the parameters."""

    bounds: tuple[Any, Any]
    constraint_bounds: tuple[Any, Any]
    parameters: tuple[Any, ...]
    kernels: Mapping[Shapes, Kernels]


def is_problem(path: Any) -> bool:
    """Return whether a path is a folder with a problem."""
    try:
        return (Path(path) / NAME).is_file()
    except (TypeError, ValueError):
        return False


def write_problem(folder: str | os.PathLike[str], saved: Saved, *, code: bool = True) -> None:
    """Write a problem into a folder, which is made if need be; ArgumentError where it cannot be written."""
    values = [*saved.bounds, *saved.constraint_bounds, *saved.parameters]
    described, arrays = zip(*map(_number, values), strict=True)
    with telling("write a problem into", folder, "choose another folder"):
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        files = [
            {name: _written(place, name, _data(name, kernel, group.parameters, code)) for name, kernel in _named(group)}
            for group in saved.kernels.values()
        ]
        header = {"values": described, "kernels": list(zip(saved.kernels, files, strict=True))}
        write_atomically(place / NAME, seal(KIND, VERSION, header, arrays))
        used = {file for of_kernels in files for file, _ in of_kernels.values()}
        for path in place.iterdir():
            if _FILE.fullmatch(path.name) and path.name not in used:
                path.unlink(missing_ok=True)  # of the problem that was here before


def read_problem(folder: Path, cache: Setting) -> Saved:
    """Return the problem of a folder; ArgumentError for files that are damaged, missing, or do not belong together."""
    where = str(folder / NAME)
    header, arrays = unseal(_bytes(folder / NAME), KIND, VERSION, where)
    try:
        values = [_value(shape, array) for shape, array in zip(header["values"], arrays, strict=True)]
        low, high, least, most, *parameters = values
        kernels = {tuple(map(_key, shapes)): _kernels(folder, files, cache) for shapes, files in header["kernels"]}
        for shapes, kernels_of_shapes in kernels.items():
            _check(shapes, kernels_of_shapes)
    except ArgumentError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise refused(where, f"its checksum is right and its content is not ({error})") from error
    return Saved((low, high), (least, most), tuple(parameters), kernels)


def restored(data: Any, declared: Declared) -> tuple[Pack | None, Unpack | None]:
    """Rebuild containers from their description in a file."""
    return compiling.restored(data, declared)


def _key(shape: Any) -> tuple[Any, ...]:
    """Return the key of an argument: lengths of axes, or the structure of a container and the shapes in it."""
    return tuple(
        part if isinstance(part, str) else _key(part) if isinstance(part, list) else int(part) for part in shape
    )


def _named(kernels: Kernels) -> list[tuple[str, Kernel]]:
    return [(name, kernel) for name, kernel in kernels._asdict().items() if kernel is not None]


def _data(name: str, kernel: Kernel, parameters: int, code: bool) -> bytes:
    return kernel.stored([(SIGNATURES[name], parameters)]) if code else kernel.portable()


def _written(folder: Path, name: str, data: bytes) -> tuple[str, str]:
    """Write a kernel under the name of its content; return that name, and the checksum."""
    checksum = hashlib.sha256(data).hexdigest()
    file = f"{name}-{checksum[:32]}.symad"
    write_atomically(folder / file, data)
    return file, checksum


def _kernels(folder: Path, files: Any, cache: Setting) -> Kernels:
    members = {}
    for name, (file, checksum) in files.items():
        if not _FILE.fullmatch(file):
            raise ValueError(f"a file of the name {file!r}")
        data = _bytes(folder / file)
        if hashlib.sha256(data).hexdigest() != checksum:
            raise refused(str(folder / file), "it is not the file that the problem was saved with", "save it anew")
        members[name] = kernel_in(data, str(folder / file), cache=cache, restore=restored)
    return Kernels(**members)


def _check(shapes: Shapes, kernels: Kernels) -> None:
    """Raise ValueError unless the kernels belong to one problem. Solvers written in C rely on their sizes."""
    size, rows = int(np.prod(shapes[0])), kernels.rows
    for name, kernel in _named(kernels):
        if kernel.declared.arguments[0].shape != shapes[0]:
            raise ValueError(f"{name} takes x of another shape")
    if (kernels.constraints is None) != (kernels.jacobian is None):
        raise ValueError("constraints without a Jacobian")
    sizes = {"value": 1, "gradient": size, "constraints": rows}
    for name, kernel in _named(kernels):
        if name in sizes and (kernel.sparsity or kernel.declared.outputs[0].size != sizes[name]):
            raise ValueError(f"{name} has another size")
    if kernels.hessian.sparsity.shape != (size, size):
        raise ValueError("a Hessian of another size")
    if kernels.jacobian is not None and kernels.jacobian.sparsity.shape != (rows, size):
        raise ValueError("a Jacobian of another size")


def _number(value: Any) -> tuple[Any, Array]:
    """Return the shape and content of a number or an array, None for None."""
    if value is None:
        return None, np.empty(0)
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"a problem with a parameter of type {type(value).__name__}", why="a folder holds numbers and arrays",
            do="give parameters that are",
        ) from error  # fmt: skip
    return list(array.shape), array.ravel()


def _value(shape: Any, array: Array) -> Any:
    if shape is None:
        return None
    value = array.reshape(tuple(map(int, shape))).astype(np.float64)
    return value if value.ndim else float(value)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ArgumentError(f"cannot read {str(path)!r}", why=error.strerror or str(error)) from error
