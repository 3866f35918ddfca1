"""SYMAD_BISECT: with any optional passes left out the numbers are right, and a wrong pass that is planted is found."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import codegen.emission.straight
import codegen.loops.emit.rolled_code
import codegen.lowering.passes
from codegen import ArgumentError, compile_program, load_kernel, program_from_sympy
from codegen.bisecting import first_wrong, main
from codegen.ir.program import Program
from codegen.ir.region import RolledProgram
from codegen.loops.optimise.common_rows import share
from codegen.lowering.fuse import fuse
from codegen.lowering.lower import Lowered
from codegen.stages import OPTIONAL, bisecting, bisection_of
from tests.support.rolled_programs import KNOWN
from tests.support.staged import PROGRAMS, SCRIPT, X, Y, given, reference, straight, sweep, values

# what is left out


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("accuracy", ["strict", "fast"])
@pytest.mark.thinned
def test_with_any_number_of_optional_passes_the_numbers_are_right(
    name: str, accuracy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = PROGRAMS[name]()
    arrays = given(program)
    wanted = reference(program, arrays)
    every = bisection_of("")
    with bisecting(every):
        compile_program(program, accuracy=accuracy)
    assert len(every.ran) >= 4
    last = len(every.ran)
    for limit in sorted({*range(4), *np.linspace(0, last, 6).astype(int).tolist(), last - 1}):
        monkeypatch.setenv("SYMAD_BISECT", str(limit))
        kernel = compile_program(program, accuracy=accuracy)
        for found, right in zip(values(kernel, arrays), wanted, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-11, err_msg=f"{limit} passes")


@pytest.mark.parametrize("name", ["straight", "sweep", "rolled pairs"])
def test_each_optional_pass_can_be_left_out_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = PROGRAMS[name]()
    arrays = given(program)
    every = bisection_of("")
    with bisecting(every):
        compile_program(program, accuracy="fast")
    for left_out in sorted(set(every.ran)):
        monkeypatch.setenv("SYMAD_BISECT", f"-{left_out}")
        without = bisection_of(f"-{left_out}")
        with bisecting(without):
            kernel = compile_program(program, accuracy="fast")
        assert left_out not in without.ran
        for found, right in zip(values(kernel, arrays), reference(program, arrays), strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-11, err_msg=left_out)


def test_passes_are_numbered_in_the_same_order_every_time() -> None:
    orders = []
    for _ in range(2):
        every = bisection_of("")
        with bisecting(every):
            compile_program(KNOWN["heat"])
        orders.append(every.ran)
    assert orders[0] == orders[1]
    assert set(orders[0]) <= OPTIONAL.keys()


def test_the_environment_leaves_out_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    program = straight()
    for words, fused in (
        ("", True),
        ("0", False),
        ("2", False),
        ("3", True),
        ("-multiply-add", False),
        ("9,-groups", True),
    ):
        monkeypatch.setenv("SYMAD_BISECT", words)
        assert (compile_program(program).stats.fused > 0) == fused, words


@pytest.mark.parametrize("limit", range(6))
def test_other_code_of_a_kernel_leaves_out_the_same_passes(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMAD_BISECT", str(limit))
    kernel = compile_program(straight(), lanes=4)
    monkeypatch.delenv("SYMAD_BISECT")
    points = np.random.default_rng(1).uniform(0.5, 1.5, (3, 9))
    together = kernel.batch(*points)
    alone = [kernel(*point) for point in points.T]
    np.testing.assert_array_equal(np.array(together).T, np.array(alone))  # batches have the bits of single calls
    assert ("llvm.fma" in kernel.llvm) == (limit >= 3)


@pytest.mark.parametrize("words", ["x", "-nothing", "1.5", "-3", "packing", "1,-fuze"])
def test_words_that_are_no_pass_are_refused(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMAD_BISECT", words)
    with pytest.raises(ArgumentError, match="is no pass; give a number, or -rolling, ") as caught:
        compile_program(straight())
    assert str(caught.value).startswith(f"SYMAD_BISECT={words!r}: ")


@pytest.mark.parametrize("variable", ["SYMAD_BISECT", "SYMAD_DUMP"])
def test_the_cache_is_not_used_while_stages_are_looked_at(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, cache = straight(), tmp_path / "cache"
    setting = {"SYMAD_BISECT": "0", "SYMAD_DUMP": str(tmp_path / "dump")}[variable]
    monkeypatch.setenv(variable, setting)
    compile_program(program, cache=cache)
    assert not cache.exists()  # nothing is stored
    monkeypatch.delenv(variable)
    whole = compile_program(program, cache=cache)
    assert compile_program(program, cache=cache).stats.cached
    monkeypatch.setenv(variable, setting)
    looked_at = compile_program(program, cache=cache)
    assert not looked_at.stats.cached  # nothing is loaded
    assert (looked_at.stats.fused == whole.stats.fused) == (variable == "SYMAD_DUMP")


def test_a_saved_kernel_is_compiled_with_all_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMAD_BISECT", "0")
    compile_program(straight()).save(tmp_path / "f.symad")
    monkeypatch.delenv("SYMAD_BISECT")
    assert load_kernel(tmp_path / "f.symad").stats.fused > 0


# which pass is to blame


def wrong_fuse(lowered: Lowered) -> Lowered:
    """A pass that takes the wrong sign."""
    made = fuse(lowered)
    return replace(made, rows=[("fms", *row[1:]) if row[0] == "fma" else row for row in made.rows])


def wrong_share(program: RolledProgram) -> RolledProgram:
    """A pass that forgets the last step."""
    return replace(share(program), steps=share(program).steps[:-1])


def right_numbers(program: Program | RolledProgram) -> Callable[[], bool]:
    arrays = given(program)
    wanted = reference(program, arrays)

    def check() -> bool:
        pairs = zip(values(compile_program(program), arrays), wanted, strict=True)
        return all(np.allclose(found, right, rtol=1e-9) for found, right in pairs)

    return check


def test_a_wrong_pass_on_straight_lines_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codegen.lowering.passes, "fuse", wrong_fuse)
    assert first_wrong(right_numbers(straight())) == "multiply-add"


def test_a_wrong_pass_on_both_halves_of_a_sweep_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong_groups(lowered: Lowered, widths: object, find: object) -> Lowered:
        return replace(lowered, stores=[(array, place, 0) for array, place, _ in lowered.stores])

    monkeypatch.setattr(codegen.emission.straight, "group_operations", wrong_groups)
    assert first_wrong(right_numbers(sweep())) == "groups"


def test_a_wrong_pass_on_loops_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codegen.loops.emit.rolled_code, "PASSES", (("sharing", wrong_share),))
    assert first_wrong(right_numbers(KNOWN["heat"])) == "sharing"


def test_a_pass_that_is_wrong_in_one_of_its_applications_only_is_found_there(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def wrong_once(lowered: Lowered) -> Lowered:
        return wrong_fuse(lowered) if len(lowered.rows) > 10 else fuse(lowered)

    monkeypatch.setattr(codegen.lowering.passes, "fuse", wrong_once)
    first, second = right_numbers(program_from_sympy([X, Y], [X + 3 * Y])), right_numbers(straight())
    with caplog.at_level(logging.INFO, "symad"):
        assert first_wrong(lambda: first() and second()) == "multiply-add"
    every = bisection_of("")
    with bisecting(every):
        first()
    number = len(every.ran) + 1 + every.ran.index("multiply-add")  # the second program's comes after all of the first
    assert f"the number is wrong from optional pass {number} on, multiply-add" in caplog.text


def test_where_no_pass_is_to_blame_it_says_so() -> None:
    with pytest.raises(ArgumentError, match="it is true with all optional passes; give one that is false"):
        first_wrong(right_numbers(straight()))
    with pytest.raises(ArgumentError, match="false without any optional pass too, so none of them is to blame"):
        first_wrong(lambda: False)


def test_a_file_is_bisected_from_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(SCRIPT.format(fused=0))
    command = [sys.executable, "-m", "codegen.bisecting", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("multiply-add\n", "")


def test_what_cannot_be_bisected_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "right.py"
    path.write_text(SCRIPT.format(fused=1))
    assert main([str(path)]) == 2
    assert "true with all optional passes" in capsys.readouterr().err
    path.write_text("import sys\nsys.exit(1)")
    assert main([str(path)]) == 2
    assert "none of them is to blame" in capsys.readouterr().err
    assert main([str(tmp_path / "missing.py")]) == 2
    assert capsys.readouterr().err == "usage: python -m codegen.bisecting FILE.py\n"
