"""python -m tests.versions: the quick tests under every Python that is found, with lowest and newest dependencies.

Each pair has an environment of its own, made anew. The lowest versions are those that `pyproject.toml` names, for what
users need and for the extras; what only tests need is the newest. Other tests: `--tests tests/symad/tracing`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
EXTRAS = ("special", "draw", "table", "rigorous")  # whose bounds are tested
SHOWN = ("sympy", "numpy", "scipy", "llvmlite")
_REQUIREMENT = re.compile(r"([\w-]+)>=([\w.]+)")


def main() -> int:
    """Print a row for each Python and bound; exit status 1 where tests have failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions")
    parser.add_argument("--pythons", nargs="+", default=PYTHONS, metavar="VERSION")
    parser.add_argument("--bounds", nargs="+", choices=("lowest", "newest"), default=("lowest", "newest"))
    parser.add_argument("--tests", nargs="+", default=("-m", "quick", "tests"), help="arguments of pytest")
    options = parser.parse_args()
    failed = False
    for version in options.pythons:
        program = python_of(version)
        if program is None:
            print(f"{version:6} is not installed here", flush=True)
            continue
        for bound in options.bounds:
            right, told = row(program, bound, options.tests)
            print(f"{version:6} {bound:7} {told}", flush=True)
            failed |= not right
    return int(failed)


def python_of(version: str) -> str | None:
    """Return a Python of a version, from the path or from pyenv; None where there is none."""
    installed = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions").glob(f"{version}.*"))
    for program in (*(str(folder / "bin" / "python") for folder in installed), f"python{version}"):
        found = shutil.which(program)
        if found and subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0:
            return found
    return None


def requirements(bound: str) -> Iterator[str]:
    """Yield what is installed.

    >>> "numpy==2.2" in list(requirements("lowest")), "numpy>=2.2,<2.6" in list(requirements("newest"))
    (True, True)
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    for each in (*project["dependencies"], *(each for extra in EXTRAS for each in extras[extra])):
        found = _REQUIREMENT.match(each)
        yield f"{found[1]}=={found[2]}" if found and bound == "lowest" else each
    yield from (each for each in (*extras["test"], *extras["docs"], *extras["ipopt"]) if not each.startswith("symad["))


def row(program: str, bound: str, tests: list[str]) -> tuple[bool, str]:
    """Return whether all tests pass, and a row: versions, and pytest's last line."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "-m", "venv", folder], check=True)
        python = str(Path(folder, "bin", "python"))
        install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *requirements(bound)]
        made = subprocess.run(install, capture_output=True, text=True, check=False)
        if made.returncode:
            return False, made.stderr.strip().splitlines()[-1]
        ask = [python, "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"]
        listed = json.loads(subprocess.run(ask, capture_output=True, text=True, check=True).stdout)
        known = {each["name"]: each["version"] for each in listed}
        command = [python, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", *tests]
        found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        lines = found.stdout.strip().splitlines() or [found.stderr[-200:]]
        told = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
        versions = ", ".join(f"{name} {known.get(name)}" for name in SHOWN)
        return found.returncode == 0, "\n  ".join([f"{versions}: {lines[-1].strip('= ')}", *told[:20]])


if __name__ == "__main__":
    sys.exit(main())
