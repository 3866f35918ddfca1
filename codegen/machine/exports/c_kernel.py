"""The C99 source file of a kernel: its routines and the function that calls them.

A rolled program has a static function for each body, and loops that call it; tables of places and constants are static
arrays. Sums are added up in the order of the repetitions, while machine code runs several repetitions side by side: the
last bits may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from codegen.emission.straight import StraightPlan, SweepPlan
from codegen.errors import LoweringError
from codegen.ir.matrix_operation import MatrixOperation
from codegen.ir.program import Program
from codegen.ir.region import Carry, Gather, Nest, Region, Result
from codegen.ir.tables import Affine, Table
from codegen.loops.emit.loop_text import in_arrays
from codegen.loops.emit.rolled_code import RolledPlan
from codegen.lowering.lower import Lowered
from codegen.machine.exports.c_interface import Interface, in_comment
from codegen.machine.exports.c_routines import own_operation
from codegen.machine.exports.c_source import Called, RoutineWriter, hexadecimal, room
from codegen.machine.kernel_text import Plan
from codegen.processor import has_fma
from codegen.stages import allowed

LARGEST = 1_000_000  # numbers of tables and constants
PER_LINE = 8


class _CFileWriter:
    """The file of a rolled program under construction; LoweringError for more than a million numbers in tables."""

    def __init__(self, api: Interface, plan: RolledPlan, called: Called) -> None:
        self.api, self.plan, self.called, self.scalar = api, plan, called, api.scalar
        self.arrays: dict[bytes, str] = {}
        self.parts: list[str] = []
        self.size = 0
        self.buffers = list(self.names())
        self.bodies: dict[int, str] = {}

    def names(self) -> Iterator[str]:
        """How each buffer is written: an array of the caller, a static array, or a part of the workspace."""
        arrays, first = iter(self.api.parameters), 0
        for buffer in self.plan.program.buffers:
            if buffer.values is not None:
                yield ""  # written when it is first read
            elif buffer.kind == "workspace":
                yield f"(work_ + {first})" if first else "work_"
                first += buffer.size
            else:
                yield next(arrays).name

    def static(self, kind: str, values: NDArray[Any], written: Callable[[Any], str]) -> str:
        """A static array; equal ones are one."""
        key = kind.encode() + values.tobytes()
        if key not in self.arrays:
            self.size += len(values)
            if self.size > LARGEST:
                why = f"its tables and constants have more than {LARGEST:,} numbers"
                raise LoweringError(f"C source of {self.api.name}", why=why, do="export the object file")
            self.arrays[key] = name = f"{self.api.name}_table{len(self.arrays)}_"
            numbers = [written(value) for value in values.tolist()]
            lines = [", ".join(numbers[k : k + PER_LINE]) for k in range(0, len(numbers), PER_LINE)]
            body = "".join(f"    {line},\n" for line in lines) or "    0,\n"
            self.parts.append(f"static const {kind} {name}[{max(len(numbers), 1)}] = {{\n{body}}};\n")
        return self.arrays[key]

    def write(self) -> tuple[str, list[str]]:
        """Return the static parts, and the lines of the function."""
        bodies = []
        for (region, _), prepared in self.plan.regions:
            if region.matrix is None and id(region.body) not in self.bodies:
                self.bodies[id(region.body)] = name = f"{self.api.name}_body{len(self.bodies)}_"
                plan = _plan(region.body, prepared.fused)
                slots = [("slots_", len(region.body.inputs))]
                bodies.append(RoutineWriter(self.called, name, plan, slots, ["values_"]).text())
        steps = list(self.steps())
        memory, freed = room(self.scalar, "work_", self.plan.workspace, "calloc({size}, sizeof({kind}))")
        lines = ["int status_ = 0;", *memory, *([] if freed else ["memset(work_, 0, sizeof work_);"])]
        lines += [f"(void){parameter.name};" for parameter in self.api.inputs]
        lines += [
            f"memset({output.name}, 0, {output.array.size} * sizeof({self.scalar}));" for output in self.api.outputs
        ]
        return "\n".join([*bodies, *self.parts]), [*lines, *steps, *freed, "return status_;"]

    def steps(self) -> Iterator[str]:
        """The lines of all steps, nests as loops around them."""
        stack: list[Region | Nest | str] = list(reversed(self.plan.program.steps))
        depth = 0
        while stack:
            step = stack.pop()
            if isinstance(step, Region):
                lines = self.region(step) if step.matrix is None else [self.matrix(step, step.matrix)]
            elif isinstance(step, Nest):
                stack += ["}", *reversed(step.steps)]
                lines = [f"for (long long r{depth}_ = 0; r{depth}_ < {step.count}; r{depth}_++) {{"]
            else:
                depth, lines = depth - 1, [step]
            yield from ("    " * depth + line for line in lines)
            depth += isinstance(step, Nest)

    def region(self, region: Region) -> list[str]:
        """One loop, as a block."""
        slots = [self.place(use) for use in region.gathers] + [f"carry{c}_[0]" for c in range(len(region.carries))]
        inside = [f"slots_[{k}] = {place};" for k, place in enumerate(slots)]
        inside.append(f"status_ |= {self.bodies[id(region.body)]}(slots_, values_);")
        inside += [self.result(use) for use in region.results if use.kind != "last"]
        for c, carry in enumerate(region.carries):
            inside += self.move_on(c, carry)
        inside += [] if region.stop is None else [f"if (values_[{region.stop}] != 0.0) break;"]
        sizes = max(len(slots), 1), max(len(region.body.outputs), 1)
        return [
            "{" + (f"  /* {in_comment(region.origin)} */" if region.origin else ""),
            f"    {self.scalar} slots_[{sizes[0]}] = {{0}}, values_[{sizes[1]}] = {{0}};",
            *(f"    {self.carry(c, carry)}" for c, carry in enumerate(region.carries)),
            f"    for (long long k_ = 0; k_ < {region.count}; k_++) {{",
            *(f"        {line}" for line in inside),
            "    }",
            *(f"    {self.result(use)}" for use in region.results if use.kind == "last"),
            "}",
        ]

    def matrix(self, region: Region, operation: MatrixOperation) -> str:
        """The call of an operation on whole arrays."""
        arrays = [f"&{self.first(use)}" for use in region.uses]
        adds = any(use.kind == "add" for use in region.results)
        call, texts = own_operation(operation, arrays, adds, self.called.prefix, self.scalar)
        self.called.helpers |= {name: text for name, text in texts.items() if name not in self.called.helpers}
        return f"status_ |= {call};" if operation.kind == "order" else f"{call};"

    def carry(self, c: int, carry: Carry) -> str:
        """A carry, with the values for its first repetitions."""
        return f"{self.scalar} carry{c}_[{carry.lag}] = {{{', '.join(map(self.place, carry.initial))}}};"

    def move_on(self, c: int, carry: Carry) -> list[str]:
        last = carry.lag - 1
        moved = [f"memmove(carry{c}_, carry{c}_ + 1, {last} * sizeof({self.scalar}));"] if last else []
        return [*moved, f"carry{c}_[{last}] = values_[{carry.output}];"]

    def result(self, use: Result) -> str:
        return f"{self.place(use)} {'+=' if use.kind == 'add' else '='} values_[{use.output}];"

    def first(self, use: Gather | Result) -> str:
        """The first of the contiguous places of an operand."""
        return self.place(replace(use, table=Affine(use.table.first, 1, 1, use.table.shifts)))

    def place(self, use: Gather | Result) -> str:
        values, name = self.plan.program.buffers[use.buffer].values, self.buffers[use.buffer]
        if values is not None:
            name = self.static(self.scalar, values, lambda value: hexadecimal(value, self.scalar))
        return f"{name}[{self.index(use.table)}]"

    def index(self, table: Table) -> str:
        """The place of repetition k_ in rounds r0_, r1_..."""
        factors = [(shift, f"r{depth}_") for depth, shift in enumerate(table.shifts)]
        if isinstance(table, Affine):
            factors = [(table.step if table.count > 1 else 0, "k_"), *factors]
        else:
            kind = "int" if table.bounds[1] < 2**31 else "long long"
            factors = [(1, f"{self.static(kind, table.index, str)}[k_]"), *factors]
        terms = [name if factor == 1 else f"{factor} * {name}" for factor, name in factors if factor]
        start = table.start if isinstance(table, Affine) else 0
        return " + ".join([*terms, *([str(start)] if start or not terms else [])])


def _plan(body: Program, lowered: Lowered) -> StraightPlan:
    """The body with its slots and its values in one array each."""
    stores = [(0, output, row) for output, _, row in lowered.stores]
    return StraightPlan.of(in_arrays(body), replace(lowered, stores=stores))


def kernel_source(api: Interface, plan: Plan) -> str:
    """Return the C99 source of a kernel, with the same bits as its machine code but for sums in loops.

    LoweringError for a function that C99 does not have.

    >>> import sympy as sp
    >>> from codegen.machine.exports.c_interface import interface
    >>> from codegen.options import Options
    >>> from codegen.machine.kernel_text import plan
    >>> from codegen.lowering.passes import prepare
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> program = program_from_sympy([x], [x + 0.5])
    >>> "x[0] + 0x1p-1" in kernel_source(interface(program, "f"), plan(prepare(program, Options())))
    True
    """
    called = Called(api.name, api.scalar, own=_own(plan))
    if isinstance(plan, RolledPlan):
        static, lines = _CFileWriter(api, plan, called).write()
        body = static + _entry(api, lines)
    elif isinstance(plan, SweepPlan):
        body = _sweep(api, plan, called)
    else:
        body = _straight(api, plan, called)
    head = f"/* {api.name}: compile with -std=c99 -O2 -ffp-contract=off, see {api.name}.h */\n"
    return "\n".join([head + called.declarations(), f'#include "{api.name}.h"\n', body])


def _own(plan: Plan) -> bool:
    """Whether this processor's kernel has functions of ours (`codegen.emission.lane_functions`)."""
    half = plan.once if isinstance(plan, SweepPlan) else plan
    fast = half.options.accuracy == "fast" if isinstance(half, RolledPlan) else half.vector_libm
    return has_fma() and not fast and allowed("lane-functions")


