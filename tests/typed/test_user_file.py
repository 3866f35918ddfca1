"""The user's file runs, and mypy finds the types in it; `python -m tests.typed` asks pyright the same, and more."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import codegen
import symad

FILE = Path(__file__).with_name("user_file.py")
ROOT = Path(__file__).parents[2]


def complaints(path: Path) -> list[str]:
    """Return what mypy says of a file; what it knows of symad it keeps for the next one."""
    command = [sys.executable, "-m", "mypy", str(path)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not found.stderr
    return re.findall(r"error: (.*)", found.stdout)


def test_it_runs() -> None:
    runpy.run_path(str(FILE))


def test_mypy_infers_the_types_that_it_says() -> None:
    assert FILE.read_text().count("assert_type(") >= 30
    assert complaints(FILE) == []


def test_wrong_uses_are_found(tmp_path: Path) -> None:
    user = tmp_path / "user.py"
    text = re.sub(r"(?s)\n# first order.*", "\n", FILE.read_text())
    user.write_text(
        text + "sa.grad(energy)(X, stifness=1.0)\nsa.grad(wave)('text')\nsa.hessian(energy, sparse='left')\nsa.gard\n"
    )
    found = complaints(user)
    assert [each[:30] for each in found] == [
        'Unexpected keyword argument "s', "Argument 1 has incompatible ty", 'No overload variant of "hessia',
        'Module has no attribute "gard"',
    ], found  # fmt: skip


def test_editors_are_offered_public_names_only() -> None:
    for package in (symad, codegen):
        assert declared(package) == sorted(package.__all__) == dir(package)


def declared(package: ModuleType) -> list[str]:
    """Return what the stub of a package declares, which is what type checkers offer."""
    stub = Path(package.__file__ or "").with_suffix(".pyi").read_text()
    return sorted(name for name in re.findall(r"\bas (\w+)", stub))
