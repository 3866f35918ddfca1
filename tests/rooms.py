"""The rooms of both storeys, lowest first, and what holds of the imports between them.

python -m tests.rooms [FOLDER]     files, lines and arrows of each room
python -m tests.rooms --run        the files that `sa.compile(sa.hessian(f), x)` goes through
"""

from __future__ import annotations

import ast
import graphlib
import importlib
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType

import numpy as np

ROOT = Path(__file__).parents[1]

# A room imports only rooms of lines above its own. A line holds one room, or single files that lie at one height; files
# of one line may import each other, if not in a circle. The package's own __init__ has the package's name.
ORDER = {
    "codegen": [
        {
            "bound",
            "visible",
            "code_memory",
            "collector",
            "errors",
            "heads",
            "special_heads",
            "distribution_heads",
            "limits",
            "object_files",
            "records",
            "engine",
            "gpu_architectures",
            "lanes",
            "later",
            "options",
            "processor",
            "sealed",
            "stages",
        },
        {"ir"},
        {"functions"},
        {"evaluation"},
        {"pricing"},
        {"expressions"},
        {"matrices"},
        {"lowering"},
        {"emission"},
        {"encoding"},
        {"loops"},
        {"machine"},
        {"lambdified", "bisecting"},
        {"codegen"},
    ],
    "symad": [
        {"errors", "limits", "extras", "version"},
        {"display"},
        {"graph"},
        {"rules"},
        {"reach"},
        {"tracing"},
        {"derivatives"},
        {"transforms"},
        {"compiling"},
        {"doors"},
        {"classroom", "classroom.formulas", "classroom.equality", "classroom.code_reading", "classroom.confusion"},
        {"classroom.matrix_calculus"},
        {"classroom.explanation"},
        {"classroom.drawing", "classroom.verification", "classroom.lessons"},
        {"classroom.expansion", "classroom.comparison"},
        {"classroom.answers"},
        {"classroom.derivation"},
        {"classroom.exercises"},
        {"classroom.grading", "classroom.workbench"},
        {"results", "old_names", "old_functions"},
        {"symad"},
        {"commands"},
        {"cli", "__main__"},
    ],
}
HEIGHT = {(package, name): h for package, rows in ORDER.items() for h, names in enumerate(rows) for name in names}
SAME_THING = {"__init__", "__main__", "errors", "limits"}  # in two rooms; and a command has the name of what it shows
STATEMENTS = ("body", "orelse", "finalbody", "handlers", "cases")  # where a statement has others: no expression has one
REASON = re.compile(r"noqa: PLC0415\W+\w+")


def modules(root: Path) -> dict[str, Path]:
    """Return the files of both packages by module name; a package's name stands for its __init__."""
    found = {}
    for package in ORDER:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports(text: str) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Return all import statements of a file, wherever they stand, and whether that is inside a function."""
    found, stack = [], [(ast.parse(text), False)]
    while stack:
        node, inside = stack.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append((node, inside))
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        below = (getattr(node, name, None) for name in STATEMENTS)
        stack += [(child, inside) for children in below if isinstance(children, list) for child in children]
    return found


def targets(node: ast.Import | ast.ImportFrom, importer: str, is_package: bool) -> list[str]:
    """Return the dotted names that a statement mentions; `from a import b` gives `a.b`, which may be a module."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = importer.split(".")
    base = base[: len(base) - node.level + is_package] if node.level else []
    stem = base + ([node.module] if node.module else [])
    return [".".join([*stem, alias.name]) for alias in node.names]


def mentioned(files: dict[str, Path], name: str) -> list[str]:
    """Return the dotted names that the imports of a module mention."""
    path = files[name]
    stub = path.with_suffix(".pyi")  # what a package imports later
    text = path.read_text(encoding="utf-8") + (stub.read_text(encoding="utf-8") if stub.exists() else "")
    nodes = [node for node, _ in imports(text)]
    return [target for node in nodes for target in targets(node, name, path.name == "__init__.py")]


def arrows(files: dict[str, Path]) -> dict[str, set[str]]:
    """Return which modules of ours each module imports; a name that is no module counts for the module it is in."""
    result: dict[str, set[str]] = {}
    for name in files:
        ours = {target if target in files else target.rpartition(".")[0] for target in mentioned(files, name)}
        result[name] = {target for target in ours if target.split(".")[0] in ORDER} - {name}
    return result


def room(module: str) -> tuple[str, str]:
    """Return the storey and the room of a module.

    >>> room("codegen.ir.tables"), room("symad.errors"), room("symad"), room("symad.classroom.answers.mistakes")
    (('codegen', 'ir'), ('symad', 'errors'), ('symad', 'symad'), ('symad', 'classroom.answers'))
    """
    storey, *parts = module.split(".")
    return storey, ".".join(parts[: 2 if parts[0] == "classroom" else 1]) if parts else storey


