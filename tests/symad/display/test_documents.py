"""Every kind of block in every form: text of any width, LaTeX in balance, HTML that is well-formed and at rest."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sympy as sp
from rich.cells import cell_len
from rich.console import Console

from symad.derivatives.level import Epsilon
from symad.display import html, latex, terminal
from symad.display.document import (
    Block,
    Code,
    Columns,
    Document,
    Formula,
    Heading,
    Marked,
    Paragraph,
    Picture,
    Table,
)
from symad.display.styles import GROUND, LEVELS, LOOKS, Look
from tests.support.display_checks import HOSTILE, balanced, parsed

x, y = sp.symbols("x y")
f = sp.Function("f")
one, two = Epsilon.of_level(1), Epsilon.of_level(2)
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 4"><path d="M0 0L4 4"/></svg>'
LONG = sp.expand((x + y + 1) ** 9)

BLOCKS: dict[str, Block] = {
    "title": Heading("A title", 1),
    "heading": Heading("f(x + ε₁ v)"),
    "paragraph": Paragraph(
        ("As ", x**2 / 2, " with ", Marked("T1", "tangent", 1), " and ", Marked(two, "epsilon", 2), ".")
    ),
    "formula": Formula(f(x) + f(x).diff(x) * one, f(x + one), ("by ", Marked("Taylor", "strong"))),
    "long formula": Formula(LONG, f(x)),
    "matrix": Formula(sp.Matrix([[1, x], [y, x / y]])),
    "table": Table(("n", "name"), (("1", Marked("right", "right")), (2.5, ("x is ", x))), "rl", "What is right"),
    "ragged table": Table((), (("a",), ("b", "c", "d"), ())),
    "wide table": Table(("a", "b"), (("word " * 60, "x" * 150), ("変数" * 30, "é")), "lr"),
    "code": Code("def f(x):\n    return x--1  # 'q' <b> & \\end{verbatim}\n", "python"),
    "marked code": Code("a\n  b\nc", "", frozenset({1})),
    "picture": Picture(SVG, "a line", "──┐\n  │"),
    "picture for one form": Picture(SVG, "a line"),
    "columns": Columns(((Heading("Left"), Paragraph("one")), (Heading("Right"), Formula(x)))),
    "empty columns": Columns(()),
    "empty table": Table((), ()),
}
ALL: Document = tuple(BLOCKS.values())


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("width", [10, 40, 80, 120, 200])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_text_has_the_width_of_the_terminal(name: str, width: int, ascii_only: bool) -> None:
    lines = terminal.plain((BLOCKS[name],), width, ascii_only).split("\n")
    assert max(map(cell_len, lines)) <= width
    assert all(line == line.rstrip() for line in lines)
    assert not ascii_only or all(line.isascii() for line in lines)


def test_a_long_formula_is_broken_before_a_sign() -> None:
    first, *others = terminal.plain((BLOCKS["long formula"],), 80).split("\n")
    assert first.startswith("  f(x) = x⁹")
    assert len(others) > 5
    assert all(re.match(r" {6}[+-] ", line) for line in others)


def test_ascii_says_the_same() -> None:
    text = terminal.plain((BLOCKS["heading"], BLOCKS["table"], Formula(f(x, y).diff(y))), 60, True)
    assert text.split("\n") == [
        "f(x + eps_1 v)", "", "What is right", "   n   name", "--------------", "   1   right", " 2.5   x is x", "",
        "  d_2f(x, y)",
    ]  # fmt: skip


def test_what_is_marked_in_code_has_a_sign() -> None:
    assert terminal.plain((BLOCKS["marked code"],), 60) == "    a\n  >   b\n    c"


@pytest.mark.parametrize("name", BLOCKS)
def test_latex_is_balanced(name: str) -> None:
    assert balanced(latex.body((BLOCKS[name],)))


def test_latex_of_a_whole_document() -> None:
    text = latex.whole(ALL)
    assert balanced(text)
    assert text.isascii() or set(filter(lambda c: not c.isascii(), text)) == {"é"}
    assert r"\end{verbatim}" not in text.replace(r"\textbackslash{}", "\\")
    used = set(re.findall(r"\\begin\{(\w+)\}", text))
    assert used == {"document", "aligned", "matrix", "tabular", "flushleft", "tikzpicture"}
    assert r"\textcolor[HTML]{9C2E7C}{$\varepsilon_{2}$}" in text


def test_a_row_that_begins_with_a_bracket_is_no_option_of_the_row_before() -> None:
    text = latex.body((Table(("entry",), (("[2, 2]",), ("*",), ("a",))),))
    assert "{}[2, 2]" in text
    assert "{}*" in text
    assert "{}a" not in text


def test_long_formulas_and_tables_stay_on_the_page() -> None:
    assert latex.body((BLOCKS["long formula"],)).count("\\\\\n&") >= 3
    assert r"\begin{tabular}{p{0." in latex.body((BLOCKS["wide table"],))
    assert r"\begin{longtable}" in latex.body((Table(("n",), tuple((str(n),) for n in range(60))),))


@pytest.mark.parametrize("name", BLOCKS)
def test_html_is_well_formed(name: str) -> None:
    tree = parsed(html.fragment((BLOCKS[name],)))
    assert tree.get("class") == "symad"


def test_a_page_is_at_rest_and_alone() -> None:
    """Nothing is run, nothing is fetched: no script, no address but names of namespaces, no import, no font file."""
    page = html.page(ALL, "A title")
    parsed(page)
    bare = re.sub(r'xmlns(:\w+)?="http://www.w3.org/[^"]*"', "", page)
    for forbidden in (
        "http",
        "<script",
        "@import",
        "url(",
        "javascript:",
        "src=",
        "href=",
        "onload",
        "<link",
        "<iframe",
    ):
        assert forbidden not in bare, forbidden


def test_a_long_word_may_be_broken() -> None:
    assert f"{'x' * 30}<wbr>{'x' * 30}<wbr>" in html.fragment((Paragraph("a word: " + "x" * 99),))
    assert "<wbr>" not in html.fragment((Paragraph("word " * 99),))


def test_every_style_and_level_has_a_rule_and_a_colour_on_both_grounds() -> None:
    sheet = html.STYLESHEET
    for name, look in [*LOOKS.items(), *((f"level-{k}", look) for k, look in enumerate(LEVELS, 1))]:
        if look.light:
            assert sheet.count(f"--{name}:#{look.light};") == 2  # on screen, and on paper
            assert sheet.count(f"--{name}:#{look.dark};") == 2  # in notebooks, and on pages
            assert f".symad .{name}{{color:var(--{name})" in sheet
    assert "@media print" in sheet


def test_a_notebook_is_dark_where_it_says_so_and_a_page_where_the_system_does() -> None:
    (by_system,) = re.findall(r"prefers-color-scheme:dark\)\{([^{]*)\{", html.STYLESHEET)
    assert all(".symad-page" in selector for selector in by_system.split(","))
    assert '[data-jp-theme-light="false"] .symad,.vscode-dark .symad' in html.STYLESHEET
    assert '<body class="symad-page">' in html.page((), "")


def luminance(colour: str) -> float:
    parts = (int(colour[k : k + 2], 16) / 255 for k in (0, 2, 4))
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(
    "look", [look for look in (*LOOKS.values(), *LEVELS) if look.light], ids=lambda look: look.light
)
def test_colours_can_be_read_from_afar(look: Look) -> None:
    """A contrast of 4.5 and more, as the guidelines for accessible pages ask for text."""
    assert (1 + 0.05) / (luminance(look.light) + 0.05) >= 4.5
    assert (luminance(look.dark) + 0.05) / (luminance(GROUND.dark) + 0.05) >= 4.5


def documents_with(name: str) -> Iterator[Document]:
    yield (Heading(name),)
    yield (Paragraph((name, Marked(name, "wrong"))),)
    yield (Table((name,), ((name,),), "l", name),)
    yield (Code(name), Code(name, "python"), Code(name, "", frozenset({0})))
    yield (Picture(SVG, name, name),)
    yield (Columns(((Heading(name),),)),)
    if name:
        yield (Formula(sp.Symbol(name), sp.Symbol(name) ** 2, name),)


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name)[:30])
def test_no_text_becomes_markup(name: str) -> None:
    for document in documents_with(name):
        page = html.page(document, name)
        tags = {element.tag for element in parsed(page).iter()}
        assert not tags & {"script", "img", "iframe"}
        assert balanced(latex.body(document))
        text = terminal.plain(document, 60) + latex.body(document)
        (page + text).encode("utf-8")
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", page + text)


def test_prose_is_no_markup_of_rich() -> None:
    assert terminal.plain((Paragraph("[red]x[/red] :smile:"),), 60) == "[red]x[/red] :smile:"


def test_what_no_renderer_knows_is_refused() -> None:
    with pytest.raises(TypeError, match="no style 'loud': there are primal, "):
        Marked("x", "loud")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="dict cannot stand in a document"):
        html.fragment((Paragraph({}),))  # type: ignore[arg-type]


def printed(document: Document, **settings: object) -> str:
    stream = io.StringIO()
    Console(file=stream, width=60, force_terminal=True, **settings).print(terminal.Rendering(document))  # type: ignore[arg-type]
    return stream.getvalue()


def test_rich_has_colours_for_roles_and_levels() -> None:
    document = (Paragraph((Marked("T1", "tangent", 1), " ", one, " ", two)),)
    found = printed(document, color_system="truecolor")
    for look in (LOOKS["tangent"], LEVELS[0], LEVELS[1]):
        red, green, blue = (int(look.dark[k : k + 2], 16) for k in (0, 2, 4))
        assert f"38;2;{red};{green};{blue}" in found


def test_no_colours_where_none_are_wanted() -> None:
    document = (Paragraph(Marked("T1", "tangent", 1)),)
    assert "38;" not in printed(document, color_system="truecolor", no_color=True)
    assert "\x1b" not in printed(document, color_system=None)
    assert "\x1b" not in terminal.plain(document, 60)


def test_rich_in_ascii() -> None:
    class Ascii(io.StringIO):
        encoding = "ascii"

    stream = Ascii()
    Console(file=stream, width=60).print(terminal.Rendering(ALL))
    assert stream.getvalue().isascii()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_printing_never_fails_for_the_encoding(encoding: str) -> None:
    code = """
