"""The quick forms of `python -m tests.campaign`, and that campaigns see what is wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from symad.classroom.formulas import read
from symad.display.shown import Shown
from tests.support import environments, extremes, generated_answers, interruptions, mutated_files, mutated_text
from tests.support.campaigns import carried_out


def test_text_is_read_or_refused_and_never_reaches_a_page_as_it_is() -> None:
    report = carried_out(mutated_text.tries(7), 400)
    assert not report.failures, "\n".join(report.failures)
    assert report.outcomes["shown"] > 25
    assert report.outcomes["ArgumentError"] > 100


def test_files_are_read_or_refused_and_take_memory_as_they_are_long() -> None:
    report = carried_out(mutated_files.tries(7), 300)
    assert not report.failures, "\n".join(report.failures)
    assert report.outcomes["called"] > 2
    assert report.outcomes["refused"] > 30


@pytest.mark.parametrize("name", ["all at once", "closed input and output"])
@pytest.mark.wide_rows("all at once")
def test_other_environments_have_the_same_bits(name: str) -> None:
    assert environments.NAMED[name]() in ("same", "ended")


@pytest.mark.parametrize("name", extremes.FUNCTIONS)
@pytest.mark.thinned
def test_routes_agree_at_the_ends_of_the_range(name: str) -> None:
    for order in (0, 1):
        extremes.check(name, order)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("stage", ["loops", "store"])
@pytest.mark.wide_rows("loops")
def test_interrupts_come_through_and_break_nothing(stage: str) -> None:
    assert "interrupted" in interruptions.interrupted(stage, 0, 2)  # one may be lost in a destructor of llvmlite's


def test_a_damaged_or_unfinished_file_is_a_failure(tmp_path: Path) -> None:
    stages = interruptions.Stages(tmp_path)
    stages.store()
    stages.check()
    (path,) = stages.cache.folder.iterdir()
    path.rename(path.with_suffix(".part"))
    with pytest.raises(AssertionError, match="left over"):
        stages.check()
    path.with_suffix(".part").rename(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(AssertionError, match="damaged"):
        stages.check()


def test_the_page_of_differences_is_up_to_date() -> None:
    assert extremes.PAGE.read_text(encoding="utf-8") == extremes.page()


def test_a_route_of_its_own_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(extremes.EXPECTED, ("x**0.5", 1), ([], ""))
    with pytest.raises(AssertionError, match=r"x\*\*0.5, order 1: .'-0.0'"):
        extremes.check("x**0.5", 1)


def test_a_page_with_what_was_typed_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    page = "<p><script>x</script></p>"
    monkeypatch.setattr(Shown, "html", lambda self: page)
    assert any("what was typed" in line for line in carried_out(mutated_text.tries(7), 100).failures)


def test_an_error_that_is_not_ours_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise IndexError("beyond")

    monkeypatch.setattr(read, "scanned", broken)
    assert any("IndexError: beyond" in line for line in carried_out(mutated_text.tries(7), 20).failures)


def test_a_damaged_file_that_is_read_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutated_files, "decode", lambda data: None)
    assert any("was read" in line for line in carried_out(mutated_files.tries(7), 40).failures)


def test_memory_beyond_the_length_of_a_file_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutated_files, "MEMORY_FACTOR", 0)
    monkeypatch.setattr(mutated_files, "MEMORY_OFFSET", 1)
    assert any("bytes for a file of" in line for line in carried_out(mutated_files.tries(7), 40).failures)


def test_generated_answers_have_no_wrong_verdict() -> None:
    report = carried_out(generated_answers.tries(11), 60)
    assert not report.failures, "\n".join(report.failures)
    assert report.outcomes["right"] > 15
    assert report.outcomes["wrong"] > 15
