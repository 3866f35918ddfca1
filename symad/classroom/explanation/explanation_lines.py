"""Lines of displayed programs: a variable and its formula, a row of a linear map, a matrix entry."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import sympy as sp

from codegen.expressions.sympy_forms import rebuild
from codegen.heads import Alias
from codegen.records import dataclass
from symad.derivatives.level import Kind
from symad.derivatives.linear import Term
from symad.derivatives.node_roles import History, Role
from symad.display.mathematics import text_of
from symad.graph.graph import Graph
from symad.rules.partials import Edge, log_modulus
from symad.tracing.calling.user_place import written_place

LONGEST_SOURCE = 44  # letters of a user's line that are shown


class Variable(sp.Symbol):  # type: ignore[misc]
    """A variable of a program: `v3` as text, with its number below in formulas.

    >>> sp.latex(Variable("v3")), str(Variable("v3"))
    ('v_{3}', 'v3')
    """

    def _latex(self, printer: object) -> str:
        letter = self.name.rstrip("0123456789")
        return f"{letter}_{{{self.name[len(letter) :]}}}"


class Adjoint(sp.Symbol):  # type: ignore[misc]
    r"""The tangent or cotangent of a variable: `v3_dot` or `v3_bar` as text, a dot or bar over v in formulas.

    >>> sp.latex(Adjoint("v3_bar")), str(Adjoint("v3_dot"))
    ('\\bar{v}_{3}', 'v3_dot')
    """

    def _latex(self, printer: object) -> str:
        stem, _, accent = self.name.rpartition("_")
        letter = stem.rstrip("0123456789_")
        index = stem[len(letter) :].strip("_").replace("_", ",")
        return rf"\{accent}{{{letter}}}" + (f"_{{{index}}}" if index else "")


class Book:
    """The names of the nodes of one graph: inputs have the user's names, the others are v1, v2, ... in order."""

    graph: Graph
    inputs: Mapping[int, sp.Symbol]
    history: History

    def __init__(self, graph: Graph, inputs: Mapping[int, sp.Symbol], history: History) -> None:
        self.graph, self.inputs, self.history = graph, inputs, history
        self.values: dict[int, Any] = {}  # of nodes at a point, with 50 digits; none where none is asked for
        self.inlined: set[int] = set()  # nodes that are written into the lines that use them
        self.carried: dict[int, sp.Symbol] = {}  # what levels hand on, where it is no line
        self._numbers: dict[int, int] = {}
        taken = {symbol.name for symbol in inputs.values()}
        taken |= {atom.name for atom in graph.atoms.values() if isinstance(atom, sp.Symbol)}
        prefixes = ("ln", "log", "logarithm_of_")
        self.logarithm: str = next((p for p in prefixes if not any(name.startswith(p) for name in taken)), prefixes[-1])
        letters = {name[0] for name in taken if name[1:2].isdigit()}
        self.letter: str = next(letter for letter in "vwtuzyabcdefghijklmnopqrs" if letter not in letters)

    def number(self, nodes: Iterable[int]) -> None:
        """Name the listed nodes in their order."""
        listed = dict.fromkeys(node for node in nodes if self.is_line(node))
        self._numbers = {node: k for k, node in enumerate(listed, start=1)}

    def is_line(self, node: int) -> bool:
        """Whether a node has a line: it is neither input nor number, nor written into another line."""
        return node not in self.inputs and node not in self.graph.atoms and node not in self.inlined

    def is_logarithm(self, node: int) -> bool:
        """Whether a node is the ln|v| through which a quotient u/v is differentiated."""
        return self.graph.heads[node] is log_modulus

    def knows(self, node: int) -> bool:
        """Whether a node can be named."""
        return node in self._numbers or not self.is_line(node)

    def is_named(self, node: int) -> bool:
        """Whether a node has a name in the program: an input, a variable, or what a level hands on."""
        return node in self.inputs or node in self._numbers or (node in self.carried and self.is_line(node))

    def name(self, node: int) -> str:
        """Return the name of a node: a variable, an input, a number, or ln and the name of the v of a quotient u/v."""
        if self.is_logarithm(node):
            return f"{self.logarithm}{self.name(self.graph.operands[node][0])}"
        return str(self.symbol(node)) if node not in self._numbers else f"{self.letter}{self._numbers[node]}"

    def symbol(self, node: int) -> sp.Basic:
        """Return a node as it appears in formulas."""
        if node in self.inputs:
            return self.inputs[node]
        if node in self.graph.atoms:
            return self.graph.atoms[node]
        if node in self.inlined:
            formula = self.formula(node)
            return formula.doit(deep=False) if formula.is_Mul else formula
        if node not in self._numbers and node in self.carried:
            return self.carried[node]
        return Variable(f"{self.letter}{self._numbers[node]}", real=None if self.graph.is_boolean(node) else True)

    def formula(self, node: int) -> sp.Basic:
        """Return the formula of an operation in the names of its operands."""
        head, operands = self.graph.heads[node], self.graph.operands[node]
        if head is Alias:  # of its argument; further operands are those of a rule
            return self.symbol(operands[0])
        return rebuild(head, [self.symbol(operand) for operand in operands])

    def adjoint(self, node: int, kind: Kind) -> sp.Symbol:
        """Return the tangent or cotangent of a node as it appears in rows of a linear map."""
        return Adjoint(f"{self.name(node)}_{'dot' if kind == 'tangent' else 'bar'}", real=True)


def rounded(number: Any) -> str:
    """Return a number with six digits, the truth of a condition, or a dash for what has no value at the point."""
    if number is None or isinstance(number, bool):
        return "—" if number is None else str(number).lower()
    return f"{float(number):.6g}"


