"""Stages: what SYMAD_DUMP writes, and what the log says."""

from __future__ import annotations

import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
import sympy as sp

from codegen import ArgumentError, compile_program
from codegen.ir.region import regions_of
from codegen.machine.kernel_text import LISTING
from codegen.options import Tier
from codegen.stages import LARGEST, compilation, file_name, observed, stage
from tests.support.rolled_programs import KNOWN
from tests.support.staged import SCRIPT, X, Y, Z, straight, sweep

STRAIGHT = ["program", "after-lower", "after-scales", "after-sink_signs", "after-multiply-add", "after-groups",
            "after-schedule", "llvm", "assembly"]  # fmt: skip
ENCODED = [name for name in STRAIGHT if name not in ("after-schedule", "llvm")]


def stages_of(folder: Path) -> list[str]:
    return [path.name for path in sorted(folder.iterdir())]


@pytest.fixture
def dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SYMAD_DUMP", str(tmp_path / "dump"))
    return tmp_path / "dump"


def folders(dump: Path) -> list[Path]:
    return sorted(path for path in dump.iterdir() if path.name != ".numbers")


# what is dumped


def test_every_stage_of_straight_lines_is_a_file_in_order(dump: Path) -> None:
    kernel = compile_program(straight(), tier="llvm")
    compile_program(straight())
    folder, encoded = folders(dump)
    assert [folder.name, encoded.name] == ["001-f", "002-f"]
    for each, names in ((folder, STRAIGHT), (encoded, ENCODED)):
        assert stages_of(each) == [f"{number:03d}-{name}.txt" for number, name in enumerate(names, 1)]
    texts = {path.name[4:-4]: path.read_text() for path in folder.iterdir()}
    assert texts["program"].startswith("# f: program\n%0 = x\n%1 = y\n")
    assert "fma" in texts["after-multiply-add"]
    assert "fma" not in texts["after-sink_signs"]
    assert texts["llvm"].partition("\n")[2].strip() == kernel.llvm.strip()
    assert "\nkernel:" in texts["assembly"]


def test_the_rows_that_are_shown_are_those_of_the_program(dump: Path) -> None:
    program = straight()
    compile_program(program)
    lines = (folders(dump)[0] / "001-program.txt").read_text().splitlines()[1:]
    assert len(lines) == len(program) + sum(output.size for output in program.outputs)
    shown = dict(line.split(" = ") for line in lines)
    found: dict[str, sp.Expr] = {}
    for name, text in shown.items():
        head, *operands = text.split(" ")
        parts = [found[part] for part in operands]
        found[name] = getattr(sp, head)(*parts) if operands else found.get(head, sp.sympify(text.lstrip("%")))
        if text.startswith("%"):
            found[name] = found[text]
    wanted = [sp.sin(X) * Y + 3 * X / Z, sp.exp(Y) / Z - X * Y, sp.sqrt(X + 1) / Z, 1 / (X * Z) + X * Y * Z]
    assert [sp.simplify(found[f"out{k}"] - right) for k, right in enumerate(wanted)] == [0] * 4


@pytest.mark.parametrize("tier", ["llvm", "fast"])
def test_both_halves_of_a_sweep_are_dumped(dump: Path, tier: Tier) -> None:
    compile_program(sweep(), tier=tier)
    names = [name[4:-4] for name in stages_of(folders(dump)[0])]
    halves = ["after-sweep-split-what-is-done-once", "after-sweep-split-what-is-done-for-every-column"]
    assert [name for name in names if name.startswith("after-sweep")] == halves
    written = ["columns-after-schedule", "llvm"] if tier == "llvm" else []
    places = [names.index(name) for name in ("once-after-groups", *written, "assembly")]
    assert places == sorted(places)


def test_a_rolled_program_is_dumped_before_and_after_its_passes_and_each_body_too(dump: Path) -> None:
    compile_program(KNOWN["heat"])
    names = [name[4:-4] for name in stages_of(folders(dump)[0])]
    assert names[:3] == ["program", "after-sharing", "after-sum-unrolling"]
    bodies = {id(region.body) for region, _ in regions_of(KNOWN["heat"].steps)}
    assert [name for name in names if name.endswith("after-lower")] == [f"region-{k}-after-lower" for k in (0, 1)]
    assert len(bodies) == 2  # the first and the last region have one
    assert names[-3:] == ["after-packing", "llvm", "assembly"]
    text = (folders(dump)[0] / "001-program.txt").read_text()
    assert "# heat.py:3" in text


def test_a_long_program_of_loops_is_written_as_rows(dump: Path) -> None:
    body = KNOWN["long"].steps[0].body
    made = [replace(KNOWN["long"].steps[0], body=body) for _ in range(2)]
    compile_program(replace(KNOWN["long"], steps=(made[0], replace(made[1], results=made[1].results[1:]))))
    text = (folders(dump)[0] / "001-program.txt").read_text()
    assert text.count("repetitions  # long*/a.py:1") == 2
    assert sum(line.startswith("    %") for line in text.splitlines()) >= 2 * len(body)


