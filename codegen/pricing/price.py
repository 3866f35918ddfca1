"""Price a kernel before it is built: nanoseconds a call and seconds to build.

Straight lines, a sweep over columns and loops are priced in one unit, from one table (`codegen.pricing.price_table`);
see docs/design/price.md. `Work` has an amount of each entry of the table, and its price is the sum over them. So prices
can be added, and fitted. The cost of a call from Python is `CALL`, and in no price.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import field
from functools import cache
from math import ceil, prod

import sympy as sp

from codegen.ir.program import Program, Rows, reachable
from codegen.ir.region import Nest, Region, RolledProgram, Step, regions_of
from codegen.ir.tables import Indexed, runs
from codegen.pricing.places import Use, places_work, vectors_of, without_gaps
from codegen.pricing.price_table import (
    CACHED,
    FEW_BLOCKS,
    LANES_AT_ONCE,
    LONG,
    LONGER,
    NANOSECONDS,
    NEAREST,
    SECONDS,
    Kind,
    Price,
    kind_of,
    kinds,
    lowered,
    on_lanes,
    operations,
    registers,
)
from codegen.records import dataclass

WORTH = 3.0  # uses of a number from which on it is packed, see `codegen.loops.optimise.packing`
WRITTEN_OUT = 4  # operations for each product or sum of a matrix operation: pivots are chosen, and rows wait
GROUPED = frozenset(name for name in NANOSECONDS if f"lanes {name}" in NANOSECONDS) - {"operation", "sum"}
AT_ONCE = 16  # operations that the processor begins in the time that one waits for another


@dataclass(frozen=True)
class Work:
    """Amounts of the entries of the table of prices, to call and to build."""

    call: Counter[str] = field(default_factory=Counter)
    build: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Work) -> Work:
        return Work(self.call + other.call, self.build + other.build)

    @property
    def price(self) -> Price:
        """The sum over the entries."""
        return Price(
            sum(NANOSECONDS[name] * amount for name, amount in self.call.items()),
            sum(SECONDS[name] * amount for name, amount in self.build.items()),
        )


def straight_work(program: Program) -> Work:
    """Return the work of a program in straight lines.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> plain, dear = (straight_work(program_from_sympy([x], [f])).price for f in (x + 1, sp.exp(x) + 1))
    >>> plain.call < dear.call, plain.build < dear.build
    (True, True)
    """
    order = reachable(program, [row for output in program.outputs for row in output.rows])
    stored = sum(len(output.rows) for output in program.outputs)
    zeros = sum(output.size - len(output.rows) for output in program.outputs)
    waits, alone = _chains(program, order)
    return rows_work(kinds(program, order), stored, zeros, waits, alone)


def rows_work(
    counted: Mapping[Kind, int], stored: int = 0, zeros: int = 0, waits: float = 0.0,
    alone: Mapping[Kind, int] | None = None,
) -> Work:  # fmt: skip
    """Return the work of straight lines with a number of rows of each kind.

    `stored` numbers are stored and `zeros` cleared; `waits` operations wait for the one before, and operations that
    are `alone` have no independent ones like them.

    >>> single, double = (rows_work({(sp.tan, 1, None): count}).price for count in (1, 2))
    >>> double == single + single, double.call == 2 * single.call
    (False, True)
    """
    entries = operations(counted)
    total, rows = entries.total(), sum(counted.values())
    call = _in_groups(entries, operations(alone or {})) + Counter(
        store=stored, cache=stored * (stored > NEAREST), zero=_zero(zeros), far=total * (total > LONG)
    )
    call["farther"] = max(0, total - LONGER)
    call["wait"] = max(0, round(waits - total / AT_ONCE))
    grouped = total - entries["operation"] - entries["sum"]
    return Work(call, Counter({"kernel": 1, "row": rows, "encoded": total, "grouped": grouped, "result": stored}))


def _in_groups(entries: Counter[str], alone: Mapping[str, int]) -> Counter[str]:
    """Put quotients, roots and functions with a formula for lanes side by side, like `codegen.lowering.group`."""
    together = {name: count - alone.get(name, 0) for name, count in entries.items() if name in GROUPED}
    dear = {name: count for name, count in together.items() if count >= LANES_AT_ONCE}
    wide = Counter({f"lanes {name}": ceil(count / LANES_AT_ONCE) for name, count in dear.items()})
    return entries - Counter(dear) + wide


def _zero(numbers: int) -> int:
    return numbers if numbers > NEAREST else numbers // LANES_AT_ONCE


def _chains(rows: Rows, order: Sequence[int]) -> tuple[int, Counter[Kind]]:
    """Return the length of the longest path through rows, and the operations that are alone.

    Operations that could be grouped are alone where fewer of them are on the same level than a register has lanes.
    """
    operands, heads = rows.operands, rows.heads
    waits: dict[int, tuple[int, int]] = {}  # operations on the longest path to a row, and the grouped ones
    alike: Counter[tuple[int, Kind]] = Counter()
    for row in order:
        parts = operands[row]
        if not parts:
            waits[row] = 0, 0
            continue
        longest, level = (max(lengths) for lengths in zip(*[waits[part] for part in parts], strict=True))
        if heads[row] not in (sp.Add, sp.Mul) and _is_grouped(kind := kind_of(rows, row)):
            level += 1
            alike[level, kind] += 1
        waits[row] = longest + 1, level
    alone = Counter[Kind]()
    for (_, kind), count in alike.items():
        alone[kind] += count if count < LANES_AT_ONCE else 0
    return max([longest for longest, _ in waits.values()], default=0), alone


@cache
def _is_grouped(kind: Kind) -> bool:
    return any(name in GROUPED for name, _ in lowered(kind))


def longest_chain(rows: Rows, order: Sequence[int], sources: Sequence[int]) -> int:
    """Return the number of operations on the longest path through rows from `sources`.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y = sp.symbols("x y")
    >>> program = program_from_sympy([x, y], [sp.exp(x + 1) * y])
    >>> longest_chain(program, range(len(program)), [0]), longest_chain(program, range(len(program)), [1])
    (3, 1)
    """
    operands = rows.operands
    longest = dict.fromkeys(sources, 0)
    for row in order:
        known = [longest[part] for part in operands[row] if part in longest]
        if known:
            longest[row] = max(known) + 1
    return max(longest.values(), default=0)


def sweep_work(program: Program, lanes: int, halves: Halves | None = None) -> Work:
    """Return the work of a seeded program as a sweep over its columns, `lanes` at once; its halves may be known."""
    halves = halves or halves_of(program)
    once, columns = operations(halves.once), on_lanes(operations(halves.columns))
    emitted, rows = once.total() + columns.total(), halves.once.total() + halves.columns.total()
    grouped = emitted - sum(once[name] + columns[f"lanes {name}"] for name in ("operation", "sum"))
    side_by_side = ceil(program.inputs[-1].size / lanes)
    written = "swept" if side_by_side <= FEW_BLOCKS else "emitted"
    blocks = side_by_side * registers(lanes)
    stored = sum(len(output.rows) if output.swept else 0 for output in program.outputs)
    columns += Counter({"lanes load": halves.crossing, "lanes store": stored})
    call = _in_groups(once, {}) + Counter({name: round(blocks * count) for name, count in columns.items()})
    matrix = sum(output.size for output in program.outputs if output.swept)
    call += Counter(store=halves.crossing) + _far(matrix, matrix)
    return Work(call, Counter({"kernel": 1, "row": rows, written: emitted, "grouped": grouped, "result": stored}))


def _far(size: int, used: int) -> Counter[str]:
    """Return how many used numbers of an array are loaded from, or stored to, caches beyond the nearest one."""
    return Counter({"memory" if size > CACHED else "cache": used} if size > NEAREST else {})


@dataclass(frozen=True)
class Halves:
    """Rows of a sweep by kind: once, for every column, for the columns that need them; `crossing` link both halves."""

    once: Counter[Kind]
    columns: Counter[Kind]
    entries: Counter[Kind]
    crossing: int

    def written_out(self, *, symmetric: bool) -> Counter[Kind]:
        """Return the rows when every column is written out; of a symmetric matrix half of them."""
        return self.once + Counter({kind: -(-count // (1 + symmetric)) for kind, count in self.entries.items()})


def halves_of(program: Program) -> Halves:
    """Count the rows of a seeded program; each row carries a bit for every column that it depends on."""
    columns, start = program.inputs[-1].size, program.input_count - program.inputs[-1].size
    reached, full = [0] * len(program), (1 << columns) - 1
    once, swept, entries = Counter[Kind](), Counter[Kind](), Counter[Kind]()
    crossing: set[int] = set()
    for row, operands in enumerate(program.operands):
        if start <= row < start + columns:
            reached[row] = 1 << (row - start)
        elif operands:
            mask = 0
            for operand in operands:
                mask |= reached[operand]
            reached[row], kind = mask, kind_of(program, row)
            if not mask:
                once[kind] += 1
                continue
            swept[kind] += 1
            entries[kind] += mask.bit_count()
            residuals = [u for u in operands if not reached[u] and u not in program.atoms]
            crossing.update(residuals)
            if residuals and kind[0] is sp.Mul and mask != full:  # the product is guarded (`codegen.lowering.halves`)
                swept[sp.Mul, 2, None] += 1
    return Halves(once, swept, entries, len(crossing))


def rolled_work(program: RolledProgram, traced: int = 0) -> Work:
    """Return the work of the loops of a rolled program, and of the trace of `traced` operations they were found in.

    >>> from codegen.ir.region import Buffer, Gather, Result
    >>> from codegen.ir.tables import Affine
    >>> from codegen.ir.program import Input, Output
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> def maps(n, f):
    ...     all_of_them = Affine(0, 1, n)
    ...     body, result = program_from_sympy([x], [f]), Result(0, 1, all_of_them, "store")
    ...     region = Region(body, n, (Gather(0, all_of_them),), (result,))
    ...     buffers = (Buffer("input", n), Buffer("output", n))
    ...     return RolledProgram((Input("x", (n,)),), (Output((n,), ()),), buffers, (region,))
    >>> programs = [maps(n, f) for n, f in ((10, x**2 + x), (1000, x**2 + x), (1000, sp.sin(x)))]
    >>> [rolled_work(program).price.call < unrolled_work(program).price.call for program in programs]
    [False, True, True]
    """
    work = Work(Counter(zero=_cleared(program)), Counter(kernel=1, traced=traced, nest=_nests(program.steps)))
    writers = Counter(
        buffer for region, _ in regions_of(program.steps) for buffer in {use.buffer for use in region.results}
    )
    for region, counts in regions_of(program.steps):
        work += _region_work(program, region, prod(counts), {buffer for buffer, n in writers.items() if n == 1})
    return work


def unrolled_work(program: RolledProgram) -> Work:
    """Return the work of a rolled program in straight lines, before common subexpressions are shared."""
    counted, alone, waits = Counter[Kind](), Counter[Kind](), 0
    for region, counts in regions_of(program.steps):
        times = prod(counts) * region.count
        if region.matrix is not None:
            counted[sp.Add, 2, None] += prod(counts) * region.matrix.operations * WRITTEN_OUT
            continue
        for kind, count in _kinds_of(region.body).items():
            counted[kind] += times * count
            alone[kind] += 0 if region.parallel or count >= LANES_AT_ONCE else times * count
        counted[sp.Add, 2, "sum"] += times * sum(use.kind == "add" for use in region.results)
        waits += prod(counts) * _waits(region)
    stored, zeros = _stored(program)
    return rows_work(counted, stored, zeros, waits, alone)


def _kinds_of(body: Program) -> Counter[Kind]:
    """Return the rows of a body by kind, counted once for all regions that have it."""
    return body.once("kinds", lambda: kinds(body, range(len(body))))


def _waits(region: Region) -> int:
    """Return the number of operations of a region that wait for each other: from carry to carry."""
    if region.parallel or region.count == 1:
        return 0
    carried = range(len(region.gathers), len(region.gathers) + len(region.carries))
    slots = [slot for slot, carry in zip(carried, region.carries, strict=True) if carry.lag == 1]
    return region.count * longest_chain(region.body, range(len(region.body)), slots)


def _region_work(program: RolledProgram, region: Region, rounds: int, alone: Container[int]) -> Work:
    """Return the work of a region that is run in `rounds`; only one region writes to buffers that are `alone`."""
    if region.matrix is not None:
        term = "product term" if region.matrix.kind == "product" else "matrix term"
        return Work(Counter({"matrix": rounds, term: rounds * region.matrix.operations}), Counter(region=1))
    counted = _kinds_of(region.body)
    entries = operations(counted)
    grouped = entries.total() - entries["operation"] - entries["sum"]
    index = sum(use.table.count for use in region.uses if isinstance(use.table, Indexed))
    build = Counter(region=1, row=sum(counted.values()), emitted=entries.total(), grouped=grouped, index=index)
    side_by_side = region.parallel and region.count > 1
    once = _on_lanes(program, region, entries, alone) if side_by_side else _one_by_one(region, entries)
    once["region"] += 1
    for use in region.uses:
        if not use.table.fixed:
            once += _far(program.buffers[use.buffer].size, region.count)
    return Work(Counter({name: rounds * amount for name, amount in once.items()}), build)


def _one_by_one(region: Region, entries: Counter[str]) -> Counter[str]:
    """Return the calls' work of sequential repetitions: loads and stores fit into the time of waiting."""
    uses, waits = len(region.uses), _waits(region)
    call = Counter({name: region.count * count for name, count in entries.items()})
    call["store"] += 0 if waits else region.count * uses
    call["wait"] += max(0, waits - region.count * entries.total() // AT_ONCE)
    return call


def _on_lanes(program: RolledProgram, region: Region, entries: Counter[str], alone: Container[int]) -> Counter[str]:
    """Return the calls' work of repetitions side by side, in stretches in which all tables have a step."""
    uses: list[Use] = [("gather", use.table) for use in region.gathers]
    uses += [(use.kind, use.table) for use in region.results]
    often = Counter([use.buffer for use in region.uses if not use.table.fixed])
    sizes = [WORTH * program.buffers[use.buffer].size for use in region.uses]
    packed = [k for k, use in enumerate(region.uses) if often[use.buffer] * region.count >= sizes[k]]
    for buffer in dict.fromkeys(use.buffer for use in region.results):
        written = [k for k, use in enumerate(region.results, len(region.gathers)) if use.buffer == buffer]
        packed += without_gaps(region.count, uses, written, alone=buffer in alone)
    vectors = vectors_of(region.count, runs([table for _, table in uses], region.count))
    call = Counter({name: vectors * count for name, count in on_lanes(entries).items()})
    return call + places_work(region.count, uses, packed)


def _nests(steps: Sequence[Step]) -> int:
    stack, nests = list(steps), 0
    while stack:
        step = stack.pop()
        if isinstance(step, Nest):
            nests += 1
            stack += step.steps
    return nests


def _stored(program: RolledProgram) -> tuple[int, int]:
    """Return how many numbers of the outputs are written, at most, and how many are not."""
    written = _written(program)
    sizes = {program.first_output + k: output.size for k, output in enumerate(program.outputs)}
    stored = sum(min(size, written[buffer]) for buffer, size in sizes.items())
    return stored, sum(sizes.values()) - stored


def _cleared(program: RolledProgram) -> int:
    """Return the work to clear buffers: those with sums, and those with fewer stores than places."""
    written = _written(program)
    added = {use.buffer for region, _ in regions_of(program.steps) for use in region.results if use.kind == "add"}
    return sum(
        _zero(buffer.size)
        for number, buffer in enumerate(program.buffers)
        if buffer.kind in ("workspace", "output") and (number in added or written[number] < buffer.size)
    )


def _written(program: RolledProgram) -> Counter[int]:
    written: Counter[int] = Counter()
    for region, counts in regions_of(program.steps):
        for use in region.results:
            written[use.buffer] += use.table.count * prod(counts)
    return written


# Nanoseconds until a result is ready, at 3.5 GHz; of functions, as formulas on lanes.
LATENCY = {"operation": 1.1, "sum": 0.0, "div": 6.6, "sqrt": 9.0}
FUNCTION = 25.0


def longest_way(program: Program) -> float:
    """Return the nanoseconds of the longest path from an input to a result.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> round(longest_way(program_from_sympy([x], [sp.sqrt(x + 1), 1 / x])), 6)
    10.1
    """
    ready: dict[int, float] = {}
    for row in reachable(program, [row for output in program.outputs for row in output.rows]):
        parts = program.operands[row]
        ready[row] = 0.0 if not parts else max(ready[part] for part in parts) + sum(
            LATENCY.get(name, FUNCTION) * count for name, count in lowered(kind_of(program, row))
        )  # fmt: skip
    return max(ready.values(), default=0.0)


def busy(program: Program, width: int) -> float:
    """Return the nanoseconds for which a program keeps the processor busy, with `width` points side by side."""
    rows = reachable(program, [row for output in program.outputs for row in output.rows])
    entries = on_lanes(operations(kinds(program, rows)))
    return registers(width) * sum(NANOSECONDS[name] * count for name, count in entries.items())
