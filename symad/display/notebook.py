"""A document as a Jupyter notebook (nbformat 4.5): Markdown cells without outputs.

Mathematics is LaTeX in Markdown, which every notebook sets with what it has brought along. MathML would be thrown out
where a notebook is not trusted, as one that somebody else has written is.
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import symad.display.document as doc
import symad.display.markdown as markdown

Cell: TypeAlias = dict[str, Any]


def whole(document: doc.Document, title: str) -> str:
    """Return a document as the text of a notebook."""
    return written([prose(text) for text in markdown.sections(document)], title)


def prose(text: str) -> Cell:
    """Return a cell of Markdown."""
    return {"cell_type": "markdown", "metadata": {}, "source": _lines(text)}


def code(text: str, printed: str = "", shown: str = "", plain: str = "") -> Cell:
    """Return a Python cell: its text, its printed output, and its result as Markdown and plain text."""
    outputs: list[Cell] = []
    if printed:
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed)})
    if shown or plain:
        data = {"text/markdown": _lines(shown)} if shown else {}
        data["text/plain"] = _lines(plain)
        outputs.append({"output_type": "display_data", "metadata": {}, "data": data})
    return {"cell_type": "code", "metadata": {}, "execution_count": None, "source": _lines(text), "outputs": outputs}


def written(cells: list[Cell], title: str) -> str:
    """Return the text of a notebook of these cells."""
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "title": title,
    }
    numbered = [{"id": f"cell-{k}", **cell} for k, cell in enumerate(cells, 1)]
    notebook = {"cells": numbered, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
