"""C files of numbers: sparse places, and a test program with the exact bits of some results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from codegen.ir.program import Output, Program
from codegen.ir.region import RolledProgram, regions_of
from codegen.ir.sparsity import SparsityPattern
from codegen.machine.calls.arguments import Array
from codegen.machine.exports.c_interface import Interface, Parameter
from codegen.machine.exports.c_source import hexadecimal

Point = Sequence[Array]
LAST_BITS = {"double": 1e-11, "float": 1e-3}  # of an array's largest number: loops round sums in another order
NUMBERS_PER_LINE = 4
INDICES_PER_LINE = 16


def sparsity_header(api: Interface) -> str:
    """Return the header with the places of the packed entries, and the index arrays of CSR and CSC."""
    guard = f"{api.name}_SPARSITY_H_"
    parts = [f"/** @file {api.name}_sparsity.h\n *  @brief places of the packed entries of {api.name} */\n"]
    parts.append(f"#ifndef {guard}\n#define {guard}\n")
    parts += [_pattern(f"{api.name}_{parameter.name}", output.pattern) for parameter, output in api.sparse]
    return "\n".join([*parts, "#endif\n"])


def _pattern(prefix: str, pattern: SparsityPattern | None) -> str:
    assert pattern is not None
    height, width = pattern.shape
    by_row, by_column = np.lexsort((pattern.columns, pattern.rows)), np.lexsort((pattern.rows, pattern.columns))
    starts = (
        np.concatenate([[0], np.cumsum(np.bincount(places, minlength=size))])
        for places, size in ((pattern.rows, height), (pattern.columns, width))
    )
    tables: list[tuple[str, str, Any]] = [
        ("row", "row of each entry, from 0", pattern.rows),
        ("column", "column of each entry", pattern.columns),
        ("csr_start", "compressed rows: where each row begins", next(starts)),
        ("csr_column", "compressed rows: columns", pattern.columns[by_row]),
        ("csr_entry", "compressed rows: position of each value in the packed entries", by_row),
        ("csc_start", "compressed columns: where each column begins", next(starts)),
        ("csc_row", "compressed columns: rows", pattern.rows[by_column]),
        ("csc_entry", "compressed columns: position of each value in the packed entries", by_column),
    ]
    sizes = f"enum {{ {prefix}_rows = {height}, {prefix}_columns = {width}, {prefix}_nnz = {pattern.nnz} }};\n"
    texts = [
        f"/** {text} */\n{c_table(f'static const int {prefix}_{name}', values.tolist())}"
        for name, text, values in tables
    ]
    return "\n".join([sizes, *texts])


def c_table(declared: str, numbers: Sequence[Any]) -> str:
    """Return the definition of a table in C, of one zero where it has no numbers.

    >>> print(c_table("const int sizes", [2, 3]), end="")
    const int sizes[2] = {
        2, 3,
    };
    """
    numbers_written = numbers or [0]
    return f"{declared}[{len(numbers_written)}] = {{\n{_rows(numbers_written, INDICES_PER_LINE)}}};\n"


def c_numbers(declared: str, values: Array) -> str:
    """Return the same of float64, with all their bits."""
    return c_table(declared, [hexadecimal(float(value)) for value in values.ravel()])


def _rows(values: Sequence[Any], width: int) -> str:
    lines = [", ".join(map(str, values[start : start + width])) for start in range(0, len(values), width)]
    return "".join(f"    {line},\n" for line in lines)


def has_sums(program: Program | RolledProgram) -> bool:
    """Return whether results of loops are added up, which machine code does side by side and C source in order."""
    steps = program.steps if isinstance(program, RolledProgram) else ()
    return any(use.kind == "add" for region, _ in regions_of(steps) for use in region.results)


def check_program(api: Interface, points: Sequence[Point], results: Sequence[Point], *, exact: bool) -> str:
    """Return a C program that compares the function at some points and prints ok, or the first difference.

    Bits are compared where it is `exact`; else the last bits may differ. Two NaNs are equal, whatever their sign and
    payload.
    """
    arguments = [*(f"{p.name}_at_[point_]" for p in api.inputs), *(f"{p.name}_found_" for p in api.outputs)]
    tables = [
        _numbers(api.scalar, f"{parameter.name}_at_", [point[k] for point in points])
        for k, parameter in enumerate(api.inputs)
    ]
    checks = []
    for k, parameter in enumerate(api.outputs):
        tables.append(_expected(api, parameter, [result[k] for result in results]))
        test = f"{parameter.name}_found_[k], expected"
        if not exact:
            scale = max((float(np.max(np.abs(result[k]), initial=0.0)) for result in results), default=0.0)
            test = f"{test}, {hexadecimal(LAST_BITS[api.scalar] * scale if np.isfinite(scale) else 0.0)}"
        checks.append(CHECK.format(scalar=api.scalar, name=parameter.name, size=parameter.array.size, test=test))
    return PROGRAM.format(
        name=api.name,
        scalar=api.scalar,
        tables="\n".join(tables),
        points=len(points),
        same=(SAME if exact else CLOSE).format(scalar=api.scalar),
        call=f"{api.name}({', '.join(arguments)})",
        checks="".join(checks),
        clear="".join(
            f"        memset({output.name}_found_, 0xff, sizeof {output.name}_found_);\n" for output in api.outputs
        ),
    )


def _numbers(scalar: str, name: str, arrays: Sequence[Array]) -> str:
    width = max(arrays[0].size, 1)
    texts = ([hexadecimal(value, scalar) for value in np.ravel(array).tolist()] or ["0"] for array in arrays)
    body = "".join(f"{{\n{_rows(text, NUMBERS_PER_LINE)}}},\n" for text in texts)
    return f"static const {scalar} {name}[{len(arrays)}][{width}] = {{\n{body}}};\n"


def _expected(api: Interface, parameter: Parameter, arrays: Sequence[Array]) -> str:
    """The output array, the values that are expected in it, and their positions; all others are structural zeros."""
    name, output = parameter.name, parameter.array
    assert isinstance(output, Output)
    where = _filled(output, api.program.inputs[-1].size if output.swept else 1)
    values = _numbers(api.scalar, f"{name}_values_", [np.ravel(array)[where] for array in arrays])
    places = _rows(where.tolist() or [-1], INDICES_PER_LINE)
    return (
        f"static {api.scalar} {name}_found_[{max(output.size, 1)}];\n{values}"
        f"static const long {name}_places_[{max(len(where), 1)}] = {{\n{places}}};\n"
        f"enum {{ {name}_count_ = {len(where)} }};\n"
    )


def _filled(output: Output, columns: int) -> Any:
    if output.positions is None:
        return np.arange(output.size)
    places = np.array(output.positions, dtype=np.int64)
    return np.unique(places[:, None] + np.arange(columns))


CHECK = """\
        for (long k = 0, next = 0; k < {size}; k++) {{
            int filled = next < {name}_count_ && {name}_places_[next] == k;
            {scalar} expected = filled ? {name}_values_[point_][next++] : 0;
            if (!same_({test})) {{
                printf("point %ld: {name}[%ld] is %a, expected %a\\n", point_, k, {name}_found_[k],
                       expected);
                return 1;
            }}
        }}
"""
SAME = """\
static int same_({scalar} a, {scalar} b)
{{
    return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}}
"""
CLOSE = """\
/* the C source adds up sums of loops in another order */
static int same_({scalar} a, {scalar} b, {scalar} difference)
{{
    return a == b || (a != a && b != b) || fabs(a - b) <= difference;
}}
"""
PROGRAM = """\
/* Test of {name}: prints ok, or the first number that differs in a bit. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "{name}.h"

{tables}
{same}
int main(void)
{{
    for (long point_ = 0; point_ < {points}; point_++) {{
        int status_;
{clear}        status_ = {call};
        if (status_ != 0) {{
            printf("point %ld: the function returned %d\\n", point_, status_);
            return 1;
        }}
{checks}    }}
    printf("ok\\n");
    return 0;
}}
"""
