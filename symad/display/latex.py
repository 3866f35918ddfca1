r"""A document as LaTeX: the body, and a complete file with the preamble that it needs.

Pictures are translated from SVG to TikZ: rectangles, paths of M, L, C and Z, text, moved groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import sympy as sp

import symad.display.document as doc
from symad.display.mathematics import latex_of
from symad.display.notation import latex_code, latex_text
from symad.display.styles import LOOKS, look_of

# lmodern: letters as outlines, where they are installed; cancel: what is struck
PREAMBLE = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\usepackage[a4paper,landscape,margin=15mm]{geometry}
\IfFileExists{cancel.sty}{\usepackage{cancel}}{\newcommand{\cancel}[1]{\underline{#1}}}
\usepackage{textcomp,amsmath,amssymb,booktabs,longtable,xcolor,tikz}"""
LINE = 110  # signs of a formula on one line of a page in landscape
LONG_TABLE = 28  # rows of a table on one page
_HEADINGS = {1: "section*", 2: "subsection*", 3: "paragraph"}


def body(document: doc.Document) -> str:
    r"""Return a document as the body of a LaTeX text.

    >>> print(body((doc.Heading("A root"), doc.Formula(sp.sqrt(sp.Symbol("x")), sp.Symbol("y")))))
    \subsection*{A root}
    <BLANKLINE>
    \[ y = \sqrt{x} \]
    """
    return "\n\n".join(map(_block, document))


def whole(document: doc.Document) -> str:
    """Return a document as a LaTeX file that compiles by itself."""
    return f"{PREAMBLE}\n\\begin{{document}}\n{body(document)}\n\\end{{document}}\n"


def _block(block: doc.Block) -> str:
    match block:
        case doc.Heading():
            return rf"\{_HEADINGS.get(block.depth, 'paragraph')}{{{latex_text(block.text)}}}"
        case doc.Paragraph():
            return _cell(block.content)
        case doc.Formula():
            return _formula(block)
        case doc.Table():
            return _table(block)
        case doc.Code():
            return _code(block)
        case doc.Picture():
            return tikz_of(block.svg) if block.svg else rf"\emph{{[{latex_text(block.description)}]}}"
        case doc.Columns():
            return "\n\n".join(map(body, block.parts))
        case doc.Folded():
            return body(block.parts)
        case doc.Blank():
            return rf"\vspace*{{{1.5 * block.lines:g}\baselineskip}}"


def _formula(formula: doc.Formula) -> str:
    reason = rf" \qquad \text{{{_cell(formula.reason)}}}" if formula.reason else ""
    left = "" if formula.left is None else latex_of(formula.left) + " = "
    right = latex_of(formula.right)
    lines = broken(right, left + reason)
    if len(lines) == 1:
        return rf"\[ {left}{right}{reason} \]"
    rows = " \\\\\n& ".join(lines)
    return f"\\[ \\begin{{aligned}}\n{left}& {rows}{reason}\n\\end{{aligned}} \\]"


def broken(formula: str, beside: str = "") -> list[str]:
    r"""Break a sum that is too long for a line of a page, with what is beside it, before signs outside of all brackets.

    >>> broken("a + " * 60 + "b")[1][:7]
    '+ a + a'
    >>> broken(r"\left(x + y\right)")
    ['\\left(x + y\\right)']
    """
    if _width(formula + beside) <= LINE:
        return [formula]
    terms, depth = [""], 0
    for token in re.split(r"(\\left|\\right|\\begin|\\end|\\[{}]|[{}]| [+-] )", formula):
        depth += (token in (r"\left", r"\begin", "{")) - (token in (r"\right", r"\end", "}"))
        if token in (" + ", " - ") and depth == 0:
            terms.append(token[1:])
        else:
            terms[-1] += token
    lines = [terms[0]]
    for term in terms[1:]:
        if _width(f"{lines[-1]} {term}") > LINE:
            lines.append(term)
        else:
            lines[-1] += f" {term}"
    return lines


