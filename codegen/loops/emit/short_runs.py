"""Choose the number of lanes where runs do not fill a register."""

from __future__ import annotations

from codegen.ir.region import Region
from codegen.ir.tables import runs
from codegen.lowering.lower import Lowered
from codegen.pricing.price_table import NANOSECONDS


def lanes_of_runs(region: Region, lowered: Lowered, widest: int, at_once: int) -> int:
    """Return how many repetitions cost least side by side: lanes without a repetition cost as much as the others.

    At most the `widest`; `at_once` of them are as fast as one. Runs that fill two registers or more have the widest.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> from codegen.ir.region import Gather, Result
    >>> from codegen.ir.tables import Affine, Indexed
    >>> from codegen.lowering.lower import lower
    >>> import numpy as np, sympy as sp
    >>> a, b = sp.symbols("a b")
    >>> body = program_from_sympy([a, b], [a * b])
    >>> def lanes(n, step):
    ...     i, j = np.triu_indices(n, 1)
    ...     gathers = Gather(0, Indexed(i)), Gather(0, Indexed(j * step))
    ...     results = (Result(0, 1, Affine(0, step, len(i)), "store"),)
    ...     return lanes_of_runs(Region(body, len(i), gathers, results), lower(body), 8, 8)
    >>> lanes(10, 3), lanes(100, 3)
    (2, 8)
    """
    tables = [use.table for use in region.uses]
    table_runs = runs(tables, region.count)
    if table_runs is None or region.count >= 2 * widest * len(table_runs):
        return widest
    kinds = ["table"] * len(region.gathers) + ["table store"] * len(region.results)
    moved = sum(NANOSECONDS[kind] for kind, step in zip(kinds, table_runs.steps, strict=True) if step not in (0, 1))
    plain = NANOSECONDS["lanes operation"]
    arithmetic = sum(NANOSECONDS.get(f"lanes {kind}", plain) * count for kind, count in lowered.count().items())

    def nanoseconds(width: int) -> float:
        vectors = int((-(-table_runs.lengths // width)).sum())
        return vectors * (arithmetic * max(1.0, width / at_once) + moved * width)

    widths = [widest]
    while widths[-1] > 2:
        widths.append(widths[-1] // 2)
    return min(widths, key=nanoseconds)