def upward(graph: dict[str, set[str]]) -> Iterator[str]:
    """Yield every arrow from a lower room to a higher one, and every module that has no room."""
    for source, sinks in graph.items():
        storey, name = room(source)
        if (storey, name) not in HEIGHT:
            yield f"{source} has no room: add {name!r} to ORDER"
            continue
        for sink in sorted(sinks):
            below = room(sink)
            is_above = below[0] == storey and HEIGHT.get(below, 0) > HEIGHT[storey, name]
            if is_above or (name.startswith("classroom") and below == ("symad", "doors")):  # they stand side by side
                yield f"{source} imports {sink}"
            if (storey, below[0]) == ("codegen", "symad"):
                yield f"{source} imports {sink}"


def circles(graph: dict[str, set[str]]) -> Iterator[str]:
    """Yield a circle of imports, if there is one."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        yield "circle: " + " <- ".join(error.args[1])


def hidden_imports(files: dict[str, Path]) -> Iterator[str]:
    """Yield imports inside functions, except of optional extras: lines with `noqa: PLC0415` and a reason."""
    for name, path in files.items():
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for node, inside in imports(text):
            if inside and not REASON.search(lines[node.lineno - 1]):
                yield f"{name}:{node.lineno} imports inside a function without a reason"


def private_imports(files: dict[str, Path]) -> Iterator[str]:
    """Yield imports of private names, or private modules, of another room."""
    for name in files:
        for target in mentioned(files, name):
            ours = target.split(".")[0] in ORDER
            if ours and room(target) != room(name) and any(re.match(r"_(?!_)", part) for part in target.split(".")):
                yield f"{name} imports {target}, which is private to another room"


def repeated_names(files: dict[str, Path]) -> Iterator[str]:
    """Yield names of files that do not say which of several files is meant."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, path in files.items():
        if room(name) != ("symad", "commands"):
            found[path.stem].append(name)
    for stem, names in found.items():
        if len(names) > 1 and stem not in SAME_THING:
            yield f"one name for several files: {', '.join(names)}"


def complaints(root: Path) -> list[str]:
    """Return all that is wrong with the rooms of a tree."""
    files = modules(root)
    graph = arrows(files)
    every = [upward(graph), circles(graph), hidden_imports(files), private_imports(files), repeated_names(files)]
    return sorted({line for lines in every for line in lines})


def report(root: Path) -> Iterator[str]:
    """Yield a line for each room, lowest first: its files and lines, and how often it imports which rooms."""
    files = modules(root)
    graph = arrows(files)
    size = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in files.items()}
    inside = defaultdict(list)
    for name in files:
        inside[room(name)].append(name)
    for storey in ORDER:
        yield (
            f"{storey}: {sum(len(inside[r]) for r in inside if r[0] == storey)} files, "
            f"{sum(size[name] for name in files if room(name)[0] == storey)} lines"
        )
        for key in sorted((r for r in inside if r[0] == storey), key=lambda r: (HEIGHT.get(r, -1), r)):
            names = inside[key]
            to = Counter(room(sink) for name in names for sink in graph[name] if room(sink) != key)
            into = " ".join(
                f"{below if where == storey else where + '.' + below}:{n}" for (where, below), n in sorted(to.items())
            )
            yield f"  {key[1]:14} {len(names):4} files {sum(size[name] for name in names):6} lines  -> {into}"


def files_of(folder: Path) -> Iterator[str]:
    """Yield the files of a folder with their lines and the first line of their docstrings."""
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        owns = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
        yield f"{path.relative_to(folder).as_posix():36} {len(text.splitlines()):5}  {owns}"


def files_run() -> list[str]:
    """Return the files whose functions are executed while a Hessian in ten variables is compiled and called."""
    sa = importlib.import_module("symad")  # here, so that rooms of a tree that cannot be imported are still listed
    found: set[str] = set()

    def entered(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename)

    def run() -> None:
        x = np.ones(10)
        sa.compile(sa.hessian(lambda x: np.sum(np.sin(x[:-1] * x[1:]))), x)(x)

    run()  # what is imported later is imported, and tables are filled
    sys.setprofile(entered)
    try:
        run()
    finally:
        sys.setprofile(None)
    ours = set(map(str, modules(ROOT).values()))
    return sorted(Path(name).relative_to(ROOT).as_posix() for name in found & ours)


def main(arguments: list[str]) -> None:
    """Print what is asked for."""
    if arguments == ["--run"]:
        names = files_run()
        print(f"{len(names)} files", *names, sep="\n")
        return
    where = Path(arguments[0]) if arguments else ROOT
    print("\n".join(report(where) if (where / "codegen").is_dir() else files_of(where)))


if __name__ == "__main__":
    main(sys.argv[1:])
