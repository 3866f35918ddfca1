"""The base class of results: print, save as a paper or page, display in a notebook."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import symad.display as forms  # of a document: imported when one is asked for
from codegen.sealed import write_atomically
from symad.display.document import Document
from symad.display.printers import shortened
from symad.display.styles import PRINTED_SANS, SANS
from symad.errors import ArgumentError
from symad.extras import optional

_SHARP = 2  # dots for each pixel


class Shown:
    """Base class of all displayed results. A subclass gives `document()`; every form follows from it.

    `print(object)` fits the terminal, `rich.print(object)` adds colours; a notebook shows the HTML form.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Keep the short `repr` of results that are dataclasses: a whole document is for `print`."""
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls):
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign]

    def document(self) -> Document:
        """Return the displayed document."""
        raise TypeError(f"{type(self).__name__} has no document()")

    def words(self) -> Document:
        """Return the document for text. A subclass whose pictures need an extra omits them here."""
        return self.document()

    @property
    def title(self) -> str:
        """The title of a page that shows this and nothing else."""
        return type(self).__name__

    def text(self, width: int | None = None) -> str:
        """Return plain text of at most `width` characters a line, by default as wide as the terminal.

        In ASCII where the standard output cannot take other signs.
        """
        document = self.words()
        text = forms.terminal.plain(document, width)
        try:
            text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
        except (UnicodeEncodeError, LookupError):
            return forms.terminal.plain(document, width, ascii_only=True)
        return text

    def latex(self) -> str:
        """Return the body of a LaTeX text (packages amsmath, booktabs, longtable, xcolor, textcomp, tikz)."""
        return forms.latex.body(self.document())

    def html(self) -> str:
        """Return an HTML element with MathML and SVG in it, without scripts."""
        return forms.html.fragment(self.document())

    def save(self, path: str | Path, *, big: bool = False) -> Path:
        """Write a file by its suffix: .html a page, .ipynb a notebook, .tex a text that compiles, .txt plain text.

        What has a picture as .svg has it as .png and .pdf too (extra: symad[pictures]). Page and notebook open offline.
        `big` is for a page that is projected: large letters, as wide as the screen. ArgumentError for another suffix,
        and where the file cannot be written; a file is written whole or not at all.
        """
        path, writers = Path(path), self.file_forms(big=big)
        if path.suffix not in writers:
            raise ArgumentError(f"{path.name!r} as a file to show", do=f"end its name in {', '.join(writers)}")
        return write_text(path, writers[path.suffix]())

    def file_forms(self, *, big: bool = False) -> dict[str, Callable[[], str | bytes]]:
        """Return the suffixes of files, each with a function that gives the content of the file."""
        more = self.more_forms()
        drawn = (".png", ".pdf") if ".svg" in more else ()
        return {
            ".html": lambda: forms.html.page(self.document(), self.title, big=big),
            ".tex": lambda: forms.latex.whole(self.document()),
            ".txt": lambda: forms.terminal.plain(self.words(), forms.terminal.WIDTH) + "\n",
            ".ipynb": lambda: forms.notebook.whole(self.document(), self.title),
            **more,
            **{suffix: partial(_converted, more[".svg"], suffix) for suffix in drawn},
        }

    def more_forms(self) -> dict[str, Any]:
        """Return further suffixes of files, each with a function that gives the text of the file."""
        return {}

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"<{name}>" if self.title == name else f"<{name}: {shortened(self.title)}>"

    def __str__(self) -> str:
        return self.text()

    def __rich__(self) -> Any:
        return forms.terminal.Rendering(self.words())

    def _repr_html_(self) -> str:
        return self._in_notebook(self.html)

    def _repr_latex_(self) -> str | None:
        return self._in_notebook(self.latex)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else self._in_notebook(self.text))

    def _in_notebook(self, form: Callable[[], str]) -> str:
        """Return a form; a notebook shows every error but this one, which it takes for "has no such form"."""
        try:
            return form()
        except NotImplementedError as error:
            raise RuntimeError(f"{type(self).__name__} cannot be shown: {error}") from error


def _converted(svg: Callable[[], str], suffix: str) -> bytes:
    """Return a picture in dots or for print, in its colours for light ground and a font that has its letters."""
    converter = optional("cairosvg", f"a {suffix} file")
    picture = re.sub(r"<style>.*?</style>", "", svg()).replace(SANS, PRINTED_SANS)
    if suffix == ".pdf":
        return bytes(converter.svg2pdf(picture.encode("utf-8")))
    return bytes(converter.svg2png(picture.encode("utf-8"), scale=_SHARP))


def write_text(path: Path, content: str | bytes) -> Path:
    """Write a file completely or not at all; ArgumentError when it cannot be written."""
    try:
        write_atomically(path, content if isinstance(content, bytes) else content.encode("utf-8"))
    except OSError as error:
        raise ArgumentError(
            f"cannot write {str(path)!r}", why=error.strerror or str(error), do="choose another file"
        ) from error
    return path
