"""Shown: what has a document can be printed, written to a paper or a page, and displayed in a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codegen.storage.sealed import write_atomically
from symad.display import html, latex, terminal
from symad.display.document import Document
from symad.errors import ArgumentError


class Shown:
    """Base of everything that is looked at; a subclass gives `document()`, the forms follow from it.

    `print(object)` fits the terminal, `rich.print(object)` adds colours; a notebook shows the HTML form.
    """

    def document(self) -> Document:
        """Return what is shown."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """The title of a page that shows this and nothing else."""
        return type(self).__name__

    def text(self, width: int | None = None) -> str:
        """Return plain text of at most `width` characters a line, by default as wide as the terminal."""
        return terminal.plain(self.document(), width)

    def latex(self) -> str:
        """Return the body of a LaTeX text (packages amsmath, booktabs, xcolor, tikz)."""
        return latex.body(self.document())

    def html(self) -> str:
        """Return an HTML element with MathML and SVG in it, without scripts."""
        return html.fragment(self.document())

    def save(self, path: str | Path) -> Path:
        """Write a file by its suffix: .html a page that opens offline, .tex a text that compiles, .txt plain text.

        ArgumentError for another suffix, and where the file cannot be written; a file is written whole or not at all.
        """
        path = Path(path)
        forms = {
            ".html": lambda: html.page(self.document(), self.title),
            ".tex": lambda: latex.whole(self.document()),
            ".txt": lambda: self.text(100) + "\n",
            **self.more_forms(),
        }
        if path.suffix not in forms:
            raise ArgumentError(f"{path.name!r} as a file to show", do=f"end its name in {', '.join(forms)}")
        return write_text(path, forms[path.suffix]())

    def more_forms(self) -> dict[str, Any]:
        """Return further suffixes of files, each with a function that gives the text of the file."""
        return {}

    def __str__(self) -> str:
        return self.text()

    def __rich__(self) -> Any:
        return terminal.renderable(self.document())

    def _repr_html_(self) -> str:
        return self.html()

    def _repr_latex_(self) -> str:
        return self.latex()


def write_text(path: Path, text: str) -> Path:
    """Write a text file completely or not at all; ArgumentError when it cannot be written."""
    try:
        write_atomically(path, text.encode("utf-8"))
    except OSError as error:
        raise ArgumentError(f"cannot write {str(path)!r}", why=str(error), do="choose another file") from error
    return path
