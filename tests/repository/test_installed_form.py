"""What is installed: `codegen` stands inside symad, so that no other package or file of that name is in its way."""

from __future__ import annotations

import ast
import os
import runpy
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SETUP: dict[str, Any] = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")
SCRIPT = """
import codegen, pickle
import numpy as np, sympy as sp
import symad as sa
import symad.codegen

kernel = sa.compile(sa.hessian(lambda x: (x**3).sum()), np.ones(2))
x = sp.Symbol("x")
print(codegen.WHO, kernel(np.ones(2)).tolist(), pickle.loads(pickle.dumps(kernel))(np.ones(2)).tolist())
print(symad.codegen.lambdify([x], x**2)(3.0), sa.errors.ArgumentError.__module__)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a wheel installs, and another package called codegen beside it."""
    folder = tmp_path_factory.mktemp("library")
    for package in ("symad", "codegen"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    SETUP["add_lessons"](ROOT, folder)
    SETUP["put_inside"](folder)
    (folder / "codegen").mkdir()
    (folder / "codegen" / "__init__.py").write_text("WHO = 'another package'\n")
    return folder


def run(library: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(library)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, env=environment)


def test_another_package_of_that_name_is_no_matter(library: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    assert run(library, tmp_path, "script.py").stdout.splitlines() == [
        "another package [[6.0, 0.0], [0.0, 6.0]] [[6.0, 0.0], [0.0, 6.0]]",
        "9.0 symad.codegen.errors",
    ]


def test_lessons_are_installed(library: Path, tmp_path: Path) -> None:
    """They are found beside the package, and run there."""
    (tmp_path / "script.py").write_text(
        "from symad.classroom.lessons.lesson import lesson\n"
        "from symad.classroom.lessons.lesson_cells import folder, titles\n"
        "print(folder(), list(titles()), len(lesson(3).steps[3].code[0].value.wrong))"
    )
    place = library / "symad" / "classroom" / "lessons" / "texts"
    assert run(library, tmp_path, "script.py").stdout.strip() == f"{place} {list(range(1, 10))} 3"


def test_a_file_of_that_name_is_no_matter(library: Path, tmp_path: Path) -> None:
    (tmp_path / "codegen.py").write_text("WHO = 'a file of the user'\n")
    (tmp_path / "script.py").write_text(SCRIPT)
    assert run(library, tmp_path, "script.py").stdout.startswith("a file of the user [[6.0, 0.0], [0.0, 6.0]]")


def test_commands_run(library: Path, tmp_path: Path) -> None:
    assert "f′(x)[v]" in run(library, tmp_path, "-m", "symad", "expand", "x^2").stdout
    usage = subprocess.run(
        [sys.executable, "-m", "symad.codegen.bisecting"],
        capture_output=True, text=True, check=False, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(library)},
    )  # fmt: skip
    assert "usage: python -m symad.codegen.bisecting" in usage.stderr + usage.stdout


def test_no_name_is_left(library: Path) -> None:
    """Every import in the installed form is one of symad, of a dependency or of Python's own library."""
    found, used = set(), set()
    for path in (library / "symad").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            found |= {name.partition(".")[0] for name in names}
            used |= {node.id} if isinstance(node, ast.Name) else set()
    assert "codegen" not in found | used
    assert "symad" in found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import codegen\n", "import symad.codegen\n"),
        ("from codegen.ir import program\n", "from symad.codegen.ir import program\n"),
        ("from sympy.codegen import cfunctions\n", "from sympy.codegen import cfunctions\n"),
        ("x = codegen.load(a.codegen)\n", "x = symad.codegen.load(a.codegen)\n"),
        ('x = {"codegen": 1}  # codegen\n', 'x = {"codegen": 1}  # codegen\n'),
        ("'>>> from codegen import a'\n", "'>>> from symad.codegen import a'\n"),
        ('"""See `codegen.ir`."""\n', '"""See `symad.codegen.ir`."""\n'),
    ],
)  # fmt: skip
def test_names_are_put_right(before: str, after: str) -> None:
    renamed: Callable[[str], str] = SETUP["renamed"]
    assert renamed(before) == after


def test_the_description_is_whole() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"authors", "classifiers", "keywords", "license", "readme", "requires-python"} <= project.keys()
    assert "version" in project["dynamic"]
    assert (
        f"Programming Language :: Python :: {project['requires-python'].removeprefix('>=')}" in project["classifiers"]
    )
