"""The table of prices, the price of a kernel, and the cheapest of several.

The numbers are fitted by `python -m benchmarks.price --fit`; docs/design/price.md says how, and how wrong they are.
Only ratios matter for choices, and they differ little between machines. Results never depend on them.

The price of a head is that of its lowering, by its row in the table of intrinsics. So every head with a lowering has a
price, and functions with a formula for lanes have the price of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal, TypeAlias

import sympy as sp

from codegen.errors import LoweringError
from codegen.functions.intrinsics import INTRINSICS
from codegen.ir.machine_rows import LEAVES, Machine, Row
from codegen.ir.program import Head, Rows
from codegen.records import dataclass

LANES_AT_ONCE = 4  # doubles that are computed as fast as one: longer registers take twice the time
LONG = 30_000  # operations of straight lines that do not fit into the caches next to the processor
LONGER = 250_000  # operations whose code (7 bytes each) and numbers do not fit into the caches of one processor
NEAREST, CACHED = 2**12, 2**17  # numbers that fit into the nearest cache, and into the caches
CALL = 100.0  # nanoseconds of a call from Python, whatever it computes: 50 to 150; in no price

CALLS = 1e6  # that a kernel is expected to have
Way = Literal["straight", "sweep", "rolled"]
FASTER = 1.5  # how much faster to call straight lines have to be than loops
SWEPT = 1.1  # how much more than loops a sweep may cost: its prediction is a little too high

# Nanoseconds. First one number at a time, as throughput.
NANOSECONDS: dict[str, float] = {
    "operation": 0.035,  # an addition, a product, a choice...
    "average": 0.12,  # the same where its dependences are unknown
    "far": 0.027,  # besides, where the code is long
    "farther": 0.6,  # besides, for each operation beyond those that the caches hold
    "div": 0.81,
    "sqrt": 1.6,
    "sum": 0.32,  # an addition that continues a sum, besides
    "wait": 0.5,  # an operation that waits for the one before
    "store": 0.086,  # of a result, or where a row of straight lines is kept
    "zero": 0.11,  # four numbers that are cleared; or one that does not fit into the nearest cache
    "move": 0.15,  # between a number and a lane
    # On a register of four lanes.
    "lanes operation": 0.067,
    "lanes sum": 0.029,
    "lanes div": 0.63,
    "lanes sqrt": 1.7,
    "lanes load": 0.011,  # side by side
    "lanes store": 0.22,
    # In loops.
    "stride": 0.1,  # a number that is read in short steps
    "stride store": 0.069,
    "stride add": 0.03,
    "table": 0.22,  # anywhere: at places that are read from a table, or in long steps
    "table store": 0.31,
    "table add": 0.24,
    "run": 0.086,  # to begin a stretch of repetitions, for each table
    "region": 2.7,  # to begin a loop
    "cache": 0.062,  # a number that does not fit into the nearest cache
    "memory": 0.2,  # a number that comes from memory, or goes there
    "point": 0.6,  # a number of a point that goes into lanes and back
    # Matrices that a library works on: to begin, for each product or sum of a factorization, and of a product.
    "matrix": 500.0,
    "matrix term": 0.08,
    "product term": 0.014,
    # Functions: a call of the C library, of SciPy, a formula on a register of four lanes.
    "call": 7.3,
    "vector call": 8.0,  # a vector function of the C library
    "scipy": 60.0,
    "exp": 3.7, "exp2": 2.5, "expm1": 5.8, "log": 3.9, "log2": 3.2, "log10": 5.8, "log1p": 5.7,
    "llvm.sin.f64": 4.3, "llvm.cos.f64": 4.2, "tan": 5.4, "atan": 4.4, "sinh": 9.1, "cosh": 5.4, "tanh": 9.0,
    "pow": 11.0, "asin": 6.3, "acos": 6.8, "atan2": 17.0, "asinh": 13.5, "acosh": 11.0, "atanh": 13.0, "cbrt": 14.5,
    "hypot": 6.0,
    "lanes exp": 3.2, "lanes exp2": 2.9, "lanes expm1": 5.4, "lanes log": 3.2, "lanes log2": 4.5, "lanes log10": 5.1,
    "lanes log1p": 5.1, "lanes llvm.sin.f64": 5.4, "lanes llvm.cos.f64": 5.1, "lanes tan": 7.4, "lanes atan": 6.0,
    "lanes sinh": 8.2, "lanes cosh": 7.1, "lanes tanh": 8.0, "lanes pow": 23.0,
    "lanes asin": 4.4, "lanes acos": 5.2, "lanes atan2": 8.8, "lanes asinh": 12.0, "lanes acosh": 11.0,
    "lanes atanh": 7.0, "lanes cbrt": 6.3, "lanes hypot": 4.8,
}  # fmt: skip

# Seconds.
SECONDS: dict[str, float] = {
    "kernel": 0.00093,  # whatever it computes
    "traced": 7.6e-6,  # an operation that is traced, and searched for loops
    "row": 0.75e-6,  # of a program: differentiated, written
    "encoded": 9.5e-6,  # an operation of straight lines that is lowered, and written by the encoder
    "swept": 20e-6,  # one of a sweep, which is split before
    "emitted": 46e-6,  # an operation that is lowered, and compiled by LLVM
    "grouped": 8.6e-6,  # a quotient, root or function, besides
    "result": 11e-6,  # a number that straight lines store
    "region": 0.0086,
    "nest": 0.002,
    "index": 0.04e-6,  # a number of a table of places
}

FEW_BLOCKS = 2  # of columns: a sweep over more is compiled by LLVM, whose code is up to a fifth quicker to call

# A head and the number of its operands; of a power its constant exponent, "sum" for an addition to a sum.
Kind: TypeAlias = tuple[Head, int, float | str | None]


def nanoseconds(operations: Mapping[str, int]) -> float:
    """Return the cost of machine operations, counted by kind, one by one.

    >>> nanoseconds({"add": 3}) == 3 * NANOSECONDS["average"], nanoseconds({"div": 2}) == 2 * NANOSECONDS["div"]
    (True, True)
    """
    return sum(NANOSECONDS.get(kind, NANOSECONDS["average"]) * count for kind, count in operations.items())


def registers(lanes: int) -> float:
    """Return the cost of an operation on some lanes, in operations on one register.

    >>> registers(2), registers(4), registers(8)
    (1.0, 1.0, 2.0)
    """
    return max(1.0, lanes / LANES_AT_ONCE)


def kinds(rows: Rows, chosen: Sequence[int] | range) -> Counter[Kind]:
    """Count rows by kind, without leaves.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> program = program_from_sympy([x], [1 / (1 + sp.exp(x))])
    >>> [(head.__name__, *map(str, more)) for head, *more in kinds(program, range(len(program)))]
    [('exp', '1', 'None'), ('Add', '2', 'None'), ('Pow', '2', '-1.0')]
    """
    heads, operands = rows.heads, rows.operands
    all_kinds: list[Kind] = []
    for row in chosen:
        if parts := operands[row]:
            head = heads[row]
            all_kinds.append(kind_of(rows, row) if head is sp.Add or head is sp.Pow else (head, len(parts), None))
    return Counter(all_kinds)


def kind_of(rows: Rows, row: int) -> Kind:
    """Return the kind of a row that is no leaf."""
    heads, operands = rows.heads, rows.operands[row]
    head = heads[row]
    if head is sp.Add:
        for part in operands:
            if heads[part] is sp.Add:
                return head, len(operands), "sum"
    if head is not sp.Pow:
        return head, len(operands), None
    exponent = rows.atoms.get(operands[1])
    return head, 2, float(exponent) if isinstance(exponent, sp.Number) else None


def operations(counted: Mapping[Kind, int]) -> Counter[str]:
    """Return the entries of `NANOSECONDS` that rows of some kinds are lowered to, with their numbers.

    >>> sorted(operations({(sp.tan, 1, None): 3, (sp.Add, 4, "sum"): 2, (sp.Pow, 2, -0.5): 1}).items())
    [('div', 1), ('operation', 6), ('sqrt', 1), ('sum', 2), ('tan', 3)]
    """
    entries: Counter[str] = Counter()
    for kind, count in counted.items():
        for name, times in lowered(kind):
            entries[name] += times * count
    return entries


@cache
def lowered(kind: Kind) -> tuple[tuple[str, int], ...]:
    """Return the entries of `NANOSECONDS` that a row is lowered to; one call where the kind does not determine them.

    >>> lowered((sp.Mul, 3, None)), lowered((sp.Pow, 2, None)), lowered((sp.Function("f"), 2, None))
    ((('operation', 2),), (('pow', 1),), (('call', 1),))
    """
    head, arity, detail = kind
    row = INTRINSICS.get(head)
    for orders in range(4 if row is not None else 0):  # the first operands may be constant orders
        machine = Machine()
        operands = [machine.const(1.0) if k < orders else machine.input(k) for k in range(arity)]
        if isinstance(detail, float):
            operands[1] = machine.const(detail)
        try:
            row.native(machine, *operands)  # type: ignore[union-attr]
        except (LoweringError, TypeError):
            continue
        entries = sum(map(_entries, machine.rows), Counter({"sum": 1}) if detail == "sum" else Counter())
        return tuple(entries.items())
    return (("call", 1),)


def _entries(row: Row) -> Counter[str]:
    """Return the entries of `NANOSECONDS` of a machine operation."""
    code = row[0]
    if code in LEAVES:
        return Counter()
    if code == "power":  # a chain of products, a root, a quotient
        size, whole = abs(row[1]), int(abs(row[1]))
        products = max(whole.bit_length() - 1, 0) + max(whole.bit_count() - 1, 0) + (whole > 0 and size > whole)
        return +Counter(operation=products, sqrt=int(size > whole), div=int(row[1] < 0))
    if code == "call":
        return Counter({entry_of(row[1]): 1})
    return Counter({code if code in NANOSECONDS else "operation": 1})


def entry_of(symbol: str) -> str:
    """Return the entry of `NANOSECONDS` of a function.

    >>> entry_of("tanh"), entry_of("llvm.floor.f64"), entry_of("scipy.jv.2.0"), entry_of("erf")
    ('tanh', 'operation', 'scipy', 'call')
    """
    if symbol in NANOSECONDS:
        return symbol
    if symbol.startswith("scipy."):
        return "scipy"
    return "operation" if symbol.startswith("llvm.") else "call"


def on_lanes(entries: Mapping[str, int]) -> Counter[str]:
    """Return entries for a register of four lanes instead of one number.

    >>> sorted(on_lanes({"tanh": 1, "div": 2, "call": 3}).items())
    [('call', 12), ('lanes div', 2), ('lanes tanh', 1), ('move', 24)]
    """
    wide: Counter[str] = Counter()
    for name, count in entries.items():
        if f"lanes {name}" in NANOSECONDS:
            wide[f"lanes {name}"] += count
        else:  # lane by lane, through memory
            wide[name] += LANES_AT_ONCE * count
            wide["move"] += 2 * LANES_AT_ONCE * count
    return wide


@dataclass(frozen=True)
class Price:
    """The cost of a kernel: nanoseconds of a call, and seconds to build it.

    >>> Price(300.0, 0.1) + Price(200.0, 0.25), round(Price(500.0, 0.3).total(1e6), 6)
    (Price(call=500.0, build=0.35), 0.8)
    """

    call: float
    build: float

    def __add__(self, other: Price) -> Price:
        return Price(self.call + other.call, self.build + other.build)

    def total(self, calls: float = CALLS) -> float:
        """Return the seconds to build and to call `calls` times."""
        return self.build + 1e-9 * calls * self.call


def cheapest(prices: Mapping[Way, Price], calls: float = CALLS) -> Way:
    """Return the way that costs least; loops, if they are built sooner and not much slower to call than straight lines.

    >>> cheapest({"straight": Price(480.0, 0.06), "rolled": Price(590.0, 0.04)})
    'rolled'
    >>> cheapest({"straight": Price(480.0, 0.02), "rolled": Price(90.0, 0.04)}, calls=10)
    'straight'
    >>> cheapest({"straight": Price(480.0, 0.06), "rolled": Price(990.0, 0.04)})
    'straight'
    """
    left = dict(prices)
    straight, rolled = left.get("straight"), left.get("rolled")
    if straight and rolled and rolled.build < straight.build and rolled.call < FASTER * straight.call:
        del left["straight"]
    if "sweep" in left and "rolled" in left and left["sweep"].total(calls) < SWEPT * left["rolled"].total(calls):
        del left["rolled"]
    return min(left, key=lambda way: left[way].total(calls))