def _width(formula: str) -> int:
    """Return about how many signs wide a formula is."""
    commands = r"\\(?:left|right|operatorname|frac|mathrm|mathit|text)|[{}^_ ]"
    return len(re.sub(r"\\[A-Za-z]+", "x", re.sub(commands, "", formula)))


def _code(code: doc.Code) -> str:
    """Return lines of a program, each escaped. A line could close a verbatim environment."""
    lines = [rf"\mbox{{{latex_code(line)}}}" for line in code.text.expandtabs(4).split("\n")]
    colour = LOOKS["wrong"].light
    marked = [rf"\textcolor[HTML]{{{colour}}}{{{line}}}" if k in code.marked else line for k, line in enumerate(lines)]
    return "\\begin{flushleft}\\ttfamily\n" + " \\\\\n".join(marked) + "\n\\end{flushleft}"


def _table(table: doc.Table) -> str:
    width = max((len(row) for row in (table.header, *table.rows)), default=0)
    rows = [list(map(_cell, row)) for row in ((table.header,) if table.header else ()) + table.rows]
    texts = [" & ".join(row) for row in rows]
    lines = ["{}" * row.startswith(("[", "*")) + row + r" \\" for row in texts]  # no option of the line before
    if table.header:
        lines.insert(1, r"\midrule")
    kind = "longtable" if len(rows) > LONG_TABLE else "tabular"
    columns = _columns((table.align + "l" * width)[:width], rows)
    text = "\n".join((rf"\begin{{{kind}}}{{{columns}}}", r"\toprule", *lines, r"\bottomrule", rf"\end{{{kind}}}"))
    return f"{text}\n\n{latex_text(table.caption)}" if table.caption else text


