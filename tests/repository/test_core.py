"""The core stands alone: without classroom, doors and commands everything else is imported, and its tests pass."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEFT_OUT = ("classroom", "doors", "commands", "cli.py", "__main__.py", "old_functions.py")
ROOMS = ("graph", "rules", "reach", "tracing", "derivatives", "transforms", "compiling")


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the repository without the rooms that stand beside the core, and without their tests."""
    folder = tmp_path_factory.mktemp("core")
    ignored = shutil.ignore_patterns(*LEFT_OUT, "__pycache__", "repository")
    for name in ("symad", "codegen", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copytree(ROOT / "examples", folder / "examples")
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    return folder


def _uses_others(test: Path) -> bool:
    """Whether a test compares with what the classroom or a door computes."""
    text = test.read_text(encoding="utf-8")
    return any(name in text for name in _NAMES)


_NAMES = (
    "symad.classroom", "symad.doors", "symad.cli", "sa.verify", "sa.expand", "sa.explain", "sa.compare", "sa.draw",
    "sa.ode", "sa.Problem", "sa.enclose", "sa.spy", "test_confusion", "foreign", "fuzz", "page_checks",
)  # fmt: skip


def _run(core: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(core)}
    return subprocess.run(command, cwd=core, env=environment, capture_output=True, text=True, check=False)


def test_every_module_is_imported(core: Path) -> None:
    modules = [
        ".".join(path.relative_to(core).with_suffix("").parts)
        for package in ("symad", "codegen")
        for path in (core / package).rglob("*.py")
        if path.stem not in ("__init__", "bisecting") and not path.stem.startswith("with_")
    ]
    assert len(modules) > 400
    found = _run(core, "-c", "".join(f"import {name}\n" for name in modules))
    assert found.returncode == 0, found.stderr


def test_its_tests_pass(core: Path) -> None:
    tests = [path for room in ROOMS for path in sorted((core / "tests" / "symad" / room).rglob("test_*.py"))]
    own = [str(path) for path in tests if not _uses_others(path)]
    assert len(own) > 0.7 * len(tests)
    found = _run(core, "-m", "pytest", "-q", "-m", "quick", "-p", "no:cacheprovider", *own)
    assert found.returncode == 0, found.stdout[-2000:]
