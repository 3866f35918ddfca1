"""The table of prices: nanoseconds of what is executed and seconds of what is built, one unit for every pass.

The numbers are fitted by `python -m benchmarks.price --fit`; docs/design/price.md says how, and how wrong they are.
Only ratios matter for choices, and they differ little between machines. Results never depend on them.

What a head costs is not written down: it is what its row in the table of intrinsics is lowered to. So a head that has a
lowering has a price, and one whose function has a formula for lanes is priced as such.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TypeAlias

import sympy as sp

from codegen.errors import LoweringError
from codegen.functions.intrinsics import INTRINSICS
from codegen.ir.machine_rows import LEAVES, Machine, Row
from codegen.ir.program import Head, Rows

LANES_AT_ONCE = 4  # doubles that go through the processor as fast as one: longer registers take two turns
LONG = 30_000  # operations of straight lines that do not fit into the caches next to the processor
NEAREST, CACHED = 2**12, 2**17  # numbers that fit into the nearest cache, and into the caches
CALL = 60.0  # nanoseconds of a call from Python, whatever it computes; in no price

# Nanoseconds. First one number at a time, as throughput.
NANOSECONDS: dict[str, float] = {
    "operation": 0.033,  # an addition, a product, a choice...
    "average": 0.12,  # the same where nothing is known of what it waits for
    "far": 0.044,  # besides, where the code is long
    "div": 1.5,
    "sqrt": 1.6,
    "sum": 0.33,  # an addition that goes on with a sum, besides
    "wait": 1.1,  # an operation that waits for the one before
    "store": 0.29,  # of a result, or where a row of straight lines is kept
    "zero": 0.13,  # four numbers that are cleared; or one that does not fit into the nearest cache
    "move": 0.15,  # between a number and a lane
    # On a register of four lanes.
    "lanes operation": 0.087,
    "lanes div": 1.3,
    "lanes sqrt": 2.8,
    "lanes load": 0.02,  # side by side
    "lanes store": 0.39,
    # What loops are made of.
    "stride": 0.071,  # a number that is read or stored in steps
    "stride store": 0.051,
    "stride add": 0.1,
    "table": 0.18,  # at a place that is read from a table
    "table store": 0.29,
    "table add": 0.3,
    "run": 0.18,  # to begin a stretch of repetitions, for each table
    "region": 5.0,  # to begin a loop
    "cache": 0.065,  # a number that does not fit into the nearest cache
    "memory": 0.2,  # a number that comes from memory, or goes there
    "point": 0.6,  # a number of a point that goes into lanes and back
    # Functions: a call of the C library, of SciPy, a formula on a register of four lanes.
    "call": 7.5,
    "vector call": 8.0,  # a vector function of the C library
    "scipy": 60.0,
    "exp": 5.7, "exp2": 2.6, "expm1": 5.9, "log": 4.1, "log2": 3.4, "log10": 5.9, "log1p": 5.7,
    "llvm.sin.f64": 4.3, "llvm.cos.f64": 4.2, "tan": 5.5, "atan": 4.6, "sinh": 9.2, "cosh": 5.5, "tanh": 9.0,
    "pow": 11.0,
    "lanes exp": 5.4, "lanes exp2": 5.1, "lanes expm1": 8.4, "lanes log": 6.3, "lanes log2": 7.3, "lanes log10": 7.7,
    "lanes log1p": 6.4, "lanes llvm.sin.f64": 6.6, "lanes llvm.cos.f64": 6.4, "lanes tan": 9.4, "lanes atan": 7.7,
    "lanes sinh": 11.0, "lanes cosh": 8.9, "lanes tanh": 8.0, "lanes pow": 28.0,
}  # fmt: skip

# Seconds.
SECONDS: dict[str, float] = {
    "kernel": 0.0061,  # whatever it computes
    "traced": 7e-6,  # an operation that is traced, and looked at for what repeats
    "row": 30e-6,  # of a program: differentiated, written
    "emitted": 28e-6,  # an operation that is lowered, and compiled by LLVM
    "grouped": 5e-6,  # a quotient, root or function, besides
    "result": 37e-6,  # a number that straight lines store
    "region": 0.0084,
    "nest": 0.002,
    "index": 30e-9,  # a number of a table of places
}

Kind: TypeAlias = tuple[Head, object]  # with the number of its operands, or the constant exponent of a power


def nanoseconds(operations: Mapping[str, int]) -> float:
    """Return what machine operations that are counted by kind cost one by one.

    >>> nanoseconds({"add": 3}) == 3 * NANOSECONDS["average"], nanoseconds({"div": 2}) == 2 * NANOSECONDS["div"]
    (True, True)
    """
    return sum(NANOSECONDS.get(kind, NANOSECONDS["average"]) * count for kind, count in operations.items())


def registers(lanes: int) -> float:
    """Return what an operation on so many lanes costs, in operations on one register.

    >>> registers(2), registers(4), registers(8)
    (1.0, 1.0, 2.0)
    """
    return max(1.0, lanes / LANES_AT_ONCE)


def kinds(rows: Rows, wanted: Sequence[int] | range) -> Counter[Kind]:
    """Count rows by kind; leaves and aliases are none.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> program = program_from_sympy([x], [1 / (1 + sp.exp(x))])
    >>> [(head.__name__, str(detail)) for head, detail in kinds(program, range(len(program)))]
    [('exp', '1'), ('Add', '2'), ('Pow', '-1.0')]
    """
    heads, operands = rows.heads, rows.operands
    return Counter([kind_of(rows, row) if heads[row] is sp.Pow else (heads[row], len(operands[row]))
                    for row in wanted if operands[row]])  # fmt: skip


def kind_of(rows: Rows, row: int) -> Kind:
    """Return the kind of a row that is no leaf."""
    head, operands = rows.heads[row], rows.operands[row]
    if head is not sp.Pow:
        return head, len(operands)
    exponent = rows.atoms.get(operands[1])
    return head, float(exponent) if isinstance(exponent, sp.Number) else None


def operations(counted: Mapping[Kind, int]) -> Counter[str]:
    """Return the entries of `NANOSECONDS` that rows of some kinds are lowered to, with their numbers.

    >>> sorted(operations({(sp.tan, 1): 3, (sp.Add, 4): 2, (sp.Pow, -0.5): 1}).items())
    [('div', 1), ('operation', 6), ('sqrt', 1), ('tan', 3)]
    """
    found: Counter[str] = Counter()
    for kind, count in counted.items():
        for name, times in lowered(kind):
            found[name] += times * count
    return found


@cache
def lowered(kind: Kind) -> tuple[tuple[str, int], ...]:
    """Return the entries of `NANOSECONDS` that a row is lowered to; one call where that needs more than its kind.

    >>> lowered((sp.Mul, 3)), lowered((sp.exp, 1)), lowered((sp.Pow, None)), lowered((sp.Function("f"), 2))
    ((('operation', 2),), (('exp', 1),), (('pow', 1),), (('call', 1),))
    """
    head, detail = kind
    row, machine = INTRINSICS.get(head), Machine()
    operands = [machine.input(k) for k in range(detail if isinstance(detail, int) else 1)]
    if head is sp.Pow:
        operands = [machine.input(0), machine.input(1) if detail is None else machine.const(float(str(detail)))]
    try:
        assert row is not None
        row.native(machine, *operands)
    except (AssertionError, LoweringError, TypeError):  # an unknown function, or one of a constant order
        return (("call", 1),)
    return tuple(sum(map(_entries, machine.rows), Counter()).items())


def _entries(row: Row) -> Counter[str]:
    """Return the entries of `NANOSECONDS` of a machine operation."""
    code = row[0]
    if code in LEAVES:
        return Counter()
    if code == "power":
        return _power(row[1])
    if code == "call":
        return Counter({entry_of(row[1]): 1})
    return Counter({code if code in NANOSECONDS else "operation": 1})


def _power(exponent: float) -> Counter[str]:
    """A chain of products, a root, a quotient."""
    whole = int(abs(exponent))
    products = max(whole.bit_length() - 1, 0) + max(whole.bit_count() - 1, 0) + (whole > 0 and abs(exponent) > whole)
    found = Counter(operation=products, sqrt=int(abs(exponent) > whole), div=int(exponent < 0))
    return Counter({name: count for name, count in found.items() if count})


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


def on_lanes(found: Mapping[str, int]) -> Counter[str]:
    """Return entries for a register of four lanes instead of one number.

    >>> sorted(on_lanes({"tanh": 1, "div": 2, "call": 3}).items())
    [('call', 12), ('lanes div', 2), ('lanes tanh', 1), ('move', 24)]
    """
    wide: Counter[str] = Counter()
    for name, count in found.items():
        if f"lanes {name}" in NANOSECONDS:
            wide[f"lanes {name}"] += count
        else:  # lane by lane, through memory
            wide[name] += LANES_AT_ONCE * count
            wide["move"] += 2 * LANES_AT_ONCE * count
    return wide