def _columns(align: str, rows: list[list[str]]) -> str:
    """Return the columns of a table: those that would leave the page are as wide as their share, and break lines."""
    widths = [max((_width(row[k]) for row in rows if k < len(row)), default=0) for k in range(len(align))]
    if sum(widths) <= LINE:
        return align
    wide = [width > LINE // len(align) for width in widths]
    share = (LINE - sum(width for width, is_wide in zip(widths, wide, strict=True) if not is_wide)) / sum(wide) / LINE
    column = rf"p{{{share:.2f}\linewidth}}"
    return "".join(column if is_wide else side for side, is_wide in zip(align, wide, strict=True))


def _cell(cell: doc.Cell) -> str:
    return "".join(map(_inline, doc.inlines(cell)))


def _inline(inline: doc.Inline) -> str:
    if isinstance(inline, doc.Typeset):
        return f"${inline.latex}$"
    if not isinstance(inline, doc.Marked):
        return f"${latex_of(inline)}$" if isinstance(inline, sp.Basic) else latex_text(inline)
    look, text = look_of(inline.style, inline.level), _inline(inline.content)
    text = rf"\textbf{{{text}}}" if look.bold else rf"\texttt{{{text}}}" if inline.style == "code" else text
    return rf"\textcolor[HTML]{{{look.light}}}{{{text}}}" if look.light else text


PIXEL = 0.75  # points of a pixel
WIDEST, HIGHEST = 720.0, 490.0  # points: a page on its side
_ANCHORS = {"start": "base west", "middle": "base", "end": "base east"}
_TURNED = re.compile(r"rotate\((\S+)")
_MOVED = re.compile(r"translate\((\S+) (\S+)\)")
_COMMANDS = {"M": "{}", "L": "-- {}", "C": ".. controls {} and {} .. {}", "Z": "-- cycle"}


def short(value: float) -> str:
    """Return a number of pixels with at most one decimal: the same text on every machine.

    >>> short(2.0), short(-0.01), short(1 / 3)
    ('2', '0', '0.3')
    """
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


def tikz_of(svg: str) -> str:
    r"""Return a picture as a tikzpicture (packages tikz and xcolor), as large as a page at most.

    >>> print(tikz_of('<svg viewBox="0 0 20 20"><path d="M0 0L10 20" stroke="#0060A0" stroke-width="1.2"/></svg>'))
    \begin{tikzpicture}[x=0.75pt,y=-0.75pt,inner sep=0pt]
    \definecolor{symad-0060A0}{HTML}{0060A0}
    \draw[draw=symad-0060A0,line width=0.9pt] (0,0) -- (10,20);
    \end{tikzpicture}
    """
    root = ElementTree.fromstring(svg)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    scale = min(PIXEL, WIDEST / width, HIGHEST / height)
    lines = list(_written(root, (0.0, 0.0), scale))
    colours = sorted({element.get(use, "none") for element in root.iter() for use in ("fill", "stroke")} - {"none"})
    defined = [rf"\definecolor{{{_colour(colour)}}}{{HTML}}{{{colour[1:]}}}" for colour in colours]
    opening = rf"\begin{{tikzpicture}}[x={scale:.4g}pt,y=-{scale:.4g}pt,inner sep=0pt]"
    return "\n".join([opening, *defined, *lines, r"\end{tikzpicture}"])


def _written(group: Element, shift: tuple[float, float], scale: float) -> Iterator[str]:
    for element in group:
        x, y = (float(element.get(name, "0")) for name in ("x", "y"))
        match element.tag.rpartition("}")[2]:
            case "g":
                moved = _MOVED.match(element.get("transform", ""))
                dx, dy = map(float, moved.groups()) if moved else (0.0, 0.0)
                yield from _written(element, (shift[0] + dx, shift[1] + dy), scale)
            case "rect":
                other = _place(x + float(element.attrib["width"]), y + float(element.attrib["height"]), shift)
                radius = float(element.get("rx", "0")) * scale
                rounded = f",rounded corners={short(radius)}pt" if radius else ""
                yield rf"\path[{_painted(element, scale)}{rounded}] {_place(x, y, shift)} rectangle {other};"
            case "path":
                yield rf"\draw[{_painted(element, scale)}] {_commands(element.attrib['d'], shift)};"
            case "text":
                yield _label(element, _place(x, y, shift), scale)


def _label(label: Element, place: str, scale: float) -> str:
    size = float(label.attrib["font-size"]) * scale
    series = "bx" if label.get("font-weight") else "m"  # Computer Modern as outlines: it comes with every LaTeX
    font = rf"\fontsize{{{short(size)}}}{{{short(size * 1.2)}}}\usefont{{OT1}}{{cmss}}{{{series}}}{{n}}"
    turned = _TURNED.match(label.get("transform", ""))
    rotated = f",rotate={short(-float(turned[1]))}" if turned else ""
    colour = _colour(label.get("fill", "#000000"))
    options = f"anchor={_ANCHORS[label.get('text-anchor', 'start')]},text={colour},font={{{font}}}{rotated}"
    return rf"\node[{options}] at {place} {{{latex_text(label.text or '')}}};"


def _painted(element: Element, scale: float) -> str:
    options = []
    if (fill := element.get("fill", "none")) != "none":
        opacity = element.get("fill-opacity")
        options.append(f"fill={_colour(fill)}" + (f",fill opacity={opacity}" if opacity else ""))
    if (stroke := element.get("stroke")) is None:
        return ",".join([*options, "draw=none"])
    line = short(float(element.get("stroke-width", "1")) * scale)
    dashed = ",dashed" if element.get("stroke-dasharray") else ""
    return ",".join([*options, f"draw={_colour(stroke)},line width={line}pt{dashed}"])


def _colour(hexadecimal: str) -> str:
    return f"symad-{hexadecimal[1:]}"


def _commands(commands: str, shift: tuple[float, float]) -> str:
    written = []
    for command, numbers in re.findall(r"([MLCZ])([^MLCZ]*)", commands):
        values = list(map(float, numbers.split()))
        places = [_place(*pair, shift) for pair in list(pairwise(values))[::2]]
        written.append(_COMMANDS[command].format(*places))
    return " ".join(written)


def _place(x: float, y: float, shift: tuple[float, float]) -> str:
    return f"({short(x + shift[0])},{short(y + shift[1])})"
