"""Shown: what a result gets from having a document: text, files, notebook forms, a short repr, errors that are seen."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from pathlib import Path

import pytest
import sympy as sp

from symad.display.document import Document, Formula, Heading
from symad.display.shown import Shown
from symad.errors import ArgumentError


@dataclass(frozen=True)
class Result(Shown):
    value: int = 1
    name: str = "a square"

    @property
    def title(self) -> str:
        return self.name

    def document(self) -> Document:
        return (Heading("A square → ε"), Formula(sp.Symbol("x") ** 2))


class Broken(Shown):
    def document(self) -> Document:
        raise NotImplementedError("not this one")


@pytest.mark.parametrize(
    ("suffix", "start"), [(".html", "<!DOCTYPE html>"), (".tex", r"\documentclass"), (".txt", "A square → ε\n")]
)
def test_save(suffix: str, start: str, tmp_path: Path) -> None:
    path = Result().save(str(tmp_path / f"a{suffix}"))
    assert path.read_text(encoding="utf-8").startswith(start)
    assert [file.name for file in tmp_path.iterdir()] == [f"a{suffix}"]


def test_save_refuses_by_name(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"'a.pdf' as a file to show: .*\.html, \.tex, \.txt|'a.pdf'"):
        Result().save(tmp_path / "a.pdf")
    with pytest.raises(ArgumentError, match="cannot write"):
        Result().save(tmp_path / "no such folder" / "a.html")


def test_more_suffixes(tmp_path: Path) -> None:
    class More(Result):
        def more_forms(self) -> dict[str, object]:
            return {".md": lambda: "# A square"}

    assert More().save(tmp_path / "a.md").read_text() == "# A square"


def test_a_title_is_no_markup(tmp_path: Path) -> None:
    page = Result(name="</title><script>").save(tmp_path / "a.html").read_text(encoding="utf-8")
    assert "<script" not in page


def test_repr_is_short_also_of_a_dataclass() -> None:
    assert repr(Result()) == "<Result: a square>"
    assert repr(Broken()) == "<Broken>"
    assert len(repr(Result(name="x" * 1000))) < 100


def test_an_own_repr_stays() -> None:
    class Own(Result):
        def __repr__(self) -> str:
            return "own"

    class Heir(Own):
        pass

    assert repr(Own()) == repr(Heir()) == "own"


def test_text_is_the_same_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    long = Result()
    object.__setattr__(long, "document", lambda: (Formula(sp.expand((sp.Symbol("x") + sp.Symbol("y")) ** 12)),))
    with contextlib.redirect_stdout(io.StringIO()):
        texts = {str(long)}
        monkeypatch.setenv("COLUMNS", "40")
        texts.add(str(long))
    assert len(texts) == 1
    assert 80 < max(map(len, texts.pop().split("\n"))) <= 100


def test_text_without_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    assert str(Result()).startswith("A square")


def test_notebook_forms() -> None:
    html = Result()._repr_html_()
    assert html.startswith('<div class="symad"><style>')
    assert "x" in Result()._repr_latex_()

    class Printer:
        text = staticmethod(lambda text: printed.append(text))

    printed: list[str] = []
    Result()._repr_pretty_(Printer(), False)
    Result()._repr_pretty_(Printer(), True)
    assert printed == [Result().text(), repr(Result())]


def test_a_notebook_shows_the_error_of_a_document() -> None:
    """IPython takes NotImplementedError for "has no such form" and would show nothing."""
    for form in ("_repr_html_", "_repr_latex_"):
        with pytest.raises(RuntimeError, match="Broken cannot be shown: not this one"):
            getattr(Broken(), form)()
    with pytest.raises(TypeError, match="Shown has no document"):
        Shown()._repr_html_()
