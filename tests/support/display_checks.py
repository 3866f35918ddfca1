"""What tests of the display share: whether LaTeX is balanced, whether HTML is well-formed, and hostile names."""

from __future__ import annotations

import cmath
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


class Read:
    """The value of LaTeX as a reader takes it: signs bind least, a fraction and a function bind most.

    >>> Read(r"- \\frac{x^{2}}{2} \\cdot 3 + \\sin{\\left(x \\right)}").value({"x": 2.0})
    (-5.090702573174318+0j)
    """

    def __init__(self, latex: str) -> None:
        self.tokens = re.findall(r"\\[A-Za-z]+|\\,|\d+\.?\d*|\S", latex.replace(r"\,", " "))

    def value(self, at: dict[str, float]) -> complex:
        """Return the value at a point."""
        self.at, self.place = at, 0
        found = self._sum()
        assert self.place == len(self.tokens), self.tokens[self.place :]
        return found

    def _next(self, *expected: str) -> bool:
        if self.place < len(self.tokens) and self.tokens[self.place] in expected:
            self.place += 1
            return True
        return False

    def _braced(self) -> complex:
        assert self._next("{")
        found = self._sum()
        assert self._next("}")
        return found

    def _sum(self) -> complex:
        found: complex = 0.0
        sign = -1 if self._next("-") else 1
        while True:
            found += sign * self._product()
            if not (self.place < len(self.tokens) and self.tokens[self.place] in "+-"):
                return found
            sign = -1 if self._next("-") else 1
            self._next("+")

    def _product(self) -> complex:
        if self._next("-"):
            return -self._product()
        found: complex = 1.0
        while self.place < len(self.tokens) and self.tokens[self.place] not in ("}", r"\right", "+", "-"):
            self._next(r"\cdot")
            found *= self._power()
        return found

    def _power(self) -> complex:
        base = self._atom()
        return base ** self._braced() if self._next("^") else base

    def _atom(self) -> complex:
        token = self.tokens[self.place]
        if token == "{":
            return self._braced()
        self.place += 1
        if token == r"\left":
            assert self._next("(")
            found = self._sum()
            assert self._next(r"\right")
            assert self._next(")")
            return found
        if token == r"\frac":
            return self._braced() / self._braced()
        if token == r"\sqrt":
            root = 2.0
            if self._next("["):
                root = float(self.tokens[self.place])
                self.place += 2
            return self._braced() ** (1 / root)
        if token == r"\pi":
            return cmath.pi
        if token == r"\operatorname":
            end = self.tokens.index("}", self.place)
            token, self.place = "\\" + "".join(self.tokens[self.place + 1 : end]), end + 1
        if token.startswith("\\"):
            exponent = self._braced() if self._next("^") else 1.0
            return complex(getattr(cmath, token[1:])(self._braced())) ** exponent
        return {"e": cmath.e, "i": 1j, **self.at}[token] if token.isalpha() else float(token)
