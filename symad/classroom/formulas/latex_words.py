"""Translate pasted LaTeX into words of a plain formula, and keep the columns."""

from __future__ import annotations

import re
from dataclasses import replace

from symad.classroom.formulas.formula_names import FRACTION, FUNCTIONS, UNREAD, is_greek
from symad.classroom.formulas.tokens import TOKEN_LIMIT, Token, refuse

_DEPTH = 40  # of nested braces
_SPACES = frozenset(["\\quad", "\\qquad", "&", "\\[", "\\]"])
_SIGNS = {
    "\\div": "/", "\\{": "(", "\\}": ")", "\\lbrace": "(", "\\rbrace": ")", "\\lbrack": "[", "\\rbrack": "]",
}  # fmt: skip
_BARS = {"\\lvert": "|(", "\\rvert": "|)", "\\vert": "|", "\\mid": "|", "\\|": "|"}
_UPRIGHT = frozenset(["\\mathrm", "\\operatorname", "\\text", "\\textrm", "\\mathop", "\\mathcal"])
_FONTS = frozenset(["\\mathit", "\\mathbf", "\\boldsymbol", "\\bm", "\\mathsf"])  # of any formula
_RATES = frozenset(["omega", "Omega", "pi", "lambda", "mu", "nu", "kappa"])  # which multiply an argument, and are none
_ELSEWHERE = {
    "\\pm": "write one of the two signs", "\\mp": "write one of the two signs", "\\infty": "take a finite number",
    "\\ldots": "write out all terms", "\\dots": "write out all terms", "\\cdots": "write out all terms",
    "\\lg": "write \\log_{10} or \\log_2", "\\circ": "write f(g(x)) for a composition",
}  # fmt: skip


def plain_words(text: str, words: list[Token], typeset: bool = False) -> list[Token]:
    """Return the words of a formula without LaTeX commands; ArgumentError for unknown commands.

    Braces are read in LaTeX, also where `typeset` says that its commands have a plain spelling by now.

    >>> from symad.classroom.formulas.tokens import scanned
    >>> text = r"\\frac{x}{2} + x^{2}"
    >>> " ".join(token.text for token in plain_words(text, scanned(text)))
    '( ( x ) / ( 2 ) ) + x ** 2 '
    """
    if not any(word.kind == "latex" for word in words):
        return words
    return _Rewriter(text, words, typeset).whole()


