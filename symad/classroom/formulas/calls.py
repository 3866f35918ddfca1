"""Read function calls in formulas: known functions, roots, bars, and functions that only have a name."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import sympy as sp
from sympy.core.function import UndefinedFunction

from symad.classroom.formulas.cursor import Cursor
from symad.classroom.formulas.formula_names import (
    CIRCULAR,
    FUNCTIONS,
    INVERSES,
    FormulaValue,
    Function,
    applied,
    constant,
    known,
    logarithm_to_a_base,
    power,
    product,
    symbol_of,
)
from symad.classroom.formulas.tokens import Token

INVERSE = "the inverse function"
ORDER_LIMIT = 10  # primes after the name of a function
# after their argument without parentheses a function begins a new factor: sin x cos x
_STOPPING = {FUNCTIONS[name].head for name in f"{CIRCULAR} {INVERSES} ln log sign".split()}
_STOPS = frozenset(name for name in FUNCTIONS if FUNCTIONS[name].head in _STOPPING)


class Calls(Cursor):
    """The parts of the parser that apply functions to arguments."""

    def primes(self) -> int:
        """Take primes and return their number."""
        if self.token.kind != "prime":
            return 0
        if len(self.token.text) > ORDER_LIMIT:
            self.refuse(self.token, "so many primes", f"at most {ORDER_LIMIT} are read")
        return len(self.take().text)

    def arguments(self, token: Token, *, several: bool = True, brackets: bool = False) -> list[FormulaValue]:
        """Return the arguments in parentheses, or in brackets."""
        opened = self.accept("(", "[") if brackets else self.accept("(")
        if not opened:
            do = f"write {token.text}(...) with its argument in parentheses, or declare it as a symbol"
            self.refuse(token, f"the function {token.text!r} without an argument", do)
        return self._listed(opened, several=several)

    def _listed(self, opened: Token, *, several: bool = True) -> list[FormulaValue]:
        """Return the parts between commas up to the sign that closes a parenthesis."""
        parts = [self.deeper(self.sum, lists=several)]
        while comma := self.accept(","):
            self.separates = self.separates or comma
            parts.append(self.deeper(self.sum, lists=several))
        self.close(opened)
        return parts

    def function(self, token: Token, function: Function) -> FormulaValue:
        """Return a function of the table at its arguments; sin^2(x) is (sin(x))^2, and sin'(x) the derivative."""
        order = self.primes()
        function, raised = (inverse, None) if (inverse := self._inverse(token)) else (function, self._raised(token))
        may_be_bare = function.fewest == 1 and (self.at("+", "-") or self.starts()) and self.token.text != "["
        if self.at("(") or not may_be_bare:
            arguments = self.arguments(token, several=function.most > 1, brackets=not (order or self.token.spaced))
        else:
            arguments = [self._unmarked(token)]
        if not function.fewest <= len(arguments) <= function.most:
            number = function.most if function.fewest == function.most else f"{function.fewest} to {function.most}"
            self.refuse(token, f"{token.text} of {len(arguments)} arguments", f"give {number}")
        if order and function.most > 1:
            self.refuse(token, f"{token.text}{chr(39) * order}", "name the partial derivative in words")

        def head(*at: sp.Expr) -> sp.Expr:
            if not order:
                return function.head(*at)
            slot = sp.Dummy(real=True)
            return sp.diff(function.head(slot), slot, order).xreplace({slot: at[0]})

        value = self.computed(token, lambda: applied(head, arguments, function.largest))
        return value if raised is None else self.computed(token, lambda: power(value, raised))

    def starts(self) -> bool:
        """Whether an operand begins here."""
        kinds = ("name", "number", "fraction", "root", "partial", "derivative")
        is_root = self.token.spaced and self.is_degree_of_root()
        return self.token.kind in kinds or is_root or self.token.text == "|(" or self.at("(", "[")

    def rest_from(self, at: Token) -> str:
        """Read the sign and the factor here, for a question, and return their text."""
        self.position += self.at("*", "/", "**")
        self.signs()
        self.power()
        return self.written(at)

    def is_degree_of_root(self) -> bool:
        """Whether raised digits stand before a root: ⁵√x."""
        after = self.after
        return self.token.kind == "power" and after.kind == "root" and after.text == "2"

    def _inverse(self, token: Token) -> Function | None:
        """Take the exponent -1 behind a function and return the inverse function, if there is one."""
        name = f"a{token.text.lower()}"
        for exponent in (["-1"], ["**", "-", "1"], ["**", "(", "-", "1", ")"]):
            following = self.tokens[self.position : self.position + len(exponent)]
            if [word.text for word in following] == exponent and name in FUNCTIONS:
                self.position += len(exponent)
                self.inverses.append(f"{token.text}^(-1) is read as {INVERSE} of {token.text}")
                return FUNCTIONS[name]
        return None

    def _raised(self, token: Token) -> FormulaValue | None:
        """Return the exponent between a function and its argument, if there is one."""
        if self.token.kind != "power" and not (self.token.kind == "operator" and self.token.text == "**"):
            return None
        at = self.take()
        letter = known(self.names, self.token.text)
        if self.token.text in tuple("nmk") and (isinstance(letter, sp.Expr) or (letter is None and self.others)):
            word = self.take()
            return FormulaValue(symbol_of(word.text) if letter is None else letter)
        if at.kind != "power" and self.at("("):
            start, raised = self.position, self.operand()
            if not raised.expression.is_number:
                return raised
            self.position = start
        exponent = at if at.kind == "power" else self.take()
        if exponent.kind not in ("power", "number") or not exponent.text.isdigit():
            what = f"a power of {token.text!r} before its argument"
            do = f"write ({token.text}(x))^n for a power, and the inverse function by its name"
            self.refuse(at, what, do, "it may be an inverse")
        first, rest = exponent.text[0], exponent.text[1:]
        if rest and first != "1" and exponent.column == at.end and at is not exponent and not self.token.spaced:
            name, letter = token.text, self.token.text  # sin^32x, typeset as sin³2x
            readings = f"({name}({rest}{letter}))^{first}", f"({name}({letter}))^{first}{rest}"
            self.two(exponent, f"the power {name}^{exponent.text}", *readings)
        return self.computed(exponent, lambda: constant(self.integer(exponent)))

    def _unmarked(self, token: Token) -> FormulaValue:
        """Return the argument of a function without parentheses, as far as its reading is unique."""
        start, sign = self.token, self.at("+", "-")
        minus = self.signs()
        first = self.token
        if not self.starts():
            self.refuse_token()
        argument = self.deeper(self.power)
        number, factors = first.kind in ("number", "fraction"), [argument]
        while (number or self.token.kind == "name") and self._is_glued():
            factors.append(self.power())
        glued = len(factors) > 1
        argument = self.computed(first, lambda: product([*([constant(sp.Integer(-1))] if minus else []), *factors]))
        self._check_end(token, start, nested=sign or self._is_function(first) or (number and not glued))
        return argument

    def _is_glued(self) -> bool:
        """Whether a factor follows without a space: 2x, 2πx, 2|x|, xy."""
        glued = self.token.kind in ("name", "root") or self.token.text == "|("
        return glued and not self.token.spaced and not self._is_function(self.token)

    def _is_function(self, token: Token) -> bool:
        is_known = token.text in FUNCTIONS or bool(logarithm_to_a_base(token.text))
        return token.kind == "name" and known(self.names, token.text) is None and is_known

    def _check_end(self, token: Token, start: Token, *, nested: bool) -> None:
        """Refuse a continuation after an argument without parentheses if it may belong to the argument or not."""
        operator = self.token if self.at("*", "/") else None
        after = self.tokens[self.position + 1] if operator else self.token
        both = all(word.text in _STOPS or logarithm_to_a_base(word.text) for word in (token, after)) and not nested
        stops = both and self._is_function(after)
        next_root = token.kind == "root" and (after.kind == "root" or self._is_function(after)) and not operator
        apart = self.token.spaced and (after.spaced if operator else self._is_apart(start))
        is_alone = start.kind in ("name", "number") and self.tokens[self.position - 1] is start
        is_closed = after.text in (start.text, "(", "|(") or after.kind == "root"
        apart |= token.kind == "root" and start.kind == "number" and is_alone and self.token.spaced and not operator
        apart |= self.at("/") and is_alone and is_closed  # sin x/x, sin x/(1 + cos x), √x/√(x + 1)
        if stops or next_root or apart or not (operator or self.starts()):
            return
        argument, at = self.written(start), self.token
        rest = self.rest_from(at)
        name = self.text[token.column : token.end] if token.kind == "root" else token.text
        space = "" if operator else "*"
        readings = [f"{name}({argument}){space}{rest}", f"{name}({argument}{' ' if not operator else ''}{rest})"]
        is_scaled = start.kind == "number" and at.kind == "name" and not self._is_function(at)
        is_scaled &= token.kind != "root" and token.text not in ("ln", "log")
        self.two(at, f"what follows {name} {argument}", *(readings[::-1] if is_scaled else readings))  # sin 2 x

    def _is_apart(self, start: Token) -> bool:
        """Whether a factor is separate from an argument: sin x (x + 1), sin x e^x."""
        is_short = start.kind == "name" and self.tokens[self.position - 1] is start
        is_power = self.token.text == "e" and self.tokens[self.position + 1].text == "**"
        is_function = self.token.kind == "name" and isinstance(known(self.names, self.token.text), UndefinedFunction)
        after = self.tokens[self.position + 1] if is_function else start
        is_called = is_function and (after.kind == "prime" or after.text == "(")
        names = list(takewhile(lambda word: word.kind == "name", self.tokens[self.position :]))
        is_of_epsilon = bool(names) and self.is_epsilon(names[-1])  # cos x v ε
        apart = self.at("(") or is_power or is_called or is_of_epsilon
        return is_short and not self._is_function(start) and apart

    def root(self) -> FormulaValue:
        """Return a root: of a parenthesis, or of the next factor."""
        token = self.take()
        degree = self.integer(token)
        if token.kind == "power":
            self.take()
        start = self.token
        bare = not self.at("(", "[")
        if not self.starts():
            self.refuse_token()
        inside = self.operand()
        sign = self.text[token.column : token.end]
        is_square = start.kind == "number" and start.text.isdigit() and sp.sqrt(self.integer(start)).is_Integer
        if is_square and self.at("+", "-") and not self.token.spaced:  # √1-x²
            self.rest_from(self.token)
            rest = self.written(start)
            self.two(
                token, f"the root {sign}{rest}", f"{sign}({rest})", f"({sign}{start.text}){rest[len(start.text) :]}"
            )
        if self.token.kind == "power" or self.at("**"):
            argument, at = self.written(start), self.token
            exponent = self.text[at.column : at.end] if at.kind == "power" else self.rest_from(at)
            readings = [f"{sign}({argument}{exponent})", f"({sign}{argument}){exponent}"]
            self.two(at, "a power behind a root", *(readings if bare else readings[::-1]))
        if bare and not (start.kind == "number" and self.at("*", "/")):
            self._check_end(token, start, nested=False)
        head = FUNCTIONS["sqrt"].head if degree == 2 else FUNCTIONS["cbrt"].head
        if degree > 3:
            return self.computed(token, lambda: power(inside, constant(1 / degree)))
        return self.computed(token, lambda: applied(head, [inside], 1e300))

    def operand(self) -> FormulaValue:
        """Read a factor without an exponent."""
        raise NotImplementedError

    def partials(self) -> FormulaValue:
        """Read a partial derivative by argument number: ∂₁f(x, y), ∂₁∂₂²f(x, y)."""
        places: list[int] = []
        while self.token.kind == "partial":
            place = int(self.take().text) - 1
            many = int(self.take().text) if self.token.kind == "power" else 1
            places += [place] * many if 0 < many <= ORDER_LIMIT else [-1]
        token = self.take()
        function = known(self.names, token.text)
        if token.kind != "name" or not isinstance(function, UndefinedFunction):
            self.refuse(token, f"{token.text!r} after ∂", "write a declared function, as in ∂₁f(x, y)")
        at = [argument.expression for argument in self.arguments(token)]
        if len(places) > ORDER_LIMIT or not all(0 <= place < len(at) for place in places):
            self.refuse(token, f"{token.text} of {len(at)} arguments", "number the arguments from 1")
        return FormulaValue(derivative(function, at, [places.count(place) for place in range(len(at))]))

    def undefined(self, token: Token, function: UndefinedFunction) -> FormulaValue:
        """Return f(x), f''(x), f^(4)(x), f'(x)[v] or, at `point`, f'[v]."""
        stands_alone = self.point is not None and token.text in self.bare and not self._calls(token)
        raised = self.at("**") and not self.signs_follow(self.position, "**", "(", ")", "(")
        if stands_alone and (raised or self.token.kind == "power") and self._is_called_after_power():
            do = f"write ({token.text}(x))^n for a power, and the inverse function by another name"
            self.refuse(token, f"a power of {token.text!r} before its argument", do)
        if stands_alone and raised and self.signs_follow(self.position, "**", "(", ")"):
            name, number = token.text, self.tokens[self.position + 2].text
            raised = False  # f^{(4)} and f⁽⁴⁾ have one reading
            if self.text[self.token.column : self.token.column + 2] == "^(":
                self.two(token, f"{name}^({number})", f"{name}^({number})({self.point})", f"{name}^{number}")
        order = self.primes() or (0 if stands_alone and raised else self._order(token))
        if order and self.at("["):
            if self.point is None:
                self.refuse(token, f"{token.text}' at no point", f"write {token.text}'(x)[v]")
            at = [self.point]
        elif self.point is not None and token.text in self.bare and not self._calls(token):
            at = [self.point]
        else:
            at = [argument.expression for argument in self.arguments(token)]
        if order and len(at) != 1:
            do = f"write a partial derivative as ∂₁{token.text}(x, y)"
            self.refuse(token, f"primes on {token.text} of {len(at)} arguments", do)
        value = FormulaValue(derivative(function, at, [order] if order else []))
        opened = self.accept("[")
        return self._along(token, opened, order, value) if opened else value

    def signs_follow(self, place: int, *signs: str) -> bool:
        """Whether these signs are at a place, with a number among them: ^(4)( after the name of a function."""
        following = self.tokens[place : place + len(signs) + 1]
        return [word.text for word in following if word.kind != "number"] == list(signs)

    def _is_called_after_power(self) -> bool:
        """Whether a parenthesis follows a power without a space: f^2(x), f²(x), f^{-1}(x)."""
        place, depth = self.position + 1, 0
        if self.token.kind != "power":
            while self.tokens[place].kind != "end":
                depth += (self.tokens[place].text == "(") - (self.tokens[place].text == ")")
                place += 1
                if depth == 0 and self.tokens[place - 1].text != "-":
                    break
        return self.tokens[place].text == "(" and not self.tokens[place].spaced

    def _calls(self, token: Token) -> bool:
        """Whether a parenthesis is a function's argument: in y(x) and y (x), but not in y (x + 1)."""
        if not self.at("("):
            return False
        inside = self.tokens[self.position + 1 : self.position + 4]
        texts = [word.text for word in inside]
        at_a_place = texts[1:2] == [")"] and (texts[0] == str(self.point) or inside[0].kind == "number")
        if token.text == "y":  # y stands for a value: y (ln x + 1) is a product, y(x + h) is not
            return at_a_place or "h" in texts
        return not self.token.spaced or at_a_place

    def _order(self, token: Token) -> int:
        """Return the order of f^(4)(x), 0 without one."""
        if not self.accept("**"):
            return 0
        opened, number = self.accept("("), self.take()
        if opened is None or not number.text.isdigit() or not 0 < int(number.text) <= ORDER_LIMIT:
            name = token.text
            do = f"write {name}^(4)(x) for a derivative (order at most {ORDER_LIMIT}), ({name}(x))^4 for a power"
            self.refuse(token, f"a power of {token.text!r} before its argument", do)
        self.close(opened)
        return int(number.text)

    def _along(self, token: Token, opened: Token, order: int, value: FormulaValue) -> FormulaValue:
        """Return a derivative along the directions in brackets, one for each prime."""
        place, directions = self.position - 1, self._listed(opened)
        if len(directions) != order and len(directions) > 1:
            do = f"give {order} directions in the brackets"
            self.refuse(opened, f"{len(directions)} directions of a derivative of order {order}", do)
        if len(directions) != order:  # f''(x) [g'(x)]^2: a factor in brackets
            self.position = place
            return value
        return self.computed(token, lambda: product([value, *directions]))


def derivative(function: UndefinedFunction, at: Sequence[sp.Expr], orders: Sequence[int]) -> sp.Expr:
    """Return a derivative of an undefined function, of an order in each argument, in SymPy's form.

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
    expression = function(*slots).diff(*wanted) if wanted else function(*slots)
    return sp.Subs(expression, *zip(*places, strict=True)) if places else expression
