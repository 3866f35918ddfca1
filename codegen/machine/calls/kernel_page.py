"""The notebook view and the one-line text of a kernel."""

from __future__ import annotations

from codegen.ir.program import Declared
from codegen.lanes import FLOAT64
from codegen.machine.calls.statistics import Stats, figures, table
from codegen.options import Options
from codegen.visible import visible


def heading(program: Declared, options: Options) -> str:
    """Return a kernel in one line: its name, arguments and results.

    >>> from codegen.ir.program import Declaration, Input, Output
    >>> heading(Declaration("kernel", (Input("x", (3,)), Input("s", ())), (Output((), ()),)), Options())
    'kernel(x[3], s) -> float'
    """
    inputs = ", ".join(f"{array.name}{list(array.shape) or ''}" for array in program.arguments)
    scalar = type(options.number.dtype.type(0).item()).__name__
    results = ", ".join(str(list(array.shape) or scalar) for array in program.outputs)
    return visible(f"{program.name}({inputs}) -> {results}")


def kernel_page(program: Declared, options: Options, signature: str, stats: Stats) -> str:
    """Return a kernel as HTML: its arguments and results, its options, and its statistics."""
    number = "" if options.number is FLOAT64 else f", {options.dtype}"
    sparse = [output.pattern for output in program.outputs if output.pattern is not None]
    rows = [
        ("shapes", signature),
        ("options", f"tier={options.tier!r}, accuracy={options.accuracy!r}, fma={options.fma}{number}"),
        *(("sparse result", repr(pattern).strip("<>")) for pattern in sparse),
    ]
    return table(f"Kernel {heading(program, options)}", [*rows, *figures(stats)])
