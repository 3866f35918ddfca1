"""Decide how a name is read: declared, a function, a product of names, a new symbol; or ask back."""

from __future__ import annotations

import keyword
import re
from dataclasses import replace

import sympy as sp
from sympy.core.function import UndefinedFunction

from symad.classroom.formulas.calls import ORDER_LIMIT, Calls, derivative
from symad.classroom.formulas.formula_names import (
    CONSTANTS,
    FUNCTIONS,
    NO_SYMBOLS,
    UNREAD,
    FormulaValue,
    Function,
    constant,
    is_greek,
    known,
    logarithm_to_a_base,
    plain,
    product,
    symbol_of,
    to_a_base,
)
from symad.classroom.formulas.tokens import LOWERED, DerivativeSign, Token

_LIKE_FUNCTIONS = frozenset("fghuFGHUφϕψΦΨ")  # letters that are rarely a factor before a parenthesis
_SCALE = re.compile(r"[^\W\d_fghuFGHJYφϕψΦΨ]_?[0-9₀-₉]+")  # U_0 before a sum is a factor; J_0 is Bessel's function
_VARIABLES = frozenset("xyztuvw")  # letters that form products, and have exponents


class NameReadings(Calls):
    """The part of the parser that reads names."""

    def named(self) -> FormulaValue:
        """Read a name, and the arguments of a function."""
        token = self.take()
        stands_for = known(self.names, token.text)
        if isinstance(stands_for, UndefinedFunction):
            return self.undefined(token, stands_for)
        if stands_for is not None and token.text in self.bare:
            if self.token.kind == "prime":
                value = self.differentiated(token, FormulaValue(stands_for), self.point, self.primes())
                self.position += 3 * self._is_at_point()  # u'(x)
                return value
            if self._is_at_point():
                self.two(token, f"{token.text}({self.point})", token.text, f"{token.text}*{self.point}")
        if stands_for is not None:
            is_number = stands_for.is_number
            return self.computed(token, lambda: constant(stands_for)) if is_number else FormulaValue(stands_for)
        if (function := self._of_the_table(token)) is not None:
            return self.function(token, function)
        if token.text in CONSTANTS:
            return constant(CONSTANTS[token.text])
        return self._other(token)

    def _is_at_point(self) -> bool:
        """Whether (x) stands here, the variable alone."""
        _, inside, closed = [*self.tokens[self.position :], self.token, self.token][:3]
        return self.at("(") and closed.text == ")" and known(self.names, inside.text) == self.point

    def _of_the_table(self, token: Token) -> Function | None:
        """Return the function of the table that a name means."""
        word = token.text
        if word in ("lg", "ld") and self.starts():
            argument = self.rest_from(self.token)
            argument = argument if argument.startswith("(") else f"({argument})"
            self.two(token, f"the logarithm {word!r}", f"log10{argument}", f"log2{argument}")
        base = logarithm_to_a_base(word) if word not in FUNCTIONS else ""
        if not base:
            return FUNCTIONS.get(word)
        if base[0].isdigit():
            number = self.integer(replace(token, text=base)) if base.isdigit() else sp.Rational(base)
            if number in (0, 1):
                self.refuse(token, f"a logarithm to the base {number}", "take a base other than 0 and 1")
            return to_a_base(number)
        base_value = known(self.names, base)
        if isinstance(base_value, UndefinedFunction) or (base_value is None and not self.others):
            self.refuse(token, f"the base {base!r}", "declare it", "it stands for nothing here")
        return to_a_base(CONSTANTS.get(base, symbol_of(base)) if base_value is None else base_value)

    def _other(self, token: Token) -> FormulaValue:
        """Return an undeclared name: a function, or a symbol."""
        self._check_unread(token)
        called = self.token.kind == "prime" or (self.at("(") and not self.token.spaced)
        has_order = self.signs_follow(self.position, "**", "(", ")", "(")  # f^(4)(x)
        if (called or has_order) and len(token.text) == 1 and self._may_be_function(token):
            return self.undefined(token, sp.Function(token.text))
        is_scale = _SCALE.fullmatch(token.text) is not None and self._holds_a_sum()
        if (called and len(token.text) > 1 and not is_scale) or self.token.kind == "prime":
            do = self._suggestion(token.text) or f"declare it, or write {token.text}*( ) if it is a factor"
            self.refuse(token, f"{token.text!r} as a function", do, "no such function is known")
        inside = self.tokens[self.position + 1 : self.position + 3]
        holds_a_name = [word.kind for word in inside] == ["name", "operator"] and inside[1].text == ")"  # y(x)
        if called and (token.text in _LIKE_FUNCTIONS or holds_a_name):
            name = token.text
            do = f"declare a function (--functions {name}, or SymPy's Function({name!r})), or write {name}*( )"
            self.refuse(token, f"{name!r} before a parenthesis", do, "it may be a function or a factor")
        return self._word(token)

    def _word(self, token: Token) -> FormulaValue:
        """Return a name as a symbol, if it is very unlikely to be anything else."""
        self._ask_about_index(token)
        if not self.others:
            do = self._suggestion(token.text) or f"known are {', '.join(self.names) or 'no names'}"
            self.refuse(token, f"the name {token.text!r}", do, "it stands for nothing here")
        if do := self._doubt(token.text):
            self.refuse(token, f"the name {token.text!r}", do, "it may be meant as something else")
        word = token.text
        if 1 < len(word) <= 3 and set(word) <= _VARIABLES:
            do = f"write {'*'.join(word)} for a product (recommended), or declare {word!r} (--variables {word})"
            self.refuse(token, f"the name {word!r}", do, "it has two readings")
        return FormulaValue(symbol_of(token.text))

    def _check_unread(self, token: Token) -> None:
        """Refuse a known word without a reading, and a word that may be a function of the next factor."""
        stem = token.text.partition("_")[0]
        follows = self.starts() and not (self.at("(") and self.token.spaced)
        if stem in UNREAD and (follows or stem != token.text):
            self.refuse(token, f"{stem!r}", UNREAD[stem], "it is not read in a formula")
        is_called = self.at("(") and not self.token.spaced
        is_word = token.text.isalpha() and len(token.text) > 1 and not is_greek(plain(token.text))
        if follows and not is_called and is_word:
            do = f"write {token.text}*( ) for a factor, or declare it"
            self.refuse(token, f"{token.text!r} before a factor", do, "it may be a function or a factor")

    def _ask_about_index(self, token: Token) -> None:
        """Refuse x3, which may be x_3 or x^3, unless the formula uses indices throughout."""
        match = re.fullmatch(r"([a-z])([2-9]|[1-9][0-9])", token.text)
        if match is None or (match[1] not in _VARIABLES and match[1] not in self.names):
            return
        letter, digits = match.groups()
        words = {word.text for word in self.tokens if word.kind == "name"} | set(self.names)
        if not words & {letter + digit for digit in ("0", "1", "_0", "_1", "₀", "₁")}:
            self.two(token, f"{token.text!r}", f"{letter}^{digits}", f"{letter}_{digits}")

    def _may_be_function(self, token: Token) -> bool:
        """Whether an undeclared letter is a function: it has primes, or is called with a name, or clearly called."""
        letter = token.text
        if not self.functions:
            return False
        places = [k for k, word in enumerate(self.tokens) if word.kind == "name" and word.text == letter]
        return all(self._is_called(place) for place in places) and any(self._is_evident(place) for place in places)

    def _is_called(self, place: int) -> bool:
        after = self.tokens[place + 1]
        is_called = after.kind == "prime" or (after.text == "(" and not after.spaced)
        return is_called or self.signs_follow(place + 1, "**", "(", ")", "(")

    def _is_evident(self, place: int) -> bool:
        """Whether the letter at a place can only be a function there."""
        letter, after = self.tokens[place].text, self.tokens[place + 1]
        if after.kind == "prime":
            return True
        first, second = self.tokens[place + 2], self.tokens[min(place + 3, len(self.tokens) - 1)]
        if letter in "fg" and letter not in self.names:
            return True
        alone = first.kind == "name" and second.text in (")", ",")
        if letter not in _LIKE_FUNCTIONS and letter != "y":
            return alone and second.text == ")" and letter in _VARIABLES and known(self.names, first.text) is not None
        inner = first.kind == "name" and len(first.text) == 1 and first.text in _LIKE_FUNCTIONS
        return alone or (inner and first.text not in self.names and second.text == "(")

    def _holds_a_sum(self) -> bool:
        """Whether the parenthesis that opens here holds a sum, as in U_0(1 - e^(-t))."""
        depth = 0
        for word in self.tokens[self.position :]:
            depth += (word.text in ("(", "[")) - (word.text in (")", "]"))
            if depth == 1 and word.text in ("+", "-"):
                return True
            if depth == 0:
                break
        return False

    def _suggestion(self, word: str) -> str:
        """Return the likely meaning of a word that begins or ends with a function, "" if there is none."""
        for name in sorted(FUNCTIONS, key=len, reverse=True):
            for rest, meant in ((word.removeprefix(name), f"{name}({{}})"), (word.removesuffix(name), f"{{}}*{name}")):
                if rest != word and (len(rest) == 1 or known(self.names, rest) is not None):
                    return f"write {meant.format(rest)}"
        return ""

    def _doubt(self, word: str) -> str:
        """Return advice about a word that is hardly a new symbol, "" if it may be one."""
        if word in NO_SYMBOLS or (keyword.iskeyword(word) and word != "lambda"):
            return "declare it if it is meant as a name"
        if not word.isascii() and re.search(r"[^\W\d_]\d*[^\W\d_]", word.translate(LOWERED)):
            return f"write {'*'.join(re.findall(r'[^0-9_₀-₉][0-9_₀-₉]*', word))} for a product, or declare {word!r}"
        indexed = re.fullmatch(r"([A-Za-z]_[A-Za-z])([A-Za-z])", word)
        if indexed and known(self.names, indexed[2]) is not None:
            return f"write {indexed[1]}*{indexed[2]} for a product, or declare {word!r}"
        if re.match(r"[A-Za-z]\d+[A-Za-z]", word):
            return f"write * between factors, or declare {word!r}"
        if word.isalpha() and len(word) > 3 and not is_greek(word) and known(self.names, word[-1]) is not None:
            stem, last = word[:-1], word[-1]
            return f"write {stem}({last}) for a function, {stem}*{last} for a product, or declare {word!r}"
        short = 1 < len(word) <= 3 and word.isascii() and word.isalpha() and not is_greek(word)
        if short:
            return f"write {'*'.join(word)} for a product, or declare {word!r}"
        suggestion = self._suggestion(word)
        return f"{suggestion}, or declare {word!r}" if suggestion else ""

    def derivative_sign(self, token: DerivativeSign) -> FormulaValue:
        """Read the operand of d/dx: the following factors, as far as their reading is unique."""
        variable = known(self.names, token.text) or (symbol_of(token.text) if self.others else None)
        if isinstance(variable, UndefinedFunction) and token.text in self.bare and token.of:
            variable = variable(self.point)  # df/dg of f(g(x))
        elif not isinstance(variable, sp.Symbol):
            do = f"known are {', '.join(self.names) or 'no names'}"
            self.refuse(token, f"the derivative in {token.text!r}", do, "it stands for no variable here")
        if token.order > ORDER_LIMIT:
            self.refuse(token, f"a derivative of order {token.order}", f"at most {ORDER_LIMIT} are read")
        if known(self.names, "d") is not None or self.tokens[self.position - 2].text == "/":
            what = f"{self.text[token.column : token.end]} here"
            do = f"write (d/d{token.text} x^2) as a factor in parentheses, and d*(...) for a factor d"
            self.refuse(token, what, do, "it may be a derivative or a fraction")
        function = known(self.names, token.of) if token.of else None
        if isinstance(function, sp.Expr) and token.of in self.bare:
            return self.differentiated(token, FormulaValue(function), variable, token.order)
        if isinstance(function, UndefinedFunction):
            return FormulaValue(derivative(function, [variable], [token.order]))
        if token.of:
            do = f"write d/d{token.text} before a formula, or declare {token.of}"
            self.refuse(token, f"the derivative of {token.of!r}", do, "it stands for no function here")
        return self._differentiated(token, variable)

    def _differentiated(self, token: DerivativeSign, variable: sp.Symbol) -> FormulaValue:
        start = self.token
        if not self.starts():
            self.refuse_token()
        factors = [self.power()]
        closed = start.text in ("(", "[", "|(") and self.tokens[self.position - 1].text in (")", "]", "|)", "}")
        while not closed and self.starts() and self.token.kind not in ("number", "fraction", "derivative"):
            factors.append(self.power())
        self._check_derivative_ends(token, start, closed=closed or start.text in ("(", "["))
        return self.differentiated(token, self.computed(token, lambda: product(factors)), variable, token.order)

    def _check_derivative_ends(self, token: Token, start: Token, *, closed: bool) -> None:
        """Refuse a factor that may or may not be differentiated: d/dx x^2 + x, d/dx x * y."""
        at, after = self.token, self.after
        if at.kind in ("derivative", "end", "number", "fraction") or after.kind == "derivative":
            return
        if not (self.at("*", "/") or (self.at("+", "-") and not closed) or self.starts()):
            return
        what, argument = self.text[token.column : token.end], self.written(start)
        rest = self.rest_from(at)
        self.two(at, f"what follows {what} {argument}", f"({what} {argument}) {rest}", f"{what} ({argument} {rest})")

    def differentiated(self, token: Token, of: FormulaValue, variable: sp.Symbol, order: int) -> FormulaValue:
        """Carry out a derivative that is written with a sign or primes."""
        self.derived = self.computed(token, lambda: FormulaValue(sp.diff(of.expression, variable, order)))
        return self.derived

    def primed(self, opened: Token, of: FormulaValue) -> FormulaValue:
        """Return the derivative of a parenthesis with primes, in the variable of the formula."""
        if self.token.kind != "prime":
            return of
        at, free = self.token, sorted(of.expression.free_symbols, key=str)
        only = next(iter(free), sp.Dummy()) if len(free) < 2 else None
        variable = self.point if isinstance(self.point, sp.Symbol) else only
        order = self.primes()
        self.position += 3 * (self.point is not None and self._is_at_point())  # (f + g)'(x)
        if not isinstance(variable, sp.Symbol):
            readings = [f"d/d{symbol} {self.written(opened, at)}" for symbol in free[:2]]
            self.two(at, "a prime behind a parenthesis with several names", *readings)
        return self.differentiated(at, of, variable, order)