def test_large_stages_are_cut_and_say_so(dump: Path) -> None:
    numbers = "\n".join(map(str, range(LARGEST + 5)))
    with compilation("f", LISTING):
        stage("numbers", numbers)
        stage("fewer", "\n".join(map(str, range(LARGEST))))
    cut, whole = ((folders(dump)[0] / name).read_text().splitlines() for name in stages_of(folders(dump)[0]))
    assert cut[-2:] == [str(LARGEST - 1), "# cut here: a dump has at most 20,000 lines of a stage"]
    assert whole[-1] == str(LARGEST - 1)


def test_anything_with_str_can_be_a_stage(dump: Path) -> None:
    class Report:
        def __str__(self) -> str:
            return "loops: 3"

    with compilation("f", LISTING):
        stage("plan", Report())
        stage("later", Report)
    plan, later = ((folders(dump)[0] / name).read_text() for name in stages_of(folders(dump)[0]))
    assert plan == "# f: plan\nloops: 3\n"
    assert later == "# f: later\nloops: 3\n"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("<lambda>", "lambda"), ("../../etc/passwd", "etc-passwd"), ("a\0b/c\\d", "a-b-c-d"), ("", "unnamed"),
     ("n" * 300, "n" * 60), ("con:1", "con-1"), ("Grüße", "Gr-e")],
)  # fmt: skip
def test_names_become_names_of_files(name: str, wanted: str, dump: Path) -> None:
    assert file_name(name) == wanted
    with compilation(name, LISTING):
        stage(name, "text")
    (folder,) = folders(dump)
    assert folder.name == f"001-{wanted}"
    assert stages_of(folder) == [f"001-{wanted}.txt"]


def test_each_of_many_threads_fills_a_folder_of_its_own(dump: Path) -> None:
    together = Barrier(6)

    def build(number: int) -> None:
        together.wait()
        for again in range(3):
            compile_program(straight(f"thread{number}.{again}"), tier="llvm")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(build, range(6)))
    found = folders(dump)
    assert [int(folder.name[:3]) for folder in found] == list(range(1, 19))
    assert {folder.name[4:] for folder in found} == {f"thread{k}.{again}" for k in range(6) for again in range(3)}
    for folder in found:
        assert [name[4:-4] for name in stages_of(folder)] == STRAIGHT
        titles = {path.read_text().partition(":")[0] for path in folder.iterdir()}
        assert titles == {f"# {folder.name[4:]}"}


def test_more_code_of_a_kernel_has_a_folder_of_its_own(dump: Path) -> None:
    kernel = compile_program(straight(), lanes=4)
    kernel.batch(np.ones(8), np.ones(8), np.ones(8))
    assert kernel.llvm
    assert [folder.name for folder in folders(dump)] == ["001-f", "002-f-batch", "003-f-llvm"]
    assert "004-after-sink_signs.txt" not in stages_of(folders(dump)[1])  # no program was made of anything


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SYMAD_DUMP", str(tmp_path / "file"))
    with pytest.raises(ArgumentError, match=r"SYMAD_DUMP=.*the stages cannot be written there") as caught:
        compile_program(straight())
    assert "name a folder that can be made" in str(caught.value)


def test_nothing_is_formatted_unless_it_is_dumped(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        def __str__(self) -> str:
            raise AssertionError("formatted")

    monkeypatch.delenv("SYMAD_DUMP", raising=False)
    with compilation("f", LISTING):
        stage("plan", Silent())
        stage("plan", lambda: str(Silent()))
        assert isinstance(observed(Silent(), "a pass", whole=str), Silent)


# what is logged


def test_passes_are_logged_with_sizes_and_times(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "symad"):
        kernel = compile_program(straight())
    passes = [record.getMessage() for record in caplog.records if record.levelno == logging.DEBUG]
    assert [text.split(": ")[1] for text in passes] == ["scales", "sink_signs", "multiply-add", "groups"]
    before, after = kernel.stats.total, kernel.stats.total - kernel.stats.fused
    assert f"multiply-add: {before} operations before, {after} after, " in passes[2]
    assert all(text.endswith(" ms") for text in passes)
    (built,) = [record for record in caplog.records if record.levelno == logging.INFO]
    assert built.name == "symad.codegen"
    assert built.getMessage().startswith(f"f: straight, {kernel.stats.executed} operations a call, built in ")


def test_the_last_pass_that_ran_is_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    for words, last in (("2", "number 2, sink_signs"), ("0", "none"), ("-groups", "number 4, lane-functions")):
        caplog.clear()
        monkeypatch.setenv("SYMAD_BISECT", words)
        with caplog.at_level(logging.INFO, "symad"):
            compile_program(straight())
        assert caplog.messages[-1] == f"SYMAD_BISECT: the last optional pass of f that was carried out: {last}"


def test_nothing_is_printed_unless_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "quiet.py"
    path.write_text(SCRIPT.format(fused=1))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
