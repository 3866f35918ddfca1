"""The C99 source file of a kernel: its routines and the function that calls them."""

from __future__ import annotations

from codegen.emission.straight import StraightPlan
from codegen.emission.sweep import SweepPlan
from codegen.loops.emit.rolled_code import RolledPlan
from codegen.machine.code_forms import Plan
from codegen.machine.exports.c_interface import Interface
from codegen.machine.exports.c_loops import loops
from codegen.machine.exports.c_source import STACK_NUMBERS, Called, Routine, routine


def kernel_source(given: Interface, plan: Plan) -> str:
    """Return the C99 source of a kernel, with the same bits as its machine code but for sums and functions in loops.

    LoweringError for a function that C99 does not have.

    >>> import sympy as sp
    >>> from codegen.machine.exports.c_interface import interface
    >>> from codegen.options import Options
    >>> from codegen.machine.code_forms import plan
    >>> from codegen.lowering.prepare import prepare
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> program = program_from_sympy([x], [x + 0.5])
    >>> "x[0] + 0x1p-1" in kernel_source(interface(program, "f"), plan(prepare(program, Options())))
    True
    """
    called = Called(given.name, given.scalar)
    if isinstance(plan, RolledPlan):
        static, lines = loops(given, plan, called)
        body = static + _entry(given, lines)
    elif isinstance(plan, SweepPlan):
        body = _sweep(given, plan, called)
    else:
        body = _straight(given, plan, called)
    head = f"/* {given.name}: compile with -std=c99 -O2 -ffp-contract=off, see {given.name}.h */\n"
    return "\n".join([head + called.declarations(), f'#include "{given.name}.h"\n', body])


def _straight(given: Interface, plan: StraightPlan, called: Called) -> str:
    inputs = [(found.name, found.array.size) for found in given.inputs]
    outputs = [found.name for found in given.outputs]
    name = f"{given.name}_run_"
    text = routine(Routine(name, plan, inputs, outputs), called)
    arguments = ", ".join([name for name, _ in inputs] + outputs)
    return text + _entry(given, [*_zeros(given), f"return {name}({arguments});"])


def _sweep(given: Interface, plan: SweepPlan, called: Called) -> str:
    """A sweep: one routine for what no column changes, and one that is called for every column."""
    columns = plan.program.inputs[-1].size
    pairs = list(zip(given.outputs, plan.program.outputs, strict=True))
    fixed = [found.name for found, output in pairs if not output.swept]
    swept = [found.name for found, output in pairs if output.swept]
    inputs = [(found.name, found.array.size) for found in given.inputs]
    first = Routine(f"{given.name}_once_", plan.once, inputs, [*fixed, "kept_"])
    kept = [("kept_", plan.residuals), ("seed_", columns)]
    second = Routine(f"{given.name}_column_", plan.columns, kept, swept)
    count, kind = max(plan.residuals, 1) + columns, given.scalar
    large = count > STACK_NUMBERS
    lines = [
        f"{kind} *kept_ = malloc({count} * sizeof({kind}));" if large else f"{kind} kept_[{count}];",
        f"{kind} *seed_ = kept_ + {count - columns};",
        "int status_;",
        *(["if (kept_ == NULL) return 1;"] if large else []),
        *_zeros(given),
        f"memset(seed_, 0, {columns} * sizeof({kind}));",
        f"status_ = {first.name}({', '.join([*(name for name, _ in inputs), *fixed, 'kept_'])});",
        f"for (long column_ = 0; status_ == 0 && column_ < {columns}; column_++) {{",
        "    seed_[column_] = 1.0;",
        f"    status_ = {second.name}({', '.join(['kept_', 'seed_', *(f'{name} + column_' for name in swept)])});",
        "    seed_[column_] = 0.0;",
        "}",
        *(["free(kept_);"] if large else []),
        "return status_;",
    ]
    return "\n".join([routine(first, called), routine(second, called)]) + _entry(given, lines)


def _zeros(given: Interface) -> list[str]:
    """Outputs with structural zeros are cleared first."""
    pairs = zip(given.outputs, given.program.outputs, strict=True)
    arrays = [found for found, output in pairs if output.positions is not None]
    return [f"memset({found.name}, 0, {found.array.size} * sizeof({given.scalar}));" for found in arrays]


def _entry(given: Interface, lines: list[str]) -> str:
    parameters = [found.declaration.replace("*", "*restrict ") for found in given.parameters]
    head = f"int {given.name}({', '.join(parameters) or 'void'})"
    return "\n".join(["", head, "{", *[f"    {line}" for line in lines], "}", ""])
