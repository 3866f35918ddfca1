"""The process that asks LLVM for a processor runs nothing of the folder that the program was started in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import llvmlite
import pytest

import codegen
from codegen import engine
from codegen.errors import ArgumentError, WorkbenchError

ROOT = Path(codegen.__file__).parents[1]
PACKAGES = Path(llvmlite.__file__).parents[1]
SCRIPT = """
from codegen.engine import check_processor
from codegen.errors import ArgumentError
print(check_processor("znver2") if "x86_64" in __import__("llvmlite.binding").binding.get_process_triple()
      else check_processor("cortex-a57"))
try:
    check_processor("abacus")
except ArgumentError as error:
    print("refused")
"""
PLANTED = "open('ran', 'a').write(__name__)\nraise SystemExit('planted')\n"


def asked(folder: Path, command: list[str], **environment: str) -> str:
    """Run the script elsewhere, with modules of common names in the current folder."""
    here, script = folder / "here", folder / "scripts" / "script.py"
    here.mkdir()
    script.parent.mkdir()
    script.write_text(SCRIPT)
    for name in ("llvmlite", "codegen", "ctypes", "importlib", "sitecustomize", "usercustomize", "encodings"):
        (here / f"{name}.py").write_text(PLANTED)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [*command, str(script)], cwd=here, env=inherited | environment, capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    assert not (here / "ran").exists()
    return done.stdout


def test_in_the_environment_at_hand(tmp_path: Path) -> None:
    assert asked(tmp_path, [sys.executable], PYTHONPATH=f"{ROOT}{os.pathsep}{PACKAGES}").endswith("\nrefused\n")


def test_where_only_the_path_of_the_process_knows_llvmlite(tmp_path: Path) -> None:
    """As in zipped applications, and where a launcher sets the path."""
    start = tmp_path / "start.py"
    start.write_text(
        f"import runpy, sys\nsys.path += [{str(ROOT)!r}, {str(PACKAGES)!r}]\nrunpy.run_path(sys.argv[1])\n"
    )
    assert asked(tmp_path, [sys.executable, "-I", "-S", str(start)]).endswith("\nrefused\n")


def test_an_interpreter_that_cannot_be_started_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    engine.check_processor.cache_clear()
    monkeypatch.setattr(sys, "executable", sys.executable + "-nowhere")
    with pytest.raises(WorkbenchError, match="cpu='abacus': LLVM could not be asked for it") as caught:
        engine.check_processor("abacus")
    assert not isinstance(caught.value, ArgumentError)
