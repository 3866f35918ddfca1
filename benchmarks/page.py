"""The report as one page that needs no other file: `report.html`, with the pictures inside."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; margin: 2.2rem 0 .6rem; }
figure { margin: 1.2rem 0; } svg { max-width: 100%; height: auto; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .8rem 0; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #ddd; padding: .25rem .6rem; text-align: right; }
th { vertical-align: bottom; } th:first-child, td:first-child { text-align: left; }
td.met { background: #dff2e4; } td.short { background: #fdeccb; }
code { background: #f2f2f2; padding: 0 .2em; }
"""
PICTURE = re.compile(r"!\[(.*?)\]\((.*?)\)")


def write_page(folder: Path) -> Path:
    """Write the page of a folder's report."""
    text = (folder / "report.md").read_text(encoding="utf-8")
    body = "\n".join(parts(text, folder))
    page = folder / "report.html"
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>symad: benchmarks</title>'
    head += f"<style>{STYLE}</style>"
    whole = f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}\n</body>\n</html>\n'
    page.write_text(whole, encoding="utf-8")
    return page


def parts(text: str, folder: Path) -> Iterator[str]:
    """Return the HTML of the Markdown that reports have: headings, tables, lists, pictures, paragraphs.

    >>> list(parts("# Run\\n\\n- `x`", Path()))
    ['<h1>Run</h1>', '<ul><li><code>x</code></li></ul>']
    """
    for block in re.split(r"\n{2,}", text.strip()):
        lines = block.split("\n")
        if block.startswith("#"):
            level = len(block) - len(block.lstrip("#"))
            yield f"<h{level}>{inline(block[level:].strip())}</h{level}>"
        elif block.startswith("|"):
            yield table(lines)
        elif block.startswith("- "):
            yield "<ul>" + "".join(f"<li>{inline(line[2:])}</li>" for line in lines) + "</ul>"
        elif found := PICTURE.fullmatch(block):
            yield picture(folder / found[2], found[1])
        else:
            yield f"<p>{inline(' '.join(lines))}</p>"


def table(lines: list[str]) -> str:
    """Return the HTML of a table; cells that say whether a goal is met have a colour.

    >>> print(table(["| a | goal 5 |", "|:--|--:|", "| b | met |"]))
    <div class="wide"><table>
    <tr><th>a</th><th>goal 5</th></tr>
    <tr><td>b</td><td class="met">met</td></tr>
    </table></div>
    """
    rows = [[inline(cell.strip()) for cell in line.strip("| ").split(" | ")] for line in lines if "|--" not in line]
    goals = [title.startswith("goal") for title in rows[0]]
    made = ["".join(f"<th>{cell}</th>" for cell in rows[0])]
    made += ["".join(cell_of(cell, goal) for cell, goal in zip(row, goals, strict=False)) for row in rows[1:]]
    return '<div class="wide"><table>\n' + "\n".join(f"<tr>{row}</tr>" for row in made) + "\n</table></div>"


def cell_of(text: str, goal: bool) -> str:
    """Return a cell of a table."""
    kind = "" if not goal or text == "-" else f' class="{"met" if text.startswith("met") else "short"}"'
    return f"<td{kind}>{text}</td>"


def picture(path: Path, title: str) -> str:
    """Return a picture as part of the page: names inside it get its own, so that those of two pictures are apart."""
    text = path.read_text(encoding="utf-8")
    drawn = text[text.index("<svg") :]
    for name in sorted(set(re.findall(r'\bid="(.*?)"', drawn)), key=len, reverse=True):
        drawn = re.sub(rf'(id="|#){re.escape(name)}(?=["\)])', rf"\g<1>{path.stem}-{name}", drawn)
    return f'<figure role="img" aria-label="{html.escape(title)}">{drawn}</figure>'


def inline(text: str) -> str:
    """Return the HTML of a line: code, and what is bold.

    >>> inline("**a** `b < c`")
    '<b>a</b> <code>b &lt; c</code>'
    """
    pieces = [html.escape(piece, quote=False) for piece in text.split("`")]
    marked = [re.sub(r"\*\*(.*?)\*\*", r"<b>\1</b>", piece) for piece in pieces[::2]]
    return "".join(marked[k // 2] if k % 2 == 0 else f"<code>{piece}</code>" for k, piece in enumerate(pieces))
