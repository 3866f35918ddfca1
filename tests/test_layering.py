"""Imports only go down: codegen stands alone, symad's layers keep their order, and no module imports in a circle."""

from __future__ import annotations

import ast
import graphlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Lowest first; modules of one layer may import each other, if not in a circle. The package's own __init__ is "symad".
LAYERS = [
    {"errors"},
    {"limits", "extras"},
    {"display", "formulas"},
    {"graph"},
    {"rules", "structure"},
    {"tracing"},
    {"derivatives"},
    {"transforms", "higher_order", "jacobians", "optimum", "lagrangian"},
    {"programs"},
    {"regions"},
    {"strategy", "rolling"},
    {"keep"},
    {"native"},
    {"drawing"},
    {"checking", "teaching"},
    {"interop"},
    {"symad"},
    {"commands"},
    {"cli", "__main__"},
]
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names}
REASON = re.compile(r"noqa: PLC0415\W+\w+")


def modules(root: Path) -> dict[str, Path]:
    """Return the files of both packages by module name; a package's name stands for its __init__."""
    found = {}
    for package in ("codegen", "symad"):
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
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        stack += [(child, inside) for child in ast.iter_child_nodes(node)]
    return found


def targets(node: ast.Import | ast.ImportFrom, importer: str, is_package: bool) -> list[str]:
    """Return the dotted names that a statement mentions; `from a import b` gives `a.b`, which may be a module."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = importer.split(".")
    base = base[: len(base) - node.level + is_package] if node.level else []
    stem = base + ([node.module] if node.module else [])
    return [".".join([*stem, alias.name]) for alias in node.names]


def arrows(files: dict[str, Path]) -> dict[str, set[str]]:
    """Return which modules of ours each module imports; a name that is no module counts for the module it is in."""
    result: dict[str, set[str]] = {}
    for name, path in files.items():
        nodes = [node for node, _ in imports(path.read_text(encoding="utf-8"))]
        mentioned = [t for node in nodes for t in targets(node, name, path.name == "__init__.py")]
        ours = {target if target in files else target.rpartition(".")[0] for target in mentioned}
        result[name] = {target for target in ours if target.split(".")[0] in ("codegen", "symad")} - {name}
    return result


def layer(module: str) -> str:
    """Return the name of a symad module's layer: its first part below the package."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def upward(graph: dict[str, set[str]]) -> Iterator[str]:
    """Yield every arrow from a lower layer to a higher one, and every module that has no layer."""
    for source, sinks in graph.items():
        if source.startswith("codegen"):
            yield from (f"{source} imports {sink}" for sink in sorted(sinks) if sink.startswith("symad"))
        elif layer(source) not in HEIGHT:
            yield f"{source} has no layer: add {layer(source)!r} to LAYERS"
        else:
            for sink in sorted(sinks):
                if sink.startswith("symad") and HEIGHT.get(layer(sink), 0) > HEIGHT[layer(source)]:
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


def complaints(root: Path) -> list[str]:
    """Return all that is wrong with the imports of a tree."""
    files = modules(root)
    graph = arrows(files)
    return sorted({*upward(graph), *circles(graph), *hidden_imports(files)})


def test_imports_only_go_down() -> None:
    assert complaints(ROOT) == []


def test_one_module_binds_llvm() -> None:
    """Lifetimes, locks and limits of the compiler are one module's business."""
    binders = {
        name
        for name, path in modules(ROOT).items()
        for node, _ in imports(path.read_text(encoding="utf-8"))
        if any(target.startswith("llvmlite.binding") for target in targets(node, name, path.name == "__init__.py"))
    }
    assert len(binders) <= 1, sorted(binders)


PLANTED = {
    "codegen/program.py": ("from symad.errors import TraceError", "codegen.program imports symad.errors"),
    "symad/graph/table.py": ("from symad import tracing", "symad.graph.table imports symad.tracing"),
    "symad/errors.py": ("from .tracing.scope import Scope", "symad.errors imports symad.tracing.scope"),
    "symad/surprise.py": ("import sympy", "symad.surprise has no layer: add 'surprise' to LAYERS"),
    "codegen/heads.py": (
        "def late():\n    import scipy",
        "codegen.heads:{line} imports inside a function without a reason",
    ),
}


@pytest.mark.parametrize("file", PLANTED)
def test_planted_import_is_found(file: str, tmp_path: Path) -> None:
    for package in ("codegen", "symad"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    planted, complaint = PLANTED[file]
    path.write_text(f"{text}\n{planted}\n", encoding="utf-8")
    line = len(path.read_text(encoding="utf-8").splitlines())
    assert complaint.format(line=line) in complaints(tmp_path)


def test_circle_is_found(tmp_path: Path) -> None:
    package = tmp_path / "codegen"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "one.py").write_text("from codegen.two import b\n")
    (package / "two.py").write_text("import codegen.one\n")
    (found,) = complaints(tmp_path)
    assert found.startswith("circle: ")


def test_reasoned_import_is_allowed(tmp_path: Path) -> None:
    package = tmp_path / "codegen"
    package.mkdir()
    (package / "extra.py").write_text("def late():\n    import scipy  # noqa: PLC0415 - optional extra\n")
    assert complaints(tmp_path) == []


def test_codegen_runs_alone() -> None:
    check = "import codegen, sys; assert not any(m.startswith('symad') for m in sys.modules)"
    subprocess.run([sys.executable, "-W", "error", "-c", check], check=True, cwd=ROOT)
