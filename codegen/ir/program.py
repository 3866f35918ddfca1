"""A straight-line program of SymPy heads: the contract between the two storeys.

A program is a table. Row `i` computes one scalar: `heads[i]` is a SymPy class and `operands[i]` are earlier rows. A
row whose operands are empty is a leaf, and `atoms[i]` is its SymPy atom. The first rows are the inputs, in the flat
order of the input arrays (C order), one row per scalar, with a Symbol as atom.

Conventions of the rows:
  Add, Mul, And, Or, Max, Min   two or more operands
  Pow                           base, exponent; a / b is Mul(a, Pow(b, -1)), sqrt is Pow(u, 1/2)
  Piecewise                     flat: value, condition, value, condition...; a missing last `True` means NaN
  relationals, Not, functions   operands as in SymPy
  Alias                         one operand, the same value (a derivative level's formal parameter)
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Sequence
from dataclasses import field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

from codegen.ir.sparsity import SparsityPattern
from codegen.records import dataclass

if TYPE_CHECKING:  # arrays have programs without heads: a kernel that was saved is called without SymPy
    import sympy as sp

    Head: TypeAlias = type[sp.Basic]
else:
    Head = type
T = TypeVar("T")


def atom_key(atom: sp.Basic) -> Hashable:
    """Return a key that is equal for the same atoms; Floats differ by value and precision.

    >>> import sympy as sp
    >>> atom_key(sp.Float(2)) == atom_key(sp.Integer(2)), atom_key(sp.Float(2)) == atom_key(sp.Float(2, 30))
    (False, False)
    """
    return (type(atom), atom._mpf_, atom._prec) if atom.is_Float else (type(atom), atom)


class Declared(Protocol):
    """The interface of a program: its name, its arguments and its results."""

    @property
    def name(self) -> str: ...

    @property
    def arguments(self) -> tuple[Input, ...]: ...

    @property
    def outputs(self) -> tuple[Output, ...]: ...


class Rows(Protocol):
    """The three columns of a program or a graph."""

    @property
    def heads(self) -> list[Head]: ...

    @property
    def operands(self) -> list[tuple[int, ...]]: ...

    @property
    def atoms(self) -> dict[int, sp.Basic]: ...


@dataclass(frozen=True, slots=True)
class Input:
    """One input array: its name and shape (`()` for a scalar), float64.

    >>> Input("x", (2, 3)).size
    6
    """

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Output:
    """One output array of float64: `rows[k]` is stored at flat position `positions[k]`; the rest are structural zeros.

    `positions=None` means that the rows fill the array in C order. An output with a `pattern` is the packed data of a
    sparse matrix, in the order of the pattern's entries. A `swept` output has the rows of one column: `rows[k]` is
    stored at `positions[k] + column` for every column of the seed.

    >>> Output((2, 2), rows=(4, 5), positions=(0, 3)).size  # a diagonal matrix
    4
    """

    shape: tuple[int, ...]
    rows: tuple[int, ...]
    positions: tuple[int, ...] | None = None
    pattern: SparsityPattern | None = None
    swept: bool = False

    @property
    def size(self) -> int:
        return prod(self.shape)


class Declaration(NamedTuple):
    """The interface of a program without its rows."""

    name: str
    arguments: tuple[Input, ...]
    outputs: tuple[Output, ...]


@dataclass(frozen=True)
class Program:
    """A straight-line program: columns `heads`, `operands`, `atoms`; input and output arrays.

    When `seeded`, the last input is a seed and not an argument: the program stands for its values at every unit
    vector of the seed, one column of the swept outputs each (see `codegen.emission.straight`).

    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> square = Program([sp.Symbol, sp.Mul], [(), (0, 0)], {0: x}, (Input("x", ()),), (Output((), (1,)),))
    >>> len(square), square.outputs[0].size
    (2, 1)
    """

    heads: list[Head]
    operands: list[tuple[int, ...]]
    atoms: dict[int, sp.Basic]
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    name: str = field(default="kernel")
    seeded: bool = False

    def __len__(self) -> int:
        return len(self.heads)

    @property
    def arguments(self) -> tuple[Input, ...]:
        """The inputs that a caller gives: all but the seed."""
        return self.inputs[:-1] if self.seeded else self.inputs

    @property
    def input_count(self) -> int:
        """Number of scalar inputs: the rows below it are leaves read from the input arrays."""
        return sum(array.size for array in self.inputs)

    @cached_property
    def _known(self) -> dict[Hashable, Any]:
        return {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return a value derived from the program, which is kept with it under a key: many regions have one body.

        >>> program = Program([], [], {}, (), ())
        >>> program.once("length", lambda: [len(program)]) is program.once("length", lambda: [])
        True
        """
        if key not in self._known:
            self._known.setdefault(key, make())
        value: T = self._known[key]
        return value


def operations_of(rows: Rows) -> int:
    """Return the number of rows that are operations.

    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> operations_of(Program([sp.Symbol, sp.Mul], [(), (0, 0)], {0: x}, (Input("x", ()),), ()))
    1
    """
    return sum(map(bool, rows.operands))


def needed(rows: Rows, targets: Sequence[int], known: Container[int]) -> list[int]:
    """Return the rows that target rows need beyond known ones, ascending (topological); visit only these.

    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> square = Program([sp.Symbol, sp.Mul, sp.Add], [(), (0, 0), (0, 1)], {0: x}, (Input("x", ()),), ())
    >>> needed(square, [2], {1: 9.0})
    [0, 2]
    """
    operands = rows.operands
    rows_needed = {row for row in targets if row not in known}
    stack = list(rows_needed)
    while stack:
        for operand in operands[stack.pop()]:
            if operand not in known and operand not in rows_needed:
                rows_needed.add(operand)
                stack.append(operand)
    return sorted(rows_needed)


def reachable(rows: Rows, outputs: Sequence[int]) -> list[int]:
    """Return the rows that the outputs need, in topological (ascending) order; a flat sweep, no recursion.

    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> square = Program([sp.Symbol, sp.Mul, sp.Add], [(), (0, 0), (0, 1)], {0: x}, (Input("x", ()),), ())
    >>> reachable(square, [1])
    [0, 1]
    """
    if not outputs:
        return []
    top = max(outputs)
    needed = bytearray(top + 1)
    for row in outputs:
        needed[row] = 1
    operands = rows.operands
    for row in range(top, -1, -1):
        if needed[row]:
            for operand in operands[row]:
                needed[operand] = 1
    return [row for row in range(top + 1) if needed[row]]