class Statement:
    """The formula assigned to a variable, and the variable's role."""

    book: Book
    node: int
    level: int  # of the role, where there is but one
    kind: Kind

    @property
    def symbol(self) -> sp.Basic:
        """The variable as it appears in formulas."""
        raise NotImplementedError

    @property
    def expression(self) -> sp.Basic:
        """The right side as it appears in formulas."""
        raise NotImplementedError

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles of the variable, one for each level. Without roles it is primal."""
        return (Role(self.level, self.kind),)

    @property
    def name(self) -> str:
        """The variable, as text."""
        return str(self.symbol)

    @property
    def formula(self) -> str:
        """The right side as text."""
        return text_of(self.expression)

    @property
    def value(self) -> float | bool | None:
        """The value at the point, as the nearest float; None without a point, and for what has none there."""
        number = self.number
        return number if number is None or isinstance(number, bool) else float(number)

    @property
    def number(self) -> Any:
        """The value at the point with 50 digits."""
        return self.book.values.get(self.node)

    @property
    def marks(self) -> str:
        """The roles in words with their levels: "primal", "residual 1, tangent 2"..."""
        return ", ".join(map(str, self.roles)) or "primal"

    @property
    def becomes(self) -> tuple[sp.Basic, ...]:
        """The value of a row in the program after the map is applied, and its condition."""
        return ()

    @property
    def source(self) -> tuple[str, str, str]:
        """The file, number and text of the user's line; empty if it is in no `.py` file."""
        return "", "", ""


@dataclass(frozen=True, eq=False)
class VariableLine(Statement):
    """One variable of a program: its name, its formula, and its roles."""

    book: Book
    node: int

    @property
    def symbol(self) -> sp.Basic:
        return self.book.symbol(self.node)

    @property
    def expression(self) -> sp.Basic:
        return self.book.formula(self.node) if self.book.is_line(self.node) else self.symbol

    @property
    def roles(self) -> tuple[Role, ...]:
        return self.book.history.roles(self.node)

    @property
    def source(self) -> tuple[str, str, str]:
        if not self.book.history.is_written(self.node) or self.book.graph.heads[self.node] is Alias:
            return super().source
        file, _, number = written_place(self.book.graph, self.node).rpartition(":")
        text = linecache.getline(file, int(number)).strip() if file.endswith(".py") else ""
        shown = text if len(text) <= LONGEST_SOURCE else text[: LONGEST_SOURCE - 1] + "…"
        return (Path(file).name, number, shown) if text else super().source


@dataclass(frozen=True, eq=False)
class Row(Statement):
    """One row of a linear map: the tangent or cotangent of a node as a sum of coefficients times those of others.

    `seeds` are the inputs of the pass at this node, `before` says that an earlier row has them, and `term` is what the
    row became in the program when the map was applied.
    """

    book: Book
    level: int
    kind: Kind
    node: int
    edges: tuple[Edge, ...] = ()
    seeds: tuple[int, ...] = ()
    before: bool = False
    term: Term | None = None

    @property
    def symbol(self) -> sp.Symbol:
        return self.book.adjoint(self.node, self.kind)

    @property
    def expression(self) -> sp.Basic:
        terms: list[sp.Basic] = [self.symbol] if self.before else []
        terms += [self.book.symbol(seed) for seed in self.seeds]
        terms += [self._term(*edge) for edge in self.edges]
        return terms[0] if len(terms) == 1 else sp.Add(*terms, evaluate=False)

    def _term(self, coefficient: int | None, source: int, guard: int | None) -> sp.Basic:
        """Return a term, which is 0 unless its guard holds."""
        carried = self.book.adjoint(source, self.kind)
        if coefficient is not None:
            carried = sp.Mul(self.book.symbol(coefficient), carried, evaluate=False)
        if guard is None:
            return carried
        return rebuild(sp.Piecewise, [carried, self.book.symbol(guard), sp.S.Zero, sp.true])

    @property
    def becomes(self) -> tuple[sp.Basic, ...]:
        if self.term is None or not all(node is None or self.book.knows(node) for node in self.term):
            return ()
        return tuple(self.book.symbol(node) for node in self.term if node is not None)


@dataclass(frozen=True, eq=False)
class LocalDerivative:
    """The derivative of a line with respect to one of its operands: a formula, and its value at the point."""

    line: int
    operand: int
    expression: sp.Expr
    number: Any


@dataclass(frozen=True, eq=False)
class CarriedLine(Row):
    """The tangent of a line, or the adjoint of one after one more line that uses it, with its number at the point."""

    terms: tuple[LocalDerivative, ...] = ()
    number: Any = None

    @property
    def expression(self) -> sp.Basic:
        parts: list[sp.Basic] = [self.symbol] * self.before + [self.book.symbol(seed) for seed in self.seeds]
        for term in self.terms:
            other = self.book.adjoint(term.operand if self.kind == "tangent" else term.line, self.kind)
            parts.append(other if term.expression == 1 else sp.Mul(term.expression, other, evaluate=False))
        return parts[0] if len(parts) == 1 else sp.Add(*parts, evaluate=False)


@dataclass(frozen=True, eq=False)
class MatrixEntry(Statement):
    """One entry of a Jacobian or Hessian that an elimination found, by its place."""

    book: Book
    level: int
    kind: Kind
    letter: str
    place: Sequence[int]
    node: int

    @property
    def symbol(self) -> sp.Symbol:
        return sp.Symbol("_".join((self.letter, *map(str, self.place))))

    @property
    def expression(self) -> sp.Basic:
        return self.book.symbol(self.node)
