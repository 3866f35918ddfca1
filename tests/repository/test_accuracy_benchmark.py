"""`python -m benchmarks.accuracy`: it measures, and it fails when a function is off by more than its bound."""

from __future__ import annotations

from pathlib import Path

import pytest

import benchmarks.accuracy


def test_a_run(tmp_path: Path) -> None:
    output = tmp_path / "accuracy.md"
    assert (
        benchmarks.accuracy.main(["--heads", "exp", "besselj", "atan2", "--rounds", "1", "--output", str(output)]) == 0
    )
    lines = [line.split(" | ") for line in output.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert [line[:2] for line in lines[2:]] == [
        *(["| atan2", accuracy] for accuracy in ("fast", "loops", "strict")),
        *(["| besselj", accuracy] for accuracy in ("fast", "strict")),
        *(["| exp", accuracy] for accuracy in ("fast", "loops", "strict")),
    ]


def test_a_function_beyond_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benchmarks.accuracy, "bound_of", lambda *given: 0.001)
    assert benchmarks.accuracy.main(["--heads", "exp", "--rounds", "0", "--output", str(tmp_path / "a.md")]) == 1
    assert "exp (strict)" in capsys.readouterr().err
