"""The hash-consed table of expressions that every stage works on.

Node `i` is a row: `heads[i]` is a SymPy class, `operands[i]` are earlier nodes, and a leaf keeps its SymPy atom in
`atoms[i]`. Ids are topological: an operand is always smaller than its node. Two nodes with the same head and operands
are the same node, with one exception: an alias is never interned, which is what keeps derivative levels apart.
The rows follow the conventions of `codegen.ir.program`.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from operator import itemgetter
from types import CodeType, FrameType
from typing import Any, TypeAlias
from weakref import ref

import numpy as np
import sympy as sp
from mpmath.libmp import from_float
from numpy.typing import NDArray

from codegen.heads import Alias, negative_zero
from codegen.ir.copy_rows import copy_rows
from codegen.ir.lazy_atoms import AtomOf, LazyAtoms
from codegen.ir.program import Head, atom_key
from codegen.ir.row_table import RowTable
from codegen.limits import check, check_bytes
from codegen.machine.storage.portable import decode_rows, encode_rows
from symad.errors import LimitError, RuleError
from symad.graph.array_nodes import ArrayNodes, SparseColumn

Number: TypeAlias = bool | int | float | Fraction
Rule: TypeAlias = Callable[[int], int | None]

_PRECISION = 53  # bits of a float

MANY = 64  # leaves made at once whose atoms are made later
ELEMENT_LIMIT = 250_000_000  # nodes of one graph with the elements of arrays, some 5 GB
NODE_LIMIT = 50_000_000  # nodes of one graph, some 10 GB; a function that never returns ends here


class Graph(RowTable):
    """A growing table of nodes.

    >>> graph = Graph()
    >>> x = graph.leaf(sp.Symbol("x", real=True))
    >>> y = graph.node(sp.Mul, x, graph.node(sp.sin, x))
    >>> graph.node(sp.Mul, x, graph.node(sp.sin, x)) == y
    True
    >>> graph.alias(x) == graph.alias(x)
    False
    """

    heads: list[Head]
    operands: list[tuple[int, ...]]

    most = NODE_LIMIT

    __slots__ = ("__weakref__", "arrays", "floats", "integers", "marks", "numpys", "placed", "rules", "whole")

    def __init__(self, *, lines: bool = True) -> None:
        super().__init__()
        self.marks: list[tuple[int, CodeType, int]] = []  # (end, code, instruction): who made the nodes before `end`
        self.placed: int = 0 if lines else sys.maxsize  # nodes from here on have no mark yet
        self.arrays: ArrayNodes = ArrayNodes(ref(self))
        self.floats: set[int] = set()  # nodes that are numbers of Python's own (see `python_numbers`)
        self.integers: set[int] = set()  # nodes that are integers, and never -0.0
        self.numpys: set[int] = set()  # integers of NumPy: places, counts, elements of integer arrays
        self.whole: dict[range, Any] = {}  # leaves that stand for whole numbers, places in an order, and their bounds
        self.rules: dict[int, Rule] = {}  # of the aliases whose derivative is not that of their value

    def place(self, frame: FrameType) -> None:
        """Note that the nodes made since the last call belong to the instruction that a frame is at."""
        self.placed = end = len(self.heads)
        self.marks.append((end, frame.f_code, frame.f_lasti))

    def place_all(self, start: int, find_frame: Callable[[], FrameType | None]) -> None:
        """Set one mark for the nodes from number `start` on, which a library made inside one call of the user's."""
        if len(self.marks) > start or self.placed < len(self.heads):
            frame = find_frame()
            if frame is not None:
                del self.marks[start:]
                self.place(frame)

    def instruction_of(self, node: int) -> tuple[CodeType, int] | None:
        """Return the code object and the instruction that made a node, None when that was not noted."""
        at = bisect_right(self.marks, node, key=itemgetter(0))
        return None if at == len(self.marks) else self.marks[at][1:]

    def by_instruction(self, nodes: Sequence[int]) -> Iterator[tuple[tuple[CodeType, int] | None, Sequence[int]]]:
        """Yield ascending nodes in runs, each with the instruction that made its nodes, None when it was not noted."""
        begin = 0
        for end, code, place in self.marks:
            after = bisect_left(nodes, end, begin)
            if after > begin:
                yield (code, place), nodes[begin:after]
                begin = after
        if begin < len(nodes):
            yield None, nodes[begin:]

    def place_at(self, instruction: tuple[CodeType, int] | None) -> None:
        """Note that the nodes made since the last call belong to an instruction, unless that is not known."""
        if instruction is not None and self.placed < len(self.heads):
            self.placed = len(self.heads)
            self.marks.append((self.placed, *instruction))

    def like(self, node: int, operands: tuple[int, ...]) -> int:
        """Return a node's head over other operands, with the line of that node where it is made anew.

        >>> graph = Graph()
        >>> x, y = (graph.leaf(sp.Symbol(name)) for name in "xy")
        >>> graph.like(graph.node(sp.sin, x), (y,)) == graph.node(sp.sin, y)
        True
        """
        copy = self.canonical(self.heads[node], operands)
        self.place_at(self.instruction_of(node))
        return copy

    def node(self, head: Head, *operands: int) -> int:
        """Return the node `head(*operands)`, as written: nothing is sorted, folded or evaluated."""
        return self.row(head, operands)

    def number(self, value: Number) -> int:
        """Return the leaf of a Python number: int -> Integer, float -> Float (53 bits), Fraction -> Rational.

        >>> graph = Graph()
        >>> [graph.atoms[graph.number(value)] for value in (2, 2.0, Fraction(1, 3), True, -0.0)]
        [2, 2.00000000000000, 1/3, True, -0.0]
        """
        key = (type(value), value, value == 0 and math.copysign(1.0, value))
        leaf = self._leaves.get(key)
        if leaf is None:
            leaf = self._float(value) if isinstance(value, float) and value else self.leaf(_atom(value))
            self._leaves[key] = leaf
        return leaf

    def _float(self, value: float) -> int:
        """Return the leaf of a float that is not 0; the Float is made as SymPy makes it, at a fifth of the cost."""
        if not math.isfinite(value):
            return self.leaf(_atom(value))
        mpf = from_float(value)
        atom = sp.Expr.__new__(sp.Float)
        atom._mpf_, atom._prec = mpf, _PRECISION
        return self._append(self._leaves, (sp.Float, mpf, _PRECISION), sp.Float, (), atom)

    def own_leaf(self, atom: sp.Basic) -> int:
        """Return a new leaf that is never merged with another: an input."""
        return self._append(None, None, type(atom), (), atom)

    def own_floats(self, values: NDArray[np.float64]) -> range:
        """Return new leaves of numbers, each of its own, whose atoms are made when they are asked for.

        >>> graph = Graph()
        >>> graph.own_floats(np.linspace(0, 1, 1001)), graph.atoms[500]
        (range(0, 1001), 0.500000000000000)
        """
        return self._own(len(values), lambda k: sp.Float(float(values[k])), sp.Float, values)

    def own_leaves(self, count: int, atom: AtomOf) -> range:
        """Return new leaves as `own_leaf` makes them, all of them symbols; of many, the atoms are made when asked for.

        >>> graph = Graph()
        >>> graph.own_leaves(10**6, lambda k: sp.Symbol(f"x_{k}")), graph.atoms[7]
        (range(0, 1000000), x_7)
        """
        return self._own(count, atom, sp.Symbol)

    def _own(self, count: int, atom: AtomOf, head: Head, values: NDArray[np.float64] | None = None) -> range:
        if count < MANY:
            start = len(self.heads)
            return range(start, start + len([self.own_leaf(atom(k)) for k in range(count)]))
        with self._lock:
            nodes = range(len(self.heads), len(self.heads) + count)
            check("writing operations", self.heads)
            if nodes.stop > self.most:
                raise LimitError(f"the graph has reached {self.most} nodes", why=f"{count} leaves were to be added")
            if values is None:
                self._lazy_atoms().later(nodes, atom)
            else:
                self._lazy_atoms().later_floats(nodes, values)
            self._add_leaves(head, nodes)
            return nodes

    def elements(self, count: int, numbers: NDArray[Any] | None = None) -> int:
        """Return the first of new leaves that stand for the elements of an array; of numbers, they have atoms.

        They are not stored: `arrays` knows their heads.

        >>> graph = Graph()
        >>> graph.elements(2, np.array([0.5, -0.0])), graph.atoms[1], len(graph)
        (0, -0.0, 2)
        """
        with self._lock:
            first = len(self.heads)
            check("writing operations", self.heads)
            check_bytes(f"an array of {count:,} numbers", 8 * count)
            if first + count > ELEMENT_LIMIT:
                raise LimitError(
                    f"the graph has reached {ELEMENT_LIMIT} elements of arrays",
                    why=f"{count} were to be added; each takes some 20 bytes until the derivative is ready",
                    do="differentiate it for a part of the data at a time, or compile it",
                )
            if numbers is not None:
                self._lazy_atoms().later(range(first, first + count), lambda k: _atom(float(numbers[k])))
            if self.blocks.scanned < first:
                self.blocks.scan(self.heads)
            self.blocks.add_range(first, first + count)
            self._leave_out(count)
            self.blocks.scanned = first + count
            self.blocks.elements += count
            return first

    def _leave_out(self, count: int) -> None:
        """Make the next rows elements of arrays; a list, which has entries for all rows, becomes a sparse column."""
        if isinstance(self.heads, list):
            self.heads = SparseColumn(self.heads, self.arrays.head_of)  # type: ignore[assignment]
            self.operands = SparseColumn(self.operands, lambda row: ())  # type: ignore[assignment]
        self.heads.leave_out(count)  # type: ignore[attr-defined]
        self.operands.leave_out(count)  # type: ignore[attr-defined]

    def _add_leaves(self, head: Head, nodes: range) -> None:
        """Add leaves of one head, as one block."""
        self.blocks.scan(self.heads)
        self.blocks.add_range(nodes.start, nodes.stop)
        self.blocks.leaves.append(nodes)
        self.heads += [head] * len(nodes)
        self.operands += [()] * len(nodes)
        self.blocks.scanned = nodes.stop

    def _lazy_atoms(self) -> LazyAtoms:
        if not isinstance(self.atoms, LazyAtoms):
            self.atoms: dict[int, sp.Basic] = LazyAtoms(self.atoms)
        return self.atoms

    def given_atoms(self) -> list[sp.Basic]:
        """Return the atoms that came in as expressions: free symbols and exact numbers, not the inputs."""
        atoms = dict.items(self.atoms)  # of those that are made later, none came in
        return [
            atom for node, atom in atoms if not isinstance(atom, sp.Float) and self._leaves.get(atom_key(atom)) == node
        ]

    def alias(self, operand: int) -> int:
        """Return a new node with the value of `operand` and an identity of its own."""
        return self._append(None, None, Alias, (operand,))

    def ruled(self, value: int, operands: Sequence[int], rule: Rule) -> int:
        """Return an alias of `value` whose derivative in each of the operands is given by a rule.

        `rule(k)` returns the node of the partial derivative in operand k, None for a structural zero. The derivative of
        the value itself is ignored.

        >>> graph = Graph()
        >>> x = graph.leaf(sp.Symbol("x"))
        >>> held = graph.ruled(graph.node(sp.sin, x), [x], lambda k: None)
        >>> graph.operands[held] == (graph.node(sp.sin, x), x)
        True
        """
        node = self._append(None, None, Alias, (value, *operands))
        self.rules[node] = rule
        return node

    def stopped(self, value: int) -> int:
        """Return an alias of `value` that has no derivative."""
        return self.ruled(value, (), _no_derivative)

    def is_boolean(self, node: int) -> bool:
        """Whether a node is a truth value (a relational, a connective, True or False)."""
        while self.heads[node] is Alias:
            node = self.operands[node][0]
        return issubclass(self.heads[node], sp.logic.boolalg.Boolean) and not issubclass(self.heads[node], sp.Symbol)

    def count_operations(self, nodes: Iterable[int], known: Iterable[int] = ()) -> int:
        """Return how many operations the nodes need beyond the given ones: shared ones once, leaves and aliases not.

        >>> graph = Graph()
        >>> s = graph.node(sp.sin, graph.leaf(sp.Symbol("x")))
        >>> graph.count_operations([graph.node(sp.Mul, s, s)]), graph.count_operations([s], known=[s])
        (2, 0)
        """
        heads, operands_of = self.heads, self.operands
        seen, stack, operations = set(known), list(nodes), 0
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                operands = operands_of[node]
                if operands:
                    operations += heads[node] is not Alias
                    stack += operands
        return operations

    def _too_many(self) -> LimitError:
        return LimitError(
            f"the graph has reached {self.most} nodes",
            why="the traced function may loop for ever, or unrolls a very long loop",
            do="check the loop's end, or split the computation",
        )

    def __getstate__(self) -> dict[str, Any]:
        return encode_rows(self) | {"ruled": list(self.rules)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        heads, rows, atoms = decode_rows(state)
        ruled = frozenset(state["ruled"])
        self.__init__()  # type: ignore[misc]
        for node, (head, operands) in enumerate(zip(heads, rows, strict=True)):
            if not operands:
                self.leaf(atoms[node])
            elif node in ruled:  # without operands it is a stopped value, whose rule nobody asks
                self.ruled(operands[0], operands[1:], _rule_left_behind)
            elif head is Alias:
                self.alias(operands[0])
            else:
                self.node(head, *operands)


def _no_derivative(position: int) -> int | None:
    return None


def _rule_left_behind(position: int) -> int | None:
    raise RuleError(
        "a custom or implicit derivative of a graph that was pickled",
        why="its rule is a Python function, which a pickled graph leaves behind",
        do="pickle the derivative, or take it before",
    )


def _atom(value: Number) -> sp.Basic:
    if isinstance(value, bool):
        return sp.true if value else sp.false
    if isinstance(value, int):
        return sp.Integer(value)
    if isinstance(value, Fraction):
        return sp.Rational(value.numerator, value.denominator)
    if value == 0 and math.copysign(1.0, value) < 0:
        return negative_zero
    return sp.Float(value) if math.isfinite(value) else sp.nan if math.isnan(value) else sp.oo if value > 0 else -sp.oo


class SharedCopy:
    """A plain copy of a graph; `there[node]` is where a node went, the same place for all that are equal.

    >>> graph = Graph()
    >>> x = graph.leaf(sp.Symbol("x"))
    >>> sines = [graph.node(sp.sin, graph.alias(x)) for _ in range(2)]
    >>> SharedCopy(graph, {}).operations(sines, set())
    1
    """

    def __init__(self, graph: Graph, inputs: Mapping[int, sp.Symbol]) -> None:
        self.plain: Graph = Graph(lines=False)
        row_of = {node: self.plain.own_leaf(symbol) for node, symbol in inputs.items()}
        copy_rows(graph, range(len(graph)), self.plain, row_of)
        self.there: list[int] = [row_of[node] for node in range(len(graph))]

    def operations(self, nodes: Iterable[int], counted: set[int]) -> int:
        """Return how many operations nodes need beyond those that are counted already, which they join."""
        stack, operations = [self.there[node] for node in nodes], 0
        while stack:
            node = stack.pop()
            if node not in counted:
                counted.add(node)
                operations += bool(self.plain.operands[node])
                stack += self.plain.operands[node]
        return operations