class _Rewriter:
    """Rewrites words from left to right. A command takes its arguments, nested at most _DEPTH deep."""

    def __init__(self, text: str, words: list[Token], typeset: bool) -> None:
        self.text, self.words, self.position, self.depth = text, list(words), 0, 0
        has_commands = any(word.text.startswith(("\\", "$")) for word in words if word.kind == "latex")
        self.typeset = typeset or has_commands or "^{" in text

    def whole(self) -> list[Token]:
        """Return all words."""
        words = self._sequence()
        if self._next.kind != "end":
            self._refuse("}", self._next)
        if len(words) > TOKEN_LIMIT:
            what = "a formula of too many words"
            refuse(self.text, words[TOKEN_LIMIT].column, what, f"give at most {TOKEN_LIMIT} numbers and signs")
        return [*words, self._next]

    @property
    def _next(self) -> Token:
        return self.words[self.position]

    def _take(self) -> Token:
        word = self._next
        self.position += word.kind != "end"
        return word

    def _refuse(self, what: str, word: Token) -> None:
        do = "write parentheses ( )" if word.text in "{}" else "leave it out"
        refuse(self.text, word.column, f"the character {what!r}", do, "it is no part of a formula")

    def _sequence(self) -> list[Token]:
        """Return the words before the closing brace or the end."""
        words: list[Token] = []
        while self._next.kind != "end" and self._next.text != "}":
            words += self._item()
        return words

    def _item(self) -> list[Token]:
        word = self._take()
        if word.kind == "operator" and word.text == "**" and self._next.text == "{":
            return self._exponent(word)
        if word.kind == "name" and word.text.endswith("_") and self._next.text == "{":
            return [self._lowered(replace(word, text=word.text[:-1]))]
        if word.kind != "latex":
            return [word]
        if word.text == "{" and self.typeset:
            inside = self._group(word)
            is_name = len(inside) == 1 and inside[0].kind == "name"  # {f}'(x)
            return inside if is_name else _in_parentheses(word, inside, self.words[self.position - 1])
        if word.text == "$":
            before = [other for other in self.words[: self.position - 1] if other.text != "$"]
            after = [other for other in self.words[self.position : -1] if other.text not in ("$", ".")]
            if before and after and before[-1].text != "=":
                self._refuse("$", word)
            return []
        if not word.text.startswith("\\") and word.text not in _SPACES:
            self._refuse(word.text, word)
        return self._command(word)

    def _group(self, opened: Token) -> list[Token]:
        """Return the words in braces, after the first is taken."""
        self.depth += 1
        if self.depth > _DEPTH:
            refuse(self.text, opened.column, "too deep a formula", f"nest at most {_DEPTH} levels")
        words = self._sequence()
        if self._take().text != "}":
            refuse(self.text, opened.column, "'{' that is never closed", "write '}' where it ends")
        self.depth -= 1
        self._check_closed(words)
        return words

    def _check_closed(self, inside: list[Token]) -> None:
        """Refuse a parenthesis that opens inside braces and closes outside, or the reverse."""
        opened: list[Token] = []
        for word in inside:
            if word.kind == "operator" and word.text in ("(", "["):
                opened.append(word)
            elif word.kind == "operator" and word.text in (")", "]"):
                if not opened:
                    refuse(self.text, word.column, f"{word.text!r} in braces", "close what was opened in the braces")
                opened.pop()
        if opened:
            what = f"{opened[-1].text!r} that is never closed in its braces"
            refuse(self.text, opened[-1].column, what, "close it before '}'")

    def _exponent(self, sign: Token) -> list[Token]:
        """Return an exponent in braces. A number, or words in parentheses, need none."""
        opened = self._take()
        inside = self._group(opened)
        is_word = len(inside) == 1 and inside[0].kind == "name" and len(inside[0].text) > 1
        if (len(inside) == 1 and not is_word) or (len(inside) == 3 and inside[0].text == "("):
            return [sign, *inside]
        return [sign, *_in_parentheses(opened, inside, self.words[self.position - 1])]

    def _lowered(self, name: Token) -> Token:
        """Return a name with the index behind it, in braces or a single sign."""
        first = self._take()
        inside = self._group(first) if first.text == "{" else [first]
        index = "".join(word.text for word in inside)
        if not re.fullmatch(rf"[A-Za-z0-9]+|{FRACTION}" if name.text == "log" else "[A-Za-z0-9]+", index):
            do = "write log(x, a) for another base a" if name.text == "log" else "write letters or digits, as in x_1"
            refuse(self.text, first.column, "such an index", do)
        if first.text != "{" and len(index) > 1:
            refuse(self.text, first.column, f"the index {index!r} without braces", f"write _{{{index}}}")
        return Token("name", f"{name.text}_{index}", name.column, name.spaced, self.words[self.position - 1].end)

    def _argument(self, command: Token) -> list[Token]:
        """Return the argument of a command: a group, or one letter, digit or command."""
        word = self._take()
        while word.text in _SPACES:
            word = self._take()
        if word.text == "{":
            return self._group(word)
        if word.kind == "end" or word.text in ("}", "$"):
            refuse(self.text, command.column, f"{command.text} without its argument", "write it in braces { }")
        if word.kind == "latex":
            return self._command(word)
        if word.kind == "number" and not word.text.isdigit():
            refuse(self.text, word.column, f"{word.text!r} behind {command.text}", "write arguments in braces { }")
        if word.kind in ("name", "number") and len(word.text) > 1:
            kind = "number" if word.text[1:].isdigit() else "name"
            rest = replace(word, kind=kind, text=word.text[1:], column=word.column + 1, spaced=False)
            self.words[self.position - 1] = rest
            self.position -= 1
            return [replace(word, text=word.text[0], end=word.column + 1)]
        return [word]

    def _command(self, word: Token) -> list[Token]:
        """Return the words for a command."""
        name = word.text.removeprefix("\\")
        if word.text in _SPACES:
            if self._next.kind != "end":
                self.words[self.position] = replace(self._next, spaced=True)
            return []
        if word.text in _SIGNS:
            return [replace(word, kind="operator", text=_SIGNS[word.text])]
        if word.text in _BARS:
            return [replace(word, kind="bar", text=_BARS[word.text])]
        if name in ("frac", "sqrt"):
            return self._fraction(word) if name == "frac" else self._root(word)
        if word.text in _UPRIGHT | _FONTS:
            return self._upright(word)
        name = name.removeprefix("var")  # \\varphi
        if name in FUNCTIONS or is_greek(name):
            named = replace(word, kind="name", text=name)
            if name in _RATES and self._next.kind == "name":  # cos\omega t: the space only ends the command
                self.words[self.position] = replace(self._next, spaced=False)
            return [self._indexed(named)]
        what = f"the command {word.text}" if len(name) else "the character '\\\\'"
        do = _ELSEWHERE.get(word.text, UNREAD.get(name, "write the formula plainly, as in sin(x)/2"))
        refuse(self.text, word.column, what, do, "it is not read in a formula")

    def _indexed(self, name: Token) -> Token:
        if self._next.kind == "latex" and self._next.text == "_":
            self._take()
            return self._lowered(name)
        return name

    def _fraction(self, command: Token) -> list[Token]:
        above, below = self._argument(command), self._argument(command)
        last = self.words[self.position - 1]
        whole = [*_in_parentheses(command, above, command), _sign("/", command)]
        return _in_parentheses(command, [*whole, *_in_parentheses(command, below, last)], last)

    def _root(self, command: Token) -> list[Token]:
        """Return a root as a power of its argument, so that sqrt[3]{x} has its degree."""
        degree: list[Token] = []
        if self._next.text == "[":
            self._take()
            while self._next.text != "]":
                if self._next.kind == "end":
                    refuse(self.text, command.column, "a root whose degree is never closed", "write \\sqrt[3]{x}")
                degree += self._item()
            self._take()
        inside = self._argument(command)
        last = self.words[self.position - 1]
        inside = _in_parentheses(command, inside, last)
        if name := {"": "sqrt", "2": "sqrt", "3": "cbrt"}.get("".join(word.text for word in degree)):
            return [replace(command, kind="name", text=name), *inside]
        exponent = [_sign("(", command), Token("number", "1", command.column), _sign("/", command),
                    *_in_parentheses(command, degree, command), _sign(")", command)]  # fmt: skip
        return _in_parentheses(command, [*inside, _sign("**", command), *exponent], last)

    def _upright(self, command: Token) -> list[Token]:
        r"""Return the name in \\mathrm{e} or \\operatorname{sgn}; words in \\text at the end are a note."""
        word = self._take()
        inside = self._group(word) if word.text == "{" else [word]
        name = "".join(part.text for part in inside)
        if command.text in ("\\text", "\\textrm") and name not in FUNCTIONS and len(name) > 1:
            rest = [part for part in self.words[self.position : -1] if part.text not in ("$", "\\\\", "}")]
            if not rest and all(part.kind in ("name", "operator", "latex", "prime") for part in inside):
                return []
        if command.text in _FONTS:
            return _in_parentheses(command, inside, self.words[self.position - 1])
        if len(inside) != 1 or inside[0].kind != "name":
            what = f"{command.text} here"
            refuse(self.text, command.column, what, "write a name in it", "it is not read in a formula")
        return [self._indexed(replace(inside[0], column=command.column, spaced=command.spaced))]


def _sign(text: str, at: Token) -> Token:
    return Token("operator", text, at.column, end=at.end)


def _in_parentheses(opened: Token, inside: list[Token], closed: Token) -> list[Token]:
    """Return words from braces in parentheses."""
    first = Token("operator", "(", opened.column, opened.spaced, opened.end)
    return [first, *inside, Token("operator", ")", closed.column, end=closed.end)]
