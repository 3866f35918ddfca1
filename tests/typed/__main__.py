"""python -m tests.typed: pyright on the user's file and on what a wheel installs, `--verifytypes`; 95 % must be known.

It takes pyright on the path (`pip install "pyright[nodejs]"`), and half a minute.
"""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import symad

ROOT = Path(__file__).parents[2]
LEAST = 0.95


def main() -> int:
    """Print what pyright says, and the public names whose types it does not know in full; exit status 1 below 95 %."""
    if shutil.which("pyright") is None:
        sys.exit('no pyright on the path: pip install "pyright[nodejs]"')
    with tempfile.TemporaryDirectory() as folder:
        environment = installed(Path(folder))
        user = Path(folder, "user_file.py")
        shutil.copy(ROOT / "tests" / "typed" / "user_file.py", user)
        found = subprocess.run(["pyright", str(user)], cwd=folder, env=environment, check=False)
        command = ["pyright", "--verifytypes", "symad", "--ignoreexternal", "--outputjson"]
        told = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout
    report = json.loads(told)["typeCompleteness"]
    print(f"symad: {report['completenessScore']:.1%} of {len(report['symbols'])} names have known types")
    known = {each["name"]: each for each in report["symbols"]}
    public = [name for name in dir(symad) if f"symad.{name}" in known]
    open_ = [name for name in public if not is_known(known[f"symad.{name}"])]
    print(f"public: {len(public) - len(open_)} of {len(public)}; not in full: {', '.join(open_)}")
    return int(found.returncode != 0 or report["completenessScore"] < LEAST)


def installed(folder: Path) -> Mapping[str, str]:
    """Install what a wheel installs into an environment of its own; return the variables that make pyright see it."""
    venv.create(folder / "environment")
    place = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "environment")}))
    for package in ("symad", "codegen"):
        shutil.copytree(ROOT / package, place / package, ignore=shutil.ignore_patterns("__pycache__"))
    runpy.run_path(str(ROOT / "setup.py"), run_name="setup")["put_inside"](place)
    (place / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    scripts = sysconfig.get_path("scripts", vars={"base": str(folder / "environment")})
    changed = {"VIRTUAL_ENV": str(folder / "environment"), "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    return os.environ | changed


def is_known(symbol: dict[str, Any]) -> bool:
    """Whether the type of a name is known in full, and the same to every type checker."""
    return symbol["isTypeKnown"] and not symbol["isTypeAmbiguous"]


if __name__ == "__main__":
    sys.exit(main())