from symad.display.shown import Shown
from symad.display.document import Heading, Table
class Result(Shown):
    def document(self):
        return (Heading("ε₁ → 0"), Table(("a",), (("∂",),)))
print(Result())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, cwd=Path(__file__).parents[3],
        env={"PYTHONIOENCODING": encoding, "PATH": "", "LANG": "C", "TERM": "dumb", "SYMAD_STRICT": "1"},
    )  # fmt: skip
    assert ("ε₁ → 0" if encoding == "utf-8" else "eps_1 -> 0") in done.stdout.decode(encoding)


def test_a_table_on_a_short_line_is_broken_between_words() -> None:
    rows = tuple((f"sympy.diff, lambdify {k}", "3.877744221", "6.5e+10", "109 ms") for k in range(3))
    table = (Table(("route", "value", "ULP", "build"), rows, "llrr"),)
    assert all("lambdify 2   3.877744221   6.5e+10   109 ms" in terminal.plain(table, width) for width in (60, 100))
    for width in (45, 38):
        text = terminal.plain(table, width)
        assert max(map(len, text.split("\n"))) <= width
        assert all(text.count(word) == 3 for word in ("sympy.diff,", "lambdify", "3.877744221", "6.5e+10", "109"))
    assert max(map(len, terminal.plain(table, 20).split("\n"))) <= 20


