"""`symad cache --warm`: the cache of a job array, filled once for each kind of processor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import symad as sa
from codegen.engine import check_processor
from symad.cli import main


@pytest.fixture
def saved(tmp_path: Path) -> tuple[str, str]:
    sa.compile(sa.grad(lambda x: np.sum(np.sin(x))), np.ones(3)).save(tmp_path / "kernel.symad")
    sa.Problem(lambda x: np.sum(x**4), lambda x: x[0] * x[1]).save(tmp_path / "problem", np.ones(3))
    return str(tmp_path / "kernel.symad"), str(tmp_path / "problem")


def test_what_was_saved_is_compiled_once(
    saved: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["cache", "--folder", str(tmp_path / "cache"), "--warm", *saved]
    own = check_processor("host")
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6  # one kernel, and five of the problem
    assert all(line.endswith(f" compiled for {own}") for line in lines)
    assert main([*arguments, "--cpu", own]) == 0
    assert all(line.endswith(f" was there for {own}") for line in capsys.readouterr().out.splitlines())
    assert sa.load(saved[0], cache=tmp_path / "cache").stats.cached


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--warm", "KERNEL", "--cpu", "generic"], "machine code is made where it is to run"),
        (["--warm", "KERNEL", "--cpu", "abacus"], "LLVM knows no such processor"),
        (["--warm", "missing.symad"], "missing.symad"),
        (["--cpu", "generic"], "--cpu without --warm"),
    ],
)
def test_what_is_refused(
    more: list[str], message: str, saved: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [saved[0] if word == "KERNEL" else word for word in more]
    assert main(["cache", "--folder", str(tmp_path / "cache"), *arguments]) != 0
    assert message in capsys.readouterr().err
    assert not list((tmp_path / "cache").glob("*.o")) if (tmp_path / "cache").exists() else True
