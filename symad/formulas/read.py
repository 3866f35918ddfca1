"""Formulas that people type, read by an own tokeniser and parser: nothing is evaluated but what stands in the tables.

`read_formula` takes what people write (2x, 3x^2 v, x sin(x), eps_1 eps_2, f''(x)) and SymPy's own notation. Numbers
stay exact: 0.1 is 1/10. What can be read in two ways is refused, and so is what would take long: every refusal is an
ArgumentError with the column and what to write instead.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import sympy as sp
from sympy.core.function import UndefinedFunction

from symad.formulas.formula_names import (
    CONSTANTS,
    FUNCTIONS,
    NO_SYMBOLS,
    Name,
    Names,
    Refused,
    Value,
    applied,
    constant,
    declared,
    is_greek,
    known,
    power,
    product,
    reciprocal,
    split,
    symbol_of,
    total,
)
from symad.formulas.tokens import LOWERED, Token, refuse, tokens

DEPTH_LIMIT = 40  # parentheses, exponents and arguments inside each other
ORDER_LIMIT = 10  # primes after the name of a function
_LIKE_FUNCTIONS = frozenset("fghuFGHUφϕψΦΨ")  # letters that are hardly ever a factor before a parenthesis
_DIGITS_LIMIT = 300  # of a number, with its exponent

Result = TypeVar("Result")


def read_formula(text: str, names: Names = (), *, others: bool = True, point: sp.Expr | None = None) -> sp.Expr:
    """Return the SymPy expression of a formula as people type it; it is parsed, and never evaluated as Python.

    `names` declares symbols, undefined functions ("f(x)"), and what else a name stands for ({"c": 3}). Other names
    become symbols where they are no function and no constant; with `others=False` they are refused. Declared names
    say where a word is a product: with x and v declared, `xv` is `x*v`. `f'[v]` is the derivative at `point`.

    >>> read_formula("2x^3 + x sin(x)/2")
    2*x**3 + x*sin(x)/2
    >>> read_formula("f(x) + f'(x) v ε₁", names=["f(x)", "x", "v", "eps_1"])
    eps_1*v*Derivative(f(x), x) + f(x)
    """
    return _Parser(text, declared(names), others, point).whole()


class _Parser:
    """Precedence by descent, from sums down to names; as deep as DEPTH_LIMIT and no deeper."""

    def __init__(self, text: str, names: Mapping[str, Name], others: bool, point: sp.Expr | None) -> None:
        self.text, self.names, self.others, self.point = text, names, others, point
        self.tokens = tokens(text)
        self.position = self.depth = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def whole(self) -> sp.Expr:
        """Return the expression of the whole text."""
        if self.token.kind == "end":
            refuse(self.text, self.token.column, "an empty formula", "give a formula such as x**2*sin(x)")
        value = self._sum()
        if self.token.kind != "end":
            self._refuse_token()
        return value.expression

    def _take(self) -> Token:
        token = self.token
        self.position += 1
        return token

    def _accept(self, *texts: str) -> Token | None:
        return self._take() if self.token.kind == "operator" and self.token.text in texts else None

    def _expect(self, text: str, opened: Token) -> None:
        if not self._accept(text):
            if self.token.kind != "end":
                self._refuse_token()
            refuse(self.text, opened.column, f"{opened.text!r} that is never closed", f"write {text!r} where it ends")

    def _refuse_token(self) -> None:
        token = self.token
        what = "the end of the formula" if token.kind == "end" else f"{token.text!r}"
        advice = {")": "leave it out, or open it before", ",": "commas separate the arguments of a function"}
        do = advice.get(token.text, "write a number, a name, a function or a parenthesis here")
        if token.kind == "number":
            do = "write * between the factors, and numbers first"
        refuse(self.text, token.column, what, do, "no term can go on like this")

    def _computed(self, token: Token, compute: Callable[[], Value]) -> Value:
        try:
            return compute()
        except Refused as error:
            refuse(self.text, token.column, error.what, error.do)

    def _deeper(self, parse: Callable[[], Result]) -> Result:
        self.depth += 1
        if self.depth > DEPTH_LIMIT:
            refuse(self.text, self.token.column, "too deep a formula", f"nest at most {DEPTH_LIMIT} levels")
        result = parse()
        self.depth -= 1
        return result

    def _sum(self) -> Value:
        start, terms = self.token, [self._product()]
        while sign := self._accept("+", "-"):
            term = self._product()
            terms.append(term if sign.text == "+" else self._negative(sign, term))
        return self._computed(start, lambda: total(terms))

    def _negative(self, sign: Token, term: Value) -> Value:
        return self._computed(sign, lambda: product([constant(sp.Integer(-1)), term]))

    def _product(self) -> Value:
        sign = self._signs()
        start, factors = self.token, [self._power()]
        fraction = False  # a/b c may be (a/b) c or a/(b c)
        while True:
            if operator := self._accept("*", "/"):
                minus, at = self._signs(), self.token
                factor = self._power()
                factor = self._negative(at, factor) if minus else factor
                fraction = operator.text == "/" and not (factor.literal and factors[-1].literal and self.token.spaced)
                factors.append(self._divisor(operator, factor) if operator.text == "/" else factor)
            elif self._goes_on():
                if fraction:
                    self._refuse_fraction()
                factors.append(self._power())
            else:
                value = self._computed(start, lambda: product(factors))
                return self._negative(start, value) if sign else value

    def _divisor(self, operator: Token, factor: Value) -> Value:
        return self._computed(operator, lambda: reciprocal(factor))

    def _goes_on(self) -> bool:
        """Return whether a factor follows that no sign stands before."""
        return self.token.kind in ("name", "partial") or (self.token.kind == "operator" and self.token.text == "(")

    def _refuse_fraction(self) -> None:
        do = "write parentheses, a/(b*c), or the sign, a/b*c"
        refuse(self.text, self.token.column, "a factor without a sign after a division", do, "it may be above or below")

    def _signs(self) -> bool:
        """Read signs; return whether they are negative together."""
        negative = False
        while sign := self._accept("+", "-"):
            negative ^= sign.text == "-"
        return negative

    def _power(self) -> Value:
        base = self._postfix()
        if self.token.kind == "power":
            token = self._take()
            return self._computed(token, lambda: power(base, constant(self._integer(token))))
        if operator := self._accept("**"):
            exponent = self._deeper(self._exponent)
            return self._computed(operator, lambda: power(base, exponent))
        return base

    def _exponent(self) -> Value:
        at, minus = self.token, self._signs()
        exponent = self._power()
        return self._negative(at, exponent) if minus else exponent

    def _integer(self, token: Token) -> sp.Integer:
        if len(token.text) > _DIGITS_LIMIT:
            refuse(
                self.text, token.column, f"a number of {len(token.text)} digits", f"at most {_DIGITS_LIMIT} are read"
            )
        return sp.Integer(int(token.text))

    def _number(self) -> Value:
        token = self._take()
        mantissa, _, exponent = token.text.lower().partition("e")
        if len(mantissa) > _DIGITS_LIMIT or len(exponent) > 5 or abs(int(exponent or 0)) > _DIGITS_LIMIT:
            refuse(self.text, token.column, "so long or large a number", f"give at most {_DIGITS_LIMIT} digits")
        return self._computed(token, lambda: constant(sp.Rational(token.text), literal=token.text.isdigit()))

    def _postfix(self) -> Value:
        if self.token.kind == "number":
            return self._number()
        if self.token.kind == "name":
            return self._named()
        if self.token.kind == "partial":
            return self._partials()
        if opened := self._accept("("):
            value = self._deeper(self._sum)
            self._expect(")", opened)
            return value
        self._refuse_token()
        raise AssertionError  # unreachable

    def _named(self) -> Value:
        token = self._take()
        stands_for = known(self.names, token.text)
        if isinstance(stands_for, UndefinedFunction):
            return self._undefined(token, stands_for)
        if stands_for is not None:
            return self._computed(
                token, lambda: Value(stands_for) if not stands_for.is_number else constant(stands_for)
            )
        if token.text in FUNCTIONS:
            return self._function(token)
        if token.text in CONSTANTS:
            return constant(CONSTANTS[token.text])
        return self._other(token)

    def _other(self, token: Token) -> Value:
        """Return a name that is not declared: a product of names that are, or a symbol."""
        if factors := split(self.names, token.text):
            return self._computed(token, lambda: product([Value(factor) for factor in factors]))
        called = self.token.kind == "prime" or (self._goes_on() and self.token.text == "(" and not self.token.spaced)
        if (called and len(token.text) > 1) or self.token.kind == "prime":
            do = self._suggestion(token.text) or f"declare it, or write {token.text}*( ) if it is a factor"
            refuse(self.text, token.column, f"{token.text!r} as a function", do, "no such function is known")
        if called and (token.text in _LIKE_FUNCTIONS or self._holds_a_name()):
            name = token.text
            do = f"declare a function (--functions {name}, or SymPy's Function({name!r})), or write {name}*( )"
            refuse(self.text, token.column, f"{name!r} before a parenthesis", do, "it may be a function or a factor")
        if not self.others:
            do = self._suggestion(token.text) or f"known are {', '.join(self.names) or 'no names'}"
            refuse(self.text, token.column, f"the name {token.text!r}", do, "it stands for nothing here")
        if do := self._doubt(token.text):
            refuse(self.text, token.column, f"the name {token.text!r}", do, "it may be meant as something else")
        return Value(symbol_of(token.text))

    def _holds_a_name(self) -> bool:
        """Return whether the parenthesis that opens here holds a name alone: nobody writes a product like y(x)."""
        inside = self.tokens[self.position + 1 : self.position + 3]
        return [token.kind for token in inside] == ["name", "operator"] and inside[1].text == ")"

    def _suggestion(self, word: str) -> str:
        """Return what may be meant by a word that begins or ends with a function, "" if nothing."""
        for name in sorted(FUNCTIONS, key=len, reverse=True):
            for rest, meant in ((word.removeprefix(name), f"{name}({{}})"), (word.removesuffix(name), f"{{}}*{name}")):
                if rest != word and (len(rest) == 1 or known(self.names, rest) is not None):
                    return f"write {meant.format(rest)}"
        return ""

    def _doubt(self, word: str) -> str:
        """Return what to do about a word that is hardly the name of a new symbol, "" where it may be one."""
        if word in NO_SYMBOLS or (keyword.iskeyword(word) and word != "lambda"):
            return "declare it if it is meant as a name"
        if not word.isascii() and re.search(r"[^\W\d_]\d*[^\W\d_]", word.translate(LOWERED)):
            return f"write {'*'.join(re.findall(r'[^0-9_₀-₉][0-9_₀-₉]*', word))} for a product, or declare {word!r}"
        short = 1 < len(word) <= 3 and word.isascii() and word.isalpha() and not is_greek(word)
        if short and any(letter in self.names for letter in word):
            return f"write {'*'.join(word)} for a product, or declare {word!r}"
        suggestion = self._suggestion(word)
        return f"{suggestion}, or declare {word!r}" if suggestion else ""

    def _primes(self) -> int:
        if self.token.kind != "prime":
            return 0
        if len(self.token.text) > ORDER_LIMIT:
            refuse(self.text, self.token.column, "so many primes", f"at most {ORDER_LIMIT} are read")
        return len(self._take().text)

    def _arguments(self, token: Token) -> list[Value]:
        """Return the arguments in parentheses."""
        opened = self._accept("(")
        if not opened:
            do = f"write {token.text}(...) with its argument in parentheses, or declare it as a symbol"
            refuse(self.text, token.column, f"the function {token.text!r} without an argument", do)
        arguments = [self._deeper(self._sum)]
        while self._accept(","):
            arguments.append(self._deeper(self._sum))
        self._expect(")", opened)
        return arguments

    def _function(self, token: Token) -> Value:
        """Return a function of the table at its arguments; sin^2(x) is (sin(x))^2, and sin'(x) the derivative."""
        function, order, raised = FUNCTIONS[token.text], self._primes(), self._raised(token)
        arguments = self._arguments(token)
        if not function.fewest <= len(arguments) <= function.most:
            number = function.most if function.fewest == function.most else f"{function.fewest} to {function.most}"
            refuse(self.text, token.column, f"{token.text} of {len(arguments)} arguments", f"give {number}")
        if order and function.most > 1:
            refuse(self.text, token.column, f"{token.text}{chr(39) * order}", "name the partial derivative in words")

        def head(*at: sp.Expr) -> sp.Expr:
            if not order:
                return function.head(*at)
            slot = sp.Dummy(real=True)
            return sp.diff(function.head(slot), slot, order).xreplace({slot: at[0]})

        made = self._computed(token, lambda: applied(head, arguments, function.largest))
        return made if raised is None else self._computed(token, lambda: power(made, raised))

    def _raised(self, token: Token) -> Value | None:
        """Return the exponent between a function and its argument, if there is one."""
        if self.token.kind != "power" and not (self.token.kind == "operator" and self.token.text == "**"):
            return None
        at = self._take()
        exponent = at if at.kind == "power" else self._take()
        if exponent.kind not in ("power", "number") or not exponent.text.isdigit():
            do = f"write ({token.text}(x))^n for a power, and the inverse function by its name"
            refuse(self.text, at.column, f"a power of {token.text!r} before its argument", do, "it may be an inverse")
        return self._computed(exponent, lambda: constant(self._integer(exponent)))

    def _partials(self) -> Value:
        """Return a partial derivative by argument number: ∂₁f(x, y), ∂₁∂₂²f(x, y)."""
        places: list[int] = []
        while self.token.kind == "partial":
            place = int(self._take().text) - 1
            many = int(self._take().text) if self.token.kind == "power" else 1
            places += [place] * many if 0 < many <= ORDER_LIMIT else [-1]
        token = self._take()
        function = known(self.names, token.text)
        if token.kind != "name" or not isinstance(function, UndefinedFunction):
            refuse(self.text, token.column, f"{token.text!r} after ∂", "write a declared function, as in ∂₁f(x, y)")
        at = [argument.expression for argument in self._arguments(token)]
        if len(places) > ORDER_LIMIT or not all(0 <= place < len(at) for place in places):
            refuse(self.text, token.column, f"{token.text} of {len(at)} arguments", "number the arguments from 1")
        return Value(derivative(function, at, [places.count(place) for place in range(len(at))]))

    def _undefined(self, token: Token, function: UndefinedFunction) -> Value:
        """Return f(x), f''(x), f^(4)(x), f'(x)[v] or, at the point that is given, f'[v]."""
        order = self._primes() or self._order(token)
        if order and self.token.kind == "operator" and self.token.text == "[":
            if self.point is None:
                refuse(self.text, token.column, f"{token.text}' at no point", f"write {token.text}'(x)[v]")
            at = [self.point]
        else:
            at = [argument.expression for argument in self._arguments(token)]
        if order and len(at) != 1:
            do = f"write a partial derivative as ∂₁{token.text}(x, y)"
            refuse(self.text, token.column, f"primes on {token.text} of {len(at)} arguments", do)
        made = Value(derivative(function, at, [order] if order else []))
        opened = self._accept("[")
        return self._along(token, opened, order, made) if opened else made

    def _order(self, token: Token) -> int:
        """Return the order of f^(4)(x), 0 where there is none."""
        if not self._accept("**"):
            return 0
        opened, number = self._accept("("), self._take()
        if opened is None or not number.text.isdigit() or not 0 < int(number.text) <= ORDER_LIMIT:
            name = token.text
            do = f"write {name}^(4)(x) for a derivative (order at most {ORDER_LIMIT}), ({name}(x))^4 for a power"
            refuse(self.text, token.column, f"a power of {token.text!r} before its argument", do)
        self._expect(")", opened)
        return int(number.text)

    def _along(self, token: Token, opened: Token, order: int, made: Value) -> Value:
        """Return a derivative along the directions in brackets: one for each prime."""
        directions = [self._deeper(self._sum)]
        while self._accept(","):
            directions.append(self._deeper(self._sum))
        self._expect("]", opened)
        if len(directions) != order:
            do = f"give {order} directions in the brackets"
            refuse(self.text, opened.column, f"{len(directions)} directions of a derivative of order {order}", do)
        return self._computed(token, lambda: product([made, *directions]))


def derivative(function: UndefinedFunction, at: Sequence[sp.Expr], orders: Sequence[int]) -> sp.Expr:
    """Return a derivative of a function that has only a name, of an order in each argument, in SymPy's form.

    >>> f, x, y = sp.Function("f"), sp.Symbol("x"), sp.Symbol("y")
    >>> derivative(f, [x, y], [1, 1]), derivative(f, [x * y], [2]) == f(x * y).diff(x, 2) / y**2
    (Derivative(f(x, y), x, y), True)
    """
    slots, wanted, places = list(at), [], []
    for k, (argument, order) in enumerate(zip(at, orders, strict=bool(orders))):
        others = [other for j, other in enumerate(at) if j != k]
        if order and not (argument._diff_wrt and not any(argument in other.free_symbols for other in others)):
            slots[k] = sp.Dummy("xi")
            places.append((slots[k], argument))
        if order:
            wanted.append((slots[k], order))
    found = function(*slots).diff(*wanted) if wanted else function(*slots)
    return sp.Subs(found, *zip(*places, strict=True)) if places else found
