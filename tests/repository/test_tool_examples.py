"""The examples of other people's tools run where these are installed; they compare the numbers themselves."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "tools"
NEEDS = {
    "cascade_likelihood": ("scipy",),
    "opty_swing_up": ("opty", "cyipopt", "pydy"),
    "pycalphad_gibbs": ("pycalphad",),
    "pydy_pendulum": ("pydy",),
}


def test_every_example_says_what_it_needs() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(NEEDS)


@pytest.mark.parametrize("name", NEEDS)
def test_example(name: str) -> None:
    missing = [package for package in NEEDS[name] if find_spec(package) is None]
    if missing:
        pytest.skip(f"pip install {' '.join(missing)}")
    done = subprocess.run([sys.executable, str(FOLDER / f"{name}.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "symad" in done.stdout
