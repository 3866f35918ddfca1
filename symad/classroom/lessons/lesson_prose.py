r"""Turn lesson prose into a document: headings, lists, **bold**, *italic*, `code`, $formulas$.

The lessons use only these parts of Markdown; other text stays unchanged.
"""

from __future__ import annotations

import re

import symad.display.document as doc

_INLINE = re.compile(r"\$(?P<formula>[^$]+)\$|`(?P<code>[^`]+)`|\*\*(?P<bold>.+?)\*\*|\*(?P<italic>[^*\s][^*]*)\*")
_HEADING = re.compile(r"(#{1,6}) (.*)")
_ITEM = re.compile(r"- ")


def document_of(text: str) -> doc.Document:
    """Return prose as blocks. Empty lines separate paragraphs; each list item is a paragraph.

    >>> document_of("## Why\\n\\nAs $x^2$\\nis.")
    (Heading(text='Why', depth=2), Paragraph(content=('As ', Typeset(latex='x^2', text=''), ' is.')))
    """
    blocks: list[doc.Block] = []
    for part in re.split(r"\n\s*\n|\n(?=- )", text):
        line = " ".join(part.split())
        if heading := _HEADING.fullmatch(line):
            blocks.append(doc.Heading(heading[2], len(heading[1])))
        elif line:
            blocks.append(doc.Paragraph(_inlines(_ITEM.sub("• ", line, count=1) if _ITEM.match(line) else line)))
    return tuple(blocks)


def _inlines(line: str) -> tuple[doc.Inline, ...]:
    parts: list[doc.Inline] = []
    end = 0
    for match in _INLINE.finditer(line):
        if match.start() > end:
            parts.append(line[end : match.start()])
        parts.append(_inline(str(match.lastgroup), match[str(match.lastgroup)]))
        end = match.end()
    return (*parts, line[end:]) if end < len(line) else tuple(parts)


def _inline(kind: str, text: str) -> doc.Inline:
    if kind == "formula":
        return doc.Typeset(text)
    return doc.Marked(text, "code" if kind == "code" else "strong")
