"""codegen stands alone, and only the engine touches llvmlite.binding."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import codegen

FOLDER = Path(codegen.__file__).parent


def test_codegen_does_not_import_symad() -> None:
    program = "import sys, codegen; sys.exit(any(name.split('.')[0] == 'symad' for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], cwd=FOLDER.parent, check=False).returncode == 0


def test_only_the_engine_imports_the_compiler() -> None:
    users = {path.name for path in FOLDER.glob("*.py") if "import llvmlite" in path.read_text()}
    assert users == {"engine.py"}
