"""Lower a program of SymPy heads to machine operations, each computed once.

Two passes over the rows. The first folds constants, lowers each head through its row in the table of intrinsics, and
merges equal operations; powers stay symbolic. The second knows every power and every use: it expands powers into shared
chains, and turns a product with a reciprocal that nothing else uses into a quotient.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import compress

import sympy as sp

from codegen.evaluation.constant_folding import fold_constants
from codegen.functions.function_rows import Intrinsic
from codegen.functions.intrinsics import intrinsic
from codegen.functions.powers import PowerPlan
from codegen.ir.machine_rows import LEAVES, Machine, Reference, Row, code_of, use_counts
from codegen.ir.operations import NEGATED
from codegen.ir.program import Head, Program, reachable
from codegen.records import dataclass

KINDS = {
    **dict.fromkeys(NEGATED, "fma"),
    **{code: code for code in ("add", "sub", "mul", "div", "neg", "abs", "sqrt", "select", "compare", "logic", "call")},
    "not": "logic",
    "number": "select",
    **dict.fromkeys(("gather", "spread", "lane"), "move"),
}


@dataclass(frozen=True)
class Lowered:
    """Machine operations of a program: the table, and `stores` = (output array, flat position, row) in output order."""

    rows: list[Row]
    stores: list[tuple[int, int, int]]
    nodes: int
    operations_before: float
    operations_after_sharing: int

    def live(self) -> list[int]:
        """Return the rows that the stores need, ascending."""
        return self._live.copy()

    @cached_property
    def _live(self) -> list[int]:
        return list(compress(range(len(self.rows)), self._uses))

    def uses(self) -> list[int]:
        """Return how often each row is read or stored; 0 for rows that the stores do not need."""
        return self._uses.copy()

    @cached_property
    def _uses(self) -> list[int]:
        return use_counts(self.rows, [row for _, _, row in self.stores])

    def count(self) -> Counter[str]:
        """Return the operations by kind; a fused multiply-add counts once, and so does one on a vector register."""
        return self._counted.copy()

    @cached_property
    def _counted(self) -> Counter[str]:
        counted = Counter[str]()
        for code, count in Counter(map(code_of, compress(self.rows, self._uses))).items():
            if code == "wide":
                counted.update([KINDS[row[1][1]] for row in compress(self.rows, self._uses) if row[0] == "wide"])
            elif code not in LEAVES:
                counted[KINDS[code]] += count
        return counted

    @cached_property
    def codes(self) -> frozenset[str]:
        """The operations of all rows, live or not."""
        return frozenset(map(code_of, self.rows))


def lower(program: Program, find: Callable[[Head], Intrinsic] = intrinsic) -> Lowered:
    """Return the machine operations of a program, not yet fused; `find` gives the row of each head.

    LoweringError for a head without a native lowering. Signs, powers of two and quotients are treated bit for bit as
    written, with two documented exceptions: a power with exponent n or n + 1/2 becomes a multiplication chain, and a
    product with a reciprocal of single use or of a constant becomes a quotient (one rounding fewer).

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y = sp.symbols("x y")
    >>> sorted(lower(program_from_sympy([x, y], [x**3 / y - x**2])).count().items())
    [('div', 1), ('mul', 2), ('sub', 1)]
    """
    outputs = [row for output in program.outputs for row in output.rows]
    order = reachable(program, outputs)
    # Where every power is a square, there is nothing to plan, and one pass is enough.
    exponents = {program.operands[row][1] for row in order if program.heads[row] is sp.Pow}
    all_squares = bool(exponents) and all(program.atoms.get(exponent) == 2 for exponent in exponents)
    squares = find is intrinsic and all_squares
    first, results = _first(program, order, outputs, find, Machine(squares=squares))
    if squares and first.powers:  # of a head that is lowered to powers
        first, results = _first(program, order, outputs, find, Machine())
    second, references = _expand(first, results)
    stores = _stores(program, [second.materialise(reference) for reference in references])
    codes = Counter(map(code_of, first.rows))
    shared = codes.total() - sum([codes[leaf] for leaf in LEAVES])
    return Lowered(second.rows, stores, len(order), _operations_as_tree(program, order, outputs), shared)


def _first(
    program: Program, order: Sequence[int], outputs: Sequence[int], find: Callable[[Head], Intrinsic], machine: Machine
) -> tuple[Machine, list[Reference]]:
    """First pass: powers stay symbolic, unless they are squares."""
    values = _lower_rows(program, order, machine, find)
    return machine, [machine.number(values[row]) for row in outputs]


def _stores(program: Program, rows: Sequence[int]) -> list[tuple[int, int, int]]:
    places = [
        (array, position)
        for array, output in enumerate(program.outputs)
        for position in (range(len(output.rows)) if output.positions is None else output.positions)
    ]
    return [(*place, row) for place, row in zip(places, rows, strict=True)]


def _lower_rows(
    program: Program, order: Sequence[int], machine: Machine, find: Callable[[Head], Intrinsic]
) -> list[Reference]:
    heads, operands = program.heads, program.operands
    constants = fold_constants(program, order, program.input_count)
    if find is not intrinsic:  # a nan of real functions may be a complex number
        constants = {row: value for row, value in constants.items() if value == value or not operands[row]}
    powers = {row for row in constants if heads[row] is sp.Pow}
    add, mul, plus, times = machine.add, machine.mul, sp.Add, sp.Mul
    values: list[Reference] = [0] * len(heads)
    truths: set[int] = set()
    for row in order:
        parts = operands[row]
        if row in constants:
            constant = constants[row]
            if isinstance(constant, bool):
                values[row] = machine.bool(constant)
                truths.add(row)
            else:
                values[row] = machine.const(constant)
        elif not parts:
            values[row] = machine.input(row)
        elif (
            len(parts) == 2
            and ((head := heads[row]) is times or head is plus)
            and (not truths or truths.isdisjoint(parts))
        ):
            left, right = parts
            if head is plus:
                values[row] = add(values[left], values[right])
                continue
            quotient = powers and (left in powers or right in powers)
            divided = _division_by_constant(program, constants, row) if quotient else None
            if divided is None:
                values[row] = mul(values[left], values[right])
            else:
                values[row] = machine.div(values[divided[0]], machine.const(divided[1]))
        else:
            values[row] = _lower_node(machine, find(heads[row]), [values[part] for part in parts])
            if machine.is_truth(values[row]):
                truths.add(row)
    return values


def _division_by_constant(program: Program, constants: dict[int, float | bool], row: int) -> tuple[int, float] | None:
    """Return (numerator row, c) for a product with c**-1: x / 10 is not x * 0.1, which is rounded twice."""
    left, right = program.operands[row]
    for power, other in ((right, left), (left, right)):
        if power in constants and other not in constants and program.heads[power] is sp.Pow:
            base, exponent = program.operands[power]
            divisor = float(constants[base])
            if constants[exponent] == -1 and math.frexp(abs(divisor))[0] not in (0.0, 0.5):
                return other, divisor
    return None


def _lower_node(machine: Machine, row: Intrinsic, operands: list[Reference]) -> Reference:
    if not row.truth:
        operands = [machine.number(operand) for operand in operands]
    if row.parity and operands[0] < 0:
        value = row.native(machine, ~operands[0])
        return ~value if row.parity == "odd" else value
    return row.native(machine, *operands)


def _expand(first: Machine, results: Sequence[Reference]) -> tuple[Machine, Sequence[Reference]]:
    """Second pass: rebuild the live rows in a new table, with powers expanded and quotients formed."""
    if not first.powers:
        return first, results
    rows = first.rows
    uses = use_counts(rows, [~result if result < 0 else result for result in results])
    live = [index for index, count in enumerate(uses) if count]
    exponents: dict[int, set[float]] = {}
    for index in live:
        if rows[index][0] == "power":
            exponents.setdefault(rows[index][2], set()).add(rows[index][1])
    if not exponents:
        return first, results
    products = (row[1:] for row in map(rows.__getitem__, live) if row[0] == "mul")
    factors = {part for parts in products for part in parts if rows[part][0] == "power" and uses[part] == 1}
    expander = _Expander(rows, factors, PowerPlan(exponents))
    values = expander.values
    write = rebuilders(expander.machine, values.__getitem__) | {"mul": expander.product, "power": expander.power}
    write |= dict.fromkeys(LEAVES, lambda row: expander.machine.row(*row))
    for index in live:
        if index not in factors or expander.denominator(index) is None:
            row = rows[index]
            values[index] = write[row[0]](row)
        # else the product that uses it forms the quotient, or makes the value
    return expander.machine, [~values[~result] if result < 0 else values[result] for result in results]


def rebuilders(machine: Machine, value: Callable[[int], Reference]) -> dict[str, Callable[[Row], Reference]]:
    """Return functions by code that rebuild a row in another table, where `value` gives its operands."""

    def of_one(make: Callable[[Reference], Reference]) -> Callable[[Row], Reference]:
        return lambda row: make(value(row[1]))

    def of_two(make: Callable[[Reference, Reference], Reference]) -> Callable[[Row], Reference]:
        return lambda row: make(value(row[1]), value(row[2]))

    return {
        "add": of_two(machine.add), "sub": of_two(machine.sub), "mul": of_two(machine.mul), "div": of_two(machine.div),
        "abs": of_one(machine.abs), "sqrt": of_one(machine.sqrt), "not": of_one(machine.invert),
        "number": of_one(machine.number),
        "neg": lambda row: ~value(row[1]),
        "call": lambda row: machine.call(row[1], [value(part) for part in row[2:]]),
        "compare": lambda row: machine.compare(row[1], value(row[2]), value(row[3])),
        "logic": lambda row: machine.logic(row[1], value(row[2]), value(row[3])),
        "select": lambda row: machine.select(*[value(part) for part in row[1:]]),
    }  # fmt: skip


class _Expander:
    """Translates rows of the first table into the second."""

    def __init__(self, rows: list[Row], factors: set[int], plan: PowerPlan) -> None:
        self.rows, self.factors, self.plan = rows, factors, plan  # factors: powers whose only use is in a product
        self.machine = Machine()
        self.values: dict[int, Reference] = {}

    def power(self, row: Row) -> Reference:
        return self.plan.expand(self.machine, row[2], self.values[row[2]], row[1])

    def denominator(self, index: int) -> Reference | None:
        """Return the divisor in place of this factor, if it is a reciprocal power of single use."""
        if index not in self.factors:
            return None
        _, exponent, base = self.rows[index]
        return self.plan.denominator(self.machine, base, self.values[base], exponent)

    def product(self, row: Row) -> Reference:
        _, left, right = row
        factors = self.factors
        if left in factors or right in factors:
            for power, other in ((right, left), (left, right)):
                denominator = self.denominator(power)
                if denominator is not None:
                    if other not in self.values:
                        self.values[other] = self.power(self.rows[other])
                    return self.machine.div(self.values[other], denominator)
        return self.machine.mul(self.values[left], self.values[right])


def _operations_as_tree(program: Program, order: Sequence[int], outputs: Sequence[int]) -> float:
    """Return the operations of the outputs without any sharing (inf where that exceeds a float)."""
    size = [0.0] * len(program)
    heads, operands = program.heads, program.operands
    variadic = {sp.Add, sp.Mul, sp.Max, sp.Min, sp.And, sp.Or, sp.Xor}
    for row in order:
        parts = operands[row]
        if len(parts) == 2:  # most of them
            size[row] = 1.0 + (size[parts[0]] + size[parts[1]])
            continue
        own = 0.0 if not parts else float(len(parts) - 1) if heads[row] in variadic else 1.0
        size[row] = own + sum([size[part] for part in parts])
    return sum([size[row] for row in outputs], 0.0)
