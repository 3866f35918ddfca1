"""Imports only go down: codegen stands alone, rooms keep their order, and no module imports in a circle."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rooms import ORDER, ROOT, complaints, files_of, files_run, imports, modules, report, targets


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


def test_no_machine_code_comes_along() -> None:
    """As SECURITY.md says: what is spelled in bytes are single instructions, and nothing is unpacked from text."""
    for name, path in modules(ROOT).items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, bytes):
                assert len(node.value) < 32, (name, node.lineno)
            if isinstance(node, ast.Attribute):
                assert not re.fullmatch("[ab]\\d+(hex)?decode", node.attr), (name, node.lineno)
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "bytes.fromhex":
                spelled = node.args[0]
                assert not isinstance(spelled, ast.Constant) or len(spelled.value) < 80, (name, node.lineno)


PLANTED = {
    "codegen/ir/program.py": ("from symad.errors import TraceError", "codegen.ir.program imports symad.errors"),
    "codegen/ir/region.py": ("import codegen.loops.loop", "codegen.ir.region imports codegen.loops.loop"),
    "symad/graph/graph.py": ("from symad import tracing", "symad.graph.graph imports symad.tracing"),
    "symad/errors.py": ("from .tracing.trace import Trace", "symad.errors imports symad.tracing.trace"),
    "symad/surprise.py": ("import sympy", "symad.surprise has no room: add 'surprise' to ORDER"),
    "symad/classroom/drawing/tables.py": (
        "import sympy",
        "one name for several files: codegen.ir.tables, symad.classroom.drawing.tables",
    ),
    "symad/compiling/native.py": (
        "from symad.graph.graph import _hidden",
        "symad.compiling.native imports symad.graph.graph._hidden, which is private to another room",
    ),
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
    (package / "errors.py").write_text("from codegen.heads import b\n")
    (package / "heads.py").write_text("import codegen.errors\n")
    (found,) = complaints(tmp_path)
    assert found.startswith("circle: ")


def test_reasoned_import_is_allowed(tmp_path: Path) -> None:
    package = tmp_path / "codegen"
    package.mkdir()
    (package / "heads.py").write_text("def late():\n    import scipy  # noqa: PLC0415 - optional extra\n")
    assert complaints(tmp_path) == []


def test_the_report_counts_every_line() -> None:
    lines = list(report(ROOT))
    total = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in modules(ROOT).values())
    assert sum(int(line.split()[3]) for line in lines if line.startswith("  ")) == total


def test_the_page_has_every_room_and_every_file_says_what_it_owns() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    folders = [name for rows in ORDER.values() for names in rows for name in names]
    rooms = {name for name in folders for storey in ORDER if (ROOT / storey / name).is_dir()} - set(ORDER)
    assert {name for name in rooms if f"| `{name}` |" not in page} == set()
    named = [path.name for storey in ORDER for path in (ROOT / storey).rglob("*.py") if path.name != "__init__.py"]
    owned = [line.split()[0].rpartition("/")[2] for line in files_of(ROOT / "codegen") if len(line.split()) > 2]
    owned += [line.split()[0].rpartition("/")[2] for line in files_of(ROOT / "symad") if len(line.split()) > 2]
    assert sorted(set(named) - set(owned)) == []


def test_the_files_that_a_hessian_goes_through_are_listed() -> None:
    found = files_run()
    ends = {"symad/transforms/first_order.py", "symad/tracing/trace.py", "codegen/engine.py"}
    assert ends <= set(found)
    assert not any("confusion" in name or name.endswith("cli.py") for name in found)


def test_codegen_runs_alone() -> None:
    check = "import codegen, sys; assert not any(m.startswith('symad') for m in sys.modules)"
    subprocess.run([sys.executable, "-W", "error", "-c", check], check=True, cwd=ROOT)


def test_the_tests_lie_where_the_source_lies():
    """Every folder of tests is one of the source, and no two files of tests have one name."""
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    assert {str(folder) for folder in folders if not (ROOT / folder).is_dir()} == {"repository", "typed"}
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if path.name not in ("__init__.py", "conftest.py")]
    assert len(set(names)) == len(names)
