"""Functions of CasADi's C API (`casadi.external`) as C text.

CasADi stores matrices column by column, sparsities in compressed columns; a vector is a column. A null pointer among
the arguments stands for zeros; one among the results means that it is not needed: a kernel without needed results is
not called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.ir.sparsity import SparsityPattern
from codegen.machine.exports.c_interface import guarded
from codegen.machine.exports.c_tables import c_table
from codegen.machine.exports.export import Material, prototype
from codegen.records import dataclass

SIGNATURE = "(const casadi_real **arg, casadi_real **res, casadi_int *iw, casadi_real *w, int mem)"
TYPES = """#ifndef casadi_real
#define casadi_real double
#endif
#ifndef casadi_int
#define casadi_int long long int
#endif
"""
HELPERS = {
    "given": """
static const double *given(const double *from, const int *order, double *room, long size)
{
    if (from != NULL && order == NULL) return from;
    for (long k = 0; k < size; k++) room[k] = from == NULL ? 0.0 : from[order[k]];
    return room;
}
""",
    "taken": """
static void taken(double *to, const double *from, const int *order, long size)
{
    if (to != NULL) for (long k = 0; k < size; k++) to[k] = from[order[k]];
}
""",
}


@dataclass(frozen=True, eq=False)
class Slot:
    """An argument or a result: a matrix; with a pattern (in the order "csc") a sparse one."""

    name: str
    shape: tuple[int, int]
    pattern: SparsityPattern | None = None

    @property
    def size(self) -> int:
        """How many numbers are stored."""
        return self.shape[0] * self.shape[1] if self.pattern is None else self.pattern.nnz

    @property
    def compressed(self) -> list[int]:
        """What CasADi reads: rows, columns, where each column begins, rows of entries; 1 in their place where full."""
        if self.pattern is None:
            return [*self.shape, 1]
        return [*self.shape, *self.pattern.indptr.tolist(), *self.pattern.indices.tolist()]


@dataclass(frozen=True, eq=False)
class InputPlace:
    """Where an input of a kernel is among the arguments; `order` has the place of each of its numbers there."""

    slot: int
    size: int
    offset: int = 0
    order: NDArray[np.intp] | None = None


@dataclass(frozen=True, eq=False)
class Writing:
    """Which result an output of a kernel is, None for none; `order` has for each number the place in the output."""

    slot: int | None
    size: int
    order: NDArray[np.intp] | None = None


@dataclass(frozen=True, eq=False)
class KernelStep:
    """One kernel, called if one of its results is needed.

    `factor` is an argument of one number, by which its one result is multiplied.
    """

    member: str
    readings: tuple[InputPlace, ...]
    writings: tuple[Writing, ...]
    factor: int | None = None


@dataclass(frozen=True, eq=False)
class CasadiFunction:
    """One function of the API."""

    name: str
    arguments: tuple[Slot, ...]
    results: tuple[Slot, ...]
    steps: tuple[KernelStep, ...]


def casadi_source(header: str, functions: Sequence[CasadiFunction], members: Mapping[str, Material]) -> str:
    """Return the C text of the functions."""
    tables = _Tables()
    bodies = [_function(function, tables) for function in functions]
    declared = [prototype(symbol, material) for symbol, material in members.items()]
    helpers = [text for helper, text in HELPERS.items() if any(f"{helper}(" in body for body in bodies)]
    first = f'#include "{header}"\n#include <stddef.h>\n\n'
    return "".join([first, *declared, *helpers, *tables.texts.values(), *bodies])


def casadi_header(name: str, functions: Sequence[CasadiFunction]) -> str:
    """Return the header that declares the functions."""
    names, lines = ", ".join(function.name for function in functions), []
    for function in functions:
        lines += [f"\nint {function.name}{SIGNATURE};\n"]
        lines += [f"{declaration};\n" for declaration, _ in _about(function)]
    about = f"/** @file {name}.h\n *  @brief {names}: functions of CasADi's C API */\n"
    return guarded(name, about, "".join(lines), f"\n{TYPES}")


class _Tables:
    """Constant arrays of the file, each once."""

    def __init__(self) -> None:
        self.texts: dict[Any, str] = {}
        self.names: dict[Any, str] = {}

    def of(self, values: Any, scalar: str) -> str:
        """Return the name of an array of these numbers."""
        numbers = np.asarray(values, dtype=np.int64)
        key = scalar, numbers.tobytes()
        if key not in self.names:
            self.names[key] = f"table{len(self.names)}"
            self.texts[key] = c_table(f"static const {scalar} {self.names[key]}", numbers.tolist())
        return self.names[key]

    def order(self, order: NDArray[np.intp] | None) -> str:
        """Return the name of a table of places, NULL for none."""
        return "NULL" if order is None else self.of(order, "int")


def _about(function: CasadiFunction) -> list[tuple[str, str]]:
    """Return declarations of the functions that describe a function, and their bodies where they need no table."""
    name = function.name
    inside = "switch (i) {{ {} default: return NULL; }}"

    def named(slots: Sequence[Slot]) -> str:
        return inside.format(" ".join(f'case {k}: return "{slot.name}";' for k, slot in enumerate(slots)))

    return [
        (f"casadi_int {name}_n_in(void)", f"return {len(function.arguments)};"),
        (f"casadi_int {name}_n_out(void)", f"return {len(function.results)};"),
        (f"const char *{name}_name_in(casadi_int i)", named(function.arguments)),
        (f"const char *{name}_name_out(casadi_int i)", named(function.results)),
        (f"const casadi_int *{name}_sparsity_in(casadi_int i)", ""),
        (f"const casadi_int *{name}_sparsity_out(casadi_int i)", ""),
        (f"int {name}_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw, casadi_int *sz_w)", ""),
    ]


def _function(function: CasadiFunction, tables: _Tables) -> str:
    room, body = 0, []
    for step in function.steps:
        lines, needed = _step(step, function, tables)
        body += lines
        room = max(room, needed)
    unused = "    (void)arg; (void)res; (void)iw; (void)w; (void)mem;\n"
    text = f"\nint {function.name}{SIGNATURE}\n{{\n{unused}{''.join(body)}    return 0;\n}}\n"
    sizes = f"*sz_arg = {len(function.arguments)}; *sz_res = {len(function.results)}; *sz_iw = 0; *sz_w = {room}; "
    written = {"sparsity_in": _sparsities(function.arguments, tables), "work": f"{sizes}return 0;",
               "sparsity_out": _sparsities(function.results, tables)}  # fmt: skip
    for declaration, inside in _about(function):
        kind = declaration.partition("(")[0].rpartition(f"{function.name}_")[2]
        text += f"\n{declaration}\n{{\n    {inside or written[kind]}\n}}\n"
    return text


def _sparsities(slots: Sequence[Slot], tables: _Tables) -> str:
    cases = [f"case {k}: return {tables.of(slot.compressed, 'casadi_int')};" for k, slot in enumerate(slots)]
    return f"switch (i) {{ {' '.join(cases)} default: return NULL; }}"


def _step(step: KernelStep, function: CasadiFunction, tables: _Tables) -> tuple[list[str], int]:
    """Return the lines that call a kernel, and how many numbers of room they need."""
    asked = " || ".join(f"res[{writing.slot}] != NULL" for writing in step.writings if writing.slot is not None)
    lines, room, arguments = [f"    if ({asked}) {{\n"], 0, []
    for k, read in enumerate(step.readings):
        source = f"arg[{read.slot}]"
        if read.offset:
            source = f"{source} == NULL ? NULL : {source} + {read.offset}"
        order = tables.order(read.order)
        lines.append(f"        const double *i{k} = given({source}, {order}, w + {room}, {read.size});\n")
        arguments.append(f"i{k}")
        room += read.size
    after = []
    for k, writing in enumerate(step.writings):
        arguments.append(f"o{k}")
        target = None if writing.slot is None else f"res[{writing.slot}]"
        if target is not None and writing.order is None:
            lines.append(f"        double *o{k} = {target} == NULL ? w + {room} : {target};\n")
        else:
            lines.append(f"        double *o{k} = w + {room};\n")
        if target is not None and writing.order is not None:
            table = tables.order(writing.order)
            after.append(f"        taken({target}, o{k}, {table}, {len(writing.order)});\n")
        room += writing.size
    if step.factor is not None:
        scale = f"arg[{step.factor}] == NULL ? 0.0 : *arg[{step.factor}]"
        after.insert(0, f"        for (long k = 0; k < {step.writings[0].size}; k++) o0[k] *= ({scale});\n")
    lines += [f"        if ({step.member}({', '.join(arguments)})) return 1;\n", *after, "    }\n"]
    return lines, room
