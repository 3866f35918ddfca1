"""codegen: compiles a program of SymPy heads, straight lines or loops, to a native kernel; a fast `lambdify`."""

from codegen.errors import ArgumentError, LoweringError, UnboundSymbolError, WorkbenchError
from codegen.evaluation.interpret import evaluate
from codegen.expressions.printing import text as rolled_text
from codegen.expressions.sympy_in import program_from_sympy, walk
from codegen.functions.intrinsics import supports
from codegen.ir.program import Input, Output, Program
from codegen.ir.region import RolledProgram
from codegen.ir.unroll import unroll
from codegen.lambdify import Lambdified, lambdify
from codegen.machine.build import compile_program, load_kernel
from codegen.machine.calls.compiled import Stats
from codegen.machine.calls.kernel import Kernel

__all__ = [
    "ArgumentError", "Input", "Kernel", "Lambdified", "LoweringError", "Output", "Program", "RolledProgram", "Stats",
    "UnboundSymbolError", "WorkbenchError", "compile_program", "evaluate", "lambdify", "load_kernel",
    "program_from_sympy", "rolled_text", "supports", "unroll", "walk",
]  # fmt: skip