def test_long_columns_share_the_line() -> None:
    text = terminal.plain((Table((), (("one two three " * 6, "four five six " * 6, "12"),), "llr"),), 60)
    first = text.split("\n")[0]
    assert text.count("12") == 1
    assert 20 < first.index("four") < 35


def test_many_columns_become_many_lines_where_the_line_is_too_short() -> None:
    header = ("route", "verdict", "operations", "seconds")
    table = Table(
        header, (("differences", "inaccurate", "123456", "0.000012345"), ("Taylor", "proved", "7", "")), "llrr"
    )
    narrow = terminal.plain((table,), 24)
    assert narrow.splitlines() == [
        "differences", "  verdict: inaccurate", "  operations: 123456", "  seconds: 0.000012345",
        "Taylor", "  verdict: proved", "  operations: 7",
    ]  # fmt: skip
    wide = terminal.plain((table,), 60).splitlines()
    assert len(wide) == 2 + len(table.rows)
    assert "differences" in wide[2]
    assert "0.000012345" in wide[2]


@pytest.mark.parametrize("width", range(30, 100))
def test_no_cell_loses_its_end(width: int) -> None:
    """Where cells are broken, the last column was cut by a letter or more: a number had fewer digits."""
    header = ("variable", "from the line", "local derivative", "is", "value")
    row = ("x2_bar", "v3 = sin(x2)", "∂v3/∂x2 = cos(x2) = 0.283662", "cos(x2)·v3_bar", "-0.283662")
    text = terminal.plain((Table(header, (row,)),), width)
    assert "-0.283662" in text
    assert max(map(len, text.splitlines())) <= width
