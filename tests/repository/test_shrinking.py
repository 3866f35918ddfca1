"""Random programs are written down and read again, and what fails is shrunk, from its own choices, and kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import codegen.lowering.passes
from codegen.lowering.fuse import fuse
from codegen.lowering.lower import Lowered
from tests.support.draws import Draw, seeded
from tests.support.fuzzers import FUZZERS
from tests.support.fuzzing import Fuzzer, campaign, lines_of, regressions, save, shrunk


def statements(draw: Draw) -> list[tuple[int, float, str]]:
    """Some statements: what a random program is like."""
    return [
        draw.part(lambda: (draw.integer(0, 1000), draw.real(-1, 1), draw.choice("abc")))
        for _ in range(draw.integer(1, 30))
    ]


def both_kinds(made: list[tuple[int, float, str]]) -> str:
    """Fails where a large number and a letter meet."""
    assert not any(number > 400 and letter == "c" for number, _, letter in made), "wrong"
    return "right"


def test_a_program_is_shrunk_from_its_own_choices() -> None:
    runs: list[list[tuple[int, float, str]]] = []
    fuzzer = Fuzzer(statements, lambda made: runs.append(made) or both_kinds(made))
    draw = seeded(3)
    made = fuzzer.make(draw)
    assert shrunk(fuzzer, tuple(draw.choices), "wrong number") == [(401, -1.0, "c")]
    assert runs[0] == made


def test_shrinking_ends_in_time_with_what_it_has() -> None:
    draw = seeded(3)
    made = statements(draw)
    assert shrunk(Fuzzer(statements, both_kinds), tuple(draw.choices), "wrong number", seconds=0.0) == made


def test_shrinking_goes_on_where_a_program_fails_only_sometimes() -> None:
    draw, runs = seeded(3), [0]

    def sometimes(made: list[tuple[int, float, str]]) -> str:
        runs[0] += 1
        return "right" if runs[0] in (3, 4) else both_kinds(made)

    statements(draw)
    assert shrunk(Fuzzer(statements, sometimes), tuple(draw.choices), "wrong number") == [(401, -1.0, "c")]


def test_a_failure_of_another_kind_is_no_smaller_form_of_it() -> None:
    def check(made: list[tuple[int, float, str]]) -> str:
        assert len(made) < 4, "wrong"
        raise ValueError("too few")

    found = campaign("some", Fuzzer(statements, check), [3], report=lambda failure: None)
    (failure,) = found.failures
    assert failure.blame == "wrong number"
    assert failure.shrunk == str([(0, -1.0, "a")] * 4)
    assert str(found) == "1 programs: none right; 1 wrong"


@pytest.mark.parametrize("name", sorted(FUZZERS))
def test_programs_are_written_down(name: str) -> None:
    fuzzer = FUZZERS[name]
    for seed in range(3):
        text = fuzzer.written(fuzzer.make(seeded(seed)))
        assert fuzzer.written(fuzzer.read(f"# fuzzer: {name}\n\n{text}")).endswith(text)


def test_a_wrong_pass_is_shrunk_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A multiply-add with the wrong sign, in 16 lines of loops."""

    def wrong(lowered: Lowered) -> Lowered:
        made = fuse(lowered)
        return replace(made, rows=[("fms", *row[1:]) if row[0] == "fma" else row for row in made.rows])

    fuzzer = FUZZERS["rolling-native"]
    monkeypatch.setattr(codegen.lowering.passes, "fuse", wrong)
    (failure,) = campaign("rolling-native", fuzzer, [7], report=lambda failure: None).failures
    assert lines_of(failure.drawn) == 16
    assert lines_of(failure.shrunk) <= 8
    path = save(failure, tmp_path)
    (kept,) = regressions(tmp_path)
    assert (kept.name, kept.fuzzer, kept.open) == (path.stem, "rolling-native", "")
    with pytest.raises(AssertionError, match="and not"):
        fuzzer.check(fuzzer.read(kept.text))
    monkeypatch.undo()
    assert fuzzer.check(fuzzer.read(kept.text)) == "as loops"