def _straight(api: Interface, plan: StraightPlan, called: Called) -> str:
    inputs = [(parameter.name, parameter.array.size) for parameter in api.inputs]
    outputs = [parameter.name for parameter in api.outputs]
    name = f"{api.name}_run_"
    text = RoutineWriter(called, name, plan, inputs, outputs).text()
    arguments = ", ".join([name for name, _ in inputs] + outputs)
    return text + _entry(api, [*_zeros(api), f"return {name}({arguments});"])


def _sweep(api: Interface, plan: SweepPlan, called: Called) -> str:
    """A sweep: one routine for the rows that all columns share, and one that is called for every column."""
    columns = plan.program.inputs[-1].size
    pairs = list(zip(api.outputs, plan.program.outputs, strict=True))
    fixed = [parameter.name for parameter, output in pairs if not output.swept]
    swept = [parameter.name for parameter, output in pairs if output.swept]
    inputs = [(parameter.name, parameter.array.size) for parameter in api.inputs]
    first = RoutineWriter(called, f"{api.name}_once_", plan.once, inputs, [*fixed, "kept_"]).text()
    kept = [("kept_", plan.residuals), ("seed_", columns)]
    second = RoutineWriter(called, f"{api.name}_column_", plan.columns, kept, swept).text()
    count, kind = max(plan.residuals, 1) + columns, api.scalar
    memory, freed = room(kind, "kept_", count)
    lines = [
        *memory,
        f"{kind} *seed_ = kept_ + {count - columns};",
        "int status_;",
        *_zeros(api),
        f"memset(seed_, 0, {columns} * sizeof({kind}));",
        f"status_ = {api.name}_once_({', '.join([*(name for name, _ in inputs), *fixed, 'kept_'])});",
        f"for (long column_ = 0; status_ == 0 && column_ < {columns}; column_++) {{",
        "    seed_[column_] = 1.0;",
        f"    status_ = {api.name}_column_({', '.join(['kept_', 'seed_', *(f'{name} + column_' for name in swept)])});",
        "    seed_[column_] = 0.0;",
        "}",
        *freed,
        "return status_;",
    ]
    return "\n".join([first, second]) + _entry(api, lines)


def _zeros(api: Interface) -> list[str]:
    """Outputs with structural zeros are cleared first."""
    pairs = zip(api.outputs, api.program.outputs, strict=True)
    arrays = [parameter for parameter, output in pairs if output.positions is not None]
    return [f"memset({array.name}, 0, {array.array.size} * sizeof({api.scalar}));" for array in arrays]


def _entry(api: Interface, lines: list[str]) -> str:
    parameters = [parameter.declaration.replace("*", "*restrict ") for parameter in api.parameters]
    head = f"int {api.name}({', '.join(parameters) or 'void'})"
    return "\n".join(["", head, "{", *[f"    {line}" for line in lines], "}", ""])
