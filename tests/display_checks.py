"""What tests of the display share: whether LaTeX is balanced, whether HTML is well-formed, and hostile names."""

from __future__ import annotations

import re
from xml.etree import ElementTree

HOSTILE = [
    "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "</math><script>", "]]>", "<!--", "&lt;", "x_&_y",
    "%", "%s", "{0}", r"\input{/etc/passwd}", r"\end{verbatim}", "$", "$$", "{", "}", "}}", "#", "~", "^", "_", "x_",
    "_x", "\\", "x\\", "`", "'", '"', "-", "a b", "a\nb", "\x1b[31m", "\x00", "\u202eabc", "\ud800", "\ue0000\ue001",
    "größe", "変数", "𝛼", "α", "left", "right", "w[0].bias", "x" * 5000, "Integral", "Symbol", "Add", "[red]", "[/]",
    ":smile:", "",
]  # fmt: skip


def balanced(latex: str) -> bool:
    """Whether braces, \\left and \\right, \\begin and \\end and dollars of LaTeX stand in pairs.

    >>> balanced(r"\\frac{1}{2}"), balanced(r"\\left(x"), balanced(r"\\begin{a}\\end{b}"), balanced("}{")
    (True, False, False, False)
    """
    latex = re.sub(r"\\[\\{}$%&#_]", "", latex)
    stack: list[str] = []
    pairs = {"}": "{", r"\right": r"\left"}
    for found in re.finditer(r"\\left(?![a-z])|\\right(?![a-z])|\\(begin|end)\{(\w+)\*?\}|[{}$]", latex):
        token = found[0]
        if found[1] == "begin":
            stack.append(found[2])
        elif token in ("{", r"\left") or (token == "$" and "$" not in stack[-1:]):
            stack.append(token)
        elif not stack or stack.pop() != (found[2] if found[1] else pairs.get(token, "$")):
            return False
    return not stack


def parsed(html: str) -> ElementTree.Element:
    """Return HTML, as the display writes it, as a tree; an error where it is not well-formed."""
    html = re.sub(r"<style>.*?</style>|<!DOCTYPE html>|<meta[^>]*>", "", html, flags=re.DOTALL).replace(
        "<wbr>", "<wbr/>"
    )
    return ElementTree.fromstring(html)
