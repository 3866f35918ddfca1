"""Dumps, bisections and logs of `compile`: from a Python function to machine code, straight, swept and rolled."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import codegen.loops.optimise.draft
import codegen.loops.roll
import symad as sa
import symad.compiling.native
from codegen.bisecting import first_wrong
from codegen.ir.region import RolledProgram
from codegen.stages import OPTIONAL, bisecting, bisection_of

GENERATOR = np.random.default_rng(7)
WEIGHTS = GENERATOR.normal(size=(2, 6, 6))
PAIRS = np.linspace(0.0, 3.0, 20)


def pairs(x: Any) -> Any:
    return sum(1 / ((x[i] - x[j]) ** 2 + 1) for i in range(20) for j in range(i))


def chain(x: Any) -> Any:
    y = x[0]
    for _ in range(300):
        y = np.sin(y) + x[1] * y
    return y


def heat(u: Any) -> Any:
    for _ in range(60):
        inside = u[1:-1] + 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u = np.concatenate([u[:1], inside * (1 + 0.01 * inside), u[-1:]])
    return np.sum(u * u)


def network(x: Any) -> Any:
    return np.sum(np.tanh(WEIGHTS[1] @ np.tanh(WEIGHTS[0] @ x)))


def endless(x: Any) -> Any:
    return sa.while_loop(lambda state: state[0] < 10 * x[0], lambda state: (state[0] + x[0] * x[1],), (x[1],))[0]


# name: (function to compile, point, options, strategy that it is compiled by)
CASES: dict[str, tuple[Callable[..., Any], Any, dict[str, Any], str]] = {
    "Hessian of pairs": (sa.hessian(pairs), PAIRS, {"roll": "always"}, "rolled"),
    "sparse Hessian": (sa.hessian(pairs, sparse="lower"), PAIRS, {"roll": "always"}, "rolled"),
    "gradient of a chain": (sa.grad(chain), np.array([0.1, 0.2]), {"checkpoints": "sqrt"}, "rolled"),
    "value and gradient in time": (sa.value_and_grad(heat), np.linspace(0, 1, 12), {"roll": "always"}, "rolled"),
    "checkpoints in time": (sa.grad(heat), np.linspace(0, 1, 12), {"checkpoints": "none"}, "rolled"),
    "derivative along": (lambda x: sa.hvp(pairs, (x,), (x,)), PAIRS, {"roll": "always"}, "rolled"),
    "Hessian of a network": (sa.hessian(network), np.ones(6), {"strategy": "sweep"}, "sweep"),
    "fast network": (sa.hessian(network), np.ones(6), {"strategy": "straight", "accuracy": "fast"}, "straight"),
    "endless loop": (endless, np.array([1.0, 2.0]), {"roll": "always"}, "rolled"),
}


def flat(result: Any) -> np.ndarray:
    """All numbers of a result; a kernel returns the data of a sparse matrix, a transform the matrix."""
    parts = result if isinstance(result, tuple) else (result,)
    return np.concatenate([np.ravel(getattr(part, "data", part)) for part in parts])


def compiled(name: str) -> np.ndarray:
    f, x, options, _ = CASES[name]
    return flat(sa.compile(f, x, **options)(x))


def in_numbers(name: str) -> np.ndarray:
    """The values by the transforms on numbers: nothing is compiled, nothing rolled."""
    f, x, _, _ = CASES[name]
    return flat(f(x))


# what is dumped


def dumped(dump: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    monkeypatch.setenv("SYMAD_DUMP", str(dump))
    compiled(name)
    (folder,) = (path for path in dump.iterdir() if path.name != ".numbers")
    return [path.stem[4:] for path in sorted(folder.iterdir())]


def test_every_stage_of_loops_is_dumped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = dumped(tmp_path, monkeypatch, "Hessian of pairs")
    assert [name for name in names if not name.startswith("region-")] == [
        "graph", "rows", "loops", "after-place", "after-scattered-matrix", "after-dead-code", "after-constants",
        "after-reordering", "after-loop-fusion", "after-dead-code", "plan", "after-contraction", "program",
        "after-sharing", "after-sum-unrolling", "after-packing", "llvm", "assembly",
    ]  # fmt: skip
    texts = {path.stem[4:]: path.read_text() for path in (tmp_path / "001-Hessian_of_pairs").iterdir()}
    assert " = x[0]\n" in texts["rows"]
    assert "190 times 11 rows of test_dump.py:" in texts["loops"]
    assert "for k in range(190):" in texts["after-place"]
    assert texts["plan"].startswith("# Hessian_of_pairs: plan\nPlan of Hessian_of_pairs\n")
    assert "x₀" in texts["graph"]


def test_checkpoints_are_a_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = dumped(tmp_path, monkeypatch, "gradient of a chain")
    assert names[:6] == ["graph", "rows", "loops", "after-place", "after-checkpoints", "after-gradient"]
    texts = {path.stem[4:]: path.read_text() for path in (tmp_path / "001-gradient_of_chain").iterdir()}
    assert texts["after-place"].count("for ") == 1
    assert texts["after-checkpoints"].count("for ") > 2  # segments, and what is left


def test_straight_lines_and_sweeps_show_their_graph_and_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swept = dumped(tmp_path / "sweep", monkeypatch, "Hessian of a network")
    assert swept[:3] == ["plan", "program", "after-lower"]
    halves = ["after-sweep-split-what-is-done-once", "after-sweep-split-what-is-done-for-every-column"]
    assert [name for name in swept if "split" in name] == halves
    straight = dumped(tmp_path / "straight", monkeypatch, "fast network")
    assert straight[:4] == ["plan", "graph", "program", "after-lower"]
    algebra = ["scales", "sink_signs", "terms", "products", "terms", "sums", "factors", "signs", "multiply-add"]
    assert straight[4:13] == [f"after-{name}" for name in algebra]


def test_compilations_in_the_code_of_a_function_have_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outer(x: Any) -> Any:
        scale = sa.compile(lambda y: y * 2, 1.0)(3.0)
        return scale * x

    monkeypatch.setenv("SYMAD_DUMP", str(tmp_path))
    assert sa.compile(outer, 1.0)(2.0) == 12.0
    found = sorted(path.name for path in tmp_path.iterdir() if path.name != ".numbers")
    assert found[0] == "001-outer"
    assert set(found[1:]) >= {"002-lambda"}
    for name in found:
        assert [path.stem[4:] for path in sorted((tmp_path / name).iterdir())][-1] == "assembly"


# what is left out


@pytest.mark.parametrize("name", CASES)
@pytest.mark.thinned
def test_with_any_number_of_optional_passes_the_numbers_are_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, every = in_numbers(name), bisection_of("")
    f, x, options, strategy = CASES[name]
    with bisecting(every):
        assert sa.compile(f, x, **options).stats.strategy == strategy
    assert set(every.ran) <= OPTIONAL.keys()
    assert every.ran[0] == ("rolling" if strategy == "rolled" else "sweep" if strategy == "sweep" else "scales")
    last = len(every.ran)
    for limit in sorted({0, 1, 2, 3, *np.linspace(4, last, 5).astype(int).tolist()}):
        monkeypatch.setenv("SYMAD_BISECT", str(limit))
        np.testing.assert_allclose(compiled(name), wanted, rtol=1e-9, atol=1e-11, err_msg=f"{limit} of {last} passes")


@pytest.mark.parametrize("name", ["value and gradient in time", "checkpoints in time", "Hessian of pairs"])
def test_each_optional_pass_can_be_left_out_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, every = in_numbers(name), bisection_of("")
    with bisecting(every):
        compiled(name)
    for left_out in sorted(set(every.ran)):
        monkeypatch.setenv("SYMAD_BISECT", f"-{left_out}")
        np.testing.assert_allclose(compiled(name), wanted, rtol=1e-9, atol=1e-11, err_msg=left_out)


def test_rolling_and_sweeps_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for words, name, wanted in (
        ("-rolling", "Hessian of pairs", "straight"), ("-rolling", "gradient of a chain", "straight"),
        ("-sweep", "Hessian of a network", "straight"), ("-rolling", "endless loop", "rolled"),
        ("0", "endless loop", "rolled"), ("1", "Hessian of pairs", "rolled"),
    ):  # fmt: skip
        f, x, options, _ = CASES[name]
        monkeypatch.setenv("SYMAD_BISECT", words)
        assert sa.compile(f, x, **options).stats.strategy == wanted, (words, name)


# which pass is to blame


def right_numbers(name: str) -> Callable[[], bool]:
    wanted = in_numbers(name)
    return lambda: np.allclose(compiled(name), wanted, rtol=1e-9)


def without_the_last(steps: Any) -> Any:
    return [*steps][:-1]


def test_a_wrong_fusion_of_loops_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codegen.loops.optimise.draft, "fused", without_the_last)
    assert first_wrong(right_numbers("Hessian of pairs")) == "loop-fusion"


def test_wrong_elimination_of_dead_code_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        codegen.loops.optimise.draft, "without_dead_code", lambda steps, outputs: tuple(without_the_last(steps))
    )
    assert first_wrong(right_numbers("value and gradient in time")) == "dead-code"


def test_a_wrong_contraction_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(program: RolledProgram, saved: int) -> RolledProgram:
        return replace(program, steps=program.steps[:-1])

    monkeypatch.setattr(symad.compiling.native, "contracted", wrong)
    assert first_wrong(right_numbers("value and gradient in time")) == "contraction"


def test_loops_that_are_placed_wrong_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    place = codegen.loops.roll.place

    def wrong(*args: Any) -> RolledProgram:
        program = place(*args)
        return replace(program, steps=(program.steps[0], *program.steps))

    monkeypatch.setattr(codegen.loops.roll, "place", wrong)
    monkeypatch.setattr(codegen.loops.roll, "agree", lambda *args: True)
    assert first_wrong(right_numbers("Hessian of pairs")) == "rolling"


# what is logged


def test_the_plan_and_its_reason_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "symad"):
        compiled("Hessian of pairs")
        sa.compile(lambda x: x * x, 1.0)
    said = [(record.name, record.getMessage()) for record in caplog.records]
    plans = [text for name, text in said if name == "symad"]
    assert plans[0] == "kernel of Hessian_of_pairs: compiled as loops: roll='always'"
    assert plans[1] == "kernel of <lambda>: compiled in straight lines: too few operations for loops (1)"
    built = [text for name, text in said if name == "symad.codegen"]
    assert [text.partition(",")[0] for text in built] == ["Hessian_of_pairs: rolled", "<lambda>: straight"]
    assert not any(record.levelno == logging.DEBUG for record in caplog.records)


def test_passes_on_loops_are_logged_with_their_sizes(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "symad"):
        compiled("Hessian of pairs")
    passes = [record.getMessage() for record in caplog.records if record.levelno == logging.DEBUG]
    fewer = next(text for text in passes if ": dead-code: " in text)
    before, after = (int(part.split()[0]) for part in fewer.split(": ")[2].split(", ")[:2])
    assert before > after > 0
    assert {"sharing", "packing", "contraction", "region 0 multiply-add"} <= {text.split(": ")[1] for text in passes}
