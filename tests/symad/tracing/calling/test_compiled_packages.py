"""Functions of compiled packages refuse traced values, and the process lives."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from tests.support.compiled_packages import CALLS, outcome

SWIG = [name for name in CALLS if name.startswith("casadi")]


@pytest.mark.parametrize("name", [name for name in CALLS if name not in SWIG])
def test_the_error_is_ours(name: str) -> None:
    package = CALLS[name][0].partition(".")[0]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is no part of the tests' environment")
    assert outcome(name) in ("refused", "answered")


def test_swig_does_not_ask_for_ever() -> None:
    """casadi asks for an item of what has a dtype until it is a float."""
    pytest.importorskip("casadi", reason="casadi is no part of the tests' environment")
    code = f"from tests.support.compiled_packages import outcome\nprint(*map(outcome, {SWIG}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=600)
    assert (run.stdout.split(), run.returncode) == (["refused"] * len(SWIG), 0), run.stderr
